"""Environments in which policies can be simulated."""

from ._generalized import GeneralizedLinearEnvironment
from ._linear import LinearEnvironment
from ._logged import LoggedEnvironment
from ._sparse import SparseLinearEnvironment
from ._supervised import SupervisedEnvironment

__all__ = [
    "GeneralizedLinearEnvironment",
    "LinearEnvironment",
    "LoggedEnvironment",
    "SparseLinearEnvironment",
    "SupervisedEnvironment",
]
