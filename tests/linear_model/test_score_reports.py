"""Prediction intervals of users who trust nobody: one random bit a user, delta = 0, and a proof."""

import numpy as np
import pytest

from skpriv import Budget, BudgetAccountant
from skpriv.linear_model import (
    AdditiveRegressor,
    LinearRegression,
    ReweightedRegressor,
    SSPRegressor,
)
from skpriv.linear_model._prediction_intervals import Score, ScoreReports
from skpriv.metrics import interval_coverage_score

CLASSES = {
    LinearRegression: {"bounds_X": (-0.5, 0.5)},
    SSPRegressor: {"data_norm": 1.0},
    ReweightedRegressor: {"data_norm": 1.0},
    AdditiveRegressor: {"bounds_X": (-0.5, 0.5)},
}
every_class = pytest.mark.parametrize("Estimator", CLASSES)


def data(n, seed):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, 3))
    return X, X @ [1.0, -0.5, 0.0] + 0.1 * (rng.exponential(size=n) - 1.0)


def fit(Estimator, X, y, **params):
    options = {"privacy": "local", "delta": 0.0, "bounds_y": (-1.0, 1.0), "random_state": 0}
    options |= {"calibration_size": 0.25, "epsilon": 4.0, **CLASSES[Estimator], **params}
    return Estimator(**options).fit(X, y)


@every_class
@pytest.mark.parametrize("score", ["absolute", "signed"])
def test_intervals_hold_new_targets_without_a_delta(Estimator, score):
    covered = []
    for seed in range(3):
        X, y = data(4000, seed)
        secure = None if seed == 0 else seed
        est = fit(Estimator, X, y, conformity_score=score, random_state=secure)
        new, target = data(2000, 100 + seed)
        low, high = est.prediction_interval(new, 0.9)
        assert (low >= -1.0).all() and (high <= 1.0).all()
        covered.append(interval_coverage_score(target, low, high))
    assert np.mean(covered) >= 0.9 - 3 * np.std(covered) / np.sqrt(3) - 0.002


@every_class
def test_every_user_sends_one_report_and_is_charged_once(Estimator):
    X, y = data(4000, 0)
    with BudgetAccountant(4.0, 0.0) as accountant:
        est = fit(Estimator, X, y)
    (charge,) = accountant.charges
    report = est.privacy_report_
    assert report.total.epsilon(0.0) == pytest.approx(4.0)
    bits = [row for row in report.rows if row.query == "scores within"]
    assert {row.noise for row in bits} == {"randomised response"}
    assert {row.cost.pure for row in bits} == {4.0}
    assert len({row.records for row in bits}) == 1
    assert 1000 - len(bits) < sum(row.records for row in bits) <= 1000
    assert sum(row.records for row in report.rows) <= 4000
    assert "randomised response" in str(report)


def test_a_handful_of_users_gives_the_range():
    X, y = data(200, 0)
    for size, epsilon in ((0.01, 4.0), (0.1, 0.5)):  # fewer users than counts, or too few bits
        est = fit(SSPRegressor, X, y, calibration_size=size, epsilon=epsilon)
        low, high = est.prediction_interval(X, 0.9)
        assert (low == -1.0).all() and (high == 1.0).all()
        assert all(row.query != "scores within" for row in est.privacy_report_.rows)


def test_shuffled_bits_have_less_noise():
    X, y = data(20_000, 0)
    options = {"channel": "codebook", "epsilon": 1.0}
    alone = fit(SSPRegressor, X, y, **options)
    hidden = fit(SSPRegressor, X, y, **options, privacy="shuffle", delta=1e-6)
    scales = [
        {row.scale / np.sqrt(row.records) for row in est.privacy_report_.rows[-3:]}
        for est in (alone, hidden)
    ]
    assert max(scales[1]) < min(scales[0])
    low, high = hidden.prediction_interval(X, 0.9)
    assert interval_coverage_score(y, low, high) > 0.85


def test_a_device_sends_a_bit_of_any_record():
    asked = ScoreReports(Score(lambda X: X[:, 0], (-1.0, 1.0)), ((0, 0.5),))
    values = [-1e308, -np.inf, np.nan, 0.0, 0.4, 1e308]
    for x in values:
        for y in values:
            for rng in (None, 0):
                assert asked.randomize([x], y, Budget(1.0), rng) in (0.0, 1.0)
    sure = Budget(50.0)  # the other bit comes with probability e^-50
    assert asked.randomize([0.0], 0.3, sure) == 1.0 and asked.randomize([0.0], 0.7, sure) == 0.0
    assert asked.randomize([np.nan], 0.3, sure) == 0.0
    chosen = asked.sum(np.array([[0.0], [0.0], [np.nan]]), np.array([0.3, 0.7, 0.0]))
    assert chosen.tolist() == [1.0]
