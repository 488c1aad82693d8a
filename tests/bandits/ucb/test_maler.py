from math import log, sqrt

import numpy as np
import pytest

from skpriv.bandits._ucb._online_lin_ucb import GradientDescent, Maler, to_ball

RADIUS, BOUND, T, D = 1.0, 1.0, 2000, 4


def unit(rng):
    g = rng.normal(size=D)
    return g / np.linalg.norm(g)


def adversary(kind, rng):
    """Gradient of norm at most BOUND at a point, as a function of round and point."""
    target = 0.5 * unit(rng)
    drift = unit(rng)
    return {
        "linear": lambda t, x: 0.6 * drift + 0.4 * unit(rng),
        "switching": lambda t, x: drift if (t // 50) % 2 else -drift,
        "strongly convex": lambda t, x: to_ball(0.5 * (x - target) + 0.2 * unit(rng), BOUND),
        "away": lambda t, x: x / max(np.linalg.norm(x), 1e-9),
    }[kind]


def run(learner, gradient):
    points, gradients = [], []
    for t in range(T):
        points.append(learner.point.copy())
        gradients.append(gradient(t, learner.point))
        learner.step(gradients[-1])
    return np.array(points), np.array(gradients)


KINDS = ["linear", "switching", "strongly convex", "away"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make, factor", [(Maler, 2.0 * log(3.0) + 2.0), (GradientDescent, 1.5)])
def test_regret_of_convex_losses(kind, make, factor, global_random_seed):
    gradient = adversary(kind, np.random.RandomState(global_random_seed))
    points, gradients = run(make(D, RADIUS, BOUND, T), gradient)
    best = -RADIUS * np.linalg.norm(gradients.sum(axis=0))
    regret = np.einsum("ij,ij->", points, gradients) - best
    assert np.linalg.norm(points, axis=1).max() <= RADIUS * (1.0 + 1e-9)
    assert regret <= factor * 2.0 * RADIUS * BOUND * sqrt(T)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_second_order_regret(kind, global_random_seed):
    """Sum <g, x_t - x> <= rate V + (log(1 / prior) + 1 + log T) / rate, for every rate and x."""
    rng = np.random.RandomState(global_random_seed)
    maler = Maler(D, RADIUS, BOUND, T)
    priors = maler._log_weights[1 : 1 + len(maler.rates)].copy()
    points, gradients = run(maler, adversary(kind, rng))
    for _ in range(20):
        x = rng.uniform() * unit(rng)
        regret = np.einsum("ij,ij->", points - x, gradients)
        spread = BOUND**2 * ((points - x) ** 2).sum()
        bounds = maler.rates * spread + (1.0 + log(T) - priors) / maler.rates
        assert regret <= bounds.min()


def test_weights_are_a_distribution_and_adapt():
    gradient = adversary("strongly convex", np.random.RandomState(0))
    maler = Maler(D, RADIUS, BOUND, T)
    assert np.exp(maler._log_weights).sum() == pytest.approx(1.0, abs=0.02)
    average = np.mean(run(maler, gradient)[0][T // 2 :], axis=0)
    assert np.exp(maler._log_weights).sum() == pytest.approx(1.0)
    assert np.linalg.norm(average - 0.5 * unit(np.random.RandomState(0))) < 0.1
