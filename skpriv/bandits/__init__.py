"""Linear contextual bandits that are private, and what they are compared with."""

from ._coba import CobaLearner
from ._combiner import BanditCombiner
from ._display import RegretDisplay
from ._elimination import ActionElimination
from ._environments import (
    GeneralizedLinearEnvironment,
    LinearEnvironment,
    LoggedEnvironment,
    SparseLinearEnvironment,
    SupervisedEnvironment,
)
from ._epoch_greedy import EpochGreedy
from ._epsilon_greedy import EpsilonGreedy
from ._fliphat import FLIPHAT
from ._lasso_bandit import LassoBandit
from ._lin_ucb import LinUCB
from ._mabwiser import MABWiserAdapter
from ._off_policy import OffPolicyValue, off_policy_value
from ._online_lin_ucb import OnlineLinUCB
from ._random import RandomPolicy
from ._report import EpochsReport
from ._schedule import EpochSchedule
from ._simulate import simulate
from ._square_cb import SquareCB

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
    "LinUCB",
    "LinearEnvironment",
    "LoggedEnvironment",
    "MABWiserAdapter",
    "OffPolicyValue",
    "OnlineLinUCB",
    "RandomPolicy",
    "RegretDisplay",
    "SparseLinearEnvironment",
    "SquareCB",
    "SupervisedEnvironment",
    "off_policy_value",
    "simulate",
]
