"""Windows over released sums: they follow a change, and cost nothing without one."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from registry.worlds import regret_of
from scipy import stats
from scipy.linalg import block_diag
from sklearn.datasets import load_iris

from skpriv._estimation._moments import NormalEquations
from skpriv.bandits import LinearEnvironment, LinSquareCB, LinUCB, SupervisedEnvironment
from skpriv.bandits._ucb._sums import NOTHING, Mark, Region, Windows
from skpriv.privacy import Answer, GaussianNoise

HORIZON = 2000


def run(policy, horizon=HORIZON, turn=None):
    """Regret of one run, and the policy after it."""
    return regret_of(policy, LinearEnvironment(), horizon=horizon, turn=turn), policy


@pytest.mark.parametrize("Policy", [LinUCB, LinSquareCB])
@pytest.mark.parametrize("epsilon", [8.0, np.inf])
def test_a_change_is_seen_and_followed(Policy, epsilon):
    """Windows leave less than half of the regret: with five seeds, a quarter to 36 percent."""
    options = {"epsilon": epsilon, "delta": 1e-6, "random_state": 0}
    forgetful, policy = run(Policy(**options), turn=HORIZON // 2)
    stubborn, other = run(Policy(**options, window=None), turn=HORIZON // 2)
    assert forgetful < stubborn / 2.0
    assert policy.changes_ and HORIZON / 2 < policy.changes_[0] < 0.75 * HORIZON
    assert other.changes_ == []


@pytest.mark.parametrize("Policy, privacy", [(LinUCB, "central"), (LinSquareCB, "local")])
def test_without_a_change_nothing_changes(Policy, privacy):
    options = {"epsilon": 4.0, "delta": 1e-6, "privacy": privacy, "random_state": 0}
    mine, policy = run(Policy(**options))
    whole, _ = run(Policy(**options, window=None))
    assert policy.changes_ == [] and mine == pytest.approx(whole, rel=0.1)


def test_a_window_of_everything_is_the_whole_sum():
    _, policy = run(LinUCB(epsilon=4.0, random_state=0), 1000)
    mark = policy._sums.mark
    whole = policy._windows._query.equations(mark.answer)
    assert whole.n == mark.rounds
    region = policy._make_region(whole)
    np.testing.assert_array_equal(region.centre, policy._region.centre)


def test_blocks_leave_out_the_noise_between_actions():
    """Widths are those of the dense form, which is zero between actions."""
    rng = np.random.RandomState(0)
    policy = LinUCB(epsilon=1.0, shared=False, n_actions=3, random_state=0)
    for _ in range(4):
        X = rng.uniform(-0.5, 0.5, (50, 2))
        actions = policy.act(X)
        policy.update(X, actions, X[:, 0] * (actions - 1))
    region = policy._region
    assert region.blocks.shape == (3, 2, 2) and (np.abs(region.blocks).max(axis=(1, 2)) > 0.0).all()
    dense = block_diag(*region.blocks)
    phi = rng.uniform(-0.5, 0.5, (40, 6))
    for one, two in zip(region.bounds(phi), Region(region.centre, dense).bounds(phi), strict=True):
        np.testing.assert_allclose(one, two)
    np.testing.assert_array_equal(policy._rule()["form"], dense)


@pytest.mark.parametrize("Policy", [LinUCB, LinSquareCB])
def test_where_the_line_is_not_true_nothing_is_forgotten(Policy):
    # Which class a flower has is far from linear, and the noise-free weights depend on the play.
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    world = SupervisedEnvironment(X / np.linalg.norm(X, axis=1).max(), y)
    options = {"epsilon": np.inf, "bounds_y": (0, 1), "random_state": 0}
    policy = Policy(**options)
    regret = regret_of(policy, world)
    assert policy.changes_ == []
    assert regret < 1.3 * regret_of(Policy(window=None, **options), world)


def test_weights_of_a_bent_world_may_differ_by_what_predictions_are_taken_to_move():
    """By .07 in each direction of the rows, between rounds in which other actions were played.

    Nothing has changed there, so that nothing may be forgotten: half of the misfit would find such
    a difference in 3 of 1,000 cuts.
    """
    squares, n = np.array([0.3, 0.2, 0.1, 0.05]), 1_000_000
    windows, away = Windows(None, exact=True), 0.07 / np.sqrt(squares)
    design = n * np.diag(squares)

    def since(start, end):
        target = design @ (away * start)
        return NormalEquations(
            design=design, target=target, gram=design, square=0.1 * n, n=n, symmetric=True,
            design_scale=0.0, target_scale=0.0, gram_scale=0.0,
        )  # fmt: skip

    windows._since, windows._correlation = since, lambda *marks: 0.0
    assert windows._gaps(0, [1], 2)(windows._misfit) > 0.3


def test_an_alarm_inside_of_a_phase_outlives_the_phase():
    # Phases of 20, 40 and 80 reads: the alarm comes in the middle of one of them.
    policy = LinUCB(epsilon=8.0, update_every=20, horizon=400, random_state=0)
    run(policy, turn=HORIZON // 2)
    assert policy.changes_
    marks = policy._windows._marks
    origin = next(mark for mark in marks if mark.rounds == policy._windows._origin)
    assert marks[-1].noise_since(origin) is None  # its phase is over, and it was not at its end


def test_thresholds_of_all_reads_add_up_to_the_stated_rate_of_false_alarms():
    windows, total = Windows(None), 0.0
    for windows._tests in range(1, 20_001):
        total += 7 * windows._alarm(7)
    assert 0.0499 < total < 0.05


def test_directions_below_twice_the_noise_are_not_compared():
    _, policy = run(LinUCB(epsilon=4.0, random_state=0), 1000)
    equations = policy._windows._query.equations(policy._sums.mark.answer)
    p = len(equations.target) - 1  # slopes, which alone are compared
    noise = equations.design_scale * np.sqrt(2.0 * p)
    for size, known in ((1.9, False), (2.1, True)):
        large = replace(equations, design=size * noise * np.eye(p + 1))
        _, (form,), _ = policy._windows._estimates([large])
        assert (np.diagonal(form) < 10.0).all() == known


def test_the_noise_of_what_an_intercept_takes_off_is_counted():
    """Errors of slopes in units of their stated size, over 400 draws: their mean square is 1.00.

    Without the noise of the column that is taken off it is 2.1. Errors that are stated too small by
    a twelfth of their size fail.
    """
    rng, windows = np.random.RandomState(0), Windows(None)
    windows.intercept, size, n = 2.0, 4, 4_000
    exact = n * np.diag([0.15, 0.15, 0.15, 0.14])
    theta, squares = np.array([0.1, -0.1, 0.0, 2.0]), []
    for _ in range(400):
        noise = 20.0 * rng.normal(size=(size, size))
        noise = (noise + noise.T) / 2.0  # a variance of 400 on the diagonal, of 200 beside it
        design = exact + noise
        target = exact @ theta + 20.0 * rng.normal(size=size)
        equations = NormalEquations(
            design=design, target=target, gram=design, square=0.0, n=n, symmetric=True,
            design_scale=20.0, target_scale=20.0, gram_scale=20.0,
        )  # fmt: skip
        (centre,), (form,), _ = windows._estimates([equations])
        error = centre[:, 0] - theta[:-1]
        squares.append(error @ np.linalg.solve(form, error) / 3.0)
    assert 0.8 < np.mean(squares) < 1.17


@pytest.mark.parametrize("Policy", [LinUCB, LinSquareCB])
@pytest.mark.parametrize("start", [None, np.append(np.full(5, 0.1), 0.2)])
def test_a_window_that_tells_nothing_keeps_the_level_of_the_read_before(Policy, start):
    """All rounds together, or public weights, have the level that was expected before them."""
    _, policy = run(Policy(epsilon=4.0, start=start, random_state=0), 1000)
    whole = policy._windows._query.equations(policy._sums.mark.answer)
    blank = replace(whole, design=0.0 * whole.design, target=0.0 * whole.target)
    for n, level in (100, 0.6), (whole.n, 0.0):
        policy._windows.intercept = 0.6
        policy._learn(replace(blank, n=n))
        if start is None:
            np.testing.assert_allclose(policy._region.centre, np.append(np.zeros(5), level))
        else:
            np.testing.assert_allclose(np.append(policy.coef_, policy.intercept_), start)


class Told(Mark):
    """A read that is told the law of its noise since an earlier one."""

    def noise_since(self, earlier):
        return self.stream(earlier)


class WindowsOfMeans(Windows):
    """Windows over sums of one number a round, whose mean is what is estimated."""

    def __init__(self, form):
        super().__init__(SimpleNamespace(equations=lambda answer: answer))
        self.form = form

    def _estimates(self, windows):
        means = np.array([answer.value / answer.n for answer in windows])[..., None]
        forms = np.broadcast_to(self.form, (len(windows), 1, 1))
        return means, forms, np.broadcast_to(np.eye(1), forms.shape)


def test_after_an_alarm_only_rounds_after_the_change_are_used():
    """The sign turns after 500 rounds, and noise has the scale of a window's number of rounds."""
    windows = WindowsOfMeans(1e-6 * np.eye(1))
    for n in range(100, 1100, 100):
        span = lambda earlier, n=n: GaussianNoise(float(n - earlier.rounds))  # noqa: E731
        value = np.array([500.0 - abs(n - 500.0)])
        windows.add(Told(n, Answer(value, n, GaussianNoise(float(n))), span))
        chosen = windows.choose()
    assert windows.changes == [600] and windows._origin == 500
    assert (chosen.value[0], chosen.n, chosen.noise.scale) == (-500.0, 500, 500.0)


def test_a_difference_is_compared_with_its_noise_correlation_and_misfit():
    law = lambda earlier: GaussianNoise(1.0 if earlier.rounds else 3.0**0.5)  # noqa: E731
    cut = Told(100, Answer(np.zeros(1), 100, None), lambda earlier: GaussianNoise(1.0))
    now = Told(200, Answer(np.array([10.0]), 200, None), law)  # 3 = 1 + 1 + 2 * 0.5
    for misfit in (0.0, 0.07):
        square = 0.1**2 / (1.5 * 2 * 0.002 + misfit**2)
        windows = WindowsOfMeans(0.002 * np.eye(1))
        (found,) = windows._gaps(NOTHING, [cut], now)(misfit)
        assert found == pytest.approx(stats.chi2.sf(square, 1))


def test_a_misfit_explains_away_alarms_and_without_noise_doubts_too():
    """Two halves whose means differ by 0.1: less than alarms allow for, and more than noise."""
    for exact in (False, True):
        windows = WindowsOfMeans(1e-4 * np.eye(1))
        windows._misfit = Windows(None, exact=exact)._misfit
        for n in range(100, 1100, 100):
            value, law = np.array([0.1 * max(n - 500.0, 0.0)]), GaussianNoise(0.0)
            windows.add(Told(n, Answer(value, n, law), lambda earlier: GaussianNoise(0.0)))
            chosen = windows.choose()
        assert not windows.changes and (chosen.n == 1000) == exact


def test_windows_that_are_estimated_together_are_those_of_each_alone():
    """Several windows, blocks of actions and all: what one tells depends on no other."""
    for shared in (True, False):
        policy = LinUCB(epsilon=8.0, shared=shared, n_actions=None if shared else 4, random_state=0)
        world = np.random.RandomState(0).uniform(-0.5, 0.5, (400, 4, 2) if shared else (400, 2))
        for start in range(0, 400, 50):
            part = world[start : start + 50]
            policy.update(part, policy.act(part), part.reshape(50, -1)[:, 0])
        windows = policy._windows
        *marks, now = windows._marks
        several = [windows._since(mark, now) for mark in [NOTHING, *marks]]
        assert len(several) > 3
        together = windows._estimates(several)
        alone = [windows._estimates([one]) for one in several]
        for part, parts in zip(together, zip(*alone, strict=True), strict=True):
            np.testing.assert_allclose(part, np.concatenate(parts), rtol=1e-9, atol=1e-14)


def test_an_alarm_is_about_all_rounds():
    """Newer rounds differ among themselves, and as a whole hardly from older ones.

    The oldest window is doubted. If later ones raised alarms, these would be several at a read, and
    more than the stated rate allows.
    """
    windows, law = WindowsOfMeans(0.5 * np.eye(1)), GaussianNoise(0.0)
    for n in range(100, 1100, 100):
        value = np.array([2.0 * (min(max(n - 500, 0), 250) - max(n - 750, 0))])
        windows.add(Told(n, Answer(value, n, law), lambda earlier: law))
    assert windows.choose().n < 1000 and not windows.changes


def test_few_marks_are_enough_however_many_rounds_come():
    """Those that are kept are near each place at which a window may begin."""
    windows, rounds = Windows(None), 0
    for read in range(300):
        rounds += max(20, rounds // 20)
        windows.add(Mark(rounds, NOTHING.answer, None, read))
        kept = np.array([mark.rounds for mark in windows._marks])
        places = np.array([0.1, 0.25, 0.5, 0.7, 0.8, 0.9]) * rounds
        before = [kept[kept <= place].max(initial=0) for place in places[places > 60]]
        assert (np.array(before) >= 0.7 * places[places > 60]).all()
    assert len(kept) <= 30


def test_weights_of_each_action_have_sums_of_their_own_alone():
    """What is released grows with the actions, and is the part of the dense sums that can be."""
    policy = LinUCB(epsilon=np.inf, shared=False, n_actions=3, window=None, random_state=0)
    X = np.random.RandomState(0).uniform(-0.5, 0.5, (40, 4))
    policy.update(X, actions := policy.act(X), X[:, 0])
    query = policy._sums.query
    assert query.shape == (3 * 4 + 3 * 10 + 1,)
    rows = policy._space.chosen(X, actions)
    dense = replace(query, blocks=1)
    exact, whole = (Answer(q.sum(rows, X[:, 0]), 40, GaussianNoise(0.0)) for q in (query, dense))
    found, expected = query.equations(exact), dense.equations(whole)
    np.testing.assert_allclose(found.design, expected.design, atol=1e-12)
    np.testing.assert_allclose(found.target, expected.target, atol=1e-12)
    assert query.sensitivity == dense.sensitivity
