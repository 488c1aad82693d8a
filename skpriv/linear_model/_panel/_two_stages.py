"""Two-stage least squares from released answers: the moments, one step, and the first stage."""

from dataclasses import dataclass, replace
from math import inf, nan, sqrt
from typing import Any

import numpy as np
from scipy import stats

from ..._estimation._coefficients import equations_law
from ..._estimation._loop._estimate import USUAL, inversion_excess
from ..._estimation._normal_equations import RESIDUAL_CLIP, NormalEquations
from ..._estimation._persons import SURE, ScoreLengthsQuery, cluster_degrees, seldom_cut
from ..._printing import Printed, Table
from ...privacy import SIDE_SHARE
from ._queries import AllMomentsQuery, InstrumentScoreQuery

# Of the budget: with a third step errors were 10% larger at n = 2e5, epsilon 1, and 13% at 3e4.
MOMENTS = 0.35
# Root mean square length of V z, as that of a uniform number that is not beyond 1
INSTRUMENT_LENGTH = sqrt(1.0 / 3.0)
# N / sqrt(n p) from which privacy noise is small beside sampling: rows are shortened as its root
# and residuals are clipped as its fourth root beyond that, so that both fade before noise does
CLEAR_PRECISION = 50.0
WEAK = 10.0  # F of the first stage below which normal intervals do not hold (Staiger, Stock 1997)


@dataclass(frozen=True, eq=False)
class TwoStages:
    """The structural equation x'theta of scaled rows, solved by instruments.

    Attributes
    ----------
    exogenous, structural : ndarray of int
        Coordinates of phi that are instruments z, and those of the equation.
    theta : ndarray of shape (k,)
    sampling, privacy : ndarray of shape (k, k)
        Covariances of theta.
    moments : NormalEquations
        Sums of all phi phi' and r phi, of which the first stage is read.
    strength : float
        Smallest singular value of the released whitened slope, over the largest that is seen in 5%
        of fits where noise is all there is in its direction; above 1 the slope is told from noise.
    """

    exogenous: np.ndarray
    structural: np.ndarray
    theta: np.ndarray
    sampling: np.ndarray
    privacy: np.ndarray
    moments: NormalEquations
    strength: float


def solve_two_stages(session, rows, target, exogenous, structural):
    """Ask for all moments and then for the scores at their solution, and solve.

    Returns
    -------
    TwoStages
    """
    lengths = SIDE_SHARE if session.persons is not None else 0.0
    query = AllMomentsQuery(rows, target)
    moments = query.equations(session.sum(query, MOMENTS))
    theta, white = _first_solution(moments, exogenous, structural)
    maps = (rows, target, exogenous, structural)
    if session.trust.can.exact:
        V = white / max(float(np.linalg.norm(white, 2)), 1e-300)  # no row is shortened, none is cut
        limit = 2.0 + float(np.abs(theta).sum())
    else:
        reach = session.records(1.0) * query.sensitivity / session.noise(query, 1.0).scale
        free = max(1.0, reach / sqrt(session.n * len(white)) / CLEAR_PRECISION)
        length = INSTRUMENT_LENGTH / sqrt(free * len(white))
        V = max(length, 1.0 / float(np.linalg.norm(white, 2))) * white
        limit = _limit(moments, theta, structural, RESIDUAL_CLIP * free**0.25)
    scores = InstrumentScoreQuery(*maps, V, theta, limit)
    if lengths:
        length = seldom_cut(session, ScoreLengthsQuery(scores), lengths)
        scores = replace(scores, length=length)
    answer = session.sum(scores, 1.0 - MOMENTS - lengths)
    sums = scores.read(answer)
    values, vectors = np.linalg.eigh(sums.meat)
    meat = (vectors * np.maximum(values, 0.0)) @ vectors.T
    meat *= _degrees(session, answer.n, len(theta))
    step, inverse, noise, strength = _inverted(sums, meat)
    return TwoStages(
        exogenous,
        structural,
        theta + step,
        inverse @ meat @ inverse.T,
        noise,
        moments,
        strength,
    )


def _inverted(sums, meat):
    """The step, the inverse of the slope, the covariance of its noise, and the strength.

    In the singular directions of the slope the answers are those of `inversion_excess`, with
    the noise that the slope has at the part of the step in other directions in the variance. Where
    the weakest direction is nothing its singular value is the length of l - k + 1 normal variables.
    """
    left, values, right = np.linalg.svd(sums.slope, full_matrices=False)
    n_instruments, size = sums.slope.shape
    inverse, scale = np.linalg.pinv(sums.slope), sums.slope_scale
    step = inverse @ sums.moment
    spread = scale**2 * float(step @ step)
    noise = (sums.moment_scale**2 + spread) * inverse @ inverse.T
    floor = scale * float(stats.chi.isf(0.05, n_instruments - size + 1))
    strength = float(values[-1]) / floor if floor else inf
    if scale and strength > 1.0:
        variances = np.einsum("ij,ik,kj->j", left, meat, left) + sums.moment_scale**2 + spread
        excess = inversion_excess(values, left.T @ sums.moment, variances, scale, USUAL)
        noise += (right.T * excess**2) @ right
    return step, inverse, noise, strength


def _first_solution(moments, exogenous, structural):
    """Two-stage least squares of noisy moments, and the square root of the inverse of mean zz'."""
    n, noise = moments.n, moments.design_scale / moments.n
    values, vectors = np.linalg.eigh(moments.design[np.ix_(exogenous, exogenous)] / n)
    values = np.maximum(values, max(SURE * noise, 1e-14 * float(values[-1]), 1e-300))
    white = (vectors * values**-0.5).T
    slope = white @ moments.design[np.ix_(exogenous, structural)] / n
    ridge = len(white) * noise**2 / float(values[0])
    normal = slope.T @ slope + ridge * np.eye(len(structural))
    moment = white @ moments.target[exogenous] / n
    if not ridge:
        return np.linalg.lstsq(slope, moment)[0], white
    return np.linalg.solve(normal, slope.T @ moment), white


def _limit(moments, theta, structural, clip):
    """Where residuals are clipped: released deviations, and nowhere beyond their range."""
    size = float(theta @ theta)
    square = moments.square - 2.0 * theta @ moments.target[structural]
    square += theta @ moments.design[np.ix_(structural, structural)] @ theta
    noise = moments.design_scale * sqrt(1.0 + 4.0 * size + size**2)
    deviation = sqrt((max(float(square), 0.0) + 2.0 * noise) / moments.n)
    return min(clip * deviation, 1.0 + sqrt(size))


def _degrees(session, n, p):
    """Factor of the sampling covariance by degrees of freedom."""
    if session.persons is not None and session.trust.can.exact:
        return cluster_degrees(session.n, round(n * session.persons), p)
    return n / (n - p) if n > p else 1.0


@dataclass(frozen=True, eq=False, repr=False)
class FirstStage(Printed):
    """How the endogenous features hang on the instruments; prints as a table.

    Attributes
    ----------
    names : list of str
        Names of the instruments, the exogenous features and the intercept.
    endogenous : list of str
    laws : list of CoefficientLaw
        Laws of each endogenous feature: coefficients and their covariances, privacy included.
    n_instruments : int
        How many of the names are instruments; they come first.
    unit : str
        What a record is: "record" or "person".
    strength : float
        Smallest singular value of the whitened slope of the equation on the instruments, over what
        its noise alone may reach; where it is at most 1 nothing is known.
    """

    names: list
    endogenous: list
    laws: list
    n_instruments: int
    unit: str = "record"
    strength: float = inf

    @property
    def f_statistics(self) -> np.ndarray:
        """F of the instruments, one for each endogenous feature; its noise makes it smaller.

        NaN is not known: noise hides coefficients of the first stage, as of collinear instruments.
        """
        found = []
        for law in self.laws:
            k = self.n_instruments
            covariance = (law.sampling + law.privacy)[:k, :k]
            if not np.isfinite(covariance).all():
                found.append(nan)
                continue
            found.append(
                float(law.estimate[:k] @ np.linalg.pinv(covariance) @ law.estimate[:k]) / k
            )
        return np.array(found)

    @property
    def weak(self) -> bool:
        """Whether the slope is not told from noise, or an F is below 10: no interval holds then."""
        return self.strength <= 1.0 or bool((self.f_statistics < WEAK).any())

    def to_frame(self) -> Any:
        """Estimates, standard errors and the part of their variance that privacy added.

        Returns
        -------
        pandas.DataFrame
            A data frame with a row for each pair of an endogenous feature and an instrument.
        """
        import pandas as pd

        index = pd.MultiIndex.from_product([self.endogenous, self.names])
        columns = ("estimate", "std_error", "p_value", "privacy_share")
        return pd.DataFrame([row for law in self.laws for row in _cells(law)], index, columns)

    def _parts(self):
        for name, law, f in zip(self.endogenous, self.laws, self.f_statistics, strict=True):
            found = (
                "F is not known, as noise hides coefficients," if np.isnan(f) else f"F = {f:.4g}"
            )
            yield f"first stage of {name}: {found} of {self.n_instruments} instruments"
            cells = zip(self.names, _cells(law), strict=True)
            rows = [
                (term, f"{b:.4g}", f"{e:.4g}", f"{part:.3g}") for term, (b, e, _, part) in cells
            ]
            yield Table(("", "estimate", "std_error", "privacy_share"), rows)
        if self.weak:
            yield self.warning

    @property
    def warning(self) -> str:
        """What a weak instrument means; empty if there is none."""
        if not self.weak:
            return ""
        known = self.f_statistics[self.f_statistics < WEAK]
        found = (
            f"F = {known.min():.3g} of the first stage, with noise, is below {WEAK:g}"
            if len(known)
            else "F is not known, and the smallest singular value of their slope is "
            f"{self.strength:.2g} times what noise alone may reach"
        )
        return (
            f"the instruments are weak: {found}, so that normal intervals would not hold: other "
            "instruments, more records or a larger epsilon would help"
        )


def _cells(law):
    variance = np.diagonal(law.sampling) + np.diagonal(law.privacy)
    error = np.sqrt(np.maximum(variance, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        p_value = 2.0 * stats.norm.sf(np.abs(law.estimate / error))
        share = np.diagonal(law.privacy) / variance
    return list(zip(law.estimate, error, p_value, share, strict=True))


def first_stage(fit, rows, names, endogenous, instruments, unit):
    """Regressions of each endogenous feature on the instruments, in the units of the features."""
    exogenous, moments = fit.exogenous, fit.moments
    columns = [i for i in exogenous if i < rows.n_features]
    order = [*instruments, *[i for i in columns if i not in instruments]]
    kept = [*order, *([rows.n_features] if rows.fit_intercept else [])]
    units = rows.coefficient_map()[np.ix_(kept, exogenous)]
    design = moments.design[np.ix_(exogenous, exogenous)]
    scale, laws = moments.design_scale, []
    for j in endogenous:
        target = moments.design[exogenous, j]
        solved = np.linalg.lstsq(design, target)[0]
        square = moments.design[j, j] - 2.0 * solved @ target + solved @ design @ solved
        equations = NormalEquations(
            design=design,
            target=target,
            gram=design,
            square=max(float(square), scale),
            n=moments.n,
            symmetric=True,
            design_scale=scale,
            target_scale=scale / sqrt(2.0),  # entries off the diagonal
            gram_scale=scale,
        )
        unit_j = rows.divisor[j] / rows.parts[0]
        shift = np.zeros(len(kept))
        shift[-1] = rows.offset[j] if rows.fit_intercept else 0.0
        words = {"estimand": "least-squares line of an endogenous feature"}
        laws.append(equations_law(equations, unit_j * units, shift, words))
    labels = [names[i] if i < rows.n_features else "intercept" for i in kept]
    names = [names[j] for j in endogenous]
    return FirstStage(labels, names, laws, len(instruments), unit, fit.strength)
