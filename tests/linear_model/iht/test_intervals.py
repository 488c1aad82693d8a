from math import log, sqrt

import numpy as np
import pytest
from scipy import stats

from skpriv.linear_model import IHTRegressor
from skpriv.linear_model import _iht as _sparse_regressor
from skpriv.linear_model._iht import support_certificate
from skpriv.privacy import Answer, GaussianNoise


def test_the_released_norm_is_exceeded_as_often_as_stated(global_random_seed):
    """4,000 noisy norms: the truth is above the bound in one of 200, not in one of ten.

    A tenth of the failure probability is for the noise. With half of the quantile 10% would fail.
    """
    rng, n, scale, truth = np.random.RandomState(global_random_seed), 10**12, 1e8, 1e9
    noise = GaussianNoise(scale)
    bounds = np.array(
        [
            support_certificate(Answer(np.array([value]), n, noise), 10, 2, 2, 0.5, 0.95)
            for value in truth + scale * rng.normal(size=4000)
        ]
    )
    targets = sqrt(2.0 * log(20.0 / 0.045) / n)
    misses = int((bounds * 0.5 / 2.0 < truth / n + targets).sum())
    assert stats.binom.ppf(1e-5, 4000, 0.005) <= misses <= stats.binom.isf(1e-5, 4000, 0.005)


@pytest.mark.parametrize("noiseless", [True, False])
def test_the_parts_of_the_certificate_add_up(noiseless):
    """The targets' part, found from the bound, and the noise's: one minus the level."""
    n, scale = 10_000, 0.0 if noiseless else 1.0
    gradient = Answer(np.array([7.0]), n, GaussianNoise(scale))
    bound = support_certificate(gradient, 10, 2, 2, 0.5, 0.9) * 0.5 / 2.0  # k = 4 coordinates
    noise = 0.0 if noiseless else 0.01
    released = 7.0 + (scale * stats.norm.isf(noise) if scale else 0.0)
    of_targets = 20.0 * np.exp(-n * (bound - released / n) ** 2 / 2.0)
    assert of_targets + noise == pytest.approx(0.1)


def test_bounds_of_coefficients_are_in_the_units_of_the_points(monkeypatch, global_random_seed):
    """coef_norm is for features divided by data_max: as large a factor off the points as on it."""
    rng = np.random.RandomState(global_random_seed)
    X = rng.uniform(-3.0, 3.0, size=(3000, 12))
    est = IHTRegressor(
        bounds_y=(-1, 1),
        n_nonzero_coefs=6,
        data_max=3.0,
        fit_intercept=False,
        epsilon=5.0,
        random_state=0,
    )
    est.set_params(coef_norm=0.7).fit(X, np.clip(X[:, 0] / 3.0, -1.0, 1.0))
    seen = {}
    given_support = _sparse_regressor.given_support

    def spy(fit, points, bound, *rest):
        seen.update(points=points, bound=bound)
        return given_support(fit, points, bound, *rest)

    monkeypatch.setattr(_sparse_regressor, "given_support", spy)
    est.confidence_interval(X[:5], method="asymptotic")
    assert seen["bound"] > 0.7  # points are shorter than features divided by data_max
    units = seen["bound"] / 0.7
    np.testing.assert_allclose(seen["points"] * units, X[:5, est.support_] / 3.0)
