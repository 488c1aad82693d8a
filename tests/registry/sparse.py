"""Sums and procedures of iterative hard thresholding, which takes sparse rows too."""

from dataclasses import replace

import numpy as np

from skpriv._estimation._public_maps import RecordMap
from skpriv.linear_model._iht import (
    GradientNorm,
    Iterate,
    ResidualSizeQuery,
    ScoresQuery,
    SupportGradientQuery,
    SupportMomentsQuery,
    SupportRows,
)

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


def _residual(entries, theta=None):
    rows = SupportRows.of(entries, SUPPORT, False)
    return replace(rows, theta=np.zeros(rows.scaling.size) if theta is None else theta)


def _draw_residual(rng):
    entries = _entries(rng)
    size = SupportRows.of(entries, SUPPORT, False).scaling.size
    return _residual(entries, rng.normal(size=size) * 10.0 ** rng.uniform(-2, 2))


def _size(rng):
    return ResidualSizeQuery(_draw_iterate(rng) if rng.randint(2) else _draw_residual(rng))


def _norm(rng):
    return GradientNorm(_draw_iterate(rng))


def _moments():
    rows = SupportRows.of(RecordMap.of_norm(1.0, (-1.0, 1.0), False, D), SUPPORT, False)
    first, second = np.zeros(D), np.zeros(D)
    first[0] = 1.0
    second[SUPPORT] = rows.scaling.row_bound * np.array([0.5, np.sqrt(0.75)])
    return SupportMomentsQuery(rows), one(first, 1.0), one(second, -1.0)


def _gradient_norm():
    model = _iterate(_entries(), (-0.5, 0.25))
    X, y = np.zeros((100, D)), np.ones(100)
    X[:, 1] = 1.0  # the largest coordinate, and the constant, by 98 others
    X[0, SUPPORT] = 1.0, -1.0
    other_X, other_y = X.copy(), y.copy()
    other_X[0, SUPPORT], other_y[0] = [-1.0, 1.0], -1.0  # residual -1.75 after 1.75
    return GradientNorm(model), (X, y), (other_X, other_y)


def _pair(query, first=1.0, second=-1.0):
    return lambda: (query, one(ONES, first), one(ONES, second))


def _unit(asked):
    model = asked.model
    return getattr(model, "data_max", None) or model.scaling.row_bound


EMPTY = _iterate(_entries())
CASES = {
    ResidualSizeQuery: Case(
        _size, (_pair(ResidualSizeQuery(EMPTY), 0.0, 1.0),), width=D, unit=_unit, sparse=True
    ),
    ScoresQuery: Case(
        lambda rng: ScoresQuery(_draw_iterate(rng), D, 0.5, rng.uniform(0.01, 2.0)),
        (_pair(ScoresQuery(EMPTY, D, 0.5, 0.4)),),
        width=D, unit=_unit, sparse=True,
    ),
    SupportMomentsQuery: Case(
        lambda rng: SupportMomentsQuery(_draw_residual(rng)),
        (_moments,),
        width=D, unit=_unit, sparse=True,
    ),
    SupportGradientQuery: Case(
        lambda rng: SupportGradientQuery(_draw_residual(rng), rng.uniform(0.01, 2.0)),
        (_pair(SupportGradientQuery(_residual(_entries()), 0.4)),),
        width=D, unit=_unit, sparse=True,
    ),
    GradientNorm: Case(_norm, (_gradient_norm,), width=D, n=3, unit=_unit, sparse=True),
}  # fmt: skip
