"""Public weights at which a policy starts: played at once, free of charge, and left if wrong."""

from dataclasses import replace
from math import hypot, sqrt

import numpy as np
import pytest
from registry.refusals import uncharged
from registry.worlds import linear_rounds, play_signs

from skpriv._estimation._moments import NormalEquations
from skpriv.bandits import LinSquareCB, LinUCB, load
from skpriv.bandits._ucb._sums import about

BOTH = pytest.mark.parametrize("kind", [LinUCB, LinSquareCB])
CONTEXTS, MEANS = linear_rounds(400)
PUBLIC = LinUCB(privacy="none", random_state=0)
_ = play_signs(PUBLIC, CONTEXTS, MEANS, seed=1)
START = np.append(PUBLIC.coef_, PUBLIC.intercept_)


@BOTH
def test_it_is_played_from_the_first_round_on(kind):
    policy = kind(epsilon=0.3, start=START, random_state=0)
    chances = policy.probabilities(CONTEXTS)
    best = (CONTEXTS @ PUBLIC.coef_).argmax(axis=1)
    assert chances[np.arange(len(best)), best].mean() > 0.6  # 1 over the number of actions without
    np.testing.assert_array_equal(chances.argmax(axis=1), best)


@BOTH
def test_it_costs_nothing_and_helps(kind):
    """At a small budget the regret is less than half of that without it."""
    lost, charged = [], []
    for start in (None, START):
        policy = kind(epsilon=0.3, start=start, random_state=0)
        played = play_signs(policy, CONTEXTS, MEANS, seed=2)
        lost.append((MEANS.max(axis=1) - MEANS[np.arange(len(MEANS)), played]).sum())
        charged.append(policy.privacy_report_.total)
    assert lost[1] < 0.5 * lost[0]
    assert charged[0] == charged[1]


def test_a_wrong_one_is_left():
    """Without privacy, weights of the other sign are forgotten within 400 rounds."""
    wrong = LinUCB(privacy="none", start=-START, random_state=0)
    _ = play_signs(wrong, CONTEXTS, MEANS, seed=3)
    assert np.linalg.norm(wrong.coef_ - PUBLIC.coef_) < 0.3 * np.linalg.norm(PUBLIC.coef_)


def test_noise_of_the_design_counts_at_the_start():
    """Entries beside the diagonal have half of its variance; without the factor it is too much."""
    theta = np.array([0.6, 0.8])
    design = np.diag([3.0, 5.0])
    sums = design, np.ones(2), design, 1.0, 9, True
    scales = {"design_scale": 3.0, "target_scale": 2.0, "gram_scale": 3.0}
    found = about(NormalEquations(*sums, **scales), theta)
    np.testing.assert_allclose(found.target, 1.0 - design @ theta)
    assert found.target_scale == pytest.approx(hypot(2.0, 3.0 / sqrt(2.0)))
    assert found.square == 1.0  # what would be taken off is within its noise


@pytest.mark.parametrize("origin", [np.array([0.9, -1.2]), np.array([-0.3, -0.4])])
def test_noise_of_the_design_counts_once_about_any_origin(origin):
    """A flat prior has no centre, so that the posterior of the weights is that about zero.

    The noise of the design multiplies origin and difference together: were these two noises, that
    of an origin of the other sign would count five times.
    """
    policy = LinUCB(epsilon=1.0, fit_intercept=False, random_state=0)
    policy.act(CONTEXTS[:5, :, :2])
    design = np.diag([300.0, 500.0])
    scales = {"design_scale": 30.0, "target_scale": 20.0, "gram_scale": 30.0}
    equations = NormalEquations(design, np.array([200.0, 300.0]), design, 0.0, 900, True, **scales)
    expected = policy._posterior(equations, 1e6)
    policy._mean = origin
    found = policy._posterior(equations, 1e6)
    np.testing.assert_allclose(found.centre, expected.centre, rtol=1e-6)
    np.testing.assert_allclose(found.form, expected.form, rtol=1e-6)


def test_rewards_vary_about_the_start():
    """Their squares are those of residuals; with noise about three deviations are left to them."""
    rng, theta = np.random.default_rng(0), np.array([0.6, 0.8])
    X = rng.uniform(size=(50, 2))
    y = X @ theta + 0.1 * rng.normal(size=50)
    exact = {"design_scale": 0.0, "target_scale": 0.0, "gram_scale": 0.0}
    equations = NormalEquations(X.T @ X, X.T @ y, X.T @ X, y @ y, 50, True, **exact)
    residual = ((y - X @ theta) ** 2).sum()
    assert about(equations, theta).square == pytest.approx(residual)
    noisy = replace(equations, target_scale=0.5, design_scale=0.5)
    left = about(noisy, theta).square - residual
    assert 2.9 < left / hypot(2.0 * 0.5, 0.5) < 3.1


@BOTH
def test_it_is_kept_in_a_file(kind, tmp_path):
    policy = kind(epsilon=1.0, start=START, random_state=0)
    policy.act(CONTEXTS[:5])
    policy.save(tmp_path / "policy")
    again = load(tmp_path / "policy")
    np.testing.assert_array_equal(
        again.probabilities(CONTEXTS[:9]), policy.probabilities(CONTEXTS[:9])
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"start": START, "width": "certified"}, "width='asymptotic'"),
        ({"start": START[1:]}, r"start, np.append\(weights, intercept\), of shape \(3,\)"),
        ({"start": START * np.nan}, r"start, np.append\(weights, intercept\), must have finite"),
        ({"start": [np.inf, 0.0, 0.0, 0.0]}, "must have finite numbers alone"),
        ({"start": "the last one"}, "must have shape"),
    ],
)
def test_what_cannot_be_a_start_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        LinUCB(**options).act(CONTEXTS[:5])


@pytest.mark.parametrize("start, said", [
    (np.zeros(2), "must have shape"), (np.full(4, np.nan), "finite numbers"),
])  # fmt: skip
def test_a_wrong_start_is_refused_before_the_charge(start, said):
    with uncharged(said):
        LinUCB(start=start).act(np.zeros((2, 4, 3)))
