"""Models side by side: the numbers of each, and what is missing stays empty."""

from dataclasses import replace

import numpy as np
import pytest

from skpriv.inspection import compare_models, inference
from skpriv.linear_model import AdditiveRegressor, LinearRegression

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, size=(20_000, 2))
Y = X @ [1.0, 0.5] + rng.normal(size=20_000)
OPTIONS = {"bounds_X": (-1, 1), "bounds_y": (-5, 5), "random_state": 0}
SHORT = LinearRegression(**OPTIONS).fit(X[:, :1], Y)
LONG = LinearRegression(**OPTIONS).fit(X, Y)


def test_numbers_are_those_of_each_model():
    table = compare_models([SHORT, inference(LONG)])
    frame = table.to_frame()
    assert list(frame.index) == ["x0", "x1", "intercept"]
    assert frame["(1)", "estimate"]["x0"] == inference(SHORT).estimate[0]
    assert np.isnan(frame["(1)", "estimate"]["x1"])
    assert frame["(2)", "std_error"]["x1"] == inference(LONG).std_error[1]
    lines = str(table).splitlines()
    assert lines[0].split() == ["(1)", "(2)"]
    assert [line.split()[0] for line in lines if line.startswith(("x", "i"))] == [
        "x0", "x1", "intercept",
    ]  # fmt: skip
    assert "R-squared" in str(table) and "20,000" in str(table)


def test_a_reference_level_of_several_models_is_named_once():
    found = replace(inference(LONG), lists={"site": ("A", ["x0"])})
    assert str(compare_models([found, found])).count("Reference levels: site: A.") == 1
    assert "Reference" not in str(compare_models([SHORT, LONG]))


def test_fitted_lines_are_told_not_to_be_compared():
    """Each has a clip of its own; lines of least squares have none."""
    declared = [
        LinearRegression(estimand="least_squares", **OPTIONS).fit(columns, Y)
        for columns in (X[:, :1], X)
    ]
    assert "clips in its" in str(compare_models([SHORT, LONG]))
    assert "clips in its" not in str(compare_models(declared))


def test_hostile_names_are_shown_as_they_are():
    table = compare_models({r"a_1 & $\input{x}$": SHORT, "b|c": LONG})
    latex = table.to_latex("50% & more", r"tab:a}\input{x")
    assert r"a\_1 \& \$\textbackslash{}input\{x\}\$" in latex
    assert r"\caption{50\% \& more}" in latex and r"\label{tab:ainputx}" in latex
    assert latex.count(r"\begin{") == latex.count(r"\end{")
    assert r"b\|c" in table.to_markdown()
    with pytest.raises(ValueError, match="at least one"):
        compare_models([])


def test_every_row_of_latex_has_all_cells():
    for latex in (compare_models([SHORT, LONG]).to_latex(), inference(LONG).to_latex()):
        rows = [line for line in latex.splitlines() if line.endswith(r"\\")]
        assert len({line.count("&") for line in rows}) == 1


def test_one_model_is_a_table_of_one_column():
    X = np.linspace(0.0, 1.0, 5000)[:, None]
    line = LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), random_state=0).fit(X, X[:, 0])
    assert str(compare_models(line)) == str(compare_models([line]))
    curves = AdditiveRegressor(bounds_X=(0, 1), bounds_y=(0, 1), random_state=0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="coefficient_table"):
        compare_models([line, curves])
