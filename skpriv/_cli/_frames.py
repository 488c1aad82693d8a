"""Tables in files: CSV and Parquet."""

import codecs
import csv
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import narwhals.stable.v2 as nw

from ..preprocessing import Numeric, Schema
from ..records import present_names, same_names
from ._arguments import CommandError, explained, refuse

FORMATS = (".csv", ".parquet")
UTF_8 = "utf-8-sig"  # with a byte-order mark, or without one
_LIBRARIES = ("pandas", "polars", "pyarrow")


def groups_of(args, schema, frame):
    """What a release gets for --group: whose each row is."""
    if args.group is None:
        alone = "--max-rows needs --group, the column that says whose row it is."
        refuse(args.max_rows is not None, alone)
        return {}
    people = nw.from_native(frame)
    (own,) = present_names([args.group], people.columns, "--group", args.table, CommandError)
    refuse(
        same_names([args.group], schema) != [None],
        f"--schema {args.schema} has a table for {args.group!r}, which is the column of --group: "
        "take it out.",
    )
    return {"groups": people[own], "max_rows_per_group": args.max_rows or 1}


def opened(args):
    """The table of a command, and the schema of its columns, with its decimal mark.

    Parameters
    ----------
    args : Namespace
        The arguments of `TABLE_OPTIONS` and `SCHEMA_OPTIONS`.

    Returns
    -------
    (data frame, Schema)
    """
    refuse(not Path(args.schema).is_file(), f"--schema {args.schema} is not a file.")
    with explained(f"--schema {args.schema}:"):
        schema = Schema.read(args.schema)
    frame = read_table(args, schema)
    names = nw.from_native(frame).columns
    unread = "\ufffd" in "".join(names)
    where = args.table + ", whose header cannot be read in this --encoding" * unread
    present_names(schema, names, f"--schema {args.schema}", where, CommandError)
    if args.decimal != ".":
        columns = dict(schema)
        for name, column in schema.items():
            if isinstance(column, Numeric) and column.decimal is None:
                with explained(f"--decimal {args.decimal}:"):
                    columns[name] = replace(column, decimal=args.decimal)
        schema = Schema(columns, target=schema.target)
    return frame, schema


def read_table(args, schema=""):
    """Frame of a file; all cells of a CSV file are texts.

    What type the numbers of a column have would depend on all of its rows: a CSV file is read
    cell by cell, and it is the schema that says what a cell means. Every file of rows can be read:
    each line is a row, a short row has missing cells at its end, and what a long row has too much
    is left out.

    Parameters
    ----------
    args : Namespace
        The arguments of `TABLE_OPTIONS`.
    schema : Schema, default=""
        Where it has letters that each encoding writes in its own way, that of the table must be
        named: in another one cells would silently be none of the list.
    """
    path, kind = args.table, Path(args.table).suffix.lower()
    refuse(kind not in FORMATS, f"The table {path} must end with one of {', '.join(FORMATS)}.")
    refuse(not Path(path).is_file(), f"The table {path} is not a file.")
    if kind == ".parquet":
        return _parquet(path)
    refuse(
        args.encoding is None and not str(schema).isascii(),
        "The schema has letters that are not ASCII: name the encoding of the table, --encoding "
        "utf-8, or latin-1 or cp1252 for files of older Windows.",
    )
    columns = read_columns(path, args.sep, args.encoding or UTF_8)
    return nw.from_dict(columns, backend=frame_library(_LIBRARIES)).to_native()


def read_columns(path, sep=None, encoding=UTF_8):
    """Cells of a CSV file, as texts, by the name of their column."""
    sep = None if sep is None else sep.replace("\\t", "\t")
    refuse(len(sep or ",") != 1, f"--sep {sep} must be one character, or \\t for a tabulator.")
    with explained(f"The table {path} cannot be read:", OSError):
        data = Path(path).read_bytes()
    with explained("--encoding:", LookupError):
        lines = _lines(data, encoding)
    if not lines[-1]:
        del lines[-1]  # The last line feed ends a line, and begins none.
    return _columns(path, lines, sep)


def strange_lines(args):
    """Yield what the curator should know of the lines of a CSV file: exact, private numbers."""
    if Path(args.table).suffix.lower() == ".parquet":
        return
    lines = _lines(Path(args.table).read_bytes(), args.encoding or UTF_8)
    if broken := sum(line.count('"') % 2 for line in lines):
        yield (
            f"{broken} lines do not close a quotation mark. A cell with a line feed is read as two "
            "rows: replace the line feeds in cells."
        )
    if unread := sum("\ufffd" in line for line in lines):
        yield (
            f"{unread} lines cannot be read as {args.encoding or 'UTF-8'}: name the encoding of "
            "the file, such as --encoding latin-1, or cp1252 for files of older Windows."
        )


def _lines(data, encoding):
    """Lines of a file, each of which is read by itself: no cell shifts the code of the next line.

    Encodings that write a line feed in several bytes, such as UTF-16, are read as a whole.
    """
    encoding = UTF_8 if codecs.lookup(encoding).name == "utf-8" else encoding
    if b"\n".decode(encoding, errors="replace") != "\n":
        return data.decode(encoding, errors="replace").split("\n")
    return [line.decode(encoding, errors="replace") for line in data.split(b"\n")]


def _columns(path, lines, sep):
    """Cells of the columns: each line of the file after the first is one row, whatever is in it.

    The number of rows is public. So no cell may decide it: a quotation mark that nobody closes ends
    with its line, an empty line is a row of missing cells, and a carriage return within a line is a
    blank.
    """
    limit = csv.field_size_limit(sys.maxsize)  # Long cells are allowed.
    try:
        header = lines[0] if lines else ""
        comma = sep or max(",;\t", key=header.count)  # The header is public.
        names = [name.strip() for name in _cells(header, comma)]
        nameless = f"The table {path} has no header: its first line names the columns."
        refuse(not any(names), nameless)
        twice = [name for name in names if names.count(name) > 1]
        refuse(twice, f"The table {path} has two columns {min(twice, default='')!r}: rename one.")
        rows = [_cells(line, comma) for line in lines[1:]]
    finally:
        csv.field_size_limit(limit)
    refuse(not rows, f"The table {path} has no rows.")
    return {
        name: [row[i] if i < len(row) else None for row in rows] for i, name in enumerate(names)
    }


def _cells(line, comma):
    """Cells of one line; of a line that is not CSV there are none."""
    try:
        return next(csv.reader([line.strip("\r\n").replace("\r", " ")], delimiter=comma), [])
    except csv.Error:
        return []


def _parquet(path):
    library = frame_library(("pyarrow", "polars"))
    try:
        frame = nw.read_parquet(str(path), backend=library)
    except Exception:  # Each library has its own errors, which may quote the file.
        raise CommandError(f"The table {path} cannot be read as Parquet.") from None
    refuse(not len(frame), f"The table {path} has no rows.")
    return frame.to_native()


def write_columns(path, columns):
    """Write columns of numbers or labels, by their names."""
    if Path(path).suffix.lower() == ".csv":
        nw.from_dict(columns, backend=frame_library(_LIBRARIES)).write_csv(path)
    else:
        nw.from_dict(columns, backend=frame_library(("pyarrow", "polars"))).write_parquet(path)


def frame_library(names):
    """The first of these libraries of tables that is installed."""
    for name in names:
        with suppress(ImportError):
            __import__(name)
            return name
    raise ImportError(
        f"Reading this table needs one of {', '.join(names)}: python -m pip install "
        f'"skpriv[{"data" if "pandas" in names else "arrow"}]"'
    )
