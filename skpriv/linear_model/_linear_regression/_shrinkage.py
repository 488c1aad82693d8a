"""Noise-aware estimates from released matrices and vectors: post-processing, without a price."""

from math import sqrt

import numpy as np

# Public grid of prior variances of the coordinates of b.
PRIOR_VARIANCES = np.geomspace(1e-5, 1e3, 49)


def shrunk_gram(gram, scale):
    """James-Stein estimate of a symmetric matrix, towards the multiple of I of the same trace.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        A matrix of nonnegative eigenvalues plus GOE(scale).
    scale : float

    Returns
    -------
    (matrix, weight)
        The weight in [0, 1] is that of the released matrix.
    """
    p = len(gram)
    level = max(np.trace(gram) / p, scale / sqrt(p))
    away = gram - level * np.eye(p)
    noise = scale**2 * (p * (p + 1) / 2.0 - 1.0)
    weight = 1.0 - noise / max(float((away**2).sum()), 1e-300) if scale else 1.0
    weight = max(0.0, weight)
    return weight * away + level * np.eye(p), weight


def posterior_mean(gram, moment, spread, largest=np.inf):
    """Mean of b for moment = gram b + N(0, spread I), b ~ N(0, tau^2 I), tau averaged by evidence.

    b is the least-squares line of the records themselves: sampling is not part of the error, so
    that nothing is shrunk where there is no privacy noise.

    Parameters
    ----------
    gram : ndarray of shape (p, p), positive semi-definite
    moment : ndarray of shape (p,)
    spread : float
        Variance of the privacy noise of each coordinate.
    largest : float
        Largest tau^2 that is thought possible.
    """
    variances = PRIOR_VARIANCES[PRIOR_VARIANCES <= max(largest, 2.0 * PRIOR_VARIANCES[0])]
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0.0)
    rotated = vectors.T @ moment
    total = variances[:, None] * values**2 + spread
    evidence = -0.5 * (np.log(total) + rotated**2 / total).sum(axis=1)
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    factors = (weights[:, None] * (variances[:, None] * values / total)).sum(axis=0)
    return vectors @ (factors * rotated)
