"""Formulas: the same span and coefficients as statsmodels', bounded rows, and clear refusals."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from registry.refusals import uncharged
from sklearn.pipeline import make_pipeline

import skpriv
from skpriv.inspection import inference
from skpriv.linear_model import LinearRegression
from skpriv.preprocessing import (
    Boolean, Categorical, FormulaEncoder, Numeric, Ordinal, Schema, _formula,
)  # fmt: skip

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


@pytest.mark.parametrize("quoted", ["Q('hours a week')", 'Q("hours a week")'])
def test_names_are_quoted_as_in_patsy_too(quoted):
    formula = f"{quoted} + I({quoted}**2) + C(region)"
    own, other = (
        FormulaEncoder(text, SCHEMA).fit(table())
        for text in (formula.replace(quoted, "`hours a week`"), formula)
    )
    assert own.terms_ == other.terms_


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
        ("1 + offset(log(educ))", "the exposure as sample_weight"),
        ("educ - 1", "fit_intercept=False"),
        ("educ + open('x')", "not understood"),
        ("educ.real", "not among"),
        ("log(wage) ~ educ", "one column of the schema"),
        ("wage ~ wage + educ", "both sides"),
        ("wage ~ 1", "no terms"),
        ("educ + (", "cannot be read"),
        ("hours a week", "in backticks"),
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


# Of each function, at ends where it is largest, smallest or undefined inside of the range.
HULLS = [
    "x", "I(-x)", "I(x**2)", "I((x - 10)**2)", "I((x - 10)**3)", "abs(x - 10)", "I(x * (x - 10))",
    "I(x / (x + 1))", "I((x - 11)**2 - x)", "sqrt(x)", "I(x**0.5)", "exp(x / 10)", "log1p(x)",
    "I((x + 1)**-2)", "I(1 / (1 + x**2))",
]  # fmt: skip


@pytest.mark.parametrize("formula", HULLS)
def test_the_public_ends_of_a_term_hold_all_its_values(formula):
    """Values are clipped to them, so that those of NumPy would differ if they did not."""
    schema, x = {"x": Numeric(0, 20)}, np.linspace(0, 20, 41)
    design = _formula._design_of(formula, schema)
    functions = {name: getattr(np, name) for name in ("abs", "sqrt", "exp", "log1p")}
    wanted = eval(formula, {"x": x, "I": np.positive, **functions})
    np.testing.assert_allclose(design.matrix({"x": x})[:, 0], wanted, rtol=1e-14)


@pytest.mark.parametrize("formula", ["log((x - 10)**2)", "I(1 / (x - 10)**2)", "log(abs(x - 10))"])
def test_a_zero_inside_of_a_range_is_an_end(formula):
    with pytest.raises(ValueError, match="no bounds"):
        FormulaEncoder(formula, {"x": Numeric(0, 20)}).fit(pd.DataFrame({"x": [1.0]}))


INCOME = {"income": Numeric(0, 1_000_000)}
WINDOWS = [
    "I(income/1000000 + 1/(1+exp(1000-((income-123456.78)/0.0006)**2)))",
    "I(1/(1+exp(income)))",
    "I(exp(-exp(income)))",
    "I(1/(1 + (income * 1e200)**2))",
    "I(income / (1 + 1 / (income - 123456.78)**2))",
    "I(1/(2 + log(income)**2))",
    "I(income**-0.5 * income)",
    "income:I(income * 1e299)",
    "I(income * 1e-299)",
]


@pytest.mark.parametrize("formula", WINDOWS)
def test_a_term_that_is_not_finite_inside_is_refused_before_a_row_is_read(formula):
    """Otherwise a warning would say whether an income lies in a window that the term chooses."""
    frame = pd.DataFrame({"income": [100.0, 123_456.78]})
    model = make_pipeline(
        FormulaEncoder(formula, INCOME), LinearRegression(data_norm=1.0, bounds_y=(-1, 1))
    )
    with uncharged("has no bounds|is too large|is too small"):
        model.fit(frame, np.zeros(2))


_COLUMNS = {
    "x": Numeric(-1000, 1000), "z": Numeric(0, 1), "u": Numeric(1, 1e6),
    "v": Numeric(-1e150, 1e150), "w": Numeric(1e-200, 2),
}  # fmt: skip
_LEAVES = st.sampled_from([*_COLUMNS, "2", "-1", "0.5", "10", "1e3", "1e-200", "1e200", "123.456"])


def _larger(part):
    pairs = st.tuples(part, st.sampled_from("+-*/"), part).map("({0[0]} {0[1]} {0[2]})".format)
    calls = st.tuples(st.sampled_from([*_formula.FUNCTIONS]), part).map("{0[0]}({0[1]})".format)
    powers = st.sampled_from(["2", "3", "-1", "0.5", "-2.5", "8"])
    return pairs | calls | st.tuples(part, powers).map("({0[0]})**{0[1]}".format)


@settings(max_examples=200)
@given(st.recursive(_LEAVES, _larger, max_leaves=6), st.data())
def test_formulas_that_are_drawn_are_refused_or_finite(expression, data):
    """Also as NumPy evaluates them without public ends: at ends, next to them, anywhere between."""
    formula = f"I({expression})"
    try:
        design = _formula._design_of(formula, _COLUMNS)
        design.check({name: np.array([column.high]) for name, column in _COLUMNS.items()})
    except ValueError:
        return
    cells = {
        name: np.array([
            *data.draw(st.lists(st.floats(column.low, column.high), min_size=3, max_size=3)),
            column.low, column.high, *np.nextafter([column.low, column.high], 1.0),
        ])
        for name, column in _COLUMNS.items()
    }  # fmt: skip
    with np.errstate(all="raise", under="ignore"):
        values = design.matrix(cells)[:, 0]
        wanted = eval(formula, {**_formula.FUNCTIONS, **cells}) * np.ones(7)
    assert np.isfinite(wanted).all()
    np.testing.assert_allclose(values, wanted, rtol=1e-9)


def test_rows_between_the_points_of_the_grid_are_cut_to_the_unit_ball(monkeypatch):
    monkeypatch.setattr(_formula, "GRID", 5)
    schema, x = {"x": Numeric(0, 1)}, np.linspace(0, 1, 1001)
    encoder = FormulaEncoder("I(1 / (1 + 400 * (x - 0.375)**2))", schema)
    rows = encoder.fit_transform(pd.DataFrame({"x": x}))
    matrix = encoder.coefficient_map().matrix
    uncut = matrix[0, 0] / (1 + 400 * (x - 0.375) ** 2) + matrix[1, 0]  # its peak is between points
    assert np.abs(uncut).max() > 1.1
    np.testing.assert_allclose(rows[:, 0], np.clip(uncut, -1.0, 1.0), atol=1e-12)


@pytest.mark.parametrize("peak", ["1 / (1e-300 + abs(x - 7))", "1e-200 / (1e-300 + abs(x - 7))"])
def test_a_peak_between_them_is_the_longest_row_and_not_the_shortest(peak):
    """Its squared norm was infinite, and the row 0."""
    frame = pd.DataFrame({"x": [7.0, 7.0 + 2**-40, 2.0**19]})
    rows = FormulaEncoder(f"I({peak})", {"x": Numeric(0, 2**20)}).fit_transform(frame)
    np.testing.assert_allclose(np.abs(rows[:2]), 1.0)
    assert abs(rows[2, 0]) < 1.0


@pytest.mark.parametrize("name", ["class", "from", "lambda", "in", "None"])
def test_columns_may_have_the_names_of_words_of_python(name):
    schema = {name: Numeric(0, 2), "b": Numeric(0, 1)}
    frame = pd.DataFrame({name: [0.0, 0.5, 2.0, 1.0], "b": [0.0, 1.0, 0.5, 0.25]})
    encoder = FormulaEncoder(f"{name} + I({name}**2) + {name}:b + log1p(`{name}`)", schema)
    found = encoder.fit_transform(frame)
    plain = FormulaEncoder("a + I(a**2) + a:b + log1p(a)", {"a": schema[name], "b": schema["b"]})
    expected = plain.fit_transform(frame.rename(columns={name: "a"}))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert encoder.terms_[0] == name


def test_a_boolean_has_levels():
    schema, frame = (
        {"treated": Boolean(), "b": Numeric(0, 1)},
        pd.DataFrame({"treated": [True, False, None, "yes"], "b": [0.0, 1.0, 0.5, 0.25]}),
    )
    encoder = FormulaEncoder("C(treated) + b", schema).fit(frame)
    assert encoder.terms_ == ["C(treated)[T.True]", "b"]
    plain = FormulaEncoder("treated + b", schema).fit(frame)
    known = [0, 1, 3]  # a cell that is none of the levels counts as the reference level
    np.testing.assert_allclose(
        encoder.transform(frame)[known], plain.transform(frame)[known], atol=1e-12
    )


def test_what_is_too_small_for_a_number_is_not_heard():
    """Neither a part that is rounded to 0, nor a product."""
    schema = {"x": Numeric(0, 1000), "z": Numeric(0, 1e-200)}
    encoder = FormulaEncoder("exp(-x) + I(1 / (1 + exp(-x))) + x:z", schema)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        found = [
            encoder.fit_transform(pd.DataFrame({"x": [0.0, 1.0, cell], "z": [0.0, 1e-200, 1e-200]}))
            for cell in (2.0, 700.0, 745.2, 1000.0, 5e-324, np.inf, np.nan)
        ]
    assert all(np.isfinite(rows).all() for rows in found)
    for rows in found[1:]:
        np.testing.assert_array_equal(rows[:2], found[0][:2])


def test_values_of_a_column_stay_between_its_public_ends():
    """Whatever comes from a table: the ends of all parts of a term are derived from them."""
    schema = Schema({"x": Numeric(0, 1)})
    design = _formula._design_of("x + I(2 * x)", schema)
    values = design._values({"x": np.array([-5.0, 0.5, 7.0])})
    for name, scale in (("x", 1.0), ("I(2 * x)", 2.0)):
        np.testing.assert_array_equal(values[name].values, [0.0, 0.5 * scale, scale])
        assert (values[name].low, values[name].high) == (0.0, scale)


def test_indicators_without_a_block_of_their_own_have_room():
    """Where both columns of a product are missing, neither indicator is shortened by the other."""
    schema = {name: Numeric(-1, 1, missing="indicator") for name in "xz"}
    frame = pd.DataFrame({"x": [np.nan, np.nan], "z": [np.nan, 0.5]})
    both, one = FormulaEncoder("x:z", schema).fit(frame).transform(frame)
    assert sorted(both)[1:] == [max(one)] * 2 and np.linalg.norm(both) <= 1.0


# Few characters that stand for more than any machine holds: numbers, products of few names, sets of
# many columns, and lists of many levels.
MANY = {f"x{i}": Numeric(0, 1) for i in range(50)}
LISTS = {name: Categorical([str(i) for i in range(100)]) for name in "abc"}
TOO_LARGE = [
    "(x0 + x1)**50", "x0**999999999", "((x0 + x1)^5)^5", "(x0 + x1)**" + "9" * 5000,
    "(x0 + x1)**(x2 + 50)", "*".join(MANY), "/".join(["(x0 + x1)"] * 40), " + ".join(MANY) + " ~ .",
    ":".join(["(x0 + x1)"] * 40), " %in% ".join(["(x0 + x1)"] * 40), ":".join([*MANY][:14]),
    "C(a):C(b)", "C(a) * C(b) * C(c)", f"({' + '.join(MANY)})**2",
]  # fmt: skip


@pytest.mark.parametrize("formula", TOO_LARGE, ids=lambda formula: formula[:20])
def test_what_stands_for_too_much_is_refused_before_it_is_written_out(formula):
    """None of them ended; some ended a process by all of its memory."""
    frame = pd.DataFrame({name: [] for name in MANY | LISTS})
    with pytest.raises(ValueError, match="is too large, for|cannot be read"):
        FormulaEncoder(formula, MANY | LISTS).fit(frame)


def test_points_that_are_drawn_tell_the_cells_that_all_points_tell(monkeypatch):
    """A list beside twelve columns had more points than a machine holds, once it was fitted."""
    schema = {f"x{i}": Numeric(0, 1, missing="indicator", typical=0) for i in range(12)}
    schema["g"] = Categorical(["n", "s", "w"], other=False)
    frame = pd.DataFrame({name: [] for name in schema})
    few = FormulaEncoder("C(g) * (x0 + x1 + x2) + I(x0**2) + x1:x2", schema).fit(frame)
    found = few.coefficient_map().cells
    monkeypatch.setattr(_formula, "MOST_CELL_POINTS", 150)
    drawn = few.coefficient_map().cells
    assert len(found) == len(drawn) == np.linalg.matrix_rank(drawn)
    together = np.vstack([found, drawn])
    assert np.linalg.matrix_rank(together, tol=1e-9 * np.linalg.norm(together, 2)) == len(found)
    monkeypatch.undo()
    many = FormulaEncoder(f"C(g) * ({' + '.join([*schema][:12])})", schema).fit(frame)
    # A missing cell of each column, and each level with and without each slope
    assert len(many.coefficient_map().cells) == 12 + 3 * 13
