"""The policy that learns nothing."""

from typing import ClassVar

import numpy as np

from ..privacy import Guarantee
from ._base import BasePolicy
from ._draws import uniform

FOREVER = 2**62  # rounds


class RandomPolicy(BasePolicy):
    """Choose every action with the same probability: the reference that must be beaten.

    Parameters
    ----------
    shared : bool, default=True
        False if contexts are features of the round alone.
    n_actions : int, default=None
        Number of actions; needed with ``shared=False``.
    random_state : None, int or RandomState, default=None
        Of the actions.

    Attributes
    ----------
    n_rounds_ : int
        Rounds that `update` has taken in.
    n_actions_ : int
    n_features_in_ : int
    propensities_ : ndarray of shape (n_rounds,)
        Probability of each action of the last `act`: one over the number of actions.

    Notes
    -----
    **Privacy guarantee**: actions do not depend on any context or reward.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.bandits import RandomPolicy
    >>> policy = RandomPolicy(random_state=0)
    >>> policy.act(np.ones((5, 3, 2)))
    array([0, 1, 0, 1, 1])
    >>> policy.propensities_.round(2)
    array([0.33, 0.33, 0.33, 0.33, 0.33])
    """

    _parameter_constraints: ClassVar[dict] = BasePolicy._parameter_constraints

    _looks = False

    def __init__(self, *, shared=True, n_actions=None, random_state=None):
        self.shared = shared
        self.n_actions = n_actions
        self.random_state = random_state

    @property
    def rounds_until_update_(self):
        """Public number of further rounds in which the policy will not change: all."""
        return FOREVER

    @property
    def guarantee(self):
        """Perfect privacy: actions depend on no context and no reward."""
        return Guarantee.perfect("user")

    def _phi(self, contexts):
        if self._shared:
            return contexts
        return np.broadcast_to(0.0, (len(contexts), self.n_actions_, 1))  # nothing is looked at

    def _blocks(self, rows, actions):
        return rows

    def _act(self, contexts, available, rng):
        n, n_actions = contexts.shape[:2]
        return uniform(n, n_actions, available, rng)

    def _update(self, rows, rewards):
        self.n_rounds_ += len(rewards)
