"""What every benchmark says of itself: versions and commit, raw numbers as JSON, figures."""

import json
import platform
import subprocess
import sys
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
PACKAGES = ("numpy", "scipy", "scikit-learn", "opendp")


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

    Numbers of code that is not committed are no record: nothing is written then.

    Parameters
    ----------
    name : str
    numbers : dict
        Anything that JSON holds, NumPy arrays and numbers included.
    """
    facts = provenance()
    print("\n" + ", ".join(f"{key} {value}" for key, value in facts.items()))
    if changed := _git("status", "--short", "--", ".", "../skpriv", ":!results"):
        print(f"Not recorded: commit these files before, or nobody can repeat it.\n{changed}")
        return
    path = HERE / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    text = json.dumps({"provenance": facts, "numbers": numbers}, indent=1, default=_plain)
    path.write_text(text + "\n", encoding="utf-8")


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
