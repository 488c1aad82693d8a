"""More than two classes: their link, and what is asked of all of them jointly."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy import special

from ..._estimation._intervals import two_sided_quantile
from ..._estimation._loop._links import Logit
from ..._estimation._loop._queries import (
    LEAST_RATE,
    Location,
    LocationQuery,
    Whitened,
    scaled_targets,
)
from ..._estimation._persons import JointScores, PersonScores
from ..._estimation._public_maps import RowMap
from ..._linalg import SQRT2, vech, vech_size
from ...privacy import ROUNDING, Query

SLOPE_WEIGHT = 2.0 / 3.0  # of the slopes: free up to .68, see `ClassScoreQuery`


def contrasts(n_classes):
    """Orthonormal columns Q, shape (n_classes, n_classes - 1), across the vector of ones."""
    full = np.linalg.qr(np.column_stack([np.ones(n_classes), np.eye(n_classes)[:, :-1]]))[0]
    return full[:, 1:]


@dataclass(frozen=True)
class Softmax(Logit):
    """Several classes, whose probabilities are exponentials of linear parts over their sum.

    Parameters
    ----------
    n_classes : int
    """

    high = np.inf  # r is the code of a class
    steepest: float = 0.5 * Logit.far
    n_classes: int = 3

    @property
    def parts(self):
        """Contrasts of the classes."""
        return self.n_classes - 1

    @property
    def origin(self):
        """As likely as each other."""
        return np.zeros(self.n_classes)

    def linear_part(self, mean):
        """Log-odds of each class against the geometric mean of all, at these rates."""
        return np.log(mean) - np.log(mean).mean()

    def slope(self, eta, mean):
        """Slope at these rates over the largest, in the contrast in which it is smallest."""
        Q = contrasts(self.n_classes)
        spread = float(np.linalg.eigvalsh(Q.T @ (np.diag(mean) - np.outer(mean, mean)) @ Q)[0])
        return 2.0 * spread

    def deviance(self, phi, r, weights, theta):
        """-2 sum(log(pi_y)) of codes r of the classes y."""
        eta, places = self._eta(phi, theta), np.rint(r).astype(int)
        likely = eta[np.arange(len(r)), places] - special.logsumexp(eta, axis=1)
        return -2.0 * float(weights @ likely)

    def newton(self, phi, r, weights, theta):
        """Gradient of half of the likelihood, and its curvature."""
        probabilities = special.softmax(self._eta(phi, theta), axis=1)
        away = -probabilities
        away[np.arange(len(r)), np.rint(r).astype(int)] += 1.0
        gradient = (away @ contrasts(self.n_classes)).T @ (phi * weights[:, None])
        hessian = np.zeros((len(theta),) * 2, order="F")
        add_slopes(hessian, probabilities, weights, phi)
        return gradient.reshape(-1), hessian

    def _eta(self, phi, theta):
        """Linear parts of all classes, shape (n_rows, n_classes)."""
        Q = contrasts(self.n_classes)
        return phi @ (Q @ theta.reshape(Q.shape[1], -1)).T

    def each(self, matrix):
        """A matrix from theta to coefficients, for the contrasts of one class after the other."""
        return np.kron(contrasts(self.n_classes), matrix)

    def interval(self, fit, phi, confidence_level):
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
        Q, quantile = contrasts(self.n_classes), two_sided_quantile(confidence_level)
        eta = np.column_stack([fit.estimate(fit.points(np.kron(row, phi))).value for row in Q])
        log_odds = special.log_softmax(eta + fit.location, axis=1)
        probabilities = np.exp(log_odds)
        centre, half = np.zeros(eta.shape), np.full(eta.shape, np.inf)
        for k in range(self.n_classes):
            rest = np.maximum(1.0 - probabilities[:, k], np.finfo(float).tiny)
            slope = (np.eye(self.n_classes)[k] - probabilities) / rest[:, None]
            points = ((slope @ Q)[:, :, None] * phi[:, None, :]).reshape(len(phi), -1)
            estimate = fit.estimate(fit.points(points))
            width = quantile * np.sqrt(sum(estimate.variances()))
            known = estimate.resolved & np.isfinite(width)
            centre[known, k] = (log_odds[:, k] - np.log(rest))[known]
            half[known, k] = width[known]
        return centre, half

    def rates_query(self, rows, target):
        """The question of the rates."""
        return ClassRatesQuery(rows, target, self.n_classes)

    def score_query(self, of_persons, *asked):
        """The question of the scores at whitened rows, target, location and point."""
        kind: Any = PersonClassScoreQuery if of_persons else ClassScoreQuery
        return kind(*asked, self)


def coded(rows, target, X, y):
    """Codes of the classes of a chunk, NaN for no class, and roots of weights in [0, 1]."""
    code, roots = scaled_targets(rows, target, X, y, 0.0, np.inf)
    return np.rint(code), roots


@dataclass(frozen=True)
class ClassRatesQuery(Query):
    """Numbers of records of each class: replacing one moves two counts by 1, or with weights in
    [0, 1] by at most that: sensitivity sqrt(2).
    """

    rows: RowMap
    target: Any
    n_classes: int
    name: str = "rates of the classes"
    sensitivity: float = SQRT2 * ROUNDING

    @property
    def shape(self):
        """Number of classes."""
        return (self.n_classes,)

    weighted, width = LocationQuery.weighted, LocationQuery.width

    def sum(self, X, y):
        """Exact counts over a chunk of rows."""
        code, roots = coded(self.rows, self.target, X, y)
        known = np.isfinite(code)
        code, weights = code[known].astype(int), roots[known] ** 2
        return np.bincount(code, weights, minlength=self.n_classes)

    def read(self, answer):
        """The `Location`: parts of the classes among the records that have one; they sum to 1."""
        least = min(LEAST_RATE, answer.n / (4.0 * self.n_classes))
        counts = np.maximum(answer.value, least)
        part = max(float((answer.value / answer.n).sum()), 1.0 / answer.n)
        noise = answer.noise.scale * self.n_classes**0.5 / answer.n
        return Location(counts / counts.sum(), noise / (2.0 * part), part)


def add_slopes(total, probabilities, weights, e):
    """Add the sum of weights Q'(diag pi - pi pi')Q (x) ee' over rows."""
    Q, p = contrasts(probabilities.shape[1]), e.shape[1]
    turned = probabilities @ Q
    for i in range(Q.shape[1]):
        for j in range(i + 1):
            spread = probabilities @ (Q[:, i] * Q[:, j]) - turned[:, i] * turned[:, j]
            part = (e * (weights * spread)[:, None]).T @ e
            total[i * p : (i + 1) * p, j * p : (j + 1) * p] += part
            if i != j:
                total[j * p : (j + 1) * p, i * p : (i + 1) * p] += part


@dataclass(frozen=True, eq=False)
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
    target : object with ``scaled(y)``
        Codes of the classes, NaN for no class.
    location : ndarray of shape (K,)
        m.
    point : ndarray of shape ((K - 1) p,)
        B, row by row.
    link : Softmax
    """

    whitened: Whitened
    target: Any
    location: np.ndarray
    point: np.ndarray
    link: Any
    name: str = "scores of classes"
    limit, slope_weight, square_weight, count_weight = SQRT2, SLOPE_WEIGHT, 1.0, 1.0
    matrices, asks_cut, most_excess = True, False, None

    @property
    def sensitivity(self):
        """Declared sensitivity."""
        return 2.0 * ROUNDING

    @property
    def unit(self):
        """What a score of norm 1 stands for."""
        return SQRT2 * self.length

    @property
    def parts(self):
        """Sizes of what is asked, in the order of the answer."""
        size = len(self.point)
        return {"moment": size, "slope": vech_size(size), "residual": vech_size(size)}

    def scored(self, X, y):
        """Rows u of a chunk, and the sum of A."""
        slopes = np.zeros((len(self.point),) * 2, order="F")
        found = [np.empty((0, len(self.point)))]
        for u, probabilities, h, e in self.scores(X, y):
            add_slopes(slopes, probabilities, 2.0 * h, e)
            found.append(u)
        return np.vstack(found), {"slope": SLOPE_WEIGHT * vech(slopes)}

    def scores(self, X, y):
        """Yield (u, pi, h, e) of one block of rows after the other."""
        code, roots = coded(self.whitened.rows, self.target, X, y)
        Q = contrasts(len(self.location))
        B = self.point.reshape(Q.shape[1], -1)
        for block, e, w, *_ in self.whitened.blocks(X):
            with np.errstate(all="ignore"):
                eta = self.location + (e / w[:, None]) @ (Q @ B).T
                probabilities = special.softmax(np.where(np.isfinite(eta), eta, 0.0), axis=1)
                v = np.minimum(roots[block], self.link.far * w)
                h = v / (self.link.far * w)
            known = np.isfinite(code[block]) & np.isfinite(eta).all(axis=1)
            d = -probabilities
            d[known, code[block][known].astype(int)] += 1.0
            d = (d * np.where(known, v, 0.0)[:, None]) @ Q / SQRT2
            u = (d[:, :, None] * e[:, None, :]).reshape(len(e), -1)
            yield u, probabilities, np.where(known, h, 0.0), e


@dataclass(frozen=True, eq=False)
class PersonClassScoreQuery(PersonScores, ClassScoreQuery):
    """The same of persons: u is the sum of a person's over m L, shortened to norm 1, and A the mean
    over the m places. The squared sensitivity is 4 + 2 c^2, by the proof of `PersonScoreQuery`:
    |A| <= 1 in the Frobenius norm is not tied to u any more.

    Parameters
    ----------
    length : float
        L: the part of m at which the sum of a person is cut; 1 cuts nothing.
    """

    name: str = "scores of classes of persons"
    length: float = 1.0

    @property
    def sensitivity(self):
        """Declared sensitivity."""
        return sqrt(4.0 + 2.0 * SLOPE_WEIGHT**2) * ROUNDING
