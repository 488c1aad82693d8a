"""Additive models from codebook reports."""

import numpy as np
import pytest

from skpriv import Budget
from skpriv._estimation._reports import effective_by_channel
from skpriv.linear_model import AdditiveRegressor
from skpriv.privacy import capabilities


def records(n, seed):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    mean = X[:, 0] ** 2 + 0.5 * X[:, 1]
    return X, mean + rng.normal(scale=0.3, size=n), mean


def model(**params):
    options = {"epsilon": 4.0, "delta": 0.0, "privacy": "local"}
    return AdditiveRegressor(**{**options, "bounds_X": (-1, 1), "bounds_y": (-2, 3), **params})


@pytest.mark.slow  # its ingredients, errors and levels, are tested beside it
def test_curves_are_found_and_covered():
    errors, covered = {}, []
    for seed in range(6):
        X, y, mean = records(50_000, seed)
        for channel, delta in (("gaussian", 1e-6), ("codebook", 0.0)):
            fitted = model(channel=channel, delta=delta, knots=5, random_state=seed).fit(X, y)
            errors.setdefault(channel, []).append(abs(fitted.predict(X) - mean).mean())
        for method, most in (("asymptotic", 1.0), ("certified", 5.0)):
            low, high = fitted.confidence_interval(X[:500], method=method)
            assert ((high - low) < most).mean() > 0.5
            inside = ((low - 0.05 <= mean[:500]) & (mean[:500] <= high + 0.05)).mean()
            covered.append(inside)  # lines between five knots miss a parabola by .05
        curve = fitted.curve(0)
        assert np.isfinite(curve.band_high).all() and (curve.band_low <= curve.low).all()
    # The codebook has no delta. Errors of the Gaussian channel are about as large, measured 1.08.
    assert np.mean(errors["codebook"]) < 1.25 * np.mean(errors["gaussian"])
    assert np.mean(covered) > 0.9


@pytest.mark.parametrize(("n", "size"), [(1_000, 11), (30_000, 31)])
def test_shuffled_reports_have_no_more_noise_than_local_ones(n, size):
    """And those of epsilon 4 no more than those of epsilon 1."""
    known = {
        (name, epsilon): effective_by_channel(capabilities(name), size, Budget(epsilon, 1e-6), n)
        for name in ("local", "shuffle")
        for epsilon in (0.3, 4.0)
    }
    for channel in ("codebook", "gaussian"):
        for epsilon in (0.3, 4.0):
            assert known["shuffle", epsilon][channel] >= known["local", epsilon][channel]
        for name in ("local", "shuffle"):
            reaches = [known[name, epsilon][channel] for epsilon in (0.3, 4.0)]
            assert reaches == sorted(reaches)
