"""Picture of what privacy costs in accuracy."""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from .._printing import Display, pyplot
from ._curve import privacy_utility_curve

_LABELS = {
    "score": "{score_name} on held-out rows",
    "width": "mean width of the intervals",
    "coverage": "intervals that contain the reference",
    "prediction_width": "mean width of the intervals for a new y",
    "prediction_coverage": "held-out targets inside of their intervals",
}


@dataclass(kw_only=True, eq=False, repr=False)
class PrivacyUtilityDisplay(Display):
    """Score, interval width or coverage proxy of a private estimator over epsilon.

    Make it with `from_estimator` or `from_curve`; it holds arrays only.

    Parameters
    ----------
    epsilons : ndarray of shape (n_epsilons,)
        Values of epsilon; infinite ones are not drawn.

    test_scores : ndarray of shape (n_epsilons, n_repeats, n_folds)
        Scores on held-out rows.

    interval_widths, interval_coverages : ndarray of the same shape, default=None
        Mean width of the intervals, and their coverage proxy.

    prediction_widths, prediction_coverages : ndarray of the same shape, default=None
        Mean width of the intervals for a new y, and the held-out targets inside.

    reference_scores, reference_widths : ndarray of shape (n_folds,), default=None
        Scores and widths of the reference without privacy.

    estimator_name : str, default=None
        Label of the line.

    score_name : str, default="score"
        What the scores are.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curve.

    figure_ : matplotlib Figure
        Figure that contains the axes.

    line_ : matplotlib Line2D
        Medians over repeats and folds.

    band_ : matplotlib PolyCollection
        The band from the 10% to the 90% quantile.

    reference_line_ : matplotlib Line2D or None
        Median of the reference.

    See Also
    --------
    privacy_utility_curve : The numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import SSPRegressor
    >>> from skpriv.model_selection import PrivacyUtilityDisplay
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(2000, 3))
    >>> y = X @ [1.0, -0.5, 0.0] + rng.uniform(-0.2, 0.2, size=2000)
    >>> display = PrivacyUtilityDisplay.from_estimator(
    ...     SSPRegressor(
    ...         data_norm=1.0, bounds_y=(-1, 1)
    ...     ), X, y, epsilons=(1.0, 10.0), random_state=0
    ... )
    >>> display.ax_.get_xlabel()
    'epsilon'
    """

    epsilons: Any
    test_scores: Any
    interval_widths: Any = None
    interval_coverages: Any = None
    prediction_widths: Any = None
    prediction_coverages: Any = None
    reference_scores: Any = None
    reference_widths: Any = None
    estimator_name: Any = None
    score_name: str = "score"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        ax: Any = None,
        quantity: str = "score",
        **options: Any,
    ) -> Self:
        """Compute the curve and plot it.

        Parameters
        ----------
        estimator : estimator
            See :func:`privacy_utility_curve`.
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Target.
        ax : matplotlib Axes, default=None
            Where to plot; None makes a figure.
        quantity : {"score", "width", "coverage", "prediction_width", "prediction_coverage"}, \
                default="score"
            What to plot.
        **options : dict
            Options of :func:`privacy_utility_curve`: ``epsilons``, ``cv``, ``reference`` and so on.

        Returns
        -------
        display : PrivacyUtilityDisplay
        """
        pyplot(f"{cls.__name__}.from_estimator")  # before the long computation
        curve = privacy_utility_curve(estimator, X, y, **options)
        return cls.from_curve(curve).plot(ax, quantity=quantity)

    @classmethod
    def from_curve(cls, curve: Any) -> Self:
        """Take a curve that has been computed; `plot` draws it.

        Parameters
        ----------
        curve : Bunch
            Curve of :func:`privacy_utility_curve`.

        Returns
        -------
        display : PrivacyUtilityDisplay
        """
        return cls(**{item.name: curve[item.name] for item in fields(cls)})

    def plot(
        self,
        ax: Any = None,
        *,
        quantity: str = "score",
        name: str | None = None,
        show_reference: bool = True,
    ) -> Self:
        """Draw medians, the band from the 10% to the 90% quantile, and the reference.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to plot; None makes a figure.
        quantity : {"score", "width", "coverage", "prediction_width", "prediction_coverage"}, \
                default="score"
            What to plot.
        name : str, default=None
            Label of the line; None is the name of the estimator.
        show_reference : bool, default=True
            Whether to draw the reference, if there is one.

        Returns
        -------
        display : PrivacyUtilityDisplay
            Itself, with `ax_` and `figure_`.
        """
        values, reference = self._quantity(quantity)
        finite = np.isfinite(self.epsilons)
        order = np.argsort(self.epsilons[finite])
        x = self.epsilons[finite][order]
        values = values[finite][order].reshape(len(x), -1)
        low, high = np.quantile(values, [0.1, 0.9], axis=1, method="inverted_cdf")
        middle = np.median(values, axis=1)
        ax = self._axes(ax)
        (self.line_,) = ax.plot(x, middle, marker="o", label=name or self.estimator_name)
        self.band_ = ax.fill_between(x, low, high, alpha=0.2, color=self.line_.get_color())
        self.reference_line_ = None
        if reference is not None and show_reference:
            self.reference_line_ = ax.axhline(
                np.median(reference), color="0.4", linestyle="--", label="reference, not private"
            )
        ax.set(xscale="log", xlabel="epsilon")
        if "width" in quantity:
            ax.set_ylim(bottom=0.0)  # half of a width is half as long
        ax.set_ylabel(_LABELS[quantity].format(score_name=self.score_name))
        ax.legend()
        return self._drawn(ax)

    def _quantity(self, quantity):
        """Values to plot, and those of the reference or None."""
        known = {
            "score": (self.test_scores, self.reference_scores),
            "width": (self.interval_widths, self.reference_widths),
            "coverage": (self.interval_coverages, None),
            "prediction_width": (self.prediction_widths, None),
            "prediction_coverage": (self.prediction_coverages, None),
        }
        if quantity not in known:
            raise ValueError(f"quantity={quantity!r} must be one of {list(known)}.")
        if known[quantity][0] is None:
            raise ValueError(
                f"quantity={quantity!r} was not measured: it needs an estimator with "
                "confidence_interval, a confidence_level and, for the coverage, a reference; for a "
                "new y, one with calibration_size."
            )
        return known[quantity]
