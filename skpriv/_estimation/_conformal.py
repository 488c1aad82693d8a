"""Quantiles of private scores by binary search over noisy counts, and the margin that it needs.

Split conformal prediction takes a quantile of n scores that were held out. Here it is searched on a
public grid g_1 < ... < g_m, m = 2^depth: a noisy count of the scores up to the middle grid point
decides whether the search goes left (count >= T) or right, and the right end q at last is returned;
the last grid point holds every score, and is never asked for.
``docs/mathematics/prediction_intervals.md`` proves what stands here in short, with N(g) for the
number of scores up to g:

* the same rows answer all counts (central): if sd is the noise of each count and
  T = (1 - alpha)(n + 1) + w sd with f_depth(w - S) <= w, S = alpha (n + 1) / sd, a new score lies
  within q with probability at least 1 - alpha, for every n, noise and distribution, where
      f_0(D) = D,  f_k(D) = max_{d >= D} f_{k-1}(D) + P(Z > d) (f_{k-1}(d) - f_{k-1}(D))
  is the largest shortfall, in units of sd, that data can bring about in k steps;
* other rows answer each count (local, shuffle): with F the distribution function of the scores and
  p(x) the probability that a noisy share is at least T at a grid point where F = x,
      h_0(x) = x,  h_k(x) = min_{x' <= x} h_{k-1}(x) - p(x') (h_{k-1}(x) - h_{k-1}(x'))
  is the smallest coverage, and T the smallest with h_depth(1) >= 1 - alpha;
* with randomised response each count has rows of its own, and p(x) is a binomial tail, exactly.

Both recursions are evaluated on a grid and rounded to the safe side.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import ceil, exp, inf, log, nan, pi, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special, stats

from .._linalg import bisected
from ._levels import two_sided_quantile

if TYPE_CHECKING:
    from .._contracts import Array
    from ..privacy import ResponseNoise

# The grid of scores, in units of the released residual deviation.
SCORES = (0.3, 8.0)
FALLBACK = 1e-3  # smallest grid point over the largest, where no deviation was released
DEPTHS = range(4, 13)  # of the search; the public rule picks one
# Shortfalls in units of the noise: data that start above the first gain no more than at it.
STEP = 0.005
SHORTFALLS = np.arange(-4000, 1601) * STEP
SHORTFALL_TAIL = 1e-9  # above all that shortfalls beyond the last can add
POINTS = np.concatenate([np.linspace(0.0, 0.7, 101), np.linspace(0.7, 1.0, 501)[1:]])


@lru_cache(maxsize=64)
def largest_shortfall(depth: int) -> np.ndarray:
    """Upper bounds of f_depth on ``SHORTFALLS``.

    On a cell [d_j, d_{j+1}] the tail is at most that of d_j, and f_{k-1}, which increases, at most
    its value at d_{j+1}; beyond the last cell the tail is 6e-16 and f_{k-1} has slope at most 1.

    Examples
    --------
    >>> from skpriv._estimation._conformal import SHORTFALLS, largest_shortfall
    >>> start = int(abs(SHORTFALLS).argmin())
    >>> [round(float(largest_shortfall(depth)[start]), 2) for depth in (3, 6, 10)]
    [0.44, 0.72, 0.98]
    """
    if depth == 0:
        return SHORTFALLS
    before = largest_shortfall(depth - 1)
    tail = stats.norm.sf(SHORTFALLS)[:-1]
    lines = tail * before[1:]  # the gain at f = before[i] is lines - tail f
    result = before + SHORTFALL_TAIL
    # The larger f is, the further away is the cell of the largest gain, as the tail falls: it lies
    # between those of the ends of a block of 64. Cells before the i-th one gain nothing.
    ends = [*range(0, len(tail), 64), len(tail) - 1]
    best = [i + int((lines[i:] - tail[i:] * before[i]).argmax()) for i in ends]
    for start, stop, low, high in zip(ends, ends[1:], best, best[1:], strict=False):
        block = slice(start, stop + 1)
        cells = slice(low, high + 1)
        gains = lines[cells] - tail[cells] * before[block, None]
        result[block] = before[block] + SHORTFALL_TAIL + np.maximum(gains.max(axis=1), 0.0)
    return result


def margin(depth: int, start: float) -> float:
    """Smallest w >= 0 on the grid with f_depth(w - start) <= w; infinite if it exceeds start.

    Parameters
    ----------
    depth : int
    start : float
        S = alpha (n + 1) / sd: how many noises the last grid point is above the quantile.
    """
    bound = largest_shortfall(depth)
    candidates = np.arange(0, int(min(start, 8.0) / STEP) + 1) * STEP
    # the next grid point above w - start: f increases
    index = np.ceil((candidates - start - SHORTFALLS[0]) / STEP - 1e-9).astype(int)
    inside = bound[index.clip(0, len(bound) - 1)] <= candidates
    return float(candidates[np.argmax(inside)]) if inside.any() else inf


def count_target(n: int, alpha: float, scale: float, depth: int) -> float:
    """The T that noisy counts of n scores are compared with; infinite means the whole range.

    Parameters
    ----------
    n : int
    alpha : float in (0, 1)
    scale : float
        Standard deviation of the noise of each count.
    depth : int

    Returns
    -------
    float

    Examples
    --------
    >>> from skpriv._estimation._conformal import count_target
    >>> round(count_target(1000, 0.1, 10.0, 6) - 0.9 * 1001)  # half a noise for the search
    5
    """
    w = margin(depth, alpha * (n + 1) / scale)
    return (1.0 - alpha) * (n + 1) + w * scale


class ShareTarget:
    """The T for searches whose every step asks other rows, as users who answer once.

    Parameters
    ----------
    blocks : sequence of (int, float)
        Rows that answer each step, and the noise of their count.
    """

    def __init__(self, blocks: Sequence[tuple[int, float]]) -> None:
        self._steps: list[tuple[Any, ...]] = []
        for rows, scale in blocks:
            # 50 cells to a standard deviation of the noise are enough for the sum over counts
            width = max(1, int(scale / 50))
            edges = np.unique(np.append(np.arange(0, rows, width), rows))
            below = special.bdtr(edges[None, :].astype(float), rows, POINTS[:, None])
            below[:, -1] = 1.0
            self._steps.append((rows, scale, edges, np.diff(below, axis=1, prepend=0.0)))

    def coverage(self, target: float) -> float:
        """Lower bound of h_depth(1)."""
        value = POINTS.copy()
        for step in reversed(self._steps):
            value = _smallest(value, self._left(step, target))
        return float(value[-1])

    def _left(self, step: tuple[Any, ...], target: float) -> "Array":
        """Upper bound of p at ``POINTS``: binomial counts of a cell are taken at its upper end."""
        rows, scale, edges, mass = step
        return np.minimum(1.0, mass @ stats.norm.cdf((edges - target * rows) / scale))

    def __call__(self, alpha: float) -> float:
        """Smallest T, up to 1e-4, at which the coverage is at least 1 - alpha."""
        low = 1.0 - alpha
        high = 1.0
        while self.coverage(high) < 1.0 - alpha:
            low = high
            high += 1.0
            if high > 64.0:
                return inf
        return bisected(lambda target: self.coverage(target) < 1.0 - alpha, low, high, 1e-4)[1]


class ResponseTarget(ShareTarget):
    """The T for searches whose every count is of users of its own, by randomised response.

    A user whose score is within a grid point where F = x sends a one with the same probability q(x)
    as all others, so that their number is Bin(m, q(x)), the coins of the users in it. A search goes
    left from a certain number of ones on, and p(x) is the tail of that law: no noise is left to be
    bounded.

    Parameters
    ----------
    laws : sequence of ResponseNoise
        Laws of the count of each step, with its number of users.

    Examples
    --------
    >>> from skpriv._estimation._conformal import ResponseTarget
    >>> from skpriv.privacy import ResponseNoise
    >>> target = ResponseTarget([ResponseNoise(1.0, 2000)] * 6)
    >>> 0.9 < target(0.1) < 0.93
    True
    """

    def __init__(self, laws: "list[ResponseNoise]") -> None:
        self._steps = [(law, law.estimate(np.arange(law.reports + 1.0))) for law in laws]

    def _left(self, step: tuple[Any, ...], target: float) -> np.ndarray:
        """Upper bound of p at ``POINTS``: a binomial tail, with room for its rounding."""
        law, estimates = step
        # The comparison of the search itself, so that both turn at the same number
        least = int(np.searchsorted(estimates / law.reports >= target, True))
        tail = special.bdtrc(least - 1.0, law.reports, np.minimum(law.share(POINTS), 1.0))
        return np.minimum(1.0, tail + SHORTFALL_TAIL) if least else np.ones_like(POINTS)

    def __call__(self, alpha: float) -> float:
        """Smallest T, up to 1e-4; infinite above 1, which coins alone would reach."""
        target = super().__call__(alpha)
        return target if target <= 1.0 else inf


def _smallest(before: np.ndarray, left: np.ndarray) -> "Array":
    """h_k on ``POINTS``: on a cell, ``left`` is at most its upper and ``before`` its lower end."""
    # before increases: right of a point there is nothing to gain
    gains = before[:, None] - before[None, :-1]
    gains *= left[1:]
    return before - np.maximum(gains.max(axis=1), 0.0)


def score_grid(depth: int, top: float, bounds: Sequence[float] | None) -> np.ndarray:
    """The 2^depth public grid points: geometric between bounds, the last is the largest score.

    Parameters
    ----------
    depth : int
    top : float
        The largest possible score.
    bounds : (float, float) or None
        Least and largest deviation of the scores that released answers leave open.
    """
    low = FALLBACK * top
    high = top
    if bounds is not None:
        high = float(np.clip(SCORES[1] * bounds[1], low, top))
        low = float(np.clip(SCORES[0] * bounds[0], FALLBACK * low, high))
    return np.append(np.geomspace(low, high, 2**depth - 1), top)


def search_slots(depth: int, searches: int) -> list[int]:
    """How many grid points each step of this number of searches may ask for: the first shares."""
    return [min(2**step, searches) for step in range(depth)]


def best_depth(
    alpha: float, error: Callable[..., Any], reach: float = SCORES[1] / SCORES[0]
) -> int:
    """Public rule for the depth of a search: that of the least relative width of normal scores.

    It is the error of a share, over the density of log |Z| at its quantile, and half of a cell of
    the grid.

    Parameters
    ----------
    alpha : float
        The smallest of the searches.
    error : callable
        Error of the share that a search of a depth finds; infinite if there is none.
    reach : float
        Largest grid point over the smallest.

    Returns
    -------
    int
        0 if there is no search.
    """
    z = two_sided_quantile(1.0 - alpha)
    density = 2.0 * z * exp(-(z**2) / 2.0) / sqrt(2.0 * pi)
    widths = {depth: error(depth) / density + log(reach) / 2.0 ** (depth + 1) for depth in DEPTHS}
    best = min(widths, key=widths.__getitem__)
    return best if widths[best] < inf else 0


def exact_rank(n: int, alpha: float) -> int:
    """Rank of the score that textbook split conformal takes; above n means the whole range."""
    return ceil((1.0 - alpha) * (n + 1) - 1e-9)


def checked_levels(given: Any) -> Any:
    """The confidence levels of `prediction_levels`, increasing.

    Raises
    ------
    ValueError
    """
    try:
        levels = np.unique(np.asarray(given, float))
    except (TypeError, ValueError):
        levels = np.array([nan])
    if levels.ndim != 1 or not len(levels) or not ((levels > 0.0) & (levels < 1.0)).all():
        raise ValueError(f"prediction_levels={given!r} must be numbers in (0, 1).")
    return levels.tolist()
