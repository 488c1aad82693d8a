"""Replay: the same answers on two neighbours, what gives the difference away, and its price.

The change of exact sums is priced under the noise that was in force; neighbours that a mechanism
tells apart best are proposed by a search.
"""

from collections.abc import Callable
from dataclasses import field
from itertools import combinations, product
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from .._linalg import lengths_of, norm_of, unwarned
from .._stored import frozen
from ..privacy import (
    LARGEST_EPSILON, Answer, Budget, Cost, ExactStream, FactorStream, GaussianNoise, GumbelNoise,
    LocalStream, SharedSumStream, ShuffleStream, Stream, amplified, amplified_epsilon, capabilities,
)  # fmt: skip
from ..records import finite_numbers
from ._runs import (
    Play, check_maker, claim_of, fit, is_policy, numbered, one_replaced, ordered, run_once,
    unfitted,
)  # fmt: skip
from ._tape import REPORTS, Player, Recorder, differing

if TYPE_CHECKING:
    from ._runs import Run
    from ._tape import Draw, Event

ORDER = {"l1": 1, "l2": 2, "linf": inf}


def size(change: Any, norm: str) -> float:
    """How large a change is, in the norm of the sensitivity."""
    return norm_of(np.ravel(change), ORDER[norm])


def event_cost(first: "Event", second: "Event", budget: Budget) -> Cost:
    """Cost of the change between two runs of one answer that is not a stream's.

    Parameters
    ----------
    first, second : Event
    budget : Budget
        The claim; only the shuffle model needs its delta.

    Returns
    -------
    Cost
    """
    # Noise that is drawn outside of a session is that of a curator.
    can = capabilities("central" if first.owner is None else first.owner.model)
    reports = first.value.n if can.reports else 1
    total = Cost()
    for before, now in zip(first.draws, second.draws, strict=True):
        if before.method in REPORTS:
            likely = first.question.likely if can.amplifies else None
            shuffle = likely and (reports, budget, likely)
            total += _reports_cost(before, now, shuffle)
        else:
            total += _draw_cost(before, now, reports)
    if not first.draws and not _same(first.value, second.value):
        return Cost(gaussian=inf)  # The answer has no noise.
    if can.amplifies and total.gaussian:
        return shuffled_cost(sqrt(total.gaussian), reports, budget, first.value.value.size)
    return total


def _same(first: Any, second: Any) -> bool:
    values = [one.value if isinstance(one, Answer) else one for one in (first, second)]
    return np.array_equal(values[0], values[1])


def _draw_cost(before: "Draw", now: "Draw", reports: int) -> Cost:
    """Cost of one draw; ``reports`` of equal noise are in the sum, and one user changes one."""
    change = now.exact - before.exact
    if not np.isfinite(change).all():
        return Cost(gaussian=inf)
    if not change.any():
        return Cost()
    noise = before.law[-1]
    if isinstance(noise, GumbelNoise):
        return noise.cost(size(change, "linf"), before.law[0])
    return GaussianNoise(noise.scale / sqrt(reports)).cost(size(change, "l2"))


def sent_cost(stream: Stream, pairs: "list[tuple[Event, Event]]", budget: Budget) -> Cost:
    """Cost of the reports that the users of a stream sent, which its reads add up."""
    likely = stream.query.likely if stream.can.amplifies else None
    shuffle = likely and (stream.batch, budget, likely)
    draws = [zip(before.draws, now.draws, strict=False) for before, now in pairs]
    return sum((_reports_cost(*draw, shuffle) for read in draws for draw in read), Cost())


def _reports_cost(before: "Draw", now: "Draw", shuffle: tuple[int, Budget, float] | None) -> Cost:
    """Cost of the pure reports that changed, of one row a user.

    A report costs the largest log ratio of its probabilities, whatever the two records are.
    """
    each = before.law[0].log_ratio
    cost = Cost.from_epsilon(each)
    if shuffle is not None:
        n, budget, likely = shuffle
        cost = _hidden(each, lambda claim: amplified_epsilon(claim, n, likely), float, budget)
    same = np.isclose(before.exact, now.exact, rtol=0.0, atol=0.0, equal_nan=True)
    return sum([cost] * int((~same).any(axis=1).sum()), Cost())


def shuffled_cost(mu: float, n: int, budget: Budget, dimension: int) -> Cost:
    """Cost at the claim's delta of one Gaussian report of this mu among n shuffled ones."""
    return _hidden(
        mu, lambda claim: amplified(claim, n, dimension=dimension).mu,
        lambda mu: Budget.from_mu(mu, budget.delta).epsilon, budget,
    )  # fmt: skip


def _hidden(
    spent: float,
    allowed: Callable[[Budget], float],
    alone: Callable[[float], float],
    budget: Budget,
) -> Cost:
    """Cost at the claim's delta of a report that others hide.

    It is the claim if the report's noise is enough for it, and no pair is told apart better than
    without a shuffler. (That a pair is closer than the worst one does not count: how well the
    others hide it depends on how far apart *they* may be.)

    Parameters
    ----------
    spent : float
        What the report costs without the others, as mu or as epsilon.
    allowed : callable
        ``allowed(claim)`` is the largest such cost for which shuffled reports keep a claim.
    alone : callable
        ``alone(spent)`` is the epsilon without a shuffler.
    budget : Budget
    """
    spent *= 1.0 - 1e-9
    high = budget.epsilon or 1e-3
    while allowed(Budget(high, budget.delta)) < spent and high < LARGEST_EPSILON:
        high *= 1.05
    return Cost(approximate=min(high, alone(spent)), delta=budget.delta)


def stream_cost(stream: Stream, changes: np.ndarray, budget: Budget) -> Cost:
    """Cost of the change of a whole stream, from the change of each of its increments.

    Parameters
    ----------
    stream : Stream
        The stream, for its kind and its noise (public).
    changes : ndarray of shape (n_reads_so_far, *shape)
        Changes of the exact sums between two reads.
    budget : Budget
        The claim.

    Returns
    -------
    Cost
    """
    if not np.any(changes):
        return Cost()
    if isinstance(stream, ExactStream) or not np.isfinite(changes).all():
        return Cost(gaussian=inf)
    noise = stream.noise
    flat = changes.reshape(len(changes), -1)
    if isinstance(stream, ShuffleStream):
        sizes = lengths_of(flat) / noise.scale
        costs = [
            shuffled_cost(mu, stream.batch, budget, flat.shape[1]) for mu in sizes[sizes > 0.0]
        ]
        return sum(costs, Cost())
    if isinstance(stream, SharedSumStream):
        return Cost.from_mu(norm_of(flat) / noise.scale)
    if isinstance(stream, LocalStream):
        return sum((noise.cost(size(change, "l2")) for change in changes if change.any()), Cost())
    if not isinstance(stream, FactorStream):
        raise TypeError(f"streams of type {type(stream).__name__} cannot be audited yet.")
    column = stream.column  # of the factor C, which is Toeplitz: noise is added to C x
    shifts = [column[k::-1] @ flat[: k + 1] for k in range(len(flat))]
    return Cost.from_mu(norm_of(shifts) / noise.scale)


@frozen
class Replay:
    """What a replay found.

    Parameters
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
        although all answers are the same: there must be none. Whatever is random without this
        package and without a seed differs, too: no answer accounts for it.
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
    differences: list[str] = field(default_factory=list)
    answers: list[tuple[str, float]] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether the cost is within the claim and nothing else differs, if anything is claimed."""
        if self.claim.epsilon == inf:
            return True
        # Conversions between budgets are rounded, by less than this part of the claim.
        return not self.differences and self.epsilon <= self.claim.epsilon * (1.0 + 1e-6)

    def __str__(self) -> str:
        cost = f"this pair costs epsilon = {self.epsilon:.4g} at delta = {self.claim.delta:g}"
        if self.claim.epsilon == inf:
            lines = [f"nothing is claimed, so that nothing can fail: {cost}; pass claim= a Budget"]
        else:
            held = "holds" if self.answers else "no answer was given, so that none was tested"
            verdict = held if self.holds else "FAILS"
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
        ``make()`` returns an unfitted estimator or a policy. If its ``random_state`` is None, a
        seed is set: public random choices must be the same in both runs.
    D, D_prime : tuple of arrays
        (X, y) for an estimator. For a policy (contexts, rewards) with rewards of all actions, of
        shape (n_rounds, n_actions), or (contexts, actions, rewards) with logged actions. The two
        differ in one record; X may be sparse. With (X, y, groups) for an estimator that takes
        ``groups``, a record is a person, who may have other rows in D_prime, more or fewer, and
        another label.
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
        The rounds of a policy have their public place in time, so the rounds of an update are
        sorted when they are handed to it. None leaves the records where they stand.

    Returns
    -------
    Replay
        The cost of this pair, and everything that differs between the two runs.

    Raises
    ------
    ValueError
        If D and D_prime differ in none or in several records (or groups), or in their shapes; or if
        both runs end with the same error, so that there is no model to compare.

    Notes
    -----
    Not compared: time, the curator's own state (open streams, rows of an open epoch), and, for a
    policy, the actions of the user who is replaced. Rows that a Pipeline reads before its last step
    are seen by no session, but what that step learns from them is an attribute, and differs. So
    does what holds noise that no session has drawn: `lower_bound` audits such a model.

    A run that refuses its rows by the one fixed sentence, after the same charge, differs by that
    alone: docs/privacy.md says so of values that are no finite numbers. Two that are refused must
    not differ at all.

    Secret random orders of the records are coupled: the second run has that of the first, of the
    same records wherever they stand now, and the record that is new has the place of the one that
    it replaces. Each run alone has a uniform order, and given the orders the two differ by one
    record in one place; docs/mathematics/accounting.md proves that what holds for each pair of
    coupled orders holds for the fits.

    Answers are listened to in the calling process and thread.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.audit import replay
    >>> from skpriv.linear_model import SSPRegressor
    >>> X, y = np.zeros((50, 1)), np.zeros(50)
    >>> other = y.copy()
    >>> other[0] = 1.0
    >>> def make():
    ...     return SSPRegressor(epsilon=1.0, data_norm=1.0, bounds_y=(-1, 1))
    >>> found = replay(make, (X, y), (X, other))
    >>> found.epsilon <= 1.0, found.differences
    (True, [])
    """
    check_maker(make, "")
    D = tuple(D)
    D_prime = tuple(D_prime)
    policy = is_policy(unfitted(make()))
    of_persons = run is None and len(D) == len(D_prime) == 3 and not policy
    replaced = one_replaced(D, D_prime, of_persons, groups)
    if policy:
        run = Play(replaced, order) if run is None else run
    elif order is not None:
        D = ordered(D, order)
        D_prime = ordered(D_prime, order)
    if of_persons:
        D, D_prime = numbered(D, D_prime)
    run = fit if run is None else run
    recorder = Recorder()
    first = run_once(make, D, run, recorder)
    player = Player(recorder)
    second = run_once(make, D_prime, run, player)
    if first.error and first.error == second.error and not first.refused:
        raise ValueError(f"both runs ended with the same error: {first.error}")
    claim = claim_of(first.model) if claim is None else claim
    differences = _differences(first, second, recorder, player)
    cost, answers = _composed(recorder.events, player.events, claim)
    return Replay(_epsilon(cost, claim), claim, cost, differences, answers)


def _differences(first: "Run", second: "Run", recorder: Recorder, player: Player) -> list[str]:
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
    changed = differing(first.leaves, second.leaves)
    return found + [f"attribute {path.lstrip('.')}" for path in changed]


def _beside_refusal(refused: "Run", other: "Run") -> list[str]:
    """Everything that one run shows beside its refusal, and the other does not."""
    found = [f"warning: {text}" for text in refused.warnings if text not in other.warnings]
    shown = {path: other.leaves[path] for path in refused.leaves if path in other.leaves}
    return found + [f"attribute {path.lstrip('.')}" for path in differing(refused.leaves, shown)]


@unwarned()  # a change may be tiny or huge
def _composed(
    first: "list[Event]", second: "list[Event]", claim: Budget
) -> tuple[Cost, list[tuple[str, float]]]:
    """Total cost of the change, and what each query would cost alone."""
    total = Cost()
    answers = []
    streams: "dict[int, list[tuple[Event, Event]]]" = {}
    for before, now in zip(first, second, strict=False):
        if isinstance(before.owner, Stream):
            streams.setdefault(id(before.owner), []).append((before, now))
        elif before.door == now.door and len(before.draws) == len(now.draws):
            cost = event_cost(before, now, _own(before.owner, claim))
            total += cost
            answers.append((before.question.name if before.question else "own report", cost))
    for pairs in streams.values():
        changes = np.array([now.pending - before.pending for before, now in pairs])
        stream = pairs[0][0].owner
        own = _own(stream, claim)
        cost = stream_cost(stream, changes, own) + sent_cost(stream, pairs, own)
        total += cost
        answers.append((f"{stream.query.name}, {len(pairs)} reads", cost))
    return total, [(name, _epsilon(cost, claim)) for name, cost in answers]


def _own(owner: Any, claim: Budget) -> Budget:
    """Budget of a session or stream: where a person has several reports, a part of the claim."""
    own = claim if owner is None else owner.report.budget
    return Budget(min(own.epsilon, claim.epsilon), min(own.delta, claim.delta))


def _epsilon(cost: Cost, claim: Budget) -> float:
    """Epsilon of a cost at the claimed delta."""
    return inf if cost.gaussian == inf else cost.epsilon(claim.delta + cost.delta)


@frozen
class Pair:
    """Two neighbours.

    Parameters
    ----------
    D, D_prime : tuple of arrays
        (X, y) of the same background; the first record differs.
    score : float
        Cost of the change by :func:`replay`.
    """

    D: tuple[Any, ...]
    D_prime: tuple[Any, ...]
    score: float


def worst_pairs(
    make: Any,
    X: Any,
    y: Any,
    *,
    data_norm: float | str = 1.0,
    row_norm: str = "l2",
    bounds_y: Any = (-1.0, 1.0),
    n_pairs: int = 3,
) -> list[Pair]:
    """Propose neighbours that are far apart: extreme records before a public background.

    Candidates are records on the edge of the public ball (or cube) with extreme targets, at the
    angles at which known sensitivities are attained, tiny ones and the zero record.

    Parameters
    ----------
    make : callable
        ``make()`` returns an unfitted estimator of this package.
    X : ndarray of shape (n, n_features)
        Background: its first record is replaced. Few records, or zeros, hide the least.
    y : ndarray of shape (n,)
        Targets of the background, in the units of ``bounds_y``.
    data_norm : float, default=1.0
        Public bound on rows.
    row_norm : {"l2", "linf"}, default="l2"
    bounds_y : (float, float), default=(-1, 1)
        Public range of the targets; candidates take both ends of it.
    n_pairs : int, default=3
        Number of pairs to return, at least 1.

    Returns
    -------
    list of Pair
        The best first.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.audit import worst_pairs
    >>> from skpriv.linear_model import SSPRegressor
    >>> best = worst_pairs(lambda: SSPRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1), random_state=0
    ... ), np.zeros((9, 1)), np.zeros(9))[0]
    >>> bool(0.9 < best.score <= 1.0)
    True
    """
    X = finite_numbers(X, "X", (None, None))
    y = finite_numbers(y, "y", X.shape[:1])
    rows = _rows(X.shape[1], data_norm, row_norm)
    found = []
    for one, other in combinations(product(rows, bounds_y), 2):
        D = _with_first(X, y, *one)
        D_prime = _with_first(X, y, *other)
        found.append(Pair(D, D_prime, _score(make, D, D_prime)))
    return sorted(found, key=lambda pair: -pair.score)[:n_pairs]


def _with_first(
    X: np.ndarray, y: np.ndarray, row: np.ndarray, target: float
) -> tuple[np.ndarray, np.ndarray]:
    """The same background with another first record."""
    return np.vstack([[row], X[1:]]), np.append(target, y[1:])


def _rows(d: int, data_norm: Any, row_norm: str) -> list[np.ndarray]:
    """Records on the edge, at several angles in the first plane; a tiny one, and zero."""
    if row_norm == "linf":
        return [data_norm * row for row in (np.ones(d), -np.ones(d), np.eye(d)[0], np.zeros(d))]
    first, *others = np.eye(d)
    rows = [first]
    if others:
        # At 60 and 90 degrees, and with the opposite row, corrected sensitivities are attained.
        rows += [0.5 * first + sqrt(0.75) * others[0], others[0], np.ones(d) / sqrt(d)]
    return [data_norm * row for row in (*rows, -first, -1e-9 * first, np.zeros(d))]


def _score(make: Callable[..., Any], D: tuple[Any, ...], D_prime: tuple[Any, ...]) -> float:
    """Replayed cost, at the budget of the estimator's parameters."""
    found = replay(make, D, D_prime)
    if not found.answers:
        raise ValueError("make() must return an estimator whose answers can be heard: of skpriv.")
    return found.epsilon
