"""Iterative hard thresholding: exactness, charges, sparse input, accuracy, and its intervals."""

from math import log, sqrt

import numpy as np
import pytest
from registry.estimators import iht
from scipy import sparse, stats
from sklearn.linear_model import LinearRegression

from skpriv.linear_model import IHTRegressor
from skpriv.linear_model._gradients import _niht
from skpriv.linear_model._gradients._niht import (
    given_support,
    log_supports,
    sparse_norms,
    support_certificate,
)
from skpriv.privacy import Answer, GaussianNoise


def _data(n=2000, d=60, s=3, seed=0, noise=0.1, intercept=0.1):
    rng = np.random.RandomState(seed)
    coef = np.zeros(d)
    coef[rng.choice(d, s, replace=False)] = rng.choice([-1.0, 1.0], s) * rng.uniform(0.1, 0.25, s)
    X = rng.uniform(-1.0, 1.0, size=(n, d))
    mean = X @ coef + intercept
    return X, mean + rng.uniform(-noise, noise, size=n), coef, mean


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_privacy_the_refit_is_least_squares(fit_intercept, global_random_seed):
    X, y, *_ = _data(seed=global_random_seed)
    est = iht(privacy="none", n_nonzero_coefs=5, fit_intercept=fit_intercept).fit(X, y)
    S = est.support_
    reference = LinearRegression(fit_intercept=fit_intercept).fit(X[:, S], y)
    np.testing.assert_allclose(est.coef_[S], reference.coef_, atol=1e-10)
    assert est.intercept_ == pytest.approx(reference.intercept_, abs=1e-10)
    assert np.count_nonzero(est.coef_) == 5


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
@pytest.mark.parametrize("privacy", ["central", "none"])
def test_sparse_matrices_give_the_same_fit(make, privacy, global_random_seed):
    X, y, *_ = _data(d=30, seed=global_random_seed)
    X[np.abs(X) < 0.5] = 0.0
    X[3] *= 10.0  # to be clipped
    est = iht(privacy=privacy, epsilon=4.0, n_nonzero_coefs=4, random_state=0)
    dense = est.fit(X, y)
    coef, predicted = dense.coef_.copy(), dense.predict(X)
    intervals = [dense.confidence_interval(X, method=m) for m in ("certified", "asymptotic")]
    stored = make(X)
    before = stored.copy()
    est.fit(stored, y)
    assert (stored != before).nnz == 0
    np.testing.assert_allclose(est.coef_, coef, atol=1e-9)
    np.testing.assert_allclose(est.predict(stored), predicted, atol=1e-9)
    for method, expected in zip(("certified", "asymptotic"), intervals):
        np.testing.assert_allclose(est.confidence_interval(stored, method=method), expected)


def test_very_many_sparse_features_are_never_densified():
    rng = np.random.RandomState(0)
    n, d, k = 20_000, 300_000, 10
    columns = np.append(rng.randint(3, d, size=(n, k - 1)), rng.randint(0, 3, (n, 1)), axis=1)
    X = sparse.csr_matrix(
        (rng.choice([-1.0, 1.0], size=n * k), columns.ravel(), np.arange(0, n * k + 1, k)),
        shape=(n, d),
    )
    y = X[:, :3] @ np.array([0.5, -0.5, 0.5])  # dense, it would take 48 GB
    est = iht(n_nonzero_coefs=3, epsilon=2.0, random_state=0).fit(X, y)
    assert est.support_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(est.coef_[:3], [0.5, -0.5, 0.5], atol=0.05)
    assert est.predict(X[:5]).shape == (5,)


def test_wrong_parameters_are_named():
    X, y, *_ = _data(n=50, d=4)
    with pytest.raises(ValueError, match="n_nonzero_coefs=5 cannot be more"):
        iht(n_nonzero_coefs=5).fit(X, y)
    est = iht(certificate_share=0.0, random_state=0)
    est.fit(X, y)
    with pytest.raises(ValueError, match="certificate_share"):
        est.confidence_interval(X)


@pytest.mark.parametrize("d, expected", [(4, 1), (55, 5), (1000, 10)])
def test_the_default_number_of_features_is_public(d, expected):
    est = iht(random_state=0).fit(np.zeros((20, d)), np.zeros(20))
    assert est.support_.shape == (expected,)


def _published_design(n, seed, d=400, s=5):
    """The published experiment, its contexts clipped: autoregressive 0.1, noise 0.1."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, d))
    for j in range(1, d):
        X[:, j] = 0.1 * X[:, j - 1] + np.sqrt(0.99) * X[:, j]
    coef = np.zeros(d)
    coef[rng.choice(d, s, replace=False)] = rng.choice([-1.0, 1.0], s) / np.sqrt(s)
    return X, X @ coef + 0.1 * rng.normal(size=n), coef


@pytest.mark.parametrize("epsilon, n", [(0.5, 4000), (1.0, 2000), (5.0, 700)])
def test_accuracy_on_the_published_design(epsilon, n, global_random_seed):
    X, y, coef = _published_design(n, global_random_seed)
    est = IHTRegressor(
        epsilon=epsilon, delta=0.01, data_max=1.5, bounds_y=(-2.5, 2.5), n_nonzero_coefs=10,
        fit_intercept=False, random_state=global_random_seed,
    ).fit(X, y)  # fmt: skip
    assert set(np.flatnonzero(coef)) <= set(est.support_)
    best = 1.113 * coef  # of the clipped contexts
    assert np.linalg.norm(est.coef_ - best) < 0.12


@pytest.mark.slow
@pytest.mark.parametrize("params", [
    {"n_nonzero_coefs": 5, "sparsity": 3, "epsilon": 2.0},
    {"n_nonzero_coefs": 5, "privacy": "none"},
    {"n_nonzero_coefs": 3, "sparsity": 3, "epsilon": 2.0},
    {"n_nonzero_coefs": 3, "sparsity": 3, "privacy": "none"},
    {"n_nonzero_coefs": 5, "epsilon": 2.0, "fit_intercept": True},
])  # fmt: skip
def test_asymptotic_intervals_cover_given_that_the_support_does(params, global_random_seed):
    hits, runs = [], 60
    for run in range(runs):
        seed = 1000 * global_random_seed + run
        X, y, _, _ = _data(n=4000, d=100, seed=seed, noise=0.4)
        points, _, coef, mean = _data(n=50, d=100, seed=seed, noise=0.4)
        est = iht(delta=1e-5, sparse_eigenvalue=0.25, random_state=run, **params).fit(X, y)
        if set(np.flatnonzero(coef)) <= set(est.support_):
            low, high = est.confidence_interval(points, 0.9, "asymptotic")
            hits.append(low[0] <= mean[0] <= high[0])
    assert len(hits) > 0.8 * runs
    assert stats.binomtest(sum(hits), len(hits), 0.9, alternative="less").pvalue > 1e-4


def test_the_certificate_shrinks_with_n(monkeypatch):
    widths = []
    for n in (20_000, 80_000):
        X, y, *_ = _data(n=n, d=20)
        est = iht(n_nonzero_coefs=3, epsilon=8.0, sparse_eigenvalue=0.3, random_state=0)
        low, high = est.fit(X, y).confidence_interval(X[:100] / 4.0)
        widths.append((high - low).mean())
    assert widths[1] < 0.6 * widths[0]
    monkeypatch.setattr(_niht, "support_certificate", lambda *_: 0.7)
    assert est._certified(np.zeros((1, 20)), 0.95)[1] == pytest.approx(0.7 * est.fit_intercept)


def test_known_coefficients_are_kept_and_others_added():
    """Selections go by the residuals of a public start, and name none of its features."""
    X = np.random.RandomState(0).uniform(-1.0, 1.0, size=(4000, 30))
    y = 0.5 * X[:, 3] - 0.3 * X[:, 7] + 0.1 * X[:, 20]
    start = np.zeros(30)
    start[[3, 7]] = 0.5, -0.3
    exact = iht(
        privacy="none", n_nonzero_coefs=1, coef_init=start, fit_intercept=False, random_state=0
    ).fit(X, y)
    np.testing.assert_array_equal(exact.support_, [3, 7, 20])
    np.testing.assert_allclose(exact.coef_[exact.support_], [0.5, -0.3, 0.1], atol=1e-9)
    private = iht(epsilon=8.0, n_nonzero_coefs=1, coef_init=start, random_state=0)
    np.testing.assert_array_equal(private.fit(X, y).support_, [3, 7, 20])
    np.testing.assert_allclose(private.coef_[[3, 7, 20]], [0.5, -0.3, 0.1], atol=0.05)
    with pytest.raises(ValueError, match="coef_init"):
        iht(coef_init=np.zeros(29)).fit(X, y)
    with pytest.raises(ValueError, match="n_nonzero_coefs"):
        iht(coef_init=np.ones(30), n_nonzero_coefs=1).fit(X, y)
    for huge, bounds in ((1e101, (-1, 1)), (1.0, (-1e-150, 1e-150))):
        with pytest.raises(ValueError, match="coef_init has numbers"):
            iht(coef_init=huge * start, n_nonzero_coefs=1, bounds_y=bounds).fit(X, y)


def _alike(n, seed):
    """Ten columns that follow three factors, in a quarter of their range; R2 of about a half."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 10)) + 0.7 * rng.normal(size=(n, 10))
    X = np.clip(X / X.std(axis=0) / 4.0, -1.0, 1.0)
    mean = X @ (0.3 * rng.normal(size=10))
    return X, np.clip(mean + mean.std() * rng.normal(size=n), -1.0, 1.0)


def _all_features(n, epsilon, seed):
    X, y = _alike(n + 1000, seed)
    est = iht(n_nonzero_coefs=10, epsilon=epsilon, random_state=seed)
    return est.fit(X[:n], y[:n]).score(X[n:], y[n:])


@pytest.mark.parametrize(("epsilon", "least"), [(1.0, -0.02), (3.0, 0.15)])
def test_all_features_of_few_records_do_not_explode(epsilon, least):
    """Without the ridge: -.09 and -.30 on average, -1.3 and -4.5 at worst."""
    scores = [_all_features(350, epsilon, seed) for seed in range(8)]
    assert min(scores) > -0.6
    assert np.mean(scores) > least


@pytest.mark.parametrize("noiseless", [True, False])
def test_the_parts_of_the_certificate_add_up(noiseless):
    """The targets' part, found from the bound, and the noise's: one minus the level."""
    n, scale = 10_000, 0.0 if noiseless else 1.0
    gradient = Answer(np.array([7.0]), n, GaussianNoise(scale))
    bound = support_certificate(gradient, 10, 2, 2, 0.5, 0.9) * 0.5 / 2.0  # k = 4 coordinates
    noise = 0.0 if noiseless else 0.01
    released = 7.0 + (scale * stats.norm.isf(noise) if scale else 0.0)
    of_targets = 20.0 * np.exp(-n * (bound - released / n) ** 2 / 2.0)
    assert of_targets + noise == pytest.approx(0.1)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_norms_over_few_coordinates_are_bounded(make, global_random_seed):
    """By the norm of all, and sharply where those outside of the support are of one size."""
    Z = np.random.RandomState(global_random_seed).uniform(-1.0, 1.0, size=(50, 9))
    support, others = np.array([1, 4]), 3
    outside = np.sort(np.square(np.delete(Z, support, axis=1)), axis=1)[:, -others:]
    exact = np.sqrt(np.square(Z[:, support]).sum(axis=1) + outside.sum(axis=1))
    found = sparse_norms(make(Z), support, others)
    assert (exact <= found).all() and (found <= np.linalg.norm(Z, axis=1) + 1e-12).all()
    signs = make(np.sign(Z))
    np.testing.assert_allclose(sparse_norms(signs, support, others), np.sqrt(5.0))


def test_an_interval_given_the_support_by_hand():
    """All supports that contain the true one have a tenth of the failure, fresh noise the rest."""
    X, y, *_ = _data(n=3000, d=10)
    est = iht(n_nonzero_coefs=2, fit_intercept=False, epsilon=4.0, random_state=0).fit(X, y)
    fit = est._released
    rows, level = np.array([[0.1, 0.3], [0.2, 0.1]]), 0.9
    law, points = fit.law(confidence_level=level), fit.points(rows)
    sampling, privacy = np.sqrt(law.variances(points))
    centre, half = given_support(fit, rows, log_supports(10, 3, 1), level)
    targets = sqrt(2.0 * log(36.0 / 0.01))  # 36 supports of 10 features
    np.testing.assert_allclose(half, targets * sampling + stats.norm.isf(0.045) * privacy)
    np.testing.assert_allclose(centre, fit.location + law.value(points))
    plain = given_support(fit, rows, 0.0, level)
    np.testing.assert_allclose(plain, fit.interval(rows, level, "asymptotic"))


def test_no_interval_is_further_from_0_than_the_assumed_norm(global_random_seed):
    """coef_norm is of features divided by data_max, and of the intercept."""
    X = np.random.RandomState(global_random_seed).uniform(-3.0, 3.0, size=(60, 12))
    est = iht(data_max=3.0, n_nonzero_coefs=6, epsilon=0.1, random_state=0, coef_norm=0.1)
    low, high = est.fit(X, np.clip(X[:, 0] / 3.0, -1.0, 1.0)).confidence_interval(
        X, method="asymptotic"
    )
    rows = np.column_stack([X[:, est.support_] / 3.0, np.ones(60)])
    most, predicted = 0.1 * np.linalg.norm(rows, axis=1), est.predict(X)
    np.testing.assert_allclose(low, np.minimum(-most, predicted), rtol=1e-12)
    np.testing.assert_allclose(high, np.maximum(most, predicted), rtol=1e-12)
