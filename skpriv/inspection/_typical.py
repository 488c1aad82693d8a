"""Predictions and marginal effects at typical rows, which are public: one call each."""

from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.base import is_classifier

from .._compat import reaching_last
from .._estimation._coefficients import CoefficientLaw
from .._estimation._oracle import interval_claims
from .._parameters import Level, validated
from .._printing import Exported, Table, aligned, installed, short_number
from ._inference import Inference, inference
from ._interval_display import confidence_interval
from ._units import INTERCEPT, last_step, weights_at

NOT_ROWS = "These rows are public and made up: their values are written beside the numbers."
SHRUNK = (
    "Predictions are those of predict. They are shrunk if noise is large, and then differ from "
    "sums of the coefficients in the table, which are not."
)


@dataclass(frozen=True, eq=False, repr=False)
class TypicalPredictions(Exported):
    """Predictions at typical rows with confidence intervals; it prints as a table.

    Made by :func:`typical_predictions`.

    Parameters
    ----------
    rows : list of str
        The values of each row.
    what : str
        What is predicted.
    estimate, low, high : ndarray of shape (n_rows,)
        Predictions, and the ends of their intervals.
    confidence_level : float
        Confidence level of each interval, in (0, 1).
    """

    rows: list[Any]
    what: str
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    confidence_level: float

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame of shape (n_rows, 3)
            Columns "estimate", "low" and "high", with one row for each typical row.
        """
        pd = installed("pandas", "data")
        columns = {"estimate": self.estimate, "low": self.low, "high": self.high}
        return pd.DataFrame(columns, index=self.rows)

    def _tables(self) -> list[Table]:
        error = (self.high - self.low) / 2.0
        level = f"{100.0 * self.confidence_level:g}%"
        numbers = (aligned(values, error) for values in (self.estimate, self.low, self.high))
        header = ("row", self.what, f"{level} low", f"{level} high")
        return [Table(header, list(zip(self.rows, *numbers, strict=True)))]

    def _notes(self) -> list[str]:
        return [NOT_ROWS, SHRUNK]


def _words_of(rows: Any) -> tuple[list[str], Any]:
    """Values of public rows as texts, and the rows."""
    frame = nw.from_native(rows, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        named = list(frame.iter_rows(named=True))
    else:
        rows = np.atleast_2d(np.asarray(rows, float))
        named = [{f"x{i}": value for i, value in enumerate(row)} for row in rows]
    return [", ".join(f"{k}={_text(v)}" for k, v in row.items()) for row in named], rows


def _text(value: float | str) -> str:
    return f"{value:,.8g}" if isinstance(value, float) else str(value)


@validated
def typical_predictions(
    model: Any, rows: Any, *, confidence_level: Level = 0.95
) -> TypicalPredictions:
    """Predictions at typical rows with confidence intervals, as a table.

    Parameters
    ----------
    model : estimator
        A fitted estimator with ``confidence_interval``, or a Pipeline that ends with one.
    rows : data frame or array-like of shape (n_rows, n_features)
        Public rows that were made up, such as a person of average age: no rows of the table. Their
        values are printed.
    confidence_level : float in (0, 1), default=0.95
        Confidence level of each interval.

    Returns
    -------
    TypicalPredictions
        Predictions with intervals, in the units of the target.

    Notes
    -----
    **Privacy guarantee**: that of the fit. Everything is computed from released answers and the
    public rows, and costs nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.inspection import typical_predictions
    >>> from skpriv.linear_model import LinearRegression
    >>> X = np.linspace(0.0, 10.0, 20_000)[:, None]
    >>> model = LinearRegression(bounds_X=(0, 10), bounds_y=(0, 5), random_state=0)
    >>> table = typical_predictions(model.fit(X, X[:, 0] / 2.0), [[2.0], [8.0]])
    >>> table.rows
    ['x0=2', 'x0=8']
    """
    words, rows = _words_of(rows)
    last = last_step(model)
    if is_classifier(model):
        *_, second = classes = last.classes_
        if len(classes) > 2:
            raise ValueError(
                f"model has {len(classes)} classes: typical_predictions is for two classes and for "
                "numbers. Take predict_proba and confidence_interval of the model."
            )
        values = model.predict_proba(rows)[:, 1]
        what = f"probability of {second}"
    else:
        values = model.predict(rows)
        what = "prediction"
    method = "asymptotic" if "asymptotic" in interval_claims(last) else None
    low, high = confidence_interval(model, rows, confidence_level=confidence_level, method=method)
    return TypicalPredictions(words, what, values, low, high, float(confidence_level))


@validated
def marginal_effects(model: Any, row: Any, *, confidence_level: Level = 0.95) -> Inference:
    """Change of the mean of the target per unit of each feature, at one typical row.

    A coefficient of logistic regression is about log-odds and one of Poisson regression about the
    logarithm of the mean. Its marginal effect is about the probability, or the mean, itself. For a
    number it is the derivative at the row. For a level of a list it is the difference between the
    means at this level and at the reference level, with all else as in the row. Standard errors are
    those of the delta method.

    Parameters
    ----------
    model : estimator
        A fitted ``LogisticRegression`` of two classes, ``PoissonRegressor`` or linear regressor
        with :func:`inference`, or a Pipeline that ends with one.
    row : data frame or array-like of shape (1, n_features)
        A public row that was made up, such as a person of average age.
    confidence_level : float in (0, 1), default=0.95
        Confidence level of each interval.

    Returns
    -------
    Inference
        It has a row for each coefficient but the intercept.

    Notes
    -----
    **Privacy guarantee**: that of the fit. Everything is computed from released answers and the
    public row, and costs nothing.

    For a linear regressor the effects are the coefficients. A truth value and a column of 0 and 1
    have the derivative, as numbers have: make the column :class:`~skpriv.preprocessing.Categorical`
    for the difference between its two values. Each term moves by itself: a square of a column and
    a product with it, by a formula or as columns, have rows of their own.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.inspection import marginal_effects
    >>> from skpriv.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, size=(50_000, 1))
    >>> y = (rng.random(50_000) < 1.0 / (1.0 + np.exp(-X[:, 0]))).astype(int)
    >>> model = LogisticRegression(classes=(0, 1), bounds_X=(-1, 1), random_state=0).fit(X, y)
    >>> effects = marginal_effects(model, [[0.0]])
    >>> bool(abs(effects.estimate[0] - 0.25) < 0.02)
    True
    """
    (words, *others), row = _words_of(row)
    if others:
        raise ValueError(f"row must be one row, and not {1 + len(others)}.")
    found = inference(model, confidence_level=confidence_level)
    model.predict(row)  # It refuses a row that does not fit the model.
    if found.law.classes:
        raise ValueError("model has more than two classes: marginal_effects is for two.")
    last = last_step(model)
    at_row = weights_at(model, np.asarray(reaching_last(model, row), float))
    names = [name for name in found.names if name != INTERCEPT]
    before = np.tile(at_row, (len(names), 1))
    after = np.eye(len(at_row))[: len(names)]
    is_level = np.zeros((len(names), 1), bool)
    for _, effects in found.lists.values():  # from the reference level to each of the others
        places = [names.index(name) for name in effects]
        is_level[places] = True
        before[np.ix_(places, places)] = 0.0
        after[places] += before[places]

    def means(weights: np.ndarray) -> np.ndarray:
        """Weighted sums, and the mean there with its derivatives, as columns."""
        sums = found.law.mapped(weights).estimate
        return np.array([(eta, *last.mean_of_linear_part(eta)) for eta in sums]).T[:, :, None]

    _, low, slope, bend = means(before)
    eta, high, there, _ = means(after)
    values = np.where(is_level, high - low, slope * eta)[:, 0]
    gradient = np.where(is_level, there, slope) * after
    gradient += np.where(is_level, -slope, bend * eta) * before
    # If one of the sums is not estimable, neither is this one.
    law = found.law.mapped(np.where(np.isnan(gradient), before + 2.0 * after, gradient))
    against = ", and of a level against its reference level," if found.lists else ""
    at = f"{words}, where it is {short_number(means(at_row[None])[1, 0, 0], 3)}"
    what = f"change of the {last.mean_name} per unit of each term alone{against} at {at}"
    shift = law.shift + values - law.estimate
    law = CoefficientLaw(law.source, law.matrix, shift, law.n, estimand=what)
    return replace(found, names=names, law=law, statistics=None)
