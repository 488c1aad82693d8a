"""Tables in files: CSV and Parquet, for all commands."""

import codecs
import csv
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, AnyStr

import narwhals.stable.v2 as nw

from .._stored import frozen
from ..preprocessing import Schema, reads_as_value
from ..records import identity, present_names, same_names, silence
from ._arguments import CommandError, explained, present_file, refuse
from ._budget import unit_of

if TYPE_CHECKING:
    from argparse import Namespace

NO_SCHEMA = Schema({})
TEXT_ENDINGS = ".csv", ".tsv", ".txt"
FORMATS = (".csv", ".parquet")
SEPARATORS = ",;\t|"
# Signs at the beginning of a file that say how it is written; of two that begin alike the longer.
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip
OTHER_FILES = {b"PAR1": "Parquet: name it .parquet", b"PK\x03\x04": "a spreadsheet: save it as CSV"}
OPEN_NAME = rf'(^|[{SEPARATORS}])\s*"'
LIBRARIES = ("pandas", "polars", "pyarrow")


def opened(args: "Namespace") -> tuple[Any, Schema]:
    """The table of a command, and the schema of its columns, with what the options say.

    The options go before the schema, and for `--group` and `--max-rows` the schema goes before the
    unit of the ledger: what is found is written into the arguments.

    Parameters
    ----------
    args : Namespace
        The arguments of `ROWS_OPTIONS`.

    Returns
    -------
    (data frame, Schema)
    """
    frame, schema = read_with_schema(args, args.table)
    return frame, _of_persons(args, schema, nw.from_native(frame).columns)


def read_with_schema(args: "Namespace", path: str) -> tuple[Any, Schema]:
    """A table, and the schema of its columns, with what the options say of the file."""
    schema = formatted(read_schema(args), args, decimal=args.decimal)
    frame = read_table(path, schema)
    names = nw.from_native(frame).columns
    # Whether the first line is a header is not known if it has none of the columns, and then no
    # word of it is repeated.
    refuse(
        set(same_names(schema, names)) == {None},
        f"None of the columns of --schema {args.schema} is in the first line of {path}, which must "
        "name the columns: delete what stands above it, or say how it is written with --sep and "
        "--encoding.",
    )
    present_names(schema, names, f"--schema {args.schema}", path, CommandError)
    return frame, schema


def read_schema(args: "Namespace") -> Schema:
    """The schema of a command."""
    present_file("--schema", args.schema, "`skpriv schema` writes a template of one.")
    with explained(f"--schema {args.schema}:"):
        return Schema.read(args.schema)


def formatted(schema: Schema, args: "Namespace", **said: Any) -> Schema:
    """A schema whose table is written as the options say, where they do."""
    sep = None if args.sep is None else args.sep.replace("\\t", "\t")
    with explained("--sep, --encoding or --decimal:"):
        return schema.with_format(sep=sep, encoding=args.encoding, **said)


def chosen_columns(option: str, names: list[str], schema: Schema) -> list[str]:
    """Columns of the schema that an option names."""
    quoted = ", where a name with a comma stands in quotation marks"
    where = "--schema" + quoted * any("," in name for name in schema)
    return present_names(names, schema, option, where, CommandError)


def _of_persons(args: "Namespace", schema: Schema, names: list[str]) -> Schema:
    """The schema with the person whose rows they are, and how many of each are used.

    The options decide the column and the number, then the schema, and then the ledger. The findings
    are written into the arguments.
    """
    written = schema.table_format
    unit = unit_of(args.ledger)
    alone = "--max-rows needs --group, the column that says whose row it is."
    places = {
        "--group": (args.group, args.max_rows),
        f"--schema {args.schema}, as person,": (written.person, written.limit),
        f"--ledger {args.ledger}, as its unit,": unit,
    }
    who = next((place for place, (person, _) in places.items() if person), None)
    refuse(who is None and args.max_rows is not None, alone)
    if who is None:
        return schema
    args.group = places[who][0]
    present_names([args.group], names, who, args.table, CommandError)
    numbers = [
        number
        for person, number in places.values()
        if number is not None and identity(person or args.group) == identity(args.group)
    ]
    args.max_rows = numbers[0] if numbers else 1
    with explained(f"--schema {args.schema}:"):
        return schema.with_format(person=args.group, limit=args.max_rows)


def read_table(path: str | Path, schema: Schema = NO_SCHEMA) -> Any:
    """Frame of a file; all cells of a CSV file are texts.

    The type of the numbers of a column would depend on all of its rows: a CSV file is read cell by
    cell, and it is the schema that says what a cell means. Every file of rows can be read: each
    line is a row, a short row has missing cells at its end, and what a long row has too much is
    left out.

    Parameters
    ----------
    path : str
    schema : Schema, default=NO_SCHEMA
        How a CSV file is written.
    """
    kind = Path(path).suffix.lower()
    allowed = *TEXT_ENDINGS, ".parquet"
    refuse(kind not in allowed, f"The table {path} must end with one of {', '.join(allowed)}.")
    present_file("The table", path, "check its name and its folder.")
    if kind == ".parquet":
        return _parquet(path)
    columns = TextTable.read(path, schema).columns()
    return nw.from_dict(columns, backend=frame_library(LIBRARIES)).to_native()


@frozen
class TextTable:
    """A CSV file: its lines after the header, and what was found out from the header alone.

    Attributes
    ----------
    encoding : str
    sep : str
    names : dict of int to str
        Names of the columns, by their places.
    lines : list of str
        Each of them is one row, whatever is in it.
    """

    encoding: str
    sep: str
    names: dict[int, str]
    lines: list[str]

    @classmethod
    def read(cls, path: str | Path, schema: Schema = NO_SCHEMA, *, least: int = 1) -> "TextTable":
        """Read a file of at least so many rows.

        Lines before the header that are empty, and one that names the separator ("sep=;", as
        spreadsheets write it), are no part of the table.
        """
        with explained(f"The table {path} cannot be read:", OSError):
            data = Path(path).read_bytes()
        for start, words in OTHER_FILES.items():
            refuse(data.startswith(start), f"The table {path} is {words}.")
        encoding = _encoding(path, data, schema)
        lines = _lines(data, encoding)
        sep = schema.table_format.sep
        while lines and (not lines[0].strip() or _names_separator(lines[0])):
            sep = sep or _names_separator(lines[0])
            del lines[0]
        header = _header(lines, sep, schema)
        refuse(
            len(lines) < least,
            f"The table {path} has no rows below its first line, which names columns.",
        )
        refuse(
            "\ufffd" in header,
            f"The header of {path} cannot be read as {encoding}: name its encoding, such as "
            "--encoding cp1252 (cp1250 of central Europe, cp1251 of Cyrillic letters) for files of "
            "older Windows, utf-8 or utf-16.",
        )
        sep = sep or _likely_separator(header)
        (cells,) = rows_of([header], sep)
        return cls(encoding, sep, _names(path, cells, schema), lines)

    def columns(self) -> dict[str, list[str | None]]:
        """Cells of the columns as texts, by their names."""
        last = max(self.names)
        rows: list[list[str | None]] = [
            [*row, *[None] * (last + 1 - len(row))] for row in rows_of(self.lines, self.sep)
        ]
        return {name: [row[at] for row in rows] for at, name in self.names.items()}

    def strange(self) -> Iterator[str]:
        """Sentences about the lines for the curator: exact, private numbers."""
        rows = rows_of(self.lines, self.sep)
        width = max(self.names) + 1
        found = {
            "do not close a quotation mark. A cell with a line feed is read as two rows: replace "
            "the line feeds in cells.": sum(line.count('"') % 2 for line in self.lines),
            f"cannot be read as {self.encoding}: name the encoding of the file, such as --encoding "
            "latin-1, or cp1252 for files of older Windows.": sum(
                "\ufffd" in line for line in self.lines
            ),
            "have a carriage return inside, which is read as a blank: save the file with one kind "
            "of line ends.": sum("\r" in line.strip("\r\n") for line in self.lines),
            "have more cells than the header has names, which are left out. If nearly all have, "
            "the first line is a title, or the first name is missing, as in files of R: let the "
            "first line name all columns.": sum(any(row[width:]) for row in rows),
            "have no separator. If nearly all have none, name it with --sep.": sum(
                len(row) < min(2, width) for row in rows
            ),
        }
        return (f"{count} lines {words}" for words, count in found.items() if count)


def text_of(path: str, schema: Schema) -> TextTable | None:
    """The lines of a CSV file; None of a Parquet file, which has none."""
    return None if Path(path).suffix.lower() == ".parquet" else TextTable.read(path, schema)


def _encoding(path: str | Path, data: bytes, schema: Schema) -> str:
    """The encoding of a file: what it says itself, what was said, or UTF-8.

    Nothing is known of the cells: where letters that are not ASCII are written in their own way in
    each encoding, and nothing says which one it is, in another one they would silently be none of
    those of the schema.
    """
    for mark in sorted(MARKS, key=len, reverse=True):
        if data.startswith(mark):
            return MARKS[mark]
    header = re.split(rb"[\r\n]", data.lstrip(b"\r\n"), maxsplit=1)[0]
    utf_8 = header.decode(errors="replace")
    if said := schema.table_format.encoding:
        read = header.decode(said, errors="replace")
        refuse(
            any(name in utf_8 and name not in read for name in schema),
            f"The header of {path} is written in UTF-8, and not in {said}, as --encoding or the "
            "schema says: give --encoding utf-8.",
        )
        return said
    refuse(
        utf_8.isascii() and not str(schema).isascii(),
        "The schema has letters that are not ASCII: name the encoding of the table, --encoding "
        "utf-8, or latin-1 or cp1252 for files of older Windows.",
    )
    return "utf-16" if b"\0" in header else "utf-8"


@silence()
def _lines(data: bytes, encoding: str) -> list[str]:
    """Lines of a file, each of which is read by itself: no cell shifts the code of the next line.

    Half of a pair of surrogates, which some encodings can write, is no letter and cannot be read.

    Encodings that write a line feed in several bytes, such as UTF-16, are read as a whole. Lines
    end as the first one does, which is public: with a line feed, or with a carriage return alone.
    """
    if b"\n".decode(encoding, errors="replace") == "\n":
        parts = _split(data, b"\n", b"\r")
        lines = [part.decode(encoding, errors="replace") for part in parts]
    else:
        lines = _split(data.decode(encoding, errors="replace"), "\n", "\r")
    return [re.sub("[\ud800-\udfff]", "\ufffd", line) for line in lines]


def _split(text: AnyStr, feed: AnyStr, back: AnyStr) -> list[AnyStr]:
    first = text.split(feed, 1)[0]
    lines = text.split(back if back in first.rstrip(back) else feed)
    if not lines[-1]:
        del lines[-1]  # The last line end ends a line, and begins none.
    return lines


def _names_separator(line: str) -> str | None:
    """The separator that a line names, "sep=;", or None."""
    found = re.fullmatch(r'"?sep=(.)"?', line.strip("\ufeff\r\n"), re.IGNORECASE)
    return found and found[1]


def _likely_separator(header: str) -> str:
    """The separator that a header, which is public, has most often."""
    return max(SEPARATORS, key=re.sub('"[^"]*"', "", header).count)


def _header(lines: list[str], sep: str | None, schema: Schema) -> str:
    """Take the header off the lines: the first of them, or several with a name in quotation.

    The lines that follow are a part of it if its last mark opens a name, as that of ``12" pipes``
    does not, and if the names then hold all columns of the schema. Else a mark that nobody closes
    would end at one of a record, whose cells would be names.
    """
    header = lines.pop(0) if lines else ""
    if re.search(OPEN_NAME, re.sub('"[^"]*"', "", header)):
        marks = (at for at, line in enumerate(lines, 1) if line.count('"') % 2)
        count = next(marks, 0)
        longer = "\n".join([header, *lines[:count]])
        (cells,) = rows_of([longer], sep or _likely_separator(longer))
        if set(map(identity, schema)) <= set(map(identity, cells)):
            del lines[:count]
            return longer
    return header


def _names(path: str | Path, cells: list[str], schema: Schema) -> dict[int, str]:
    """Names of the columns by their places, without those that have none.

    The first line may be a row, whose cells are private: none of them is repeated.
    """
    names = {at: " ".join(name.split()) for at, name in enumerate(cells) if name.strip()}
    no_header = f"The table {path} has no header: its first line must name the columns."
    refuse(not names, no_header)
    values = [name for name in names.values() if reads_as_value(name)]
    refuse(
        values and None in same_names(values, schema),
        f"{no_header} Here it has a number or a date in place of a name. Write a line of names at "
        "the top and name the separator with --sep, or rename such columns, 2020 as y2020.",
    )
    meant = {at: identity(name) or name for at, name in names.items()}
    counts = Counter(meant.values())
    twice = " and ".join(str(at + 1) for at, name in meant.items() if counts[name] > 1)
    refuse(twice, f"The table {path} has the same name for the columns {twice}: rename one.")
    return names


def rows_of(lines: Iterable[str], sep: str) -> list[list[str]]:
    """Cells of each line; of a line that is not CSV there are none.

    The number of rows is public, and no cell may decide it. So a quotation mark that nobody closes
    ends with its line, an empty line is a row without cells, and a carriage return within a line is
    a blank.
    """
    rows: list[list[str]] = []
    limit = csv.field_size_limit(sys.maxsize)  # Long cells are allowed.
    try:
        for line in lines:
            plain = [line.strip("\r\n").replace("\r", " ")]
            rows.append([])
            with suppress(csv.Error):
                rows[-1] = next(csv.reader(plain, delimiter=sep), [])
    finally:
        csv.field_size_limit(limit)
    return rows


def _parquet(path: str | Path) -> Any:
    library = frame_library(("pyarrow", "polars"))
    try:
        frame = nw.read_parquet(str(path), backend=library)
    except Exception:  # Each library has its own errors, which may quote the file.
        raise CommandError(f"The table {path} cannot be read as Parquet.") from None
    refuse(not len(frame), f"The table {path} has no rows.")
    return frame.to_native()


def write_columns(path: str, columns: Mapping[str, Any]) -> None:
    """Write columns of numbers or labels, by their names."""
    if Path(path).suffix.lower() == ".csv":
        inert = {_inert(name): list(map(_inert, cells)) for name, cells in columns.items()}
        nw.from_dict(inert, backend=frame_library(LIBRARIES)).write_csv(path)
    else:
        nw.from_dict(columns, backend=frame_library(("pyarrow", "polars"))).write_parquet(path)


def _inert(cell: Any) -> Any:
    """A cell of a CSV file in one line, which no spreadsheet takes for a formula.

    Numbers stay as they are.
    """
    if not isinstance(cell, str):
        return cell
    line = " ".join(cell.splitlines())
    formula = line.lstrip().startswith(("=", "+", "-", "@")) and not reads_as_value(line)
    return "'" * formula + line


def frame_library(names: tuple[str, ...]) -> Any:
    """The first of these libraries of tables that is installed."""
    if found := next(filter(find_spec, names), None):
        return found
    raise ImportError(
        f"Reading this table needs one of {', '.join(names)}: python -m pip install "
        f'"skpriv[{"data" if "pandas" in names else "arrow"}]"'
    )
