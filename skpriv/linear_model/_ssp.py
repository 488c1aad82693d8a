"""Sufficient-statistics perturbation with noise-aware shrinkage."""

from dataclasses import replace
from typing import Any, ClassVar, Self

from .._compat import fit_context
from .._estimation._reports import moments_query
from .._parameters import parameters
from ._base import WEIGHTS
from ._opening import channel_of, open_fit, persons_of, scaled_rows
from ._prediction_intervals import calibration, hold_out
from ._moments import MomentRegressor
from ._solution import asked_records, deviation, residual_gram, residual_share, solve

# code -> paper (Wang 2018, "Revisiting differentially private linear regression"):
#   design -> X'X + noise,  target -> X'y + noise


@parameters
class SSPRegressor(MomentRegressor):
    """Linear regression from privately released sufficient statistics.

    All second moments are released at once, with the tight replace-one sensitivity of the joint
    vector, and the noisy normal equations are solved with a shrinkage chosen from the released
    answers and their known noise law. In the local model every user sends one noisy report.

    Parameters
    ----------
    channel : {"auto", "gaussian", "codebook"}, default="auto"
        What users send in the local and shuffle models: a vector with Gaussian noise, or an index
        of a public codebook, which is pure (``delta=0``) and safe to release. "auto" takes the one
        of less noise, from public numbers; unless delta is 0 it is
        "gaussian" in the local model under an accountant that adds up Gaussian noise.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    privacy_report_ : PrivacyReport
        What was asked of the records, and at what price.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only when X has feature names that are all strings.

    See Also
    --------
    ReweightedRegressor : More accurate when features have very different scales.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record,
    local in the local model. Released: one joint Gaussian answer for the moments and, in the
    central model, one for the residual variance; their costs compose exactly as Gaussian DP (Dong,
    Roth and Su 2022). With the codebook channel users send one index each, whose price rests on one
    exact integer draw (delta = 0, docs/codebook.md), and all that follows is post-processing.
    Public: the number of records and all parameters.

    References
    ----------
    Y.-X. Wang (2018). Revisiting differentially private linear regression: optimal and adaptive
    prediction and estimation in unbounded domain. UAI.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import SSPRegressor
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(20_000, 3))
    >>> y = X @ [1.0, -0.5, 0.0] + rng.uniform(-0.2, 0.2, size=20_000)
    >>> est = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), epsilon=1.0, random_state=0).fit(X, y)
    >>> est.coef_.round(1) + 0.0
    array([ 1. , -0.5,  0. ])
    >>> low, high = est.confidence_interval(X[:2])
    >>> bool((low < high).all())
    True
    """

    estimand: ClassVar[str | None] = "least-squares line of the clipped rows and targets"
    interval_claims: ClassVar[tuple[str, ...]] = ("certified", "asymptotic")
    __metadata_request__fit: ClassVar[dict] = WEIGHTS

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
        y : array-like of shape (n_samples,), default=None
            None if X is rows that have their targets in them: see `skpriv.records.from_table`.
        groups : array-like of shape (n_samples,), default=None
            The person of each row. Then a record is a person: the guarantee is for replacing one
            person with all rows, with ``privacy="central"``, and the number of persons is public.
            Intervals hold whatever the dependence of a person's rows is.
        max_rows_per_group : int, default=None
            The most rows of a person that are used, with `groups`; they are chosen at random. The
            noise grows in proportion to it. None takes that of the constructor.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, private as the row is; clipped to [0, `max_weight`]. Noise is that
            of rows of the largest weight. Rows must be in memory.
        max_weight : float, default=None
            The public bound on `sample_weight`, never the largest weight of the rows.

        Returns
        -------
        self

        Raises
        ------
        BudgetExceeded
            If an active :class:`skpriv.BudgetAccountant` cannot pay.
        """
        groups = persons_of(self, groups, max_rows_per_group)
        rows, scaling = scaled_rows(self, X, y)
        rows, asked = asked_records(self, rows, scaling, weights)
        channel = channel_of(self, scaling, rows)
        currency = "pure" if channel == "codebook" else "gdp"
        session = open_fit(self, rows, currency=currency, groups=groups)
        del X, y, rows  # only the session has the data now
        session, held_out = hold_out(self, session)

        query = moments_query(asked, channel)
        answer = session.sum(query, 1.0 - residual_share(session.trust))
        equations = query.equations(answer)
        theta = solve(equations, scaling, self.alpha)
        if answer.reports is not None:
            residual = {"residual_gram": answer.reports.error_gram(theta)}
        else:
            residual = residual_gram(session, equations, theta, asked)
        self._scaling, self._equations = scaling, replace(equations, **residual)
        self.coef_, self.intercept_ = scaling.coefficients(theta)
        scatter = deviation(self._equations, scaling, theta)
        self._calibration = calibration(self, held_out, scatter, channel)
        self.privacy_report_ = session.report
        return self
