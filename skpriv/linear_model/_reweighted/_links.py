"""Links: how the mean of the target depends on a linear function."""

from typing import Any
from abc import ABC, abstractmethod

import numpy as np
from scipy import special


class Link(ABC):
    """An increasing link of a generalised linear model, in scaled units (targets in [-1, 1]).

    The mean of the target is ``mean(<phi, theta>)``. The privacy guarantee does not rely on what a
    link promises; accuracy and intervals do.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import Link
    >>> class Arctan(Link):
    ...     '''The mean is (2 / pi) arctan(t).'''
    ...     def mean(self, linear):
    ...         return 2.0 / np.pi * np.arctan(linear)
    ...     def slope_bounds(self, bound):
    ...         return 2.0 / np.pi / (1.0 + bound**2), 2.0 / np.pi
    >>> float(Arctan().mean(1.0))
    0.5
    """

    @abstractmethod
    def mean(self, linear: Any) -> np.ndarray:
        """Mean of the target, in [-1, 1], at values of the linear function.

        Parameters
        ----------
        linear : ndarray

        Returns
        -------
        ndarray of the same shape
        """

    @abstractmethod
    def slope_bounds(self, bound: Any) -> tuple[float, float]:
        """Smallest and largest derivative of ``mean`` on [-bound, bound], both positive.

        Parameters
        ----------
        bound : float

        Returns
        -------
        (low, high) : floats
        """


class IdentityLink(Link):
    """The mean is the linear function itself."""

    def mean(self, linear):
        """Linear function."""
        return linear

    def slope_bounds(self, bound):
        """One."""
        return 1.0, 1.0


class LogitLink(Link):
    """Logistic regression: the mean is 2 / (1 + exp(-t)) - 1 = tanh(t / 2).

    In the units of a target in ``bounds_y=(0, 1)`` that is the logistic function of t.
    """

    def mean(self, linear):
        """tanh(linear / 2)."""
        return np.tanh(np.asarray(linear) / 2.0)

    def slope_bounds(self, bound):
        """1 / (2 cosh(bound / 2)^2) and one half."""
        return 2.0 * float(special.expit(bound) * special.expit(-bound)), 0.5


LINKS: dict[str, Link] = {"identity": IdentityLink(), "logit": LogitLink()}
