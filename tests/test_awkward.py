"""Awkward inputs, of one list, through everything that should be exact without noise."""

from types import SimpleNamespace

import numpy as np
import pytest
from registry import awkward
from registry.awkward import BALL, INPUTS, RANGE, SCHEMA
from sklearn.pipeline import make_pipeline

from scipy import stats

from skpriv._estimation._targets import LocationQuery, SpreadQuery
from skpriv._estimation._public_maps import RowMap, WeightedMap
from skpriv.inspection import describe, inference
from skpriv.inspection._inference import Inference
from skpriv.linear_model import LinearRegression, SSPRegressor
from skpriv.preprocessing import FormulaEncoder, TableEncoder
from skpriv.records import from_batches

LINES = {
    "LinearRegression by ranges": (LinearRegression, RANGE),
    "LinearRegression by a norm": (LinearRegression, BALL),
    "SSPRegressor": (SSPRegressor, BALL),
}


PAIRS = [
    (made, line)
    for made in INPUTS
    for line, (Estimator, _) in LINES.items()
    if made().settings.keys() <= Estimator().get_params().keys()
]


@pytest.mark.parametrize("made, line", PAIRS, ids=lambda part: getattr(part, "__name__", part))
def test_lines_are_least_squares_of_awkward_rows(made, line):
    (Estimator, bounds), given = LINES[line], made()
    model = Estimator(**{"random_state": 0, **bounds, **given.settings}, privacy="none")
    model.fit(given.X, given.y, **given.fit)
    before = model.predict(given.X)
    model.set_params(**given.later)
    np.testing.assert_array_equal(model.predict(given.X), before)
    wanted = given.solution()
    if not given.tied:
        size = given.X.shape[1]
        np.testing.assert_allclose(model.coef_, wanted[:size], atol=1e-9)
        rest = wanted[size] if len(wanted) > size else 0.0
        if "effects" not in given.settings:
            assert model.intercept_ == pytest.approx(rest, abs=1e-9)
    if "effects" not in given.settings:
        expected = np.clip(given.design @ wanted, *awkward.BOUNDS)
        np.testing.assert_allclose(before, expected, atol=1e-9)


def test_every_door_of_weights_is_linear_in_them():
    """A sum of rows with weight 1/4 is a quarter of it; of rows that are multiplied by roots."""
    rows, y = WeightedMap(RowMap(None, None, 1.0, False, 2)), np.array([0.75])
    for query in (LocationQuery(None, -1.0, rows), SpreadQuery(None, 0.25, -1.0, rows)):

        def of(weight, query=query):
            root = np.sqrt(weight)
            return query.sum(np.array([[0.0, 0.0, root]]), root * y)

        np.testing.assert_allclose(of(0.25), 0.25 * of(1.0), rtol=1e-12)


def test_a_start_names_the_guarantee_of_its_fit():
    """Parameters that are set since say nothing about it."""
    given = awkward.no_seed()
    model = LinearRegression(**RANGE, epsilon=3.0, random_state=0).fit(given.X, given.y)
    model.set_params(epsilon=1.0, delta=1e-9, privacy="none")
    assert "epsilon=3" in model.as_start().words
    assert "epsilon=3" in str(model.privacy_report_)


def test_missing_cells_of_a_formula_are_an_indicator_against_the_typical_value():
    """A missing cell has the terms of the typical value, and an effect of its own beside it."""
    frame, y, missing = awkward.table()
    model = make_pipeline(
        FormulaEncoder("grade + years + I(years**2)", SCHEMA),
        LinearRegression(privacy="none", data_norm=1.0, bounds_y=(0, 60)),
    ).fit(frame, y)
    years = frame["years"].fillna(10.0)
    design = np.column_stack([frame["grade"], years, years**2, missing, np.ones(len(y))])
    wanted = np.linalg.lstsq(design, y, rcond=None)[0]
    found = inference(model)
    assert found.names[3] == "years=missing against 10"
    np.testing.assert_allclose(found.estimate, wanted, rtol=1e-6)
    np.testing.assert_allclose(model.predict(frame), design @ wanted, rtol=1e-7)


def test_missing_cells_of_a_table_are_an_indicator():
    frame, y, missing = awkward.table()
    model = make_pipeline(
        TableEncoder(SCHEMA), LinearRegression(privacy="none", data_norm=1.0, bounds_y=(0, 60))
    ).fit(frame, y)
    years = frame["years"].fillna(0.0)
    order = frame["low to high"].map({"low": 0, "mid": 1, "high": 2}).astype(float)
    towns = [frame["town"] == level for level in ("y", "z")]
    design = np.column_stack(
        [order, *towns, frame["yes"], years, missing, frame["grade"], np.ones(len(y))]
    )
    fitted = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(model.predict(frame), fitted, atol=1e-6)


def test_every_level_is_counted_as_itself():
    """A middle level, a missing cell, and a row of each."""
    frame, _, missing = awkward.table()
    found = describe(frame, SCHEMA, epsilon=1e9, delta=1e-6, random_state=0)
    for name in ("low to high", "town"):
        for level, count in frame[name].value_counts().items():
            assert found[name].counts[level].estimate == pytest.approx(count, abs=0.5), (
                name,
                level,
            )
    assert found["years"].missing.estimate == pytest.approx(missing.sum(), abs=0.5)


def test_a_wald_test_of_tied_coefficients_has_the_degrees_of_its_rank():
    half = np.ones((2, 2))
    sums = SimpleNamespace(estimate=np.array([2.0, 2.0]), covariance=half)
    law = SimpleNamespace(estimable=lambda places: sums, resolved=np.ones(2, dtype=bool))
    found = Inference(["a", "b"], law, 0.95, "").wald_test(["a", "b"])
    assert found.p_value == pytest.approx(stats.chi2.sf(4.0, 1), rel=1e-9)


@pytest.mark.parametrize("more", [-1, 1])
def test_targets_of_another_length_are_refused_in_each_batch(more):
    """A target too many would be dropped, and one too few could stand for several rows."""
    given = awkward.no_seed()
    batches = from_batches(lambda: iter([(given.X[:9], given.y[: 9 + more])]), n=9)
    with pytest.raises(ValueError, match="different numbers of rows"):
        SSPRegressor(**BALL).fit(batches)
