"""Recording what a run releases, playing it back into another run, and comparing what both hold."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..privacy import Answer, Hashed, NoiseSource, Numbering, Raw, Session, Stream, TurnLock
from ..records import PersonRows, Subset

if TYPE_CHECKING:
    from .._contracts import Array
    from ..privacy import Cost
    from ..records import Rows

# The values that the curator keeps and never hands out: open sums, and the rows of an open epoch.
# Pickles of open policies hold them, as docs/privacy.md says.
# Hashes of people have a key that no other run has.
CURATORS = (Stream, Session, NoiseSource, TurnLock, Raw, Hashed)
PLAIN = (str, bytes, bool, int, float, complex, np.generic, type(None))
# Random names by which runs and copies are told apart: public, and never equal.
NAMES = {Numbering: frozenset({"_name"}), object: frozenset({"_partition"})}


def snapshot(value: object) -> dict[str, Any]:
    """Return a mapping from the path of each leaf to its value.

    Parameters
    ----------
    value : object
        A fitted estimator, a policy, or anything that holds arrays, numbers and texts.

    Returns
    -------
    dict of str to object
    """
    leaves: dict[str, Any] = {}
    _collect(value, "", leaves, {})
    return leaves


def _collect(value: Any, path: str, leaves: dict[str, Any], seen: dict[int, str]) -> None:
    # A function without attributes has no state
    if isinstance(value, (*CURATORS, type)) or callable(value) and _attributes(value) is None:
        leaves[path] = type(value).__name__
    elif isinstance(value, PLAIN):
        leaves[path] = value
    elif isinstance(value, np.random.RandomState):
        leaves[path] = repr(value.get_state(legacy=True))
    elif isinstance(value, np.ndarray) and value.dtype != object:
        leaves[path] = value.copy()
    elif id(value) in seen:
        leaves[path] = f"see {seen[id(value)]}"
    else:
        seen[id(value)] = path
        for name, item in _items(value):
            _collect(item, f"{path}{name}", leaves, seen)


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of what a container or object holds."""
    if isinstance(value, dict):
        keys = [key if isinstance(key, str | int | tuple) else i for i, key in enumerate(value)]
        yield from zip((f"[{key!r}]" for key in keys), value.values(), strict=True)
    elif isinstance(value, list | tuple | set | frozenset | np.ndarray):
        yield "[length]", len(value)
        yield from ((f"[{i}]", item) for i, item in enumerate(value))
    elif (attributes := _attributes(value)) is not None:
        own = [names for kind, names in NAMES.items() if isinstance(value, kind)]
        hidden = frozenset().union(*own)
        for name, item in attributes.items():
            if name not in hidden:
                yield f".{name}", item
    else:
        yield " as text", repr(value)


def _attributes(value: object) -> dict[str, Any] | None:
    """Attributes of an object by their names; None of one that keeps none, such as a ufunc."""
    with suppress(TypeError):
        return vars(value)
    return None


def differing(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """Paths whose values differ, or which only one of the two snapshots has."""
    return [
        path
        for path in dict.fromkeys([*first, *second])
        if path not in first or path not in second or not _equal(first[path], second[path])
    ]


def _equal(first: Any, second: Any) -> bool:
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        one, other = ((x.shape, x.dtype, x.tobytes()) for x in map(np.asarray, (first, second)))
        return one == other
    return type(first) is type(second) and (first == second or first != first and second != second)


REPORTS = frozenset({"lifted_reports", "codebook_reports", "responses"})


@dataclass
class Draw:
    """One draw of noise: the exact value, the law, and what came out."""

    method: str
    exact: np.ndarray
    law: tuple[Any, ...]
    value: Any

    @property
    def facts(self) -> dict[str, Any]:
        """The values that must not depend on private rows."""
        return {
            "draw": self.method,
            "shape of the noise": np.shape(self.exact),
            "noise": tuple(map(repr, self.law)),
        }


@dataclass
class Event:
    """One answer of a session or stream, with the draws that it is made of; or a draw of its own.

    Attributes
    ----------
    door : str
        "sum", "top", "release", "read", or "draw" for noise that was added outside of these.
    owner : object
        The session or stream; None for a draw of its own.
    question : Query, Procedure or None
    arguments : tuple
        Share, and number of coordinates to be named.
    pending : ndarray or None
        Increment of a stream: exact sum of the records since the last read.
    draws : list of Draw
    value : Answer, ndarray or None
        What was released.
    """

    door: str
    owner: Any = None
    question: Any = None
    arguments: tuple[Any, ...] = ()
    pending: Any = None
    draws: list[Draw] = field(default_factory=list)
    value: Any = None

    @property
    def facts(self) -> dict[str, Any]:
        """The values that must not depend on private rows, by name."""
        facts: dict[str, Any] = {"kind of answer": self.door}
        if self.question is not None:
            facts["model"] = self.owner.model
            facts["query"] = (type(self.question).__name__, self.question.name)
            facts["norm"] = self.question.norm
            facts["sensitivity"] = float(self.question.sensitivity)
            facts["share"] = repr(self.arguments)
        if isinstance(self.value, Answer):
            facts["number of records"] = self.value.n
            facts["noise of the answer"] = repr(self.value.noise)
            facts["shape of the answer"] = np.shape(self.value.value)
        elif self.value is not None:
            facts["shape of the answer"] = np.shape(self.value)
        for i, draw in enumerate(self.draws):
            facts.update({f"{name} ({i})" if i else name: v for name, v in draw.facts.items()})
        return facts


@dataclass(eq=False)
class Carried:
    """Order of a first run, carried along to where its records stand in a second one.

    Two data sets that differ in one record are compared under coupled orders: the record that
    replaces another one takes its place in the order, and all others keep theirs. Each of the two
    orders is uniform then (docs/mathematics/accounting.md).

    Parameters
    ----------
    order : SeededOrder
        Order of the first run.
    places : ndarray of shape (n_records,)
        Where each record of the first run stands in the second one.
    indexed : bool
        Whether records can be taken in any order: that in which the first run took them.
    """

    _order: Any
    _places: np.ndarray
    _indexed: bool

    @classmethod
    def along(cls, order: Any, records: list[bytes], now: list[bytes], indexed: bool) -> Any:
        """The order itself if no record has moved, so that it is the same to the last bit."""
        places = _moved(records, now)
        return order if (places == np.arange(len(places))).all() else cls(order, places, indexed)

    def users(self, start: int, stop: int) -> Subset:
        """Records from one place of the order up to another."""
        positions = self._places[self._order.users(start, stop).positions]
        return Subset(positions if self._indexed else np.sort(positions))

    def dealt(self, start: int, stop: int) -> "Array":
        """Positions of the records from one place of the order up to another, as they come."""
        return self._places[self._order.dealt(start, stop)]


def _records(rows: "Rows") -> list[bytes]:
    """Each record as bytes, by which it is found again where records stand in another order."""
    if not rows.at_hand or isinstance(rows, PersonRows):  # Persons are in a coupled order.
        return []
    try:
        found = rows.each(lambda X, y: X if y is None else np.column_stack([X, y]))
        return [row.tobytes() for chunk in found for row in chunk]
    except Exception:  # Records that are no numbers are taken to stand where they stood.
        return []


def _moved(before: list[bytes], now: list[bytes]) -> np.ndarray:
    """The place where each record of the first run stands now: where it was, if it is there still.

    The record that was replaced is where the only one stands that was not there before.
    """
    places = np.arange(len(before))
    changed = [i for i in range(len(before)) if before[i] != now[i]]
    standing: dict[bytes, list[int]] = {}
    for place in reversed(changed):
        standing.setdefault(now[place], []).append(place)
    gone = []
    for i in changed:
        if standing.get(before[i]):
            places[i] = standing[before[i]].pop()
        else:
            gone.append(i)
    places[gone] = sorted(place for left in standing.values() for place in left)
    return places


class Recorder:
    """Listener of the first run: it keeps every answer and draw, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.choices: list[Any] = []
        self.orders: list[Any] = []
        self.charges: list[Any] = []
        self._open: Event | None = None

    def answer(
        self,
        door: str,
        owner: Any,
        question: Any,
        arguments: tuple[Any, ...],
        pending: np.ndarray,
        make: Callable[[], Any],
    ) -> Any:
        """An answer of a session or stream is on its way out."""
        event = Event(door, owner, question, arguments)
        if isinstance(owner, Stream):
            event.pending = np.array(pending)
        outer = self._open
        self._open = event
        try:
            event.value = make()
        finally:
            self._open = outer
        self.events.append(event)
        return self._released(event)

    def draw(
        self, method: str, exact: np.ndarray, law: tuple[Any, ...], make: Callable[[], Any]
    ) -> Any:
        """Noise is drawn: inside of an answer, or on its own."""
        inside = self._open is not None and isinstance(self._open.owner, Stream)
        if inside and method not in REPORTS:
            return make()  # The read is played back as a whole, and its exact sum is known.
        drawn = Draw(method, np.array(exact, float), law, make())
        if self._open is None:
            self.events.append(Event("draw", draws=[drawn]))
        else:
            self._open.draws.append(drawn)
        return self._drawn(drawn)

    def choice(self, name: str, arguments: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """A public random choice; it has no cost, and no secret has part in it."""
        self.choices.append((name, arguments, make()))
        return self.choices[-1][2]

    def order(self, rows: "Rows", make: Callable[[], Any]) -> Any:
        """A random order of the rows; which record each position is goes with it."""
        self.orders.append((_records(rows), make()))
        return self.orders[-1][1]

    def charged(self, cost: "Cost", name: str) -> None:
        """A charge is on its way to the accountants that there may be."""
        self.charges.append((name, repr(cost)))

    def _released(self, event: Event) -> Any:
        return event.value

    def _drawn(self, drawn: Draw) -> Any:
        return drawn.value


class Player(Recorder):
    """Listener of the second run: it releases what the first released, as long as that fits.

    Attributes
    ----------
    mismatches : list of str
        Public facts that differ from the first run; after one of them nothing is forced any more.
    """

    def __init__(self, first: Recorder) -> None:
        super().__init__()
        self._recorded = first.events
        self._chosen = first.choices
        self._dealt = first.orders
        self.mismatches: list[str] = []

    def _released(self, event: Event) -> Any:
        first = self._matching(event, len(self.events) - 1)
        return event.value if first is None else first.value

    def _drawn(self, drawn: Draw) -> Any:
        index = len(self.events) - (self._open is None)
        if self.mismatches or index >= len(self._recorded):
            return drawn.value
        first = self._recorded[index].draws
        place = len(self._open.draws) - 1 if self._open is not None else 0
        if place >= len(first) or first[place].facts != drawn.facts:
            return drawn.value  # The mismatch is noted when the answer is complete.
        return first[place].value

    def choice(self, name: str, arguments: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """The choice of the first run, while both make the same ones."""
        chosen = super().choice(name, arguments, make)
        index = len(self.choices) - 1
        if index < len(self._chosen) and self._chosen[index][:2] == (name, arguments):
            return self._chosen[index][2]
        if not self.mismatches:
            self.mismatches.append(f"public choice {index + 1}: {name}{arguments} is new")
        return chosen

    def order(self, rows: "Rows", make: Callable[[], Any]) -> Any:
        """The order of the first run, of the same records wherever they stand now."""
        fresh = super().order(rows, make)
        index = len(self.orders) - 1
        if index >= len(self._dealt) or self.mismatches:
            return fresh
        records, order = self._dealt[index]
        others = self.orders[-1][0]
        if not records or not others:  # one of them has a record that is no number
            records = others = []
        if len(records) != len(others):
            self.mismatches.append(f"random order {index + 1} is of another number of records")
            return fresh
        return Carried.along(order, records, others, rows.indexed)

    def _matching(self, event: Event, index: int) -> Event | None:
        """The event of the first run in this place, or None if it is another question."""
        if self.mismatches:
            return None
        if index >= len(self._recorded):
            self.mismatches.append(f"answer {index + 1} was not given in the first run")
            return None
        first = self._recorded[index]
        before = first.facts
        now = event.facts
        for name in dict.fromkeys([*before, *now]):
            if before.get(name) != now.get(name):
                self.mismatches.append(
                    f"answer {index + 1}: {name} is {now.get(name)}, was {before.get(name)}"
                )
        return None if self.mismatches else first
