"""The joint release of a score step where the link bends: its proof, and its own arithmetic."""

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


def _from_unit_cube(u, limit):
    """All pairs of records that there can be, as a map of the unit cube."""
    a, b, x, z = u[0], u[1], u[3], u[4]
    t = (2.0 * u[2] - 1.0) * np.sqrt(a * b)
    h, k = (u[place] * largest_slope(limit * size) for place, size in ((5, x), (6, z)))
    return a, b, t, x, z, h, k


@pytest.mark.parametrize("limit", [0.5, 0.6, 0.8, 1.0])
def test_an_independent_search_does_not_exceed_the_declared_sensitivity(limit):
    weight, square = Logit(limit=limit).proved(limit)
    rng = np.random.RandomState(0)
    draws = rng.uniform(size=(7, 200_000)) ** rng.choice([0.2, 1.0], size=(7, 1))
    draws[:, ::2] = np.where(draws[:, ::2] > 0.6, 1.0, draws[:, ::2])  # the faces of the cube
    found = squared_change(*_from_unit_cube(draws, limit), weight)
    assert found.max() <= square
    best = -1.0
    for start in draws[:, np.argsort(found)[-10:]].T:
        result = optimize.minimize(
            lambda u: -squared_change(*_from_unit_cube(u, limit), weight),
            start, bounds=[(0.0, 1.0)] * 7, method="L-BFGS-B",
        )  # fmt: skip
        best = max(best, -float(result.fun))
    assert square - 0.15 < best <= square


@pytest.mark.parametrize("limit", np.linspace(0.5, 1.0, 26))
def test_weighted_rows_do_not_exceed_the_declared_sensitivity(limit):
    """Over all sizes of scores; t is best where the derivative by it is 0, or it is 1.

    Each partial derivative is below 17 in size, and no point of the square is further than half a
    step from the grid in either coordinate. The bound is nearly attained, so that half of
    what small limits add would fail.
    """
    step = 1.0 / 1000
    z = np.linspace(0.0, 1.0, 1001)
    weight, square = Logit(limit=limit).proved(limit)
    largest = 0.0
    for x in np.array_split(z[:, None], 40):  # blocks that stay in the cache
        tied = largest_slope(limit * x), largest_slope(limit * z)
        for h, k in ((0.0, 0.0), (0.0, tied[1]), tied):
            curvature = (x * z) ** 2 / 2.0 + 2.0 * weight**2 * h * k
            t = np.minimum(1.0, x * z / np.maximum(curvature, 1e-300))
            largest = max(largest, squared_change(1.0, 1.0, t, x, z, h, k, weight).max())
    assert square - 0.15 < largest <= square - 2.0 * 17.0 * step / 2.0


@pytest.mark.parametrize("label", [0.0, 1.0])
@pytest.mark.parametrize("limit", [0.5, 0.55, 0.8, 1.0])
def test_slope_and_residual_are_tied_as_the_proof_says(label, limit, global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    whitened = Whitened(RowMap(None, None, 1.0, True, 3), 10.0 * rng.normal(size=(4, 4)))
    X = rng.normal(size=(5000, 3))
    link = Logit(limit=limit)
    query = ScoreQuery(whitened, CLASSES, rng.normal(), rng.normal(size=4), limit, link)
    for e, s, h, *_ in query.scores(X, np.full(5000, label)):
        assert not one_blas_thread.vector_turn.locked()  # another thread may want it next
        assert (np.linalg.norm(e, axis=1) <= 1.0 + 1e-12).all()
        assert (h <= largest_slope(limit * np.abs(s)) + 1e-12).all()


LINKS = {
    "line": (IDENTITY, TargetMap((-1.0, 1.0), True), 1.0, 4.0),
    "logit": (Logit(), CLASSES, 1.0, 1.0),
    "logit of few records": (Logit(limit=0.8), CLASSES, 1.0, 0.8),
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
