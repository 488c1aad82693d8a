"""`python -m skpriv budget`: what a ledger has spent and what is left; and its total."""

import sqlite3
from contextlib import closing
from pathlib import Path

from ..privacy import BudgetAccountant
from ._arguments import positive, probability
from ._error import CommandError

_TABLE = "CREATE TABLE IF NOT EXISTS skpriv_total (epsilon REAL, delta REAL)"


def add_command(commands):
    """Add the command's parser to those of the others."""
    parser = commands.add_parser(
        "budget",
        help="what a ledger has spent, and what is left",
        description="Prints the charges of a ledger, or makes one with --epsilon and --delta.",
    )
    add = parser.add_argument
    add("ledger", metavar="FILE", help="the ledger of fits")
    add("--epsilon", type=positive, metavar="E", help="make a ledger with this total")
    add("--delta", type=probability, default=1e-6, metavar="D", help="of a new ledger; 1e-6")
    parser.set_defaults(run=run)


def run(args):
    """Print the ledger; return the exit code."""
    if args.epsilon is not None:
        if Path(args.ledger).exists():
            raise CommandError(
                f"The ledger {args.ledger} is there already: its total cannot be changed."
            )
        accountant = open_ledger(args.ledger, (args.epsilon, args.delta))
    elif not Path(args.ledger).is_file():
        raise CommandError(
            f"The ledger {args.ledger} is not a file: --epsilon E makes one with this total."
        )
    else:
        accountant = open_ledger(args.ledger)
    print(f"{'':<4}  {'fit':<24}  cost")
    for i, charge in enumerate(accountant.charges, 1):
        print(f"{i:<4}  {charge.name:<24}  {charge.cost}")
    print(status(accountant))
    return 0


def status(accountant):
    """What is spent and left, in one line."""
    total, spent, left = accountant.budget, accountant.spent, accountant.remaining
    return (
        f"Spent epsilon {spent.epsilon:.4g} of {total.epsilon:g} at delta {total.delta:g}; "
        f"left epsilon {left.epsilon:.4g}."
    )


def open_ledger(path, total=None):
    """Accountant of a ledger, whose total is set once, when it is made.

    Parameters
    ----------
    path : str
    total : (float, float), default=None
        Epsilon and delta of a new ledger; those of an old one stand in it.
    """
    if not Path(path).absolute().parent.is_dir():
        raise CommandError(f"The ledger {path}: there is no such directory.")
    try:
        known = _total(path) if Path(path).exists() else None
        if known is None:
            if total is None:
                raise CommandError(
                    f"The ledger {path} does not say its total: it was not made by this command."
                )
            accountant = BudgetAccountant(*total, ledger=path)
            if accountant.charges:
                raise CommandError(
                    f"The ledger {path} has charges but no total: it was not made by this command."
                )
            _set_total(path, total)
            known = total
        return BudgetAccountant(*known, ledger=path)
    except (sqlite3.Error, OSError) as error:
        raise CommandError(f"The ledger {path} cannot be used: {error}.") from None


def _total(path):
    """Return the total that stands in the file, or None."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            rows = connection.execute("SELECT epsilon, delta FROM skpriv_total").fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            rows = []
    return tuple(rows[0]) if rows else None


def _set_total(path, total):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_TABLE)
        if not connection.execute("SELECT 1 FROM skpriv_total").fetchall():
            connection.execute("INSERT INTO skpriv_total VALUES (?, ?)", total)
        connection.execute("COMMIT")
