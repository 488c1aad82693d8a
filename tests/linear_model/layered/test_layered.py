"""Layered regression: exactness, the tree, and what it refuses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from registry.estimators import layered
from registry.refusals import uncharged
from sklearn.linear_model import LinearRegression

from skpriv import BudgetAccountant
from skpriv.exceptions import PrivacyError

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


@pytest.mark.parametrize(
    "variant, privacy, delta",
    [*((variant, model, 1e-6) for variant in VARIANTS for model in ("central", "local")),
     ("one-batch", "local", 0.0)],
)  # fmt: skip
def test_the_price_is_the_budget(variant, privacy, delta):
    X, y, _ = _records(0)
    est = layered(privacy=privacy, variant=variant, delta=delta, n_levels=2, random_state=0)
    with BudgetAccountant(1.0, delta) as accountant:
        est.fit(X, y)
    assert accountant.spent.epsilon == pytest.approx(1.0, rel=1e-6)
    assert est.privacy_report_.total.epsilon(delta) <= 1.0 + 1e-6


def test_pure_privacy_is_for_users_who_report_alone():
    X, y, _ = _records(0)
    with uncharged("channel='codebook'", PrivacyError):
        layered(delta=0.0).fit(X, y)


def test_secure_noise_is_drawn_for_every_variant():
    X, y, _ = _records(0, n=2_000)
    for variant in VARIANTS:
        est = layered(epsilon=8.0, privacy="local", variant=variant, n_levels=2)
        est.fit(X, y)
        assert ("exact draws" if variant == "paper" else "exact integers") in str(
            est.privacy_report_
        )


def test_asymptotic_intervals_are_refused_with_the_reason():
    X, y, _ = _records(0)
    est = layered(random_state=0).fit(X, y)
    with pytest.raises(NotImplementedError, match="claims certified"):
        est.confidence_interval(X, method="asymptotic")


@pytest.mark.parametrize("variant", VARIANTS)
def test_intervals_widen_with_the_level(variant):
    X, y, _ = _records(0, n=100_000, noise=0.3)
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
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    X, y, _ = _records(0, n=200_000)
    est = layered(privacy="central", variant=variant, n_levels=2, random_state=0).fit(X, y)
    tree = est.tree_
    text = str(tree)
    assert text.startswith("PartitionTree") and "half-width" in text and "inactive" in text
    for node in tree.bins:
        directions = np.hstack([node.resolved, node.directions])
        assert_allclose(directions.T @ directions, np.eye(4), atol=1e-10)
        assert node.parent is None or node.parent.active
    tree.plot()
    assert len(tree.ax_.texts) == len(tree.bins)
    plt.close(tree.figure_)


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
