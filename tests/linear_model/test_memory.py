"""What fits in the local model take beside the table: reports that are kept, and blocks."""

import tracemalloc

import numpy as np
import pytest

from skpriv.linear_model import LayeredRegressor, SSPRegressor

D, MB = 8, 2**20


def peak(Estimator, n, seed):
    """Bytes of arrays at the peak of a fit, beside the table."""
    X = np.random.default_rng(0).uniform(-0.4, 0.4, size=(n, D))
    y = X[:, 0]
    model = Estimator(privacy="local", epsilon=2.0, data_norm=1.0, bounds_y=(-1, 1))
    model.set_params(random_state=seed).fit(X[:2000], y[:2000])  # what is computed once a process
    tracemalloc.start()
    try:
        model.fit(X, y)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, None], ids=["seeded", "secure"])
@pytest.mark.parametrize(("Estimator", "n", "most"), [
    # Reports are kept once, of D + 2 numbers a user, beside two permutations of the users at most.
    (SSPRegressor, 150_000, 8 * (D + 2) + 16),
    # Each row has a vector of about D^2 / 2 numbers, in several copies; none is kept.
    (LayeredRegressor, 40_000, 16),
])  # fmt: skip
def test_codebook_fits_keep_little_and_work_in_blocks_of_the_cache(Estimator, n, most, seed):
    assert peak(Estimator, n, seed) < most * n + 16 * MB
