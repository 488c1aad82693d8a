"""What policies take an oracle to cost before it is fitted is what its fits are charged."""

from functools import partial

import numpy as np
import pytest
from registry.estimators import NOISY, VARIANTS, bounded, targets

from skpriv.bandits._epochs._oracles import paid_in, split_oracle, trust_of
from skpriv.bandits import EpochGreedy, SquareCB
from skpriv.linear_model import IHTRegressor, LinearRegression, LogisticRegression, SSPRegressor
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


@pytest.mark.parametrize("make", [partial(EpochGreedy, exploration=0.0), SquareCB])
def test_a_subclass_plays_as_its_parent(make):
    """Actions are those of the parent beyond the bounds of rewards, too, where predictions end."""

    class Renamed(SSPRegressor):
        pass

    rng, chances = np.random.RandomState(0), []
    X = rng.uniform(-1.0, 1.0, (2_000, 3, 2)) * [9.0, 0.1]
    actions, rewards = rng.randint(3, size=2_000), rng.uniform(size=2_000)
    for kind in (SSPRegressor, Renamed):
        oracle = kind(data_norm=1.0, bounds_y=(0.4, 0.5), random_state=0)
        policy = make(oracle, random_state=0)
        chances.append(policy.update(X, actions, rewards).probabilities(X))
    np.testing.assert_array_equal(*chances)


@pytest.mark.parametrize("oracle", [
    SSPRegressor(data_norm=-1.0, bounds_y=(0, 1)),
    SSPRegressor(data_norm=1.0, bounds_y=(1, 0)),
    SSPRegressor(data_norm=1.0, bounds_y=(0, 1), channel="pigeon"),
    SSPRegressor(data_norm=1.0),
    LogisticRegression(classes=(0, 1), bounds_X=(1, -1)),
    LogisticRegression(classes=(0, 1), bounds_X=[(-1, 1)] * 3),
    LogisticRegression(classes=("no", "yes"), bounds_X=(-1, 1)),
    LogisticRegression(bounds_X=(-1, 1)),
    LinearRegression(bounds_X={"age": (0, 1)}, bounds_y=(0, 1)),
    IHTRegressor(data_max=1.0, bounds_y=(0, 1), n_nonzero_coefs=-2),
], ids=str)  # fmt: skip
def test_an_oracle_is_refused_before_anything_is_played(oracle):
    policy = EpochGreedy(oracle)
    with pytest.raises(ValueError, match="must|needs|pass "):
        policy.act(np.zeros((1, 2, 2)))
    assert not hasattr(policy, "n_rounds_")
