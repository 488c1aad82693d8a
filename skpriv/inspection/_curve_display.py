"""Curves of additive models with their bands: one panel a feature."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._estimation._cells import KnowsCells
from .._printing import TURNED, Display, given_axes, level_ticks, picture_text, pyplot
from ..preprocessing import TableEncoder
from ..records import present_names
from ._units import model_steps


def curves(
    model: Any, *, features: Any = None, n_points: int = 101, confidence_level: float = 0.95
) -> list[dict[str, Any]]:
    """Curves of an additive model in the units of its table.

    Parameters
    ----------
    model : estimator
        A fitted `AdditiveRegressor`, or a Pipeline of `TableEncoder` and one.
    features : str, int or list of them, default=None
        Features, or columns of the table; None is all of them, lines and levels included.
    n_points : int, default=101
        Points of each, evenly over its range; the knots come on top.
    confidence_level : float in (0, 1), default=0.95
        Confidence level of intervals and bands.

    Returns
    -------
    list of dict
        ``name``, ``values`` (in the units of the table, dates as dates, levels as texts), ``knots``
        (likewise), and ``curve``, what `AdditiveRegressor.curve` returns. A column of levels has
        one point for each of them, and no knots. ``missing`` has the effect of a
        missing cell of a number or a date, the ends of its interval and those of its band in a
        column; it has no column where missing cells have no indicator.

    Raises
    ------
    TypeError
        If the model has no curves.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.inspection import curves
    >>> from skpriv.linear_model import AdditiveRegressor
    >>> X = np.random.RandomState(0).uniform(-1, 1, size=(5000, 2))
    >>> model = AdditiveRegressor(bounds_X=(-1, 1), bounds_y=(-1, 2), random_state=0)
    >>> found = curves(model.fit(X, X[:, 0] ** 2))
    >>> [curve["name"] for curve in found]
    ['x0', 'x1']
    """
    check_is_fitted(model)
    *before, last = model_steps(model)
    curved = isinstance(last, KnowsCells) and last.curve is not None
    if not curved:
        raise TypeError(f"{type(last).__name__} has no curves: pass a fitted AdditiveRegressor.")
    encoder = next((step for step in before if isinstance(step, TableEncoder)), None)
    if encoder is None:
        places: dict[Any, Any] = {column: [column] for column in range(len(last.knots_))}
        levels = {}
    else:
        places = {name: [*range(at.start, at.stop)] for name, at in encoder.blocks_.items()}
        levels = {name: of_column for name in places if (of_column := encoder.coded_levels(name))}
    features = list(places) if features is None else features
    features = [features] if isinstance(features, (str, Integral)) else features
    if encoder is not None:
        features = present_names(features, places, "features", "the table")
    found = []
    for name in features:
        # Without a table the regressor may know its features by name.
        columns = places.get(name, [name])
        if name in levels:
            labels, points = levels[name]
            values = grid = np.array(labels, object)
            knots = values[:0]
        else:
            knots = last.curve(columns[0], [0.0]).knots
            values = grid = np.union1d(np.linspace(knots[0], knots[-1], n_points), knots)
            # A missing cell stands in the middle of the range with an indicator, and what both of
            # them add is known together alone, on average too.
            absent = len(columns) - 1
            points = np.pad(grid[:, None], ((0, absent), (0, absent)))
            if encoder is not None and absent:
                points[-1, -1] = encoder.bounds_out_[columns[-1], 1]
        every = last.curve(columns, points, confidence_level=confidence_level)
        numbers, missing = np.split(np.array(every[1:6]), [len(grid)], axis=1)
        curve = type(every)(grid, *numbers, knots, every.name)
        label = every.name if encoder is None else str(name)
        if encoder is not None and name not in levels:
            values, knots = (_in_units(encoder, name, at) for at in (grid, knots))
        found.append(
            {"name": label, "values": values, "knots": knots, "curve": curve, "missing": missing}
        )
    return found


def _in_units(encoder: TableEncoder, name: str, points: np.ndarray) -> np.ndarray:
    """Points of a column of encoded rows as values of the table's column."""
    block = encoder.blocks_[name]
    rows = np.pad(np.c_[points], ((0, 0), (0, block.stop - block.start - 1)))
    return np.asarray(encoder.inverse_column(name, rows))


@dataclass(kw_only=True, eq=False, repr=False)
class CurveDisplay(Display):
    """Curves of an additive model with bands: one panel a feature, and its public knots.

    Make it with `from_estimator`; it holds arrays only.

    Parameters
    ----------
    curves : list of dict
        What `curves` returns.
    target_name : str, default="prediction"
        Name of what is predicted.
    confidence_level : float, default=0.95
        Confidence level of the bands.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each feature.
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        Effects.
    bands_ : list of matplotlib collections
        Simultaneous bands.

    Notes
    -----
    **Privacy guarantee**: curves and bands are computed from released answers and public numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.inspection import CurveDisplay
    >>> from skpriv.linear_model import AdditiveRegressor
    >>> X = np.random.RandomState(0).uniform(-1, 1, size=(5000, 2))
    >>> model = AdditiveRegressor(bounds_X=(-1, 1), bounds_y=(-1, 2), random_state=0)
    >>> display = CurveDisplay.from_estimator(model.fit(X, X[:, 0] ** 2))
    >>> len(display.axes_)
    2
    """

    curves: Any
    target_name: str = "prediction"
    confidence_level: float = 0.95

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        features: Any = None,
        *,
        n_points: int = 101,
        confidence_level: float = 0.95,
        target_name: str = "prediction",
        ax: Any = None,
    ) -> Self:
        """Compute curves and bands, and plot them.

        Parameters
        ----------
        estimator : estimator
            A fitted `AdditiveRegressor`, or a Pipeline of `TableEncoder` and one.
        features : str, int or list of them, default=None
            Features, or columns of the table; None is all of them.
        n_points : int, default=101
            Points of each curve.
        confidence_level : float in (0, 1), default=0.95
            Confidence level of the bands.
        target_name : str, default="prediction"
            Name of what is predicted.
        ax : array of matplotlib Axes, default=None
            One for each feature; None makes a figure.

        Returns
        -------
        display : CurveDisplay
        """
        pyplot(f"{cls.__name__}.from_estimator")
        found = curves(
            estimator, features=features, n_points=n_points, confidence_level=confidence_level
        )
        return cls(curves=found, target_name=target_name, confidence_level=confidence_level).plot(
            ax
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw one panel a feature: effect, interval, simultaneous band and knots.

        Parameters
        ----------
        ax : array of matplotlib Axes, default=None
            One for each feature; None makes a figure.

        Returns
        -------
        display : CurveDisplay
            Itself, with `axes_` and `figure_`.
        """
        axes = given_axes(ax, len(self.curves), type(self).__name__)
        drawn = map(self._plot_panel, axes, self.curves)
        self.lines_, self.bands_ = map(list, zip(*drawn))
        axes[0].set(ylabel=f"effect on {picture_text(self.target_name, 16)}")
        # The first panel has one legend for what is drawn in any of them.
        legend: dict[str, Any] = {}
        for ax in axes:
            handles, labels = ax.get_legend_handles_labels()
            legend |= zip(labels, handles)
        axes[0].legend(
            legend.values(), legend.keys(), fontsize="x-small", frameon=False,
            loc="lower left", bbox_to_anchor=(0.0, 1.0),
        )  # fmt: skip
        self.axes_ = axes
        self.figure_ = axes[0].figure
        return self

    def _plot_panel(self, ax: Any, panel: dict[str, Any]) -> tuple[Any, Any]:
        """Effects with their intervals and the band of all: a line, or a point for each level."""
        curve = panel["curve"]
        labels = None if len(panel["knots"]) else panel["values"]
        bounds = np.array([curve.band_low, curve.band_high, curve.low, curve.high])
        # An effect without a finite interval is noise, and is not drawn.
        effect = np.where(np.isfinite(bounds[2:]).all(axis=0), curve.effect, np.nan)
        bounds = np.where(np.isfinite(bounds), bounds, np.nan)
        if labels is None:
            values = panel["values"]
            mark = "-"
            draw = ax.fill_between
            ax.tick_params(axis="x", rotation=30)
            styles = {"alpha": 0.15}, {"alpha": 0.2}
        else:
            values = np.arange(len(labels))
            mark = "o"
            draw = ax.vlines
            styles = {"alpha": 0.15, "linewidth": 8.0}, {"linewidth": 1.5}
            level_ticks(ax.xaxis, labels, **TURNED)
            ax.set_xlim(-0.5, len(values) - 0.5)
        (line,) = ax.plot(values, effect, mark, markersize=4, label="effect")
        color = line.get_color()
        level = f"{self.confidence_level:.0%}"
        names = f"{level} simultaneous band", f"{level} interval at each point"
        band, _ = (
            draw(values, *ends, color=color, label=name, **style)
            for ends, name, style in zip((bounds[:2], bounds[2:]), names, styles, strict=True)
        )
        if labels is None:
            knots = np.isin(curve.grid, curve.knots)
            ax.plot(values[knots], effect[knots], "o", color=color, markersize=3, label="knot")
        if np.isnan(effect).all():
            ax.text(0.5, 0.04, "not estimable", transform=ax.transAxes, ha="center", color="0.4")
        else:  # Wide bands at the ends of a range must not make a curve look flat
            room = 1.5 * np.nanmedian(bounds[1] - bounds[0])
            ax.set_ylim(np.nanmin(effect) - room, np.nanmax(effect) + room)
        # All of the range is shown, also where no effect is
        ax.plot(values, np.zeros(len(values)), "--", color="0.4", linewidth=0.8)
        ax.set(xlabel=picture_text(panel["name"], 20))
        return line, band
