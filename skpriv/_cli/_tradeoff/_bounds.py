"""Files of public bounds."""

import csv
import json
from math import isfinite, nan
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
        # Pairs and not a dict, so that a name that stands twice is seen.
        entries = json.loads(text, object_pairs_hook=list) if text.lstrip()[:1] == "{" else None
    except (OSError, ValueError) as error:
        raise CommandError(
            f"--bounds {path} cannot be read: {error}. It must be {FORMAT}."
        ) from None
    if entries is None:
        rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines())]
        entries = [(name, pair) for name, *pair in filter(any, rows)]
        entries = entries[entries[:1] == [("name", ["low", "high"])] :]
    bounds: dict = {}
    for name, pair in entries:
        if name in bounds:
            raise CommandError(f"--bounds {path} gives {name!r} twice.")
        try:
            low, high = map(float, pair)
        except (TypeError, ValueError):
            low = high = nan
        if not (isfinite(low) and isfinite(high) and low < high):
            raise CommandError(
                f"--bounds {path} gives {name!r} the range {pair!r}, but it must be two numbers, "
                f"finite and with low < high: {FORMAT}."
            )
        bounds[name] = low, high
    if not bounds:
        raise CommandError(f"--bounds {path} is empty: it must be {FORMAT}.")
    return bounds
