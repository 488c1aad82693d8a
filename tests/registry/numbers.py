"""Released numbers that are functions of noisy sums, with the error that privacy gives them.

A number that is told with an error is one line of `NUMBERS`. Two laws are then asked of it: its
error is that of its own finite differences in the sums, and noise at its quantile, in the sums that
tell how large an error is, makes no interval narrower than the sums without noise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd

from skpriv._estimation._coefficients import equations_law
from skpriv._estimation._loop._law import LEAST_SQUARES
from skpriv._estimation._loop._fit import LoopFit
from skpriv._estimation._loop._score import ScoreEquation
from skpriv._estimation._moments import NormalEquations
from skpriv._linalg import unvech
from skpriv.bandits import _off_policy
from skpriv.inspection._description import CountsQuery, Coded, ColumnMomentsQuery, Description
from skpriv.inspection._distribution import ColumnRange, DistributionQuery
from skpriv.linear_model._instruments import _inverted
from skpriv.model_selection._private_score import _score
from skpriv.preprocessing import Categorical, Date, Numeric
from skpriv.privacy import Answer

Z = 1.959963984540054  # of intervals of 95%
N = 10**15  # so many records that sampling tells nothing: what is left is privacy


@dataclass(frozen=True)
class Number:
    """A number, its error, and the sums that it is made of.

    Parameters
    ----------
    told : callable
        ``told(sums, scale)`` is (number, its standard error by privacy), with noise of this
        deviation in each coordinate of the sums.
    sums : ndarray
    scale : float
        Small beside the sums: the error is that of the first order.
    rtol : float
        Of the comparison with finite differences; a day is told in whole days.
    interval : callable or None
        ``interval(sums, scale, n)`` is the interval of the number, of n records.
    squares : tuple of int
        The sums that tell how large the sampling error is.
    few : (float, int)
        A scale and a number of records at which noise in these would matter.
    """

    told: Callable
    sums: np.ndarray
    scale: float
    rtol: float = 1e-3
    interval: Callable | None = None
    squares: tuple = ()
    few: tuple = (1e-3, 10)


def answer(query, value, scale, n=1):
    """What a session says of a query."""
    return query, Answer(value=value, noise=SimpleNamespace(scale=scale), n=n)


# Descriptions: three sums of a range, counts of a tree over it, and counts of levels

ROWS = 10**6
RANGES = {"a number": Numeric(-2.0, 4.0), "a day": Date("2000-01-01", "2020-01-01")}


def description(column, sums, scale):
    """Description of one column with these moments, where its values are spread evenly."""
    moments = ColumnMomentsQuery((ColumnRange("a", 0, 1.0),))
    tree = DistributionQuery(moments.ranges, 6)
    z = np.repeat(np.linspace(-0.95, 0.95, 64)[:, None], 2, axis=1) * [1.0, 0.0]
    counts = tree.sum(z, None) * (0.9 * ROWS / 64.0)
    counts[-2:] = sums[3:]
    answers = [answer(moments, sums[:3], scale), answer(tree, counts, scale)]
    report = SimpleNamespace(size=ROWS, rows_per_unit=None)
    return Description({"a": column}, answers, report, 0.95, "table")["a"]


def described(column, find):
    """The number that is found in such a description."""

    def told(sums, scale):
        found = find(description(column, sums, scale))
        value = found.estimate
        if not isinstance(value, float):
            value = (pd.Timestamp(value) - pd.Timestamp("2000-01-01")).total_seconds() / 86_400.0
        return value, found.std_error

    def interval(sums, scale, n):
        found = find(description(column, sums, scale))
        return found.low, found.high

    return told, interval


def level(sums, scale):
    """The count of a level."""
    coded = Coded("a", ("x", "y"), slice(0, 2), np.eye(2))
    query = CountsQuery(((coded,),))
    report = SimpleNamespace(size=ROWS, rows_per_unit=None)
    answers = [answer(query, sums, scale)]
    found = Description({"a": Categorical(["x", "y"])}, answers, report, 0.95, "table")["a"]
    return found.counts["x"].estimate, found.counts["x"].std_error


STEPS = {"a number": (3.0, 1e-3), "a day": (1e4, 2e-2)}  # of sums, and how exact the slopes are
MOMENTS = np.array([0.3, np.sqrt(2.0) * 0.35, 0.9, 0.01, 0.02]) * ROWS
DESCRIBED = {
    "mean": lambda found: found.mean,
    "std. deviation": lambda found: found.std,
    "missing cells": lambda found: found.missing,
    "cells at the low end": lambda found: found.at_low,
    "cells at the high end": lambda found: found.at_high,
}


# Scores and values of policies: means over rounds, and their noise


def score(sums, scale, n=N):
    """R2, and half of its interval in deviations; ``sums`` are means."""
    _, found = answer(None, sums * n, scale * n, n)
    report = _score(found, 1.0, (-1.0, 1.0), 0.95, None)
    return report


def score_told(sums, scale):
    report = score(sums, scale)
    return report.r2, (report.r2 - report.low) / Z


def value_of(kind, end):
    """An end of the interval of the value of a policy, and its noise."""
    function = {"clipped": _off_policy._unclipped, "filled": _off_policy._filled}[kind]
    query = {"clipped": _off_policy.ValueQuery, "filled": _off_policy.FilledQuery}[kind]
    query = query(0.0, 1.0, 5.0)

    def at(sums, scale, n):
        found = function(query, sums, scale, n, Z)
        return found.low, found.high

    def told(sums, scale):
        exact, noisy = at(sums, 0.0, N)[end], at(sums, scale, N)[end]
        return exact, abs(noisy - exact) / Z

    return told, at


# Coefficients: of normal equations, of the equations of scores, of instruments

P = 3
_RNG = np.random.RandomState(0)
_ROWS = _RNG.uniform(-1.0, 1.0, (200, P)) * [1.0, 0.5, 0.3]
DESIGN = _ROWS.T @ _ROWS
THETA = np.array([0.5, -1.0, 2.0])
UPPER = np.triu_indices(P)


def vech(matrix):
    """Orthonormal coordinates of a symmetric matrix."""
    return np.linalg.lstsq(
        np.column_stack([unvech(one, P).ravel() for one in np.eye(P * (P + 1) // 2)]),
        matrix.ravel(), rcond=None,
    )[0]  # fmt: skip


def equations(sums, scale, symmetric):
    """Normal equations of so many records that sampling does not count."""
    design = unvech(sums[P:], P) if symmetric else sums[P:].reshape(P, P)
    return NormalEquations(
        design, sums[:P], 1e-30 * np.eye(P), 1e-30, N, symmetric, scale, scale, 1e-30
    )


def coefficient(place, symmetric):
    """A coefficient of normal equations."""

    def told(sums, scale):
        law = equations_law(equations(sums, scale, symmetric), (np.eye(P), np.zeros(P)))
        return law.estimate[place], np.sqrt(law.privacy[place, place])

    return told


def loop_fit(sums, scale):
    """A fit of the loop with one equation of scores at 0."""
    equation = ScoreEquation(
        point=np.zeros(P), limit=1.0, moment=sums[:P], slope=unvech(sums[P:], P), square=1e-30,
        n=N, moment_scale=scale, slope_scale=scale, residual_gram=1e-30 * np.eye(P),
    )  # fmt: skip
    return LoopFit(
        0.0, np.eye(P), np.zeros(P), 1e-30, unvech(sums[P:], P), (equation,), None, True, N
    )


def prediction(point, kind="solution"):
    """A prediction of the line of a fit of the loop."""

    def told(sums, scale):
        law = loop_fit(sums, scale).law(kind)
        _, privacy = law.variances(point[None])
        return float(law.value(point[None])[0]), np.sqrt(privacy[0])

    return told


def instrumented(place):
    """A coefficient by three instruments of two columns."""
    size = P - 1

    def told(sums, scale):
        found = SimpleNamespace(
            moment=sums[:P], slope=sums[P:].reshape(P, size), moment_scale=scale, slope_scale=scale,
            meat=1e-30 * np.eye(P),
        )  # fmt: skip
        step, _, noise, _ = _inverted(found)
        return step[place], np.sqrt(noise[place, place])

    return told


_SLOPE = _ROWS.T @ np.column_stack([_ROWS[:, 0], _ROWS[:, 1] + 0.5 * _ROWS[:, 2]])
NORMAL = np.append(DESIGN @ THETA, vech(DESIGN))
GENERAL = np.append((DESIGN + 1.0) @ THETA, (DESIGN + np.triu(np.ones((P, P)))).ravel())
BOTH_STAGES = np.append(_SLOPE @ THETA[: P - 1], _SLOPE.ravel())

NUMBERS = {
    **{
        f"describe, {name} of {column}": Number(
            described(RANGES[column], find)[0], MOMENTS, *STEPS[column]
        )
        for name, find in DESCRIBED.items()
        for column in RANGES
    },
    "describe, count of a level": Number(level, np.array([0.4, 0.6]) * ROWS, 3.0),
    "private_score": Number(score_told, np.array([0.05, 0.2, 0.01, 0.05, 0.012]), 1e-6),
    **{
        f"private_off_policy_value, {kind} {('low', 'high')[end]}": Number(
            value_of(kind, end)[0], np.array(sums), 1e-5, 1e-3, value_of(kind, end)[1], squares
        )
        for kind, sums, squares in (
            ("clipped", [0.02, 0.05], (1,)),
            ("filled", [0.02, 0.2, 0.01, 0.01], (2, 3)),
        )
        for end in (0, 1)
    },
    **{
        f"coefficient_law, {place} of {'symmetric' if symmetric else 'general'} equations": Number(
            coefficient(place, symmetric), NORMAL if symmetric else GENERAL, 1e-5
        )
        for place in range(P)
        for symmetric in (True, False)
    },
    **{
        f"confidence_interval, point {place}": Number(prediction(point), NORMAL, 1e-5)
        for place, point in enumerate([*np.eye(P), np.array([0.5, -0.3, 0.2])])
    },
    "confidence_interval, least squares": Number(
        prediction(np.array([0.5, -0.3, 0.2]), LEAST_SQUARES), NORMAL, 1e-5
    ),
    **{
        f"instruments, coefficient {place}": Number(instrumented(place), BOTH_STAGES, 1e-5)
        for place in range(P - 1)
    },
}  # fmt: skip
