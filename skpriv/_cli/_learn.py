"""`python -m skpriv learn`: rewards that come late, and learning, for the file of a service."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..bandits import Loop
from ._arguments import CommandError, add_options, explained, present_file, refuse
from ._frames import NO_SCHEMA, TextTable, formatted

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

PART = 1_000  # rewards that are brought at once, while workers wait


def add_learn(parser: "ArgumentParser") -> None:
    """Add the arguments of the command."""
    add = parser.add_argument
    add("service", metavar="FILE", help="the file of a service, which Loop made")
    add(
        "rewards",
        metavar="REWARDS",
        nargs="?",
        help="CSV file with the columns event and reward, or a .jsonl file of objects that have "
        "them; by default the policy learns only",
    )
    add_options(parser, "--sep", "--encoding")


def run_learn(args: "Namespace") -> int:
    """Bring rewards to the file of a service, and let its policy learn what is due.

    Workers may use the file meanwhile. A reward that the file has is not taken again, so that the
    same rewards may be brought twice. Learning is charged to the ledger of the service. The exit
    code is 1 if the policy could not learn.
    """
    present_file("The service", args.service, "give the one that its Loop made.")
    pairs = [] if args.rewards is None else _read(args, Path(args.rewards))
    counts: Counter[str] = Counter()
    with explained(f"The service {args.service}:", ValueError):
        loop = Loop(None, args.service, learn="elsewhere")
        for start in range(0, len(pairs), PART):
            counts.update(loop.reward_many(*zip(*pairs[start : start + PART])))
    troubles = loop.troubles
    counts["learned"] = loop.learn()
    print(json.dumps({**counts, "waiting": loop.status()["waiting"]}))
    return int(loop.troubles != troubles)


def _read(args: "Namespace", path: Path) -> list[tuple[Any, float]]:
    """Pairs of an event and its reward; an error repeats no cell."""
    refuse(not path.is_file(), f"The rewards {path} are not a file.")
    try:
        if path.suffix == ".jsonl":
            with path.open(encoding="utf-8") as lines:
                return [(e["event"], float(e["reward"])) for e in map(json.loads, lines)]
        columns: dict[str, list[Any]] = TextTable.read(
            path, formatted(NO_SCHEMA, args), least=0
        ).columns()
        return list(zip(columns["event"], map(float, columns["reward"]), strict=True))
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
        raise CommandError(
            f"The rewards {path} need the columns event and reward, and a number as each reward."
        ) from None
