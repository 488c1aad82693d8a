"""The state of a policy in mid-run: its begin, its end, its copies, and whom it protects."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from typing import Any, Self, cast

import numpy as np
from sklearn.base import BaseEstimator

from ..._estimation._public_maps import column_bounds
from ..._linalg import check_memory
from ..._parameters import RandomState, attribute, parameters
from ..._stored import set_state
from ...privacy import Accounted, Guarantee, Numbering, TurnLock, protecting
from ._actions import ActionSpace
from ._state import save
from ._visits import Visits

MAX_SEED = np.iinfo(np.int32).max


@parameters
class PolicyRun(Accounted, BaseEstimator, ABC):
    """A policy from its first round on; see `BasePolicy`, which acts and learns.

    Parameters
    ----------
    random_state : None, int or RandomState, default=None
        Seed of the actions.
    """

    random_state: RandomState = None

    # Parameters that only some policies have, and what they are for all others
    shared = True
    n_actions = max_visits = bounds_y = cast(Any, None)

    _numbering: Any = attribute()  # of the answers, which all copies share
    _visits: Any = attribute()  # of persons, if they are counted
    _starts_as_it_acts = False  # whether `act` may begin, and charge, some part of it
    # Whether rounds are learned from when their rewards come
    _out_of_order: bool = attribute(False)

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The promise to a user, from what was charged: :class:`skpriv.privacy.Guarantee`."""

    @property
    def notes_(self) -> list[str]:
        """What the released answers say of bounds that do not suit, and of weights not known.

        Sentences, if rows have nearly all the length ``data_norm``, one feature has all of their
        length, rewards use a small part of ``bounds_y``, or noise hides the weights of an action or
        a feature. They follow from released sums, the law of their noise and public numbers, and
        cost no privacy. A report of running sums ends with them. The policies of a combiner have
        their own.

        Each is said once noise does not explain it. For `LinUCB` with four shared weights, a
        curator and epsilon 1 that is after about 100,000 rounds whose rewards use little of
        ``bounds_y``, and after 200,000 whose rewards are all beyond its end: no sentence is no
        proof that the bounds suit.
        """
        return []

    @property
    def rounds_until_update_(self) -> int:
        """Public number of further rounds in which the policy will not change; at least 1."""
        return 1

    def user_guarantee(self, max_visits: int) -> Guarantee:
        """The promise to users who may be in up to ``max_visits`` rounds.

        Parameters
        ----------
        max_visits : int
            Public. A user who comes more often must be played without being learned from: leave
            those rounds out of `update` by a rule that depends on the numbers of visits alone, and
            take these for public too.

        Returns
        -------
        Guarantee
            The same as `guarantee`, with the privacy losses of all visits together.
        """
        return self.guarantee.visited(max_visits)

    def reset(self) -> Self:
        """Forget everything, as `sklearn.base.clone` does, but in place.

        Privacy that was spent stays spent: what comes after the reset is charged in addition.

        Returns
        -------
        self
        """
        for name in vars(self).keys() - self.get_params(deep=False).keys():
            # The turns of threads, and accountants of another process, stay.
            if name != "_lock" and not name.startswith("_skpriv"):
                delattr(self, name)
        return self

    def save(self, path: Any, *, raw_path: Any = None) -> None:
        """Write the policy, as it is now, to a file from which :func:`skpriv.bandits.load` reads.

        Parameters
        ----------
        path : str or path-like
            File to write; a file of this name is replaced.
        raw_path : str or path-like, default=None
            Another file for what an open epoch must keep: the records, or their exact sums, that no
            released answer covers yet; and for who came in it, and the propensities of the last
            `act`, which tell of its contexts. This is **raw data**, to be kept as the data is kept.
            None writes it into the one file, which then is raw data too.

        Raises
        ------
        ValueError
            If the policy has not acted yet: there is nothing to keep.
        """
        if not self._has_begun:
            raise ValueError(f"this {type(self).__name__} has not acted: there is nothing to keep.")
        with self._turn_lock:
            save(self, path, raw_path)

    def _start(self, n_phi: int) -> Any:
        """Make the state of a subclass; ``self._rng`` may be drawn from."""

    def _begin(self, n_actions: Any, n_features: Any) -> None:
        """Check the parameters and make the state; nothing has changed if that raises."""
        self._validate_params()
        if self.bounds_y is not None:
            column_bounds(self.bounds_y, [], 1, "bounds_y")
        seed: Any = self.random_state
        max_visits = self._max_visits
        before = set(vars(self))
        try:
            # Never NumPy's global stream, which could not be pickled along with the policy.
            ours = isinstance(seed, np.random.RandomState)
            self._rng: Any = seed if ours else np.random.RandomState(seed)
            self.n_actions_ = n_actions
            self.n_features_in_ = n_features
            if self._numbering is None:
                self._numbering = Numbering()
            people = self._numbering.part("people")
            self._visits = None if max_visits is None else Visits(int(max_visits), people)
            n_phi = n_features * (1 if self.shared else n_actions)
            check_memory(n_phi * n_actions)  # of the features of all actions in one round
            self._start(n_phi)
            self.n_rounds_ = 0
        except BaseException:
            for name in set(vars(self)) - before:
                delattr(self, name)
            raise

    @property
    def _has_begun(self) -> bool:
        """Whether the policy has the state of a run, whose start was charged."""
        return hasattr(self, "n_rounds_")

    @property
    def _turn_lock(self) -> Any:
        """Lock of this object, which its copies do not share; whoever comes first makes it."""
        return self.__dict__.setdefault("_lock", TurnLock())

    def __getstate__(self) -> Any:
        # A copy that is begun in the midst of an update waits for its end, and every answer from
        # then on is written down where the copy finds it.
        with self._turn_lock:
            if self._numbering is not None:
                self._numbering.share()
            return deepcopy(super().__getstate__())

    def __copy__(self) -> Self:
        # A shallow copy would share sums and records, and draw answers of its own
        return deepcopy(self)

    def _noise_state(self) -> np.random.RandomState | None:
        """Generator of reproducible privacy noise, or None for secure noise."""
        if self.random_state is None:
            return None
        return np.random.RandomState(self._rng.randint(MAX_SEED))

    @contextmanager
    def _accounting(self) -> Iterator[None]:
        """Charge for persons, where rounds of one person are counted."""
        max_visits = self._max_visits
        protected = nullcontext() if max_visits is None else protecting("", max_visits)
        with super()._accounting(), protected:
            yield

    @property
    def _max_visits(self) -> Any:
        """Rounds of a person that are learned from, None where rounds are protected alone."""
        if self._visits is not None:
            return self._visits.max_visits
        return None if self._has_begun else self.max_visits

    @property
    def _one_mechanism(self) -> bool:
        """Whether all rounds of a person are in one release, and not each in one of its own."""
        return False

    def _of_persons(self, guarantee: Guarantee) -> Guarantee:
        """Promise to a person, by the one that is made for a round or for all of the rounds."""
        if self._max_visits is None:
            return guarantee
        promise = guarantee.of_person if self._one_mechanism else guarantee.repeated
        return promise(self._max_visits)

    @property
    def _can_be_late(self) -> bool:
        """Whether rewards may come in any order."""
        return False

    @property
    def _answer_number(self) -> Any:
        """Number of the answer that the next rounds will be in, the same in all copies."""
        return None

    def _acting(self) -> Self:
        """Policy that acts as this one does while it learns, with turns of its own.

        Learning replaces what is read by those who act, and does not change it.
        """
        acting = object.__new__(type(self))
        set_state(acting, **{**vars(self), "_lock": TurnLock()})
        return acting

    @property
    def _space(self) -> Any:
        """What contexts look like: their features, and the number of actions."""
        begun = self._has_begun
        n_actions = self.n_actions_ if begun and not self.shared else self.n_actions
        if not self.shared and n_actions is None:
            raise ValueError("shared=False needs the parameter n_actions.")
        return ActionSpace(self.shared, n_actions or 0, self.n_features_in_ if begun else None)
