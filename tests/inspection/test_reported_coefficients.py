"""Coefficients from codebook reports: the sandwich is the error that they have."""

import numpy as np
import pytest

from skpriv.inspection import inference
from skpriv.linear_model import LinearRegression, ReweightedRegressor, SSPRegressor

COEF = np.array([0.6, -0.4])
BALL = {"data_norm": 1.0, "bounds_y": (-1.0, 1.0)}
MODELS = {
    "ssp": (SSPRegressor, BALL, 0.0),
    "line": (LinearRegression, BALL, 0.0),
    "line with an intercept": (
        LinearRegression,
        {"bounds_X": (-0.7, 0.7), "bounds_y": (-1.0, 1.0), "fit_intercept": True},
        0.2,
    ),
    "weighted": (ReweightedRegressor, BALL, 0.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_errors_are_as_large_as_they_say(name):
    kind, params, intercept = MODELS[name]
    options = {"epsilon": 4.0, "delta": 0.0, "privacy": "local", "fit_intercept": False}
    scores = []
    for seed in range(60):
        rng = np.random.RandomState(seed)
        X = rng.uniform(-0.7, 0.7, size=(20_000, 2)) * [1.0, 0.5]
        mean = intercept + X @ COEF
        y = np.where(rng.uniform(size=len(X)) < (1.0 + mean) / 2.0, 1.0, -1.0)
        found = inference(kind(**{**options, **params}, random_state=seed).fit(X, y))
        truth = np.append(COEF, intercept)[: len(found.estimate)]
        scores.append((found.estimate - truth) / found.std_error)
        assert (found.privacy_share > 0.3).all() and (found.privacy_share <= 1.0).all()
    scores = np.array(scores)
    assert np.isfinite(scores).all()
    deviation = np.sqrt((scores**2).mean(axis=0))  # 60 fits: 1 up to .09 a standard error
    assert (deviation > 0.7).all() and (deviation < 1.35).all()
