"""Questions about scores where a record is a person with several rows, or one row."""

from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix

from .._linalg import SQRT2, row_norms, trace_of, vech, vech_size
from .._stored import frozen_object
from ..privacy import ROUNDING, Query
from ._levels import USUAL_QUANTILE

if TYPE_CHECKING:
    from ..privacy import Session, SessionPart
    from .._contracts import Array
    from ._loop._rows import Whitened

MATRICES = "slope", "residual", "cut_rows"  # what is asked of scores as a vech


# Classes of lengths of a person's score, as parts of the largest that it may have.
SCORE_LENGTHS = 2.0 ** (-np.arange(13)[::-1] / 2.0)


MOST_CUT = 0.001  # part of the persons whose scores may be cut, as far as noise tells


def of_several_rows(session: "Session | SessionPart") -> bool:
    """Whether a record may have several rows; a person with one row is a row."""
    return (session.persons or 1) > 1


class OfPersons:
    """Mixin of questions about persons; of rows alone, each is a person."""

    sum_persons: Any

    def sum(self, X: Any, y: np.ndarray) -> "Array":
        """Exact sum over a chunk of rows, each of which is a person."""
        return self.sum_persons(X, y, np.arange(len(y) + 1), 1)


class JointScores:
    """Mixin of questions about scores, each of a row that is a record.

    Attributes
    ----------
    weights : dict of str to float
        Weights of what is asked, in the order of the answer. Scores are divided by ``limit`` and
        ``length``, residuals by ``limit``, the excess by ``most_excess`` and slopes by the steepest
        one of the link.
    """

    length = 1.0
    fall = 0.0
    matrices = True
    most_excess: Any = None
    weights: Any
    point: Any
    limit: Any
    link: Any
    scored: Any
    score_rows: Any

    def score_lengths(self, X: Any, y: np.ndarray) -> Any:
        """Lengths of the scores of the rows of a chunk."""
        rows, factors = self.score_rows(X, y)
        return row_norms(rows) * np.abs(factors)

    @cached_property
    def parts(self) -> dict[str, int]:
        """Sizes of what is asked, in the order of the answer."""
        p = len(self.point)
        sizes = {"moment": p, "beyond": p, **dict.fromkeys(MATRICES, vech_size(p))}
        return {name: sizes.get(name, 1) for name in self.weights}

    @cached_property
    def shape(self) -> tuple[int]:
        """Number of coordinates."""
        return (sum(self.parts.values()),)

    def joined(self, sums: dict[str, float | np.ndarray]) -> np.ndarray:
        """Sums by name, of which matrices are their vech, as an answer has them."""
        return np.concatenate(
            [weight * np.asarray(sums[name]).ravel() for name, weight in self.weights.items()]
        )

    def named(
        self, values: np.ndarray, noise: float
    ) -> tuple[dict[str, np.ndarray], dict[str, float]]:
        """The meaning of the parts of an answer, and the deviations of their noise, by name."""
        limit = self.limit * self.length  # of a score
        units = {"moment": limit, "beyond": limit, "residual": limit**2, "square": self.limit**2}
        units |= {"slope": self.link.steepest, "excess": self.most_excess}
        found = {}
        scales = {}
        start = 0
        for name, size in self.parts.items():
            unit = units.get(name, 1.0) / self.weights[name]
            found[name] = unit * values[start : start + size]
            scales[name] = unit * noise
            start += size
        return found, scales


class PersonScores(OfPersons, JointScores):
    """The same where records are persons."""

    def score_rows(self, X: Any, y: np.ndarray) -> Any:
        """Rows of a chunk, and the factors that make scores of them."""
        return self.scored(X, y)[:2]

    def sum_persons(self, X: Any, y: np.ndarray, starts: np.ndarray, largest: int) -> np.ndarray:
        """Exact sums over a chunk of persons of u, uu' / sqrt(2) and what is asked beside them.

        u is the sum of the scores of a person over m L, where L is ``length``, shortened to norm 1.
        Beside it is a mean over the m places of the person. Matrices stand for their vech.
        With t = -<u, u'> the first two move by at most
        |u|^2 + |u'|^2 + 2 t + (|u|^4 + |u'|^4 - 2 t^2) / 2 squared, which increases in both norms,
        and then in t up to 1, where it is 4.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
        y : ndarray of shape (n_rows,)
        starts : ndarray of shape (n_persons + 1,)
        largest : int
            m.
        """
        rows, factors, beside = self.scored(X, y)
        u = person_sums(rows, factors, starts) / (largest * self.length)
        u /= np.maximum(row_norms(u), 1.0)[:, None]
        means = {name: value / largest for name, value in beside.items()}
        return self.joined(means | {"moment": u.sum(axis=0), "residual": vech(np.dot(u.T, u))})


@frozen_object
class ScoreLengthsQuery(OfPersons, Query):
    """Number of records in each class of lengths of scores.

    The length of a person is that of the sum of the scores of its rows, over m. A record is in one
    class: replacing it moves two counts by one, sensitivity sqrt(2).

    Parameters
    ----------
    vectors : object
        The question about these scores, with ``score_rows(X, y)`` and ``score_lengths(X, y)``.
    classes : ndarray of shape (n_classes,)
        Ends of the classes. The last one has all that is longer, too.
    """

    vectors: Any
    classes: Any = field(default_factory=lambda: SCORE_LENGTHS)
    name: str = "lengths of scores"
    sensitivity = SQRT2 * ROUNDING

    @property
    def shape(self) -> tuple[int]:
        """Number of classes."""
        return (len(self.classes),)

    @property
    def prepared(self) -> "tuple[Whitened, ScoreLengthsQuery]":
        """The maker of rows of the question about these scores, and this one of them."""
        found = self.vectors.prepared
        return found and (found[0], replace(self, vectors=found[1]))

    def sum(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Exact counts over a chunk of rows, each of which is a record."""
        return self.counts(self.vectors.score_lengths(X, y))

    def sum_persons(self, X: Any, y: np.ndarray | None, starts: Any, largest: int) -> np.ndarray:
        """Exact counts over a chunk of persons."""
        rows, factors = self.vectors.score_rows(X, y)
        u = person_sums(rows, factors, starts) / largest
        return self.counts(row_norms(u))

    def counts(self, lengths: np.ndarray) -> np.ndarray:
        """Number of these lengths in each class; infinity, of overflow, is in the last."""
        classes = np.minimum(np.searchsorted(self.classes, lengths), len(self.classes) - 1)
        return np.bincount(classes, minlength=len(self.classes)).astype(float)


def seldom_cut(session: "Session | SessionPart", query: ScoreLengthsQuery, share: float) -> float:
    """A length of persons' scores beyond which next to none is, by private counts.

    From the shortest class on, the first one is taken that has, together with all longer ones, no
    more persons than `MOST_CUT` and the noise of the counts explain. The upper end of this class is
    returned: it is longer than the lower end by a factor of sqrt(2), for the persons whom the noise
    may hide. A larger count of a longer class is not believed, since one of so many noisy sums is
    often large. If the noise hides everybody, nothing is cut.
    """
    answer = session.sum(query, share)
    longer = np.cumsum(answer.value[::-1])[::-1]
    noise = answer.noise.scale * np.sqrt(np.arange(len(longer), 0, -1))
    place = np.argmax(longer <= MOST_CUT * session.n + USUAL_QUANTILE * noise)
    return float(query.classes[place]) if place else 1.0


def person_sums(rows: np.ndarray, factors: Any, starts: np.ndarray) -> "Array":
    """Sums of rows times factors over each person, shape (n_persons, ...); none is without rows."""
    n = len(rows)
    shape = len(starts) - 1, n
    return csr_matrix((np.full(n, factors), np.arange(n), starts), shape=shape) @ rows


def dependence(of_persons: np.ndarray, of_rows: np.ndarray, places: int) -> float:
    """How large the sum uu' of persons is beside that of their rows, over all directions.

    It is between 1 / m, for rows that do not depend on each other, and 1, for rows that are alike.

    Parameters
    ----------
    of_persons, of_rows : ndarray of shape (p, p)
        Covariances of the scores of persons, with noise, and what it would be at most.
    places : int
        m.
    """
    largest = max(trace_of(of_rows), 1e-300)
    return float(np.clip(trace_of(of_persons) / largest, 1.0 / places, 1.0))
