"""Several classes: the link of their probabilities, and the questions about their scores."""

from collections.abc import Iterator
from functools import cache
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from ..._estimation._levels import two_sided_quantile
from ..._estimation._links import Logit
from ..._estimation._persons import JointScores, PersonScores
from ..._estimation._targets import LEAST_RATE, Location, OfTargets, best_linear, scaled_targets
from ..._linalg import SQRT2, blocks_of, kronecker_sums, pair_products, unwarned, vech, vech_size
from ..._stored import frozen, frozen_object, stored
from ...privacy import ROUNDING, Query

if TYPE_CHECKING:
    from ...privacy import Answer
    from ..._estimation._loop._rows import PreparedRows, Whitened
    from ..._estimation._public_maps import PublicRows, PublicTargets, RecordMap, RowMap
    from ..._contracts import Array, Scalar
    from ..._estimation._loop._fit import LoopFit


@cache
def contrasts(n_classes: int) -> np.ndarray:
    """Orthonormal columns Q, shape (n_classes, n_classes - 1), across the vector of ones."""
    full = np.linalg.qr(np.column_stack([np.ones(n_classes), np.eye(n_classes)[:, :-1]]))[0]
    full.flags.writeable = False
    return full[:, 1:]


@stored
@frozen
class Softmax(Logit):
    """Several classes, whose probabilities are exponentials of linear parts over their sum.

    Parameters
    ----------
    n_classes : int
    """

    high = inf  # r is the code of a class
    least_effective_records = 45.0
    slope_weight = 2.0 / 3.0  # free up to .68, see `ClassScoreQuery`
    steepest: float = 0.5 * Logit.far_length
    n_classes: int = 3

    @property
    def parts(self) -> int:
        """Contrasts of the classes."""
        return self.n_classes - 1

    @property
    def origin(self) -> np.ndarray:
        """Linear parts of classes that are equally likely."""
        return np.zeros(self.n_classes)

    def linear_part(self, mean: float | np.ndarray) -> Any:
        """Log-odds of each class against the geometric mean of all, at these rates."""
        return np.log(mean) - np.log(mean).mean()

    def slope(self, eta: float | np.ndarray, mean: float | np.ndarray) -> Any:
        """Slope at these rates over the largest, in the contrast in which it is smallest."""
        Q = contrasts(self.n_classes)
        spread = float(np.linalg.eigvalsh(Q.T @ (np.diag(mean) - np.outer(mean, mean)) @ Q)[0])
        return 2.0 * spread

    def deviance(
        self, phi: np.ndarray, r: np.ndarray, weights: np.ndarray, theta: np.ndarray
    ) -> "Scalar":
        """-2 sum(log(pi_y)) of codes r of the classes y."""
        eta = self._eta(phi, theta)
        likely = eta[np.arange(len(r)), np.rint(r).astype(int)] - special.logsumexp(eta, axis=1)
        return -2.0 * (weights @ likely)

    def newton(
        self, phi: np.ndarray, r: np.ndarray, weights: np.ndarray, theta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of half of the likelihood, and its curvature."""
        probabilities = special.softmax(self._eta(phi, theta), axis=1)
        away = -probabilities
        away[np.arange(len(r)), np.rint(r).astype(int)] += 1.0
        gradient = (away @ contrasts(self.n_classes)).T @ (phi * weights[:, None])
        slopes = slopes_of_pairs(probabilities.T) * weights
        p = phi.shape[1]
        sums = np.zeros((len(slopes), vech_size(p)))
        for block in blocks_of(*phi.shape):
            sums += np.dot(slopes[:, block], pair_products(phi[block].T).T)
        return gradient.reshape(-1), kronecker_sums(sums, self.n_classes - 1, p)

    def _eta(self, phi: np.ndarray, theta: np.ndarray) -> "Array":
        """Linear parts of all classes, shape (n_rows, n_classes)."""
        Q = contrasts(self.n_classes)
        return phi @ (Q @ theta.reshape(Q.shape[1], -1)).T

    def each(self, matrix: np.ndarray) -> np.ndarray:
        """A matrix from theta to coefficients, for the contrasts of one class after the other."""
        return np.kron(contrasts(self.n_classes), matrix)

    def interval(
        self, fit: "LoopFit", phi: np.ndarray, confidence_level: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Intervals for the log-odds of each class against all others, to first order.

        Their derivative by the linear parts is (1{k = j} - pi_j) / (1 - pi_k) up to a sum over
        classes that is 0, at the probabilities pi of the estimate.

        Parameters
        ----------
        fit : LoopFit
        phi : ndarray of shape (n_rows, p)
        confidence_level : float

        Returns
        -------
        (centre, half)
            Two arrays of shape (n_rows, n_classes); half-widths are infinite where a direction is
            not resolved.
        """
        Q = contrasts(self.n_classes)
        quantile = two_sided_quantile(confidence_level)
        law = fit.law()
        eta = np.column_stack([law.value(fit.points(np.kron(row, phi))) for row in Q])
        log_odds = special.log_softmax(eta + fit.location, axis=1)
        probabilities = np.exp(log_odds)
        centre = np.zeros(eta.shape)
        half = np.full(eta.shape, inf)
        for k in range(self.n_classes):
            rest = np.maximum(1.0 - probabilities[:, k], np.finfo(float).tiny)
            slope = (np.eye(self.n_classes)[k] - probabilities) / rest[:, None]
            points = ((slope @ Q)[:, :, None] * phi[:, None, :]).reshape(len(phi), -1)
            points = fit.points(points)
            width = quantile * np.sqrt(sum(law.variances(points)))
            resolved = law.resolved(points) & np.isfinite(width)
            centre[resolved, k] = (log_odds[:, k] - np.log(rest))[resolved]
            half[resolved, k] = width[resolved]
        return centre, half

    def location_query(self, maps: "RecordMap") -> Query:
        """The query of the rates of the classes, where the loop starts."""
        return ClassRatesQuery(maps.row_map, maps.target_map, self.n_classes)

    def score_query(
        self, of_persons: bool, *fields: "Whitened | PublicTargets | np.ndarray"
    ) -> Any:
        """The query of the scores at whitened rows, a target, a location and a point."""
        kind: Any = PersonClassScoreQuery if of_persons else ClassScoreQuery
        return kind(*fields, self)


def class_targets(
    row_map: "PublicRows | None",
    target_map: "PublicTargets | None",
    X: "PreparedRows | np.ndarray",
    y: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Codes of the classes of a chunk, NaN for no class, and roots of weights in [0, 1]."""
    code, roots = scaled_targets(row_map, target_map, X, y, 0.0, inf)
    return np.rint(code), roots


@frozen
class ClassRatesQuery(OfTargets, Query):
    """Numbers of records of each class: replacing one moves two counts by 1, or with weights in
    [0, 1] by at most that: sensitivity sqrt(2).
    """

    row_map: "RowMap"
    target_map: Any
    n_classes: int
    name = "rates of the classes"
    sensitivity = SQRT2 * ROUNDING

    @property
    def shape(self) -> tuple[int]:
        """Number of classes."""
        return (self.n_classes,)

    def sum(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Exact counts over a chunk of rows."""
        code, roots = class_targets(self.row_map, self.target_map, X, y)
        has_class = np.isfinite(code)
        code = code[has_class].astype(int)
        return np.bincount(code, roots[has_class] ** 2, minlength=self.n_classes)

    def read(self, answer: "Answer") -> Location:
        """The `Location`: parts of the classes among the records that have one; they sum to 1.

        Each is the best linear estimate from its own count: a priori all parts that sum to 1 are
        equally likely, so that each has the variance (k - 1) / (k^2 (k + 1)) for k classes.
        """
        k = self.n_classes
        noise = answer.noise.scale
        total = max(answer.value.sum(), 1.0)
        variance = (k - 1.0) / (k**2 * (k + 1.0))
        counts = total * best_linear(answer.value / total, noise / total, 1.0 / k, variance)
        counts = np.maximum(counts, min(LEAST_RATE, answer.n / (4.0 * k)))
        return Location(counts / counts.sum(), noise * k**0.5 / (2.0 * total), total / answer.n)


def slopes_of_pairs(probabilities: np.ndarray) -> "Array":
    """Entries of Q'(diag pi - pi pi')Q of each record, shape (number of pairs, n_records).

    Parameters
    ----------
    probabilities : ndarray of shape (n_classes, n_records)
    """
    Q = contrasts(len(probabilities))
    return pair_products(Q.T) @ probabilities - pair_products(Q.T @ probabilities)


@frozen_object
class ClassScoreQuery(JointScores, Query):
    """Joint sum of (u, c A, uu' / sqrt(2)) over records; matrices mean their vech.

    With a whitened row psi, w = min(1, 1 / |psi|), e = w psi and log-odds m + Q B psi of K classes,
    whose probabilities are pi, d = y - pi is the residual of the class y (a unit vector). Then
    u = v Q'd (x) e / sqrt(2) and A = 2 h Q'(diag pi - pi pi')Q (x) ee', with v = min(1, far w) and
    h = v / (far w), both in [0, 1]. Q has K - 1 orthonormal columns across the ones, as d is. A
    record that is of no class has u = 0 and A = 0. Sensitivity 2 for c = 2/3.

    Proof. Let a = |pi|^2, and X = |u|^2 <= |d|^2 / 2 = (1 - 2 pi_y + a) / 2 <= (1 + a) / 2. The
    matrix S = diag pi - pi pi' is positive semi-definite, so that |S| <= tr S = 1 - a in the
    Frobenius norm; and |S|^2 = a - 2 sum pi^3 + a^2 <= a - a^2 <= 1/4, since sum pi^3 >= a^2. Hence
    |A|^2 <= k(a) = min(4 (1 - a)^2, 1). For two records, A and A' are positive semi-definite:
    <A, A'> >= 0. With i = <u, u'> the squared change is at most
        X + X' - 2 i + (X^2 + X'^2 - 2 i^2) / 2 + c^2 (k + k'),
    which falls in i >= -1, so that i = -sqrt(X X') >= -(X + X') / 2 is the worst case: at most
    2 (X + X') + (X - X')^2 / 2 + c^2 (k + k'). Before that step it grows in X and X' <= 1: take
    X = (1 + a) / 2 = 1 - P with P in [0, 1/2], and k = min(16 P^2, 1). As (P - P')^2 <= P^2 + P'^2
    it is at most 4 + f(P) + f(P') with f(P) = -2 P + P^2 / 2 + c^2 min(16 P^2, 1). Up to P = 1/4
    f <= 0 as (16 c^2 + 1/2) / 4 <= 2, for c <= .68; beyond, f is convex, and negative at both ends.

    Parameters
    ----------
    whitened : Whitened
    target_map : object with ``scaled(y)``
        Codes of the classes, NaN for no class.
    location : ndarray of shape (K,)
        m.
    point : ndarray of shape ((K - 1) p,)
        B, row by row.
    link : Softmax
    """

    whitened: "Whitened"
    target_map: Any
    location: np.ndarray
    point: np.ndarray
    link: Any
    name = "scores of classes"
    limit = SQRT2
    weights = {"moment": 1.0, "slope": Softmax.slope_weight, "residual": 1.0 / SQRT2}

    @property
    def sensitivity(self) -> float:
        """Declared sensitivity."""
        return 2.0 * ROUNDING

    @property
    def prepared(self) -> "tuple[Whitened, Query] | None":
        """The maker of rows (e, w, |e|) and this query of them, where they may be kept."""
        return self.whitened.prepared_for(self)

    def sum(self, X: "PreparedRows | np.ndarray", y: np.ndarray) -> np.ndarray:
        """Exact sum over a chunk of rows, each of which is a record.

        A and uu' are weights (x) ee' of each pair of contrasts, so that one product of the distinct
        entries of ee' by all weights has both sums.
        """
        k = len(self.location) - 1
        p = len(self.whitened.W)
        moment = np.zeros((k, p))
        sums = np.zeros((k * (k + 1), vech_size(p)))
        for d, slopes, e in self.scores(X, y):
            moment += np.dot(d, e.T)
            sums += np.dot(np.concatenate([slopes, pair_products(d)]), pair_products(e).T)
        slope, residual = (vech(kronecker_sums(part, k, p)) for part in np.split(sums, 2))
        return self.joined({"moment": moment, "slope": slope, "residual": residual})

    def scored(
        self, X: "PreparedRows", y: np.ndarray
    ) -> tuple[np.ndarray, float, dict[str, np.ndarray]]:
        """Rows u of a chunk, their factor, and the sum of A."""
        k = len(self.location) - 1
        p = len(self.whitened.W)
        sums = np.zeros((k * (k + 1) // 2, vech_size(p)))
        scores = []
        for d, slopes, e in self.scores(X, y):
            sums += np.dot(slopes, pair_products(e).T)
            scores.append((d.T[:, :, None] * e.T[:, None, :]).reshape(-1, k * p))
        return np.vstack(scores), 1.0, {"slope": vech(kronecker_sums(sums, k, p))}

    def scores(
        self, X: "PreparedRows | np.ndarray", y: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield (v Q'd / sqrt(2), 2 h Q'(diag pi - pi pi')Q, e) of one block of rows after another.

        Records are columns, of arrays of shape (K - 1, n_rows), (pairs of contrasts, n_rows) and
        (p, n_rows).
        """
        code, roots = class_targets(self.whitened.row_map, self.target_map, X, y)
        Q = contrasts(len(self.location))
        far = self.link.far_length
        QB = Q @ self.point.reshape(Q.shape[1], -1)
        for block, rows, w, *_ in self.whitened.blocks(X):
            for part in blocks_of(len(rows), vech_size(len(self.whitened.W))):
                e = np.ascontiguousarray(rows[part].T)
                factors = w[part]
                label = code[block][part]
                root = roots[block][part]
                with unwarned():
                    eta = self.location[:, None] + np.dot(QB, e) / factors
                    has_class = np.isfinite(label) & np.isfinite(eta.sum(axis=0))
                    eta = np.where(np.isfinite(eta), eta, 0.0)
                    v = np.minimum(root, far * factors)
                    h = np.where(has_class, v / (far * factors), 0.0)
                probabilities = np.exp(eta - eta.max(axis=0))
                probabilities /= probabilities.sum(axis=0)
                d = -probabilities
                d[label[has_class].astype(int), np.flatnonzero(has_class)] += 1.0
                d = np.dot(Q.T / SQRT2, d * np.where(has_class, v, 0.0))
                yield d, 2.0 * h * slopes_of_pairs(probabilities), e


@frozen_object
class PersonClassScoreQuery(PersonScores, ClassScoreQuery):
    """Scores of the classes where a record is a person with several rows.

    u is the sum of a person's scores over m L, shortened to norm 1, and A is the mean over the m
    places of the person. The squared sensitivity is 4 + 2 c^2, by the proof of `PersonScoreQuery`:
    |A| <= 1 in the Frobenius norm is not tied to u any more.

    Parameters
    ----------
    length : float
        L: the part of m at which the sum of a person is cut; 1 cuts nothing.
    """

    name = "scores of classes of persons"
    length: float = 1.0

    @property
    def sensitivity(self) -> float:
        """Declared sensitivity."""
        return sqrt(4.0 + 2.0 * self.weights["slope"] ** 2) * ROUNDING
