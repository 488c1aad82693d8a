"""Linear contextual bandits that are private, and what they are compared with."""

from ._coba import CobaLearner
from ._combiner import BanditCombiner
from ._evaluation._display import RegretDisplay
from ._epochs._elimination import ActionElimination
from ._environments import (
    GeneralizedLinearEnvironment,
    LinearEnvironment,
    SparseLinearEnvironment,
    SupervisedEnvironment,
)
from ._epochs._epoch_greedy import FLIPHAT, EpochGreedy
from ._epochs._references import EpsilonGreedy, LassoBandit
from ._ucb._lin_square_cb import LinSquareCB
from ._ucb._lin_ucb import LinUCB
from ._mabwiser import MABWiserAdapter
from ._evaluation._off_policy import LoggedEnvironment, OffPolicyValue, off_policy_value
from ._evaluation._private_value import PrivateValue, private_off_policy_value
from ._ucb._online_lin_ucb import OnlineLinUCB
from ._service._dsjson import read_dsjson
from ._service._loop import Loop
from ._base import RandomPolicy
from ._report import EpochsReport
from ._state import load
from ._epochs._schedule import EpochSchedule
from ._evaluation._simulate import simulate
from ._epochs._square_cb import SquareCB

__all__ = [
    "FLIPHAT",
    "ActionElimination",
    "BanditCombiner",
    "CobaLearner",
    "EpochGreedy",
    "EpochSchedule",
    "EpochsReport",
    "EpsilonGreedy",
    "GeneralizedLinearEnvironment",
    "LassoBandit",
    "LinSquareCB",
    "LinUCB",
    "LinearEnvironment",
    "LoggedEnvironment",
    "Loop",
    "MABWiserAdapter",
    "OffPolicyValue",
    "OnlineLinUCB",
    "PrivateValue",
    "RandomPolicy",
    "RegretDisplay",
    "SparseLinearEnvironment",
    "SquareCB",
    "SupervisedEnvironment",
    "load",
    "off_policy_value",
    "private_off_policy_value",
    "read_dsjson",
    "simulate",
]
