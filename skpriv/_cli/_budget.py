"""`python -m skpriv budget`: what a ledger has spent and what is left; and its total."""

import sqlite3
from contextlib import closing
from math import isfinite, isinf
from pathlib import Path

from ..privacy import BudgetAccountant
from ._arguments import CommandError, positive, probability

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
    add("--epsilon", type=positive, metavar="E", help="total of a ledger that is new or has none")
    add("--delta", type=probability, default=1e-6, metavar="D", help="default 1e-6")
    parser.set_defaults(run=run)


def run(args):
    """Print the ledger; return the exit code."""
    known = read_total(args.ledger)
    if args.epsilon is not None and known is not None:
        raise CommandError(
            f"The ledger {args.ledger} has a total of epsilon {known[0]:g}: it cannot be changed."
        )
    if args.epsilon is None and not Path(args.ledger).is_file():
        raise CommandError(
            f"The ledger {args.ledger} is not a file: --epsilon E makes one with this total."
        )
    if args.epsilon is not None or known is not None:
        accountant = open_ledger(args.ledger, (args.epsilon, args.delta))
    else:  # made in Python, where the total stands in the code
        accountant = BudgetAccountant(float("inf"), args.delta, ledger=args.ledger)
    print(f"{'':<4}  {'fit':<24}  {'epsilon alone':>13}  {'part of the total':>17}")
    for i, charge in enumerate(accountant.charges, 1):
        alone = charge.cost.epsilon(accountant.budget.delta)
        print(f"{i:<4}  {charge.name:<24}  {alone:>13.3f}  {_part(charge.cost, accountant):>17}")
    print(status(accountant))
    return 0


def _part(cost, accountant):
    """Part of the total in what adds up: mu^2, rho or epsilon; of what has none, nothing."""
    budget = accountant.budget
    totals = {"gdp": budget.mu**2, "zcdp": budget.rho, "pure": budget.epsilon}
    total = totals[accountant.currency]
    amount = cost.amount(accountant.currency)
    known = isfinite(amount) and isfinite(total) and total > 0.0 and not cost.approximate
    return f"{amount / total:.1%}" if known else "-"


def status(accountant):
    """What is spent and left, in one line."""
    total, spent, left = accountant.budget, accountant.spent, accountant.remaining
    if isinf(total.epsilon):
        return f"Spent epsilon {spent.epsilon:.4g} at delta {total.delta:g}; it has no total."
    return (
        f"Spent epsilon {spent.epsilon:.4g} of {total.epsilon:g} at delta {total.delta:g}; "
        f"left epsilon {left.epsilon:.4g}."
    )


def open_ledger(path, total):
    """Accountant of a ledger, whose total is set once and stands in it.

    Parameters
    ----------
    path : str
    total : (float, float)
        Epsilon and delta of a ledger that is new or has none.
    """
    if not Path(path).absolute().parent.is_dir():
        raise CommandError(f"The ledger {path}: there is no such directory.")
    try:
        if read_total(path) is None:
            accountant = BudgetAccountant(*total, ledger=path)  # makes the file
            if not accountant.ledger.total().fits(accountant.budget):
                raise CommandError(
                    f"The ledger {path} has spent more than epsilon {total[0]:g} at delta "
                    f"{total[1]:g}: give it a larger total with `budget --epsilon`."
                )
            _set_total(path, total)
        return BudgetAccountant(*read_total(path), ledger=path)
    except (sqlite3.Error, OSError) as error:
        raise CommandError(f"The ledger {path} cannot be used: {error}.") from None


def read_total(path):
    """Return the (epsilon, delta) that stands in a ledger; None if it has none."""
    if not Path(path).is_file():
        return None
    try:
        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute("SELECT epsilon, delta FROM skpriv_total").fetchall()
    except sqlite3.Error as error:
        if "no such table" in str(error):
            return None
        raise CommandError(f"The ledger {path} cannot be used: {error}.") from None
    return tuple(rows[0]) if rows else None


def _set_total(path, total):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_TABLE)
        if not connection.execute("SELECT 1 FROM skpriv_total").fetchall():
            connection.execute("INSERT INTO skpriv_total VALUES (?, ?)", total)
        connection.execute("COMMIT")
