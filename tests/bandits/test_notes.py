"""What a policy says of its bounds and weights: each sentence where it should, and by releases."""

import numpy as np
import pytest
from registry.estimators import ssp
from sklearn.base import clone

from skpriv.bandits import EpochGreedy, EpochSchedule, LinSquareCB, LinUCB, RandomPolicy, SquareCB
from skpriv.bandits._notes import NEARLY_ALL, FULL, OF_A_TENTH, moment_notes
from skpriv.linear_model import LinearRegression, ReweightedRegressor, SSPRegressor

LENGTH, TIMES, RANGE, HIDDEN = "longer and were clipped", "5 times", "bounds_y", "hides"
COMMON = {"bounds_y": (0, 1), "random_state": 0}


def notes(policy, contexts, rewards, n=4_000, step=200):
    """Notes after rounds with contexts and rewards by a function of a generator and a number."""
    rng = np.random.default_rng(0)
    for _ in range(0, n, step):
        X = contexts(rng, step)
        policy.update(X, policy.act(X), rewards(rng, step))
    return policy.notes_


def gaussian(rng, n, n_features=4, size=0.5):
    return size * rng.normal(size=(n, 3, n_features)) / np.sqrt(n_features)


def clicks(rng, n):
    return (rng.random(n) < 0.5).astype(float)


POLICIES = {
    "lin_ucb": lambda epsilon: LinUCB(epsilon=epsilon, **COMMON),
    "lin_square_cb": lambda epsilon: LinSquareCB(epsilon=epsilon, **COMMON),
    "square_cb": lambda epsilon: SquareCB(
        ssp(epsilon=epsilon, data_norm=1.0, **COMMON), schedule=1_000, random_state=0
    ),
    "doubling": lambda epsilon: EpochGreedy(
        ssp(epsilon=epsilon, data_norm=1.0, **COMMON), random_state=0
    ),
}
WORLDS = {  # contexts, rewards, and the words of the one note
    "usual": (gaussian, clicks, None),
    "clipped": (lambda rng, n: gaussian(rng, n, size=20.0), clicks, LENGTH),
    "one feature": (
        lambda rng, n: gaussian(rng, n) * [0.15, 0.15, 2.0, 0.15], clicks, TIMES
    ),
    "narrow": (gaussian, lambda rng, n: 0.9 + 0.09 * rng.random(n), RANGE),
    "beyond": (gaussian, lambda rng, n: 7.0 + rng.random(n), RANGE),
    "rare": (gaussian, lambda rng, n: (rng.random(n) < 0.01) * 1.0, None),
    "hidden": (lambda rng, n: gaussian(rng, n) * [1.0, 1.0, 0.0, 1.0], clicks, HIDDEN),
}  # fmt: skip


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", POLICIES)
def test_each_note_is_there_where_it_should_be_and_alone(name, world):
    contexts, rewards, words = WORLDS[world]
    policy = POLICIES[name](2_000.0)
    found = notes(policy, contexts, rewards)
    assert len(found) == (words is not None) and all(words in sentence for sentence in found)
    if name.startswith("lin"):
        assert (words is None) == (policy.privacy_report_.note is None)
        assert all(sentence in str(policy.privacy_report_) for sentence in found)


def test_an_action_that_is_never_played_is_named():
    policy = LinUCB(epsilon=20.0, shared=False, n_actions=4, **COMMON)
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = rng.normal(size=(100, 3)) / 3.0
        actions = policy.act(X, available=np.array([True, False, True, True]))
        policy.update(X, actions, clicks(rng, 100))
    (note,) = policy.notes_
    assert "actions [1]" in note and HIDDEN in note


def test_what_noise_may_explain_is_not_said():
    """With little budget noise hides all weights, and that alone is said."""
    for world in ("clipped", "one feature", "narrow"):
        contexts, rewards, _ = WORLDS[world]
        (note,) = notes(POLICIES["lin_ucb"](0.02), contexts, rewards)
        assert "[0, 1, 2, 3]" in note and HIDDEN in note


def test_blank_rounds_make_no_range_too_wide():
    """How many rounds are of people who came too often is private, and nothing is said by it."""
    policy = LinUCB(epsilon=20.0, max_visits=1, **COMMON)
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = gaussian(rng, 200)
        policy.update(X, policy.act(X), clicks(rng, 200), users=["me"] * 190 + [*range(10)])
    assert not [note for note in policy.notes_ if RANGE in note]


def test_notes_follow_from_what_was_released():
    """They are a function of noisy sums and public numbers: two runs with one release agree."""
    policy = POLICIES["lin_ucb"](20.0)
    said = notes(policy, *WORLDS["clipped"][:2])
    answer = policy._sums.mark.answer
    assert said == moment_notes(policy._sums.query.equations(answer), policy._scaling, 1)
    X = gaussian(np.random.default_rng(1), 5)
    policy.update(X, policy.act(X), np.ones(5))  # before the next read
    assert policy.notes_ == said


def test_nothing_is_said_before_a_release():
    assert LinUCB().notes_ == RandomPolicy().notes_ == POLICIES["square_cb"](1.0).notes_ == []


def test_an_oracle_without_sums_has_its_own_notes():
    oracle = LinearRegression(epsilon=20.0, data_norm=1.0, bounds_y=(0, 1), random_state=0)
    policy = EpochGreedy(oracle, schedule=1_000, random_state=0)
    found = notes(policy, *WORLDS["clipped"][:2], n=1_000)
    assert found == [policy.oracle_.privacy_report_.note] and "clipped" in found[0]


@pytest.mark.parametrize("constant", [FULL, NEARLY_ALL, OF_A_TENTH])
def test_thresholds_are_those_of_the_sentences(constant):
    """Rows of mean square length .9, a feature four times as long as others, an eighth of a range.

    Half of a threshold, or twice the last one, would say something of them.
    """
    worlds = {
        FULL: (lambda rng, n: 0.95 * unit(rng, n), clicks),
        NEARLY_ALL: (lambda rng, n: 0.9 * gaussian(rng, n) * [0.145, 0.145, 1.0, 0.145], clicks),
        OF_A_TENTH: (gaussian, lambda rng, n: 0.5 + 0.13 * rng.random(n)),
    }
    assert notes(LinUCB(epsilon=float("inf"), **COMMON), *worlds[constant]) == []


def unit(rng, n):
    rows = gaussian(rng, n)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


@pytest.mark.parametrize("kind", [ReweightedRegressor, SSPRegressor])
def test_an_oracle_spends_nothing_on_a_note_that_nobody_reads(kind):
    """A fit counts clipped rows where there is budget to spare; that of a policy does not."""
    rng = np.random.RandomState(0)
    contexts, rewards = rng.uniform(-0.5, 0.5, (4000, 2, 2)), rng.uniform(-1, 1, 4000)
    oracle = kind(epsilon=5.0, data_norm=1.0, bounds_y=(-1, 1), random_state=0)
    policy = SquareCB(oracle, schedule=EpochSchedule(first=2000), random_state=0)
    policy.update(contexts, policy.act(contexts), rewards)
    alone = clone(oracle).fit(contexts[:2000, 0], rewards[:2000])
    asked = [
        [row.query for row in report.rows].count("rows outside of their bounds")
        for report in (alone.privacy_report_, policy._epochs[0].report)
    ]
    assert asked == [1, 0]
