"""What may be read off a fitted model, in the units of its table."""

from ._interval_display import IntervalDisplay

__all__ = ["IntervalDisplay"]
