"""Environments in which policies can be simulated; what is random is drawn once a run."""

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import field
from math import sqrt
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.signal import lfilter

from .._linalg import norm_of
from .._parameters import parameters
from ..records import finite_numbers
from ._policy._draws import in_blocks

if TYPE_CHECKING:
    from .._contracts import Array

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
            A copy whose state is drawn for this run.
        """
        started = copy(self)
        started._drawn = self._draw(rng)
        return started

    @property
    def _state(self) -> Any:
        """What was drawn; of an environment that was not started, it is always the same."""
        if not hasattr(self, "_drawn"):
            self._drawn = self._draw(np.random.default_rng(0))
        return self._drawn

    @abstractmethod
    def _draw(self, rng: np.random.Generator) -> Any:
        """Draw what is random about the environment."""

    def sample(self, n_rounds: int, rng: Any) -> tuple[np.ndarray, np.ndarray]:
        """Draw contexts of some rounds, and the expected reward of each action.

        Parameters
        ----------
        n_rounds : int
            Number of rounds to draw.
        rng : numpy.random.Generator or RandomState
            Source of the randomness.

        Returns
        -------
        contexts : ndarray of shape (n_rounds, n_actions, n_features)
            Features of each action, to be read only. Rows of the data for policies with
            ``shared=False``, of shape (n_rounds, n_features), if the environment has no blocks.
        means : ndarray of shape (n_rounds, n_actions)
            Expected reward of each action.
        """
        return self._rounds(n_rounds, rng)

    def rewards(self, means: Any, actions: Any, rng: Any) -> np.ndarray:
        """Draw rewards: one number from `rng` a round, whatever the action, if they are random.

        Parameters
        ----------
        means : ndarray of shape (n_rounds, n_actions)
            Expected rewards, as `sample` returned them.
        actions : array-like of int of shape (n_rounds,)
            Actions that were played.
        rng : numpy.random.Generator or RandomState
            Source of the randomness.

        Returns
        -------
        rewards : ndarray of shape (n_rounds,)
            Reward of the action of each round: its mean, with noise if there is any.
        """
        return self._noisy(chosen(means, actions), rng)

    @abstractmethod
    def _rounds(self, n_rounds: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw contexts and mean rewards of rounds."""

    def _noisy(self, means: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw rewards of these means."""
        return means


def chosen(means: np.ndarray, actions: np.ndarray) -> "Array":
    """Means of the chosen actions."""
    return means[np.arange(len(actions)), actions]


def directions(shape: int | tuple[int, ...], rng: np.random.Generator) -> "Array":
    """Vectors that are uniform on the unit sphere."""
    vectors = rng.standard_normal(shape)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def ball_contexts(kind: str, shape: tuple[int, int, int], rng: np.random.Generator) -> "Array":
    """Independent contexts in the unit ball, or on the sphere."""
    if kind == "sphere":
        return directions(shape, rng)
    contexts = rng.standard_normal(shape)
    norms = np.linalg.norm(contexts, axis=-1, keepdims=True)
    return contexts / np.maximum(norms, np.sqrt(shape[2]))  # norm sqrt(d), clipped to 1


@parameters
class LinearEnvironment(Environment):
    """Rewards whose mean is linear in contexts of the unit ball.

    Parameters
    ----------
    n_actions : int, default=10
        Number of actions of each round.
    n_features : int, default=5
        Number of features of each action.
    contexts : {"gaussian", "sphere", "fixed"} or array of shape (n_actions, n_features), \
            default="gaussian"
        Independent in all rounds and actions (scaled Gaussian, clipped to the unit ball; or
        uniform on the sphere), or the same arms in all rounds: drawn on the sphere once a run, or
        given.
    coef : array-like of shape (n_features,), default=None
        None draws them uniformly on the unit sphere, once a run.
    noise : {"bernoulli"} or float, default="bernoulli"
        Rewards are -1 or 1 with the right mean, or Gaussian with this standard deviation.

    Attributes
    ----------
    bounds_rewards : (float, float)
        Public range of the rewards, or of almost all of them.
    coef_ : ndarray of shape (n_features,)

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.bandits import LinearEnvironment
    >>> rng = np.random.default_rng(0)
    >>> env = LinearEnvironment(n_actions=3, n_features=2).start(rng)
    >>> contexts, means = env.sample(4, rng)
    >>> contexts.shape, means.shape
    ((4, 3, 2), (4, 3))
    >>> env.rewards(means, np.zeros(4, dtype=int), rng)
    array([-1., -1., -1., -1.])
    """

    n_actions: int = 10
    n_features: int = 5
    contexts: Any = "gaussian"
    coef: Any = None
    noise: Any = "bernoulli"

    @property
    def bounds_rewards(self) -> tuple[float, float]:
        """Public range of the rewards, or of almost all of them."""
        if self.noise == "bernoulli":
            return (-1.0, 1.0)
        reach = 1.0 if self.coef is None else norm_of(self.coef)
        return (-reach - 3.0 * self.noise, reach + 3.0 * self.noise)

    @property
    def coef_(self) -> "Array":
        """Coefficients of the run."""
        return self._state[0]

    def _draw(self, rng: np.random.Generator) -> Any:
        shape = (self.n_actions, self.n_features)
        arms = None
        if not isinstance(self.contexts, str):
            arms = finite_numbers(self.contexts, "contexts", shape)
        elif self.contexts not in CONTEXTS:
            raise ValueError(f"contexts={self.contexts!r} must be an array or one of {CONTEXTS}.")
        coef = directions(self.n_features, rng) if self.coef is None else np.array(self.coef, float)
        if arms is None and self.contexts == "fixed":
            arms = directions(shape, rng)
        return coef, arms

    def _rounds(self, n_rounds: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        coef, arms = self._state
        shape = (n_rounds, self.n_actions, self.n_features)
        if arms is not None:
            return np.broadcast_to(arms, shape), np.broadcast_to(self._mean(arms @ coef), shape[:2])
        contexts = ball_contexts(self.contexts, shape, rng)
        return contexts, self._mean(contexts @ coef)

    def _mean(self, values: np.ndarray) -> np.ndarray:
        return values.clip(-1.0, 1.0) if self.noise == "bernoulli" else values

    def _noisy(self, means: np.ndarray, rng: np.random.Generator) -> "Array":
        if self.noise == "bernoulli":
            return np.where(rng.random(len(means)) < (1.0 + means) / 2.0, 1.0, -1.0)
        return means + self.noise * rng.standard_normal(len(means))


@parameters
class SparseLinearEnvironment(Environment):
    """The published experiment on high-dimensional sparse bandits.

    Contexts are Gaussian with covariance ``correlation ** |i - j|`` between features i and j,
    independent between actions and rounds; few features matter.

    Parameters
    ----------
    n_actions : int, default=3
        Number of actions of each round.
    n_features : int, default=400
        Number of features of each action.
    n_informative : int, default=5
        Number of coefficients that are not zero: those of the first features.
    correlation : float in (-1, 1), default=0.1
        Correlation of neighbouring features.
    noise : float, default=0.1
        Standard deviation of the Gaussian noise of rewards, or half the width of a uniform one.
    noise_law : {"gaussian", "uniform"}, default="gaussian"
    coef : array-like of shape (n_features,), default=None
        None draws sizes in [0.5, 1] and signs, once a run.

    Attributes
    ----------
    bounds_rewards : (float, float)
        Public; it holds almost all rewards.
    coef_ : ndarray of shape (n_features,)

    References
    ----------
    S. Chakraborty, S. Roy and D. Basu (2024). FLIPHAT: joint differential privacy for high
    dimensional sparse linear bandits. Section 6 and Appendix F.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.bandits import SparseLinearEnvironment
    >>> rng = np.random.default_rng(0)
    >>> env = SparseLinearEnvironment(n_features=20, n_informative=2).start(rng)
    >>> contexts, means = env.sample(1000, rng)
    >>> bool(np.allclose(means, contexts @ env.coef_))
    True
    """

    n_actions: int = 3
    n_features: int = 400
    n_informative: int = 5
    correlation: float = 0.1
    noise: Any = 0.1
    noise_law: str = "gaussian"
    coef: Any = None

    @property
    def bounds_rewards(self) -> tuple[float, float]:
        """Public range of almost all rewards: three times their largest standard deviation."""
        size = sqrt(self.n_informative) if self.coef is None else norm_of(self.coef)
        reach = 3.0 * sqrt((1.0 + 2.0 * abs(self.correlation)) * size**2 + self.noise**2)
        return (-reach, reach)

    @property
    def coef_(self) -> "Array":
        """Coefficients of the run."""
        return self._state

    def _draw(self, rng: np.random.Generator) -> Any:
        if not -1.0 < self.correlation < 1.0:
            raise ValueError(f"correlation={self.correlation!r} must lie in (-1, 1).")
        if self.noise_law not in ("gaussian", "uniform"):
            raise ValueError(f"noise_law={self.noise_law!r} must be 'gaussian' or 'uniform'.")
        if self.coef is not None:
            return np.array(self.coef, float)
        size = self.n_informative
        coef = np.zeros(self.n_features)
        coef[:size] = (0.5 + 0.5 * rng.random(size)) * np.where(rng.random(size) < 0.5, -1.0, 1.0)
        return coef

    def _rounds(self, n_rounds: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        contexts = rng.standard_normal((n_rounds, self.n_actions, self.n_features))
        rho = self.correlation
        if rho != 0.0:
            # x_0 = z_0 and x_j = rho x_{j-1} + sqrt(1 - rho^2) z_j: the recursion of the law.
            scale = sqrt(1.0 - rho**2)
            contexts[:, :, 0] /= scale
            contexts = lfilter([scale], [1.0, -rho], contexts, axis=-1)
        (support,) = np.nonzero(self.coef_)
        return contexts, contexts[:, :, support] @ self.coef_[support]

    def _noisy(self, means: np.ndarray, rng: np.random.Generator) -> "Array":
        if self.noise_law == "uniform":
            draws = 2.0 * rng.random(len(means)) - 1.0
        else:
            draws = rng.standard_normal(len(means))
        return means + self.noise * draws


@parameters
class SupervisedEnvironment(Environment):
    """Classification as a bandit: the actions are the classes, and the right one is rewarded.

    Rows are visited in random order, without repetition as long as there are new ones.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_rows_features)
        Rows should be scaled by public bounds.
    y : array-like of shape (n_samples,)
        Labels, which are numbers.
    blocks : bool, default=True
        Contexts of shape (n_rounds, n_actions, n_classes * n_row_features): the row in the block
        of the action. False gives the rows, for policies with ``shared=False``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_actions,)
        Labels of the actions.
    bounds_rewards : (0.0, 1.0)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from skpriv.bandits import SupervisedEnvironment
    >>> env = SupervisedEnvironment(*load_iris(return_X_y=True))
    >>> contexts, means = env.sample(2, np.random.default_rng(0))
    >>> contexts.shape, means.sum(axis=1)
    ((2, 3, 12), array([1., 1.]))
    """

    X: Any = field(kw_only=False)
    y: Any = field(kw_only=False)
    blocks: Any = True

    bounds_rewards = (0.0, 1.0)

    @property
    def classes_(self) -> "Array":
        """Labels of the actions."""
        return self._state["classes"]

    @property
    def n_actions(self) -> int:
        """Number of classes."""
        return len(self.classes_)

    @property
    def n_features(self) -> Any:
        """Number of features of the contexts."""
        return self._state["X"].shape[1] * (self.n_actions if self.blocks else 1)

    def _draw(self, rng: np.random.Generator) -> Any:
        X = finite_numbers(self.X, "X", (None, None))
        y = finite_numbers(self.y, "y", X.shape[:1])
        classes, labels = np.unique(y, return_inverse=True)
        return {"X": X, "labels": labels, "classes": classes, "order": np.array([], np.intp)}

    def _rounds(self, n_rounds: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        state = self._state
        order = state["order"]
        while len(order) < n_rounds:
            order = np.concatenate([order, rng.permutation(len(state["X"]))])
        index = order[:n_rounds]
        state["order"] = order[n_rounds:]
        rows = state["X"][index]
        means = np.eye(self.n_actions)[state["labels"][index]]
        return (in_blocks(rows, self.n_actions) if self.blocks else rows), means
