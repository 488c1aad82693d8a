"""Private regressors with confidence intervals."""

from ._additive._regressor import AdditiveRegressor
from ._generalized._logistic import LogisticRegression
from ._generalized._poisson import PoissonRegressor
from ._iht._regressor import IHTRegressor
from ._improper_sgd._regressor import ImproperSGDRegressor
from ._layered._regressor import LayeredRegressor
from ._linear_regression._regressor import LinearRegression
from ._panel._regressor import IVRegressor
from ._reweighted._links import Link
from ._reweighted._regressor import ReweightedRegressor
from ._moments._ssp import SSPRegressor

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
