"""How greedy SquareCB is: by the error of its oracle, where that is known."""

import numpy as np
import pytest

from skpriv.bandits import SquareCB
from skpriv.bandits._policy._draws import HALF_NORMAL
from skpriv.linear_model import SSPRegressor

BOUNDS = {"data_norm": 1.0, "bounds_y": (-3.0, 5.0)}


def rows(n, rng):
    X = rng.standard_normal((n, 4)) * [0.5, 0.3, 0.2, 0.1]
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]


@pytest.mark.parametrize("epsilon", [0.5, np.inf])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_error_of_predictions_is_about_what_it_says(epsilon, fit_intercept):
    """Mean squares over 20 fits: what is said is neither half nor twice what is measured."""
    rng, said, found = np.random.default_rng(0), [], []
    for seed in range(20):
        X, coef = rows(2000, rng), rng.standard_normal(4)
        means = X @ coef + fit_intercept
        y = np.clip(means + rng.standard_normal(2000), -3.0, 5.0)
        fit = SSPRegressor(
            epsilon=epsilon, delta=1e-6, fit_intercept=fit_intercept, random_state=seed, **BOUNDS
        ).fit(X, y)
        theta, _ = fit.posterior()
        said.append(fit.prediction_error() ** 2)
        found.append(np.mean((X @ theta[:4] + sum(theta[4:]) - means) ** 2))
    assert 0.5 < np.sqrt(np.mean(said) / np.mean(found)) < 2.0


@pytest.mark.parametrize("forget", [False, True])
def test_weights_follow_from_the_error_where_it_is_known(forget):
    """Inverse gaps of posterior means with a bonus of their errors, in units of the error.

    If epochs forget there is none: it would explore anew whatever the last one hardly played.
    """
    rng = np.random.default_rng(0)
    contexts, rewards = rng.uniform(-0.5, 0.5, (300, 3, 2)), rng.uniform(-1.0, 1.0, 300)
    oracle = SSPRegressor(random_state=0, **BOUNDS)
    policy = SquareCB(oracle, schedule=300, forget=forget, random_state=0)
    policy.update(contexts, policy.act(contexts), rewards)
    fit = policy.oracle_
    weight = 15.0 * np.sqrt(3.0) / fit.prediction_error()
    mean, covariance = fit.posterior()
    spread = np.sqrt(np.einsum("nkj,jl,nkl->nk", contexts, covariance[:2, :2], contexts))
    expected = np.zeros((300, 3))
    for bonus in HALF_NORMAL * (not forget):
        index = contexts @ mean[:2] + bonus * spread
        chances = 1.0 / (3.0 + weight * (index.max(axis=1, keepdims=True) - index))
        best = index.argmax(axis=1)
        chances[np.arange(300), best] += 1.0 - chances.sum(axis=1)
        expected += chances / len(HALF_NORMAL)
    np.testing.assert_allclose(policy.probabilities(contexts), expected)


def test_an_oracle_that_knows_nothing_does_not_say_that_it_does():
    """Of 20 rows at epsilon 1 noise hides everything: the error is about that of the prior."""
    rng, bounds = np.random.default_rng(0), {"data_norm": 1.0, "bounds_y": (-1.0, 1.0)}
    for seed in range(10):
        fit = SSPRegressor(fit_intercept=False, random_state=seed, **bounds)
        fit.fit(rows(20, rng), rng.uniform(-1.0, 1.0, 20))
        assert fit.prediction_error() > 0.25  # of weights of norm 1, four of them: .5
