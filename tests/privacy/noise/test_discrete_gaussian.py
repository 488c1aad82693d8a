"""Discrete Gaussian noise: the law is exact, whatever doubles do."""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats

from skpriv.exceptions import PrivacyError
from skpriv.privacy._noise import _lattice as _discrete_gaussian
from skpriv.privacy._noise._lattice import CLOSE, NO_DIFFERENCE, WORD, discrete_gaussian

LEVEL = 1e-5  # of each test of a law
N_DRAWS = 40_000


@pytest.fixture
def entropy(global_random_seed):
    return np.random.RandomState(global_random_seed).bytes


@cache
def law(away, variance, digits=60):
    """exp(-away^2 / (2 variance)) to many digits, and 0 where it is below 1e-86."""
    if away * away > 400 * variance:
        return Decimal(0)
    with localcontext() as context:
        context.prec = digits
        return (-away * away / Decimal(2 * variance)).exp()


def given(*words):
    """A source that hands out these words in turn, and zeros afterwards."""
    queue = [np.asarray(part, dtype="<u8").tobytes() for part in words]
    return lambda n: queue.pop(0) if queue else b"\0" * n


@pytest.mark.parametrize("variance", [1, 2, 7, 2500])
@pytest.mark.parametrize("center", [0.0, 0.5, -0.5, 0.1875])
def test_every_proposal_is_enumerated(variance, center):
    """Each integer is proposed once, and taken with a chance that makes its law Gaussian.

    Every decision is asked on both sides of the exact chance, one part in 2^64 away from it, with
    the first and with the last word of a bucket.
    """
    starts, widths, tops, weights, _, _ = _discrete_gaussian._buckets(variance)
    bucket = np.concatenate([np.repeat(np.arange(len(widths)), widths.astype(int))] * 2)
    place = np.arange(len(bucket)) % (len(bucket) // 2) - starts[bucket]
    negative = np.repeat([0, 1], len(bucket) // 2).astype(np.uint64)
    magnitude, sign = starts[bucket] + place, 1 - 2 * negative.astype(int)
    span = 2048 * int(widths[0])
    assert (sign * magnitude).tolist() == [*range(span), *range(0, -span, -1)]
    exact = [
        int(tops[k]) * law(abs(z - s * Decimal(center)), variance) / int(weights[k])
        for k, z, s in zip(bucket, magnitude.tolist(), sign.tolist(), strict=True)
    ]
    assert max(exact) < 1
    # Chance of the proposal times chance of taking it, in one unit: the law that is asked for.
    np.testing.assert_array_equal(tops / widths, tops[0] / widths[0])
    sides = np.array([int(c * 2**64) for c in exact], dtype=np.uint64)
    told = sides > 0  # chances below 2^-64 have no side: asked there is only the largest word
    possible = ~((magnitude == 0) & (negative == 1))
    first = weights.sum() + weights.cumsum()[bucket]
    places = place.astype(np.uint64) | negative << np.uint64(63)
    centers = np.full(len(bucket), center)
    for words in (first - weights[bucket], first - np.uint64(1)):
        for drawn, below in ((sides - np.uint64(1), True), (sides + np.uint64(1), False)):
            drawn = np.where(told, drawn, np.uint64(2**WORD - 1))
            source = given(np.stack([words, places, drawn]))
            z, taken = _discrete_gaussian._proposals(variance, centers, source)
            np.testing.assert_array_equal(z, sign * magnitude)
            np.testing.assert_array_equal(taken, possible & told & below)


@pytest.mark.parametrize("variance", [1, 2500, 2**89 - 1, 2**90])
def test_words_name_buckets_in_proportion_to_their_weights(variance):
    """The words that count are a multiple of the total weight."""
    starts, widths, _, weights, _, sure = _discrete_gaussian._buckets(variance)
    total = int(weights.sum())
    least = 2**WORD % total
    words = np.array([least - 1, least, 2**WORD - 1, 2**WORD - 2], dtype=np.uint64)
    places, drawn = np.full(4, 5 * 2**8, dtype=np.uint64), np.zeros(4, dtype=np.uint64)
    source = given(np.stack([words, places, drawn]))
    _, taken = _discrete_gaussian._proposals(variance, np.zeros(4), source)
    assert taken.tolist()[:2] == [False, True] and (2**WORD - least) % total == 0
    assert 512 * int(widths[0]) > 12 * np.sqrt(float(variance)) and int(widths[0]).bit_count() == 1
    assert int(starts[-1] + int(widths[-1])) == 2048 * int(widths[0]) < 2**52
    # What is taken without a look is taken by the law, at the far end of the bucket.
    for k in range(len(widths)):
        low, high = Decimal(int(starts[k])) - Decimal(0.5), Decimal(int(starts[k] + int(widths[k])))
        top = 2**40 * int(widths[k]) // int(widths[0])
        assert top * law(max(low, Decimal(0)), variance) < int(weights[k])
        assert int(sure[k]) * int(weights[k]) <= top * law(high, variance) * 2**64


@pytest.mark.parametrize("variance", [1, 2**20 + 1, 2**89 - 1, 2**90])
def test_the_error_of_doubles_is_an_eighth_of_the_margin(variance, global_random_seed):
    """At chances above 2^-51 relative to the chance, and absolutely below.

    The proof (docs/mathematics/noise.md) bounds the one by 2^-43 and the other by 2^-53.
    """
    assert CLOSE >= 8.0 * 2.0**-43 and NO_DIFFERENCE >= 8.0 * 2.0**-53
    rng, n = np.random.RandomState(global_random_seed), 1500
    away = np.sqrt(2.0 * variance * np.log(2.0) * 60.0 * rng.uniform(size=n))
    known = _discrete_gaussian._chance(away, variance)
    exact = [law(Decimal(a), variance, 40) for a in away.tolist()]
    errors = [abs(Decimal(k) - e) for k, e in zip(known.tolist(), exact, strict=True)]
    large = [(d, e) for d, e in zip(errors, exact, strict=True) if e > Decimal(2.0**-51)]
    assert 500 < len(large) < n
    assert max(d / e for d, e in large) < 2.0**-43
    assert max(d for d, e in zip(errors, exact, strict=True) if e < 2.0**-51) < 2.0**-53


@pytest.mark.parametrize("center", [0.0, 0.5, -0.3])
@pytest.mark.parametrize("variance", [1, 5, 40])
def test_the_law_of_a_draw(variance, center, entropy):
    """A law at a total variation distance of .03 passes less than once in 1,000 times."""
    drawn = discrete_gaussian(variance, np.full(N_DRAWS, center), entropy)
    points = np.arange(-60, 61)
    likely = np.exp(-((points - center) ** 2) / (2.0 * variance))
    likely *= N_DRAWS / likely.sum()
    seen = likely > 10.0
    counts = np.append([(drawn == z).sum() for z in points[seen]], 0.0)
    counts[-1] = N_DRAWS - counts.sum()
    expected = np.append(likely[seen], N_DRAWS - likely[seen].sum())
    assert stats.chisquare(counts, expected * N_DRAWS / expected.sum()).pvalue > LEVEL


@pytest.mark.parametrize("variance", [10**6, 10**12 + 7, 2**80 + 1, 2**90])
def test_the_law_of_wide_draws(variance, entropy):
    drawn = discrete_gaussian(variance, np.zeros(20_000), entropy) / np.sqrt(float(variance))
    assert stats.kstest(drawn, "norm").pvalue > LEVEL
    assert stats.kstest((drawn[::2] + drawn[1::2]) / np.sqrt(2.0), "norm").pvalue > LEVEL
    assert abs((drawn > 0).mean() - 0.5) < 0.02


@pytest.mark.parametrize("center", [0.0, 0.25])
def test_doubles_decide_as_exact_numbers_would(monkeypatch, center):
    """The same bytes give the same integers when every decision is made with all its digits."""
    centers, variance = np.full(200, center), 10**10
    known = discrete_gaussian(variance, centers, np.random.RandomState(3).bytes)
    monkeypatch.setattr(_discrete_gaussian, "CLOSE", 1e9)
    exact = discrete_gaussian(variance, centers, np.random.RandomState(3).bytes)
    np.testing.assert_array_equal(known, exact)


@pytest.mark.parametrize("words", [1, 2])
def test_close_decisions_are_made_with_more_bits(words):
    """A number whose first words are those of the chance is decided by the bits that follow."""
    bits = int(Fraction(law(Decimal(5) - Decimal(0.25), 11)) * 3 * 2 ** (64 * words) / 7)

    def below(number, more):
        given = [number >> (64 * place) & (2**64 - 1) for place in range(words)]
        source = lambda n: given.pop().to_bytes(n, "little") if given else more * n  # noqa: E731
        distance = Decimal(5), Decimal(0.25)
        return _discrete_gaussian._exactly(given.pop(), (3, 7), distance, 11, source)

    assert below(bits, b"\0") and not below(bits, b"\xff")
    assert below(bits - 1, b"\xff") and not below(bits + 1, b"\0")


@pytest.mark.parametrize("side", [1, -1])
def test_what_is_nearer_than_the_error_of_a_chance_is_left_to_further_bits(side):
    """Chances that are three quarters of 10^-20 above or below a whole number of 2^-64."""
    unit, whole, asked = 4 * 10**20, 2**63 + 12_345, []
    height = whole * unit + 3 * side, 2**64 * unit
    word = whole - 1 if side > 0 else whole

    def bits(n):
        asked.append(n)
        return b"\0" * n

    below = _discrete_gaussian._exactly(word, height, (Decimal(0), Decimal(0)), 1, bits)
    assert asked and below is (side > 0)


def test_rare_is_what_doubles_leave_open(monkeypatch, entropy):
    asked = []
    monkeypatch.setattr(_discrete_gaussian, "_exactly", lambda *a: asked.append(a))
    discrete_gaussian(2**89, np.zeros(200_000), entropy)
    assert not asked  # 4e5 decisions, each of which is open with a chance of 3e-12


def test_a_dead_source_of_bytes_is_refused():
    for byte in (b"\0", b"\xff"):
        with pytest.raises(PrivacyError, match="random bytes"):
            discrete_gaussian(100, np.zeros(3), lambda n, byte=byte: byte * n)
    for variance in (0, 2**90 + 1):
        with pytest.raises(PrivacyError, match="variance"):
            discrete_gaussian(variance, np.zeros(3))
