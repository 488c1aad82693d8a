"""What environments share: coefficients that are drawn once a run."""

from typing import Any, Self
from abc import ABC, abstractmethod
from copy import copy

import numpy as np

CONTEXTS = ("gaussian", "sphere", "fixed")


class Environment(ABC):
    """Base class of the environments; not for direct use.

    `start` gives the environment of one run, in which what is random about it has been drawn.

    Attributes
    ----------
    n_actions, n_features : int
        Shape of the contexts of a round.
    bounds_rewards : (float, float)
        Public range of the rewards, or of almost all of them.
    """

    @property
    @abstractmethod
    def bounds_rewards(self) -> tuple[float, float]:
        """Public range of the rewards, or of almost all of them."""

    def start(self, rng: Any) -> Self:
        """Return the environment of one run.

        Parameters
        ----------
        rng : numpy.random.Generator or RandomState
            What the parameters leave to chance is drawn from it.

        Returns
        -------
        Environment
        """
        started = copy(self)
        started._drawn = self._draw(rng)
        return started

    @property
    def _state(self):
        """What was drawn; of an environment that was not started, it is always the same."""
        if not hasattr(self, "_drawn"):
            self._drawn = self._draw(np.random.default_rng(0))
        return self._drawn

    @abstractmethod
    def _draw(self, rng):
        """Draw what is random about the environment."""

    @abstractmethod
    def sample(self, n_rounds: int, rng: Any) -> tuple[np.ndarray, np.ndarray]:
        """Draw rounds.

        Parameters
        ----------
        n_rounds : int
        rng : numpy.random.Generator or RandomState

        Returns
        -------
        (contexts, means)
            ndarrays of shape (n_rounds, n_actions, n_features), to be read only, and (n_rounds,
            n_actions): mean rewards.
        """

    @abstractmethod
    def rewards(self, means: Any, actions: Any, rng: Any) -> np.ndarray:
        """Draw rewards: one number from `rng` a round, whatever the action.

        Parameters
        ----------
        means : ndarray of shape (n_rounds, n_actions)
        actions : ndarray of shape (n_rounds,)
        rng : numpy.random.Generator or RandomState

        Returns
        -------
        ndarray of shape (n_rounds,)
        """


def chosen(means, actions):
    """Means of the chosen actions."""
    return means[np.arange(len(actions)), actions]


def directions(shape, rng):
    """Vectors that are uniform on the unit sphere."""
    vectors = rng.standard_normal(shape)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def ball_contexts(kind, fixed, shape, rng):
    """Contexts in the unit ball: the same arms in all rounds, or independent ones."""
    if fixed is not None:
        return np.broadcast_to(fixed, shape)
    contexts = rng.standard_normal(shape)
    norms = np.linalg.norm(contexts, axis=-1, keepdims=True)
    if kind == "sphere":
        return contexts / norms
    contexts /= np.maximum(norms, np.sqrt(shape[2]))  # norm sqrt(d), clipped to 1
    return contexts


def check_contexts(kind, n_actions, n_features):
    """Fixed arms (n_actions, n_features) of an array, None for a known kind."""
    if isinstance(kind, str):
        if kind not in CONTEXTS:
            raise ValueError(f"contexts={kind!r} must be an array or one of {CONTEXTS}.")
        return None
    arms = np.asarray(kind, dtype=float)
    if arms.shape != (n_actions, n_features):
        raise ValueError(
            f"contexts of shape {arms.shape} must have shape ({n_actions}, {n_features})."
        )
    return arms
