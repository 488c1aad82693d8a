"""What `IVRegressor` asks of the records, with the sensitivity of each joint release.

Rows phi have |phi| <= 1 and targets r lie in [-1, 1]. z are the coordinates of phi that are
instruments or exogenous, x those of the structural equation. Of a person all sums are over the m
places, each of which has a row or is empty.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from ..._estimation._loop._score import SIDE_WEIGHT
from ..._estimation._moments import SQUARE_WEIGHT
from ..._estimation._normal_equations import NormalEquations
from ..._estimation._persons import OfPersons, person_sums
from ..._linalg import SQRT2, add_gram, row_norms, unvech, vech, vech_size
from ...privacy import ROUNDING, Query


@dataclass(frozen=True, eq=False)
class AllMomentsQuery(Query):
    """Joint sum of (r phi, vech phi phi', sqrt(1.5) r^2): sensitivity 3 / sqrt(2).

    The proof is that of `MomentsQuery`, which knows other maps of rows.
    """

    rows: Any
    target: Any
    name: str = "moments"
    sensitivity: float = 3.0 / sqrt(2.0) * ROUNDING

    @property
    def shape(self):
        """Number of coordinates."""
        return (self.rows.size + vech_size(self.rows.size) + 1,)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        phi, r = self.rows.rows(X), self.target.scaled(y)
        gram, target = np.zeros((self.rows.size,) * 2, order="F"), r @ phi
        add_gram(gram, phi)
        return np.concatenate([target, vech(gram), [SQUARE_WEIGHT * (r @ r)]])

    def equations(self, answer):
        """The noisy normal equations of least squares."""
        p, scale = self.rows.size, answer.noise.scale
        design = unvech(answer.value[p:-1], p)
        square = float(answer.value[-1]) / SQUARE_WEIGHT
        noise = dict.fromkeys(("design_scale", "target_scale", "gram_scale"), scale)
        target = answer.value[:p]
        return NormalEquations(design, target, design, square, answer.n, True, **noise)


@dataclass(frozen=True, eq=False)
class InstrumentScoreQuery(OfPersons, Query):
    """Joint sum of (u, vech uu' / sqrt(2), c e x') with c = sqrt(1/8).

    Scores of rows are e s: e = w V z with w = min(1, 1 / |V z|), s = clip(r - x'theta, -R, R) / R.
    Weights depend on instruments and exogenous features alone, so that e stays an instrument.
    u is the sum of the scores of a person over m L, shortened to norm 1, and e x' is averaged over
    the places of the person: |u| <= 1 and |mean e x'| <= 1. Sensitivity sqrt(4 + 4 c^2): with
    t = -<u, u'> the first two move by at most |u|^2 + |u'|^2 + 2 t + (|u|^4 + |u'|^4 - 2 t^2) / 2,
    which increases in both norms, and in t up to 1, where it is 4; the third by at most (2 c)^2.
    Attained at e' = -e, s = s', x = x', all of norm 1.

    Parameters
    ----------
    rows : RowMap
    target : TargetMap
    exogenous, structural : ndarray of int
        Coordinates of phi that are z and x.
    V : ndarray of shape (q, q)
    theta : ndarray of shape (k,)
    limit : float
        R.
    length : float
        Part of m at which the sum of the scores of a person is cut; 1 cuts nothing.
    """

    rows: Any
    target: Any
    exogenous: np.ndarray
    structural: np.ndarray
    V: np.ndarray
    theta: np.ndarray
    limit: float
    length: float = 1.0
    name: str = "scores of instruments"
    sensitivity: float = 2.0 * sqrt(1.0 + SIDE_WEIGHT**2) * ROUNDING

    @property
    def shape(self):
        """Number of coordinates."""
        q = len(self.V)
        return (q + vech_size(q) + q * len(self.theta),)

    def score_rows(self, X, y):
        """Scores e s of the rows of a chunk."""
        return self._rows_of(X, y)[2]

    def _rows_of(self, X, y):
        """The instruments e, x and the scores e s."""
        phi = self.rows.rows(X)
        e, x = phi[:, self.exogenous] @ self.V.T, phi[:, self.structural]
        e /= np.maximum(row_norms(e), 1.0)[:, None]
        residual = self.target.scaled(y) - x @ self.theta
        s = np.clip(np.nan_to_num(residual / self.limit, nan=0.0), -1.0, 1.0)
        return e, x, e * s[:, None]

    def sum_persons(self, X, y, starts, largest):
        """Exact sum over a chunk of persons."""
        e, x, scores = self._rows_of(X, y)
        u = person_sums(scores, starts) / (largest * self.length)
        u /= np.maximum(row_norms(u), 1.0)[:, None]
        meat, moment = np.zeros((len(self.V),) * 2, order="F"), u.sum(axis=0)
        slope = SIDE_WEIGHT / largest * (e.T @ x)
        add_gram(meat, u)
        return np.concatenate([moment, vech(meat) / SQRT2, slope.ravel()])

    def read(self, answer):
        """The noisy moment, its covariance and the slope as sums over rows, each with its noise."""
        q, size, noise = len(self.V), vech_size(len(self.V)), answer.noise.scale
        unit = self.limit * self.length
        moment, meat, slope = np.split(answer.value, [q, q + size])
        return ScoreSums(
            moment=unit * moment,
            moment_scale=unit * noise,
            meat=unit**2 * SQRT2 * unvech(meat, q),
            meat_scale=unit**2 * SQRT2 * noise,
            slope=slope.reshape(q, -1) / SIDE_WEIGHT,
            slope_scale=noise / SIDE_WEIGHT,
        )


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Released sums of an answer, and the deviations of their noise."""

    moment: np.ndarray
    moment_scale: float
    meat: np.ndarray
    meat_scale: float
    slope: np.ndarray
    slope_scale: float
