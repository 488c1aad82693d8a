"""Certificates as data: the events of an interval fail with at most one minus its level.

What is added up is what quantiles were taken at. So a union that is forgotten, or a part of the
failure that is spent twice, is more than the level allows, however wide the interval is.
"""

from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest

from skpriv._estimation import _intervals
from skpriv._estimation._moments import NormalEquations
from skpriv.bandits._ucb._sums import certified
from skpriv.linear_model import (
    IHTRegressor,
    ImproperSGDRegressor,
    LayeredRegressor,
    LinearRegression,
    ReweightedRegressor,
    SSPRegressor,
)
from skpriv.linear_model._lplr._equations import report_bound

RNG = np.random.RandomState(0)
X = RNG.uniform(-0.5, 0.5, size=(20_000, 2))
Y = np.clip(X @ [0.8, -0.4] + RNG.uniform(-0.2, 0.2, len(X)), -1.0, 1.0)
POINTS = np.array([[0.5, 0.5], [0.3, -0.2]])
CENTRAL = {"data_norm": 1.0, "bounds_y": (-1, 1), "epsilon": 4.0, "random_state": 0}
LOCAL = {**CENTRAL, "privacy": "local", "epsilon": 8.0, "coef_norm": 1.0}


def interval(estimator):
    """Sum of the widths of an estimator's certified intervals, by their level."""
    fitted = estimator.fit(X, Y)

    def width(level):
        low, high = fitted.confidence_interval(POINTS, confidence_level=level, method="certified")
        return float((high - low).sum())

    return width


def equations(scale=20.0, n=20_000):
    gram = np.diag([n / 3.0, n / 5.0])
    return NormalEquations(
        design=gram, target=gram @ [0.5, -0.2], gram=gram, square=n / 3.0, n=n, symmetric=True,
        design_scale=scale, target_scale=scale, gram_scale=scale,
    )  # fmt: skip


def region():
    return lambda level: float(np.trace(certified(equations(), 1.0, 1.0, 1.0 - level).form))


def one_bin():
    """Half-width of a bin whose report holds three levels."""
    fitted = LayeredRegressor(**LOCAL, delta=0.0, n_levels=3).fit(X, Y)
    (node,) = [node for node in fitted.tree_.bins if len(node.law.parts) == 3][:1]
    return lambda level: float(report_bound(node, 1.0, 1.0 - level)(np.eye(node.size)).sum())


MAKERS = {
    "moments": lambda: interval(SSPRegressor(**CENTRAL)),
    "moments, norm assumed": lambda: interval(SSPRegressor(**CENTRAL, coef_norm=1.0)),
    "moments, local": lambda: interval(SSPRegressor(**LOCAL, channel="gaussian", delta=1e-6)),
    "steps": lambda: interval(
        LinearRegression(
            bounds_X=[(-0.5, 0.5)] * 2, bounds_y=(-1, 1), epsilon=4.0, random_state=0
        )
    ),
    "reports": lambda: interval(SSPRegressor(**LOCAL, channel="codebook", delta=0.0)),
    "re-weighted": lambda: interval(ReweightedRegressor(**CENTRAL, coef_norm=1.0)),
    "sparse": lambda: interval(
        IHTRegressor(
            data_max=1.0, n_nonzero_coefs=2, bounds_y=(-1, 1), epsilon=8.0, random_state=0,
        )
    ),
    "descent": lambda: interval(ImproperSGDRegressor(**CENTRAL, coef_norm=1.0)),
    "layers": lambda: interval(LayeredRegressor(**CENTRAL, coef_norm=1.0)),
    "layers, reports": lambda: interval(LayeredRegressor(**LOCAL, delta=0.0, n_levels=3)),
    "one bin, reports": one_bin,
    "region": region,
}  # fmt: skip


# Of alternatives of which the narrower one counts, and that are never the narrower one here.
IDLE = {
    "sharp: bounded", "sharp: weak", "sharp: gram",
    "step: direction", "step: largest", "step: trace",
}  # fmt: skip


@contextmanager
def certificate(rarer=None):
    """Failure probability of each event that is used; that of a rarer one is squared there.

    An event that is used several times is one.
    """
    failures = {}

    def noted(name, failure):
        failures[name] = max(failure, failures.get(name, 0.0))
        return failure**2 if name == rarer else failure

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_intervals, "on_event", noted)
        yield failures


@cache
def made(name):
    """The width by its level."""
    return MAKERS[name]()


@cache
def widened(name, level):
    """Failures of the events, the width, and the widths where one of the events is rarer."""
    width = made(name)
    with certificate() as failures:
        whole = width(level)
    widths = {}
    for rests_on in failures:
        with certificate(rests_on):
            widths[rests_on] = width(level)
    return failures, whole, widths


@pytest.mark.parametrize("level", [0.8, 0.99])
@pytest.mark.parametrize("name", MAKERS)
def test_failures_add_up_to_at_most_one_minus_the_level(name, level):
    failures, _, _ = widened(name, level)
    assert min(failures.values()) > 0.0
    total = sum(failures.values())
    assert 0.02 * (1.0 - level) <= total <= (1.0 - level) * (1.0 + 1e-9), failures


def test_a_rarer_event_makes_intervals_wider():
    idle = set()
    for name in MAKERS:
        _, whole, widths = widened(name, 0.8)
        assert min(widths.values()) >= whole * (1.0 - 1e-9), widths
        idle = {*idle, *widths}
    for name in MAKERS:
        _, whole, widths = widened(name, 0.8)
        idle -= {rests_on for rests_on in widths if widths[rests_on] > whole * (1.0 + 1e-9)}
    assert idle <= IDLE
