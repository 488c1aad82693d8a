"""Two-sided levels: every normal interval grows with its level exactly as a normal one does."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, special, stats

from skpriv import bandits, describe, inspection, linear_model, preprocessing
from skpriv._estimation._coefficients import NINE_OF_TEN
from skpriv._estimation._levels import USUAL_QUANTILE, two_sided_quantile, usual_moments
from skpriv._estimation._moments import NormalEquations
from skpriv._estimation._reports import ReportedFit
from skpriv.inspection._distribution import Distribution
from skpriv.preprocessing._check import TableCheck

RNG = np.random.RandomState(0)
N = 2_000
INSTRUMENT, OWN, ERROR = RNG.uniform(-1.0, 1.0, size=(3, N))
X = np.column_stack([INSTRUMENT, 0.8 * INSTRUMENT + 0.2 * OWN])
Y = 0.4 * X[:, 1] + 0.3 * ERROR
LABELS = (Y > 0.0).astype(int)
POINT = np.array([[0.1, 0.2]])
WIDE = {"bounds_X": (-1.0, 1.0), "bounds_y": (-9.0, 9.0)}
BALL = {"data_norm": 2.0, "bounds_y": (-9.0, 9.0), "alpha": 0.0}  # else a mixture of two laws
OF_CLASSES = {"bounds_X": (-1.0, 1.0)}
# The estimator, its public numbers, its targets, and the scale on which the interval is normal.
MODELS = {
    "LinearRegression": (WIDE, Y, np.asarray),
    "SSPRegressor": (BALL, Y, np.asarray),
    "ReweightedRegressor": (BALL, Y, np.asarray),
    "AdditiveRegressor": (WIDE | {"linear_features": [0, 1]}, Y, np.asarray),
    "IVRegressor": (WIDE | {"instruments": [0], "endogenous": [1]}, Y, np.asarray),
    "LogisticRegression": (OF_CLASSES | {"classes": (0, 1)}, LABELS, special.logit),
    "PoissonRegressor": (WIDE | {"bounds_y": (0.0, 99.0)}, 1.0 * LABELS, np.log),
}


def fitted(name, privacy):
    public, y, scale = MODELS[name]
    model = getattr(linear_model, name)(**public, privacy=privacy, epsilon=50.0, random_state=0)
    return model.fit(X, y), scale


def width(interval, scale=np.asarray):
    """Widths of those intervals that are estimated."""
    low, high = (np.ravel(scale(np.asarray(end, dtype=float))) for end in interval)
    known = np.isfinite(low) & np.isfinite(high) & (low < high)
    assert known.any()
    return (high - low)[known]


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_a_level_is_the_probability_between_both_ends(level):
    end = two_sided_quantile(level)
    assert integrate.quad(stats.norm.pdf, -end, end)[0] == pytest.approx(level, rel=1e-12)


def _of_a_model(name, privacy):
    model, scale = fitted(name, privacy)
    return lambda level: width(model.confidence_interval(POINT, level, "asymptotic"), scale)


def _of_a_table(name):
    model, _ = fitted(name, "central")

    def widths(level):
        table = inspection.inference(model, confidence_level=level)
        return width((table.low, table.high))

    return widths


def _of_reports():
    rows = 1e6 * np.eye(2)
    equations = NormalEquations(
        design=rows, target=np.ones(2), gram=rows, square=1e6, n=10**6, symmetric=True,
        design_scale=1.0, target_scale=1.0, gram_scale=1.0, residual_gram=np.eye(2),
    )  # fmt: skip
    fit = ReportedFit(equations, np.zeros(2))
    return lambda level: fit.interval(POINT, level, "asymptotic")[1]


def _of_many_classes():
    y = np.digitize(Y, [-0.1, 0.1])
    model = linear_model.LogisticRegression(**OF_CLASSES, classes=(0, 1, 2), privacy="none").fit(
        X, y
    )
    return lambda level: width(model.confidence_interval(POINT, level), special.logit)


def _of_a_curve():
    model, _ = fitted("AdditiveRegressor", "central")

    def widths(level):
        curve = model.curve(0, [0.5], confidence_level=level)
        return width((curve.low, curve.high))

    return widths


def _of_a_mean():
    frame, schema = pd.DataFrame({"a": OWN}), {"a": preprocessing.Numeric(-1, 1)}

    def widths(level):
        found = describe(
            frame, schema, epsilon=9.0, delta=1e-6, confidence_level=level, random_state=0
        ).to_frame()
        found = found[found["statistic"] == "mean"]
        return width((found["low"], found["high"]))

    return widths


def _of_a_quantile():
    """The ends are counts of a tree that a normal deviate moves: of all of them the deviate."""

    def deviate(level):
        seen = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                Distribution, "quantile", lambda self, q, z, share: seen.append(z) or (q, q, q)
            )
            inspection.private_quantiles(
                OWN, [0.5], bounds=(-1, 1), epsilon=1.0, delta=1e-6, confidence_level=level
            )
        return np.array(seen)

    return deviate


def _of_a_check(level):
    """Half the width of the interval of a count, as it is printed."""
    found = TableCheck(
        [], np.zeros((0, 4)), 9, 1e9, level, SimpleNamespace(guarantee="", rows_per_unit=None)
    )
    return np.array([float(re.search(r"is ([0-9,]+) to", str(found))[1].replace(",", ""))])


def _of_pooled_lines():
    lines = [
        linear_model.LinearRegression(**WIDE, epsilon=50.0, random_state=seed).fit(X, Y)
        for seed in (0, 1)
    ]
    pooled = lines[0].pooled(lines[1])
    return lambda level: width(pooled.confidence_interval(POINT, level))


def _of_a_policy(max_weight, propensity=0.5):
    """Of propensity 1 nothing is missing, which it is not told before it reads the rounds."""
    actions, rewards = (OWN > 0.0).astype(int), 0.5 + 0.4 * ERROR
    actions |= int(propensity)
    least = 0.5 if propensity < 1.0 else None

    def widths(level):
        found = bandits.private_off_policy_value(
            np.ones(N, dtype=int), actions, rewards, np.full(N, propensity), max_weight=max_weight,
            least_propensity=least, epsilon=1e12, delta=0.5, confidence_level=level, random_state=0,
        )  # fmt: skip
        return width((found.low, found.high))

    return widths


INTERVALS = {
    **{f"{name} of {privacy}": (_of_a_model, name, privacy)
       for name in MODELS for privacy in ("central", "none")},
    "reports": (_of_reports,),
    **{f"table of {name}": (_of_a_table, name)
       for name in ("LinearRegression", "IVRegressor", "LogisticRegression", "PoissonRegressor")},
    "many classes": (_of_many_classes,),
    "curve": (_of_a_curve,),
    "mean of a column": (_of_a_mean,),
    "quantile": (_of_a_quantile,),
    "value of a policy": (_of_a_policy, 2.0),
    "value of a policy that is filled": (_of_a_policy, 1.0, 1.0),
    "counts of cells": (lambda: _of_a_check,),
    "pooled lines": (_of_pooled_lines,),
}  # fmt: skip


@pytest.mark.parametrize("name", INTERVALS)
def test_intervals_are_wider_at_95_than_at_50_by_the_normal_ratio(name):
    """2.906, to rounding: the same fit, and nothing else in its intervals depends on the level."""
    make, *arguments = INTERVALS[name]
    widths = make(*arguments)
    np.testing.assert_allclose(widths(0.95) / widths(0.5), 1.959964 / 0.674490, rtol=1e-6)


def test_a_usual_range_holds_nine_tenths():
    mean, deviation = usual_moments(-1.0, 3.0)
    law = stats.norm(mean, deviation)
    assert law.cdf(3.0) - law.cdf(-1.0) == pytest.approx(0.9)


def test_nine_of_ten_are_told_from_zero_so_many_deviations_away():
    assert stats.norm.sf(USUAL_QUANTILE - NINE_OF_TEN) == pytest.approx(0.9)
