"""Noisy iterative hard thresholding."""
