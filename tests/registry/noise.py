"""Noise as sessions add it, for tests of what is computed from noisy answers."""

import numpy as np


def goe(rng, p, *draws):
    """Symmetric matrices, shape (*draws, p, p): variance 1 on the diagonal and 1/2 elsewhere."""
    square = rng.normal(size=(*draws, p, p))
    return (square + np.swapaxes(square, -1, -2)) / 2.0
