"""Policies as learners of coba."""

from typing import TYPE_CHECKING, Any
from collections.abc import Mapping, Sequence
from numbers import Real

import numpy as np
from sklearn.base import clone
from sklearn.feature_extraction import FeatureHasher

from ..records import floats

if TYPE_CHECKING:
    from .._contracts import Array


class CobaLearner:
    """A policy that coba's experiments can drive, one round after the other.

    Parameters
    ----------
    policy : policy
        It is cloned at the first round, and not changed.
    n_hashed : int, default=32
        Number of columns into which the entries of dictionaries and strings are hashed: public, so
        that the shape of the features tells nothing about the first record.

    Attributes
    ----------
    policy_ : policy
        After the first round, with `privacy_report_`.
    params : dict
        Parameters for coba's tables.

    Notes
    -----
    Features are 1 and the context, x; and with a policy that has ``shared=True`` their products
    with the features of the action, a, in all pairs: coba's (a, ax), weights for each action if
    actions are one-hot.

    **Privacy guarantee**: that of the policy, for the rounds that coba gives it. coba copies a
    learner for each environment if there are several: a user who is in several of them pays for
    each. The results of an experiment are computed from rewards and actions without privacy. Scale
    contexts by public bounds: a policy clips rows to its ``data_norm``, which should be sqrt(2) for
    one-hot actions and contexts in the unit ball, because of the constant.

    Learners are told all actions by way of `predict`, so only learning on the policy's own actions
    or on logged actions that `predict` was offered is possible. coba logs the errors of learners
    and goes on: look for them in its log if a result is empty.

    Examples
    --------
    >>> from skpriv.bandits import CobaLearner, RandomPolicy
    >>> learner = CobaLearner(RandomPolicy(random_state=0))
    >>> actions = [(1, 0), (0, 1)]
    >>> action, propensity, known = learner.predict((0.5, 0.2), actions)
    >>> action in actions, propensity
    (True, 0.5)
    >>> learner.learn((0.5, 0.2), action, 1.0, propensity, **known)
    >>> learner.policy_.n_rounds_
    1
    """

    def __init__(self, policy: Any, *, n_hashed: int = 32) -> None:
        self.policy = policy
        self.n_hashed = n_hashed

    @property
    def params(self) -> dict[str, Any]:
        """Parameters of the policy, for coba's tables, as text."""
        given = self.policy.get_params(deep=False)
        return {"family": type(self.policy).__name__, **{key: str(given[key]) for key in given}}

    def predict(self, context: Any, actions: Any) -> tuple[Any, float, dict[str, Any]]:
        """Choose one of the actions.

        Parameters
        ----------
        context : None, number, str, sequence of numbers, or dict
            Features of the round, which all actions share; None if there are none.
        actions : list of number, str, sequence of numbers, or dict
            Strings stand for themselves, in this order.

        Returns
        -------
        action, propensity, rounds : one of the actions, float, dict
            `learn` wants `rounds` back.
        """
        if hasattr(context, "is_batch") or hasattr(actions, "is_batch"):
            # coba then gives single rounds
            raise ValueError("CobaLearner takes one round at a time.")
        if not actions:
            raise ValueError("CobaLearner needs a list of actions: they cannot be continuous.")
        if self.policy.max_visits is not None:
            raise ValueError("coba does not say who comes: pass a policy without max_visits.")
        if not hasattr(self, "policy_"):
            self.policy_ = clone(self.policy)
        contexts = self._contexts(context, actions)
        chosen, chances = self.policy_.act(contexts, return_propensities=True)
        return (
            actions[int(chosen[0])],
            float(chances[0]),
            {"contexts": contexts, "actions": actions},
        )

    def learn(
        self,
        context: Any,
        action: Any,
        reward: Any,
        probability: Any,
        contexts: Any = None,
        actions: Any = None,
    ) -> None:
        """Learn from the reward of a round.

        Parameters
        ----------
        context : None, number, str, sequence of numbers, or dict
            Features of the round, as given to `predict`.
        action : number, str, sequence of numbers, or dict
            The action that was played, as `predict` returned it.
        reward : float
            Reward of the action, in the units of the policy's declared bounds.
        probability : float
            Not used: the policy knows its own propensities.
        contexts, actions : optional
            What `predict` knew of the round.
        """
        if contexts is None:
            raise ValueError("CobaLearner.learn needs what predict returned for this round.")
        same = [_equal(offered, action) for offered in actions]
        if not any(same):
            raise ValueError("unknown action: it is none of those that predict was offered.")
        self.policy_.update(contexts, [same.index(True)], [reward])

    def _contexts(
        self, context: Sequence[float], actions: list[list[float] | tuple[int, ...]]
    ) -> "Array":
        """Features of one round, as `policy.act` takes them."""
        x = np.concatenate([[1.0], self._vector(context)])
        if not self.policy_.shared:
            return x[None]
        if all(isinstance(action, str) for action in actions):
            rows = np.eye(len(actions))
        else:
            rows = np.array([self._vector(action) for action in actions])
        return np.einsum("ka,x->kax", rows, x).reshape(1, len(actions), -1)

    def _vector(self, item: Any) -> "Array":
        if item is None:
            return np.empty(0)
        if isinstance(item, str):
            item = {"": item}
        if isinstance(item, Mapping):
            named = {str(key): value for key, value in item.items()}
            hasher = FeatureHasher(n_features=self.n_hashed, input_type="dict")
            return hasher.transform([named]).toarray()[0]
        if isinstance(item, Real) or hasattr(item, "__len__"):
            return floats(item).ravel()  # the policy refuses what is no number
        raise ValueError(
            "a context or an action must be a number, a string, a dict or a sequence of numbers; "
            f"a {type(item).__name__} is not understood."
        )


def _equal(one: list[float] | tuple[int, ...], other: list[float] | tuple[int, ...]) -> bool:
    try:
        return bool(np.all(one == other))
    except Exception:  # objects that cannot be compared
        return False
