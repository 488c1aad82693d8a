"""What every policy promises: shapes, errors that change nothing, scikit-learn's conventions."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import (
    check_get_params_invariance,
    check_no_attributes_set_in_init,
    check_set_params,
)

from skpriv.bandits import EpochGreedy, RandomPolicy
from skpriv.linear_model import SSPRegressor


def state(policy):
    return pickle.dumps(vars(policy))


def test_conventions_of_scikit_learn(policy):
    name = type(policy).__name__
    check_no_attributes_set_in_init(name, clone(policy))
    check_get_params_invariance(name, clone(policy))
    check_set_params(name, clone(policy))
    assert name in repr(policy)


def test_parameters_do_not_change(policy, make_rounds):
    before = pickle.dumps(policy.get_params())
    make_rounds().play(policy)
    assert pickle.dumps(policy.get_params()) == before


def test_reset_and_clone_start_again(policy, make_rounds):
    rounds = make_rounds()
    first, _ = rounds.play(policy)
    again = clone(policy)
    assert not hasattr(again, "n_rounds_")
    np.testing.assert_array_equal(rounds.play(again)[0], first)
    np.testing.assert_array_equal(rounds.play(policy.reset())[0], first)
    assert policy.n_rounds_ == len(rounds.contexts)


@pytest.mark.parametrize(
    "shape", [(4, 5), (4, 5, 3, 1), (4, 6, 3), (4, 5, 2), (4, 0, 3), (5, 3), ()]
)
def test_contexts_of_the_wrong_shape(policy, make_rounds, shape):
    make_rounds().play(policy, stop=25)
    before = state(policy)
    with pytest.raises(ValueError, match="must have shape"):
        policy.act(np.zeros(shape))
    with pytest.raises(ValueError, match="must have shape"):
        policy.update(np.zeros(shape), np.zeros(4, dtype=int), np.zeros(4))
    assert state(policy) == before


@pytest.mark.parametrize(
    "change, message",
    [
        ({"actions": [0, 1, 2, 5]}, "unknown action"),
        ({"actions": [0, 1, 2, -1]}, "unknown action"),
        ({"actions": [0.0, 1.0, 2.0, 3.0]}, "integers"),
        ({"actions": [0, 1, 2]}, "must have shape"),
        ({"rewards": [0.0, 1.0, 2.0]}, "must have shape"),
        ({"rewards": [0.0, 1.0, 2.0, np.nan]}, "rewards contain"),
        ({"rewards": [0.0, 1.0, 2.0, np.inf]}, "rewards contain"),
        ({"contexts": np.full((4, 5, 3), np.nan)}, "contexts contain"),
        ({"contexts": np.full((4, 5, 3), -np.inf)}, "contexts contain"),
    ],
)
def test_errors_leave_the_state_unchanged(policy, make_rounds, change, message):
    make_rounds().play(policy, stop=25)
    good = {"contexts": np.zeros((4, 5, 3)), "actions": [0, 1, 2, 3], "rewards": np.zeros(4)}
    before = state(policy)
    with pytest.raises(ValueError, match=message):
        policy.update(**{**good, **change})
    if "contexts" in change:
        with pytest.raises(ValueError, match=message):
            policy.act(change["contexts"])
    assert state(policy) == before
    assert policy.update(**good).n_rounds_ == 29


def test_large_contexts_that_are_not_finite():
    contexts = np.zeros((5000, 3, 2))
    contexts[1, 1, 1], contexts[2, 1, 1] = np.inf, -np.inf
    with pytest.raises(ValueError, match="contexts contain"):
        RandomPolicy().act(contexts)
    assert len(RandomPolicy().act(np.full((5000, 3, 2), 1e308))) == 5000  # the sum overflows


def test_update_before_act(policy):
    before = state(policy)
    with pytest.raises(ValueError, match="act"):
        policy.update(np.zeros((4, 5, 3)), [0, 1, 2, 3], np.zeros(4))
    assert state(policy) == before


def test_bad_first_act_leaves_nothing(policy):
    with pytest.raises(ValueError):
        policy.act(np.full((4, 5, 3), np.nan))
    policy.set_params(random_state="zero")
    with pytest.raises(ValueError):
        policy.act(np.zeros((4, 5, 3)))
    assert not hasattr(policy, "n_rounds_")
    policy.set_params(random_state=0).act(np.zeros((4, 5, 3)))


def test_no_rounds(policy, make_rounds):
    make_rounds().play(policy, stop=25)
    assert policy.act(np.zeros((0, 5, 3))).shape == policy.propensities_.shape == (0,)
    assert policy.update(np.zeros((0, 5, 3)), np.array([], dtype=int), []).n_rounds_ == 25


def test_separate_weights_are_blocks(make_rounds):
    """shared=False is the same as contexts with the row in the block of the action."""
    rng = np.random.RandomState(0)
    rows, actions = rng.uniform(-0.5, 0.5, size=(60, 2)), rng.randint(3, size=60)
    blocks = np.einsum("ab,nd->nabd", np.eye(3), rows).reshape(60, 3, 6)
    oracle = SSPRegressor(epsilon=5.0, random_state=0)
    separate = EpochGreedy(oracle=oracle, schedule=60, shared=False, n_actions=3, random_state=0)
    joint = EpochGreedy(oracle=oracle, schedule=60, random_state=0)
    for policy, contexts in ((separate, rows), (joint, blocks)):
        policy.act(contexts)
        policy.update(contexts, actions, rows[:, 0])
    np.testing.assert_array_equal(separate.oracle_.coef_, joint.oracle_.coef_)
    np.testing.assert_array_equal(separate.act(rows), joint.act(blocks))
    with pytest.raises(ValueError, match="n_actions"):
        EpochGreedy(oracle=oracle, shared=False).act(rows)


@pytest.mark.parametrize("shared", [True, False])
def test_random_policy_knows_both_shapes(shared):
    policy = RandomPolicy(shared=shared, n_actions=4, random_state=0)
    contexts = np.zeros((1000, 4, 2)) if shared else np.zeros((1000, 2))
    actions = policy.act(contexts)
    assert policy.update(contexts, actions, np.zeros(1000)).n_rounds_ == 1000
    assert np.bincount(actions).min() > 180
