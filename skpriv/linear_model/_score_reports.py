"""Counts of scores by randomised response: each user sends one bit, about one threshold.

For prediction intervals of users who trust nobody, with delta = 0. The search is that of
``_prediction_intervals.py``; every count of it has users of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import inf, sqrt

import numpy as np

from .._estimation._conformal import ResponseTarget, response_depth, search_slots
from ..privacy import ROUNDING, NoiseSource, Query, ResponseNoise, split


def _truth(epsilon):
    """Probability of a true report: of those of two levels, for the shuffler."""
    return ResponseNoise(epsilon).truth


@dataclass(frozen=True, eq=False)
class ScoreReports(Query):
    """Number of records whose score is at most a threshold, from one random bit of each user.

    A record adds 0 or 1: replacing it moves the number by at most 1, attained. What a user pays is
    that of the bit, epsilon, whatever the record is (:class:`skpriv.privacy.ResponseNoise`).

    Parameters
    ----------
    score : Score
    side : {-1, 0, 1}
    threshold : float
    """

    score: Callable
    side: int
    threshold: float
    name: str = "scores within"
    shape: tuple = (1,)
    sensitivity: float = ROUNDING
    takes_sparse = True  # the function is linear in the rows
    likely = staticmethod(_truth)

    def bits(self, X, y):
        """Whether the score of each row of a chunk is within the threshold; never for NaN."""
        return np.asarray(self.score(X, y, self.side) <= self.threshold)

    def sum(self, X, y):
        """Exact number of a chunk of rows."""
        return np.array([np.sum(self.bits(X, y), dtype=float)])

    def local_noise(self, budget):
        """Law of one report; only epsilon counts."""
        return ResponseNoise(budget.epsilon)

    def randomize(self, x, y, budget, rng=None):
        """Bit of one user, 0 or 1: the code that a user's own device runs."""
        X = np.asarray(x, dtype=float).reshape(1, -1)
        bits = self.bits(X, np.asarray([y], dtype=float))
        return self.local_noise(budget).sent(bits, NoiseSource(rng)).astype(float)


@lru_cache(maxsize=256)
def _target(law, depth, alpha):
    """The T of one search, of public numbers."""
    return ResponseTarget([law] * depth)(alpha)


def response_targets(session, score, alphas, sides):
    """What estimated shares are compared with, and the depth of the search: public numbers.

    Returns
    -------
    (targets, depth) : list of float and int
        Infinite targets if the users are too few, or their bits say nothing.
    """

    def places(depth):
        return len(sides) * sum(search_slots(depth, len(alphas)))

    asked, n = ScoreReports(score, 0, 0.0), session.n
    law = session.noise(asked, 1.0)
    if not law.gain:
        return [inf], 0
    depth = response_depth(n, min(alphas), places, law.scale / sqrt(n))
    if not depth:
        return [inf], 0
    law = session.noise(asked, (n // places(depth) + 0.5) / n)  # of this many users
    return [_target(law, depth, alpha) for alpha in alphas], depth


def response_counts(session, score, places):
    """Function that asks users who were not asked before about each of some thresholds.

    Parameters
    ----------
    session : Session or Part
    score : Score
    places : int
        Number of thresholds in all. Each has the same number of users; fewer than ``places`` are
        left over, and not asked.

    Returns
    -------
    callable ``ask(thresholds)``
        Estimated shares of scores within each (side, threshold).
    """
    parts = iter(split(session, *[session.n // places] * places))

    def ask(thresholds):
        asked = (ScoreReports(score, side, value) for side, value in thresholds)
        answers = [next(parts).sum(query, 1.0) for query in asked]
        return np.array([answer.value[0] / answer.n for answer in answers])

    return ask
