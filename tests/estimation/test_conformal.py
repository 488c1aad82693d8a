"""The private quantile search: exact coverage of worst data, by enumeration of its paths."""

from functools import lru_cache

import numpy as np
import pytest
from scipy import special, stats

from skpriv._estimation import _conformal as conformal
from skpriv._estimation._conformal import (
    SHORTFALLS, ResponseTarget, ShareTarget, count_target, largest_shortfall, score_grid,
    search_slots,
)  # fmt: skip
from skpriv.privacy import ResponseNoise

ALPHAS = (0.05, 0.1, 0.2)
CENTRAL = [
    (n, mu, depth)
    for n in (50, 200, 1000, 3000)
    for mu in (0.05, 0.237, 1.0)
    for depth in (2, 4, 6)
]


def test_shortfalls_beyond_the_grid_add_nothing():
    """A search that goes on from d gains P(Z > d) times what is between, which falls with d.

    The proof counts `SHORTFALL_TAIL` for all beyond the grid; steps of half the size would end it
    at four deviations, where a gain is 4e-4 and nothing would count it.
    """
    first, last = SHORTFALLS[[0, -1]]
    assert stats.norm.sf(last) * (last - first) <= conformal.SHORTFALL_TAIL


@pytest.mark.parametrize("depth", [1, 2, 5, 12])
def test_shortfalls_are_the_largest_over_all_cells(depth):
    """The recursion by its definition, at every 97th start and at the last ones."""
    before, bound = largest_shortfall(depth - 1), largest_shortfall(depth)
    tail = stats.norm.sf(SHORTFALLS)[:-1]
    starts = [*range(0, len(tail), 97), *range(len(tail) - 5, len(tail))]
    for i in starts:
        gains = tail[i:] * before[i + 1 :] - tail[i:] * before[i]
        assert bound[i] == pytest.approx(
            before[i] + conformal.SHORTFALL_TAIL + max(0.0, gains.max()), abs=1e-12
        )


def _law(left, depth):
    """Probabilities of the 2^depth results, from those of going left at the nodes of each step."""
    starts, law = np.array([-1]), np.ones(1)
    for step in range(depth):
        nodes = starts + 2 ** (depth - step - 1)
        turns = left(nodes, step)
        starts = np.column_stack([starts, nodes]).ravel()
        law = np.column_stack([law * turns, law * (1.0 - turns)]).ravel()
    return law


def _coverage(counts, target, scale):
    """Exact leave-one-out coverage of n + 1 scores, of which counts[i] are up to grid point i."""
    depth = int(np.log2(len(counts)))
    cells = np.diff(counts, prepend=0.0)
    covered = 0.0
    for cell in np.flatnonzero(cells):  # the score that is left out lies there
        others = counts - (np.arange(len(counts)) >= cell)
        turns = stats.norm.sf((target - others) / scale)
        law = _law(lambda nodes, step, turns=turns: turns[nodes], depth)
        covered += cells[cell] * law[cell:].sum()
    return covered / counts[-1]


def _worst_counts(n, target, scale, depth):
    """Counts of an adversary who plays the recursion, made monotone and integer."""
    counts = np.full(2**depth, float(n + 1))

    def play(low, high, largest):
        if high - low == 1:
            return
        middle, k = (low + high) // 2, (high - low).bit_length() - 1
        end = (target - counts[high]) / scale
        before = np.interp(SHORTFALLS, SHORTFALLS, largest_shortfall(k - 1))
        here = np.interp(end, SHORTFALLS, before)
        allowed = (end <= SHORTFALLS) & (largest >= SHORTFALLS)
        gain = np.where(allowed, stats.norm.sf(SHORTFALLS) * (before - here), -np.inf)
        best = SHORTFALLS[np.argmax(gain)] if allowed.any() else end
        counts[middle] = np.clip(np.floor(target - best * scale), 0, counts[high])
        play(middle, high, best)
        play(low, middle, largest)

    play(-1, 2**depth - 1, np.inf)
    return np.maximum.accumulate(counts)


def _cases(alpha):
    for n, mu, depth in CENTRAL:
        scale = np.sqrt(depth) / mu
        target = count_target(n, alpha, scale, depth)
        if np.isfinite(target):
            yield n, scale, depth, target


@pytest.mark.parametrize("alpha", ALPHAS)
def test_exact_coverage_of_the_worst_scores(alpha):
    smallest = []
    for n, scale, depth, target in _cases(alpha):
        counts = _worst_counts(n, target, scale, depth)
        smallest.append(_coverage(counts, target, scale))
        assert smallest[-1] >= 1.0 - alpha
        for place in (1, len(counts) // 2):  # two-point scores just short of the target
            two = np.full(len(counts), np.floor(target - scale))
            two[place:] = n + 1
            assert _coverage(np.clip(two, 0, n + 1), target, scale) >= 1.0 - alpha
    assert min(smallest) < 1.0 - 0.95 * alpha  # nearly attained: the margin is not generous


def test_half_of_the_margin_is_not_enough():
    alpha, failed = 0.1, 0
    for n, scale, depth, target in _cases(alpha):
        half = (target + (1.0 - alpha) * (n + 1)) / 2.0
        failed += _coverage(_worst_counts(n, half, scale, depth), half, scale) < 1.0 - alpha
    assert failed >= 3


def _local_cases():
    for rows, mu in ((100, 5.0), (400, 0.6)):
        for depth in (2, 4, 6):
            yield [(rows + step, np.sqrt(rows + step) / mu) for step in range(depth)]


def _left(x, rows, scale, target):
    """P(Bin(rows, x) + N(0, scale^2) >= target rows), by its sum; or of responses."""
    counts, responses = np.arange(rows + 1), isinstance(scale, ResponseNoise)
    mass = _mass(tuple(np.atleast_1d(x)), rows, scale if responses else None)
    if responses:  # users whose bits are turned, term by term
        return mass @ (scale.estimate(counts.astype(float)) / rows >= target)
    return mass @ stats.norm.cdf((counts - target * rows) / scale)


@lru_cache(maxsize=64)
def _mass(shares, rows, responses):
    """Chances of each count, which are the same for all targets and depths."""
    counts, shares = np.arange(rows + 1), np.array(shares)
    shares = shares if responses is None else np.minimum(responses.share(shares), 1.0)
    ways = -special.betaln(1.0 + rows - counts, 1.0 + counts) - np.log1p(rows)
    some, others = (
        special.xlogy(counts, shares[:, None]),
        special.xlog1py(rows - counts, -shares[:, None]),
    )
    return np.exp(ways + some + others)


def _worst_shares(blocks, target):
    """Values of F on the grid of an adversary who plays the recursion, made monotone."""
    depth, points = len(blocks), np.linspace(0.0, 1.0, 101)
    values, lefts = [points], []
    for rows, scale in reversed(blocks):
        left, before = _left(points, rows, scale, target), values[0]
        values.insert(0, np.array([
            (before[i] - left[: i + 1] * (before[i] - before[: i + 1])).min()
            for i in range(len(points))
        ]))  # fmt: skip
        lefts.insert(0, left)
    shares = np.ones(2**depth)

    def play(low, high, step, smallest):
        if high - low == 1:
            return
        middle, end = (low + high) // 2, shares[high]
        before, here = values[step + 1], np.interp(end, points, values[step + 1])
        allowed = (points <= end) & (points >= smallest)
        gain = np.where(allowed, lefts[step] * (here - before), -np.inf)
        shares[middle] = points[np.argmax(gain)]
        play(low, middle, step + 1, smallest)
        play(middle, high, step + 1, shares[middle])

    play(-1, 2**depth - 1, 0, 0.0)
    return shares


def _share_coverage(shares, blocks, target):
    """Exact coverage of independent scores with these values of F, other rows at each step."""
    turns = lambda nodes, step: _left(shares[nodes], *blocks[step], target)  # noqa: E731
    return _law(turns, len(blocks)) @ shares


def test_exact_coverage_where_other_rows_answer_each_step():
    alpha, failed = 0.1, 0
    for blocks in _local_cases():
        target = ShareTarget(blocks)(alpha)
        coverage = _share_coverage(_worst_shares(blocks, target), blocks, target)
        assert coverage >= 1.0 - alpha
        if target < 1.0 - alpha + 2e-4:  # no margin is needed: it is never negative
            continue
        assert coverage < 1.0 - 0.85 * alpha
        half = (target + 1.0 - alpha) / 2.0
        failed += _share_coverage(_worst_shares(blocks, half), blocks, half) < 1.0 - alpha
    assert failed >= 4


def _response_cases():
    for rows, epsilon in ((40, 8.0), (150, 2.0), (600, 1.0), (1000, 0.7)):
        for depth in (2, 4, 6):
            law = ResponseNoise(epsilon, rows)
            yield [(rows, law)] * depth, ResponseTarget([law] * depth)


def test_exact_coverage_of_randomised_responses():
    """Binomial tails alone, for shares that an adversary places along the recursion."""
    alpha, failed, smallest = 0.1, 0, []
    for blocks, rule in _response_cases():
        target = rule(alpha)
        coverage = _share_coverage(_worst_shares(blocks, target), blocks, target)
        assert coverage >= 1.0 - alpha
        assert rule.coverage(target) <= coverage + 1e-9  # what is proved is below
        half = (target + 1.0 - alpha) / 2.0
        failed += _share_coverage(_worst_shares(blocks, half), blocks, half) < 1.0 - alpha
        smallest.append((coverage - 1.0 + alpha) / alpha)
    assert failed >= 6
    assert min(smallest) < 0.1  # nearly attained


def test_bits_that_never_reach_their_target_leave_the_range():
    rule = ResponseTarget([ResponseNoise(0.1, 5)] * 4)
    assert rule(0.1) == np.inf
    assert rule.coverage(1e9) == pytest.approx(1.0, abs=1e-7)
    assert rule.coverage(-1e9) == 0.0  # always left: the first grid point, which may hold nothing


def test_depths_follow_from_public_numbers():
    assert search_slots(4, 2) == [1, 2, 2, 2]
    errors = (0.1, 0.01, 1e-3, 1e-5)  # of each step
    depths = [conformal.best_depth(0.1, lambda depth: error * depth) for error in errors]
    assert depths == sorted(depths) and depths[-1] == 12
    assert conformal.best_depth(0.1, lambda depth: np.inf) == 0  # fewer users than steps


@pytest.mark.parametrize("bounds", [None, (0.1, 0.2), (0.0, 0.1), (0.0, 0.0), (50.0, 90.0)])
def test_grids_increase_and_end_at_the_top(bounds):
    grid = score_grid(5, 2.0, bounds)
    assert len(grid) == 32 and grid[-1] == 2.0
    assert (np.diff(grid) >= 0.0).all() and grid[0] > 0.0
