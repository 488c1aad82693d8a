"""Attacks on private estimators: replays of forced answers, and lower bounds on epsilon."""

from ._lower_bound import EpsilonBound, lower_bound
from ._replay import Pair, Replay, replay, worst_pairs

__all__ = [
    "EpsilonBound",
    "Pair",
    "Replay",
    "lower_bound",
    "replay",
    "worst_pairs",
]
