"""Environments in which policies can be simulated."""

from ._linear import GeneralizedLinearEnvironment, LinearEnvironment
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
