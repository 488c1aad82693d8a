"""Sensitivities of all queries: never exceeded, whatever the records, and attained."""

from functools import partial

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import optimize

from skpriv._equations._instrument import Instrument
from skpriv._equations._lifted import LiftedMomentsQuery
from skpriv._equations._moments import MomentsQuery, ResidualGramQuery
from skpriv.linear_model._reweighted._normalisation import (
    NormalisationQuery,
    ReweightedMomentsQuery,
)
from skpriv._equations._scaling import Scaling
from skpriv.privacy import ROUNDING


def _theta(scaling, rng):
    return tuple(rng.normal(size=scaling.size) * 10.0 ** rng.uniform(-3, 3))


# A new query is one line here: how to make it from a public scaling, a positive definite U of
# some condition number, and a generator for what else it needs.
QUERIES = {
    "moments": lambda scaling, U, rng: MomentsQuery(scaling),
    "lifted": lambda scaling, U, rng: LiftedMomentsQuery(scaling),
    "residual": lambda scaling, U, rng: ResidualGramQuery(
        scaling, _theta(scaling, rng), Instrument()
    ),
    "residual, U": lambda scaling, U, rng: ResidualGramQuery(
        scaling, _theta(scaling, rng), Instrument(U)
    ),
    "residual, clipped": lambda scaling, U, rng: ResidualGramQuery(
        scaling, _theta(scaling, rng), Instrument(U), 10.0 ** rng.uniform(-6, 0)
    ),
    "normalisation": lambda scaling, U, rng: NormalisationQuery(scaling, Instrument(U)),
    "re-weighted": lambda scaling, U, rng: ReweightedMomentsQuery(scaling, Instrument(U)),
}
# What the papers and proofs say, for each condition number of U.
DECLARED = {
    "moments": lambda condition: 3.0 / np.sqrt(2.0),
    "lifted": lambda condition: 3.0 / np.sqrt(2.0),
    "residual": lambda condition: np.sqrt(2.0),
    "residual, U": lambda condition: np.sqrt(2.0),
    "residual, clipped": lambda condition: np.sqrt(2.0),
    "normalisation": lambda condition: np.sqrt(2.0),
    "re-weighted": lambda condition: {1.0: 2.5}.get(condition, np.sqrt(8.0)),
}
ORDER = {"l1": 1, "l2": 2, "linf": np.inf}
every_query = pytest.mark.parametrize("name", QUERIES)

tame = st.floats(-1.0, 1.0)
extreme = st.sampled_from(
    [0.0, -0.0, 5e-324, 1e-300, -1e-300, 1e-155, 1.0, -1.0, 1e155, 1e300, -1e300, 1.7e308]
)
wrong = st.sampled_from([np.nan, np.inf, -np.inf])
entries = st.one_of(tame, tame, extreme, wrong, st.floats())


@st.composite
def pairs(draw, d):
    """Two records, often related in the way that hurts most."""
    x = np.array(draw(st.lists(entries, min_size=d, max_size=d)))
    factor = draw(st.sampled_from([None, None, 1.0, -1.0, 1e-8, -1e-300, 1e300]))
    if factor is None:
        other = np.array(draw(st.lists(entries, min_size=d, max_size=d)))
    else:
        with np.errstate(all="ignore"):
            other = factor * x
    return np.array([x, other]), np.array([draw(entries), draw(entries)])


numbers = st.one_of(st.floats(-10, 10), st.sampled_from([0.0, 1e16, -1e300, 1.7e308, 1e-300]))
widths = st.one_of(st.floats(1e-3, 10), st.sampled_from([0.0, 1e-16, 1e-300, 1e300]))


@st.composite
def scalings(draw, d):
    low = draw(numbers)
    high = max(low + draw(widths), np.nextafter(low, np.inf))
    assume(np.isfinite(high))
    data_norm = draw(st.sampled_from([1.0, 0.3, 7.0, 1e-300, 1e-160, 1e160, 1e300]))
    return Scaling(data_norm, (low, high), draw(st.booleans()), d)


def _matrix(size, condition, rng, scale=1.0):
    basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
    values = np.ones(size) if size == 1 else np.geomspace(1.0, 1.0 / condition, size)
    matrix = (basis * (scale * values)) @ basis.T
    return (matrix + matrix.T) / 2


def _change(query, X, y):
    with np.errstate(all="ignore"):
        difference = query.sum(X[:1], y[:1]) - query.sum(X[1:], y[1:])
    assert difference.shape == query.shape
    assert np.isfinite(difference).all()
    return np.linalg.norm(difference, ORDER[query.norm])


@every_query
@given(data=st.data())
@settings(max_examples=200, deadline=None, derandomize=True, database=None)
def test_no_record_moves_a_query_further_than_declared(name, data):
    d = data.draw(st.integers(1, 4))
    scaling = data.draw(scalings(d))
    rng = np.random.RandomState(data.draw(st.integers(0, 99)))
    condition, scale = 10.0 ** data.draw(st.floats(0, 8)), 10.0 ** data.draw(st.integers(-3, 3))
    query = QUERIES[name](scaling, _matrix(scaling.size, condition, rng, scale), rng)
    X, y = data.draw(pairs(d))
    with np.errstate(all="ignore"):
        X = X * data.draw(st.sampled_from([1.0, scaling.data_norm]))
    assert _change(query, X, y) <= query.sensitivity


@every_query
@given(
    log_condition=st.floats(0, 8),
    log_angle=st.floats(-10, 0.5),
    seed=st.integers(0, 10**6),
    fit_intercept=st.booleans(),
)
@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@example(log_condition=8.0, log_angle=-8.0, seed=0, fit_intercept=False)
def test_nor_do_nearly_colinear_records(name, log_condition, log_angle, seed, fit_intercept):
    """Records at small angles, which U may turn into opposite directions."""
    rng = np.random.RandomState(seed)
    d = rng.randint(2, 6)
    scaling = Scaling(1.0, (-1.0, 1.0), fit_intercept, d)
    query = QUERIES[name](scaling, _matrix(scaling.size, 10.0**log_condition, rng), rng)
    X = rng.normal(size=d) + 10.0**log_angle * rng.normal(size=(2, d))
    X *= rng.choice([1.0, -1.0, 1e-3, 1e5], size=(2, 1)) / np.linalg.norm(X, axis=1)[:, None]
    for y in ([1.0, -1.0], [1.0, 1.0], [1.0, 0.0]):
        assert _change(query, X, np.array(y)) <= query.sensitivity


@every_query
def test_nor_in_a_chunk_of_equal_records(name):
    """Rounding of a whole chunk's sum stays within what is declared."""
    rng = np.random.RandomState(0)
    scaling = Scaling(1.0, (-1.0, 1.0), False, 3)
    query = QUERIES[name](scaling, _matrix(3, 1e8, rng), rng)
    X, y = np.tile(rng.normal(size=3), (2**14, 1)), np.ones(2**14)
    before = query.sum(X, y)
    for row, target in [(-X[0], -1.0), (np.array([1.0, 0.0, 0.0]), 0.0), (X[0], 0.5)]:
        other, changed = X.copy(), y.copy()
        other[7], changed[7] = row, target
        assert np.linalg.norm(query.sum(other, changed) - before) <= query.sensitivity


def _largest_change(query, U, d, rng, starts):
    """Search over directions e and e' of U phi and U phi', both unit phi, and targets."""
    inverse = np.linalg.inv(U)
    condition = np.linalg.cond(U)

    def records(t):
        X = t[: 2 * d].reshape(2, d) @ inverse
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        return X / np.maximum(norms, 1e-300), np.sin(t[2 * d :])

    vectors = np.linalg.eigh(U)[1]
    best = 0.0
    for _ in range(starts):
        i, j = rng.randint(d, size=2)
        width = 10.0 ** rng.uniform(-np.log10(condition) - 1.0, 0.5)
        centre = np.concatenate([vectors[:, i], -vectors[:, j], rng.uniform(-2.0, 2.0, size=2)])
        centre += width * rng.normal(size=centre.size)
        simplex = centre + np.vstack([np.zeros(centre.size), width * np.eye(centre.size)])
        result = optimize.minimize(
            lambda t: -_change(query, *records(t)),
            centre,
            method="Nelder-Mead",
            options={"initial_simplex": simplex, "maxfev": 600, "xatol": 1e-9, "fatol": 1e-9},
        )
        best = max(best, -result.fun)
        if best >= 0.995 * query.sensitivity:
            break
    return best


@every_query
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("condition", [1.0, 3.0, 30.0, 1e4, 1e8])
def test_the_declared_sensitivity_is_attained(name, d, condition, global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    scaling = Scaling(1.0, (-1.0, 1.0), False, d)
    U = _matrix(d, condition, rng)
    query = QUERIES[name](scaling, U, rng)
    if isinstance(query, ResidualGramQuery):  # predictions far from the targets
        query = type(query)(scaling, tuple(1e9 * rng.normal(size=d)), query.instrument)
    instrument = getattr(query, "instrument", Instrument())
    search = np.eye(d) if instrument.matrix is None else U
    best = _largest_change(query, search, d, rng, starts=60)
    assert 0.99 * query.sensitivity <= best <= query.sensitivity
    assert query.sensitivity <= DECLARED[name](condition) * ROUNDING * (1 + 2e-5)


def test_the_sensitivity_of_re_weighted_moments_grows_with_the_condition_number():
    rng = np.random.RandomState(0)
    scaling = Scaling(1.0, (-1.0, 1.0), False, 2)
    make = partial(QUERIES["re-weighted"], scaling, rng=rng)
    found = [make(_matrix(2, condition, rng)).sensitivity for condition in 10.0 ** np.arange(9)]
    assert found == sorted(found)
    assert found[0] == pytest.approx(2.5, rel=2e-5)
    assert found[-1] == pytest.approx(np.sqrt(8.0), rel=2e-5)


@every_query
def test_sums_are_sums_of_single_records(name, global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    scaling = Scaling(2.0, (-1.0, 3.0), True, 3)
    query = QUERIES[name](scaling, _matrix(4, 50.0, rng), rng)
    X, y = 2.0 * rng.normal(size=(20, 3)), 2.0 * rng.normal(size=20)
    X[3] = 0.0
    one_by_one = sum(query.sum(X[i : i + 1], y[i : i + 1]) for i in range(20))
    np.testing.assert_allclose(query.sum(X, y), one_by_one, rtol=1e-11, atol=1e-12)
