"""Picture of coefficients with their intervals."""

from typing import Any, Self
import numpy as np

from ._inference import Inference, inference
from ._units import INTERCEPT


class CoefficientDisplay:
    """Coefficients of a private fit with confidence intervals, one line each.

    The thin bar is the whole interval, the thick one what sampling alone would leave: the rest is
    the price of privacy. Make it with `from_estimator` or `from_inference`; it holds arrays only.

    Parameters
    ----------
    names : list of str
    estimate, low, high : ndarray of shape (n_coefficients,)
        NaN where a coefficient is not resolved.
    privacy_share : ndarray of shape (n_coefficients,)
        Part of the variance that privacy added.
    confidence_level : float

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    inference : The numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.inspection import CoefficientDisplay
    >>> from skpriv.linear_model import SSPRegressor
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(50_000, 2))
    >>> y = X @ [1.0, -0.5] + rng.uniform(-0.2, 0.2, size=50_000)
    >>> display = CoefficientDisplay.from_estimator(SSPRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1), random_state=0
    ... ).fit(X, y))
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['x0', 'x1']
    """

    def __init__(
        self,
        *,
        names: Any,
        estimate: Any,
        low: Any,
        high: Any,
        privacy_share: Any,
        confidence_level: float,
    ) -> None:
        self.names = names
        self.estimate = estimate
        self.low = low
        self.high = high
        self.privacy_share = privacy_share
        self.confidence_level = confidence_level

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        confidence_level: float = 0.95,
        method: str = "asymptotic",
        intercept: Any = False,
        ax: Any = None,
    ) -> Self:
        """Compute the coefficients of a fitted model, and plot them.

        Parameters
        ----------
        model : estimator
            See :func:`inference`.
        confidence_level : float in (0, 1), default=0.95
        method : {"asymptotic"}, default="asymptotic"
        intercept : bool, default=False
            Whether to show the intercept.
        ax : matplotlib Axes, default=None
            Where to plot; None makes a figure.

        Returns
        -------
        display : CoefficientDisplay
        """
        found = inference(model, confidence_level=confidence_level, method=method)
        return cls.from_inference(found, intercept=intercept).plot(ax)

    @classmethod
    def from_inference(cls, found: Any, *, intercept: Any = False) -> Self:
        """Take coefficients that have been computed; `plot` draws them.

        Parameters
        ----------
        found : Inference
        intercept : bool, default=False

        Returns
        -------
        display : CoefficientDisplay
        """
        if not isinstance(found, Inference):
            raise TypeError(
                f"found is a {type(found).__name__}, but it must be what inference(model) "
                "returned: from_estimator draws the coefficients of a fitted model."
            )
        keep = [i for i, name in enumerate(found.names) if intercept or name != INTERCEPT]
        return cls(
            names=[found.names[i] for i in keep],
            estimate=found.estimate[keep],
            low=found.low[keep],
            high=found.high[keep],
            privacy_share=found.privacy_share[keep],
            confidence_level=found.confidence_level,
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw the coefficients.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a figure.

        Returns
        -------
        display : CoefficientDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        from matplotlib import pyplot

        if ax is None:
            _, ax = pyplot.subplots(figsize=(6.0, 1.0 + 0.35 * len(self.names)))
        places = np.arange(len(self.names))
        half = (self.high - self.low) / 2.0
        sampling = half * np.sqrt(np.clip(1.0 - self.privacy_share, 0.0, 1.0))
        ax.axvline(0.0, color="0.7", linewidth=1.0)
        ax.hlines(places, self.low, self.high, color="C0", linewidth=1.2, label="with privacy")
        ax.hlines(
            places, self.estimate - sampling, self.estimate + sampling,
            color="C0", linewidth=4.0, alpha=0.5, label="sampling alone",
        )  # fmt: skip
        ax.plot(self.estimate, places, "o", color="C0", markersize=4.0)
        for place in places[np.isnan(self.estimate)]:
            ax.text(0.5, place, "not resolved", transform=ax.get_yaxis_transform(), va="center")
        ax.set_yticks(places, self.names)
        ax.invert_yaxis()
        ax.set_xlabel(f"coefficient, with {self.confidence_level:.0%} interval")
        ax.legend(loc="best", frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
