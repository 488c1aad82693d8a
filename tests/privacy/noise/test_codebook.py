"""The codebook channel on a device: its price holds exactly, whatever is to be reported."""

from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from skpriv import _wire as _codebook
from skpriv.privacy import codebook, draw_index, draw_ranks, draw_sign, index_weights, lifted

EPSILONS = [0.0, 1e-9, 0.1, 0.5, 1.0, 2.0**-30, 4.0, 8.0, 20.0, 50.0, 64.0]
LEVEL = 1e-7  # the draws of devices have no seed, and must not fail by chance
FIRST_DIRECTION = [0.542564054528835, 0.2520554045100899, 0.801306632813236]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_weights_lie_below_the_exponential_and_as_close_as_their_bits(epsilon):
    getcontext().prec = 400
    near, far = index_weights(epsilon)
    gap = 1 - Decimal(near) / Decimal(far) / Decimal(epsilon).exp()
    assert far == 2**40 and 0 <= gap < Decimal(2) ** -39


@pytest.mark.parametrize("epsilon", [-1e-9, float("inf"), float("nan")])
def test_weights_refuse_what_is_no_budget(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        index_weights(epsilon)


def probabilities(monkeypatch, vector, directions, nearest, weights):
    """Exact law of the reported index, by giving every value to the one draw."""
    count = len(directions)
    total = nearest * weights[0] + (count - nearest) * weights[1]
    monkeypatch.setattr(_codebook, "index_weights", lambda epsilon: weights)
    counts = [0] * count
    for drawn in range(total):

        def randbelow(bound, drawn=drawn):
            assert bound == total  # the same for every secret
            return drawn

        monkeypatch.setattr(_codebook.secrets, "randbelow", randbelow)
        counts[draw_index(vector, directions, nearest, 1.0)] += 1
    return [Fraction(value, total) for value in counts]


@pytest.mark.parametrize("count, nearest, weights", [
    (4, 1, (5, 2)), (5, 2, (7, 3)), (6, 3, (3, 1)), (2, 1, (11, 1)), (8, 3, (5, 5)),
])  # fmt: skip
def test_every_report_has_one_of_two_probabilities(monkeypatch, count, nearest, weights):
    # adversarial codebooks (all the same, huge, not numbers), and secrets of every kind
    rng = np.random.RandomState(0)
    ordinary = rng.normal(size=(count, 3))
    books = [ordinary, np.ones((count, 3)), 1e300 * ordinary, np.full((count, 3), np.nan)]
    secrets = [*rng.normal(size=(4, 3)), np.zeros(3), np.full(3, np.nan), [np.inf, -np.inf, 1e308]]
    total = nearest * weights[0] + (count - nearest) * weights[1]
    for book in books:
        laws = [probabilities(monkeypatch, v, book, nearest, weights) for v in secrets]
        for law in laws:
            assert sorted(law, reverse=True) == [
                Fraction(weight, total)
                for weight in [weights[0]] * nearest + [weights[1]] * (count - nearest)
            ]
        ratios = [p / q for one in laws for other in laws for p, q in zip(one, other, strict=True)]
        assert max(ratios) <= Fraction(*weights)  # e^epsilon, attained by secrets that differ


def test_the_bound_is_attained(monkeypatch):
    book = np.array([[1.0, 0.0], [-1.0, 0.0]])
    one, other = (probabilities(monkeypatch, v, book, 1, (8, 3)) for v in book)
    assert max(p / q for p, q in zip(one, other, strict=True)) == Fraction(8, 3)


def test_ranks_follow_their_law():
    count, nearest, epsilon, n = 16, 5, 1.0, 40_000
    ranks = draw_ranks(n, count, nearest, epsilon)
    weights = np.where(np.arange(count) < nearest, np.e, 1.0)
    expected = n * weights / weights.sum()
    assert stats.chisquare(np.bincount(ranks, minlength=count), expected).pvalue > LEVEL


def test_a_codebook_is_its_seed():
    whole = codebook(b"\x01\x02", 64, 7)
    assert_array_equal(whole, codebook(b"\x01\x02", 64, 7))
    assert_array_equal(whole[[5, 63]], codebook(b"\x01\x02", 64, 7, [5, 63]))
    assert abs(whole - codebook(b"\x01\x03", 64, 7)).max() > 0.1
    # published reports are decoded for ever: the first direction may not change with a version
    expected = codebook(b"fixed", 4, 3)[0]
    assert_allclose(expected, FIRST_DIRECTION, atol=1e-14)


@pytest.mark.parametrize("size", [2, 3, 6, 21])
def test_directions_are_uniform_on_the_sphere(size):
    directions = np.concatenate([codebook(b"%d" % k, 100, size) for k in range(200)])
    assert_allclose(np.square(directions).sum(axis=1), 1.0, atol=1e-12)
    half = (size - 1) / 2.0
    for axis in (np.eye(size)[0], np.eye(size)[-1], np.full(size, size**-0.5)):
        below = stats.beta(half, half).cdf((1.0 + directions @ axis) / 2.0)
        assert stats.kstest(below, "uniform").pvalue > LEVEL / 12


def test_lifted_rows_hold_both_moments():
    rng = np.random.RandomState(0)
    rows = rng.normal(size=(50, 4))
    rows /= np.linalg.norm(rows, axis=1)[:, None] * rng.uniform(1.0, 3.0, 50)[:, None]
    signs = rng.choice([-1.0, 1.0], 50)
    units = lifted(rows, signs)
    assert_allclose(np.square(units).sum(axis=1), 1.0, atol=1e-14)
    assert_allclose(units[:, :-1], rows * signs[:, None], atol=1e-14)
    # zero rows and rows of full length
    assert_allclose(lifted(np.array([[0.0, 0.0], [0.6, 0.8]]), np.ones(2)),
                    [[0.0, 0.0, 1.0], [0.6, 0.8, 0.0]], atol=1e-8)  # fmt: skip


@pytest.mark.parametrize("mean", [-1.0, -0.3, 0.0, 1.0])
def test_signs_have_their_mean(mean):
    signs = np.array([draw_sign(mean) for _ in range(4000)])
    assert set(signs) <= {-1.0, 1.0}
    assert stats.binomtest(int((signs > 0).sum()), 4000, (1.0 + mean) / 2.0).pvalue > LEVEL / 4


def test_a_larger_epsilon_than_is_used_gives_the_weights_of_that():
    assert index_weights(1e9) == index_weights(64.0)
