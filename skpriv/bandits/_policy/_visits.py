"""People who come back: how many of their rounds are learned from, and from which ones."""

from hashlib import blake2b
from typing import Any

import numpy as np

from ..._stored import stored_in_policies
from ...privacy import Hashed
from ...records import name_of


@stored_in_policies
class Visits:
    """Counts of people's rounds, by keyed hashes of their names.

    A person is learned from in at most ``max_visits`` rounds, and at most once between two changes
    of the policy. So every round that is learned from is in another increment of a running sum, or
    in another epoch. Which rounds these are follows from the times at which the person came, and
    from nothing else; the policy plays the others all the same.

    The counts are kept where the released answers are numbered, and all copies of a policy share
    them: a backup that is restored knows of the rounds that were learned from after it was made.
    Increments of a sum and epochs have one answer whatever the number of copies, so that the rounds
    of a person in all copies together move no more of them than ``max_visits`` rounds of one copy.

    Parameters
    ----------
    max_visits : int
    numbering : Numbering
    """

    def __init__(self, max_visits: int, numbering: Any) -> None:
        self.max_visits = max_visits
        self._numbering = numbering
        self._until = 0
        self._here: Any = set()  # people who were learned from since the policy changed

    def hashed(self, user: Any) -> Hashed | None:
        """Hash of a name, by which nobody finds the person without the key."""
        if isinstance(user, Hashed):
            return user
        name = name_of(user)
        if name is None:
            return None
        # With 16 bytes, two of 1e9 people have one hash with a probability of about 1e-21.
        return Hashed(blake2b(name, digest_size=16, key=self._numbering.key).digest())

    def admit(self, users: Any, until: int, place: int) -> tuple[np.ndarray, list[Hashed]]:
        """Decide from which rounds is learned, and count them before they are read.

        Parameters
        ----------
        users : sequence of shape (n_rounds,)
            Names (see :func:`skpriv.records.name_of`) or hashes; rounds of nobody are not learned.
        until : int
            Public: number of the round after which the policy changes.
        place : int
            Public: number of the answer that will be made of these rounds, the same in all copies.

        Returns
        -------
        admitted : ndarray of bool of shape (n_rounds,)
        names : list
            The hashes of those who were admitted, for `restore`.
        """
        if until != self._until:
            self._here = set()  # first: if nothing follows, it is made again
            self._until = until
        come: dict[Hashed, int] = {}  # the first of these rounds of each person
        for at, user in enumerate(users):
            name = self.hashed(user)
            if name is not None and name not in self._here:
                come.setdefault(name, at)
        admitted = np.zeros(len(users), bool)
        admitted[list(come.values())] = self._numbering.admit(come, place, self.max_visits)
        names = [name for name, at in come.items() if admitted[at]]
        self._here.update(names)
        return admitted, names

    def restore(self, names: list[Hashed]) -> None:
        """Take back visits of rounds that were not taken in; a second try of them is free."""
        self._here.difference_update(names)
