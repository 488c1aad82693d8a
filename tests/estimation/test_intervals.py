"""Asymptotic intervals of noisy equations: the variance that they use is that of the noise."""

import numpy as np
import pytest
from registry.noise import goe

from skpriv._estimation._coefficients import _expansion, _resolved
from skpriv._estimation._intervals import solved_interval
from skpriv._estimation._levels import two_sided_quantile
from skpriv._estimation._moments import NormalEquations


SMALL = 1e-4  # of an inverse of the design, so that the second order does not count


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_variance_is_that_of_the_noise_along_theta_and_across(symmetric):
    """v'(N_b - N_A theta) over draws of the noise alone, for v along theta and across it.

    The entries of a symmetric N_A off its diagonal have half of the variance of those on it.
    """
    rng, p, draws = np.random.RandomState(0), 3, 40_000
    theta = np.array([0.6, 0.8, 0.0])
    V = np.array([theta, [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    scale, target_scale = 2.0, 0.5
    zero = np.zeros((p, p))
    equations = NormalEquations(
        design=zero, target=theta / SMALL, gram=zero, square=0.0, n=1, symmetric=symmetric,
        design_scale=scale, target_scale=target_scale, gram_scale=scale,
    )  # fmt: skip
    matrices = scale * (goe(rng, p, draws) if symmetric else rng.normal(size=(draws, p, p)))
    noise = target_scale * rng.normal(size=(draws, p)) - matrices @ theta
    _, _, privacy = _expansion(equations, SMALL * np.eye(p))
    found = np.einsum("ij,jk,ik->i", V, privacy, V) / SMALL**2
    np.testing.assert_allclose(found, (noise @ V.T).var(axis=0), rtol=0.05)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("symmetric", [True, False])
def test_normal_intervals_begin_where_coverage_stays_near_the_level(symmetric, level):
    """From 1.5 deviations above the quantile of the level on, or of 95%."""
    least = 1.5 + max(two_sided_quantile(0.95), two_sided_quantile(level))
    for factor in (1.0 - SMALL, 1.0 + SMALL):
        equations = NormalEquations(
            design=np.diag([9.0, factor * least]), target=np.ones(2), gram=np.eye(2), square=1.0,
            n=100, symmetric=symmetric, design_scale=1.0, target_scale=1.0, gram_scale=1.0,
        )  # fmt: skip
        _, half = solved_interval(equations, np.eye(2), level)
        assert np.isfinite(half).all() == (factor > 1.0)


@pytest.mark.parametrize("symmetric", [True, False])
def test_coefficients_begin_at_twice_the_norm_of_the_noise(symmetric):
    norm = 2.0 if symmetric else 2.0 * np.sqrt(2.0)  # of two by two entries of the scale 1
    for factor in (1.0 - SMALL, 1.0 + SMALL):
        equations = NormalEquations(
            design=np.diag([9.0, 2.0 * factor * norm]), target=np.ones(2), gram=np.eye(2),
            square=1.0, n=100, symmetric=symmetric, design_scale=1.0, target_scale=1.0,
            gram_scale=1.0,
        )  # fmt: skip
        assert _resolved(equations) == (factor > 1.0)
