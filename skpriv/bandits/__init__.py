"""Linear contextual bandits that are private, and what they are compared with."""

from ._coba import CobaLearner
from ._combiner import BanditCombiner
from ._simulate import RegretDisplay, simulate
from ._environments import LinearEnvironment, SparseLinearEnvironment, SupervisedEnvironment
from ._epochs._fliphat import FLIPHAT, EpsilonGreedy, LassoBandit
from ._epochs._rules import ActionElimination, EpochGreedy, SquareCB
from ._ucb._lin_ucb import LinSquareCB, LinUCB
from ._mabwiser import MABWiserAdapter
from ._off_policy import PrivateValue, private_off_policy_value
from ._ucb._online_lin_ucb import OnlineLinUCB
from ._service._loop import Loop
from ._policy._random import RandomPolicy
from ._policy._report import EpochsReport
from ._policy._state import load
from ._epochs._policy import EpochSchedule

__all__ = [
    "FLIPHAT",
    "ActionElimination",
    "BanditCombiner",
    "CobaLearner",
    "EpochGreedy",
    "EpochSchedule",
    "EpochsReport",
    "EpsilonGreedy",
    "LassoBandit",
    "LinSquareCB",
    "LinUCB",
    "LinearEnvironment",
    "Loop",
    "MABWiserAdapter",
    "OnlineLinUCB",
    "PrivateValue",
    "RandomPolicy",
    "RegretDisplay",
    "SparseLinearEnvironment",
    "SquareCB",
    "SupervisedEnvironment",
    "load",
    "private_off_policy_value",
    "simulate",
]
