"""What a report says of bounds: from a released count, and from the released Gram matrix."""

import re
from dataclasses import replace

import numpy as np
import pytest

from skpriv._estimation._loop._bounds_words import narrow_bounds, wide_bounds
from skpriv._estimation._loop._rows import ClippedRowsQuery
from skpriv._estimation._public_maps import RowMap
from skpriv.privacy import Answer, GaussianNoise
from skpriv.linear_model import (
    AdditiveRegressor, LinearRegression, LogisticRegression, PoissonRegressor,
)  # fmt: skip


def _rows(n=20_000):
    rng = np.random.RandomState(0)
    X = rng.uniform(-1.0, 1.0, size=(n, 3))
    return X, X @ [0.5, 0.3, 0.0] + 0.2 * rng.normal(size=n)


def _fitted(first, second=(-1.0, 1.0), epsilon=1.0, Estimator=LinearRegression):
    X, y = _rows()
    bounds = {"bounds_y": (-2.0, 2.0)}
    if Estimator is LogisticRegression:
        bounds, y = {"classes": (0, 1)}, (y > 0.0).astype(int)
    bounds_X = [first, second, (-1.0, 1.0)]
    return Estimator(bounds_X=bounds_X, epsilon=epsilon, random_state=0, **bounds).fit(X, y)


def _note(*ranges, **settings):
    return _fitted(*ranges, **settings).privacy_report_.note


@pytest.mark.parametrize("Estimator", [LinearRegression, LogisticRegression])
def test_a_range_of_which_a_tenth_is_used_is_told(Estimator):
    """Values that are spread over a twelfth of their range, and over an eighth: in the middle of
    it, or at an end, where the mean is taken off. Of classes a twelfth is told in 40% of fits.
    """
    widths = (13.0, 7.0) if Estimator is LinearRegression else (25.0, 7.0)
    for middle in (0.0, 0.8):
        wide, enough = ((-width * (1.0 + middle), width * (1.0 - middle)) for width in widths)
        note = _note(wide, epsilon=4.0, Estimator=Estimator)
        assert note.startswith("The standard deviation of x0 is at most")
        assert "may be too wide" in note
        assert _note(enough, epsilon=4.0, Estimator=Estimator) is None


def test_nothing_is_said_that_noise_may_explain():
    """The Gram matrix has to exclude a wider spread by three deviations of its noise."""
    model = _fitted((-11.0, 11.0))
    fit, rows = model._released, model._record_map.row_map
    assert wide_bounds(fit, rows, ["age", "dose", "time"]).startswith("The standard deviation of a")
    noisy = [replace(eq, slope_scale=40.0 * eq.slope_scale) for eq in fit.equations]
    assert wide_bounds(replace(fit, equations=tuple(noisy)), rows, None) == ""


def test_a_column_is_named_only_where_its_own_count_is_above_noise():
    """Noise of a column is sqrt(d) times that of all: the largest of d may be noise alone."""
    rows = RowMap(np.zeros(4), np.ones(4), None, True, 4)
    names = ["age", "female", "south", "west"]
    for share, named in ((0.0059, False), (0.0061, True)):
        note = narrow_bounds((0.004, np.array([0.0, share, 0.001, 0.0]), 0.001), rows, names)
        assert ("in female (0.4%): " in note) == named
        assert ("noise hides" in note) != named
        assert note.startswith("About 0.4% of the rows are outside") and "south" not in note
    many = narrow_bounds((0.5, np.array([0.1, 0.4, 0.2, 0.3]), 0.001), rows, names)
    assert "in female (40.0%), west (30.0%), south (20.0%): " in many


def test_both_are_told_together():
    note = _note((-20.0, 20.0), (-0.5, 0.5))
    assert "most of them in x1" in note and "The standard deviation of x0" in note


def test_an_additive_model_counts_rows_that_are_clipped():
    model = _fitted((-0.5, 0.5), Estimator=AdditiveRegressor)
    note = model.privacy_report_.note
    assert "% of the rows are outside" in note and "most of them in x0" in note
    assert _note((-1.0, 1.0), Estimator=AdditiveRegressor) is None
    X, _ = _rows(1000)
    counts = ClippedRowsQuery(model._record_map.row_map).sum(X, None)
    assert counts[0] == (np.abs(X[:, 0]) > 0.5).sum()
    np.testing.assert_allclose(counts[1:], [counts[0] / np.sqrt(3.0), 0.0, 0.0])


def test_targets_outside_of_their_bounds_are_told():
    """A released count, of part of the rows: never more than all of them."""
    X, y = _rows()
    for Estimator in (LinearRegression, PoissonRegressor):
        model = Estimator(bounds_X=(-1.0, 1.0), bounds_y=(0.0, 3.0), random_state=0)
        known = model.fit(X, np.abs(10.0 * y).round()).privacy_report_.note
        part = float(re.search(r"most of them in the target \((\d+\.\d)%\)", known).group(1))
        assert abs(part - 100.0 * (np.abs(10.0 * y).round() > 3.0).mean()) < 3.0
        known = model.fit(X, np.full(len(X), 99.0)).privacy_report_.note
        assert max(map(float, re.findall(r"([\d.]+)%", known))) <= 100.0


@pytest.mark.parametrize("classes", [("a", "b"), ("a", "b", "c")])
def test_the_part_of_the_rows_with_a_label_is_told(classes):
    X, _ = _rows()
    labels = np.array([*classes, "strange"])[np.arange(len(X)) % (len(classes) + 1)]
    model = LogisticRegression(classes=classes, bounds_X=(-1.0, 1.0), random_state=0)
    note = model.fit(X, labels).privacy_report_.note
    part = float(re.search(r"About ([\d.]+)% of the rows have a target", note).group(1))
    assert abs(part - 100.0 * len(classes) / (len(classes) + 1)) < 2.0
    known = np.where(labels == "strange", "a", labels)
    assert "have a target" not in (model.fit(X, known).privacy_report_.note or "")


def test_parts_that_are_read_have_the_noise_of_a_mean():
    query = ClippedRowsQuery(RowMap(np.zeros(4), np.ones(4), None, True, 4))
    part, columns, scale = query.read(Answer(np.full(5, 10.0), 1000, GaussianNoise(6.0)))
    assert (part, scale) == (0.01, 0.006)
    np.testing.assert_allclose(columns, 2.0 * 0.01)  # asked at half of their size, of 4 columns
