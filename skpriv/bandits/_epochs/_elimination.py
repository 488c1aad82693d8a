"""Elimination of actions by the confidence intervals of an oracle."""

from dataclasses import field
from math import pi
from typing import Annotated, Any, Literal

import numpy as np
from scipy.special import ndtri

from ..._compat import HasMethods
from ..._parameters import Count, Level, parameters
from .._draws import flat, largest, uniform, uniform_among
from ._policy import OraclePolicy, coef_posterior
from ._spanner import spanner

# code -> paper (Chen, Li, Rakhlin and Simchi-Levi 2025, Algorithms 3 and 4):
#   alive -> A^(j-1)(x),  spanner(alive) -> A_sp^(j)(x),  failure -> delta_j


@parameters
class ActionElimination(OraclePolicy):
    """RegCB: play at random among the actions that no confidence interval has ruled out.

    An action survives in a round if the upper end of each interval for its mean reward is at least
    the largest lower end of the actions that survived so far, oracle by oracle. With the promised
    probability the best action survives in every round.

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
        Where sums cannot be added (re-weighted codebook reports), by the posteriors of all epochs.
        Else the papers' form, with intervals of every epoch, by this ``method`` of the oracle.
        "auto" is "posterior" for oracles that have one, and "certified" for others.
    memory : int, default=None
        The papers' form of memory: the number of latest oracles that are asked; None asks all of
        them. Any number is valid.

    Attributes
    ----------
    oracles_ : list of regressors
        Fitted to the closed epochs, the latest last; with a posterior, one that knows them all.
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
    memory: Count | None = None

    def _start(self, n_phi):
        super()._start(n_phi)
        self._fits, self._apart = [], False

    def _with_past(self, oracle, n_fitted):
        first, self._fits = self._pool is None, [*self._fits, oracle]
        if not self._by_posterior(oracle):
            self._n_pooled = n_fitted  # the papers' form: every epoch has intervals of its own
            return oracle
        pooled = super()._with_past(oracle, n_fitted)
        # Sums that cannot be added would be forgotten, and what they ruled out would come back.
        self._apart = self._apart or not (first or self.forget or self._added)
        return pooled

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
        by_posterior = self._by_posterior(oracle)
        self.oracles_ = list(self._fits) if self._apart or not by_posterior else [oracle]
        if by_posterior:
            self._posteriors = [coef_posterior(fit) for fit in self.oracles_]

    def _act(self, contexts, available, rng):
        n, n_actions = contexts.shape[:2]
        if not hasattr(self, "oracles_"):
            if self.exploration == "uniform":
                return uniform(n, n_actions, available, rng)
            alive = _all_or(available, (1 if contexts.strides[0] == 0 else n, n_actions))
        elif self._by_posterior(self.oracles_[-1]):
            alive = self._plausible(contexts, available)
        else:
            alive = self._alive(contexts, available)
        if self.exploration == "spanner":
            alive = _thinned(contexts[: len(alive)], alive)
        return uniform_among(np.broadcast_to(alive, (n, n_actions)), rng)

    def _plausible(self, contexts, available):
        """Actions that may be the best, by posteriors of differences to the best mean."""
        contexts = contexts[:1] if contexts.strides[0] == 0 and available is None else contexts
        (n, n_actions, _), rounds = contexts.shape, np.arange(len(contexts))
        alive = _all_or(available, (n, n_actions))
        # One that knows all epochs, or one of each, with the level of its epoch.
        last = len(self._epochs) + 1
        for epoch, (mean, covariance) in enumerate(
            self._posteriors, start=last - len(self._posteriors)
        ):
            means = contexts @ mean
            best = largest(means, available, n)
            apart = contexts - contexts[rounds, best][:, None]
            spread = np.sqrt(np.einsum("nkj,nkj->nk", apart @ covariance, apart))
            failure = (1.0 - self.confidence_level) * 6.0 / (pi * epoch) ** 2
            behind = means[rounds, best][:, None] - means
            left = alive & (behind <= -ndtri(failure / n_actions) * spread)
            # Contradictory posteriors rule out nothing.
            alive = np.where(left.any(axis=1)[:, None], left, alive)
        return alive

    def _alive(self, contexts, available=None):
        """Surviving actions, of shape (n_rounds or 1, n_actions).

        All intervals hold at once, so that an action is ruled out when the least of its upper ends
        is below the largest lower end of any action, ruled out or not, in any epoch.
        """
        _, (n, n_actions) = flat(contexts) if available is None else (None, contexts.shape[:2])
        alive = _all_or(available, (n, n_actions))
        lower, upper = np.full((n, n_actions), -np.inf), np.full((n, n_actions), np.inf)
        failure = (1.0 - self.confidence_level) * 6.0 / (pi**2 * n_actions)
        oracles = list(enumerate(self.oracles_, start=1))
        method = "asymptotic" if self.interval == "asymptotic" else "certified"
        # The latest oracle knows most, and rounds with one survivor need no other.
        for epoch, oracle in reversed(oracles[-(self.memory or len(oracles)) :]):
            open_rounds = np.flatnonzero(alive.sum(axis=1) > 1)
            if not len(open_rounds):
                break
            part = contexts[:n] if len(open_rounds) == n else contexts[open_rounds]
            rows, shape = part.reshape(-1, part.shape[2]), part.shape[:2]
            low, high = oracle.confidence_interval(
                rows, confidence_level=1.0 - failure / epoch**2, method=method
            )
            low = np.maximum(lower[open_rounds], low.reshape(shape))
            if available is not None:  # what cannot be played rules out nothing
                low = np.where(available[open_rounds], low, -np.inf)
            lower[open_rounds] = low
            upper[open_rounds] = high = np.minimum(upper[open_rounds], high.reshape(shape))
            left = high >= low.max(axis=1, keepdims=True)
            if available is not None:
                left &= available[open_rounds]
            # Contradictory intervals, an event within the failure probability, rule out nothing.
            alive[open_rounds] = np.where(left.any(axis=1)[:, None], left, alive[open_rounds])
        return alive


def _all_or(available, shape):
    return np.ones(shape, dtype=bool) if available is None else available.copy()


def _thinned(contexts, alive):
    """Spanner of the survivors; of rounds in which all of these are zero, the survivors."""
    chosen = alive.copy()
    several = np.flatnonzero(alive.sum(axis=1) > 1)
    found = spanner(contexts[several], alive[several])
    found[~found.any(axis=1)] = alive[several][~found.any(axis=1)]
    chosen[several] = found
    return chosen
