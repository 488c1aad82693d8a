"""What rows hardly show, such as rare categories, is not given an effect of any size."""

import numpy as np
import pytest

from skpriv._estimation._loop import _steps
from skpriv.linear_model import LinearRegression

N = 5000


def rows(rate, columns, seed, n=N):
    """Two features that count, and rare categories that do not."""
    rng = np.random.RandomState(seed)
    X = np.column_stack([
        rng.uniform(0, 10, n), rng.uniform(-1, 1, n), rng.rand(n, columns) < rate
    ])  # fmt: skip
    return X, 1.0 + 0.5 * X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n)


def fit(X, y, seed):
    bounds = [(0, 10), (-1, 1)] + [(0, 1)] * (X.shape[1] - 2)
    return LinearRegression(bounds_X=bounds, bounds_y=(0, 8), random_state=seed).fit(X, y)


def losses(rate, columns):
    """R2 that rare categories cost, and root mean square error of rows that have one."""
    found = []
    for seed in range(2):
        X, y = rows(rate, columns, seed)
        new, truth = rows(rate, columns, 100 + seed)
        model, rare = fit(X, y, seed), new[:, 2:].any(axis=1)
        best = fit(X[:, :2], y, seed).score(new[:, :2], truth)
        error = np.sqrt(np.mean((model.predict(new)[rare] - truth[rare]) ** 2))
        found.append((best - model.score(new, truth), error))
    return np.mean(found, axis=0)


@pytest.mark.parametrize(("rate", "columns"), [(0.003, 20), (0.001, 5)])
def test_rare_categories_cost_little(rate, columns, monkeypatch):
    cost, error = losses(rate, columns)
    shapes = _steps.prior_shapes  # of whitened coordinates alone
    monkeypatch.setattr(_steps, "prior_shapes", lambda W, size, *rest: shapes(W, 1e3 * size, *rest))
    before, error_before = losses(rate, columns)
    assert cost < 0.6 * before and cost < 0.045
    assert error < 0.85 * error_before


@pytest.mark.parametrize(("value", "n"), [(0.0, N), (0.5, N), (1.0, 30_000)])
def test_a_constant_column_has_a_small_coefficient(value, n):
    """Of at most two deviations of the target, as root mean square: it was 30 to 500.

    One deviation is measured, so that the test lets pass what is twice as large.
    """
    found = []
    for seed in range(4):
        X, y = rows(0.0, 1, seed, n)
        X[:, 2] = value
        model = fit(X, y, seed)
        found.append(model.coef_[2])
        assert model.score(X, y) > 0.88
    assert np.sqrt(np.mean(np.square(found))) < 3.2
