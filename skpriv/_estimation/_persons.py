"""Rows of persons: differences from a person's means, sums of scores, and what tells dependence."""

from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from .._linalg import SQRT2, add_gram, row_norms, vech, vech_size
from ..privacy import ROUNDING, Query
from ._intervals import USUAL_QUANTILE
from ._moments import ResidualGramQuery

# Classes of lengths of a person's score, as parts of the largest that it may have.
SCORE_LENGTHS = 2.0 ** (-np.arange(13)[::-1] / 2.0)
MOST_CUT = 0.001  # part of the persons whose scores may be cut, as far as noise tells


class OfPersons:
    """Mixin of questions about persons; of rows alone, each is a person."""

    def sum(self: Any, X, y):
        """Exact sum over a chunk of rows, each of which is a person."""
        return self.sum_persons(X, y, np.arange(len(X) + 1), 1)


def joint_sums(query, X, y, starts, largest=1):
    """Exact sums over a chunk of persons of u, uu' / sqrt(2) and what is asked beside them.

    u is the sum of the scores of a person over m L, shortened to norm 1, and what is beside it is a
    mean over the m places of the person. Matrices stand for their vech. With t = -<u, u'> the first
    two move by at most |u|^2 + |u'|^2 + 2 t + (|u|^4 + |u'|^4 - 2 t^2) / 2 squared, which increases
    in both norms, and then in t up to 1, where it is 4.

    Parameters
    ----------
    query : Query
        It has ``parts``, the sizes of what is asked by name, ``length``, L, and ``scored(X, y)``,
        the scores of rows and by name the sums over rows of what is beside them.
    X : ndarray of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
    starts : ndarray of shape (n_persons + 1,)
    largest : int
        m.
    """
    scores, beside = query.scored(X, y)
    u = person_sums(scores, starts) / (largest * query.length)
    u = u / np.maximum(row_norms(u), 1.0)[:, None]
    meat = np.zeros((u.shape[1],) * 2, order="F")
    add_gram(meat, u)
    sums = {"moment": u.sum(axis=0), "residual": vech(meat) / SQRT2}
    sums |= {name: np.ravel(value) / largest for name, value in beside.items()}
    return np.concatenate([sums[name] for name in query.parts])


def named_parts(query, values):
    """What is asked by `joint_sums`, or by another query with ``parts``, by its names."""
    ends = np.cumsum(list(query.parts.values()))[:-1]
    return dict(zip(query.parts, np.split(values, ends), strict=True))


class JointScores:
    """Mixin of questions about scores, each of a row that is a record: see `joint_sums`."""

    length = 1.0
    unit: Any
    parts: Any
    scored: Any

    @property
    def shape(self):
        """Number of coordinates."""
        return (sum(self.parts.values()),)

    @property
    def residual_unit(self):
        """What the entries of uu' / sqrt(2) stand for."""
        return SQRT2 * self.unit**2

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        return joint_sums(self, X, y, np.arange(len(X) + 1))


class PersonScores(JointScores):
    """The same where records are persons."""

    def score_rows(self, X, y):
        """Scores of the rows of a chunk."""
        return self.scored(X, y)[0]

    def sum_persons(self, X, y, starts, largest):
        """Exact sum over a chunk of persons."""
        return joint_sums(self, X, y, starts, largest)


@dataclass(frozen=True, eq=False)
class ScoreLengthsQuery(OfPersons, Query):
    """Number of records in each class of lengths of scores; of a person, of their sum over m.

    A record is in one class: replacing one moves two counts by 1, sensitivity sqrt(2).

    Parameters
    ----------
    scores : object
        The question about these scores, with ``score_rows(X, y)``: those of the rows of a chunk.
        With ``score_lengths(X, y)``, which is cheaper, where a record is a row.
    classes : ndarray of shape (n_classes,)
        Ends of the classes. The last one has all that is longer, too.
    """

    scores: Any
    classes: Any = field(default_factory=lambda: SCORE_LENGTHS)
    name: str = "lengths of scores"
    sensitivity: float = SQRT2 * ROUNDING

    @property
    def shape(self):
        """Number of classes."""
        return (len(self.classes),)

    def sum(self, X, y):
        """Exact counts over a chunk of rows, each of which is a record."""
        lengths = getattr(self.scores, "score_lengths", None)
        return self._counts(lengths(X, y)) if lengths else super().sum(X, y)

    def sum_persons(self, X, y, starts, largest):
        """Exact counts over a chunk of persons."""
        u = person_sums(self.scores.score_rows(X, y), starts) / largest
        return self._counts(row_norms(u))

    def _counts(self, lengths):
        """Number of records in each class."""
        classes = np.minimum(np.searchsorted(self.classes, lengths), len(self.classes) - 1)
        return np.bincount(classes, minlength=len(self.classes)).astype(float)


def seldom_cut(session, query, share):
    """A length of persons' scores beyond which next to none is, by private counts.

    From the shortest class on, that is the first beyond which there are no more persons than the
    noise of the counts may be; the next one is taken, of scores that are longer by a factor of
    sqrt(2), for as many as the noise hides. A class of long scores alone is not believed: one of
    so many sums of noise is often large. Where the noise hides everybody nothing is cut.
    """
    lengths = query.classes
    answer = session.sum(query, share)
    beyond = np.cumsum(answer.value[::-1])[::-1]
    noise = answer.noise.scale * np.sqrt(np.arange(len(beyond), 0, -1))
    few = np.flatnonzero(beyond <= MOST_CUT * session.n + USUAL_QUANTILE * noise)
    found = int(few[0]) if len(few) else len(lengths) - 1
    return float(lengths[found]) if found else 1.0


def person_sums(values, starts):
    """Sums over the rows of each person, shape (n_persons, ...); none is without rows."""
    rows, shape = len(values), (len(starts) - 1, len(values))
    return csr_matrix((np.ones(rows), np.arange(rows), starts), shape=shape) @ values


def dependence(persons, rows, places):
    """How large the sum uu' of persons is beside that of their rows, over all directions.

    It is between 1 / m, for rows that do not depend on each other, and 1, for rows that are alike.

    Parameters
    ----------
    persons, rows : ndarray of shape (p, p)
        Covariances of the scores of persons, with noise, and what it would be at most.
    places : int
        m.
    """
    most = max(float(np.trace(rows)), 1e-300)
    return float(np.clip(np.trace(persons) / most, 1.0 / places, 1.0))


@dataclass(frozen=True, eq=False)
class WithinPersons:
    """Rows and targets, clipped to public bounds, less their means over the person.

    What is left of a number in [low, high] lies within (high - low)(1 - 1 / m) of 0 for a person
    with m rows: a mean of which the number itself is a part of 1 / m is not further away. Of a row
    of norm at most L it is 2 L (1 - 1 / m). The differences of a person depend on nobody else.

    Parameters
    ----------
    clipped : callable
        Rows within their public bounds.
    bounds_y : (float, float)
    """

    clipped: Any
    bounds_y: tuple

    def __call__(self, X, y, starts):
        """Differences of a chunk of persons."""
        sizes = np.diff(starts)
        X, y = self.clipped(X), np.clip(y, *self.bounds_y)
        rows = np.column_stack([X, y])
        rows -= rows[np.repeat(starts[:-1], sizes)]  # rows that are alike are exactly 0 then
        rows -= np.repeat(person_sums(rows, starts) / sizes[:, None], sizes, axis=0)
        return rows[:, :-1], rows[:, -1]


def spread_within(largest):
    """1 - 1 / m: the part of a range by which a row may differ from the mean of m rows."""
    return 1.0 - 1.0 / largest


@dataclass(frozen=True)
class PersonGramQuery(OfPersons, ResidualGramQuery):
    """Joint sum of (mean (zeta / R)^2 e e', u u', x) over persons, u = mean zeta e / R.

    Means are over the m places of a person, and matrices stand for their vech. The first is what
    `ResidualGramQuery` asks, and bounds the covariance of scores whatever their dependence is; the
    second is that covariance. Both are positive semi-definite of trace at most 1: each moves
    by at most sqrt(2) in Frobenius norm, and x is in [0, 1]. Sensitivity sqrt(5).
    """

    name: str = "residual variance"
    sensitivity: float = sqrt(5.0) * ROUNDING

    @property
    def shape(self):
        """Number of coordinates."""
        return (2 * vech_size(self.scaling.size) + 1,)

    def sum_persons(self, X, y, starts, largest):
        """Exact sums over a chunk of persons."""
        scores, beyond = self._scores(X, y)
        grams = [np.zeros((self.scaling.size,) * 2, order="F") for _ in range(2)]
        add_gram(grams[0], scores)
        add_gram(grams[1], person_sums(scores, starts) / largest)
        return np.concatenate([vech(grams[0]) / largest, vech(grams[1]), [beyond / largest]])

    @property
    def _weight(self):
        return 1.0

    def _scores(self, X, y):
        """Rows e zeta / R, and the sum of x."""
        r, theta, found, beyond = self.scaling.target(y), np.array(self.theta), [], 0.0
        for block, phi in self.scaling.row_map.blocks(X):
            zeta = r[block] - np.clip(phi @ theta, -1.0, 1.0)
            beyond += self._beyond(zeta)
            cut = np.clip(zeta, -self.limit, self.limit) / self.limit
            if self.instrument.matrix is None:
                found.append(phi * cut[:, None])
                continue
            e = self.instrument.turned(np.array(phi), cut)
            found.append(self.scaling.row_map.weigh(e, X[block]))
        return np.vstack([np.empty((0, self.scaling.size)), *found]), beyond

    def read(self, answer):
        """What `NormalEquations` keep of an answer: that of rows, and that of persons."""
        size = vech_size(self.scaling.size)
        rows = np.append(answer.value[:size], answer.value[-1])
        persons = super().read(replace(answer, value=answer.value[size:]))
        found = super().read(replace(answer, value=rows))
        return {**found, "person_gram": persons["residual_gram"]}


def cluster_degrees(persons, rows, p):
    """Factor of a covariance that is robust to dependence inside of persons, without privacy.

    As in Stata, linearmodels and pyfixest: G / (G - 1) (N - 1) / (N - p) of G persons with N rows.
    """
    if persons < 2 or rows <= p:
        return 1.0
    return persons / (persons - 1.0) * (rows - 1.0) / (rows - p)
