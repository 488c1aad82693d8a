"""What is asked about persons and their rows."""

from dataclasses import replace
from functools import partial

import numpy as np

from skpriv._estimation._loop._line_queries import LineScoreQuery
from skpriv._estimation._loop._score import SIDE_WEIGHT, SLOPE_WEIGHTS, PersonScoreQuery
from skpriv._estimation._links import IDENTITY, Log, Logit
from skpriv._estimation._persons import ScoreLengthsQuery
from skpriv._estimation._loop._rows import Whitened
from skpriv._estimation._moments import Instrument, PersonGramQuery
from skpriv._estimation._public_maps import RecordMap, RowMap, TargetMap
from skpriv.linear_model._generalized._labels import ClassTarget
from skpriv.linear_model._instruments import InstrumentScoreQuery
from skpriv.privacy._session._groups import FilledPlaces
from skpriv.records import ArrayRows, PersonRows

from .case import Case

LARGEST = 5


def _ask(asked, X, y):
    """Persons with as many rows as their first entry says, with which a few places are left."""
    with np.errstate(all="ignore"):
        count = np.nan_to_num(np.clip(abs(X[:, 0]), 1.0, LARGEST + 3.0), nan=1.0).astype(int)
    codes = np.repeat(np.arange(len(X)), count)
    rows = ArrayRows(np.zeros((len(codes), 1)), np.zeros(len(codes)))
    return PersonRows(rows, codes, LARGEST, np.random.RandomState(0).permutation).sum(asked)


def _worst():
    X, y = np.ones((1, 3)), np.zeros(1)
    return FilledPlaces(), (X, y), (LARGEST * X, y)


def ask_persons(asked, X, y):
    """Each record is a person: places of a row and a target, one after the other.

    A place with a value that is no finite number is empty, as `PersonRows` has it.
    """
    n, width = len(X), X.shape[1] // PLACES
    places = X.reshape(n * PLACES, width)
    keep = np.isfinite(places).all(axis=1)
    owner = np.repeat(np.arange(n), PLACES)[keep]
    starts = np.append(np.flatnonzero(np.diff(owner, prepend=-1)), len(owner))
    rows, targets = places[keep, :-1], places[keep, -1]
    return asked.sum_persons(rows, targets, starts, PLACES)


PLACES = 3
PLANE = RecordMap.of_norm(1.0, (-1.0, 1.0), False, 2)


def alike(*place):
    """A data set of one person, whose places have the same row and target."""
    return np.array([place * PLACES], dtype=float), np.zeros(1)


# Persons at the same row, with targets above and below the line at 0, and with those of the line.
ABOVE, BELOW, WITHOUT = (alike(1.0, 0.0, target) for target in (1.0, -1.0, 0.0))


def _person_gram(rng):
    maps = RecordMap.of_norm(rng.choice([1.0, 1e3]), (-1.0, 1.0), bool(rng.randint(2)), 2)
    matrix = None if rng.randint(2) else np.diag([1.0, 10.0 ** -rng.randint(3)][:2])
    if matrix is not None and maps.size == 3:
        matrix = np.diag([1.0, 0.1, 0.01])
    theta = tuple(rng.normal(size=maps.size))
    return PersonGramQuery(maps, theta, Instrument(matrix), rng.choice([0.1, 1.9, 2.0]))


def _worst_gram():
    query = PersonGramQuery(PLANE, (1e9, 1e9), Instrument(), 1.0)
    return query, alike(1.0, 0.0, -1.0), alike(0.0, 1.0, 0.0)


def _maps(rng):
    """Maps, coordinates, V, theta and clips of queries about instruments."""
    intercept = bool(rng.randint(2))
    rows = RowMap(np.full(2, -1.0), np.full(2, 1.0), None, intercept, 2)
    exogenous, structural = np.setdiff1d(np.arange(rows.size), 1), np.arange(1, rows.size)
    V = np.diag(10.0 ** rng.uniform(-1, 3, len(exogenous)))
    theta = rng.normal(size=len(structural))
    maps = RecordMap(rows, TargetMap((-1.0, 1.0), intercept)), exogenous, structural
    return *maps, V, theta, rng.choice([0.1, 2.0]), rng.choice([0.1, 1.0]), rng.choice([0.1, 1.0])


def _scores(kind):
    maps = RecordMap(RowMap(None, None, 1.0, False, 2), TargetMap((-1.0, 1.0), False))
    return kind(maps, np.array([0]), np.array([1]), 1e9 * np.eye(1), np.array([0.0]), 1e-9)


def _worst_scores(weight=SLOPE_WEIGHTS[0]):
    """Instruments of opposite signs, the same x and the same score."""
    query = replace(_scores(InstrumentScoreQuery), slope_weight=weight)
    return query, alike(1e-7, 1.0, 1.0), alike(-1e-7, 1.0, 1.0)


def orthogonal_instruments():
    """Instruments that differ, the same x and the same score: the products uu' are far apart."""
    maps = RecordMap(RowMap(None, None, 1.0, False, 3), TargetMap((-1.0, 1.0), False))
    places = np.arange(2), np.array([2])
    query = InstrumentScoreQuery(maps, *places, 1e9 * np.eye(2), np.array([0.0]), 1e-9)
    return query, alike(1e-7, 0.0, 1.0, 1.0), alike(0.0, 1e-7, 1.0, 1.0)


def _worst_lengths():
    query = ScoreLengthsQuery(_scores(InstrumentScoreQuery))
    return query, alike(1e-7, 1.0, 1.0), alike(1e-7, 1.0, 0.0)


def _whitened(rng):
    rows = RowMap(np.full(2, -1.0), np.full(2, 1.0), None, bool(rng.randint(2)), 2)
    W = np.diag(10.0 ** rng.uniform(-2, 2, rows.size))
    return Whitened(rows, W), TargetMap((-1.0, 1.0), rows.fit_intercept)


def _person_scores(rng):
    whitened, target = _whitened(rng)
    point = rng.normal(size=len(whitened.W))
    limit, length = rng.choice([0.05, 1.0, 3.0]), rng.choice([0.05, 0.5, 1.0])
    link = IDENTITY
    if rng.randint(2):
        link, target = Logit(limit=rng.choice([0.6, 1.0])), ClassTarget((0.0, 1.0))
        limit = link.limit
    weight = rng.choice([0.1, *SLOPE_WEIGHTS])
    return PersonScoreQuery(
        whitened, target, rng.uniform(-0.5, 0.5), point, limit, link,
        sandwich=bool(rng.randint(2)), length=length, slope_weight=weight,
    )  # fmt: skip


def _person_lengths(rng):
    if rng.randint(2):
        return ScoreLengthsQuery(_line(rng), np.sort(rng.uniform(size=3)))
    return ScoreLengthsQuery(
        InstrumentScoreQuery(*_maps(rng)) if rng.randint(2) else _person_scores(rng)
    )


def _score_maps(limit):
    whitened = Whitened(RowMap(None, None, 1.0, False, 2), np.eye(2))
    return whitened, TargetMap((-1.0, 1.0), False), 0.0, np.zeros(2), limit


def _opposite_scores(weight=SLOPE_WEIGHTS[0]):
    """Sums of scores at opposite ends of a short length, and slopes of other rows."""
    maps = _score_maps(0.5)
    query = PersonScoreQuery(*maps, sandwich=True, length=1e-3, slope_weight=weight)
    other = [[-0.05, 0.998, 0.05, 0.05, 0.998, -0.05, 0.0, 1.0, 0.0]]
    return query, alike(1.0, 0.0, 0.4999), (np.array(other), np.zeros(1))  # .5 has no slope


def obtuse_scores():
    """At this angle the sums of scores and of their products differ most together."""
    return PersonScoreQuery(*_score_maps(0.5), sandwich=True), ABOVE, alike(-0.8, 0.6, 1.0)


def _one_class_and_another():
    return ScoreLengthsQuery(PersonScoreQuery(*_score_maps(0.5))), ABOVE, WITHOUT


def _line(rng):
    whitened, target = _whitened(rng)
    point = rng.normal(size=len(whitened.W)) * 10.0 ** rng.choice([0.0, 4.0])  # or means overflow
    limit = rng.choice([1e-3, 0.1, 1.0, 3.0])
    link = (IDENTITY, Logit(), Log())[rng.randint(3)]
    query = LineScoreQuery(whitened, target, rng.uniform(-0.5, 0.5), point, limit, link)
    return replace(query, mean_excess=rng.uniform(0.1, 1.0))


def _shortened():
    """Scores at opposite ends, and longer than they may be."""
    return LineScoreQuery(*_score_maps(0.5)), ABOVE, BELOW


def _long_and_none():
    query = ScoreLengthsQuery(LineScoreQuery(*_score_maps(0.5)), np.array([0.1, 1.0]))
    return query, ABOVE, WITHOUT


CASES = {
    LineScoreQuery: Case(_line, (_shortened,), width=3 * PLACES, ask=ask_persons),
    PersonScoreQuery: Case(
        _person_scores,
        (_opposite_scores, partial(_opposite_scores, SLOPE_WEIGHTS[1])),
        width=3 * PLACES,
        ask=ask_persons,
    ),
    ScoreLengthsQuery: Case(
        _person_lengths, (_one_class_and_another, _worst_lengths, _long_and_none),
        width=3 * PLACES, ask=ask_persons,
    ),
    InstrumentScoreQuery: Case(
        lambda rng: InstrumentScoreQuery(*_maps(rng)),
        (_worst_scores, partial(_worst_scores, SIDE_WEIGHT)),
        width=3 * PLACES,
        ask=ask_persons,
    ),
    PersonGramQuery: Case(
        _person_gram, (_worst_gram,), width=3 * PLACES, ask=ask_persons,
        unit=lambda asked: asked.maps.row_bound,
    ),
    FilledPlaces: Case(
        lambda rng: FilledPlaces(), (_worst,), reached=1.0 - 1.01 / LARGEST,
        reason="one place of a person is never empty", unit=lambda _: 4.0,
        ask=_ask,
    )
}  # fmt: skip
