"""With which probability an action that is as good as the best is ruled out."""

import numpy as np
import pytest
from scipy import stats

from skpriv.bandits import ActionElimination
from skpriv.bandits._ucb._sums import Region
from skpriv.linear_model import SSPRegressor

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
    policy._epochs = [None] * epoch
    lost = 0
    for _ in range(RUNS):
        root = rng.normal(size=(n_actions, n_actions))
        policy._region = Region(root @ rng.normal(size=n_actions), root @ root.T)
        lost += not policy._plausible(actions, None)[0, 0]
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
    policy.oracle_, policy._epochs = Asked(levels), []
    for _ in range(epochs):
        policy._epochs = [*policy._epochs, None]
        assert policy._alive(np.eye(n_actions)[None]).all()
    assert len(levels) == epochs * n_actions
    failure = (1.0 - np.array(levels)).sum()
    assert 0.995 * (1.0 - level) < failure <= (1.0 - level) * (1.0 + 1e-9)


def test_no_action_that_is_not_available_is_played_whatever_the_numbers_are():
    """Bounds of infinite width and contexts whose differences overflow rule out no action."""
    policy = ActionElimination(SSPRegressor())
    policy._epochs = []
    policy._region = Region(np.ones(2), np.eye(2))
    contexts = np.array([[[1e308, 1e308], [-1e308, 0.0], [0.0, 0.0]]])
    available = np.array([[True, False, True]])
    policy.oracle_ = Asked([])
    policy.oracle_.confidence_interval = lambda X, **_: np.full((2, len(X)), [[-np.inf], [np.inf]])
    with np.errstate(all="ignore"):
        for policy._region in (policy._region, None):
            chances = policy._choose(contexts, available)
            assert not chances[0, 1] and chances.sum() == 1.0
