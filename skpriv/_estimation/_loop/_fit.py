"""What a fit of the loop has released, and what it knows of its own error."""

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any

import numpy as np

from ..._linalg import RELATIVE_ZERO
from .._intervals import USUAL_QUANTILE, two_sided_quantile
from .._persons import dependence
from ._estimate import certified_by_step
from ._estimate import (
    LEAST_ROBUST,
    MOSTLY,
    KnownMean,
    LoopEstimate,
    inversion_excess,
    noise_floor,
)
from ._links import IDENTITY

ALIKE = 1.25  # see `LoopFit.recent_equations`
FUNCTION, FITTED, LEAST_SQUARES = "function", "fitted", "least_squares"
PERSONS_CUT = (
    "method='certified' needs the score of every row as it is, and those of a person with several "
    "rows are cut together at a released length: pass method='asymptotic', fit with "
    "max_rows_per_group=1, or use SSPRegressor, whose certified intervals hold for persons."
)


@dataclass(frozen=True, eq=False)
class LoopFit:
    """All that a fit has released: its linear part is m + x'b for whitened points x = W phi.

    Attributes
    ----------
    location : float
        m, in scaled units.
    W : ndarray of shape (p, p)
        The whitening.
    b : ndarray of shape (p,)
    variance : float
        Residual variance, in scaled units.
    gram : ndarray of shape (p, p)
        Slope of the scores, pooled over all releases; positive semi-definite.
    equations : tuple of ScoreEquation
        Empty where only the mean was released. The last one has a residual Gram.
    line : Line or None
        Equation of the same rows without weights or clips, asked at b: the least-squares line's.
    same_rows : bool
        Whether all equations are of the same records (else of disjoint ones).
    n : int
        Number of records of the fit.
    effective_records : float, default=inf
        The effective sample size N.
    mean : KnownMean, default=None
        What is known of the mean of the fit beside its steps.
    link : MeanLink
    rows_per_record : int
        Rows that a record may have: more than one if it is a person.
    degrees : float or None
        Factor of the sampling covariance by degrees of freedom; None is n / (n - p).
    clipped : tuple or None
        Parts of the rows outside of all bounds, and of those of each feature, and the noise of the
        first; None if it was not asked.
    """

    location: float
    W: np.ndarray
    b: np.ndarray
    variance: float
    gram: np.ndarray
    equations: tuple
    line: Any
    same_rows: bool
    n: int
    effective_records: float = inf
    mean: KnownMean | None = None
    link: Any = IDENTITY
    rows_per_record: int = 1
    degrees: float | None = None
    clipped: tuple | None = None

    @property
    def theta(self):
        """W'b, shape (p,): the linear part is m + phi'theta."""
        return self.W.T @ self.b

    @property
    def last(self):
        """The last equation: the one of the largest share."""
        return self.equations[-1]

    def points(self, phi):
        """Whitened points of rows phi."""
        return phi @ self.W.T

    def leverage(self, rows):
        """Part of the weight of all rows, in its direction, that one inside of its bounds can have.

        None where there is no least-squares line, or where all is exact.
        """
        if self.line is None or not hasattr(rows, "longest_row") or not self.last.slope_scale:
            return None
        typical = self.last.n * float(np.trace(self.gram)) / len(self.b)
        return rows.longest_row(self.W) ** 2 / max(typical, 1e-300)

    def pooled(self, kind):
        """Slope of the equations that intervals rest on, its scale, and they with their weights."""
        used, shares = self.recent_equations()
        if kind == LEAST_SQUARES and self.line is not None:
            slope, scale, _, _ = self.pooled(FITTED)
            asked = replace(self.line.equation, slope=slope, slope_scale=scale)
            return slope, scale, (asked,), np.ones(1)
        slope = np.tensordot(shares, [eq.slope for eq in used], 1)
        return slope, float(np.sqrt(shares**2 @ [eq.slope_scale**2 for eq in used])), used, shares

    def first_slope(self):
        """Slope of all equations but the last one, and the scale of its noise."""
        others = [eq for eq in self.equations[:-1] if eq.slope is not None] or [self.last]
        precision = np.array([eq.slope_scale**-2.0 if eq.slope_scale else 1.0 for eq in others])
        mean = np.tensordot(precision / precision.sum(), [eq.slope for eq in others], 1)
        return mean, float(precision.sum() ** -0.5) if others[0].slope_scale else 0.0

    def recent_equations(self):
        """Equations that intervals rest on, with weights that add up to one.

        Those with a slope that all records were asked near the end of the loop, at about the same
        limit: of a part of the records sampling is another, and of a point that is further away
        than its own noise, the slope is not that of the others where scores are clipped or a link
        bends.
        """
        level = max(float(np.trace(self.gram)) / len(self.b), 1e-300)
        used = []
        for eq in self.equations[:-1]:
            away, size = self.last.point - eq.point, len(self.b) / level
            close = float(away @ self.gram @ away) <= eq.moment_scale**2 * size
            ends = eq.cut_length, self.last.cut_length
            alike = max(ends) <= ALIKE * min(ends)
            whole = eq.slope is not None and (not self.same_rows or eq.n == self.last.n)
            if close and alike and whole and bool(eq.fall) == bool(self.last.fall):
                used.append(eq)
        used.append(self.last)
        precision = np.array([eq.moment_scale**-2.0 if eq.moment_scale else 1.0 for eq in used])
        return used, precision / precision.sum()

    def estimate(self, points, kind=FUNCTION, confidence_level=0.95):
        """Estimate of x'b* without shrinkage, and what its errors are made of.

        With shares a that no answer decides, slopes D = sum a_k D_k and v = D^-1 x, the solution of
        sum a_k (z_k + D_k b_k) = D b has the error

            x'b - x'b* = v' sum a_k (mean(e xi) + N_k + M_k (b_k - b*)),

        with xi the clipped noise of the target, and N_k and M_k the privacy noises of z_k and D_k.
        M_k is independent of b_k and of all N, so that each summand is normal given the past. In
        each direction u of D that is told from noise, the noise of the slope is inverted: see
        :func:`inversion_excess`. Where D is below its noise x'u u'(b* - b) is left over: whitened
        coordinates are of one size, and so the hidden ones are taken to be as large as all are in
        the mean, that being the most, too, which inversion adds to others. Noise turns u a little,
        so that x'u counts as no less than that of a row of usual length. A point that is mostly in
        such directions is not resolved, whatever is taken of their size.

        Of the mean of all records more is known: see :class:`KnownMean`. Where the link bends, the
        mean of the residuals weighs rows by their means and not by H, so that an error in a rare
        direction would pass for one of the mean: there the mean only has the bound on what clips do
        to it.

        Parameters
        ----------
        points : ndarray of shape (n_points, p)
        kind : {"function", "fitted", "least_squares"}, default="function"
            What b* is: of the function, whose mean is that of the target; the solution of the
            clipped scores of these very rows; or the least-squares line, by its own equation with
            the slope of the others. Of a link that bends that is the curve of maximum likelihood,
            with the slope H of its scores. Weights make the slope D of the others smaller, so that
            the step x = H^-1 z has x'Dx <= x'z: it lies in the ball around D^-1 z / 2 of radius
            |D^-1 z| / 2 in the norm of D. That centre is the estimate. The direction of the rest is
            not known, so that each of p has an equal part of the radius.
        confidence_level : float in (0, 1), default=0.95
            Level of the intervals, and where it is higher than that at which the noise of the
            slopes is inverted.

        Returns
        -------
        LoopEstimate
        """
        (slope, scale, used, shares), last = self.pooled(kind), self.last
        quantile = two_sided_quantile(confidence_level)
        largest = max(quantile, USUAL_QUANTILE)  # the noise of slopes that is inverted
        start = shares @ [eq.point for eq in used]
        right = sum(
            a * (eq.moment + eq.slope @ (eq.point - start))
            for a, eq in zip(shares, used, strict=True)
        )
        half = 0.5 if kind == LEAST_SQUARES and not self.link.linear else 1.0
        right = half * right
        values, vectors = np.linalg.eigh(slope)
        # Its inverse has a square
        floor = max(noise_floor(values, scale, largest), 1e-14 * float(values[-1]), 1e-150)
        held, hidden, moments = np.maximum(values, floor), values <= floor, vectors.T @ right
        solved, rotated = moments / held, points @ vectors
        step, dual = vectors @ solved, (rotated / held) @ vectors.T
        away = [start + step - eq.point for eq in used]
        # (N u) has covariance s^2 (|u|^2 I + u u') / 2 for GOE noise N
        along = [a * eq.slope_scale / sqrt(2.0) * u
                 for a, eq, u in zip(shares, used, away, strict=True)]  # fmt: skip
        noise = half**2 * float(shares**2 @ [eq.moment_scale**2 for eq in used])
        size = float(np.sqrt(np.mean((start + step) ** 2)))  # of a whitened coordinate
        asked = [eq for eq in used if eq.residual_gram is not None] or [last]
        precision = [eq.residual_scale**-2.0 if eq.residual_scale else 1.0 for eq in asked]
        residual_gram = np.average([eq.residual_gram for eq in asked], 0, precision)
        typical = max(last.square, 2.0 * last.square_scale)
        if not self.link.linear:  # variance of the target over the slope of its mean
            typical = max(float(np.trace(residual_gram)), 0.0) / (np.trace(self.gram) or 1.0)
        typical_gram = typical * self.gram
        if self.rows_per_record > 1:  # rows of a person that hardly depend on each other cancel out
            typical_gram *= dependence(residual_gram, typical_gram, self.rows_per_record)
        records = last.n
        if not self.same_rows:
            records = 1.0 / float(shares**2 @ [1.0 / eq.n for eq in used])
        across = 0.5 * scale**2 * (float(solved @ solved) + hidden.sum() * size**2)
        spread = noise + across + typical / records * values
        deviations, told = np.full(len(values), size), ~hidden
        excess = inversion_excess(values[told], moments[told], spread[told], scale, largest)
        deviations[told] = np.minimum(excess, size)
        lengths = np.linalg.norm(points, axis=1)[:, None]
        usual = np.maximum(values[hidden], scale) / max(float(np.trace(self.gram)), 1e-300)
        parts = [np.abs(rotated)]
        parts[0][:, hidden] = np.maximum(parts[0][:, hidden], lengths * np.sqrt(usual))
        parts[0] *= deviations
        noise += sum(float(u @ u) for u in along) + 0.5 * scale**2 * hidden.sum() * size**2
        shared, value = np.column_stack(along), points @ (start + step)
        if not self.link.linear:
            shared = np.column_stack([shared, _bend(slope, values, vectors, shares, away)])
        if kind == LEAST_SQUARES and self.line is not None:
            parts.append(self.line.uncertain(half * dual))
            if not self.link.linear:  # what is left of the radius beside its noise
                roots = np.sqrt(np.maximum(values, floor))
                square = float(step @ slope @ step) - noise * float((roots**-2.0).sum())
                radius = sqrt(max(square, 0.0) / len(values))
                parts.append(radius * rotated / roots)
        replies = dual
        if self.mean is not None and kind == FUNCTION:
            part = points @ self.mean.constant  # of the mean of all records
            deviation = self.mean.skew
            if self.link.linear:
                excess, reply, deviation = self.mean.excess(start + step, noise, shared)
                value, replies = value - excess * part, dual - np.outer(part, reply)
            parts.append(deviation * part)
        squares, lost = lengths**2, rotated[:, hidden] ** 2
        needed = floor / np.maximum(values[hidden], max(scale, 1e-300))
        weighed = lost > MOSTLY / len(values) * squares
        return LoopEstimate(
            missing=np.where(weighed, needed, 1.0).max(axis=1, initial=1.0),
            value=value,
            dual=dual,
            residual_gram=residual_gram,
            residual_scale=sum(precision) ** -0.5 if asked[-1].residual_scale else 0.0,
            typical_gram=typical_gram,
            records=records / self.degrees if self.degrees else max(records - len(values), 1.0),
            noise=noise,
            shared=np.column_stack([replies @ shared, *parts]),
            resolved=lost.sum(axis=1) <= MOSTLY * squares[:, 0],
            noise_dual=replies,
            least=LEAST_ROBUST / self.rows_per_record if last.moment_scale else RELATIVE_ZERO,
            quantile=quantile,
        )

    def interval(self, phi, confidence_level, method):
        """Centre and half-width at rows of features, in scaled units; infinite where not known.

        Parameters
        ----------
        phi : ndarray of shape (n_rows, p)
        confidence_level : float in (0, 1)
        method : {"asymptotic", "certified"}

        Returns
        -------
        (centre, half) : ndarrays of shape (n_rows,), or (n_rows, n_classes) of several classes

        Raises
        ------
        ValueError
            Of a certified interval where a person has several rows.
        """
        if method == "certified" and self.rows_per_record > 1:
            raise ValueError(PERSONS_CUT)
        if not self.equations:
            nothing = np.zeros((len(phi), *np.shape(self.location)))
            return nothing, nothing + np.inf
        if self.link.parts > 1:
            return self.link.interval(self, phi, confidence_level)
        points = self.points(phi)
        if method == "certified":
            centre, half = certified_by_step(self, points, confidence_level)
        else:
            centre, half = self.estimate(points, confidence_level=confidence_level).interval()
        return self.location + centre, half


def _bend(slope, values, vectors, shares, away):
    """Deviations of a moment by the bend of a link, shape (p, p), each independent of the others.

    At a distance d it is off by mean(e q) with |q| <= mu' (psi'd)^2 / 2, whose length is at most
    B = d'Hd / 2 for the slope H. In orthonormal functions sqrt(mu') e'H^-1/2 of the rows its
    coordinates are those of q / sqrt(mu'), of which the mean square is 3 B^2 / mean(mu') if psi'd
    is normal, and bounds the sum of theirs (Bessel). tr H is at most mean(mu'), and the direction
    is not known: each of p has an equal part.
    """
    most = 0.5 * float(shares @ [max(float(u @ slope @ u), 0.0) for u in away])
    most *= sqrt(min(1.0, 3.0 / len(values)))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return root * (most / max(float(np.linalg.norm(root)), 1e-150))
