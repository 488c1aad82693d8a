"""Coefficients, curves and pages of a fitted model, in the units of its table."""

from ._coefficient_display import CoefficientDisplay
from ._comparison import ModelComparison, compare_models
from ._curve_display import CurveDisplay, curves
from ._description import Description, describe
from ._distribution import private_quantiles, propose_max_rows
from ._inference import Inference, WaldTest, inference
from ._interval_display import IntervalDisplay, confidence_interval, prediction_interval
from ._page import (
    coefficient_table, model_card, picture as picture, release_page, schema_of as schema_of,
)  # fmt: skip
from ._typical import TypicalPredictions, marginal_effects, typical_predictions

__all__ = [
    "CoefficientDisplay",
    "CurveDisplay",
    "Description",
    "Inference",
    "IntervalDisplay",
    "ModelComparison",
    "TypicalPredictions",
    "WaldTest",
    "coefficient_table",
    "compare_models",
    "confidence_interval",
    "curves",
    "describe",
    "inference",
    "marginal_effects",
    "model_card",
    "prediction_interval",
    "private_quantiles",
    "propose_max_rows",
    "release_page",
    "typical_predictions",
]
