"""Sums that describe and check a table."""

import numpy as np

from skpriv.inspection._description import Binned, Coded, ColumnMomentsQuery
from skpriv.inspection._distribution import ColumnRange, DistributionQuery, Ranged
from skpriv.preprocessing._check import CellStates, CountsQuery

from .case import Case

WIDTH = 7  # two lines of two columns, and a coded column of three
RANGES = (ColumnRange("a", 0, 1.5), ColumnRange("b", 2, 1.5))
LEVELS = Coded("c", ("x", "y", "z"), slice(4, 7), np.eye(3) / 1.5)
PART = Binned("a", 0, 1.5, ("low", "high", "missing"))
STATES = tuple((CellStates(at),) for at in range(WIDTH))


def _lines(rng):
    return RANGES[: rng.randint(1, 3)]


def _ranged(rng):
    low = rng.choice([0.0, -1e300, 1e16])
    return (Ranged(low, {0.0: 1e-300, -1e300: 1e300, 1e16: 1e16 + 4.0}[low]),)


def _distribution(rng):
    lines = _ranged(rng) if rng.randint(2) else _lines(rng)
    return DistributionQuery(lines, rng.randint(1, 6))


def _counts(rng):
    tables = STATES if rng.randint(2) else ((LEVELS,), (PART,), (LEVELS, PART), (PART, LEVELS))
    return CountsQuery(tables[: rng.randint(1, len(tables) + 1)])


def _row(*values):
    return np.array([values]) / 1.5, np.zeros(1)


LOW, HIGH = _row(-1, 0, -1, 0, 1, 0, 0), _row(1, 0, 1, 0, 0, 1, 0)
ABSENT = _row(0, 1, 0, 1, 1, 0, 0)
CASES = {
    ColumnMomentsQuery: Case(
        lambda rng: ColumnMomentsQuery(_lines(rng), rng.rand() < 0.5),
        (
            lambda: (ColumnMomentsQuery(RANGES), LOW, HIGH),
            lambda: (ColumnMomentsQuery(RANGES, True), ABSENT, HIGH),
        ),
        width=WIDTH,
    ),
    DistributionQuery: Case(
        _distribution,
        (
            lambda: (DistributionQuery(RANGES, 4), LOW, HIGH),
            lambda: (
                DistributionQuery((Ranged(0.0, 1.0),), 3),
                (np.zeros((1, WIDTH)), np.zeros(1)),
                (np.zeros((1, WIDTH)), np.ones(1)),
            ),
        ),
        width=WIDTH,
    ),
    CountsQuery: Case(
        _counts,
        (
            lambda: (CountsQuery(((LEVELS,), (LEVELS, PART))), LOW, HIGH),
            lambda: (
                CountsQuery(STATES),
                (np.zeros((1, WIDTH)), np.zeros(1)),
                (np.full((1, WIDTH), 4.0), np.zeros(1)),
            ),
        ),
        width=WIDTH,
    ),
}
