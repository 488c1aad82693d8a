"""How a policy chooses: the actions of rounds, their probabilities, and the places of a page."""

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..._parameters import parameters
from ...records import finite, floats, silence
from ._actions import checked_available
from ._draws import by_chance, uniform
from ._run import PolicyRun

if TYPE_CHECKING:
    from ..._contracts import Array


@parameters
class ActingPolicy(PolicyRun):
    """A policy that chooses by what it has learned; see `BasePolicy`."""

    _reads_values = True  # whether actions depend on contexts and rewards

    @overload
    def act(self, contexts: Any, available: Any = None, users: Any = None) -> np.ndarray: ...

    @overload
    def act(
        self, contexts: Any, available: Any = None, users: Any = None, *, return_propensities: bool
    ) -> Any: ...

    @silence()
    def act(
        self,
        contexts: Any,
        available: Any = None,
        users: Any = None,
        *,
        return_propensities: bool = False,
    ) -> Any:
        """Choose an action in each of some rounds; the policy does not change between them.

        Parameters
        ----------
        contexts : array-like of shape (n_rounds, n_actions, n_features)
            Features of every action. Actions may come and go from call to call: it is the features
            that are learned about. With ``shared=False`` (n_rounds, n_features): features of the
            round, the same for all ``n_actions`` actions, each of which has its own weights.
        available : array-like of bool of shape (n_rounds, n_actions) or (n_actions,), default=None
            Which actions may be played; None: all. At least one in every round.
        users : sequence of shape (n_rounds,), default=None
            Who came, for policies with ``max_visits``. The action does not depend on it: `update`
            counts.
        return_propensities : bool, default=False
            Whether to return the propensities too.

        Returns
        -------
        actions : ndarray of shape (n_rounds,), of dtype intp
            `propensities_` has their probabilities.
        propensities : ndarray of shape (n_rounds,)
            Probability of each action given its context and what was available. Only with
            ``return_propensities=True``, which is safe when several threads act.

        Raises
        ------
        ValueError
            If the contexts or the mask have the wrong shape, or a round has no action; nothing has
            changed then.
        InvalidValues
            If contexts are not finite numbers: what the policy costs from its start on has been
            charged by then.
        """
        with self._turn_lock:
            if users is not None:
                self._checked_users(users, self._space.checked_shape(contexts)[0])
            phi, available = self._opened(contexts, available)
            actions, propensities = self._act(phi, available, self._rng)
            self.propensities_ = propensities
        return (actions, propensities) if return_propensities else actions

    @silence()
    def probabilities(self, contexts: Any, available: Any = None) -> np.ndarray:
        """Probability with which `act` would play each action; nothing is drawn.

        Parameters
        ----------
        contexts : array-like
            The same as for `act`.
        available : array-like of bool of shape (n_rounds, n_actions) or (n_actions,), default=None
            Which actions may be played, as for `act`; None allows all.

        Returns
        -------
        probabilities : ndarray of shape (n_rounds, n_actions)
            Given the context and what is available.

        Raises
        ------
        ValueError
            As `act`.
        """
        with self._turn_lock:
            phi, available = self._opened(contexts, available)
            return np.broadcast_to(self._quiet_chances(phi, available), phi.shape[:2]).copy()

    @silence()
    def rank(self, contexts: Any, k: int, available: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Choose the first ``k`` actions of each round, such as the places of a page.

        The first place is drawn as `act` draws; each further one as `act` would if the actions
        before it could not be played. Give the first place, and its reward, to `update`: one round
        of a user is one record.

        Parameters
        ----------
        contexts : array-like
            The same as for `act`.
        k : int
            Number of places, at most the number of available actions in any round.
        available : array-like of bool of shape (n_rounds, n_actions) or (n_actions,), default=None
            Which actions may be played, as for `act`; None allows all.

        Returns
        -------
        ranking : ndarray of shape (n_rounds, k), of dtype intp
            Different actions, the first place first.
        propensities : ndarray of shape (n_rounds, k)
            Probability of the action of each place, given its context and the places before it:
            the first column is what `act` has as ``propensities_``.

        Raises
        ------
        ValueError
            As `act`, or if a round has fewer available actions.
        """
        with self._turn_lock:
            phi, left = self._opened(contexts, available)
            n, n_actions = phi.shape[:2]
            least = n_actions if left is None else left.sum(axis=1).min(initial=n_actions)
            if k not in range(1, least + 1):
                raise ValueError(f"k={k} must be an int from 1 to the number of available actions.")
            places: list[Any] = []
            while len(places) < k:
                places.append(by_chance(self._quiet_chances(phi, left), n, self._rng))
                left = np.broadcast_to(True if left is None else left, (n, n_actions)).copy()
                left[np.arange(n), places[-1][0]] = False
        ranking, propensities = map(np.column_stack, zip(*places))
        return ranking, propensities

    def _opened(self, contexts: Any, available: Any) -> tuple[np.ndarray, None]:
        """Features of rounds and what may be played in them; the first rounds start the policy."""
        shape = self._space.checked_shape(contexts)
        n_actions = self._space.count(shape)
        available = checked_available(available, shape[0], n_actions)
        if not self._has_begun:
            self._begin(n_actions, shape[-1])
        numbers = floats(contexts)
        if self._reads_values:
            finite(numbers)
        self.n_actions_ = n_actions
        return self._phi(numbers), available

    def _act(
        self, contexts: np.ndarray, available: Any, rng: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return actions (dtype intp) and their propensities, both of shape (n_rounds,)."""
        return by_chance(self._quiet_chances(contexts, available), len(contexts), rng)

    def _quiet_chances(self, phi: np.ndarray, available: Any) -> np.ndarray:
        """The same as `_chances`, checked."""
        chosen = (self._chances if len(phi) else uniform)(phi, available)
        played = np.abs(chosen if available is None else chosen * available)
        gaps = abs(np.sum(chosen, axis=-1) - 1.0) + abs(played.sum(axis=-1) - 1.0)
        if np.shape(chosen)[1:] != phi.shape[1:2] or not (gaps < 1e-6).all():
            raise ValueError(
                f"{type(self).__name__}._choose must return the probability of each action, in an "
                "array of shape (n_rounds, n_actions): none below 0, 0 where an action is not "
                "available, and 1 in the sum of a round."
            )
        return chosen

    def _chances(self, contexts: np.ndarray, available: Any) -> np.ndarray:
        """Return probabilities of all actions, of shape (n_rounds or 1, n_actions).

        ``available`` is None or a mask (n_rounds, n_actions), with an action in every round. With 1
        for n_rounds they are those of all rounds. Before anything is learned all are equally
        likely, and then `_choose` has the same arguments.
        """
        choose = self._choose if self._has_learned else uniform
        return choose(contexts, available)

    def _choose(self, contexts: np.ndarray, available: np.ndarray | None) -> np.ndarray:
        """Return probabilities, as `_chances`, by what was learned."""
        raise NotImplementedError

    @property
    def _has_learned(self) -> bool:
        """Whether anything was learned."""
        return False

    def _phi(self, contexts: np.ndarray) -> "Array":
        """Features phi(x, a), of shape (n_rounds, n_actions, n_phi)."""
        return self._space.phi(contexts)
