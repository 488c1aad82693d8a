"""An action that is ruled out stays out, and the best one is ruled out as seldom as is promised."""

import numpy as np
import pytest
from scipy import stats

from skpriv.bandits import ActionElimination, load
from skpriv.bandits._epochs import _rules
from skpriv.bandits._ucb._sums import Region
from skpriv.linear_model import LayeredRegressor, ReweightedRegressor, SSPRegressor

RUNS = 3000
FAMILY = 1e-6 / 8  # of the six binomial tests here: less than one right code in a million fails


@pytest.mark.parametrize("epoch", [1, 3])
@pytest.mark.parametrize("n_actions", [2, 10])
def test_posteriors_rule_out_the_best_action_no_more_often_than_the_level_says(n_actions, epoch):
    """All actions are equally good, and the posterior is right about its own error.

    Then the first is ruled out with probability (1 - level) 6 / (pi epoch)^2 (K - 1) / K at most,
    the union over the K - 1 other ones, and over all epochs with 1 - level at most. A posterior is
    of one epoch, so that epochs fail on their own. What this lets pass: for two actions the union
    is exact, and a quantile that is too small by a fifth fails, but not by a tenth; for ten actions
    it is not, and in the first epoch only one too small by two fifths fails.
    """
    level, rng = 0.2, np.random.RandomState(0)
    actions = np.eye(n_actions)[None]
    policy = ActionElimination(SSPRegressor(), confidence_level=level)
    lost = 0
    for _ in range(RUNS):
        root = rng.normal(size=(n_actions, n_actions))
        region = Region(root @ rng.normal(size=n_actions), root @ root.T)
        policy._fits = [(epoch, region)]
        lost += not policy._choose(actions, None)[0, 0]
    most = (1.0 - level) * 6.0 / (np.pi * epoch) ** 2 * (n_actions - 1) / n_actions
    assert stats.binomtest(lost, RUNS, most, alternative="greater").pvalue > FAMILY
    if n_actions == 2:  # and no less often: it is exact
        assert stats.binomtest(lost, RUNS, most, alternative="less").pvalue > FAMILY


class Asked:
    """An oracle whose intervals rule out nothing, and that keeps the levels it was asked for."""

    def __init__(self, levels):
        self.levels = levels

    def fit(self, X, y):
        return self

    def confidence_interval(self, X, confidence_level, method):
        self.levels.extend([confidence_level] * len(X))
        return -np.ones(len(X)), np.ones(len(X))


@pytest.mark.parametrize("interval", ["certified", "asymptotic"])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_what_all_intervals_of_all_epochs_may_fail_with_adds_up_to_the_level(interval, level):
    """One interval for each action and epoch: by the union bound all of them hold together."""
    levels, epochs, n_actions = [], 400, 3
    policy = ActionElimination(Asked(levels), confidence_level=level, interval=interval)
    policy._fits = [(epoch, Asked(levels)) for epoch in range(1, epochs + 1)]
    assert policy._choose(np.eye(n_actions)[None], None).all()
    assert len(levels) == epochs * n_actions
    failure = (1.0 - np.array(levels)).sum()
    assert 0.995 * (1.0 - level) < failure <= (1.0 - level) * (1.0 + 1e-9)


def test_no_action_that_is_not_available_is_played_whatever_the_numbers_are():
    """Bounds of infinite width and contexts whose differences overflow rule out no action."""
    policy = ActionElimination(SSPRegressor())
    contexts = np.array([[[1e308, 1e308], [-1e308, 0.0], [0.0, 0.0]]])
    available = np.array([[True, False, True]])
    infinite = Asked([])
    infinite.confidence_interval = lambda X, **_: np.full((2, len(X)), [[-np.inf], [np.inf]])
    with np.errstate(all="ignore"):
        for fit in (Region(np.ones(2), np.eye(2)), infinite):
            policy._fits = [(1, fit)]
            chances = policy._choose(contexts, available)
            assert not chances[0, 1] and chances.sum() == 1.0


class Between(Asked):
    """An oracle with these intervals of the actions, whatever it is asked."""

    def __init__(self, *intervals):
        self.ends = np.transpose(intervals)

    def confidence_interval(self, X, confidence_level, method):
        return self.ends


OLD = Between((0.5, 0.6), (0.1, 0.4), (0.3, 0.7))  # rules out the second
NEW = Between((0.2, 0.9), (0.2, 0.9), (0.2, 0.9))  # rules out nothing
FIRST, SECOND = np.array([[True, True, True]]), np.array([[False, True, True]])


@pytest.mark.parametrize(
    ("fits", "available", "played"),
    [
        ([OLD, NEW], FIRST, [True, False, True]),
        ([NEW, OLD], FIRST, [True, False, True]),
        ([OLD, NEW], SECOND, [False, True, True]),  # the first rules out nothing if it cannot play
        ([OLD, Between((0.0, 0.1), (0.2, 0.3), (0.0, 0.1))], FIRST, [False, True, False]),
        ([Between((0.0, 0.1), (0.2, 0.3), (0.0, 0.1)), OLD], FIRST, [True, False, True]),
        ([OLD, Region(np.array([0.0, 0.0, 1.0]), np.diag([0.01, 9.0, 0.01]))], FIRST, [0, 0, 1]),
    ],
)
def test_what_one_epoch_rules_out_stays_out_unless_newer_ones_contradict_it(
    fits, available, played
):
    """Newer fits are believed where no action survives all of them."""
    policy = ActionElimination(SSPRegressor(), interval="certified")
    policy._fits = list(enumerate(fits, start=1))
    chances = policy._choose(np.eye(3)[None], None if available is FIRST else available)
    np.testing.assert_array_equal(chances[0] > 0.0, played)


ORACLE = {"data_norm": 1.0, "bounds_y": (-1.0, 1.0), "fit_intercept": False, "random_state": 0}
REPORTS = {"privacy": "local", "channel": "codebook", "epsilon": 30.0}
ARMS = np.array([[0.7, 0.0, -0.2], [0.7, 0.6, 0.1], [0.7, -0.6, 0.2], [0.7, 0.0, 0.3]])
COEF = np.array([0.1, 0.3, 0.9])


def survivors(policy, schedule, shift=None):
    """Actions that may be played after each epoch of a run with fixed arms."""
    rng = np.random.RandomState(0)
    policy.set_params(schedule=schedule, random_state=0)
    after = []
    for epoch, n in enumerate(schedule):
        contexts = np.broadcast_to(ARMS, (n, *ARMS.shape))
        actions = policy.act(contexts)
        coef = COEF if shift is None or epoch < shift else -COEF
        means = ARMS[actions] @ coef
        policy.update(contexts, actions, np.where(rng.uniform(-1.0, 1.0, n) < means, 1.0, -1.0))
        after.append(policy.probabilities(contexts[:1])[0] > 0.0)
    return np.array(after)


@pytest.mark.parametrize(
    ("policy", "alone"),
    [
        (ActionElimination(SSPRegressor(epsilon=10.0, **ORACLE), interval="asymptotic"), True),
        (ActionElimination(LayeredRegressor(privacy="none", **ORACLE)), True),
        (ActionElimination(ReweightedRegressor(**REPORTS, **ORACLE)), True),
        (ActionElimination(SSPRegressor(epsilon=10.0, **ORACLE)), False),
    ],
)
def test_a_long_epoch_is_not_forgotten_by_short_ones(policy, alone, tmp_path):
    """No action comes back, in mid-run and in a file; sums of all epochs are asked once."""
    after = survivors(policy, [20_000, 30, 40, 50])
    assert after[0].sum() < 4 and after[0, 3]
    assert not (after[1:] & ~after[:-1]).any()
    assert len(policy._fits) == (4 if alone else 1)
    policy.save(tmp_path / "policy")
    again = load(tmp_path / "policy")
    np.testing.assert_array_equal(again.probabilities(ARMS[None]), policy.probabilities(ARMS[None]))
    assert len(again._fits) == len(policy._fits) and not policy.reset()._fits


def test_fits_that_are_forgotten_are_not_asked(monkeypatch):
    """Those before a change of the world, of all but the last epoch with forget, and the oldest."""
    oracle = SSPRegressor(epsilon=10.0, **ORACLE)
    policy = ActionElimination(oracle, interval="asymptotic")
    survivors(policy, [4000] * 4, shift=2)
    assert policy.changes_ and [epoch for epoch, _ in policy._fits] == [3, 4]
    policy = ActionElimination(oracle, interval="asymptotic", window=None)
    survivors(policy, [4000] * 4, shift=2)
    assert [epoch for epoch, _ in policy._fits] == [1, 2, 3, 4]
    policy = ActionElimination(oracle, interval="asymptotic", forget=True)
    survivors(policy, [4000] * 4, shift=2)
    assert [epoch for epoch, _ in policy._fits] == [4]
    monkeypatch.setattr(_rules, "MOST_FITS", 2)
    policy = ActionElimination(oracle, interval="asymptotic")
    survivors(policy, [500] * 4)
    assert [epoch for epoch, _ in policy._fits] == [3, 4]
