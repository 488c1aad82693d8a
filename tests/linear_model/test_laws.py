"""Laws of every estimator: a large epsilon is no privacy, and units and order change no fit."""

import numpy as np
import pytest
from registry.estimators import ESTIMATORS, SETTINGS, VARIANTS, curve, targets
from sklearn.base import is_classifier
from sklearn.pipeline import make_pipeline

from skpriv.linear_model import (
    IVRegressor, LogisticRegression,
    PoissonRegressor,
)  # fmt: skip
from skpriv.preprocessing import BoundsScaler

NAMED = [
    pytest.param(Estimator, variant, id=f"{Estimator.__name__}-{variant}")
    for Estimator in ESTIMATORS
    for variant in VARIANTS[Estimator]
]
every_variant = pytest.mark.parametrize(("Estimator", "variant"), NAMED)
# They take bounds_X
OWN_BOUNDS = tuple(kind for kind in ESTIMATORS if "bounds_X" in SETTINGS[kind])
CURVES = (LogisticRegression, PoissonRegressor)
RANGES = np.array([[-1.0, 1.0], [-0.5, 1.0], [0.0, 2.0], [-3.0, 1.0]])
BOUNDS_Y = (-1.5, 2.5)
D, NAMES = len(RANGES), ("instruments", "endogenous")


def _data(Estimator, n, seed, skewed=False):
    """Rows inside RANGES and targets inside BOUNDS_Y, whose mean is not linear."""
    rng = np.random.RandomState(seed)
    part = rng.uniform(size=(n, D))
    if skewed:
        part = np.clip(rng.exponential(size=(n, D)) * 0.2, 0.0, 1.0)
    if Estimator is IVRegressor:  # the second column follows its instrument, the first one
        part[:, 1] = 0.7 * part[:, 0] + 0.3 * part[:, 1]
    X = RANGES[:, 0] + np.diff(RANGES.T, axis=0) * part
    mean = 0.3 + X @ [0.5, -0.4, 0.2, 0.1] + 0.3 * X[:, 0] ** 2
    return X, targets(Estimator, np.clip(mean + 0.3 * rng.normal(size=n), *BOUNDS_Y))


def _model(Estimator, variant, ranges=RANGES, bounds_y=BOUNDS_Y, **settings):
    """A fit of raw rows by public ranges: its own bounds, or a scaler before it."""
    settings = {**SETTINGS[Estimator], **variant, "bounds_y": bounds_y, **settings}
    if is_classifier(Estimator()):
        del settings["bounds_y"]
    elif Estimator is PoissonRegressor and bounds_y == BOUNDS_Y:
        settings["bounds_y"] = SETTINGS[Estimator]["bounds_y"]
    if Estimator in OWN_BOUNDS:
        return Estimator(**{**settings, "bounds_X": ranges})
    return make_pipeline(BoundsScaler(ranges), Estimator(**settings))


def _last(model):
    return model if isinstance(model, OWN_BOUNDS) else model[-1]


def _points(model, X):
    """Rows as the estimator itself takes them."""
    return X if isinstance(model, OWN_BOUNDS) else model[:-1].transform(X)


def _claims(fit):
    """The intervals that a fit has, of those that its class claims."""
    return [method for method in fit.interval_claims if method in fit._interval_methods]


def _standard_errors(exact, X, y):
    """Of `curve` at each row, by least squares or maximum likelihood."""
    A = np.column_stack([X, np.ones(len(X))])
    if isinstance(exact, CURVES):
        binary = is_classifier(exact)
        mean = exact.predict_proba(X)[:, 1] if binary else exact.predict(X)
        slope = mean * (1.0 - mean) if binary else mean
        inverse = np.linalg.inv((A * slope[:, None]).T @ A) * np.mean((y - mean) ** 2 / slope)
        unit = 1.0 if binary else mean
        return unit * np.sqrt(np.einsum("ij,jk,ik->i", A, inverse, A))
    inverse = np.linalg.inv(A.T @ A)
    residual = y - A @ (inverse @ (A.T @ y))
    variance = residual @ residual / (len(X) - A.shape[1])
    return np.sqrt(variance * np.einsum("ij,jk,ik->i", A, inverse, A))


@every_variant
@pytest.mark.parametrize("n", [600, 6000])
def test_epsilon_of_a_million_is_no_privacy_within_a_tenth_of_a_standard_error(
    Estimator, variant, n, global_random_seed
):
    X, y = _data(Estimator, n, global_random_seed, skewed=True)
    # The seed is for the rows that are held out: the same ones in both fits
    seed = {"random_state": global_random_seed}
    exact = _model(Estimator, variant, privacy="none", **seed).fit(X, y)
    private = _model(Estimator, variant, epsilon=1e6, random_state=global_random_seed).fit(X, y)
    away = (curve(private, X) - curve(exact, X)) / _standard_errors(exact, X, y)
    assert np.sqrt(np.mean(away**2)) < 0.1


@every_variant
@pytest.mark.parametrize("privacy", ["central", "none"])
def test_units_are_only_units(Estimator, variant, privacy):
    """Those of the features; and those of the target, of predictions and of intervals."""
    X, y = _data(Estimator, 3000, 0)
    settings = {"privacy": privacy, "epsilon": 3.0, "random_state": 0}
    first = _model(Estimator, variant, **settings).fit(X, y)
    scale, shift = np.array([2.0, 1e-3, 1e4, 1.0]), np.array([0.0, 7.0, -3e5, 1.0])
    other = _model(Estimator, variant, RANGES * scale[:, None] + shift[:, None], **settings)
    found = curve(other.fit(X * scale + shift, y), X * scale + shift)
    np.testing.assert_allclose(found, curve(first, X), rtol=1e-5, atol=1e-6)
    if Estimator is LogisticRegression:  # classes have no unit
        return
    counts = Estimator is PoissonRegressor  # rates have a unit, and a 0
    bounds, shift = (SETTINGS[Estimator]["bounds_y"], 0.0) if counts else (BOUNDS_Y, -64.0)
    moved = tuple(np.multiply(8.0, bounds) + shift)
    other = _model(Estimator, variant, bounds_y=moved, **settings).fit(X, 8.0 * y + shift)
    expected = 8.0 * first.predict(X) + shift
    np.testing.assert_allclose(other.predict(X), expected, rtol=1e-6, atol=1e-6)
    for method in _claims(_last(first)):
        ends, moved_ends = (
            _last(one).confidence_interval(_points(one, X[:5]), method=method)
            for one in (first, other)
        )
        np.testing.assert_allclose(moved_ends, 8.0 * np.array(ends) + shift, rtol=1e-6, atol=1e-6)


@every_variant
def test_the_order_of_the_features_does_not_matter(Estimator, variant, global_random_seed):
    """Without privacy the fit is the same; with it all but the draw is."""
    X, y = _data(Estimator, 3000, global_random_seed)
    order = np.array([2, 0, 3, 1])

    def _fitted(columns, **settings):
        if Estimator is IVRegressor:  # its columns have names
            settings |= {name: [columns.tolist().index(i)] for i, name in enumerate(NAMES)}
        settings["random_state"] = global_random_seed
        return _model(Estimator, variant, RANGES[columns], **settings).fit(X[:, columns], y)

    first = _fitted(np.arange(D), privacy="none")
    exact = curve(first, X)
    np.testing.assert_allclose(curve(_fitted(order, privacy="none"), X[:, order]), exact, atol=1e-6)
    private = _fitted(order, epsilon=1e6)
    away = (curve(private, X[:, order]) - exact) / _standard_errors(first, X, y)
    assert np.sqrt(np.mean(away**2)) < 0.1


@every_variant
@pytest.mark.parametrize("privacy", ["central", "none"])
def test_intervals_have_a_width_and_contain_the_prediction(Estimator, variant, privacy):
    """Also where the line leaves the bounds of y, or the ball of ``coef_norm``: far rows do."""
    X, y = _data(Estimator, 6000, 0)
    bounds = (0.0, 1.0) if Estimator in CURVES else (-0.4, 1.0)
    model = _model(
        Estimator, variant, bounds_y=bounds, privacy=privacy, epsilon=3.0, random_state=0
    ).fit(X, np.clip(y, *bounds))
    last, points = _last(model), _points(model, X[:300])
    points = np.vstack([points, 20.0 * points])
    predicted = last.predict_proba(points)[:, 1] if is_classifier(last) else last.predict(points)
    if privacy == "none":  # the textbook's prediction of moment regressors leaves the bounds
        predicted = np.clip(predicted, *bounds)
    assert bounds[0] <= predicted.min() and predicted.max() <= bounds[1]
    claimed = _claims(last)
    for method in {"certified", "asymptotic"} - set(claimed):
        with pytest.raises((AttributeError, NotImplementedError, ValueError)):
            last.confidence_interval(points, method=method)
    for method in claimed:
        low, high = last.confidence_interval(points, method=method)
        assert ((bounds[0] <= low) & (low <= predicted)).all()
        assert ((predicted <= high) & (high <= bounds[1])).all()
        assert (high - low > (1e-5 if Estimator in CURVES else 1e-3)).all()


@pytest.mark.parametrize("Estimator", OWN_BOUNDS)
def test_rows_outside_of_the_bounds_are_clipped_in_predictions_as_in_the_fit(Estimator):
    X, y = _data(Estimator, 3000, 0)
    model = _model(Estimator, VARIANTS[Estimator][0], epsilon=3.0, random_state=0).fit(X, y)
    far = 100.0 * X[:50]
    near = np.clip(far, *RANGES.T)
    np.testing.assert_array_equal(curve(model, far), curve(model, near))
    for method in Estimator.interval_claims:
        ends = [model.confidence_interval(points, method=method) for points in (far, near)]
        np.testing.assert_array_equal(*ends)
