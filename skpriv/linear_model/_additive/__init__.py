"""Additive models: sums of curves on public knots."""
