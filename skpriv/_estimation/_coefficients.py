"""The law of released coefficients: covariance from sampling and from privacy; what is resolved.

For released equations design' theta* = target of the line theta* (best linear projection),

    theta^ - theta* = W (sum e zeta + N_b - N_A theta*) + second order,   W = design^{-1}.

The first term is sampling noise, whose covariance is the sandwich W (sum zeta^2 e e') W', robust to
heteroscedasticity and to a mean that is not linear; the others are privacy noise, of known law. To
second order the noise of the design multiplies the error itself: that has a bias, which is taken
off, and a variance, which is added. Below a resolution of 2 the expansion does not hold, and no
law is given. The same answers tell what a report says of public bounds: too narrow, or too wide.
"""

from dataclasses import dataclass, replace
from math import ceil, floor, inf, log10, nan, sqrt

import numpy as np

from .._linalg import psd_part
from .._stored import stored
from ._loop._fit import FITTED, FUNCTION, LEAST_SQUARES
from ._loop._rules import RESOLVED
from ._intervals import USUAL_QUANTILE, shrunk_covariance

# Smallest singular value of the released design over the norm that its noise alone would have.
MIN_RESOLUTION_FOR_COEFFICIENTS = 2.0
NULL = 4.0 * np.finfo(float).eps  # eigenvalues of an exact design, relative: rounding alone
NOISE = (
    "noise hides some combinations of the features: narrower bounds help, and leaving out columns "
    "that hardly vary (such as the column 'other' beside a complete list of categories, which the "
    "schema can leave out)"
)
FEWER_ROWS = "; a smaller max_rows_per_group, if it is above 1, may help too"
BOUNDED = (
    "their intervals are so wide that bounds_X and bounds_y allow no more, for a line that stays "
    "inside of them"
)
NO_LINE = (
    "its equation was not asked, since nothing is clipped in it and it would be all noise at this "
    "budget: estimand='fitted' is the line or curve that was fitted"
)
TOO_FEW_RECORDS = (
    "only the mean of the target was released, since the records are too few for coefficients at "
    "this budget: fewer features help"
)


class NoLaw(TypeError, ValueError):
    """A model whose coefficients have no known error, or no known units."""


@stored
@dataclass(frozen=True, eq=False)
class CoefficientLaw:
    """Released coefficients with the covariance of their error, in the units of X and y.

    Attributes
    ----------
    estimate : ndarray of shape (q,)
        Coefficients, then the intercept (0 without error if there is none). Not shrunk: it may
        differ from ``coef_``.
    sampling, privacy : ndarray of shape (q, q)
        Covariances of the two independent parts of the error.
    resolved : ndarray of shape (q,)
        Whether normal intervals hold; what is not estimable is NaN above.
    reason : str
        Why some are not estimable; empty if all are.
    n : int
        Number of records.
    estimand : str
        What is estimated, in a few words. It may hold texts of the user, such as labels.
    detail : str
        The rest of the sentence that begins with `estimand`; it may be empty.
    ratio : str
        What the exponential of a coefficient means, such as an odds ratio; empty if nothing.
    ratio_name : str
        The same in two words.
    distance : ndarray of shape (q,) or None
        Bound on how far each coefficient of the least-squares line may be from what is estimated;
        None where they are the same.
    classes : int
        Number of classes whose coefficients stand one block after the other; 0 if they do not.
    bounded : ndarray of bool of shape (q,) or None
        Where released answers do not tell a coefficient, and its interval rests on public bounds.
    factors : ndarray of shape (q,) or None
        How many times as many records, or as large an epsilon, each one needs to be estimable.
    epsilon : float
    leverage : float or None
        Part of the weight of all rows, in its direction, that a single row inside of the bounds may
        have on the least-squares line.
    """

    estimate: np.ndarray
    sampling: np.ndarray
    privacy: np.ndarray
    resolved: np.ndarray
    reason: str
    n: int
    estimand: str = "least-squares line of the clipped rows and targets"
    distance: np.ndarray | None = None
    ratio: str = ""
    classes: int = 0
    bounded: np.ndarray | None = None
    factors: np.ndarray | None = None
    epsilon: float = nan
    leverage: float | None = None
    detail: str = ""
    ratio_name: str = ""

    @property
    def hidden(self):
        """Which coefficients the released answers do not tell from noise, shape (q,)."""
        return ~self.resolved if self.bounded is None else ~self.resolved | self.bounded

    def why(self, names, unit="record"):
        """Why these are hidden, and how many records or how much epsilon would do.

        Parameters
        ----------
        names : sequence of str
            Names of what is hidden; empty where all is.
        unit : str
        """
        if not self.hidden.any():
            return ""
        words = f"{', '.join(names)}: {self.reason}" if names else self.reason
        if self.factors is None or not self.reason:
            return words
        factor = float(self.factors[self.hidden].max())
        tens = 10.0 ** floor(log10(factor * self.n) - 1.0)
        return (
            f"{words}; about {ceil(factor * self.n / tens) * tens:,.0f} such {unit}s, or epsilon "
            f"of about {factor * self.epsilon:.2g}, would do for some; as a rough guide, twice "
            f"that for all{FEWER_ROWS * (unit == 'person')}"
        )

    def mapped(self, matrix, shift=0.0):
        """The law of matrix @ coefficients + shift; a row needs all that it weighs resolved."""
        weighed = matrix != 0.0
        resolved = ~(weighed @ ~self.resolved)
        factors = self.factors
        if factors is not None:
            factors = np.where(weighed, np.where(self.hidden, factors, 1.0), 1.0).max(axis=1)
        estimate = matrix @ np.where(self.resolved, self.estimate, 0.0) + shift
        both = np.outer(self.resolved, self.resolved)
        sampling, privacy = (
            matrix @ np.where(both, part, 0.0) @ matrix.T for part in (self.sampling, self.privacy)
        )
        return replace(
            self,
            estimate=np.where(resolved, estimate, np.nan),
            sampling=np.where(np.outer(resolved, resolved), sampling, np.nan),
            privacy=np.where(np.outer(resolved, resolved), privacy, np.nan),
            resolved=resolved,
            reason=self.reason if (weighed @ self.hidden).any() else "",
            bounded=None if self.bounded is None else resolved & (weighed @ self.bounded),
            factors=factors,
            distance=None if self.distance is None else _largest(matrix, self.distance),
        )


def _largest(matrix, distance):
    """|matrix| @ distance; what is infinite or NaN stands only in rows that weigh it."""
    weighed = matrix != 0.0
    largest = abs(matrix) @ np.where(np.isfinite(distance), distance, 0.0)
    largest = np.where(weighed @ np.isinf(distance), np.inf, largest)
    return np.where(weighed @ np.isnan(distance), np.nan, largest)


def sandwich(inverse, gram, residual_gram, residual_noise, variance):
    """Covariance W R W' of a solution, shrunk to v W H W' where the released R is noisy.

    The variance of each coefficient is shrunk by its `noise_share`.

    Parameters
    ----------
    inverse : ndarray of shape (q, p)
        W, in the units of the coefficients.
    gram : ndarray of shape (p, p)
        H = sum e e', positive semi-definite.
    residual_gram : ndarray of shape (p, p) or None
        R = sum zeta^2 e e' with noise; None: only the variance v is known.
    residual_noise : float
        Standard deviation of the noise of each orthonormal coordinate of R.
    variance : float
        v, mean square of the residuals.

    Returns
    -------
    ndarray of shape (q, q)
    """
    equal = variance * inverse @ gram @ inverse.T
    if residual_gram is None:
        return equal
    robust = inverse @ psd_part(residual_gram) @ inverse.T
    noise = residual_noise * np.einsum("ij,ij->i", inverse, inverse)
    return shrunk_covariance(robust, equal, noise)


def equations_law(equations, units, estimand=CoefficientLaw.estimand, basis=None):
    """Law of the coefficients that solve noisy normal equations.

    Parameters
    ----------
    equations : NormalEquations
    units : (ndarray of shape (q, p), ndarray of shape (q,))
        Matrix and shift from theta to the coefficients, as `RecordMap.units`.
    estimand : str, default=that of CoefficientLaw
    basis : ndarray of shape (p, p), default=None
        The equations are for w in theta = basis w; None is for theta itself.

    Returns
    -------
    CoefficientLaw
    """
    (matrix, shift), resolution = units, _resolution(equations)
    matrix = matrix if basis is None else matrix @ basis
    if resolution < MIN_RESOLUTION_FOR_COEFFICIENTS:
        reason = (
            "noise hides some combinations of the features: in the weakest one the released design "
            f"is {max(resolution, 0.0):.2g} times its noise, and must be at least "
            f"{MIN_RESOLUTION_FOR_COEFFICIENTS:g} times: more rows, a larger epsilon, "
            "narrower bounds or fewer columns that nearly determine each other would help; "
            "LinearRegression.plan says roughly how many rows"
        )
        law = _nothing(len(equations.target), reason, equations.n)
    else:
        law = _expansion(equations)
        if not law.resolved.all():
            law = replace(law, reason="columns determine each other exactly")
    return replace(law.mapped(matrix, shift), estimand=estimand)


def _resolution(equations):
    """Smallest singular value of the design over the norm of its noise; infinite without noise."""
    if equations.exact:
        return inf
    p, values = len(equations.target), np.linalg.svd(equations.design, compute_uv=False)
    if equations.symmetric:  # a noise that turned an eigenvalue negative hides it
        return float(np.linalg.eigvalsh(equations.design)[0]) / (
            equations.design_scale * sqrt(2.0 * p)
        )
    return float(values[-1]) / (2.0 * equations.design_scale * sqrt(p))


def _of_reports(equations):
    """The solution of reports' equations, and their sandwich, in units of theta.

    The released residual Gram is the covariance of target - design theta*, privacy included. Users
    report signs, so that the part of the targets' own noise is not known: it is given as that of
    targets of 1 and -1 with these means, which no others exceed, and privacy has the rest.
    """
    W, n, p = np.linalg.inv(equations.design), equations.n, len(equations.target)
    theta = W @ equations.target
    mean_square = float(np.clip(theta @ equations.target / n, 0.0, 1.0))  # of phi'theta
    covariance = W @ equations.residual_gram @ W.T * (n / max(n - p, 1))
    sampling = (1.0 - mean_square) * psd_part((W + W.T) / 2.0)
    privacy = psd_part(covariance - sampling)
    return CoefficientLaw(theta, covariance - privacy, privacy, np.ones(p, dtype=bool), "", n)


def _expansion(equations):
    """The solution, less its second-order bias, and its covariances, in units of theta."""
    if equations.law is not None:
        return _of_reports(equations)
    (W, resolved), scale = _inverse(equations), equations.design_scale
    p = len(resolved)
    theta, eye = W @ equations.target, np.eye(p)
    if equations.symmetric:  # E N M N = (s^2 / 2)(tr(M) I + M') for GOE noise
        bias = scale**2 / 2.0 * (np.trace(W) * W + W @ W) @ theta
        spread = scale**2 / 2.0 * ((theta @ theta) * eye + np.outer(theta, theta))
    else:  # s^2 M' for independent entries
        bias = scale**2 * W @ (W.T @ theta)
        spread = scale**2 * (theta @ theta) * eye
    gram = psd_part(equations.gram, equations.gram_scale)
    rows = np.trace(gram)
    if equations.residual_gram is None:  # |r - phi'theta*| is no larger than r on average
        variance = max(equations.square, equations.target_scale) / equations.n
    else:
        variance = equations.residual_level(rows)
    sampling = sandwich(W, gram, equations.sampling_gram, equations.residual_scale, variance)
    sampling = sampling * equations.degrees
    privacy = W @ (equations.target_scale**2 * eye + spread) @ W.T
    error = sampling + privacy
    if equations.symmetric:
        second = scale**2 / 2.0 * (np.trace(error) * eye + error)
    else:
        second = scale**2 * np.trace(error) * eye
    privacy = privacy + W @ second @ W.T
    return CoefficientLaw(theta - bias, sampling, privacy, resolved, "", equations.n)


def _inverse(equations):
    """Inverse of the design, and what it determines: all of it, but for exact collinearity.

    Without noise a coefficient is determined if no null vector of the design has a part in it. The
    design is balanced first, so that columns of other units are not taken for collinear.
    """
    p = len(equations.target)
    if not equations.exact:
        return np.linalg.inv(equations.design), np.ones(p, dtype=bool)
    diagonal = np.diagonal(equations.design)
    unit = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(equations.design * np.outer(unit, unit))
    null = values <= max(values[-1], 0.0) * p * NULL
    part = np.where(null, 0.0, 1.0 / np.where(null, 1.0, values))
    inverse = (vectors * part) @ vectors.T * np.outer(unit, unit)
    return inverse, (vectors[:, null] ** 2).sum(axis=1) <= 1e-12


def loop_law(fit, maps, fitted=True, hiding=NOISE, **words):
    """Law of the coefficients of a fit of the loop.

    Parameters
    ----------
    fit : LoopFit
    maps : RecordMap
    fitted : bool, default=True
        Whether the estimate is that of the line that was fitted: the solution of the clipped scores
        of these rows. Else of the least-squares line, or the curve of maximum likelihood.
    hiding : str, default=NOISE
        What is said of coefficients that answers do not tell.
    **words
        Further fields.

    Returns
    -------
    CoefficientLaw
        Its ``distance`` bounds by what was released of both how far the least-squares line, or the
        curve of maximum likelihood, is; it is infinite without an equation of that.
    """
    matrix, size = fit.link.each(maps.row_map.coefficient_map()), len(fit.b)
    N = fit.effective_records
    if not fit.equations:
        words["factors"] = np.full(len(matrix), fit.link.enough(size) / N)
        return _nothing(len(matrix), TOO_FEW_RECORDS, fit.n, **words)
    if fit.line is None and not fitted:
        words["factors"] = np.full(len(matrix), max(RESOLVED * size**1.5 / N, 1.0))
        return _nothing(len(matrix), NO_LINE, fit.n, **words)
    first, points = FITTED if fit.link.linear else FUNCTION, fit.points(matrix)
    estimate, line = fit.law(first), fit.law(LEAST_SQUARES)
    noise = np.sqrt(line.variances(points)[1] + estimate.variances(points)[1])
    apart = np.abs(points @ (line.solution - estimate.solution))
    distance = maps.radius * (apart + USUAL_QUANTILE * noise)
    if fit.line is None:
        distance = np.full(len(matrix), inf)
    chosen = estimate if fitted else line
    sampling, privacy = (maps.radius**2 * part for part in chosen.covariances(points))
    value, resolved, reason = maps.radius * chosen.value(points), chosen.resolved(points), ""
    intercepts = value.reshape(np.size(fit.location), -1)[:, -1]
    intercepts += maps.centre + maps.radius * fit.location
    largest = maps.radius * _largest_in_bounds(fit, maps.row_map, matrix)
    bounded = ~resolved & np.isfinite(largest)
    if not resolved.all():
        reason = f"{hiding}; {BOUNDED}" if bounded.any() else hiding
        privacy[bounded, bounded] += largest[bounded] ** 2
        distance = np.where(bounded, distance + 2.0 * largest, distance)
        resolved = resolved | bounded
    both = np.outer(resolved, resolved)
    # Without noise no row of a link that bends weighs less
    weighs = fitted and (fit.link.linear or fit.last.slope_scale)
    return CoefficientLaw(
        np.where(resolved, value, np.nan),
        np.where(both, sampling, np.nan),
        np.where(both, privacy, np.nan),
        resolved,
        reason,
        fit.n,
        distance=np.where(resolved, distance, np.nan) if weighs else None,
        bounded=bounded,
        factors=chosen.missing(points),
        **words,
    )


def _nothing(size, reason, n, **words):
    """No coefficient at all."""
    nothing, none = np.full((size, size), np.nan), np.zeros(size, dtype=bool)
    return CoefficientLaw(nothing[0], nothing, nothing, none, reason, n, **words)


def _largest_in_bounds(fit, rows, matrix):
    """Largest coefficients of a line that stays in the bounds of the target; infinite without any.

    For features z in half-ranges from their middles a line m + b0 + b'z has |b0| + |b|_1 at most
    1 + |m| then, so that a weighted sum of these is that times the largest weight. It is added as
    a standard deviation, since least-squares lines may leave the bounds in corners without rows.
    """
    units = rows.half_ranges
    if units is None or not fit.link.linear or not fit.last.slope_scale:
        return np.full(len(matrix), np.inf)
    weights = np.column_stack([matrix @ units.T, matrix @ rows.constant])
    return (1.0 + abs(fit.location)) * abs(weights).max(axis=1)
