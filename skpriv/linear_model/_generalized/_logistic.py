"""Private logistic regression of two or more public classes."""

from collections.abc import Callable
from dataclasses import field, replace
from math import inf
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import special
from sklearn.base import ClassifierMixin

from ..._estimation._coefficients import NOISE
from ..._estimation._fit_statistics import Statistic, logistic_statistics
from ..._estimation._links import Logit
from ..._estimation._targets import LocationQuery
from ..._linalg import ROUNDED, unwarned
from ..._parameters import ArrayLike, of_numbers, parameters
from ..._stored import frozen_object, stored
from ...records import ArrayRows, read_in_batches, silence, stand_in
from .._estimator import PrivateEstimator
from .._opening import public_rows
from .._prediction_intervals import calibration, released_quantiles
from .._predictions import PredictsAtPoints, rowwise
from ._classes import ClassRatesQuery, Softmax
from ._glm import GeneralizedLinear
from ._labels import ClassTarget, LabelledRows, check_kind, checked_classes, class_codes

if TYPE_CHECKING:
    from .._prediction_intervals import Calibration
    from ..._contracts import Array
    from ...privacy import SessionPart

AMONG_CLASSES = {
    "estimand": "log-odds of each class against the geometric mean of all",
    "detail": "by the curve of weighted scores",
    "ratio": "odds of a class over the geometric mean of all; a contrast compares two classes",
}


# A fixed sentence, since whether it is so is private
NO_LABEL = "or no label was one of `classes`"


SURPRISES = (0.3, 0.125)  # the grid of the search is from about a tenth of these up to 1


@frozen_object
class LabelScore:
    """How improbable the label of a record is: one minus its probability, infinite for no class.

    Parameters
    ----------
    probabilities : callable
        The released probabilities of the classes at rows, shape (n_rows, n_classes).
    values : tuple of float
        What stands for each class in the targets.
    """

    probabilities: Callable[..., Any]
    values: tuple[Any, ...]
    bounds = (0.0, 1.0)
    top = 1.0

    def __call__(self, X: np.ndarray, y: np.ndarray, side: int) -> np.ndarray:
        """Scores of a chunk of rows."""
        with unwarned():
            score = 1.0 - self.probabilities(X)
        found = np.full(len(y), inf)
        for code, value in enumerate(self.values):
            found = np.where(y == value, score[:, code], found)
        return np.where(np.isnan(found), inf, found)


@stored
@parameters
class LogisticRegression(GeneralizedLinear, PredictsAtPoints, ClassifierMixin, PrivateEstimator):
    """Private logistic regression of two or more public classes.

    A rate, a whitening of the rows, and then a dozen small Newton steps on the score, which is one
    joint score of all classes. Answers are pooled: privacy noise of all steps together is that of
    one step with the whole budget, and the noise of the slopes vanishes as the steps come near the
    solution. No row counts for more than a public bound, and no residual is clipped where standard
    errors are told, so that the fit converges to maximum likelihood as records or epsilon grow.

    Parameters
    ----------
    classes : array-like of n_classes labels, default=None
        The public classes, two or more, all numbers or all text. Required. A label that is none of
        them adds zeros to the sums of scores and slopes, and nothing tells of it. Labels whose
        dtype is of the other kind are refused.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The public classes, in the order in which they were given.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Change of the log-odds of ``classes_[1]`` by one unit of each feature. More than two classes
        have a row each, and these add up to 0 over the classes. They are shrunk to predict better:
        publish the estimates of :func:`skpriv.inspection.inference`.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    privacy_report_ : PrivacyReport
        What was asked of the records, and at what price.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only when X has feature names that are all strings.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record.
    Released: Gaussian answers for the rate of ``classes_[1]``, three for the whitening, and one for
    each score step; their costs compose exactly as Gaussian DP (Dong, Roth and Su 2022). Public:
    the number of records, the classes and all parameters. The sensitivity of a score step is proved
    in the docstring of ``ScoreQuery`` (``skpriv/_estimation/_loop/_score.py``), and of more than
    two classes in that of ``ClassScoreQuery``
    (``skpriv/linear_model/_generalized/_classes.py``). With few records (about 170 to 420 at
    epsilon 1) two classes have no whitening and shrunk coefficients without standard errors; with
    fewer the rate alone is released.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import LogisticRegression
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2))
    >>> y = np.where(rng.uniform(size=20_000) < 1 / (1 + np.exp(-2 * X[:, 0])), "yes", "no")
    >>> model = LogisticRegression(
    ...     classes=("no", "yes"), epsilon=1.0, bounds_X=(-1, 1), random_state=0
    ... ).fit(X, y)
    >>> bool(abs(model.coef_[0] - [2.0, 0.0]).max() < 0.3)
    True
    >>> low, high = model.confidence_interval([[0.5, 0.0]])  # for the probability of "yes"
    >>> bool(low[0] < 1 / (1 + np.exp(-1.0)) < high[0])
    True
    """

    classes: ArrayLike | None = None
    classes_: np.ndarray = field(init=False)

    _spec = GeneralizedLinear._spec._replace(needs={"bounds_X": (-10.0, 10.0), "classes": (0, 1)})
    interval_estimand = (
        "the probability of the second class, or of each, by the logistic curve that fits best"
    )
    interval_claims = ("asymptotic",)

    @property
    def coefficient_blocks(self) -> list[Any]:
        """Labels of the classes whose coefficients stand one after the other; none if of two."""
        return [str(label) for label in self.classes_] if len(self.classes_) > 2 else []

    @property
    def law_estimands(self) -> tuple[str, ...]:
        """What :func:`skpriv.inspection.inference` can be asked for; of several classes one."""
        return ("fitted", "likelihood") if np.size(cast(Any, self.classes)) == 2 else ("fitted",)

    def _for_rehearsal(self, estimand: str) -> Any:
        """An unfitted estimator of the codes of the classes."""
        codes = tuple(range(len(checked_classes(self.classes))))
        return super()._for_rehearsal(estimand).set_params(classes=codes)

    def _imagined_target(
        self, quantiles: np.ndarray, mean: float | None, deviation: float | None
    ) -> np.ndarray:
        """Made-up codes of classes: one rate of the second class, or equal rates of all."""
        count = len(checked_classes(self.classes))
        rate = 1.0 / count if mean is None else mean
        rates = np.full(count, (1.0 - rate) / (count - 1))
        rates[1] = rate
        return np.searchsorted(np.cumsum(rates)[:-1], quantiles, side="right").astype(float)

    def _assumed_target(self, targets: np.ndarray) -> str:
        """What made-up targets are like, in a sentence."""
        label = checked_classes(self.classes)[1]
        return (
            f"Assumed: {np.mean(targets == 1.0):.3g} of the records are {label}: a plan takes "
            "better guesses."
        )

    def _planned_names(self, names: list[str]) -> list[str]:
        """Names of coefficients, those of each of several classes for themselves."""
        classes = checked_classes(self.classes).tolist()
        return (
            names if len(classes) == 2 else [f"{one}: {name}" for one in classes for name in names]
        )

    def _law(self, estimand: str) -> Any:
        law = super()._law(estimand)
        if len(self.classes_) > 2:
            law = replace(law, classes=len(self.classes_), compared="", **AMONG_CLASSES)
        return law

    @property
    def _law_words(self) -> dict[str, str]:
        first, second = self.classes_[:2]
        words = {"estimand": f"log-odds of {second} against {first}", "detail": "logistic"}
        ratio = f"the factor of the odds of {second} for one unit (of the intercept: odds at 0)"
        hiding = f"{NOISE}, {NO_LABEL} ({', '.join(map(str, self.classes_))})"
        return words | {"ratio": ratio, "ratio_name": "odds ratio", "hiding": hiding}

    _means = "probabilities"

    @property
    def mean_name(self) -> str:
        """What the mean of the target is, in words."""
        return f"probability of {self.classes_[1]}"

    def mean_of_linear_part(self, eta: float) -> tuple[float, float, float]:
        """Probability of ``classes_[1]`` where the linear part is `eta`, and two derivatives.

        Parameters
        ----------
        eta : float
            Value of the linear part of the model.

        Returns
        -------
        tuple of three floats
            The probability, its slope and its second derivative.
        """
        p = float(special.expit(eta))
        slope = p * (1.0 - p)
        return p, slope, slope * (1.0 - 2.0 * p)

    def fit_statistics(self) -> tuple[Any, ...]:
        """Share of each class, and the explained deviance of two classes, by what was released.

        Returns
        -------
        tuple of Statistic
            Each has a ``name``, a ``value`` and a ``std_error``. The share of a class is that of
            the records that have a class. The explained deviance is that of log-odds with a normal
            distribution. Errors count sampling and privacy noise.
        """
        fit = self._released
        report = self.privacy_report_
        k = len(self.classes_)
        # Of two classes the sum of targets in [-1, 1] is asked: twice that of a class, less all
        query, size = (LocationQuery, 0.7072) if k == 2 else (ClassRatesQuery, 1.0)
        # What counted the classes, unless a fit began at another one or nothing is noisy
        counts = [row for row in report.rows if row.query == query.name]
        # These are no shares of records where rows have persons or weights
        if not counts or fit.rows_per_record > 1 or report.max_weight is not None:
            return ()
        rates = special.softmax(np.append(0.0, fit.location)[-k:])
        # A rate is a quotient of noisy numbers: of the records of the class, and of those with one,
        # among those that were asked, which are a sample.
        n = counts[0].records * fit.part
        noise = (size * (counts[0].scale or 0.0) / n) ** 2
        errors = np.sqrt(noise * ((k * rates - 2.0) * rates + 1.0) + rates * (1.0 - rates) / n)
        found = [
            Statistic(f"share of {label}", rate, error, 1.0)
            for label, rate, error in zip(self.classes_, rates, errors, strict=True)
        ][k == 2 :]
        constant = self._record_map.row_map.constant
        if k == 2 and fit.equations and constant is not None:
            found += logistic_statistics(fit, constant, rates[1])
        return tuple(found)

    def _fit(self, X: Any, y: Any, groups: Any, weights: dict[str, float | np.ndarray]) -> None:
        classes = checked_classes(self.classes)
        n_classes = len(classes)
        if self.estimand == "likelihood" and n_classes > 2:
            raise ValueError(
                f"estimand='likelihood' is for two classes, and classes={self.classes!r} has "
                f"{n_classes}: no equation of maximum likelihood is asked for more than two. "
                "Pass estimand='fitted'."
            )
        check_kind(y, classes)
        # A mapped array with a target is in memory, however large it is
        in_batches = read_in_batches(None if isinstance(X, np.memmap) else X, y)
        if in_batches and classes.dtype.kind == "U":
            raise ValueError(
                f"classes={self.classes!r} are text, and rows that are read in batches have "
                "numbers: encode the target, or pass X and y in memory."
            )
        records = public_rows(self, X, y if y is None or in_batches else stand_in(y))
        values = tuple(map(float, range(n_classes)))
        if isinstance(records, ArrayRows):
            records = LabelledRows(X, y, classes)
            records.n_jobs = self.n_jobs
        else:
            values = tuple(map(float, classes))
        self.classes_ = classes
        self._values = values
        link = Logit() if n_classes == 2 else Softmax(n_classes=n_classes)
        self._fit_link(records, ClassTarget(values), link, groups, weights)

    @rowwise
    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of ``classes_[1]``, for rows that are clipped to their bounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which to predict; they are clipped to their public bounds.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The log-odds of each of more than two classes against the geometric mean of all.
        """
        return self._linear(self._points(X))

    @rowwise
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which to predict; they are clipped to their public bounds.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``.
        """
        return self._probabilities(self._points(X))

    @rowwise
    def predict_log_proba(self, X: Any) -> "Array":
        """Logarithm of the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which to predict; they are clipped to their public bounds.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms, at most 0, in the order of ``classes_``.
        """
        return special.log_softmax(self._log_odds(self._points(X)), axis=1)

    @rowwise
    def predict(self, X: Any) -> "Array":
        """The most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which to predict; they are clipped to their public bounds.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels, each one of ``classes_``.
        """
        points = self._points(X)
        return self.classes_[self._log_odds(points).argmax(axis=1)]

    def _log_odds(self, X: np.ndarray) -> np.ndarray:
        """Linear parts of all classes at checked rows, shape (n_rows, n_classes)."""
        eta = self._linear(X)
        return np.column_stack([np.zeros(len(eta)), eta]) if eta.ndim == 1 else eta

    def _probabilities(self, X: np.ndarray) -> "Array":
        """Probabilities of all classes at checked rows, shape (n_rows, n_classes)."""
        return special.softmax(self._log_odds(X), axis=1)

    _mean = staticmethod(special.expit)

    def _eta(self, X: np.ndarray) -> np.ndarray:
        """Log-odds of the second class, or of each of several against all others."""
        return self._linear(X) if len(self.classes_) == 2 else special.logit(self._probabilities(X))

    @of_numbers
    @silence()
    def prediction_set(self, X: Any, confidence_level: float = 0.95) -> np.ndarray:
        """Sets of classes that hold the label of a new row with this probability.

        Split conformal prediction by noisy counts, as in `LinearRegression.prediction_interval`: of
        new records of the same population as the rows, at least this part has its class in the set.
        This holds over the rows, their random division, the noise and the new record, for any
        number of rows and whether or not the model is right. A label that is none of the classes is
        counted as outside.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which to predict; they are clipped to their public bounds.
        confidence_level : float in (0, 1), default=0.95
            The smallest of ``prediction_levels`` that is at least this level serves; above all of
            them the set is that of all classes.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_classes)
            Whether each of ``classes_`` is in the set; all where the calibration rows are too few
            for the budget.

        Raises
        ------
        ValueError
            If the estimator was fitted with ``calibration_size=None``.
        """
        widest = "the set is that of all classes"
        _, largest_score = released_quantiles(self, confidence_level, "prediction_set", widest)
        # A set must not lose a class to rounding
        return 1.0 - self.predict_proba(X) <= largest_score + ROUNDED

    def _scored(self, X: np.ndarray, y: Any, sample_weight: Any) -> float:
        """Part of the rows whose label is predicted."""
        likely = self._log_odds(self._points(X)).argmax(axis=1)
        right = likely == class_codes(y, self.classes_, len(likely))
        return float(np.average(right, weights=sample_weight))

    conformity_score = "absolute"  # of a label: there is but one

    def _calibrated(self, held_out: "SessionPart | None", channel: str) -> "Calibration | None":
        """Release the quantiles of the scores of the calibration rows."""
        score = LabelScore(self._probabilities, self._values)
        return calibration(self, held_out, SURPRISES, score=score)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.classes is not None and np.size(self.classes) > 2
        tags.classifier_tags.poor_score = True  # of labels that are not among the public classes
        return tags
