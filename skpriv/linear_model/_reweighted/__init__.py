"""Re-weighted (generalised) linear regression."""
