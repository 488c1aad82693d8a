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
    """Commit, versions, and the command that was run."""
    return {
        "command": " ".join(["python", "benchmarks/" + Path(sys.argv[0]).name, *sys.argv[1:]]),
        "commit": _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "-s") else ""),
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
    }


def record(name, numbers):
    """Print the provenance, and write it beside the numbers to ``results/NAME.json``.

    Parameters
    ----------
    name : str
    numbers : dict
        Anything that JSON holds, NumPy arrays and numbers included.
    """
    facts = provenance()
    print("\n" + ", ".join(f"{key} {value}" for key, value in facts.items()))
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
