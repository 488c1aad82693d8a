"""Noise-aware estimates from released matrices and vectors: post-processing, without a price."""

from math import sqrt

import numpy as np
from scipy import linalg

# Public grid of prior variances of the coordinates of b.
PRIOR_VARIANCES = np.geomspace(1e-5, 1e3, 49)
ODDS = 3.0  # logarithm of the odds of each candidate against the next
SAMPLING = 10.0  # privacy noise over sampling, from where sampling is shrunk as a whole


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


def posterior_mean(gram, moment, spread, sampling, priors, largest=np.inf):
    """Mean of b for moment = gram b + error under b = tau L c, c ~ N(0, I), averaged by evidence.

    The error is privacy noise, and sampling where privacy noise is not small beside it: as epsilon
    grows nothing is shrunk, and b is the least-squares line of the records themselves.

    Parameters
    ----------
    gram : ndarray of shape (p, p), positive semi-definite
    moment : ndarray of shape (p,)
    spread : float
        Variance of the privacy noise of each coordinate.
    sampling : float
        The error of sampling has covariance sampling * gram.
    priors : list of ndarray of shape (p, p)
        The candidates L.
    largest : float
        Largest tau^2 that is thought possible, for an L with the trace of LL' gram that I has.
    """
    p = len(moment)
    variances = PRIOR_VARIANCES[PRIOR_VARIANCES <= max(largest, 2.0 * PRIOR_VARIANCES[0])]
    typical = max(sampling * float(np.trace(gram)) / p, 1e-300)
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0.0)
    error = spread + min(1.0, SAMPLING * spread / typical) * sampling * values
    root = vectors / np.sqrt(error)  # C^{-1/2} = diag(error^-1/2) vectors'
    response = root.T @ moment
    evidences, means = [], []
    for rank, prior in enumerate(priors):
        share = np.einsum("ij,ij->", gram @ prior, prior)
        prior = prior * sqrt(np.trace(gram) / share) if share > 0.0 else prior
        left, singular, right = linalg.svd(root.T @ gram @ prior, full_matrices=False)
        projected = left.T @ response
        total = 1.0 + variances[:, None] * singular**2
        # log N(response; 0, I + tau^2 D D'): what lies across the range of D is the same for all.
        fitted = variances[:, None] * (singular * projected) ** 2 / total
        evidences.append(0.5 * (fitted - np.log(total)).sum(axis=1) - ODDS * rank)
        weights = variances[:, None] * singular * projected / total
        means.append(weights @ right @ prior.T)
    evidence = np.concatenate(evidences)
    weights = np.exp(evidence - evidence.max())
    return (weights / weights.sum()) @ np.concatenate(means)
