"""Generalised linear models: Poisson and logistic regression, of two classes or more."""
