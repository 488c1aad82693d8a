"""Scores of confidence intervals."""

from ._intervals import interval_coverage_score, interval_mean_width

__all__ = ["interval_coverage_score", "interval_mean_width"]
