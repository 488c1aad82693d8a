import numpy as np
import pytest
from joblib import parallel_backend
from registry.estimators import line_data, reweighted, ssp
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import HuberRegressor, LinearRegression
from sklearn.model_selection import GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skpriv import BudgetAccountant, BudgetExceeded
from skpriv.linear_model import LinearRegression as PrivateLine, SSPRegressor
from skpriv.model_selection import privacy_utility_curve
from skpriv.preprocessing import BoundsScaler

ARRAYS = ["test_scores", "interval_widths", "interval_coverages"]


@pytest.fixture
def data(global_random_seed):
    return line_data(800, seed=global_random_seed)


def small(estimator, data, **options):
    options = {"epsilons": [0.5, 5.0], "cv": 2, "n_repeats": 2, "random_state": 0, **options}
    return privacy_utility_curve(estimator, *data, **options)


def test_shapes_and_names(data):
    curve = small(ssp(), data, reference=LinearRegression())
    assert {curve[name].shape for name in ARRAYS} == {(2, 2, 2)}
    assert curve.reference_scores.shape == (2,)
    assert curve.reference_widths is None  # LinearRegression has no intervals
    assert (curve.estimator_name, curve.score_name) == ("SSPRegressor", "R2")
    assert np.isfinite(curve.test_scores).all()
    assert (curve.interval_widths[1] < curve.interval_widths[0]).all()


def test_without_privacy_it_is_cross_validation(data):
    reference = LinearRegression()
    curve = small(ssp(), data, epsilons=[np.inf], reference=reference)
    expected = cross_val_score(reference, *data, cv=2)
    np.testing.assert_allclose(curve.reference_scores, expected)
    np.testing.assert_allclose(curve.test_scores, np.tile(expected, (1, 2, 1)), rtol=1e-9)
    assert (curve.interval_coverages == 1.0).all()


def test_reference_with_intervals(data):
    exact = ssp(privacy="none")
    curve = small(ssp(), data, epsilons=[np.inf], reference=exact)
    np.testing.assert_allclose(curve.interval_widths, np.tile(curve.reference_widths, (1, 2, 1)))


def test_reference_is_clipped_as_the_intervals_are(data):
    exact = SSPRegressor(data_norm=1.0, privacy="none", bounds_y=(-0.05, 0.05), coef_norm=10.0)
    predictions = exact.fit(*data).predict(data[0])
    assert (np.abs(predictions) > 0.05).any()
    private = SSPRegressor(data_norm=1.0, bounds_y=(-0.05, 0.05), coef_norm=10.0)
    curve = small(private, data, epsilons=[np.inf], reference=exact)
    assert (curve.interval_coverages == 1.0).all()


def test_optional_parts(data):
    curve = small(ssp(), data, confidence_level=None, reference=LinearRegression())
    assert curve.interval_widths is None and curve.interval_coverages is None
    curve = small(ssp(), data)
    assert curve.interval_coverages is None and curve.reference_scores is None


@pytest.mark.parametrize(
    "wrap",
    [
        lambda est: est,
        lambda est: make_pipeline(BoundsScaler((-0.5, 0.5)), est),
        lambda est: make_pipeline(FunctionTransformer(), BoundsScaler((-0.5, 0.5)), est),
        lambda est: TransformedTargetRegressor(est),
    ],
)
def test_finds_the_private_estimator(wrap, data):
    assert small(wrap(ssp()), data).estimator_name == "SSPRegressor"


@pytest.mark.parametrize("estimator", [LinearRegression(), HuberRegressor()])
def test_refuses_what_is_not_private(estimator, data):
    with pytest.raises(ValueError, match="0 private estimators"):
        small(estimator, data)


@pytest.mark.parametrize(
    "options",
    [
        *({"epsilons": wrong} for wrong in ([], [0.0], [-1.0], [np.nan], ["a"], [[1.0]])),
        {"n_repeats": 0}, {"confidence_level": 1.0}, {"cv": "a"},
    ],
)  # fmt: skip
def test_refuses_improper_options(options, data):
    with pytest.raises(ValueError, match=next(iter(options))):
        small(ssp(), data, **options)


@pytest.mark.parametrize("estimator", [ssp(), reweighted()])
def test_one_seed_reproduces_everything_whatever_n_jobs(estimator, data):
    options = {"reference": LinearRegression(), "random_state": 3}
    first = small(estimator, data, **options)
    for n_jobs in (1, 2):
        again = small(estimator, data, n_jobs=n_jobs, **options)
        for name in ARRAYS:
            np.testing.assert_allclose(again[name], first[name], rtol=1e-9)


def test_several_estimators_have_the_curves_of_each(data):
    options = {"reference": make_pipeline(BoundsScaler((-0.5, 0.5)), LinearRegression())}
    estimators = [make_pipeline(BoundsScaler((-0.5, 0.5)), ssp()), reweighted()]
    found = small(estimators, data, **options)
    for curve, estimator in zip(found, estimators, strict=True):
        alone = small(estimator, data, **options)
        assert curve.estimator_name == alone.estimator_name
        for name in (*ARRAYS, "reference_scores"):
            np.testing.assert_allclose(curve[name], alone[name], rtol=1e-9)


def test_the_reference_is_fitted_and_rows_are_scaled_once(data, monkeypatch):
    calls = {BoundsScaler: 0, LinearRegression: 0}

    def counted(kind, method):
        original = getattr(kind, method)

        def count(self, *arguments, **named):
            calls[kind] += 1
            return original(self, *arguments, **named)

        monkeypatch.setattr(kind, method, count)

    counted(BoundsScaler, "transform")
    counted(LinearRegression, "fit")
    private = ssp()
    estimators = [make_pipeline(BoundsScaler((-0.5, 0.5)), private) for _ in range(3)]
    reference = make_pipeline(BoundsScaler((-0.5, 0.5)), LinearRegression())
    curves = small(estimators, data, reference=reference)
    assert calls == {BoundsScaler: 1, LinearRegression: 2}
    # As where the steps are fitted and applied in each fold
    wrapped = [make_pipeline(FunctionTransformer(), *one) for one in estimators]
    for curve, other in zip(curves, small(wrapped, data, reference=reference), strict=True):
        np.testing.assert_allclose(curve.test_scores, other.test_scores, rtol=1e-9)
    assert calls[BoundsScaler] > 24


def test_steps_that_learn_are_fitted_in_each_fold(data):
    """Of the training rows alone, as a score of held-out rows asks."""
    seen = []

    class Learning(StandardScaler):
        def fit(self, X, y=None, sample_weight=None):
            seen.append(len(X))
            return super().fit(X, y, sample_weight)

    small(make_pipeline(Learning(), ssp()), data)
    assert seen == [400] * 8


def test_every_fit_has_noise_of_its_own(data):
    for seeds in ({"random_state": 0}, {"random_state": None}):
        own = ssp(random_state=0)
        scores = small(own, data, epsilons=[1.0, 1.0], n_repeats=3, **seeds).test_scores
        assert len(np.unique(scores)) == scores.size


def test_seed_of_the_estimator_serves_if_there_is_no_other(data):
    first, again = (small(ssp(random_state=1), data, random_state=None) for _ in range(2))
    np.testing.assert_allclose(first.test_scores, again.test_scores, rtol=1e-9)


def test_noise_is_secure_without_any_seed(data, monkeypatch):
    seen = []
    fit = SSPRegressor.fit

    def spy(self, X, y):
        seen.append(self.random_state)
        return fit(self, X, y)

    monkeypatch.setattr(SSPRegressor, "fit", spy)
    small(ssp(), data, random_state=None)
    assert seen == [None] * 8


def test_estimator_and_data_are_left_alone(data):
    estimator = ssp()
    before = estimator.get_params()
    X, y = (array.copy() for array in data)
    small(estimator, data)
    assert estimator.get_params() == before and not hasattr(estimator, "coef_")
    np.testing.assert_array_equal(X, data[0])
    np.testing.assert_array_equal(y, data[1])


@pytest.mark.parametrize("backend, n_jobs", [("loky", 1), ("loky", 2), ("threading", 2)])
def test_every_fit_is_charged(backend, n_jobs, data):
    model = make_pipeline(BoundsScaler(), ssp())
    accountant = BudgetAccountant(epsilon=float("inf"), delta=1e-5)
    with accountant, parallel_backend(backend, n_jobs=n_jobs):
        small(model, data, reference=LinearRegression())
    assert len(accountant.charges) == 2 * 2 * 2


def test_stops_when_the_budget_is_spent(data):
    accountant = BudgetAccountant(epsilon=1.0, delta=1e-5)
    with parallel_backend("threading"), accountant, pytest.raises(BudgetExceeded):
        small(ssp(), data, n_jobs=2)
    assert len(accountant.charges) < 8


def test_splitters_scorers_and_groups(data):
    groups = np.arange(800) // 100
    curve = small(ssp(), data, cv=GroupKFold(6), groups=groups, scoring="neg_mean_squared_error")
    assert curve.test_scores.shape == (2, 2, 6) and (curve.test_scores < 0).all()
    assert curve.score_name == "neg mean squared error"
    folds = list(KFold(4, shuffle=True, random_state=0).split(data[0]))
    assert small(ssp(), data, cv=folds).test_scores.shape == (2, 2, 4)


def test_intervals_at_few_rows_do_not_change_scores(data):
    few, everywhere = (
        small(ssp(), data, max_interval_rows=rows, reference=LinearRegression())
        for rows in (7, None)
    )
    np.testing.assert_allclose(few.test_scores, everywhere.test_scores, rtol=1e-9)
    np.testing.assert_allclose(few.interval_widths, everywhere.interval_widths, rtol=0.2)


def test_progress_goes_to_stderr_only_if_asked_for(data, capsys):
    small(ssp(), data)
    assert capsys.readouterr() == ("", "")
    small(ssp(), data, verbose=1)
    out, err = capsys.readouterr()
    assert out == "" and "SSPRegressor: 8 of 8 fits" in err


def test_a_new_y_is_counted_in_all_held_out_rows():
    rng = np.random.RandomState(0)
    X = rng.uniform(-0.5, 0.5, size=(6000, 2))
    y = X @ [0.5, 0.2] + rng.uniform(-0.2, 0.2, size=6000)
    est = ssp(calibration_size=0.2, prediction_levels=(0.8,))
    options = {"epsilons": (4.0,), "n_repeats": 1, "cv": 3, "random_state": 0}
    curve = privacy_utility_curve(est, X, y, confidence_level=0.8, **options)
    assert curve.prediction_coverages.shape == (1, 1, 3)
    assert curve.prediction_coverages.mean() == pytest.approx(0.8, abs=0.04)
    assert curve.prediction_widths.mean() == pytest.approx(0.32, abs=0.05)
    est.set_params(calibration_size=None)
    plain = privacy_utility_curve(est, X, y, confidence_level=0.8, **options)
    assert plain.prediction_widths is None and plain.prediction_coverages is None


def test_the_reference_may_have_classical_intervals():
    """They are those of the robust covariance, which certified ones at any epsilon exceed."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(4000, 1))
    y = 0.5 * X[:, 0] + rng.uniform(-0.3, 0.3, size=4000)
    line = PrivateLine(bounds_X=(-1, 1), bounds_y=(-1, 1), privacy="none")
    model = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), coef_norm=2.0, random_state=0)
    curve = privacy_utility_curve(
        model, X, y, epsilons=[10.0], cv=2, reference=line, reference_method="asymptotic"
    )
    A = np.column_stack([X, np.ones(4000)])
    covariance = 0.09 / 3.0 * np.linalg.inv(A.T @ A) * 2.0  # of half of the rows
    widths = 2.0 * 1.96 * np.sqrt(np.einsum("ij,jk,ik->i", A, covariance, A))
    assert curve.reference_widths == pytest.approx(2 * [widths.mean()], rel=0.1)
    assert (curve.interval_widths > curve.reference_widths.max()).all()
