"""The hard instances are what the papers say, bounded, and reproducible."""

import numpy as np
import pytest

from skpriv import datasets

NAMES = [name for name in datasets.__all__ if name.startswith("make_")]
every_instance = pytest.mark.parametrize("make", [getattr(datasets, n) for n in NAMES], ids=NAMES)


@every_instance
@pytest.mark.parametrize("noise", ["none", "uniform", "sign"])
def test_bounded_and_linear_on_average(make, noise, global_random_seed):
    settings = {"noise": noise, "return_coef": True, "random_state": global_random_seed}
    X, y, coef = make(4000, **settings)
    assert X.shape == (4000, len(coef)) and y.shape == (4000,)
    assert np.abs(y).max() <= 1.0 + 1e-12 and np.linalg.norm(coef) <= 1.0 + 1e-12
    radius = np.linalg.norm(X, axis=1).max() if len(coef) != 400 else np.abs(X).max() / 3.0
    assert radius <= 1.0 + 1e-12
    if noise == "none":
        assert (y == X @ coef).all()
    else:  # Hoeffding: the moments of y - X coef along the mean, at a level of 1e-6
        residual = y - X @ coef
        bound = 2.0 * np.sqrt(np.log(2e6) / (2 * len(y)))
        assert abs(residual.mean()) < bound and abs((residual * (X @ coef)).mean()) < bound
    assert noise != "sign" or (np.abs(y) == 1.0).all()
    again = make(4000, **{**settings, "return_coef": False})
    assert len(again) == 2 and all((a == b).all() for a, b in zip(again, (X, y), strict=True))


def test_theorem_2_and_case_2():
    X, _ = datasets.make_small_direction(8000, random_state=0)
    assert np.allclose(np.abs(X), [0.5, 0.07 / 20])
    assert abs(np.sign(X[:, 1]).sum()) < 6 * np.sqrt(8000)
    delta = 0.01
    X, _ = datasets.make_small_direction(8000, first=1, length=np.sqrt(delta), random_state=0)
    moments = X.T @ X / 8000 * (1 + delta)
    assert np.allclose(np.diagonal(moments), [1.0, delta])


def test_conditioning():
    for condition in (1.0, 1e4):
        X, _ = datasets.make_ill_conditioned(50_000, 3, condition=condition, random_state=0)
        assert np.linalg.cond(X.T @ X) == pytest.approx(condition, rel=0.1)
    with pytest.raises(ValueError, match="condition"):
        datasets.make_ill_conditioned(condition=0.5)


def test_autoregressive_covariance():
    X, _, coef = datasets.make_sparse_autoregressive(
        50_000, 6, correlation=0.5, data_max=10.0, return_coef=True, random_state=0
    )
    exact = 0.5 ** np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    assert np.abs(X.T @ X / 50_000 - exact).max() < 0.05
    assert (coef != 0).sum() == 5
    with pytest.raises(ValueError, match="n_nonzero"):
        datasets.make_sparse_autoregressive(10, 3, n_nonzero=4)
    with pytest.raises(ValueError, match="correlation"):
        datasets.make_sparse_autoregressive(10, correlation=1.0)
