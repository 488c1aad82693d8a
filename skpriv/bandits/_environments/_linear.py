"""Linear mean rewards."""

from typing import Any
import numpy as np
from scipy.special import expit

from ._base import Environment, ball_contexts, check_contexts, chosen, directions


class LinearEnvironment(Environment):
    """Rewards whose mean is linear in contexts of the unit ball.

    Parameters
    ----------
    n_actions : int, default=10
    n_features : int, default=5
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

    def __init__(
        self,
        *,
        n_actions: int = 10,
        n_features: int = 5,
        contexts: Any = "gaussian",
        coef: Any = None,
        noise: Any = "bernoulli",
    ) -> None:
        self.n_actions = n_actions
        self.n_features = n_features
        self.contexts = contexts
        self.coef = coef
        self.noise = noise

    @property
    def bounds_rewards(self) -> tuple[float, float]:
        """Public range of the rewards, or of almost all of them."""
        if self.noise == "bernoulli":
            return (-1.0, 1.0)
        reach = 1.0 if self.coef is None else float(np.linalg.norm(self.coef))
        return (-reach - 3.0 * self.noise, reach + 3.0 * self.noise)

    @property
    def coef_(self) -> np.ndarray:
        """Coefficients of the run."""
        return self._state[0]

    def _draw(self, rng):
        arms = check_contexts(self.contexts, self.n_actions, self.n_features)
        coef = directions(self.n_features, rng) if self.coef is None else np.array(self.coef, float)
        if arms is None and self.contexts == "fixed":
            arms = directions((self.n_actions, self.n_features), rng)
        return coef, arms

    def sample(self, n_rounds: int, rng: Any) -> tuple[np.ndarray, np.ndarray]:
        """Draw rounds: contexts (n_rounds, n_actions, n_features) and means."""
        coef, arms = self._state
        shape = (n_rounds, self.n_actions, self.n_features)
        contexts = ball_contexts(self.contexts, arms, shape, rng)
        if arms is not None:
            return contexts, np.broadcast_to(self._mean(arms @ coef), shape[:2])
        return contexts, self._mean(contexts @ coef)

    def _mean(self, values):
        return np.clip(values, -1.0, 1.0) if self.noise == "bernoulli" else values

    def rewards(self, means: Any, actions: Any, rng: Any) -> np.ndarray:
        """Draw rewards: one number from `rng` a round, whatever the action."""
        means = chosen(means, actions)
        if self.noise == "bernoulli":
            return np.where(rng.random(len(actions)) < (1.0 + means) / 2.0, 1.0, -1.0)
        return means + self.noise * rng.standard_normal(len(actions))


LINKS = {"logit": expit, "tanh": np.tanh}


class GeneralizedLinearEnvironment(LinearEnvironment):
    """Binary rewards whose mean is a link function of a linear predictor.

    Parameters
    ----------
    n_actions : int, default=10
    n_features : int, default=5
    contexts : {"gaussian", "sphere", "fixed"} or array of shape (n_actions, n_features), \
            default="gaussian"
        See :class:`LinearEnvironment`.
    coef : array-like of shape (n_features,), default=None
        None draws them uniformly on the unit sphere, once a run.
    scale : float, default=2.0
        Factor of the linear predictor.
    link : {"logit", "tanh"}, default="logit"
        The mean is 1 / (1 + exp(-t)), with rewards 0 and 1; or tanh(t), with rewards -1 and 1.

    Attributes
    ----------
    bounds_rewards : (float, float)
        Public range of the rewards.
    coef_ : ndarray of shape (n_features,)

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.bandits import GeneralizedLinearEnvironment
    >>> env = GeneralizedLinearEnvironment(n_actions=2, n_features=3, link="tanh")
    >>> contexts, means = env.sample(5, np.random.default_rng(0))
    >>> bool((abs(means) < 1).all())
    True
    """

    def __init__(
        self,
        *,
        n_actions: int = 10,
        n_features: int = 5,
        contexts: Any = "gaussian",
        coef: Any = None,
        scale: float = 2.0,
        link: str = "logit",
    ) -> None:
        super().__init__(n_actions=n_actions, n_features=n_features, contexts=contexts, coef=coef)
        self.scale = scale
        self.link = link

    @property
    def bounds_rewards(self) -> tuple[float, float]:
        """Public range of the rewards."""
        return (0.0, 1.0) if self.link == "logit" else (-1.0, 1.0)

    def _mean(self, values):
        if self.link not in LINKS:
            raise ValueError(f"link={self.link!r} must be one of {sorted(LINKS)}.")
        return LINKS[self.link](self.scale * values)

    def rewards(self, means: Any, actions: Any, rng: Any) -> np.ndarray:
        """Draw rewards: one number from `rng` a round, whatever the action."""
        low, _ = self.bounds_rewards
        chances = means[np.arange(len(actions)), actions]
        chances = (chances - low) / (1.0 - low)
        return np.where(rng.random(len(actions)) < chances, 1.0, low)
