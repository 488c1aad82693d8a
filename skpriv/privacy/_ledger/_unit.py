"""What one charge protects: a row, or a person with several rows; a ledger adds up one kind."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ...exceptions import PrivacyError

__all__ = ["check_unit", "protecting", "unit_now", "unit_sentence", "unit_text", "unit_value"]

# Units are texts, as a command writes them: "row", or "patient:9", whose name may be missing.
_unit: ContextVar[str] = ContextVar("_unit", default="row")


@contextmanager
def protecting(name: str, largest: int) -> Iterator[None]:
    """Say that what this thread charges inside protects persons, with all of their rows.

    Parameters
    ----------
    name : str
        The column that says whose row it is; "" where it has no name, or that of an outer block.
    largest : int
        Rows of a person that are used at most.
    """
    token = _unit.set(unit_text((name or _unit.get().rpartition(":")[0], largest)))
    try:
        yield
    finally:
        _unit.reset(token)


def unit_now() -> str:
    """What is protected by what is charged here."""
    return _unit.get()


def unit_text(unit: Any) -> str:
    """Text of "row", "patient:9" or ("patient", 9)."""
    name: Any
    largest: Any
    name, largest = unit if isinstance(unit, tuple) and len(unit) == 2 else (unit, None)
    if isinstance(name, str) and largest is None:
        if name == "row":
            return name
        name, _, digits = name.rpartition(":")
        largest = int(digits) if name and digits.isdecimal() else None
    whole = isinstance(largest, int) and not isinstance(largest, bool)
    if not isinstance(name, str) or not whole or largest < 1:
        raise ValueError(
            f"unit={unit!r} must be 'row', or the column that says whose row it is and the most "
            "rows of a person that are used, such as ('patient', 9)."
        )
    return f"{name}:{largest}"


def unit_value(text: str) -> "str | tuple[str, int]":
    """The unit of a text, as it was given."""
    name, _, largest = text.rpartition(":")
    return (name, int(largest)) if largest.isdecimal() else "row"


def unit_sentence(text: str) -> str:
    """What is protected, in words."""
    name, _, largest = text.rpartition(":")
    if not largest.isdecimal():
        return "a row"
    column = f"column {name!r}, " if name else ""
    return f"a person ({column}at most {largest} row{'s' * (largest != '1')})"


def check_unit(ledger: str, charge: str, name: str) -> None:
    """Refuse a charge that protects something else than a ledger does.

    Raises
    ------
    PrivacyError
    """
    person, _, largest = ledger.rpartition(":")
    other, _, used = charge.rpartition(":")
    if ledger == charge == "row":
        return
    if "row" not in (ledger, charge) and other in ("", person) and int(used) <= int(largest):
        return
    if ledger == "row":
        unit = (other or "person", int(used))
        remedy = (
            f"Begin a ledger with unit={unit!r} (in commands `budget --unit {unit_text(unit)}`), "
            "and make every release with groups."
        )
    else:
        remedy = (
            f"Release with groups={person} and max_rows_per_group={largest} or fewer (in commands "
            f"--group {person} --max-rows {largest}), or begin another ledger."
        )
    raise PrivacyError(
        f"The ledger protects {unit_sentence(ledger)}, and {name} would protect "
        f"{unit_sentence(charge)}: their costs do not add up. Nothing was charged. {remedy}"
    )
