"""Linear regression by whitened, clipped Newton steps."""
