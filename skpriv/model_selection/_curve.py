"""Accuracy of a private estimator at every epsilon: the fits, what is measured, and the picture."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import nan
from types import FunctionType
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from joblib import hash
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch, check_random_state, indexable
from sklearn.utils.parallel import Parallel, delayed

from .._compat import HasMethods, pipeline_steps, reaching_last, safe_indexing
from .._parameters import ArrayLike, Count, IntervalMethod, Level, RandomState, validated
from .._printing import Display, picture_text, pyplot
from .._progress import progress
from ..metrics import interval_coverage_score, interval_mean_width
from ..privacy import Accounted, learns_nothing
from ..records import codes, floats, positional, read_in_batches, silence
from itertools import starmap


class Fold(NamedTuple):
    """Rows of one split, and those of the held-out rows at which intervals are measured."""

    train: np.ndarray
    test: np.ndarray
    points: np.ndarray

    def cut(self, X: np.ndarray, y: Any) -> tuple[np.ndarray, Any, np.ndarray, Any, np.ndarray]:
        """X of the training rows, their y, X and y of the held-out rows, and X of the points."""
        parts = (X, self.train), (y, self.train), (X, self.test), (y, self.test), (X, self.points)
        return tuple(starmap(safe_indexing, parts))


class Measured(NamedTuple):
    """What one fit gives; NaN where there is nothing to measure."""

    test_scores: float
    interval_widths: float = nan
    interval_coverages: float = nan
    prediction_widths: float = nan
    prediction_coverages: float = nan


def make_fold(train: np.ndarray, test: np.ndarray, max_points: int | None) -> Fold:
    """Fold with at most `max_points` evenly spaced held-out rows for the intervals."""
    count = len(test) if max_points is None else min(max_points, len(test))
    return Fold(train, test, test[np.linspace(0, len(test) - 1, count).round().astype(int)])


@silence()
def evaluate(
    estimator: Any,
    rows: tuple[np.ndarray, Any, np.ndarray, Any, np.ndarray],
    scorer: Any,
    interval: dict[str, float | str] | None,
    reference: np.ndarray | None,
) -> Measured:
    """Fit on the training rows, and measure on the held-out ones.

    Parameters
    ----------
    estimator : estimator
        Not fitted, and not needed elsewhere.
    rows : tuple of array-likes
        Those of :meth:`Fold.cut`.
    scorer : callable
    interval : dict or None
        Arguments of ``confidence_interval``; None measures no intervals.
    reference : ndarray or None
        Predictions of the reference at the points.

    Returns
    -------
    Measured
    """
    X, y, X_test, y_test, points = rows
    estimator.fit(X, y)
    found = {"test_scores": scorer(estimator, X_test, y_test)}
    last = pipeline_steps(estimator)[-1]
    ours = isinstance(last, Accounted)
    if interval is None or not ours:
        return Measured(**found)
    low, high = last.confidence_interval(reaching_last(estimator, points), **interval)
    found["interval_widths"] = interval_mean_width(low, high)
    if reference is not None:
        # The mean of a clipped target lies in its range, and so do the ends of its intervals.
        reference = np.clip(reference, *last.bounds_y_)
        found["interval_coverages"] = interval_coverage_score(reference, low, high)
    if last.calibration_size is not None:
        # Every held-out row has a target, which is counted.
        X_test = reaching_last(estimator, X_test)
        low, high = last.prediction_interval(X_test, interval["confidence_level"])
        found["prediction_widths"] = interval_mean_width(low, high)
        found["prediction_coverages"] = interval_coverage_score(y_test, low, high)
    return Measured(**found)


@silence()
def evaluate_reference(
    estimator: Any, rows: tuple[Any, ...], scorer: Any, interval: dict[str, float | str] | None
) -> tuple[Measured, np.ndarray]:
    """Measure the reference as any other estimator; its predictions at the points too."""
    return evaluate(estimator, rows, scorer, interval, None), estimator.predict(rows[-1])


class Tables:
    """Tables of the folds, as they are after the public first steps of a Pipeline.

    Such steps map each row by itself and learn nothing, so that all folds, epsilons and repeats
    have the same rows: they are made once, and cut once a fold. Rows that are read in batches stay
    as they are.

    Parameters
    ----------
    X, y : array-likes
    """

    def __init__(self, X: Any, y: Any) -> None:
        self._X = X
        self._y = y
        self._lazy = read_in_batches(X, y)
        self._made = {"": X}
        self._fold: Fold | None = None
        self._cuts: dict[Any, Any] = {}

    def rows(
        self, estimator: Any, fold: Fold
    ) -> tuple[Any, tuple[np.ndarray, Any, np.ndarray, Any, np.ndarray]]:
        """The rest of the estimator after such steps, and the rows of a fold for it."""
        key = ""
        if not self._lazy and _begins_publicly(estimator):
            head = estimator[:-1]
            estimator = estimator[-1]
            key = hash(head)
            if key not in self._made:
                self._made[key] = clone(head).fit_transform(self._X)
        if self._fold is not fold:
            self._fold = fold
            self._cuts = {}
        if key not in self._cuts:
            self._cuts[key] = fold.cut(self._made[key], self._y)
        return estimator, self._cuts[key]


def _begins_publicly(estimator: Any) -> bool:
    """Whether all steps of a Pipeline but the last learn nothing, so that it need not fit them."""
    if type(estimator) is not Pipeline or estimator.memory is not None or len(estimator) == 1:
        return False
    return all(learns_nothing(step) for _, step in estimator.steps[:-1])


@validated
def privacy_utility_curve(
    estimator: Annotated[Any, HasMethods(["fit", "predict", "get_params"]), list],
    X: Any,
    y: Any,
    *,
    epsilons: ArrayLike = (0.1, 0.3, 1.0, 3.0, 10.0),
    groups: ArrayLike | None = None,
    cv: Annotated[Any, "cv_object"] = 5,
    n_repeats: Count = 3,
    scoring: Annotated[Any, str, callable, None] = None,
    reference: Annotated[Any, HasMethods(["fit", "predict"]), None] = None,
    confidence_level: Level | None = 0.95,
    interval_method: IntervalMethod = "certified",
    reference_method: IntervalMethod | None = None,
    max_interval_rows: Count | None = 2000,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    verbose: Annotated[int, "verbose"] = 0,
) -> Bunch:
    """Cross-validated score of a private estimator at every epsilon, and its intervals.

    Parameters
    ----------
    estimator : estimator or list of them
        A private estimator, or a meta-estimator such as a Pipeline with just one inside: it has
        the parameters ``privacy`` and ``epsilon``. It is cloned, never fitted itself. Several have
        the same folds and one reference, and the public first steps that their pipelines share
        (`BoundsScaler`, `TableEncoder`) see the rows once.

    X : array-like of shape (n_samples, n_features)
        Features. A Dask array or frame stays on its workers; a frame loses the names of its
        columns.

    y : array-like of shape (n_samples,)
        Target.

    epsilons : array-like of shape (n_epsilons,), default=(0.1, 0.3, 1.0, 3.0, 10.0)
        Values of epsilon, above 0; infinity is the fit without privacy.

    groups : array-like of shape (n_samples,), default=None
        Passed to the splitter.

    cv : int, splitter or iterable, default=5
        The same as in :func:`sklearn.model_selection.cross_validate`. All epsilons and repeats have
        the same folds. Folds of an int are not shuffled.

    n_repeats : int, default=3
        Fits with fresh noise at each epsilon and fold.

    scoring : str or callable, default=None
        The same as in :func:`sklearn.model_selection.cross_validate`; None is the estimator's own
        score.

    reference : estimator, default=None
        Fitted **without privacy** to the training rows of each fold, for comparison. Its scores,
        and the coverage measured with it, are not private.

    confidence_level : float or None, default=0.95
        Level of the intervals; None measures none. Prediction intervals are measured at this
        level if the estimator holds out rows (``calibration_size``), which should have it among its
        ``prediction_levels``.

    interval_method : {"certified", "asymptotic"}, default="certified"
        Passed to the estimator's ``confidence_interval``.
    reference_method : {"certified", "asymptotic"}, default=None
        The same for the reference; None is `interval_method`.

    max_interval_rows : int or None, default=2000
        Intervals are measured at no more than this number of held-out rows of each fold, evenly
        spaced; None takes all of them.

    n_jobs : int, default=None
        Fits that run at the same time, by joblib. The result does not depend on it. The first of
        its calls in a program starts processes, which takes about two seconds.

    random_state : None, int or RandomState, default=None
        Each fit gets a seed of its own from it. None leaves it to the estimator: secure noise if
        its ``random_state`` is None too, else seeds drawn from that.

    verbose : int, default=0
        Above 0, a line on stderr tells how far the run is.

    Returns
    -------
    curve : :class:`~sklearn.utils.Bunch`, or a list of them for a list of estimators
        epsilons : (n_epsilons,) as given.
        test_scores : (n_epsilons, n_repeats, n_folds).
        interval_widths : of that shape, the mean width on held-out rows; None without intervals.
        interval_coverages : of that shape, the coverage proxy of the Notes; None without
        intervals or reference.
        prediction_widths, prediction_coverages : of that shape, the mean width of intervals for a
        new y, and the part of the held-out targets inside; None without ``calibration_size``.
        reference_scores, reference_widths : (n_folds,), or None.
        confidence_level : as given.
        estimator_name, score_name : str, for tables and pictures.

    Raises
    ------
    BudgetExceeded
        If an active :class:`skpriv.BudgetAccountant` cannot pay for a fit. The fits before it
        stay charged.

    See Also
    --------
    PrivacyUtilityDisplay : The picture of the curve.

    Notes
    -----
    **Privacy guarantee**: none for the curve itself. It scores on rows that the fits have not
    paid for, so it is for public data, or for the eyes of who may see the data anyway. The
    fits are private and are charged: an enclosing accountant records
    ``n_epsilons * n_repeats * n_folds`` of them, whatever `n_jobs`.

    **Coverage of a new y**: `prediction_coverages` is a true number: held-out targets are there to
    be counted, and the level is proved for them, whether or not the mean is linear.

    **Coverage proxy**: a confidence interval is for the regression function f*(x), which is not
    known on real data. `interval_coverages` is the share of held-out rows at which the interval
    contains the prediction of `reference`, fitted to the same training rows and clipped to
    ``bounds_y`` as the interval is. With least squares on the clipped target as the reference it
    shows whether the interval counts the privacy noise. It does not show the sampling error, which
    the two fits share, nor what the linear model misses. If linearity fails, an estimator that
    weighs the rows, as `ReweightedRegressor`, aims at another line than least squares; that alone
    can lower its share.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import SSPRegressor
    >>> from skpriv.model_selection import privacy_utility_curve
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(5000, 3))
    >>> y = X @ [1.0, -0.5, 0.0] + rng.uniform(-0.2, 0.2, size=5000)
    >>> curve = privacy_utility_curve(
    ...     SSPRegressor(
    ...         data_norm=1.0, bounds_y=(-1, 1)
    ...     ), X, y, epsilons=(0.1, 10.0), n_repeats=2, random_state=0
    ... )
    >>> curve.test_scores.shape
    (2, 2, 5)
    >>> low, high = np.median(curve.test_scores, axis=(1, 2))
    >>> bool(low < high)
    True
    """
    epsilons = _check_epsilons(epsilons)
    several = isinstance(estimator, list)
    estimators = list(estimator) if several else [estimator]
    prefixes = [private_prefix(one) for one in estimators]
    names = list(starmap(_name, zip(estimators, prefixes, strict=True)))
    groups = None if groups is None else codes(groups)  # a person is in one part alone
    X, y, groups = indexable(positional(X), positional(y), groups)
    splitter = check_cv(cv, y, classifier=is_classifier(estimators[0]))
    # Rows of a frame of Dask can only be taken in ascending order, and the order does not matter.
    splits = [map(np.sort, split) for split in splitter.split(X, y, groups)]
    folds = [make_fold(train, test, max_interval_rows) for train, test in splits]
    interval = None
    if confidence_level is not None:
        interval = {"confidence_level": confidence_level, "method": interval_method}
    shape = (len(epsilons), n_repeats, len(folds))
    tables = Tables(X, y)

    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    references = []
    if reference is not None:
        scorer = check_scoring(reference, scoring)
        tasks = (tables.rows(clone(reference), fold) for fold in folds)
        measure = delayed(evaluate_reference)
        of_reference = interval and interval | {"method": reference_method or interval_method}
        references = list(parallel(measure(*task, scorer, of_reference) for task in tasks))

    def fits() -> Iterator[tuple[Any, Any, dict[Any, Any]]]:
        scorers = [check_scoring(one, scoring) for one in estimators]
        models = [
            list(_estimators(one, prefix, epsilons, shape, random_state))
            for one, prefix in zip(estimators, prefixes, strict=True)
        ]
        for at, fold in enumerate(folds):  # All estimators share the rows of a fold.
            for scorer, ours in zip(scorers, models, strict=True):
                for model in ours[at :: len(folds)]:
                    model, rows = tables.rows(model, fold)
                    predictions = references[at][1] if references else None
                    yield delayed(evaluate)(model, rows, scorer, interval, predictions)

    total = len(estimators) * np.prod(shape)
    label = f"{len(names)} estimators" if several else names[0]
    results = list(progress(parallel(fits()), total, label, enabled=verbose > 0))
    measured = np.reshape(results, (len(folds), len(estimators), *shape[:2], -1))
    curves = [
        Bunch(
            epsilons=epsilons,
            **_columns(np.moveaxis(measured[:, at], 0, 2), references),
            confidence_level=confidence_level,
            estimator_name=name,
            score_name=_score_name(one, scoring),
        )
        for at, (name, one) in enumerate(zip(names, estimators, strict=True))
    ]
    return curves if several else curves[0]


def _check_epsilons(epsilons: list[float | list[float] | str] | tuple[float, ...]) -> np.ndarray:
    values = floats(epsilons, infinite=True)
    if values.ndim != 1 or values.size == 0 or not (values > 0).all():
        raise ValueError(f"epsilons={epsilons!r} must be a list of numbers above 0.")
    return values


def private_prefix(estimator: Any) -> Any:
    """The prefix of `epsilon` in the name of the private estimator's parameter."""
    params = estimator.get_params(deep=True)
    found = [
        name.removesuffix("epsilon")
        for name in params
        if (name == "epsilon" or name.endswith("__epsilon"))
        and f"{name.removesuffix('epsilon')}privacy" in params
    ]
    if len(found) != 1:
        raise ValueError(
            f"estimator={estimator!r} has {len(found)} private estimators inside, but needs just "
            "one: an estimator with the parameters epsilon and privacy."
        )
    return found[0]


def _estimators(
    estimator: Any,
    prefix: str,
    epsilons: np.ndarray,
    shape: tuple[int, int, int],
    random_state: Any,
) -> Iterator[Any]:
    """Yield one clone for each fit, with its epsilon and a seed of its own."""
    params = estimator.get_params(deep=True)
    own = f"{prefix}random_state"
    seeded = [own] if params.get(own) is not None else []
    if random_state is not None:
        seeded = [name for name in params if f"__{name}".endswith("__random_state")]
    rng = check_random_state(params.get(own) if random_state is None else random_state)
    seeds = rng.randint(np.iinfo(np.int32).max, size=shape)
    for place in np.ndindex(shape):
        changes = {f"{prefix}epsilon": float(epsilons[place[0]])}
        changes.update(dict.fromkeys(seeded, int(seeds[place])))
        yield clone(estimator).set_params(**changes)


def _columns(
    measured: np.ndarray, references: list[tuple[Any, np.ndarray]]
) -> dict[str, np.ndarray | None]:
    """Arrays of the fits and of the reference by name; None for what was not measured."""
    columns = dict(zip(Measured._fields, np.moveaxis(measured, -1, 0), strict=True))
    reference = np.transpose([found for found, _ in references] or [(nan, nan)])
    columns |= {"reference_scores": reference[0], "reference_widths": reference[1]}
    return {
        name: None if name != "test_scores" and np.isnan(x).all() else x
        for name, x in columns.items()
    }


def _name(estimator: Any, prefix: str) -> str:
    """Class name of the private estimator."""
    inner = estimator.get_params(deep=True)[prefix.removesuffix("__")] if prefix else estimator
    return type(inner).__name__


def _score_name(estimator: Any, scoring: Any) -> str:
    if scoring is None:
        return "Accuracy" if is_classifier(estimator) else "R2"
    name = scoring if isinstance(scoring, str) else "score"
    name = scoring.__name__ if isinstance(scoring, FunctionType) else name
    return "R2" if name == "r2" else name.replace("_", " ")


# By quantity: names of the values and of those of the reference, if there are any, and the label.
_QUANTITIES = {
    "score": ("test_scores", "reference_scores", "{} on held-out rows"),
    "width": ("interval_widths", "reference_widths", "mean width of the intervals"),
    "coverage": ("interval_coverages", None, "intervals that contain the reference"),
    "prediction_width": ("prediction_widths", None, "mean width of the intervals for a new y"),
    "prediction_coverage": (
        "prediction_coverages", None, "held-out targets inside of their intervals",
    ),
}  # fmt: skip


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
        pyplot(f"{cls.__name__}.from_estimator")
        curve = privacy_utility_curve(estimator, X, y, **options)
        return cls.from_curve(curve, ax=ax, quantity=quantity)

    @classmethod
    def from_curve(cls, curve: Any, **options: Any) -> Self:
        """Plot a curve that has been computed.

        Parameters
        ----------
        curve : Bunch
            Curve of :func:`privacy_utility_curve`.
        **options : dict
            Options of `plot`, such as ``ax`` and ``quantity``.

        Returns
        -------
        display : PrivacyUtilityDisplay
        """
        return cls(**{item.name: curve[item.name] for item in fields(cls)}).plot(**options)

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
        if quantity not in _QUANTITIES:
            raise ValueError(f"quantity={quantity!r} must be one of {list(_QUANTITIES)}.")
        attribute, of_reference, label = _QUANTITIES[quantity]
        values = getattr(self, attribute)
        reference = getattr(self, of_reference) if of_reference else None
        if values is None:
            raise ValueError(
                f"quantity={quantity!r} was not measured: it needs an estimator with "
                "confidence_interval, a confidence_level and, for the coverage, a reference; for a "
                "new y, one with calibration_size."
            )
        finite = np.isfinite(self.epsilons)
        order = np.argsort(self.epsilons[finite])
        x = self.epsilons[finite][order]
        values = values[finite][order].reshape(len(x), -1)
        low, high = np.quantile(values, [0.1, 0.9], axis=1, method="inverted_cdf")
        middle = np.median(values, axis=1)
        ax = self._axes(ax)
        (self.line_,) = ax.plot(
            x, middle, marker="o", label=picture_text(name or self.estimator_name)
        )
        self.band_ = ax.fill_between(x, low, high, alpha=0.2, color=self.line_.get_color())
        self.reference_line_ = None
        if reference is not None and show_reference:
            self.reference_line_ = ax.axhline(
                np.median(reference), color="0.4", linestyle="--", label="reference, not private"
            )
        ax.set(xscale="log", xlabel="epsilon")
        if "width" in quantity:
            ax.set_ylim(bottom=0.0)  # Widths are compared by their length.
        ax.set_ylabel(label.format(picture_text(self.score_name)))
        ax.legend()
        return self._drawn(ax)
