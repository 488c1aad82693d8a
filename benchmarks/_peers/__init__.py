"""Peers as in the literature, recalibrated to one guarantee: replace one record, exact Gaussian DP.

Where a mechanism is not Gaussian (TukeyEM), (epsilon, delta) are those of the others.
"""

from ._binned import BinnedAggregation
from ._classifiers import NoisyDescentClassifier, ObjectivePerturbation
from ._descent import SETTINGS, NoisyGradientDescent, OracleDescent
from ._ebm import dp_ebm, dp_ebm_classifier
from ._iht import NoisyIHT
from ._mixing import IterativeHessianMixing
from ._moments import AdaSSP, InputPerturbation
from ._tukey import TukeyEM

__all__ = [
    "SETTINGS", "AdaSSP", "BinnedAggregation", "InputPerturbation", "IterativeHessianMixing",
    "NoisyDescentClassifier", "NoisyGradientDescent", "NoisyIHT", "ObjectivePerturbation",
    "OracleDescent", "TukeyEM", "dp_ebm", "dp_ebm_classifier",
]  # fmt: skip
