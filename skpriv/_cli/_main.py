"""From the arguments to the command."""

import argparse
import os
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from .._version import VERSION
from ..exceptions import SkprivError

# Command: its module, and what --help says of it in a line. A module is imported when its command
# is called: `add_NAME` adds the arguments, and `run_NAME` returns the exit code. The docstring of
# `run_NAME` is what the help of the command says first.
COMMANDS = {
    "schema": ("_describe", "the template of a schema, for a person to fill in"),
    "check": ("_describe", "how the cells of a table fit its schema"),
    "describe": ("_describe", "private counts, means and quantiles of a table"),
    "plan": ("_fit", "the standard errors of a fit, before anybody has seen a row"),
    "fit": ("_fit", "a private model of a table"),
    "report": ("_predict", "one HTML page about a model, with lines for a signature"),
    "predict": ("_predict", "predictions for the rows of a table"),
    "budget": ("_budget", "what a ledger has spent, and what is left"),
    "tradeoff": ("_tradeoff", "what privacy costs in accuracy, on real data"),
    "learn": ("_learn", "rewards that come late, and learning, for the file of a service"),
    "regret": ("_regret", "what privacy costs a bandit in regret"),
    "audit": ("_audit", "attack the privacy of every estimator and policy"),
}


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line; the usage is what --help prints."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} ({self.prog} --help says what it takes)\n")


def main(argv: Any = None) -> int:
    """Run a command; return its exit code.

    Parameters
    ----------
    argv : list of str, default=None
        Arguments; None takes those of the process.
    """
    argv = sys.argv[1:] if argv is None else argv
    called = "skpriv" if Path(sys.argv[0]).stem == "skpriv" else "python -m skpriv"
    parser = _Parser(prog=called, description="Private regression and bandits.")
    parser.add_argument("--version", action="version", version=f"skpriv {VERSION}")
    parser.set_defaults(force=True)  # of commands that ask for it, whether they were told so
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (home, words) in COMMANDS.items():
        command = commands.add_parser(name, help=words)
        if name in argv:
            module = import_module(f".{home}", __package__)
            getattr(module, f"add_{name}")(command)
            run = getattr(module, f"run_{name}")
            command.description = run.__doc__
            command.set_defaults(run=run)
    args = parser.parse_args(argv)
    python = warnings.showwarning
    warnings.showwarning = _said(f"{parser.prog} {args.command}")
    try:
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # The reader of the output has stopped, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (SkprivError, ImportError, OSError) as error:  # the last such as of a full disk
        print(f"{parser.prog} {args.command}: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    finally:
        warnings.showwarning = python


def _said(command: str) -> Any:
    """A function that shows a warning in one line, without the line of Python that it is about."""

    def show(message: Any, *place: Any, **named: Any) -> None:
        print(f"{command}: warning: {message}", file=sys.stderr)

    return show
