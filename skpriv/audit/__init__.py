"""Attacks on private estimators: replays of forced answers, and lower bounds on epsilon."""

from ._lower_bound import EpsilonBound, lower_bound
from ._one_run import OneRunBound, audit_one_run, one_run_bound
from ._pairs import Pair, worst_pairs
from ._replay import Replay, replay

__all__ = [
    "EpsilonBound",
    "OneRunBound",
    "Pair",
    "Replay",
    "audit_one_run",
    "lower_bound",
    "one_run_bound",
    "replay",
    "worst_pairs",
]
