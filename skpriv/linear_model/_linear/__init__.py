"""Linear regression by the loop of whitened, clipped steps."""
