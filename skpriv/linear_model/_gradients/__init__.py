"""Regression by noisy gradients in many features: improper batched SGD, and N-IHT."""
