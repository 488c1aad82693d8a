"""`python -m skpriv predict` and `report`: predictions of a written model, and a page about it."""

import sys
from pathlib import Path

from sklearn.pipeline import Pipeline

from .._codec import load
from ..inspection import release_page
from ..privacy import BudgetAccountant
from ._arguments import TABLE_OPTIONS, add_options, check_files, explained, refuse
from ._frames import FORMATS, read_table, write_columns


def add_predict(parser):
    """Add the arguments of the command `predict`."""
    parser.add_argument("model", metavar="MODEL", help="a model that `fit` wrote")
    out = {"required": True, "help": "CSV or Parquet file to write"}
    add_options(parser, *TABLE_OPTIONS, "--out", "--force", out=out)


def run_predict(args):
    """Write a file with a column `prediction`, one row for each row of the table.

    Of a logistic model it has the probability of each class, too.
    """
    check_files(args, args.model, args.table, out=FORMATS)
    model = read_model(args.model)
    frame = read_table(args, getattr(model[0], "schema", ""))
    # An error of the model names an absent column, and tells of no value.
    with explained(f"The table {args.table} does not fit the model:", ValueError):
        found = {"prediction": model.predict(frame)}
        if hasattr(model, "predict_proba"):
            chances = model.predict_proba(frame).T
            named = (f"probability of {label}" for label in model.classes_)
            found |= dict(zip(named, chances, strict=True))
    write_columns(args.out, found)
    print(f"Wrote {args.out}: {len(found['prediction']):,} predictions.", file=sys.stderr)
    return 0


def read_model(path):
    """Pipeline that `fit` wrote."""
    refuse(not Path(path).is_file(), f"The model {path} is not a file.")
    with explained(f"The model {path} cannot be read:"):
        model = load(path)
    strange = not isinstance(model, Pipeline)
    refuse(strange, f"The model {path} takes no table: it was not written by `fit`.")
    return model


def add_report(parser):
    """Add the arguments of the command `report`."""
    parser.add_argument("model", metavar="MODEL", help="a model that `fit` wrote")
    parser.add_argument("--title", metavar="TEXT", help="title of the page")
    words = {"required": True, "help": "HTML file to write"}
    listed = {"help": "list the charges of this ledger, too"}
    names = ("--out", "--ledger", "--confidence-level", "--force")
    add_options(parser, *names, out=words, ledger=listed)


def run_report(args):
    """Write one self-contained HTML page about a model.

    It has the table of coefficients and a picture, what was released, what it cost, and what the
    guarantee covers. It takes some seconds.
    """
    check_files(args, args.model, args.ledger, out=(".html",))
    accountant = None
    if args.ledger is not None:
        refuse(not Path(args.ledger).is_file(), f"The ledger {args.ledger} is not a file.")
        accountant = BudgetAccountant(ledger=args.ledger)
    page = release_page(
        read_model(args.model),
        title=args.title,
        confidence_level=args.confidence_level,
        accountant=accountant,
    )
    Path(args.out).write_text(page, encoding="utf-8")
    print(f"Wrote {args.out}.", file=sys.stderr)
    return 0
