"""`python -m skpriv predict` and `report`: predictions of a written model, and a page about it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from .._codec import load
from .._printing import first_names
from ..inspection import confidence_interval, release_page, schema_of
from ..privacy import BudgetAccountant
from ..records import present_names
from ._arguments import (
    TABLE_OPTIONS,
    CommandError,
    add_options,
    check_files,
    explained,
    names_in,
    present_file,
    refuse,
    tell,
)
from ._frames import FORMATS, formatted, read_table, write_columns

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def add_predict(parser: "ArgumentParser") -> None:
    """Add the arguments of the command `predict`."""
    parser.add_argument("model", metavar="MODEL", help="a model that `fit` wrote")
    parser.add_argument("--keep", type=names_in, action="extend", default=[], metavar="NAMES",
                        help="columns of the table that are copied in front of the predictions, "
                        "such as the number of a case")  # fmt: skip
    out = {"required": True, "help": "CSV or Parquet file to write"}
    add_options(parser, *TABLE_OPTIONS, "--confidence-level", "--out", "--force", out=out)


def run_predict(args: "Namespace") -> int:
    """Write a file with a column `prediction`, one row for each row of the table.

    Beside it are the ends of a confidence interval for the mean of the target at the row. A
    logistic model has the probability of each class and its interval. The file says of each row
    what follows from its cells: it is as private as the table, and only the model may be published.
    """
    check_files(args, args.model, args.table, out=FORMATS)
    model = read_model(args.model)
    frame = read_table(args.table, formatted(schema_of(model), args))
    table = nw.from_native(frame)
    keys = present_names(args.keep, table.columns, "--keep", args.table, CommandError)
    # An error of the model names an absent column, and tells of no value.
    with explained(f"The table {args.table} does not fit the model:", ValueError):
        found = _predicted(model, frame, args.confidence_level)
    twice = [name for name in keys if name in found]
    refuse(twice, f"--keep names {first_names(twice)}, which is a column of the predictions.")
    write_columns(args.out, {name: table[name].to_list() for name in keys} | found)
    tell(
        f"Wrote {args.out}: {len(table):,} predictions, with intervals at "
        f"{args.confidence_level:g} for the mean of the target at each row. Each line follows from "
        "the cells of one row, which are private: keep the file with the table. Only the model may "
        "be published."
    )
    return 0


def _predicted(model: Pipeline, frame: Any, level: float) -> dict[str, np.ndarray]:
    """Columns of predictions and of the ends of their intervals, without digits of no meaning."""
    predictions = model.predict(frame)
    low, high = confidence_interval(model, frame, confidence_level=level)
    halves = (high - low) / 2.0
    if not is_classifier(model):
        return _rounded({"prediction": predictions, "low": low, "high": high}, halves)
    if low.ndim == 1:  # the interval is that of the second class
        low, high = np.column_stack([1.0 - high, low]), np.column_stack([1.0 - low, high])
    found: dict[str, np.ndarray] = {}
    columns = zip(model.classes_, model.predict_proba(frame).T, low.T, high.T, strict=True)
    for label, *numbers in columns:
        ends = ("", " (low)", " (high)")
        found |= {f"probability of {label}{end}": x for end, x in zip(ends, numbers, strict=True)}
    return {"prediction": predictions} | _rounded(found, halves)


def _rounded(columns: dict[str, np.ndarray], halves: np.ndarray) -> dict[str, np.ndarray]:
    """Numbers with three digits of the half of the narrowest interval."""
    narrowest = halves[halves > 0.0].min(initial=1.0)
    digits = int(np.clip(2.0 - np.floor(np.log10(narrowest)), 0, 12))
    return {name: np.round(values, digits) + 0.0 for name, values in columns.items()}


def read_model(path: str) -> Pipeline:
    """Pipeline that `fit` wrote."""
    present_file("The model", path, "give the one that `fit --out` wrote.")
    with explained("The model cannot be read."):
        model = load(path)
    refuse(
        not isinstance(model, Pipeline),
        f"The model {path} takes no table: it was not written by `fit`.",
    )
    return model


def add_report(parser: "ArgumentParser") -> None:
    """Add the arguments of the command `report`."""
    parser.add_argument("model", metavar="MODEL", help="a model that `fit` wrote")
    parser.add_argument("--title", metavar="TEXT", help="title of the page")
    words = {"required": True, "help": "HTML file to write"}
    listed = {"help": "list the charges of this ledger, too"}
    add_options(
        parser, "--out", "--ledger", "--confidence-level", "--force", out=words, ledger=listed
    )


def run_report(args: "Namespace") -> int:
    """Write one self-contained HTML page about a model.

    It has the table of coefficients and a picture, what was released, what it cost, and what the
    guarantee covers. It takes some seconds.
    """
    check_files(args, args.model, args.ledger, out=(".html",))
    accountant = None
    if args.ledger is not None:
        present_file("The ledger", args.ledger, "give the one that `fit --ledger` charged.")
        accountant = BudgetAccountant(ledger=args.ledger)
    page = release_page(
        read_model(args.model),
        title=args.title,
        confidence_level=args.confidence_level,
        accountant=accountant,
    )
    Path(args.out).write_text(page, encoding="utf-8")
    tell(f"Wrote {args.out}.")
    return 0
