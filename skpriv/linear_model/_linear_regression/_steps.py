"""The fit: location, whitening, first moments, two Newton steps, and the pool of all of them."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from ..._linalg import psd_part
from ..._equations._newton import NewtonEquation
from ._queries import (
    FirstMomentsQuery, LocationQuery, NewtonQuery, SpreadQuery, Whitened, WhiteningQuery,
)  # fmt: skip
from ._shrinkage import posterior_mean, shrunk_gram

EIGENVALUE_FLOOR = 0.1  # of the ridge of a whitening round
NORMAL = 1.25  # standard deviation of a normal variable over its mean deviation
SIGNAL = 2.0  # bound on tau^2, in units of the target's variance over the squared length
SMALLEST_VARIANCE = 1e-12


@dataclass
class Released:
    """What a fit has released.

    Attributes
    ----------
    location : float
        m, in scaled units.
    W : ndarray of shape (p, p)
        The whitening; the fitted function is m + phi'W'b.
    b : ndarray of shape (p,)
    variance : float
        Residual variance.
    newton : list of NewtonEquation
        Empty where only the mean was released.
    """

    location: float
    W: np.ndarray
    b: np.ndarray
    variance: float
    newton: list

    @property
    def theta(self):
        """W'b."""
        return self.W.T @ self.b


def fit_rows(session, rows, target, rules):
    """Ask the session for all that the rules plan, and solve.

    Parameters
    ----------
    session : Session
    rows : RowMap, or what stands in its place
    target : TargetMap
    rules : Rules

    Returns
    -------
    Released
    """
    if rules.mean_only:
        return _mean_only(session, rows, target)
    location, deviation = _location(session, target, rules)
    whitened = Whitened(rows, learn_whitening(session, rows, rules))
    limit = min(1.0 + abs(location), rules.target_clip * deviation)
    query = FirstMomentsQuery(whitened, target, location, limit)
    answer = session.sum(query, rules.moments)
    pool = Pool.of(*query.read(answer), answer.n, session.model)
    largest = SIGNAL * (deviation / rules.length) ** 2
    b, variance = pool.start(largest)
    newton = []
    for share in (rules.first, rules.last):
        clip = min(2.5, rules.clip * sqrt(variance))
        query = NewtonQuery(whitened, target, location, b, clip)
        equation = NewtonEquation.of(query, session.sum(query, share))
        newton.append(equation)
        b, variance = pool.add(equation, largest)
    return Released(location, whitened.W, b, variance, newton)


def _mean_only(session, rows, target):
    """The private mean with the whole budget; without an intercept nothing is asked."""
    location = 0.0
    if target.fit_intercept:
        answer = session.sum(LocationQuery(target), 1.0)
        location = float(np.clip(answer.value[0] / answer.n, -1.0, 1.0))
    return Released(location, np.eye(rows.size), np.zeros(rows.size), 1.0, [])


def _location(session, target, rules):
    """Noisy mean of the target, and its standard deviation if it were normal."""
    location = 0.0
    if rules.location:
        answer = session.sum(LocationQuery(target), rules.location)
        location = float(np.clip(answer.value[0] / answer.n, -1.0, 1.0))
    answer = session.sum(SpreadQuery(target, location), rules.spread)
    noise = answer.noise.scale / answer.n
    return location, NORMAL * max(float(answer.value[0]) / answer.n, 2.0 * noise, 1e-6)


def learn_whitening(session, rows, rules):
    """W such that W phi has about equal length in all directions that are above the noise."""
    p = rows.size
    W = np.eye(p)
    for _ in range(rules.rounds):
        query = WhiteningQuery(Whitened(rows, W))
        gram, scale = query.gram(session.sum(query, rules.whitening / rules.rounds))
        gram, weight = shrunk_gram(gram, scale)
        ridge = weight * scale * sqrt(2.0 * p)  # the operator norm that the noise would have
        values, vectors = np.linalg.eigh(gram + ridge * np.eye(p))
        values = np.maximum(values, max(EIGENVALUE_FLOOR * ridge, 1e-14 * values[-1]))
        W = (vectors * values**-0.5) @ vectors.T @ W
        W *= rules.length / sqrt(max((np.maximum(values - ridge, 0.0) / values).sum(), 1.0))
    return W


class Pool:
    """All released equations moment = gram (b* - point), pooled by the precision of their noise.

    The noise of the Gram matrix acts on b* - point, so that an equation counts the more the nearer
    it was expanded.
    """

    def __init__(self, n, model):
        self._n, self._model = n, model
        self._grams: list = []  # (matrix, scale)
        self._equations: list = []  # (moment, variance, point)
        self._b = np.zeros(0)

    @classmethod
    def of(cls, moment, gram, square, n, model):
        """Pool of the first moments."""
        pool = cls(n, model)
        pool._square = square
        pool._grams.append(gram)
        pool._equations.append((moment[0], moment[1] ** 2, np.zeros(len(moment[0]))))
        pool._b = np.zeros(len(moment[0]))
        return pool

    def gram(self):
        """Pooled Gram matrix, its noise scale, and its positive part after shrinkage."""
        weights = np.array([scale**-2.0 if scale else 1.0 for _, scale in self._grams])
        total = sum(w * gram for w, (gram, _) in zip(weights, self._grams, strict=True))
        scale = weights.sum() ** -0.5 if self._grams[0][1] else 0.0
        gram = total / weights.sum()
        return gram, scale, psd_part(shrunk_gram(gram, scale)[0])

    def start(self, largest):
        """Solution and residual variance from the first moments."""
        square, noise = self._square
        moment = self._equations[0][0]
        gram = self.gram()[2]
        floor = max(1e-6, noise)
        variance = float(np.clip(square, floor, 1.0))
        for _ in range(4):
            self._solve(variance, largest)
            b = self._b
            left = square - 2.0 * b @ moment + b @ gram @ b
            variance = float(np.clip(left, floor, 1.0))
        return self._b, variance

    def add(self, equation, largest):
        """Solution and residual variance with one more Newton equation."""
        if self._model in ("local", "shuffle"):
            self._n += equation.n
        self._grams.append((equation.gram, equation.gram_scale))
        self._equations.append((equation.moment, equation.moment_scale**2, equation.point))
        noise = equation.square_scale
        variance = max(equation.square, 2.0 * noise, SMALLEST_VARIANCE)
        for _ in range(3):
            self._solve(variance, largest)
        return self._b, variance

    def _solve(self, variance, largest):
        _, scale, gram = self.gram()
        weights, moments = [], []
        for moment, spread, point in self._equations:
            away = self._b - point
            error = spread + 0.75 * scale**2 * (away @ away)
            weights.append(1.0 / error if error else 1.0)
            moments.append(moment + gram @ point)
        weights = np.array(weights)
        pooled = (weights[:, None] * np.array(moments)).sum(axis=0) / weights.sum()
        self._b = posterior_mean(gram, pooled, variance / self._n, 1.0 / weights.sum(), largest)
