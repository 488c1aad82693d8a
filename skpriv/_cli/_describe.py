"""`python -m skpriv check` and `describe`: what is in a table, for its curator and for all."""

import sys

import narwhals.stable.v2 as nw

from ..inspection import describe
from ..preprocessing import Schema, check_table, guessed_type
from ._arguments import (
    GROUP_OPTIONS,
    PICTURES,
    SCHEMA_OPTIONS,
    TABLE_OPTIONS,
    add_options,
    check_files,
    explained,
    names_in,
    panels,
    refuse,
    write,
)
from ._budget import charged
from ._frames import groups_of, opened, read_table, strange_lines


def add_schema(parser):
    """Add the arguments of the command `schema`."""
    parser.add_argument("--target", metavar="NAME", help="column that is predicted")
    out = {"required": True, "help": "TOML file to write"}
    add_options(parser, *TABLE_OPTIONS, "--out", "--force", out=out)


def run_schema(args):
    """Write a TOML file with the name and a guessed type of each column.

    Ranges and lists are left open: a person fills them in, from what the columns mean and never
    from the rows. The guesses come from the cells, so that the file is for the curator until it was
    read.
    """
    check_files(args, args.table, out=(".toml",))
    frame = nw.from_native(read_table(args))
    columns = {name: guessed_type(frame[name]) for name in frame.columns}
    with explained("--target:"):
        schema = Schema(columns, target=args.target)
    schema.write(args.out)
    for words in strange_lines(args):
        print(words, file=sys.stderr)
    print(f"Wrote {args.out}: fill in what stands behind #.", file=sys.stderr)
    return 0


def add_describe(parser):
    """Add the arguments of the command `describe`."""
    add = parser.add_argument
    add_options(parser, *TABLE_OPTIONS, *SCHEMA_OPTIONS, *GROUP_OPTIONS)
    add("--columns", metavar="NAMES", help="describe these columns alone, separated by commas")
    add("--pair", action="append", default=[], metavar="A,B",
        help="two-way counts of two columns; may be given more than once")  # fmt: skip
    add("--population", action="store_true",
        help="intervals for the population from which rows come, not for the table")  # fmt: skip
    add_options(
        parser, "--epsilon", "--delta", "--ledger", "--out", "--plot", "--confidence-level",
        "--seed", "--force",
        epsilon={"required": True, "help": "epsilon of all numbers together"},
        out={"help": "write all numbers to a CSV file, too"},
        plot={"help": "write a picture of each column, all in one file, too"},
    )  # fmt: skip


def run_describe(args):
    """Print counts, means and quantiles of each column of a table, with intervals, for one private
    budget.

    It takes seconds for a hundred thousand rows.
    """
    check_files(args, args.table, args.schema, out=(".csv",), ledger=None, plot=PICTURES)
    frame, schema = opened(args)
    groups = groups_of(args, schema, frame)
    with charged(args) as ledger:
        found = describe(
            frame,
            schema,
            epsilon=args.epsilon,
            delta=args.delta,
            columns=None if args.columns is None else names_in(args.columns),
            pairs=[tuple(names_in(pair)) for pair in args.pair],
            confidence_level=args.confidence_level,
            estimand="population" if args.population else "table",
            random_state=args.seed,
            **groups,
        )
    print(found, *ledger, sep="\n")
    if args.out is not None:
        found.to_frame().to_csv(args.out, index=False)
        print(f"Wrote {args.out}.", file=sys.stderr)
    if args.plot is not None:
        figure, axes = panels(len(found.columns))
        found.plot(axes)
        write(figure, args.plot)
    return 0


def add_check(parser):
    """Add the arguments of the command `check`."""
    add_options(parser, *TABLE_OPTIONS, *SCHEMA_OPTIONS, *GROUP_OPTIONS)
    words = "add noise, so that the counts may be released"
    parser.add_argument("--private", action="store_true", help=words)
    total = {"help": "with --private: epsilon of all counts together"}
    add_options(parser, "--epsilon", "--delta", "--ledger", epsilon=total)


def run_check(args):
    """Count for each column the cells that were read, clipped, not listed, unreadable and missing.

    These counts are exact, and must not be released. With --private they have noise, and may be
    released. It takes a second for a hundred thousand rows.
    """
    alone = args.private != (args.epsilon is not None)
    refuse(alone, "--private and --epsilon go together: give both or neither.")
    refuse(
        not args.private and (args.ledger is not None or args.group is not None),
        "--ledger and --group need --private: exact counts are not for release.",
    )
    check_files(args, args.table, args.schema, ledger=None)
    frame, schema = opened(args)
    price = {"epsilon": args.epsilon, "delta": args.delta} if args.private else {}
    price |= groups_of(args, schema, frame)
    with charged(args, "check") as ledger:
        found = check_table(frame, schema, **price)
    print(found, *ledger, *(() if args.private else strange_lines(args)), sep="\n")
    return 0
