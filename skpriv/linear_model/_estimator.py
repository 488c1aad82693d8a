"""What every private estimator has: its parameters, who is trusted, and its fit."""

from dataclasses import field
from typing import Annotated, Any, ClassVar, NamedTuple, Self, cast

from sklearn.base import RegressorMixin

from .._compat import StrOptions, fit_context
from .._estimation._oracle import Oracle
from .._parameters import (
    Delta, Epsilon, PrivacyModel, RandomState, RowsOfPerson, attribute, parameters,
)  # fmt: skip
from ..privacy import MODELS, Accounted, Groups, PrivacyReport, Trust
from ._predictions import PredictsAtPoints


class Spec(NamedTuple):
    """What tests must know of an estimator: their lists are made from it, and have no line of it.

    Parameters
    ----------
    needs : dict
        Public arguments without which it is not fitted, for rows of a box around 0.
    models : tuple of str
        The privacy models in which it can be fitted.
    variants : tuple of dict
        Arguments that change how it is fitted.
    """

    needs: dict[str, Any]
    models: tuple[str, ...] = ("central", "aggregate", "local", "shuffle", "none")
    variants: tuple[dict[str, Any], ...] = ({},)


def persons_of(model: "FitsPersons", groups: Any, max_rows_per_group: int | None) -> Groups | None:
    """The person of each row, or None where each row is a record; nothing is charged yet."""
    if max_rows_per_group is None:
        max_rows_per_group = model.max_rows_per_group
    if groups is None:
        if max_rows_per_group is not None:
            raise ValueError("max_rows_per_group needs groups= of fit (Pipeline: step__groups=).")
        return None
    return Groups(groups, max_rows_per_group)


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
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": None, "max_weight": None}

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
class PrivateEstimator(Accounted, Oracle):
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
    # Whether somebody reads the note of a fit that has sums: a policy has words of its own for
    # them, and its oracle spends nothing on the note.
    _is_read: bool = attribute(True)

    # Parameters that only some estimators have, and what they are for all others.
    effects = coef_norm = calibration_size = bounds_X = data_norm = start = usual_X = cast(
        Any, None
    )
    clip, n_jobs, link = cast(Any, ("auto", -1, "identity"))
    _spec = Spec({"data_norm": 1.0, "bounds_y": (-1.0, 1.0)})
    # The parameter that bounds rows, and what of a row it bounds.
    _row_bound = ("data_norm", "l2 norm of a row")
    _sparse = cast(Any, False)  # formats of sparse rows that need not be made dense

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

    def fit_statistics(self) -> tuple[Any, ...]:
        """How well the fit describes the records, by what was released; it costs nothing.

        Returns
        -------
        tuple of Statistic
            Each has a ``name``, a ``value`` and a ``std_error``. It is empty where released answers
            do not tell any.
        """
        return ()

    @property
    def _trust(self) -> Trust:
        """Who is trusted, by the parameters; asked nowhere else."""
        return Trust.of(self.privacy, self._stated_budget)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        noisy = not Trust.absent(self.privacy, self.epsilon)
        tags.non_deterministic = noisy and self.random_state is None
        tags.input_tags.sparse = bool(self._sparse)
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # clipped to bounds_y, whatever the scale of y
        return tags
