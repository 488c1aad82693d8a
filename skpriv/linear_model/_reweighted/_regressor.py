"""Re-weighted regression, by moments or by descent."""

from math import inf, sqrt
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from ..._compat import StrOptions
from ..._estimation._coefficients import NoLaw
from ..._estimation._links import LINKS, Link
from ..._estimation._moments import Instrument
from ..._estimation._reports import moments_query
from ..._parameters import Count, Estimand, parameters
from ..._stored import stored
from .._moments import MomentRegressor, residual_share, weighted_records
from .._opening import channel_of, held_out_size, hold_out, open_fit, scaled_rows
from .._prediction_intervals import calibration
from ._descent import descend, minimise, step_shares
from ._normalisation import (
    NormalisationQuery,
    ReportedNormalisationQuery,
    ReweightedMomentsQuery,
    ReweightedReportsQuery,
    affordable,
    learn_normalisation,
)

if TYPE_CHECKING:
    from ..._estimation._coefficients import CoefficientLaw
    from ..._contracts import Array
    from ..._estimation._public_maps import RecordMap
    from ...privacy import Session, SessionPart

# code -> paper (Chen, Li, Rakhlin and Simchi-Levi 2025):
#   normalisation -> U,  mean -> H (Eq. 6),  ridge -> lambda,  target -> xi,  design -> Xi,
#   gram -> W,  instrument e -> U phi / ||U phi||

NORMALISATION_SHARE = {"budget": 0.08, "users": 0.1}


@stored
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
    moments and, in the central model, one for the residual variance and one that counts clipped
    rows; or one a step of "sgd". Adaptive composition of Gaussians is exact (Dong, Roth and Su
    2022). With the codebook channel each user sends one index, about U or about the moments, whose
    price rests on one exact integer draw (delta = 0, docs/trust.md). Public: the number of records
    and all parameters.

    Departures from the paper: all records serve every central step (the paper splits them; of very
    many a public part serves the normalisation), Sigma of Eq. (6) is asked without the factors
    U^{1/2}, under which noise hides small scales, the sensitivities are tight for replacement, and
    the solution shrinks by the known noise law. By default rows are weighed only as far as privacy
    needs it: under ``privacy="none"`` the fit is ordinary least squares, or maximum likelihood for
    the logit. "sgd" grows its steps' shares, and its last step, at the last released gradient,
    comes after the point that this gradient certifies; so it is not lost.

    **Intervals** of ``solver="moments"`` are those of :class:`SSPRegressor`. With "sgd" there is a
    certified one, which holds at all rows *at once*, for any number of steps and whether or not
    they converged. It assumes that the mean of the clipped target is the link's at a linear
    function of the clipped rows, whose (coefficients, intercept) in scaled units have l2 norm at
    most ``coef_norm``; without that number it is ``bounds_y``.

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

    _spec = MomentRegressor._spec._replace(
        variants=(
            {},
            {"weights": "always"},
            {"solver": "sgd"},
            {"solver": "sgd", "link": "logit"},
            {"solver": "sgd", "coef_norm": 2.0},
        )
    )
    fit_currency = "gdp"
    interval_estimand = "weighted least-squares line (weights of the normalisation)"
    interval_claims = ("certified", "asymptotic")

    def _fit(self, X: Any, y: Any, groups: Any, weights: dict[Any, Any]) -> None:
        link = LINKS[self.link] if isinstance(self.link, str) else self.link
        rows, maps = scaled_rows(self, X, y)
        rows, query_map = weighted_records(self, rows, maps, weights)
        weighted = query_map is not maps
        descends = self._descends(link, weighted)
        channel = "gaussian" if descends else channel_of(self, maps.size, rows)
        records = rows.n if groups is None else groups.n  # how many rows persons have is private
        n = records - held_out_size(self, records)
        share, iterations, steps = self._shares(n, maps.size, link, descends)
        smallest = share / iterations or 1.0
        if descends:
            smallest = min(smallest, steps.min())
        session = open_fit(self, rows, channel, smallest_share=smallest, groups=groups)
        del X, y, rows  # only the session has the data now
        session, held_out = hold_out(self, session)

        kind: type = NormalisationQuery
        if channel == "codebook":
            kind = ReportedNormalisationQuery
            iterations = affordable(session, query_map, share, iterations)
            share = share if iterations else 0.0
        instrument = Instrument()  # without it weights have nothing to protect
        if share:
            fades = self.weights == "fading" and self._trust.can.same_rows and not weighted
            instrument = learn_normalisation(session, query_map, share, iterations, fades, kind)
        self._scaling = maps
        self._link = link
        # What an earlier fit kept may be exact
        deviation = self._certificate = self._equations = self._basis = None
        self._shapes = ()
        if descends:
            self._descend(session, maps, instrument, steps, link)
        else:
            deviation = self._solve_moments(session, query_map, instrument, 1.0 - share, channel)
        self._calibration = calibration(self, held_out, deviation, channel)

    def _descends(self, link: Link, weighted: bool) -> bool:
        """Whether "sgd" is the solver; what it, or the other one, does not take is refused."""
        bends = not link.linear
        if bends and self.solver == "moments":
            raise ValueError(
                f"solver='moments' solves linear equations, so that link={self.link!r} needs "
                "solver='sgd'."
            )
        descends = bends or self.solver == "sgd"
        if descends and weighted:
            raise ValueError("sample_weight needs solver='moments': 'sgd' takes no weights.")
        if descends and self.channel == "codebook":
            raise ValueError(
                "solver='sgd' certifies gradients with Gaussian noise: pass channel='gaussian' "
                "or 'auto', or solver='moments'."
            )
        return descends

    def _shares(
        self, n: int, size: int, link: Link, descends: bool
    ) -> tuple[float, int, np.ndarray]:
        """Share of the normalisation and its iterations, and shares of the steps of "sgd"."""
        trust = self._trust
        iterations = self.n_spectral_iter
        share = NORMALISATION_SHARE[trust.can.divides]
        if trust.exact and (descends or self.weights == "fading"):
            share = 0.0  # weights balance noise, and exact answers have none
        if trust.can.reports:  # few users, each of whom answers once
            iterations = max(1, min(iterations, int(share * n)))
        precision = 0.0 if trust.exact else trust.budget.mu * sqrt(n / size)
        steps = (1.0 - share) * step_shares(trust.can.divides, link, precision)
        return share, iterations, steps

    def _solve_moments(
        self,
        session: "Session | SessionPart",
        query_map: "RecordMap",
        instrument: Instrument,
        share: float,
        channel: str,
    ) -> tuple[float, ...]:
        """Algorithm 12, of users by one index each; least squares without a normalisation."""
        query: Any = moments_query(query_map, channel)
        if instrument.matrix is not None:
            query = ReweightedMomentsQuery(query_map, instrument)
            self._shapes = (instrument.matrix,)
        if channel == "codebook" and self._shapes:  # equations in whitened coordinates
            self._basis = self._shapes[0] / instrument.length
            query = ReweightedReportsQuery(query_map, instrument=Instrument(self._basis))
        share -= residual_share(session.trust)
        return self._solve_sums(session, query, share, instrument)

    def _radius(self, maps: "RecordMap") -> float:
        """Radius of the ball in which "sgd" stays; infinite without an assumption."""
        return inf if self.coef_norm is None else maps.theta_bound(self.coef_norm)

    def _descend(
        self,
        session: "Session",
        maps: "RecordMap",
        instrument: Instrument,
        steps: np.ndarray,
        link: Link,
    ) -> None:
        """Algorithms 7 and 10, and the certificate of the last gradient."""
        radius = self._radius(maps)
        if session.trust.exact:
            theta, self._certificate = minimise(session, maps, link, radius)
        else:
            theta, self._certificate = descend(session, maps, instrument, link, radius, steps)
        self.coef_, self.intercept_ = maps.coefficients(theta)
        if not link.linear:  # the linear function is not in the units of y
            self.coef_ = self.coef_ / maps.radius
            self.intercept_ = (self.intercept_ - maps.centre) / maps.radius

    def coefficient_law(self, estimand: Estimand = "fitted") -> "CoefficientLaw":
        """Distribution of the coefficients for `skpriv.inspection.inference`; see SSPRegressor.

        They are those of least squares with the weights of the learned normalisation, another line
        than that of all rows alike where the mean is not linear.

        Parameters
        ----------
        estimand : {"fitted"}, default="fitted"

        Returns
        -------
        CoefficientLaw
            Estimates and their covariance.
        """
        if self._certificate is not None:
            raise NoLaw(
                "solver='sgd' certifies predictions and releases no coefficients with errors: use "
                "solver='moments', or LinearRegression."
            )
        return super().coefficient_law(estimand)

    def _function(self, X: np.ndarray) -> "Array":
        """The mean of y for checked rows."""
        linear = super()._function(X)
        if self._link.linear:
            return linear
        return self._scaling.unscale(np.asarray(self._link.mean(linear)))

    @property
    def _interval_methods(self) -> tuple[str, ...]:
        return ("certified", "asymptotic") if self._certificate is None else ("certified",)

    def _centred(self, X: np.ndarray, confidence_level: float, method: str) -> Any:
        """The interval of the moments, or of the last gradient of "sgd"."""
        if self._certificate is None:
            return super()._centred(X, confidence_level, method)
        points = self._scaling.features(X)
        radius = self._radius(self._scaling)
        middle = np.zeros(len(X))
        half = np.full(len(X), inf)
        if self.coef_norm is not None:  # the certificate is for a ball
            low, high = self._certificate.interval(points, radius, confidence_level)
            middle = (low + high) / 2.0
            half = (high - low) / 2.0
        return middle, half
