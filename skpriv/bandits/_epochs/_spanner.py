"""Approximate barycentric spanners of many small sets of vectors at once."""

import numpy as np

from ..._linalg import ROUNDED


def spanner(vectors, mask, approximation=2.0):
    """Mark a few vectors of each round whose combinations with small coefficients are the rest.

    Parameters
    ----------
    vectors : ndarray of shape (n_rounds, n_vectors, n_features)
    mask : ndarray of bool, shape (n_rounds, n_vectors)
        Vectors that count, in each round.
    approximation : float, default=2.0
        C > 1.

    Returns
    -------
    ndarray of bool, shape (n_rounds, n_vectors)
        A mask of at most ``n_features`` a round, linearly independent. Every vector of the mask is
        a combination of them with coefficients in [-C, C] (up to 1e-9 of the longest one, for
        coordinates of directions in which the set is that thin).

    Notes
    -----
    Awerbuch and Kleinberg (2008), Section 2.3: start from the unit vectors and exchange one for a
    vector of the set, first to fill the basis (here with full pivoting), then as long as that
    multiplies the determinant by more than C. The ratio of determinants is the coordinate of the
    new vector in the present basis, so coordinates alone are kept, and updated as in Gauss-Jordan
    elimination. Unit vectors that are left at the end have no part in any vector of the set.
    """
    n, n_vectors, d = vectors.shape
    chosen = np.zeros((n, n_vectors), dtype=bool)
    if n == 0:
        return chosen
    counted = np.where(mask[:, :, None], vectors, 0.0)
    longest = np.sqrt(np.einsum("nkd,nkd->nk", counted, counted).max(axis=1))
    scale = np.where(longest > 0.0, longest, 1.0)
    # coordinates: (n, d, k), of vector k in the basis of its round
    coordinates = np.swapaxes(counted / scale[:, None, None], 1, 2).copy()
    basis = np.full((n, d), -1)
    rounds = np.arange(n)  # the rounds that are not finished
    for _ in range(d):  # fill
        free = np.abs(coordinates[rounds]) * (basis[rounds] < 0)[:, :, None]
        rounds, slot, vector = _largest(free, rounds, ROUNDED)
        _exchange(coordinates, basis, rounds, slot, vector)
    rounds = np.arange(n)
    # Far more swaps than the determinant can grow
    for _ in range(200 * d):  # improve
        filled = np.abs(coordinates[rounds]) * (basis[rounds] >= 0)[:, :, None]
        rounds, slot, vector = _largest(filled, rounds, approximation)
        if not len(rounds):
            break
        _exchange(coordinates, basis, rounds, slot, vector)
    index, slot = np.nonzero(basis >= 0)
    chosen[index, basis[index, slot]] = True
    return chosen


def _largest(values, rounds, threshold):
    """Rounds whose largest coordinate exceeds the threshold, and where it is."""
    shape = values.shape[1:]
    flat = values.reshape(len(values), shape[0] * shape[1])
    place = np.argmax(flat, axis=1)
    above = flat[np.arange(len(flat)), place] > threshold
    slot, vector = np.unravel_index(place[above], shape)
    return rounds[above], slot, vector


def _exchange(coordinates, basis, rounds, slot, vector):
    """Put a vector into a slot of the basis, and change the coordinates accordingly."""
    index = np.arange(len(rounds))
    old = coordinates[rounds]  # (m, d, k)
    column = old[index, :, vector]  # (m, d)
    row = old[index, slot] / column[index, slot][:, None]  # (m, k)
    column[index, slot] -= 1.0
    coordinates[rounds] = old - column[:, :, None] * row[:, None, :]
    basis[rounds, slot] = vector
