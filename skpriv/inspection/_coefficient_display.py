"""Picture of coefficients with their intervals."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._parameters import Level, Scale, validated
from .._printing import Display, picture_text, picture_texts, pyplot, short_number
from ._inference import Inference, inference
from ._units import INTERCEPT, public_widths

if TYPE_CHECKING:
    from ..linear_model import LinearRegression


@dataclass(kw_only=True, eq=False, repr=False)
class CoefficientDisplay(Display):
    """Coefficients of a private fit with confidence intervals, one line each.

    The thin bar is the whole interval, the thick one what sampling alone would leave: the rest is
    the price of privacy. Make it with `from_estimator` or `from_inference`; it holds arrays only.

    Parameters
    ----------
    names : list of str
        Names of the coefficients.
    estimate, low, high : ndarray of shape (n_coefficients,)
        Estimates and the ends of their intervals, NaN where a coefficient is not estimable.
    privacy_share : ndarray of shape (n_coefficients,)
        Part of the variance that privacy added.
    confidence_level : float
        Confidence level of the intervals.
    unit : str, default=""
        What the coefficients are effects of, such as "of the whole range".
    ratio : str, default=""
        What the numbers are, such as "odds ratio", where they are exponentials of coefficients.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    points_ : matplotlib Line2D
        Estimates.
    intervals_, sampling_ : matplotlib LineCollection
        Whole intervals, and what sampling alone would leave of them.

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

    names: Any
    estimate: Any
    low: Any
    high: Any
    privacy_share: Any
    confidence_level: float
    unit: str = ""
    ratio: str = ""

    @classmethod
    @validated
    def from_estimator(
        cls,
        estimator: Any,
        *,
        confidence_level: Level = 0.95,
        intercept: Any = False,
        scale: Scale | None = None,
        ax: Any = None,
    ) -> Self:
        """Compute the coefficients of a fitted model, and plot them.

        Parameters
        ----------
        estimator : estimator
            A fitted regressor or a Pipeline, see :func:`inference`.
        confidence_level : float in (0, 1), default=0.95
            Confidence level of the intervals.
        intercept : bool, default=False
            Whether to show the intercept.
        scale : {None, "range", "odds", "rates"}, default=None
            The step whose effect is shown. None is one unit of the feature. "range" is the whole
            public range, so that a number beside a yes or no can be compared with it. "odds" and
            "rates" show the odds ratios of a logistic fit, or the rate ratios of counts, of one
            unit on a logarithmic axis.
        ax : matplotlib Axes, default=None
            Where to plot; None makes a figure.

        Returns
        -------
        display : CoefficientDisplay
        """
        pyplot(f"{cls.__name__}.from_estimator")
        found = inference(estimator, confidence_level=confidence_level)
        display = cls._of(found, intercept, scale in ("odds", "rates"))
        if scale == "range":
            display = display.per_range(public_widths(estimator))
        return display.plot(ax)

    def per_range(self, widths: Any) -> Self:
        """The same coefficients as effects of the whole public range of each feature.

        Parameters
        ----------
        widths : mapping of str to float
            Widths of ranges by name. All others, such as a truth value or a level, have a step of
            one.

        Returns
        -------
        display : CoefficientDisplay
            Effects of whole ranges, in units of the target.
        """
        steps = np.array([widths.get(name, 1.0) for name in self.names])
        ends = {name: steps * getattr(self, name) for name in ("estimate", "low", "high")}
        names = [  # beside "age per year" stands how many years there are
            f"{name} × {short_number(step, 3)}" if " per " in name and step != 1.0 else name
            for name, step in zip(self.names, steps.tolist(), strict=True)
        ]
        return replace(self, names=names, **ends, unit="of the whole range")

    @classmethod
    def from_inference(
        cls, found: Any, *, intercept: Any = False, odds: bool = False, ax: Any = None
    ) -> Self:
        """Plot coefficients that have been computed.

        Parameters
        ----------
        found : Inference
            What :func:`inference` returned.
        intercept : bool, default=False
            Whether to show the intercept.
        odds : bool, default=False
            Whether to show odds ratios or rate ratios, with their intervals.
        ax : matplotlib Axes, default=None
            Where to plot; None makes a figure.

        Returns
        -------
        display : CoefficientDisplay
        """
        pyplot(f"{cls.__name__}.from_inference")
        return cls._of(found, intercept, odds).plot(ax)

    @classmethod
    def _of(
        cls, found: "Inference | LinearRegression", intercept: bool = False, odds: bool = False
    ) -> Self:
        """A display that is not drawn yet."""
        if not isinstance(found, Inference):
            raise TypeError(
                f"found is a {type(found).__name__}, but it must be what inference(model) "
                "returned: from_estimator draws the coefficients of a fitted model."
            )
        keep = [i for i, name in enumerate(found.names) if intercept or name != INTERCEPT]
        shown = ("ratio", "ratio_low", "ratio_high") if odds else ("estimate", "low", "high")
        estimate, low, high = (getattr(found, name)[keep] for name in shown)
        return cls(
            names=[found.names[i] for i in keep],
            estimate=estimate,
            low=low,
            high=high,
            ratio=found.ratio_name if odds else "",
            privacy_share=found.privacy_share[keep],
            confidence_level=found.confidence_level,
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw the coefficients.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to plot; None makes a figure.

        Returns
        -------
        display : CoefficientDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        ax = self._axes(ax, figsize=(6.0, 1.2 + 0.35 * len(self.names)))
        heights = np.arange(len(self.names))
        # On the logarithmic axis the two sides of the interval of a ratio are equally long.
        there, back = (np.log, np.exp) if self.ratio else (np.positive, np.positive)
        centre = there(self.estimate)
        half = (there(self.high) - there(self.low)) / 2.0
        sampling = half * np.sqrt((1.0 - self.privacy_share).clip(0.0, 1.0))
        ax.axvline(1.0 if self.ratio else 0.0, color="0.7", linewidth=1.0)
        self.intervals_ = ax.hlines(
            heights, self.low, self.high, color="C0", linewidth=1.2, label="with privacy"
        )
        self.sampling_ = ax.hlines(
            heights,
            back(centre - sampling),
            back(centre + sampling),
            color="C0",
            linewidth=4.0,
            alpha=0.5,
            label="sampling alone",
        )
        (self.points_,) = ax.plot(self.estimate, heights, "o", color="C0", markersize=4.0)
        for place in heights[np.isnan(self.estimate)]:
            ax.text(
                0.02,
                place,
                "not estimable",
                backgroundcolor="w",  # above the line
                transform=ax.get_yaxis_transform(),
                va="center",
                color="0.4",
            )
        ax.set_yticks(heights, picture_texts(self.names))
        ax.set_ylim(len(heights) - 0.5, -0.5)
        if self.ratio:
            _ratio_axis(ax)
        what = f"effect {picture_text(self.unit, 60)}" if self.unit else self.ratio or "coefficient"
        ax.set_xlabel(f"{what}, with {self.confidence_level:.0%} interval")
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)
        return self._drawn(ax)


def _ratio_axis(ax: Any) -> None:
    """A logarithmic axis with plain numbers: even steps, or powers of ten if it is long."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ax.xaxis.set_major_locator(LogLocator() if high > 50.0 * low else MaxNLocator(6))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
