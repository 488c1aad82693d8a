"""Releases of logistic and Poisson regression without privacy: the others are the loop's."""

from skpriv._equations._loop._links import Logit
from skpriv._equations._public_maps import RowMap
from skpriv.linear_model._generalized._classes import ClassTarget
from skpriv.linear_model._generalized._exact import MaximumLikelihood

from .case import Case

CLASSES = ClassTarget((0.0, 1.0))

CASES = {
    # Runs without privacy only.
    MaximumLikelihood: Case(
        lambda rng: MaximumLikelihood(RowMap(None, None, 1.0, False, 2), CLASSES, Logit()), ()
    ),
}
