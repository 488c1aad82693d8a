"""How fitted regressors predict at rows, and which intervals they claim there.

Rows to predict at are checked in one way, and stay lazy where they are lazy.
"""

from copy import copy
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._compat import Documented, names_in
from .._estimation._cells import Cells, KnowsCells
from .._estimation._intervals import ConfidenceInterval, inside_bounds
from .._estimation._levels import check_level
from .._linalg import blocks_of, row_products
from .._parameters import IntervalMethod, of_numbers
from ..records import check_public, finite_numbers, is_lazy, public_shape, readable, silence

if TYPE_CHECKING:
    from .._estimation._public_maps import RecordMap
    from .._contracts import Array, F, Scalar


def rowwise(method: "F") -> "F":
    """Let a method of X alone be silent, and lazy on lazy rows, whose chunks it gets when read."""

    @wraps(method)
    def call(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if not is_lazy(X):
            with silence():
                return method(self, X, *args, **options)
        check_is_fitted(self)
        rows = check_public(self, X, reset=False)
        plain = copy(self)
        if names_in(self) is not None:  # they are checked once, here: chunks have none
            del plain.feature_names_in_

        def function(chunk: np.ndarray) -> "Array":
            return getattr(plain, call.__name__)(chunk, *args, **options)

        one = function(np.zeros((1, rows.n_features)))  # the options are checked here, too
        return rows.evaluated(function, type(one) if isinstance(one, tuple) else None)

    return cast("F", call)


class PredictsAtPoints(KnowsCells, Documented):
    """Mixin of regressors: what every prediction and every interval begins with.

    Attributes
    ----------
    interval_estimand : str or None
        What the intervals of this class are for. A class states it in its own body: a subclass
        that changes the estimator changes what is estimated.
    estimand : str
        What the coefficients of a table are of, where a user can declare it.
    interval_claims : tuple of str
        The methods, of "certified" and "asymptotic", whose level the class promises. They too must
        stand in the body of the class itself; what is not claimed there raises.
    law_estimands : tuple of str
        What :func:`skpriv.inspection.inference` can estimate. A class that states another
        `interval_estimand` does not inherit them.
    """

    interval_estimand: ClassVar[str | None] = None
    estimand: Any = "fitted"
    effects: Any = None  # of persons, where an estimator has them
    interval_claims: ClassVar[tuple[str, ...]] = ()
    law_estimands: ClassVar[Any] = ("fitted",)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "interval_estimand" in vars(cls) and "law_estimands" not in vars(cls):
            cls.law_estimands = ("fitted",)

    coef_: np.ndarray
    intercept_: Any
    bounds_y_: tuple[Any, ...]

    _sparse: Any
    _interval_methods: Any = ("certified", "asymptotic")

    def _points(self, X: Any) -> Any:
        """Checked rows at which a fitted model predicts."""
        check_is_fitted(self)
        return readable(self, X, accept_sparse=self._sparse)

    @silence()
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R2 of the predictions, or of a classifier the part of the labels that it predicts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which to predict.
        y : array-like of shape (n_samples,)
            Targets or labels, which must be at hand.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, at least 0; None weighs all alike.

        Returns
        -------
        float
            R2, at most 1, or the share of right labels, in [0, 1].

        Raises
        ------
        ValueError
            Without y: those of rows that are read in batches must be given, too.

        Notes
        -----
        An exact function of X and y, which nobody has paid for: it is **not private**.
        :func:`skpriv.model_selection.private_score` is.
        """
        if y is None:
            raise ValueError(
                "score needs the targets beside the rows, in memory: score(X, y). It is exact and "
                "therefore not private; skpriv.model_selection.private_score releases one that is."
            )
        if sample_weight is not None:
            sample_weight = finite_numbers(sample_weight, "sample_weight", public_shape(y)[:1])
        return self._scored(X, y, sample_weight)

    def _scored(self, X: Any, y: Any, sample_weight: Any) -> "Scalar":
        """R2 of the predictions."""
        return super().score(X, finite_numbers(y, "y"), sample_weight)  # type: ignore[misc]

    def _interval_points(self, X: Any, confidence_level: float, method: str) -> Any:
        """Checked rows for an interval, whose level, method and claim are checked before them."""
        check_level(confidence_level)
        if method not in self._interval_methods:
            methods = " or ".join(map(repr, self._interval_methods))
            raise ValueError(f"method={method!r} must be {methods}.")
        self._check_claim(method)
        return self._points(X)

    @rowwise
    def predict(self, X: Any) -> np.ndarray:
        """Predict the regression function, clipped to ``bounds_y``.

        There are two exceptions. Without privacy `SSPRegressor` and `ReweightedRegressor` do not
        clip, as scikit-learn does not. With ``effects="person"`` there is no level, and nothing is
        clipped.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Where ``fit`` takes ``bounds_X``, rows are clipped as they were there: beyond it nothing
            was learnt.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions in the units of y.
        """
        return self._predicted(self._points(X))

    def _predicted(self, X: Any) -> "Array":
        """Predictions for checked rows, inside of the bounds of y."""
        fitted = self._function(X)
        if self.effects is not None:  # levels of persons are not known
            return fitted
        return fitted.clip(*self.bounds_y_)

    def _function(self, X: Any) -> "Array":
        """The fitted function at checked rows, which may leave the bounds of y."""
        return row_products(X, self.coef_) + self.intercept_

    def _check_claim(self, method: str) -> None:
        """Raise unless it is fitted, and the class itself claims this; nothing is inherited."""
        check_is_fitted(self)
        own = vars(type(self))
        claims = own.get("interval_claims", ())
        if own.get("interval_estimand") and method in claims:
            return
        name = type(self).__name__
        claimed = " and ".join(claims) if own.get("interval_estimand") and claims else "no"
        raise NotImplementedError(
            f"{name} claims {claimed} intervals, so method={method!r} is refused: pass a method "
            "that it claims, which is called interval_method in privacy_utility_curve. A level "
            f"that was proved for a parent class need not hold for {name}: once it is proved or "
            f"measured, declare in the body of {name} itself "
            f"`interval_estimand = 'what is estimated'` and `interval_claims = ({method!r},)`; the "
            "page 'Add an estimator' of the documentation says how claims are tested."
        )


class CertifiedIntervals(PredictsAtPoints):
    """Mixin of estimators whose intervals are certified where nothing else is asked for.

    A class has ``_scaling``, its record map, and ``_released``, all that its fit released. Where
    features are selected, ``_record_map`` is that of the chosen columns, and this one of all.
    """

    _scaling: Any
    _released: Any

    def _centred(self, X: np.ndarray, confidence_level: float, method: str) -> Any:
        """Centre and half-width at checked rows, and a bound on their size if one is known."""
        return self._released.interval(self._scaling.features(X), confidence_level, method)

    @of_numbers
    @rowwise
    def confidence_interval(
        self, X: Any, confidence_level: float = 0.95, method: IntervalMethod = "certified"
    ) -> ConfidenceInterval:
        """Confidence interval for the regression function at each row, not for a new y.

        The function is that of the clipped rows and targets: bounds that clip on purpose move it
        away from the function of the rows as they are, and no interval counts that. Further
        assumptions stand in the notes of the class, under "Intervals".

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Sparse rows are for `IHTRegressor` alone.
        confidence_level : float in (0, 1), default=0.95
            Probability with which the interval of a row contains its value.
        method : {"certified", "asymptotic"}, default="certified"
            "certified" holds for any number of records, with exact quantiles of the noise.
            "asymptotic" is narrower, and holds as the number of records grows. A class need not
            have both.

        Returns
        -------
        ConfidenceInterval
            Named tuple (low, high) of ndarrays of shape (n_samples,), in the units of y and inside
            ``bounds_y``. It contains the prediction (without privacy the nearest one inside of
            ``bounds_y``), and none has width zero.

        Raises
        ------
        NotImplementedError
            If the class claims no interval of this method, or this fit released none.
        """
        X = self._interval_points(X, confidence_level, method)
        centre, half, *bound = self._centred(X, confidence_level, method)
        return inside_bounds(self._scaling, centre, half, self._predicted(X), *bound)


class AsymptoticIntervals(PredictsAtPoints):
    """Mixin of estimators whose intervals are asymptotic where nothing else is asked for.

    They fit records by public maps, ``_record_map``, and differences within persons where
    ``effects`` says so.
    """

    _record_map: "RecordMap | Any"
    _released: Any

    def _with_cells(self, cells: np.ndarray) -> Self:
        check_is_fitted(self)
        twin = copy(self)
        found = Cells.of_rows(self._record_map.row_map, cells, self.effects is not None)
        twin._released = self._released.knowing(found)
        return twin

    def _function(self, X: np.ndarray) -> np.ndarray:
        """The fitted function at checked rows, which are clipped as in the fit."""
        if self.effects is None:
            X = self._record_map.row_map.clipped(X)
        return super()._function(X)

    def _interval(self, X: np.ndarray, confidence_level: float, method: str) -> ConfidenceInterval:
        """The interval at checked rows."""
        centre, half = self._released.interval(self._record_map.rows(X), confidence_level, method)
        return inside_bounds(self._record_map, centre, half, self._predicted(X))

    @of_numbers
    @rowwise
    def confidence_interval(
        self, X: Any, confidence_level: float = 0.95, method: IntervalMethod = "asymptotic"
    ) -> ConfidenceInterval:
        """Confidence interval for what is predicted at each row, not for a new y.

        For a regressor it is for the mean of y at the row, which is assumed to be linear in the
        row. `AdditiveRegressor` assumes a sum of curves, and its interval counts what lines between
        knots miss of these, as its bands do. Without such a mean the interval is for no particular
        function. For a classifier the interval is for the probability of ``classes_[1]``, or with
        more than two classes for the probability of each class, with the stated level for each of
        them by itself.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which to predict; they are clipped to their public bounds.
        confidence_level : float in (0, 1), default=0.95
            Probability with which the interval of a row contains its value.
        method : {"asymptotic", "certified"}, default="asymptotic"
            "certified" is for `LinearRegression` and `AdditiveRegressor` alone.

        Returns
        -------
        ConfidenceInterval
            Named tuple (low, high) of ndarrays of shape (n_samples,), in the units of y and inside
            ``bounds_y``, or in [0, 1]; of more than two classes of shape (n_samples, n_classes).
            An interval is the whole range where noise hides the direction of its row, where
            instruments are weak, or where the public rule leaves curves fewer than four knots.
        """
        if self.effects is not None:
            raise ValueError(
                "effects='person' tells no level, and so has no interval for a row: "
                "skpriv.inspection.inference(model) has intervals of slopes, and of differences of "
                "two rows by its contrast(weights)."
            )
        X = self._interval_points(X, confidence_level, method)
        blocks = blocks_of(X.shape[0], 2 * X.shape[1])
        found = [self._interval(X[rows], confidence_level, method) for rows in blocks]
        return ConfidenceInterval(*map(np.concatenate, zip(*found)))
