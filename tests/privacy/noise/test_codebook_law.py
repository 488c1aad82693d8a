"""Laws of the codebook channel against codebooks that are really drawn."""

from fractions import Fraction
from functools import cache
from math import inf, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats

from skpriv._linalg import vech
from skpriv._wire import index_weights
from skpriv.exceptions import PrivacyError
from skpriv.linear_model import ImproperSGDRegressor, ReweightedRegressor, SSPRegressor
from skpriv.privacy import (
    Codebook, CodebookNoise, Cost, LiftedReports, best_codebook, codebook, draw_index, lifted,
)  # fmt: skip
from skpriv.privacy._noise._codebook_law import (
    random_signs,
    secure_directions,
    simulated_directions,
)  # fmt: skip
from skpriv.privacy._noise._codebook_noise import _term_bounds, _term_moments

CODES = [
    Codebook(2, 1.0, 64, 17), Codebook(6, 1.0, 16, 6), Codebook(6, 4.0, 64, 6),
    Codebook(11, 0.5, 64, 17), Codebook(4, 8.0, 256, 1),
]  # fmt: skip
LEVEL = 1e-5
SECURE = 5e-7  # of draws that have no seed, and must not fail by chance


def unit_vector(size, seed):
    v = np.random.RandomState(seed).normal(size=size)
    return v / np.linalg.norm(v)


@pytest.mark.parametrize("code", CODES, ids=str)
def test_simulated_reports_have_the_law_of_real_ones(code, global_random_seed):
    n, v = 20_000, unit_vector(code.size, global_random_seed)
    vectors = np.tile(v, (n, 1))
    rng = np.random.RandomState(global_random_seed)
    real, fast = secure_directions(vectors, code), simulated_directions(vectors, code, rng)
    axes = [v, unit_vector(code.size, 7), np.eye(code.size)[-1]]
    for axis in axes:
        assert stats.ks_2samp(real @ axis, fast @ axis).pvalue > SECURE / 15
    # products, which the second moments are made of
    one, other = ((f @ axes[0]) * (f @ axes[1]) for f in (real, fast))
    assert stats.ks_2samp(one, other).pvalue > SECURE / 15
    for f in (real, fast):
        assert_allclose(np.linalg.norm(f, axis=1), 1.0, atol=1e-6)
        for order in (1, 2, 3, 4):
            powers = (f @ v) ** order
            z = (powers.mean() - code.moment(order)) / powers.std() * sqrt(n)
            assert abs(z) < stats.norm.isf(SECURE / 40)


def test_single_devices_have_the_law_too():
    code, n, v = Codebook(5, 2.0, 32, 6), 4_000, unit_vector(5, 1)
    reported = np.empty((n, 5))
    for user in range(n):
        directions = codebook(b"user %d" % user, code.count, code.size)
        reported[user] = directions[draw_index(v, directions, code.nearest, code.epsilon)]
    fast = simulated_directions(np.tile(v, (n, 1)), code, np.random.RandomState(0))
    for axis in (v, unit_vector(5, 2)):
        assert stats.ks_2samp(reported @ axis, fast @ axis).pvalue > SECURE / 2


@pytest.mark.parametrize("code", CODES, ids=str)
def test_moments_agree_with_direct_integration(code):
    # E t^k of the r-th nearest of K is an integral over its beta law: another route
    half = (code.size - 1) / 2.0
    nodes = (np.arange(2000) + 0.5) / 2000
    total = 0.0  # of the nearest; all ranks together have the mean of a direction, which is zero
    for rank in range(1, code.nearest + 1):
        below = special.betaincinv(code.count + 1.0 - rank, rank, nodes)
        total += (2.0 * special.betaincinv(half, half, below) - 1.0).mean()
    expected = code.probability * total / code.nearest
    expected -= (1.0 - code.probability) * total / (code.count - code.nearest)
    assert code.mean == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("size", [6, 21, 66])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 8.0])
def test_the_best_code_is_near_what_is_possible(size, epsilon):
    """The limit of many directions, a cap of the sphere, is optimal (Asi, Feldman, Talwar 2022)."""
    code = best_codebook(size, epsilon, "vector")
    largest = max(cap_mean(size, epsilon, height) for height in np.linspace(0.0, 0.99, 400))
    assert code.mean <= largest * (1.0 + 1e-4)
    assert (1.0 / code.mean**2 - 1.0) / (1.0 / largest**2 - 1.0) < 1.05
    for nearest in {max(1, code.nearest - 1), min(code.count // 2, code.nearest + 1)}:
        other = Codebook(size, epsilon, code.count, nearest)
        assert code.noise("vector") <= other.noise("vector")


def cap_mean(size, epsilon, height):
    """Mean of <V, v> for V uniform on the cap at this height with the largest odds, else beside."""
    half = (size - 1) / 2.0
    part = special.betainc(half, half, (1.0 - height) / 2.0)
    moment = (1.0 - height**2) ** half / ((size - 1) * special.beta(half, 0.5))
    chosen = np.exp(epsilon) * part / (np.exp(epsilon) * part + 1.0 - part)
    return moment * (chosen / part - (1.0 - chosen) / (1.0 - part))


@pytest.mark.parametrize("use", ["vector", "moments", "square"])
def test_the_code_for_a_use_is_the_best_one(use):
    code = best_codebook(6, 4.0, use)
    for size, epsilon, count in ((6, 4.0, 256), (3, 0.01, 64), (40, 8.0, 1024)):
        found = [Codebook(size, epsilon, count, m).noise(use) for m in range(1, count // 2 + 1)]
        assert best_codebook(size, epsilon, use).noise(use) == min(found)
    assert all(code.noise(use) <= best_codebook(6, 4.0, other).noise(use)
               for other in ("vector", "moments", "square"))  # fmt: skip
    assert best_codebook(6, 0.0, use).noise(use) == inf  # equal weights say nothing


def rows_and_targets(n, p, seed):
    rng = np.random.RandomState(seed)
    rows = rng.normal(size=(n, p))
    rows *= rng.uniform(0.3, 1.0, n)[:, None] / np.linalg.norm(rows, axis=1)[:, None]
    theta = rng.normal(size=p)
    theta *= 0.8 / np.linalg.norm(theta)
    return rows, theta, rng


@pytest.mark.parametrize("p, epsilon", [(1, 1.0), (3, 0.5), (5, 1.0), (5, 4.0), (10, 8.0)])
def test_lifted_reports_are_unbiased_with_the_stated_noise(p, epsilon, global_random_seed):
    n = 100_000
    rows, theta, rng = rows_and_targets(n, p, global_random_seed)
    r, code = rows @ theta, best_codebook(p + 1, epsilon)
    units = lifted(rows, random_signs(r, rng))
    reports = LiftedReports(simulated_directions(units, code, rng), code)
    noise = CodebookNoise(code).summed(n)
    level = stats.norm.isf(LEVEL / (p * (p + 3)))
    # second moment of a coordinate of one report, the coin's part in it
    spread = sqrt(n * max(code.along, code.across)) / code.mean
    assert (abs(reports.target - rows.T @ r) < level * spread).all()
    square_spread = sqrt(n) / code.contrast  # |f_j f_k| <= 1
    assert (abs(reports.square - rows.T @ rows) < level * square_spread).all()
    # the sandwich at the truth: its trace is the noise that the bounds allow
    gram = reports.error_gram(theta)
    total, weak, bound = _term_bounds(code, float(np.linalg.norm(theta)))
    assert 0.2 * total < np.trace(gram) / n <= 1.02 * total
    assert np.linalg.eigvalsh(gram)[-1] / n <= 1.05 * weak
    assert noise.norm_bound(1.0, 0.05) > noise.norm_bound(0.5, 0.05) > sqrt(n * total) / 2.0


@cache
def about_an_axis(code, n):
    """Reports about the first axis; those about its negative have the law of their negatives."""
    return simulated_directions(
        np.tile(np.eye(code.size)[0], (n, 1)), code, np.random.RandomState(0)
    )


@pytest.mark.parametrize("code", CODES, ids=str)
@pytest.mark.parametrize("norm, cosine", [(0.0, 0.0), (0.7, 0.5), (1.0, 1.0), (1.3, 0.2)])
def test_second_moments_of_a_term(code, norm, cosine):
    n, theta = 40_000, np.zeros(code.size)
    theta[:2] = norm * cosine, norm * sqrt(1.0 - cosine**2)
    signs = random_signs(np.full(n, norm * cosine), np.random.RandomState(1))
    f = signs[:, None] * about_an_axis(code, n)
    terms = f / code.mean - f * (f @ theta)[:, None] / code.contrast
    terms += (1.0 / code.contrast - 1.0) / code.size * theta
    total, top = _term_moments(code, norm, cosine)
    values = np.linalg.eigvalsh(terms.T @ terms / n)
    assert values[1:].sum() == pytest.approx(total, rel=0.03)
    assert values[-1] == pytest.approx(top, rel=0.05)
    limits = _term_bounds(code, max(norm, 1e-9))
    assert total <= limits[0] and top <= limits[1]
    assert np.linalg.norm(terms, axis=1).max() <= limits[2]


@pytest.mark.parametrize("p, epsilon", [(2, 1.0), (5, 1.0), (5, 4.0)])
def test_the_bound_holds_and_is_not_vacuous(p, epsilon):
    # the worst users are all alike, with rows orthogonal to theta
    n, runs, failure = 2_000, 60, 0.05
    rng = np.random.RandomState(0)
    rows, theta = np.tile(np.eye(p)[0], (n, 1)), np.eye(p)[-1]
    code = best_codebook(p + 1, epsilon)
    noise = CodebookNoise(code).summed(n)
    norms = []
    for _ in range(runs):
        units = lifted(rows, random_signs(rows @ theta, rng))
        reports = LiftedReports(simulated_directions(units, code, rng), code)
        norms.append(np.linalg.norm(reports.target - reports.square @ theta))
    # a Gaussian's norm is 1.4 times below sqrt(p) + sqrt(2 l); n is small for the linear terms
    found, bound = np.quantile(norms, 1.0 - failure), noise.norm_bound(1.0, failure)
    assert 0.35 * bound < found < bound
    # that of martingales is wider: in two dimensions its half does not hold for these sums
    wide = noise.martingale_bound(1.0, failure)
    assert found < wide < (2.0 if p == 2 else 3.0) * found


@pytest.mark.parametrize("p, epsilon", [(3, 0.5), (5, 1.0), (5, 4.0)])
def test_the_scales_are_about_the_deviations_of_a_report(p, epsilon, global_random_seed):
    """They are means over all directions of the lifted row, and its last coordinate is not used:
    off by up to a sixth here, which would let one pass that is too small by a quarter.
    """
    rows, theta, rng = rows_and_targets(3000, p, global_random_seed)
    r, code = rows @ theta, best_codebook(p + 1, epsilon)
    directions = simulated_directions(lifted(rows, random_signs(r, rng)), code, rng)
    reports = [LiftedReports(one[None], code) for one in directions]
    moments = np.array([report.target for report in reports]) - r[:, None] * rows
    squares = np.array([vech(report.square) for report in reports])
    squares -= np.array([vech(np.outer(row, row)) for row in rows])
    noise = CodebookNoise(code)
    assert 0.8 < np.sqrt((moments**2).mean()) / noise.scale < 1.25
    assert 0.8 < np.sqrt((squares**2).mean()) / noise.square_scale < 1.25


def test_sums_of_several_codes():
    """Squares add up over users, whatever code each of them has; the same code is one part."""
    few, many = (CodebookNoise(best_codebook(5, epsilon), 30) for epsilon in (1.0, 4.0))
    both, swapped = few.plus(many).plus(few), many.plus(few.summed(2))
    assert both.minus(few) == few.plus(many) and few.plus(few) == few.summed(2)
    assert both.minus(both).scale == 0.0 and both.epsilon == 4.0
    assert few.cost(2.0) == Cost.from_epsilon(1.0) and both.cost(2.0) == Cost.from_epsilon(4.0)
    for name in ("scale", "square_scale"):
        total = 2.0 * getattr(few, name) ** 2 + getattr(many, name) ** 2
        assert getattr(both, name) ** 2 == pytest.approx(total)
    for bound in ("norm_bound", "martingale_bound"):
        low, high = (getattr(law.summed(3), bound)(0.7, 1e-3) for law in (many, few))
        assert low < getattr(both, bound)(0.7, 1e-3) < high
        assert getattr(both, bound)(0.7, 1e-3) == pytest.approx(getattr(swapped, bound)(0.7, 1e-3))


@pytest.mark.parametrize("bad", [(1, 1.0, 8, 2), (3, 1.0, 8, 5), (3, 1.0, 8, 0)])
def test_impossible_codes_are_refused(bad):
    with pytest.raises(ValueError, match="nearest"):
        Codebook(*bad)


@pytest.mark.parametrize("Estimator", [SSPRegressor, ReweightedRegressor, ImproperSGDRegressor])
def test_an_epsilon_of_which_nothing_is_left_is_refused(Estimator):
    model = Estimator(epsilon=1e-13, delta=0.0, privacy="local", channel="codebook")
    fit = model.set_params(data_norm=1.0, bounds_y=(-1.0, 1.0)).fit
    with pytest.raises(PrivacyError, match="tell nothing"):
        fit(np.zeros((50, 2)), np.zeros(50))


@pytest.mark.parametrize("failure", [0.3, 1e-6])
def test_norm_bounds_are_the_theorems_solved_for_the_norm(failure):
    """Put back into the inequality of its theorem, a bound gives the failure that it was asked."""
    code, reports = best_codebook(4, 2.0), 5_000
    law = CodebookNoise(code, reports)
    total, weak, largest = _term_bounds(code, 1.0)
    # Klein and Rio (2005): exp(-t^2 / (2 (n weak + 2 b E) + 3 b t)) beyond the mean E
    mean = sqrt(reports * total)
    beyond = law.norm_bound(1.0, failure) - mean
    variance = reports * weak + 2.0 * largest * mean
    exponent = beyond**2 / (2.0 * variance + 3.0 * largest * beyond)
    assert np.exp(-exponent) == pytest.approx(failure, rel=1e-9)
    # Pinelis (1994): 2 exp(-r^2 / (2 (B^2 + b r / 3)))
    norm = law.martingale_bound(1.0, failure)
    exponent = norm**2 / (2.0 * (reports * total + largest * norm / 3.0))
    assert 2.0 * np.exp(-exponent) == pytest.approx(failure, rel=1e-9)


def test_the_order_of_shuffled_reports_follows_from_them_alone():
    """Also where the last coordinates of two reports are the same."""
    directions = np.random.RandomState(0).normal(size=(40, 3))
    directions[10:20, -1] = directions[3, -1]
    directions[12:15, 1] = directions[3, 1]
    sent = LiftedReports(directions, CODES[0]).unordered().directions
    for seed in range(5):
        mixed = directions[np.random.RandomState(seed).permutation(40)]
        assert (LiftedReports(mixed, CODES[0]).unordered().directions == sent).all()


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0, 36.0, 36.9, 40.0, 64.0, 200.0])
def test_a_simulated_report_costs_no_more_than_its_weights(epsilon):
    """P is a double of so few steps that 1 - P would be rounded by up to .19 of an epsilon."""
    for count, nearest in ((2, 1), (64, 21), (64, 1), (1024, 300)):
        code = Codebook(size=3, epsilon=epsilon, count=count, nearest=nearest)
        near, far = index_weights(epsilon)
        P = Fraction(code.probability)
        exact = Fraction(nearest * near, nearest * near + (count - nearest) * far)
        assert (2**53 * P).denominator == 1 and 0 <= exact - P < Fraction(1, 2**53)
        assert P / (1 - P) * (count - nearest) / nearest <= Fraction(near, far)
        assert code.log_ratio <= epsilon * (1.0 + 1e-14)
