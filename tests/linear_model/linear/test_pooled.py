"""Lines from the released equations of several fits, and what they say of their errors."""

import pickle

import numpy as np
import pytest

from skpriv.linear_model import LinearRegression

COEF = np.array([0.5, -0.3, 0.2, 0.0, 0.6])
COMMON = {"epsilon": 1.0, "delta": 1e-6, "data_norm": 1.0, "bounds_y": (-1, 1)}


def rows(n, seed, level=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) / 3.0
    X /= np.maximum(np.linalg.norm(X, axis=1), 1.0)[:, None]
    return X, np.clip(X @ COEF + level + 0.3 * rng.normal(size=n), -1.0, 1.0)


def fits(seed, count=4, n=2000, **given):
    level = 0.2 if given.get("fit_intercept", True) else 0.0
    return [
        LinearRegression(**{**COMMON, **given}, random_state=count * seed + k).fit(
            *rows(n, count * seed + k, level)
        )
        for k in range(count)
    ]


def pool(found):
    line = found[0]
    for fit in found[1:]:
        line = fit.pooled(line)
    return line


def deviations(fit, truth):
    mean, covariance = fit.posterior()
    size = np.count_nonzero(np.diag(covariance))
    return (mean - truth)[:size] / np.sqrt(np.diag(covariance))[:size]


@pytest.mark.parametrize("intercept", [True, False])
def test_posteriors_know_their_errors_and_shrink(intercept):
    truth = np.append(COEF, 0.2 * intercept)
    single, both, errors = [], [], []
    for seed in range(3):
        found = fits(seed, fit_intercept=intercept)
        line = pool(found)
        single += [deviations(fit, truth) for fit in found]
        both.append(deviations(line, truth))
        ratio = line.prediction_error() / np.mean([fit.prediction_error() for fit in found])
        errors.append(ratio)
        assert line._information.n == 8000
    # 100 and 25 normal variables or more, whose mean squares have deviations of .14 and .28
    assert np.mean(np.square(single)) < 1.55 and np.mean(np.square(both)) < 2.1
    assert np.mean(np.square(single)) > 0.3
    # A half, for four times the records, and as little as a quarter where the noise of slopes,
    # which multiplies the error of the solution, is most of the error
    assert 0.2 < np.mean(errors) < 0.65


def test_pooling_neither_depends_on_the_order_nor_on_units():
    found = fits(0)
    one, other = pool(found), pool(found[::-1])
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-9)
    X, y = rows(2000, 0, 0.2)
    wide = LinearRegression(
        **{**COMMON, "bounds_y": (-7, 13), "data_norm": 5.0}, random_state=0
    ).fit(5.0 * X, 3.0 + 10.0 * y)
    np.testing.assert_allclose(wide.posterior()[0][:-1], 2.0 * found[0].posterior()[0][:-1])
    assert wide.prediction_error() == pytest.approx(10.0 * found[0].prediction_error())
    line = wide.pooled(wide)
    centre = line.predict(5.0 * X[:9])
    low, high = line.confidence_interval(5.0 * X[:9])
    assert ((low < centre) & (centre < high)).all() and (np.abs(centre) <= 13.0).all()
    again = pickle.loads(pickle.dumps(line))
    np.testing.assert_array_equal(again.predict(5.0 * X[:9]), centre)


def test_few_records_say_little_of_the_line():
    X, y = rows(60, 0)
    mean = LinearRegression(**COMMON, random_state=0).fit(X, y)
    assert not mean._released.equations and not mean._information.precision.any()
    fit = LinearRegression(**COMMON, fit_intercept=False, random_state=0).fit(X, y)
    line = fits(0, fit_intercept=False)[0].pooled(fit)
    assert line._information.n == 2060 and fit.posterior()[1][0, 0] > 0.5 / 5.0


def test_what_cannot_be_pooled_has_no_such_methods():
    X, y = rows(300, 0)
    exact = LinearRegression(**{**COMMON, "epsilon": np.inf}).fit(X, y).set_params(epsilon=1.0)
    local = LinearRegression(**{**COMMON, "epsilon": 4.0}, privacy="local").fit(X, y)
    for fit in (exact, local, LinearRegression()):
        assert not any(hasattr(fit, name) for name in ("pooled", "posterior", "prediction_error"))
    private = fits(0, count=1)[0]
    dearer = LinearRegression(**{**COMMON, "epsilon": 4.0}, random_state=0).fit(X, y)
    other = LinearRegression(**{**COMMON, "bounds_y": (-1, 2)}, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="same bounds"):
        private.pooled(other)
    with pytest.raises(ValueError, match="asymptotic"):
        private.pooled(private).confidence_interval(X[:2], method="certified")
    assert private.pooled(dearer).privacy_report_ is dearer.privacy_report_
