"""Private value of a policy: coverage, clipping, errors."""

import numpy as np
import pytest

from skpriv import BudgetAccountant, BudgetExceeded
from skpriv.bandits import _off_policy, private_off_policy_value


def logs(n, seed):
    """Logs of a policy that draws two actions of three unevenly, and what the means are."""
    rng = np.random.RandomState(seed)
    chances = np.array([0.5, 0.3, 0.2])
    actions = rng.choice(3, size=n, p=chances)
    means = np.array([0.2, 0.5, 0.7])
    rewards = (rng.uniform(size=n) < means[actions]).astype(float)
    return actions, rewards, chances[actions], means


def test_ranges_of_which_numbers_cannot_hold_the_half_are_refused():
    """What overflowed was NaN for some rewards, and a number for others."""
    for bounds in ((0.0, 5e-324), (-1e308, 1e308)):
        with pytest.raises(ValueError, match="bounds_y"):
            private_off_policy_value([0], [0], [0.0], [0.5], bounds_y=bounds)


# So many runs, and the fewest hits of which a fewer number has a probability below 5e-4. A true 85%
# in place of 90% passes with .96 and .43; 90% in place of 95% with .88 and .17.
FAST_AND_SLOW = pytest.mark.parametrize("runs, hits_of_90, hits_of_95", [
    (100, 79, 87), pytest.param(500, 427, 457, marks=pytest.mark.slow),
])  # fmt: skip


@FAST_AND_SLOW
def test_intervals_cover(runs, hits_of_90, hits_of_95, global_random_seed):
    """Nominal 90%, with noise that is most of the width and noise that is little of it."""
    for epsilon in (0.2, 5.0):
        hits = 0
        for seed in range(runs):
            actions, rewards, propensities, means = logs(1000, 1000 * global_random_seed + seed)
            found = private_off_policy_value(
                np.full(1000, 2), actions, rewards, propensities, epsilon=epsilon,
                max_weight=5.0, confidence_level=0.9, random_state=seed,
            )  # fmt: skip
            hits += found.low <= means[2] <= found.high
        assert hits >= hits_of_90


def test_little_noise_agrees_with_the_exact_estimate():
    actions, rewards, propensities, _ = logs(3000, 0)
    target = np.tile([0.2, 0.2, 0.6], (3000, 1))
    weights = target[np.arange(3000), actions] / propensities
    exact = np.mean(weights * (rewards - 0.5)) + 0.5
    found = private_off_policy_value(
        target, actions, rewards, propensities, epsilon=1e6, delta=0.5, max_weight=3.0,
        random_state=0,
    )  # fmt: skip
    assert found.value == pytest.approx(exact, abs=1e-3)
    assert found.noise_share < 0.01


def test_it_is_charged_and_refused():
    actions, rewards, propensities, _ = logs(100, 0)
    with BudgetAccountant(1.0, 1e-6) as accountant:
        private_off_policy_value(actions, actions, rewards, propensities, random_state=0)
        assert accountant.spent.epsilon == pytest.approx(1.0, rel=1e-6)
        with pytest.raises(BudgetExceeded):
            private_off_policy_value(actions, actions, rewards, propensities, random_state=0)


def test_only_public_shapes_are_refused():
    actions, rewards, propensities, _ = logs(10, 0)
    bad = np.full(10, np.nan)
    private_off_policy_value(actions, actions, bad, bad, random_state=0)
    for change in ({"rewards": rewards[1:]}, {"propensities": bad[1:]}):
        given = {"rewards": rewards, "propensities": propensities, **change}
        with pytest.raises(ValueError):
            private_off_policy_value(actions, actions, **given)


@FAST_AND_SLOW
@pytest.mark.parametrize("max_weight", [2.0, 5.0])
def test_intervals_cover_whatever_the_weights_are_clipped_to(
    max_weight, runs, hits_of_90, hits_of_95
):
    """Rewards are rare, and the target's action has a ratio of 5 or 50: lost mass is not valued."""
    for propensity in (0.2, 0.02):
        hits, missing, n = 0, [], 5000
        for seed in range(runs):
            rng = np.random.RandomState(seed)
            actions = (rng.uniform(size=n) < propensity).astype(int)
            rewards = (rng.uniform(size=n) < 0.05).astype(float)
            found = private_off_policy_value(
                np.ones(n), actions, rewards, np.where(actions == 1, propensity, 1 - propensity),
                max_weight=max_weight, random_state=seed,
            )  # fmt: skip
            hits += found.low <= 0.05 <= found.high
            missing.append(found.missing)
            assert 0.0 <= found.low <= found.value <= found.high <= 1.0
        assert hits >= hits_of_95
        assert np.mean(missing) == pytest.approx(1.0 - min(1.0, max_weight * propensity), abs=0.03)


def test_a_public_bound_on_propensities_makes_the_interval_shorter():
    actions, rewards, propensities, means = logs(4000, 0)
    given = (np.full(4000, 2), actions, rewards, propensities)
    options = {"max_weight": 5.0, "random_state": 0}
    known = private_off_policy_value(*given, least_propensity=0.2, **options)
    unknown = private_off_policy_value(*given, **options)
    assert known.missing == 0.0 and known.low < means[2] < known.high
    assert known.high - known.low < unknown.high - unknown.low


def test_values_that_are_no_numbers_are_charged_for_and_not_told(recwarn):
    actions, rewards, propensities, _ = logs(50, 0)
    for place in range(4):
        given = [list(part) for part in (actions.astype(float), actions, rewards, propensities)]
        for cell in ("patient 4711", 1e300, None, -3):
            given[place][7] = cell
            with BudgetAccountant(1.0, 1e-6) as accountant:
                private_off_policy_value(*given, random_state=0)
            assert len(accountant.charges) == 1
    assert not list(recwarn)


def test_a_round_at_the_edge_is_not_clipped():
    """The largest reward, at the largest weight."""
    given = (np.ones(1, dtype=int), np.ones(1, dtype=int), np.ones(1), np.array([0.1]))
    options = {"max_weight": 10.0, "epsilon": 1e9, "delta": 0.5, "random_state": 0}
    value = private_off_policy_value(*given, least_propensity=0.1, **options)
    assert value.value == pytest.approx(5.5, abs=0.01)  # the middle, and 10 times the half range
    # A mean weight of 10 contradicts E[W] <= 1, so that nothing is known.
    assert private_off_policy_value(*given, **options)[1:3] == (0.0, 1.0)


CASES = {
    "covered": (_off_policy.ValueQuery, _off_policy._unclipped, [0.02, 0.05]),
    "clipped": (_off_policy.FilledQuery, _off_policy._filled, [0.02, 0.2, 0.01, 0.01]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_noise_of_an_end_is_that_of_its_sums(case):
    """An end is linear in two sums, by whose finite differences the noise is multiplied."""
    kind, interval, means = CASES[case]
    query, sigma, quantile, n, step = kind(0.0, 1.0, 5.0), 1e-5, 1.96, 10**15, 1e-4
    found, exact = (interval(query, np.array(means), scale, n, quantile) for scale in (sigma, 0.0))
    for end in ("low", "high"):
        slopes = []
        for place in range(2):
            away = step * np.eye(len(means))[place]
            up, down = (interval(query, means + move, 0.0, n, quantile) for move in (away, -away))
            slopes.append((getattr(up, end) - getattr(down, end)) / (2.0 * step))
        width = abs(getattr(found, end) - getattr(exact, end))
        assert width == pytest.approx(quantile * sigma * np.linalg.norm(slopes), rel=1e-3)


@pytest.mark.parametrize("case", CASES)
def test_squares_that_noise_made_small_make_no_interval_narrower(case):
    kind, interval, means = CASES[case]
    query, sigma, quantile, n = kind(0.0, 1.0, 5.0), 1e-3, 1.96, 10
    exact, low = interval(query, np.array(means), 0.0, n, quantile), np.array(means)
    low[slice(1, 2) if case == "covered" else slice(2, 4)] -= quantile * sigma
    found = interval(query, low, sigma, n, quantile)
    assert found.low <= exact.low + 1e-12 and found.high >= exact.high - 1e-12


def test_ratios_count_as_never_clipped_only_where_none_is():
    """Ratios of 4 are cut to 3: the value is 1, and only an interval that allows for it has it."""
    played = (np.random.RandomState(0).rand(20_000) < 0.25).astype(int)
    value = private_off_policy_value(
        np.ones(20_000, dtype=int), played, np.ones(20_000), np.where(played, 0.25, 0.75),
        epsilon=1e6, delta=0.5, max_weight=3.0, least_propensity=0.25, random_state=0,
    )  # fmt: skip
    assert value.high > 0.99
