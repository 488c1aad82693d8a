"""Inputs that fixtures leave out, once for all tests of exactness.

A branch that no fixture takes can be wrong without anybody's notice: a missing cell, a middle
level, a weight of 1/4, rows with either kind of public bounds, no seed, parameters that are set
after the fit, tied columns, persons, cells at and beyond the ends. A new kind is one function here,
with the ordinary least squares that it should equal where nothing is private.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from skpriv.preprocessing import Boolean, Categorical, Numeric, Ordinal, Schema

N, BOUNDS = 240, (-2.0, 2.0)
RANGE = {"bounds_X": (-1.0, 1.0), "bounds_y": BOUNDS}
BALL = {"data_norm": 1.0, "bounds_y": BOUNDS}


@dataclass
class Awkward:
    """Rows, and the design of least squares that a fit to them equals.

    Parameters
    ----------
    X, y : ndarray
    design : ndarray of shape (n, p)
        With a column of ones where there is an intercept.
    target : ndarray of shape (n,)
    weights : ndarray of shape (n,) or None
        Of the rows of the design.
    fit : dict
        Further arguments of ``fit``.
    settings : dict
        Of the estimator, beside its bounds.
    later : dict
        Parameters that are set after the fit.
    tied : bool
        Whether coefficients are not determined, and predictions alone are compared.
    intercept : bool
        Whether predictions are those of the design; else only differences of rows are told.
    """

    X: np.ndarray
    y: np.ndarray
    design: np.ndarray = field(default=None)
    target: np.ndarray = field(default=None)
    weights: np.ndarray | None = None
    fit: dict = field(default_factory=dict)
    settings: dict = field(default_factory=dict)
    later: dict = field(default_factory=dict)
    tied: bool = False

    def __post_init__(self):
        if self.design is None:
            self.design = np.column_stack([self.X, np.ones(len(self.X))])
        if self.target is None:
            self.target = np.clip(self.y, *BOUNDS)

    def solution(self):
        """Coefficients of least squares; those of least length where they are not determined."""
        root = np.ones(len(self.target)) if self.weights is None else np.sqrt(self.weights)
        both = self.design * root[:, None], self.target * root
        return np.linalg.lstsq(*both, rcond=None)[0]


def _rows(d=2):
    """Rows in the unit ball, and targets around a line."""
    rng = np.random.RandomState(0)
    X = rng.uniform(-0.6, 0.6, (N, d))
    return X, 0.3 + X @ [0.8, -0.5, 0.2][:d] + 0.2 * rng.normal(size=N)


def weights_of_a_quarter():
    """Weights are squares of what rows are multiplied by: 1/4 tells it from its root."""
    X, y = _rows()
    weights = np.where(np.arange(N) % 3, 0.25, 1.0)
    y[weights < 1.0] += 0.4
    return Awkward(X, y, weights=weights, fit={"sample_weight": weights, "max_weight": 1.0})


def tied_columns():
    X, y = _rows()
    return Awkward(np.column_stack([X, X[:, 0]]) / 1.5, y, tied=True)


def a_column_of_zeros():
    X, y = _rows()
    return Awkward(np.column_stack([X, np.zeros(N)]), y, tied=True)


def no_seed():
    return Awkward(*_rows(), settings={"random_state": None})


def parameters_set_after_the_fit():
    later = {"epsilon": 7.0, "bounds_y": (-9.0, 9.0), "privacy": "central"}
    return Awkward(*_rows(), later=later)


def targets_beyond_their_ends():
    X, y = _rows()
    y[:20] = np.repeat([-2.0, 2.0, 7.0, -1e300], 5)
    return Awkward(X, y)


def no_intercept():
    X, y = _rows()
    return Awkward(X, y, design=X, settings={"fit_intercept": False})


def a_single_column():
    return Awkward(*_rows(1))


def the_smallest_and_the_largest_cell():
    """-0.0 and a number whose square is 0."""
    X, y = _rows()
    X[:4, 0] = [-0.0, 1e-300, -1e-200, 0.0]
    return Awkward(X, y)


def effects_of_persons():
    """Slopes within persons, of cells at the ends of their range."""
    rng = np.random.RandomState(0)
    groups = np.repeat(np.arange(N // 4), 4)
    X = rng.choice([-1.0, 1.0], size=(N, 1))
    y = 0.5 * X[:, 0] + 0.1 * rng.normal(size=N // 4)[groups] + 0.01 * rng.normal(size=N)

    def within(values):
        return values - (np.bincount(groups, values) / 4.0)[groups]

    given = {"groups": groups, "max_rows_per_group": 4}
    return Awkward(
        X, y, within(X[:, 0])[:, None], within(y), fit=given, settings={"effects": "person"}
    )


INPUTS = [
    weights_of_a_quarter, tied_columns, a_column_of_zeros, no_seed, parameters_set_after_the_fit,
    targets_beyond_their_ends, no_intercept, a_single_column, the_smallest_and_the_largest_cell,
    effects_of_persons,
]  # fmt: skip


# Tables: each column has a missing cell, a cell beyond its range, or a level in the middle

SCHEMA = Schema({
    "low to high": Ordinal(["low", "mid", "high"]),
    "yes": Boolean(),
    "town": Categorical(["x", "y", "z"]),
    "years": Numeric(0, 50, missing="indicator", typical=10),
    "grade": Numeric(6, 18),
})  # fmt: skip


def table(seed=0, n=400):
    """A table of the schema, and a target that each of its columns moves."""
    rng = np.random.RandomState(seed)
    levels: Any = SCHEMA["low to high"].categories
    frame = pd.DataFrame({
        "low to high": rng.choice(levels, n),
        "yes": rng.rand(n) < 0.5,
        "town": rng.choice(["x", "y", "z"], n),
        "years": rng.uniform(0, 50, n),
        "grade": rng.uniform(6, 18, n),
    })  # fmt: skip
    missing = rng.rand(n) < 0.2
    y = frame["grade"] + 0.3 * frame["years"] + 5.0 * missing + 2.0 * (frame["town"] == "y")
    y += 3.0 * (frame["low to high"] == "mid") + rng.uniform(size=n)
    frame.loc[missing, "years"] = np.nan
    return frame, y.to_numpy(), missing
