"""Policies with the methods of MABWiser."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone

from ..records import silence

if TYPE_CHECKING:
    from ._policy._base import BasePolicy


class MABWiserAdapter:
    """A policy with MABWiser's ``fit``, ``partial_fit`` and ``predict``.

    Parameters
    ----------
    policy : policy
        A policy with ``shared=False``; it is cloned at each `fit`, and not changed.
    arms : list of hashable
        Labels of the actions: a public list, which must not be read off the decisions.

    Attributes
    ----------
    policy_ : policy
        After `fit`, with `privacy_report_` and `propensities_` of the last `predict`.

    Notes
    -----
    **Privacy guarantee**: that of the policy, with decisions as its actions, for the rounds that
    were learned from. `fit` starts anew, and spends in addition what its rounds cost; use
    `partial_fit` to go on. Policies learn at the end of their epochs or periods: in between,
    `partial_fit` only stores. Decisions may come from elsewhere, such as a log; intervals and
    guarantees of regret then are those for the regression on these rounds.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.bandits import EpochGreedy, MABWiserAdapter
    >>> from skpriv.linear_model import SSPRegressor
    >>> rng = np.random.RandomState(0)
    >>> contexts = rng.uniform(-0.7, 0.7, size=(2000, 2))
    >>> decisions = rng.choice(["left", "right"], size=2000)
    >>> rewards = np.where(decisions == "left", -1.0, 1.0) * contexts[:, 0]
    >>> oracle = SSPRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1), epsilon=4.0, fit_intercept=False, random_state=0
    ... )
    >>> policy = EpochGreedy(oracle=oracle, schedule=500, shared=False, n_actions=2)
    >>> adapter = MABWiserAdapter(policy, arms=["left", "right"])
    >>> adapter.fit(decisions, rewards, contexts).predict([[-0.7, 0.0], [0.7, 0.0]])
    ['left', 'right']
    """

    def __init__(self, policy: Any, arms: Any) -> None:
        self.policy = policy
        self.arms = arms
        self.policy_: Any = None

    def fit(self, decisions: Any, rewards: Any, contexts: Any) -> Self:
        """Forget what was learned, and learn from some rounds.

        Parameters
        ----------
        decisions : array-like of shape (n_rounds,)
            Arms that were played.
        rewards : array-like of shape (n_rounds,)
            Rewards of these arms, in the units of the declared bounds.
        contexts : array-like of shape (n_rounds, n_features)
            One context a round; all arms share it.

        Returns
        -------
        self
            The adapter.
        """
        return self._learn(self._fresh(), decisions, rewards, contexts)

    def partial_fit(self, decisions: Any, rewards: Any, contexts: Any) -> Self:
        """Learn from further rounds; as `fit`, if there were none.

        Parameters
        ----------
        decisions : array-like of shape (n_rounds,)
            Arms that were played.
        rewards : array-like of shape (n_rounds,)
            Rewards of these arms, in the units of the declared bounds.
        contexts : array-like of shape (n_rounds, n_features)
            One context a round; all arms share it.

        Returns
        -------
        self
            The adapter.
        """
        policy = self.policy_ or self._fresh()
        return self._learn(policy, decisions, rewards, contexts)

    def predict(self, contexts: Any) -> Any:
        """Choose arms.

        Parameters
        ----------
        contexts : array-like of shape (n_rounds, n_features)
            One context a round; all arms share it.

        Returns
        -------
        arm or list of arms
            An arm if there is one round, as MABWiser does.
        """
        if self.policy_ is None:
            raise ValueError("predict needs a fit: call fit or partial_fit first.")
        arms = list(self.arms)
        chosen = [arms[action] for action in self.policy_.act(contexts)]
        return chosen[0] if len(chosen) == 1 else chosen

    def _fresh(self) -> Any:
        policy = clone(self.policy)
        arms = list(self.arms)
        if len(set(arms)) < len(arms) or not arms:
            raise ValueError(f"arms={arms!r} must be a list of different labels.")
        if policy.shared:
            raise ValueError(
                "MABWiserAdapter needs a policy with shared=False: a context is the same for all "
                "arms, and each arm has weights of its own."
            )
        if policy.max_visits is not None:
            raise ValueError("MABWiser does not say who comes: pass a policy without max_visits.")
        if policy.n_actions != len(arms):
            raise ValueError(f"the policy has n_actions={policy.n_actions}, but arms={arms!r}.")
        return policy

    def _learn(
        self, policy: "BasePolicy", decisions: Any, rewards: np.ndarray, contexts: np.ndarray
    ) -> Self:
        """Let a policy learn from rounds; if that raises, the adapter is what it was before."""
        positions = {arm: i for i, arm in enumerate(self.arms)}
        policy.update(contexts, [_position(positions, arm) for arm in decisions], rewards)
        self.policy_ = policy
        return self


@silence()
def _position(positions: dict[Any, int], arm: Any) -> float:
    """Number of an arm, NaN if it is unknown: decisions are private, and refused with rewards."""
    with suppress(Exception):  # an object that cannot be a key of a dictionary
        return positions.get(arm, np.nan)
    return np.nan
