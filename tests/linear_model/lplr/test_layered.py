"""Layered regression: exactness, the tree, and what it refuses."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from registry.estimators import layered
from sklearn.linear_model import LinearRegression

from skpriv import BudgetAccountant
from skpriv.linear_model._lplr import _equations as equations

VARIANTS = ("one-batch", "paper")


def _records(seed, n=4000, d=3, noise=0.0):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, d)) * np.array([1.0, 0.3, 0.05])[:d]
    theta = np.array([0.5, -0.4, 0.6])[:d]
    return X, X @ theta + noise * rng.uniform(-1.0, 1.0, size=n), theta


def test_without_noise_the_parameter_is_recovered(global_random_seed):
    X, y, theta = _records(global_random_seed)
    for n_levels in (1, 2, 3):
        est = layered(privacy="none", fit_intercept=False, n_levels=n_levels).fit(X, y)
        assert_allclose(est.coef_, theta, atol=1e-8)
        assert_allclose(est.predict(X), y, atol=1e-8)


def test_without_noise_the_paper_recovers_what_it_resolves(global_random_seed):
    X, y, _ = _records(global_random_seed, n=50_000, d=2)
    est = layered(privacy="none", variant="paper", fit_intercept=False).fit(X, y)
    resolved = np.zeros(len(X), dtype=bool)
    for node, rows in est.tree_.locate(X):
        resolved[rows] = node.active and node.level == 2
    assert resolved.mean() > 0.5
    assert_allclose(est.predict(X)[resolved], y[resolved], atol=1e-8)


def test_without_privacy_it_is_least_squares(global_random_seed):
    X, y, _ = _records(global_random_seed, noise=0.3)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)  # one bin
    for fit_intercept in (False, True):
        est = layered(privacy="none", fit_intercept=fit_intercept).fit(X, y)
        ols = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
        assert_allclose(est.coef_, ols.coef_, atol=1e-8)
        assert_allclose(est.intercept_, ols.intercept_, atol=1e-8)


@pytest.mark.parametrize("privacy", ["central", "local"])
def test_the_price_of_the_paper_is_the_budget(privacy):
    X, y, _ = _records(0)
    est = layered(privacy=privacy, variant="paper", n_levels=2, random_state=0)
    with BudgetAccountant(1.0, 1e-6) as accountant:
        est.fit(X, y)
    assert accountant.spent.epsilon == pytest.approx(1.0, rel=1e-6)
    assert est.privacy_report_.total.epsilon(1e-6) <= 1.0 + 1e-6


def test_secure_noise_is_drawn_for_every_variant():
    X, y, _ = _records(0, n=500)
    for variant in VARIANTS:
        est = layered(epsilon=8.0, privacy="local", variant=variant, n_levels=2)
        est.fit(X, y)
        assert ("exact draws" if variant == "paper" else "exact integers") in str(
            est.privacy_report_
        )


@pytest.mark.parametrize("variant", VARIANTS)
def test_intervals_widen_with_the_level(variant):
    X, y, _ = _records(0, n=30_000, noise=0.3)
    est = layered(epsilon=8.0, privacy="local", variant=variant, n_levels=2, random_state=0).fit(
        X, y
    )
    widths = [
        np.subtract(*est.confidence_interval(X[:50], level)[::-1]) for level in (0.5, 0.95, 0.999)
    ]
    assert (widths[0] <= widths[1] + 1e-12).all() and (widths[1] <= widths[2] + 1e-12).all()
    assert widths[0].max() < widths[2].max()


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_tree_can_be_read(variant):
    X, y, _ = _records(0, n=30_000)
    est = layered(privacy="central", variant=variant, n_levels=2, random_state=0).fit(X, y)
    tree = est.tree_
    for node in tree.bins:
        directions = np.hstack([node.resolved, node.directions])
        assert_allclose(directions.T @ directions, np.eye(4), atol=1e-10)
        assert node.parent is None or node.parent.active


def test_work_and_noise_do_not_grow_with_inactive_bins():
    """Only children of active bins are ever made, of M^h potential ones."""
    X, y, _ = _records(0, n=20_000)
    est = layered(privacy="central", n_levels=3, n_scales=12, random_state=0).fit(X, y)
    active = [node for node in est.tree_.bins if node.children]
    assert len(est.tree_.bins) <= 12 * (1 + len(active))


def test_inactive_bins_predict_like_their_parents():
    """A deactivated bin keeps no estimate, since no half-width covers it."""
    X, y, _ = _records(0, n=20_000, noise=0.3)
    est = layered(privacy="central", variant="paper", random_state=0).fit(X, y)
    inactive = [node for node in est.tree_.bins if not node.active]
    assert inactive
    for node in inactive:
        assert_allclose(node.total, node.parent.total if node.parent else np.zeros(4))


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_bins_share_the_failure_probability(monkeypatch, level):
    """Targets of the bins that are used; grams of all bins of a level, and of all levels."""
    X = np.random.RandomState(0).uniform(-0.5, 0.5, size=(20_000, 3))
    X[::2] *= 0.3  # norms of several bins
    est = layered(privacy="none", fit_intercept=False, n_levels=2, n_scales=4).fit(X, X[:, 0])
    shares = []
    made = equations.bin_bound

    def spy(node, theta_bound, failure, gram_failure):
        shares.append((node.level, failure, gram_failure))
        return made(node, theta_bound, failure, gram_failure)

    monkeypatch.setattr(equations, "bin_bound", spy)
    est.confidence_interval(X[:3], confidence_level=level)
    assert len(shares) > 1
    assert sum(failure for _, failure, _ in shares) == pytest.approx(1.0 - level)
    tree = est.tree_
    bins = Counter(node.level for node in tree.bins)
    for of_level, _, gram in shares:
        assert gram * bins[of_level] * tree.n_levels == pytest.approx(1.0 - level)
    parts = equations.TARGETS_WEIGHT + sum(equations.NOISE_WEIGHTS)
    assert parts <= 1.0


def test_the_bound_of_a_bin_counts_targets_and_noise():
    """Of one record along the first direction: the quantile's part, and the norm's."""
    node = SimpleNamespace(gram=np.diag([16.0, 0.0]), copies=1.0, records=100.0)
    found = equations.BinBound(node, 0.0, 2.0, 9.0, 3.0)(np.eye(2))
    np.testing.assert_allclose(found, [2.0 * 5.0 + 3.0, 2.0 * 3.0 + 3.0])
