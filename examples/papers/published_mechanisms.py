"""
Mechanisms as published, written small, and what an audit finds
===============================================================

Each class or function below is one published mechanism or released program, cut down to the step
that its guarantee rests on. ``python published_mechanisms.py`` prints what each claims and what
the audit finds: by sampling (:func:`skpriv.audit.lower_bound`, at a confidence of .95), or exactly
where the two laws are known. The page "Where published guarantees fail" tells the story.
"""

# sphinx_gallery_thumbnail_path = '_static/thumbnails/audit.svg'

from itertools import product
from math import exp, log, sqrt

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin

from skpriv import Budget
from skpriv.audit import lower_bound


class Released(RegressorMixin, BaseEstimator):
    """A mechanism whose release is an attribute, as an audit of any estimator wants it."""

    def __init__(self, seed=0, epsilon=1.0, delta=1e-3):
        self.seed = seed
        self.epsilon = epsilon
        self.delta = delta

    def fit(self, X, y):
        self.released_ = self.release(X, y, np.random.RandomState(self.seed))
        return self

    def predict(self, X):
        return np.zeros(len(X))


def first_records(first, second, n=1):
    """Two data sets that differ in their first record."""
    pair = []
    for row, target in (first, second):
        X, y = np.zeros((n, len(row))), np.zeros(n)
        X[0], y[0] = row, target
        pair.append((X, y))
    return pair


# %%
# Layered regression (LPLR): a Wishart matrix as noise


class OneSidedWishart(Released):
    """Scaled second moments z z' of the bin "x_1 > 0", with Wishart noise W(d + 1, 4.5/epsilon I).

    Wishart noise is positive definite. A release O from which z z' can be subtracted without
    leaving that cone says nothing; one from which it cannot was made without the record.
    """

    def release(self, X, y, rng):
        d = X.shape[1]
        roots = rng.normal(scale=sqrt(4.5 / self.epsilon), size=(d, d + 1))
        inside = X[X[:, 0] > 0.0]
        return inside.T @ inside + roots @ roots.T


def smallest_eigenvalue(model):
    """Of the release minus z z', z = (1, 0)."""
    return np.linalg.eigvalsh(model.released_ - np.outer([1.0, 0.0], [1.0, 0.0]))[:1]


def one_sided_wishart(n_runs):
    pair = first_records(([1.0, 0.0], 0.0), ([-1.0, 0.0], 0.0))
    return lower_bound(
        lambda seed: OneSidedWishart(seed, 1.0), *pair, n_runs=n_runs, delta=1e-3,
        statistic=smallest_eigenvalue,
    ).epsilon  # fmt: skip


def layered_sensitivities(d=2):
    """Epsilon of count and of r z, for a claim of 1/3 each: replacing a record changes two bins."""
    count = 2.0 / 3.0  # |1 - 0| + |0 - 1| under Laplace noise of scale 3
    cross = 2.0 * sqrt(d) / (3.0 * sqrt(d))
    return count + cross


# %%
# Iterative hard thresholding (N-IHT): a sensitivity without its factor


def peeling(s=40, factor=4.0, delta=1e-5, draws=400_000):
    """True delta at epsilon = 1 of the s released values alone, whose shift is ``factor`` lambda.

    Laplace noise of scale 2 lambda sqrt(3 s log(1 / delta)) / epsilon. The privacy loss is a sum of
    s terms; it is tilted by exp(t loss) such that the rare event is not rare, and weighed back.
    """
    shift = factor / (2.0 * sqrt(3.0 * s * log(1.0 / delta)))  # in units of the noise's scale
    grid = np.linspace(-shift, shift, 4001)
    # The loss of one value: shift where the draw is below 0, -shift beyond the shift.
    mass = np.exp((grid - shift) / 2.0) / 4.0 * (grid[1] - grid[0])
    mass[0] += 0.5 * exp(-shift)
    mass[-1] += 0.5
    mass /= mass.sum()
    tilt = 3.0 / shift / sqrt(s)
    tilted = mass * np.exp(tilt * grid)
    normaliser = tilted.sum()
    rng = np.random.RandomState(0)
    total = np.zeros(draws)
    for _ in range(s):
        total += rng.choice(grid, size=draws, p=tilted / normaliser)
    weights = np.exp(s * log(normaliser) - tilt * total)
    return float(np.mean(weights * np.maximum(0.0, 1.0 - np.exp(1.0 - total))))


# %%
# Boosted AdaSSP: the multiplier upside down, and the whole mu for each of its releases


class BoostedMoments(Released):
    """Noisy second moments of rows in the unit ball: one of the rows, and one of each round.

    A round releases the cross moment of the rows with the residuals, clipped to [-1, 1], and takes
    a step. With the least eigenvalue of the first matrix, which nothing of one feature needs, that
    is 102 releases of 100 rounds. Noise is mu times the sensitivity where 1 / mu belongs, and mu is
    that of the whole budget in each release, where it must be divided among all.
    """

    rounds = 100
    inverted, divided = True, False

    def release(self, X, y, rng):
        mu = Budget(self.epsilon, self.delta).mu
        mu = mu / sqrt(self.rounds + 2.0) if self.divided else mu
        scale = mu if self.inverted else 1.0 / mu
        square = X.T @ X + sqrt(2.0) * scale * rng.normal(size=(1, 1))
        theta, moments = np.zeros(X.shape[1]), []
        for _ in range(self.rounds):
            residuals = np.clip(y - X @ theta, -1.0, 1.0)
            moments.append(X.T @ residuals + 2.0 * scale * rng.normal(size=X.shape[1]))
            theta = theta + 1e-3 * np.clip(moments[-1], -1.0, 1.0)
        # What an attacker would compute: the mean of the rounds has a tenth of the noise of one
        return np.append(np.mean(moments), square)


class OneDivision(BoostedMoments):
    inverted = False


class TwoDivisions(OneDivision):
    divided = True


def boosted_moments(n_runs, mechanism=BoostedMoments, delta=0.1):
    pair = first_records(([1.0], 1.0), ([1.0], -1.0))
    return lower_bound(
        lambda seed: mechanism(seed, 0.5, delta), *pair, n_runs=n_runs, delta=delta
    ).epsilon


def boosted_exactly(epsilon=0.5, delta=1e-6, releases=102):
    """True epsilon of so many Gaussian releases, each with the mu of the whole budget."""
    return Budget.from_mu(Budget(epsilon, delta).mu * sqrt(releases), delta).epsilon


# %%
# diffprivlib's linear regression: bounds (0, b)


class OneBoundTwice(Released):
    """Second moment of one feature in (0, b): the lower bound stands where the upper belongs."""

    low, high = 0.0, 10.0

    def release(self, X, y, rng):
        sensitivity = max(abs(self.low), abs(self.low)) ** 2  # not max(|low|, |high|)
        total = float((np.clip(X[:, 0], self.low, self.high) ** 2).sum())
        return np.array([total + rng.laplace(scale=sensitivity / self.epsilon)])


def one_bound_twice(n_runs):
    pair = first_records(([3.0], 0.0), ([3.001], 0.0))
    return lower_bound(
        lambda seed: OneBoundTwice(seed), *pair, n_runs=n_runs, delta=1e-3,
        statistic=lambda model: model.released_,
    ).epsilon  # fmt: skip


# %%
# Binned aggregation: noise for one coordinate, on every coordinate


class PerCoordinate(Released):
    """Count, sum of y and sums of d features of a bin; mu^2 in parts of 9/28 (1/28 made the bins).

    Each feature's sum gets noise for its own range, with all of the features' part of the budget.
    """

    def release(self, X, y, rng):
        mu = Budget(self.epsilon, self.delta).mu * 3.0 / sqrt(28.0)
        inside = X.any(axis=1)
        sums = np.concatenate([[inside.sum()], [y[inside].sum()], X[inside].sum(axis=0)])
        return sums + rng.normal(size=len(sums)) / mu


def per_coordinate(n_runs, d=20, delta=0.1):
    pair = first_records((np.ones(d), 1.0), (np.zeros(d), 0.0))
    return lower_bound(
        lambda seed: PerCoordinate(seed, 1.0, delta), *pair, n_runs=n_runs, delta=delta
    ).epsilon


# %%
# TukeyEM: epsilon where 1 / epsilon belongs


class ReleasedCheck(Released):
    """The check before a release: a distance of sensitivity 1, plus noise, above a threshold."""

    def release(self, X, y, rng):
        distance = 10.0 + (X[:, 0] > 0.0).sum()
        return np.array([distance + rng.laplace(scale=self.epsilon) > 10.5], dtype=float)


def released_check(n_runs, epsilon=0.1):
    pair = first_records(([1.0], 0.0), ([-1.0], 0.0))
    return lower_bound(
        lambda seed: ReleasedCheck(seed, epsilon), *pair, n_runs=n_runs, delta=1e-6
    ).epsilon


# %%
# Shuffled reports: counts of clones, with the total variation as a parameter

FIRST = np.array([0.154216, 0.188001, 0.374947, 0.282836])
SECOND = np.array([0.531660, 0.068471, 0.243874, 0.155995])
N, EPSILON = 4, 1.205989


def divergence(first, second, epsilon):
    """Largest P(S) - e^epsilon Q(S), both ways, of two laws given as mappings."""
    ways = ((first, second), (second, first))
    return max(sum(max(0.0, p[k] - exp(epsilon) * q[k]) for k in p) for p, q in ways)


def clone_counts():
    """The delta that follows from counts of the two components alone."""
    p = max((FIRST / SECOND).max(), (SECOND / FIRST).max())
    part = np.maximum(SECOND - FIRST, 0.0).sum() / (p - 1.0)
    laws: tuple = ({}, {})
    for a, b in product(range(N), repeat=2):
        if a + b > N - 1:
            continue
        weight = stats.multinomial.pmf([a, b, N - 1 - a - b], N - 1, [part, part, 1 - 2 * part])
        hidden = 1.0 - (p + 1.0) * part
        for step, chances in (((1, 0), (p * part, part)), ((0, 1), (part, p * part)),
                              ((0, 0), (hidden, hidden))):  # fmt: skip
            counts = (a + step[0], b + step[1])
            for law, chance in zip(laws, chances, strict=True):
                law[counts] = law.get(counts, 0.0) + weight * chance
    return divergence(*laws, EPSILON)


def shuffled_reports():
    """The true delta: all shuffled reports, when the others all have the second input."""
    laws: tuple = ({}, {})
    for outcome in product(range(len(FIRST)), repeat=N):
        weight = np.prod(SECOND[list(outcome[1:])])
        histogram = tuple(np.bincount(outcome, minlength=len(FIRST)))
        for law, own in zip(laws, (FIRST, SECOND), strict=True):
            law[histogram] = law.get(histogram, 0.0) + weight * own[outcome[0]]
    return divergence(*laws, EPSILON)


# %%
# An accountant that adds up several currencies


def adaptive_currencies(epsilon=4.0, delta=1e-3, steps=8, ratio=0.7, draws=1_000_000):
    """True delta, divided by the claim, of Gaussian releases that stop when the loss is large.

    What is then left of epsilon is spent on one pure mechanism. Each total is within the budget at
    every time; which of the two currencies was used depends on what was released.
    """
    rng = np.random.RandomState(0)
    mus = Budget(epsilon, delta).mu * ratio ** np.arange(steps - 1.0, -1.0, -1.0)
    loss, live = np.zeros(draws), np.ones(draws, dtype=bool)
    for k, square in enumerate(np.diff(np.concatenate([[0.0], mus**2]))):
        running = np.flatnonzero(live)
        loss[running] += square / 2.0 + sqrt(square) * rng.normal(size=len(running))
        if k == steps - 1:
            break
        spent = Budget.from_mu(mus[k], delta).epsilon
        stopped, rest = running[loss[running] > spent], epsilon - spent
        right = rng.uniform(size=len(stopped)) < 1.0 / (1.0 + exp(-rest))
        loss[stopped] += np.where(right, rest, -rest)
        live[stopped] = False
    return float(np.mean(np.maximum(0.0, 1.0 - np.exp(epsilon - loss)))) / delta


# %%
# Online LinUCB under local privacy: two releases, each with the whole budget


def two_whole_budgets(epsilon, delta=1e-5):
    """True epsilon of x and y, each of sensitivity 2 with the classical Gaussian noise."""
    scale = 2.0 * sqrt(2.0 * log(1.25 / delta)) / epsilon
    return Budget.from_mu(2.0 * sqrt(2.0) / scale, delta).epsilon


AUDITS = {
    "LPLR, one-sided Wishart noise": ("epsilon 1", one_sided_wishart, "epsilon >= {:.2f}"),
    "LPLR, sensitivities of count and cross moment": (
        "epsilon 2/3", lambda n: layered_sensitivities(), "epsilon = {:.2f}"),
    "N-IHT, values of one step": ("delta 1e-5 at 1", lambda n: peeling(), "delta = {:.1e}"),
    "boosted AdaSSP, as released": ("epsilon 0.5", boosted_moments, "epsilon >= {:.2f}"),
    "the same after one division": (
        "epsilon 0.5", lambda n: boosted_moments(n, OneDivision), "epsilon >= {:.2f}"),
    "the same, of all 102 releases": (
        "epsilon 0.5", lambda n: boosted_exactly(), "epsilon = {:.1f}"),
    "the same after two divisions": (
        "epsilon 0.5", lambda n: boosted_moments(n, TwoDivisions), "epsilon >= {:.2f}"),
    "diffprivlib, bounds (0, b)": ("epsilon 1", one_bound_twice, "epsilon >= {:.2f}"),
    "binned aggregation, 20 features": ("epsilon 1", per_coordinate, "epsilon >= {:.2f}"),
    "TukeyEM, released check": ("epsilon 0.1", released_check, "epsilon >= {:.2f}"),
    "clones by counts": (
        f"delta {clone_counts():.1e}", lambda n: shuffled_reports(), "delta = {:.1e}"),
    "adaptive mixing of currencies": (
        "1 delta", lambda n: adaptive_currencies(), "{:.1f} delta"),
    "online LinUCB, two releases": (
        "epsilon 10", lambda n: two_whole_budgets(10.0), "epsilon = {:.1f}"),
}  # fmt: skip

if __name__ == "__main__":
    for name, (claim, audit, text) in AUDITS.items():
        print(f"{name:<48}{claim:<20}{text.format(audit(2000))}", flush=True)
