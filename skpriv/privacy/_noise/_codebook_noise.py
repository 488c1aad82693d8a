"""What the codebook channel adds to sums of lifted moments, and bounds on it."""

from dataclasses import dataclass
from functools import lru_cache
from math import log, sqrt
from typing import Any

import numpy as np

from .._accounting._cost import Cost
from ._codebook_law import Codebook
from ._codebook_reports import LiftedReports
from ._laws import Noise


@dataclass(frozen=True)
class CodebookNoise(Noise):
    """What the codebook channel adds to a sum of lifted moments, (sum r phi, sum phi phi').

    Each user sends one index about u = s (phi, sqrt(1 - phi'phi)), s = 1 or -1 with mean r. With f
    the direction of the index, f / c1 is unbiased for r phi and (f f' - I / D) / c2 + I / D for
    phi phi'. The two errors are dependent, and their sums have no closed law: bounds are for sums
    of independent bounded terms, and :meth:`variance` has the exact second moments.

    Parameters
    ----------
    code : Codebook
    reports : int, default=1
        Number of users in the sum.
    """

    code: Codebook
    reports: int = 1

    def cost(self, sensitivity: float) -> Cost:
        """Price of one report: epsilon, whatever the vectors."""
        return Cost.from_epsilon(self.code.epsilon)

    def summed(self, reports: Any) -> Any:
        """Law of the sum over this many times the users."""
        return CodebookNoise(self.code, self.reports * reports)

    def plus(self, other: Any) -> Any:
        """Law of the sum of independent sums over other users, by the same code."""
        return CodebookNoise(self.code, self.reports + other.reports)

    def collected(self, query: Any, rows: Any, users: Any, source: Any) -> Any:
        """Reports of these users, one index a user: no single draw can replace them.

        Parameters
        ----------
        query : Query
            A query with ``records(X, y)``: the rows phi and targets r of a chunk.
        rows : skpriv.records.Rows
            Rows that are on devices bring the reports that were collected.
        users : skpriv.records.Subset
        source : NoiseSource

        Returns
        -------
        LiftedReports
        """
        if hasattr(rows, "collect"):
            return rows.collect(query, self, users)

        def report(X, y):
            phi, r = query.records(X, y)
            return self.reported(phi, r, source).directions

        directions, start = np.empty((len(users), self.code.size)), 0
        for part in rows.each(report, users, self.code.size):
            directions[start : start + len(part)] = part
            start += len(part)
        return LiftedReports(directions, self.code)

    def reported(self, phi: Any, r: Any, source: Any) -> Any:
        """Reports of users with these rows and targets, one index each.

        Parameters
        ----------
        phi : ndarray of shape (n, size - 1)
        r : ndarray of shape (n,)
        source : NoiseSource

        Returns
        -------
        LiftedReports
        """
        records = np.column_stack([phi, r])
        return LiftedReports(source.lifted_reports(records, self.code), self.code)

    @property
    def scale(self) -> float:  # type: ignore[override]
        """Root mean square of an orthonormal coordinate of the noise of sum r phi."""
        return sqrt(self.reports * self.code.noise("vector"))

    @property
    def square_scale(self) -> float:
        """Root mean square of an orthonormal coordinate of the noise of sum phi phi'."""
        return sqrt(self.reports * self.code.noise("square"))

    def norm_bound(self, theta_norm: Any, failure: Any) -> float:
        """Bound on the norm of sum of b_i - A_i theta*, targets' noise included, up to this norm.

        b_i and A_i are a report's estimates of r phi and phi phi', and r has mean phi'theta*: the
        terms are independent, have mean zero given the rows, and bounded norm. Cauchy and Schwarz
        bound the mean of the norm of their sum, Klein and Rio (2005, Theorem 1.1) what exceeds it.
        """
        total, weak, bound = _term_bounds(self.code, float(theta_norm))
        tail, mean = log(1.0 / failure), sqrt(self.reports * total)
        variance = self.reports * weak + 2.0 * bound * mean
        first = 3.0 * bound * tail
        return mean + 0.5 * (first + sqrt(first**2 + 8.0 * tail * variance))

    def martingale_bound(self, theta_norm: Any, failure: Any) -> float:
        """`norm_bound` where rows are chosen by the reports of earlier users, as in a bandit.

        The terms are then martingale differences. Pinelis (1994, Theorem 3.3): with the sum of
        conditional mean squares at most B^2 and norms at most b, the norm of their sum reaches r
        with probability at most 2 exp(-r^2 / (2 (B^2 + b r / 3))).
        """
        total, _, bound = _term_bounds(self.code, float(theta_norm))
        first = log(2.0 / failure) * bound / 3.0
        return first + sqrt(first**2 + 2.0 * log(2.0 / failure) * self.reports * total)

    def __str__(self):
        return "codebook"


@lru_cache(maxsize=256)
def _term_bounds(code, theta_norm):
    """Largest mean square of |G| and of <x, G> for unit x, and |G|, of a term G = b - A theta.

    G = f / c1 - f z / c2 + k theta with z = f'theta and k = (1 / c2 - 1) / D. The largest over a
    grid of |theta| and of phi'theta, with a margin for the grid (polynomials of degree 4).
    """
    values = [
        _term_moments(code, norm, mean / norm if norm else 0.0)
        for norm in theta_norm * np.linspace(0.0, 1.0, 21)
        for mean in min(norm, 1.0) * np.linspace(0.0, 1.0, 21)
    ]
    total, weak = (max(column) for column in zip(*values, strict=True))
    k = (1.0 / code.contrast - 1.0) / code.size
    bound = 1.0 / code.mean + theta_norm / code.contrast + k * theta_norm  # |z| <= |theta|
    return 1.01 * total, 1.01 * weak, bound


def _term_moments(code, norm, cosine):
    """Sum of all but the least of the eigenvalues of E G G', and the largest, given the row.

    The coordinate of G that lifted the row is not used: its variance is at least the least
    eigenvalue. E G = 0 gives E G G' = E f f' (1 / c1 - z / c2)^2 - k^2 theta theta'. In coordinates
    along the lifted row, along the rest of theta, and beyond, f = (s t, sqrt(1 - t^2) w), s of mean
    phi'theta = norm cosine, and w has the moments of a uniform unit vector of D - 1 coordinates.
    """
    D, c1, c2 = code.size, code.mean, code.contrast
    t1, t2, t3, t4 = (code.moment(order) for order in (1, 2, 3, 4))
    mean, sine = norm * cosine, sqrt(max(1.0 - cosine**2, 0.0))
    two, four = 1.0 / (D - 1.0), 1.0 / ((D - 1.0) * (D + 1.0))
    y2, y4, xy2 = (1.0 - t2) * two, (1.0 - 2.0 * t2 + t4) * four, mean * (t1 - t3) * two
    x2y2 = (t2 - t4) * two
    cross, square = 2.0 * norm / (c1 * c2), (norm / c2) ** 2
    xx = t2 / c1**2 - cross * cosine * mean * t3 + square * (cosine**2 * t4 + sine**2 * x2y2)
    yy = y2 / c1**2 - cross * cosine * xy2 + square * (cosine**2 * x2y2 + 3.0 * sine**2 * y4)
    xy = -cross * sine * xy2 + square * 2.0 * cosine * sine * x2y2
    rest = y2 / c1**2 - cross * cosine * xy2 + square * (cosine**2 * x2y2 + sine**2 * y4)
    k2 = ((1.0 / c2 - 1.0) / D * norm) ** 2
    block = np.array([[xx, xy], [xy, yy]]) - k2 * np.outer((cosine, sine), (cosine, sine))
    values = np.append(np.linalg.eigvalsh(block), [rest] * (D - 2))
    return values.sum() - values.min(), values.max()
