"""`python -m skpriv predict`: predictions of a model that `fit` wrote, for the rows of a table."""

import sys
from pathlib import Path

from sklearn.pipeline import Pipeline

from .._codec import load
from ._arguments import CommandError
from ._frames import FORMATS, check_different, check_out, read_table, write_column


def add_command(commands):
    """Add the command's parser to those of the others."""
    parser = commands.add_parser(
        "predict",
        help="predictions for the rows of a table",
        description="Writes a file with a column `prediction`, a row for each row of the table.",
    )
    add = parser.add_argument
    add("model", metavar="MODEL", help="a model that `fit` wrote")
    add("table", metavar="TABLE", help="a CSV or Parquet file with the columns of the features")
    add("--out", required=True, metavar="FILE", help="CSV or Parquet file to write")
    add("--force", action="store_true", help="replace the file if it is there")
    parser.set_defaults(run=run)


def run(args):
    """Predict and write; return the exit code."""
    check_different([args.model, args.table], {"--out": args.out})
    check_out("--out", args.out, args.force, FORMATS)
    model, frame = read_model(args.model), read_table(args.table)
    try:
        values = model.predict(frame)
    except ValueError as error:  # an absent column: of values nothing is said
        raise CommandError(f"The table {args.table} does not fit the model: {error}") from None
    write_column(args.out, "prediction", values)
    print(f"Wrote {args.out}: {len(values):,} predictions.", file=sys.stderr)
    return 0


def read_model(path):
    """Pipeline that `fit` wrote."""
    if not Path(path).is_file():
        raise CommandError(f"The model {path} is not a file.")
    try:
        model = load(path)
    except (OSError, ValueError) as error:
        raise CommandError(f"The model {path} cannot be read: {error}") from None
    if not isinstance(model, Pipeline):
        raise CommandError(f"The model {path} takes no table: it was not written by `fit`.")
    return model
