"""Improper descent from codebook reports: one index a user, about the row and its residual."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skpriv import BudgetAccountant
from skpriv._estimation._public_maps import RecordMap
from skpriv.linear_model import ImproperSGDRegressor
from skpriv.linear_model._improper import ClippedGradientQuery, ReportedGradientQuery
from skpriv.privacy import NoiseSource, best_codebook
from skpriv.protocol import Collector, report
from skpriv.protocol._device import scaled_record


def records(n, d, seed):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, d)) / np.arange(1, d + 1)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, 0.9 * X[:, 0] + rng.uniform(-0.1, 0.1, size=n)


def model(**params):
    options = {"epsilon": 4.0, "delta": 0.0, "privacy": "local", "fit_intercept": False}
    return ImproperSGDRegressor(**{"data_norm": 1.0, "bounds_y": (-1, 1), **options, **params})


@pytest.mark.parametrize("norm", [0.0, 0.5, 3.0])
def test_it_is_the_clipped_gradient_over_its_bound(norm):
    X, y = records(200, 3, 0)
    scaling, theta = (
        RecordMap.of_norm(1.0, (-1.0, 1.0), False, 3),
        norm * np.array([0.6, 0.0, -0.8]),
    )
    query = ReportedGradientQuery(scaling, theta=theta)
    ours = query.limit * query.sum(X, y)
    assert_allclose(ours, ClippedGradientQuery(scaling, theta).sum(X, y), rtol=1e-12)
    assert query.limit == 1.0 + min(norm, 1.0)
    odd = np.array([[np.nan, 0.0, 0.0], [1e308, 1e308, 1e308], [-np.inf, 0.0, 1.0]])
    phi, part = query.records(odd, np.array([1e308, np.nan, -np.inf]))
    assert np.isfinite(phi).all() and (abs(part) <= 1.0).all()
    for row, target in zip(X[:20], y[:20], strict=True):
        one, k = scaled_record(query.wire(), row, target)
        phi, part = query.records(row[None], np.array([target]))
        assert_allclose(one, phi[0], atol=1e-15)
        assert k == pytest.approx(part[0], abs=1e-15)


@pytest.mark.parametrize("random_state", [None, 0])
def test_reports_estimate_the_sum(random_state):
    X, y = records(20_000, 3, 1)
    query = ReportedGradientQuery(
        RecordMap.of_norm(1.0, (-1.0, 1.0), False, 3), theta=np.ones(3) / 2.0
    )
    law = query.local_noise(model()._trust.budget)
    assert law.code == best_codebook(4, 4.0, "vector")
    reports = law.reported(*query.records(X, y), NoiseSource(random_state))
    error = query.summed(reports) - query.sum(X, y)
    assert np.linalg.norm(error) < 5.0 * np.sqrt(3.0) * law.summed(20_000).scale


def test_reports_have_less_noise_than_vectors():
    errors = {}
    for seed in range(3):
        X, y = records(20_000, 100, seed)
        for channel, delta in (("gaussian", 1e-6), ("codebook", 0.0)):
            fitted = model(epsilon=2.0, channel=channel, delta=delta, random_state=seed).fit(X, y)
            error = np.sqrt(np.mean((fitted.predict(X) - 0.9 * X[:, 0]) ** 2))
            errors.setdefault(channel, []).append(error)
    assert np.mean(errors["codebook"]) < 0.7 * np.mean(errors["gaussian"])


def test_each_user_answers_once_and_purely():
    X, y = records(900, 2, 3)
    with BudgetAccountant(4.0, 0.0) as accountant:
        fitted = model().fit(X, y)
        assert accountant.spent.epsilon == 4.0 and accountant.spent.delta == 0.0
    assert sum(row.records for row in fitted.privacy_report_.rows) == 900


def test_devices_descend():
    X, y = records(150, 2, 4)
    collector, rounds = Collector(model(n_iter=3), 150, 0, n_features=2), 0
    while collector.task is not None:
        task, rounds = collector.task, rounds + 1
        for user in range(150):
            answer = report(task, X[user], y[user], user=user)
            if answer is not None:
                collector.add(user, answer)
    assert rounds == collector.result().n_iter_ == 3
    assert np.isfinite(collector.result().coef_).all()


def test_a_curator_has_no_channel():
    X, y = records(100, 2, 5)
    with pytest.raises(ValueError, match="curator"):
        model(privacy="central", channel="codebook", delta=1e-6).fit(X, y)
