"""Terms of an additive model: hats on public knots of one feature, or products of two features."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from numbers import Integral

import numpy as np

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


def automatic_knots(n, reach, n_curved, n_other):
    """Public number of knots of each feature with a curve.

    Bias falls as the fourth power of the number of cells and sampling error grows with it, so that
    it may grow as n^(1/5); privacy noise allows as many as leave the Gram matrix resolved.

    Parameters
    ----------
    n : int
        Number of records.
    reach : float
        Number of records over the noise of a sum of sensitivity 1, infinite without privacy.
    n_curved : int
        Features with curves.
    n_other : int
        Further coordinates: lines, pairs.
    """
    most = 1 + ceil(n**KNOT_GROWTH)
    for k in range(most, 2, -1):
        if reach >= MIN_RESOLUTION_FOR_KNOTS * (1 + n_curved * (k - 1) + n_other) ** 1.5:
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


def make_terms(low, high, known, lines, pairs, n, reach):
    """The terms of a model: one for each feature, then the pairs.

    Parameters
    ----------
    low, high : ndarray of shape (n_features,)
    known : dict of int to ndarray
        Knots that are given.
    lines : set of int
        Features without a curve.
    pairs : list of (int, int)
    n, reach
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
    size = automatic_knots(n, reach, len(free), fixed) if free else 2
    terms = [Term((c,), (known.get(c, even(c, size)),), c in free) for c in range(len(low))]
    terms += [Term(pair, tuple(even(column, PAIR_KNOTS) for column in pair)) for pair in pairs]
    return tuple(terms)
