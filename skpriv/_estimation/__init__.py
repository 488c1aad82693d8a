"""Noisy normal equations: what regressors and bandits share."""
