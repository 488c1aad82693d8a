"""Private regressors with confidence intervals."""

from ._iht import IHTRegressor
from ._improper_sgd import ImproperSGDRegressor
from ._layered import LayeredRegressor
from ._links import Link
from ._reweighted import ReweightedRegressor
from ._ssp import SSPRegressor

__all__ = [
    "IHTRegressor",
    "ImproperSGDRegressor",
    "LayeredRegressor",
    "Link",
    "ReweightedRegressor",
    "SSPRegressor",
]
