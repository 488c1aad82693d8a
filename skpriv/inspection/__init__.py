"""What may be read off a fitted model, in the units of its table."""

from ._card import coefficient_table, coefficients, model_card
from ._interval_display import IntervalDisplay

__all__ = ["IntervalDisplay", "coefficient_table", "coefficients", "model_card"]
