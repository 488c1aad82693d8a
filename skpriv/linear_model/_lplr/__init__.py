"""LPLR, layered private linear regression."""
