"""`python -m skpriv check` and `describe`: what is in a table, for its curator and for all."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from ..inspection import describe
from ..preprocessing import Schema, check_table, guessed_type
from ..records import cells, codes, name_of, same_names
from ._arguments import (
    GROUP_OPTIONS,
    PICTURES,
    ROWS_OPTIONS,
    TABLE_OPTIONS,
    add_options,
    check_files,
    explained,
    names_in,
    panels,
    refuse,
    tell,
    write,
)
from ._budget import charged
from ._frames import chosen_columns, formatted, opened, read_table, text_of, write_columns

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def add_schema(parser: "ArgumentParser") -> None:
    """Add the arguments of the command `schema`."""
    parser.add_argument("--target", metavar="NAME", help="column that is predicted")
    out = {"help": "TOML file to write; without it the schema is printed"}
    person = {"help": "column that says whose row it is; the schema will say it to all commands"}
    limit = {"help": "with --group: most rows of one person that are used; default 1"}
    add_options(
        parser, *TABLE_OPTIONS, "--decimal", *GROUP_OPTIONS, "--out", "--force",
        out=out, group=person, max_rows=limit,
    )  # fmt: skip


def run_schema(args: "Namespace") -> int:
    """Write or print a schema, in TOML, with the name and a guessed type of each column.

    Ranges and lists are left open: a person fills them in, from what the columns mean and never
    from the rows. The guesses come from the cells, so that the schema is for the curator until it
    was read. It has --sep, --encoding, --decimal, --group and --max-rows for all
    commands.
    """
    check_files(args, args.table, out=(".toml",))
    written = formatted(Schema({}), args, decimal=args.decimal)
    text = text_of(args.table, written)
    if text is not None:
        written = written.with_format(encoding=text.encoding)
    frame = nw.from_native(read_table(args.table, written))
    names = frame.columns
    for option in ("target", "group"):  # The first line may be a row, which is not repeated.
        name = getattr(args, option)
        absent = f"--{option} names {name!r}, which is no name in the first line of {args.table}."
        refuse(name is not None and same_names([name], names) == [None], absent)
    person = same_names([args.group], names) if args.group is not None else []
    columns = {name: guessed_type(frame[name]) for name in names if name not in person}
    with explained("--target, --group or --max-rows:"):
        schema = Schema(columns, target=args.target, **written.table_format.given())
        schema = schema.with_format(person=args.group, limit=args.max_rows or len(person) or None)
    if args.out is None:
        print(schema.to_toml(explained=True), end="")
    else:
        schema.write(args.out)
    tell(*(text.strange() if text else ()))
    where = "The schema is open" if args.out is None else f"Wrote {args.out}"
    tell(f"{where}: fill in what stands behind #.")
    return 0


def add_describe(parser: "ArgumentParser") -> None:
    """Add the arguments of the command `describe`."""
    add = parser.add_argument
    add_options(parser, *ROWS_OPTIONS)
    add(
        "--columns",
        type=names_in,
        action="extend",
        metavar="NAMES",
        help="describe these columns alone, separated by commas; may be given more than once",
    )
    add("--pair", type=names_in, action="append", default=[], metavar="A,B",
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


def run_describe(args: "Namespace") -> int:
    """Print counts, means and quantiles of each column of a table, with intervals, for one private
    budget.

    It takes seconds for a hundred thousand rows.
    """
    check_files(args, args.table, args.schema, out=(".csv",), ledger=None, plot=PICTURES)
    frame, schema = opened(args)
    columns = args.columns and chosen_columns("--columns", args.columns, schema)
    refuse(
        any(len(set(pair)) != 2 or len(pair) != 2 for pair in args.pair),
        "--pair takes two different columns, such as --pair sex,ward.",
    )
    pairs = [chosen_columns("--pair", pair, schema) for pair in args.pair]
    with charged(args) as ledger:
        found = describe(
            frame,
            schema,
            epsilon=args.epsilon,
            delta=args.delta,
            columns=columns,
            pairs=pairs,
            confidence_level=args.confidence_level,
            estimand="population" if args.population else "table",
            random_state=args.seed,
        )
    print(found, *ledger, sep="\n")
    if args.out is not None:
        write_columns(args.out, found.to_frame().to_dict("list"))
        tell(f"Wrote {args.out}.")
    if args.plot is not None:
        figure, axes = panels(len(found.columns))
        found.plot(axes)
        write(figure, args.plot)
    return 0


def add_check(parser: "ArgumentParser") -> None:
    """Add the arguments of the command `check`."""
    add_options(parser, *ROWS_OPTIONS)
    parser.add_argument(
        "--private", action="store_true", help="add noise, so that the counts may be released"
    )
    total = {"help": "with --private: epsilon of all counts together"}
    add_options(parser, "--epsilon", "--delta", "--ledger", epsilon=total)


def run_check(args: "Namespace") -> int:
    """Count for each column the cells that were read, clipped, not listed, unreadable and missing.

    These counts are exact, and must not be released. With --group persons are counted, too, and
    rows without one. With --private counts of cells have noise, and may be released. It takes a
    second for a hundred thousand rows.
    """
    refuse(
        args.private != (args.epsilon is not None),
        "--private and --epsilon go together: give both or neither.",
    )
    refuse(
        not args.private and args.ledger is not None,
        "--ledger needs --private: exact counts are not for release.",
    )
    check_files(args, args.table, args.schema, ledger=None)
    frame, schema = opened(args)
    price = {"epsilon": args.epsilon, "delta": args.delta} if args.private else {}
    with charged(args, "check") as ledger:
        found = check_table(frame, schema, **price)
    print(found, *ledger, sep="\n")
    if not args.private:
        text = text_of(args.table, schema)
        persons = _persons(schema.groups(frame), args.group)
        for line in (*persons, *(text.strange() if text else ())):
            print(line)
    return 0


def _persons(groups: dict[str, Any], name: str) -> Iterator[str]:
    """Yield what the curator should know of the persons: exact, private numbers."""
    if not groups:
        return
    labels = cells(nw.from_native(groups["groups"], series_only=True))
    numbers = codes(labels)
    limit = groups["max_rows_per_group"]
    nobody = sum(name_of(label) is None for label in labels)
    rows = np.bincount(numbers)
    spellings = np.bincount([number for number, _ in {*zip(numbers.tolist(), map(repr, labels))}])
    yield f"{len(rows):,} persons in {name!r}."
    if nobody:
        yield f"{nobody:,} rows have no person there: they are the rows of one person together."
    if several := int((spellings > 1).sum()):
        yield f"{several:,} persons are written in more than one way, and count as one each."
    if many := int((rows > limit).sum()):
        yield (
            f"{many:,} persons have more rows than the limit, {limit} of each person: chance picks "
            "those that are used."
        )
