"""Auditing with one run: many canaries in one history of a bandit, and how many are guessed."""

from typing import Any
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..privacy import LARGEST_EPSILON, Answer, Stream, listening
from ..records import finite_numbers
from ._runs import Play
from ._tape import Recorder

TRIED = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)  # parts of the canaries that are guessed


@dataclass(frozen=True)
class OneRunBound:
    """Lower bound on epsilon from guesses about canaries in one run.

    Attributes
    ----------
    epsilon : float
    delta : float
    confidence_level : float
    canaries, guesses, correct : int
        Users of whom one of two records was taken by a fair coin; those of them about whom a guess
        was made, those with the largest scores; and how many guesses were right.
    """

    epsilon: float
    delta: float
    confidence_level: float
    canaries: int
    guesses: int
    correct: int

    def __str__(self):
        return (
            f"epsilon >= {self.epsilon:.3g} at delta = {self.delta:g}, with confidence "
            f"{self.confidence_level:g} ({self.correct} of {self.guesses} guesses right about "
            f"{self.canaries} canaries in one run)"
        )


def one_run_bound(
    canaries: Any, guesses: Any, correct: Any, delta: float, confidence_level: float = 0.95
) -> "OneRunBound":
    """Lower bound on epsilon from the number of right guesses.

    Each of m independent fair coins chooses one of two records. Let the mechanism be (epsilon,
    delta)-private, and B binomial of r trials with chance e^epsilon / (1 + e^epsilon). Then nobody
    guesses v or more of r coins right with more than the probability P(B >= v) + 2 m delta max_i
    P(v > B >= v - i) / i (Steinke, Nasr and Jagielski 2023, Theorem 5.2). The bound is the largest
    epsilon that this rules out. The proof needs that the two data sets which a coin chooses between
    are neighbours; here they differ by the replacement of one record.

    Parameters
    ----------
    canaries, guesses, correct : int
        m >= r >= v.
    delta : float in [0, 1)
    confidence_level : float in (0, 1), default=0.95

    Returns
    -------
    OneRunBound

    Examples
    --------
    >>> from skpriv.audit import one_run_bound
    >>> round(one_run_bound(1000, 100, 100, 1e-6).epsilon, 2)
    3.49
    """
    if not 0 <= correct <= guesses <= canaries:
        raise ValueError(
            f"correct={correct}, guesses={guesses} and canaries={canaries} must not decrease."
        )
    low, high = 0.0, LARGEST_EPSILON
    if _p_value(0.0, canaries, guesses, correct, delta) > 1.0 - confidence_level:
        high = 0.0
    for _ in range(40 * (high > 0.0)):
        middle = 0.5 * (low + high)
        p = _p_value(middle, canaries, guesses, correct, delta)
        low, high = (middle, high) if p < 1.0 - confidence_level else (low, middle)
    return OneRunBound(low, float(delta), float(confidence_level), canaries, guesses, correct)


def _p_value(epsilon, canaries, guesses, correct, delta):
    """Largest probability of so many right guesses under (epsilon, delta)."""
    law = stats.binom(guesses, 1.0 / (1.0 + np.exp(-epsilon)))
    steps = np.arange(1, correct + 1)
    below = np.cumsum(law.pmf(correct - steps))  # P(v > B >= v - i)
    alpha = float((below / steps).max(initial=0.0))
    return min(1.0, float(law.sf(correct - 1)) + 2.0 * canaries * delta * alpha)


def audit_one_run(
    make: Any,
    contexts: Any,
    rewards: Any,
    canaries: Any,
    *,
    delta: float,
    confidence_level: float = 0.95,
    random_state: int = 0,
) -> "OneRunBound":
    """Audit one run of a bandit policy with many canaries.

    Some users are canaries: of each, one of two opposite rewards is drawn by a fair coin. The
    policy runs once. Whoever sees its released answers scores each canary by how well the change
    that it would make, weighed by the noise, fits to them, and guesses where the scores are large.
    From the number of right guesses follows a lower bound on epsilon. It is weaker than that of
    :func:`lower_bound`, which takes thousands of runs, and it is about the very run that is made.

    Parameters
    ----------
    make : callable
        ``make()`` returns a policy.
    contexts : ndarray of shape (n_rounds, n_actions, n_features)
        Canaries disturb each other least where their features are orthogonal, and their actions
        all have the same features, so that the choice of one says nothing.
    rewards : ndarray of shape (n_rounds, n_actions)
        Rewards of the canaries: these or their negatives are given.
    canaries : ndarray of int
        Rounds of the canaries. What one user does must not change what is asked about others.
    delta : float in [0, 1)
    confidence_level : float in (0, 1), default=0.95
        Confidence level of all the numbers of guesses that are tried, together.
    random_state : int, default=0
        Seed of the coins.

    Returns
    -------
    OneRunBound

    References
    ----------
    T. Steinke, M. Nasr and M. Jagielski (2023). Privacy auditing with one (1) training run.
    NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.audit import audit_one_run
    >>> from skpriv.bandits import LinUCB
    >>> make = lambda: LinUCB(
    ...     privacy="local", epsilon=30.0, delta=1e-6, update_every=1, random_state=0
    ... )
    >>> contexts = np.eye(40)[:, None, :]
    >>> found = audit_one_run(make, contexts, np.ones((40, 1)), np.arange(40), delta=1e-6)
    >>> bool(1.0 < found.epsilon < 30.0)
    True
    """
    contexts = finite_numbers(contexts, "contexts")
    rewards = finite_numbers(rewards, "rewards").copy()
    canaries = np.asarray(canaries)
    coins = np.random.RandomState(random_state).randint(2, size=len(canaries))
    rewards[canaries[coins == 0]] *= -1.0
    recorder, play = Recorder(), _Chosen()
    with listening(recorder):
        play(make(), (contexts, rewards))
    chosen = contexts[np.arange(len(contexts)), play.actions]
    earned = np.abs(rewards[np.arange(len(contexts)), play.actions])
    scores = _scores(recorder.events, chosen, earned, canaries)
    right = (scores > 0.0) == (coins == 1)
    order = np.argsort(-np.abs(scores), kind="stable")
    return _best(right[order], delta, confidence_level)


def _best(right, delta, confidence_level):
    """Best bound of several numbers of guesses, by the union bound over these.

    Parameters
    ----------
    right : ndarray of shape (canaries,) of bool
        Whether the guess of each canary is right, the surest first.
    """
    counts = sorted({max(1, int(part * len(right))) for part in TRIED})
    level = 1.0 - (1.0 - confidence_level) / len(counts)
    bounds = [one_run_bound(len(right), r, int(right[:r].sum()), delta, level) for r in counts]
    best = max(bounds, key=lambda bound: bound.epsilon)
    return OneRunBound(
        best.epsilon, best.delta, confidence_level, best.canaries, best.guesses, best.correct
    )


class _Chosen(Play):
    """Plays, and keeps the actions of all."""

    def __init__(self):
        super().__init__(np.zeros(0, dtype=int))

    def __call__(self, policy, data):
        self.actions = super().__call__(policy, data)["actions"]
        return None


def _scores(events, rows, rewards, canaries):
    """Sum over the answers about a canary of <change, released sum> / variance.

    Reads of a stream are cumulative: the increment between two reads is about the rounds between.
    Answers of a session are about the rounds that follow those of the last one.
    """
    scores = np.zeros(len(canaries))
    starts: dict = {}
    first, session = 0, None
    for event in events:
        if event.door not in ("sum", "read") or not isinstance(event.value, Answer):
            continue
        value, n = event.value.value, event.value.n
        query = event.asked
        if isinstance(event.owner, Stream):
            before, seen, base = starts.get(id(event.owner), (0.0, 0, first))
            rounds, increment = range(base + seen, base + n), value - before
            starts[id(event.owner)] = (value, n, base)
            if event.owner.reads == event.owner.n_reads:
                first = base + n
            variance = event.owner.noise.scale**2
        else:
            if event.owner is not session:
                first, session = first + (session.n if session else 0), event.owner
            rounds, increment = range(first, first + session.n), value
            variance = event.value.noise.scale**2
        for place, user in enumerate(canaries):
            if user in rounds:
                row = rows[user : user + 1]
                up, down = (query.sum(row, sign * rewards[user : user + 1]) for sign in (1, -1))
                scores[place] += float(np.vdot(up - down, increment - (up + down) / 2.0)) / (
                    max(variance, 1e-300)
                )
    return scores
