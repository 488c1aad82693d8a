"""Windows over epochs: pooled fits follow a change, and cost nothing without one."""

import numpy as np
import pytest
from registry.estimators import iht, reweighted, ssp
from registry.worlds import regret_of
from sklearn.base import clone

from skpriv.bandits import FLIPHAT, ActionElimination, EpochGreedy, LinearEnvironment, SquareCB
from skpriv.bandits._epochs import _policy as _windows
from skpriv.bandits._epochs._policy import EpochWindows
from skpriv.bandits._ucb import _sums as ucb_windows
from skpriv.linear_model import LinearRegression

HORIZON = 3200
SSP = ssp(epsilon=4.0, delta=1e-6, fit_intercept=False, random_state=0)
POLICIES = [SquareCB, EpochGreedy, ActionElimination]


def run(policy, seed=0, horizon=HORIZON, turn=None):
    """Regret of one run, and the policy after it."""
    return regret_of(policy, LinearEnvironment(), seed, horizon, 100, turn), policy


@pytest.mark.parametrize("Policy", POLICIES)
def test_a_change_is_seen_and_followed(Policy):
    options = {"schedule": 200, "random_state": 0}
    mine, policy = run(Policy(SSP, **options), turn=HORIZON // 2)
    stubborn, other = run(Policy(SSP, window=None, **options), turn=HORIZON // 2)
    assert mine < (0.8 if Policy is ActionElimination else 0.5) * stubborn
    assert HORIZON / 2 < policy.changes_[0] < 0.75 * HORIZON
    assert policy.n_pooled_ <= HORIZON / 2 and other.n_pooled_ == HORIZON
    assert all(mark.rounds >= HORIZON / 2 for mark in policy._windows._marks)
    assert other.changes_ == []
    assert policy.guarantee == other.guarantee  # it costs nothing


@pytest.mark.parametrize("Policy", POLICIES)
def test_without_a_change_hardly_anything_changes(Policy):
    mine, policy = run(Policy(SSP, schedule=200, random_state=0), 1, 2000)
    whole, _ = run(Policy(SSP, window=None, schedule=200, random_state=0), 1, 2000)
    assert policy.changes_ == [] and policy.n_pooled_ == 2000
    # an epoch may have been played by the newest rounds alone
    assert mine == pytest.approx(whole, rel=0.1)


def alarms(runs, factor, monkeypatch):
    """Runs with an alarm; each window's covariance is multiplied by a factor."""
    estimate, found = EpochWindows._estimates, 0

    def scaled(self, windows):
        weights, covariances, rows = estimate(self, windows)
        return weights, factor * covariances, rows

    monkeypatch.setattr(EpochWindows, "_estimates", scaled)
    monkeypatch.setattr(ucb_windows, "MISFIT", 1e-9)
    for fits in runs:
        windows = EpochWindows()
        for epoch, fit in enumerate(fits):
            windows.take(fit, 100, 100 * (epoch + 1))
        found += bool(windows.changes)
    monkeypatch.undo()
    return found


def test_false_alarms_are_as_rare_as_stated(monkeypatch):
    rng, runs = np.random.default_rng(0), []
    for seed in range(8):
        coef, fits = rng.standard_normal(3) / 4.0, []
        for epoch in range(8):
            X = rng.uniform(-0.5, 0.5, (100, 3))
            # rewards of -1 and 1 have the largest variance that there can be
            y = np.where(rng.random(100) < (1.0 + X @ coef) / 2.0, 1.0, -1.0)
            oracle = clone(SSP).set_params(random_state=100 * seed + epoch)
            fits.append(oracle.fit(X, y))
        runs.append(fits)
    # At most 5% each: more than 2 alarms of 8 come by chance once in 170 times.
    assert alarms(runs, 1.0, monkeypatch) <= 2
    # The rate rests on the covariances: with a quarter of the deviations it does not hold.
    assert alarms(runs, 0.0625, monkeypatch) > 2


def test_stretches_are_joined_as_they_age():
    windows = EpochWindows()

    class Fit(list):
        def pooled(self, other):
            return Fit([*other, *self])

    for epoch in range(200):
        windows._marks.append(_windows.Stretch(Fit([epoch]), 50, 50 * (epoch + 1)))
        windows._join()
        assert sum((mark.oracle for mark in windows._marks), []) == list(range(epoch + 1))
        assert [mark.n for mark in windows._marks] == [50 * len(m.oracle) for m in windows._marks]
    assert len(windows._marks) <= 2 * 8
    start, end = windows._marks[2], windows._marks[-1]
    assert windows._since(start, end).oracle == list(range(start.rounds // 50, 200))
    assert windows._since(start, end).n == 10_000 - start.rounds


def test_what_cannot_be_compared_has_no_changes():
    normalised = reweighted(random_state=0)
    sparse = iht(random_state=0)
    options = {"schedule": 300, "random_state": 0}
    for policy in (FLIPHAT(random_state=0), SquareCB(SSP, forget=True, **options)):
        _, policy = run(policy, 0, 600)
        assert policy.changes_ == []
    for oracle in (normalised, sparse):  # an alarm that cannot ring says so
        _, policy = run(SquareCB(oracle, **options), 0, 600)
        with pytest.raises(AttributeError, match="no change can be noticed"):
            _ = policy.changes_
        assert run(SquareCB(oracle, window=None, **options), 0, 600)[1].changes_ == []
    assert SquareCB(SSP).changes_ == []


def test_blank_rounds_do_not_make_rewards_look_certain():
    """Of 100 rounds 5 have features: the variance of the weights is that of 5 rounds."""
    rng = np.random.default_rng(0)
    X, y = np.zeros((2000, 2)), np.zeros(2000)
    X[:100] = rng.choice([-0.7, 0.7], (100, 2))
    y[:100] = rng.choice([-1.0, 1.0], 100)
    fit = clone(SSP).set_params(epsilon=1e4).fit(X, y)
    stretch = _windows.Stretch(fit, 2000, 2000)
    least_squares = 1.0 / (100 * 0.49)  # variance of a weight of rewards of variance 1
    variances = [EpochWindows(persons)._estimates([stretch])[1] for persons in (False, True)]
    assert variances[0][0, 0, 0] < 0.2 * least_squares
    assert variances[1][0, 0, 0] > 0.8 * least_squares


LINE = LinearRegression(
    epsilon=4.0, delta=1e-6, data_norm=1.0, bounds_y=(-1, 1), fit_intercept=False, random_state=0
)


def test_epochs_of_equations_are_pooled_and_not_compared():
    """A clipped line depends on the rows, which the policy chooses: that is no change."""
    _, policy = run(EpochGreedy(LINE, schedule=500, random_state=0), 0, 2000)
    assert policy.n_pooled_ == policy.oracle_._information.n == 2000
    assert type(policy.oracle_._released).__name__ == "Information"
    with pytest.raises(AttributeError, match="no change can be noticed"):
        _ = policy.changes_
    _, policy = run(EpochGreedy(LINE, schedule=500, forget=True, random_state=0), 0, 2000)
    assert policy.n_pooled_ == 500 and policy.changes_ == []
