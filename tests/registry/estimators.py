"""All regressors, their privacy models, and the bounds without which none is fitted."""

from functools import partial

import numpy as np
from sklearn.base import is_classifier

from skpriv import linear_model
from skpriv.linear_model import (
    IHTRegressor, ImproperSGDRegressor, LayeredRegressor, PoissonRegressor, ReweightedRegressor,
    SSPRegressor,
)  # fmt: skip
from skpriv.linear_model._estimator import PrivateEstimator

# Each says of itself in which models it can be fitted, with what, and how else.
KINDS = [getattr(linear_model, name) for name in linear_model.__all__]
ESTIMATORS = {kind: kind._spec.models for kind in KINDS if issubclass(kind, PrivateEstimator)}
SETTINGS = {kind: kind._spec.needs for kind in ESTIMATORS}
VARIANTS = {kind: kind._spec.variants for kind in ESTIMATORS}
PAIRS = [(Estimator, privacy) for Estimator, models in ESTIMATORS.items() for privacy in models]
NOISY = [pair for pair in PAIRS if pair[1] != "none"]


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
