import pickle
from math import exp, inf, sqrt

import pytest
from registry.estimators import ssp

from skpriv.bandits import BanditCombiner, EpochGreedy, LinUCB, RandomPolicy
from skpriv.linear_model import IHTRegressor, LayeredRegressor, SSPRegressor
from skpriv.privacy import Budget, Cost, Guarantee, Trust

BUDGET = Budget(1.0, 1e-6)
MU = BUDGET.mu


def test_a_session_promises_what_it_was_charged(global_random_seed):
    """In each currency, whatever is left of the session, and to the last digit of the budget."""
    X = [[0.1], [0.5]] * 100
    y = [0.0, 1.0] * 100
    seed = {"random_state": global_random_seed, "bounds_y": (-1, 1)}
    sparse, seed = {**seed, "data_max": 1.0}, {**seed, "data_norm": 1.0}
    for est in (
        SSPRegressor(**seed),
        SSPRegressor(privacy="local", **seed),
        SSPRegressor(privacy="shuffle", **seed),
        IHTRegressor(n_nonzero_coefs=1, **sparse),
        LayeredRegressor(delta=0.0, privacy="local", **seed),
    ):
        guarantee = est.fit(X, y).privacy_report_.guarantee
        pure = est.privacy == "local"  # reports are indices of a codebook there
        delta = 0.0 if pure else est.delta
        assert (guarantee.epsilon, guarantee.delta) == (1.0, delta)
        assert (guarantee.model, guarantee.unit) == (est.privacy, "record")
        assert guarantee.neighbours == "replace one" and guarantee.private
        assert str(guarantee).startswith(f"(epsilon=1, delta={delta:g}) ")
        assert pickle.loads(pickle.dumps(guarantee)) == guarantee
    exact = ssp(epsilon=inf, privacy="local").fit(X, y).privacy_report_.guarantee
    assert exact == Guarantee.absent() and exact.epsilon == inf


def test_parts_add_up_to_the_whole():
    half = Guarantee("local", (Cost.from_mu(MU / sqrt(2.0)),), 1e-6)
    assert (half + half).epsilon == 1.0
    shuffled = Trust.of("shuffle", BUDGET).guarantee()
    both = half + shuffled + Trust.of("local", Budget(0.5)).guarantee()
    assert both.model == "shuffle" and both.delta == 2e-6
    assert both.epsilon == pytest.approx(1.5 + Cost.from_mu(MU / sqrt(2.0)).epsilon(1e-6))
    assert not (half + Guarantee.absent()).private
    assert half + Guarantee.perfect() == half


def test_of_disjoint_units_the_weakest_counts():
    one = Guarantee("local", (Cost.from_mu(MU),), 1e-6)
    other = Guarantee("central", (Cost.from_epsilon(2.0),))
    whole = Guarantee.weakest([one, other])
    assert (whole.epsilon, whole.delta, whole.model) == (2.0, 1e-6, "central")
    # Not the cost of one unit who paid both, which is dearer.
    assert Cost.maximum([*one.costs, *other.costs]).epsilon(1e-6) > 2.5
    assert (whole + one).epsilon == pytest.approx((other + one).epsilon)


def test_combiners_of_combiners():
    """Own reports of both, and the dearest policy of the inner one."""
    policies = [LinUCB(privacy="local", epsilon=epsilon) for epsilon in (0.5, 2.0)]
    inner = BanditCombiner(policies=policies, epsilon=1.0)
    outer = BanditCombiner(policies=[inner, RandomPolicy()], epsilon=1.0)
    # The inner policy may send codebook reports, whose epsilon adds to that of the Gaussian ones.
    own = Budget.from_mu(sqrt(2.0) * MU, 1e-6).epsilon
    assert outer.guarantee.epsilon == pytest.approx(own + 2.0)
    assert outer.guarantee.model == "local"
    epochs = EpochGreedy(oracle=ssp(epsilon=3.0, delta=1e-5))
    outer = BanditCombiner(policies=[inner, epochs], epsilon=1.0)
    assert outer.guarantee.model == "central" and outer.guarantee.delta == pytest.approx(1.1e-5)
    assert outer.guarantee.epsilon == pytest.approx(4.0)
    free = EpochGreedy(oracle=ssp(privacy="none"))
    assert not BanditCombiner(policies=[inner, free]).guarantee.private


@pytest.mark.parametrize("visits", [2, 3, 10])
def test_records_of_one_unit_are_a_group(visits):
    """(epsilon, delta) of one record is (m epsilon, m exp((m - 1) epsilon) delta) of m."""
    one = Trust.of("shuffle", Budget(0.5, 1e-9)).guarantee("record")
    group = one.visited(visits)
    delta = visits * exp((visits - 1) * 0.5) * 1e-9
    assert group.epsilon == pytest.approx(visits * 0.5, rel=1e-12)
    assert group.delta == pytest.approx(delta, rel=1e-9)
    cost = Cost.from_mu(0.3) + Cost.from_rho(0.1) + Cost.from_range(0.2) + Cost.from_epsilon(0.4)
    (moved,) = Guarantee("central", (cost,), 1e-6).visited(visits).costs
    squares = [visits**2] * 3 + [visits] + [visits**2] * 2 + [1, 1]  # only epsilon grows like m
    assert moved.as_tuple() == pytest.approx([a * b for a, b in zip(squares, cost.as_tuple())])
    (apart,) = Guarantee("local", (cost,), 1e-6).visited(visits).costs
    assert apart.as_tuple() == pytest.approx([visits * part for part in cost.as_tuple()])
