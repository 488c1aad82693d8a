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
    absent = f"The ledger {args.ledger} is not a file: --epsilon E makes one with this total."
    refuse(args.epsilon is None and not Path(args.ledger).is_file(), absent)
    unpriced = args.unit is not None and args.epsilon is None
    refuse(unpriced, "--unit needs --epsilon: the unit is set with the total.")
    total = _total(args.ledger)
    if args.epsilon is not None and total is not None:
        raise CommandError(
            f"The ledger {args.ledger} has a total of epsilon {total.epsilon:g}: it cannot be "
            "changed. Leave --epsilon out to print its charges."
        )
    if args.epsilon is None and total is None:
        accountant = BudgetAccountant(inf, args.delta, ledger=args.ledger)
    else:
        accountant = open_ledger(args.ledger, (args.epsilon, args.delta), unit=args.unit)
    print(accountant)
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
            f"{accountant.status} Pass a smaller --epsilon: the total cannot be raised."
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
    if _total(path) is not None:
        return BudgetAccountant(ledger=path, purpose=purpose)
    if Path(path).is_file():
        spent = BudgetAccountant(inf, ledger=path).ledger.total()
        refuse(
            not spent.fits(Budget(*total)),
            f"The ledger {path} has spent more than epsilon {total[0]:g} at delta {total[1]:g}: "
            "give it a larger total with `budget --epsilon`.",
        )
    with explained(f"The ledger {path} cannot be used:"):
        return BudgetAccountant(total[0], total[1], path, unit=unit, purpose=purpose)


def unit_of(path: str | None) -> tuple[str | None, int | None]:
    """The column of people and the most rows of a person that a ledger protects, or two None."""
    if path is None or not Path(path).is_file():
        return None, None
    with explained(f"The ledger {path} cannot be used:"):
        unit = BudgetAccountant(inf, ledger=path).unit
    return (None, None) if isinstance(unit, str) else (unit[0] or None, unit[1])


def _total(path: str) -> Budget | None:
    """Budget that stands in a ledger; None if there is none, or no file."""
    if not Path(path).is_file():
        return None
    with explained(f"The ledger {path} cannot be used:"):
        limit = BudgetAccountant(inf, ledger=path).ledger.limit
    return None if limit is None else limit.budget
