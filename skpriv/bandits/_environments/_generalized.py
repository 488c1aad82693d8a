"""Mean rewards by a link function."""

import numpy as np
from scipy.special import expit

from ._linear import LinearEnvironment

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
        n_actions=10,
        n_features=5,
        contexts="gaussian",
        coef=None,
        scale=2.0,
        link="logit",
    ):
        super().__init__(n_actions=n_actions, n_features=n_features, contexts=contexts, coef=coef)
        self.scale = scale
        self.link = link

    @property
    def bounds_rewards(self):
        """Public range of the rewards."""
        return (0.0, 1.0) if self.link == "logit" else (-1.0, 1.0)

    def _mean(self, values):
        if self.link not in LINKS:
            raise ValueError(f"link={self.link!r} must be one of {sorted(LINKS)}.")
        return LINKS[self.link](self.scale * values)

    def rewards(self, means, actions, rng):
        """Draw rewards: one number from `rng` a round, whatever the action."""
        low, _ = self.bounds_rewards
        chances = means[np.arange(len(actions)), actions]
        chances = (chances - low) / (1.0 - low)
        return np.where(rng.random(len(actions)) < chances, 1.0, low)
