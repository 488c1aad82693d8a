"""`python -m skpriv budget`: what a ledger has spent and what is left; and its total."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..exceptions import BudgetExceeded
from ..privacy import Budget, BudgetAccountant, protecting
from ._arguments import CommandError, add_options, explained, refuse

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def add_budget(parser: "ArgumentParser") -> None:
    """Add the arguments of the command."""
    parser.add_argument("ledger", metavar="FILE", help="the ledger, a file that keeps all charges")
    total = {"help": "total epsilon of a ledger that is new or has no total"}
    add_options(parser, "--epsilon", "--delta", epsilon=total)
    unit = (
        "with --epsilon: what all charges protect; row (default), or a person: the column that "
        "says whose row it is, a colon, and the most rows of each that are used. With patient:9 "
        "these are 9 rows of each person in the column patient"
    )
    parser.add_argument("--unit", metavar="NAME:M", help=unit)


def run_budget(args: "Namespace") -> int:
    """Print the charges of a ledger, or make one with the total --epsilon."""
    prints = args.epsilon is None
    absent = f"The ledger {args.ledger} is not a file: --epsilon E makes one with this total."
    refuse(prints and not Path(args.ledger).is_file(), absent)
    unpriced = prints and args.unit is not None
    refuse(unpriced, "--unit needs --epsilon: the unit is set with the total.")
    present = _present_ledger(args.ledger)
    total = present and present.ledger.limit
    if total and not prints:
        raise CommandError(
            f"The ledger {args.ledger} has a total of epsilon {total.budget.epsilon:g}: it cannot "
            "be changed. Leave --epsilon out to print its charges."
        )
    if prints and not total:
        print(BudgetAccountant(inf, args.delta, ledger=args.ledger))
    else:
        print(open_ledger(args.ledger, (args.epsilon, args.delta), unit=args.unit))
    return 0


@contextmanager
def charged(args: "Namespace", purpose: str = "") -> Iterator[list[str]]:
    """Charge what is released inside to the ledger of a command; its errors are one sentence.

    `with` gives a list: the line about the ledger that the command prints, if there is one.
    """
    unit = None if args.group is None else (args.group, args.max_rows or 1)
    accountant: Any = nullcontext()
    if args.ledger is not None:
        accountant = open_ledger(args.ledger, (args.epsilon, args.delta), unit, purpose=purpose)
    said: list[str] = []
    try:
        with accountant, nullcontext() if unit is None else protecting(*unit):
            yield said
    except BudgetExceeded:
        if args.ledger is None:  # The budget of somebody else is spent.
            raise
        raise CommandError(
            f"--ledger {args.ledger} cannot pay epsilon {args.epsilon:g} at delta {args.delta:g}: "
            f"{accountant.status} Pass a smaller --epsilon. The total cannot be raised: "
            "`budget`, or the first charge, has set it."
        ) from None
    except ValueError as error:  # These errors tell of names and public numbers, never of values.
        raise CommandError(str(error)) from None
    if args.ledger is not None:
        said.append(f"Ledger {args.ledger}: {accountant.status}")


def open_ledger(
    path: str, total: tuple[float, float], unit: str | tuple[str, int] | None, purpose: str = ""
) -> BudgetAccountant:
    """Accountant of a ledger, whose total and unit are set once and stand in it.

    Parameters
    ----------
    path : str
    total : (float, float)
        Epsilon and delta of a ledger that is new or has none.
    unit : str or (str, int), default=None
        What it protects then: a row where none is given.
    purpose : str, default=""
        What the charges are for.
    """
    present = _present_ledger(path)
    if present and present.ledger.limit:
        return BudgetAccountant(ledger=path, purpose=purpose)
    if present:
        refuse(
            not present.ledger.total().fits(Budget(*total)),
            f"The ledger {path} has spent more than epsilon {total[0]:g} at delta {total[1]:g}: "
            "give it a larger total with `budget --epsilon`.",
        )
    with explained(f"The ledger {path} cannot be used:"):
        return BudgetAccountant(total[0], total[1], path, unit=unit, purpose=purpose)


def unit_of(path: str | None) -> tuple[str | None, int | None]:
    """The column of people and the most rows of a person that a ledger protects, or two None."""
    present = path and _present_ledger(path)
    if not present or isinstance(present.unit, str):
        return None, None
    return present.unit[0] or None, present.unit[1]


def _present_ledger(path: str) -> BudgetAccountant | None:
    """Accountant of a ledger as it stands, whatever its total; None if there is no file."""
    if not Path(path).is_file():
        return None
    with explained(f"The ledger {path} cannot be used:"):
        return BudgetAccountant(inf, ledger=path)
