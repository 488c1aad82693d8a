"""Monotone curves from a released fit: post-processing, without a price."""

import numpy as np
from scipy import optimize

TIE = 1e-6  # of the largest curvature: decides what the released answers leave open


def monotone_heights(heights, metric, terms, blocks, directions):
    """Nearest heights of the hats whose curves rise (1) or fall (-1) where they have to.

    The distance is that of the released mean square of the function. Heights of a curve are a first
    height and the steps from knot to knot, whose signs are bounds of a least-squares problem. A
    product of two features has to rise along the feature at every knot of the other.

    Parameters
    ----------
    heights : ndarray of shape (n_hats,)
    metric : ndarray of shape (n_hats, n_hats)
        Positive semi-definite.
    terms : tuple of Term
    blocks : list of slice
    directions : dict of int to {-1, 1}
        By column.

    Returns
    -------
    ndarray of shape (n_hats,)
    """
    n_hats = len(heights)
    back, low, high = np.eye(n_hats), np.full(n_hats, -np.inf), np.full(n_hats, np.inf)
    for term, block in zip(terms, blocks, strict=True):
        signs = [directions.get(feature, 0) for feature in term.features]
        sizes = [len(knots) for knots in term.knots]
        if not any(signs):
            continue
        summed = [
            np.tril(np.ones((size, size))) if sign else np.eye(size)
            for size, sign in zip(sizes, signs, strict=True)
        ]
        if all(signs) and len(signs) == 2:  # both: steps along one of them cannot be separated
            raise ValueError("A pair may have one monotone feature, not two.")
        back[block, block] = summed[0] if len(sizes) == 1 else np.kron(*summed)
        place = np.indices(sizes).reshape(len(sizes), -1)
        for axis, sign in enumerate(signs):
            if sign:
                steps = np.flatnonzero(place[axis] > 0) + block.start
                (low if sign > 0 else high)[steps] = 0.0
    values, vectors = np.linalg.eigh(metric)
    values = np.maximum(values, TIE * max(float(values[-1]), 1e-300))
    root = np.sqrt(values)[:, None] * vectors.T
    found = optimize.lsq_linear(root @ back, root @ heights, bounds=(low, high), method="bvls")
    return back @ np.clip(found.x, low, high)
