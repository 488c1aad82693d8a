"""The second moments of least squares by one codebook index a user."""

from dataclasses import dataclass
from functools import lru_cache
from math import inf, sqrt
from typing import ClassVar

import numpy as np

from .._linalg import unvech, vech, vech_size
from ..exceptions import PrivacyError
from ..privacy import (
    ROUNDING,
    TYPICAL_NORM,
    CodebookNoise,
    Query,
    adds_up_gaussians,
    amplified,
    amplified_epsilon,
    best_codebook,
)
from ._moments import MomentsQuery
from ._normal_equations import NormalEquations
from ._scaling import Scaling


@lru_cache(maxsize=256)
def _likely(size, use):
    """One function for each size and use, so that what is computed by it is found again."""
    return lambda epsilon: best_codebook(size, epsilon, use).probability


@dataclass(frozen=True)
class LiftedMomentsQuery(Query):
    """Joint sum of (r phi, vech phi phi', 1), reported by the index of a codebook.

    Each user reports about s (phi, sqrt(1 - |phi|^2)), where s = 1 or -1 has mean r: the report
    serves both moments, and costs epsilon whatever the record is. Its target is the sign, whose
    square is 1: that of r is not asked for. As a sum of vectors the sensitivity is 3 / sqrt(2), as
    for MomentsQuery, whose maximum at |r| = |r'| = 1 needs no third coordinate.
    """

    scaling: Scaling  # or MappedRecords
    name: str = "lifted moments"
    sensitivity: float = 3.0 / sqrt(2.0) * ROUNDING
    use: ClassVar[str] = "moments"  # what the code is best for

    @property
    def shape(self):
        """Number of coordinates."""
        p = self.scaling.size
        return (p + vech_size(p) + 1,)

    def records(self, X, y):
        """Rows phi of norm at most 1 and targets r in [-1, 1] of a chunk, what users report about.

        Returns
        -------
        (phi, r) : ndarrays of shape (n_rows, p) and (n_rows,)
        """
        return self.scaling.rows(X), self.scaling.target(y)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        phi, r = self.records(X, y)
        return np.concatenate([phi.T @ r, vech(phi.T @ phi), [float(len(r))]])

    def summed(self, reports):
        """Estimate of the sum from users' reports."""
        return reports.moments()

    def local_noise(self, budget):
        """Law of one report; only epsilon counts."""
        code = best_codebook(self.scaling.size + 1, budget.epsilon, self.use)
        if code.noise(self.use) == inf:
            raise PrivacyError(
                f"epsilon={budget.epsilon} is so small that a report would tell nothing at all: "
                "its weights, of 40 bits, are equal."
            )
        return CodebookNoise(code)

    @property
    def likely(self):
        """Probability of a report's likely values, by epsilon: what shuffling amplifies by."""
        return _likely(self.scaling.size + 1, self.use)

    def wire(self):
        """The query as a public task has it, for devices."""
        return {"name": LiftedMomentsQuery.name, **self.scaling.wire()}

    def equations(self, answer):
        """Normal equations of an answer.

        The signs stand for the targets: their residual variance is at most 1. The public entry of
        the intercept stays as it was reported, since the bound is on the reports' joint error.
        """
        p = self.scaling.size
        design = unvech(answer.value[p:-1], p)
        noise = answer.noise
        lifted = isinstance(noise, CodebookNoise)
        scale = noise.square_scale if lifted else noise.scale
        return NormalEquations(
            design=design,
            target=answer.value[:p],
            gram=design,
            square=float(answer.n),
            n=answer.n,
            symmetric=True,
            design_scale=scale,
            target_scale=noise.scale,
            gram_scale=scale,
            law=noise if lifted else None,
        )


@dataclass(frozen=True)
class Sized:
    """What stands for rows of which the length alone is known."""

    size: int


def reached(session, size):
    """Records over the noise of a sum of sensitivity 1 that would serve as well as reports do.

    Gaussian noise is that of the joint moments, of sensitivity 3 / sqrt(2).
    """
    noise = session.noise(LiftedMomentsQuery(Sized(size)), 1.0)  # type: ignore[arg-type]
    return 3.0 / sqrt(2.0) * sqrt(noise.reports / noise.code.noise("moments"))


def report_reaches(can, size, budget, n):
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


def _reports(can, size, budget, n, use):
    """The codebook of the reports of n users, and the mu of their Gaussian ones."""
    pure, additive = budget.epsilon, budget.mu
    if can.amplifies:
        pure = amplified_epsilon(budget, n, _likely(size + 1, use))
        additive = amplified(budget, n).mu
    return best_codebook(size + 1, pure, use), additive


def moments_query(scaling, channel):
    """Query of the second moments for a channel, "gaussian" or "codebook"."""
    return LiftedMomentsQuery(scaling) if channel == "codebook" else MomentsQuery(scaling)


def best_channel(can, scaling, budget, n, use="moments"):
    """Channel of the smaller noise of N_b - N_A theta* for rows of this length: public numbers.

    For the use "vector", of the sum of r phi alone.

    An accountant that adds up mu^2 or rho pays more for a pure report of epsilon than for Gaussian
    noise of (epsilon, delta): under one it is "gaussian", unless delta is 0.

    Parameters
    ----------
    can : Capabilities
        Capabilities of a model in which users send reports.
    scaling : Scaling
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
    code, additive = _reports(can, scaling.size, budget, n, use)
    # the coin that rounds a target to a sign adds at most 1 / D to the variance of a coordinate
    lifted = code.noise(use) + 1.0 / code.size
    gaussian = (2.0 / additive) ** 2
    if use == "moments":
        gaussian = (3.0 / sqrt(2.0) / additive) ** 2 * (1.0 + TYPICAL_NORM**2 / 2.0)
    return "codebook" if lifted <= gaussian else "gaussian"
