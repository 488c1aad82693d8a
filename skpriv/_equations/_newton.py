"""A released Newton equation: what a linear fit knows of its own error."""

from dataclasses import dataclass

import numpy as np

from .._linalg import unvech, vech_size


@dataclass(frozen=True, eq=False)
class NewtonEquation:
    """Means over n records, released at a point b with residuals clipped at R.

    With rows e of norm at most 1, weights w and c = w (r - m) - e'b, all plus Gaussian noise of the
    given scale (GOE for matrices, independent of each other).

    Attributes
    ----------
    point : ndarray of shape (p,)
        b, released before.
    limit : float
        R.
    moment : ndarray of shape (p,)
        Mean of e clip(c, -R, R).
    gram : ndarray of shape (p, p)
        Mean of ee'.
    residual_gram : ndarray of shape (p, p)
        Mean of ee' clip(c)^2.
    square : float
        Mean of clip(c)^2.
    nearly_cut : float
        Part of the records with |c| at least .75 R.
    n : int
    moment_scale, gram_scale, residual_scale, square_scale, cut_scale : float
    """

    point: np.ndarray
    limit: float
    moment: np.ndarray
    gram: np.ndarray
    residual_gram: np.ndarray
    square: float
    nearly_cut: float
    n: int
    moment_scale: float
    gram_scale: float
    residual_scale: float
    square_scale: float
    cut_scale: float

    @classmethod
    def of(cls, query, answer):
        """Read the answer to a Newton query (its layout is in the query's docstring)."""
        p, limit, weight = len(query.point), query.limit, query.count_weight
        size = vech_size(p)
        value, scale = answer.value / answer.n, answer.noise.scale / answer.n
        return cls(
            point=query.point,
            limit=limit,
            moment=limit * value[:p],
            residual_gram=2.0 * limit**2 * unvech(value[p : p + size], p),
            gram=2.0 * unvech(value[p + size : p + 2 * size], p),
            square=limit**2 * float(value[-2]),
            nearly_cut=float(value[-1]) / weight,
            n=answer.n,
            moment_scale=limit * scale,
            gram_scale=2.0 * scale,
            residual_scale=2.0 * limit**2 * scale,
            square_scale=limit**2 * scale,
            cut_scale=scale / weight,
        )
