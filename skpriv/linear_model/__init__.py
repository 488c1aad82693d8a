"""Private regressors with confidence intervals."""

from ._iht import IHTRegressor
from ._reweighted import ReweightedRegressor
from ._ssp import SSPRegressor

__all__ = ["IHTRegressor", "ReweightedRegressor", "SSPRegressor"]
