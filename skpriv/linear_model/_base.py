"""What all private regressors share: parameters, who is trusted, tags."""

from numbers import Real
from typing import Any, ClassVar

from sklearn.base import BaseEstimator, RegressorMixin

from .._codec import Writable
from .._compat import Interval, StrOptions
from ..privacy import MODELS, Accounted, Budget, PrivacyReport, Trust
from ._points import PredictsAtPoints

WEIGHTS = {"sample_weight": None, "max_weight": None}  # for routing; see PrivateEstimator


class PrivateEstimator(Accounted, Writable, BaseEstimator):
    """Base class of the private regressors and classifiers; not for direct use.

    It opens nothing and asks nothing: `fit` of each estimator does, with the functions of
    `_opening.py`. They and the session read these attributes of an estimator, which are parameters
    of its constructor unless the class sets them.

    Parameters
    ----------
    epsilon, delta : float
        The budget of a fit.
    privacy : str
        Name of the privacy model.
    random_state : None, int or RandomState
        None draws secure noise.
    bounds_y : (float, float)
        Public range of the target.
    data_norm : float
        Public bound on rows, or another parameter that ``_row_bound`` names.
    fit_intercept : bool
        Whether rows have a constant.

    An estimator may also have these. What it has not is taken for None, or for the default.

    Other Parameters
    ----------------
    outer_norm, outer_bounds_y : float, (float, float)
        Where ``data_norm`` and ``bounds_y`` may be "auto": bounds that are safely too wide.
    channel : {"auto", "gaussian", "codebook"}
        Where `fit` calls `channel_of` or `best_reports`: what users send.
    max_rows_per_group : int or None
        Where `fit` takes ``groups`` and calls `persons_of`.
    calibration_size, conformity_score, prediction_levels
        Where it has intervals for new targets: see `PredictionIntervals`.
    n_jobs : int or None
        Threads that add up rows.
    """

    epsilon: Any
    delta: Any
    privacy: Any
    random_state: Any

    privacy_report_: PrivacyReport

    _parameter_constraints: ClassVar[dict] = {
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="left")],
        "privacy": [StrOptions(MODELS.keys())],
        "data_norm": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), None],
        "bounds_y": "no_validation",  # by `public_bounds`, which says what is wanted
        "outer_norm": [Interval(Real, 0, None, closed="neither"), None],
        "outer_bounds_y": ["array-like", None],
        "coef_norm": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "random_state": ["random_state"],
    }
    # Where `fit` takes weights, they are keywords that its signature does not name: two of
    # scikit-learn's checks of a `sample_weight` found there contradict privacy (an error for
    # weights of zero would tell of them, and noise does not repeat itself for repeated rows).
    # The parameter that bounds rows, its outer bound, and what of a row it bounds.
    _row_bound: ClassVar[tuple] = ("data_norm", "outer_norm", "l2")

    @property
    def _trust(self):
        """Who is trusted, by the parameters; asked nowhere else."""
        return Trust.of(self.privacy, Budget(self.epsilon, self.delta))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        noisy = not Trust.absent(self.privacy, self.epsilon)
        tags.non_deterministic = noisy and self.random_state is None
        return tags


class PrivateRegressor(PredictsAtPoints, RegressorMixin, PrivateEstimator):
    """Base class of the private regressors; not for direct use."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # clipped to bounds_y, whatever the scale of y
        return tags
