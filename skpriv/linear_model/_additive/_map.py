"""The public map from a row to the values of all hats, and what is known of it without data.

A term of an additive model is a set of hats on public knots of one feature, or products of two.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt
from numbers import Integral

import numpy as np
from scipy import linalg

from ..._estimation._moments import INTERCEPT_PRIOR
from ..._linalg import RELATIVE_ZERO

# As many knots as leave the Gram matrix resolved: the resolution N / p^1.5 of `Rules`, below which
# whitening needs a larger share.
MIN_RESOLUTION_FOR_KNOTS = 20.0
KNOT_GROWTH = 0.2  # of the optimal number of cells of piecewise linear functions with n
PAIR_KNOTS = 3  # of each feature of a pair
LEAST_SEEN = 4  # knots that show how a curve bends


@dataclass(frozen=True, eq=False)
class Term:
    """Nonnegative functions that add up to one, so that the norm of their values is at most 1.

    Parameters
    ----------
    features : tuple of one or two ints
        Columns.
    knots : tuple of ndarray
        Increasing public knots of each; the first and the last are the range. Two knots make a
        line.
    automatic : bool
        Whether the number of knots followed from n and the budget, and not from what is known of
        the curve.
    """

    features: tuple
    knots: tuple
    automatic: bool = False

    @property
    def blind(self):
        """Whether so few knots say nothing of what lines between them miss.

        Two have no second difference, and three do not see a curve that bends one way on the left
        and the other way on the right. Whoever gives knots says that lines between them will do.
        """
        return self.automatic and len(self.knots[0]) < LEAST_SEEN

    @property
    def size(self):
        """Number of functions."""
        return int(np.prod([len(knots) for knots in self.knots]))

    def values(self, X):
        """Values at rows, shape (n_rows, size): hats, or products of them; total."""
        first, *rest = (
            hats(X[:, feature], knots)
            for feature, knots in zip(self.features, self.knots, strict=True)
        )
        for other in rest:
            first = (first[:, :, None] * other[:, None, :]).reshape(len(first), -1)
        return first


def hats(x, knots):
    """Values of the piecewise linear functions that are 1 at one knot and 0 at all others.

    Values outside of the knots are clipped; NaN becomes the middle.

    Returns
    -------
    ndarray of shape (len(x), len(knots))
    """
    low, high = knots[0], knots[-1]
    x = np.clip(np.asarray(x, dtype=np.float64), low, high)
    x = np.where(np.isnan(x), low / 2.0 + high / 2.0, x)
    cell = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    part = np.clip((x - knots[cell]) / (knots[cell + 1] - knots[cell]), 0.0, 1.0)
    values, row = np.zeros((len(x), len(knots))), np.arange(len(x))
    values[row, cell] = 1.0 - part
    values[row, cell + 1] = part
    return values


def automatic_knots(n, effective_records, n_curved, n_other):
    """Public number of knots of each feature with a curve.

    Bias falls as the fourth power of the number of cells and sampling error grows with it, so that
    it may grow as n^(1/5); privacy noise allows as many as leave the Gram matrix resolved.

    Parameters
    ----------
    n : int
        Number of records.
    effective_records : float
        Number of records over the noise of a sum of sensitivity 1, infinite without privacy.
    n_curved : int
        Features with curves.
    n_other : int
        Further coordinates: lines, pairs.
    """
    most = 1 + ceil(n**KNOT_GROWTH)
    for k in range(most, 2, -1):
        size = 1 + n_curved * (k - 1) + n_other
        if effective_records >= MIN_RESOLUTION_FOR_KNOTS * size**1.5:
            return k
    return 2


def check_knots(given, columns, low, high):
    """Return the knots that the user gave: a mapping from column to an array or a number.

    Parameters
    ----------
    given : "auto", int or mapping
    columns : callable
        A function from a name or a number to the number of a column.
    low, high : ndarray of shape (n_features,)
        Public ranges.

    Returns
    -------
    dict of int to ndarray
    """
    if isinstance(given, str):
        return {}
    if isinstance(given, Integral):
        given = {column: given for column in range(len(low))}
    if not isinstance(given, Mapping):
        raise ValueError(f"knots={given!r} must be 'auto', a number or a mapping.")
    found = {}
    for key, value in given.items():
        column = columns(key)
        if isinstance(value, Integral):
            if value < 2:
                raise ValueError(f"knots of {key!r} are {value}: at least 2 are needed.")
            found[column] = np.linspace(low[column], high[column], int(value))
            continue
        knots = np.unique(np.asarray(value, dtype=np.float64))
        if not np.isfinite(knots).all() or len(knots) < 2:
            raise ValueError(f"knots of {key!r} must be at least two different finite numbers.")
        inner = knots[(knots > low[column]) & (knots < high[column])]
        found[column] = np.concatenate([[low[column]], inner, [high[column]]])
    return found


def make_terms(low, high, known, lines, pairs, n, effective_records):
    """The terms of a model: one for each feature, then the pairs.

    Parameters
    ----------
    low, high : ndarray of shape (n_features,)
    known : dict of int to ndarray
        Knots that are given.
    lines : set of int
        Features without a curve.
    pairs : list of (int, int)
    n, effective_records
        See :func:`automatic_knots`.

    Returns
    -------
    tuple of Term
    """

    def even(column, size):
        return np.linspace(low[column], high[column], 2 if column in lines else size)

    free = [c for c in range(len(low)) if c not in known and c not in lines]
    fixed = sum(len(knots) - 1 for knots in known.values())
    fixed += sum(column not in known for column in lines)
    fixed += sum(
        int(np.prod([len(even(column, PAIR_KNOTS)) - 1 for column in pair])) for pair in pairs
    )
    size = automatic_knots(n, effective_records, len(free), fixed) if free else 2
    terms = [Term((c,), (known.get(c, even(c, size)),), c in free) for c in range(len(low))]
    terms += [Term(pair, tuple(even(column, PAIR_KNOTS) for column in pair)) for pair in pairs]
    return tuple(terms)


# Of the length of a column, or of the largest curvature: decides what the records leave open.
ROUGH = 1e-6
# Standard deviations of the last value of a curve, when all that is rough of it adds up; that of a
# slope is 1.
ROUGHNESS = (1.0, 0.25)


@dataclass(frozen=True, eq=False)
class AdditiveMap:
    """Row map of an additive model, with ||phi|| <= 1.

    The values of each of T terms are nonnegative and add up to one, so their norm is at most 1, and
    that of all of them over sqrt(T) too. All lie in one subspace, since the terms share the
    constant: phi are the coordinates in an orthonormal basis of it, which leaves norms as they are.
    It stands in place of a `RowMap`.

    Parameters
    ----------
    terms : tuple of Term
    n_inputs : int
        Columns of X.
    """

    terms: tuple[Term, ...]
    n_inputs: int

    @cached_property
    def basis(self):
        """Orthonormal basis of the span of all rows, shape (n_hats, p)."""
        middle = np.zeros((1, self.n_inputs))
        for term in self.terms:
            for feature, knots in zip(term.features, term.knots, strict=True):
                middle[0, feature] = knots[0]
        rows = [middle]
        for term in self.terms:  # hats are determined by their values at the knots of all terms
            axes = [
                np.unique(np.concatenate([knots for knots in self._knots(feature)]))
                for feature in term.features
            ]
            points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
            grid = np.repeat(middle, len(points), axis=0)
            grid[:, list(term.features)] = points
            rows.append(grid)
        _, singular, right = linalg.svd(self.values(np.vstack(rows)), full_matrices=False)
        return right[singular > RELATIVE_ZERO * singular[0]].T

    def _knots(self, feature):
        for term in self.terms:
            for column, knots in zip(term.features, term.knots, strict=True):
                if column == feature:
                    yield knots

    @property
    def blocks(self):
        """Slice of each term among the hats."""
        stops = np.cumsum([0] + [term.size for term in self.terms]).tolist()
        return [slice(start, stop) for start, stop in zip(stops[:-1], stops[1:], strict=True)]

    @property
    def size(self):
        """Length p of phi."""
        return self.basis.shape[1]

    n_features = size  # of what `clipped` returns

    @cached_property
    def _range(self):
        """Ends of the range of each column of X; wide open of one that no term has."""
        ends = [list(self._knots(feature)) for feature in range(self.n_inputs)]
        low = [min((knots[0] for knots in found), default=-np.inf) for found in ends]
        high = [max((knots[-1] for knots in found), default=np.inf) for found in ends]
        return np.array(low), np.array(high)

    @property
    def low(self):
        """Lower ends of the ranges, shape (n_inputs,)."""
        return self._range[0]

    def outside(self, X):
        """Whether each value is outside of its range, shape (n_rows, n_inputs). NaN is not."""
        low, high = self._range
        X = np.asarray(X, dtype=np.float64)
        return (X < low) | (X > high)

    @property
    def constant(self):
        """The vector c with phi'c = 1 for every row."""
        return self.theta_of(np.full(len(self.basis), 1.0 / len(self.terms)))

    def values(self, X):
        """Values of all hats, shape (n_rows, n_hats)."""
        return np.hstack([term.values(X) for term in self.terms])

    def rows(self, X):
        """Return phi of a chunk of rows, of norm at most 1 up to rounding; total."""
        return self.coordinates(self.values(X))

    features = rows  # curves are constant outside of their ranges
    clipped = rows

    def coordinates(self, values):
        """Return phi of values of hats."""
        return values @ self.basis / sqrt(len(self.terms))

    def theta_of(self, heights):
        """Return the parameter of phi of the function with these coefficients of the hats."""
        return self.basis.T @ heights * sqrt(len(self.terms))

    def heights(self, theta):
        """Coefficients of the hats for a parameter of phi: one choice of many, see `basis`."""
        return self.basis @ theta / sqrt(len(self.terms))

    def theta(self, coef, intercept):
        """Return the parameter of phi for phi'coef + intercept."""
        return np.asarray(coef) + intercept * self.constant

    def roughness(self, n):
        """Matrix whose product with theta are the second differences of all curves, as a penalty
        that decides what n records leave open.
        """
        rows = []
        for term, block in zip(self.terms, self.blocks, strict=True):
            for difference in _second_differences(term):
                row = np.zeros((len(difference), len(self.basis)))
                row[:, block] = difference
                rows.append(row)
        rows.append(np.zeros((1, len(self.basis))))
        return ROUGH * sqrt(n) * (np.vstack(rows) @ self.basis / sqrt(len(self.terms)))

    def priors(self):
        """Shapes L of the prior theta = tau L c: smooth curves, then walks, then equal heights."""
        shapes = [
            *(_blocks([_smooth(term, 2, part) for term in self.terms]) for part in ROUGHNESS),
            _blocks([_smooth(term, 1, 1.0) for term in self.terms]),
        ]
        wide = np.full((len(self.basis), 1), sqrt(INTERCEPT_PRIOR) / len(self.terms))
        return [self.theta_of(np.hstack([wide, shape])) for shape in shapes]


def _blocks(matrices):
    return linalg.block_diag(*matrices)


def _cumulated(knots, order, part):
    """Heights at knots of a line and a random walk (order 1) or its sums (order 2).

    Positions run from -1 to 1 and the walk starts at the middle, so that no end is favoured.
    """
    t = (knots - knots[0]) / (knots[-1] - knots[0]) * 2.0 - 1.0
    steps = np.diff(t)
    line = t[:, None]
    if len(t) == 2:
        return line
    if order == 1:
        walk = np.tril(np.ones((len(t), len(steps))), -1) * np.sqrt(steps)
        walk = walk - walk.mean(axis=0)
        return walk / sqrt(0.5)
    bends = np.maximum(t[:, None] - t[None, 1:-1], 0.0) * np.sqrt((steps[1:] + steps[:-1]) / 2.0)
    # What a line explains is in the line already
    plane = np.column_stack([np.ones(len(t)), t])
    bends = bends - plane @ np.linalg.lstsq(plane, bends, rcond=None)[0]
    bends = bends / sqrt(max(float((bends**2).sum()) / len(t), 1e-300))
    return np.hstack([line, part * bends])


def _smooth(term, order, part):
    """Prior heights of a term; of a pair, products."""
    if len(term.knots) == 1:
        return _cumulated(term.knots[0], order, part)
    first, second = (
        np.hstack([np.ones((len(knots), 1)), _cumulated(knots, order, part)])
        for knots in term.knots
    )
    return part * np.kron(first, second)[:, 1:]


def _second_differences(term):
    """Second differences of heights along each feature of a term."""
    sizes = [len(knots) for knots in term.knots]
    for axis, knots in enumerate(term.knots):
        difference = second_difference(knots)
        if len(sizes) == 1:
            yield difference
        else:
            other = np.eye(sizes[1 - axis])
            yield np.kron(difference, other) if axis == 0 else np.kron(other, difference)


def second_difference(knots):
    """Matrix of second differences: by how much a height is below the line of its neighbours."""
    k = len(knots)
    matrix = np.zeros((max(k - 2, 0), k))
    for i in range(k - 2):
        left, right = knots[i + 1] - knots[i], knots[i + 2] - knots[i + 1]
        whole = left + right
        matrix[i, i : i + 3] = 2.0 * right / whole, -2.0, 2.0 * left / whole
    return matrix
