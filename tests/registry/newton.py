"""Joint releases of the loop: location, whitening, scores."""

from dataclasses import replace
from functools import partial

import numpy as np

from skpriv._estimation._links import IDENTITY, Log, Logit
from skpriv._estimation._loop._far_rows import FarRowsQuery
from skpriv._estimation._loop._rows import ClippedRowsQuery, MarginsQuery, Whitened, WhiteningQuery
from skpriv._estimation._targets import LocationQuery, SpreadQuery
from skpriv._estimation._loop._evidence import (
    ResidualMeanQuery, SpreadOfCountsQuery, StretchQuery,
)  # fmt: skip
from skpriv._estimation._loop._line_queries import LineScoreQuery, OwnSlopeQuery, StepAndLineQuery
from skpriv._estimation._loop._score import ScoreQuery
from skpriv._estimation._public_maps import RecordMap, RowMap, TargetMap, WeightedMap
from skpriv.linear_model._by_steps import ScaledAlready
from skpriv.linear_model._generalized._labels import ClassTarget
from skpriv.linear_model._generalized._poisson import CountTarget
from skpriv._estimation._loop._exact import LeastSquares

from .case import Case
from .linear import E1, E2, D, one

PLAIN = RowMap(None, None, 1.0, False, 2)
PLANE = Whitened(PLAIN, np.eye(2))
HEAVY = Whitened(WeightedMap(PLAIN), np.eye(2))  # weights of 2 count as 1
LONGER = Whitened(PLAIN, 1.0001 * np.eye(2))  # whose rows are cut to norm 1
BOX = RowMap(-np.ones(2), np.ones(2), None, True, 2)
TARGET = TargetMap((-1.0, 1.0), False)


def _maps(rng):
    """Rows of a ball or a box of any size, whitened by any matrix; a target's map."""
    intercept = bool(rng.randint(2))
    low = rng.uniform(-2.0, 0.0, size=D) * 10.0 ** rng.randint(-3, 4)
    high = low + 10.0 ** rng.uniform(-3.0, 3.0, size=D)
    rows = RowMap(low, high, None, intercept, D)
    if rng.randint(2):
        rows = RowMap(None, None, float(rng.choice([1.0, 1e-3, 1e3])), intercept, D)
    basis = np.linalg.qr(rng.normal(size=(rows.size, rows.size)))[0]
    whitened = Whitened(rows, (basis * 10.0 ** rng.uniform(-2.0, 6.0, size=rows.size)) @ basis.T)
    bounds = [(-1.0, 1.0), (0.0, 1e-3), (-1e300, 1e300)][rng.randint(3)]
    return whitened, TargetMap(bounds, intercept)


CLASSES, COUNTS = ClassTarget((0.0, 1.0)), CountTarget((0.0, 20.0))


def _link(rng, target):
    """A link, its target, and where residuals are cut."""
    limit = 10.0 ** rng.uniform(-3.0, 0.4)
    return (
        (IDENTITY, target, limit),
        (Logit(limit=rng.choice([1.0, min(limit, 1.0)])), CLASSES, min(limit, 1.0)),
        (Log(Log.far_length * rng.uniform(0.01, 1.0), rng.normal()), COUNTS, min(limit, 1.0)),
    )[rng.randint(3)]


def _with_weights(rng, whitened, target):
    """The same of rows whose last column is the root of a weight, at times."""
    rows = whitened.row_map
    if rng.randint(3) or rows.low is not None:
        return whitened, target
    rows = WeightedMap(RowMap(None, None, rows.data_norm, rows.fit_intercept, D - 1))
    return Whitened(rows, whitened.W[: rows.size, : rows.size]), ScaledAlready()


def _score(rng):
    whitened, target = _maps(rng)
    link, target, limit = _link(rng, target)
    whitened, target = _with_weights(rng, whitened, target)
    point = rng.normal(size=len(whitened.W)) * 10.0 ** rng.uniform(-3.0, 3.0)
    cut = 10.0 ** rng.uniform(-2.0, 0.5) if rng.randint(2) and link.linear else None
    return ScoreQuery(
        whitened, target, rng.uniform(-1.0, 1.0), point, limit, link,
        sandwich=bool(rng.randint(2)), most_excess=cut,
        matrices=not link.linear or bool(rng.randint(2)),
    )  # fmt: skip


def _step_and_line(rng):
    whitened, target = _with_weights(rng, *_maps(rng))
    maps = whitened, target, rng.uniform(-1.0, 1.0), rng.normal(size=len(whitened.W))
    most = (None, 0.0, 10.0 ** rng.uniform(-2.0, 0.5))[rng.randint(3)]
    limit = 3.0 if most == 0.0 else 10.0 ** rng.uniform(-3.0, 0.4)
    step = ScoreQuery(*maps, limit, sandwich=True, most_excess=most)
    line = LineScoreQuery(*maps, 10.0 ** rng.uniform(-4.0, 1.0))
    line = replace(line, mean_excess=rng.uniform(0.1, 1.0))
    return StepAndLineQuery(step, line, (0.5, 0.04))


def _opposite_scores():
    """At their limit for the step, with nothing cut, and beyond it for the line."""
    maps = PLANE, TARGET, 0.0, np.zeros(2)
    step = ScoreQuery(*maps, 1.0, sandwich=True, most_excess=0.0)
    query = StepAndLineQuery(step, LineScoreQuery(*maps, 1.0 - 1e-12), (0.5, 0.04))
    return query, one(E1, 1.0), one(-E1, 1.0)


def _own_slope(rng):
    whitened, target = _maps(rng)
    link, target, _ = _link(rng, target)
    while link.linear:
        link, target, _ = _link(rng, target)
    whitened, target = _with_weights(rng, whitened, target)
    point = rng.normal(size=len(whitened.W)) * 10.0 ** rng.uniform(-3.0, 3.0)
    maps = whitened, target, rng.uniform(-1.0, 1.0), point, 10.0 ** rng.uniform(-4.0, 1.0)
    return OwnSlopeQuery(*maps, link, mean_excess=rng.uniform(0.1, 2.0))


def _orthogonal_slopes():
    """Both are longer than they may be."""
    query = OwnSlopeQuery(PLANE, CLASSES, 0.0, np.zeros(2), 0.1, Logit())
    return query, one(E1, 0.0), one(E2, 1.0)


def _at_the_limit(sandwich=False, cut=None, matrices=True):
    """One residual is just cut, and the other is just not."""
    asked = {"sandwich": sandwich, "most_excess": cut, "matrices": matrices}
    query = ScoreQuery(PLANE, TARGET, 0.0, np.zeros(2), 0.5, **asked)
    return query, one(E1, 0.5), one(-E1, 0.5 * (1.0 - 1e-12))


def _beyond_the_limit():
    """Both residuals are cut: one counts for less by all that it may, and the other just not."""
    query = ScoreQuery(PLANE, TARGET, 0.0, np.zeros(2), 0.25, sandwich=True, most_excess=0.5)
    return query, one(E1, 1.0), one(-0.4 * E1 + np.sqrt(0.84) * E2, 0.25)


def _residual_mean(rng):
    whitened, target = _maps(rng)
    link, target, limit = _link(rng, target)
    whitened, target = _with_weights(rng, whitened, target)
    theta = rng.normal(size=whitened.row_map.size) * 10.0 ** rng.uniform(-3.0, 3.0)
    return ResidualMeanQuery(whitened.row_map, target, rng.uniform(-1.0, 1.0), theta, limit, link)


def _stretch(rng):
    whitened, target = _with_weights(rng, *_maps(rng))
    theta = rng.normal(size=whitened.row_map.size) * 10.0 ** rng.uniform(-3.0, 3.0)
    limit, unit = 10.0 ** rng.uniform(-3.0, 0.4, size=2)
    known = whitened.row_map, target, rng.uniform(-1.0, 1.0), theta, limit
    return StretchQuery(*known, middle=rng.normal(), unit=unit)


def _spread_of_counts(rng):
    query = _residual_mean(rng)
    known = query.row_map, query.target_map, query.location, query.theta, query.limit, query.link
    return SpreadOfCountsQuery(*known, middle=rng.uniform(), unit=10.0 ** rng.uniform(-3.0, 0.4))


def _location(kind):
    """Of targets of a line or of classes, with weights at times."""

    def made(rng):
        whitened, target = _maps(rng)
        link, target, _ = _link(rng, target)
        whitened, target = _with_weights(rng, whitened, target)
        weighted = whitened.row_map if isinstance(whitened.row_map, WeightedMap) else None
        first = () if kind is LocationQuery else (rng.uniform(link.low, 1.0),)
        return kind(target, *first, link.low, weighted)

    return made


def _opposite_classes():
    """Far rows that are all but opposite: of the class that a mean of 1 or of .57 denies."""
    far = Whitened(PLAIN, Logit.far_length * np.eye(2))
    query = ScoreQuery(far, CLASSES, 0.0, 1e4 / Logit.far_length * E2, 1.0, Logit(), sandwich=True)
    even = 1e-4 * np.log(0.57 / 0.43)
    return query, one(E1 + 0.005 * E2, 0.0), one(-E1 + even * E2, 0.0)


def _targets(query, first, second):
    return lambda: (query, one(E1, first), one(E1, second))


CASES = {
    LocationQuery: Case(_location(LocationQuery), (_targets(LocationQuery(TARGET), 1.0, -1.0),)),
    SpreadQuery: Case(_location(SpreadQuery), (_targets(SpreadQuery(TARGET, 0.0), 0.0, 1.0),)),
    WhiteningQuery: Case(
        lambda rng: WhiteningQuery(_with_weights(rng, *_maps(rng))[0], rng.rand() < 0.5),
        (
            lambda: (WhiteningQuery(PLANE), one(E1, 0.0), one(E2, 0.0)),
            lambda: (WhiteningQuery(LONGER), one(E1, 0.0), one(E2, 0.0)),
            lambda: (WhiteningQuery(HEAVY), one([*E1, 2.0], 0.0), one([*E2, 2.0], 0.0)),
        ),
    ),
    FarRowsQuery: Case(
        lambda rng: FarRowsQuery(_with_weights(rng, *_maps(rng))[0]),
        (lambda: (FarRowsQuery(Whitened(PLAIN, 3.0 * np.eye(2))), one(E1, 0.0), one(E2, 0.0)),),
    ),
    MarginsQuery: Case(
        lambda rng: MarginsQuery(_maps(rng)[0].row_map),
        (lambda: (MarginsQuery(BOX), one(np.ones(2), 0.0), one(-np.ones(2), 0.0)),),
    ),
    ClippedRowsQuery: Case(
        lambda rng: ClippedRowsQuery(_maps(rng)[0].row_map, TARGET if rng.rand() < 0.5 else None),
        (
            lambda: (ClippedRowsQuery(PLAIN), one(2.0 * E1, 0.0), one(0.1 * E1, 0.0)),
            lambda: (ClippedRowsQuery(PLAIN, TARGET), one(2.0 * E1, 9.0), one(0.1 * E1, 0.0)),
        ),
    ),
    OwnSlopeQuery: Case(_own_slope, (_orthogonal_slopes,)),
    StepAndLineQuery: Case(_step_and_line, (_opposite_scores,)),
    ScoreQuery: Case(
        _score,
        (
            _at_the_limit,
            partial(_at_the_limit, True),
            partial(_at_the_limit, True, 0.5),
            partial(_at_the_limit, False, 0.5, matrices=False),
            _opposite_classes,
            _beyond_the_limit,
        ),
        reached=0.98,
    ),
    ResidualMeanQuery: Case(
        _residual_mean,
        (_targets(ResidualMeanQuery(PLAIN, TARGET, 0.0, np.zeros(2), 0.5), 1.0, -1.0),),
    ),
    StretchQuery: Case(
        _stretch,
        (_targets(StretchQuery(PLAIN, TARGET, 0.0, 0.1 * E1, 0.5, unit=0.05), 1.0, -1.0),),
    ),
    SpreadOfCountsQuery: Case(
        _spread_of_counts,
        (_targets(SpreadOfCountsQuery(PLAIN, TARGET, 0.0, np.zeros(2), 0.5), 1.0, -1.0),),
    ),
    # Runs without privacy only.
    LeastSquares: Case(lambda rng: LeastSquares(RecordMap(PLAIN, TARGET)), ()),
}
