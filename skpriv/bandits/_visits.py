"""People who come back: how many of their rounds are learned from, and from which ones."""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from hashlib import blake2b
from numbers import Number
from typing import Any

import numpy as np

from ..privacy import protecting
from ..records import public_shape

WHOLE = re.compile(r"(-?[0-9]+)\.0+", re.ASCII)  # a whole number, as text of a float


class Hashed(bytes):
    """Keyed hash of a person's name."""


def name_of(user: Any) -> bytes | None:
    """Bytes that are the same for all ways to write a person's name, or None for nobody.

    Equal numbers are one name, whatever their type: tables turn 1 into 1.0 where another name is
    missing. A text of a number is that number, which is the safer reading: two names that are
    taken for one person share the rounds of one, and one person with two names has twice as many.
    All other text stays as it is. A tuple or list is the name of its parts, and is no text. None,
    NaN and their like are nobody, and so are floats so large that whole numbers between them were
    rounded to them: whose name that was is not known.
    """
    if user is None or isinstance(user, bytes):
        return user
    if isinstance(user, tuple | list):
        parts = [part for part in map(name_of, user) if part is not None]
        if len(parts) < len(user):
            return None
        # 255 is in no text, and the lengths say where parts end
        return b"\xff" + b"".join(b"%d:%b" % (len(part), part) for part in parts)
    if not isinstance(user, str):
        try:
            if bool(user != user):  # NaN and NaT
                return None
            text = _text_of(user) if isinstance(user, Number | np.bool_) else str(user)
        except Exception:  # what cannot be compared, such as the NA of pandas
            return None
        if text is None:
            return None
        user = text
    whole = WHOLE.fullmatch(user)
    return (whole[1] if whole else user).encode(errors="surrogatepass")


def _text_of(number: Any) -> str | None:
    """One text for equal numbers; None for a float that stands for several whole numbers."""
    if isinstance(number, complex | np.complexfloating):
        if number.imag:
            return str(complex(number))
        number = number.real
    if isinstance(number, float | np.floating):
        if not abs(float(number)) < 2.0 ** (min(np.finfo(type(number)).nmant, 52) + 1):
            return None
        number = float(number)
    exact = Fraction(int(number)) if int(number) == number else Fraction(number)
    if exact.denominator == 1:
        return str(exact.numerator)
    return repr(float(exact)) if Fraction(float(exact)) == exact else str(exact)


class Visits:
    """Counts of people's rounds, by keyed hashes of their names.

    A person is learned from in at most ``most`` rounds, and at most once between two changes of the
    policy. So every round that is learned from is in another increment of a running sum, or in
    another epoch. Which rounds these are follows from the times at which the person came, and from
    nothing else; the policy plays the others all the same.

    The counts are kept where the released answers are numbered, and all copies of a policy share
    them: a backup that is restored knows of the rounds that were learned from after it was made.
    Increments of a sum and epochs have one answer whatever the number of copies, so that the rounds
    of a person in all copies together move no more of them than ``most`` rounds of one would.

    Parameters
    ----------
    most : int
    numbering : Numbering
    """

    def __init__(self, most: int, numbering: Any) -> None:
        self.most, self._key = most, secrets.token_bytes(32)
        self._numbering = numbering
        self._until = 0
        self._here: set[Any] = set()  # who was learned from since the last change

    def hashed(self, user: Any) -> Hashed | None:
        """Hash of a name, by which nobody finds the person without the key."""
        if isinstance(user, Hashed):
            return user
        name = name_of(user)
        if name is None:
            return None
        # Of 16 bytes: 1e9 people collide with a probability of about 1e-21
        return Hashed(blake2b(name, digest_size=16, key=self._key).digest())

    def admit(self, users: Any, until: int, place: int) -> tuple[np.ndarray, list]:
        """Decide from which rounds is learned, and count them before they are read.

        Parameters
        ----------
        users : sequence of shape (n_rounds,)
            Names (see `name_of`) or hashes; from a round of nobody nothing is learned.
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
            self._until, self._here = until, set()
        come: dict = {}  # person -> the first of these rounds
        for at, user in enumerate(users):
            name = self.hashed(user)
            if name is not None and name not in self._here:
                come.setdefault(name, at)
        admitted = np.zeros(len(users), dtype=bool)
        admitted[list(come.values())] = self._numbering.admit(come, place, self.most)
        names = [name for name, at in come.items() if admitted[at]]
        self._here.update(names)
        return admitted, names

    def restore(self, names: list) -> None:
        """Take back that people were in rounds which were not taken; in their place they count."""
        self._here.difference_update(names)


class LearnsFromPersons:
    """Mixin of policies whose guarantee may be that of a person, with ``max_visits``."""

    _update: Any  # (rows, rewards) of rounds that are taken in
    _visits: Any  # once it has started
    _place: Any  # number of the answer that the next rounds will be in, the same for all copies
    n_rounds_: int
    rounds_until_update_: Any

    @contextmanager
    def _accounting(self) -> Iterator[None]:
        """Charge for persons, where rounds of one person are counted."""
        most = self._max_visits
        protected = nullcontext() if most is None else protecting("", most)
        with super()._accounting(), protected:  # type: ignore[misc]
            yield

    @property
    def _max_visits(self):
        """Rounds of a person that are learned from, None where rounds are protected alone."""
        if hasattr(self, "_visits"):
            return None if self._visits is None else self._visits.most
        return getattr(self, "max_visits", None)

    def _of_persons(self, guarantee):
        """Promise to a person, of the one that is made for a round: each is another release."""
        most = self._max_visits
        return guarantee if most is None else guarantee.repeated(most)

    @property
    def _neutral_reward(self):
        """Public reward of a round that keeps its place, and from which nothing is to be learned.

        Its features are 0. What is expected of them is the offset, or nothing without an intercept,
        or else the middle of the range of the rewards.
        """
        if (offset := getattr(self, "_offset", None)) is not None:
            return offset
        holder = self if hasattr(self, "bounds_y") else getattr(self, "oracle", self)
        classes = getattr(holder, "classes", None)
        if classes is not None:  # what is no class counts for nothing
            return float(max(classes)) + 1.0
        bounds = getattr(holder, "bounds_y", None)
        if bounds is None or isinstance(bounds, str):
            return 0.0
        low, high = map(float, bounds)
        if getattr(holder, "fit_intercept", False):
            return low / 2.0 + high / 2.0
        return min(max(0.0, low), high)

    def _bounded(self, rewards):
        """Rewards inside of their public range, if there is one."""
        bounds = getattr(self, "bounds_y", None)
        return rewards if bounds is None else np.minimum(np.maximum(rewards, bounds[0]), bounds[1])

    def _update_persons(self, rows, rewards, users):
        """Take in rounds; those that are not to be learned from keep their places, and are blank.

        A part at a time in which the policy does not change: of it a person is in one round.
        """
        start = 0
        while start < len(rewards):
            until = self.rounds_until_update_
            part = slice(start, start + until)
            try:
                self._update_part(rows[part], rewards[part], users[part], until)
            except BaseException as error:
                if hasattr(error, "rounds_taken"):
                    error.rounds_taken += start
                raise
            start += until

    def _update_part(self, rows, rewards, users, until):
        """Take in rounds up to the next change of the policy, which comes after so many."""
        admitted, names = self._visits.admit(users, self.n_rounds_ + until, self._place)
        blank = np.where(admitted, rewards, self._neutral_reward)
        try:
            self._update(np.where(admitted[:, None], rows, 0.0), blank)
        except BaseException as error:
            if not getattr(error, "rounds_taken", 0):
                self._visits.restore(names)
            raise


def checked_users(users, n_rounds, max_visits):
    """A list of the people of these rounds; it says nothing of who they are."""
    if users is None:
        if max_visits is None:
            return None
        raise ValueError(f"max_visits={max_visits} needs users: who came in each round.")
    if max_visits is None:
        raise ValueError(
            "users are counted by a policy with max_visits=: how many rounds of a person it may "
            "learn from."
        )
    if public_shape(users) != (n_rounds,):
        raise ValueError(
            f"users of shape {public_shape(users)} must have shape ({n_rounds},): who came in "
            "each round."
        )
    return list(users)
