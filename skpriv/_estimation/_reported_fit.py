"""A linear fit from lifted codebook reports, with intervals that assume no norm of theta*."""

from dataclasses import dataclass, replace
from math import sqrt
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from .._linalg import psd_part
from ._intervals import asymptotic, two_sided_quantile
from ._intervals import certified as with_norm
from ._reports import LiftedMomentsQuery, reached
from ._loop._estimate import MOSTLY, USUAL, LoopEstimate, noise_floor
from ._loop._links import IDENTITY
from ._normal_equations import NormalEquations, ridge_prior
from ._public_maps import FEATURE_LENGTH, TargetMap


def balanced(session, rows):
    """Rows whose features are the shorter the less the users can tell of slopes.

    With features of length t beside a constant of length 1, both in proportion to sqrt(1 + t^2),
    the noise of the mean is as 1 + t^2 and that of slopes as c (1 + 1 / t^2): least in all at
    t^2 = sqrt(c). Slopes that are shrunk lose no more than the S that they explain, whatever the
    variance L of their noise is, so that c falls as (S / (S + L))^2, and L falls as the reach N
    grows, as 1 / N^2: t^2 is in proportion to 1 / (1 + (M / N)^2), with L = S at N = M. The loop
    asks for slopes from `least_reach` on, and M is four times that: reports are of targets in their
    whole range, where the loop's residuals are clipped at about a quarter of it. Of half of that
    and nearly twice, neither was better (docs/evidence/linear_regression.md). N is of one number,
    since a device may not know how many features others have.

    Parameters
    ----------
    session : Session
    rows : RowMap
    """
    if not rows.fit_intercept:
        return rows
    noise = 4.0 * IDENTITY.least_reach / reached(session, 1)
    return replace(rows, feature_length=FEATURE_LENGTH / sqrt(1.0 + noise**2))


@dataclass(frozen=True, eq=False)
class MappedRecords:
    """Public maps of rows and targets as one: what a lifted query asks about.

    Parameters
    ----------
    row_map : RowMap, or what stands in its place
    target_map : TargetMap
    """

    row_map: Any
    target_map: TargetMap

    @property
    def size(self):
        """Length p of phi."""
        return self.row_map.size

    def rows(self, X):
        """Clipped phi of a chunk of rows."""
        return self.row_map.rows(X)

    def target(self, y):
        """Clipped r of a chunk of targets."""
        return self.target_map.scaled(y)

    def wire(self):
        """The maps as a public task has them."""
        rows = self.row_map
        if not hasattr(rows, "parts"):
            raise ValueError(
                "devices do not know these rows: only those of lines can be collected."
            )
        bounds: dict = {"data_norm": rows.data_norm}
        if rows.low is not None and rows.high is not None:
            bounds = {"low": rows.low.tolist(), "high": rows.high.tolist()}
        return {
            "n_features": rows.n_features,
            **bounds,
            "parts": list(rows.parts),
            "bounds_y": list(self.target_map.bounds_y),
            "fit_intercept": bool(rows.fit_intercept),
        }


@dataclass(frozen=True)
class ReportedFit:
    """Normal equations of reports and their solution, in scaled units.

    Attributes
    ----------
    equations : NormalEquations
        Their residual Gram is the sandwich of the reports, privacy noise included.
    theta : ndarray of shape (p,)
    norm : float or None
        Assumed bound on the norm of theta*, which intervals use; None assumes nothing.
    of_curves : bool
        Whether an asymptotic interval counts what lies in directions below the noise, as bands of
        curves do. Else it says nothing where there is such a direction.
    """

    equations: NormalEquations
    theta: np.ndarray
    norm: float | None = None
    of_curves: bool = False
    location: ClassVar[float] = 0.0

    @classmethod
    def of(cls, session, records, fit_intercept, priors=None, **options):
        """Ask all users of a session for one report each, and solve.

        Users are not spent on a location or a whitening: one answer of all of them has less noise
        than the best use of a part of them, unless reports are far more precise than devices' are.
        """
        query = LiftedMomentsQuery(records)
        answer = session.sum(query, 1.0)
        equations = query.equations(answer)
        theta = equations.solve_shrunk(priors or [ridge_prior(records.size, fit_intercept)])
        gram = answer.reports.error_gram(theta)
        return cls(replace(equations, residual_gram=gram), theta, **options)

    @property
    def last(self):
        """The equations, in place of a step's: their slope is a mean over records."""
        return SimpleNamespace(slope_scale=self.equations.gram_scale / self.equations.n,
                               n=self.equations.n)  # fmt: skip

    @property
    def W(self):
        """No whitening: phi itself."""
        return np.eye(len(self.theta))

    @property
    def gram(self):
        """Mean of phi phi', positive semi-definite."""
        return psd_part(self.equations.design / self.equations.n)

    def points(self, phi):
        """Whitened points of rows phi: the rows."""
        return phi

    def estimate(self, points, confidence_level=0.95):
        """Estimate of x'theta* without shrinkage, and its covariance: the sandwich of the reports.

        Directions below the noise of the design are held at it, and are not resolved. What a point
        has in them is an error too, with coordinates as large as all of theta are in the mean, and
        by the noise of the design one of all points.
        """
        eq, n = self.equations, self.equations.n
        quantile = two_sided_quantile(confidence_level)
        values, vectors = np.linalg.eigh(eq.design)
        floor = noise_floor(values, eq.design_scale, max(quantile, USUAL))
        rotated, hidden = points @ vectors, values <= floor
        dual = (rotated / np.maximum(values, floor)) @ vectors.T
        lost = (rotated[:, hidden] ** 2).sum(axis=1)
        mean = np.asarray(eq.residual_gram) / n
        away = np.full(hidden.sum(), sqrt(float(np.mean(self.theta**2))))
        return LoopEstimate(
            value=dual @ eq.target,
            dual=n * dual,
            residual_gram=mean,
            residual_scale=0.0,
            typical_gram=mean,
            records=n,
            noise=0.5 * (eq.design_scale / n) ** 2 * float(away @ away),
            shared=away * rotated[:, hidden],
            resolved=lost <= MOSTLY * (rotated**2).sum(axis=1),
            quantile=quantile,
        )

    def interval(self, phi, confidence_level, method):
        """Centre and half-width at rows of features; infinite where the reports tell nothing.

        "certified" bounds the norm of theta* by the reports themselves, or by what is assumed. For
        "asymptotic", with v = design^-1 x, no bound on theta* is needed: there is no remainder.
        """
        eq = self.equations
        if method == "certified":
            centre, half = with_norm(eq, phi, self.norm, confidence_level)
            known = np.isfinite(half)
            return np.where(known, centre, 0.0), np.where(known, half, np.inf)
        if self.of_curves:
            return self.estimate(phi, confidence_level).interval()
        if self.norm is not None:
            return asymptotic(eq, phi, self.theta, self.norm, confidence_level)
        values = np.linalg.eigvalsh(eq.design)
        if not values[0] > eq.design_scale * np.sqrt(2.0 * len(values)):  # the norm of noise alone
            return np.zeros(len(phi)), np.full(len(phi), np.inf)
        V = linalg.solve(eq.design, phi.T, assume_a="sym").T
        spread = np.sqrt(np.einsum("ij,ij->i", V @ eq.residual_gram, V))
        return V @ eq.target, two_sided_quantile(confidence_level) * spread
