"""Regressors that solve noisy normal equations of second moments."""
