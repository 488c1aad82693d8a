"""The data of a command: a data set of skpriv by name, or a CSV file."""

import sys
from pathlib import Path

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils import Bunch

from ..._printing import few
from ...datasets import load_mortgages, load_wages, load_warfarin
from ...records import floats
from .._arguments import CommandError
from .._frames import frame_library, read_columns
from ._bounds import WHY, read_bounds

LOADERS = {"wages": load_wages, "mortgages": load_mortgages, "warfarin": load_warfarin}


def load(name, target, bounds):
    """Data, target and public bounds, as the loaders of `skpriv.datasets` return them.

    Parameters
    ----------
    name : str
        A key of `LOADERS`, or the path of a CSV file.
    target : str or None
        Column of the CSV file.
    bounds : str or None
        Path of the file with the bounds of the CSV file.
    """
    if name in LOADERS:
        if target is not None or bounds is not None:
            raise CommandError(
                f"--data {name} has its own target and public bounds: --target and --bounds are "
                "for CSV files."
            )
        return LOADERS[name]()
    if not Path(name).is_file():
        raise CommandError(f"--data {name} is neither a file nor one of {', '.join(LOADERS)}.")
    if bounds is None:
        raise CommandError(WHY)
    if target is None:
        raise CommandError("A CSV file needs --target NAME, the column that is predicted.")
    return _from_csv(name, target, read_bounds(bounds))


def _from_csv(path, target, bounds):
    frame = nw.from_dict(read_columns(path), backend=frame_library(("pandas",))).to_native()
    if target not in frame.columns:
        raise CommandError(f"--target {target!r} is not a column of {path}: {few(frame.columns)}.")
    if target not in bounds:
        raise CommandError(
            f"--bounds has no range for the target {target!r}: add its public low and high."
        )
    absent = [name for name in bounds if name not in frame.columns]
    if absent:
        raise CommandError(
            f"--bounds names {', '.join(map(repr, absent))}, not among the columns of {path}: "
            f"{few(frame.columns)}."
        )
    features = [name for name in frame.columns if name in bounds and name != target]
    if not features:
        raise CommandError("--bounds has a range for the target only: add those of the features.")
    ignored = [name for name in frame.columns if name not in bounds]
    if ignored:
        print(f"Left out, for want of bounds: {', '.join(ignored)}.", file=sys.stderr)
    frame = _numbers(path, frame[[*features, target]])
    return Bunch(
        data=frame[features],
        target=frame[target],
        bounds={name: bounds[name] for name in features},
        bounds_y=bounds[target],
        exclusive=None,
    )


def _numbers(path, frame):
    """Columns as floats, none of them missing; nothing is said about a single cell."""
    values = floats(frame.to_numpy(dtype=object))
    if not np.isfinite(values).all():
        raise CommandError(
            f"{path}: the target and the columns of --bounds must hold finite numbers only. Turn "
            "categories into columns of 0 and 1, from a public list of them, or leave such columns "
            "out of --bounds; fill missing values with a public constant, and mark them in a "
            "column of 0 and 1."
        )
    return type(frame)(values, columns=frame.columns)
