"""What the commands share: types of arguments, options, files, and errors of one sentence."""

import argparse
import csv
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sklearn.base import clone

from .._printing import Table, given_axes, pyplot
from ..exceptions import SkprivError
from ..privacy import MODELS, capabilities

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

PRIVATE = sorted(name for name in MODELS if not capabilities(name).exact)
PICTURES = (".pdf", ".png", ".svg")
T = TypeVar("T")


class CommandError(SkprivError):
    """One sentence for stderr; the exit code is 2."""


def refuse(wrong: object, sentence: str) -> None:
    """Raise an error of this sentence where something is wrong."""
    if wrong:
        raise CommandError(sentence)


def present_file(what: str, path: str | Path, remedy: str) -> None:
    """Refuse a path at which there is no file, with the remedy."""
    refuse(not Path(path).is_file(), f"{what} {path} is not a file: {remedy}")


def tell(*lines: str) -> None:
    """Print lines that are no part of what a command makes."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


@contextmanager
def explained(words: str, *errors: type[Exception]) -> Iterator[None]:
    """Make errors one sentence that begins with these words; by default those of reading a file."""
    try:
        yield
    except errors or (OSError, ValueError) as error:
        raise CommandError(f"{words} {error}") from None


def of_type(read: Callable[[str], T], holds: Callable[[T], bool], words: str) -> Callable[[str], T]:
    """Type of an argument: what ``read`` makes of its text, if ``holds`` is true of it.

    Parameters
    ----------
    read, holds : callable
    words : str
        What the error says that the argument must be.
    """

    def parsed(text: str) -> T:
        try:
            if holds(value := read(text)):
                return value
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"{text!r} must be {words}")

    return parsed


def names_in(text: str) -> list[str]:
    """Names in a list with commas; one at its end is that of a list which goes on.

    A name that has a comma stands in quotation marks: '"income, yearly",age'.
    """
    row = next(csv.reader([text.strip().removesuffix(",")], skipinitialspace=True), [])
    return [part.strip() for part in row]


def at_least(smallest: int) -> Callable[[str], int]:
    """Type of the integers from `smallest`."""
    return of_type(int, lambda value: value >= smallest, f"an integer of at least {smallest}")


def some_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Type of the lists of these names, separated by commas."""
    return of_type(names_in, lambda given: set(given) <= set(names), f"of {', '.join(names)}")


positive = of_type(float, lambda value: 0.0 < value < inf, "a finite number above 0")
probability = of_type(float, lambda value: 0.0 < value < 1.0, "a number above 0 and below 1")
positives = of_type(
    lambda text: [float(part) for part in names_in(text)],
    lambda values: all(0.0 < value < inf for value in values),
    "finite numbers above 0, separated by commas",
)
workers = of_type(
    int, lambda count: count == -1 or count > 0, "above 0, or -1: as many as processors"
)


class Joined(argparse.Action):
    """A list in one argument, separated by commas, or in several; each item once."""

    def __call__(
        self,
        parser: "ArgumentParser",
        namespace: "Namespace",
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Join the lists of all arguments; numbers are put in increasing order."""
        items = list(dict.fromkeys(item for listed in values for item in listed))
        numbers = all(isinstance(item, float) for item in items)
        setattr(namespace, self.dest, sorted(items) if numbers else items)


TABLE_OPTIONS = "table", "--sep", "--encoding"
GROUP_OPTIONS = "--group", "--max-rows"
ROWS_OPTIONS = *TABLE_OPTIONS, "--schema", "--decimal", *GROUP_OPTIONS
SHARED: dict[str, dict[str, Any]] = {  # options that several commands have
    "table": {
        "metavar": "TABLE",
        "help": "a CSV or Parquet file; the first line of a CSV file names the columns, and each "
        "other line is one row, so that a cell with a line feed would be two",
    },
    "--sep": {
        "metavar": "C",
        "help": "separator of a CSV file; by default the comma, semicolon, tab or | that is most "
        "frequent in the header, unless the schema says it",
    },
    "--encoding": {
        "metavar": "NAME",
        "help": "encoding of a CSV file, such as cp1252, unless the schema says it; default UTF-8. "
        "Required if the schema has non-ASCII letters and the header of the file has none",
    },
    "--schema": {
        "required": True, "metavar": "FILE", "help": "TOML file that describes each column",
    },
    "--decimal": {
        "choices": (".", ","), "metavar": "C",
        "help": "decimal mark (. or ,) of columns for which the schema says nothing; default .",
    },
    "--group": {
        "metavar": "NAME",
        "help": "column that says whose row it is; all rows of a person are protected. By default "
        "the person of the schema, or the column of the unit of --ledger",
    },
    "--max-rows": {
        "type": at_least(1), "metavar": "M",
        "help": "with --group: most rows of one person that are used, drawn at random; more rows "
        "need more noise; by default the limit of the schema or of the ledger, or 1",
    },
    "--epsilons": {"type": positives, "nargs": "+", "action": Joined, "metavar": "E"},
    "--epsilon": {"type": positive, "metavar": "E"},
    "--delta": {"type": probability, "default": 1e-6, "metavar": "D", "help": "default 1e-6"},
    "--confidence-level": {
        "type": probability, "default": 0.95, "metavar": "P", "help": "default 0.95",
    },
    "--seed": {
        "type": at_least(0),
        "help": "makes the noise reproducible, and unfit for a release",
    },
    "--jobs": {
        "type": workers,
        "help": "fits at the same time; -1: as many as processors",
    },
    "--ledger": {
        "metavar": "FILE",
        "help": "file that keeps all charges, this one too; the first charge of a new file is its "
        "total, unless `budget` has set another",
    },
    "--out": {"metavar": "FILE"},
    "--plot": {"metavar": "FILE", "help": "write a picture, too"},
    "--force": {"action": "store_true", "help": "replace files that are there"},
}  # fmt: skip


def add_options(parser: "ArgumentParser", *names: str, **changed: dict[str, Any]) -> None:
    """Add options that several commands have; of some a command says more, by their name.

    Parameters
    ----------
    parser : ArgumentParser
    *names : str
    **changed : dict
        Settings of an option in place of the shared ones.
    """
    for name in names:
        own = changed.pop(name.lstrip("-").replace("-", "_"), {})
        parser.add_argument(name, **{**SHARED[name], **own})


def check_files(args: "Namespace", *read: str | None, **written: tuple[str, ...] | None) -> None:
    """Whether files can be written is found out before anything is spent, and not after it.

    No file that is read is written, whatever --force says, and none is written twice.

    Parameters
    ----------
    args : Namespace
    *read : str or None
        Paths.
    **written : tuple of str, or None
        How the file of an option may end, in any way if it is empty. None stands for a ledger,
        which may be there.
    """
    roles = {Path(path).resolve(): "is read" for path in read if path is not None}
    for name, endings in written.items():
        if (path := getattr(args, name)) is None:
            continue
        file = Path(path).resolve()
        where = f"--{name} {path}"
        refuse(file in roles, f"{where} {roles.get(file)}: name another file.")
        roles[file] = f"is the file of --{name}, too"
        if endings is None:
            continue
        if name == "plot":
            pyplot("--plot")
        refuse(
            endings and file.suffix.lower() not in endings,
            f"{where} must end with {' or '.join(endings)}.",
        )
        refuse(
            not os.access(f"{file.parent}/", os.W_OK),
            f"{where}: there is no such directory, or it cannot be written.",
        )
        refuse(file.is_dir(), f"{where} is a directory.")
        refuse(
            file.exists() and not args.force,
            f"{where} is there already: --force replaces it.",
        )


def with_settings(template: Any, **settings: Any) -> Any:
    """Copy of an estimator or policy, with those settings that it has, or that its oracle has.

    Parameters
    ----------
    template : estimator or policy
    **settings : dict
        Parameters, such as those of the budget.
    """
    own = {
        name: settings[bare]
        for name in template.get_params()
        if (bare := name.removeprefix("oracle__")) in settings
    }
    return clone(template).set_params(**own)


def panels(n_panels: int, *, share: bool = False) -> tuple[Any, list[Any]]:
    """Figure with axes in rows of at most three: a page is not wider."""
    axes = given_axes(None, n_panels, "--plot", sharey=share)
    figure = axes[0].figure
    figure.set_figheight(figure.get_figheight() + 1.0)  # a title and a legend stand outside
    return figure, list(axes)


def write(figure: Any, path: str) -> None:
    """Write the picture, and say so."""
    with explained(f"--plot {path} cannot be written:", OSError):
        figure.savefig(path, dpi=150, bbox_inches="tight")
    pyplot("--plot").close(figure)
    tell(f"Wrote {path}.")


def by_epsilon(epsilons: Iterable[float], rows: list[list[str]]) -> Table:
    """Table with a column for each epsilon; a row is a label and at most as many cells."""
    header = ["epsilon", *(f"{epsilon:g}" for epsilon in epsilons)]
    return Table(header, [[*row, *[""] * (len(header) - len(row))] for row in rows])
