"""Intervals of regressors and of pipelines, and their picture along a feature."""

from dataclasses import dataclass
from typing import Any, Literal, Self

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from .._compat import reaching_last
from .._parameters import validated
from .._printing import TURNED, Display, level_ticks, picture_text, pyplot
from ..records import finite_numbers, present_names, silence
from ._units import knowing_cells


def confidence_interval(
    estimator: Any, X: Any, *, confidence_level: float = 0.95, method: str | None = None
) -> Any:
    """Confidence intervals of a fitted estimator, or of a Pipeline that ends with one.

    A Pipeline of scikit-learn has `predict` and `score`, and passes on no other method of its last
    step. This function sends the rows through the steps before the last one, and asks the last one
    for its intervals.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator with ``confidence_interval``, or a Pipeline that ends with one.
    X : array-like or data frame of shape (n_samples, n_features)
        Rows as they are passed to ``estimator.predict``.
    confidence_level : float in (0, 1), default=0.95
        Confidence level at each row.
    method : str, default=None
        The method of ``confidence_interval``. None is the default of the estimator.

    Returns
    -------
    (low, high) : ndarrays of shape (n_samples,)
        The ends of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skpriv.inspection import confidence_interval
    >>> from skpriv.linear_model import SSPRegressor
    >>> from skpriv.preprocessing import BoundsScaler
    >>> X = np.linspace(0.0, 10.0, 2000)[:, None]
    >>> model = make_pipeline(
    ...     BoundsScaler((0, 10)), SSPRegressor(data_norm=1.0, bounds_y=(0, 5), random_state=0)
    ... ).fit(X, X[:, 0] / 2.0)
    >>> low, high = confidence_interval(model, X[:3], method="asymptotic")
    >>> bool((low <= high).all())
    True
    """
    return interval_of(estimator, X, "confidence", confidence_level, method)


def prediction_interval(estimator: Any, X: Any, *, confidence_level: float = 0.9) -> Any:
    """Intervals for a new target, of a fitted estimator or of a Pipeline that ends with one.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator with ``prediction_interval``, whose fit held out rows with
        ``calibration_size``, or a Pipeline that ends with one.
    X : array-like or data frame of shape (n_samples, n_features)
        Rows as they are passed to ``estimator.predict``.
    confidence_level : float in (0, 1), default=0.9
        One of the levels whose quantiles the fit released.

    Returns
    -------
    (low, high) : ndarrays of shape (n_samples,)
        The ends of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skpriv.inspection import prediction_interval
    >>> from skpriv.linear_model import SSPRegressor
    >>> from skpriv.preprocessing import BoundsScaler
    >>> X = np.linspace(0.0, 10.0, 2000)[:, None]
    >>> model = make_pipeline(BoundsScaler((0, 10)), SSPRegressor(
    ...     data_norm=1.0, bounds_y=(0, 5), calibration_size=0.5, random_state=0
    ... )).fit(X, X[:, 0] / 2.0)
    >>> low, high = prediction_interval(model, X[:3], confidence_level=0.9)
    >>> bool((low <= high).all())
    True
    """
    return interval_of(estimator, X, "prediction", confidence_level, None)


@silence()
def interval_of(
    estimator: Any, X: Any, kind: str, confidence_level: float, method: str | None
) -> Any:
    """Intervals of one kind, with the rows sent through the steps before the last one.

    Parameters
    ----------
    estimator : estimator
    X : array-like or data frame
    kind : {"confidence", "prediction"}
    confidence_level : float
    method : str or None

    Returns
    -------
    (low, high)
    """
    check_is_fitted(estimator)
    last = knowing_cells(estimator)
    if not hasattr(last, f"{kind}_interval"):
        raise ValueError(
            f"{type(last).__name__} has no {kind}_interval: pass a fitted regressor of skpriv, or "
            "a Pipeline that ends with one. A classifier of skpriv has prediction_set for new rows."
        )
    X = reaching_last(estimator, X)
    options = {} if method is None else {"method": method}
    return getattr(last, f"{kind}_interval")(X, confidence_level=confidence_level, **options)


@dataclass(kw_only=True, eq=False, repr=False)
class IntervalDisplay(Display):
    """Predictions of a private regressor with their intervals along one feature.

    Make it with `from_estimator`; it holds arrays only.

    Parameters
    ----------
    values : ndarray of shape (n_points,)
        Values of the feature: numbers, dates or texts.

    prediction, low, high : ndarray of shape (n_points,)
        Predictions and the ends of their intervals; NaN where there is none.

    feature_name : str, default="feature"
        Label of the horizontal axis.

    target_name : str, default="prediction"
        Label of the vertical axis.

    label : str, default=None
        Label of the band.

    joined : bool, default=True
        Whether the points belong together, as those of one person on a grid do. Different people
        are not joined by a line.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.

    figure_ : matplotlib Figure
        Figure that contains the axes.

    line_ : matplotlib Line2D
        Predictions.

    band_ : matplotlib PolyCollection, or LineCollection where points are not joined
        Intervals.

    Notes
    -----
    **Privacy guarantee**: predictions and intervals are computed from released answers, at the
    rows that are passed. Pass public rows, such as one row and a public grid: the picture shows
    them.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.inspection import IntervalDisplay
    >>> from skpriv.linear_model import SSPRegressor
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(2000, 3))
    >>> y = X @ [1.0, -0.5, 0.0] + rng.uniform(-0.2, 0.2, size=2000)
    >>> model = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), random_state=0).fit(X, y)
    >>> display = IntervalDisplay.from_estimator(
    ...     model, [[0.0, 0.0, 0.0]], 0, grid=np.linspace(-0.5, 0.5, 21)
    ... )
    >>> display.prediction.shape
    (21,)
    """

    values: Any
    prediction: Any
    low: Any
    high: Any
    feature_name: str = "feature"
    target_name: str = "prediction"
    label: str | None = None
    joined: bool = True

    @classmethod
    @validated
    @silence()
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        feature: Any,
        *,
        grid: Any = None,
        kind: Literal["confidence", "prediction"] = "confidence",
        confidence_level: float = 0.95,
        method: Any = None,
        target_name: str = "prediction",
        ax: Any = None,
    ) -> Self:
        """Compute predictions and intervals, and plot them.

        Parameters
        ----------
        estimator : estimator
            A fitted regressor of skpriv, or a Pipeline that ends with one. A classifier of two
            classes has the probability of the second one for a prediction; more are refused.
        X : array-like or data frame of shape (n_points, n_features)
            Public rows; with `grid` one row, whose other features stay as they are.
        feature : str or int
            The column along which is plotted.
        grid : array-like of shape (n_points,), default=None
            Values of the feature.
        kind : {"confidence", "prediction"}, default="confidence"
            Intervals for the regression function, or for a new y where the regressor has a
            ``prediction_interval``.
        confidence_level : float in (0, 1), default=0.95
            Level at each point.
        method : str, default=None
            Method of ``confidence_interval``; None is the estimator's default.
        target_name : str, default="prediction"
            Label of the vertical axis.
        ax : matplotlib Axes, default=None
            Where to plot; None makes a figure.

        Returns
        -------
        display : IntervalDisplay
        """
        pyplot(f"{cls.__name__}.from_estimator")
        X, values, name = _rows(X, feature, grid)
        low, high = interval_of(estimator, X, kind, confidence_level, method)
        if np.ndim(low) > 1:
            raise ValueError(
                f"estimator={type(estimator).__name__}: of more than two classes there is an "
                "interval for each, and this picture has one. Fit an estimator with two classes, "
                "such as one against all others, or plot columns of confidence_interval."
            )
        probable = is_classifier(estimator)  # Its intervals are for the second class.
        display = cls(
            values=values,
            prediction=estimator.predict_proba(X)[:, 1] if probable else estimator.predict(X),
            low=low,
            high=high,
            feature_name=name,
            target_name=target_name,
            label=f"{confidence_level:.0%} {kind} interval",
            joined=grid is not None,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a line and a band along a grid, and points with bars for different rows or texts.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to plot; None makes a figure.

        Returns
        -------
        display : IntervalDisplay
            Itself, with `ax_` and `figure_`.
        """
        ax = self._axes(ax)
        values = np.asarray(self.values)
        drawn = np.array([self.prediction, self.low, self.high])
        ordered = values.dtype.kind in "biufM"
        if ordered:
            order = np.argsort(values, kind="stable")
            values = values[order]
            drawn = drawn[:, order]
        else:
            labels = list(dict.fromkeys(map(str, values)))
            values = np.array([labels.index(str(value)) for value in values])
            level_ticks(ax.xaxis, labels, **TURNED)
        joined = ordered and self.joined
        prediction, *ends = drawn
        (self.line_,) = ax.plot(values, prediction, "-" if joined else "o")
        style = {
            "color": self.line_.get_color(),
            "label": self.label and picture_text(self.label, 40),
        }
        if joined:
            self.band_ = ax.fill_between(values, *ends, alpha=0.2, **style)
        else:
            self.band_ = ax.vlines(values, *ends, **style)
        ax.set(xlabel=picture_text(self.feature_name), ylabel=picture_text(self.target_name))
        if self.label is not None:
            ax.legend()
        return self._drawn(ax)


def _rows(X: Any, feature: int | str, grid: Any) -> tuple[Any, np.ndarray, str]:
    """Rows to predict at, the values of the feature, and its name."""
    frame = nw.from_native(X, pass_through=True)
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    if not isinstance(frame, nw.DataFrame):
        X = finite_numbers(X, "X", (None, None)).copy()
        if grid is not None:
            X = np.repeat(_single(X), len(grid), axis=0)
            X[:, feature] = grid
        return X, X[:, feature], f"feature {feature}"
    name = frame.columns[feature] if isinstance(feature, int) else feature
    (name,) = present_names([name], frame.columns, "feature", "X")
    if grid is not None:
        # The grid may have another type than the column in the one row, so all are made again.
        row = {column: _single(frame)[column].to_list() * len(grid) for column in frame.columns}
        row[name] = list(grid)
        frame = nw.from_dict(row, backend=frame.implementation)
    return frame.to_native(), frame[name].to_numpy(), str(name)


def _single(rows: Any) -> Any:
    if len(rows) != 1:
        raise ValueError(f"With grid, X is one row, whose other features stay: not {len(rows)}.")
    return rows
