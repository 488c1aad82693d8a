"""What the bounds of y would do to a fit, from public numbers, before anything is spent."""

from typing import Any
from dataclasses import dataclass
from html import escape
from math import sqrt
from numbers import Integral, Real

import numpy as np
from scipy import integrate, stats

from .._choices import PrivacyModel
from .._compat import Interval, StrOptions, validate_params
from ..privacy import MODELS, Budget, capabilities, models_that

HEADERS = ("low", "high", "below", "above", "kept", "bias", "noise", "error")
# Sensitivity of a first moment in scaled units: of a sum of r e with |r| <= 1 and ||e|| <= 1.
FIRST_MOMENT = 2.0
# Noise of a re-weighted fit over that of one first moment in a design that was whitened for free:
# 3.2 on two tables (benchmarks/inference.py; 7 for sufficient statistics). It is for orientation.
OVERHEAD = 3.2


@dataclass(frozen=True, eq=False)
class BoundsTradeoff:
    """Noise against clipping for some ranges of y; prints as a table, in HTML too.

    Attributes
    ----------
    bounds : ndarray of shape (n_ranges, 2)
    below, above : ndarray of shape (n_ranges,)
        Parts of the targets that are clipped.
    kept : ndarray of shape (n_ranges,)
        Part of a coefficient that is left: the others are clipped away.
    bias, noise, error : ndarray of shape (n_ranges,)
        Errors of a coefficient, in standard errors of least squares: what clipping takes away, the
        standard deviation that privacy adds, and the root mean square of both and of sampling.
    """

    bounds: np.ndarray
    below: np.ndarray
    above: np.ndarray
    kept: np.ndarray
    bias: np.ndarray
    noise: np.ndarray
    error: np.ndarray

    @property
    def best(self) -> tuple[float, float]:
        """The range with the least error, (low, high)."""
        return tuple(self.bounds[int(np.argmin(self.error))].tolist())

    def _cells(self):
        columns = [getattr(self, name) for name in HEADERS[2:]]
        for (low, high), *values in zip(self.bounds, *columns, strict=True):
            shares = [f"{value:.2%}" for value in values[:3]]
            yield f"{low:g}", f"{high:g}", *shares, *(f"{value:.3g}" for value in values[3:])

    def __str__(self):
        table = [HEADERS, *self._cells()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(map(str.rjust, row, widths)) for row in table]
        return "\n".join([*lines, "bias, noise and error in standard errors of least squares"])

    __repr__ = __str__

    def _repr_html_(self):
        def line(cells, tag):
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(line(cells, "td") for cells in self._cells())
        return f"<table><thead>{line(HEADERS, 'th')}</thead><tbody>{body}</tbody></table>"


@validate_params(
    {
        "bounds_y": ["array-like"],
        "target": "no_validation",
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "n_features": [Interval(Integral, 1, None, closed="left")],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "r2": [Interval(Real, 0, 1, closed="neither")],
        "privacy": [StrOptions(MODELS.keys())],
    },
    prefer_skip_nested_validation=True,
)
def bounds_tradeoff(
    bounds_y: Any,
    target: Any,
    *,
    n_samples: int,
    n_features: int,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    r2: float = 0.3,
    privacy: PrivacyModel = "central",
) -> "BoundsTradeoff":
    """Noise against clipping for ranges of y, from a public guess of its distribution.

    Nothing is read and nothing is spent: it is to be called before a fit.

    Parameters
    ----------
    bounds_y : array-like of shape (n_ranges, 2)
        Candidates (low, high), in the units of y.
    target : frozen distribution of scipy.stats, or (mean, deviation)
        A guess of the distribution of y from public knowledge, such as an older survey or a
        census; never from the rows. A pair is taken for a normal distribution.
    n_samples, n_features : int
        Public numbers of the fit.
    epsilon, delta : float
        Budget of the fit.
    r2 : float in (0, 1), default=0.3
        A guess of the part of the variance that the features explain. The larger, the more a
        coefficient stands out of its error, and the more clipping is seen.
    privacy : str, default="central"
        The privacy model: one with noise of a known size, which shuffling and "none" have not.

    Returns
    -------
    BoundsTradeoff

    Notes
    -----
    **Privacy guarantee**: it has no data, so there is nothing to protect.

    For jointly normal rows and targets clipping to [low, high] multiplies every coefficient by
    P(low < y < high), whatever the features are (Bussgang 1952). So the part that is clipped is the
    part of a coefficient that is lost; other laws are treated alike, by their own slope. The noise
    is 3.2 times that of a released first moment at a row of average leverage in a whitened design
    of p = n_features + 1 directions, 2 p half-width / (mu n) (times sqrt(n) in the local model): as
    measured for `ReweightedRegressor`. That of `SSPRegressor` is twice that and more where features
    are correlated. `LinearRegression` clips residuals rather than targets after its first step, so
    that wide bounds cost it much less: choose generous ones there.

    References
    ----------
    J. J. Bussgang (1952). Crosscorrelation functions of amplitude-distorted Gaussian signals. MIT
    Research Laboratory of Electronics, Technical Report 216.

    Examples
    --------
    >>> from skpriv.inspection import bounds_tradeoff
    >>> found = bounds_tradeoff(
    ...     [(10, 30), (0, 40), (0, 400)], (20.0, 7.0), n_samples=20_000, n_features=6
    ... )
    >>> print(found)
    low  high  below  above    kept    bias  noise  error
     10    30  7.66%  7.66%  84.69%    5.79  0.864   5.94
      0    40  0.21%  0.21%  99.57%   0.162   1.73      2
      0   400  0.21%  0.00%  99.79%  0.0808   17.3   17.3
    bias, noise and error in standard errors of least squares
    >>> found.best
    (0.0, 40.0)
    """
    pairs = np.atleast_2d(np.asarray(bounds_y, dtype=float))
    if pairs.shape[1:] != (2,):
        raise ValueError(f"bounds_y={bounds_y!r} must be pairs (low, high), one for each range.")
    if not (np.isfinite(pairs).all() and (pairs[:, 0] < pairs[:, 1]).all()):
        raise ValueError("bounds_y must be pairs (low, high) of finite numbers with low < high.")
    can = capabilities(privacy)
    if can.exact or can.amplifies:
        raise ValueError(
            f"privacy={privacy!r} has no noise of a size that is known from the budget alone: pass "
            f"{models_that('same_rows')} or {models_that('alone')}."
        )
    law = _law(target)
    low, high = pairs.T
    below, above = law.cdf(low), law.sf(high)
    p, deviation = n_features + 1, float(law.std())
    residual = deviation * sqrt(1.0 - r2)
    kept = 1.0 - below - above
    if not isinstance(target, tuple):  # slope of the clipped on the whole target
        kept = np.array([_slope(law, *pair) for pair in pairs])
    # Of an average coefficient: its ratio to its standard error
    strength = sqrt(n_samples * r2 / ((1.0 - r2) * n_features))
    bias = (1.0 - kept) * strength
    root = 1.0 if can.same_rows else sqrt(n_samples)
    scale = OVERHEAD * FIRST_MOMENT * p * root / (Budget(epsilon, delta).mu * n_samples)
    noise = scale * (high - low) / 2.0 / (residual * sqrt(p / n_samples))
    error = np.sqrt(1.0 + bias**2 + noise**2)
    return BoundsTradeoff(pairs, below, above, kept, bias, noise, error)


def _law(target):
    if hasattr(target, "cdf") and hasattr(target, "std"):
        if not np.isfinite(target.std()) or not target.std() > 0.0:
            raise ValueError("target has no finite positive deviation: guess another distribution.")
        return target
    try:
        mean, deviation = map(float, target)
    except (TypeError, ValueError):
        raise ValueError(
            "target must be a frozen distribution of scipy.stats, such as stats.norm(20.0, 7.0), "
            "or (mean, deviation): a guess from public knowledge, and not the targets themselves."
        ) from None
    if not (np.isfinite(mean) and np.isfinite(deviation) and deviation > 0.0):
        raise ValueError(
            f"target={target!r} must be a distribution, or (mean, deviation) with deviation>0."
        )
    return stats.norm(mean, deviation)


def _slope(law, low, high):
    """cov(clip(y), y) / var(y): the part of a signal along y that clipping leaves.

    cov(clip(y), y) is the integral over [low, high] of E (y - mean) 1{y > t}.
    """
    mean = law.mean()

    def above(t):  # E (y - mean) 1{y > t}, by the integral of the tail
        tail = integrate.quad(law.sf, t, law.isf(1e-12), limit=200)[0]
        return tail + (t - mean) * law.sf(t)

    grid = np.linspace(max(low, law.ppf(1e-9)), min(high, law.isf(1e-9)), 201)
    if not grid[0] < grid[-1]:
        return 0.0
    values = [above(t) for t in grid]
    return float(np.clip(integrate.simpson(values, x=grid) / law.var(), 0.0, 1.0))
