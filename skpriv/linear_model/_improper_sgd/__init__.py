"""Improper batched stochastic gradient descent."""
