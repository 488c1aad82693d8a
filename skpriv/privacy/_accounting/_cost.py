"""The cost of releases, in units that add up, and its conversion to (epsilon, delta).

Every conversion is pure, takes floats, and is rounded to the safe side: an epsilon up, and a
``mu`` or a ``rho`` down, so that the guarantee holds for the number that is returned, with a delta
that is relatively off by less than ``SHARE_SLACK``.

Symbols: mu = Gaussian-DP parameter (Dong, Roth and Su, 2022); rho = zCDP parameter (Bun and
Steinke, 2016); alpha = order of the Renyi divergence.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import lru_cache
from math import erf, exp, inf, isinf, log, log1p, pi, sqrt
from numbers import Real
from operator import add
from typing import Any

from scipy.special import erfcx, ndtr, ndtri_exp

from ..._linalg import ROUNDED, bisected, unwarned
from ..._stored import frozen, stored
from ...exceptions import PrivacyError

_SQRT2 = sqrt(2.0)


def _boundary(below: Callable[[float], bool]) -> tuple[float, float]:
    """Last point below and first point above a threshold of [0, inf), as adjacent floats.

    ``below`` is true on an initial interval of the half-line and false after it.
    """
    low = 0.0
    high = 1.0
    while below(high):
        low = high
        high *= 2.0
        if isinf(high):
            return low, high
    return bisected(below, low, high)


def _least_epsilon(
    delta_of: Callable[[float, float], float], parameter: float, delta: float
) -> float:
    """Smallest epsilon with delta_of(epsilon, parameter) <= delta, rounded up."""
    if delta_of(0.0, parameter) <= delta:
        return 0.0
    if delta == 0.0 or parameter == inf:
        return inf
    return _boundary(lambda epsilon: delta_of(epsilon, parameter) > delta)[1]


def _largest_parameter(
    delta_of: Callable[[float, float], float], epsilon: float, delta: float
) -> float:
    """Largest parameter with delta_of(epsilon, parameter) <= delta, rounded down."""
    if epsilon == inf:
        return inf
    if delta == 0.0:
        return 0.0
    return _boundary(lambda parameter: delta_of(epsilon, parameter) <= delta)[0]


@unwarned()
def gdp_delta(epsilon: float, mu: float) -> float:
    """Smallest delta such that mu-Gaussian DP implies (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float >= 0
    mu : float >= 0

    Returns
    -------
    delta : float in [0, 1]

    Notes
    -----
    delta = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu). With t = epsilon/mu and
    h = mu/2, exp(epsilon) phi(t + h) = phi(t - h): the two terms are phi(t - h) times the Mills
    ratios of t - h and t + h, which neither overflow nor lose the digits of a tiny delta.

    Examples
    --------
    >>> round(gdp_delta(epsilon=1.0, mu=1.0), 6)
    0.126937
    """
    if mu == 0.0 or epsilon == inf:
        return 0.0
    if epsilon == 0.0:
        return erf(mu / (2.0 * _SQRT2))
    t = min(epsilon / mu, 1e300)  # no infinite t, of which 0 times inf would come
    h = mu / 2.0
    low = (t - h) / _SQRT2
    high = (t + h) / _SQRT2
    # The function erfcx(x / sqrt(2)) is the Mills ratio of x times sqrt(2 / pi).
    density = 0.5 * exp(-0.5 * (t - h) * (t - h))
    if h < 1e-5:
        # The difference below would lose its digits. It is an integral from low to high of a convex
        # function, above which the trapezoid rule lies.
        slopes = 2.0 / sqrt(pi) - low * erfcx(low) - high * erfcx(high)
        delta = density * _SQRT2 * h * slopes
    elif t <= h:  # delta is large, and the difference loses no digits
        delta = ndtr(h - t) - density * erfcx(high)
    else:
        delta = density * (erfcx(low) - erfcx(high))
    return min(1.0, max(0.0, float(delta)))


@lru_cache(maxsize=4096)
def gdp_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon such that mu-Gaussian DP implies (epsilon, delta)-DP, rounded up.

    Parameters
    ----------
    mu : float >= 0
    delta : float in [0, 1)

    Returns
    -------
    epsilon : float
        Infinite when ``delta`` is 0 and ``mu`` is not.

    Examples
    --------
    >>> round(gdp_epsilon(mu=1.0, delta=1e-6), 4)
    4.8866
    """
    return _least_epsilon(gdp_delta, mu, delta)


@lru_cache(maxsize=4096)
def gdp_mu(epsilon: float, delta: float) -> float:
    """Largest mu such that mu-Gaussian DP implies (epsilon, delta)-DP, rounded down.

    A Gaussian release of l2 sensitivity D needs the standard deviation D / mu; this is the
    analytic Gaussian mechanism of Balle and Wang (2018).

    Parameters
    ----------
    epsilon : float >= 0
    delta : float in [0, 1)

    Returns
    -------
    mu : float
        0 when ``delta`` is 0 and ``epsilon`` is finite.

    Examples
    --------
    >>> round(1 / gdp_mu(epsilon=1.0, delta=1e-6), 3)
    4.225
    """
    return _largest_parameter(gdp_delta, epsilon, delta)


def zcdp_delta(epsilon: float, rho: float) -> float:
    """Smallest delta known such that rho-zCDP implies (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float >= 0
    rho : float >= 0

    Returns
    -------
    delta : float in [0, 1]

    Notes
    -----
    Canonne, Kamath and Steinke (2020), Corollary 13: the minimum over alpha > 1 of
    exp((alpha - 1)(alpha rho - epsilon)) (1 - 1/alpha)^alpha / (alpha - 1). The derivative of the
    logarithm, (2 alpha - 1) rho - epsilon + log(1 - 1/alpha), is increasing, so the minimum is
    found by bisection; any alpha gives a valid bound.

    Examples
    --------
    >>> round(zcdp_delta(epsilon=1.0, rho=0.5), 4)
    0.2468
    """
    if rho == 0.0 or epsilon == inf:
        return 0.0
    # Bounds of log(alpha - 1); the upper one is finite for the smallest rho, too.
    low = -700.0
    high = min(700.0, log((epsilon + 1.0) / (2.0 * rho) + 2.0))

    def falls(middle: float) -> bool:
        order = exp(middle)  # alpha - 1
        return (2.0 * order + 1.0) * rho - epsilon - log1p(1.0 / order) < 0

    _, high = bisected(falls, low, high, 1e-9)
    order = exp(high)
    exponent = order * ((1.0 + order) * rho - epsilon - log1p(1.0 / order))
    return exp(min(0.0, exponent - log1p(order)))


@lru_cache(maxsize=4096)
def zcdp_epsilon(rho: float, delta: float) -> float:
    """Smallest epsilon known such that rho-zCDP implies (epsilon, delta)-DP, rounded up.

    Parameters
    ----------
    rho : float >= 0
    delta : float in [0, 1)

    Returns
    -------
    epsilon : float
        Infinite when ``delta`` is 0 and ``rho`` is not.

    Examples
    --------
    >>> round(zcdp_epsilon(rho=0.5, delta=1e-6), 4)
    5.2215
    """
    return _least_epsilon(zcdp_delta, rho, delta)


@lru_cache(maxsize=4096)
def zcdp_rho(epsilon: float, delta: float) -> float:
    """Largest rho known such that rho-zCDP implies (epsilon, delta)-DP, rounded down.

    Parameters
    ----------
    epsilon : float >= 0
    delta : float in [0, 1)

    Returns
    -------
    rho : float
        0 when ``delta`` is 0 and ``epsilon`` is finite.

    Examples
    --------
    >>> round((2 * zcdp_rho(epsilon=1.0, delta=1e-6)) ** -0.5, 3)
    4.531
    """
    return _largest_parameter(zcdp_delta, epsilon, delta)


@stored
@frozen
class Budget:
    """An (epsilon, delta)-differential privacy guarantee, when one record is replaced.

    Parameters
    ----------
    epsilon : float >= 0, or infinity
        The smaller, the more private; ``float("inf")`` stands for no privacy.
    delta : float in [0, 1), default=0.0
        Probability with which the guarantee may fail; far below one over the number of records.

    Attributes
    ----------
    mu : float
        The largest Gaussian-DP parameter that implies this guarantee.
    rho : float
        The largest zero-concentrated DP parameter known to imply this guarantee.

    Notes
    -----
    No Gaussian noise gives ``delta=0``: there ``mu`` and ``rho`` are 0, unless epsilon is infinite.
    Budgets are not ordered, because of two of them neither needs to be the stronger.

    Examples
    --------
    >>> from skpriv.privacy import Budget
    >>> budget = Budget(epsilon=1.0, delta=1e-6)
    >>> budget
    Budget(epsilon=1.0, delta=1e-06)
    >>> print(f"{budget.mu:.4f} {budget.rho:.4f}")
    0.2367 0.0244
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            object.__setattr__(self, name, _as_float(name, getattr(self, name)))
        if not self.epsilon >= 0.0:
            raise ValueError(
                f"epsilon must be at least 0, got {self.epsilon}; "
                "use epsilon=float('inf') for no privacy."
            )
        if not 0.0 <= self.delta < 1.0:
            raise ValueError(
                f"delta must be in [0, 1), got {self.delta}; "
                "choose it far below one over the number of records."
            )

    @property
    def mu(self) -> float:
        """Largest Gaussian-DP parameter that implies this guarantee."""
        return gdp_mu(self.epsilon, self.delta)

    @property
    def rho(self) -> float:
        """Largest zero-concentrated DP parameter known to imply this guarantee."""
        return zcdp_rho(self.epsilon, self.delta)

    @classmethod
    def from_mu(cls, mu: float, delta: float) -> "Budget":
        """Tightest budget at ``delta`` that mu-Gaussian DP implies.

        Parameters
        ----------
        mu : float >= 0, or infinity
            Parameter of Gaussian DP: the l2 sensitivity over the standard deviation.
        delta : float in [0, 1)
            Probability with which epsilon may be exceeded.

        Returns
        -------
        budget : Budget

        Raises
        ------
        PrivacyError
            If ``delta`` is 0 and ``mu`` is neither 0 nor infinite.

        Examples
        --------
        >>> from skpriv.privacy import Budget
        >>> round(Budget.from_mu(1.0, delta=1e-6).epsilon, 4)
        4.8866
        """
        _check_parameter("mu", mu, cls(0.0, delta).delta)
        return cls(gdp_epsilon(float(mu), float(delta)), delta)

    @classmethod
    def from_rho(cls, rho: float, delta: float) -> "Budget":
        """Tightest budget known at ``delta`` that rho-zCDP implies.

        Parameters
        ----------
        rho : float >= 0, or infinity
            Parameter of zero-concentrated DP.
        delta : float in [0, 1)
            Probability with which epsilon may be exceeded.

        Returns
        -------
        budget : Budget

        Raises
        ------
        PrivacyError
            If ``delta`` is 0 and ``rho`` is neither 0 nor infinite.

        Examples
        --------
        >>> from skpriv.privacy import Budget
        >>> round(Budget.from_rho(0.5, delta=1e-6).epsilon, 4)
        5.2215
        """
        _check_parameter("rho", rho, cls(0.0, delta).delta)
        return cls(zcdp_epsilon(float(rho), float(delta)), delta)


def _check_parameter(name: str, value: float, delta: float) -> None:
    _nonnegative(name, value)
    if delta == 0.0 and 0.0 < value < inf:
        kind = "Gaussian" if name == "mu" else "zero-concentrated"
        raise PrivacyError(
            f"a {kind} release has no finite epsilon at delta=0; give a delta above 0."
        )


CURRENCIES = ("gdp", "zcdp", "pure")

# Relative excess over a budget that is forgiven: ten shares of 0.1 add up to 1 + 2e-16.
SHARE_SLACK = ROUNDED


@stored
@frozen
class Cost:
    """The privacy cost of some releases: a vector whose coordinates add up under composition.

    Parameters
    ----------
    gaussian : float, default=0.0
        Sum of mu^2 of the Gaussian mechanisms, whose composition is exactly Gaussian.
    concentrated : float, default=0.0
        Sum of rho of the zCDP mechanisms of which nothing else is known.
    selected : float, default=0.0
        Sum of rho = eta^2 / 8 of the selections of bounded range eta.
    pure : float, default=0.0
        Sum of epsilon of the pure mechanisms.
    pure_squared : float, default=0.0
        Sum of epsilon^2 / 2 of the same ones: what they cost in zCDP.
    pure_gaussian : float, default=0.0
        Sum of mu^2 of the same ones, mu = `pure_mu` of epsilon: what they cost in Gaussian DP.
    approximate : float, default=0.0
        Sum of epsilon of the (epsilon, delta) mechanisms.
    delta : float, default=0.0
        Sum of delta of the same ones.

    Notes
    -----
    Mechanisms may be chosen adaptively. `epsilon` and `fits` hold if the costs themselves were
    fixed beforehand; where they are chosen in view of earlier releases, only a sum in one currency
    is a guarantee, which is `amount`. Infinite costs stand for releases that are not private.

    Examples
    --------
    >>> from skpriv.privacy import Budget, Cost
    >>> budget = Budget(1.0, 1e-6)
    >>> quarter = Cost.from_mu(budget.mu / 2)
    >>> (quarter + quarter + quarter + quarter).fits(budget)
    True
    """

    gaussian: float = 0.0
    concentrated: float = 0.0
    selected: float = 0.0
    pure: float = 0.0
    pure_squared: float = 0.0
    pure_gaussian: float = 0.0
    approximate: float = 0.0
    delta: float = 0.0

    def __post_init__(self) -> None:
        for name, given in vars(self).items():
            # Of a float from 0 on nothing is to be asked: a fit makes hundreds of costs
            if type(given) is not float or not given >= 0.0:
                object.__setattr__(self, name, _nonnegative(name, given))

    @classmethod
    def from_mu(cls, mu: float) -> "Cost":
        """Cost of a Gaussian release, of l2 sensitivity mu times its standard deviation.

        Parameters
        ----------
        mu : float
            A number of at least 0; infinity is an exact answer.

        Returns
        -------
        Cost
            The cost of one release.
        """
        return cls(gaussian=_nonnegative("mu", mu) * float(mu))

    @classmethod
    def from_rho(cls, rho: float) -> "Cost":
        """Cost of a rho-zCDP mechanism (use `from_mu` if it is Gaussian: that is tighter).

        Parameters
        ----------
        rho : float
            A number of at least 0; infinity is an exact answer.

        Returns
        -------
        Cost
            The cost of one release.
        """
        return cls(concentrated=_nonnegative("rho", rho))

    @classmethod
    def from_epsilon(cls, epsilon: float) -> "Cost":
        """Cost of an epsilon-DP mechanism.

        Parameters
        ----------
        epsilon : float
            A number of at least 0; infinity is an exact answer.

        Returns
        -------
        Cost
            The cost of one release.
        """
        epsilon = _nonnegative("epsilon", epsilon)
        mu = pure_mu(epsilon)
        return cls(pure=epsilon, pure_squared=epsilon * epsilon / 2.0, pure_gaussian=mu * mu)

    @classmethod
    def from_range(cls, eta: float, times: int = 1) -> "Cost":
        """Cost of ``times`` selections whose log ratios lie in an interval of length eta.

        Such as exponential mechanisms, or a noisy maximum with Gumbel noise. The interval may be
        anywhere: [t - eta, t], t in [0, eta].

        Parameters
        ----------
        eta : float
            Length of the interval, at least 0.
        times : int, default=1
            Number of selections, each of which has this range.

        Returns
        -------
        Cost
            The cost of all selections together.
        """
        return cls(selected=times * _nonnegative("eta", eta) * float(eta) / 8.0)

    @classmethod
    def from_budget(cls, budget: Budget) -> "Cost":
        """Cost of a mechanism of which only its (epsilon, delta) guarantee is known.

        Parameters
        ----------
        budget : Budget
            Guarantee of the mechanism.

        Returns
        -------
        Cost
            The cost of one release.
        """
        if budget.delta == 0.0:
            return cls.from_epsilon(budget.epsilon)
        return cls(approximate=budget.epsilon, delta=budget.delta)

    @classmethod
    def maximum(cls, costs: Iterable["Cost"]) -> "Cost":
        """Cost of releases about disjoint, publicly indexed sets of records.

        Neighbours differ in one record, which is in one of the sets: only the releases about
        that set can tell them apart, so its cost is what is paid. The coordinate-wise maximum is
        at least the cost of any of the sets, and `epsilon` is non-decreasing in each coordinate.

        Parameters
        ----------
        costs : iterable of Cost
            Costs of the releases about each set; at least one.

        Returns
        -------
        Cost
            The largest of each coordinate.
        """
        return cls(*map(max, zip(*map(cls.as_tuple, costs))))

    def as_tuple(self) -> tuple[float, ...]:
        """Return the coordinates, in the order of the parameters.

        Returns
        -------
        tuple of float
            One number for each parameter, all at least 0.
        """
        return tuple(vars(self).values())

    def __add__(self, other: "Cost") -> "Cost":
        if not isinstance(other, Cost):
            return NotImplemented
        return Cost(*map(add, self.as_tuple(), other.as_tuple()))

    def epsilon(self, delta: float = 0.0) -> float:
        """Smallest epsilon for which the releases together are known to be (epsilon, delta)-DP.

        Parameters
        ----------
        delta : float in [0, 1), default=0.0
            Probability with which epsilon may be exceeded.

        Returns
        -------
        epsilon : float
            Infinite if there is none.

        Notes
        -----
        The smallest over three valid routes: the Gaussian releases by Gaussian DP, or they and
        the concentrated ones by zCDP, plus the sum of the pure epsilons; or all these by zCDP. Each
        leaves the sum of the approximate epsilons and deltas to be added.
        """
        left = delta - self.delta
        if left < -SHARE_SLACK * delta:
            return inf
        left = max(0.0, left)
        concentrated = self.gaussian / 2.0 + self.concentrated + self.selected
        if self.concentrated + self.selected == 0.0:
            noisy = gdp_epsilon(sqrt(self.gaussian), left)
        else:
            noisy = zcdp_epsilon(concentrated, left)
        found = noisy + self.pure
        if self.pure > 0.0:
            found = min(found, zcdp_epsilon(concentrated + self.pure_squared, left))
        return found + self.approximate

    def amount(self, currency: str) -> float:
        """The cost of the releases in one currency; the approximate ones are left out.

        Parameters
        ----------
        currency : {"gdp", "zcdp", "pure"}

        Returns
        -------
        amount : float
            mu^2, rho or epsilon; infinite if the releases have no finite cost in this currency.

        Notes
        -----
        Amounts add up even if each is chosen in view of what was released before: mu^2 (Smith and
        Thakurta 2022), rho (Whitehouse et al. 2023) and epsilon have filters without a surcharge.

        *Pure to Gaussian.* If log ratios lie in an interval of length eta, the pair of laws is
        dominated by a pair of coins with these two log ratios (Blackwell: E_Q (L - c)_+ is convex
        in the likelihood ratio L, hence largest for the law on the two ends with mean 1), heads
        with probability p and q, logit(p) - logit(q) = eta. The trade-off curve of the coins has
        one corner, and a convex curve lies under a polygon if it does at its corners: the coins
        are mu-Gaussian-DP exactly from mu = Phi^-1(p) - Phi^-1(q) on. For a pure epsilon the two
        ends are -epsilon and epsilon: mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon)).

        *Selections to Gaussian.* There the place of the interval is unknown, and mu is the
        largest over all q of h(logit(q) + eta) - h(logit(q)), h = Phi^-1 of the logistic function.
        The slope of h at the point where h = z is Phi(z) Phi(-z) / phi(z) <= sqrt(2 pi) / 4: this
        is 1 - (2 Phi(z) - 1)^2 <= exp(-z^2 / 2), or that the square [-z, z]^2 has at least the
        normal mass of the disc inside it. Hence mu <= eta sqrt(pi / 8), nearly attained for small
        eta: mu^2 = pi rho, where Gaussian noise of the same rho would cost 2 rho.

        *zCDP to Gaussian* is impossible in general: rho bounds moments, and no trade-off curve.
        """
        if currency == "gdp":
            refused = inf if self.concentrated else 0.0
            return self.gaussian + pi * self.selected + self.pure_gaussian + refused
        if currency == "zcdp":
            return self.gaussian / 2.0 + self.concentrated + self.selected + self.pure_squared
        if currency == "pure":
            return inf if self.gaussian + self.concentrated + self.selected else self.pure
        raise ValueError(f"currency={currency!r} must be one of {list(CURRENCIES)}.")

    def converted(self, currency: str) -> "Cost":
        """The same releases with one coordinate for all that has a cost in this currency.

        Parameters
        ----------
        currency : {"gdp", "zcdp", "pure"}
            Gaussian DP, zero-concentrated DP or pure epsilon.

        Returns
        -------
        Cost
            A cost in this currency, beside approximate releases, which keep theirs.
        """
        name = {"gdp": "gaussian", "zcdp": "concentrated", "pure": "pure"}[currency]
        amount = {name: self.amount(currency)}
        return Cost(**amount, approximate=self.approximate, delta=self.delta)

    def fits(self, budget: Budget) -> bool:
        """Whether the releases together are known to satisfy ``budget``.

        A relative excess of 1e-9 is forgiven, for the rounding of sums that spend a budget
        exactly. Gaussian costs are compared in mu, where no conversion is needed.

        Parameters
        ----------
        budget : Budget
            The most that may be spent.

        Returns
        -------
        bool
            Whether the cost is within the budget.
        """
        if budget.epsilon == inf:
            return True
        if self == Cost(gaussian=self.gaussian):
            return sqrt(self.gaussian) <= budget.mu * (1.0 + SHARE_SLACK)
        return self.epsilon(budget.delta) <= budget.epsilon * (1.0 + SHARE_SLACK)

    def __repr__(self) -> str:
        shown = (f"{name}={value:.6g}" for name, value in asdict(self).items())
        return f"Cost({', '.join(text for text in shown if not text.endswith('=0'))})"


def pure_mu(epsilon: float) -> float:
    """Smallest mu such that every epsilon-DP mechanism is mu-Gaussian-DP, rounded up.

    Examples
    --------
    >>> round(pure_mu(1.0), 4)
    1.232
    """
    line = sqrt(pi / 2.0) * epsilon  # the bound of `Cost.amount`, which is tight at 0
    if epsilon < 1e-3 or epsilon == inf:
        return line * (1.0 + 1e-12)
    tail = ndtri_exp(-epsilon - log1p(exp(-epsilon)))
    return min(line, -2.0 * float(tail)) * (1.0 + 1e-12)


def _nonnegative(name: str, given: float) -> float:
    value = given if type(given) is float else _as_float(name, given)
    if not value >= 0.0:
        raise ValueError(f"{name} must be at least 0, got {value}.")
    return value


def _as_float(name: str, given: Any) -> float:
    """A number that was given, which is no text and no truth value."""
    if isinstance(given, bool) or not isinstance(given, Real):
        raise TypeError(f"{name} must be a real number, got {given!r} instead.")
    try:
        return float(given)
    except OverflowError:
        raise ValueError(f"{name} is a whole number that no float can hold.") from None
