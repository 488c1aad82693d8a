"""The environments of `regret`, and the policies that are compared in each."""

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from .. import bandits
from ..datasets import load_warfarin
from ..linear_model import SSPRegressor
from ..privacy import capabilities
from ..preprocessing import BoundsScaler

RANDOM = "RandomPolicy"


class Setting(NamedTuple):
    """An environment, its usual size, and policies by name.

    ``private(epsilon, delta, horizon)`` and ``references(horizon)`` return dictionaries; the
    references are not private, but for the random policy.
    """

    text: str
    horizon: int
    delta: float
    environment: Callable[[], Any]
    private: Callable[[float, float, int], dict]
    references: Callable[[int], dict]


def supervised_warfarin():
    """Doses of warfarin: below 21 mg a week, up to 49, and above (the usual public cut-offs)."""
    data = load_warfarin()
    rows = BoundsScaler(data.bounds, exclusive=data.exclusive).fit_transform(data.data)
    dose = np.asarray(data.target)
    return bandits.SupervisedEnvironment(
        _constant(rows), (dose >= 21.0) + 1 * (dose > 49.0), blocks=False
    )


def supervised_digits():
    """Digits of scikit-learn, at 4 x 4 pixels in place of 8 x 8."""
    pixels, labels = load_digits(return_X_y=True)
    coarse = pixels.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    # Pixels are 0 to 16: 16 of them have norm 64 at most.
    return bandits.SupervisedEnvironment(_constant(coarse / 64.0), labels, blocks=False)


def _constant(rows):
    """Rows of the unit ball and a constant, in the unit ball again."""
    rows = np.asarray(rows, dtype=float)
    return np.column_stack([rows, np.ones(len(rows))]) / np.sqrt(2.0)


def _linear(epsilon, delta, horizon):
    oracle = SSPRegressor(
        data_norm=1.0, bounds_y=(-1, 1), epsilon=epsilon, delta=delta, fit_intercept=False
    )
    return {
        "EpochGreedy": bandits.EpochGreedy(oracle=oracle),
        "SquareCB": bandits.SquareCB(oracle=oracle),
        **_ucb(epsilon, delta, horizon, ("central", "local")),
    }


def _ucb(epsilon, delta, horizon, models):
    """LinUCB under some models, and for local privacy the online form too."""
    params = {"epsilon": epsilon, "delta": delta, "horizon": horizon}
    policies: dict = {
        f"LinUCB, {privacy}": bandits.LinUCB(privacy=privacy, **params) for privacy in models
    }
    if any(capabilities(name).alone for name in models):
        policies["OnlineLinUCB"] = bandits.OnlineLinUCB(**params)
    return policies


def _exact(horizon):
    return {
        "LinUCB": bandits.LinUCB(privacy="none", horizon=horizon),
        RANDOM: bandits.RandomPolicy(),
    }


def _sparse(epsilon, delta, horizon):
    # Clipping well below the largest value costs little accuracy, and saves much noise.
    policy = bandits.FLIPHAT(
        epsilon=epsilon, delta=delta, n_nonzero_coefs=10, data_max=1.5, bounds_y=(-2.5, 2.5)
    )
    return {"FLIPHAT": policy}


def _classes(n_actions):
    """Policies with weights for each class, and rewards 0 and 1."""
    own = {"shared": False, "n_actions": n_actions}

    def private(epsilon, delta, horizon):
        oracle = SSPRegressor(
            data_norm=1.0, epsilon=epsilon, delta=delta, fit_intercept=False, bounds_y=(0.0, 1.0)
        )
        return {
            "EpochGreedy": bandits.EpochGreedy(oracle=oracle, **own),
            "SquareCB": bandits.SquareCB(oracle=oracle, **own),
        }

    def references(horizon):
        exact = private(inf, 1e-6, horizon)
        return {"SquareCB": exact["SquareCB"], RANDOM: bandits.RandomPolicy(**own)}

    return private, references


SETTINGS = {
    "linear": Setting(
        "10 actions with 5 features each, linear rewards of -1 or 1",
        20_000,
        1e-6,
        bandits.LinearEnvironment,
        _linear,
        _exact,
    ),
    "fliphat": Setting(
        "3 actions with 400 features each, of which 5 matter",
        10_000,
        0.01,
        bandits.SparseLinearEnvironment,
        _sparse,
        lambda horizon: {
            "LassoBandit": bandits.LassoBandit(alpha=0.1),
            RANDOM: bandits.RandomPolicy(),
        },
    ),
    "shuffle": Setting(
        "100 actions with 5 features each, linear rewards of -1 or 1, in every trust model",
        20_000,
        1e-6,
        lambda: bandits.LinearEnvironment(n_actions=100),
        lambda epsilon, delta, horizon: _ucb(
            epsilon, delta, horizon, ("central", "local", "shuffle")
        ),
        _exact,
    ),
    "warfarin": Setting(
        "3 doses for 6,037 patients, reward 1 for the right one",
        6_037,
        1e-6,
        supervised_warfarin,
        *_classes(3),
    ),
    "digits": Setting(
        "10 classes of handwritten digits at 4 x 4 pixels, reward 1 for the right one",
        10_000,
        1e-6,
        supervised_digits,
        *_classes(10),
    ),
}
