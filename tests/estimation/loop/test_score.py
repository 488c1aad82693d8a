"""Sensitivities of the joint releases are free: tests/registry shows that they are attained."""

import numpy as np
import pytest

from skpriv._estimation._targets import LocationQuery, SpreadQuery
from skpriv._estimation._links import Logit
from skpriv._estimation._loop._rows import Whitened
from skpriv._estimation._loop._score import (
    COUNT_WEIGHT, CUT, FALL, RESIDUAL_WEIGHT, SIDE_WEIGHT, ScoreQuery, largest_excess,
)  # fmt: skip
from skpriv._estimation._public_maps import RowMap, TargetMap
from skpriv.linear_model._generalized._labels import ClassTarget
from skpriv.privacy import ROUNDING
from skpriv.records import ArrayRows


def _whitening(p, rng):
    basis = np.linalg.qr(rng.normal(size=(p, p)))[0]
    return (basis * 10.0 ** rng.uniform(-2.0, 6.0, size=p)) @ basis.T


def _change(query, X, y):
    with np.errstate(all="ignore"):
        difference = query.sum(X[:1], y[:1]) - query.sum(X[1:], y[1:])
    assert difference.shape == query.shape
    assert np.isfinite(difference).all()
    return np.linalg.norm(difference)


def _box(known, ends, draws=300_000):
    """Columns of points of a box, every coordinate at an end as often as not, and of known ones."""
    rng = np.random.RandomState(0)
    points = []
    for low, high in ends:
        inside = rng.uniform(low, high, size=draws)
        steps = [low, high, min(high, CUT), min(high, CUT * (1.0 - 1e-12))]
        points.append(np.where(rng.rand(draws) < 0.5, inside, rng.choice(steps, size=draws)))
    return np.hstack([points, np.transpose(known)])


def test_the_statistics_beside_the_score_are_free():
    """The squared change of the joint release, in any dimension, as its docstring writes it."""
    below = CUT * (1.0 - 1e-12)
    known = [  # a, b, x, z, h, i, cosine
        (1.0, 1.0, 1.0, below, 1.0, 1.0, -0.96),
        (1.0, 1.0, 1.0, below, 0.0, 1.0, -1.0),
        (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0),
        (1.0, 1.0, 1.0, 1.0, 0.0, 1.0, -1.0),
    ]
    a, b, x, z, h, i, cosine = _box(known, [(0.0, 1.0)] * 6 + [(-1.0, 1.0)])
    t = -cosine * np.sqrt(a * b)
    counts_differ = (x >= CUT) != (z >= CUT)
    change = (
        a * x**2 + b * z**2 + 2 * t * x * z
        + (a**2 * x**4 + b**2 * z**4 - 2 * (t * x * z) ** 2) / 4
        + (a**2 * h**2 + b**2 * i**2 - 2 * t**2 * h * i) / 4
        + (x**2 - z**2) ** 2
        + COUNT_WEIGHT**2 * counts_differ
    )  # fmt: skip
    whole = (h == 1.0) & (i == 1.0)
    assert change[whole].max() <= 4.0 + 1e-12 and change.max() <= 4.25 + 1e-12
    assert change[whole].max() > 3.95 and change.max() > 4.2  # they come near


def test_and_so_is_what_is_cut():
    """With residuals beyond the clip, by parts h and i of the most: the docstring's item 4."""
    known = [  # a, b, x, h, z, i, cosine, fall
        (1.0, 1.0, 1.0, 1.0, CUT * (1.0 - 1e-12), 0.0, -0.48, FALL),
        (1.0, 1.0, 1.0, 1.0, 1.0, 0.0, -0.5, FALL),
    ]
    a, b, x, h, z, i, cosine, fall = _box(known, [(0.0, 1.0)] * 6 + [(-1.0, 1.0), (0.0, FALL)])
    t = -cosine * np.sqrt(a * b)
    x, z = np.where(h > 0.0, 1.0, x), np.where(i > 0.0, 1.0, z)
    first, second = x * (1.0 - fall * h), z * (1.0 - fall * i)
    change = (
        a * first**2 + b * second**2 + 2 * t * first * second
        + (a**2 * x**4 + b**2 * z**4 - 2 * (t * x * z) ** 2) / 4
        + (a**2 + b**2 - 2 * t**2) / 4
        + RESIDUAL_WEIGHT**2 * (x**2 - z**2) ** 2
        + COUNT_WEIGHT**2 * ((x >= CUT) != (z >= CUT))
        + 3.0 * fall * (np.sqrt(a) * h - np.sqrt(b) * i) ** 2
    )  # fmt: skip
    assert 3.95 < change.max() <= 4.0 + 1e-12


def test_larger_weights_beside_what_is_cut_would_not_be_free():
    """The largest changes of item 4, of which the first is attained by records."""
    fall, rows = FALL, RowMap(None, None, 1.0, False, 2)
    white, target = Whitened(rows, 3.0 * np.eye(2)), TargetMap((-1.0, 1.0), False)
    query = ScoreQuery(white, target, 0.0, np.zeros(2), 0.25, sandwich=True, most_excess=0.25)
    assert query.fall == FALL and query.weights["excess"] == pytest.approx(np.sqrt(1.5))
    z = CUT**2
    rest = (1.0 - fall) ** 2 * (1.0 + 2.0 * z / (1.0 + z)) + 3.0 * fall + z + 0.75 + z**2 / 4.0
    rest += RESIDUAL_WEIGHT**2 * (1.0 - z) ** 2
    cosine = -2.0 * (1.0 - fall) * CUT / (1.0 + z)
    rows = np.array([[1.0, 0.0], [cosine, np.sqrt(1.0 - cosine**2)]])
    # residuals w r: rows of length 3 have w = 1/3; r = 1 would be .33, beyond R by a third
    weights = 1.0 / 1.5
    targets = np.array([0.5, CUT * 0.25 * (1.0 - 1e-12)]) / weights
    change = _change(query, 0.5 * rows, targets)
    counts = COUNT_WEIGHT**2 + SIDE_WEIGHT**2
    assert change == pytest.approx(np.sqrt(rest + counts), rel=1e-9)
    assert rest + COUNT_WEIGHT**2 <= 4.0 < rest + (COUNT_WEIGHT + 0.01) ** 2
    assert 4.0 - FALL + 2.0 * FALL**2 <= 4.0 < 4.0 - 0.51 + 2.0 * 0.51**2


@pytest.mark.parametrize("d", [3, 300])
def test_triangular_whitening_is_the_same_map_at_half_the_price(d):
    rng = np.random.RandomState(0)
    rows = RowMap(np.full(d, -1.0), np.full(d, 2.0), None, True, d)
    X = rng.normal(size=(1500, d)) * 3.0
    X[7] = np.resize([np.nan, np.inf, -np.inf], d)
    W = np.linalg.qr(_whitening(d + 1, rng), mode="r")
    expected = rows.rows(X) @ W.T
    weights = 1.0 / np.maximum(1.0, np.linalg.norm(expected, axis=1))[:, None]
    found = np.vstack([np.c_[e, w] for _, e, w, *_ in Whitened(rows, W).blocks(X)])
    np.testing.assert_allclose(found, np.c_[weights * expected, weights], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("make", [LocationQuery, lambda target: SpreadQuery(target, 0.3)])
def test_queries_of_the_target_never_load_rows(make):
    class Rows(np.ndarray):
        def __getitem__(self, key):
            raise AssertionError("X was read")

    y = np.linspace(-1.0, 1.0, 1000)
    query = make(TargetMap((-1.0, 1.0), True))
    rows = ArrayRows(np.zeros((1000, 3), dtype=np.float32).view(Rows), y)
    rows._ready = True
    assert rows.sum(query) == pytest.approx(query.sum(None, y))
    assert rows.sum(query, slice(3, 700)) == pytest.approx(query.sum(None, y[3:700]))


@pytest.mark.parametrize("size", [0.3, 1.0, 3.0])
def test_no_residual_exceeds_what_is_said_to_be_the_most(size):
    """And some corner does nearly: half of it would not be a bound."""
    rng = np.random.RandomState(0)
    rows = RowMap(np.full(3, -1.0), np.full(3, 2.0), None, True, 3)
    corners = np.array(np.meshgrid(*[(-1.0, 2.0)] * 3)).reshape(3, -1).T
    X = np.vstack([corners, rng.uniform(-1.0, 2.0, size=(2000, 3))])
    reached = []
    for _ in range(40):
        whitened = Whitened(rows, size * np.eye(4) + 0.1 * size * rng.normal(size=(4, 4)))
        location, b, clip = rng.uniform(-0.5, 0.5), rng.normal(size=4) / 2.0, 0.3
        ((_, e, weights, *_),) = whitened.blocks(X)
        residuals = [np.abs(weights * (r - location) - e @ b).max() for r in (-1.0, 1.0)]
        most = largest_excess(whitened, location, b, clip)
        assert max(residuals) - clip <= most * (1.0 + 1e-12)
        reached.append((max(residuals) - clip) / most)
    assert np.mean(reached) > 0.6


def test_a_residual_at_a_limit_that_cuts_nothing_counts_as_one_inside():
    """The largest residual may be the limit itself, and its row's slope is 1 like all others."""
    target, white = (
        TargetMap((-1.0, 1.0), True),
        Whitened(RowMap(None, None, 1.0, False, 1), np.eye(1)),
    )
    query = ScoreQuery(white, target, -0.25, np.zeros(1), 1.25, sandwich=True, most_excess=0.0)
    ends = np.array([query.sum(np.array([[x]]), np.array([1.0])) for x in (1.0, -1.0)])
    assert query.sensitivity == 2.0 * ROUNDING
    np.testing.assert_array_equal(ends[:, 1], query.weights["slope"])
    rng = np.random.default_rng(0)
    rows = rng.choice([-1.0, 1.0, 0.9, -0.9], size=(60, 1))
    sums = np.array([query.sum(x[None], rng.choice([-1.0, 0.95, 1.0], 1)) for x in rows])
    moved = np.linalg.norm(sums[:, None] - sums, axis=2)
    assert moved.max() <= 2.0


@pytest.mark.parametrize("excess", [0.05, 0.4, 1.5])
def test_what_a_score_falls_by_is_no_more_than_the_residual_grows(excess):
    """Else a small change of b would be a large one of its equation: f is at most E / R."""
    maps = Whitened(RowMap(None, None, 1.0, False, 1), np.eye(1)), TargetMap((-1.0, 1.0), False)
    query = ScoreQuery(*maps, 0.0, np.zeros(1), 0.4, sandwich=True, most_excess=excess)
    moments = [query.sum(np.ones((1, 1)), np.array([r]))[0] for r in np.linspace(0.4, 1.0, 201)]
    assert -0.4 * np.diff(moments).min() <= 0.003 * (1.0 + 1e-9) and moments[-1] > 0.0
    whole, half = (query.sum(np.array([[x]]), np.ones(1))[-1] for x in (1.0, 0.5))
    assert half == pytest.approx(whole / 2.0) and whole > 0.0  # what is cut of a shorter row


def test_weights_are_those_that_are_proved_for_the_limit_of_the_query():
    """Whatever limit the link has: those of the logit without a cut would lose 3% of the noise."""
    whitened, rng, most = Whitened(RowMap(None, None, 1.0, False, 2), np.eye(2)), np.random, 0.0
    for scale in np.geomspace(0.01, 10.0, 30):
        point = scale * rng.RandomState(0).normal(size=2)
        query = ScoreQuery(
            whitened, ClassTarget((0.0, 1.0)), 0.0, point, 0.5, Logit(), sandwich=True
        )
        for angle in np.linspace(0.0, 2.0 * np.pi, 40):
            x = np.array([np.cos(angle), np.sin(angle)])
            for y in ([0.0, 0.0], [1.0, 0.0]):
                most = max(most, _change(query, np.array([x, -x]), np.array(y)) / query.sensitivity)
    assert 0.97 < most <= 1.0
