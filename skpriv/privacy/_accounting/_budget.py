"""The (epsilon, delta) guarantee that a user asks for."""

import math
from dataclasses import dataclass
from numbers import Real

from ...exceptions import PrivacyError
from ._conversions import gdp_epsilon, gdp_mu, zcdp_epsilon, zcdp_rho

__all__ = ["Budget"]


@dataclass(frozen=True, repr=False)
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
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real):
                raise TypeError(f"{name} must be a real number, got {value!r} instead.")
            object.__setattr__(self, name, float(value))
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
        delta : float in [0, 1)

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
        delta : float in [0, 1)

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

    def __repr__(self) -> str:
        return f"Budget(epsilon={self.epsilon}, delta={self.delta})"


def _check_parameter(name: str, value: float, delta: float) -> None:
    if not value >= 0.0:
        raise ValueError(f"{name} must be at least 0, got {value!r}.")
    if delta == 0.0 and 0.0 < value < math.inf:
        kind = "Gaussian" if name == "mu" else "zero-concentrated"
        raise PrivacyError(
            f"a {kind} release has no finite epsilon at delta=0; give a delta above 0."
        )
