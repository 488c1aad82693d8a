"""A linear fit whose second moments users report, one codebook index each, and its intervals.

The intervals assume no norm of theta*.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from math import inf, sqrt
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._linalg import psd_part, trace_of, vech
from .._stored import frozen, stored, stored_in_policies
from ..exceptions import PrivacyError
from ..privacy import (
    ROUNDING, TYPICAL_NORM, Answer, Budget, Capabilities, Codebook, CodebookNoise,
    LiftedReports, Query, Session, adds_up_gaussians, amplified, amplified_epsilon,
    best_codebook,
)  # fmt: skip
from ._cells import Across, Cells, moved
from ._coefficients import equations_law
from ._intervals import asymptotic_interval, certified_by_norm
from ._levels import USUAL_QUANTILE
from ._loop._law import LoopLaw
from ._moments import MomentsQuery, NormalEquations, ridge_prior
from ._public_maps import FEATURE_LENGTH, RowMap
from ._released import Released

if TYPE_CHECKING:
    from ._coefficients import CoefficientLaw
    from ._public_maps import RecordMap
    from ..privacy import SessionPart
    from .._contracts import Array


@lru_cache(maxsize=256)
def _likely(size: int, use: str) -> Callable[..., Any]:
    """One function for each size and use, so that what is computed by it is found again."""
    return lambda epsilon: best_codebook(size, epsilon, use).probability


@stored_in_policies
@frozen
class LiftedMomentsQuery(Query):
    """Joint sum of (r phi, vech phi phi', 1), reported by the index of a codebook.

    Each user reports about s (phi, sqrt(1 - |phi|^2)), where s = 1 or -1 has mean r: the report
    serves both moments, and costs epsilon whatever the record is. Its target is the sign, whose
    square is 1: that of r is not asked for. As a sum of vectors the sensitivity is 3 / sqrt(2), as
    for MomentsQuery, whose maximum at |r| = |r'| = 1 needs no third coordinate.
    """

    maps: "RecordMap"
    name = "lifted moments"
    sensitivity = 3.0 / sqrt(2.0) * ROUNDING
    use = "moments"  # what the code is best for

    blocks = 1
    shape = MomentsQuery.shape

    def records(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows phi of norm at most 1 and targets r in [-1, 1] of a chunk, what users report about.

        Returns
        -------
        (phi, r) : ndarrays of shape (n_rows, p) and (n_rows,)
        """
        return self.maps.records(X, y)

    def sum(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Exact sum over a chunk of rows."""
        phi, r = self.records(X, y)
        return np.concatenate([phi.T @ r, vech(phi.T @ phi), [len(r)]])

    def summed(self, reports: "LiftedReports") -> "Array":
        """Estimate of the sum from users' reports."""
        return reports.moments()

    def local_noise(self, budget: "Budget") -> CodebookNoise:
        """Law of one report; only epsilon counts."""
        code = best_codebook(self.maps.size + 1, budget.epsilon, self.use)
        if code.noise(self.use) == inf:
            raise PrivacyError(
                f"epsilon={budget.epsilon} is so small that a report would tell nothing at all: "
                "its weights, of 40 bits, are equal."
            )
        return CodebookNoise(code)

    @property
    def likely(self) -> Callable[..., Any]:
        """Probability of a report's likely values, by epsilon: what shuffling amplifies by."""
        return _likely(self.maps.size + 1, self.use)

    def wire(self) -> Any:
        """The query as a public task has it, for devices."""
        return {"name": LiftedMomentsQuery.name, **self.maps.wire()}

    def equations(self, answer: "Answer") -> NormalEquations:
        """Normal equations of an answer.

        The signs stand for the targets: their residual variance is at most 1. The public entry of
        the intercept stays as it was reported, since the bound is on the reports' joint error.
        """
        found = NormalEquations.of_moments(answer, self.maps.size, 1.0)
        noise: Any = answer.noise
        scale = noise.square_scale
        square = float(answer.n)  # each lifted record has the length 1
        return replace(found, design_scale=scale, gram_scale=scale, square=square, law=noise)


def effective_reports(session: "Session | SessionPart", size: int) -> float:
    """Records over the noise of a sum of sensitivity 1 that would serve as well as reports do.

    Gaussian noise is that of the joint moments, of sensitivity 3 / sqrt(2).
    """
    rows: Any = SimpleNamespace(size=size)  # of these the length alone is known
    noise = session.noise(LiftedMomentsQuery(rows), 1.0)
    return 3.0 / sqrt(2.0) * sqrt(noise.reports / noise.code.noise("moments"))


def effective_by_channel(can: Capabilities, size: int, budget: Budget, n: int) -> dict[str, float]:
    """Records over the noise of a sum of sensitivity 1, for each channel, by public numbers.

    Parameters
    ----------
    can : Capabilities
        Capabilities of a model in which users send reports.
    size : int
        Length of rows.
    budget : Budget
    n : int
        Number of users.

    Returns
    -------
    dict of float, by "codebook" and "gaussian"
    """
    code, additive = _reports(can, size, budget, n, "moments")
    return {
        "codebook": 3.0 / sqrt(2.0) * sqrt(n / code.noise("moments")),
        "gaussian": sqrt(n) * additive,
    }


def _reports(
    can: "Capabilities", size: int, budget: "Budget", n: int, use: str
) -> "tuple[Codebook, float]":
    """The codebook of the reports of n users, and the mu of their Gaussian ones."""
    pure = budget.epsilon
    additive = budget.mu
    if can.amplifies:
        pure = amplified_epsilon(budget, n, _likely(size + 1, use))
        additive = amplified(budget, n).mu
    return best_codebook(size + 1, pure, use), additive


def moments_query(maps: "RecordMap", channel: str) -> Query:
    """Query of the second moments for a channel, "gaussian" or "codebook"."""
    return LiftedMomentsQuery(maps) if channel == "codebook" else MomentsQuery(maps)


def best_channel(
    can: "Capabilities", size: int, budget: "Budget", n: int, use: str = "moments"
) -> str:
    """Channel of the smaller noise of N_b - N_A theta* for rows of this length: public numbers.

    For the use "vector", of the sum of r phi alone.

    An accountant that adds up mu^2 or rho pays more for a pure report of epsilon than for Gaussian
    noise of (epsilon, delta): under one it is "gaussian", unless delta is 0.

    Parameters
    ----------
    can : Capabilities
        Capabilities of a model in which users send reports.
    size : int
        Length of rows.
    budget : Budget
        The guarantee that is asked for.
    n : int
        Number of users.
    use : {"moments", "vector"}

    Returns
    -------
    {"codebook", "gaussian"}
    """
    if not budget.mu > 0.0:
        return "codebook"
    if can.alone and adds_up_gaussians():
        return "gaussian"
    noises = report_noises(can, size, budget, n, use)
    return min(noises, key=noises.__getitem__)


def report_noises(
    can: "Capabilities", size: int, budget: "Budget", n: int, use: str = "moments"
) -> dict[str, float]:
    """Variances by which `best_channel` chooses: of a coordinate, for one user and each channel."""
    code, additive = _reports(can, size, budget, n, use)
    # the coin that rounds a target to a sign adds at most 1 / D to the variance of a coordinate
    lifted = code.noise(use) + 1.0 / code.size
    gaussian = (2.0 / additive) ** 2 if additive else inf
    if use == "moments":
        gaussian *= 9.0 / 8.0 * (1.0 + TYPICAL_NORM**2 / 2.0)
    return {"codebook": lifted, "gaussian": gaussian}


# N at which the slopes of reports have as much variance as they explain: see `balanced`.
EVEN_RECORDS = 400.0


def balanced(session: "Session | SessionPart", rows: "RowMap") -> "RowMap":
    """Rows whose features are the shorter the less the users can tell of slopes.

    With features of length t beside a constant of length 1, both in proportion to sqrt(1 + t^2),
    the noise of the mean is as 1 + t^2 and that of slopes as c (1 + 1 / t^2): least in all at t^2 =
    sqrt(c). Slopes that are shrunk lose no more than the S that they explain, whatever the variance
    L of their noise is, so that c falls as (S / (S + L))^2, and L falls as the effective records N
    grow, as 1 / N^2: t^2 is in proportion to 1 / (1 + (M / N)^2), with L = S at N = M. Neither
    half of this M nor nearly twice was better (docs/evidence/linear_regression.md). N is of one
    number, since a device may not know how many features others have.

    Parameters
    ----------
    session : Session
    rows : RowMap
    """
    if not rows.fit_intercept:
        return rows
    noise = EVEN_RECORDS / effective_reports(session, 1)
    return replace(rows, feature_length=FEATURE_LENGTH / sqrt(1.0 + noise**2))


@stored
@frozen
class ReportedFit(Released):
    """Normal equations of reports and their solution, in scaled units.

    Attributes
    ----------
    equations : NormalEquations
        Their residual Gram is the sandwich of the reports, privacy noise included.
    theta : ndarray of shape (p,)
    norm : float or None
        Assumed bound on the norm of theta*, which intervals use; None assumes nothing.
    """

    equations: NormalEquations
    theta: np.ndarray
    norm: float | None = None
    location = 0.0
    variance = 0.0  # which signs of targets do not tell

    @classmethod
    def of(
        cls,
        session: "Session | SessionPart",
        records: "RecordMap",
        fit_intercept: bool,
        priors: Any = None,
        norm: float | None = None,
    ) -> "ReportedFit":
        """Ask all users of a session for one report each, and solve.

        Users are not spent on a location or a whitening: one answer of all of them has less noise
        than the best use of a part of them, unless reports are far more precise than devices' are.
        """
        query = LiftedMomentsQuery(records)
        answer: Any = session.sum(query, 1.0)
        equations = query.equations(answer)
        priors = priors or [ridge_prior(records.size, fit_intercept)]
        theta, _ = equations.posterior(priors, fading=True)
        return cls(replace(equations, residual_gram=answer.reports.error_gram(theta)), theta, norm)

    def knowing(self, cells: Cells) -> Released:
        """The same fit where public cells of the table are known, as directions of theta."""
        return replace(self, equations=replace(self.equations, cells=cells))

    @property
    def last(self) -> Any:
        """The equations, in place of a step's: their slope is a mean over records."""
        return SimpleNamespace(slope_scale=self.equations.gram_scale / self.equations.n,
                               n=self.equations.n)  # fmt: skip

    @property
    def W(self) -> np.ndarray:
        """No whitening: phi itself."""
        return np.eye(len(self.theta))

    @property
    def gram(self) -> "Array":
        """Mean of phi phi', positive semi-definite."""
        return psd_part(self.equations.design / self.equations.n)

    def points(self, phi: np.ndarray) -> Any:
        """Whitened points of rows phi: the rows."""
        return phi

    def law(self) -> LoopLaw:
        """Law of estimates of x'theta* without shrinkage, by the sandwich of the reports.

        Directions below the noise of the design are held at it, and are not resolved. The part of a
        point in them is an error too, with coordinates as large as those of theta in the others are
        in the mean, and by the noise of the design one of all points.
        """
        eq = self.equations
        n = eq.n
        cells = eq.cells or Cells.none(len(eq.target))
        across_cells = Across.of(eq.design, eq.design_scale, cells, USUAL_QUANTILE)
        values = across_cells.values
        vectors = across_cells.vectors
        hidden = values <= across_cells.floor
        dual = vectors / np.maximum(values, across_cells.floor)
        solution = dual @ (vectors.T @ eq.target)
        residual_gram = vectors.T @ (np.asarray(eq.residual_gram) / n) @ vectors
        seen = np.square(self.theta @ vectors)[~hidden]  # theta is shrunk to 0 elsewhere
        away = np.full(hidden.sum(), sqrt(seen.sum() / max(len(seen), 1)))
        noise = 0.5 * eq.design_scale**2 * float(away @ away)
        left_over = eq.target - eq.design @ solution
        square = moved(cells, across_cells.empty, left_over, eq.spread(solution), self._length)
        noise += square / max(len(values), 1)
        return LoopLaw(
            solution=solution,
            dual=n * dual,
            residual_gram=residual_gram,
            residual_scale=0.0,
            typical_gram=residual_gram,
            records=n,
            noise=noise / n**2,
            noise_dual=n * dual,
            shared=away * vectors[:, hidden],
            inverted=np.empty((len(eq.target), 0)),
            hidden=vectors[:, hidden],
            held=across_cells.held,
            empty=across_cells.empty,
        )

    def coefficient_law(self, maps: Any, fitted: Any, **words: Any) -> "CoefficientLaw":
        """Law of the coefficients, by the equations."""
        return equations_law(self.equations, maps.units)

    @property
    def _length(self) -> float:
        """Root mean square length of a row."""
        return sqrt(max(trace_of(self.gram), 0.0))

    def interval(
        self, phi: np.ndarray, confidence_level: float, method: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Centre and half-width at rows of features; infinite where the reports tell nothing.

        "certified" bounds the norm of theta* by the reports themselves, or by what is assumed. For
        "asymptotic", with v = design^-1 x, no bound on theta* is needed: there is no remainder.
        """
        if method == "certified":
            return certified_by_norm(self.equations, phi, self.norm, confidence_level)
        return asymptotic_interval(self.equations, phi, self.theta, self.norm, confidence_level)
