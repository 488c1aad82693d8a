"""Counts and order statistics of prediction intervals."""

import numpy as np

from skpriv._linalg import row_products
from skpriv.linear_model._prediction_intervals import (
    Score, ScoreQuantiles, ScoreReports, ScoresWithin,
)  # fmt: skip

from .case import Case
from .linear import D, draw_theta, one

BOUNDS = (-1.0, 1.0)


class Line:
    """A released linear function, of any size; one that is nowhere a number, too."""

    def __init__(self, theta):
        self.theta = np.asarray(theta, dtype=float)

    def __call__(self, X):
        return row_products(X, self.theta)


def _bounds(rng):
    return [BOUNDS, (0.0, 1e-300), (-1e150, 1e150), (1e16, 1e16 + 4.0)][rng.randint(4)]


def _line(rng):
    return Line([np.zeros(D), draw_theta(D, rng), np.full(D, 1e308), np.full(D, np.nan)][
        rng.randint(4)
    ])  # fmt: skip


def _score(rng):
    return Score(_line(rng), _bounds(rng))


def _within(rng):
    score = _score(rng)
    values = rng.choice([0.0, 1e-300, 0.3, 1.0, score.top, np.inf], size=rng.randint(1, 6))
    return ScoresWithin(score, tuple((int(rng.choice([-1, 0, 1])), g) for g in values))


def _reports(rng):
    score = _score(rng)
    value = rng.choice([0.0, 1e-300, 0.3, 1.0, score.top, np.inf])
    return ScoreReports(score, ((int(rng.choice([-1, 0, 1])), float(value)),))


def _reported():
    """A record within the threshold, and one beyond it."""
    asked = ScoreReports(Score(Line(np.zeros(2)), BOUNDS), ((0, 0.2),))
    return asked, one(np.zeros(2), 0.0), one(np.zeros(2), 1.0)


def _quantiles(rng):
    ranks = tuple((int(rng.choice([-1, 0, 1])), int(rng.randint(1, 6))) for _ in range(3))
    return ScoreQuantiles(_score(rng), ranks[: rng.randint(1, 4)])


def _counted():
    """A record within all thresholds, and one beyond all."""
    asked = ScoresWithin(Score(Line(np.zeros(2)), BOUNDS), ((0, 0.2), (0, 0.3), (1, 0.5)))
    return asked, one(np.zeros(2), 0.0), one(np.zeros(2), 1.0)


def _ordered():
    """One record, whose target lies above by all of the range, or below."""
    asked = ScoreQuantiles(Score(Line([1.0, 0.0]), BOUNDS), ((1, 1), (-1, 1)))
    return asked, one([-1.0, 0.0], 1.0), one([1.0, 0.0], -1.0)


CASES = {
    ScoresWithin: Case(_within, (_counted,), unit=lambda asked: asked.score.bounds[1]),
    ScoreReports: Case(_reports, (_reported,), unit=lambda asked: asked.score.bounds[1]),
    ScoreQuantiles: Case(_quantiles, (_ordered,), n=6, unit=lambda asked: asked.score.bounds[1]),
}
