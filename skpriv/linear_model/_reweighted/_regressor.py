"""Private re-weighted regression."""

from math import inf, sqrt
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from ..._choices import IntervalMethod
from ..._compat import StrOptions
from ..._estimation._coefficients import CoefficientLaw, NoLaw
from ..._estimation._intervals import ConfidenceInterval, inside_bounds
from ..._estimation._moments import Instrument, MomentsQuery
from ..._estimation._reports import LiftedMomentsQuery
from ..._parameters import Count, parameters
from .._base import rowwise
from .._moments import (
    MomentRegressor,
    asked_records,
    residual_share,
)
from .._opening import channel_of, open_fit, scaled_rows
from .._prediction_intervals import calibration, held_out_size, hold_out
from ._normalisation import (
    NormalisationQuery,
    ReportedNormalisationQuery,
    ReweightedMomentsQuery,
    ReweightedReportsQuery,
    affordable,
    learn_normalisation,
)
from ._sgd import LINKS, IdentityLink, Link, descend, minimise, step_shares

# code -> paper (Chen, Li, Rakhlin and Simchi-Levi 2025):
#   normalisation -> U,  mean -> H (Eq. 6),  ridge -> lambda,  target -> xi,  design -> Xi,
#   gram -> W,  instrument e -> U phi / ||U phi||

NORMALISATION_SHARE = {"budget": 0.08, "users": 0.1}


@parameters
class ReweightedRegressor(MomentRegressor):
    """Re-weighted regression, which is accurate when features have very different scales.

    A normalisation U is learned privately such that U phi has about equal length in all directions;
    weights 1 / ||U phi|| then bound every record's part in the normal equations without clipping
    the signal of small or rare directions. Error and interval width do not depend on the smallest
    eigenvalue of the Gram matrix, unlike those of sufficient-statistics perturbation.

    Parameters
    ----------
    link : {"identity", "logit"} or Link, default="identity"
        The mean of y is the link's inverse at a linear function. "logit" is logistic regression on
        ``bounds_y``: with (0, 1) the mean is 1 / (1 + exp(-x'coef - intercept)).
    solver : {"auto", "moments", "sgd"}, default="auto"
        "moments" solves the re-weighted normal equations (Algorithm 12), for the identity link
        only. "sgd" is noisy preconditioned gradient descent (Algorithms 7 and 10), for any. "auto"
        is the first where the link allows it, and else the second.
    n_spectral_iter : int >= 1, default=3
        Iterations of the normalisation (Algorithm 1); each takes an equal part of its share. In the
        local model there are fewer if there are not enough users for so many; with the codebook
        channel perhaps none, where public numbers say that noise would hide what they look for.
    coef_norm : float or None, default=None
        Assumed bound on the l2 norm of (coefficients, intercept) in scaled units, rows in the unit
        ball and target in [-1, 1]. None assumes nothing. Intervals use it, and "sgd" stays within
        it if it is a number (its intervals are ``bounds_y`` otherwise); for other links than the
        identity the coefficients are those of the link function, and no unit of y is in them.
    channel : {"auto", "gaussian", "codebook"}, default="auto"
        What users send in the local and shuffle models: vectors with Gaussian noise, or one index
        of a public codebook each, which is pure (``delta=0``) and safe to release. "auto" takes the
        one of less noise, from public numbers; with solver="sgd" it is "gaussian", and, unless
        delta is 0, in the local model under an accountant that adds up Gaussian noise.
    weights : {"fading", "always"}, default="fading"
        Weights serve privacy, and where the mean is not linear they move the line that is fitted.
        "fading" leaves them off where the budget can afford it, so that the fit is that of
        ``privacy="none"`` as epsilon grows. "always" keeps those of the papers at every epsilon,
        "none" included (with ``solver="moments"``).
    alpha : float or "auto", default="auto"
        Ridge penalty in the units of :class:`sklearn.linear_model.Ridge`, or a noise-aware
        shrinkage (none under ``privacy="none"``: ordinary least squares). Not used by "sgd".

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the linear function; the mean is that function only for the identity link.
    intercept_ : float
    privacy_report_ : PrivacyReport
        What was asked of the records, and at what price.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only when X has feature names that are all strings.

    See Also
    --------
    SSPRegressor : Cheaper, and as good when all directions are alike.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record,
    local in the local model. Released: ``n_spectral_iter`` Gaussian answers for U, one for the
    moments and, in the central model, one for the residual variance; or one a step of "sgd".
    Adaptive composition of Gaussians is exact (Dong, Roth and Su 2022). With the codebook channel
    each user sends one index, about U or about the moments, whose price rests on one exact integer
    draw (delta = 0, docs/trust.md). Public: the number of records and all parameters.

    Departures from the paper: all records serve every central step (the paper splits them; of very
    many a public part serves the normalisation), Sigma of Eq. (6) is asked without the factors
    U^{1/2}, under which noise hides small scales, the sensitivities are tight for replacement, and
    the solution shrinks by the known noise law. By default rows are weighed only as far as privacy
    needs it: under ``privacy="none"`` the fit is ordinary least squares, or maximum likelihood for
    the logit. "sgd" grows its steps' shares, and its last step, at the last released gradient,
    comes after the point that this gradient certifies; so it is not lost.

    References
    ----------
    F. Chen, J. Li, A. Rakhlin and D. Simchi-Levi (2025). Near-optimal private learning in linear
    contextual bandits: Algorithm 1 and Eq. (6) for U, Algorithms 7, 10 and 12 for the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import ReweightedRegressor
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(50_000, 3)) * [1.0, 0.1, 0.02]
    >>> y = X @ [0.5, 0.5, 0.5] + rng.uniform(-0.2, 0.2, size=50_000)
    >>> est = ReweightedRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1), epsilon=1.0, random_state=0
    ... ).fit(X, y)
    >>> bool(abs(est.predict(X) - X @ [0.5, 0.5, 0.5]).mean() < 0.02)
    True
    >>> low, high = est.confidence_interval(X[:2], confidence_level=0.9)
    >>> bool((low < high).all())
    True
    """

    link: Annotated[Any, StrOptions(set(LINKS)), Link] = "identity"
    solver: Literal["auto", "moments", "sgd"] = "auto"
    n_spectral_iter: Count = 3
    weights: Literal["fading", "always"] = "fading"

    estimand: ClassVar[str | None] = "weighted least-squares line (weights of the normalisation)"
    interval_claims: ClassVar[tuple[str, ...]] = ("certified", "asymptotic")

    def _fit(self, X, y, groups, weights):
        link = LINKS[self.link] if isinstance(self.link, str) else self.link
        if self._solver == "moments" and not isinstance(link, IdentityLink):
            raise ValueError(
                f"solver='moments' solves linear equations, so that link={self.link!r} needs "
                "solver='sgd'."
            )
        rows, scaling = scaled_rows(self, X, y)
        rows, asked = asked_records(self, rows, scaling, weights)
        if asked is not scaling and self._solver != "moments":
            raise ValueError("sample_weight needs solver='moments': 'sgd' takes no weights.")
        channel = self._sent(scaling, rows)
        share = NORMALISATION_SHARE[self._trust.can.divides]
        if self._trust.exact and not (self.weights == "always" and self._solver == "moments"):
            share = 0.0  # exact answers have no noise for weights to balance
        iterations = self.n_spectral_iter
        if self._trust.can.reports:  # few users, each of whom answers once
            iterations = max(
                1, min(iterations, int(share * (rows.n - held_out_size(self, rows.n))))
            )
        smallest = share / iterations or 1.0
        steps = (1.0 - share) * self._step_shares(rows.n, scaling.size, link)
        if self._solver == "sgd":
            smallest = min(smallest, steps.min())
        currency = "pure" if channel == "codebook" else "gdp"
        session = open_fit(self, rows, currency=currency, smallest_share=smallest, groups=groups)
        del X, y, rows  # only the session has the data now
        session, held_out = hold_out(self, session)

        kind: type = NormalisationQuery
        if channel == "codebook":
            kind = ReportedNormalisationQuery
            iterations = affordable(session, asked, share, iterations)
            share = share if iterations else 0.0
        instrument = Instrument()  # without it weights have nothing to protect
        if share:
            fades = self.weights == "fading" and session.trust.can.same_rows and asked is scaling
            instrument = learn_normalisation(session, asked, share, iterations, fades, kind)
        self._certificate: Any = None
        scatter = None
        self._scaling, self._link = scaling, link
        if channel == "codebook":
            self._solve_reports(session, asked, instrument, 1.0 - share)
        elif self._solver == "moments":
            scatter = self._solve_moments(session, asked, instrument, 1.0 - share)
        else:
            self._descend(session, scaling, instrument, steps, link)
        self._calibration = calibration(self, held_out, scatter, channel)

    @property
    def _solver(self):
        """The solver that is meant."""
        if self.solver != "auto":
            return self.solver
        link = LINKS[self.link] if isinstance(self.link, str) else self.link
        return "moments" if isinstance(link, IdentityLink) else "sgd"

    def _sent(self, scaling, rows):
        """What users send: "gaussian" or "codebook", by public numbers."""
        if self._solver == "sgd":
            if self.channel == "codebook":
                raise ValueError(
                    "solver='sgd' certifies gradients with Gaussian noise: pass channel='gaussian' "
                    "or 'auto', or solver='moments'."
                )
            return "gaussian"
        return channel_of(self, scaling, rows)

    def _solve_reports(self, session, asked, instrument, share):
        """Algorithm 12 by one index a user: weighted least squares in whitened coordinates."""
        query, self._shapes, self._basis = LiftedMomentsQuery(asked), (), None
        if instrument.matrix is not None:
            self._shapes, self._basis = (instrument.matrix,), instrument.matrix / instrument.length
            query = ReweightedReportsQuery(asked, instrument=Instrument(self._basis))
        self._solve_sums(session, asked, query, share)

    def _solve_moments(self, session, asked, instrument, share):
        """Algorithm 12; least squares without a normalisation."""
        query: MomentsQuery | ReweightedMomentsQuery = MomentsQuery(asked)
        self._shapes, self._basis = (), None
        if instrument.matrix is not None:
            query, self._shapes = ReweightedMomentsQuery(asked, instrument), (instrument.matrix,)
        share -= residual_share(session.trust)
        return self._solve_sums(session, asked, query, share, instrument)

    def _radius(self, scaling):
        """Ball in which "sgd" stays; none without an assumption."""
        return inf if self.coef_norm is None else scaling.theta_bound(self.coef_norm)

    def _step_shares(self, n, size, link):
        """Public shares of the steps of "sgd"."""
        trust = self._trust
        n -= held_out_size(self, n)
        precision = 0.0 if trust.exact else trust.budget.mu * sqrt(n / size)
        return step_shares(trust.can.divides, link, precision)

    def _descend(self, session, scaling, instrument, steps, link):
        """Algorithms 7 and 10, and the certificate of the last gradient."""
        radius = self._radius(scaling)
        if session.trust.exact:
            theta, self._certificate = minimise(session, scaling, link, radius)
        else:
            theta, self._certificate = descend(session, scaling, instrument, link, radius, steps)
        self.coef_, self.intercept_ = scaling.coefficients(theta)
        if not isinstance(link, IdentityLink):  # the linear function is not in the units of y
            self.coef_ = self.coef_ / scaling.radius
            self.intercept_ = (self.intercept_ - scaling.centre) / scaling.radius

    def coefficient_law(self) -> CoefficientLaw:
        """Distribution of the coefficients for `skpriv.inspection.inference`; see SSPRegressor.

        They are those of least squares with the weights of the learned normalisation, another line
        than that of all rows alike where the mean is not linear.

        Returns
        -------
        CoefficientLaw
        """
        if self._solver != "moments":
            raise NoLaw(
                "solver='sgd' certifies predictions and releases no coefficients with errors: use "
                "solver='moments', or LinearRegression."
            )
        return super().coefficient_law()

    def _function(self, X):
        """The mean of y for checked rows."""
        linear = super()._function(X)
        if isinstance(self._link, IdentityLink):
            return linear
        return self._scaling.unscale(np.asarray(self._link.mean(linear)))

    @rowwise
    def confidence_interval(
        self, X: Any, confidence_level: float = 0.95, method: IntervalMethod = "certified"
    ) -> ConfidenceInterval:
        """Confidence interval for the regression function at each row, not for a new y.

        With ``solver="moments"`` as in :class:`SSPRegressor`. With "sgd" the certified interval
        holds at all rows *at once*, for any number of steps and whether or not they converged. It
        assumes that the mean of the clipped target is the link's at a linear function of the
        clipped rows, whose (coefficients, intercept) in scaled units have l2 norm at most
        ``coef_norm``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        confidence_level : float in (0, 1), default=0.95
        method : {"certified", "asymptotic"}, default="certified"
            "asymptotic" is for ``solver="moments"`` only.

        Returns
        -------
        ConfidenceInterval
            Named tuple (low, high) of ndarrays of shape (n_samples,), in the units of y and inside
            ``bounds_y``. It contains the prediction (without privacy the nearest one inside of
            ``bounds_y``), and none has width zero.
        """
        if getattr(self, "_certificate", None) is None:
            return super().confidence_interval(X, confidence_level, method)
        X = self._interval_points(X, confidence_level, method, ("certified",))
        if self.coef_norm is None:  # the certificate is for a ball
            low, high = (np.full(len(X), bound) for bound in self._scaling.bounds_y)
            return ConfidenceInterval(low, high)
        points, radius = self._scaling.features(X), self._radius(self._scaling)
        low, high = self._certificate.interval(points, radius, confidence_level)
        middle, half = (low + high) / 2.0, (high - low) / 2.0
        return inside_bounds(self._scaling, middle, half, self._predicted(X))
