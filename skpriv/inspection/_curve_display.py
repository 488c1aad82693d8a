"""Curves of additive models with their bands: one panel a feature."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._printing import Display, axes_in_rows, pyplot
from ..preprocessing import TableEncoder

N_POINTS = 101


def curves(
    model: Any, *, features: Any = None, n_points: int = N_POINTS, confidence_level: float = 0.95
) -> list[dict[str, Any]]:
    """Curves of an additive model in the units of its table.

    Parameters
    ----------
    model : estimator
        A fitted `AdditiveRegressor`, or a Pipeline of `TableEncoder` and one.
    features : str, int or list of them, default=None
        Features, or columns of the table; None is all that have a curve, and all with levels.
    n_points : int, default=101
        Points of each, evenly over its range; the knots come on top.
    confidence_level : float in (0, 1), default=0.95
        Confidence level of intervals and bands.

    Returns
    -------
    list of dict
        ``name``, ``values`` (in the units of the table, dates as dates, levels as texts), ``knots``
        (likewise), and ``curve``, what `AdditiveRegressor.curve` returns. A column of levels has
        one point for each of them, and no knots.

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
    last = model[-1] if isinstance(model, Pipeline) else model
    if not hasattr(last, "curve"):
        raise TypeError(f"{type(last).__name__} has no curves: pass a fitted AdditiveRegressor.")
    steps = list(model[:-1]) if isinstance(model, Pipeline) else []
    encoder = next((step for step in steps if isinstance(step, TableEncoder)), None)
    if encoder is None:
        places = {column: column for column in range(len(last.knots_))}
    else:
        places = {name: block.start for name, block in encoder.blocks_.items()}
    chosen = _curved(last, places, encoder) if features is None else features
    if isinstance(chosen, (str, Integral)):
        chosen = [chosen]
    found = []
    for name in chosen:
        if encoder is not None and name not in places:
            raise ValueError(f"{name!r} is not a column of the table: {list(places)}.")
        if encoder is not None and (coded := encoder.coded_levels(name)) is not None:
            found.append(_level_curve(last, name, encoder.blocks_[name], *coded, confidence_level))
            continue
        column = places.get(name, name)
        knots = last.curve(column, [0.0]).knots
        grid = np.union1d(np.linspace(knots[0], knots[-1], n_points), knots)
        curve = last.curve(column, grid, confidence_level=confidence_level)
        values, marks = grid, knots
        if encoder is not None:
            values, marks = (_in_units(encoder, name, at) for at in (grid, knots))
        label = curve.name if encoder is None else str(name)
        found.append({"name": label, "values": values, "knots": marks, "curve": curve})
    return found


def _level_curve(model, name, block, levels, rows, confidence_level):
    """One point for each level of a column."""
    columns = list(range(block.start, block.stop))
    curve = model.curve(columns, rows, confidence_level=confidence_level)
    values = np.array(levels, dtype=object)
    return {"name": str(name), "values": values, "knots": values[:0], "curve": curve}


def _curved(model, places, encoder):
    """Features with more than two knots, and columns of levels; all if no feature is bent."""
    bent = [name for name, column in places.items() if len(model.knots_[column]) > 2]
    if encoder is None or not bent:
        return bent or list(places)
    return [name for name in places if name in bent or encoder.coded_levels(name) is not None]


def _in_units(encoder, name, points):
    """Points of a column of encoded rows as values of the table's column."""
    block = encoder.blocks_[name]
    rows = np.zeros((len(points), block.stop - block.start))
    rows[:, 0] = points
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
        n_points: int = N_POINTS,
        confidence_level: float = 0.95,
        target_name: str = "prediction",
        ax: Any = None,
        line_kw: Any = None,
        band_kw: Any = None,
    ) -> Self:
        """Compute curves and bands, and plot them.

        Parameters
        ----------
        estimator : estimator
            A fitted `AdditiveRegressor`, or a Pipeline of `TableEncoder` and one.
        features : str, int or list of them, default=None
            Features, or columns of the table; None is all that have a curve.
        n_points : int, default=101
            Points of each curve.
        confidence_level : float in (0, 1), default=0.95
            Confidence level of the bands.
        target_name : str, default="prediction"
            Name of what is predicted.
        ax : array of matplotlib Axes, default=None
            One for each feature; None makes a figure with a shared vertical axis.
        line_kw, band_kw : dict, default=None
            Styles of effects and bands, see :meth:`plot`.

        Returns
        -------
        display : CurveDisplay
        """
        found = curves(
            estimator, features=features, n_points=n_points, confidence_level=confidence_level
        )
        display = cls(curves=found, target_name=target_name, confidence_level=confidence_level)
        return display.plot(ax, line_kw=line_kw, band_kw=band_kw)

    def plot(self, ax: Any = None, *, line_kw: Any = None, band_kw: Any = None) -> Self:
        """Draw one panel a feature: effect, interval, simultaneous band and knots.

        Parameters
        ----------
        ax : array of matplotlib Axes, default=None
            One for each feature; None makes a figure with a shared vertical axis.
        line_kw, band_kw : dict, default=None
            Styles of the effects, for ``Axes.plot``, and of the simultaneous bands, for
            ``Axes.fill_between`` or ``Axes.vlines``.

        Returns
        -------
        display : CurveDisplay
            Itself, with `axes_` and `figure_`.
        """
        if ax is None:
            make = pyplot(type(self).__name__).subplots
            axes = axes_in_rows(make, len(self.curves), sharey=True)
        else:
            axes = np.ravel(ax)
        line_kw, band_kw = line_kw or {}, band_kw or {}
        if len(axes) != len(self.curves):
            raise ValueError(f"There are {len(self.curves)} curves, but {len(axes)} axes.")
        self.lines_: list[Any] = []
        self.bands_: list[Any] = []
        for panel, ax in zip(self.curves, axes, strict=True):
            if _levels_of(panel) is None:
                self._plot_curve(ax, panel, line_kw, band_kw)
            else:
                self._plot_levels(ax, panel, line_kw, band_kw)
            ax.axhline(0.0, color="0.4", linestyle="--", linewidth=0.8)
            ax.set(xlabel=panel["name"])
        axes[0].set(ylabel=f"effect on {self.target_name}")
        # One legend for all panels, of what is really drawn in them
        drawn = {
            label: handle
            for ax in axes
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
        }
        axes[0].legend(drawn.values(), drawn.keys(), fontsize="small")
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def _plot_curve(self, ax, panel, line_kw, band_kw):
        """A line between knots, with its interval at each point and its simultaneous band."""
        curve, values = panel["curve"], panel["values"]
        effect = _estimable(curve)
        (line,) = ax.plot(values, effect, **{"label": "effect", **line_kw})
        color, level = line.get_color(), f"{self.confidence_level:.0%}"
        ends = _visible(curve.band_low), _visible(curve.band_high)
        band = {"alpha": 0.15, "color": color, "label": f"{level} simultaneous band", **band_kw}
        self.bands_.append(ax.fill_between(values, *ends, **band))
        ax.fill_between(
            values,
            _visible(curve.low),
            _visible(curve.high),
            alpha=0.2,
            color=color,
            label=f"{level} interval at each point",
        )
        at_knots = np.isin(curve.grid, curve.knots)
        ax.plot(values[at_knots], effect[at_knots], "o", color=color, markersize=3, label="knot")
        self.lines_.append(line)

    def _plot_levels(self, ax, panel, line_kw, band_kw):
        """A point for each level, with its interval and its part of the band."""
        labels, kept = _levels_of(panel)
        curve, places = panel["curve"], np.arange(len(labels))
        point = {"marker": "o", "linestyle": "", "markersize": 4, "label": "effect", **line_kw}
        (line,) = ax.plot(places, _estimable(curve)[kept], **point)
        color, level = line.get_color(), f"{self.confidence_level:.0%}"
        wide = {"alpha": 0.15, "linewidth": 8.0, "color": color}
        wide = {**wide, "label": f"{level} simultaneous band", **band_kw}
        ends = _visible(curve.band_low)[kept], _visible(curve.band_high)[kept]
        self.bands_.append(ax.vlines(places, *ends, **wide))
        ends = _visible(curve.low)[kept], _visible(curve.high)[kept]
        ax.vlines(
            places, *ends, color=color, linewidth=1.5, label=f"{level} interval at each point"
        )
        ax.set_xticks(places, labels, rotation=30, ha="right")
        ax.set_xlim(-0.5, len(places) - 0.5)
        self.lines_.append(line)


def _levels_of(panel):
    """Labels of the levels of a panel and where they are in it; None of a curve.

    A feature with two knots that are whole numbers one apart is a yes or no.
    """
    values, knots = panel["values"], panel["knots"]
    if values.dtype == object and all(isinstance(value, str) for value in values):
        return list(values), np.arange(len(values))
    if len(knots) == 2 and np.array_equal(np.asarray(knots, dtype=object), [0.0, 1.0]):
        return ["0", "1"], np.array([0, len(values) - 1])
    return None


def _estimable(curve):
    """Effects; NaN where no finite interval is about them, so that noise is not drawn as one."""
    return np.where(np.isfinite(curve.low) & np.isfinite(curve.high), curve.effect, np.nan)


def _visible(ends):
    """Ends of a band; NaN where it is infinite."""
    return np.where(np.isfinite(ends), ends, np.nan)
