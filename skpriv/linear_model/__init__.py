"""Private regressors with confidence intervals."""

from ._reweighted import ReweightedRegressor
from ._ssp import SSPRegressor

__all__ = ["ReweightedRegressor", "SSPRegressor"]
