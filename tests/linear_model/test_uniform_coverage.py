"""Certified intervals that hold for all x at once, at any n, cover on the hard designs."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from registry.estimators import layered, reweighted
from scipy import stats

from skpriv.linear_model._reweighted import LINKS

LEVEL = 0.9


def isotropic(rng, n, d):
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def small_direction(rng, n, d):
    X = rng.choice([-1.0, 1.0], size=(n, d)) * n ** (-1.0 / 3.0)
    X[:, 0] = 0.5
    return X


def rare_direction(rng, n, d):
    coordinate = np.where(rng.uniform(size=n) < n**-0.5, d - 1, rng.randint(d - 1, size=n))
    return np.eye(d)[coordinate]


def many_scales(rng, n, d):
    return isotropic(rng, n, d) * 10.0 ** -rng.uniform(0.0, 1.5, size=(n, 1))


DESIGNS = (isotropic, small_direction, rare_direction, many_scales)


def assert_covered(make, design, repetitions, n, d, link="identity"):
    """Some x of many is not covered in no more repetitions than the level allows."""
    failures, mean = 0, LINKS[link].mean
    for repetition in range(repetitions):
        rng = np.random.RandomState(1000 + repetition)
        theta = rng.normal(size=d)
        theta /= np.linalg.norm(theta)  # as long as coef_norm allows
        X = design(rng, n, d)
        y = np.where(rng.uniform(-1.0, 1.0, size=n) < mean(X @ theta), 1.0, -1.0)  # the noisiest
        est = make(fit_intercept=False, coef_norm=1.0, random_state=repetition).fit(X, y)
        points = np.vstack([X[:200], isotropic(rng, 200, d), np.eye(d), -np.eye(d), theta[None]])
        points = np.vstack([points, 0.1 * points])
        low, high = est.confidence_interval(points, LEVEL)
        truth = mean(points @ theta)
        failures += not ((low <= truth + 1e-9) & (truth <= high + 1e-9)).all()
    assert failures <= stats.binom.isf(1e-4, repetitions, 1.0 - LEVEL)


VARIANTS = ("one-batch", "paper")
VARIED = [
    *(
        (10, 20_000, 2, {"epsilon": 8.0, "delta": delta, "privacy": privacy, "variant": variant})
        for (privacy, delta), variant in product(
            [("local", 1e-6), ("local", 1e-5), ("central", 1e-6)], VARIANTS
        )
    ),
    (10, 20_000, 2, {"epsilon": 8.0, "privacy": "local", "channel": "codebook"}),
    *(
        (40, 100_000, d, {"epsilon": epsilon, "privacy": privacy, "variant": variant})
        for privacy, d, epsilon, variant in product(
            ("local", "central", "none"), (2, 5), (1.0, 4.0), VARIANTS
        )
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("repetitions, n, d, params", VARIED)
def test_layered_intervals_cover(design, repetitions, n, d, params):
    assert_covered(partial(layered, n_levels=2, **params), design, repetitions, n, d)


@pytest.mark.parametrize("privacy", ["central", "none"])
def test_reused_records_are_counted(privacy):
    """Levels that share their records repeat the targets' errors: sums are not independent."""
    make = partial(layered, epsilon=50.0, privacy=privacy, n_levels=6)
    assert_covered(make, isotropic, 15, 500, 2)


@pytest.mark.slow
@pytest.mark.parametrize("privacy", ["central", "local", "none"])
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
@pytest.mark.parametrize(("n", "d"), [(1_000, 2), (30_000, 6)])
def test_intervals_of_descent_cover(privacy, link, design, epsilon, n, d):
    make = partial(reweighted, solver="sgd", link=link, privacy=privacy, epsilon=epsilon)
    assert_covered(make, design, 40, n, d, link)
