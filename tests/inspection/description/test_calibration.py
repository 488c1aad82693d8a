"""Calibration by a description: shares of an outcome in bins of what was predicted for it."""

import numpy as np
import pandas as pd

from skpriv.inspection import describe
from skpriv.preprocessing import Boolean, Categorical

BINS = ["low", "middle", "high"]
SHARES = np.array([0.1, 0.4, 0.8])
SEEDS = 30


def test_shares_of_bins_have_the_error_of_their_two_counts():
    """Deviations in units of the error, of 30 releases of one table; half of it would fail.

    The sum of 90 squares is outside of [52, 142] with a probability of .001 if errors are right.
    """
    rng = np.random.default_rng(0)
    places = rng.integers(3, size=3_000)
    observed = rng.random(3_000) < SHARES[places]
    table = pd.DataFrame({"predicted": np.array(BINS)[places], "observed": observed})
    schema = {"predicted": Categorical(BINS, other=False), "observed": Boolean()}
    exact = np.array([observed[places == place].mean() for place in range(3)])
    squares = 0.0
    for seed in range(SEEDS):
        found = describe(
            table, schema, epsilon=1.0, delta=1e-6, pairs=[("predicted", "observed")],
            random_state=seed,
        )  # fmt: skip
        counts = found["predicted", "observed"].counts
        for name, truth in zip(BINS, exact, strict=True):
            yes, no = counts[name, "true"], counts[name, "false"]
            size = yes.estimate + no.estimate
            share = yes.estimate / size
            error = np.hypot((1.0 - share) * yes.std_error, share * no.std_error) / size
            squares += ((share - truth) / error) ** 2
    assert 52.0 < squares < 142.0
