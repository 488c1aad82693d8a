"""The private sorter: every step of its proof on enumerated mechanisms, every number by quadrature.

The lines of the proof are those of docs/mathematics/shuffle.md.
"""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from skpriv import Budget
from skpriv.privacy import _amplification as _sorter
from skpriv.privacy._amplification import amplified
from skpriv.privacy._accounting._cost import gdp_delta


def normal_mean(function, low=-np.inf, high=np.inf):
    """Mean of a function of a standard normal variable over an interval."""
    edges = np.clip(np.linspace(-38.0, 38.0, 39), low, high)
    value = 0.0
    for start, stop in itertools.pairwise(np.unique(edges)):
        value += integrate.quad(
            lambda z: function(z) * math.exp(-z * z / 2.0), start, stop, epsabs=0.0, limit=200
        )[0]
    return value / math.sqrt(2.0 * math.pi)


# -- Lemma 1, the density of the sorted reports, and Lemma 2 -------------------------------------


def sorter_chain(laws, h, boost, cap):
    """Delta of the shuffle, of the sorted reports, and the bound of the latter by slots."""
    a, b, others = laws[0], laws[1], laws[2:]
    n, before, after, sorted_delta, slots = len(others) + 1, {}, {}, 0.0, 0.0
    swapped = [{}, {}]  # the sorted reports by their definition
    for y in itertools.product(range(len(h)), repeat=n):
        rest = math.prod(law[i] for law, i in zip(others, y[1:], strict=True))
        key = tuple(sorted(y))
        before[key] = before.get(key, 0.0) + a[y[0]] * rest
        after[key] = after.get(key, 0.0) + b[y[0]] * rest
        own = np.array([min(h[i] / law[i], cap) for law, i in zip(others, y[1:], strict=True)])
        first = np.array([h[y[0]] / law[y[0]] for law in others])
        total = 1.0 + own.sum()
        for law, world in zip((a, b), swapped, strict=True):
            world[y] = world.get(y, 0.0) + law[y[0]] * rest / total
            for j in range(1, n):
                z = list(y)
                z[0], z[j] = z[j], z[0]
                z = tuple(z)
                world[z] = world.get(z, 0.0) + law[y[0]] * rest * own[j - 1] / total
        weights = np.minimum(1.0, cap / first)
        others_total = total - own + np.minimum(first, cap)
        gain = (b[y[0]] - boost * a[y[0]]) / h[y[0]]
        gains = np.array(
            [(b[i] - boost * a[i]) / law[i] for law, i in zip(others, y[1:], strict=True)]
        )
        reference = h[y[0]] * rest
        sorted_delta += reference * max(0.0, gain / total + (weights * gains / others_total).sum())
        low, high = np.maximum(gains, 0.0), np.maximum(-gains, 0.0)
        kept = weights / (1.0 + np.minimum(first, cap) / total)
        bracket = low / (1.0 - own / total) - kept * high
        slots += reference / total * max(0.0, gain + bracket.sum())
    shuffle = sum(max(0.0, after[key] - boost * before[key]) for key in after)
    direct = sum(max(0.0, swapped[1][y] - boost * swapped[0][y]) for y in swapped[1])
    assert direct == pytest.approx(sorted_delta, abs=1e-12)
    return shuffle, sorted_delta, slots


@pytest.mark.parametrize("seed", range(4))
def test_sorting_shows_more_than_shuffling_and_slots_bound_it(seed):
    rng = np.random.RandomState(seed)
    largest = np.zeros(2)
    for _ in range(120):
        n, size = rng.randint(2, 5), rng.randint(2, 4)
        laws = rng.dirichlet(np.full(size, rng.choice([0.5, 2.0])), size=n + 1) + 0.02
        if rng.rand() < 0.3:
            laws[2:] = laws[rng.randint(0, 2, size=n - 1)]
        laws /= laws.sum(axis=1, keepdims=True)
        h = (
            laws[rng.randint(n + 1)]
            if rng.rand() < 0.5
            else rng.dirichlet(np.ones(size)) * 0.9 + (0.1 / size)
        )
        shuffle, ordered, slots = sorter_chain(
            laws, h, math.exp(rng.uniform(0.0, 1.5)), 1.0 + rng.exponential(2.0)
        )
        assert shuffle <= ordered + 1e-12 and ordered <= slots + 1e-12
        if slots > 1e-6:
            largest = np.maximum(largest, [shuffle / ordered, ordered / slots])
    assert largest.min() > 0.9  # an error of 10% in either would show


def test_the_worst_others_in_convex_order():
    rng, largest = np.random.RandomState(0), 0.0
    for _ in range(300):
        laws = rng.dirichlet(np.full(3, 1.0), size=3) + 0.01
        laws /= laws.sum(axis=1, keepdims=True)
        a, b, x = laws
        boost = math.exp(rng.uniform(0.0, 1.5))

        def profile(t, laws=laws):
            return max(np.maximum(p - t * q, 0.0).sum() for p, q in itertools.permutations(laws, 2))

        for t in np.linspace(-5.0, 5.0, 11):
            left = np.maximum(b - boost * a - t * x, 0.0).sum()
            right = profile(boost + t) if t >= 0.0 else (1.0 - t) * profile(boost / (1.0 - t))
            assert left <= right + 1e-12
            largest = max(largest, left / right if right > 1e-9 else 0.0)
    assert largest > 0.95


# -- the numbers of the theorem ------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 10, 100])
def test_a_ball_round_every_set(k):
    # The regular simplex with edges of length 1 attains Jung's bound: its corners / sqrt(2) in
    # k + 1 dimensions lie that far from their mean.
    corners = np.eye(k + 1) / math.sqrt(2.0)
    radius = np.linalg.norm(corners[0] - corners.mean(axis=0))
    assert radius <= _sorter.reach_of(k) <= radius * (1.0 + 1e-9) <= _sorter.reach_of()


@pytest.mark.parametrize("reach, cap", [(0.3, 1.1), (0.9, 3.0), (1.6, 20.0), (2.5, 1e3)])
def test_weights(reach, cap):
    def weight(z):
        return min(math.exp(reach * z - reach**2 / 2.0), cap)

    mean, square = _sorter.weight_moments(reach, cap)
    exact = normal_mean(weight), normal_mean(lambda z: weight(z) ** 2)
    assert exact[0] * (1.0 - 1e-8) <= mean <= exact[0] * (1.0 + 1e-8)
    assert exact[1] * (1.0 - 1e-8) <= square <= exact[1] * (1.0 + 1e-8)


SETTINGS = [(1.0, 1.5, 1e4, 0.02, 2e-3), (0.2, 0.8, 100.0, 0.3, 0.05), (4.0, 2.5, 1e5, 1e-3, 2e-4)]


def exact_moments(tilt, epsilon, mu, cut, loss):
    """E exp(lambda X^+) - 1 and E exp(-lambda X^-) - 1 by quadrature."""
    boost = math.exp(epsilon)

    def ratio(z):
        return math.exp(min(600.0, mu * z - mu**2 / 2.0))

    def plus(z):
        return math.expm1(tilt * min(max(ratio(z) - boost, 0.0), cut) / (1.0 - loss))

    def minus(z):
        return math.expm1(tilt * min(1.0 - boost * ratio(z), 0.0))

    last = (math.log(boost + cut) + mu**2 / 2.0) / mu
    first = epsilon / mu + mu / 2.0
    positive = normal_mean(plus, first, last) + stats.norm.sf(last) * plus(last)
    return positive, normal_mean(minus, mu / 2.0 - epsilon / mu)


@pytest.mark.parametrize("epsilon, mu, cut, loss, tilt", SETTINGS)
def test_tilted_moments_lie_just_above(epsilon, mu, cut, loss, tilt):
    exact = exact_moments(tilt, epsilon, mu, cut, loss)
    for value, upper in zip(
        exact, _sorter.tilted_moments(tilt, epsilon, mu, cut, loss), strict=True
    ):
        assert value <= upper + 1e-12 * abs(value)
        assert upper == pytest.approx(value, rel=5e-3)


def test_the_worst_report_has_the_mean_of_the_profile():
    # E G* = 1 - E: to first order in the tilt, both parts together.
    plus, minus = _sorter.tilted_moments(1e-9, 0.7, 1.3, 1e6, 0.0)
    assert (plus + minus) / 1e-9 == pytest.approx(1.0 - math.exp(0.7), rel=1e-4)
    assert plus / 1e-9 == pytest.approx(gdp_delta(0.7, 1.3), rel=1e-3)


def exact_slot_mean(n, plus, minus, reach, cap, rest):
    def power(z):
        u = math.exp(reach * z + reach**2 / 2.0)
        hidden = min(1.0, cap / u) / (1.0 + min(max(u, 1.0), cap) / rest)
        return math.exp((n - 1) * math.log1p(plus + minus * hidden))

    return math.log(normal_mean(power))


@pytest.mark.parametrize(
    "n, plus, minus, reach, cap, rest",
    [(1000, 2e-3, -1.5e-2, 0.9, 10.0, 900.0), (10**5, 1e-3, -1.1e-3, 1.5, 2e3, 9e4),
     (50, 0.01, -0.3, 0.4, 1.5, 30.0), (10**7, 8e-5, -8.1e-5, 0.35, 1e6, 8e6)],
)  # fmt: skip
def test_the_first_slot_lies_just_above(n, plus, minus, reach, cap, rest):
    exact = exact_slot_mean(n, plus, minus, reach, cap, rest)
    upper = _sorter.log_slot_mean(n, plus, minus, reach, cap, rest)
    assert exact - 1e-7 <= upper <= exact + 0.2


@pytest.mark.parametrize("epsilon, n, mu", [(0.5, 10**3, 1.1), (4.0, 10**4, 2)])
def test_the_bound_is_the_theorem(epsilon, n, mu):
    # Written out once more, from docs/mathematics/shuffle.md, with quadrature for sums: every
    # number counts, as each of the four terms is made the largest in turn.
    reach = math.sqrt(0.5)
    numbers = _sorter._table()([math.log(epsilon), math.log(n), -math.log(1e-6)])[0].tolist()
    start = _sorter.Point(*numbers[1:])
    for change in ({}, {"short": 8.0}, {"slot": 0.3}, {"cut": start.cut - 1.5}):
        point = start._replace(**change)
        got = _sorter.log_sorter_delta(epsilon, mu, n, reach, point)
        boost, A, m = math.exp(epsilon), reach * mu, n - 1
        lam = math.exp(point.tilt) / (m * (boost - 1.0))
        T, U = math.exp(point.cut) * m * (boost - 1.0), 1.0 + math.exp(point.cap)
        g = math.exp(A * point.slot + A**2 / 2.0)
        mean = normal_mean(lambda z: min(math.exp(A * z - A**2 / 2), U))  # noqa: B023
        square = normal_mean(lambda z: min(math.exp(A * z - A**2 / 2), U) ** 2)  # noqa: B023
        t0 = m * mean - math.sqrt(2.0 * point.short * square * m) - U + 1.0
        eta = U / t0
        plus, minus = exact_moments(lam, epsilon, mu, T, eta)
        main = lam * g - 1.0 + exact_slot_mean(n, plus, minus, A, U, t0)
        exact = (
            math.exp(-point.short)
            + gdp_delta(math.log(g), A) / t0
            + m * gdp_delta(math.log(boost + T), mu) / (t0 * (1.0 - eta))
            + math.exp(main) / (lam * t0)
        )
        assert math.log(exact) <= got <= math.log(exact) + 0.1
        if not change:
            assert got < math.log(1e-3)


# -- against the exact delta ---------------------------------------------------------------------


def exact_delta(epsilon, mu, n, log_size=18):
    """Delta if all other records equal the first one: E(sum of n ratios - n E)^+ / n, by FFT.

    The ratios are put on a grid such that their means stay, which can only move the result up, by
    less than 1%.
    """
    boost, size = math.exp(epsilon), 1 << log_size
    step = n * (2.2 * boost + 4.0) / size
    grid = step * np.arange(size + 1)
    with np.errstate(divide="ignore"):
        log = np.log(grid)
    excess = stats.norm.cdf(mu / 2.0 - log / mu) - grid * stats.norm.cdf(-mu / 2.0 - log / mu)
    excess[0] = 1.0
    slopes = np.diff(excess) / step
    law = np.maximum(np.concatenate([[1.0 + slopes[0]], np.diff(slopes)]), 0.0)
    total = np.fft.irfft(np.fft.rfft(law, 2 * size) ** n, 2 * size)
    values = step * np.arange(2 * size)
    beyond = values > n * boost
    return ((values - n * boost) * total)[beyond][:size].sum() / n


@pytest.mark.parametrize(
    "epsilon, n, least",
    [pytest.param(0.5, 10**4, 0.25, marks=pytest.mark.slow), (1.0, 10**3, 0.1),
     pytest.param(1.0, 10**4, 0.35, marks=pytest.mark.slow), (1.0, 10**5, 0.55),
     (4.0, 10**5, 0.2)],
)  # fmt: skip
def test_below_the_claim_if_all_others_are_at_one_end(epsilon, n, least):
    # Up to .65 of the claim: a bound on delta that is too small by a factor of 1.6 shows.
    mu = amplified(Budget(epsilon, 1e-6), n).mu
    exact = exact_delta(epsilon, mu, n)
    assert least * 1e-6 <= exact <= 1e-6
    # Nothing can be proved at a mu that is 1/6 larger.
    assert n < 10**4 or exact_delta(epsilon, mu * 7 / 6, n) > 1e-6


def test_a_factor_of_1_6_in_delta_would_show():
    mu = amplified(Budget(1.0, 1e-6), 10**6).mu
    assert 1e-6 / 1.6 <= exact_delta(1.0, mu, 10**6, 19) <= 1e-6


@pytest.mark.parametrize("delta", [1e-3, 1e-2])
def test_below_the_claim_for_few_users(delta):
    mu = amplified(Budget(0.5, delta), 100).mu
    assert exact_delta(0.5, mu, 100, 16) <= delta


# -- the search ----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon, n", [(0.5, 100), (1.0, 10**4), (10.0, 10**6)])
def test_what_is_returned_was_proved(epsilon, n, monkeypatch):
    proved, reach = [], math.sqrt(0.5)
    bound = _sorter.log_sorter_delta

    def spy(epsilon, mu, n, reach, point):
        value = bound(epsilon, mu, n, reach, point)
        if value <= math.log(1e-6):
            proved.append(mu)
        return value

    monkeypatch.setattr(_sorter, "log_sorter_delta", spy)
    mu = _sorter.sorter_mu(Budget(epsilon, 1e-6), n, reach)
    assert mu > Budget(epsilon, 1e-6).mu and mu in proved


def test_nothing_proved_is_nothing_returned():
    # A first prototype returned the lower end of its bisection here, of which the bound is e^11.
    for epsilon, n in [(0.2, 10), (1.0, 1), (1.0, 2), (1.0, 10)]:
        assert _sorter.sorter_mu(Budget(epsilon, 1e-6), n, math.sqrt(0.5)) == 0.0


def test_hopeless_points_prove_nothing():
    for point in [(0, 50, 0, 20, 1), (0, 500, 0, 20, 1), (0, 1, 9, 20, 1), (0, 1, 0, -1, 1)]:
        value = _sorter.log_sorter_delta(1.0, 1.0, 1000, 0.7, _sorter.Point(*point))
        assert value == 0.0


def test_a_bad_table_costs_no_privacy(monkeypatch):
    """What it says is where the search begins; what is returned was proved at other numbers."""
    budget, n = Budget(1.0, 1e-6), 10_000
    right = _sorter.sorter_mu(budget, n, 0.7)
    for wrong in ([2.0, 0.0, 3.0, 0.0, 18.0, 3.0], [-3.0, 5.0, 9.0, 1.0, 18.0, 3.0]):
        monkeypatch.setattr(_sorter, "_table", lambda wrong=wrong: lambda _: np.array([wrong]))
        mu = _sorter.sorter_mu(budget, n, 0.7)
        assert 0.0 <= mu < 1.001 * right  # nothing is proved, or a worse point


def test_the_table_is_met_at_its_points_and_goes_on_beyond():
    table = _sorter._table()
    known = table([table.grid[0][5], table.grid[1][4], table.grid[2][1]])[0]
    assert known.tolist() == pytest.approx(table.values[5, 4, 1].tolist(), abs=1e-9)
    for epsilon, n, delta in [(0.1, 50, 1e-5), (0.5, 1000, 1e-3), (1.0, 10**4, 1e-14)]:
        mu = _sorter.sorter_mu(Budget(epsilon, delta), n, math.sqrt(0.5))
        assert mu > 3.0 * Budget(epsilon, delta).mu


@pytest.mark.parametrize("epsilon, n", [(1.0, 10**3), (0.5, 10**5)])
def test_the_search_is_near_the_best(epsilon, n):
    # A search from elsewhere, with more steps, must not gain more than half a percent.
    budget, reach = Budget(epsilon, 1e-6), math.sqrt(0.5)
    mu = _sorter.sorter_mu(budget, n, reach)
    found = optimize.minimize(
        lambda x: _sorter.log_sorter_delta(epsilon, 1.005 * mu, n, reach, _sorter.Point(*x)),
        [math.log(14.0), 2.5 * mu, -0.5, 18.0, 3.0],
        method="Nelder-Mead",
        options={"maxfev": 800},
    )
    assert found.fun > math.log(1e-6)


# -- What is allowed for rounding -----------------------------------------------------------------


def exact_tail(x):
    """P(Z > x) of a normal variable in 40 digits, by Laplace's continued fraction of x >= 15."""
    with localcontext(prec=40):
        x = mills = Decimal(x)
        for k in range(200, 0, -1):
            mills = x + k / mills
        root = Decimal("6.283185307179586476925286766559005768394").sqrt()
        return (-x * x / 2).exp() / root / mills


def test_tails_have_the_error_that_is_allowed_up_to_the_smallest_double():
    """Half of it is that of a tail: the mass of a cell is a difference of two."""
    places = np.linspace(15.0, 37.5, 4000)
    exact = [exact_tail(float(x)) for x in places]
    pairs = zip(special.ndtr(-places), exact, strict=True)
    errors = [abs(float(Decimal(float(found)) / true - 1)) for found, true in pairs]
    logs = zip(special.log_ndtr(-places), exact, strict=True)
    errors += [abs(float(Decimal(float(found)) - true.ln())) for found, true in logs]
    each = (6.0 * places**2 / 2.0 + 20.0) * 2.0**-53  # of a logarithm, which has the larger one
    assert all(errors <= np.tile(each, 2)) and 0.25 < max(errors) / _sorter.RELATIVE < 0.5


def test_the_errors_of_logarithms_are_in_the_bounds(monkeypatch):
    """Each bound has the error of its products, and of its sum."""
    point = _sorter.Point(-0.5, 0.5, -1.0, 15.0, 5.0)  # its main part decides

    def bounds():
        two = _sorter.two_level_delta(1.0, 3.0, 10_000, 0.4, 1e-6)
        return _sorter.log_sorter_delta(1.0, 1.0, 100_000, 0.7, point), math.log(two)

    allowed = bounds()
    assert max(allowed) < 0.0
    monkeypatch.setattr(_sorter, "ABSOLUTE", 0.0)
    assert np.subtract(allowed, bounds()) == pytest.approx(2e-9, rel=1e-5)
