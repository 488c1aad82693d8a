"""Attacks on private estimators: replays of forced answers, and lower bounds on epsilon."""

from ._replay import Replay, replay

__all__ = ["Replay", "replay"]
