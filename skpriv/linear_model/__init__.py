"""Private regressors with confidence intervals."""

from .._estimation._links import Link
from ._additive import AdditiveRegressor
from ._generalized import LogisticRegression, PoissonRegressor
from ._iht import IHTRegressor
from ._improper import ImproperSGDRegressor
from ._layered._regressor import LayeredRegressor
from ._linear import LinearRegression
from ._instruments import IVRegressor
from ._reweighted import ReweightedRegressor
from ._moments import SSPRegressor

__all__ = [
    "AdditiveRegressor",
    "IHTRegressor",
    "IVRegressor",
    "ImproperSGDRegressor",
    "LayeredRegressor",
    "LinearRegression",
    "Link",
    "LogisticRegression",
    "PoissonRegressor",
    "ReweightedRegressor",
    "SSPRegressor",
]
