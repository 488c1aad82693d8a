"""Sensitivities that depend on the condition number of U; the others are in the registry."""

import numpy as np
import pytest
from registry.linear import draw_matrix
from scipy import optimize

from skpriv._estimation._moments import Instrument
from skpriv._estimation._public_maps import RecordMap
from skpriv.linear_model._reweighted import ReweightedMomentsQuery
from skpriv.privacy import ROUNDING


def _change(query, X, y):
    return np.linalg.norm(query.sum(X[:1], y[:1]) - query.sum(X[1:], y[1:]))


def _largest_change(query, U, d, rng, starts):
    """Search over directions e and e' of U phi and U phi', both unit phi, and targets."""
    inverse = np.linalg.inv(U)
    condition = np.linalg.cond(U)

    def records(t):
        X = t[: 2 * d].reshape(2, d) @ inverse
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        return X / np.maximum(norms, 1e-300), np.sin(t[2 * d :])

    vectors = np.linalg.eigh(U)[1]
    best = 0.0
    for _ in range(starts):
        i, j = rng.randint(d, size=2)
        width = 10.0 ** rng.uniform(-np.log10(condition) - 1.0, 0.5)
        centre = np.concatenate([vectors[:, i], -vectors[:, j], rng.uniform(-2.0, 2.0, size=2)])
        centre += width * rng.normal(size=centre.size)
        simplex = centre + np.vstack([np.zeros(centre.size), width * np.eye(centre.size)])
        result = optimize.minimize(
            lambda t: -_change(query, *records(t)),
            centre,
            method="Nelder-Mead",
            options={"initial_simplex": simplex, "maxfev": 600, "xatol": 1e-9, "fatol": 1e-9},
        )
        best = max(best, -result.fun)
        if best >= 0.995 * query.sensitivity:
            break
    return best


def test_the_declared_sensitivity_is_attained(global_random_seed):
    """Between the condition numbers 1 and 1e8, whose worst pairs are in the registry."""
    rng = np.random.RandomState(global_random_seed)
    U = draw_matrix(2, rng, 30.0)
    U /= np.linalg.norm(U, 2)
    query = ReweightedMomentsQuery(RecordMap.of_norm(1.0, (-1.0, 1.0), False, 2), Instrument(U))
    best = _largest_change(query, U, 2, rng, starts=60)
    assert 0.99 * query.sensitivity <= best <= query.sensitivity
    assert query.sensitivity <= np.sqrt(8.0) * ROUNDING * (1 + 2e-5)


def test_the_sensitivity_of_moments_whose_weights_fade_is_attained_and_never_exceeded():
    """Two rows at a small angle that U turns into nearly opposite ones, both above the floor."""
    scaling = RecordMap.of_norm(1.0, (-1.0, 1.0), False, 2)
    U = np.diag([1.0, 1e-4])
    query = ReweightedMomentsQuery(scaling, Instrument(U, floor=1e-3))
    X = np.array([[0.01, 1.0], [-0.01, 1.0]]) / np.hypot(0.01, 1.0)
    assert 0.98 * np.sqrt(8.0) < _change(query, X, np.ones(2)) <= query.sensitivity
    assert query.sensitivity <= np.sqrt(8.0) * ROUNDING
    rng = np.random.RandomState(0)
    for floor in (1e-3, 0.3):
        query = ReweightedMomentsQuery(scaling, Instrument(U, floor=floor))
        assert _largest_change(query, U, 2, rng, starts=1) <= query.sensitivity


def test_the_sensitivity_of_re_weighted_moments_grows_with_the_condition_number():
    rng = np.random.RandomState(0)
    scaling = RecordMap.of_norm(1.0, (-1.0, 1.0), False, 2)
    found = [
        ReweightedMomentsQuery(scaling, Instrument(draw_matrix(2, rng, condition))).sensitivity
        for condition in 10.0 ** np.arange(9)
    ]
    assert found == sorted(found)
    assert found[0] == pytest.approx(2.5, rel=2e-5)
    assert found[-1] == pytest.approx(np.sqrt(8.0), rel=2e-5)
