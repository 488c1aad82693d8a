"""What all bandit policies share: checks of shapes, the round counter, the random stream."""

from abc import ABC, abstractmethod
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from .._compat import Interval
from ..privacy import Accounted

MAX_SEED = 2**31 - 1


class BasePolicy(Accounted, BaseEstimator, ABC):
    """Base class of the bandit policies; not for direct use.

    A policy has keyword-only parameters, some of which this class knows by name if a policy has
    them: ``shared`` and ``n_actions`` (see `act`), ``bounds_y`` (rewards are clipped to it) and
    ``random_state`` (of everything random that is not privacy noise).

    A subclass implements `_act` and `_update`, and may implement `_start`, which is called once,
    before the first of them, when ``n_actions_`` and ``n_features_in_`` are known. Arguments of
    the hooks have been checked; contexts are phi(x, a) of shape (n_rounds, n_actions, n_phi).

    Attributes
    ----------
    n_rounds_ : int
        Rounds that `update` has taken in.
    n_actions_ : int
    n_features_in_ : int
        Number of features of the contexts as they are passed.
    propensities_ : ndarray of shape (n_rounds,)
        Probability, given its context, of each action of the last `act`.
    """

    _parameter_constraints: ClassVar[dict] = {
        "shared": ["boolean"],
        "n_actions": [Interval(Integral, 1, None, closed="left"), None],
        "bounds_y": ["array-like"],
        "random_state": ["random_state"],
    }

    def act(self, contexts):
        """Choose an action in each of some rounds; the policy does not change between them.

        Parameters
        ----------
        contexts : array-like of shape (n_rounds, n_actions, n_features)
            Features of every action. With ``shared=False`` (n_rounds, n_features): features of
            the round, the same for all ``n_actions`` actions, each of which has its own weights.

        Returns
        -------
        actions : ndarray of shape (n_rounds,), of dtype intp
            `propensities_` has their probabilities.

        Raises
        ------
        ValueError
            If the contexts have the wrong shape or are not finite; nothing has changed then.
        """
        contexts = self._checked_contexts(contexts)
        if not hasattr(self, "n_rounds_"):
            self._first_act(contexts)
        if not len(contexts):
            self.propensities_ = np.empty(0)
            return np.empty(0, dtype=np.intp)
        actions, propensities = self._act(self._phi(contexts), self._rng)
        self.propensities_ = propensities
        return actions

    def update(self, contexts, actions, rewards):
        """Learn from the rewards of some rounds: as many at once as one likes.

        Parameters
        ----------
        contexts : array-like
            As given to `act`.
        actions : array-like of shape (n_rounds,)
            Integers from 0 to ``n_actions - 1``.
        rewards : array-like of shape (n_rounds,)
            Rewards of these actions; clipped to the declared bounds.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If `act` was never called, shapes do not fit, an action is unknown, or a reward or
            context is not finite; nothing has changed then.
        """
        if not hasattr(self, "n_rounds_"):
            raise ValueError(
                f"{type(self).__name__}.update needs rounds that were acted on: call act."
            )
        contexts = self._checked_contexts(contexts)
        actions = _checked_actions(actions, len(contexts), self.n_actions_)
        rewards = _checked_rewards(rewards, len(contexts))
        bounds = getattr(self, "bounds_y", None)
        if bounds is not None:
            rewards = np.clip(rewards, *bounds)
        if len(contexts):
            self._update(self._phi(contexts), actions, rewards)
        return self

    @property
    def rounds_until_update_(self):
        """Public number of further rounds in which the policy will not change; at least 1."""
        return 1

    @property
    @abstractmethod
    def guarantee(self):
        """What a user is promised, from what was charged: :class:`skpriv.privacy.Guarantee`."""

    def reset(self):
        """Forget everything, as `sklearn.base.clone` does, but in place.

        Privacy that was spent stays spent: what comes after the reset is charged in addition.

        Returns
        -------
        self
        """
        for name in [name for name in vars(self) if name not in self.get_params(deep=False)]:
            if not name.startswith("_skpriv"):  # accountants of another process
                delattr(self, name)
        return self

    @abstractmethod
    def _act(self, contexts, rng):
        """Return actions (dtype intp) and their propensities, both of shape (n_rounds,)."""

    @abstractmethod
    def _update(self, contexts, actions, rewards):
        """Take in at least one round, and add to ``n_rounds_``."""

    def _start(self, n_phi):
        """Make the state of a subclass; ``self._rng`` may be drawn from."""

    def _first_act(self, contexts):
        self._validate_params()
        bounds = getattr(self, "bounds_y", None)
        if bounds is not None:
            _check_bounds(bounds)
        seed, before = getattr(self, "random_state", None), set(vars(self))
        is_stream = isinstance(seed, np.random.RandomState)
        try:
            # Never NumPy's global stream, which could not be pickled along with the policy.
            self._rng: Any = seed if is_stream else np.random.RandomState(seed)
            shape = contexts.shape
            self.n_actions_ = shape[1] if self._shared else int(self.n_actions)
            self.n_features_in_ = shape[-1]
            self._start(shape[-1] * (1 if self._shared else self.n_actions_))
            self.n_rounds_ = 0
        except BaseException:
            for name in set(vars(self)) - before:
                delattr(self, name)
            raise

    @property
    def _shared(self):
        return getattr(self, "shared", True)

    def _phi(self, contexts):
        """Features phi(x, a), of shape (n_rounds, n_actions, n_phi).

        With ``shared=False``, phi(x, a) = e_a (x) x: one regression with a block an action, so
        that the privacy noise is calibrated to a change of the action too.
        """
        if self._shared:
            return contexts
        n, d = contexts.shape
        blocks = np.zeros((n, self.n_actions_, self.n_actions_, d))
        index = np.arange(self.n_actions_)
        blocks[:, index, index] = contexts[:, None, :]
        return blocks.reshape(n, self.n_actions_, self.n_actions_ * d)

    def _checked_contexts(self, contexts):
        contexts = np.asarray(contexts, dtype=np.float64)
        shape, n_actions = contexts.shape, getattr(self, "n_actions", None)
        if not self._shared:
            if n_actions is None:
                raise ValueError("shared=False needs the parameter n_actions.")
            wanted, known = "(n_rounds, n_features)", contexts.ndim == 2
        else:
            wanted, known = "(n_rounds, n_actions, n_features)", contexts.ndim == 3
            if known and n_actions is not None:
                known, wanted = shape[1] == n_actions, wanted + f" with {n_actions} actions"
        if not known or 0 in shape[1:]:
            raise ValueError(f"contexts of shape {shape} must have shape {wanted}.")
        if hasattr(self, "n_rounds_"):
            past = (self.n_actions_, self.n_features_in_)[0 if self._shared else 1 :]
            if shape[1:] != past:
                raise ValueError(
                    f"contexts of shape {shape} must have shape (n_rounds, "
                    f"{', '.join(map(str, past))}), as in the first call of act."
                )
        if not _is_finite(contexts):
            raise ValueError("contexts contain NaN or infinity.")
        return contexts


def _is_finite(array):
    """Whether all numbers are finite; of large arrays the sum tells it, nearly always."""
    if array.size > 10_000:
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(array.sum()):
                return True
    return bool(np.isfinite(array).all())


def _checked_actions(actions, n_rounds, n_actions):
    actions = np.asarray(actions)
    if actions.shape != (n_rounds,):
        raise ValueError(f"actions of shape {actions.shape} must have shape ({n_rounds},).")
    if actions.dtype.kind not in "iu" and n_rounds:
        raise ValueError(f"actions of dtype {actions.dtype} must be integers.")
    if n_rounds and not (actions.min() >= 0 and actions.max() < n_actions):
        raise ValueError(f"unknown action: actions must lie in 0, ..., {n_actions - 1}.")
    return actions.astype(np.intp, copy=False)


def _checked_rewards(rewards, n_rounds):
    rewards = np.asarray(rewards, dtype=np.float64)
    if rewards.shape != (n_rounds,):
        raise ValueError(f"rewards of shape {rewards.shape} must have shape ({n_rounds},).")
    if not np.isfinite(rewards).all():
        raise ValueError("rewards contain NaN or infinity.")
    return rewards


def _check_bounds(bounds):
    bounds = np.asarray(bounds, dtype=float)
    if bounds.shape != (2,) or not np.isfinite(bounds).all() or bounds[0] >= bounds[1]:
        raise ValueError(
            f"bounds_y={bounds!r} must be two finite numbers (low, high) with low < high: the "
            "public range of the rewards, not one read off the data."
        )
