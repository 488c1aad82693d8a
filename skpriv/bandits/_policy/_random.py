"""The policy that learns nothing."""

import numpy as np

from ..._parameters import Count, parameters
from ..._stored import stored_in_policies
from ...privacy import Guarantee
from ._base import NO_LIMIT, BasePolicy


@stored_in_policies
@parameters
class RandomPolicy(BasePolicy):
    """Choose every action with the same probability: the reference that must be beaten.

    Parameters
    ----------
    shared : bool, default=True
        False if contexts are features of the round alone.

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
    array([1, 2, 1, 1, 1])
    >>> policy.propensities_.round(2)
    array([0.33, 0.33, 0.33, 0.33, 0.33])
    """

    shared: bool = True
    n_actions: Count | None = None

    _reads_values = False

    @property
    def rounds_until_update_(self) -> int:
        """Public number of further rounds in which the policy will not change: all."""
        return NO_LIMIT

    @property
    def guarantee(self) -> Guarantee:
        """Perfect privacy: actions depend on no context and no reward."""
        return Guarantee.perfect("user")

    def _phi(self, contexts: np.ndarray) -> np.ndarray:
        if self.shared:
            return contexts
        return np.broadcast_to(0.0, (len(contexts), self.n_actions_, 1))  # nothing is looked at

    def _update(self, rows: np.ndarray, rewards: np.ndarray) -> None:
        self.n_rounds_ += len(rewards)
