"""LPLR, layered private linear regression: a line from the equations of a partition tree."""

from math import ceil, log, sqrt
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ..._compat import Interval
from ..._estimation._moments import ridge_prior
from ..._linalg import HALF_DIGITS
from ..._parameters import Count, DataNorm, Positive, parameters
from ..._stored import stored
from ...exceptions import PrivacyError
from ...privacy import adds_up_gaussians, models_that
from .._estimator import PrivateRegressor
from .._opening import open_fit, scaled_rows
from .._predictions import CertifiedIntervals
from ._equations import TreeFit, pooled
from ._growth import grow, query_kind, resolution
from ._published import grow_paper
from ._tree import PartitionTree

if TYPE_CHECKING:
    from ..._contracts import Array
    from ..._estimation._public_maps import RecordMap
    from ..._estimation._released import Released

# code -> paper (Li, Simchi-Levi and Wang 2024):
#   bin -> B, path -> (k_1, ..., k_h), factor -> gamma^k, n_scales -> M, gram -> Lambda,
#   target -> lambda, eigenvalues, directions -> s, u, half_widths -> tau, n_levels -> d


# Resolution over sqrt(p) from which a second level is worth its records, as was measured.
RESOLUTION_FOR_TWO = 150.0


@stored
@parameters
class LayeredRegressor(CertifiedIntervals, PrivateRegressor):
    """LPLR, layered private linear regression: each direction is estimated at its own scale.

    Records are put into bins by their norm and scaled up to the unit ball. In every bin the leading
    directions are estimated. The rest of each record is put into bins by its norm again, and so on.
    So the noise is as small as the part of the records that is not yet explained, and the error
    does not depend on the smallest eigenvalue of the Gram matrix, even in the local model. It is
    mostly of interest for its tree and its uniform intervals: see the measurements in the Notes.

    Parameters
    ----------
    delta : float in [0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of records. 0 is pure privacy,
        which needs ``channel="codebook"``.
    privacy : {"central", "aggregate", "local", "shuffle", "none"}, default="central"
        Who adds the noise: a trusted curator, all users together by secure aggregation, every user,
        every user with a trusted shuffler that makes the reports anonymous, or nobody.
    variant : {"one-batch", "paper"}, default="one-batch"
        "paper" is the published algorithm, with one direction and two batches of records a level,
        corrected sensitivities and usable interval constants. "one-batch" resolves all directions
        that stand out of the noise, and pools the equations of all bins.
    channel : {"auto", "codebook", "additive"}, default="auto"
        "codebook" is one report a user by the index of a public codebook, on a random row of a
        Hadamard matrix: pure whatever ``delta``. "additive" is Gaussian noise on all moments.
        "auto" is "codebook" in the local model with the default variant, else
        "additive".
    gamma : float >= 1.1, default=2.0
        Ratio of the norms of neighbouring bins.
    n_levels : int or "auto", default="auto"
        Depth of the tree; "auto" is 2 where the budget and the number of records pay for it and 1
        elsewhere, for ``variant="paper"`` the number of features.
    n_scales : int or "auto", default="auto"
        Bins that a bin is divided into; "auto" goes down to norms that drown in the noise.
    data_norm : float, required
        Public: every row of X is clipped to this l2 norm.
    coef_norm : float, default=1.0
        Assumed bound on the l2 norm of (coefficients, intercept) in scaled units, rows in the unit
        ball and target in [-1, 1]. Intervals use it, and the decision what a bin resolves.

    Attributes
    ----------
    tree_ : PartitionTree
        Bins, directions and eigenvalues, which it prints, and half-widths of the published variant.
    coef_, intercept_ : ndarray of shape (n_features,), float
        Only for ``variant="one-batch"``; the published prediction is piecewise linear.
    privacy_report_ : PrivacyReport
        What was asked of the records, and at what price.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        The names only when X has some that are all strings.

    See Also
    --------
    ReweightedRegressor : More accurate in most designs, at the same budget.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record,
    local in the local model. Released: for every level the second moments of its bins, as one
    vector with one sensitivity (sqrt(4.5) at level 1 and for the published, else sqrt(8)), and in
    the paper's variant weighted errors. Central: all records serve every level, whose costs compose
    exactly; local: every user answers for one level, by default with one index of a public
    codebook, drawn by one exact integer: then delta is 0. Public: the number of records and all
    parameters.

    **Intervals** hold for all x at once, at any n, if the clipped target has a linear mean with
    ``coef_norm``, and if targets' errors are independent given the rows. In the paper's variant
    under local privacy, records must also be independent and identically distributed. There is no
    asymptotic interval: bins and directions are chosen by noisy Gram matrices, and no normal limit
    holds uniformly over their eigenvalues.

    Departures from the paper: its noise protects half of what a replaced record changes, and its
    Wishart noise is not private at all. Its residual targets are unbounded, and its interval
    constants are vacuous below 1e9 records. All four are corrected in both variants. "one-batch"
    asks for cross moments of z and the resolved directions, which propagate errors of earlier
    levels linearly and exactly, and needs neither residual targets, nor counts, nor a second batch.

    **Expected accuracy** (local model, delta = 1e-6, no intercept, +-1 targets, mean absolute error
    and half-width of the 95% interval; theirs hold at each x, these for all x at once):

    ==================  =====  ===========  ============  ==========  ============
    design              n      epsilon      this class    SSP         re-weighted
    ==================  =====  ===========  ============  ==========  ============
    unit sphere, d=2    1e5    4            .021, .11     .018, .06   .019, .09
    unit sphere, d=5    1e5    1            .14, .89      .13, .61    .21, .92
    unit sphere, d=5    1e6    4            .016, .10     .011, .06   .016, .09
    (.5, +-.1), d=2     1e5    4            .061, .14     .047, .16   .021, .10
    (.5, +-.1), d=2     1e6    4            .026, .083    .026, .087  .007, .033
    (.5, +-.1), d=5     1e5    1            .092, .49     .10, .43    .11, .44
    ==================  =====  ===========  ============  ==========  ============

    A direction of length .05 to .1 that sufficient statistics cannot resolve (d=2, n=1e6,
    epsilon=4, coefficient .95) is estimated with an error of .012 by two levels, against .025 to
    .044 by ``SSPRegressor`` and .008 by ``ReweightedRegressor``. Intervals say little below n = 1e5
    at epsilon = 1: a half-width of 1 is no information. The paper's variant is 1.2 to 9 times wider
    than the default. It says little below n = 1e6, and for d=5 on the unit sphere nothing even
    there. On isotropic designs use ``SSPRegressor``. An intercept costs an extra feature, and with
    it the norms of all rows are alike at level 1.

    References
    ----------
    J. Li, D. Simchi-Levi and Y. Wang (2024). On the optimal regret of locally private linear
    contextual bandit: Algorithms 2 to 6.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import LayeredRegressor
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(200_000, 2))
    >>> y = X @ [0.5, 0.8] + rng.uniform(-0.2, 0.2, size=200_000)
    >>> est = LayeredRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1), epsilon=4.0, fit_intercept=False, random_state=0
    ... ).fit(X, y)
    >>> bool(abs(est.predict(X) - X @ [0.5, 0.8]).mean() < 0.05)
    True
    >>> low, high = est.confidence_interval(X[:2], confidence_level=0.9)
    >>> bool((low < high).all())
    True
    """

    variant: Literal["one-batch", "paper"] = "one-batch"
    channel: Literal["auto", "codebook", "additive"] = "auto"
    gamma: Annotated[float, Interval(Real, 1.1, None, closed="left")] = 2.0
    n_levels: Count | Literal["auto"] = "auto"
    n_scales: Count | Literal["auto"] = "auto"
    data_norm: DataNorm = None
    coef_norm: Positive = 1.0
    fit_intercept: bool = True

    _spec = PrivateRegressor._spec._replace(variants=({}, {"n_levels": 2}))
    fit_currency = "gdp"
    interval_estimand = "least-squares line of the clipped rows and targets"
    interval_claims = ("certified",)

    def _fit(self, X: Any, y: Any) -> None:
        rows, maps = scaled_rows(self, X, y)
        kind = self._noise_kind()
        shape = self._tree_shape(maps, rows.n, kind)
        batches = 2 * shape["n_levels"] - 1 if self.variant == "paper" else shape["n_levels"]
        session = open_fit(self, rows, kind, smallest_share=1.0 / batches)
        del X, y, rows  # only the session has the data now

        bound = maps.theta_bound(self.coef_norm)
        if self.variant == "paper":
            self.tree_, self._rules = grow_paper(session, maps, **shape, theta_bound=bound)
        else:
            self.tree_ = grow(session, maps, **shape, theta_bound=bound, kind=kind)
            prior = ridge_prior(maps.size, maps.fit_intercept)
            self.coef_, self.intercept_ = maps.coefficients(pooled(self.tree_, prior))
        self._scaling = maps

    def _noise_kind(self) -> str:
        """Which noise the parameters ask for; what cannot be had is refused before any charge."""
        if self._trust.exact:
            return "none"
        by_users = self._trust.can.alone and self.variant == "one-batch"
        if self.channel == "auto" and by_users:
            with self._accounting():
                if self.delta == 0.0 or not adds_up_gaussians():
                    return "codebook"
        if self.channel != "codebook":
            return "gaussian"
        if not by_users:
            raise PrivacyError(
                "channel='codebook' is one report of each user about all moments of a level: it "
                f"needs {models_that('alone')} and variant='one-batch'. Use channel='gaussian'."
            )
        return "codebook"

    def _tree_shape(self, maps: "RecordMap", records: int, kind: str) -> dict[str, Any]:
        """Public shape of the tree: nothing is read off the records but their number.

        By default there is a second level where the noise is low enough to pay for it, and there
        are as many norm bins as show more than noise or sampling error: in the units of the target,
        an estimate in a bin has an error of about one over the resolution, whatever the norm of the
        bin is, so that smaller norms are not worth a bin.
        """
        size = maps.size
        n_levels: Any = self.n_levels
        n_scales: Any = self.n_scales
        probe = query_kind(kind)(maps, PartitionTree(size, self.gamma, 1, 1), (), crossed=True)
        if n_levels == "auto":
            n_levels = size
            if self.variant != "paper":
                pays = resolution(probe, self._trust, records, 1.0) >= RESOLUTION_FOR_TWO * sqrt(
                    size
                )
                n_levels = min(size, 2) if pays else 1
        if n_scales == "auto":
            ratio = max(resolution(probe, self._trust, records, 1.0 / n_levels), 1.0)
            largest = int(log(HALF_DIGITS) / log(self.gamma))
            n_scales = min(max(1, ceil(log(ratio) / log(self.gamma))), largest)
        return {"gamma": self.gamma, "n_scales": n_scales, "n_levels": n_levels}

    def _function(self, X: Any) -> "Array":
        if self.variant == "paper":
            return self._scaling.unscale(self._rules.predict(self._scaling.features(X)))
        return super()._function(X)

    @property
    def _released(self) -> "Released":
        if self.variant == "paper":
            return self._rules
        return TreeFit(self.tree_, self._scaling.theta_bound(self.coef_norm))
