"""Differentially private regression with confidence intervals, and private contextual bandits."""

__version__ = "0.1.0"

__all__ = ["__version__"]
