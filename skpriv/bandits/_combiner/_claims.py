"""Who acted for the users of a combiner, what they report, and what its policies may claim."""

from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np

from ...privacy import ROUNDING, Query
from .._ucb._online_lin_ucb import OnlineLinUCB

NO_PERSONS = (
    "BanditCombiner protects single rounds and counts nobody: the m rounds of a person could be "
    "with any of its policies, and no smaller price is known for that than m rounds with every one "
    "of them. Leave max_visits out of its policies, and users out of act and update. "
    "user_guarantee(m) says what those are promised who are in m rounds."
)


@dataclass(frozen=True)
class RewardQuery(Query):
    """Sum of rewards, clipped and scaled to [-1, 1]; replacing one moves it by at most 2.

    What is not a number counts as the middle of the range.
    """

    low: float
    high: float
    name: str = "reward"
    shape: tuple = (1,)
    sensitivity: float = 2.0 * ROUNDING

    def sum(self, X, y):
        """Exact sum over a chunk of rewards; the rows are not used."""
        # Halves first: a range may be wider than the largest number.
        width = self.high / 2.0 - self.low / 2.0
        scaled = (np.clip(y, self.low, self.high) / 2.0 - self.low / 2.0) / width * 2.0 - 1.0
        return np.array([np.clip(np.nan_to_num(scaled, nan=0.0), -1.0, 1.0).sum()])


def over_eigenvalues(d, constant, failure, parameters):
    """Claims, targets and policies of Theorem 4.1; see `BanditCombiner.over_eigenvalues`.

    Returns
    -------
    (ndarray of shape (n_policies, 2), ndarray of shape (n_policies,), list of policies)
        (C_i, alpha_i), R_i, and those who claim it.
    """
    epsilon, T = parameters["epsilon"], float(parameters["horizon"])
    powers = np.array([0.75, 0.5])
    least = T**-0.125
    guesses = least * 2.0 ** np.arange(1, 1 + int(np.log2(1.0 / least)))  # of policies 2, 3, ...
    scale = constant * log(T) ** 1.5
    first = scale * sqrt(d) * (epsilon / least + 1.0) / (epsilon / least)
    C = np.concatenate([[first], scale * sqrt(d) / (epsilon * guesses)])
    alpha = np.where(np.arange(len(C)) == 0, *powers)
    others = epsilon / (scale * sqrt(d * T))
    eta = np.full(len(C), others)
    eta[0] = epsilon / least / (sqrt(d * T) * (scale * epsilon / least + 1.0))
    ratio = (1.0 - alpha) / alpha
    level = log(T**3 * len(C) / failure)
    targets = (
        C * T**alpha
        + ((1.0 - alpha) / alpha) ** ratio * (1.0 + alpha) ** (1.0 / alpha)
        * C ** (1.0 / alpha) * T * eta**ratio
        + 288.0 * level * T * eta
        + (1.0 / eta).sum() - 1.0 / eta
    )  # fmt: skip
    # Phases of twice the length, for eigenvalues below all guesses: the paper's Algorithm 7.
    policies = [OnlineLinUCB(anytime=True, **parameters)]
    policies += [OnlineLinUCB(anytime=False, **parameters) for _ in guesses]
    return np.column_stack([C, alpha]), targets, policies


class ActedBy:
    """Rounds that were acted on and did not come back, in order, by the policy that acted."""

    def __init__(self) -> None:
        self._runs: list = []  # [policy, rounds]

    def add(self, player: int, n: int) -> None:
        """Note that a policy acted in n rounds."""
        if self._runs and self._runs[-1][0] == player:
            self._runs[-1][1] += n
        else:
            self._runs.append([player, n])

    def first(self, n: int, otherwise: int) -> np.ndarray:
        """Who acted in the first n rounds, and another policy in those beyond all of them."""
        found = [np.full(min(count, n), player) for player, count in self._runs[:n]]
        return np.concatenate([*found, np.full(n, otherwise)])[:n]

    def remove(self, n: int) -> None:
        """Take in that the first n rounds came back."""
        while n and self._runs:
            taken = min(n, self._runs[0][1])
            n -= taken
            self._runs[0][1] -= taken
            if not self._runs[0][1]:
                self._runs.pop(0)


def given_players(players: Any, n: int, n_policies: int) -> np.ndarray:
    """Who acted, as it was given and checked."""
    players = np.asarray(players)
    known = players.shape == (n,) and players.dtype.kind in "iu"
    if not known or ((players < 0) | (players >= n_policies)).any():
        raise ValueError(f"players must be indices of the {n_policies} policies, of shape ({n},).")
    return players
