"""Privacy amplification by shuffling: what n anonymous reports guarantee together.

The functions are pure and rounded to the safe side. ``docs/mathematics/shuffle.md`` has the proofs.
"""

from ._best import amplified, amplified_epsilon
from ._clones import shuffle_delta

__all__ = [
    "amplified",
    "amplified_epsilon",
    "shuffle_delta",
]
