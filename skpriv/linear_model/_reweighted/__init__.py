"""Re-weighted regression: a learned normalisation of the rows, and two solvers that need it."""
