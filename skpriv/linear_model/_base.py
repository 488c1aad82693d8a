"""What all private regressors share: parameters, checks, the session, the report."""

from dataclasses import replace
from math import inf
from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from .._codec import Writable
from .._compat import Interval, StrOptions
from ..exceptions import PrivacyError
from ..privacy import (
    MODELS,
    Accounted,
    BoundsQuery,
    Budget,
    Groups,
    PrivacyReport,
    Trust,
    models_that,
    open_session,
)
from .._equations._lifted import best_channel
from ..records import (
    ArrayRows,
    WeightedRows,
    as_rows,
    check_public,
    public_shape,
)
from .._equations._public_bounds import REQUIRED, check_units
from .._equations._scaling import Scaling
from ._points import PredictsAtPoints

# Of the budget (of the users, where they answer once), for bounds that are "auto"; and the part of
# the rows and targets that these bounds leave as they are (measured by benchmarks/auto_bounds.py).
BOUNDS_SHARE = {"budget": 0.05, "users": 0.2}
NORM_QUANTILE = 0.95
WEIGHTS = {"sample_weight": None, "max_weight": None}  # for routing; see PrivateRegressor
TARGET_QUANTILE = 0.98
ENTRY_QUANTILE = 0.5  # of the rows, by their largest entry


class PrivateEstimator(Accounted, Writable, BaseEstimator):
    """Base class of the private regressors and classifiers; not for direct use."""

    privacy_report_: PrivacyReport

    _parameter_constraints: ClassVar[dict] = {
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="left")],
        "privacy": [StrOptions(MODELS.keys())],
        "data_norm": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), None],
        "bounds_y": "no_validation",  # by `_public_bounds`, which says what is wanted
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

    def _rows(self, X, y, accept_sparse=False):
        """Return the rows and the public scaling; nothing is charged, and no value looked at."""
        rows = self._records(X, y, accept_sparse)
        row, outer, kind = self._row_bound
        name, norm = self._public(row, outer)
        if not isinstance(norm, Real) or not 1e-300 <= float(norm) <= 1e300:
            what = "l2 norm of a row" if kind == "l2" else "absolute values of the entries of X"
            raise ValueError(
                f"{name}={norm!r} must lie in [1e-300, 1e300]: the public bound on the {what}."
            )
        bounds = self._public_bounds()
        scaling = Scaling(float(norm), bounds, bool(self.fit_intercept), rows.n_features)
        check_units(scaling.row_bound, scaling.radius, name)
        return rows, scaling

    def _records(self, X, y, accept_sparse=False):
        """Return the rows of a session; nothing is charged, and no value looked at.

        Shapes, kinds and names of columns are public: scikit-learn checks them, on zeros of the
        same shape. Values are checked by the session's opening, after the charge.
        """
        rows = check_public(self, X, y, accept_sparse=accept_sparse)
        rows = as_rows(X, y) if rows is None else rows
        rows.n_jobs = getattr(self, "n_jobs", -1)
        return rows

    def _public_bounds(self):
        """The checked bounds_y, or the outer ones if they are "auto"."""
        name, value = self._public("bounds_y", "outer_bounds_y")
        try:
            bounds = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            bounds = np.empty(0)  # text, or ragged: refused in the same words as other ranges
        if bounds.shape != (2,) or not np.isfinite(bounds).all() or bounds[0] >= bounds[1]:
            raise ValueError(
                f"{name}={value!r} must be two finite numbers (low, high) with "
                "low < high: the public range of the target, not one read off the data."
            )
        return tuple(bounds.tolist())

    def _public(self, name, outer):
        """Name and value of a bound, or of the outer one if it is "auto"."""
        value = getattr(self, name)
        if value is None:
            raise ValueError(f"{name} is required: {REQUIRED[name]}")
        if not self._is_auto(name):
            return name, value
        if not hasattr(self, outer):
            raise ValueError(
                f"{name}='auto' is not for {type(self).__name__}, which learns by itself where the "
                "targets are: pass the public range (low, high) of y, generous if need be."
            )
        value = getattr(self, outer)
        if value is None:
            raise ValueError(
                f"{name}='auto' needs {outer}: a public bound that is safely too wide, since "
                "nothing is read off the data, the grid of a quantile included."
            )
        return outer, value

    def _is_auto(self, name):
        value = getattr(self, name, None)
        return isinstance(value, str) and value == "auto"

    def _bounded(self, session, scaling):
        """Scaling by private quantiles where bounds are "auto"; shares are then of what is left."""
        row, _, kind = self._row_bound
        query = BoundsQuery(
            scaling.row_bound if self._is_auto(row) else None,
            scaling.bounds_y if self._is_auto("bounds_y") else None,
            kind,
        )
        share, norm, bounds = BOUNDS_SHARE[self._trust.can.divides], None, None
        # Where the noise would hide a quantile the outer bounds are kept, and nothing is paid.
        if query.shape[0] and query.resolved(session, share):
            answer = session.sum(query, share)
            session.rebase()
            part = NORM_QUANTILE if kind == "l2" else ENTRY_QUANTILE
            norm, bounds = query.bounds(answer, part, TARGET_QUANTILE)
        scaling = replace(
            scaling, row_bound=norm or scaling.row_bound, bounds_y=bounds or scaling.bounds_y
        )
        setattr(self, f"{row}_", scaling.row_bound)
        self.bounds_y_ = scaling.bounds_y
        return scaling

    def _groups(self, groups, max_rows_per_group):
        """The person of each row, or None where each row is a record; nothing is charged yet."""
        if max_rows_per_group is None:
            max_rows_per_group = self.max_rows_per_group
        if groups is None:
            if max_rows_per_group is not None:
                raise ValueError("max_rows_per_group needs groups: to whom each row belongs.")
            return None
        return Groups(groups, max_rows_per_group)

    def _weighted(self, records, weights, scaled):
        """Rows with their weights, if there are any; nothing is charged, and no value looked at.

        Parameters
        ----------
        records : Rows
        weights : dict
            ``sample_weight`` and its public bound ``max_weight``, as they were passed to ``fit``.
        scaled : callable
            Public map from targets to [-1, 1].
        """
        unknown = set(weights) - {"sample_weight", "max_weight"}
        if unknown:
            raise TypeError(f"fit() got an unexpected keyword argument {min(unknown)!r}")
        given, largest = weights.get("sample_weight"), weights.get("max_weight")
        if given is None:
            if largest is not None:
                raise ValueError("max_weight needs sample_weight: a weight of each row.")
            return records
        number = isinstance(largest, Real) and not isinstance(largest, bool)
        if not number or not 0.0 < float(largest) < inf:
            raise ValueError(
                f"sample_weight needs max_weight, a finite number above 0, not {largest!r}: the "
                "public bound to which weights are clipped. The largest weight of the rows is not "
                "private; noise is in proportion to max_weight over the usual weight."
            )
        if getattr(self, "calibration_size", None) is not None or self._any_auto:
            raise ValueError(
                "sample_weight cannot be used with calibration_size, nor with bounds that are "
                "'auto': counts and quantiles are of rows, and not of weights."
            )
        if not isinstance(records, ArrayRows):
            raise ValueError("sample_weight is for rows in memory, not for those read in batches.")
        if public_shape(given) != (records.n,):
            raise ValueError(
                f"sample_weight has shape {public_shape(given)}, but there are {records.n} rows: "
                "it must be one weight a row."
            )
        return WeightedRows(records, given, float(largest), scaled)

    def _session(self, rows, *, currency="gdp", smallest_share=1.0, groups=None):
        """Open the session: the whole budget is charged, and then values are looked at."""
        if currency == "pure" and self._any_auto:
            raise ValueError(
                "bounds that are 'auto' need delta in (0, 1): their quantiles have Gaussian noise. "
                "With delta=0 pass public bounds."
            )
        # pure reports have a delta only where shuffling amplifies them
        keeps_delta = currency != "pure" or self._trust.can.amplifies
        if self._trust.can.reports:
            rows.needs_order()
            if currency == "pure" and not rows.at_hand:
                raise PrivacyError(
                    "pure reports are made user by user, and rows of Dask do not leave their "
                    "worker: pass delta > 0 and channel='gaussian' (of LayeredRegressor "
                    "'additive'), whose noise is added to sums."
                )
        with self._accounting():
            session = open_session(
                self.privacy,
                rows,
                None,
                Budget(self.epsilon, self.delta if keeps_delta else 0.0),
                self.random_state,
                type(self).__name__,
                currency=currency,
                smallest_share=self._whole_share(smallest_share),
                groups=groups,
            )
        if isinstance(rows, WeightedRows):
            session.report.max_weight = rows.largest
        # Of persons a row with a value that is missing adds nothing, and nothing is said of it.
        rows.check(refuse=groups is None or self._trust.exact)
        return session

    def _channel(self, scaling, rows, use="moments"):
        """What users send: "gaussian" or "codebook", by public numbers; "gaussian" elsewhere."""
        trust = self._trust
        if self.channel == "codebook" and not (trust.can.reports or trust.exact):
            raise ValueError(
                "channel='codebook' is what users send where each reports alone, and "
                f"privacy={self.privacy!r} has a curator or a hidden sum instead: pass "
                f"{models_that('reports')}, or channel='auto'."
            )
        # The distances that normalise a prediction interval are learned with Gaussian noise.
        held_out = getattr(self, "calibration_size", None) is not None
        spread = held_out and self.conformity_score == "normalized"
        if self.channel == "codebook" and spread:
            raise ValueError(
                "channel='codebook' has no report of the distances that conformity_score="
                "'normalized' learns: pass 'absolute' or 'signed', or channel='gaussian'."
            )
        # Workers send the sums of their rows alone: no reports of single users.
        far = not rows.at_hand and trust.budget.mu > 0.0
        if trust.can.same_rows or (self.channel == "auto" and (self._any_auto or spread or far)):
            return "gaussian"
        if self.channel != "auto":
            return self.channel
        with self._accounting():
            return best_channel(trust.can, scaling, trust.budget, rows.n, use)

    def _whole_share(self, smallest):
        """Smallest share of the whole session, if a part of it may go to the bounds first."""
        return (
            smallest * (1.0 - BOUNDS_SHARE[self._trust.can.divides]) if self._any_auto else smallest
        )

    @property
    def _trust(self):
        """Who is trusted, by the parameters; asked nowhere else."""
        return Trust.of(self.privacy, Budget(self.epsilon, self.delta))

    @property
    def _any_auto(self):
        return self._is_auto(self._row_bound[0]) or self._is_auto("bounds_y")

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
