"""Files of public bounds."""

import csv
import json
from math import isfinite
from pathlib import Path

from .._arguments import CommandError

FORMAT = (
    'a CSV file with the lines "name,low,high", or a JSON file {"name": [low, high], ...}, '
    "for each feature and for the target"
)
WHY = (
    "A CSV file needs --bounds FILE, the public range of each feature and of the target. They "
    "cannot be read off the data: noise is scaled to the largest change that one record can make, "
    "and a minimum or maximum is itself the value of one person's record. Take them from what the "
    f"columns mean (an age is 0 to 120), whoever is in the data, and write {FORMAT}."
)


def read_bounds(path):
    """Read `{name: (low, high)}` from a JSON or CSV file."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--bounds {path} cannot be read: {error}.") from error
    entries = _from_json(path, text) if text.lstrip().startswith("{") else _from_csv(path, text)
    bounds = {}
    for name, *pair in entries:
        if name in bounds:
            raise CommandError(f"--bounds {path} gives {name!r} twice.")
        bounds[name] = _pair(path, name, pair)
    return bounds


def _from_json(path, text):
    try:
        # Pairs and not a dict, so that a name that stands twice is seen.
        pairs = json.loads(text, object_pairs_hook=list)
    except json.JSONDecodeError as error:
        raise CommandError(f"--bounds {path} is not JSON: {error}. It must be {FORMAT}.") from error
    return [(name, *(pair if isinstance(pair, list) else [pair])) for name, pair in pairs]


def _from_csv(path, text):
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines())]
    rows = [row for row in rows if any(row)]
    if rows and rows[0] == ["name", "low", "high"]:
        del rows[0]
    if not rows:
        raise CommandError(f"--bounds {path} is empty: it must be {FORMAT}.")
    return rows


def _pair(path, name, pair):
    try:
        low, high = (float(value) for value in pair)
    except (TypeError, ValueError):
        given = ",".join(map(str, pair))
        raise CommandError(
            f"--bounds {path} gives {name!r} the range {given!r}, but it must be two numbers, low "
            f"and high: {FORMAT}."
        ) from None
    if not (isfinite(low) and isfinite(high) and low < high):
        raise CommandError(
            f"--bounds {path} gives {name!r} the range {low:g} to {high:g}, but low and high must "
            "be finite, with low < high."
        )
    return low, high
