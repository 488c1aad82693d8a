"""An answer to the question of the loop, read: an equation with the scales of its noise."""

from dataclasses import dataclass
from functools import lru_cache
from math import inf, pi, sqrt
from typing import Any

import numpy as np
from scipy import special

from ..._linalg import RELATIVE_ZERO, unvech
from ._score import CUT, SIDE_WEIGHT

CUBE = 0.5 * CUT**3  # mean excess over the clip, in clips, of each that is counted: an inverse cube
SMALLEST_LIMIT = 0.5  # deviations: with residuals cut at fewer, their variance is not known


@dataclass(frozen=True, eq=False)
class ScoreEquation:
    """Means over n records, released at a point b with residuals clipped at R.

    With rows e of norm at most 1, weights w and c = w (r - mu(m + psi'b)), all plus Gaussian noise
    of the given scale (GOE for matrices, independent of each other).

    Attributes
    ----------
    point : ndarray of shape (p,)
        b, released before.
    limit : float
        R.
    moment : ndarray of shape (p,)
        Mean of e clip(c, -R, R); less fall e (|c| - R)_+ sign(c) where what is cut was asked.
    slope : ndarray of shape (p, p) or None
        Minus the derivative of that mean by b: of mu' ee' of the records that are not cut; None if
        it was not asked, and then its scale is infinite.
    square : float
        Mean of clip(c)^2.
    gram : ndarray of shape (p, p) or None
        Mean of ee', where it is known: for a line of which nothing is cut, or what is was asked.
    residual_gram : ndarray of shape (p, p) or None
        Mean of ee' clip(c)^2; None if it was not asked, and then the count is 0.
    nearly_cut : float
        Part of the records with |c| at least .75 R.
    most_excess : float or None
        Largest (|c| - R)_+ of any record, 0 where nothing can be cut; None if it was not asked.
    excess : float
        Mean of |e| (|c| - R)_+; 0 if it was not asked.
    fall : float
        The part by which a residual beyond R counts for less: 0 where it is clipped.
    n : int
    moment_scale, slope_scale, square_scale, gram_scale, residual_scale, cut_scale : float
    excess_scale : float
    widest : float
        Largest |r - m|.
    length : float
        Where records are persons: the part of their rows' scores at which the sum is cut.
    """

    point: np.ndarray
    limit: float
    moment: np.ndarray
    slope: Any
    square: float
    gram: np.ndarray | None
    residual_gram: np.ndarray | None
    nearly_cut: float
    most_excess: float | None
    excess: float
    fall: float
    n: int
    moment_scale: float
    slope_scale: float
    square_scale: float
    gram_scale: float
    residual_scale: float
    cut_scale: float
    excess_scale: float
    widest: float
    length: float = 1.0

    @property
    def reach(self):
        """Where scores are cut, in units of a residual: of a person, those of all rows together."""
        return self.limit * self.length

    @property
    def variance(self):
        """Residual variance, with what was cut if residuals are normal."""
        square = max(self.square, 2.0 * self.square_scale, RELATIVE_ZERO)
        if self.limit >= self.widest:
            return square
        return normal_clip(square, self.limit)[1]

    @classmethod
    def of(cls, query, answer):
        """Read the answer to a `ScoreQuery` (its layout is in the query's docstring)."""
        p, limit, rest = len(query.point), query.limit, answer.value / answer.n
        found = {}
        for name, size in query.parts.items():
            found[name], rest = rest[:size], rest[size:]
        unit = answer.noise.scale / answer.n
        one, slope_unit = query.link.steepest / query.slope_weight, query.link.steepest * unit
        slope, gram, slope_scale = None, None, inf
        if query.matrices:
            slope, slope_scale = one * unvech(found["slope"], p), one * unit
        gram_scale, fall, none = 0.0, 0.0, np.zeros(1)
        if query.most_excess is not None:
            gram, gram_scale = slope, slope_scale
        if query.asks_cut:
            fall = query.fall * limit / query.most_excess
            away = (1.0 + fall) / SIDE_WEIGHT
            counted = float(found["nearly_cut"][0]) if "nearly_cut" in found else 1.0
            most = (1.0 + fall) * (max(counted, 0.0) + unit) / query.count_weight
            cut, cut_noise = _shrunk(away * unvech(found["cut_rows"], p), away * slope_unit, most)
            slope, slope_scale = gram - cut, sqrt(slope_scale**2 + cut_noise**2)
        width = query.most_excess / query.excess_weight if query.asks_cut else 0.0
        asked = float("residual" in found)
        meat = query.residual_unit * unvech(found["residual"], p) if asked else None
        square_scale = limit**2 / query.square_weight
        square = square_scale * float(found.get("square", none)[0])
        if meat is not None and "square" not in found:
            square, square_scale = float(np.trace(meat)), query.residual_unit * sqrt(p)
        return cls(
            point=query.point,
            limit=limit,
            moment=query.unit * found["moment"],
            slope=slope,
            square=square,
            gram=gram,
            residual_gram=meat,
            nearly_cut=float(found.get("nearly_cut", none)[0]) / query.count_weight,
            most_excess=query.most_excess,
            excess=float(found.get("excess", none)[0]) * width,
            fall=fall,
            n=answer.n,
            moment_scale=query.unit * unit,
            slope_scale=slope_scale,
            square_scale=square_scale * unit,
            gram_scale=gram_scale,
            residual_scale=query.residual_unit * unit * asked,
            cut_scale=unit / query.count_weight * asked * query.link.counts,
            excess_scale=unit * width,
            widest=1.0 + abs(query.location) if query.link.linear else 1.0,
            length=getattr(query, "length", 1.0),
        )


def _shrunk(matrix, scale, most):
    """A noisy matrix of size at most ``most``, shrunk to 0, and the deviation of its error.

    With b its Frobenius norm, of a direction that has all of it the weight b^2 / (b^2 + s^2) has
    the least mean squared error, which is s^2 times the weight. In no direction is it more, so that
    rows which are cut in one direction alone are no worse than is said. b is known from the bound,
    and from what the matrix has beyond its noise, a chi-squared variable.

    Parameters
    ----------
    matrix : ndarray of shape (p, p)
        A matrix plus GOE(scale).
    scale : float
        s.
    most : float
        Bound on the Frobenius norm.
    """
    if not scale:
        return matrix, 0.0
    size = len(matrix) * (len(matrix) + 1) / 2.0
    found = float((matrix**2).sum()) - size * scale**2
    square = min(max(found, 0.0) + scale**2 * sqrt(2.0 * size), most**2)
    weight = square / (square + scale**2)
    return weight * matrix, sqrt(weight) * scale


def normal_clip(square, limit):
    """Part of the residuals within the limit, and their variance, if they are normal.

    Parameters
    ----------
    square : float
        Mean of the squares of residuals clipped at the limit.
    limit : float

    Returns
    -------
    (part, variance)
    """
    deviations, squares = _clipped_squares()
    ratio = square / limit**2
    if ratio <= squares[-1]:
        return 1.0, square
    k = float(np.interp(-ratio, -squares, deviations))
    return float(1.0 - 2.0 * special.ndtr(-k)), (limit / k) ** 2


@lru_cache(maxsize=1)
def _clipped_squares():
    """Limits k in deviations of a normal z, and E min(z^2, k^2) / k^2, which decreases."""
    k = np.geomspace(SMALLEST_LIMIT, 8.0, 400)
    tail, density = special.ndtr(-k), np.exp(-(k**2) / 2.0) / sqrt(2.0 * pi)
    return k, (1.0 - 2.0 * tail - 2.0 * k * density) / k**2 + 2.0 * tail
