"""Greedy between forgetful epochs."""

from typing import ClassVar

import numpy as np

from .._draws import greedy, uniform
from ._policy import EpochPolicy


class EpochGreedy(EpochPolicy):
    """Play the action of the largest prediction of the oracle fitted to the last epoch.

    The first epoch is played at random. After that there is no exploration: contexts that vary
    enough must do it (Bastani, Bayati and Khosravi 2021), and do so with dense random features.

    Parameters
    ----------
    oracle : regressor
        A clone of it is fitted to each epoch; private or not.
    schedule : {"doubling", "geometric", "fixed"}, int, sequence of int, or callable, \
            default="doubling"
        Public lengths of the epochs; see :class:`EpochSchedule`.
    shared : bool, default=True
        False if contexts are features of the round alone, with weights for each action.
    n_actions : int, default=None
        Number of actions; needed with ``shared=False``.
    random_state : None, int or RandomState, default=None
        Of the actions. Privacy noise is that of the oracle's own ``random_state``: secure if it
        is None, otherwise reproducible, with a new seed in every epoch.

    Attributes
    ----------
    oracle_ : regressor
        Fitted to the last epoch that closed.
    n_rounds_ : int
        Rounds that `update` has taken in.
    epoch_ : int
        Index of the present epoch.
    rounds_until_update_ : int
        Rounds until it closes.
    propensities_ : ndarray of shape (n_rounds,)
        Of the last `act`.
    privacy_report_ : EpochsReport
        What the closed epochs cost.

    See Also
    --------
    FLIPHAT : With the sparse private regressor.

    Notes
    -----
    **Privacy guarantee**: that of one fit of the oracle, as joint differential privacy (local, if
    the oracle is local): every user's row enters exactly one fit, and the actions of other users
    are computed from the answers. The number of rounds and the schedule are public.

    References
    ----------
    S. Chakraborty, S. Roy and D. Basu (2024). FLIPHAT: joint differential privacy for high
    dimensional sparse linear bandits. Sections 5 and 6.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.bandits import EpochGreedy, LinearEnvironment, simulate
    >>> from skpriv.linear_model import SSPRegressor
    >>> oracle = SSPRegressor(epsilon=1.0, random_state=0)
    >>> env = LinearEnvironment(n_actions=4, n_features=3)
    >>> result = simulate([EpochGreedy(oracle=oracle)], env, horizon=4000, random_state=0)
    >>> result.privacy_reports[0][0].guarantee
    Guarantee(epsilon=1, delta=1e-06, model='central', unit='user')
    """

    def __init__(
        self, *, oracle, schedule="doubling", shared=True, n_actions=None, random_state=None
    ):
        self.oracle = oracle
        self.schedule = schedule
        self.shared = shared
        self.n_actions = n_actions
        self.random_state = random_state

    _parameter_constraints: ClassVar[dict] = EpochPolicy._parameter_constraints

    def _act(self, contexts, rng):
        n, n_actions = contexts.shape[:2]
        if not hasattr(self, "oracle_"):
            return uniform(n, n_actions, rng)
        return greedy(self.oracle_, contexts), np.ones(n)
