"""What all private regressors share: parameters, who is trusted, tags."""

from dataclasses import field
from numbers import Real
from typing import Annotated, Any, ClassVar

from sklearn.base import BaseEstimator, RegressorMixin

from .._choices import PrivacyModel
from .._codec import Writable
from .._compat import Interval, StrOptions
from .._parameters import RandomState, parameters
from ..privacy import MODELS, Accounted, Budget, PrivacyReport, Trust
from ._points import PredictsAtPoints

WEIGHTS = {"sample_weight": None, "max_weight": None}  # for routing; see PrivateEstimator


@parameters
class PrivateEstimator(Accounted, Writable, BaseEstimator):
    """Base class of the private regressors and classifiers; not for direct use.

    It opens nothing and asks nothing: `fit` of each estimator does, with the functions of
    `_opening.py`. They and the session read the parameters of an estimator. Words for those that
    several have stand here, and hold where a class has none of its own.

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

    epsilon: Annotated[float, Interval(Real, 0, None, closed="right")] = 1.0
    delta: Annotated[float, Interval(Real, 0, 1, closed="left")] = 1e-6
    privacy: Annotated[PrivacyModel, StrOptions(MODELS.keys())] = "central"
    random_state: RandomState = None
    privacy_report_: PrivacyReport = field(init=False)

    # Where `fit` takes weights, they are keywords that its signature does not name: two of
    # scikit-learn's checks of a `sample_weight` found there contradict privacy (an error for
    # weights of zero would tell of them, and noise does not repeat itself for repeated rows).
    # The parameter that bounds rows, and what of a row it bounds.
    _row_bound: ClassVar[tuple] = ("data_norm", "l2")

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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # clipped to bounds_y, whatever the scale of y
        return tags
