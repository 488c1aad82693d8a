"""Re-weighted regression from codebook reports: what is asked, and what it is worth."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from registry.estimators import ssp

from skpriv._estimation._moments import Instrument
from skpriv._estimation._public_maps import RecordMap
from skpriv._linalg import psd_part, unvech
from skpriv.linear_model import ReweightedRegressor, _moments as _regressor
from skpriv.linear_model._reweighted._normalisation import (
    ReportedNormalisationQuery,
    ReweightedReportsQuery,
    affordable,
)
from skpriv.privacy import Budget, open_session
from skpriv.protocol._device import scaled_record
from skpriv.records import as_rows

U = np.array([[1.0, 0.2, 0.0], [0.2, 2.0, 0.3], [0.0, 0.3, 9.0]])
ODD = np.array(
    [[np.nan, 0.0, 0.0], [np.inf, 1.0, 0.0], [1e308, -1e308, 1e308], [1e-308, 0.0, 0.0], [0, 0, 0]]
)


def records(n, seed, scales=(1.0, 0.3, 0.1)):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3)) * scales
    X /= np.linalg.norm(X, axis=1)[:, None]
    theta = np.array([0.5, -0.5, 0.5])
    return X, np.where(rng.uniform(size=n) < (1.0 + X @ theta) / 2.0, 1.0, -1.0), theta


def model(**params):
    options = {"epsilon": 4.0, "delta": 0.0, "privacy": "local", "fit_intercept": False}
    return ReweightedRegressor(**{"data_norm": 1.0, "bounds_y": (-1, 1), **options, **params})


def queries(maps):
    instrument = Instrument(U[: maps.size, : maps.size])
    return [kind(maps, instrument=instrument) for kind in (
        ReportedNormalisationQuery, ReweightedReportsQuery
    )]  # fmt: skip


def test_the_equations_are_those_of_the_same_line():
    X, _, theta = records(500, 0)
    query = queries(RecordMap.of_norm(1.0, (-1.0, 1.0), False, 3))[1]
    h, k = query.records(X, X @ theta)
    assert_allclose(k, h @ np.linalg.solve(U, theta), atol=1e-12)
    assert (np.linalg.norm(X @ U, axis=1) > 1.0).any()  # some were shortened


def test_halves_are_those_of_the_paper():
    X, y, _ = records(500, 1)
    ours = queries(RecordMap.of_norm(1.0, (-1.0, 1.0), False, 3))[0].sum(X, y)
    halves = X @ psd_part(U, power=0.5) / np.sqrt(np.linalg.norm(X @ U, axis=1))[:, None]
    assert_allclose(unvech(ours[3:-1], 3), halves.T @ halves, rtol=1e-12)
    assert not ours[:3].any()


@pytest.mark.parametrize("norm", [1.0, 1e-300, 1e300])
def test_any_record_has_a_row_in_the_ball(norm):
    y = np.array([np.nan, np.inf, -1e308, 1e308, 0.0])
    for query in queries(RecordMap.of_norm(norm, (-1.0, 1.0), False, 3)):
        h, k = query.records(ODD, y)
        assert np.isfinite(h).all() and np.isfinite(k).all()
        assert (np.linalg.norm(h, axis=1) <= 1.0 + 1e-12).all() and (abs(k) <= 1.0).all()


@pytest.mark.parametrize("intercept", [False, True])
def test_devices_make_the_same_record(intercept):
    X, y, _ = records(50, 2)
    X = X[:, : 3 - intercept] * 3.0
    for query in queries(RecordMap.of_norm(2.0, (-1.0, 3.0), intercept, X.shape[1])):
        h, k = query.records(X, y)
        for row, target, one, other in zip(X, y, h, k, strict=True):
            phi, r = scaled_record(query.wire(), row, target)
            assert_allclose(phi, one, atol=1e-14)
            assert_allclose(r, other, atol=1e-14)
        for row in ODD[:, : X.shape[1]]:
            phi, r = scaled_record(query.wire(), row, 1e308)
            assert np.isfinite(phi).all() and np.linalg.norm(phi) <= 1.0 + 1e-12 and abs(r) <= 1.0


def test_a_normalisation_that_noise_would_hide_is_not_asked_for():
    maps = RecordMap.of_norm(1.0, (-1.0, 1.0), False, 3)
    found = []
    for n in (100, 1_000, 30_000):
        rows = as_rows(np.zeros((n, 3)), np.zeros(n))
        session = open_session("local", rows, None, Budget(2.0), 0, currency="pure")
        found.append(affordable(session, maps, 0.1, 3))
    assert found[0] == 0 and found[-1] == 3 and found == sorted(found)
    X, y, _ = records(100, 4)
    one = model(epsilon=1.0, random_state=0).fit(X, y)
    other = ssp(epsilon=1.0, delta=0.0, privacy="local", fit_intercept=False)
    assert_allclose(one.coef_, other.set_params(random_state=0).fit(X, y).coef_)


@pytest.mark.slow
def test_small_directions_are_resolved_and_covered():
    errors, widths = {}, {}
    scales = (1.0, 0.1, 0.03)
    points = records(200, 99, scales)[0]
    for seed in range(5):
        X, y, theta = records(100_000, seed, scales)
        for name, fit in {
            "ours": model(random_state=seed),
            "gaussian": model(random_state=seed, channel="gaussian", delta=1e-6),
            "ssp": ssp(
                epsilon=4.0, delta=0.0, privacy="local", fit_intercept=False, random_state=seed
            ),
        }.items():
            fit.fit(X, y)
            low, high = fit.confidence_interval(points)
            assert ((low <= points @ theta) & (points @ theta <= high)).all()
            errors.setdefault(name, []).append(abs(points @ (fit.coef_ - theta)).mean())
            widths.setdefault(name, []).append(np.mean(high - low))
    assert np.mean(errors["ours"]) < 0.5 * np.mean(errors["gaussian"])
    assert np.mean(widths["ours"]) < 0.9 * np.mean(widths["ssp"])


@pytest.mark.slow
def test_asymptotic_intervals_cover():
    points, covered = records(50, 99)[0], []
    for seed in range(40):
        X, y, theta = records(30_000, 100 + seed)
        low, high = (
            model(random_state=seed).fit(X, y).confidence_interval(points, method="asymptotic")
        )
        assert (high - low < 1.0).all()
        covered.append(((low <= points @ theta) & (points @ theta <= high)).mean())
    assert np.mean(covered) > 0.88  # 40 fits whose points move together


def test_a_ridge_is_one_in_the_units_of_x():
    X, y, _ = records(20_000, 5)
    free, tight = (model(alpha=a, random_state=0).fit(X, y).coef_ for a in (0.0, 1e9))
    assert np.linalg.norm(tight) < 1e-3 < np.linalg.norm(free)


def test_a_posterior_is_about_the_coefficients():
    X, y, theta = records(100_000, 6)
    fitted = model(random_state=0, epsilon=8.0, alpha=0.0).fit(X, y)
    mean, covariance = fitted.posterior()
    assert_allclose(mean, theta, atol=5.0 * np.sqrt(np.diag(covariance)).max())
    assert (np.linalg.eigvalsh(covariance) > 0.0).all()
    with pytest.raises(ValueError, match="re-weighted codebook"):
        fitted.pooled(fitted)


def test_an_assumed_norm_is_one_of_the_coefficients_and_not_of_a_learned_basis(monkeypatch):
    """Whatever coefficients the assumption allows, in the basis they are within the bound used."""
    X, y, _ = records(20_000, 0)
    fit = model(random_state=0, coef_norm=1.0).fit(X, y)
    basis, seen = fit._basis, []
    assert basis is not None and not np.allclose(np.linalg.inv(basis), np.eye(len(basis)))

    def certified(equations, points, bound, confidence_level):
        seen.append(bound)
        return np.zeros(len(points)), np.ones(len(points))

    monkeypatch.setattr(_regressor, "certified_by_equations", certified)
    fit.confidence_interval(X[:2])
    allowed = fit._scaling.theta_bound(1.0)
    worst = np.linalg.svd(np.linalg.inv(basis))[2][0] * allowed
    assert np.linalg.norm(np.linalg.solve(basis, worst)) <= seen[0] * (1.0 + 1e-9)
