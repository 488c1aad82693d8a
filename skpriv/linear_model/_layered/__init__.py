"""Layered private linear regression."""
