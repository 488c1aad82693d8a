"""Peers as in the literature, recalibrated to one guarantee: replace one record, exact Gaussian DP.

Where a mechanism is not Gaussian (TukeyEM), (epsilon, delta) are those of the others.
"""

from ._binned import BinnedAggregation
from ._descent import SETTINGS, NoisyGradientDescent, OracleDescent
from ._ebm import dp_ebm
from ._iht import NoisyIHT
from ._moments import AdaSSP, InputPerturbation
from ._tukey import TukeyEM

__all__ = [
    "SETTINGS", "AdaSSP", "BinnedAggregation", "InputPerturbation", "NoisyGradientDescent",
    "NoisyIHT", "OracleDescent", "TukeyEM", "dp_ebm",
]  # fmt: skip
