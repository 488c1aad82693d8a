"""The question of the loop where a record is a person: scores are added up over rows, then cut."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from ..._linalg import SQRT2, add_gram, row_norms, vech
from ...privacy import ROUNDING
from .._persons import OfPersons, person_sums
from ._score import CUT, SIDE_WEIGHT, ScoreQuery


@dataclass(frozen=True, eq=False)
class PersonScoreQuery(OfPersons, ScoreQuery):
    """Joint sum of (u, c h ee', q s^2, uu' / sqrt(2), k J) over persons.

    u is the sum of the scores e s of a person over m L, shortened to norm 1, and all but u and uu'
    are means over the m places of the person. The squared sensitivity is 4 + 2 c^2 + q^2 + k^2
    for c = q = k = sqrt(1/8): 4.5, for noise that is 6% larger. Proof. With t = -<u, u'>, u and
    uu' / sqrt(2) move by at most |u|^2 + |u'|^2 + 2 t + (|u|^4 + |u'|^4 - 2 t^2) / 2 squared, which
    increases in both norms, and then in t up to 1, where it is 4. The means A of h ee' are positive
    semi-definite of trace at most 1, so that <A, A'> >= 0 and |A - A'|^2 <= 2. The means of s^2 and
    J are in [0, 1].

    Parameters
    ----------
    length : float
        L: the part of m at which the sum of the scores of a person is cut; 1 cuts nothing.
    """

    length: float = 1.0
    name: str = "scores of persons"

    @property
    def sensitivity(self):
        """Declared sensitivity."""
        return sqrt(4.0 + 4.0 * SIDE_WEIGHT**2) * ROUNDING

    slope_weight = SIDE_WEIGHT
    square_weight = SIDE_WEIGHT
    count_weight = SIDE_WEIGHT
    asks_cut = False

    @property
    def unit(self):
        """What a score of norm 1 stands for."""
        return self.limit * self.length

    @property
    def residual_unit(self):
        """What the entries of the residual Gram stand for."""
        return SQRT2 * self.unit**2

    def score_rows(self, X, y):
        """Rows e s of a chunk."""
        return self._summed(X, y)[0]

    def _summed(self, X, y):
        """Rows e s of a chunk and the slope matrix, mean square and counts of its rows."""
        slope, numbers = self.whitened.empty_gram(), np.zeros(2)
        scores = [np.empty((0, len(slope)))]
        for e, s, h, *_ in self.scores(X, y):
            add_gram(slope, e * np.sqrt(h)[:, None])
            numbers += s @ s, np.count_nonzero(np.abs(s) >= CUT)
            scores.append(e * s[:, None])
        return np.vstack(scores), slope, numbers

    def sum_persons(self, X, y, starts, largest):
        """Exact sum over a chunk of persons."""
        scores, slope, numbers = self._summed(X, y)
        u = person_sums(scores, starts) / (largest * self.length)
        u /= np.maximum(row_norms(u), 1.0)[:, None]
        sums = {"moment": u.sum(axis=0), "slope": SIDE_WEIGHT / largest * vech(slope)}
        for name, value in zip(("square", "nearly_cut"), numbers, strict=True):
            sums[name] = [SIDE_WEIGHT / largest * value]
        if self.sandwich:
            meat = self.whitened.empty_gram()
            add_gram(meat, u)
            sums["residual"] = vech(meat) / SQRT2
        return np.concatenate([sums[name] for name in self.parts])
