"""Policies inside coba; coba logs errors and goes on, so the log is looked at."""

import numpy as np
import pytest

from skpriv.bandits import CobaLearner, EpochGreedy, LinUCB, RandomPolicy, SquareCB
from skpriv.linear_model import SSPRegressor

ACTIONS = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]


COMMON = {"epsilon": 8.0, "data_norm": 1.5, "bounds_y": (0, 1), "random_state": 0}
ORACLE = SSPRegressor(fit_intercept=False, **COMMON)
POLICIES = [
    EpochGreedy(ORACLE, random_state=0),
    SquareCB(ORACLE, shared=False, n_actions=3, random_state=0),
    LinUCB(**COMMON),
]


class LargestFeature:
    """The right action is the largest of three features."""

    params = {"env_type": "largest feature"}

    def read(self):
        coba = pytest.importorskip("coba")
        for row in np.random.RandomState(0).dirichlet(np.ones(3), size=3000):
            rewards = np.eye(3)[row.argmax()].tolist()
            yield coba.SimulatedInteraction(tuple(row.tolist()), ACTIONS, rewards)


@pytest.mark.slow
def test_an_experiment_of_coba():
    """No error is logged, and the last third of the rounds is won by more than chance, a third."""
    coba = pytest.importorskip("coba")
    from coba.context import BasicLogger, CobaContext
    from coba.pipes import ListSink

    log, learners, before = ListSink(), [*map(CobaLearner, POLICIES)], CobaContext.logger
    CobaContext.logger = BasicLogger(log)
    try:
        result = coba.Experiment(coba.Environments([LargestFeature()]), learners).run(quiet=False)
    finally:
        CobaContext.logger = before
    words = ("Traceback", "Error", "exception", "Exception")
    assert not [line for line in map(str, log.items) if any(word in line for word in words)]
    frame = result.interactions.to_pandas()
    means = frame[frame["index"] > 2000].groupby("learner_id")["reward"].mean()
    assert len(means) == 3 and means.min() > 0.45 and means.max() > 0.7
    families = result.learners.to_pandas()["family"].tolist()
    assert families == ["EpochGreedy", "SquareCB", "LinUCB"]
    assert [learner.policy_.n_rounds_ for learner in learners] == [3000] * 3


def test_same_rounds_as_without_coba(global_random_seed):
    rows = np.random.RandomState(global_random_seed).dirichlet(np.ones(3), size=300)
    policy = POLICIES[1]
    learner, alone = CobaLearner(policy), SquareCB(**policy.get_params(deep=False))
    for row in rows:
        action, chance, known = learner.predict(tuple(row), ACTIONS)
        x = np.r_[1.0, row][None]
        index = alone.act(x)
        assert action is ACTIONS[index[0]] and chance == alone.propensities_[0]
        reward = float(row.argmax() == index[0])
        learner.learn(tuple(row), action, reward, chance, **known)
        alone.update(x, index, [reward])
    assert not hasattr(policy, "n_rounds_")


@pytest.mark.parametrize(
    "context, actions, expected",
    [
        ((0.5, 2.0), [(1, 0), (0, 1)], [[1, 0.5, 2, 0, 0, 0], [0, 0, 0, 1, 0.5, 2]]),
        (None, ["a", "b"], [[1, 0], [0, 1]]),
        (3.0, [2, 5], [[2, 6], [5, 15]]),
    ],
)
def test_features_of_shared_policies(context, actions, expected):
    learner = CobaLearner(RandomPolicy(random_state=0))
    known = learner.predict(context, actions)[2]
    np.testing.assert_array_equal(known["contexts"], [expected])


def test_the_shape_of_hashed_features_does_not_depend_on_the_record():
    learner = CobaLearner(RandomPolicy(random_state=0), n_hashed=8)
    shapes = {
        learner.predict(context, ["a", "b"])[2]["contexts"].shape
        for context in ({"x": 1.5}, {"x": 1.0, "y": "red", 7: 2.0}, {}, "red")
    }
    assert shapes == {(1, 2, 2 * 9)}


def test_a_logged_action_is_found_among_the_offered():
    learner = CobaLearner(LinUCB(privacy="none", bonus_scale=0.0, update_every=1, random_state=0))
    _, _, known = learner.predict(None, ACTIONS)
    learner.learn(None, (0, 0, 1), 1.0, 0.3, **known)
    assert learner.predict(None, ACTIONS)[0] == (0, 0, 1)


def test_errors_change_nothing():
    learner = CobaLearner(LinUCB(n_actions=3))
    with pytest.raises(ValueError, match="without max_visits"):
        CobaLearner(LinUCB(max_visits=2)).predict(None, ACTIONS)
    _, chance, known = learner.predict((0.5,), ACTIONS)
    with pytest.raises(ValueError, match="what predict returned"):
        learner.learn((0.5,), ACTIONS[0], 1.0, chance)
    with pytest.raises(ValueError, match="unknown action"):
        learner.learn((0.5,), (1, 1, 1), 1.0, chance, **known)
    for context, actions, message in (
        ((0.5,), ACTIONS[:2], "have shape.*must have"), (object(), ACTIONS, "sequence of numbers"),
        (None, [], "continuous"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            learner.predict(context, actions)
    assert learner.policy_.n_rounds_ == 0
