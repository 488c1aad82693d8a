"""Coefficients, curves and pages of a fitted model, in the units of its table."""

from ._coefficient_display import CoefficientDisplay
from ._curve_display import CurveDisplay, curves
from ._description import Description, describe, private_quantiles, propose_max_rows
from ._inference import Inference, WaldTest, inference
from ._interval_display import IntervalDisplay, confidence_interval, prediction_interval
from ._page import (
    coefficient_table, model_card, picture as picture, release_page, schema_of as schema_of,
)  # fmt: skip

__all__ = [
    "CoefficientDisplay",
    "CurveDisplay",
    "Description",
    "Inference",
    "IntervalDisplay",
    "WaldTest",
    "coefficient_table",
    "confidence_interval",
    "curves",
    "describe",
    "inference",
    "model_card",
    "prediction_interval",
    "private_quantiles",
    "propose_max_rows",
    "release_page",
]
