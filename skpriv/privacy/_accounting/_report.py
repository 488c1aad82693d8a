"""The questions of a fit about its records, and their price."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from math import exp, isfinite, sqrt
from typing import Any

from ..._printing import Printed, Table, installed
from ..._stored import frozen, stored
from ._callers import CALLED, PIPELINE, Callers
from ._cost import Budget, Cost
from ._guarantee import Guarantee, capabilities
from ._lattice import Devices

PUBLISHED = ("size", "rows_per_unit", "person_column", "secure", "not_covered")  # by `to_dict`
HEADERS = ("query", "norm", "sensitivity", "share", "records", "noise", "scale", "mu")


def amount(cost: Cost) -> float:
    """Mu of a cost; its epsilon where a part of it is neither Gaussian nor zCDP."""
    if cost.pure or cost.approximate:
        return cost.epsilon(cost.delta)
    return sqrt(2.0 * cost.amount("zcdp"))


def _dearest(costs: list[Cost]) -> Cost:
    """The payment of the most expensive record, in one currency if some have paid in zCDP.

    (The maximum of every coordinate would add the Gaussian costs of one record to the zCDP of
    another; mu-GDP is (mu^2/2)-zCDP.)
    """
    largest = Cost.maximum(costs)
    if largest in costs or not largest.concentrated + largest.selected:
        return largest
    return Cost.from_rho(max(cost.amount("zcdp") for cost in costs))


@stored
@frozen
class ReportRow:
    """One answered query: only public parameters and noise laws, no answer.

    Parameters
    ----------
    query : str
        Name of the query.
    norm : str
        Norm in which a record moves the answer, such as "l2".
    sensitivity : float or None
        How far replacing a record moves the answer; None where several numbers stand for it.
    share : float
        Part of the session's budget, or of its users, in (0, 1].
    records : int
        Number of records in the answer.
    noise : str
        Name of the noise law.
    scale : float or None
        Scale of the noise of one coordinate, in units of the answer; None where there is none.
    cost : Cost
        What the answer costs one of its records.
    paid : Cost or None, default=None
        All that one of its records has paid by then, if known.
    """

    query: str
    norm: str
    sensitivity: float | None  # None where several numbers stand for it
    share: float
    records: int
    noise: str
    scale: float | None
    cost: Cost
    paid: Cost | None = None  # all that one of its records has paid by then, if known

    @property
    def values(self) -> list[Any]:
        """The entries of the row, in the order of ``HEADERS``."""
        return [*(getattr(self, name) for name in HEADERS[:-1]), amount(self.cost)]

    def cells(self) -> tuple[str, ...]:
        """The same as texts.

        Returns
        -------
        tuple of str
            One text for each entry of ``values``; "-" where there is none.
        """
        values = ("-" if value is None else value for value in self.values)
        return tuple(f"{v:.4g}" if isinstance(v, float) else str(v) for v in values)


@stored
@dataclass(repr=False)
class PrivacyReport(Printed):
    """The questions of a fit about its records, and their price; prints as a table, and in HTML.

    Queries that follow each other and have the same numbers are one line, with their count.

    Parameters
    ----------
    name : str
        Who asked.
    privacy : str
        The name of the privacy model.
    budget : Budget
        What one record may lose in all.
    secure : bool
        Whether the noise is cryptographic and floating-point safe (``random_state=None``).
    rows : list of ReportRow
        The queries, in order.
    disjoint : bool
        Whether each row is about records of its own, as are the phases of a bandit.
    pipeline : bool
        Whether it is about the last step of a Pipeline alone, since steps before it may have
        learned from the rows: all but those with public ranges and lists may.
    charged : Cost or None
        What accountants were charged at once; None: the total of the rows.
    passes : int or None
        How often the rows were read, which is public; None if they are in memory.
    rows_per_unit : int or None
        Rows of one person that were used at most, where the person is the record; None where
        each row is a record.
    person_column : str
        Name of the column that says whose row it is; "" where it has none.
    max_weight : float or None
        Public bound to which the weights of rows were clipped; None where there are none.
    note : str or None
        What a reader has to know of the fit, by public numbers and released answers.
    within : tuple of str
        Estimators, or parts of scikit-learn, that called the fit, and may have repeated rows or
        read them besides.
    devices : Devices or None
        Where devices add the noise: how many, and how their sum is hidden.
    simulated : bool
        Whether one draw stood for the noise of all devices, on a machine that has the rows.
    promised : Guarantee or None
        What the users of a bandit are promised by these answers; None: what one record is.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import SSPRegressor
    >>> X = np.linspace(-1.0, 1.0, 1000)[:, None]
    >>> report = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1)).fit(X, X[:, 0]).privacy_report_
    >>> report.guarantee.epsilon, report.secure
    (1.0, True)
    """

    name: str
    privacy: str
    budget: Budget
    secure: bool
    rows: list[ReportRow] = field(default_factory=list)
    disjoint: bool = False
    pipeline: bool | None = None
    charged: Cost | None = None
    passes: int | None = None
    rows_per_unit: int | None = None
    person_column: str = ""
    max_weight: float | None = None
    note: str | None = None
    within: tuple[str, ...] = ()
    devices: Devices | None = None
    simulated: bool = False
    promised: Guarantee | None = None

    def __post_init__(self) -> None:
        if self.pipeline is None:  # a saved report has its own value
            called = Callers.now()
            self.pipeline = bool(called.pipeline)
            self.within = called.within

    def add_note(self, words: str | None) -> None:
        """Append a sentence to the note; an empty one changes nothing.

        Parameters
        ----------
        words : str or None
            A sentence about public numbers and released answers.
        """
        self.note = " ".join(filter(None, (self.note, words))) or None

    @property
    def total(self) -> Cost:
        """Cost to one record: queries on the same records add up, those of disjoint ones do not."""
        if not self.rows and self.charged is not None:
            return self.charged
        paid = [row.paid for row in self.rows if row.paid is not None]
        if paid and len(paid) == len(self.rows):
            return _dearest(paid)
        costs = [row.cost for row in self.rows]
        if capabilities(self.privacy).reports or self.disjoint:
            return Cost.maximum(costs)
        return sum(costs, Cost())

    @property
    def guarantee(self) -> Guarantee:
        """The promise to one record, for what was charged: a `Guarantee`."""
        if self.promised is not None or capabilities(self.privacy).exact:
            return self.promised or Guarantee.absent()
        charged = self.total if self.charged is None else self.charged
        return Guarantee(
            self.privacy, (charged,), self.budget.delta, self.unit, devices=self.devices
        )

    @property
    def unit(self) -> str:
        """What is protected: a "record", a "user" of one round, or a "person" with all rows."""
        unit = "record" if self.rows_per_unit is None else "person"
        return unit if self.promised is None else self.promised.unit

    @property
    def size(self) -> int:
        """Public number of records, or of persons; users who answer once are in one query each."""
        answering = [row.records for row in self.rows]
        return sum(answering) if capabilities(self.privacy).reports else max(answering, default=0)

    @property
    def not_covered(self) -> list[str]:
        """Sentences about what was read or repeated outside of the fit, and is not counted."""
        said = [f"the guarantee {PIPELINE}"] if self.pipeline else []
        return said + ([CALLED.format(", ".join(self.within))] if self.within else [])

    @property
    def persons(self) -> str:
        """Who a record is, and how many rows were used; "" where each row is a record."""
        m = self.rows_per_unit
        if m is None:
            return ""
        of = f" (column {self.person_column!r})" * bool(self.person_column)
        return (
            f"a record is a person{of}: at most {m} row{'s' * (m > 1)} of each, chosen at random, "
            f"{'are' if m > 1 else 'is'} used, and rows with a value that is no finite number, "
            "once encoded, are left out"
        )

    @property
    def randomness(self) -> str:
        """The source of the noise."""
        if capabilities(self.privacy).exact:
            return "no noise was added"
        if not self.secure:
            return "reproducible noise (NumPy, from a seed): for study, not for release"
        if self.simulated:
            return "simulated: one secure draw for all devices, by a machine that has the rows"
        if self.devices is not None:
            return "secure draws (exact integers of the operating system) on each device"
        if self.rows and all(row.noise == "codebook" for row in self.rows):
            return "secure draws (exact integers of the operating system)"
        return "secure noise (exact draws with random bits of the operating system)"

    @property
    def _currency(self) -> str:
        total = self.total
        return "epsilon" if total.pure or total.approximate else "mu"

    @property
    def _legend(self) -> str:
        """The meaning of the columns of the table."""
        reports = capabilities(self.privacy).reports
        costs = self._currency
        adds = "" if reports or self.disjoint or costs != "mu" else ", whose squares add up"
        part = "users, each of whom answers one query" if reports else "budget"
        many = "(x k): asked k times, each time with these numbers; "
        many = many if len(self._printed) < len(self.rows) else ""
        return (
            f"{many}share: part of the {part}; scale: size of the noise, its standard deviation if "
            f"it is Gaussian; {costs}: cost{adds}"
        )

    @property
    def _printed(self) -> list[tuple[str, ...]]:
        """Rows as texts; rows that print alike and follow each other are one, with their number."""
        alike = [(cells, len([*rows])) for cells, rows in groupby(row.cells() for row in self.rows)]
        return [
            (f"{query} (x {number})" if number > 1 else query, *rest)
            for (query, *rest), number in alike
        ]

    def to_frame(self) -> Any:
        """Return the queries as a pandas data frame, one a row, with numbers as numbers.

        Returns
        -------
        pandas.DataFrame
            A data frame with the columns of the printed table; the last is ``mu``, or ``epsilon``
            where a cost is not Gaussian.
        """
        return installed("pandas", "data").DataFrame(self._mechanisms, columns=self._columns)

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee and the queries as plain values, for JSON and for those who check.

        Returns
        -------
        dict
            "epsilon" (None without privacy), "delta", "model", "unit", "neighbours", "size"
            (records or persons), "rows_per_unit", "person_column", "secure", "not_covered" and
            "mechanisms": of each query its name, norm, sensitivity, share, records, noise, scale,
            and the mu or epsilon that it cost.
        """
        promised = self.guarantee
        return {
            "epsilon": promised.epsilon if promised.private else None,
            "delta": promised.delta,
            **{name: getattr(promised, name) for name in ("model", "unit", "neighbours")},
            **{name: getattr(self, name) for name in PUBLISHED},
            "mechanisms": self._mechanisms if promised.private else [],
        }

    @property
    def _mechanisms(self) -> list[dict[str, Any]]:
        """The rows as dictionaries of plain values."""
        return [dict(zip(self._columns, row.values, strict=True)) for row in self.rows]

    @property
    def _columns(self) -> tuple[str, ...]:
        return (*HEADERS[:-1], self._currency)

    def to_dp_event(self) -> Any:
        """Return what one record paid as an event of the package dp_accounting.

        Returns
        -------
        dp_accounting.ComposedDpEvent
            An event for accountants of ``NeighboringRelation.REPLACE_ONE``. Gaussian and
            zero-concentrated parts are as they are, a pure epsilon is the randomised response that
            dominates it.

        Raises
        ------
        ValueError
            If a cost is only known as (epsilon, delta), as that of shuffled reports is, or without
            privacy.
        """
        dp_accounting = installed("dp_accounting", "accounting", "to_dp_event")
        paid = self.total if self.charged is None else self.charged
        if paid.approximate or not isfinite(self.guarantee.epsilon):
            raise ValueError(
                f"privacy={self.privacy!r} has no event of dp_accounting: only epsilon and delta "
                "are known of it. Take to_dict()."
            )
        events = []
        if paid.gaussian:
            # For dp_accounting, replacing a record doubles the sensitivity.
            events.append(dp_accounting.GaussianDpEvent(2.0 * paid.gaussian**-0.5))
        if rho := paid.concentrated + paid.selected:
            events.append(dp_accounting.ZCDpEvent(rho, 0.0))
        if paid.pure:
            events.append(dp_accounting.RandomizedResponseDpEvent(2.0 / (1.0 + exp(paid.pure)), 2))
        return dp_accounting.ComposedDpEvent(events)

    def _parts(self) -> Iterator[Any]:
        yield f"{self.name}: {self.guarantee}"
        if self.persons:
            yield self.persons
        if self.max_weight is not None:
            yield f"weights of rows are clipped to [0, {self.max_weight:g}], which is public"
        yield Table(self._columns, self._printed, left=len(HEADERS))
        if self.rows:
            yield self._legend
        yield f"total {self._currency} = {amount(self.total):.4g}; {self.randomness}"
        if self.passes is not None:
            yield f"passes over the rows: {self.passes}"
        if self.note:
            yield self.note
        yield from self.not_covered
