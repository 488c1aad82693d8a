"""Replay: the same answers on two neighbours, and what gives the difference away."""

from typing import Any
from dataclasses import dataclass, field
from math import inf

import numpy as np

from ..privacy import Budget, Cost, Stream
from ..records import codes
from ._costs import event_cost, sent_cost, stream_cost
from ._runs import (
    Play,
    check_maker,
    claim_of,
    fit,
    is_policy,
    ordered,
    replaced_persons,
    replaced_rows,
    run_once,
    unfitted,
)
from ._snapshot import differing
from ._tape import Player, Recorder

CONVERSION_SLACK = 1e-6  # relative, of the claim: conversions of budgets are rounded


@dataclass(frozen=True)
class Replay:
    """What a replay found.

    Attributes
    ----------
    epsilon : float
        The epsilon of the change between the two data sets, all answers composed, at the claimed
        delta: what this pair costs, given all the answers. It must not exceed the claim.
    claim : Budget
        What the estimator or policy claims.
    cost : Cost
        The same before it was converted to epsilon.
    differences : list of str
        Every attribute, warning, error, query count, shape, sensitivity or noise scale that differs
        although all answers are the same: there must be none.
    unstable : list of str
        Attributes that differ when the first data set is played back to itself, such as names drawn
        at random: nothing is said about them.
    answers : list of (str, float)
        Each query with the epsilon that the change in it would cost alone, at the claimed delta;
        the reads of a stream are one entry.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.audit import replay
    >>> from skpriv.linear_model import SSPRegressor
    >>> X, y = np.zeros((50, 2)), np.ones(50)
    >>> other = X.copy()
    >>> other[0] = 1.0
    >>> found = replay(lambda: SSPRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1), epsilon=1.0
    ... ), (X, y), (other, y))
    >>> found.holds, found.differences
    (True, [])
    """

    epsilon: float
    claim: Budget
    cost: Cost
    differences: list = field(default_factory=list)
    unstable: list = field(default_factory=list)
    answers: list = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether the cost is within the claim and nothing else differs, if anything is claimed."""
        if self.claim.epsilon == inf:
            return True
        return not self.differences and self.epsilon <= self.claim.epsilon * (
            1.0 + CONVERSION_SLACK
        )

    def __str__(self):
        cost = f"this pair costs epsilon = {self.epsilon:.4g} at delta = {self.claim.delta:g}"
        if self.claim.epsilon == inf:
            lines = [f"nothing is claimed, so that nothing can fail: {cost}; pass claim= a Budget"]
        else:
            verdict = "holds" if self.holds else "FAILS"
            lines = [f"{verdict}: {cost}, of a claim of {self.claim.epsilon:.4g}"]
        lines += [f"  {name}: {epsilon:.4g}" for name, epsilon in self.answers]
        return "\n".join(lines + [f"  differs: {text}" for text in self.differences])


def replay(
    make: Any,
    D: Any,
    D_prime: Any,
    *,
    run: Any = None,
    claim: Any = None,
    groups: Any = None,
    order: Any = None,
) -> "Replay":
    """Run on D, then on a neighbour with every released answer forced to D's.

    All that is seen of a private fit must follow from its noisy answers. So if the answers are the
    same, nothing else may differ, and what the pair costs is what the change of each exact sum
    costs under the noise that was in force. Both are computed, not estimated: a leak is found in
    one run, however small its probability would be.

    Parameters
    ----------
    make : callable
        ``make()`` returns an unfitted estimator or a policy. Where its ``random_state`` is None, a
        seed is set: public random choices must be the same in both runs.
    D, D_prime : tuple of arrays
        (X, y) for an estimator. For a policy (contexts, rewards) with rewards of all actions, of
        shape (n_rounds, n_actions), or (contexts, actions, rewards) with logged actions. The two
        differ in one record; X may be sparse. With (X, y, groups) for an estimator that takes
        ``groups``, a record is a person, who may have other rows in D_prime, more or fewer.
    run : callable, default=None
        ``run(model, data)`` drives the model and returns a transcript of what others see beside it.
        None fits an estimator, and plays a policy round by round.
    claim : Budget, default=None
        None reads it off the model.
    groups : array-like of shape (n_records,), default=None
        The person to whom each record belongs, where an estimator protects all rows of a person:
        then D and D_prime differ in rows of one group, and ``run`` hands the same groups to
        ``fit``.
    order : callable, default=None
        ``order(*D)`` returns a key for each record, by which each of the two data sets is sorted
        before it is run: ``lambda X, y: y``, for example. The record that is replaced then moves
        all others between its two places. Data sets are multisets, so that this must not cost more.
        Of a policy, whose rounds have their public place in time, the rounds of an update are
        sorted when they are handed to it. None leaves the records where they stand.

    Returns
    -------
    Replay

    Raises
    ------
    ValueError
        If D and D_prime differ in none or in several records (or groups), or in their shapes.

    Notes
    -----
    Not compared: time, the curator's own state (open streams, rows of an open epoch), and, for a
    policy, the actions of the user who is replaced. Rows that a Pipeline reads before its last step
    are seen by no session, but what that step learns from them is an attribute, and differs.

    A run that refuses its rows by the one fixed sentence, after the same charge, differs by that
    alone: docs/privacy.md says so of values that are no finite numbers. Two that are refused must
    not differ at all.

    Secret random orders of the records are coupled: the second run has that of the first, of the
    same records wherever they stand now, and the record that is new has the place of the one that
    it replaces. Each run alone has a uniform order, and given the orders the two differ by one
    record in one place; docs/mathematics/accounting.md proves that what holds for each pair of
    coupled orders holds for the fits.

    Answers are listened to in the calling process and thread.
    """
    check_maker(make)
    D, D_prime = tuple(D), tuple(D_prime)
    of_persons = run is None and len(D) == len(D_prime) == 3
    if of_persons and not is_policy(unfitted(make())):
        replaced, groups = np.arange(0), D[2]
        units = replaced_persons(D, D_prime)
    else:
        replaced = replaced_rows(D, D_prime)
        units = len(replaced) if groups is None else len(np.unique(codes(groups)[replaced]))
    if units != 1:
        what = "records" if groups is None else "groups"
        raise ValueError(f"D and D_prime differ in {units} {what}, and not in one.")
    if is_policy(unfitted(make())):
        run = Play(replaced, order) if run is None else run
    elif order is not None:
        D, D_prime = ordered(D, order), ordered(D_prime, order)
    run = fit if run is None else run
    recorder = Recorder()
    first = run_once(make, D, run, recorder)
    again = run_once(make, D, run, Player(recorder))
    player = Player(recorder)
    second = run_once(make, D_prime, run, player)

    claim = claim_of(first.model) if claim is None else claim
    unstable = differing(first.leaves, again.leaves)
    differences = _differences(first, second, recorder, player, set(unstable))
    cost, answers = _composed(recorder.events, player.events, claim)
    epsilon = inf if cost.gaussian == inf else cost.epsilon(claim.delta + cost.delta)
    return Replay(epsilon, claim, cost, differences, unstable, answers)


def _differences(first, second, recorder, player, unstable):
    """All that differs although the answers are the same, in words without values."""
    found = [] if first.refused else list(player.mismatches)
    if recorder.charges != player.charges:
        found.append(f"charges: {player.charges}, were {recorder.charges}")
    if first.refused != second.refused:
        return found + _beside_refusal(*sorted((first, second), key=lambda run: not run.refused))
    if len(player.events) < len(recorder.events):
        found.append(f"{len(player.events)} answers instead of {len(recorder.events)}")
    if first.error != second.error:
        found.append(f"error: {second.error}, was {first.error}")
    if first.warnings != second.warnings:
        found.append(f"warnings: {second.warnings}, were {first.warnings}")
    changed = [path for path in differing(first.leaves, second.leaves) if path not in unstable]
    return found + [f"attribute {path.lstrip('.')}" for path in changed]


def _beside_refusal(refused, other):
    """What one run shows beside its refusal, that the other does not."""
    found = [f"warning: {text}" for text in refused.warnings if text not in other.warnings]
    shown = {path: other.leaves[path] for path in refused.leaves if path in other.leaves}
    return found + [f"attribute {path.lstrip('.')}" for path in differing(refused.leaves, shown)]


def _composed(first, second, claim):
    """Total cost of the change, and what each query would cost alone."""
    total, answers = Cost(), []
    streams: dict = {}
    for before, now in zip(first, second, strict=False):
        if isinstance(before.owner, Stream):
            streams.setdefault(id(before.owner), []).append((before, now))
        elif before.door == now.door and len(before.draws) == len(now.draws):
            cost = event_cost(before, now, claim)
            total += cost
            answers.append((before.asked.name if before.asked else "own report", cost))
    for pairs in streams.values():
        changes = np.array([now.pending - before.pending for before, now in pairs])
        stream = pairs[0][0].owner
        own = stream.report.budget  # a part of the claim where a person has several reports
        own = Budget(min(own.epsilon, claim.epsilon), min(own.delta, claim.delta))
        cost = stream_cost(stream, changes, own) + sent_cost(stream, pairs, own)
        total += cost
        answers.append((f"{stream.query.name}, {len(pairs)} reads", cost))
    return total, [(name, _alone(cost, claim)) for name, cost in answers]


def _alone(cost, claim):
    return inf if cost.gaussian == inf else cost.epsilon(claim.delta + cost.delta)
