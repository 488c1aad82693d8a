"""Weights: exactness, what they mean under noise, replay, routing, refusals."""

import numpy as np
import pytest
from registry.refusals import charged, uncharged
from sklearn import config_context
from sklearn.linear_model import LinearRegression as LeastSquares
from sklearn.metrics import get_scorer
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skpriv
from skpriv import BudgetAccountant
from skpriv.audit import replay
from skpriv.inspection import model_card
from skpriv.linear_model import (
    AdditiveRegressor, LinearRegression, ReweightedRegressor, SSPRegressor,
)  # fmt: skip

BOUNDS = {"bounds_X": (-1.0, 1.0), "bounds_y": (-2.0, 2.0)}
BALL = {"data_norm": 2.0, "bounds_y": (-2.0, 2.0)}
MAKERS = {
    LinearRegression: BOUNDS,
    AdditiveRegressor: {**BOUNDS, "knots": 3},
    SSPRegressor: BALL,
    ReweightedRegressor: BALL,
}
LINES = [kind for kind in MAKERS if kind is not AdditiveRegressor]
every_class = pytest.mark.parametrize("Estimator", MAKERS, ids=lambda kind: kind.__name__)
every_line = pytest.mark.parametrize("Estimator", LINES, ids=lambda kind: kind.__name__)
# Weights come in by one function for fits by steps, and by another one for those by sums.
two_doors = pytest.mark.parametrize("Estimator", [LinearRegression, SSPRegressor])
LARGEST = 8.0


def draw(n, seed=0):
    """A curved truth, where weights decide which line is the best one."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 3))
    y = X @ [0.5, -0.3, 0.1] + 0.2 + 0.4 * X[:, 0] ** 2 + rng.normal(scale=0.1, size=n)
    return X, y, np.minimum(rng.gamma(2.0, 1.0, size=n) + 4.0 * (X[:, 0] > 0.0), LARGEST)


def make(Estimator, **settings):
    return Estimator(**{**MAKERS[Estimator], "random_state": 0, **settings})


@every_line
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_privacy_it_is_weighted_least_squares(Estimator, fit_intercept):
    X, y, w = draw(500)
    model = make(Estimator, privacy="none", fit_intercept=fit_intercept)
    model.fit(X, y, sample_weight=w, max_weight=LARGEST)
    known = LeastSquares(fit_intercept=fit_intercept).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-10)
    np.testing.assert_allclose(model.intercept_, known.intercept_, atol=1e-10)


@every_line  # how smooth a curve is follows from the number of records, which repeating changes
def test_weights_that_are_whole_numbers_repeat_rows(Estimator):
    X, y, _ = draw(300)
    w = np.random.RandomState(1).randint(0, 4, size=len(y))
    exact = make(Estimator, privacy="none")
    one = exact.fit(X, y, sample_weight=w, max_weight=3).predict(X)
    other = exact.fit(X.repeat(w, axis=0), y.repeat(w)).predict(X)
    np.testing.assert_allclose(one, other, atol=1e-10)


@every_class
def test_only_the_ratio_to_the_bound_counts(Estimator):
    X, y, w = draw(2_000)
    first = make(Estimator).fit(X, y, sample_weight=w, max_weight=LARGEST).predict(X)
    scaled = make(Estimator).fit(X, y, sample_weight=1024.0 * w, max_weight=1024.0 * LARGEST)
    np.testing.assert_array_equal(first, scaled.predict(X))


@every_class
def test_equal_weights_are_no_weights(Estimator):
    X, y, _ = draw(2_000)
    exact = make(Estimator, privacy="none")
    plain = exact.fit(X, y).predict(X)
    for weight in (LARGEST, LARGEST / 7.0):
        equal = exact.fit(X, y, sample_weight=np.full(len(y), weight), max_weight=LARGEST)
        np.testing.assert_allclose(equal.predict(X), plain, atol=1e-6)
    X, y, _ = draw(4000)
    plain, errors = exact.fit(X, y).predict(X), []
    for weights in ({"sample_weight": np.ones(len(y)), "max_weight": 1.0}, {}):
        fits = [make(Estimator, random_state=seed).fit(X, y, **weights) for seed in range(3)]
        errors.append(np.mean([np.abs(fit.predict(X) - plain).mean() for fit in fits]))
    assert errors[0] < 2.0 * errors[1]


@every_class
def test_noise_finds_the_weighted_fit(Estimator):
    X, y, w = draw(40_000)
    noisy = make(Estimator, epsilon=4.0).fit(X, y, sample_weight=w, max_weight=LARGEST)
    exact = make(Estimator, privacy="none")
    weighted = exact.fit(X, y, sample_weight=w, max_weight=LARGEST).predict(X)
    plain = exact.fit(X, y).predict(X)
    if Estimator is not AdditiveRegressor:  # curves are the truth, whatever the weights
        assert np.abs(noisy.predict(X) - plain).mean() > 0.02
    # Where the mean is not linear, the re-weighted line is another one.
    limit = 0.025 if Estimator is ReweightedRegressor else 0.01
    assert np.abs(noisy.predict(X) - weighted).mean() < limit


def test_the_mean_of_few_rows_is_weighted():
    rng = np.random.RandomState(0)
    X, w = rng.uniform(-1.0, 1.0, size=(400, 6)), rng.choice([0.1, 1.0], size=400)
    y = np.where(w == 1.0, 1.5, -1.5)
    found = [
        make(LinearRegression, epsilon=0.12, random_state=seed).fit(
            X, y, sample_weight=w, max_weight=1.0
        )
        for seed in range(200)
    ]
    assert not np.any([one.coef_ for one in found])
    mean = np.mean([one.intercept_ for one in found])
    # A prior shrinks it by a fifth. By roots of weights the average is .78, and by none of them 0.
    average = np.average(y, weights=w)
    assert 1.2 < average < 1.25 and 0.75 * average < mean < average


@every_class
@pytest.mark.parametrize("kind", ["weight", "all"])
def test_replacing_a_record_and_its_weight_stays_within_the_claim(Estimator, kind):
    X, y, w = draw(400)
    X[0], y[0], w[0] = (1.0, 1.0, 1.0), 2.0, LARGEST
    other, answer, weights = X.copy(), y.copy(), w.copy()
    weights[0] = 0.0
    if kind == "all":
        other[0], answer[0], weights[0] = (-1.0, 1.0, -1.0), -2.0, 100.0
    found = replay(
        lambda: make(Estimator, epsilon=20.0), (X, y, w), (other, answer, weights),
        run=lambda model, data: (
            model.fit(*data[:2], sample_weight=data[2], max_weight=LARGEST) and None
        ),
    )  # fmt: skip
    assert found.holds, str(found)
    assert found.epsilon > 0.05


@two_doors
def test_the_report_and_the_card_name_the_bound(Estimator):
    X, y, w = draw(400)
    with BudgetAccountant(1.0, 1e-6) as accountant:
        model = make(Estimator).fit(X, y, sample_weight=w, max_weight=LARGEST)
    assert accountant.spent.epsilon == pytest.approx(1.0, rel=1e-9)
    assert "clipped to [0, 8]" in str(model.privacy_report_)
    assert "clipped to [0, 8]" in model.privacy_report_._repr_html_()
    assert "clipped to [0, 8]" in model_card(model)
    assert skpriv.from_dict(skpriv.to_dict(model)).privacy_report_.max_weight == 8.0


@every_class
@pytest.mark.parametrize("privacy", ["central", "local", "none"])
def test_every_model_takes_weights_and_keeps_none(Estimator, privacy):
    X, y, w = draw(600)
    model = make(Estimator, privacy=privacy).fit(X, y, sample_weight=w, max_weight=LARGEST)
    assert np.isfinite(model.predict(X)).all()
    low, high = model.confidence_interval(X[:3])
    assert (low <= high).all()
    kept = [value for name, value in vars(model).items() if name != "privacy_report_"]
    assert all(np.size(value) < 200 for value in kept)


def test_groups_and_weights():
    X, y, w = draw(400)
    groups = np.repeat(np.arange(100), 4)
    model = make(SSPRegressor).fit(
        X, y, groups=groups, max_rows_per_group=2, sample_weight=w, max_weight=LARGEST
    )
    assert model.privacy_report_.unit == "person" and model.privacy_report_.max_weight == LARGEST


X, Y, W = draw(200)
BAD = [
    ({"sample_weight": W}, {}, ValueError, "sample_weight needs max_weight"),
    ({"max_weight": 1.0}, {}, ValueError, "max_weight needs sample_weight"),
    ({"sample_weight": W, "max_weight": 0.0}, {}, ValueError, "above 0"),
    ({"sample_weight": W, "max_weight": np.inf}, {}, ValueError, "finite"),
    ({"sample_weight": W, "max_weight": True}, {}, ValueError, "finite"),
    ({"sample_weight": W[1:], "max_weight": 1.0}, {}, ValueError, r"one weight a row\D*$"),
    ({"sample_weight": np.ones((200, 2)), "max_weight": 1.0}, {}, ValueError, "one weight a row"),
    ({"sample_weight": W, "max_weight": 1.0}, {"calibration_size": 0.1}, ValueError, "calibration"),
    ({"weight": W}, {}, TypeError, "'weight'"),
]


@two_doors
@pytest.mark.parametrize(("arguments", "settings", "error", "message"), BAD)
def test_what_is_wrong_in_public_is_refused_uncharged(
    Estimator, arguments, settings, error, message
):
    with uncharged(message, error):
        make(Estimator, **settings).fit(X, Y, **arguments)


def test_sgd_takes_no_weights():
    model = ReweightedRegressor(data_norm=1.0, bounds_y=(-1, 1), solver="sgd")
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, Y, sample_weight=W, max_weight=LARGEST)


@every_class
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_weight_is_told_in_one_sentence_after_the_charge(Estimator, value):
    weights = np.where(np.arange(200) == 7, value, W)
    with charged():
        make(Estimator).fit(X, Y, sample_weight=weights, max_weight=LARGEST)


@every_class
def test_nothing_is_said_about_negative_or_large_weights_nor_of_zeros(Estimator):
    for weights in (np.where(W > 2.0, -W, 100.0 * W), np.zeros(200)):
        kept, before = np.clip(weights, 0.0, LARGEST), weights.copy()
        found = [
            make(Estimator).fit(X, Y, sample_weight=w, max_weight=LARGEST).predict(X)
            for w in (weights, kept, kept.tolist())
        ]
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])
        np.testing.assert_array_equal(weights, before)


@every_class
def test_weights_are_routed(Estimator):
    with config_context(enable_metadata_routing=True):
        model = make(Estimator).set_fit_request(sample_weight=True, max_weight=True)
        model.set_score_request(sample_weight=True)
        pipeline = make_pipeline(FunctionTransformer(), model)
        pipeline.fit(X, Y, sample_weight=W, max_weight=LARGEST)
        assert pipeline[-1].privacy_report_.max_weight == LARGEST
        assert pipeline.score(X, Y, sample_weight=W) != pipeline.score(X, Y)
        # With the scorer of a Pipeline, scikit-learn before 1.8 refuses weights of its last step.
        scorer = get_scorer("r2").set_score_request(sample_weight=True)
        found = cross_validate(
            pipeline, X, Y, cv=2, scoring=scorer, return_estimator=True, error_score="raise",
            params={"sample_weight": W, "max_weight": LARGEST},
        )  # fmt: skip
    assert all(fit[-1].privacy_report_.max_weight == LARGEST for fit in found["estimator"])
