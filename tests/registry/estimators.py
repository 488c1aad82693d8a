"""All regressors, their privacy models, and the bounds without which none is fitted."""

from functools import partial

import numpy as np
from sklearn.base import is_classifier

from skpriv.linear_model import (
    AdditiveRegressor, IHTRegressor, ImproperSGDRegressor, IVRegressor, LayeredRegressor,
    LinearRegression, LogisticRegression, PoissonRegressor, ReweightedRegressor, SSPRegressor,
)  # fmt: skip

# A new estimator is one line here, and one below if its bounds have other names.
ESTIMATORS = {
    AdditiveRegressor: ("central", "aggregate", "local", "shuffle", "none"),
    LinearRegression: ("central", "aggregate", "local", "shuffle", "none"),
    SSPRegressor: ("central", "aggregate", "local", "shuffle", "none"),
    ReweightedRegressor: ("central", "aggregate", "local", "shuffle", "none"),
    IHTRegressor: ("central", "none"),
    ImproperSGDRegressor: ("central", "aggregate", "local", "shuffle", "none"),
    LayeredRegressor: ("central", "aggregate", "local", "shuffle", "none"),
    LogisticRegression: ("central", "aggregate", "shuffle", "none"),
    PoissonRegressor: ("central", "aggregate", "shuffle", "none"),
    IVRegressor: ("central", "aggregate", "none"),
}
PAIRS = [(Estimator, privacy) for Estimator, models in ESTIMATORS.items() for privacy in models]
NOISY = [pair for pair in PAIRS if pair[1] != "none"]
PUBLIC = {"bounds_X": (-10.0, 10.0), "bounds_y": (-2.0, 2.0)}
SETTINGS = {
    **dict.fromkeys(ESTIMATORS, {"data_norm": 1.0, "bounds_y": (-1.0, 1.0)}),
    LinearRegression: PUBLIC,
    AdditiveRegressor: PUBLIC,
    IHTRegressor: {"data_max": 1.0, "bounds_y": (-1.0, 1.0)},
    LogisticRegression: {"bounds_X": (-10.0, 10.0), "classes": (0, 1)},
    PoissonRegressor: {"bounds_X": (-10.0, 10.0), "bounds_y": (0.0, 4.0)},
    IVRegressor: {**PUBLIC, "instruments": [0], "endogenous": [1]},
}
# Other ways to fit, for laws that all of them obey.
VARIANTS = {
    AdditiveRegressor: [{"knots": 3}],
    LinearRegression: [{}, {"clip": "wide"}],
    SSPRegressor: [{}],
    ReweightedRegressor: [
        {},
        {"weights": "always"},
        {"solver": "sgd"},
        {"solver": "sgd", "link": "logit"},
        {"solver": "sgd", "coef_norm": 2.0},
    ],
    IHTRegressor: [{"n_nonzero_coefs": 2}, {"n_nonzero_coefs": 4}],
    ImproperSGDRegressor: [{}],
    LayeredRegressor: [{}, {"n_levels": 2}],
    LogisticRegression: [{}],
    PoissonRegressor: [{}],
    IVRegressor: [{}],
}


def bounded(Estimator, **settings):
    """An estimator with the bounds that it needs, and with other settings."""
    return Estimator(**{**SETTINGS[Estimator], **settings})


# Of rows in the unit ball, or the unit box, and targets in [-1, 1].
ssp, reweighted, layered, improper, iht = (
    partial(bounded, Estimator)
    for Estimator in (
        SSPRegressor, ReweightedRegressor, LayeredRegressor, ImproperSGDRegressor, IHTRegressor,
    )
)  # fmt: skip


def line_data(n, d=3, seed=0):
    """Rows of a box, and targets around a line, for estimators of the unit ball."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, d))
    return X, X @ [1.0, -0.5, 0.0][:d] + rng.uniform(-0.2, 0.2, size=n)


def targets(Estimator, y):
    """Targets in the public range of an estimator, made of numbers around 0: labels or counts."""
    if is_classifier(Estimator()):
        return (np.asarray(y) > 0.0).astype(int)
    return y + 1.0 if Estimator is PoissonRegressor else y


def curve(model, X):
    """What a fit says of rows, as numbers: log-odds of a classifier, and predictions."""
    return model.decision_function(X) if is_classifier(model) else model.predict(X)
