"""Public lengths of the epochs of a policy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any


@dataclass(frozen=True)
class EpochSchedule:
    """Epoch j = 0, 1, ... has about ``first * ratio**j`` rounds, whatever happens in them.

    Parameters
    ----------
    first : int, default=64
        Length of the first epoch, in which nothing is known yet. It must be long enough for the
        oracle, which may refuse to be fitted to very few records.
    ratio : float, default=2.0
        A number of at least 1; 1 gives epochs of equal length.

    Notes
    -----
    Wherever a policy has a parameter ``schedule``, there may be: ``"doubling"``
    (``EpochSchedule()``), ``"geometric"`` (``ratio=1.5``), ``"fixed"`` (``first=1000, ratio=1``),
    an EpochSchedule, an int (epochs of this length), a sequence of ints (the last is repeated) or
    a callable of j. Lengths are public, and must not be chosen by looking at the data: then the
    rounds of an epoch are a publicly indexed set of records, and epochs compose in parallel.

    Examples
    --------
    >>> from skpriv.bandits import EpochSchedule
    >>> schedule = EpochSchedule(first=100, ratio=1.5)
    >>> [schedule(j) for j in range(4)]
    [100, 150, 225, 338]
    """

    first: int = 64
    ratio: float = 2.0

    def __call__(self, epoch: int) -> int:
        """Return the number of rounds of an epoch."""
        _check_length(self.first)
        if not self.ratio >= 1.0:
            raise ValueError(f"ratio={self.ratio!r} must be at least 1.")
        return round(min(self.first * self.ratio**epoch, 2.0**62))


NAMED = {
    "doubling": EpochSchedule(),
    "geometric": EpochSchedule(ratio=1.5),
    "fixed": EpochSchedule(first=1000, ratio=1.0),
}

REFITS = EpochSchedule(first=50, ratio=1.25)  # of policies that fit all past rounds again


def epoch_length(schedule: Any, epoch: int) -> int:
    """Length of an epoch under anything that a parameter ``schedule`` may be."""
    if isinstance(schedule, str):
        if schedule not in NAMED:
            raise ValueError(f"schedule={schedule!r} must be one of {sorted(NAMED)}.")
        return NAMED[schedule](epoch)
    if isinstance(schedule, Integral):
        length: Any = schedule
    elif isinstance(schedule, Callable):  # type: ignore[arg-type]
        length = schedule(epoch)
    elif isinstance(schedule, Sequence) or hasattr(schedule, "__array__"):
        if not len(schedule):
            raise ValueError("schedule is an empty sequence: it must have at least one length.")
        length = schedule[min(epoch, len(schedule) - 1)]
    else:
        raise ValueError(
            f"schedule={schedule!r} must be a name, an int, a sequence of ints, an EpochSchedule "
            "or another callable of the index of the epoch."
        )
    return _check_length(length)


def _check_length(length: Any) -> int:
    if isinstance(length, bool) or not isinstance(length, Integral) or length < 1:
        raise ValueError(f"the length of an epoch is {length!r}, but must be an int of at least 1.")
    return int(length)
