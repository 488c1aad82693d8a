"""What policies take an oracle to cost before it is fitted is what its fits are charged."""

import numpy as np
import pytest
from registry.estimators import NOISY, VARIANTS, bounded, targets

from skpriv.bandits._epochs._oracles import paid_in, split_oracle, trust_of
from skpriv.linear_model import SSPRegressor
from skpriv.privacy import noticed_charges


@pytest.mark.parametrize("Estimator, privacy", NOISY)
def test_an_oracle_is_charged_in_the_currency_that_policies_divide(Estimator, privacy):
    X = np.random.RandomState(0).uniform(-0.4, 0.4, size=(400, 5))
    for variant in VARIANTS[Estimator]:
        oracle = bounded(Estimator, privacy=privacy, random_state=0, **variant)
        with noticed_charges() as charged:
            oracle.fit(X, targets(Estimator, X[:, 0]))
        if currency := paid_in(oracle):
            assert charged == [trust_of(oracle).price(currency)]
        else:  # then epsilon and delta are added up, which always holds
            assert privacy in ("local", "shuffle") and len(charged) == 1


def test_a_subclass_has_the_part_of_the_budget_that_its_parent_has():
    class Renamed(SSPRegressor):
        pass

    given = {"epsilon": 1.0, "data_norm": 1.0, "bounds_y": (0, 1)}
    parts = [split_oracle(kind(**given), 3).epsilon for kind in (SSPRegressor, Renamed)]
    assert parts[0] == parts[1] > 0.5
