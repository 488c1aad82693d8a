"""Elimination of actions by the confidence intervals of an oracle."""

from math import pi
from numbers import Integral, Real
from typing import ClassVar

import numpy as np

from ..._compat import HasMethods, Interval, StrOptions
from .._draws import flat, uniform, uniform_among
from ._policy import EpochPolicy
from ._spanner import spanner

# code -> paper (Chen, Li, Rakhlin and Simchi-Levi 2025, Algorithms 3 and 4):
#   alive -> A^(j-1)(x),  spanner(alive) -> A_sp^(j)(x),  failure -> delta_j


class ActionElimination(EpochPolicy):
    """Play at random among the actions that no confidence interval has ruled out.

    An action survives in a round if the upper end of each interval for its mean reward is at least
    the largest lower end of the actions that survived so far, oracle by oracle. With the promised
    probability the best action survives in every round.

    Parameters
    ----------
    oracle : regressor with ``confidence_interval``
        A clone of it is fitted to each epoch.
    schedule : {"doubling", "geometric", "fixed"}, int, sequence of int, or callable, \
            default="doubling"
        Public lengths of the epochs; see :class:`EpochSchedule`.
    exploration : {"uniform", "spanner"}, default="uniform"
        Play any of the surviving actions, or any of a 2-approximate barycentric spanner of them:
        at most ``n_features`` actions of which all others are combinations with coefficients in
        [-2, 2]. The second is for many actions.
    confidence_level : float in (0, 1), default=0.95
        Probability that in a given round, under any epoch, all intervals used hold.
    interval : {"certified", "asymptotic"}, default="certified"
        The ``method`` of the oracle's intervals.
    memory : int, default=None
        Number of latest oracles that are asked; None asks all of them. Any number is valid.
    shared : bool, default=True
        False if contexts are features of the round alone, with weights for each action.
    n_actions : int, default=None
        Number of actions; needed with ``shared=False``.
    random_state : None, int or RandomState, default=None
        Of the actions; privacy noise is that of the oracle's own ``random_state``.

    Attributes
    ----------
    oracles_ : list of regressors
        Fitted to the closed epochs, the latest last.
    n_rounds_ : int
        Rounds that `update` has taken in.
    epoch_ : int
        Index of the present epoch.
    rounds_until_update_ : int
        Rounds until it closes.
    propensities_ : ndarray of shape (n_rounds,)
        Of the last `act`: one over the number of actions among which it drew.
    privacy_report_ : EpochsReport
        What the closed epochs cost.

    Notes
    -----
    **Privacy guarantee**: that of one fit of the oracle, as joint differential privacy (local, if
    the oracle is local): every user's row enters exactly one fit, and the actions of other users
    are computed from the answers. The number of rounds and the schedule are public.

    The intervals of epoch j, counted from 1, have level 1 - (1 - confidence_level) 6 / (pi^2 j^2 K)
    for each of K actions, so that levels need no horizon.

    References
    ----------
    F. Chen, J. Li, A. Rakhlin and D. Simchi-Levi (2025). Near-optimal private learning in linear
    contextual bandits: Algorithms 3 and 4.

    B. Awerbuch and R. Kleinberg (2008). Online linear optimization and adaptive routing. Journal of
    Computer and System Sciences.

    Examples
    --------
    >>> from skpriv.bandits import ActionElimination, LinearEnvironment, simulate
    >>> from skpriv.linear_model import SSPRegressor
    >>> oracle = SSPRegressor(epsilon=2.0, random_state=0)
    >>> env = LinearEnvironment(n_actions=3, n_features=2, contexts="fixed")
    >>> policy = ActionElimination(oracle=oracle, exploration="spanner")
    >>> result = simulate([policy], env, horizon=5000, random_state=0)
    >>> result.regret_.shape
    (1, 1, 5000)
    """

    _parameter_constraints: ClassVar[dict] = {
        **EpochPolicy._parameter_constraints,
        "oracle": [HasMethods(["fit", "confidence_interval"])],
        "exploration": [StrOptions({"uniform", "spanner"})],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "interval": [str],
        "memory": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        *,
        oracle,
        schedule="doubling",
        exploration="uniform",
        confidence_level=0.95,
        interval="certified",
        memory=None,
        shared=True,
        n_actions=None,
        random_state=None,
    ):
        self.oracle = oracle
        self.schedule = schedule
        self.exploration = exploration
        self.confidence_level = confidence_level
        self.interval = interval
        self.memory = memory
        self.shared = shared
        self.n_actions = n_actions
        self.random_state = random_state

    def _learn(self, oracle, n_fitted):
        self.oracles_ = [*getattr(self, "oracles_", []), oracle]

    def _act(self, contexts, rng):
        n, n_actions = contexts.shape[:2]
        if not hasattr(self, "oracles_"):
            if self.exploration == "uniform":
                return uniform(n, n_actions, rng)
            alive = np.ones((1 if contexts.strides[0] == 0 else n, n_actions), dtype=bool)
        else:
            alive = self._alive(contexts)
        if self.exploration == "spanner":
            alive = _thinned(contexts[: len(alive)], alive)
        return uniform_among(np.broadcast_to(alive, (n, n_actions)), rng)

    def _alive(self, contexts):
        """Surviving actions, of shape (n_rounds or 1, n_actions).

        All intervals hold at once, so that an action is ruled out when the least of its upper ends
        is below the largest lower end of any action, ruled out or not, in any epoch.
        """
        _, (n, n_actions) = flat(contexts)
        alive = np.ones((n, n_actions), dtype=bool)
        lower, upper = np.full((n, n_actions), -np.inf), np.full((n, n_actions), np.inf)
        failure = (1.0 - self.confidence_level) * 6.0 / (pi**2 * n_actions)
        oracles = list(enumerate(self.oracles_, start=1))
        # The latest oracle knows most, and rounds with one survivor need no other.
        for epoch, oracle in reversed(oracles[-(self.memory or len(oracles)) :]):
            open_rounds = np.flatnonzero(alive.sum(axis=1) > 1)
            if not len(open_rounds):
                break
            rows, shape = flat(contexts if len(open_rounds) == n else contexts[open_rounds])
            low, high = oracle.confidence_interval(
                rows, confidence_level=1.0 - failure / epoch**2, method=self.interval
            )
            lower[open_rounds] = low = np.maximum(lower[open_rounds], low.reshape(shape))
            upper[open_rounds] = high = np.minimum(upper[open_rounds], high.reshape(shape))
            left = high >= low.max(axis=1, keepdims=True)
            # Contradictory intervals, an event within the failure probability, rule out nothing.
            alive[open_rounds] = np.where(left.any(axis=1)[:, None], left, alive[open_rounds])
        return alive


def _thinned(contexts, alive):
    """Spanner of the survivors; of rounds in which all of these are zero, the survivors."""
    chosen = alive.copy()
    several = np.flatnonzero(alive.sum(axis=1) > 1)
    found = spanner(contexts[several], alive[several])
    found[~found.any(axis=1)] = alive[several][~found.any(axis=1)]
    chosen[several] = found
    return chosen
