"""LinearRegression from codebook reports: one answer of all users, with intervals of their own."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from registry.estimators import ssp

from skpriv._estimation._intervals import _joint_bound
from skpriv._estimation._public_maps import RecordMap, RowMap, TargetMap
from skpriv._estimation._reports import ReportedFit
from skpriv.linear_model import LinearRegression
from skpriv.protocol import Collector, report
from skpriv.protocol._device import scaled_record

COEF = np.array([0.6, -0.4, 0.2])


def records(n, seed, d=3):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return X, np.where(rng.uniform(size=n) < (1.0 + X @ COEF[:d]) / 2.0, 1.0, -1.0)


def model(**params):
    options = {"epsilon": 2.0, "privacy": "local", "data_norm": 1.0, "bounds_y": (-1.0, 1.0)}
    return LinearRegression(**{**options, "fit_intercept": False, **params})


def test_it_is_the_ssp_fit_without_an_intercept():
    X, y = records(20_000, 1)
    line = model(random_state=3).fit(X, y)
    other = ssp(epsilon=2.0, privacy="local", fit_intercept=False, random_state=3).fit(X, y)
    assert_allclose(line.coef_, other.coef_, rtol=1e-9)


def test_what_reports_do_not_resolve_is_not_claimed():
    X, y = records(300, 2)
    fitted = model(epsilon=0.5, random_state=0).fit(X, y)
    for method in ("certified", "asymptotic"):
        low, high = fitted.confidence_interval(X[:5], method=method)
        assert_allclose([low, high], [[-1.0] * 5, [1.0] * 5])


def test_no_norm_above_the_bound_is_possible():
    # the search stops at the first norm that theta* cannot exceed, whatever comes after it
    X, y = records(40_000, 3)
    fit = model(epsilon=4.0, random_state=0).fit(X, y)._released
    assert isinstance(fit, ReportedFit)
    law, smallest = fit.equations.law, np.linalg.eigvalsh(fit.equations.design)[0]
    solution = np.linalg.norm(np.linalg.solve(fit.equations.design, fit.equations.target))
    found = _joint_bound(fit.equations, 0.05)
    norms = np.geomspace(0.125, 1e3, 60)
    possible = [t for t in norms if t <= solution + law.norm_bound(t, 0.05) / smallest]
    assert max(possible) <= found < np.inf


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("bounds", [[(20.0, 60.0), (0.0, 1e-3)], [(-1e-300, 1e300), (-3.0, 1.0)]])
def test_devices_scale_ranges_as_the_estimator_does(fit_intercept, bounds):
    low, high = np.array(bounds).T
    maps = RecordMap(
        RowMap(low, high, None, fit_intercept, 2), TargetMap((2.0, 5.0), fit_intercept)
    )
    for x in ([30.0, 5e-4], [np.nan, 2.0], [np.inf, -np.inf], [-1e308, 0.0]):
        for y in (3.0, np.nan, 1e308, -np.inf):
            with np.errstate(all="ignore"):
                phi, r = scaled_record(maps.wire(), x, y)
                expected = maps.rows(np.array([x]))[0]
            assert_allclose(phi, expected, rtol=1e-14, atol=1e-300)
            assert r == pytest.approx(maps.target(np.array([y]))[0], abs=1e-15)


def test_it_is_collected_from_devices():
    rng = np.random.RandomState(0)
    X, y = rng.uniform([20.0, 0.0], [60.0, 1.0], (60, 2)), rng.uniform(0.0, 10.0, 60)
    line = LinearRegression(
        epsilon=4.0, delta=0.0, privacy="local", bounds_X=[(20, 60), (0, 1)], bounds_y=(0, 10)
    )
    collector = Collector(line, n_users=60, seed=0)  # bounds_X tell the number of features
    for user in range(60):
        collector.add(user, report(collector.task, X[user], y[user], user=user))
    fitted = collector.result()
    assert fitted.coef_.shape == (2,) and np.isfinite(fitted.intercept_)


def test_few_reports_cost_little_more_than_the_mean():
    """With features at three times the length of the constant these fits lost 1.7 to 31 times the
    variance of the target.
    """
    lost = []
    for seed in range(5):
        rng = np.random.RandomState(seed)
        X = rng.uniform(-1.0, 1.0, size=(20_000, 6))
        y = np.clip(0.1 + 0.02 * X[:, 0] + 0.05 * rng.normal(size=len(X)), 0.0, 1.0)
        bounds = {"data_norm": None, "bounds_X": (-1, 1), "bounds_y": (0, 1), "delta": 0.0}
        line = model(**bounds, fit_intercept=True, epsilon=1.0, random_state=seed).fit(X, y)
        lost.append(np.mean((line.predict(X) - y) ** 2) / y.var() - 1.0)
    assert np.median(lost) < 0.3


def test_devices_answer_once_by_the_codebook():
    """Also where a fit to the same number of rows would have Gaussian reports."""
    options = {"epsilon": 1.0, "delta": 1e-6, "privacy": "shuffle", "bounds_y": (-1, 1)}
    collector = Collector(LinearRegression(bounds_X=[(-1, 1)] * 6, **options), 6_000, 0)
    assert json.loads(collector.task)["channel"]["name"] == "codebook"


@pytest.mark.parametrize("n", [60, 200, 300])
@pytest.mark.parametrize("privacy, epsilon", [("local", 50.0), ("local", 300.0), ("shuffle", 3.0)])
def test_no_question_is_left_without_a_single_user(privacy, epsilon, n):
    """The questions of the last equation have small shares of the users."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_t(2, size=(n, 3)), rng.normal(size=n)
        model = LinearRegression(
            epsilon=epsilon, delta=1e-6, privacy=privacy, bounds_X=(-10.0, 10.0),
            bounds_y=(-3.0, 3.0), channel="gaussian", random_state=seed,
        )  # fmt: skip
        assert np.isfinite(model.fit(X, y).coef_).all()
