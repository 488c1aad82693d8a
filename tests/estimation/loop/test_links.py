"""The joint release of a score step where the link bends: its proof, and its own arithmetic."""

from math import sqrt

import numpy as np
import pytest
from scipy import optimize

from skpriv._estimation._loop._score import ScoreEquation, ScoreQuery
from skpriv._estimation._links import IDENTITY, Log, Logit
from skpriv._estimation._loop._rows import Whitened
from skpriv._estimation._public_maps import PublicTargets, RowMap, TargetMap, WeightedMap
from skpriv._linalg import one_blas_thread
from skpriv.linear_model._generalized._labels import ClassTarget
from skpriv.linear_model._generalized._poisson import CountTarget
from skpriv.privacy import Answer

CLASSES, COUNTS = ClassTarget((0.0, 1.0)), CountTarget((0.0, 10.0))


def largest_slope(x):
    """k(x): the largest h of a record of the logit with a score of size x."""
    return np.where(x <= 0.5, 1.0, 4.0 * x * (1.0 - x))


def squared_change(a, b, t, x, z, h, k, c):
    """D^2 of the docstring of ScoreQuery, before anything is maximised."""
    p = x * z
    return (
        a * x**2 + b * z**2 + 2.0 * t * p
        + (a**2 * x**4 + b**2 * z**4 - 2.0 * t**2 * p**2) / 4.0
        + c**2 * (a**2 * h**2 + b**2 * k**2 - 2.0 * t**2 * h * k)
        + (x**2 - z**2) ** 2
    )  # fmt: skip


def _from_unit_cube(u, tied):
    """All pairs of records that there can be, as a map of the unit cube."""
    a, b, x, z = u[0], u[1], u[3], u[4]
    t = (2.0 * u[2] - 1.0) * np.sqrt(a * b)
    top = largest_slope(x) if tied else 1.0, largest_slope(z) if tied else 1.0
    return a, b, t, x, z, u[5] * top[0], u[6] * top[1]


@pytest.mark.parametrize(("c", "tied", "most"), [(1.0, True, 4.0), (1.0, False, 5.0)])
def test_an_independent_search_does_not_exceed_the_declared_sensitivity(c, tied, most):
    rng = np.random.RandomState(0)
    draws = rng.uniform(size=(7, 400_000)) ** rng.choice([0.2, 1.0], size=(7, 1))
    draws[:, ::2] = np.where(draws[:, ::2] > 0.6, 1.0, draws[:, ::2])  # the faces of the cube
    found = squared_change(*_from_unit_cube(draws, tied), c)
    assert found.max() <= most + 1e-9
    best = -1.0
    for start in draws[:, np.argsort(found)[-20:]].T:
        result = optimize.minimize(
            lambda u: -squared_change(*_from_unit_cube(u, tied), c),
            start, bounds=[(0.0, 1.0)] * 7, method="L-BFGS-B",
        )  # fmt: skip
        best = max(best, -float(result.fun))
    assert most - 1e-3 <= best <= most + 1e-6


def test_the_search_finds_what_a_larger_weight_of_the_slopes_would_cost():
    """At c = 1.1 the logit has 4.196, so that the search would have told an error of c."""
    x = np.linspace(0.5, 1.0, 2001)
    found = squared_change(1.0, 1.0, 1.0, 1.0, x, 0.0, largest_slope(x), 1.1)
    assert found.max() == pytest.approx(4.196, abs=0.01)


def test_the_last_case_of_the_proof_holds_on_a_grid_with_its_gradient():
    """x^2 + z^2 + sqrt(2) xz + ... + k(x)^2 + k(z)^2 <= 3.95 for all x and z in [0, 1].

    Each partial derivative is at most 2 + sqrt(2) + 1 + 4 + 8 < 17 in size, and no point of the
    square is further than half a step from the grid in either coordinate.
    """
    step = 1.0 / 4000
    grid = np.arange(0.0, 1.0 + step / 2, step)
    largest = 0.0
    for x in np.array_split(grid, 40):
        X, Z = x[:, None], grid
        value = X**2 + Z**2 + sqrt(2.0) * X * Z + (X**4 + Z**4) / 4.0 + (X**2 - Z**2) ** 2
        value = value + largest_slope(X) ** 2 + largest_slope(Z) ** 2
        largest = max(largest, value.max())
    assert largest + 2.0 * 17.0 * step / 2.0 <= 3.95


def test_the_polynomial_of_the_proof_is_positive():
    v = np.linspace(0.0, 0.5, 100_001)
    polynomial = 4.0 - 22.0 * v + 37.0 * v**2 - 17.25 * v**3
    z = 1.0 - v
    change = squared_change(1.0, 1.0, 1.0, 1.0, z, 0.0, largest_slope(z), 1.0)
    np.testing.assert_allclose(4.0 - change, v * polynomial, atol=1e-12)
    assert polynomial.min() > 0.008


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_slope_and_residual_are_tied_as_the_proof_says(label, global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    whitened = Whitened(RowMap(None, None, 1.0, True, 3), 10.0 * rng.normal(size=(4, 4)))
    X = rng.normal(size=(5000, 3))
    query = ScoreQuery(whitened, CLASSES, rng.normal(), rng.normal(size=4), 1.0, Logit())
    for e, s, h, *_ in query.scores(X, np.full(5000, label)):
        assert not one_blas_thread.vector_turn.locked()  # another thread may want it next
        assert (np.linalg.norm(e, axis=1) <= 1.0 + 1e-12).all()
        assert (h <= largest_slope(np.abs(s)) + 1e-12).all()


LINKS = {
    "line": (IDENTITY, TargetMap((-1.0, 1.0), True), 1.0, 4.0),
    "logit": (Logit(), CLASSES, 1.0, 1.0),
    "log": (Log(Log.far_length * 0.3, 0.0), COUNTS, 10.0, 1.0),
    "log, and most scores are cut": (Log(Log.far_length * 0.3, 0.0), COUNTS, 10.0, 0.02),
}


@pytest.mark.parametrize("name", LINKS)
def test_slopes_are_the_derivative_of_the_score(name, global_random_seed):
    """On average over the target, for near rows and far ones, with the weights that they have."""
    rng = np.random.RandomState(global_random_seed)
    link, _, _, limit = LINKS[name]
    rows = WeightedMap(RowMap(None, None, 1.0, True, 2))
    whitened = Whitened(rows, 3.0 * rng.normal(size=(3, 3)))
    X, b = rng.normal(size=(50, 2)), 0.3 * rng.normal(size=3) - np.array([0.0, 0.0, 0.5])
    psi = rows.plain.rows(X) @ whitened.W.T
    # No step leads to where slopes are 0, such as beyond the largest count
    assert (np.linalg.norm(psi, axis=1) > Log.far_length).any()
    assert link.slope(2.0, link.mean(2.0)) > 0.0
    # Each row is there with two targets around the model's mean
    mean = link.mean(psi @ b - 0.2)
    keep = (mean < 1.0) & (mean > link.low)
    away = 0.5 * np.minimum(1.0 - mean, mean - link.low)

    def at(point):
        total = 0.0
        for side in (-1.0, 1.0):
            query = ScoreQuery(whitened, Given(), -0.2, point, limit, link)
            columns = np.column_stack([X, np.full(len(X), 0.7)])[keep]
            total = total + query.sum(columns, 0.7 * (mean + side * away)[keep])
        return ScoreEquation.of(query, Answer(total, 1, _Noiseless()))

    found, step = at(b), 1e-6
    for i in range(3):
        moved = b + step * np.eye(3)[i]
        change = (at(moved).moment - found.moment) / step
        np.testing.assert_allclose(-change, found.slope[i], atol=5e-5)


@pytest.mark.parametrize("name", LINKS)
def test_rows_of_weight_one_are_rows_without_weights(name, global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    link, target, most, limit = LINKS[name]
    rows, X, W = RowMap(None, None, 1.0, True, 2), rng.normal(size=(50, 2)), rng.normal(size=(3, 3))
    maps = 0.1, rng.normal(size=3), limit, link
    one = ScoreQuery(Whitened(rows, W), target, *maps, sandwich=True)
    other = ScoreQuery(Whitened(WeightedMap(rows), W), Given(), *maps, sandwich=True)
    found = other.sum(np.column_stack([X, np.ones(len(X))]), np.ones(len(X)))
    np.testing.assert_allclose(found, one.sum(X, most * np.ones(len(X))), rtol=1e-12)


class Given(PublicTargets):
    """Targets as they come."""

    def scaled(self, y):
        return y


class _Noiseless:
    scale = 0.0


@pytest.mark.parametrize("label", [np.nan, 2.0, -1.0, np.inf, 0.5])
def test_what_is_no_class_counts_as_nothing(label):
    whitened = Whitened(RowMap(None, None, 1.0, True, 2), np.eye(3))
    query = ScoreQuery(whitened, CLASSES, 0.5, np.ones(3), 1.0, Logit(), sandwich=True)
    X, y = np.eye(2), np.array([1.0, label])
    np.testing.assert_array_equal(query.sum(X, y), query.sum(X[:1], y[:1]))
