"""Certified intervals that hold for all x at once, at any n, cover on the hard designs."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from registry.estimators import layered, reweighted
from scipy import stats

from skpriv._estimation._links import LINKS

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


def missed(make, design, repetitions, n, d, link="identity"):
    """In how many repetitions some x of many is not covered: no more than the level allows."""
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
    assert failures <= allowed(repetitions)
    return failures


def allowed(repetitions):
    """Failures that more of have a probability below 1e-4 at the level.

    Of 10 repetitions 6 pass, and 12 of 40: a true coverage of .8 passes either with .96. Of all
    variants together, 640 repetitions or more, it passes with 3e-4 at most.
    """
    return stats.binom.isf(1e-4, repetitions, 1.0 - LEVEL)


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
def test_layered_intervals_cover(design):
    failures = sum(
        missed(partial(layered, n_levels=2, **params), design, repetitions, n, d)
        for repetitions, n, d, params in VARIED
    )
    assert failures <= allowed(sum(repetitions for repetitions, *_ in VARIED))


@pytest.mark.parametrize("privacy", ["central", "none"])
def test_reused_records_are_counted(privacy):
    """Levels that share their records repeat the targets' errors: sums are not independent."""
    make = partial(layered, epsilon=50.0, privacy=privacy, n_levels=6)
    missed(make, isotropic, 15, 500, 2)


@pytest.mark.slow
@pytest.mark.parametrize("privacy", ["central", "local", "none"])
@pytest.mark.parametrize("link", LINKS)
def test_intervals_of_descent_cover(privacy, link):
    """On all designs, at two budgets and sizes: one test of all, and one of each."""
    cells = list(product(DESIGNS, (0.5, 8.0), ((1_000, 2), (30_000, 6))))
    failures = 0
    for design, epsilon, (n, d) in cells:
        make = partial(reweighted, solver="sgd", link=link, privacy=privacy, epsilon=epsilon)
        failures += missed(make, design, 40, n, d, link)
    assert failures <= allowed(40 * len(cells))
