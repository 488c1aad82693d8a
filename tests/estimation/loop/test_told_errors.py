"""Errors that a fit tells are those that its answers leave, part by part."""

from dataclasses import replace

import numpy as np
import pytest

from skpriv._estimation._loop._fit import LoopFit
from skpriv._estimation._loop._law import LoopLaw
from skpriv._estimation._loop._evidence import weights_move_mean
from skpriv._estimation._loop._score import ScoreEquation
from skpriv.linear_model import LinearRegression

BOUNDED = {"bounds_X": (-1.0, 1.0), "bounds_y": (-1.0, 1.0)}


def line_of(coef, n, seed=0, power=1):
    """Rows of a box, and targets around a line."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1.0, 1.0, (n, len(coef))) ** power
    return X, X @ coef + 0.1 * rng.normal(size=n)


def test_hidden_coefficients_may_be_anything_inside_of_the_bounds():
    """Two columns are nearly the same, and the third has four times their range."""
    rng = np.random.RandomState(0)
    X = rng.uniform(-1.0, 1.0, (3_000, 3))
    X[:, 2] = np.clip(X[:, 1] + 0.01 * rng.normal(size=3_000), -1.0, 1.0)
    half_ranges = np.array([1.0, 1.0, 4.0])
    X *= half_ranges
    y = X @ [0.05, 0.02, 0.0] + 0.02 * rng.normal(size=3_000)
    bounds = np.column_stack([-half_ranges, half_ranges])
    model = LinearRegression(epsilon=3.0, bounds_X=bounds, bounds_y=(-3.0, 3.0), random_state=1)
    law = model.fit(X, y).coefficient_law()
    hidden = law.hidden[:3]
    assert hidden.any() and law.resolved[:3].all()
    # A line that stays in (-3, 3) everywhere has no larger slope than this, wherever its middle is.
    # Targets vary little here, so that what they tell of hidden directions is a quarter of it.
    largest = 3.0 / half_ranges
    assert (np.diagonal(law.privacy)[:3] >= largest**2)[hidden].all()


@pytest.mark.parametrize("slope", [3.0, 4.0, 8.0, 50.0])
def test_an_interval_reaches_the_farther_end_of_the_inverted_test(slope):
    """Of one coordinate: the b with (m - d b)^2 <= z^2 (sm^2 + sd^2 b^2), which Fieller solved."""
    z, slope_scale, moment_scale, moment = 1.959964, 0.01, 0.01, 0.08
    d, one = slope * slope_scale, np.eye(1)
    equation = ScoreEquation(
        point=np.zeros(1), limit=1.0, moment=np.array([moment]), slope=d * one, square=1e-12,
        n=10**9, moment_scale=moment_scale, slope_scale=slope_scale, residual_gram=1e-12 * one,
    )  # fmt: skip
    b = np.array([moment / d])
    fit = LoopFit(0.0, one, b, 1e-12, d * one, (equation,), None, True, 10**9)
    centre, half = fit.law().interval(one)
    a = d**2 - (z * slope_scale) ** 2
    root = np.sqrt((moment * d) ** 2 - a * (moment**2 - (z * moment_scale) ** 2))
    assert centre[0] + half[0] >= 0.999 * (moment * d + root) / a


def test_hidden_directions_count_with_their_size():
    """The deviation of a coefficient is 2 there, and a point has the part that it has."""
    none, zero = np.zeros((2, 0)), np.zeros((2, 2))
    law = LoopLaw(
        solution=np.zeros(2), dual=zero, residual_gram=zero, residual_scale=0.0, typical_gram=zero,
        records=1.0, noise=0.0, noise_dual=zero, shared=none, inverted=none,
        hidden=np.array([[0.0], [1.0]]), held=none, size=2.0,
    )  # fmt: skip
    points = np.array([[3.0, 0.0], [0.0, 1.0], [1.0, 0.5]])
    np.testing.assert_allclose(law.variances(points)[1], [0.0, 4.0, 1.0])
    assert law.resolved(points).tolist() == [True, False, True]


def test_a_robust_variance_is_not_believed_below_its_least_part():
    none, one = np.zeros((1, 0)), np.eye(1)
    law = LoopLaw(
        solution=np.zeros(1), dual=one, residual_gram=-1e-3 * one, residual_scale=1e-9,
        typical_gram=one, records=1.0, noise=1.0, noise_dual=one, shared=none, inverted=none,
        hidden=none, held=none,
    )  # fmt: skip
    assert 0.01 < law.variances(one)[0][0] < 1.0


def test_the_known_mean_is_no_surer_than_the_weights_allow():
    X, y = line_of([0.5, -0.2, 0.3], 60_000, power=3)
    model = LinearRegression(**BOUNDED, epsilon=30.0, clip="wide", random_state=0).fit(X, y)
    known = model._released.mean
    level = float(known.constant @ known.gram @ known.constant)
    explained = float(known.point @ known.gram @ known.point)
    assert level > 0.0 and known.variance >= weights_move_mean(max(level, 0.1), explained) > 0.0


@pytest.mark.parametrize("alike", [False, True])
def test_shares_of_a_fit_with_a_start_add_up_to_one(alike):
    """Whatever is not asked again is spent on what is."""
    X, y = line_of([0.5, -0.2], 20_000)
    public = {**BOUNDED, "epsilon": 2.0}
    start = LinearRegression(**public, random_state=0).fit(X, y).as_start()
    rows = LinearRegression(**public, start=replace(start, alike=alike), random_state=1).fit(X, y)
    assert sum(row.share for row in rows.privacy_report_.rows) == pytest.approx(1.0, rel=1e-12)
