"""What a fit of fixed effects from second moments asks: those of each person, shortened."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from ..._equations._moments import SQUARE_WEIGHT, MomentsQuery
from ..._equations._normal_equations import RESIDUAL_CLIP
from ..._equations._persons import OfPersons, length_counts, person_sums, seldom_cut
from ..._linalg import SQRT2, add_gram, blocks_of, row_norms, unvech, vech, vech_size
from ...privacy import ROUNDING, SIDE_SHARE, Query

# Length at which moments are whole: there the sensitivity is that of MomentsQuery, 3 / sqrt(2).
WHOLE_MOMENTS = MomentsQuery.sensitivity / ROUNDING / SQRT2
# Classes of lengths, as parts of it: moments are squares, of twice as many orders as scores have.
MOMENT_LENGTHS = 2.0 ** (-np.arange(25)[::-1] / 2.0)


def asked_moments(session, scaling):
    """The moments of persons, at a length beyond which next to none is, and the share left."""
    if session.trust.exact:
        return PersonMomentsQuery(scaling), 1.0
    length = seldom_cut(session, MomentLengthsQuery(scaling), SIDE_SHARE)
    return PersonMomentsQuery(scaling, length), 1.0 - SIDE_SHARE


def score_limit(equations, theta):
    """Where scores of persons are shortened, from released answers."""
    rows = np.trace(equations.design) + 2.0 * equations.design_scale * sqrt(len(theta))
    longest = sqrt(max(float(rows), equations.design_scale) / equations.n)
    return min(RESIDUAL_CLIP * equations.residual_deviation(theta)[1] * min(longest, 1.0), 2.0)


@dataclass(frozen=True, eq=False)
class _Persons(OfPersons):
    """Rows phi and targets r of persons.

    Parameters
    ----------
    scaling : Scaling
    """

    scaling: Any

    def _moments(self, X, y, starts, largest):
        """Yield (r phi, vech phi phi', sqrt(1.5) r^2) of a block of persons, means over places."""
        p, r = self.scaling.size, self.scaling.target(y)
        above = np.triu_indices(p, 1)
        i, j = (np.append(np.arange(p), index) for index in above)
        weights = np.where(i == j, 1.0, SQRT2)  # the order and the weights of vech
        for persons in blocks_of(len(starts) - 1, largest * vech_size(p)):
            first = starts[persons.start : persons.stop + 1]
            rows = slice(first[0], first[-1])
            phi, target = self.scaling.rows(X[rows]), r[rows]
            found = np.column_stack(
                [target[:, None] * phi, weights * phi[:, i] * phi[:, j], SQUARE_WEIGHT * target**2]
            )
            yield person_sums(found, first - first[0]) / largest


@dataclass(frozen=True, eq=False)
class MomentLengthsQuery(_Persons, Query):
    """Number of persons in each class of lengths of their moments.

    A person is in one class: replacing one moves two counts by 1, sensitivity sqrt(2).
    """

    name: str = "lengths of moments"
    shape: tuple = (len(MOMENT_LENGTHS),)
    sensitivity: float = SQRT2 * ROUNDING
    classes = MOMENT_LENGTHS

    def sum_persons(self, X, y, starts, largest):
        """Exact counts over a chunk of persons."""
        found = self._moments(X, y, starts, largest)
        return sum(
            (length_counts(q / WHOLE_MOMENTS, MOMENT_LENGTHS) for q in found),
            np.zeros(len(MOMENT_LENGTHS)),
        )


@dataclass(frozen=True, eq=False)
class PersonMomentsQuery(_Persons, Query):
    """Joint sum of the moments q = (r phi, vech phi phi', sqrt(1.5) r^2) of persons, shortened.

    q is a mean over the m places of a person, shortened to norm 1.5 L. Sensitivity sqrt(2) 1.5 L.
    Proof. For two persons let X = <A, A'>, Y = c c' and t = <a, a'> of their means A of phi phi', c
    of r^2 and a of r phi. Over the pairs of a place of one and a place of the other, t is the mean
    of r r' <phi, phi'>, Y that of (r r')^2 and X that of <phi, phi'>^2, so that t^2 <= X Y, and
    shortening keeps that. |q - q'|^2 = |q|^2 + |q'|^2 - 2 t - 2 X - 3 Y, where
    -2 t <= 2 sqrt(X Y) <= 2 X + Y / 2. So it is at most |q|^2 + |q'|^2 <= 2 (1.5 L)^2, attained at
    q' orthogonal to q. If L = 1 nothing is shortened, and the sensitivity is that of
    `MomentsQuery`, which is the same.

    Parameters
    ----------
    length : float
        L in (0, 1].
    """

    length: float = 1.0
    name: str = "moments of persons"

    @property
    def sensitivity(self):
        """Declared sensitivity."""
        return SQRT2 * WHOLE_MOMENTS * self.length * ROUNDING

    @property
    def shape(self):
        """Number of coordinates."""
        return MomentsQuery(self.scaling).shape

    def sum_persons(self, X, y, starts, largest):
        """Exact sum over a chunk of persons."""
        if self.length >= 1.0:
            return MomentsQuery(self.scaling).sum(X, y) / largest
        total = np.zeros(self.shape)
        for q in self._moments(X, y, starts, largest):
            shorter = np.maximum(row_norms(q) / (WHOLE_MOMENTS * self.length), 1.0)
            total += (1.0 / shorter) @ q
        return total

    def equations(self, answer):
        """Normal equations of an answer."""
        return MomentsQuery(self.scaling).equations(answer)


@dataclass(frozen=True, eq=False)
class PersonMeatQuery(_Persons, Query):
    """Sum of vech uu', u a person's mean of phi (r - phi'theta), shortened to norm R, over R.

    uu' is positive semi-definite of trace at most 1: two differ by at most sqrt(2).

    Parameters
    ----------
    theta : ndarray of shape (p,)
        A released parameter.
    limit : float
        R.
    """

    theta: np.ndarray
    limit: float
    name: str = "covariance of scores"
    sensitivity: float = SQRT2 * ROUNDING

    @property
    def shape(self):
        """Number of coordinates."""
        return (vech_size(self.scaling.size),)

    def sum_persons(self, X, y, starts, largest):
        """Exact sum over a chunk of persons."""
        phi = self.scaling.rows(X)
        zeta = self.scaling.target(y) - np.clip(phi @ self.theta, -1.0, 1.0)
        u = person_sums(phi * zeta[:, None], starts) / (largest * self.limit)
        u /= np.maximum(row_norms(u), 1.0)[:, None]
        meat = np.zeros((self.scaling.size,) * 2, order="F")
        add_gram(meat, u)
        return vech(meat)

    def read(self, answer):
        """What `NormalEquations` keep of an answer."""
        return {
            "residual_gram": self.limit**2 * unvech(answer.value, self.scaling.size),
            "residual_scale": self.limit**2 * answer.noise.scale,
            "residual_thetas": (tuple(map(float, self.theta)),),
        }
