"""Certified intervals: of normal equations, of Newton steps, and the quantiles that they share."""
