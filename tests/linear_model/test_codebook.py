"""Which users report by a codebook, by public numbers; that each pays once, and purely."""

from types import SimpleNamespace

import numpy as np
import pytest
from registry.estimators import layered
from registry.refusals import uncharged

from skpriv import BudgetAccountant, PrivacyError
from skpriv.linear_model import (
    AdditiveRegressor, ImproperSGDRegressor, LayeredRegressor, LinearRegression,
    ReweightedRegressor,
)  # fmt: skip
from skpriv.linear_model._opening import best_reports, public_maps
from skpriv.protocol import Collector

RANGES, BALL = {"bounds_X": (-1.0, 1.0)}, {"data_norm": 1.5}
BOUNDS = {
    AdditiveRegressor: RANGES,
    LinearRegression: RANGES,
    ReweightedRegressor: BALL,
    ImproperSGDRegressor: BALL,
    LayeredRegressor: BALL,
}
every_class = pytest.mark.parametrize("Estimator", BOUNDS)


def make(Estimator, **params):
    options = {"privacy": "local", "epsilon": 4.0, "bounds_y": (-2.0, 3.0)}
    return Estimator(**{**options, **BOUNDS[Estimator], **params})


def records(n, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    return X, X[:, 0] ** 2 + 0.5 * X[:, 1] + rng.normal(scale=0.3, size=n)


@every_class
@pytest.mark.parametrize(("delta", "random_state"), [(0.0, None), (1e-6, 0)])
def test_each_user_answers_once_and_purely(Estimator, delta, random_state):
    """By the codebook also with a delta, but under an accountant that adds up Gaussian noise."""
    X, y = records(800)
    model = make(Estimator, delta=delta, random_state=random_state, channel="codebook").fit(X, y)
    with BudgetAccountant(4.0, delta) as accountant:
        asked = make(Estimator, delta=delta, random_state=random_state).fit(X, y)
        assert accountant.spent.epsilon == pytest.approx(4.0)
        assert accountant.spent.delta == delta
    for fitted, pure in ((model, True), (asked, delta == 0.0)):
        report = fitted.privacy_report_
        assert {"codebook" in row.noise for row in report.rows} == {pure}
        assert sum(row.records for row in report.rows) <= 800
        assert not pure or report.total.epsilon(0.0) == pytest.approx(4.0)
        assert pure == ("delta=0" in str(report.guarantee))


@every_class
def test_a_curator_has_no_codebook(Estimator):
    with uncharged("curator|privacy='local'", (ValueError, PrivacyError)):
        make(Estimator, privacy="central", channel="codebook", delta=1e-6).fit(*records(500))


@pytest.mark.parametrize(("Estimator", "params", "message"), [
    (ReweightedRegressor, {"solver": "sgd", "channel": "codebook"}, "solver='sgd'"),
    (ReweightedRegressor, {"solver": "sgd", "delta": 0.0}, "delta"),
    (LayeredRegressor, {"channel": "additive", "delta": 0.0}, "mu above 0.*delta"),
    (LayeredRegressor, {"channel": "codebook", "privacy": "shuffle"}, "privacy='local'"),
    (LayeredRegressor, {"channel": "codebook", "variant": "paper"}, "one-batch"),
])  # fmt: skip
def test_what_cannot_be_had_is_refused_before_any_charge(Estimator, params, message):
    with uncharged(message, (ValueError, PrivacyError)):
        make(Estimator, **params).fit(*records(500))


def test_devices_know_lines_alone():
    with pytest.raises(ValueError, match="lines"):
        Collector(make(AdditiveRegressor, delta=0.0), 100, 0, n_features=2)


@pytest.mark.parametrize("Estimator", [AdditiveRegressor, ReweightedRegressor])
def test_shuffled_reports_are_amplified(Estimator):
    shuffled = {"privacy": "shuffle", "epsilon": 1.0, "delta": 1e-6, "channel": "codebook"}
    fitted = make(Estimator, **shuffled, random_state=0).fit(*records(20_000))
    equations = getattr(fitted, "_equations", None) or fitted._released.equations
    assert {row.noise for row in fitted.privacy_report_.rows} == {"codebook"}
    assert equations.law.code.epsilon > 2.5
    assert fitted.privacy_report_.guarantee.epsilon == 1.0


SHUFFLED = {"privacy": "shuffle", "epsilon": 1.0, "delta": 1e-6}
PURE = {"privacy": "local", "delta": 0.0}


@pytest.mark.parametrize(("Estimator", "n", "n_features", "params", "channel"), [
    (LinearRegression, 4_000, 6, {}, "codebook"),  # N / p^1.5 of the codebook is 14, below 16
    (LinearRegression, 6_000, 6, {}, "gaussian"),
    (LinearRegression, 60_000, 6, {}, "codebook"),  # above 64
    (LinearRegression, 600, 1, {"epsilon": 0.5}, "codebook"),  # Gaussian reports: the mean alone
    (LinearRegression, 6_000, 6, {"channel": "codebook"}, "codebook"),
    (LinearRegression, 6_000, 6, {"privacy": "local"}, "codebook"),
    (LinearRegression, 6_000, 6, {"data_norm": 1.0, "bounds_X": None}, "codebook"),
    (AdditiveRegressor, 4_000, 6, {}, "codebook"),  # N / p^1.5 of the codebook is 12, below 16
    (AdditiveRegressor, 30_000, 6, {"epsilon": 0.3}, "gaussian"),  # 33, and lines for both
    (AdditiveRegressor, 30_000, 2, {}, "codebook"),  # curves, where Gaussian noise leaves lines
    (AdditiveRegressor, 10_000, 2, {"knots": 3}, "gaussian"),  # the same knots for both, and 39
    (AdditiveRegressor, 30_000, 2, {"knots": 3}, "codebook"),  # 81: too little noise to matter
    (AdditiveRegressor, 300_000, 2, {"privacy": "local", "knots": 2}, "codebook"),
    (AdditiveRegressor, 30_000, 2, {**PURE, "knots": 3}, "codebook"),
    (AdditiveRegressor, 30_000, 2, {"knots": 3, "channel": "codebook"}, "codebook"),
    (AdditiveRegressor, 30_000, 2, {"privacy": "central"}, "gaussian"),
])  # fmt: skip
def test_the_channel_follows_from_public_numbers(Estimator, n, n_features, params, channel):
    model = make(Estimator, **{**SHUFFLED, **params})
    model.n_features_in_ = n_features
    rows = SimpleNamespace(n=n, n_features=n_features, at_hand=True, on_devices=False)
    if Estimator is AdditiveRegressor:
        found = model._channel(rows)
    else:
        found = best_reports(model, public_maps(model, n_features).size, rows)
    assert found == channel


def test_without_noise_the_channel_does_not_matter():
    X, y = records(400)
    first, second = (
        layered(privacy="none", channel=channel).fit(X, y) for channel in ("additive", "codebook")
    )
    np.testing.assert_allclose(first.coef_, second.coef_)
