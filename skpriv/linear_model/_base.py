"""What private regressors share: parameters, who is trusted, rows to predict at, fits by steps.

Rows to predict at are checked in one way, and stay lazy where they are lazy. A fit by the steps of
the loop begins from nothing, or where a released fit ended.
"""

from copy import copy
from dataclasses import dataclass, field, replace
from functools import wraps
from math import inf, sqrt
from typing import Annotated, Any, ClassVar, Self, cast

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from .._compat import Documented, F, StrOptions, fit_context, names_in
from .._estimation._cells import Cells, KnowsCells
from .._estimation._intervals import ConfidenceInterval, check_level, inside_bounds
from .._estimation._links import IDENTITY, StepLink
from .._estimation._loop._fit import FITTED, LoopFit
from .._estimation._loop._steps import fit_rows, narrow_bounds, public_rules, wide_bounds
from .._estimation._public_maps import PublicTargets, RecordMap
from .._estimation._reports import ReportedFit, balanced
from .._estimation._targets import Location
from .._linalg import blocks_of, row_products
from .._parameters import (
    Delta,
    Epsilon,
    IntervalMethod,
    PrivacyModel,
    RandomState,
    RowsOfPerson,
    parameters,
)
from .._stored import stored
from ..privacy import MODELS, Accounted, Budget, PrivacyReport, Trust, capabilities
from ..records import (
    WeightedRows,
    check_public,
    finite_numbers,
    is_lazy,
    public_shape,
    readable,
    silence,
)  # fmt: skip
from ._exact import fit_exactly
from ._opening import hold_out, open_fit, persons_of, public_bounds, public_guess, weighted_rows
from ._plan import Plan, plan_of

# Shape of the gamma law of the errors of made-up targets, with a skewness of 1. With normal errors
# a plan says .8 of the standard errors of a declared least-squares line (docs/evidence/plans.md).
SKEWED = 4.0


def rowwise(method: F) -> F:
    """Let a method of X alone be silent, and lazy on lazy rows, whose chunks it gets when read."""

    @wraps(method)
    def call(self, X, *args, **options):
        if not is_lazy(X):
            with silence():
                return method(self, X, *args, **options)
        check_is_fitted(self)
        rows = check_public(self, X, reset=False)
        plain = copy(self)
        if names_in(self) is not None:  # they are checked once, here: chunks have none
            del plain.feature_names_in_

        def function(chunk):
            return getattr(plain, call.__name__)(chunk, *args, **options)

        one = function(np.zeros((1, rows.n_features)))  # the options are checked here, too
        return rows.evaluated(function, type(one) if isinstance(one, tuple) else None)

    return cast(F, call)


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
    bounds_y_: tuple

    _dtypes: ClassVar[Any] = np.float64  # of rows at which it predicts
    _sparse: ClassVar[Any] = False  # formats of sparse rows that need not be made dense
    _interval_methods: Any = ("certified", "asymptotic")

    def _points(self, X):
        """Checked rows at which a fitted model predicts."""
        check_is_fitted(self)
        return readable(self, X, accept_sparse=self._sparse, dtypes=self._dtypes)

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

    def _scored(self, X, y, sample_weight):
        """R2 of the predictions."""
        return super().score(X, finite_numbers(y, "y"), sample_weight)  # type: ignore[misc]

    def _interval_points(self, X, confidence_level, method):
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

    def _predicted(self, X):
        """Predictions for checked rows, inside of the bounds of y."""
        fitted = self._function(X)
        if self.effects is not None:  # levels of persons are not known
            return fitted
        return np.clip(fitted, *self.bounds_y_)

    def _function(self, X):
        """The fitted function at checked rows, which may leave the bounds of y."""
        return row_products(X, self.coef_) + self.intercept_

    def _check_claim(self, method):
        """Raise unless it is fitted, and the class itself claims this; nothing is inherited."""
        check_is_fitted(self)
        own = vars(type(self))
        claims = own.get("interval_claims", ())
        if own.get("interval_estimand") and method in claims:
            return
        name = type(self).__name__
        claimed = " and ".join(claims) if own.get("interval_estimand") and claims else "no"
        raise NotImplementedError(
            f"{name} claims {claimed} intervals, so method={method!r} is refused: a level that was "
            f"proved for a parent class need not hold for {name}. Once it is proved or measured, "
            f"declare in the body of {name} itself `interval_estimand = 'what is estimated'` and "
            f"`interval_claims = ({method!r},)`; the page 'Add an estimator' of the documentation "
            "says how claims are tested."
        )


class CertifiedIntervals(PredictsAtPoints):
    """Mixin of estimators whose intervals are certified where nothing else is asked for.

    A class has ``_interval(X, confidence_level, method)``, the interval at checked rows.
    """

    _interval: Any

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
        return self._interval(X, confidence_level, method)


class AsymptoticIntervals(PredictsAtPoints):
    """Mixin of estimators whose intervals are asymptotic where nothing else is asked for.

    They fit records by public maps, ``_record_map``, and differences within persons where
    ``effects`` says so.
    """

    _record_map: Any
    _released: Any

    def _with_cells(self, cells):
        check_is_fitted(self)
        twin = copy(self)
        within = self.effects is not None
        found = Cells.of_rows(self._record_map.row_map, cells, within)
        twin._released = self._released.knowing(found)
        return twin

    def _function(self, X):
        """The fitted function at checked rows, which are clipped as in the fit."""
        if self.effects is None:
            X = self._record_map.row_map.clipped(X)
        return super()._function(X)

    def _interval(self, X, confidence_level, method):
        """The interval at checked rows."""
        points = self._record_map.rows(X)
        centre, half = self._released.interval(points, confidence_level, method)
        return inside_bounds(self._record_map, centre, half, self._predicted(X))

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
        # If there are no rows, one empty block gives arrays of the right shape.
        blocks = list(blocks_of(X.shape[0], 2 * X.shape[1])) or [slice(0)]
        found = [self._interval(X[rows], confidence_level, method) for rows in blocks]
        return ConfidenceInterval(*map(np.concatenate, zip(*found, strict=True)))


@parameters
class FitsPersons:
    """Mixin of estimators whose rows may belong to persons, and have weights: their `fit`.

    The weights are keywords that the signature does not name: two of scikit-learn's checks of a
    `sample_weight` found there contradict privacy (an error for weights of zero would tell of them,
    and noise does not repeat itself for repeated rows).
    """

    max_rows_per_group: RowsOfPerson = None
    n_jobs: int | None = -1

    _fit: ClassVar[Any]
    __metadata_request__fit: ClassVar[dict] = {"sample_weight": None, "max_weight": None}

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        groups: Any = None,
        max_rows_per_group: int | None = None,
        **weights: Any,
    ) -> Self:
        """Fit the model; the whole budget is charged before the rows are used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; they are clipped to their public bounds.
        y : array-like of shape (n_samples,), default=None
            Targets, or of a classifier labels. None if X is rows that have their targets in them,
            which must be numbers then: see `skpriv.records.from_table`.
        groups : array-like of shape (n_samples,), default=None
            The person of each row. Then a record is a person: the guarantee is for replacing one
            person with all rows, with ``privacy="central"``, and the number of persons is public.
            Intervals hold whatever the dependence of a person's rows is.
        max_rows_per_group : int, default=None
            The most rows of a person that are used, with `groups`; they are chosen at random. The
            noise grows in proportion to it. None takes that of the constructor.
        **weights : dict
            ``sample_weight``, array-like of shape (n_samples,), is the weight of each row, private
            as the row is, and clipped to [0, ``max_weight``]. The noise is that of rows of the
            largest weight. Rows must be in memory. ``max_weight``, a float above 0, is the public
            bound on the weights, never the largest weight of the rows. Both are None by default.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a public number is missing or impossible, or labels are of another kind than the
            public classes; nothing is charged then.
        BudgetExceeded
            If an active :class:`skpriv.BudgetAccountant` cannot pay.
        """
        self._fit(X, y, persons_of(self, groups, max_rows_per_group), weights)
        return self


@parameters
class PrivateEstimator(Accounted, BaseEstimator):
    """Base class of the private regressors and classifiers; not for direct use.

    It opens nothing and asks nothing: `fit` of each estimator does, with the functions of
    `_opening.py`. They and the session read the parameters of an estimator. Descriptions of
    parameters that several classes have stand here. A class that describes one itself keeps its
    own words.

    Parameters
    ----------
    epsilon : float in (0, inf], default=1.0
        Privacy parameter; ``inf`` is the same as ``privacy="none"``.
    delta : float in [0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of records.
    privacy : {"central", "aggregate", "local", "shuffle", "none"}, default="central"
        Who adds the noise: a trusted curator, all users together by secure aggregation (as much
        noise as a curator), every user, every user with a trusted shuffler that makes the reports
        anonymous (less noise for the same guarantee), or nobody.
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Other Parameters
    ----------------
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    max_rows_per_group : int, default=None
        Rows of a person that are used at most, where `fit` has ``groups``: a public number.
    effects : {"person"} or None, default=None
        "person" fits differences from the means of each person, which `fit` needs ``groups`` for:
        whatever stays the same for a person cannot bias slopes. There is no intercept then, and no
        interval for a level: `predict` is right up to a constant of each person.
    n_jobs : int or None, default=-1
        Threads that read, scale and add up rows; -1 is one for each core. Answers do not depend on
        it, to the last digit.
    """

    epsilon: Epsilon = 1.0
    delta: Delta = 1e-6
    privacy: Annotated[PrivacyModel, StrOptions(MODELS.keys())] = "central"
    random_state: RandomState = None
    privacy_report_: PrivacyReport = field(init=False)

    # Parameters that only some estimators have, and what they are for all others.
    effects = coef_norm = calibration_size = bounds_X = data_norm = start = cast(Any, None)
    usual_X = cast(Any, None)
    clip, n_jobs = cast(Any, ("auto", -1))
    # The parameter that bounds rows, and what of a row it bounds.
    _row_bound: ClassVar[tuple] = ("data_norm", "l2 norm of a row")

    @property
    def mean_name(self) -> str:
        """What the mean of the target is, in words."""
        return "prediction"

    def mean_of_linear_part(self, eta: float) -> tuple[float, float, float]:
        """The mean of the target where the linear part is `eta`, and its first two derivatives.

        Parameters
        ----------
        eta : float
            Value of the linear part of the model.

        Returns
        -------
        tuple of three floats
            The mean, its slope and its second derivative.
        """
        return eta, 1.0, 0.0

    def fit_statistics(self) -> tuple:
        """How well the fit describes the records, by what was released; it costs nothing.

        Returns
        -------
        tuple of Statistic
            Each has a ``name``, a ``value`` and a ``std_error``. It is empty where released answers
            do not tell any.
        """
        return ()

    @property
    def _trust(self):
        """Who is trusted, by the parameters; asked nowhere else."""
        return Trust.of(self.privacy, Budget(self.epsilon, self.delta))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        noisy = not Trust.absent(self.privacy, self.epsilon)
        tags.non_deterministic = noisy and self.random_state is None
        return tags


@parameters
class PrivateRegressor(PredictsAtPoints, RegressorMixin, PrivateEstimator):
    """Base class of the private regressors; not for direct use.

    Parameters
    ----------
    bounds_y : (float, float), default=None
        Public range (low, high) to which y is clipped, and predictions too. Required.
    """

    bounds_y: Any = None
    _fit: ClassVar[Any]

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model; the whole budget is charged before the rows are used.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Sparse rows are for `IHTRegressor` alone.
        y : array-like of shape (n_samples,), default=None
            None if X is rows that have their targets in them: see `skpriv.records.from_table`.

        Returns
        -------
        self

        Raises
        ------
        PrivacyError
            If the estimator has no such privacy model or channel; nothing is charged then.
        BudgetExceeded
            If an active :class:`skpriv.BudgetAccountant` cannot pay.
        """
        self._fit(X, y)
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # clipped to bounds_y, whatever the scale of y
        return tags


# Rows are at most 1 long in their units, so that products of rows with numbers up to this one,
# their squares and sums are finite: no record can turn a sum of all into NaN.
LARGEST_OF_START = 1e100
DAMAGED_START = (
    "The start is damaged: {}. Fit again, or pass start=None, which begins at no release."
)


@stored
@dataclass(frozen=True, eq=False)
class Start:
    """A released fit as the begin of another one, of the same columns and bounds.

    All of it is public or a released answer, so that it costs nothing. The posterior mean is shrunk
    towards it or towards 0, by the evidence for each: one that fits badly is left aside.

    Attributes
    ----------
    maps : RecordMap
    link : StepLink
    theta : ndarray of shape (p,)
        Its product with a row is the linear part, less the location.
    mean : Location
        The mean of the target, with infinite noise.
    deviation, variance : float
        Deviation of the target, and residual variance.
    whitening : tuple of (ndarray of shape (p, p), ndarray of shape (p, p), float)
        The whitening, the Gram matrix of whitened rows, and the standard deviation of its noise.
    words : str
        The release and its guarantee.
    alike : bool, default=False
        Whether its records are like those of the next fit, as those of a policy's short epochs are.
        The mean, deviations and whitening then stand for those of the next rows, and the posterior
        mean is shrunk towards theta alone.
    before : tuple of str, default=()
        Words of the releases at which it began itself, the newest first.

    Raises
    ------
    ValueError
        If a number is not finite, or so large that products with rows would not be.
    """

    maps: RecordMap
    link: StepLink
    theta: np.ndarray
    mean: Location
    deviation: float
    variance: float
    whitening: tuple[np.ndarray, np.ndarray, float]
    words: str
    alike: bool = False
    before: tuple[str, ...] = ()

    def __post_init__(self):
        W, gram, scale = self.whitening
        begun: Any = 0.0
        if self.alike:  # its whitening is that of the next fit
            if {np.shape(W), np.shape(gram)} != {2 * np.shape(self.theta)}:
                raise ValueError(DAMAGED_START.format("its whitening has another size"))
            try:
                with np.errstate(all="ignore"):
                    begun = np.linalg.solve(W.T, self.theta)
            except np.linalg.LinAlgError:
                raise ValueError(DAMAGED_START.format("its whitening has no inverse")) from None
        single = self.deviation, self.variance, scale, self.mean.mean
        numbers = np.concatenate([np.ravel(part) for part in (W, gram, self.theta, begun, single)])
        if not np.abs(numbers).max() <= LARGEST_OF_START:
            raise ValueError(DAMAGED_START.format("a number is not finite, or beyond all rows"))

    @property
    def chain(self) -> tuple[str, ...]:
        """Words of this release and of those at which it began, each once."""
        return tuple(dict.fromkeys((self.words, *self.before)))

    @classmethod
    def of(cls, fit, maps, words, before=()):
        """The begin that a `LoopFit` with equations is."""
        link, scale = fit.link, fit.pooled(FITTED).slope_scale
        mean = float(link.mean(fit.location))
        # The pooled slope of the scores is this factor times the Gram matrix of the rows. It is 1
        # for a line, and where the link bends it has the slope of the mean in it.
        unit = link.steepest / link.far * float(link.slope(fit.location, mean))
        deviation = min(sqrt(max(fit.variance + float(fit.b @ fit.gram @ fit.b), 0.0)), 1.0)
        whitening, location = (fit.W, fit.gram / unit, scale / unit), Location(mean, inf, 1.0)
        fields = maps, link, fit.theta, location, deviation, fit.variance, whitening, words
        return cls(*fields, before=tuple(before))


@parameters
class FitsBySteps(FitsPersons, AsymptoticIntervals):
    """Mixin of estimators that the loop fits, from nothing or from a release; not for direct use.

    Each keeps its public maps as ``_record_map``, and all that was released as ``_released``: its
    coefficients, intervals and laws are computed from these.

    Parameters
    ----------
    start : fitted estimator of the same class, its `as_start`, or None, default=None
        A fit that was released before, of other records or of the same ones, with the same columns
        and bounds: of last year, or of another region. Coefficients are shrunk towards its own or
        towards 0, by what the answers say for each: a start that fits badly is left aside. It costs
        nothing again. The report names it. A clone keeps it.
    """

    bounds_X: Any = None
    start: Any = None
    # Words of the releases at which the fit began, the newest first
    _begun_at: tuple = field(init=False, default=())

    def _fit_steps(self: Any, records, maps, groups, weights, link=IDENTITY, channel="gaussian"):
        """Fit records with public maps; the whole budget is charged before values are read.

        Parameters
        ----------
        records : Rows
        maps : RecordMap
            Its map of rows is one, or what `_rows_of` makes one of.
        groups : Groups or None
        weights : dict
            The weights as they were passed to ``fit``.
        link : StepLink
        channel : {"gaussian", "codebook"}
            What users send, by public numbers.
        """
        records = weighted_rows(self, records, weights, maps.target)
        weighted = isinstance(records, WeightedRows)
        plain = not weighted and self.effects is None
        start = None
        if self.start is not None and not self._trust.exact:
            start = self._start(records, maps, link, channel, plain)
        self._begun_at = start.chain if start else ()
        usual = public_guess(self, maps)
        session = open_fit(self, records, channel, groups=groups)
        del records  # only the session has the data now
        session, held_out = hold_out(self, session)
        maps = replace(maps, row_map=self._rows_of(session, maps.row_map, channel))
        self._record_map = session_maps = maps
        if weighted:  # the session hands out rows and targets that were scaled already
            session_maps = maps.weighted()
            if not link.linear:  # a target that is none of the labels stays NaN
                session_maps = replace(session_maps, target_map=ScaledAlready())
        self._released = self._release(session, session_maps, link, channel, start, usual)
        if isinstance(self._released, LoopFit):
            of_fit = self._released, maps.row_map, names_in(self)
            session.report.add_note(narrow_bounds(*of_fit))
            session.report.add_note(wide_bounds(*of_fit))
        self._read()
        self._calibration: Any = None
        if self.calibration_size is not None:  # each class with this mixin has it
            self._calibration = self._calibrated(held_out, channel)

    def plan(
        self: Any,
        n: int,
        n_features: int | None = None,
        *,
        schema: Any = None,
        shares: Any = None,
        smallest_level: float | None = None,
        target_mean: float | None = None,
        target_deviation: float | None = None,
    ) -> Plan:
        """Say what `fit` will ask and which standard errors its table will have, before any data.

        Nothing is charged and no data are needed: the plan is a rehearsal with made-up rows, which
        are asked the same questions with the same noise. Columns of made-up rows have a
        correlation of .25 with each other and no effect on the target, whose errors are a little
        skewed. Numbers are spread evenly over their range, or with nine tenths of them over the
        ``usual`` range of a schema. Where columns of the table depend on each other more strongly,
        all standard errors are larger, those without privacy too.

        Parameters
        ----------
        n : int
            Number of records: of persons, if ``max_rows_per_group`` is set, with so many rows each.
        n_features : int, default=None
            Number of columns of X. This or `schema` is required.
        schema : Schema, mapping, TableEncoder or FormulaEncoder, default=None
            The columns of the table, encoded as in a pipeline with this estimator. Coefficients are
            then those of the table.
        shares : mapping of str to (mapping of str to float, or float), default=None
            Expected shares of levels by column, such as ``{"region": {"north": 0.05}}``; a number
            is the share of true. Other levels have equal parts of the rest, and nothing is "other"
            or missing unless it is named.
        smallest_level : float in (0, 1), default=None
            Expected share of the smallest level of each list that `shares` does not name.
        target_mean : float, default=None
            Expected mean of the target, or rate of ``classes[1]``. None is the middle of the range,
            equal rates, or for counts an eighth of the largest.
        target_deviation : float, default=None
            Expected standard deviation of the target around its mean at each row. None is a tenth
            of the range; for counts it is that of Poisson's law, and for classes it follows.

        Returns
        -------
        Plan
            It prints as a table. ``people_needed(effect)`` says how many records find an effect.

        Raises
        ------
        ValueError
            If a parameter is wrong, or no noise is added.

        Examples
        --------
        >>> from skpriv.linear_model import LinearRegression
        >>> from skpriv.preprocessing import Categorical, Numeric
        >>> schema = {"age": Numeric(18, 90), "site": Categorical(["A", "B", "C"], other=False)}
        >>> model = LinearRegression(epsilon=1.0, data_norm=1.0, bounds_y=(0, 10))
        >>> plan = model.plan(20_000, schema=schema, shares={"site": {"C": 0.1}})
        >>> plan.names
        ['age', 'site=B', 'site=C']
        >>> bool(plan.estimable.all()), bool((plan.std_error > plan.sampling_error).all())
        (True, True)
        """
        arguments = n, n_features, schema, shares, smallest_level, target_mean, target_deviation
        return plan_of(self, *arguments)

    def _for_rehearsal(self: Any, estimand):
        """An unfitted estimator like this one, whose targets `_imagined_target` makes up."""
        model = clone(self)
        return model.set_params(estimand=estimand) if len(self.law_estimands) > 1 else model

    def _imagined_target(self: Any, quantiles, mean, deviation):
        """Made-up targets at quantiles in (0, 1), without any effect: skewed ones."""
        low, high = public_bounds(self)
        centre = (low + high) / 2.0 if mean is None else mean
        scale = (high - low) / 10.0 if deviation is None else deviation
        return centre + scale * (stats.gamma.ppf(quantiles, SKEWED) - SKEWED) / sqrt(SKEWED)

    def _assumed_target(self, targets):
        """What made-up targets are like, in a sentence."""
        return (
            f"Assumed: targets have the mean {np.mean(targets):.4g} (target_mean=) and deviate "
            f"from it by {np.std(targets):.3g} at each row (target_deviation=)."
        )

    def _planned_names(self, names):
        """Names of what is planned, from those of the coefficients of one line."""
        return names

    def _planned_errors(self: Any, matrix):
        """Standard errors of the declared coefficients, and their part by sampling alone.

        NaN stands for what is not estimable, and the intercepts are left out. A matrix leads from
        coefficients of X to those of a table.
        """
        law = self.coefficient_law(None)
        blocks = max(law.classes, 1)
        if matrix is not None:
            law = law.mapped(np.kron(np.eye(blocks), matrix))
        variances = [np.diagonal(part) for part in (law.sampling + law.privacy, law.sampling)]
        errors = np.sqrt(np.where(law.hidden, np.nan, variances))
        return errors.reshape(2, blocks, -1)[:, :, :-1].reshape(2, -1)

    def _release(self: Any, session, maps, link, channel, start, usual):
        """All that is released of a session: a `LoopFit`, or a `ReportedFit`."""
        if session.trust.exact:
            return self._exact(session, maps, link)
        rows = self._record_map.row_map
        priors = rows.priors()
        if channel == "codebook":
            norm = None if self.coef_norm is None else rows.theta_bound(self.coef_norm)
            return ReportedFit.of(session, maps, rows.constant is not None, priors, norm)
        clip, ranged = self.clip, self.bounds_X is not None
        textbook = self.estimand != "fitted"
        rules = public_rules(session, maps.row_map, clip, ranged, link, textbook)
        return fit_rows(session, maps, rules, link, priors, start, usual)

    def _rows_of(self, session, rows, channel):
        """The public map of the rows of a session. If users send reports, features are shorter the
        less the reports can tell of slopes: see `balanced`.
        """
        return balanced(session, rows) if channel == "codebook" else rows

    def _exact(self: Any, session, maps, link):
        """The fit without privacy, of curves with next to no penalty on what is rough."""
        return fit_exactly(session, maps, self._record_map.row_map.roughness(session.n))

    def _read(self: Any):
        """Coefficients and intercept, in the units of X and y, from what was released."""
        fit, maps = self._released, self._record_map
        self.coef_, level = maps.coefficients(fit.theta)
        self.intercept_ = level + maps.target_map.radius * fit.location

    def as_start(self: Any, *, public_rows: bool = False) -> Start:
        """The state that another fit needs to begin where this one ended: released answers alone.

        Parameters
        ----------
        public_rows : bool, default=False
            Whether all rows of this fit are public. A fit without privacy is told by its rows, so
            that a fit that begins there would tell them, too: it is a start only if they are.

        Returns
        -------
        Start
            Released answers, which a later fit takes as its ``start``.

        Raises
        ------
        ValueError
            If nothing but a mean was released, or the fit is exact and its rows are not public.
        """
        check_is_fitted(self)
        fit, of_levels = self._released, self.effects is None
        solved = isinstance(fit, LoopFit) and fit.equations and of_levels
        if not solved or len(fit.b) != self._record_map.size:
            raise ValueError(
                f"this {type(self).__name__} is no start: it has no equations of one line, as "
                "steps with Gaussian noise have."
            )
        guarantee = str(self.privacy_report_.guarantee)
        # The report tells how it was fitted: parameters may have been set since.
        if capabilities(self.privacy_report_.privacy).exact:
            if not public_rows:
                raise ValueError(
                    "a fit without privacy tells of its rows, and so would a fit that begins there:"
                    " if all of them are public, pass start=fit.as_start(public_rows=True)."
                )
            guarantee = "without privacy, of rows that were said to be public"
        words = f"{type(self).__name__}, {guarantee}"
        return Start.of(fit, self._record_map, words, self._begun_at)

    def __sklearn_clone__(self: Any) -> Any:
        twin = super().__sklearn_clone__()  # type: ignore[misc]
        twin.start = self.start  # a released answer, which a clone does not forget
        return twin

    def _start(self: Any, records, maps, link, channel, plain):
        """The `Start`; refused before anything is charged if it does not suit."""
        given = getattr(self.start, "estimator", self.start)  # of a FrozenEstimator
        start = given.as_start() if hasattr(given, "_released") else given
        if not isinstance(start, Start):
            raise ValueError(
                f"start is a {type(given).__name__}, at which no fit can begin: pass a fitted "
                f"{type(self).__name__} (the last step of a Pipeline, also of one that "
                "skpriv.load reads), or in a search, which clones it, what its as_start returns."
            )
        if channel != "gaussian" or not plain:
            raise ValueError(
                "start is for steps with Gaussian noise on rows without weights and without "
                "effects: pass channel='gaussian', or start=None."
            )
        if type(start.link) is not type(link) or not start.maps.same_as(maps):
            raise ValueError(
                "start was fitted with other columns, bounds or classes: they must be the same, in "
                "the same order, as those of this fit."
            )
        return start


@parameters
class FitsLines(FitsBySteps):
    """Mixin of those whose linear part is one of the columns themselves; not for direct use.

    Parameters
    ----------
    usual_X : mapping, array-like of shape (n_features, 2) or (low, high), default=None
        Public guess of where most values of each feature lie, inside of its range and in the same
        units: ages from 0 to 120 may usually be from 20 to 60. Nine tenths of the values should lie
        there, and a guess that is wrong by a factor of four still helps. It says in which units
        noise is added where the records are too few for released means and spreads of the features
        (docs/linear_regression.md). It comes from what the features mean, costs nothing, and clips
        nothing. A feature that a mapping leaves out, or whose ends are NaN, has no guess.
    """

    usual_X: Any = None


class ScaledAlready(PublicTargets):
    """Targets that were scaled when the rows were handed out."""

    def scaled(self, y):
        """The target as it comes."""
        return y
