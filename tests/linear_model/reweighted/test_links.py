"""Links: increasing, with a true inverse and true slope bounds."""

import numpy as np
import pytest
from registry.estimators import reweighted

from skpriv.linear_model import Link, ReweightedRegressor
from skpriv.linear_model._reweighted import LINKS

GRID = np.linspace(-3.0, 3.0, 2001)
every_link = pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)


class Arctan(Link):
    """The mean is (2 / pi) arctan(t)."""

    def mean(self, linear):
        return 2.0 / np.pi * np.arctan(linear)

    def slope_bounds(self, bound):
        return 2.0 / np.pi / (1.0 + bound**2), 2.0 / np.pi


@every_link
@pytest.mark.parametrize("bound", [0.5, 1.0, 3.0])
def test_slopes_reach_their_bounds_and_do_not_pass_them(link, bound):
    inside = GRID[np.abs(GRID) <= bound]
    slopes = np.diff(link.mean(inside)) / np.diff(inside)
    low, high = link.slope_bounds(bound)
    assert low * (1 - 1e-9) <= slopes.min() <= low * 1.01
    assert high * 0.99 <= slopes.max() <= high * (1 + 1e-9)


@every_link
def test_links_are_odd(link):
    # The sensitivity of the gradient relies on it.
    np.testing.assert_array_equal(link.mean(-GRID), -link.mean(GRID))


def test_a_link_of_ones_own(global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    X = rng.uniform(-0.7, 0.7, size=(40_000, 2))
    mean = Arctan().mean(X @ [0.7, -0.7])
    y = np.where(rng.uniform(-1.0, 1.0, size=len(X)) < mean, 1.0, -1.0)
    settings = {"solver": "sgd", "fit_intercept": False, "random_state": global_random_seed}
    settings |= {
        "data_norm": 1.0,
        "bounds_y": (-1, 1),
        "coef_norm": 1.0,
    }  # which the certificate assumes
    est = ReweightedRegressor(epsilon=2.0, link=Arctan(), **settings).fit(X, y)
    assert np.abs(est.predict(X) - mean).mean() < 0.03
    low, high = est.confidence_interval(X, 0.9)
    assert ((low <= mean) & (mean <= high)).all()
    assert (high - low).mean() < 0.5


def test_moments_refuse_a_nonlinear_link_before_any_charge():
    with pytest.raises(ValueError, match="needs solver='sgd'"):
        reweighted(link="logit", solver="moments").fit(np.zeros((5, 1)), np.zeros(5))


def test_a_nonlinear_link_works_with_the_defaults():
    rng = np.random.RandomState(0)
    X, y = rng.uniform(-0.5, 0.5, size=(5000, 2)), rng.choice([-1.0, 1.0], size=5000)
    found, other = (
        reweighted(link="logit", random_state=0, **settings).fit(X, y)
        for settings in ({}, {"solver": "sgd"})
    )
    np.testing.assert_array_equal(found.predict(X), other.predict(X))
    found.confidence_interval(X)
