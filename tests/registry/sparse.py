"""Sums and procedures of iterative hard thresholding, which takes sparse rows too."""

import numpy as np

from skpriv._estimation._loop._rows import Whitened, WhiteningQuery
from skpriv._estimation._public_maps import RecordMap, RowMap
from skpriv.linear_model._gradients._niht import (
    GradientNorm, Iterate, OfColumns, ResidualSizeQuery, ScoresQuery,
)  # fmt: skip

from .case import Case
from .linear import one

D, SUPPORT = 5, np.array([0, 3])
ONES = np.ones(D)


def _entries(rng=None):
    if rng is None:
        return RecordMap.of_norm(1.0, (-1.0, 1.0), True, D)
    data_max = rng.choice([1.0, 1.5, 1e-3, 1e100, 1e-100])
    return RecordMap.of_norm(
        float(data_max), (-1.0, rng.uniform(0.5, 9.0)), bool(rng.randint(2)), D
    )


def _iterate(entries, weights=(0.0, 0.0), level=0.0):
    return Iterate(entries, SUPPORT, np.array(weights), level)


def _draw_iterate(rng):
    weights = rng.normal(size=2) * rng.choice([0.01, 1.0, 30.0])
    return _iterate(_entries(rng), weights, rng.normal())


def _of_columns(rng):
    end = np.full(2, rng.choice([1.0, 1e-3, 1e100]))
    rows = RowMap(-end, end, None, bool(rng.randint(2)), 2)
    return OfColumns(
        WhiteningQuery(Whitened(rows, rng.normal(size=(rows.size, rows.size)))), SUPPORT
    )


def _apart():
    """Two unit rows on the columns that are asked about, and others that do not count."""
    rows = RowMap(-np.ones(2), np.ones(2), None, False, 2)
    first, second = np.full((2, D), 9.0)
    first[SUPPORT], second[SUPPORT] = (1.0, 1.0), (1.0, -1.0)
    asked = OfColumns(WhiteningQuery(Whitened(rows, np.eye(2))), SUPPORT)
    return asked, one(first, 0.0), one(second, 0.0)


def _norm(rng):
    return GradientNorm(_draw_iterate(rng))


def _gradient_norm():
    model = _iterate(_entries(), (-0.5, 0.25))
    X, y = np.zeros((100, D)), np.ones(100)
    X[:, 1] = 1.0  # the largest coordinate, and the constant, by 98 others
    X[0, SUPPORT] = 1.0, -1.0
    other_X, other_y = X.copy(), y.copy()
    other_X[0, SUPPORT], other_y[0] = [-1.0, 1.0], -1.0  # residual -1.75 after 1.75
    return GradientNorm(model), (X, y), (other_X, other_y)


def _gradient_norm_beside_a_level():
    """The entry of the largest coordinate has no weight: it turns, and the residual stays."""
    X, y = np.zeros((100, D)), -np.ones(100)
    X[:, 1] = 1.0
    X[0, SUPPORT], y[0] = (1.0, -1.0), 1.0  # residual 1 + 0.5 + 0.75
    other_X = X.copy()
    other_X[0, 1] = -1.0
    return GradientNorm(_iterate(_entries(), (-0.5, 0.25), -0.5)), (X, y), (other_X, y)


def _pair(query, first=1.0, second=-1.0):
    return lambda: (query, one(ONES, first), one(ONES, second))


def _unit(asked):
    return asked.model.maps.row_bound


EMPTY = _iterate(_entries())
CASES = {
    ResidualSizeQuery: Case(
        lambda rng: ResidualSizeQuery(_draw_iterate(rng)),
        (_pair(ResidualSizeQuery(EMPTY), 0.0, 1.0),),
        width=D, unit=_unit, sparse=True,
    ),
    ScoresQuery: Case(
        lambda rng: ScoresQuery(_draw_iterate(rng), D, 0.5, rng.uniform(0.01, 2.0)),
        (_pair(ScoresQuery(EMPTY, D, 0.5, 0.4)),),
        width=D, unit=_unit, sparse=True,
    ),
    OfColumns: Case(
        _of_columns, (_apart,), width=D, sparse=True,
        unit=lambda asked: asked.query.whitened.row_map.high[0],
    ),
    GradientNorm: Case(
        _norm, (_gradient_norm, _gradient_norm_beside_a_level),
        width=D, n=3, unit=_unit, sparse=True,
    ),
}  # fmt: skip
