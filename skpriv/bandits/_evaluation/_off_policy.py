"""Value of a policy from the data of another one, who acted at random."""

from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from ..._parameters import Probability, RandomState, validated
from ...records import finite_numbers

Method = Literal["ips", "snips"]


class OffPolicyValue(NamedTuple):
    """Estimate of a policy's mean reward, with its standard error.

    Parameters
    ----------
    value : float
    standard_error : float
    """

    value: float
    standard_error: float


@validated
def off_policy_value(
    target: Any,
    actions: Any,
    rewards: Any,
    propensities: Any,
    *,
    method: Method = "snips",
) -> OffPolicyValue:
    """Estimate the mean reward of a policy from rounds in which another one acted at random.

    Parameters
    ----------
    target : array-like of shape (n_rounds,) or (n_rounds, n_actions)
        What the policy would do: its actions as integers, or their probabilities.
    actions : array-like of shape (n_rounds,)
        Actions in the data.
    rewards : array-like of shape (n_rounds,)
        Their rewards.
    propensities : array-like of shape (n_rounds,)
        Probabilities, above 0, with which the data's actions were drawn. No action that the policy
        takes may have had probability 0.
    method : {"ips", "snips"}, default="snips"
        Inverse propensity score; self-normalised.

    Returns
    -------
    OffPolicyValue
        Named tuple (value, standard_error); the error is that of independent rounds.

    Notes
    -----
    With actions for `target`, weights are 0 or 1 over the propensity. "ips" is unbiased, "snips"
    is consistent and unaffected by a shift of the rewards. Nothing here is private.

    References
    ----------
    A. Swaminathan and T. Joachims (2015). The self-normalized estimator for counterfactual
    learning. NIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.bandits import off_policy_value
    >>> rng = np.random.default_rng(0)
    >>> actions = rng.integers(2, size=1000)
    >>> always_one, halves = np.ones(1000, dtype=int), np.full(1000, 0.5)
    >>> value = off_policy_value(always_one, actions, 0.5 * actions, halves)
    >>> round(value.value, 3), round(value.standard_error, 3)
    (0.5, 0.0)
    """
    actions, target = indices(actions, "actions"), indices(target, "target")
    rewards = finite_numbers(rewards, "rewards")
    propensities = finite_numbers(propensities, "propensities")
    n = len(actions)
    if n < 2 or not actions.shape == rewards.shape == propensities.shape == (n,):
        raise ValueError("actions, rewards and propensities must have the same shape (n_rounds,).")
    if not ((propensities > 0.0) & (propensities <= 1.0)).all():
        raise ValueError("propensities must lie in (0, 1].")
    if len(target) != n or target.ndim not in (1, 2):
        raise ValueError("target must have shape (n_rounds,) or (n_rounds, n_actions).")
    rounds = np.arange(n)
    matched = target == actions if target.ndim == 1 else target[rounds, actions]
    weights = matched / propensities
    if method == "snips":
        if not weights.any():
            raise ValueError("the policy never takes an action of the data.")
        value = float(weights @ rewards / weights.sum())
        error = np.linalg.norm(weights * (rewards - value)) / weights.sum()
        return OffPolicyValue(value, float(error))
    terms = weights * rewards
    return OffPolicyValue(float(terms.mean()), float(terms.std(ddof=1) / np.sqrt(n)))


def indices(data, name):
    """Whole numbers as indices, of one dimension, and anything else as it is."""
    values = finite_numbers(data, name)
    whole = values.ndim == 1 and bool((values == np.floor(values)).all())
    return values.astype(np.intp) if whole else values


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

    def value(self, target: Any, *, method: Method = "snips") -> OffPolicyValue:
        """Estimate the mean reward of a policy that does not learn.

        Parameters
        ----------
        target : policy or array-like
            A policy, whose `act` is called once for all rounds; or actions (n_rounds,), or their
            probabilities (n_rounds, n_actions).
        method : {"ips", "snips"}, default="snips"
            See :func:`off_policy_value`.

        Returns
        -------
        OffPolicyValue
            Named tuple (value, standard_error).
        """
        if hasattr(target, "act"):
            target = target.act(self.contexts)
        given = self.actions, self.rewards, self.propensities
        return off_policy_value(target, *given, method=method)

    @validated
    def replay(
        self,
        policy: Any,
        *,
        least_propensity: Probability | None = None,
        random_state: RandomState = None,
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
        contexts = finite_numbers(self.contexts, "contexts")
        actions = indices(self.actions, "actions")
        rewards = finite_numbers(self.rewards, "rewards")
        propensities = finite_numbers(self.propensities, "propensities")
        draws = check_random_state(random_state).random_sample(len(actions))
        least = 1.0 / _n_actions(contexts, policy) if least_propensity is None else least_propensity
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


def _n_actions(contexts, policy):
    """Public number of actions of a round."""
    return contexts.shape[1] if contexts.ndim == 3 else policy.n_actions
