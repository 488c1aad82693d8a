"""Checks of what rounds bring; they tell shapes and kinds, and never a value."""

import numpy as np

from ..records import floats, public_shape


def checked_available(available, n_rounds, n_actions):
    if available is None:
        return None
    try:
        available = np.asarray(available)
    except Exception:  # ragged, or of objects of their own kind
        available = np.empty(0)
    if available.dtype != bool or available.shape not in ((n_rounds, n_actions), (n_actions,)):
        raise ValueError(
            f"available must be a mask, an array of bool of shape ({n_rounds}, {n_actions}) or "
            f"({n_actions},)."
        )
    if available.all():
        return None
    if not available.any(axis=-1).all():
        raise ValueError("a round has no available action.")
    return np.broadcast_to(available, (n_rounds, n_actions))


def context_shape(contexts, n_actions):
    """Shape of contexts of all actions, checked; ``n_actions`` is None if it may vary."""
    shape, wanted = public_shape(contexts), "(n_rounds, n_actions, n_features)"
    known = len(shape) == 3
    if known and n_actions is not None:
        known, wanted = shape[1] == n_actions, wanted + f" with {n_actions} actions"
    if not known or 0 in shape[1:]:
        raise ValueError(
            f"contexts of shape {shape} must have shape {wanted}; with shared=False it is "
            "(n_rounds, n_features)."
        )
    return shape


def row_shape(rows):
    """Shape of one row a round, checked."""
    shape = public_shape(rows)
    if len(shape) != 2 or not shape[1]:
        raise ValueError(
            f"rows of shape {shape} must have shape (n_rounds, n_features): the features of chosen "
            "actions, or with shared=False those of rounds. Features of each action in contexts "
            "need shared=True."
        )
    return shape


def known_actions(actions, n_actions):
    """Actions, 0 in place of those that are unknown, and which are known: private, like rewards."""
    actions = floats(actions)
    known = (actions >= 0) & (actions < n_actions) & (actions == np.floor(actions))
    return np.where(known, actions, 0).astype(np.intp), known


def check_bounds(bounds):
    bounds = np.asarray(bounds, dtype=float)
    if bounds.shape != (2,) or not np.isfinite(bounds).all() or bounds[0] >= bounds[1]:
        raise ValueError(
            f"bounds_y={bounds!r} must be two finite numbers (low, high) with low < high: the "
            "public range of the rewards, not one read off the data."
        )
