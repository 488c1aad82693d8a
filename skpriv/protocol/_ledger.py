"""The epsilon that a device has given away: each answer is charged to a ledger before it is
drawn."""

from math import inf
from typing import Any

from .._sqlite import legible
from ..exceptions import PrivacyError
from ..privacy import Budget, Cost, Ledger, Limit
from ..records import check_length

ROUNDS_TABLE = (
    "CREATE TABLE IF NOT EXISTS rounds (collection TEXT, place INTEGER, round TEXT NOT NULL, "
    "attempts INTEGER NOT NULL, PRIMARY KEY (collection, place))"
)
# Most attempts at one round, each of which is charged. After three failures another collection is
# begun, which counts on fewer users.
MOST_ATTEMPTS = 3


class DeviceLedger:
    """A device's own memory of its answers, which :func:`skpriv.protocol.report` asks first.

    For any behaviour of servers, all that they learn of a record together is (epsilon,
    delta)-differentially private by the numbers that are given here, as long as every answer of the
    device goes through one ledger. A device computes what an answer costs by itself, and believes
    no task.

    Parameters
    ----------
    path : str or path-like
        A file of the device: a ledger as those of :class:`skpriv.BudgetAccountant`.
    epsilon : float > 0
        What the user has agreed to lose in all answers together.
    delta : float in [0, 1), default=0.0
        If it is 0 only pure reports fit, whose epsilons add up. Sums of ``privacy="aggregate"``
        need more; then all that is answered adds up in mu^2 of Gaussian DP.
    n_min : int, default=1
        How many devices a sum must count on for noise at least, by the task's own number.
    set_aside : (float, float), default=None
        The part (epsilon, delta) for the delta of shuffled shares. None: what the first answer
        needs. It stands in the file from then on.

    Attributes
    ----------
    spent : Budget
        The sum of the answers so far.
    charges : list of Charge
        One line of each answer; what was paid with an earlier one costs nothing.

    Notes
    -----
    A collection of several rounds is charged as a whole, with its first answer, so that no later
    round fails for lack of budget. Rounds are answered in ascending order along one past. A further
    attempt at the round that was answered last is charged as that round once more, and there are at
    most three.

    Once the first answer is written down, the total in the file binds, too: an answer must fit into
    that one and into the one that is given here.

    Examples
    --------
    >>> import os, tempfile
    >>> from skpriv.linear_model import SSPRegressor
    >>> from skpriv.protocol import Collector, DeviceLedger, report
    >>> model = SSPRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1),
    ...     epsilon=4.0, delta=0.0, privacy="local", channel="codebook",
    ... )
    >>> collector = Collector(model, n_users=3, seed=0, n_features=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = DeviceLedger(os.path.join(folder, "mine.db"), epsilon=5.0)
    ...     answer = report(collector.task, [0.3, 0.1], 0.5, user=1, ledger=ledger)
    ...     print(ledger)
    1 answers, epsilon=4 of 5
    """

    def __init__(
        self,
        path: Any,
        epsilon: float,
        delta: float = 0.0,
        n_min: int = 1,
        *,
        set_aside: tuple[float, float] | None = None,
    ) -> None:
        self.budget = Budget(epsilon, delta)
        self.n_min = check_length(n_min, "n_min")
        if not 0.0 < self.budget.epsilon < inf:
            raise ValueError(f"epsilon={epsilon!r} must be positive and finite.")
        self._aside = None if set_aside is None else Budget(*set_aside)
        self._ledger = Ledger(path)
        with self._ledger.transaction() as held:
            held.connection.execute(ROUNDS_TABLE)

    @property
    def spent(self) -> Budget:
        """The sum of the answers so far."""
        limit = self._ledger.bind() or self._limit(Budget(0.0))
        return limit.as_budget(self._ledger.total(limit.currency))

    @property
    def charges(self) -> list[Any]:
        """The answers, the oldest first."""
        return self._ledger.charges()

    @property
    def n_answers(self) -> int:
        """Number of answers."""
        return len(self.charges)

    def __str__(self) -> str:
        total = min(self.budget.epsilon, (self._ledger.bind() or self).budget.epsilon)
        at = f" at delta={self.budget.delta:g}" if self.budget.delta else ""
        spent = f"{self.spent.epsilon:g} of {total:g}"
        return f"{self.n_answers} answers, epsilon={spent}{at}"

    def _limit(self, aside: Budget) -> Limit:
        return Limit(self.budget, "gdp", aside)

    def charge(
        self,
        collection: str,
        cost: Cost,
        rounds: list[str] | None = None,
        *,
        again: Cost | None = None,
        adding: int | None = None,
    ) -> None:
        """Write down an answer that is about to be drawn.

        Parameters
        ----------
        collection : str
            Hash of the task, or of what is fixed before the first round of a collection.
        cost : Cost
            Cost of all rounds of the collection.
        rounds : list of str, default=None
            Hashes of its rounds so far, of which the last one is to be answered. None: it has one.
        again : Cost, default=None
            Cost of another answer to the round that was answered last. None: there is no other.
        adding : int, default=None
            How many devices are counted on for noise.

        Raises
        ------
        PrivacyError
            If the round was answered, a later one was or another task of it, or if fewer devices
            than ``n_min`` are counted on.
        BudgetExceeded
            If the user has not agreed to lose so much. In all cases nothing was written or drawn.
        """
        if adding is not None and adding < self.n_min:
            raise PrivacyError(
                f"the task counts on {adding} devices for noise, and the user on n_min="
                f"{self.n_min} of them at least."
            )
        rounds = [collection] if rounds is None else rounds
        last = len(rounds) - 1
        with self._ledger.transaction() as held, legible(self._ledger.path):
            found = held.connection.execute(
                "SELECT place, round, attempts FROM rounds WHERE collection = ?", (collection,)
            ).fetchall()
            if any(place > last for place, *_ in found):
                raise PrivacyError("this device has answered a later round: not an earlier one.")
            if any(rounds[place] != name for place, name, _ in found):
                raise PrivacyError("this device has answered another task of one of these rounds.")
            attempts = sum(number for place, _, number in found if place == last)
            if attempts and (again is None or attempts >= MOST_ATTEMPTS):
                raise PrivacyError("this device has answered the task as often as it may.")
            price = again if attempts and again is not None else Cost() if found else cost
            name = f"round {last + 1} of collection {collection[:8]}, attempt {attempts + 1}"
            # Both this object's total and the file's must be able to pay.
            aside = self._aside or Budget(0.0, min(price.delta, self.budget.delta))
            own = self._limit(held.bind(self._limit(aside)).set_aside)
            held.check(own, name, price, (), "let the user agree to lose more")
            held.record(name, price, ())
            held.connection.execute(
                "INSERT INTO rounds VALUES (?, ?, ?, ?) ON CONFLICT (collection, place) "
                "DO UPDATE SET round = excluded.round, attempts = excluded.attempts",
                (collection, last, rounds[-1], attempts + 1),
            )
