"""What each policy plays, and with which probability."""

from math import pi

import numpy as np
import pytest
from registry.estimators import ssp
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge

from skpriv.bandits import (
    FLIPHAT, ActionElimination, BanditCombiner, EpochGreedy, EpochSchedule, EpsilonGreedy, LinUCB,
    RandomPolicy, SparseLinearEnvironment, SquareCB, simulate,
)  # fmt: skip
from skpriv.bandits._policy._draws import inverse_gap
from skpriv.bandits._epochs._fliphat import first_epoch
from skpriv.bandits._epochs._oracles import SELECTION_SHARE
from skpriv.linear_model import IHTRegressor, ReweightedRegressor
from skpriv.privacy import Budget, BudgetAccountant


def test_propensities_are_frequencies(policy, make_rounds):
    """In one context, over many draws: each action as often as it says, all of them together 1."""
    rounds = make_rounds()
    rounds.play(policy, stop=120)
    n = 20_000
    for context in rounds.contexts[-3:]:
        actions = policy.act(np.broadcast_to(context, (n, *context.shape)))
        stated = np.zeros(5)
        for action in range(5):
            values = np.unique(policy.propensities_[actions == action])
            assert len(values) <= 1
            stated[action] = values[0] if len(values) else 0.0
        assert stated.sum() == pytest.approx(1.0)
        counts, played = np.bincount(actions, minlength=5), stated > 0
        if played.sum() > 1:
            assert stats.chisquare(counts[played], n * stated[played]).pvalue > 1e-5
        # Importance weights are unbiased for any function of the action.
        spread = np.sqrt(max((1.0 / stated[played]).sum() - played.sum() ** 2, 0.0) / n)
        error = np.mean(1.0 / policy.propensities_) - played.sum()
        assert abs(error) <= 5.0 * spread + 1e-9


def test_probabilities_are_those_of_act_and_of_rankings(policy, make_rounds):
    rounds = make_rounds()
    rounds.play(policy, stop=120)
    contexts = rounds.contexts[-30:]
    mask = np.ones((30, 5), dtype=bool)
    mask[:10, 1:3], mask[10:20, 0] = False, False
    for available in (None, mask, mask.tolist()):
        chances = policy.probabilities(contexts, available)
        assert chances.shape == (30, 5)
        np.testing.assert_allclose(chances.sum(axis=1), 1.0)
        actions = policy.act(contexts, available)
        np.testing.assert_allclose(chances[np.arange(30), actions], policy.propensities_)
        assert available is None or not chances[~mask].any()
        ranking, propensities = policy.rank(contexts, 3, available)
        assert ranking.shape == propensities.shape == (30, 3)
        assert all(len(set(row)) == 3 for row in ranking.tolist())
        np.testing.assert_allclose(chances[np.arange(30), ranking[:, 0]], propensities[:, 0])
        left = np.array(mask if available is not None else np.ones((30, 5), dtype=bool))
        left[np.arange(30), ranking[:, 0]] = False
        second = policy.probabilities(contexts, left)[np.arange(30), ranking[:, 1]]
        np.testing.assert_allclose(second, propensities[:, 1])
    with pytest.raises(ValueError, match="available actions"):
        policy.rank(contexts, 4, mask)


def test_repeated_contexts_may_be_one_array(policy, make_rounds):
    rounds = make_rounds()
    rounds.play(policy, stop=120)
    twin = clone(policy)
    rounds.play(twin, stop=120)
    one = rounds.contexts[0]
    many = np.broadcast_to(one, (50, *one.shape))
    np.testing.assert_array_equal(policy.act(many), twin.act(many.copy()))
    np.testing.assert_array_equal(policy.propensities_, twin.propensities_)


class Bands:
    """Oracle with intervals that are given, one after the other, and the levels asked for."""

    def __init__(self, low, high):
        self.low, self.high, self.levels = np.array(low), np.array(high), []

    def confidence_interval(self, X, confidence_level, method):
        self.levels.append(confidence_level)
        index = X[:, 0].astype(int)
        return self.low[index], self.high[index]


def test_elimination_by_intervals():
    policy = ActionElimination(oracle=ssp(), confidence_level=0.9, random_state=0)
    contexts = np.tile(np.arange(4.0)[None, :, None], (6, 1, 1))
    policy.act(contexts)
    oracle = Bands([0.2, 0.3, -1.0, 0.4], [0.5, 0.6, 0.1, 0.45])
    policy._fits = [(2, oracle)]
    np.testing.assert_allclose(policy._choose(contexts, None)[0], [1 / 3, 1 / 3, 0.0, 1 / 3])
    assert oracle.levels == [pytest.approx(1 - 0.1 * 6 / (pi**2 * 4 * 4))]
    mask = np.broadcast_to([True, False, True, False], (6, 4))
    np.testing.assert_array_equal(policy._choose(contexts, mask)[0], [1.0, 0.0, 0.0, 0.0])


def test_inverse_gap_weighting():
    chances = inverse_gap(np.array([[1.0, 0.5, 0.0]]), 10.0)
    np.testing.assert_allclose(chances, [[1 - 1 / 8 - 1 / 13, 1 / 8, 1 / 13]])
    np.testing.assert_allclose(
        inverse_gap(np.array([[1.0, 0.5, 0.0]]), 0.0), np.full((1, 3), 1 / 3)
    )
    np.testing.assert_allclose(inverse_gap(np.zeros((2, 4)), 5.0), np.full((2, 4), 1 / 4))


KNOWS_ITS_RANGE = ReweightedRegressor(data_norm=1.0, bounds_y=(0.0, 4.0), random_state=0)


@pytest.mark.parametrize("gap_weight, expected", [("auto", np.sqrt(5 * 20)), (3.0, 3.0)])
@pytest.mark.parametrize("oracle, half_range", [(KNOWS_ITS_RANGE, 2.0), (Ridge(), 1.0)])
def test_gap_weight(make_rounds, oracle, half_range, gap_weight, expected):
    """Of oracles that do not know their error: in units of half of the range of the rewards."""
    policy = SquareCB(oracle=oracle, schedule=20, gap_weight=gap_weight, random_state=0)
    make_rounds(20).play(policy)
    assert policy._weight == pytest.approx(expected / half_range)


def test_greedy_learns_without_privacy(make_rounds):
    """With exact least squares and noiseless rewards, it is right after one epoch."""
    rounds = make_rounds()
    rounds.noise[:] = 0.0
    policy = EpochGreedy(oracle=LinearRegression(fit_intercept=False), schedule=20, random_state=0)
    actions, propensities = rounds.play(policy)
    np.testing.assert_array_equal(
        actions[20:], np.argmax(rounds.contexts @ rounds.coef, axis=1)[20:]
    )
    assert (propensities[20:] == 1.0).all()
    np.testing.assert_array_equal(propensities[:20], np.full(20, 0.2))


def test_epsilon_greedy_fits_all_rounds(make_rounds, recorder):
    rounds, (oracle, log) = make_rounds(), recorder
    rounds.play(EpsilonGreedy(regressor=oracle, schedule=50, random_state=0))
    assert [len(y) for _, y in log] == [50, 100, 150, 200]


def test_fliphat_is_epoch_greedy(make_rounds):
    rounds = make_rounds()
    common = {"epsilon": 2.0, "delta": 1e-3, "data_max": 0.4, "bounds_y": (-1.5, 1.0)}
    policy = FLIPHAT(**common, n_nonzero_coefs=2, schedule=50, random_state=3)
    oracle = IHTRegressor(
        **common, n_nonzero_coefs=2, fit_intercept=False, certificate_share=0.0, random_state=0
    )
    reference = EpochGreedy(oracle=oracle, schedule=50, random_state=3)
    np.testing.assert_array_equal(rounds.play(policy)[0], rounds.play(reference)[0])
    np.testing.assert_array_equal(policy.oracle_.coef_, reference.oracle_.coef_)
    assert FLIPHAT()._make_oracle().random_state is None


@pytest.mark.slow
def test_fliphat_regret():
    """Issue's experiment, smaller: a small part of the regret of random play."""
    env = SparseLinearEnvironment(n_features=100)
    policy = FLIPHAT(epsilon=2.0, delta=0.01, data_max=1.5, bounds_y=(-2.5, 2.5))
    result = simulate([RandomPolicy(), policy], env, horizon=4000, n_runs=3, random_state=0)
    random, private = result.regret_[:, :, -1].mean(axis=1)
    assert private < 0.2 * random


def test_fliphat_goes_on_from_what_it_released(make_rounds):
    """It keeps the largest coefficients and selects some more; the forgetful form starts afresh."""
    rounds = make_rounds(n_features=30)
    policy = FLIPHAT(epsilon=5.0, n_nonzero_coefs=6, schedule=50, random_state=0)
    rounds.play(policy, stop=50)
    first = policy.oracle_
    assert first.coef_init is None and len(first.support_) == 2
    rounds.play(policy, start=50, stop=100)
    np.testing.assert_array_equal(policy.oracle_.coef_init, first.coef_)
    assert set(first.support_) <= set(policy.oracle_.support_)
    rounds.play(policy, start=100)
    kept = np.flatnonzero(policy.oracle_.coef_init)
    assert len(kept) <= 4 and set(kept) <= set(policy.oracle_.support_)
    assert len(policy.oracle_.support_) <= 6
    forgetful = clone(policy).set_params(forget=True)
    rounds.play(forgetful)
    assert forgetful.oracle_.coef_init is None and len(forgetful.oracle_.support_) == 6
    few = FLIPHAT(n_nonzero_coefs=10, schedule=50, random_state=0)  # more than there are
    make_rounds().play(few)
    assert len(few.oracle_.support_) == 3


def test_the_first_epoch_follows_from_public_numbers():
    """More rounds for less budget, more coefficients and more features; a known sum in one case."""
    lengths = [first_epoch(Budget(e, 1e-2), 10, 400) for e in (0.5, 1.0, 2.0, 10.0, np.inf)]
    assert lengths == sorted(lengths, reverse=True)
    budget, c = Budget(1.0, 1e-2), 2.0 / pi * np.arcsin(np.sqrt(0.2))
    scale = 2.0 * np.sqrt(3 / (2.0 * SELECTION_SHARE * budget.rho))
    expected = np.log(400) * (scale / c + 0.4 / c**2)
    assert first_epoch(budget, 10, 400) == round(expected)
    assert first_epoch(budget, 20, 400) > first_epoch(budget, 10, 400)
    assert first_epoch(budget, 10, 4000) > first_epoch(budget, 10, 400)
    assert first_epoch(budget, 1, 3) >= 20


def test_fliphat_clips_rewards(make_rounds):
    policy = FLIPHAT(bounds_y=(-0.25, 0.5), random_state=0)
    contexts = np.ones((3, 2, 2))
    policy.act(contexts)
    policy.update(contexts, [0, 1, 0], [-9.0, 0.1, 9.0])
    np.testing.assert_array_equal(
        np.concatenate([rewards for _, rewards in policy._batches]), [-0.25, 0.1, 0.5]
    )
    with pytest.raises(ValueError, match="bounds_y"):
        FLIPHAT(bounds_y=(1.0, 0.0)).act(contexts)


@pytest.mark.parametrize(
    "policy",
    [
        EpochGreedy(oracle=3),
        ActionElimination(oracle=Ridge()),
        ActionElimination(oracle=ssp(), exploration="most"),
        ActionElimination(oracle=ssp(), confidence_level=1.0),
        SquareCB(oracle=Ridge(), gap_weight="big"),
        EpsilonGreedy(regressor=Ridge(), exploration=1.5),
        FLIPHAT(epsilon=0.0),
        RandomPolicy(n_actions=0),
        EpochGreedy(oracle=Ridge(), schedule=EpochSchedule(first=0)),
        *(LinUCB(privacy=wrong) for wrong in ("global", 3)),
        *(LinUCB(**{name: 0}) for name in ("horizon", "delta", "update_every", "coef_norm")),
        LinUCB(width="wide"),
        LinUCB(bonus_scale=-1.0),
        LinUCB(bounds_y=(1, 0)),
        *(BanditCombiner([RandomPolicy()] * n, epsilon=e) for n, e in ((0, 1.0), (2, 0.0))),
        BanditCombiner([RandomPolicy()] * 2, regret_bounds=[(1.0, 0.5)]),
        BanditCombiner([RandomPolicy()] * 2, targets=[1.0]),
    ],
)
def test_bad_parameters(policy):
    with pytest.raises(ValueError):
        policy.act(np.zeros((2, 3, 4)))
    assert not hasattr(policy, "n_rounds_")


@pytest.mark.parametrize("make, unit", [
    (lambda: LinUCB(), "row"), (lambda: EpochGreedy(ssp(), schedule=20), "row"),
    (lambda: EpochGreedy(ssp(), schedule=20, max_visits=2), "person:2"),  # pays two fits of half
])  # fmt: skip
def test_the_costs_of_two_runs_add_up(make, unit):
    """Whoever is in both has paid twice: only the rounds of one run are known to be disjoint."""
    contexts, budget = np.full((20, 2, 2), 0.1), Budget(1.0, 1e-6)
    with BudgetAccountant(9.0, 1e-6, unit=unit) as accountant:
        for policy in (make(), make()):
            people = {"users": range(20)} if policy.max_visits else {}
            actions = policy.act(contexts, **people)
            policy.update(contexts, actions, np.zeros(20), **people)
    both = Budget.from_mu(np.sqrt(2.0) * budget.mu, budget.delta).epsilon
    assert accountant.spent.epsilon == pytest.approx(both)
    with accountant.ledger.transaction() as held:
        assert len(held.totals()) == 2  # each run has a partition of its own


@pytest.mark.parametrize("seed", [0, np.random.RandomState(0)], ids=["integer", "generator"])
def test_no_two_epochs_have_one_seed(seed):
    """Noise that is the same in two of them would be known from their difference."""
    policy = EpochGreedy(ssp(random_state=seed), random_state=0)
    policy.act(np.zeros((1, 2, 2)))
    first, second = (policy._fresh_oracle(epoch, 9).random_state for epoch in (0, 1))
    assert isinstance(first, int) and first != second
