"""Tables in files: CSV and Parquet."""

import csv
import sys
from pathlib import Path

import narwhals.stable.v2 as nw

from ._arguments import CommandError

FORMATS = (".csv", ".parquet")
_LIBRARIES = ("pandas", "polars", "pyarrow")


def check_table(path, option):
    """Whether the name of a table can be meant."""
    if Path(path).suffix.lower() not in FORMATS:
        raise CommandError(f"{option} {path} must end with one of {', '.join(FORMATS)}.")


def read_table(path):
    """Frame of a file; all cells of a CSV file are texts.

    What type the numbers of a column have would depend on all of its rows: a CSV file is read
    cell by cell, and it is the schema that says what a cell means. Every file of rows can be read:
    a short row has missing cells at its end, and what a long row has too much is left out.
    """
    check_table(path, "The table")
    if not Path(path).is_file():
        raise CommandError(f"The table {path} is not a file.")
    if Path(path).suffix.lower() == ".parquet":
        return _parquet(path)
    try:
        with Path(path).open(encoding="utf-8-sig", errors="replace", newline="") as file:
            return nw.from_dict(_columns(path, file), backend=_library(_LIBRARIES)).to_native()
    except OSError as error:
        raise CommandError(f"The table {path} cannot be read: {error.strerror}.") from None


def _columns(path, file):
    limit = csv.field_size_limit(sys.maxsize)  # a long cell is a cell
    try:
        header = file.readline()
        comma = max(",;\t", key=header.count)  # the header is public
        names = [name.strip() for name in next(csv.reader([header], delimiter=comma), [])]
        if not any(names):
            raise CommandError(f"The table {path} has no header: its first line names the columns.")
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise CommandError(f"The table {path} has two columns {twice[0]!r}: rename one.")
        rows = [row for row in csv.reader(file, delimiter=comma) if row]
    finally:
        csv.field_size_limit(limit)
    if not rows:
        raise CommandError(f"The table {path} has no rows.")
    return {
        name: [row[i] if i < len(row) else None for row in rows] for i, name in enumerate(names)
    }


def _parquet(path):
    library = _library(("pyarrow", "polars"))
    try:
        frame = nw.read_parquet(str(path), backend=library)
    except Exception:  # each library has errors of its own, which may quote the file
        raise CommandError(f"The table {path} cannot be read as Parquet.") from None
    if not len(frame):
        raise CommandError(f"The table {path} has no rows.")
    return frame.to_native()


def write_column(path, name, values):
    """Write one column of numbers."""
    if Path(path).suffix.lower() == ".csv":
        lines = "".join(f"{value!r}\n" for value in values.tolist())
        Path(path).write_text(f"{name}\n{lines}", encoding="utf-8")
        return
    library = _library(("pyarrow", "polars"))
    nw.from_dict({name: values}, backend=library).write_parquet(str(path))


def _library(names):
    for name in names:
        try:
            __import__(name)
        except ImportError:
            continue
        return name
    raise ImportError(
        f"Reading this table needs one of {', '.join(names)}: python -m pip install "
        f'"skpriv[{"data" if "pandas" in names else "arrow"}]"'
    )


def check_different(read, written):
    """No file that is read is written, whatever --force says, and none is written twice.

    Parameters
    ----------
    read : list of str
    written : dict of str to (str or None)
        Paths by option.
    """
    known = {Path(path).resolve(): "is read" for path in read}
    for option, path in written.items():
        if path is None:
            continue
        place = Path(path).resolve()
        if place in known:
            raise CommandError(f"{option} {path} {known[place]}: name another file.")
        known[place] = f"is the file of {option}, too"


def check_out(option, path, force=False, formats=None):
    """Whether a file can be written is found out before anything is spent, and not after it."""
    if path is None:
        return
    if formats is not None and Path(path).suffix.lower() not in formats:
        raise CommandError(f"{option} {path} must end with one of {', '.join(formats)}.")
    if not Path(path).absolute().parent.is_dir():
        raise CommandError(f"{option} {path}: there is no such directory.")
    if Path(path).is_dir():
        raise CommandError(f"{option} {path} is a directory.")
    if Path(path).exists() and not force:
        raise CommandError(f"{option} {path} is there already: --force replaces it.")
