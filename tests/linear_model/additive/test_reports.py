"""Additive models from codebook reports."""

from types import SimpleNamespace

import numpy as np
import pytest

from skpriv import Budget, BudgetAccountant
from skpriv._estimation._reports import effective_by_channel
from skpriv.linear_model import AdditiveRegressor
from skpriv.privacy import capabilities
from skpriv.protocol import Collector


def records(n, seed):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    mean = X[:, 0] ** 2 + 0.5 * X[:, 1]
    return X, mean + rng.normal(scale=0.3, size=n), mean


def model(**params):
    options = {"epsilon": 4.0, "delta": 0.0, "privacy": "local"}
    return AdditiveRegressor(**{**options, "bounds_X": (-1, 1), "bounds_y": (-2, 3), **params})


@pytest.mark.parametrize("random_state", [None, 0])
def test_each_user_answers_once_and_purely(random_state):
    X, y, _ = records(2_000, 0)
    with BudgetAccountant(4.0, 0.0) as accountant:
        fitted = model(random_state=random_state, monotonic_cst=[0, 1]).fit(X, y)
        assert accountant.spent.epsilon == 4.0 and accountant.spent.delta == 0.0
    (row,) = fitted.privacy_report_.rows
    assert row.noise == "codebook" and row.records == 2_000
    assert (np.diff(fitted.heights_[1]) >= -1e-9).all()


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


def test_what_has_no_codebook_says_so():
    X, y, _ = records(500, 1)
    with pytest.raises(ValueError, match="curator"):
        model(privacy="central", channel="codebook", delta=1e-6).fit(X, y)
    with pytest.raises(ValueError, match="lines"):
        Collector(model(), 100, 0, n_features=2)
    shuffled = model(privacy="shuffle", delta=1e-6, channel="codebook", random_state=0).fit(X, y)
    assert {row.noise for row in shuffled.privacy_report_.rows} == {"codebook"}


def sent(n, n_features, **params):
    """The channel of so many users, by public numbers alone."""
    options = {"privacy": "shuffle", "epsilon": 1.0, "delta": 1e-6, **params}
    fitted = model(**options)
    fitted.n_features_in_ = n_features
    return fitted._sent(
        SimpleNamespace(n=n, n_features=n_features, at_hand=True, on_devices=False),
        fitted._plan(n_features),
    )


@pytest.mark.parametrize(
    ("n", "n_features", "params", "channel"),
    [
        (4_000, 6, {}, "codebook"),  # N / p^1.5 of the codebook is 12, below 16
        (30_000, 6, {"epsilon": 0.3}, "gaussian"),  # 33, and lines for both
        (30_000, 2, {}, "codebook"),  # curves, where Gaussian noise leaves lines
        (10_000, 2, {"knots": 3}, "gaussian"),  # the same knots for both, and 39
        (30_000, 2, {"knots": 3}, "codebook"),  # 81, above 64: its noise is too small to matter
        (300_000, 2, {"privacy": "local", "knots": 2}, "codebook"),  # needs no delta
        (30_000, 2, {"knots": 3, "delta": 0.0, "privacy": "local"}, "codebook"),
        (30_000, 2, {"knots": 3, "channel": "codebook"}, "codebook"),
        (30_000, 2, {"privacy": "central"}, "gaussian"),
    ],
)
def test_channel_follows_from_public_numbers(n, n_features, params, channel):
    assert sent(n, n_features, **params) == channel


@pytest.mark.parametrize(("n", "size"), [(1_000, 11), (30_000, 31)])
def test_shuffled_reports_have_no_more_noise_than_local_ones(n, size):
    """And those of epsilon 4 no more than those of epsilon 1."""
    known = {
        (name, epsilon): effective_by_channel(capabilities(name), size, Budget(epsilon, 1e-6), n)
        for name in ("local", "shuffle")
        for epsilon in (0.3, 1.0, 4.0)
    }
    for channel in ("codebook", "gaussian"):
        for epsilon in (0.3, 1.0, 4.0):
            assert known["shuffle", epsilon][channel] >= known["local", epsilon][channel]
        for name in ("local", "shuffle"):
            reaches = [known[name, epsilon][channel] for epsilon in (0.3, 1.0, 4.0)]
            assert reaches == sorted(reaches)


@pytest.mark.slow  # its ingredients, errors and levels, are tested beside it
@pytest.mark.parametrize("n", [3_000])
def test_shuffled_fits_err_no_more_than_local_ones(n):
    """On average over draws, with the default channel, as do those of epsilon 4 beside 1."""
    errors = {}
    for seed in range(4):
        X, y, mean = records(n, seed)
        for privacy in ("local", "shuffle"):
            for epsilon in (1.0, 4.0):
                options = {"delta": 1e-6, "privacy": privacy, "epsilon": epsilon}
                fitted = model(random_state=seed, **options).fit(X, y)
                error = ((fitted.predict(X) - mean) ** 2).mean()
                errors.setdefault((privacy, epsilon), []).append(error)
    mse = {key: np.mean(values) for key, values in errors.items()}
    assert mse["shuffle", 1.0] < mse["local", 1.0]
    assert mse["shuffle", 4.0] < mse["local", 4.0]
    assert mse["shuffle", 4.0] < mse["shuffle", 1.0]
