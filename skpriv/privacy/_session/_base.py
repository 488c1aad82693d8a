"""Sessions: the only door to private rows.

A session adds up what each record has used of its budget, also where questions are about subsets of
the records. Random parts of its rows are `Pieces` of one order, and its records may be `Groups` of
rows.
"""

import os
from abc import ABC, abstractmethod
from contextlib import nullcontext
from functools import wraps
from threading import RLock
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, cast

import numpy as np

from ..._parameters import of_numbers
from ...exceptions import PrivacyError
from ...records import PersonRows, Rows, silence
from .._accounting._callers import Callers
from .._accounting._cost import SHARE_SLACK, Cost
from .._accounting._guarantee import (
    Capabilities, Trust, check_gaussian, models_that, state,
)  # fmt: skip
from .._accounting._report import PrivacyReport, ReportRow
from .._ledger._accountant import charge
from .._ledger._context import protecting, unit_now
from .._noise._laws import NoiseSource, door
from .._query import Answer, Query, reordered
from .._stream import Stream
from ._groups import FilledPlaces, Groups
from ._pieces import Piece, Pieces

if TYPE_CHECKING:
    from ..._contracts import F
    from .._accounting._cost import Budget
    from .._noise._laws import GumbelNoise, Noise
    from .._query import Procedure

    # What is asked of a session: it has a name, a norm and a sensitivity.
    Question: TypeAlias = Query | Procedure | Stream


class Slot(NamedTuple):
    """The share that a query may use of each record, and what the record may have used before.

    Attributes
    ----------
    share : float
        Share of the whole session.
    start, stop : float
        What a record that is asked may have used before, and afterwards.
    paid : Cost
        What it may have paid before.
    piece : Piece or None
        Where the records that are asked are in the session's order; None is all of them.
    earlier : dict
        What all earlier questions of the session have used.
    """

    share: float
    start: float
    stop: float
    paid: Cost
    piece: "Piece | None"
    earlier: "dict[Piece | None, tuple[float, Cost]]"


def one_at_a_time(method: "F") -> "F":
    """Decorate a method that asks: two threads would find the same share free, and both take it.

    So would a process and its fork, which is refused before it waits for a thread that it does not
    have. Nobody hears a warning, since that would tell of a value.
    """

    def refuse_fork(session: "Session") -> None:
        if os.getpid() != session._process:
            raise PrivacyError("this session was copied by a fork: only the original one answers.")

    @wraps(method)
    def locked(self: "Session", *arguments: Any, **named: Any) -> Any:
        refuse_fork(self)
        with self._lock, silence():
            answer = method(self, *arguments, **named)
        refuse_fork(self)  # a query may have made it
        return answer

    return cast("F", locked)


def check_share(query: Any, share: float, used: float) -> float:
    """What was used after a question of this share; what exceeds the whole is refused."""
    stop = used + float(share)
    if not used < stop <= 1.0 + SHARE_SLACK:
        raise PrivacyError(
            f"share={share} of query {query.name!r} must be above 0, and at most what is left of "
            f"the session or part ({max(1.0 - used, 0.0):.4g}): shares add up to at most 1."
        )
    return stop


# Fraction of the budget for the number of rows that persons have. The number that is used is the
# released one plus so many deviations of its noise, so that it is too small in one of 30,000 fits.
PLACES_SHARE = 0.01
PLACES_SURE = 4.0


class Session(ABC):
    """Answers the queries of one fit under one privacy model.

    Opening a session charges the whole budget to every active accountant, before any row is read.
    The shares of the queries then divide the budget (or the users), and add up to at most one for
    every record. A session cannot be copied, pickled or forked: a copy would answer once more for
    the same charge.

    Parameters
    ----------
    rows : skpriv.records.Rows
        The private rows, from which the session alone reads.
    budget : Budget
        What one record may lose in the whole session.
    random_state : None, int or RandomState
        None draws secure noise; see :class:`skpriv.privacy.NoiseSource`.
    name : str
        Who asks, for reports and accountants.
    currency : {"gdp", "zcdp", "pure"}
        What the shares divide: mu^2 (only Gaussian answers, which compose exactly), rho
        (selections too), or epsilon itself (pure noise only, for ``delta=0``).
    smallest_share : float
        The smallest share that will be asked for: too few records for it are refused here, before
        anything is charged.
    groups : Groups or None
        The person of each row, who then is the record; None: each row is a record.

    Attributes
    ----------
    n : int
        Public number of records.
    n_jobs : int or None
        Threads that work for it, as in joblib.
    trust : Trust
        Who is trusted, and with what budget.
    """

    model: str
    capabilities: ClassVar[Capabilities]
    running_sums: ClassVar[type[Stream] | None] = None  # the kind of stream, if there is one
    pending: Any = None  # a sum since the last answer, which streams have

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "model" in cls.__dict__:  # a class states the capabilities of a model that it names
            state(cls.model, cls.__dict__.get("capabilities"))

    def __init__(
        self,
        rows: Rows,
        budget: "Budget",
        random_state: Any = None,
        name: str = "session",
        *,
        currency: str = "gdp",
        smallest_share: float = 1.0,
        groups: Groups | None = None,
    ) -> None:
        self._currency = currency
        self.persons = None if groups is None else groups.largest
        if groups is not None:
            groups.check(rows, self.model, currency)
        self._check(budget, rows.n, smallest_share)
        self.trust = Trust(self.model, budget)
        # In another order of the rows a sum is rounded otherwise, and may move by a bit more than
        # the sensitivity. A user who answers alone has no such sum. How many rows a person has is
        # private, so that the largest number that may be used takes its place.
        most_rows = rows.n if groups is None else groups.n * groups.largest
        self._reordered = reordered(most_rows) if self.capabilities.curator else 1.0
        price = self._price(budget)
        self._whole_amount = price.amount(currency)  # what the shares divide
        called = Callers.now()
        with nullcontext() if groups is None else protecting(groups.name, groups.largest):
            column = unit_now().rpartition(":")[0]  # of "column:rows", "" where rows are protected
            if not rows.paid_for:
                if not self.capabilities.exact:
                    unit = "record" if groups is None else "person"
                    called.warn_of_budget(budget, rows.n if groups is None else groups.n, unit)
                charge(price, name, lineage=rows.lineage)
        self._budget = budget
        self._source = NoiseSource(random_state)
        if groups is not None:
            rows = PersonRows(
                rows, groups.codes, groups.largest, self._source.permutation, groups.change
            )
        self._rows = rows
        self.n = rows.n
        self.n_jobs = rows.n_jobs
        self._passes = rows.passes or 0  # passes that were made before this session
        self._lock = RLock()
        self._process = os.getpid()
        # Highest share and cost of a record of each piece (None: of all); each question makes a new
        # dictionary.
        self._stacked: dict[Piece | None, tuple[float, Cost]] = {}
        # Without privacy the order of the rows is fixed, so that every fit is the same.
        fixed = self.capabilities.exact and random_state is None
        order = NoiseSource(0) if fixed else self._source
        self._pieces = Pieces(rows, order, self.capabilities.curator)
        self._unit = 1.0  # fraction of the whole session that a share of 1 stands for
        self.report = PrivacyReport(
            name, self.model, budget, self._source.secure, charged=price, person_column=column,
            rows_per_unit=self.persons, pipeline=bool(called.pipeline), within=called.within,
        )  # fmt: skip
        self._filled = 1.0  # fraction of the places of persons that have a row, rounded up
        if groups is not None:
            self._count_places()

    def piece(self, fraction: float) -> Piece | None:
        """Secret random piece of the records, for queries that need not see all of them.

        All pieces of a session are the first records of one random order, so that a smaller piece
        lies inside a larger one. The order is drawn by the session, and nobody ever sees it: a
        choice by position, or a random one that is known, would let a record that changes its
        place in the table move others into the piece or out of it (docs/privacy.md).

        Parameters
        ----------
        fraction : float
            Public part of the records.

        Returns
        -------
        Piece or None
            A handle that is passed on as ``subset``; its length is public. None is all records:
            where users answer for themselves, where rows have no fixed order, and from a fraction
            of 1 on.
        """
        return self._pieces.prefix(0, self.n, fraction)

    @property
    def used(self) -> float:
        """Largest share that a record may have used."""
        return self._used(None)[0]

    @door
    @one_at_a_time
    def sum(self, query: Query, share: float, subset: Piece | None = None) -> Answer:
        """Noisy sum of a query over the records, for a share of the resource.

        Parameters
        ----------
        query : Query
            The sum that is asked for.
        share : float in (0, 1]
            Where users answer once (local and shuffle), the part of the users of the subset.
        subset : None or Piece, default=None
            A part of the records (see ``part``); None is all. Shares of disjoint pieces do not add
            up, those of pieces with a record in common do.

        Returns
        -------
        Answer
            Its ``value`` over its ``n`` is a mean over rows. ``n`` is the number of records in the
            sum, or of persons this number times the released part of their places that has a row.
        """
        slot = self._slot(query, share, subset)
        if query.norm == "linf":
            raise PrivacyError(
                f"query {query.name!r} bounds its coordinates one by one: it is for selections, "
                "and a sum of it would need a bound in l2."
            )
        law = self._law(query, slot)
        paid = self._pay(query, slot, law)
        answer = self._answer(query, slot, law)
        count = int(answer.n) if self.persons is None else self._count(slot)
        self._report(query, slot, count, answer.noise, paid)
        return answer

    @door
    @one_at_a_time
    def top(self, query: Query, k: int, share: float, subset: Piece | None = None) -> np.ndarray:
        """Indices of the k largest coordinates, in absolute value, of a bounded sum.

        Parameters
        ----------
        query : Query
            A query with a "linf" sensitivity.
        k : int
            Number of coordinates (public).
        share : float in (0, 1]
            Part of the budget; where users answer once, part of the users.
        subset : None or Piece, default=None
            The same as for ``sum``.

        Returns
        -------
        ndarray of shape (k,)
            Indices of the coordinates, of dtype int.

        Raises
        ------
        PrivacyError
            If the session's currency is not "zcdp", in which alone selections are priced, or if
            nobody is trusted to select.
        """
        slot = self._slot(query, share, subset)
        self._trusted("selects", query)
        if self.persons is not None:
            raise PrivacyError("a selection is about records alone, and not about persons.")
        law = self._selection_law(query, k, slot)
        paid = self._pay(query, slot, law, k)
        exact = self._pieces.all_rows.sum(query, self._pieces.subset_or_all(slot.piece))
        indices = self._source.top(abs(exact), k, law)
        self._report(query, slot, self._count(slot), law, paid)
        return indices

    @door
    @one_at_a_time
    def release(self, procedure: "Procedure", share: float, subset: Piece | None = None) -> Answer:
        """Noisy output of a procedure that needs many exact sums (output perturbation).

        Parameters
        ----------
        procedure : Procedure
            What is computed from exact sums.
        share : float in (0, 1]
            Part of the budget; where users answer once, part of the users.
        subset : None or Piece, default=None
            The same as for ``sum``.

        Returns
        -------
        Answer
            The noisy output and the law of its noise.

        Raises
        ------
        PrivacyError
            If the session's currency is "pure", or if nobody is trusted to run procedures.
        """
        slot = self._slot(procedure, share, subset)
        self._trusted("perturbs", procedure)
        law = self._law(procedure, slot)
        paid = self._pay(procedure, slot, law)
        rows = self._pieces.all_rows.select(self._pieces.subset_or_all(slot.piece))
        answer = self._noisy(procedure.run(rows), slot, law)
        self._report(procedure, slot, self._count(slot), law, paid)
        return answer

    @of_numbers
    def stream(self, query: Query, horizon: int, *, batch: int | None = None) -> Stream:
        """Running sum of a query over records that arrive later, for the whole session.

        Parameters
        ----------
        query : Query
            The sum of which the stream keeps a running value.
        horizon : int
            How often the sum may be read at most (public).
        batch : int, default=None
            Public number of records between two reads; the shuffle and aggregate models need it.

        Returns
        -------
        Stream
            A running sum that takes records and answers reads.
        """
        begun: Stream = self.begin(stream_of(type(self), query, self._budget, horizon, batch))
        return begun

    @one_at_a_time
    def begin(self, stream: Any) -> Any:
        """Calibrate and book a stream: nothing else can be asked of its records.

        Parameters
        ----------
        stream : Stream
            A stream that has not begun.

        Returns
        -------
        Stream
            The same stream, ready for records.

        Raises
        ------
        PrivacyError
            If the session protects persons, or its users have answered.
        """
        if self.persons is not None:
            raise PrivacyError("a stream protects records alone, and not persons.")
        if self.capabilities.reports and self.used:
            raise PrivacyError("users answer once, and some have: open a session for the stream.")
        slot = self._slot(stream, 1.0)
        law = self._stream_law(stream, slot)
        paid = self._pay(stream, slot, law)
        self._report(stream, slot, stream.n_reads * stream.batch, law, paid)
        return stream.begin(law, paid[0], self.report, self._source)

    def noise(self, query: "Query | Procedure", share: float, subset: Piece | None = None) -> Any:
        """Law of the noise that the answer to a query would have for this share (public).

        Parameters
        ----------
        query : Query
            The query that would be asked.
        share : float in (0, 1]
            Part of the budget, or where users answer once of the users.
        subset : None or Piece, default=None
            A part of the records; None is all.

        Returns
        -------
        GaussianNoise, or what the query brings
            The law, from public numbers alone.
        """
        slot = self._next_slot(share, subset)
        law = self._law(query, slot)
        return law.summed(self._count(slot)) if self.capabilities.reports else law

    def records(self, share: float, subset: Piece | None = None) -> float:
        """Number of records, as far as it is known, that a query for this share would sum over.

        Parameters
        ----------
        share : float in (0, 1]
            Part of the budget, or where users answer once of the users.
        subset : None or Piece, default=None
            A part of the records; None is all.

        Returns
        -------
        float
            The public number of records; of persons, the released number of their rows.
        """
        return self._size(self._next_slot(share, subset))

    def rebase(self) -> None:
        """From now on a share of 1 means all that is left of the session.

        For a step before the proper algorithm, such as choosing bounds, whose shares then need not
        know of it.
        """
        self._unit = max(0.0, 1.0 - self.used)

    def _check(self, budget: "Budget", n: int, smallest_share: float) -> None:
        if self._currency != "pure":
            check_gaussian(budget)

    def _next_slot(self, share: float, subset: Piece | None = None) -> Slot:
        """Slot that a query for this share would get."""
        if not isinstance(subset, Piece | None):
            raise PrivacyError(
                "a part of the records must be a random one, which is secret under a curator: pass "
                "as subset what session.piece(fraction) returns, and no positions. A record that "
                "changes its place in the table would move others into a choice by position, or "
                "out of it."
            )
        self._pieces.subset_or_all(subset)  # refuses what is no piece of these records
        share = float(share) * self._unit  # in few digits a sum of shares would stand still
        start, paid = self._used(subset)
        return Slot(share, start, start + share, paid, subset, self._stacked)

    def _used(self, piece: Piece | None) -> tuple[float, Cost]:
        """The most that a record of a piece may have used, and paid; None is all records.

        Queries are stacked: one starts above the highest of the earlier ones that has a record in
        common with it. By induction no record has used more than the top of the last query that it
        was in, so that tops of at most 1 keep every record within its budget (parallel composition:
        the answers about other records are not changed by it). A partition into disjoint pieces may
        hence use the whole budget on each of them. The costs that were paid are stacked in the same
        way.
        """
        found = [
            used
            for other, used in self._stacked.items()
            if piece is None or other is None or len(other.common(piece))
        ]
        if len(found) < 2:
            return found[0] if found else (0.0, Cost())
        shares, costs = zip(*found)
        return max(shares), Cost.maximum(costs)

    def _slot(self, query: "Question", share: float, subset: Piece | None = None) -> Slot:
        """Slot of a query that is asked now; what exceeds the session is refused."""
        slot = self._next_slot(share, subset)
        check_share(query, slot.share, slot.start)
        return slot

    def _pay(self, question: "Question", slot: Slot, law: Any, *times: int) -> tuple[Cost, Cost]:
        """Take the share, before a row is read; return (cost, what a record has paid by then).

        The cost is that of one draw of the law, or of several ``times``. A cost that the session's
        currency cannot price is refused, and so is a law that costs more than the share, whoever
        wrote it: of users who answer once, more than the whole.
        """
        cost = law.cost(self._change(question), *times)
        foreign = cost.approximate + cost.delta
        if self._currency == "pure":
            foreign += cost.gaussian + cost.concentrated + cost.selected
        else:
            foreign += cost.pure
        if self._currency == "gdp":
            foreign += cost.concentrated + cost.selected
        if foreign and not self.capabilities.exact:
            raise PrivacyError(
                f"a session in the currency {self._currency!r} cannot answer {question.name!r}, "
                f"whose cost is {cost}: shares of different currencies do not add up."
            )
        if cost.amount(self._currency) > self._largest_cost(question, slot) * (1.0 + SHARE_SLACK):
            raise PrivacyError(f"the noise of {question.name!r} costs {cost}, more than its share.")
        if self.capabilities.amplifies:  # of shuffled reports only (epsilon, delta) is known
            cost = Cost.from_budget(self._budget)
        if slot.earlier is not self._stacked:  # the query has asked the session
            raise PrivacyError("a session is not asked while it prepares another answer.")
        paid = cost if self.capabilities.reports else slot.paid + cost
        # It lies above the last one about the same piece, whose place it takes
        self._stacked = slot.earlier | {slot.piece: (slot.stop, paid)}
        return cost, paid

    def _largest_cost(self, question: "Question", slot: Slot) -> float:
        """Largest cost of one draw of the law, in the session's currency."""
        return self._whole_amount * (1.0 if self.capabilities.reports else slot.share)

    def _noisy(self, exact: np.ndarray, slot: Slot, noise: "Noise") -> Answer:
        """Answer of somebody who sees an exact value, and then adds noise."""
        value = self._source.add(exact, noise)
        return Answer(value, self._size(slot), noise, counted=self.persons is None)

    def _report(
        self,
        question: "Question",
        slot: Slot,
        n: int,
        law: "Noise | GumbelNoise",
        paid: tuple[Cost, Cost],
    ) -> None:
        row = ReportRow(
            question.name, question.norm, question.sensitivity, slot.share, n, str(law), law.scale,
            *paid,
        )  # fmt: skip
        self.report.rows.append(row)
        if self._rows.passes is not None:
            self.report.passes = self._rows.passes - self._passes

    def _count(self, slot: Slot) -> int:
        """Public number of records that a query sums over."""
        return self.n if slot.piece is None else len(slot.piece)

    def _size(self, slot: Slot) -> float:
        """Divisor that turns the sum of a query into a mean over rows.

        Persons count by the part of their places that has a row, as far as that is released.
        """
        count = self._count(slot)
        return count if self.persons is None else max(count * self._filled, 1.0)

    def _count_places(self) -> None:
        """Release how many of the places of persons have a row, of which they may have fewer."""
        answer = self.sum(FilledPlaces(), PLACES_SHARE)
        found = float(answer.value[0]) + PLACES_SURE * answer.noise.scale
        self._filled = min(max(found, 1.0) / max(self.n, 1), 1.0)
        self.rebase()

    def use_fewer_rows(self) -> None:
        """Use no more rows of a person than persons have in the mean, by the released number.

        Which ones is random, and the number of rows that are used is released anew.
        """
        rows: Any = self._rows
        fewer = ceil(self._filled * rows.largest)
        if fewer < rows.largest:
            rows.use(fewer)
            self.persons = fewer
            self._count_places()
            self.report.add_note(
                f"At most {fewer} rows of each person were used, at random: as many as persons "
                "have in the mean. Noise would hide slopes with more."
            )

    def _change(self, question: "Question") -> float:
        """Largest change of an answer when one record is replaced, in whatever order they come."""
        return float(question.sensitivity) * self._reordered

    def _price(self, budget: "Budget") -> Cost:
        """The charge of the whole session."""
        return self.trust.price(self._currency)

    @abstractmethod
    def _law(self, question: Any, slot: Slot) -> Any:
        """Law of one draw of noise: an answer's or output's, or a report's where users add it."""

    def _stream_law(self, stream: Stream, slot: Slot) -> Any:
        """Law of one draw of a stream's noise, of a model that has running sums."""
        raise NotImplementedError

    @abstractmethod
    def _answer(self, query: Query, slot: Slot, law: Any) -> Answer:
        """Return the answer; everything has been paid for."""

    def _selection_law(self, query: Query, k: int, slot: Slot) -> Any:
        """Law of a selection, of a model that selects."""
        raise NotImplementedError

    def _trusted(self, ability: str, question: "Query | Procedure") -> None:
        """Refuse what nobody is trusted to do: a capability, which is a verb."""
        if not getattr(self.capabilities, ability):
            raise PrivacyError(
                f"privacy={self.model!r} has no curator that {ability}, which {question.name!r} "
                f"needs: use {models_that(ability)}."
            )

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise PrivacyError(
            "a session is not copied or pickled: a copy would answer again for the same charge. "
            "Keep its report and its answers, which are released."
        )


def stream_of(
    session: type[Session],
    query: Query,
    budget: "Budget",
    horizon: int,
    batch: int | None,
    span: int | None = None,
) -> Stream:
    """Stream that a session has not begun: what is public has been checked.

    Parameters
    ----------
    session : type
        Session class of the privacy model, whose ``running_sums`` are the kind of stream.
    query : Query
    budget : Budget
        What one record may lose.
    horizon : int
        How often the sum may be read at most.
    batch : int, default=None
        Public number of records between two reads.
    span : int, default=None
        How many reads a curator's noise is the least for.

    Returns
    -------
    Stream
    """
    if session.running_sums is None:
        raise PrivacyError(f"privacy={session.model!r} has no running sums.")
    stream = session.running_sums(query, horizon, batch, span)
    stream.check(budget)
    return stream
