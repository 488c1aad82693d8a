"""From the arguments to the command."""

import argparse
import sys

from ..exceptions import SkprivError
from . import _regret, _tradeoff


def main(argv=None):
    """Run a command; return its exit code.

    Parameters
    ----------
    argv : list of str, default=None
        Arguments; None takes those of the process.
    """
    parser = argparse.ArgumentParser(
        prog="python -m skpriv", description="Private regression and bandits."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _tradeoff.add_command(commands)
    _regret.add_command(commands)
    args = parser.parse_args(argv)
    try:
        return args.run(args)
    except (SkprivError, ImportError) as error:
        print(f"{parser.prog} {args.command}: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
