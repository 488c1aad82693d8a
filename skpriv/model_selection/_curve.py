"""Accuracy of a private estimator at every epsilon."""

from typing import Any
from numbers import Integral, Real

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, check_random_state, indexable
from sklearn.utils.parallel import Parallel, delayed

from .._choices import IntervalMethod
from .._compat import HasMethods, Interval, StrOptions, validate_params
from .._progress import progress
from ..records import positional
from ._evaluate import Tables, evaluate, evaluate_reference, make_fold


@validate_params(
    {
        "estimator": [HasMethods(["fit", "predict", "get_params"]), list],
        "epsilons": ["array-like"],
        "groups": ["array-like", None],
        "cv": ["cv_object"],
        "n_repeats": [Interval(Integral, 1, None, closed="left")],
        "scoring": [str, callable, None],
        "reference": [HasMethods(["fit", "predict"]), None],
        "confidence_level": [Interval(Real, 0, 1, closed="neither"), None],
        "interval_method": [StrOptions({"certified", "asymptotic"})],
        "max_interval_rows": [Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    },
    prefer_skip_nested_validation=False,
)
def privacy_utility_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    epsilons: Any = (0.1, 0.3, 1.0, 3.0, 10.0),
    groups: Any = None,
    cv: Any = 5,
    n_repeats: int = 3,
    scoring: Any = None,
    reference: Any = None,
    confidence_level: float = 0.95,
    interval_method: IntervalMethod = "certified",
    max_interval_rows: int = 2000,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
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

    max_interval_rows : int or None, default=2000
        Intervals are measured at no more than this number of held-out rows of each fold, evenly
        spaced; None takes all of them.

    n_jobs : int, default=None
        Fits that run at the same time, by joblib. The result does not depend on it.

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
    the two fits share, nor what the linear model misses. Where linearity fails, an estimator that
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
    prefixes = [_private_prefix(one) for one in estimators]
    names = [_name(*pair) for pair in zip(estimators, prefixes, strict=True)]
    X, y, groups = indexable(positional(X), positional(y), groups)
    splitter = check_cv(cv, y, classifier=is_classifier(estimators[0]))
    # Ascending: parts of a frame of Dask can only be taken so, and the order is no matter.
    splits = [map(np.sort, split) for split in splitter.split(X, y, groups)]
    folds = [make_fold(train, test, max_interval_rows) for train, test in splits]
    interval = None
    if confidence_level is not None:
        interval = {"confidence_level": confidence_level, "method": interval_method}
    shape, tables = (len(epsilons), n_repeats, len(folds)), Tables(X, y)

    def references():
        scorer = check_scoring(reference, scoring)
        for fold in folds:
            model, rows = tables.rows(clone(reference), fold)
            yield delayed(evaluate_reference)(model, rows, scorer, interval)

    def fits():
        scorers = [check_scoring(one, scoring) for one in estimators]
        models = [
            list(_estimators(one, prefix, epsilons, shape, random_state))
            for one, prefix in zip(estimators, prefixes, strict=True)
        ]
        for at, fold in enumerate(folds):  # a fold at a time, whose rows all of them have
            for scorer, ours in zip(scorers, models, strict=True):
                for model in ours[at :: len(folds)]:
                    model, rows = tables.rows(model, fold)
                    predictions = known[at][1] if known else None
                    yield delayed(evaluate)(model, rows, scorer, interval, predictions)

    def run():
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        for result in parallel(references()) if reference is not None else ():
            known.append(result)
            yield result
        yield from parallel(fits())

    known: list[Any] = []
    total = (len(folds) if reference is not None else 0) + len(estimators) * np.prod(shape)
    label = f"{len(names)} estimators" if several else names[0]
    results = list(progress(run(), total, label, enabled=verbose > 0))[len(known) :]
    measured = np.reshape(results, (len(folds), len(estimators), *shape[:2], -1))
    curves = [
        Bunch(
            epsilons=epsilons,
            **_columns(np.moveaxis(measured[:, at], 0, 2), known),
            confidence_level=confidence_level,
            estimator_name=name,
            score_name=_score_name(one, scoring),
        )
        for at, (name, one) in enumerate(zip(names, estimators, strict=True))
    ]
    return curves if several else curves[0]


def _check_epsilons(epsilons):
    try:
        values = np.array(epsilons, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError("epsilons must be numbers.") from error
    if values.ndim != 1 or values.size == 0 or not (values > 0).all():
        raise ValueError(f"epsilons={epsilons!r} must be a list of numbers above 0.")
    return values


def _private_prefix(estimator):
    """What stands before `epsilon` in the name of the private estimator's parameter."""
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


def _estimators(estimator, prefix, epsilons, shape, random_state):
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


def _columns(measured, known):
    """Arrays of the fits and of the reference by name; None for what was not measured."""
    scores, widths, coverages, new_widths, new_coverages = np.moveaxis(measured, -1, 0)
    known_scores, known_widths = None, np.array(np.nan)
    if known:
        known_scores, known_widths, *_ = np.transpose([found for found, _ in known])
    optional = {
        "interval_widths": widths,
        "interval_coverages": coverages,
        "prediction_widths": new_widths,
        "prediction_coverages": new_coverages,
        "reference_widths": known_widths,
    }
    return {
        "test_scores": scores,
        "reference_scores": known_scores,
        **{name: None if np.isnan(x).all() else x for name, x in optional.items()},
    }


def _name(estimator, prefix):
    """Class name of the private estimator."""
    inner = estimator.get_params(deep=True)[prefix.removesuffix("__")] if prefix else estimator
    return type(inner).__name__


def _score_name(estimator, scoring):
    if scoring is None:
        return "Accuracy" if is_classifier(estimator) else "R2"
    name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    return "R2" if name == "r2" else name.replace("_", " ")
