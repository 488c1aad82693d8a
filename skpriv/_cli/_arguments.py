"""What the commands share: types of arguments, the error of a wrong one, and --plot."""

import argparse
import sys
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any

from .._printing import axes_in_rows
from ..exceptions import SkprivError
from ..privacy import MODELS, capabilities

PRIVATE = sorted(name for name in MODELS if not capabilities(name).exact)
PICTURES = (".pdf", ".png", ".svg")


def positive(text):
    """Return a finite number above 0."""
    value = _number(text)
    if not (isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text!r} must be a finite number above 0")
    return value


def probability(text):
    """Return a number in (0, 1)."""
    value = _number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be above 0 and below 1")
    return value


class Joined(argparse.Action):
    """A list in one argument, separated by commas, or in several; each item once."""

    def __call__(self, parser, namespace, values, option_string=None):
        """Join the lists of all arguments; numbers are put in increasing order."""
        items = list(dict.fromkeys(item for listed in values for item in listed))
        numbers = all(isinstance(item, float) for item in items)
        setattr(namespace, self.dest, sorted(items) if numbers else items)


def positives(text):
    """Return finite numbers above 0, separated by commas."""
    return [positive(part) for part in names_in(text)]


def at_least(smallest):
    """Type of the integers from `smallest`."""

    def integer(text):
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} must be an integer") from None
        if value < smallest:
            raise argparse.ArgumentTypeError(f"{text!r} must be at least {smallest}")
        return value

    return integer


def some_of(names):
    """Type of the lists of these names, separated by commas."""

    def listed(text):
        chosen = names_in(text)
        for name in chosen:
            if name not in names:
                raise argparse.ArgumentTypeError(f"{name!r} must be one of {', '.join(names)}")
        return chosen

    return listed


def names_in(text):
    """Names in a list with commas; one at its end is that of a list which goes on."""
    return [part.strip() for part in text.strip().removesuffix(",").split(",")]


def _number(text):
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number") from None


def workers(text):
    """Return a number of jobs: above 0, or -1."""
    number = at_least(-1)(text)
    if number == 0:
        raise argparse.ArgumentTypeError(
            "0 must be above 0, or -1 for as many as there are processors"
        )
    return number


TABLE_OPTIONS = "table", "--sep", "--encoding"
SCHEMA_OPTIONS = "--schema", "--decimal"
GROUP_OPTIONS = "--group", "--max-rows"
SHARED: dict[str, dict[str, Any]] = {  # options that several commands have
    "table": {
        "metavar": "TABLE",
        "help": "a CSV or Parquet file; each line of a CSV file is one row, so that a cell with a "
        "line feed would be two",
    },
    "--sep": {
        "metavar": "C",
        "help": "separator of a CSV file; by default the comma, semicolon or tab that is most "
        "frequent in the header",
    },
    "--encoding": {
        "metavar": "NAME",
        "help": "encoding of a CSV file, such as latin-1; default UTF-8, which is to be named "
        "where the schema has letters that are not ASCII",
    },
    "--schema": {
        "required": True, "metavar": "FILE", "help": "TOML file that describes each column",
    },
    "--decimal": {
        "choices": (".", ","), "default": ".",
        "help": "decimal mark of columns for which the schema says nothing; default .",
    },
    "--group": {
        "metavar": "NAME",
        "help": "column that says whose row it is; all rows of a person are protected",
    },
    "--max-rows": {
        "type": at_least(1), "metavar": "M",
        "help": "with --group: most rows of one person that are used, drawn at random; more rows "
        "need more noise; default 1",
    },
    "--epsilons": {"type": positives, "nargs": "+", "action": Joined, "metavar": "E"},
    "--epsilon": {"type": positive, "metavar": "E"},
    "--delta": {"type": probability, "default": 1e-6, "metavar": "D", "help": "default 1e-6"},
    "--confidence-level": {
        "type": probability, "default": 0.95, "metavar": "P", "help": "default 0.95",
    },
    "--seed": {
        "type": at_least(0), "default": None,
        "help": "makes the noise reproducible, and unfit for a release",
    },
    "--jobs": {
        "type": workers, "default": None,
        "help": "fits at the same time; -1: as many as processors",
    },
    "--ledger": {"metavar": "FILE", "help": "file that keeps all charges, this one too"},
    "--out": {"metavar": "FILE"},
    "--plot": {"metavar": "FILE", "help": "write a picture, too"},
    "--force": {"action": "store_true", "help": "replace files that are there"},
}  # fmt: skip


def add_options(parser, *names, **changed):
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


class CommandError(SkprivError):
    """One sentence for stderr; the exit code is 2."""


def check_files(args, *read, **written):
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
    known = {Path(path).resolve(): "is read" for path in read if path is not None}
    for name, endings in written.items():
        if (path := getattr(args, name)) is None:
            continue
        file, where = Path(path).resolve(), f"--{name} {path}"
        if file in known:
            raise CommandError(f"{where} {known[file]}: name another file.")
        known[file] = f"is the file of --{name}, too"
        if endings is None:
            continue
        if name == "plot" and find_spec("matplotlib") is None:
            raise ImportError(
                "--plot needs matplotlib, which comes with the plot extra: "
                'python -m pip install "skpriv[plot]"'
            )
        if endings and file.suffix.lower() not in endings:
            raise CommandError(f"{where} must end with one of {', '.join(endings)}.")
        if not file.parent.is_dir():
            raise CommandError(f"{where}: there is no such directory.")
        if file.is_dir():
            raise CommandError(f"{where} is a directory.")
        if file.exists() and not getattr(args, "force", True):
            raise CommandError(f"{where} is there already: --force replaces it.")


def panels(n_panels, *, share=False):
    """Figure without a window, and axes in rows of at most three: a page is not wider."""
    from matplotlib.figure import Figure

    def make(*shape, figsize, layout, **options):
        # A title and a legend stand above and below the panels.
        figure = Figure(figsize=(figsize[0], figsize[1] + 1.0), layout=layout)
        return figure, figure.subplots(*shape, **options)

    axes = axes_in_rows(make, n_panels, sharey=share)
    return axes[0].figure, list(axes)


def write(figure, path):
    """Write the picture, and say so."""
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise CommandError(f"--plot {path} cannot be written: {error}.") from error
    print(f"Wrote {path}.", file=sys.stderr)


def row(label, cells):
    """One line of a table: a label, and cells at the right of columns of equal width."""
    return f"{label:<24}" + "".join(f"{cell:>15}" for cell in cells)
