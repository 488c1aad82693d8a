"""Adversarial records: huge, tiny, NaN, infinite, colinear, and sparse ones stored in odd ways."""

import numpy as np
from scipy import sparse

PARTS = [0.0, 1.0, -1e3, 1e300]
EXTREME = np.array([0.0, -0.0, 5e-324, 1e-300, 1e-155, 1e155, 1.0, -1.0, -1e300, 1.7e308])


def neighbours(case, asked, rng):
    """Two data sets that differ in one record, often in the way that hurts most."""
    with np.errstate(all="ignore"):
        X, y = _entries(rng, (case.n, case.width)), _entries(rng, case.n)
        other_X, other_y, i = X.copy(), y.copy(), rng.randint(case.n)
        kind = rng.randint(4)
        if kind == 0:
            other_X[i] = rng.choice([1.0, -1.0, 1e-8, -1e-300, 1e300]) * X[i]
        elif kind == 1:
            turned = X[i] + 10.0 ** rng.uniform(-10, 0.5) * rng.normal(size=case.width)
            other_X[i] = rng.choice([1.0, -1.0, 1e-3, 1e5]) * turned
        else:
            other_X[i] = _entries(rng, case.width)
        other_y[i] = [_entries(rng, 1)[0], -y[i], y[i]][rng.randint(3)]
        unit = case.unit(asked) if rng.randint(2) else 1.0
        return (unit * X, unit * y), (unit * other_X, unit * other_y)


def _entries(rng, shape):
    """Numbers of all kinds: tame, extreme, wrong, of any bits; half of the time tame ones only."""
    tame = rng.uniform(-1.0, 1.0, size=shape)
    if rng.randint(2):
        return tame
    bits = rng.randint(0, 2**64, size=shape, dtype=np.uint64).view(np.float64)
    kinds = [tame, rng.choice(EXTREME, size=shape), rng.choice([np.nan, np.inf, -np.inf], shape)]
    return np.choose(rng.choice(4, size=shape, p=[0.5, 0.3, 0.1, 0.1]), [*kinds, bits])


def stored(first, second, rng):
    """Two neighbours as sparse matrices: entries in parts, out of order, zeros kept, any layout.

    Parts round: neighbours have the same one, or else they would differ in all their rows.
    """
    part = rng.choice(PARTS)
    return [(_stored(X, rng, part), y) for X, y in (first, second)]


def _stored(X, rng, part):
    rows, columns = (index.ravel() for index in np.indices(X.shape))
    with np.errstate(all="ignore"):
        data = np.concatenate([X.ravel() - part, np.full(X.size, part)])
    order = rng.permutation(2 * X.size)
    rows, columns = np.tile(rows, 2)[order], np.tile(columns, 2)[order]
    by_row = np.argsort(rows, kind="stable")
    pointers = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
    kind = (sparse.csr_array, sparse.csr_matrix)[rng.randint(2)]
    return kind((data[order][by_row], columns[by_row], pointers), shape=X.shape)
