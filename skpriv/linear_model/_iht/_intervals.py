"""Intervals of iterative hard thresholding: a certificate over all x, and one given the support."""

from math import log, sqrt

import numpy as np
from scipy import sparse, special, stats

from ..._estimation._certified._events import event
from ..._estimation._intervals import _best_on_path as best_on_path
from ..._estimation._intervals import asymptotic, split_failure

# Weights of the failure probability: of the noise of the released gradient norm and of the targets,
# for all supports at once; and of the targets under all supports and of the privacy noise.
CERTIFICATE_WEIGHTS = (0.1, 0.9)
SUPPORT_WEIGHTS = (0.1, 0.9)


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
    scale, (of_noise, of_targets) = gradient.noise.scale, CERTIFICATE_WEIGHTS
    noise, rest = split_failure(1.0 - confidence_level, of_noise if scale else 0.0, of_targets)
    noise, rest = event("noise of the gradient", noise), event("errors of the targets", rest)
    released = gradient.value[0] + (scale * stats.norm.isf(noise) if scale else 0.0)
    targets = sqrt(2.0 * log(2.0 * n_coordinates / rest) / gradient.n)
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


def log_supports(n_features, n_nonzero, sparsity):
    """Logarithm of the number of supports that contain the true one.

    Examples
    --------
    >>> from skpriv.linear_model._iht._intervals import log_supports
    >>> round(float(log_supports(10, 3, 1)), 3)  # log(9 * 8 / 2)
    3.584
    """
    n, k = n_features - sparsity, n_nonzero - sparsity
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)


def given_support(fit, points, theta_bound, supports, confidence_level):
    """Normal intervals for the last correction, for all supports that could have been chosen.

    The last step of the refit released target = design' (theta* - origin) up to noise: the interval
    of noisy normal equations for theta* - origin, moved by points @ origin. For each support that
    contains the true one, the noise of the targets is normal with the variance of that support;
    the support is chosen by the same targets, so that the quantile is for all of them at once. The
    privacy noise is fresh, and needs no such care.

    Parameters
    ----------
    fit : SupportFit
    points : ndarray of shape (n_points, p)
    theta_bound : float
    supports : float
        Logarithm of the number of supports; 0 if only the true one can have been chosen.
    confidence_level : float

    Returns
    -------
    (centre, half) : ndarrays of shape (n_points,)
    """
    bound = theta_bound + float(np.linalg.norm(fit.origin))
    shift, equations = fit.theta - fit.origin, fit.equations
    if not supports:
        centre, half = asymptotic(equations, points, shift, bound, confidence_level)
        return points @ fit.origin + centre, half
    of_choice, of_noise = SUPPORT_WEIGHTS
    of_noise = 0.0 if equations.exact else of_noise
    chosen, noisy = split_failure(1.0 - confidence_level, of_choice, of_noise)
    targets = sqrt(2.0 * (supports + log(1.0 / chosen)))  # P(|Z| > t) <= exp(-t^2 / 2)
    privacy = 0.0 if equations.exact else stats.norm.isf(noisy / 2.0)
    spread = equations.target_scale**2 + equations.design_scale**2 * (shift @ shift) / 2.0

    def half_width(V, squares, bias):
        variance = np.einsum("ij,ij->i", V @ equations.residual_gram, V)
        noise = spread * squares + (equations.design_scale * (V @ shift)) ** 2 / 2.0
        width = targets * np.sqrt(np.maximum(variance, 0.0)) + privacy * np.sqrt(noise)
        return width + bound * bias

    centre, half = best_on_path(equations, points, half_width)
    return points @ fit.origin + centre, half
