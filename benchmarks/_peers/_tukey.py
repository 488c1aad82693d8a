"""TukeyEM: a point of high Tukey depth among least-squares fits to disjoint parts of the rows."""

from math import exp, log

import numpy as np
from sklearn.utils import check_random_state

from ._scaled import ScaledRegressor

MODELS = 1000  # as in the paper, which finds the check to pass from about there on
JITTER = 1e-10  # equal coefficients (of columns without variation in a part) have no volume


class TukeyEM(ScaledRegressor):
    """TukeyEM (Amin, Joseph, Ribero and Vassilvitskii 2023, Algorithm 2) for replacement.

    m least-squares fits to disjoint parts; depth of a point is the least, over coordinates, of how
    many fits lie on either side. Replacing a record replaces one fit, which moves each depth by at
    most 1, up or down: the exponential mechanism weighs depth by epsilon_2 / 2. It samples depths
    of at least t = m / 4, and propose-test-release checks that volumes allow it. With V_i the
    volume of depth at least i, if for some g > 0

        V_(t-k-1) exp(-epsilon_2 g / 2) / V_(t+k+g+1) <= delta_2 / (4 exp(epsilon_2)),

    all tables within k records are safe, i.e. sampling is (epsilon_2, delta_2)-private there
    (their Lemma 3.6, after Brown et al. 2021). The largest such k moves by at most 1 with a record,
    and is released with Laplace noise of scale **1 / epsilon_1** (the code published with the paper
    has epsilon_1); the check passes above log(1 / (2 delta_1)) / epsilon_1, so that an unsafe table
    (k <= -1) passes with probability at most delta_1. epsilon and delta are halved, and add up.

    No bounds of X or y are needed. Where the check fails, the middle of ``bounds_y`` is predicted,
    ``passed_`` is false.
    """

    def __init__(
        self, *, epsilon=1.0, delta=1e-6, data_norm=1.0, bounds_y=(-1, 1), fit_intercept=True,
        n_models=None, random_state=0,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.bounds_y = bounds_y
        self.fit_intercept = fit_intercept
        self.n_models = n_models
        self.random_state = random_state

    def fit(self, X, y):
        """Fit on any rows."""
        rng = check_random_state(self.random_state)
        Z, r = self._rows(X), self._targets(y)
        p = Z.shape[1]
        models = self.n_models or min(MODELS, len(Z) // p)
        fits = np.sort(part_fits(Z, r, models, rng), axis=0)
        depth, log_volumes = models // 4, depth_volumes(fits)
        self.scale_ = 2.0 / self.epsilon  # of the Laplace noise: 1 / epsilon_1
        half, small = self.epsilon / 2.0, self.delta / 2.0
        distance = safe_distance(log_volumes, depth, half, small)
        threshold = log(1.0 / (2.0 * small)) * self.scale_
        self.passed_ = bool(distance + rng.laplace(scale=self.scale_) > threshold)
        self.theta_ = np.zeros(p)
        if self.passed_:
            self.theta_ = sampled(fits, log_volumes, depth, half, rng)
        return self


def part_fits(Z, r, models, rng):
    """Least-squares coefficients on ``models`` disjoint random parts, shape (models, p)."""
    order = rng.permutation(len(Z))
    parts = np.array_split(order, models)
    fits = np.array([np.linalg.lstsq(Z[part], r[part], rcond=1e-10)[0] for part in parts])
    return fits + JITTER * rng.uniform(size=fits.shape)


def depth_volumes(fits):
    """log V_i at index i, of the boxes of depth at least i, for i = 0 (infinite) to m / 2."""
    half = len(fits) // 2
    lengths = fits[::-1][:half] - fits[:half]  # row i - 1: depth at least i
    with np.errstate(divide="ignore"):
        return np.append(np.inf, np.log(np.maximum(lengths, 0.0)).sum(axis=1))


def safe_distance(log_volumes, depth, epsilon, delta):
    """Largest k at which the volumes show that all tables within k records are safe; or -1."""
    most = len(log_volumes) - 1
    threshold = log(delta / (4.0 * exp(epsilon)))
    best = -1
    for k in range(min(depth - 1, most - depth - 1)):
        inner = np.arange(depth + k + 2, most + 1)  # t + k + g + 1 for g = 1, 2, ...
        if not len(inner) or not np.isfinite(log_volumes[inner[0]]):
            break
        g = inner - (depth + k + 1)
        with np.errstate(invalid="ignore"):
            terms = log_volumes[depth - k - 1] - log_volumes[inner] - epsilon * g / 2.0
        if not np.nanmin(terms) <= threshold:
            break  # volumes nest, so that no larger k can hold
        best = k
    return best


def sampled(fits, log_volumes, depth, epsilon, rng):
    """A draw of the exponential mechanism on the box of depth at least ``depth``."""
    depths = np.arange(depth, len(log_volumes))
    outer, inner = log_volumes[depths], np.append(log_volumes[depths[1:]], -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        shells = outer + np.log1p(-np.exp(inner - outer))
    terms = np.where(np.isfinite(outer), shells, -np.inf) + epsilon * depths / 2.0
    chosen = int(depths[np.argmax(terms + rng.gumbel(size=len(terms)))])
    low, high = fits[chosen - 1], fits[-chosen]
    within = chosen < len(log_volumes) - 1
    while True:
        point = rng.uniform(low, high)
        if not within or not ((point >= fits[chosen]) & (point <= fits[-chosen - 1])).all():
            return point
