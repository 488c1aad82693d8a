"""Improper descent: exactness, dimension-free error, average coverage, reports by a codebook."""

from math import log, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose
from registry.estimators import improper
from scipy import stats

from skpriv._estimation._public_maps import RecordMap
from skpriv.linear_model import ImproperSGDRegressor
from skpriv.linear_model._gradients import _improper_sgd as _regressor
from skpriv.linear_model._gradients._improper_sgd import (
    ClippedGradientQuery, ReportedGradientQuery, momentum_for, root_mean_square_bound, schedule,
)  # fmt: skip
from skpriv.privacy import NoiseSource, best_codebook
from skpriv.protocol import Collector, report
from skpriv.protocol._device import scaled_record


@pytest.mark.parametrize("fraction", [0.0, 0.29, 0.5])
@pytest.mark.parametrize("n", [5, 100])
def test_the_public_number_of_records_is_held_out(fraction, n):
    X, y = _data(n)
    make = improper(calibration=fraction)
    rows = make.set_params(random_state=0).fit(X, y).privacy_report_.rows
    size = int(np.floor(n * fraction + 1e-9))
    assert rows[0].records == n - size
    assert [row.records for row in rows[-1:] if row.query == "held-out error"] == [size] * (
        size > 0
    )


def _data(n=600, d=5, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, X @ np.eye(d)[0] * 0.8 + rng.uniform(-0.2, 0.2, size=n)


@pytest.mark.parametrize(("n_iter", "step"), [(1, 1.0), (7, 0.5), (40, 1.3)])
def test_without_noise_it_is_gradient_descent(n_iter, step):
    X, y = _data()
    plain = {"privacy": "none", "calibration": 0.0, "fit_intercept": False, "coef_norm": 10.0}
    est = improper(n_iter=n_iter, step_size=step, **plain).fit(X, y)
    values, vectors = np.linalg.eigh(X.T @ X / len(X))  # closed form: no clip, no projection bites
    filtered = (1.0 - (1.0 - step * values) ** n_iter) / values
    expected = vectors @ (filtered * (vectors.T @ (X.T @ y / len(X))))
    np.testing.assert_allclose(est.coef_, expected, atol=1e-10)
    assert (est.n_iter_, est.step_size_, est.momentum_) == (n_iter, step, 0.0)


def moved(n_iter, momentum):
    """How far unit steps with momentum go along a constant gradient of 1."""
    powers = momentum ** np.arange(1, n_iter + 1)
    return ((1.0 - powers) / (1.0 - momentum)).sum()


def test_momentum_goes_as_far_as_is_asked():
    for time in (33.0, 60.0, 80.0):
        assert moved(32, momentum_for(32, time)) == pytest.approx(time)
    assert momentum_for(8, 1e9) < 0.4
    assert momentum_for(2, 1e9) == 0.0


def test_passes_grow_as_the_fourth_root():
    """Of a curator's rows, which each step reads; users of the local model answer once anyway."""
    steps = {n: schedule(n, 0.25, 1.0, True, "auto") for n in (100, 10**5, 10**6, 10**8)}
    assert [plan[0] for plan in steps.values()] == [32, 39, 70, 220]
    for n, (number, step, momentum) in list(steps.items())[1:]:
        # and what is left in directions of large curvature is exp(-5.6), however long the descent
        assert step == 1.0 and momentum ** (number / 2.0) < np.exp(-5.6)
        # as far as plain descent of this time goes
        assert moved(number, momentum) == pytest.approx(np.sqrt(n) / 2.5)
    assert schedule(10**6, 0.25, 1.0, False, "auto")[0] < 32


def test_no_warning_tells_of_tiny_values():
    X, y = (1e-320 * values for values in _data())
    with np.errstate(all="raise"):
        improper(random_state=0).fit(X, y)


def test_refusals():
    X, y = _data()
    for settings in ({"privacy": "local"}, {"calibration": 0.0}):
        est = improper(**settings, random_state=0).fit(X, y)
        with pytest.raises(NotImplementedError, match="only a curator can release"):
            est.confidence_interval(X)


def _rank_one(n, d, rng):
    """Proposition 6.1: all rows along one direction, which nothing tells beforehand."""
    direction = rng.normal(size=d)
    return rng.choice([-1.0, 1.0], size=(n, 1)) * direction / np.linalg.norm(direction), direction


@pytest.mark.slow
@pytest.mark.parametrize("privacy", ["central", "local"])
def test_the_error_does_not_grow_with_the_dimension(privacy):
    n = 3_000 if privacy == "central" else 20_000
    for d in (10, 500):
        squares = []
        for seed in range(6 if privacy == "central" else 3):
            X, direction = _rank_one(n, d, np.random.RandomState(seed))
            y = X @ direction / np.linalg.norm(direction)
            est = improper(
                privacy=privacy, epsilon=4.0, fit_intercept=False, random_state=100 + seed
            ).fit(X, y)
            squares.append(np.mean((est.predict(X) - y) ** 2))
        # The noise of the iterate is larger than the signal at d = 500: sqrt(500) 0.07 > 1
        assert np.sqrt(np.mean(squares)) < 0.15


def _covered(privacy, n, d, epsilon, repeats, seed, level):
    """Whether a new row's regression function is covered, one row for each of many fits."""
    rng = np.random.RandomState(seed)
    covered, half = [], []
    for _ in range(repeats):
        X = rng.normal(size=(n + 200, d)) / np.arange(1, d + 1)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        theta = rng.normal(size=d)
        mean = X @ theta / np.linalg.norm(theta)
        y = np.where(rng.uniform(-1, 1, size=n) < mean[:n], 1.0, -1.0)
        est = improper(privacy=privacy, epsilon=epsilon, fit_intercept=False, random_state=rng).fit(
            X[:n], y
        )
        low, high = est.confidence_interval(X[n:], level)
        covered.append(((low <= mean[n:]) & (mean[n:] <= high)).mean())
        half.append((high - low).mean() / 2)
    return np.array(covered), np.mean(half)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
@pytest.mark.parametrize(("n", "d"), [(1_000, 100), (100_000, 5)])
def test_average_coverage_in_a_large_grid(epsilon, n, d):
    for privacy in ("central", "none"):
        covered, _ = _covered(privacy, n, d, epsilon, 20, 0, 0.6)
        misses = np.rint((1.0 - covered.mean()) * 20)
        assert stats.binom.sf(misses - 1, 20, 0.4) > 1e-4


def test_the_bound_on_the_error_solves_bernsteins_inequality():
    """V = a + B h + slack + sqrt(8 l V / m) + 5 l / (3 m), term by term."""
    for a, h, scale, m, bound, failure in (
        (0.01, 0.02, 0.003, 500, 1.5, 0.005),
        (0.0, 0.0, 0.0, 300, 1.0, 0.05),
        (0.2, 0.1, 0.01, 50_000, 0.5, 1e-4),
    ):
        V = root_mean_square_bound((a, h), scale, m, bound, failure) ** 2
        length = log(2.0 / failure)
        noise = scale * sqrt(1.0 + bound**2) * stats.norm.isf(failure / 2.0)
        right = a + bound * h + noise + sqrt(8.0 * length * V / m) + 5.0 * length / (3.0 * m)
        assert V == pytest.approx(right, rel=1e-9)


@pytest.mark.parametrize("often", [0.1, 0.3, 1.0, 3.0, 10.0, 100.0])
def test_the_bound_on_the_error_holds_for_rare_large_errors(often):
    """Of m records some have an error of 2, each with chance often / m: exactly, over all counts.

    Without the root of V in the bound no such record would be seen too often.
    """
    m, failure = 1000, 0.05
    counts = np.arange(0, 400)
    roots = [root_mean_square_bound((4.0 * k / m, 0.0), 0.0, m, 1.0, failure) for k in counts]
    below = np.square(roots) < 4.0 * often / m
    assert stats.binom.pmf(counts, m, often / m)[below].sum() <= failure / 2.0


def test_the_parts_of_the_interval_add_up(monkeypatch):
    """Failures of the mean square error and of Chebyshev's inequality: one minus the level."""
    X, y = np.random.RandomState(0).uniform(-0.5, 0.5, size=(2000, 2)), np.zeros(2000)
    est = improper(random_state=0).fit(X, y)
    asked = []

    def fixed(*arguments):
        asked.append(arguments[-1])
        return 1e-3

    monkeypatch.setattr(_regressor, "root_mean_square_bound", fixed)
    for level in (0.8, 0.95, 0.99):
        low, high = est.confidence_interval(np.zeros((1, 2)), confidence_level=level)
        chebyshev = (1e-3 * est._scaling.radius / ((high - low) / 2.0)) ** 2
        assert asked[-1] + float(chebyshev[0]) == pytest.approx(1.0 - level)


def records(n, d, seed):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, d)) / np.arange(1, d + 1)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, 0.9 * X[:, 0] + rng.uniform(-0.1, 0.1, size=n)


def by_codebook(**params):
    options = {"epsilon": 4.0, "delta": 0.0, "privacy": "local", "fit_intercept": False}
    return ImproperSGDRegressor(**{"data_norm": 1.0, "bounds_y": (-1, 1), **options, **params})


@pytest.mark.parametrize("norm", [0.0, 0.5, 3.0])
def test_it_is_the_clipped_gradient_over_its_bound(norm):
    X, y = records(200, 3, 0)
    maps, theta = (RecordMap.of_norm(1.0, (-1.0, 1.0), False, 3), norm * np.array([0.6, 0.0, -0.8]))
    query = ReportedGradientQuery(maps, theta=theta)
    ours = query.limit * query.sum(X, y)
    assert_allclose(ours, ClippedGradientQuery(maps, theta).sum(X, y), rtol=1e-12)
    assert query.limit == 1.0 + min(norm, 1.0)
    odd = np.array([[np.nan, 0.0, 0.0], [1e308, 1e308, 1e308], [-np.inf, 0.0, 1.0]])
    phi, part = query.records(odd, np.array([1e308, np.nan, -np.inf]))
    assert np.isfinite(phi).all() and (abs(part) <= 1.0).all()
    for row, target in zip(X[:20], y[:20], strict=True):
        one, k = scaled_record(query.wire(), row, target)
        phi, part = query.records(row[None], np.array([target]))
        assert_allclose(one, phi[0], atol=1e-15)
        assert k == pytest.approx(part[0], abs=1e-15)


@pytest.mark.parametrize("random_state", [None, 0])
def test_reports_estimate_the_sum(random_state):
    """Secure draws fail once in 1e15: a chi-square of three coordinates is below 75."""
    X, y = records(5_000, 3, 1)
    query = ReportedGradientQuery(
        RecordMap.of_norm(1.0, (-1.0, 1.0), False, 3), theta=np.ones(3) / 2.0
    )
    law = query.local_noise(by_codebook()._trust.budget)
    assert law.code == best_codebook(4, 4.0, "vector")
    reports = law.reported(*query.records(X, y), NoiseSource(random_state))
    error = query.summed(reports) - query.sum(X, y)
    assert np.linalg.norm(error) < 5.0 * np.sqrt(3.0) * law.summed(5_000).scale


def test_devices_descend():
    X, y = records(45, 2, 4)
    collector, rounds = Collector(by_codebook(n_iter=3), 45, 0, n_features=2), 0
    while collector.task is not None:
        task, rounds = collector.task, rounds + 1
        for user in range(45):
            answer = report(task, X[user], y[user], user=user)
            if answer is not None:
                collector.add(user, answer)
    assert rounds == collector.result().n_iter_ == 3
    assert np.isfinite(collector.result().coef_).all()
