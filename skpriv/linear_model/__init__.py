"""Private regressors with confidence intervals.

The algorithms of papers are found by their names: LPLR is `LayeredRegressor` (``_lplr/``),
re-weighted regression `ReweightedRegressor` (``_reweighted/``), improper batched SGD
`ImproperSGDRegressor` and N-IHT `IHTRegressor` (``_gradients/``). The project's own
`LinearRegression`, generalised linear models (``_generalized/``) and `AdditiveRegressor` are fitted
by the same steps (``_by_steps.py``, and ``_estimation/_loop/``), `IVRegressor` by instruments, and
`SSPRegressor` from moments (``_moments.py``).
"""

from .._estimation._links import Link
from ._additive import AdditiveRegressor
from ._generalized._logistic import LogisticRegression
from ._generalized._poisson import PoissonRegressor
from ._gradients._niht import IHTRegressor
from ._gradients._improper_sgd import ImproperSGDRegressor
from ._lplr._regressor import LayeredRegressor
from ._linear import LinearRegression
from ._instruments import IVRegressor
from ._reweighted._regressor import ReweightedRegressor
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
