"""The certified region of running sums, and the posterior: what they need of their parts."""

from dataclasses import replace

import numpy as np
import pytest

from skpriv._estimation._intervals import operator_quantile
from skpriv._estimation._moments import PRIOR_VARIANCES, NormalEquations
from skpriv.bandits import LinUCB
from skpriv.bandits._ucb import _sums as _region
from skpriv.bandits._ucb._sums import (
    INTERCEPT_VARIANCES, mean_square, asymptotic, rewards_bound, steadied, without_blanks,
)  # fmt: skip


def test_the_metric_dominates_the_exact_design_and_the_ridge(monkeypatch):
    """W >= V + lam I wherever the noise of the design is at most its quantile."""
    rng, alpha, failure, scale, p = np.random.RandomState(0), 1.0, 0.05, 40.0, 3
    root = rng.normal(size=(p, p))
    exact = 500.0 * root @ root.T
    noise = operator_quantile(scale, p, failure / 3.0)
    design = exact - noise * np.eye(p)  # as far below as the event allows
    equations = NormalEquations(
        design=design, target=np.zeros(p), gram=design, square=1.0, n=5_000, symmetric=True,
        design_scale=scale, target_scale=1e-3, gram_scale=scale,
    )  # fmt: skip
    seen, growths, grown = [], [], _region.rewards_bound

    def smallest(values, vectors, target, metric, beta, bound):
        seen.append((vectors * metric) @ vectors.T - exact)
        seen.append(metric)

    def rewards_bound(growth, level):
        growths.append(growth)
        return grown(growth, level)

    monkeypatch.setattr(_region, "_smallest", smallest)
    monkeypatch.setattr(_region, "rewards_bound", rewards_bound)
    _region.certified(equations, alpha, 1.0, failure)
    beyond, metric = seen
    ridge = float((metric / growths[0])[0])
    assert ridge >= alpha and np.linalg.eigvalsh(beyond)[0] >= ridge * (1.0 - 1e-9)


def equations_of(design, target, square=40.0, n=200):
    return NormalEquations(
        design=design, target=target, gram=design, square=square, n=n, symmetric=True,
        design_scale=8.0, target_scale=3.0, gram_scale=8.0,
    )  # fmt: skip


def test_a_bound_of_rewards_is_that_of_the_theorem():
    assert rewards_bound(np.ones(3), 2.0) == pytest.approx(2.0)  # sqrt(2 log(1 / f))
    assert rewards_bound(np.array([np.e, 1.0]), 1.5) == pytest.approx(2.0)


def test_a_posterior_of_one_coordinate_by_hand():
    found = asymptotic(equations_of(100.0 * np.eye(1), np.array([50.0])), 1e9)  # of a flat prior
    theta = found.centre[0]
    variance = (0.2 * 100.0 + 9.0 + 64.0 * theta**2 / 2.0) / 100.0**2
    assert theta == pytest.approx(0.5, rel=1e-3)
    assert found.form[0, 0] == pytest.approx(variance, rel=1e-2)


def test_rewards_that_seem_not_to_vary_still_vary_a_little():
    """A hundredth at least: noise may have taken all of a small mean square away."""
    for square in (-5.0, 0.0, 1.0):
        exact = equations_of(100.0 * np.eye(1), np.zeros(1), square=square)
        found = asymptotic(replace(exact, design_scale=0.0, target_scale=0.0), 1e9)
        assert found.form[0, 0] == pytest.approx(0.01 / 100.0, rel=1e-3)


def test_blank_rounds_do_not_count():
    assert without_blanks(equations_of(20.0 * np.eye(2), np.zeros(2))).n == 40.0


def test_the_variance_of_rewards_about_their_noisy_mean_is_right_in_the_mean():
    """Rewards of 1 or -1 at a rate of .9 vary by .36 about .8, and by 1 about the middle.

    The noise of the mean has a variance of .04: if it were not taken off, it would be .32. Of 4000
    draws the standard error is .005.
    """
    rng, n, constant = np.random.RandomState(0), 1000, 0.5
    equations = equations_of(np.eye(2), np.zeros(2), square=1.0 * n, n=n)
    found = []
    for error in 100.0 * rng.normal(size=4000):
        target = np.array([0.0, n * constant * 0.8 + error])
        noisy = replace(equations, target=target, target_scale=100.0)
        found.append(mean_square(noisy, constant))
    assert np.mean(found) == pytest.approx(0.36, abs=0.015)
    assert mean_square(equations, 0.0) == 1.0  # rows without a constant do not tell the mean


@pytest.mark.parametrize("constant", [0.0, 0.5])
def test_a_posterior_is_that_of_its_prior_and_errors(constant, global_random_seed):
    """The rank-one changes of the prior are those of dense normal posteriors, and their mean."""
    rng = np.random.RandomState(global_random_seed)
    design = 30.0 * np.cov(rng.normal(size=(4, 40))) + 40.0 * np.eye(4)
    theta = np.array([0.5, -0.3, 0.2, 0.2])  # not so far that one variance of the intercept is sure
    equations = equations_of(design, design @ theta)
    found = asymptotic(equations, 1e-7, constant=constant)
    spread = 9.0 + 64.0 * found.centre @ found.centre / 2.0
    variance, size = 0.2, equations.n * constant
    if constant:  # about the mean, whose square is too large by the variance of its error
        variance -= max(0.0, (equations.target[-1] / size) ** 2 - (3.0 / size) ** 2)
    errors, likeliest = max(variance, 0.01) * design + spread * np.eye(4), []
    for tau in PRIOR_VARIANCES:
        likelihoods, means, covariances = [], [], []
        for own in INTERCEPT_VARIANCES / constant**2 if constant else [tau]:
            prior = np.diag([tau, tau, tau, own])
            total = design @ prior @ design + errors
            fit = equations.target @ np.linalg.solve(total, equations.target)
            likelihoods.append(np.exp(-(np.linalg.slogdet(total)[1] + fit) / 2.0))
            precision = np.linalg.inv(prior) + design @ np.linalg.solve(errors, design)
            covariances.append(np.linalg.inv(precision))
            means.append(covariances[-1] @ design @ np.linalg.solve(errors, equations.target))
        likeliest.append((sum(likelihoods), likelihoods, means, covariances))
    _, likelihoods, means, covariances = max(likeliest, key=lambda each: each[0])
    covariance = np.average(covariances, axis=0, weights=likelihoods)
    np.testing.assert_allclose(found.form, covariance, rtol=0.02, atol=0.02 * covariance.max())
    mean = np.average(means, axis=0, weights=likelihoods)
    np.testing.assert_allclose(found.centre, mean, rtol=0.02, atol=0.02)
    if constant:  # both variances take part
        assert min(likelihoods) > 0.01 * max(likelihoods)


@pytest.mark.parametrize("unequal", [0.0, 30.0, 300.0])
def test_steadied_designs_err_less_than_released_ones(unequal):
    """Whatever the design is; and where all directions are alike, most of the noise is gone.

    Of 400 draws the error of the ratio is .02 where the design is a multiple of the identity.
    """
    rng, scale, constant, size = np.random.RandomState(0), 20.0, 0.3, 5
    design = np.diag([*(200.0 + unequal * np.linspace(-0.5, 0.5, size)), 1000.0 * constant**2])
    design[-1, :size] = design[:size, -1] = unequal / 10.0
    noise = rng.normal(size=(400, size + 1, size + 1)) * scale / np.sqrt(2.0)
    noise = (noise + noise.swapaxes(1, 2)) / np.sqrt(2.0)
    noise[:, -1, -1] = 0.0  # the square of the constant is public
    before = np.square(noise).sum(axis=(1, 2)).mean()
    released = equations_of(design, np.zeros(size + 1))
    after = 0.0
    for error in noise:
        equations = replace(released, design=design + error, design_scale=scale)
        found = steadied(equations, size).design
        assert found[-1, -1] == design[-1, -1]
        np.testing.assert_array_equal(found, found.T)
        after += np.square(found - design).sum() / len(noise)
    assert after < (0.4 if unequal == 0.0 else 1.0) * before
    assert (after > 0.9 * before) == (unequal == 300.0)


@pytest.mark.parametrize("design", [np.diag([1.0, 2.0, 3.0, 4.0]), np.eye(4), np.zeros((4, 4))])
def test_exact_designs_are_steady(design):
    equations = replace(equations_of(design, np.zeros(4)), design_scale=0.0)
    for size in (1, 2, 3, 4):
        np.testing.assert_allclose(steadied(equations, size).design, design, atol=1e-15)


@pytest.mark.parametrize("named", [None, 0.85])
def test_an_intercept_is_out_of_the_width_and_not_fitted_where_it_is_named(named):
    policy = LinUCB(epsilon=5.0, bounds_y=(0, 1), reward_offset=named, random_state=0)
    contexts = np.random.RandomState(0).normal(size=(40, 3, 2)) / 3.0
    policy.update(contexts, policy.act(contexts), np.full(40, 0.85))
    region = policy._region
    assert policy._scaling.size == (3 if named is None else 2)
    assert (region.form[-1] == 0.0).all() == (named is None)
    if named is None:
        long, short = policy._scaling.row_map.parts
        assert long == pytest.approx(2.3 * short) and policy._windows.intercept == region.centre[-1]
    else:
        assert policy.intercept_ == named and policy._windows.intercept is None


def test_widths_tell_actions_apart_whose_constants_share_an_intercept():
    """An action that was hardly played has a larger width, though all of them are far from 0."""
    rng = np.random.default_rng(0)
    actions = np.repeat([0, 1, 2], [500, 5, 5])
    rng.shuffle(actions)
    contexts = np.broadcast_to(np.eye(3), (len(actions), 3, 3))
    policy = LinUCB(privacy="none", bounds_y=(0, 1), random_state=0)
    policy.update(contexts, actions, (rng.random(len(actions)) < 0.02).astype(float))
    _, widths = policy._region.bounds(policy._features(np.eye(3)))
    assert widths[1:].min() > 2.0 * widths[0]
