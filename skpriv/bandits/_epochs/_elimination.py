"""Elimination of actions by the confidence intervals of an oracle."""

from dataclasses import field
from math import pi
from typing import Annotated, Any, Literal

import numpy as np
from scipy.special import ndtri

from ..._compat import HasMethods
from ..._parameters import Level, parameters
from .._draws import flat, largest, uniform
from ._policy import OraclePolicy, coef_posterior
from ._spanner import spanner

# code -> paper (Chen, Li, Rakhlin and Simchi-Levi 2025, Algorithms 3 and 4):
#   alive -> A^(j-1)(x),  spanner(alive) -> A_sp^(j)(x),  failure -> delta_j


@parameters
class ActionElimination(OraclePolicy):
    """RegCB: play at random among the actions that no confidence interval has ruled out.

    An action survives in a round if the upper end of the interval for its mean reward is at least
    the largest lower end of all actions. With the promised probability the best action survives in
    every round.

    Parameters
    ----------
    oracle : regressor with ``confidence_interval``
        A clone of it is fitted to each epoch.
    exploration : {"uniform", "spanner"}, default="uniform"
        Play any of the surviving actions, or any of a 2-approximate barycentric spanner of them:
        at most ``n_features`` actions of which all others are combinations with coefficients in
        [-2, 2]. The second is for many actions.
    confidence_level : float in (0, 1), default=0.95
        Probability that in a given round, under any epoch, all intervals used hold.
    interval : {"auto", "posterior", "certified", "asymptotic"}, default="auto"
        "posterior": an action is dropped if it is below the best one by more than a normal quantile
        of standard deviations of their difference, by one posterior from the pooled sums of all
        epochs. That is not a proved interval, but one that misses no more often if the model holds.
        Else the papers' form, with intervals of the latest epoch, by this ``method`` of the oracle.
        "auto" is "posterior" for oracles that have one, and "certified" for others.

    Attributes
    ----------
    oracle_ : regressor
        Fitted to the last epoch that closed, or pooled from all of them.
    n_rounds_ : int
        Rounds that `update` has taken in.
    epoch_ : int
        Index of the present epoch.
    rounds_until_update_ : int
        Rounds until it closes.
    propensities_ : ndarray of shape (n_rounds,)
        Probabilities of the last `act`: one over the number of actions among which it drew.
    changes_ : list of int
        Numbers of rounds at which the released fits said that the world had changed.
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
    >>> oracle = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), epsilon=2.0, random_state=0)
    >>> env = LinearEnvironment(n_actions=3, n_features=2, contexts="fixed")
    >>> policy = ActionElimination(oracle=oracle, exploration="spanner")
    >>> result = simulate([policy], env, horizon=5000, random_state=0)
    >>> result.regret_.shape
    (1, 1, 5000)
    """

    oracle: Annotated[Any, HasMethods(["fit", "confidence_interval"])] = field(kw_only=False)
    exploration: Literal["uniform", "spanner"] = "uniform"
    confidence_level: Level = 0.95
    interval: Literal["auto", "posterior", "certified", "asymptotic"] = "auto"

    def _with_past(self, oracle, n_fitted):
        if self._by_posterior(oracle):
            return super()._with_past(oracle, n_fitted)
        self._pool, self._n_pooled = oracle, n_fitted  # the papers' form has intervals of an epoch
        return oracle

    def _widen(self, extra):
        if self._epochs and not self._by_posterior(self._pool):
            raise ValueError(
                "intervals of every epoch cannot be widened: use interval='posterior'."
            )
        super()._widen(extra)

    def _by_posterior(self, oracle):
        return self.interval == "posterior" or (
            self.interval == "auto" and hasattr(oracle, "posterior")
        )

    def _learn(self, oracle, n_fitted):
        self.oracle_ = oracle
        if self._by_posterior(oracle):
            self._posterior = coef_posterior(oracle)

    def _chances(self, contexts, available):
        n, n_actions = contexts.shape[:2]
        if not hasattr(self, "oracle_"):
            alive = uniform(n, n_actions, available) > 0.0
        else:
            find = self._plausible if self._by_posterior(self.oracle_) else self._alive
            alive = find(contexts, available)
        if self.exploration == "spanner":
            n_kinds = 1 if available is None and contexts.strides[0] == 0 else n
            alive = np.broadcast_to(alive, (n_kinds, n_actions))
            alive = _thinned(contexts[:n_kinds], alive)
        return uniform(n, n_actions, alive)

    def _plausible(self, contexts, available):
        """Actions that may be the best, by posteriors of differences to the best mean."""
        contexts = contexts[:1] if contexts.strides[0] == 0 and available is None else contexts
        n_actions, rounds = contexts.shape[1], np.arange(len(contexts))
        mean, covariance = self._posterior
        means = contexts @ mean
        best = largest(means, available)
        apart = contexts - contexts[rounds, best][:, None]
        spread = np.sqrt(np.einsum("nkj,nkj->nk", apart @ covariance, apart))
        behind = means[rounds, best][:, None] - means
        alive = behind <= -ndtri(self._failure / n_actions) * spread
        return alive if available is None else alive & available

    @property
    def _failure(self):
        """Of the latest epoch: the sum of 6 / (pi j)^2 over all epochs j, counted from 1, is 1."""
        return (1.0 - self.confidence_level) * 6.0 / (pi * len(self._epochs)) ** 2

    def _alive(self, contexts, available=None):
        """Surviving actions, of shape (n_rounds or 1, n_actions), by the papers' intervals."""
        rows, shape = flat(contexts if available is None else contexts.copy())
        low, high = self.oracle_.confidence_interval(
            rows,
            confidence_level=1.0 - self._failure / contexts.shape[1],
            method="asymptotic" if self.interval == "asymptotic" else "certified",
        )
        low, high = low.reshape(shape), high.reshape(shape)
        if available is not None:  # what cannot be played rules out nothing
            low, high = np.where(available, low, -np.inf), np.where(available, high, -np.inf)
        return high >= low.max(axis=1, keepdims=True)


def _thinned(contexts, alive):
    """Spanner of the survivors; of rounds in which all of these are zero, the survivors."""
    chosen = alive.copy()
    several = np.flatnonzero(alive.sum(axis=1) > 1)
    found = spanner(contexts[several], alive[several])
    found[~found.any(axis=1)] = alive[several][~found.any(axis=1)]
    chosen[several] = found
    return chosen
