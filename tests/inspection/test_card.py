"""Cards and tables of coefficients: what they say, and that they say nothing of the rows."""

import re

import numpy as np
import pandas as pd
import pytest
from registry.estimators import layered, ssp
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpriv._estimation._coefficients import CoefficientLaw, LawSource, LawSums
from skpriv.inspection import Inference, coefficient_table, inference, model_card, release_page
from skpriv.linear_model import SSPRegressor
from skpriv.preprocessing import Boolean, Categorical, Date, Numeric, TableEncoder

COLUMNS = {
    "age": Numeric(20, 60, unit="year"),
    "a|b <c>": Categorical(["F", "M"], other=False),
    "ill": Boolean(missing="indicator"),
    "day": Date("2020-01-01", "2020-12-31"),
}
SECTIONS = [
    "Coefficients", "What the guarantee means", "What the guarantee does not cover",
    "Which noisy sums were released, and what they cost", "What is public", "Software",
]  # fmt: skip


def table():
    rng = np.random.RandomState(0)
    return pd.DataFrame(
        {
            "age": rng.uniform(20, 60, 2000),
            "a|b <c>": rng.choice(["F", "M"], 2000),
            "ill": rng.choice([True, False], 2000),
            "day": "2020-06-01",
        }
    )


def exact():
    frame = table()
    y = 0.01 * frame["age"] + 0.1 * (frame["a|b <c>"] == "M") + 0.2 * frame["ill"] - 0.1
    model = make_pipeline(
        TableEncoder(COLUMNS), SSPRegressor(data_norm=1.0, privacy="none", bounds_y=(0, 2))
    )
    return model.fit(frame, y)


def test_coefficients_are_in_the_units_of_the_table():
    found = inference(exact())
    names = [
        "age per year",
        "a|b <c>=M",
        "ill=True",
        "ill=missing against False",
        "day per year",
        "intercept",
    ]
    assert found.names == names
    estimate = dict(zip(names, found.estimate, strict=True))
    assert estimate["age per year"] == pytest.approx(0.01, abs=1e-6)
    assert estimate["a|b <c>=M"] == pytest.approx(0.1, abs=1e-6)
    assert estimate["ill=True"] == pytest.approx(0.2, abs=1e-6)
    text = coefficient_table(exact())
    assert "Not estimable (-): " in text  # nobody missing
    rows = text.split("p-value")[1].splitlines()[1 : len(names) + 1]
    assert all(line.startswith(name) for line, name in zip(rows, names, strict=True))


def test_a_card_in_markdown():
    card = model_card(exact(), title="a study")
    assert re.findall(r"^## (.*)$", card, re.M) == SECTIONS
    for words in (
        "# Model card: a study", "low 20.0, high 60.0", "F, M", "high 2020-12-31", r"\[0, 2\]",
        "age per year", "scikit-learn", r"a\|b \<c\>=M", "No privacy",
    ):  # fmt: skip
        assert words in card


def test_only_the_coefficients_depend_on_the_rows():
    cards = []
    for seed in (0, 1):
        X = 10.0**seed * np.random.RandomState(seed).uniform(-0.5, 0.5, size=(500, 2))
        last = ssp(random_state=0, data_norm=10.0, bounds_y=(-5, 5))  # nothing is clipped
        cards.append(model_card(last.fit(X, X @ [0.5, 0.5])))
    parts = [re.split("^## ", card, flags=re.M) for card in cards]
    different = [a.split()[0] for a, b in zip(*parts, strict=True) if a != b]
    assert different == ["Coefficients"]
    assert "for study, not for release" in cards[0]


def test_steps_that_are_not_private_are_named():
    X = np.random.RandomState(0).uniform(-0.5, 0.5, size=(500, 2))
    model = make_pipeline(StandardScaler(), ssp(random_state=0)).fit(X, X[:, 0])
    assert "StandardScaler: what it has learnt" in model_card(model)
    assert "what steps before it learned" in model_card(model)
    public = model_card(exact())
    assert (
        "is not private" not in public.split("does not cover")[1] and "steps before" not in public
    )
    assert "No noise was added" in public


def test_a_model_without_coefficients():
    X = np.random.RandomState(0).uniform(-0.5, 0.5, size=(500, 2))
    model = layered(variant="paper", random_state=0).fit(X, X[:, 0])
    known = hasattr(model, "coef_")
    assert ("estimate" if known else "no coefficients") in coefficient_table(model)
    assert "Guarantee:" in model_card(model)


def test_errors_of_inference_are_not_swallowed(monkeypatch):
    """A model whose coefficients have no law shows its estimates; any other error is an error."""
    X = np.random.RandomState(0).uniform(-0.5, 0.5, size=(500, 2))
    model = ssp(random_state=0).fit(X, X[:, 0])

    def broken(self, estimand):
        raise ValueError("a fault")

    monkeypatch.setattr(SSPRegressor, "coefficient_law", broken)
    for show in (coefficient_table, model_card, release_page):
        with pytest.raises(ValueError, match="a fault"):
            show(model)


def test_improper_arguments():
    with pytest.raises(ValueError, match="'pdf'"):
        model_card(exact(), format="pdf")
    with pytest.raises(NotFittedError):
        model_card(ssp())


class OneOfTwo(LawSource):
    """Tells the first of two coefficients alone."""

    def at(self, matrix, shift):
        part = np.diag([0.01, np.nan])
        told = np.array([True, False])
        return LawSums(np.array([1.0, np.nan]), part, part, told, {"too few rows": ~told})


def test_what_is_hidden_is_never_a_number():
    """Released answers that do not tell a coefficient show a dash, wherever it is shown."""
    found = Inference(["x0", "x1"], CoefficientLaw.of(OneOfTwo(), 2, 100), 0.95, "")
    rows = str(found).split("p-value")[1].splitlines()
    assert rows[2].split() == ["x1", *["-"] * 7]
    assert "x1: too few rows." in str(found)
    assert "nan" not in str(found) and "nan" not in found._repr_html_()
