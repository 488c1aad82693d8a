"""The best of a geometric number of runs: the bound against the exact law of small mechanisms."""

import numpy as np
import pytest
from scipy.stats import norm

from skpriv import Budget
from skpriv.privacy import repeated_mu
from skpriv.privacy._accounting._conversions import gdp_delta
from skpriv.privacy._accounting._cost import repeated_epsilon


def best_of_geometric(law, mean):
    """Law of the best of J runs, outcomes in increasing order of score, by summing over J."""
    g, below = 1.0 / mean, np.concatenate([[0.0], np.cumsum(law)])
    # P(best <= y) = E F(y)^J = g F / (1 - (1 - g) F)
    return np.diff(g * below / (1.0 - (1.0 - g) * below))


def delta_at(p, q, epsilon):
    one, other = p - np.exp(epsilon) * q, q - np.exp(epsilon) * p
    return max(np.maximum(one, 0).sum(), np.maximum(other, 0).sum())


def gaussian_runs(mu, rng, order):
    """A run is one Gaussian release on a fine grid; scores rank its cells in some order."""
    edges = np.linspace(-9.0, 9.0 + mu, 4_001)
    p = np.diff(norm.cdf(edges))
    q = np.diff(norm.cdf(edges - mu))
    ranks = {
        "up": np.arange(p.size),
        "down": np.arange(p.size)[::-1],
        "random": rng.permutation(p.size),
    }[order]
    return p[ranks] / p.sum(), q[ranks] / q.sum()


@pytest.mark.parametrize("order", ["up", "down", "random"])
@pytest.mark.parametrize("mean", [1.0, 3.0, 30.0, 600.0])
@pytest.mark.parametrize("mu", [0.1, 0.4, 1.0])
def test_bound_holds_for_the_exact_law(mu, mean, order, global_random_seed):
    p, q = gaussian_runs(mu, np.random.default_rng(global_random_seed), order)
    p, q = best_of_geometric(p, mean), best_of_geometric(q, mean)
    for delta in (1e-2, 1e-4, 1e-6):
        epsilon = repeated_epsilon(mu, mean, delta)
        assert delta_at(p, q, epsilon) <= delta


def test_what_would_still_pass():
    """Two thirds of the bound are too little for a run that is one Gaussian release."""
    p, q = gaussian_runs(1.0, np.random.default_rng(0), "up")
    p, q = best_of_geometric(p, 3.0), best_of_geometric(q, 3.0)
    assert delta_at(p, q, 0.66 * repeated_epsilon(1.0, 3.0, 1e-6)) > 1e-6


def test_one_run_costs_about_a_run():
    assert repeated_epsilon(0.3, 1.0, 1e-6) >= Budget.from_mu(0.3, 1e-6).epsilon
    assert gdp_delta(repeated_epsilon(0.3, 1.0, 1e-6), 0.3) <= 1e-6


def test_mu_is_the_largest():
    mu = repeated_mu(Budget(2.0, 1e-6), 600.0)
    assert repeated_epsilon(mu, 600.0, 1e-6) <= 2.0 < repeated_epsilon(1.0001 * mu, 600.0, 1e-6)
    assert mu == pytest.approx(0.158, abs=1e-3)


def test_infinite_epsilon():
    assert repeated_mu(Budget(float("inf"), 1e-6), 10.0) == float("inf")
