"""Scores of confidence intervals."""

from ._interval_coverage import interval_coverage_score
from ._interval_width import interval_mean_width

__all__ = ["interval_coverage_score", "interval_mean_width"]
