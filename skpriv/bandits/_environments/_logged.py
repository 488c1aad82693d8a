"""Real rounds, in which somebody acted at random."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

from ...records import finite_numbers
from .._evaluation._off_policy import OffPolicyValue, indices, off_policy_value


class LoggedReplay(NamedTuple):
    """What a policy would have seen, from `LoggedEnvironment.replay`.

    Parameters
    ----------
    value : float
        Mean reward of the accepted rounds, which count more where the data's policy was less
        likely to act so than ``least_propensity``.
    standard_error : float
    rounds : ndarray of int
        Accepted rounds.
    rewards : ndarray
        Their rewards.
    """

    value: float
    standard_error: float
    rounds: np.ndarray
    rewards: np.ndarray


class LoggedEnvironment:
    """Data of a randomised policy, on which other policies are evaluated and trained.

    Parameters
    ----------
    contexts : array-like of shape (n_rounds, n_actions, n_features)
        The contexts as the policies expect them.
    actions : array-like of shape (n_rounds,)
        Actions that were taken.
    rewards : array-like of shape (n_rounds,)
        Their rewards.
    propensities : array-like of shape (n_rounds,)
        Probabilities, above 0, with which they were drawn.

    Notes
    -----
    Values are read off the data without privacy; training spends what the policy spends.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.bandits import LinearEnvironment, LoggedEnvironment, RandomPolicy
    >>> rng = np.random.default_rng(0)
    >>> env, logger = LinearEnvironment(n_actions=3, n_features=2), RandomPolicy(random_state=0)
    >>> contexts, means = env.sample(5000, rng)
    >>> actions = logger.act(contexts)
    >>> rewards = env.rewards(means, actions, rng)
    >>> logged = LoggedEnvironment(contexts, actions, rewards, logger.propensities_)
    >>> best = logged.value(np.argmax(means, axis=1))
    >>> bool(abs(best.value - means.max(axis=1).mean()) < 4 * best.standard_error)
    True
    """

    def __init__(self, contexts: Any, actions: Any, rewards: Any, propensities: Any) -> None:
        self.contexts = contexts
        self.actions = actions
        self.rewards = rewards
        self.propensities = propensities

    def value(
        self, target: Any, *, method: str = "snips", reward_model: Any = None
    ) -> OffPolicyValue:
        """Estimate the mean reward of a policy that does not learn.

        Parameters
        ----------
        target : policy or array-like
            A policy, whose `act` is called once for all rounds; or actions (n_rounds,), or their
            probabilities (n_rounds, n_actions).
        method : {"ips", "snips", "dr"}, default="snips"
            See :func:`off_policy_value`.
        reward_model : regressor, default=None
            The model of rewards for "dr": clones are fitted to half of the rounds and predict the
            other half.

        Returns
        -------
        OffPolicyValue
            Named tuple (value, standard_error).
        """
        if hasattr(target, "act"):
            target = target.act(self.contexts)
        predictions = None
        if method == "dr":
            if reward_model is None:
                raise ValueError("method='dr' needs a reward_model.")
            predictions = self._cross_fitted(reward_model)
        return off_policy_value(
            target,
            self.actions,
            self.rewards,
            self.propensities,
            method=method,
            predictions=predictions,
        )

    def replay(
        self,
        policy: Any,
        *,
        least_propensity: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> "LoggedReplay":
        """Let a policy act on the rounds one after the other, and learn where it agrees.

        A round is accepted if the policy takes the action of the data, with probability
        ``least_propensity`` / propensity: accepted rounds then have the law of the policy's own.

        Parameters
        ----------
        policy : policy
            It goes on learning from where it is.
        least_propensity : float in (0, 1], default=None
            Public: a lower bound on the probabilities with which the data's actions were drawn.
            None is one over the number of actions, which is exact where these were drawn uniformly.
            Rounds that were less likely are always accepted, and count more in the value.
        random_state : None, int or RandomState, default=None
            Seed of the acceptance, where propensities differ.

        Returns
        -------
        LoggedReplay
            Named tuple (value, standard_error, rounds, rewards).

        Notes
        -----
        **Privacy guarantee**: what the policy promises, for replacing one round of the data. Every
        round keeps its place. One that is not accepted is given to a private policy as a round of
        features 0 and a neutral reward, which is one more value of the same record. If it were left
        out, one changed action would shift the places of all later rounds. The policy's number of
        rounds is hence that of the data, and an oracle with an intercept sees these rounds too:
        give it ``fit_intercept=False`` and a constant feature. A policy without privacy skips them.
        The value and the accepted rounds are read off the data without privacy.

        References
        ----------
        L. Li, W. Chu, J. Langford and X. Wang (2011). Unbiased offline evaluation of
        contextual-bandit-based news article recommendation algorithms. WSDM.
        """
        contexts, actions, rewards = self._rounds()
        propensities = finite_numbers(self.propensities, "propensities")
        draws = check_random_state(random_state).random_sample(len(actions))
        least = 1.0 / _n_actions(contexts, policy) if least_propensity is None else least_propensity
        if not 0.0 < least <= 1.0:
            raise ValueError(f"least_propensity={least!r} must lie in (0, 1].")
        willing = draws * propensities < least
        keeps_places, neutral = policy.guarantee.private, policy._neutral_reward
        accepted, start = [], 0
        while start < len(actions):
            part = slice(start, min(len(actions), start + policy.rounds_until_update_))
            same = (policy.act(contexts[part]) == actions[part]) & willing[part]
            seen, given = contexts[part], rewards[part]
            if keeps_places:
                seen, given = seen.copy(), np.where(same, given, neutral)
                seen[~same] = 0.0
                policy.update(seen, actions[part], given)
            else:
                policy.update(seen[same], actions[part][same], given[same])
            accepted.append(start + np.flatnonzero(same))
            start = part.stop
        rounds = np.concatenate(accepted)
        kept, weights = rewards[rounds], np.maximum(1.0, least / propensities[rounds])
        if len(kept) < 2:
            raise ValueError(f"{len(kept)} of {len(actions)} rounds were accepted: too few.")
        value = float(np.average(kept, weights=weights))
        square = float(np.sum((weights * (kept - value)) ** 2)) * len(kept) / (len(kept) - 1)
        return LoggedReplay(value, float(np.sqrt(square) / weights.sum()), rounds, kept)

    def _rounds(self):
        contexts = finite_numbers(self.contexts, "contexts")
        return contexts, indices(self.actions, "actions"), finite_numbers(self.rewards, "rewards")

    def _cross_fitted(self, model):
        contexts, actions, rewards = self._rounds()
        n, n_actions, d = contexts.shape
        predictions = np.empty((n, n_actions))
        for train, test in KFold(2).split(actions):
            fitted = clone(model).fit(contexts[train, actions[train]], rewards[train])
            rows = contexts[test].reshape(-1, d)
            predictions[test] = fitted.predict(rows).reshape(-1, n_actions)
        return predictions


def _n_actions(contexts, policy):
    """Public number of actions of a round."""
    return contexts.shape[1] if contexts.ndim == 3 else policy.n_actions


__all__ = ["LoggedEnvironment", "OffPolicyValue", "LoggedReplay"]
