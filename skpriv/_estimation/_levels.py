"""Levels of confidence, their normal quantiles, and usual ranges, which are told by one of them."""

from numbers import Real
from typing import Any

from scipy.special import ndtri


def check_level(confidence_level: Any) -> None:
    """Refuse what is no level of an interval."""
    if not isinstance(confidence_level, Real) or not 0.0 < float(confidence_level) < 1.0:
        raise ValueError(f"confidence_level={confidence_level!r} must lie in (0, 1), as a number.")


def one_sided_quantile(failure: float) -> float:
    """Standard errors above which a normal variable is with this probability."""
    return -float(ndtri(failure))


def two_sided_quantile(confidence_level: float) -> float:
    """Half-width, in standard errors, of a normal interval with equal tails.

    All two-sided normal levels are made here: a level that is put in the place of a probability
    would make 90% of what is called 95%.

    Examples
    --------
    >>> from skpriv._estimation._levels import two_sided_quantile
    >>> round(two_sided_quantile(0.95), 2)
    1.96
    """
    return one_sided_quantile((1.0 - confidence_level) / 2.0)


# Deviations of its noise above which a number counts as told from it, and that a released count or
# distance may be off: of the level of most intervals.
USUAL_QUANTILE = two_sided_quantile(0.95)
# Deviations of a normal variable between the ends of its usual range, which holds nine tenths.
USUAL_DEVIATIONS = 2.0 * two_sided_quantile(0.9)


def usual_moments(low: Any, high: Any) -> Any:
    """Mean and deviation of normal values of which nine tenths lie in a usual range."""
    return (low + high) / 2.0, (high - low) / USUAL_DEVIATIONS
