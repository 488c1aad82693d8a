"""Drawing actions, with their propensities, for many rounds at once."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm
from sklearn.base import is_classifier

from ..._linalg import blocks_of
from ..._stored import frozen, stored_in_policies
from ..._wire import equally_good
from ...linear_model import IHTRegressor, ReweightedRegressor, SSPRegressor

if TYPE_CHECKING:
    from ..._contracts import Array

# Equally likely, as the absolute value of a normal variable: its 16 mid-quantiles. Its standard
# deviation of 0.75 is a compromise: less is better for independent contexts, more for fixed arms.
HALF_NORMAL = 0.75 * norm.ppf(0.5 + (np.arange(16) + 0.5) / 32.0)
# Whose predictions are this product, clipped to the range of the rewards, where actions would tie.
CLIPPED = IHTRegressor, ReweightedRegressor, SSPRegressor
LARGEST_PREDICTION = 1e300  # prediction whose gap to another is a number


def distinct(contexts: np.ndarray, available: Any = None) -> np.ndarray:
    """Contexts, once if they are the same in all rounds, and so is what may be played.

    Those of an environment with fixed arms are one array seen many times (`numpy.broadcast_to`).
    """
    return contexts[:1] if available is None and contexts.strides[0] == 0 else contexts


def flat(contexts: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
    """Rows of all actions of all rounds, of shape (n_rounds * n_actions, n_phi), and their shape.

    Rounds that are one array seen many times are flattened once.
    """
    contexts = distinct(contexts)
    return contexts.reshape(-1, contexts.shape[2]), contexts.shape[:2]


def in_blocks(rows: np.ndarray, n_actions: int) -> np.ndarray:
    """phi(x, a) of all rows x and actions a: x in the block of a, (n_rows, n_actions, n_phi)."""
    every = np.arange(n_actions)
    blocks = np.zeros((len(rows), n_actions, n_actions, rows.shape[1]))
    blocks[:, every, every] = rows[:, None]
    return blocks.reshape(len(rows), n_actions, n_actions * rows.shape[1])


def uniform(contexts: np.ndarray, available: np.ndarray | None) -> np.ndarray:
    """Equal probabilities of all available actions, of shape (n_rounds or 1, n_actions)."""
    return shares(np.zeros((1, contexts.shape[1])), available)


def by_chance(
    chances: np.ndarray, n_rounds: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Draw from probabilities of shape (n_rounds or 1, n_actions): actions and propensities."""
    cumulated = chances.cumsum(axis=1)
    draws = rng.random_sample(n_rounds)[:, None] * cumulated[:, -1:]
    # "<=", so that an action of probability zero is never drawn, not even by a draw of 0.
    actions = np.minimum((cumulated <= draws).sum(axis=1), chances.shape[1] - 1)
    return actions, chances[np.arange(n_rounds) % len(chances), actions]


def shares(index: np.ndarray, available: np.ndarray | None = None) -> "Array":
    """Equal probabilities of the available actions of the largest index, of the same shape."""
    best = equally_good(index, True if available is None else available)
    return best / best.sum(axis=1, keepdims=True)


def predicted(oracle: Any, contexts: np.ndarray) -> "Array":
    """Predictions of shape (n_rounds or 1, n_actions)."""
    rows, shape = flat(contexts)
    if isinstance(oracle, CLIPPED) and oracle.link == "identity":
        return (rows @ oracle.coef_ + oracle.intercept_).reshape(shape)
    if is_classifier(oracle):  # of rewards that are classes: their mean
        return (oracle.predict_proba(rows) @ oracle.classes_.astype(float)).reshape(shape)
    return oracle.predict(rows).reshape(shape)


@stored_in_policies
@frozen
class Region:
    """Ellipsoid with phi'theta <= phi'centre + sqrt(phi' form phi) for all its theta.

    A form that is zero but for blocks of equal size on its diagonal may be given by these, of shape
    (n_blocks, p, p): with 30 actions of 20 features it is 30 times as large as they are.
    """

    centre: np.ndarray
    form: np.ndarray

    @property
    def blocks(self) -> np.ndarray:
        """Blocks of the form, of shape (n_blocks, p, p)."""
        return self.form.reshape(-1, *self.form.shape[-2:])

    def bounds(self, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and width of every row of phi, of shape (n, p): phi'centre, sqrt(phi' form phi)."""
        parts = phi.reshape(len(phi), len(self.blocks), -1).swapaxes(0, 1)
        squares = np.einsum("bij,bij->i", parts @ self.blocks, parts)
        return phi @ self.centre, np.sqrt(np.maximum(squares, 0.0))


def optimistic(
    region: Region,
    contexts: np.ndarray,
    available: Any,
    bonuses: Any,
    features: Callable[..., Any] = np.asarray,
    rule: Callable[..., Any] = shares,
) -> np.ndarray:
    """Probabilities by mean rewards with a bonus in proportion to their widths.

    The largest of them is played, and actions that are equally good share the plays, unless there
    is another rule.

    Parameters
    ----------
    region : Region
        Centre and widths of the weights, of any kind.
    contexts : ndarray of shape (n_rounds, n_actions, n_phi)
    available : ndarray of bool of shape (n_rounds, n_actions) or None
    bonuses : sequence of float
        Equally likely factors of the width.
    features : callable, default=np.asarray
        Puts rows into the coordinates of the weights.
    rule : callable, default=shares
        Probabilities by an index, and by what is available, along axis 1.
    """
    rows, shape = flat(contexts)
    bounds = np.reshape(region.bounds(features(rows)), (2, *shape))
    mask = np.ones(shape, bool) if available is None else available
    chances = np.zeros(mask.shape)
    means, widths = bounds + chances  # for each round of the mask
    for part in blocks_of(len(mask), shape[1] * len(bonuses)):
        index = means[part, :, None] + widths[part, :, None] * bonuses
        chances[part] = rule(index, mask[part, :, None]).sum(axis=2) / len(bonuses)
    return chances


def inverse_gap(
    predictions: np.ndarray, weight: float, available: np.ndarray | None = None
) -> "Array":
    """Probabilities of the actions, which are along axis 1, of inverse-gap weighting.

    An action at a gap g below the best of K available ones has probability 1 / (K + weight g), and
    those that are equally good share the rest.
    """
    mask = True if available is None else available
    predictions, mask = np.broadcast_arrays(predictions, mask)
    # For huge contexts they may be no numbers, and their gaps none.
    predictions = np.nan_to_num(predictions).clip(-LARGEST_PREDICTION, LARGEST_PREDICTION)
    best = shares(predictions, mask)
    top = np.where(mask, predictions, -np.inf).max(axis=1, keepdims=True)
    worse = 1.0 / (mask.sum(axis=1, keepdims=True) + weight * np.maximum(top - predictions, 0.0))
    chances = np.where(mask & (best == 0.0), worse, 0.0)
    return chances + best * (1.0 - chances.sum(axis=1, keepdims=True))
