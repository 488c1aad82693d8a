from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from skpriv.linear_model import LayeredRegressor
from skpriv.linear_model._layered import _regressor


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_bins_share_the_failure_probability(monkeypatch, level):
    """Targets of the bins that are used; grams of all bins of a level, and of all levels."""
    rng = np.random.RandomState(0)
    X = rng.uniform(-0.5, 0.5, size=(20_000, 3))
    X[::2] *= 0.3  # norms of several bins
    est = LayeredRegressor(
        data_norm=1.0,
        bounds_y=(-1, 1),
        privacy="none",
        fit_intercept=False,
        n_levels=2,
        n_scales=4,
        random_state=0,
    )
    est.fit(X, X[:, 0])
    shares = []
    made = _regressor.bin_bound

    def spy(node, theta_bound, failure, gram_failure):
        shares.append((node.level, failure, gram_failure))
        return made(node, theta_bound, failure, gram_failure)

    monkeypatch.setattr(_regressor, "bin_bound", spy)
    est.confidence_interval(X[:3], confidence_level=level)
    assert len(shares) > 1
    assert sum(failure for _, failure, _ in shares) == pytest.approx(1.0 - level)
    tree = est.tree_
    bins = Counter(node.level for node in tree.bins)
    for of_level, _, gram in shares:
        assert gram * bins[of_level] * tree.n_levels == pytest.approx(1.0 - level)
    parts = _regressor.TARGETS_WEIGHT + sum(_regressor.NOISE_WEIGHTS)
    assert parts <= 1.0


def test_the_bound_of_a_bin_counts_targets_and_noise():
    """Of one record along the first direction: the quantile's part, and the norm's."""
    node = SimpleNamespace(gram=np.diag([16.0, 0.0]), copies=1.0, records=100.0)
    found = _regressor.BinBound(node, 0.0, 2.0, 9.0, 3.0)(np.eye(2))
    np.testing.assert_allclose(found, [2.0 * 5.0 + 3.0, 2.0 * 3.0 + 3.0])
