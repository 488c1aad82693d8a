"""Intervals of iterative hard thresholding: a certificate over all x, and one given the support."""

from math import log, sqrt

import numpy as np
from scipy import sparse, stats

from ._intervals import asymptotic

NOISE_PART = 0.1  # of the failure probability, for the noise of the released gradient norm


def certificate(gradient, n_coordinates, n_nonzero, sparsity, eigenvalue, confidence_level):
    """Bound on ||theta^ - theta*||_2, from the released largest coordinate of the gradient.

    With u = theta^ - theta*, M = (1/n) sum z z' and noises zeta of the targets, in an interval of
    length 2 and hence 1-sub-Gaussian, M u = gradient(theta^) + (1/n) sum z zeta. u has at most
    k = s + s* entries, so that ||u||_1 <= sqrt(k) ||u||_2 and

        eigenvalue ||u||_2^2 <= u'Mu <= sqrt(k) ||u||_2 (G + max_j |(1/n) sum z_j zeta|).

    Parameters
    ----------
    gradient : Answer
        Noisy largest coordinate of |sum z residual|.
    n_coordinates, n_nonzero, sparsity : int
        All coordinates, and those of theta^ and of theta*, the constant included.
    eigenvalue : float
        Assumed bound from below on the eigenvalues of M on any k coordinates.
    confidence_level : float

    Returns
    -------
    float
    """
    failure, scale = 1.0 - confidence_level, gradient.noise.scale
    noise = NOISE_PART * failure if scale else 0.0
    released = gradient.value[0] + (scale * stats.norm.isf(noise) if scale else 0.0)
    targets = sqrt(2.0 * log(2.0 * n_coordinates / (failure - noise)) / gradient.n)
    support = min(n_coordinates, n_nonzero + sparsity)
    return sqrt(support) * (max(0.0, released) / gradient.n + targets) / eigenvalue


def sparse_norms(Z, support, others):
    """Largest norm of each row over the support and ``others`` further coordinates."""
    if sparse.issparse(Z):
        squares = sparse.csr_matrix(Z, copy=True)
        squares.data = np.square(squares.data)
        inside = np.asarray(squares[:, support].sum(axis=1)).ravel()
        outside = np.ones(Z.shape[1])
        outside[support] = 0.0
        rows = np.repeat(np.arange(Z.shape[0]), np.diff(squares.indptr))
        values = squares.data * outside[squares.indices]
        order = np.lexsort((-values, rows))
        rank = np.arange(len(values)) - squares.indptr[rows]
        largest = np.where(rank < others, values[order], 0.0)  # rows stay where they were
        return np.sqrt(inside + np.bincount(rows, weights=largest, minlength=Z.shape[0]))
    squares = np.square(Z)
    inside = squares[:, support].sum(axis=1)
    squares[:, support] = 0.0
    if others < Z.shape[1]:
        squares = -np.partition(-squares, others - 1, axis=1)[:, :others]
    return np.sqrt(inside + squares.sum(axis=1))


def given_support(fit, points, theta_bound, confidence_level):
    """Normal intervals for the last correction, as if the support had been given.

    The last step of the refit released target = design' (theta* - origin) up to noise: the interval
    of noisy normal equations for theta* - origin, moved by points @ origin.

    Returns
    -------
    (centre, half) : ndarrays of shape (n_points,)
    """
    bound = theta_bound + float(np.linalg.norm(fit.origin))
    shift = fit.theta - fit.origin
    centre, half = asymptotic(fit.equations, points, shift, bound, confidence_level)
    return points @ fit.origin + centre, half
