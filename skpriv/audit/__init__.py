"""Attacks on private estimators: replays of forced answers, and lower bounds on epsilon."""

from ._lower_bound import EpsilonBound, lower_bound
from ._pairs import Pair, worst_pairs
from ._replay import Replay, replay

__all__ = [
    "EpsilonBound",
    "Pair",
    "Replay",
    "lower_bound",
    "replay",
    "worst_pairs",
]
