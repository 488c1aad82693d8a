"""Adversarial records: huge, tiny, NaN, infinite, colinear, and sparse ones stored in odd ways."""

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

tame = st.floats(-1.0, 1.0)
extreme = st.sampled_from(
    [0.0, -0.0, 5e-324, 1e-300, -1e-300, 1e-155, 1.0, -1.0, 1e155, 1e300, -1e300, 1.7e308]
)
wrong = st.sampled_from([np.nan, np.inf, -np.inf])
entries = st.one_of(tame, tame, extreme, wrong, st.floats())
PARTS = [0.0, 1.0, -1e3, 1e300]
EXTREME = np.array([0.0, -0.0, 5e-324, 1e-300, 1e-155, 1e155, 1.0, -1.0, -1e300, 1.7e308])


@st.composite
def neighbours(draw, case, asked):
    """Two data sets that differ in one record, often in the way that hurts most."""
    with np.errstate(all="ignore"):
        X = draw(_rows(case.n, case.width))
        y = np.array(draw(st.lists(entries, min_size=case.n, max_size=case.n)))
        other_X, other_y, i = X.copy(), y.copy(), draw(st.integers(0, case.n - 1))
        other_X[i] = draw(_other(X[i]))
        other_y[i] = draw(st.one_of(entries, st.just(-y[i]), st.just(y[i])))
        unit = draw(st.sampled_from([1.0, case.unit(asked)]))
        return (unit * X, unit * y), (unit * other_X, unit * other_y)


@st.composite
def _rows(draw, n, width):
    size = n * width
    if n > 1 and draw(st.booleans()):  # long lists are slow to draw and to shrink
        rng = np.random.RandomState(draw(st.integers(0, 2**16)))
        return rng.choice([0.0, 1.0, -1.0, 0.3, 1e-300, 1e155, -1e300, np.nan, np.inf],
                          size=(n, width))  # fmt: skip
    return np.reshape(draw(st.lists(entries, min_size=size, max_size=size)), (n, width))


@st.composite
def _other(draw, x):
    """Another record: any, a multiple of the first, or one at a small angle to it."""
    kind = draw(st.sampled_from(["any", "any", "multiple", "angle"]))
    if kind == "multiple":
        return draw(st.sampled_from([1.0, -1.0, 1e-8, -1e-300, 1e300])) * x
    if kind == "angle":
        rng = np.random.RandomState(draw(st.integers(0, 2**16)))
        turned = x + 10.0 ** draw(st.floats(-10, 0.5)) * rng.normal(size=len(x))
        return draw(st.sampled_from([1.0, -1.0, 1e-3, 1e5])) * turned
    return np.array(draw(st.lists(entries, min_size=len(x), max_size=len(x))))


@st.composite
def stored(draw, X, part):
    """The same rows as a sparse matrix: entries in parts, out of order, zeros kept, any layout.

    Parts round: neighbours have the same one, or else they would differ in all their rows.
    """
    rng = np.random.RandomState(draw(st.integers(0, 2**16)))
    return _stored(X, rng, part, draw(st.booleans()))


def _stored(X, rng, part, array):
    rows, columns = (index.ravel() for index in np.indices(X.shape))
    with np.errstate(all="ignore"):
        data = np.concatenate([X.ravel() - part, np.full(X.size, part)])
    order = rng.permutation(2 * X.size)
    rows, columns = np.tile(rows, 2)[order], np.tile(columns, 2)[order]
    by_row = np.argsort(rows, kind="stable")
    pointers = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
    kind = sparse.csr_array if array else sparse.csr_matrix
    return kind((data[order][by_row], columns[by_row], pointers), shape=X.shape)


def drawn(case, asked, rng):
    """As `neighbours`, by NumPy: not shrunk, but a hundred times as many in a second."""
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


def drawn_stored(first, second, rng):
    """Two neighbours as `stored`, by NumPy."""
    part = rng.choice(PARTS)
    return [(_stored(X, rng, part, rng.randint(2)), y) for X, y in (first, second)]
