"""An accountant has one currency: what is converted, what is refused, and the stopping attack."""

import math

import numpy as np
import pytest
from scipy.special import expit, ndtri, ndtri_exp

from skpriv.exceptions import BudgetExceeded
from skpriv.privacy import Budget, BudgetAccountant, Cost, charge
from skpriv.privacy._accounting._cost import gdp_delta, gdp_epsilon, pure_mu

BUDGET = Budget(1.0, 1e-6)
EPSILON, DELTA = 1.0, 1e-3  # of the attack: a delta that a simulation can see


def test_concentrated_charges_spend_a_concentrated_budget_exactly():
    with BudgetAccountant(1.0, 1e-6, currency="zcdp") as accountant:
        assert accountant.remaining.epsilon == pytest.approx(1.0, rel=1e-9)
        for _ in range(4):
            charge(Cost.from_rho(BUDGET.rho / 4), "fit")
        for cost in (Cost.from_rho(1e-6), Cost.from_mu(1e-2), Cost.from_epsilon(1e-2)):
            with pytest.raises(BudgetExceeded):
                charge(cost, "one more")
    assert accountant.spent.epsilon == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize(
    ("currency", "cost", "amount"),
    [
        ("gdp", Cost.from_mu(0.3), 0.09),
        ("gdp", Cost.from_epsilon(0.2), 4.0 * ndtri(expit(0.2)) ** 2),
        ("gdp", Cost.from_epsilon(700.0), 4.0 * ndtri_exp(-700.0) ** 2),
        ("gdp", Cost.from_range(0.2, 3), 3 * math.pi * 0.04 / 8),
        ("gdp", Cost.from_rho(0.1), math.inf),
        ("zcdp", Cost.from_mu(0.3), 0.045),
        ("zcdp", Cost.from_epsilon(0.2), 0.02),
        ("zcdp", Cost.from_range(0.2, 3), 3 * 0.04 / 8),
        ("zcdp", Cost.from_rho(0.1), 0.1),
        ("pure", Cost.from_epsilon(0.2), 0.2),
        ("pure", Cost.from_mu(1e-3), math.inf),
        ("pure", Cost.from_range(1e-3), math.inf),
        ("pure", Cost.from_rho(1e-3), math.inf),
    ],
)
def test_amounts(currency, cost, amount):
    assert cost.amount(currency) == pytest.approx(amount, rel=1e-6)
    assert (cost + cost).amount(currency) == pytest.approx(2 * amount, rel=1e-6)


@pytest.mark.parametrize("epsilon", [9e-4, 1e-2, 0.1, 1.0, 3.0, 10.0])
def test_a_pure_mechanism_is_gaussian_and_no_less(epsilon):
    """Randomised response, whose trade-off curve has the corner that must be dominated."""
    mu, p = pure_mu(epsilon), expit(epsilon)
    assert ndtri(p) - ndtri(1.0 - p) <= mu <= (ndtri(p) - ndtri(1.0 - p)) * (1 + 1e-6)
    for other in (0.0, 0.3 * epsilon, 0.9 * epsilon):  # the hockey-stick divergence, in full
        exact = max(0.0, p - math.exp(other) * (1.0 - p))
        assert exact <= gdp_delta(other, mu) + 1e-15
    assert ndtri(p) - ndtri(1.0 - p) > mu / 2 * 1.9  # halving it would be caught


@pytest.mark.parametrize("eta", [0.01, 0.3, 1.0, 4.0, 12.0])
def test_a_selection_is_gaussian_wherever_its_range_lies(eta):
    start = np.linspace(-eta - 30.0, 30.0, 20001)  # logit(q); logit(p) is eta more
    needed = ndtri_exp(-np.logaddexp(0.0, -start - eta)) - ndtri_exp(-np.logaddexp(0.0, -start))
    claimed = math.sqrt(Cost.from_range(eta).amount("gdp"))
    assert needed.max() <= claimed * (1 + 1e-12)
    assert needed.max() == pytest.approx(pure_mu(eta / 2), rel=1e-5)  # the middle is the worst
    if eta < 0.5:
        assert needed.max() >= 0.99 * claimed


def test_exponential_mechanisms_are_dominated():
    """Random scores of sensitivity 1, selected by e^(eta s / 2): their pairs and no formula."""
    rng, eta = np.random.RandomState(0), 0.8
    mu = math.sqrt(Cost.from_range(eta).amount("gdp"))
    worst = 0.0
    for _ in range(2000):
        scores = rng.normal(size=(2, rng.randint(2, 6))) * 3.0
        scores[1] = scores[0] + rng.choice([-1.0, 1.0], size=scores.shape[1])
        p, q = np.exp(eta * scores / 2.0) / np.exp(eta * scores / 2.0).sum(axis=1, keepdims=True)
        for epsilon in (0.0, 0.1, 0.3):
            divergence = np.maximum(p - math.exp(epsilon) * q, 0.0).sum()
            worst = max(worst, divergence / gdp_delta(epsilon, mu))
    assert 0.95 <= worst <= 1.0


def test_what_cannot_be_converted_is_refused_and_says_so():
    with BudgetAccountant(5.0, 1e-6) as gdp, pytest.raises(BudgetExceeded, match="use 'zcdp'"):
        charge(Cost.from_rho(1e-4), "unknown")
    with BudgetAccountant(5.0, 1e-6, currency="pure") as pure:
        charge(Cost.from_epsilon(5.0), "all of it")
        with pytest.raises(BudgetExceeded, match="no cost.*currency='pure'"):
            charge(Cost.from_mu(1e-4), "Gaussian")
    assert gdp.charges == []
    assert pure.spent == Budget(5.0)
    with pytest.raises(ValueError, match="currency='dollar' must be"):
        BudgetAccountant(1.0, currency="dollar")


def test_without_delta_there_is_only_the_pure_currency():
    assert (
        BudgetAccountant(1.0).currency == "pure" and BudgetAccountant(1.0, 1e-6).currency == "gdp"
    )


def test_epsilon_delta_charges_are_paid_from_what_was_set_aside():
    shuffle = Cost.from_budget(Budget(0.5, 1e-6))
    with BudgetAccountant(2.0, 4e-6) as none_aside:
        with pytest.raises(BudgetExceeded, match="set_aside"):
            charge(shuffle, "shuffle")
    assert none_aside.charges == []
    with BudgetAccountant(2.0, 4e-6, set_aside=(1.0, 2e-6)) as accountant:
        charge(Cost.from_mu(Budget(1.0, 2e-6).mu), "the main part")
        with pytest.raises(BudgetExceeded):
            charge(Cost.from_mu(0.01), "which is spent")
        charge(shuffle, "first")
        charge(shuffle, "second")
        with pytest.raises(BudgetExceeded, match="set_aside"):
            charge(shuffle, "third")
    assert accountant.spent.epsilon == pytest.approx(2.0)
    assert accountant.spent.delta == pytest.approx(4e-6)
    assert accountant.remaining == Budget(0.0)
    for bad in ((3.0, 1e-6), (1.0, 1e-5), (math.inf, 0.0)):
        with pytest.raises(ValueError, match="set_aside"):
            BudgetAccountant(2.0, 4e-6, set_aside=bad)


def test_the_dearest_part_is_told_in_the_currency():
    with BudgetAccountant(3.0, 1e-6) as accountant:
        with accountant.part("north", partition="sites"):
            charge(Cost.from_mu(0.3), "Gaussian")
        with accountant.part("south", partition="sites"):
            charge(Cost.from_epsilon(0.1), "pure")
    assert accountant.spent == Budget.from_mu(0.3, 1e-6)


def _largest(accepts, high):
    low = 0.0
    for _ in range(16):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if accepts(middle) else (low, middle)
    return low


def _delta_of_the_attack(rest, mus):
    """True delta of Gaussian releases up to a stopping time, and the rest in one pure charge.

    The realised loss is a random walk with mean mu^2 / 2 and variance mu^2; it stops when it
    exceeds what the releases so far would be charged alone, which is when a loss is at hand.
    """
    rng, n = np.random.RandomState(0), 300_000
    loss, done, before = np.zeros(n), np.zeros(n, dtype=bool), 0.0
    for mu, left in zip(mus, rest, strict=True):
        step = mu**2 - before
        loss = np.where(done, loss, loss + step / 2.0 + math.sqrt(step) * rng.normal(size=n))
        before = mu**2
        stop = ~done & (loss > gdp_epsilon(mu, DELTA))
        answer = np.where(rng.uniform(size=n) < expit(left), left, -left)
        loss, done = np.where(stop, loss + answer, loss), done | stop
    excess = np.maximum(-np.expm1(np.minimum(0.0, EPSILON - loss)), 0.0)
    return excess.mean(), excess.std() / math.sqrt(n)


@pytest.mark.parametrize("currency", ["gdp", "zcdp"])
def test_the_stopping_attack_gains_nothing(currency):
    whole = Budget(EPSILON, DELTA)
    limit = whole.mu if currency == "gdp" else math.sqrt(2.0 * whole.rho)
    mus = [limit * 0.7**k for k in range(8, -1, -1)]
    mixed, accepted = [], []
    for mu in mus:
        gaussian = Cost.from_mu(mu)
        mixed.append(_largest(lambda e, g=gaussian: (g + Cost.from_epsilon(e)).fits(whole), 1.0))
        with BudgetAccountant(EPSILON, DELTA, currency=currency) as accountant:
            charge(gaussian, "so far")

            def accepts(epsilon, accountant=accountant):
                with accountant.ledger.transaction() as held:
                    try:
                        held.check(accountant._limit, "rest", Cost.from_epsilon(epsilon), (), "")
                    except BudgetExceeded:
                        return False
                return True

            accepted.append(_largest(accepts, 1.0))
    delta, error = _delta_of_the_attack(accepted, mus)
    assert delta <= DELTA + 4 * error
    if currency == "gdp":  # the sum that mixes currencies, sound for fixed amounts, is broken
        delta, error = _delta_of_the_attack(mixed, mus)
        assert delta - 4 * error > 2.5 * DELTA
