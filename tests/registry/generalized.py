"""Releases of logistic and Poisson regression that are not the loop's: without privacy, classes."""

import numpy as np

from skpriv._estimation._links import Logit
from skpriv._estimation._loop._rows import Whitened
from skpriv._estimation._public_maps import RecordMap, RowMap
from skpriv.linear_model._generalized._labels import ClassTarget
from skpriv._estimation._loop._exact import MaximumLikelihood
from skpriv.linear_model._generalized._classes import (
    ClassRatesQuery,
    ClassScoreQuery,
    PersonClassScoreQuery,
    Softmax,
    contrasts,
)

from .case import Case
from .linear import E1, E2, one
from .newton import _maps
from .persons import PLACES, alike, ask_persons

CLASSES, THREE = ClassTarget((0.0, 1.0)), ClassTarget((0.0, 1.0, 2.0))
PLAIN = RowMap(None, None, 1.0, False, 2)
NEAR = 0.005 * E2  # of a row, along which the last of three classes has all the odds
SURE = np.outer(contrasts(3)[2], 1e5 * E2).ravel()


def _scores(kind, rng, **settings):
    whitened, _ = _maps(rng)
    if kind is not ClassScoreQuery:  # persons have rows of two features
        rows = RowMap(np.full(2, -1.0), np.full(2, 1.0), None, bool(rng.randint(2)), 2)
        whitened = Whitened(rows, np.diag(10.0 ** rng.uniform(-2, 2, rows.size)))
    target = [CLASSES, THREE][rng.randint(2)]
    count = len(target.values)
    point = rng.normal(size=(count - 1) * len(whitened.W)) * 10.0 ** rng.uniform(-3.0, 3.0)
    link = Softmax(n_classes=count)
    return kind(whitened, target, rng.normal(size=count), point, link, **settings)


def _sure(kind):
    """Both deny the class that they have, at opposite rows: slopes are 0, and scores opposite."""
    return kind(Whitened(PLAIN, np.eye(2)), THREE, np.zeros(3), SURE, Softmax(n_classes=3))


CASES = {
    # Runs without privacy only.
    MaximumLikelihood: Case(lambda rng: MaximumLikelihood(RecordMap(PLAIN, CLASSES), Logit()), ()),
    ClassRatesQuery: Case(
        lambda rng: ClassRatesQuery(_maps(rng)[0].row_map, THREE, 3),
        (lambda: (ClassRatesQuery(PLAIN, THREE, 3), one(E1, 0.0), one(E1, 2.0)),),
    ),
    ClassScoreQuery: Case(
        lambda rng: _scores(ClassScoreQuery, rng),
        (lambda: (_sure(ClassScoreQuery), one(E1 + NEAR, 0.0), one(-E1 + NEAR, 0.0)),),
    ),
    PersonClassScoreQuery: Case(
        lambda rng: _scores(PersonClassScoreQuery, rng, length=rng.choice([0.05, 0.5, 1.0])),
        (
            lambda: (
                _sure(PersonClassScoreQuery), alike(*E1 + NEAR, 0.0), alike(*-E1 + NEAR, 0.0),
            ),
        ),
        width=3 * PLACES, ask=ask_persons, reached=0.9,
        reason="opposite scores have the same slopes: the bound adds the largest change of each",
    ),
}  # fmt: skip
