"""What every benchmark says of itself: versions and commit, raw numbers as JSON, figures.

A record is merged into the last one by its keys: what a run did not measure stays. A run of fewer
seeds than the last one is refused, unless the script is called with ``--replace``, which all of
them understand. What became better is put among the cells of ``_gate.py``, which the next record is
compared with.
"""

import json
import platform
import re
import subprocess
import sys
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
PACKAGES = ("numpy", "scipy", "scikit-learn", "opendp")
REPLACE = "--replace"  # of the last record's runs, by fewer ones
# Settings of a script that say how much was measured.
COUNTS = {"runs", "repeats", "trials", "seeds", "fits", "splits", "horizon", "rounds", "events"}
RUN = re.compile(r"\d+(\.\d+)?")  # key of a run: its seed, or seed and fold


def _takes_replace():
    """Whether ``--replace`` stands in the command, from which it is taken."""
    if {"-h", "--help"} & set(sys.argv):
        print(f"A script that records takes {REPLACE}, too: it puts the numbers in the place of a "
              "record of more runs, which is kept and drawn otherwise.\n")  # fmt: skip
    asked = REPLACE in sys.argv
    while REPLACE in sys.argv:
        sys.argv.remove(REPLACE)
    return asked


replaces = _takes_replace()


def provenance():
    """Commit, versions, and the command that was run, without the places of this machine."""
    words = [word.name if word.is_absolute() else str(word) for word in map(Path, sys.argv[1:])]
    return {
        "command": " ".join(["python", "benchmarks/" + Path(sys.argv[0]).name, *words]),
        "commit": _git("rev-parse", "--short", "HEAD"),
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
    }


def record(name, numbers):
    """Print the provenance, and write it beside the numbers to ``results/NAME.json``.

    Numbers of code that is not committed are no record: nothing is written then. Nor is anything
    lost: what stands in the last record under other keys stays there, and fewer runs of the same
    key go to ``results/NAME.refused`` in its place.

    Parameters
    ----------
    name : str
    numbers : dict
        Anything that JSON holds, NumPy arrays and numbers included.
    """
    facts = provenance()
    print("\n" + ", ".join(f"{key} {value}" for key, value in facts.items()))
    if changed := _git(
        "status", "--short", "--", ".", "../skpriv", ":!results", ":!last_cells.json"
    ):
        print(f"Not recorded: commit these files before, or nobody can repeat it.\n{changed}")
        return
    path = HERE / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    found = json.loads(json.dumps({"provenance": facts, "numbers": numbers}, default=_plain))
    if path.exists():
        last = json.loads(path.read_text(encoding="utf-8"))
        lost = [] if replaces else sorted(fewer_runs(last["numbers"], found["numbers"]))
        if lost:
            _write(path.with_suffix(".refused"), found)
            print(f"Not recorded: the last record has more runs of {', '.join(lost[:5])}. These "
                  f"numbers are in {name}.refused; {REPLACE} takes them all the same.")  # fmt: skip
            return
        whole = merged(last["numbers"], found["numbers"])
        if whole != found["numbers"]:
            earlier = [*last.get("earlier", []), last["provenance"]]
            found = {**found, "numbers": whole, "earlier": earlier}
    _write(path, found)
    from _gate import keep_better

    keep_better(HERE, name)


def of_runs(numbers):
    """Whether a dict holds one number for each run."""
    return bool(numbers) and all(
        RUN.fullmatch(key) and isinstance(value, int | float) for key, value in numbers.items()
    )


def fewer_runs(last, new, place="all"):
    """Places at which a record has fewer runs than the last one."""
    if isinstance(last, dict) and isinstance(new, dict):
        if of_runs(last) and last.keys() - new.keys():
            yield place
        for key in last.keys() & new.keys():
            if key in COUNTS and isinstance(new[key], int) and new[key] < last[key]:
                yield key
            yield from fewer_runs(last[key], new[key], key)
    elif isinstance(last, list) and isinstance(new, list):
        words = any(isinstance(one, str) for one in last)
        if len(new) < len(last) and not words:
            yield place
        for one, other in zip(last, new, strict=False):
            yield from fewer_runs(one, other, place)


def merged(last, new):
    """The new numbers, and of the last ones what has other keys."""
    if not (isinstance(last, dict) and isinstance(new, dict)) or of_runs(last):
        return new
    both = {key: merged(last[key], value) for key, value in new.items() if key in last}
    return {**last, **new, **both}


def _write(path, found):
    """Write a record, all of it or nothing."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


def save_figure(figure, path):
    """Save a figure at twice the resolution of a screen, in few colours: a small file."""
    from PIL import Image

    picture = BytesIO()
    figure.savefig(picture, dpi=160)
    image = Image.open(picture).convert("RGB").quantize(128, Image.Quantize.MAXCOVERAGE)
    image.save(path, optimize=True)


def _plain(value):
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON.")


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _git(*command):
    done = subprocess.run(["git", *command], cwd=HERE, capture_output=True, text=True, check=False)
    return done.stdout.strip()
