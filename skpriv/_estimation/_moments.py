"""Second-moment queries: what sufficient-statistics estimators ask, with or without instruments."""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from .._linalg import TINY, add_gram, psd_power, row_norms, triangle_times, unvech, vech, vech_size
from ..privacy import ROUNDING, Query
from ._normal_equations import NormalEquations
from ._public_maps import Scaling

# Weight of r^2 beside (r phi, vech phi phi'): the largest that is free, see MomentsQuery.
SQUARE_WEIGHT = sqrt(1.5)


@dataclass(frozen=True, eq=False)
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

    def halves(self, phi):
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

    def rows(self, phi, weights=1.0):
        """Rows e of a chunk times weights. (U (sum w^2 phi phi') U would lose cond(U)^2 digits.)"""
        if self.matrix is None:
            return phi if np.ndim(weights) == 0 else phi * weights[:, None]
        rows = phi @ self.matrix
        rows *= (_inverse(np.maximum(row_norms(rows), self.floor)) * weights)[:, None]
        return rows

    def turned(self, phi, weights=1.0, longest=None):
        """Rows Q'e times weights, for U = QR: at half the price, and phi is overwritten.

        Noise that is the same in every direction has the same law before and after `unturned`. With
        a longest length L the rows are U phi / sqrt(l max(l, L)), l = ||U phi||.
        """
        Q, R = self._factors
        rows = phi if Q is None else triangle_times(R, phi)
        norms = row_norms(rows)
        if longest is not None:
            weights = np.sqrt(norms / np.maximum(norms, longest))
        rows *= (_inverse(np.maximum(norms, self.floor)) * weights)[:, None]
        return rows

    def unturned(self, answer, matrix=False):
        """Sums of e by those of Q'e; of a matrix ee' both sides are turned."""
        Q = self._factors[0]
        if Q is None:
            return answer
        return Q @ answer @ Q.T if matrix else Q @ answer

    @cached_property
    def _factors(self):
        """Q and R of U = QR: R phi is as long as U phi; None for U = 1."""
        U = np.asarray(self.matrix)
        if np.array_equal(U, np.eye(len(U))):
            return None, None
        return np.linalg.qr(U)

    @cached_property
    def root(self):
        """U^{1/2}, which every chunk of the normalisation needs."""
        return psd_power(self.matrix, 0.5)

    @cached_property
    def condition(self):
        """Condition number of U; 1 without U."""
        if self.matrix is None:
            return 1.0
        values = np.linalg.eigvalsh(self.matrix)
        return float(values[-1] / values[0])


def _inverse(norms):
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > TINY)


@dataclass(frozen=True)
class MomentsQuery(Query):
    """Joint sum of (r phi, vech phi phi', w r^2), w = sqrt(1.5).

    Sensitivity 3 / sqrt(2). With p = |<phi, phi'>| and |r|, |r'| <= 1, replacing a record moves the
    squared norm by at most
    (r^2 + r'^2 + 2 p |r r'|) + (2 - 2 p^2) + w^2 (r^2 - r'^2)^2,
    largest at p = |r r'| / 2, where it is a + b + ab/2 + 2 + w^2 (a - b)^2 in a = r^2, b = r'^2.
    That is convex in each, so its maximum is at a corner: 4.5 at (1, 1), 3 + w^2 = 4.5 at (1, 0).
    Attained: unit phi and phi' at an angle of 60 degrees, r = -r'.

    With w = 1/2 the record is the matrix zz' of z = (phi, r / sqrt(2)), and |z|^2 <= 3/2: of two
    records the product is <z, z'>^2 >= 0, and each has a squared norm of at most 9/4, half of the
    squared sensitivity. So a record that leaves one sum and enters another, each with noise for the
    sensitivity, pays in both together what a replaced one pays in one sum.
    """

    scaling: Scaling
    name: str = "moments"
    sensitivity: float = 3.0 / sqrt(2.0) * ROUNDING
    square_weight: float = SQUARE_WEIGHT  # w

    @property
    def shape(self):
        """Number of coordinates."""
        p = self.scaling.size
        return (p + vech_size(p) + 1,)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        r = self.scaling.target(y)
        gram, target = self.scaling.sums(X, r[None])
        return np.concatenate([target[0], vech(gram), [self.square_weight * (r @ r)]])

    def widened(self, value, extra):
        """Sums of rows with further features, all of them 0; there is no intercept."""
        p = self.scaling.size
        design = np.pad(unvech(value[p:-1], p), ((0, extra), (0, extra)))
        return np.concatenate([value[:p], np.zeros(extra), vech(design), value[-1:]])

    def equations(self, answer):
        """Normal equations of an answer; the public entry of the intercept is put back exactly."""
        size = self.scaling.size
        found = NormalEquations.of_moments(answer, size, self.square_weight)
        if self.scaling.fit_intercept and answer.counted:
            constant = self.scaling.row_map.parts[1]
            found.design[-1, -1] = answer.n * constant**2  # of the Gram matrix, too
        return found


@dataclass(frozen=True)
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
    scaling : Scaling
    theta : tuple of float
        A released parameter; it only has to be near the truth.
    instrument : Instrument
        Gives rows e = weight U phi of norm at most 1.
    limit : float
        R, public or released: 2 clips nothing, and the noise falls with its square.
    """

    scaling: Scaling
    theta: tuple
    instrument: Instrument
    limit: float = 2.0
    name: str = "residual variance"
    sensitivity: float = sqrt(3.0) * ROUNDING

    @property
    def shape(self):
        """Number of coordinates."""
        return (vech_size(self.scaling.size) + 1,)

    @property
    def _room(self):
        """Largest zeta^2 - R^2."""
        return max(4.0 - self.limit**2, 0.0)

    @property
    def _weight(self):
        return 1.0 if self._room else sqrt(1.5)

    def sum(self, X, y):
        """Exact sums over a chunk of rows."""
        scaling, theta, r = self.scaling, np.array(self.theta), self.scaling.target(y)
        beyond = [0.0]

        def cut(block, fitted):
            zeta = r[block] - np.clip(fitted, -1.0, 1.0)
            beyond[0] += self._beyond(zeta)
            return np.clip(zeta, -self.limit, self.limit) / self.limit

        if self.instrument.matrix is None:

            def weigh(block, fitted):
                return cut(block, fitted(theta))

            total = scaling.sums(X, np.empty((0, len(r))), weigh)[0]
            return np.append(self._weight * vech(total), beyond)
        total = np.zeros((scaling.size, scaling.size), order="F")
        for block, phi in scaling.blocks(X):
            instruments = self.instrument.turned(phi, cut(block, phi @ theta))
            add_gram(total, scaling.weigh(instruments, X[block]))
        return np.append(self._weight * vech(total), beyond)

    def _beyond(self, zeta):
        """Sum of x."""
        if not self._room:
            return 0.0
        square = np.clip(zeta**2 - self.limit**2, 0.0, self._room)
        return float(square.sum()) / self._room

    def read(self, answer):
        """What `NormalEquations` keep of an answer: noisy sums, and the deviations of their noise.

        The sums are of zeta^2 e e', clipped, and of zeta^2 less the clipped zeta^2.
        """
        unit, scale = self.limit**2 / self._weight, answer.noise.scale
        gram = unvech(answer.value[:-1], self.scaling.size)
        if self.instrument.matrix is not None:
            gram = self.instrument.unturned(gram, matrix=True)
        return {
            "residual_gram": unit * gram,
            "residual_scale": unit * scale,
            "residual_excess": self._room * float(answer.value[-1]),
            "excess_scale": self._room * scale,
            "residual_thetas": (tuple(map(float, self.theta)),),
        }
