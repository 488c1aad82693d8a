"""Linear contextual bandits that are private, and what they are compared with."""

from ._random import RandomPolicy

__all__ = ["RandomPolicy"]
