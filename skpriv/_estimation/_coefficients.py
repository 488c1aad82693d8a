"""The law of released coefficients: covariance from sampling and from privacy; what is resolved.

For released equations design' theta* = target of the line theta* (best linear projection),

    theta^ - theta* = W (sum e zeta + N_b - N_A theta*) + second order,   W = design^{-1}.

The first term is sampling noise, whose covariance is the sandwich W (sum zeta^2 e e') W', robust to
heteroscedasticity and to a mean that is not linear; the others are privacy noise, of known law. To
second order the noise of the design multiplies the error itself: that has a bias, which is taken
off, and a variance, which is added. Below a resolution of 2 the expansion does not hold, and no
law is given. The same answers tell what a report says of public bounds: too narrow, or too wide.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from math import inf, isnan, nan, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats

from .._contracts import passed_on
from .._linalg import FLOAT_STEP, psd_part, quadratic_forms, trace_of, unwarned
from .._stored import frozen_object, stored
from ._cells import ROUNDED_SQUARE, across_all, estimable_weights
from ._intervals import shrunk_covariance
from ._levels import USUAL_QUANTILE, two_sided_quantile

if TYPE_CHECKING:
    from .._contracts import Array, Scalar
    from ._moments import NormalEquations

# Smallest singular value of the released design over the norm that its noise alone would have.
MIN_RESOLUTION_FOR_COEFFICIENTS = 2.0


NULL = 4.0 * FLOAT_STEP  # eigenvalues of an exact design, relative: rounding alone


NOISE = (
    "noise hides some combinations of the features: narrower bounds help, and leaving out columns "
    "that hardly vary or nearly repeat others"
)


FEW_ROWS = (
    "a level, or one of two values, has too few rows to tell it from an empty one ({}); no "
    "coefficient that is shown depends on it"
)
ENOUGH_ROWS = "up to about {:,.0f} rows are enough in nine of ten fits"
NEVER_ENOUGH = "noise may hide a common one, too"
NINE_OF_TEN = USUAL_QUANTILE + two_sided_quantile(0.8)


NO_ROWS = "no row has this level"


COLLINEAR = "columns determine each other exactly, as that of a level without any row does"


FEWER_ROWS = "; fewer rows of each person, if those are several, may help too"


class NoLaw(TypeError, ValueError):
    """A model whose coefficients have no known error, or no known units."""


class LawSums(NamedTuple):
    """The statement of a fit about q weighted sums of its coefficients.

    Attributes
    ----------
    estimate : ndarray of shape (q,)
        Not shrunk: it may differ from sums of ``coef_``.
    sampling, privacy : ndarray of shape (q, q)
        Covariances of the two independent parts of the error.
    resolved : ndarray of shape (q,)
        Whether normal intervals hold; what is not estimable is NaN above.
    reasons : dict of str to ndarray of bool of shape (q,)
        Which of them released answers do not tell, by the reason; empty if they tell all.
    bounded : ndarray of bool of shape (q,) or None
        Where released answers do not tell a sum, and its interval rests on public bounds.
    factor : float or None
        How many times as many effective records any of them needs to be estimable, where that is
        known.
    """

    estimate: np.ndarray
    sampling: np.ndarray
    privacy: np.ndarray
    resolved: np.ndarray
    reasons: Any
    bounded: np.ndarray | None = None
    factor: "Scalar | None" = None

    @classmethod
    def unknown(cls, size: int, reason: str, factor: "Scalar | None" = None) -> "LawSums":
        """No sum at all."""
        nothing = np.full((size, size), nan)
        none = np.zeros(size, bool)
        return cls(nothing.diagonal(), nothing, nothing, none, {reason: ~none}, factor=factor)

    def where_resolved(self) -> "LawSums":
        """The same statement, in which numbers about other sums are NaN."""
        unknown = np.where(self.resolved, 0.0, nan)
        both = np.add.outer(unknown, unknown)
        return self._replace(
            estimate=self.estimate + unknown,
            sampling=self.sampling + both,
            privacy=self.privacy + both,
        )


class LawSource:
    """Contract of a fit whose coefficients have a law: the base class of all sources.

    Estimability is a property of the weighted sum that is asked for. So units, encoders, formulas
    and contrasts are composed first, and each final row is tested once, by the source.
    """

    def at(self, matrix: np.ndarray, shift: np.ndarray) -> LawSums:
        """The law of ``matrix @ coefficients + shift``."""
        raise NotImplementedError

    def estimable_weights(self, matrix: np.ndarray) -> np.ndarray:
        """Weights of independent sums of these rows that are estimable, with all of their sums.

        Returns
        -------
        ndarray of shape (n_sums, n_rows)
        """
        raise NotImplementedError


@stored
@frozen_object
class Solved:
    """A parameter theta with a normal law, in some directions.

    Attributes
    ----------
    theta : ndarray of shape (m,)
        The coordinates ``vectors.T @ theta``.
    sampling, privacy : ndarray of shape (m, m)
        Covariances of both parts of their error.
    vectors : ndarray of shape (p, m)
        Orthonormal columns.
    held : ndarray of shape (p, p - m)
        The other directions. LawSums that have a part in them are not estimable.
    missing : str, default=""
        Why these are not known.
    """

    theta: np.ndarray
    sampling: np.ndarray
    privacy: np.ndarray
    vectors: np.ndarray
    held: np.ndarray
    missing: str = ""


@stored
@frozen_object
class LinearSource(LawSource):
    """Coefficients ``base @ theta + origin`` of a parameter with a normal law, or the reason why
    there is none.

    Attributes
    ----------
    solved : Solved or str
    base, origin : ndarray of shape (n_coefficients, p) and (n_coefficients,)
    factor : float or None
        How many times as many records a law needs, where that is known.
    """

    solved: Solved | str
    base: np.ndarray
    origin: np.ndarray
    factor: "Scalar | None" = None

    def at(self, matrix: np.ndarray, shift: np.ndarray) -> LawSums:
        """The law of ``matrix @ coefficients + shift``."""
        solved = self.solved
        points = matrix @ self.base
        if isinstance(solved, str):
            return LawSums.unknown(len(matrix), solved, self.factor)
        resolved = across_all(points, solved.held)
        across = points @ solved.vectors
        sampling, privacy = (across @ part @ across.T for part in (solved.sampling, solved.privacy))
        estimate = across @ solved.theta + matrix @ self.origin + shift
        reasons = {} if resolved.all() else {solved.missing: ~resolved}
        return LawSums(estimate, sampling, privacy, resolved, reasons).where_resolved()

    def estimable_weights(self, matrix: np.ndarray) -> np.ndarray:
        """Weights of independent sums of these rows that are estimable."""
        if isinstance(self.solved, str):
            return np.empty((0, len(matrix)))
        held = self.solved.held
        return estimable_weights(matrix @ self.base, held, held[:, :0], ROUNDED_SQUARE)


@stored
@frozen_object
class CoefficientLaw:
    """Released coefficients with the covariance of their error, in the units of X and y.

    Attributes
    ----------
    source : LawSource
        What gives the law of any weighted sums of the coefficients of the fit.
    matrix, shift : ndarray of shape (q, n_coefficients) and (q,)
        The sums that are estimated are ``matrix @ coefficients + shift``. Those of a model are its
        coefficients, then the intercept (0 without error if there is none).
    n : float
        Number of records.
    estimand : str
        What is estimated, in a few words. It may hold texts of the user, such as labels.
    detail : str
        The rest of the sentence that begins with `estimand`; it may be empty.
    ratio : str
        What the exponential of a coefficient means, such as an odds ratio; empty if nothing.
    ratio_name : str
        The same in two words.
    compared : str
        How the textbook's line or curve differs; empty if it is what is estimated.
    classes : int
        Number of classes whose coefficients stand one block after the other; 0 if they do not.
    trust : Trust or None
        The budget and who adds the noise, where it is known how many records are needed.
    leverage : float or None
        Part of the weight of all rows, in its direction, that a single row inside of the bounds may
        have on the least-squares line.
    """

    source: LawSource
    matrix: np.ndarray
    shift: np.ndarray
    n: float
    estimand: str = "least-squares line of the clipped rows and targets"
    ratio: str = ""
    classes: int = 0
    trust: Any = None
    leverage: float | None = None
    detail: str = ""
    ratio_name: str = ""
    compared: str = ""

    @classmethod
    def of(cls, source: LawSource, size: int, n: float, **words: Any) -> "CoefficientLaw":
        """The law of all coefficients of a source, so many, with further fields."""
        return cls(source, np.eye(size), np.zeros(size), n, **words)

    def mapped(self, matrix: np.ndarray, shift: float = 0.0) -> "CoefficientLaw":
        """The law of ``matrix @ sums + shift``: the source is asked at the composed map."""
        used = np.where(matrix.any(axis=0), self.shift, 0.0)  # where there is no law it is NaN
        return replace(self, matrix=matrix @ self.matrix, shift=matrix @ used + shift)

    @cached_property
    def sums(self) -> LawSums:
        """The statement of the source about these sums."""
        return self.source.at(self.matrix, self.shift)

    estimate = passed_on("sums.estimate", "Estimates, shape (q,).")
    sampling = passed_on("sums.sampling", "Covariance by sampling, shape (q, q).")
    privacy = passed_on("sums.privacy", "Covariance by privacy, shape (q, q).")
    resolved = passed_on("sums.resolved", "Whether normal intervals hold.")
    reasons = passed_on("sums.reasons", "Which are not told, by the reason.")
    bounded = passed_on("sums.bounded", "Where an interval rests on public bounds.")

    @property
    def covariance(self) -> "Array":
        """Covariance of the estimates, shape (q, q)."""
        return self.sampling + self.privacy

    @property
    def std_error(self) -> "Array":
        """Standard errors, of sampling and privacy together."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))

    @property
    def statistic(self) -> "Array":
        """Estimates over their standard errors."""
        return _ratio(self.estimate, self.std_error)

    @property
    def p_value(self) -> "Array":
        """Two-sided normal p-values of the hypothesis that a sum is 0."""
        return 2.0 * stats.norm.sf(np.abs(self.statistic))

    @property
    def privacy_share(self) -> "Array":
        """Part of the variance that privacy added, between 0 and 1."""
        return _ratio(np.diagonal(self.privacy), np.diagonal(self.covariance))

    @property
    def hidden(self) -> "Array":
        """Which sums the released answers do not tell from noise, shape (q,)."""
        return ~self.resolved if self.bounded is None else ~self.resolved | self.bounded

    def estimable(self, places: list[int] | range) -> "CoefficientLaw":
        """The law of independent weighted sums of some of these: of all that are estimable."""
        lawful = [place for place in places if not isnan(self.shift[place])]
        chosen = self.mapped(np.eye(len(self.shift))[lawful])
        return chosen.mapped(self.source.estimable_weights(chosen.matrix))

    def why(self, unit: str = "record") -> Iterator[tuple[str, np.ndarray]]:
        """Yield each reason why some are hidden, with what is needed, and which it hides."""
        factor = self.sums.factor
        needed = ""
        if factor is not None:
            more, larger = self.trust.times_needed(factor)
            records = float(f"{1.05 * more * self.n:.1e}")  # two digits, and hardly too few
            needed = (
                f"; they are asked for from about {records:,.0f} {unit}s on, or at an epsilon of "
                f"about {1.05 * larger * self.trust.budget.epsilon:.2g}"
                f"{FEWER_ROWS * (unit == 'person')}"
            )
        for words, places in self.reasons.items():
            yield words + needed, places


def _ratio(top: np.ndarray, bottom: np.ndarray) -> "Array":
    """top / bottom; NaN stays, and 0 / 0 is NaN."""
    with unwarned():
        return top / bottom


def sandwich(
    inverse: np.ndarray,
    gram: np.ndarray,
    residual_gram: np.ndarray | None,
    residual_noise: float,
    variance: float,
) -> "Array":
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
    return shrunk_covariance(robust, equal, residual_noise * quadratic_forms(inverse))


def solved_equations(equations: "NormalEquations") -> Solved | str:
    """The `Solved` parameter of noisy normal equations, or the reason why it is not estimable."""
    if equations.exact:
        inverse, null = _inverse(equations)
        theta, sampling, privacy = _expansion(equations, inverse)
        return Solved(theta, sampling, privacy, np.eye(len(inverse)), null, COLLINEAR)
    found = equations.across_empty_cells(_resolved)
    across = found.equations
    if not _resolved(across):
        return (
            "noise hides some combinations of the features: in the weakest one the released "
            f"design is {max(across.resolution, 0.0):.2g} times its noise, and must be at least "
            f"{MIN_RESOLUTION_FOR_COEFFICIENTS:g} times: more rows, a larger epsilon, narrower "
            "bounds or fewer columns that nearly determine each other would help; "
            "LinearRegression.plan says roughly how many rows"
        )
    inverse = np.linalg.inv(across.design)
    theta, sampling, privacy = _expansion(across, inverse)
    privacy = privacy + inverse @ found.moved @ inverse.T
    missing = ""
    if found.empty:
        n = equations.n
        length = sqrt(max(trace_of(equations.gram), 0.0) / n)
        square_kept = equations.cells.square_kept(length)[found.empty]
        missing = few_rows(equations.design_scale / n, square_kept, n)
    return Solved(theta, sampling, privacy, found.vectors, found.held, missing)


def _resolved(equations: "NormalEquations") -> bool:
    """Whether the expansion of equations holds."""
    return equations.resolution >= MIN_RESOLUTION_FOR_COEFFICIENTS


def few_rows(scale: float, square_kept: np.ndarray, n: float) -> str:
    """The words about cells that may be empty.

    Parameters
    ----------
    scale : float
        Noise that hides a cell.
    square_kept : ndarray of shape (n_cells,)
        Square of a row along the direction of each cell that it is in.
    n : float
        Number of rows.
    """
    enough = enough_rows(scale, square_kept, n)
    words = ENOUGH_ROWS.format(enough) if enough < n else NEVER_ENOUGH
    return FEW_ROWS.format(words) if scale else NO_ROWS


def enough_rows(scale: float, square_kept: np.ndarray, n: float) -> float:
    """Rows with which any of these cells is told from an empty one in nine of ten fits; or inf."""
    enough = NINE_OF_TEN * scale / square_kept.min()
    return n * enough if enough < 1.0 else inf


def equations_law(
    equations: "NormalEquations",
    units: tuple[np.ndarray, np.ndarray],
    estimand: str = CoefficientLaw.estimand,
    basis: Any = None,
) -> CoefficientLaw:
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
    matrix, shift = units
    base = matrix if basis is None else matrix @ basis
    source = LinearSource(solved_equations(equations), base, shift)
    return CoefficientLaw.of(source, len(base), equations.n, estimand=estimand)


def _of_reports(
    equations: "NormalEquations",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The solution of reports' equations, and both parts of their sandwich, in units of theta.

    The released residual Gram is the covariance of target - design theta*, privacy included. Users
    report signs, so that the part of the targets' own noise is not known: it is given as that of
    targets of 1 and -1 with these means, which no others exceed, and privacy has the rest.
    """
    W = np.linalg.inv(equations.design)
    n = equations.n
    p = len(equations.target)
    theta = W @ equations.target
    mean_square = float((theta @ equations.target / n).clip(0.0, 1.0))  # of phi'theta
    covariance = W @ equations.residual_gram @ W.T * (n / max(n - p, 1))
    sampling = (1.0 - mean_square) * psd_part((W + W.T) / 2.0)
    privacy = psd_part(covariance - sampling)
    return theta, covariance - privacy, privacy


def _expansion(
    equations: "NormalEquations", W: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The solution, less its second-order bias, and both covariances, in units of theta.

    Parameters
    ----------
    equations : NormalEquations
    W : ndarray of shape (p, p)
        Inverse of the design.
    """
    if equations.law is not None:
        return _of_reports(equations)
    p = len(W)
    noise = equations.design_scale**2
    theta = W @ equations.target
    eye = np.eye(p)
    if equations.symmetric:  # E N M N = (s^2 / 2)(tr(M) I + M') for GOE noise
        bias = noise / 2.0 * (trace_of(W) * W + W @ W) @ theta
        spread = noise / 2.0 * ((theta @ theta) * eye + np.outer(theta, theta))
    else:  # s^2 M' for independent entries
        bias = noise * W @ (W.T @ theta)
        spread = noise * (theta @ theta) * eye
    gram = psd_part(equations.gram, equations.gram_scale)
    rows = trace_of(gram)
    if equations.residual_gram is None:  # |r - phi'theta*| is no larger than r on average
        variance = max(equations.square, equations.target_scale) / equations.n
    else:
        variance = equations.residual_level(rows)
    sampling = sandwich(W, gram, equations.sampling_gram, equations.residual_scale, variance)
    sampling = sampling * equations.degrees
    privacy = W @ (equations.target_scale**2 * eye + spread) @ W.T
    error = sampling + privacy
    if equations.symmetric:
        second = noise / 2.0 * (trace_of(error) * eye + error)
    else:
        second = noise * trace_of(error) * eye
    privacy = privacy + W @ second @ W.T
    return theta - bias, sampling, privacy


def _inverse(equations: "NormalEquations") -> tuple[np.ndarray, np.ndarray]:
    """Pseudo-inverse of an exact design, and an orthonormal basis of its null space.

    The design is balanced first, so that columns of other units are not taken for collinear.
    """
    p = len(equations.target)
    diagonal = np.diagonal(equations.design)
    unit = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(equations.design * np.outer(unit, unit))
    null = values <= max(values[-1], 0.0) * p * NULL
    part = np.where(null, 0.0, 1.0 / np.where(null, 1.0, values))
    inverse = (vectors * part) @ vectors.T * np.outer(unit, unit)
    return inverse, np.linalg.qr(unit[:, None] * vectors[:, null])[0]
