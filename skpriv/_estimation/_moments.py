"""Second moments: what is asked, with or without instruments, and the noisy normal equations."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, replace
from functools import cached_property
from math import hypot, inf, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import lapack
from scipy.sparse import diags, issparse

from .._linalg import (
    RELATIVE_ZERO,
    TINY,
    add_gram,
    psd_part,
    row_norms,
    trace_of,
    unvech,
    vech,
    vech_size,
)
from .._stored import frozen, frozen_object, stored, stored_in_policies
from ..privacy import ROUNDING, Answer, Query
from ._cells import WEAK_CELL, across_all, moved, split
from ._levels import USUAL_QUANTILE
from ._persons import OfPersons, person_sums

if TYPE_CHECKING:
    from ._public_maps import RecordMap
    from .._contracts import Array, Scalar

# Public grid of prior variances for the empirical-Bayes shrinkage, in units of theta^2.
PRIOR_VARIANCES = np.geomspace(1e-7, 1e2, 46)
# The intercept is the best determined coefficient: its prior variance is so many times as large.
INTERCEPT_PRIOR = 100.0
RESIDUAL_CLIP = 5.0  # released deviations: beyond them are few residuals, and much noise
SAMPLING = 10.0  # privacy noise over sampling, from where sampling is shrunk as a whole


@stored
@frozen
class NormalEquations:
    """Released sums with design' theta* = target up to noise of a known law.

    target = A theta* + sum e_i zeta_i + N_b and design = A + N_A, where A = sum e_i phi_i' and
    zeta_i = r_i - phi_i' theta* (docs/mathematics/normal_equations.md). The instrument e_i is phi_i
    itself for sufficient statistics, and U phi_i / ||U phi_i|| for re-weighted regression.

    Attributes
    ----------
    design : ndarray of shape (p, p)
    target : ndarray of shape (p,)
    gram : ndarray of shape (p, p)
        Noisy sum e_i e_i'.
    square : float
        Noisy sum r_i^2.
    n : float
        Number of records in the sums, or an estimate of it.
    symmetric : bool
        Whether the noise of ``design`` is GOE (else independent on all entries).
    design_scale, target_scale, gram_scale : float
        Standard deviation of the noise of each orthonormal coordinate.
    residual_gram : ndarray of shape (p, p) or None
        Noisy sum e_i e_i' zeta_i^2 (residual variance, robust to heteroscedasticity).
        The residuals are those at a released theta, and clipped.
    residual_scale : float
    residual_excess, excess_scale : float
        Noisy sum of what the clip took off from squared residuals, and the deviation of its noise.
    residual_thetas : tuple of tuple of float
        Where residuals were taken; more than one if sums were pooled, and none if what was cut is
        not known.
    law : CodebookNoise or None
        Where the noises of ``target`` and ``design`` are dependent: their law. The residual Gram is
        then the whole covariance of target - design theta*, privacy included.
    person_gram : ndarray of shape (p, p) or None
        Sums of persons with several rows: noisy sum uu' for the sums u = e zeta over a person, over
        m; with the residual Gram's noise.
    debias : float or None
        Factor of the sampling covariance by degrees of freedom; None is n / (n - p).
    weight : float
        Weight of pooled sums: what the heaviest of them was divided by; 0 if nothing was pooled.
    cells : Cells or None
        Public cells of the table, as directions of theta.
    row_cells : Cells or None
        The same as directions n of rows e, with e'n > 0 in the rows of the cell; None where e is
        phi.
    """

    design: np.ndarray
    target: np.ndarray
    gram: np.ndarray
    square: float
    n: float
    symmetric: bool
    design_scale: float
    target_scale: float
    gram_scale: float
    residual_gram: Any = None
    residual_scale: float = 0.0
    residual_excess: float = 0.0
    excess_scale: float = 0.0
    residual_thetas: tuple[Sequence[float], ...] = ()
    law: Any = None
    person_gram: Any = None
    debias: float | None = None
    weight: float = 0.0
    cells: Any = None
    row_cells: Any = None

    @classmethod
    def of_moments(
        cls, answer: "Answer", p: int, square_weight: float, blocks: int = 1
    ) -> "NormalEquations":
        """Equations of an answer about (r phi, vech phi phi', w r^2) with this weight w.

        It may have so many blocks of phi phi', of equal size, beside which it is zero.
        """
        grams = answer.value[p:-1].reshape(blocks, -1)
        parts = [unvech(each, p // blocks) for each in grams]
        design = parts[0] if blocks == 1 else linalg.block_diag(*parts)
        square = float(answer.value[-1]) / square_weight
        scale = answer.noise.scale
        target = answer.value[:p]
        return cls(design, target, design, square, answer.n, True, scale, scale, scale)

    def pooled(self, other: "NormalEquations") -> "NormalEquations":
        """Sums of two sets of records, disjoint or not, weighted by what is publicly known.

        For any weights, the weighted sums are normal equations of the same theta*. The errors have
        variances n / p (at most, of the targets) plus that of the noise, the signal is as n:
        weights n over the variance are best. They are public, and divided by the largest, so that
        errors are not larger than they would be without weights.
        """
        own = self.weight or self._precision
        its = other.weight or other._precision
        largest = max(own, its)
        law = None
        a = own / largest
        b = its / largest
        if self.law is not None or other.law is not None:
            # Codebook reports of two sets of users: all have one law, hence one weight
            if self.law is None or other.law is None or self.law.code != other.law.code:
                raise ValueError("sums of codebook reports are pooled with those of one code only.")
            a = 1.0
            b = 1.0
            largest = 0.0
            law = self.law.plus(other.law)
        c = a**2
        d = b**2
        residual_gram = None
        thetas: tuple[Any, ...] = ()
        if self.residual_gram is not None and other.residual_gram is not None:
            residual_gram = c * self.residual_gram + d * other.residual_gram
            thetas = self.residual_thetas + other.residual_thetas
        persons = self.person_gram is not None and other.person_gram is not None
        return NormalEquations(
            design=a * self.design + b * other.design,
            target=a * self.target + b * other.target,
            gram=c * self.gram + d * other.gram,
            square=self.square + other.square,
            n=self.n + other.n,
            symmetric=self.symmetric and other.symmetric,
            design_scale=hypot(a * self.design_scale, b * other.design_scale),
            target_scale=hypot(a * self.target_scale, b * other.target_scale),
            gram_scale=hypot(c * self.gram_scale, d * other.gram_scale),
            residual_gram=residual_gram,
            residual_scale=hypot(c * self.residual_scale, d * other.residual_scale),
            residual_excess=c * self.residual_excess + d * other.residual_excess,
            excess_scale=hypot(c * self.excess_scale, d * other.excess_scale),
            residual_thetas=thetas,
            person_gram=c * self.person_gram + d * other.person_gram if persons else None,
            law=law,
            weight=largest,
        )

    @property
    def _precision(self) -> float:
        noise = self.target_scale**2 + self.design_scale**2 / 2.0
        return self.n / (self.n / len(self.target) + noise)

    @property
    def sampling_gram(self) -> "Array | None":
        """Noisy covariance of sum e zeta, by persons if records are; None if it is not known."""
        return self.residual_gram if self.person_gram is None else self.person_gram

    @property
    def resolution(self) -> float:
        """Smallest singular value of the design over the norm of its noise; infinite without."""
        p = len(self.target)
        if self.exact or not p:
            return inf
        if self.symmetric:  # a noise that turned an eigenvalue negative hides it
            return float(np.linalg.eigvalsh(self.design)[0]) / (self.design_scale * sqrt(2.0 * p))
        smallest = float(np.linalg.svd(self.design, compute_uv=False)[-1])
        return smallest / (2.0 * self.design_scale * sqrt(p))

    def across(self, left: Any, right: Any) -> "NormalEquations":
        """The equations of right'theta, where theta is 0 across these orthonormal columns, weighed
        by rows left'e.
        """
        grams: dict[str, Any] = {
            name: None if matrix is None else left.T @ matrix @ left
            for name, matrix in (
                ("gram", self.gram),
                ("residual_gram", self.residual_gram),
                ("person_gram", self.person_gram),
            )
        }
        thetas = tuple(tuple(np.asarray(theta) @ right) for theta in self.residual_thetas)
        return replace(
            self,
            design=left.T @ self.design @ right,
            target=left.T @ self.target,
            residual_thetas=thetas,
            cells=None,
            row_cells=None,
            **grams,
        )

    def across_empty_cells(self, resolved: Callable[..., Any]) -> "AcrossCells":
        """The equations across cells that may be empty, so many that they are resolved.

        A cell may be empty where the design along its direction is not above its noise. If the
        equations across these are not resolved, the weakest others are taken out, too.

        Parameters
        ----------
        resolved : callable
            A function of equations.

        Returns
        -------
        AcrossCells
        """
        p = len(self.target)
        scale = self.design_scale
        if self.cells is None or not len(self.cells.directions) or self.exact:
            return self._without([])
        weights = self.row_cells or self.cells
        along = np.einsum("ij,jk,ik->i", weights.unit, self.design, self.cells.unit)
        order = np.argsort(along)
        first = int((along <= USUAL_QUANTILE * scale).sum())
        last = int((along <= WEAK_CELL * 2.0 * scale * sqrt(2.0 * p)).sum())
        chosen = [self.cells.holdable(order[:count].tolist()) for count in range(first, last + 1)]
        found = map(self._without, chosen or [self.cells.holdable(order[:first].tolist())])
        return next((one for one in found if resolved(one.equations)), self._without(chosen[0]))

    def _without(self, empty: list[Any]) -> "AcrossCells":
        """The equations across the directions of these cells.

        What their rows add to the moments is a sum of rows, of the direction of which nothing is
        known but that of all rows.
        """
        p = len(self.target)
        if not empty:
            return AcrossCells(self, np.eye(p), np.empty((p, 0)), [], np.zeros((p, p)))
        weights = self.row_cells or self.cells
        held, right = split(self.cells.unit[empty], p)
        found = self.across(split(weights.unit[empty], p)[1], right)
        theta = right @ np.linalg.lstsq(found.design, found.target, rcond=None)[0]
        rows = psd_part(found.gram) / self.n
        square = moved(weights, empty, self.target - self.design @ theta, self.spread(theta), 1.0)
        return AcrossCells(found, right, held, empty, square * rows)

    def spread(self, theta: np.ndarray) -> "Scalar":
        """Variance of the noise of target - design'theta in a direction across theta."""
        divisor = 2.0 if self.symmetric else 1.0
        return self.target_scale**2 + self.design_scale**2 * (theta @ theta) / divisor

    def residual_level(self, rows: float) -> "Scalar":
        """Released mean square of residuals, or by persons of what is left of theirs, from the
        trace of the Gram matrix.
        """
        released = trace_of(self.sampling_gram)
        return max(released, self.residual_scale * sqrt(len(self.target))) / max(rows, 1e-300)

    @property
    def degrees(self) -> float:
        """Factor of the sampling covariance by degrees of freedom, as in least squares."""
        if self.debias is not None:
            return self.debias
        return self.n / (self.n - len(self.target)) if self.n > len(self.target) else 1.0

    @property
    def exact(self) -> bool:
        """Whether no noise was added."""
        return self.design_scale == 0.0

    def residual_deviation(self, theta: np.ndarray) -> tuple[float, float]:
        """Least and largest root mean square of r - phi'theta that the answers leave open.

        The released residual Gram of normalised rows has it as its trace; otherwise it is the
        quadratic form of the equations, or at most the target's own size. The limits are two
        standard deviations of the noise away. They place a grid, and nothing rests on them.
        """
        norm = float(theta @ theta)
        if not self.symmetric and self.residual_gram is not None:
            # of rows of length 1, or shorter where weights fade
            longer = self.n / min(self.n, max(trace_of(self.gram), 0.01 * self.n))
            square = trace_of(self.residual_gram) * longer
            noise = self.residual_scale * sqrt(len(theta)) * longer
        elif self.symmetric:
            square = self.square + (theta @ (self.design @ theta - 2.0 * self.target))
            noise = self.target_scale * sqrt(1.0 + 4.0 * norm + norm**2)
        else:
            square = self.square / 2.0
            noise = max(self.square, 0.0) / 4.0 + self.target_scale
        low = max(square - 2.0 * noise, 0.0)
        high = max(square, 0.0) + 2.0 * noise
        return sqrt(low / self.n), sqrt(high / self.n)

    def solve_ridge(self, penalty: np.ndarray) -> "Array":
        """Solution with a public penalty, a matrix; of least norm if singular."""
        design = psd_part(self.design) if self.symmetric and not self.exact else self.design
        design = design + penalty
        if not self.exact:
            return linalg.lstsq(design, self.target)[0]
        values = np.diagonal(design)
        balance = 1.0 / np.sqrt(np.where(values > 0.0, values, 1.0))
        return balance * linalg.lstsq(design * np.outer(balance, balance), balance * self.target)[0]

    def posterior(
        self, priors: list[np.ndarray], least_variance: float = 0.0, fading: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and covariance of theta, the prior's shape and size by evidence.

        The error of the equations has covariance C = v gram + (s_b^2 + s_A^2 ||theta||^2 / k) I,
        with k = 2 for GOE noise and 1 otherwise, and v the residual variance. All inputs are
        released answers, so that the choice of the prior is post-processing and costs nothing.

        Parameters
        ----------
        priors : list of ndarray of shape (p, p)
            Candidates R for the prior theta = tau R w, w ~ N(0, I), each public or released.
        least_variance : float
            Least value of tau^2: a prior that is too narrow, by the accident of little evidence,
            tells that everything is known.
        fading : bool
            Whether v falls with the privacy noise where that is small beside sampling. As epsilon
            grows nothing is shrunk then, and the mean solves the records' own equations.

        Returns
        -------
        (ndarray of shape (p,), ndarray of shape (p, p))
        """
        gram = psd_part(self.gram)
        design = psd_part(self.design) if self.symmetric else self.design
        variance = float(np.clip(self.square / self.n, 0.01, 1.0))
        theta = np.zeros_like(self.target)
        for _ in range(3):
            # Without noise it may be 0
            spread = max(self.spread(theta), RELATIVE_ZERO * (1.0 + trace_of(gram)))
            typical = max(variance * trace_of(gram) / len(gram), 1e-300)
            part = min(1.0, SAMPLING * float(spread) / typical) if fading else 1.0
            root = np.linalg.cholesky(part * variance * gram + spread * np.eye(len(theta)))
            both = lapack.dtrtrs(root, np.column_stack([design, self.target]), lower=1)[0]
            whitened = both[:, :-1]
            response = both[:, -1]
            fits = [
                (normal_posterior(whitened @ prior, response, least_variance), prior)
                for prior in priors
            ]
            (_, weights, factor), prior = max(fits, key=lambda fit: fit[0][0])
            theta = prior @ weights
            factor = prior @ factor
        return theta, factor @ factor.T


class AcrossCells(NamedTuple):
    """Equations across the directions of cells that may be empty.

    Attributes
    ----------
    equations : NormalEquations
        Those of ``vectors.T @ theta``.
    vectors : ndarray of shape (p, m)
        Orthonormal columns across these directions.
    held : ndarray of shape (p, p - m)
        The directions, as orthonormal columns.
    empty : list of int
        The cells.
    moved : ndarray of shape (m, m)
        Covariance of what their rows add to the moments.
    """

    equations: NormalEquations
    vectors: np.ndarray
    held: np.ndarray
    empty: list[int]
    moved: np.ndarray

    def tells(self, points: np.ndarray) -> np.ndarray:
        """Whether each point has no part in a direction that is held."""
        return across_all(points, self.held)


def ridge_prior(size: int, has_intercept: bool) -> np.ndarray:
    """Prior of equal coefficients, with a much wider one for the intercept."""
    width = np.ones(size)
    if has_intercept:
        width[-1] = sqrt(INTERCEPT_PRIOR)
    return np.diag(width)


def normal_posterior(
    design: np.ndarray, response: np.ndarray, least_variance: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Log evidence, mean and root covariance of w in response = design w + N(0, I).

    The prior is w ~ N(0, tau^2 I).
    """
    left, singular, right = np.linalg.svd(design, full_matrices=False)
    projected = left.T @ response
    priors = np.maximum(PRIOR_VARIANCES, least_variance)
    variances = 1.0 + np.outer(priors, singular**2)  # (grid, p)
    evidence = -(np.log(variances) + projected**2 / variances).sum(axis=1)
    best = int(np.argmax(evidence))
    tau2 = priors[best]
    spread = tau2 / (1.0 + tau2 * singular**2)
    return evidence[best], right.T @ (spread * singular * projected), right.T * np.sqrt(spread)


# Weight of r^2 beside (r phi, vech phi phi'): the largest that is free, see MomentsQuery.
SQUARE_WEIGHT = sqrt(1.5)


@frozen_object
class Instrument:
    """Rows e = U phi / max(||U phi||, floor) for a public U, or e = phi itself without one.

    Parameters
    ----------
    matrix : ndarray of shape (p, p) or None
        The symmetric positive definite U.
    length : float
        About the mean of ||U phi||, where that was released.
    floor : float
        Rows whose U phi is shorter are not weighed: with a floor above all of them e = U phi up to
        a factor, and the equations are those of least squares. 0 weighs all rows.
    """

    matrix: np.ndarray | None = None
    _: KW_ONLY
    length: float = 1.0
    floor: float = 0.0

    def halves(self, phi: np.ndarray) -> "Array":
        """Rows h = U^{1/2} phi / sqrt(max(||U phi||, floor)), of norm at most 1 despite rounding.

        Without U, phi itself. U^{1/2} is applied to rows and not to their sum, in which rounding
        errors of weights as large as cond(U) would be left over.
        """
        if self.matrix is None:
            return phi
        lengths = row_norms(phi @ self.matrix)
        halves = phi @ self.root
        halves *= np.sqrt(_inverse(np.maximum(lengths, self.floor)))[:, None]
        norms = row_norms(halves)
        if not norms.max(initial=0.0) <= 1.0:
            halves /= np.maximum(norms, 1.0)[:, None]
        return halves

    def rows(
        self, phi: np.ndarray, weights: float | np.ndarray = 1.0, longest: float | None = None
    ) -> "Array":
        """Rows e of a chunk times weights. (U (sum w^2 phi phi') U would lose cond(U)^2 digits.)

        With a longest length L they are U phi / sqrt(l max(l, L)), l = ||U phi||. Without U they
        are phi itself, and weights are not looked at.
        """
        if self.matrix is None:
            return phi
        rows = phi @ self.matrix
        norms = row_norms(rows)
        if longest is not None:
            weights = np.sqrt(norms / np.maximum(norms, longest))
        rows *= (_inverse(np.maximum(norms, self.floor)) * weights)[:, None]
        return rows

    @cached_property
    def root(self) -> "Array":
        """U^{1/2}, which every chunk of the normalisation needs."""
        return psd_part(self.matrix, power=0.5)

    @cached_property
    def condition(self) -> float:
        """Condition number of U; 1 without U."""
        if self.matrix is None:
            return 1.0
        values = np.linalg.eigvalsh(self.matrix)
        return float(values[-1] / values[0])


def _inverse(norms: np.ndarray) -> "Array":
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > TINY)


@stored_in_policies
@frozen
class MomentsQuery(Query):
    """Joint sum of (r phi, vech phi phi', w r^2), w = sqrt(1.5).

    Sensitivity 3 / sqrt(2). With p = |<phi, phi'>| and |r|, |r'| <= 1, replacing a record moves the
    squared norm by at most (r^2 + r'^2 + 2 p |r r'|) + (2 - 2 p^2) + w^2 (r^2 - r'^2)^2, largest at
    p = |r r'| / 2, where it is a + b + ab/2 + 2 + w^2 (a - b)^2 in a = r^2, b = r'^2. It is convex
    in each, so its maximum is at a corner: 4.5 at (1, 1), 3 + w^2 = 4.5 at (1, 0). Attained: unit
    phi and phi' at an angle of 60 degrees, r = -r'.

    With w = 1/2 the record is the matrix zz' of z = (phi, r / sqrt(2)), and |z|^2 <= 3/2: of two
    records the product is <z, z'>^2 >= 0, and each has a squared norm of at most 9/4, half of the
    squared sensitivity. So a record that leaves one sum and enters another, each with noise for the
    sensitivity, pays in both together what a replaced one pays in one sum.

    Rows that are zero but for the block of one action have no products of two blocks, which are
    left out: what is left is a part of the vector above, and moves by no more.
    """

    maps: "RecordMap"
    name = "moments"
    sensitivity = 3.0 / sqrt(2.0) * ROUNDING
    square_weight: float = SQUARE_WEIGHT  # w
    blocks: int = 1  # of equal size, into which phi is divided
    takes_sparse = True

    @property
    def shape(self) -> tuple[int]:
        """Number of coordinates."""
        p = self.maps.size
        return (p + self.blocks * vech_size(p // self.blocks) + 1,)

    def sum(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Exact sum over a chunk of rows."""
        r = self.maps.target(y)
        p = self.maps.size
        size = p // self.blocks
        target = np.zeros(p)
        grams = np.zeros((self.blocks, size, size))
        for block, phi in self.maps.row_map.in_blocks(X):
            # Of arrays without the interpreter's lock, see `add_gram`
            target += r[block] @ phi if issparse(phi) else np.dot(r[block], phi)
            for at, gram in enumerate(grams):
                add_gram(gram, phi[:, at * size : (at + 1) * size])
        return np.concatenate([target, *map(vech, grams), [self.square_weight * (r @ r)]])

    def equations(self, answer: "Answer") -> NormalEquations:
        """Normal equations of an answer; the public entry of the intercept is put back exactly."""
        found = NormalEquations.of_moments(answer, self.maps.size, self.square_weight, self.blocks)
        if self.maps.fit_intercept and answer.counted:
            constant = self.maps.row_map.parts[1]
            found.design[-1, -1] = answer.n * constant**2  # of the Gram matrix, too
        return found


@frozen
class ResidualGramQuery(Query):
    """Joint sum of (w (zeta / R)^2 e e', x): residuals at a released theta, and what the clip cuts.

    zeta = r - clip(phi'theta, -1, 1), |zeta| <= 2, is clipped to [-R, R] in the matrix, with an
    instrument e; x = (zeta^2 - R^2)_+ / (4 - R^2) is in [0, 1]. If R = 2 there is no x, and w^2 is
    1.5; else 1.

    (zeta / R)^2 <= 1 and ||e|| <= 1, so each matrix is positive semi-definite with trace at most w;
    two such matrices differ by at most w sqrt(1 + 1) in Frobenius norm, and x by at most 1.
    Sensitivity sqrt(3), attained at orthogonal unit e and e' with |zeta| = 2, |zeta'| = R.

    Parameters
    ----------
    maps : RecordMap
    theta : tuple of float
        A released parameter; it only has to be near the truth.
    instrument : Instrument
        Gives rows e = weight U phi of norm at most 1.
    limit : float
        R, public or released: 2 clips nothing, and the noise falls with its square.
    """

    maps: "RecordMap"
    theta: tuple[float, ...]
    instrument: Instrument
    limit: float = 2.0
    name = "residual variance"
    sensitivity = sqrt(3.0) * ROUNDING
    takes_sparse = True

    @property
    def shape(self) -> tuple[int]:
        """Number of coordinates."""
        return (vech_size(self.maps.size) + 1,)

    @property
    def _room(self) -> float:
        """Largest zeta^2 - R^2."""
        return max(4.0 - self.limit**2, 0.0)

    @property
    def _weight(self) -> float:
        return 1.0 if self._room else sqrt(1.5)

    def sum(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Exact sums over a chunk of rows."""
        total = np.zeros((self.maps.size,) * 2)
        beyond = 0.0
        for scores, excess in self._scores(X, y):
            add_gram(total, scores)
            beyond += excess
        return np.append(self._weight * vech(total), beyond)

    def _scores(self, X: np.ndarray, y: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
        """Yield rows e zeta / R of one block after the other, and the sum of x over it."""
        row_map = self.maps.row_map
        theta = np.array(self.theta)
        r = self.maps.target(y)
        for block, phi in row_map.in_blocks(X):
            zeta = r[block] - (phi @ theta).clip(-1.0, 1.0)
            cut = zeta.clip(-self.limit, self.limit) / self.limit
            if self.instrument.matrix is None:
                scores = diags(cut) @ phi if issparse(phi) else phi * cut[:, None]
            else:
                scores = row_map.weigh(self.instrument.rows(phi, cut), X[block])
            yield scores, self._beyond(zeta)

    def _beyond(self, zeta: np.ndarray) -> "Scalar":
        """Sum of x."""
        if not self._room:
            return 0.0
        square = (zeta**2 - self.limit**2).clip(0.0, self._room)
        return square.sum() / self._room

    def read(self, answer: "Answer") -> dict[str, Any]:
        """The part of an answer that `NormalEquations` keep: noisy sums, and the deviations of
        their noise.

        The sums are of zeta^2 e e', clipped, and of zeta^2 less the clipped zeta^2.
        """
        unit = self.limit**2 / self._weight
        scale = answer.noise.scale
        return {
            "residual_gram": unit * unvech(answer.value[:-1], self.maps.size),
            "residual_scale": unit * scale,
            "residual_excess": self._room * answer.value[-1],
            "excess_scale": self._room * scale,
            "residual_thetas": (tuple(map(float, self.theta)),),
        }


@frozen
class PersonGramQuery(OfPersons, ResidualGramQuery):
    """Joint sum of (mean (zeta / R)^2 e e', u u', x) over persons, u = mean zeta e / R.

    Means are over the m places of a person, and matrices stand for their vech. The first is what
    `ResidualGramQuery` asks, and bounds the covariance of scores whatever their dependence is; the
    second is that covariance. Both are positive semi-definite of trace at most 1: each moves
    by at most sqrt(2) in Frobenius norm, and x is in [0, 1]. Sensitivity sqrt(5).
    """

    name = "residual variance"
    sensitivity = sqrt(5.0) * ROUNDING

    @property
    def shape(self) -> tuple[int]:
        """Number of coordinates."""
        return (2 * vech_size(self.maps.size) + 1,)

    def sum_persons(
        self, X: np.ndarray, y: np.ndarray, starts: np.ndarray, largest: int
    ) -> np.ndarray:
        """Exact sums over a chunk of persons."""
        blocks, beyond = zip(*self._scores(X, y))
        scores = np.vstack(blocks)
        means = person_sums(scores, 1.0, starts) / largest
        gram = vech(np.dot(scores.T, scores)) / largest
        return np.concatenate([gram, vech(np.dot(means.T, means)), [sum(beyond) / largest]])

    @property
    def _weight(self) -> float:
        return 1.0

    def read(self, answer: "Answer") -> dict[str, Any]:
        """The part of an answer that `NormalEquations` keep: that of rows, and that of persons."""
        size = vech_size(self.maps.size)
        rows = np.append(answer.value[:size], answer.value[-1])
        persons = super().read(replace(answer, value=answer.value[size:]))
        found = super().read(replace(answer, value=rows))
        return {**found, "person_gram": persons["residual_gram"]}


def cluster_degrees(persons: int, rows: int, p: int) -> float:
    """Factor of a covariance that is robust to dependence inside of persons, without privacy.

    As in Stata, linearmodels and pyfixest: G / (G - 1) (N - 1) / (N - p) of G persons with N rows.
    """
    if persons < 2 or rows <= p:
        return 1.0
    return persons / (persons - 1.0) * (rows - 1.0) / (rows - p)
