"""Formulas: the same span and coefficients as statsmodels', bounded rows, and clear refusals."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import skpriv
from skpriv.inspection import inference
from skpriv.linear_model import LinearRegression
from skpriv.preprocessing import Boolean, Categorical, FormulaEncoder, Numeric, Ordinal, Schema

pytest.importorskip("formulaic")
SCHEMA = Schema(
    {
        "wage": Numeric(0, 60),
        "educ": Numeric(6, 18),
        "hours a week": Numeric(1, 80),
        "exper": Numeric(0, 50, missing="indicator", typical=10),
        "region": Categorical(["n", "s", "w"], other=False),
        "stage": Ordinal(["low", "mid", "high"]),
        "female": Boolean(),
    },
    target="wage",
)


def table(n=300, seed=0):
    """Rows of the schema, without missing cells."""
    rng = np.random.RandomState(seed)
    frame = pd.DataFrame(
        {
            "educ": rng.randint(6, 19, n).astype(float),
            "hours a week": rng.uniform(1, 80, n),
            "exper": rng.uniform(0, 50, n),
            "region": rng.choice(["n", "s", "w"], n),
            "stage": rng.choice(["low", "mid", "high"], n),
            "female": rng.rand(n) < 0.5,
        }
    )
    frame["wage"] = rng.uniform(0, 60, n)
    return frame


FORMULAS = [
    "educ + exper + I(exper**2) + C(region) + educ:female",
    "educ * female + log(educ) + np.sqrt(exper)",
    "exper:region + C(stage)",
    "female:region",
    "(educ + female + region)**2",
    "`hours a week` + I(`hours a week`**2) + stage",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_without_privacy_the_coefficients_are_those_of_the_terms(formula):
    """Of fitted values and of the table: the columns of formulaic span the same space."""
    from formulaic import model_matrix

    frame = table()
    schema = {name: column for name, column in SCHEMA.items() if name != "wage"}
    y = frame["wage"].to_numpy()
    model = make_pipeline(
        FormulaEncoder(formula, schema),
        LinearRegression(privacy="none", data_norm=1.0, bounds_y=(0, 60)),
    ).fit(frame, y)
    coded = frame.assign(stage=frame["stage"].map({"low": 0.0, "mid": 1.0, "high": 2.0}))
    wanted = np.asarray(
        model_matrix(formula, frame if "C(stage)" in formula else coded), dtype=float
    )
    fitted = wanted @ np.linalg.lstsq(wanted, y, rcond=None)[0]
    np.testing.assert_allclose(model.predict(frame), fitted, atol=1e-7)
    # The table's own terms give the same predictions
    encoder, table_of = model[0], inference(model)
    effects, constant = encoder.coefficient_map().apply(model[-1].coef_, model[-1].intercept_)
    values = encoder.transform(frame) @ model[-1].coef_ + model[-1].intercept_
    np.testing.assert_allclose(values, fitted, atol=1e-7)
    seen = np.isfinite(table_of.estimate)  # an indicator that no row has is not estimated
    np.testing.assert_allclose(table_of.estimate[seen], np.append(effects, constant)[seen], 1e-8)


def test_coefficients_of_a_polynomial_are_the_textbook_ones():
    frame, formula = table(), "exper + I(exper**2) + C(region)"
    model = make_pipeline(
        FormulaEncoder(formula, SCHEMA),
        LinearRegression(privacy="none", data_norm=1.0, bounds_y=(0, 60)),
    ).fit(frame, frame["wage"])
    x = frame["exper"]
    design = np.column_stack([x, x**2, frame["region"] == "s", frame["region"] == "w", x**0])
    wanted = np.linalg.lstsq(design.astype(float), frame["wage"], rcond=None)[0]
    found = inference(model)
    told = dict(zip(found.names, found.estimate, strict=True))
    names = ["exper", "I(exper ** 2)", "C(region)[T.s]", "C(region)[T.w]", "intercept"]
    np.testing.assert_allclose([told[name] for name in names], wanted, rtol=1e-7)


@pytest.mark.parametrize("formula", FORMULAS)
def test_every_row_is_in_the_unit_ball(formula):
    hostile = table(40)
    for i, name in enumerate(["educ", "hours a week", "exper"]):
        hostile.loc[4 * i : 4 * i + 3, name] = [np.nan, np.inf, -1e300, 1e300]
    hostile.loc[20:24, "region"] = "nowhere"
    hostile.loc[25:30, "stage"] = None
    rows = FormulaEncoder(formula, SCHEMA).fit(hostile).transform(hostile)
    assert np.isfinite(rows).all()
    assert np.linalg.norm(rows, axis=1).max() <= 1.0 + 1e-12


def test_terms_of_one_column_are_orthogonal_on_its_public_range():
    frame = pd.DataFrame({"x": np.linspace(100, 101, 20_001)})
    encoder = FormulaEncoder("x + I(x**2) + I(x**3)", {"x": Numeric(100, 101)}).fit(frame)
    rows = np.column_stack([encoder.transform(frame), np.ones(len(frame))])
    gram = rows.T @ rows / len(rows)
    assert np.abs(gram - np.diag(np.diag(gram))).max() < 1e-3


def test_the_rows_decide_nothing_that_is_learnt():
    one, other = FormulaEncoder(FORMULAS[0], SCHEMA), FormulaEncoder(FORMULAS[0], SCHEMA)
    one.fit(table(50, 0)), other.fit(table(60, 1))
    np.testing.assert_array_equal(one.coefficient_map().matrix, other.coefficient_map().matrix)


def test_the_target_stands_left_and_missing_cells_are_told_against_the_typical_value():
    encoder = FormulaEncoder("wage ~ exper", SCHEMA).fit(table())
    assert encoder.target_ == "wage"
    assert encoder.coefficient_map().names == ["exper", "exper=missing against 10"]


@pytest.mark.parametrize(
    "formula, words",
    [
        ("log(exper)", "no bounds"),
        ("I(1 / exper)", "no bounds"),
        ("I(exper**-1)", "no bounds"),
        ("sqrt(exper - 60)", "no bounds"),
        ("np.exp(exper * 100)", "too large"),
        ("educ + I(2 * educ)", "sum of other terms"),
        ("wages", "not among the columns of the schema"),
        ("C(educ)", "with levels"),
        ("log(region)", "has levels"),
        ("I(exper**region)", "has levels"),
        ("C(exper, 3)", "C\\(column\\)"),
        ("educ - 1", "fit_intercept=False"),
        ("educ + open('x')", "not understood"),
        ("educ.real", "not among"),
        ("log(wage) ~ educ", "one column of the schema"),
        ("wage ~ wage + educ", "both sides"),
        ("wage ~ 1", "no terms"),
        ("educ + (", "cannot be read"),
        ("educ | region", "one right-hand side"),
    ],
)
def test_refusals_name_the_remedy_before_anything_is_read(formula, words):
    with pytest.raises(ValueError, match=words):
        FormulaEncoder(formula, SCHEMA).fit(table())


def test_a_fitted_encoder_is_written_and_read():
    frame = table()
    encoder = FormulaEncoder(FORMULAS[0], SCHEMA).fit(frame)
    again = skpriv.from_dict(skpriv.to_dict(encoder))
    np.testing.assert_array_equal(encoder.transform(frame), again.transform(frame))
