"""How every fit begins: public checks, who the records are, what users send, and the charge.

Each step is a function of the estimator, of which it reads the parameters that the docstring of
`PrivateEstimator` lists, in the order in which `fit` takes them. The last are fixed effects of
persons: slopes from differences within persons, and what they do not tell.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from math import floor, inf, nan
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from .._compat import names_in
from .._estimation._conformal import checked_levels
from .._estimation._loop._rules import MEAN_RECORDS, RESOLVED
from .._estimation._persons import person_sums
from .._estimation._public_maps import (
    REQUIRED,
    RecordMap,
    RowMap,
    TargetMap,
    check_units,
    column_bounds,
)
from .._estimation._reports import best_channel, effective_by_channel
from .._linalg import check_memory
from .._printing import first_names
from .._stored import frozen_object
from ..exceptions import PrivacyError
from ..privacy import Budget, Groups, models_that, open_session, split
from ..records import ArrayRows, WeightedRows, as_rows, check_public, public_shape, same_names

if TYPE_CHECKING:
    from ..records import Rows
    from ..privacy import Session
    from .._contracts import Array
    from ._estimator import PrivateEstimator


# Power of a guessed variance, in half-ranges, that is taken for it (docs/evidence/few_records.md).
BELIEVED = 0.75


def scaled_rows(
    model: "PrivateEstimator", X: Any, y: Any, accept_sparse: bool = False
) -> "tuple[Rows, RecordMap]":
    """Return the rows and the record map; nothing is charged, and no value looked at."""
    rows = public_rows(model, X, y, accept_sparse)
    norm = public_norm(model)
    bounds = public_bounds(model)
    maps = RecordMap.of_norm(norm, bounds, bool(model.fit_intercept), rows.n_features)
    check_units(maps.row_bound, maps.radius, model._row_bound[0])
    model.bounds_y_ = bounds
    return rows, maps


def public_rows(model: "PrivateEstimator", X: Any, y: Any, accept_sparse: bool = False) -> Any:
    """Return the rows of a session; nothing is charged, and no value looked at.

    Shapes, kinds and names of columns are public: scikit-learn checks them, on zeros of the
    same shape. Values are checked by the session's opening, after the charge.
    """
    rows = check_public(model, X, y, accept_sparse=accept_sparse)
    rows = as_rows(X, y) if rows is None else rows
    rows.n_jobs = model.n_jobs
    return rows


def public_bounds(model: "PrivateEstimator") -> tuple[float, float]:
    """The checked bounds_y."""
    value = public_value(model, "bounds_y")
    try:
        bounds = np.asarray(value, float)
    except (TypeError, ValueError):
        bounds = np.empty(0)  # text, or ragged: refused in the same words as other ranges
    if bounds.shape != (2,) or not np.isfinite(bounds).all() or bounds[0] >= bounds[1]:
        raise ValueError(
            f"bounds_y={value!r} must be two finite numbers (low, high) with "
            "low < high: the public range of the target, not one read off the data."
        )
    return tuple(bounds.tolist())


def public_norm(model: "PrivateEstimator") -> float:
    """The checked public bound of rows, given by the parameter that the model names for it."""
    name, what = model._row_bound
    norm = public_value(model, name)
    if not isinstance(norm, Real) or not 1e-300 <= float(norm) <= 1e300:
        raise ValueError(
            f"{name}={norm!r} must lie in [1e-300, 1e300]: the public bound on the {what}."
        )
    return float(norm)


def public_maps(model: "PrivateEstimator", n_features: int) -> RecordMap:
    """Map of records by public numbers; nothing is charged yet."""
    target_map = TargetMap(public_bounds(model), bool(model.fit_intercept))
    row_map = public_row_map(model, n_features)
    name = "data_norm"
    bound: Any = row_map.data_norm
    if row_map.low is not None:
        name = "bounds_X"
        bound = row_map.high / 2.0 - row_map.low / 2.0
    check_units(bound, target_map.radius, name)
    return RecordMap(row_map, target_map)


def public_row_map(model: "PrivateEstimator", n_features: int) -> RowMap:
    """Map of rows by the public ``bounds_X`` or ``data_norm``; nothing is charged yet."""
    norm = model.data_norm
    intercept = bool(model.fit_intercept)
    if (model.bounds_X is None) == (norm is None):
        raise ValueError(
            "Give one of bounds_X and data_norm: bounds_X, the public range (low, high) of "
            "every feature, or data_norm, the l2 norm to which rows are clipped. A default "
            "would clip rows silently, and ranges read off X are not private."
        )
    if norm is not None:
        return RowMap(None, None, public_norm(model), intercept, n_features)
    low, high = public_ranges(model, n_features)
    return RowMap(low, high, None, intercept, n_features)


def public_ranges(model: "PrivateEstimator", n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Ends (low, high) of the public ranges of all columns, each of shape (n_features,)."""
    names = names_in(model) or []
    return column_bounds(public_value(model, "bounds_X"), names, n_features, "bounds_X")


def public_guess(model: "PrivateEstimator", maps: RecordMap) -> "tuple[Array, Array] | None":
    """Whitening and variances by the guess ``usual_X``, or None; nothing is charged yet.

    Features without a guess, whose variances are 1 at most, keep their units. Variances are between
    the guessed ones and those of the public ranges.

    Parameters
    ----------
    model : PrivateEstimator
    maps : RecordMap

    Raises
    ------
    ValueError
        If a usual range is none, or not inside of the public one.
    """
    if model.usual_X is None:
        return None
    if model.effects is not None:
        raise ValueError(
            "usual_X cannot be used with effects='person': it is a guess of where values are, and "
            "not of how far those of a person are apart."
        )
    names = names_in(model) or []
    row_map = maps.row_map
    norm = np.full(row_map.n_features, row_map.data_norm or inf)
    largest = row_map.low is None
    bounds = np.column_stack([-norm, norm] if largest else [row_map.low, row_map.high])
    given, not_known = _filled_in(model.usual_X, names, bounds)
    low, high = column_bounds(given, names, row_map.n_features, "usual_X")
    slack = 1e-9 * (bounds[:, 1] - bounds[:, 0])
    outside = (low < bounds[:, 0] - slack) | (high > bounds[:, 1] + slack)
    if outside.any():
        column = int(np.flatnonzero(outside)[0])
        name = repr(names[column]) if names else f"column {column}"
        raise ValueError(
            f"usual_X of {name} is ({low[column]:.16g}, {high[column]:.16g}), which is not inside "
            f"of the public range ({bounds[column, 0]:.16g}, {bounds[column, 1]:.16g}) by "
            f"{'data_norm' if largest else 'bounds_X'}: give it in the same units."
        )
    mean, variance = row_map.half_range_moments(low, high)
    variance = np.where(not_known, inf, variance**BELIEVED)
    return row_map.whitening(mean, np.minimum(variance, 1.0)), variance


def _filled_in(given: Any, names: list[str], bounds: np.ndarray) -> tuple[Any, np.ndarray]:
    """Usual ranges with the public one where none is known, and the columns where none is."""
    if isinstance(given, Mapping):
        strange = [name for name, own in zip(given, same_names(given, names)) if own is None]
        if strange:
            raise ValueError(
                f"usual_X has ranges for {first_names(strange)}, which are no columns of X"
                f"{'' if names else ': X has no names that are strings'}."
            )
        own = same_names(names, given)
        given = [(nan, nan) if name is None else given[name] for name in own]
    with suppress(TypeError, ValueError):  # `column_bounds` says what is wrong
        pairs = np.array(given, float)
        if pairs.shape == bounds.shape:
            not_known = np.isnan(pairs).all(axis=1)
            return np.where(not_known[:, None], bounds, pairs), not_known
    return given, np.zeros(len(bounds), bool)


def public_value(model: "PrivateEstimator", name: str) -> Any:
    """A bound that is required, and public."""
    value = getattr(model, name)
    if value is None:
        raise ValueError(f"{name} is required: {REQUIRED[name]}")
    if isinstance(value, str) and value == "auto":
        raise ValueError(
            f"{name}='auto' is no public bound. Where nobody knows the range, release one first, "
            "with a charge of its own: skpriv.private_quantiles(values, (0.01, 0.99), bounds=..., "
            f"epsilon=..., delta=...), and pass what it returns as {name}."
        )
    return value


def column_of(model: "PrivateEstimator", feature: Any) -> int:
    """Number of a column, from its number or its name."""
    names = names_in(model) or []
    if isinstance(feature, str) and (found := same_names([feature], names)) != [None]:
        return names.index(found[0])
    if isinstance(feature, Integral) and 0 <= int(feature) < model.n_features_in_:
        return int(feature)
    raise ValueError(
        f"{feature!r} is not a feature: no column of X with n_features={model.n_features_in_} has "
        "this number, or this name. Behind a step of a Pipeline they have names after its "
        'set_output(transform="pandas"), and skpriv.inspection.curves(pipeline) has those of the '
        "table."
    )


def weighted_rows(
    model: "PrivateEstimator", records: "Rows", weights: dict[str, Any], scaled: Callable[..., Any]
) -> "Rows":
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
    given = weights.get("sample_weight")
    largest: Any = weights.get("max_weight")
    if given is None:
        if largest is not None:
            raise ValueError("max_weight needs sample_weight: a weight of each row.")
        return records
    number = isinstance(largest, Real) and not isinstance(largest, bool)
    if not number or not 0.0 < float(largest) < inf:
        raise ValueError(
            "sample_weight needs max_weight beside it in fit, a finite number above 0, not "
            f"{largest!r}: the public bound to which weights are clipped. The largest weight of "
            "the rows is not private; noise is in proportion to max_weight over the usual weight."
        )
    if model.calibration_size is not None:
        raise ValueError(
            "sample_weight cannot be used with calibration_size: counts are of rows, and not of "
            "weights."
        )
    if not isinstance(records, ArrayRows):
        raise ValueError("sample_weight is for rows in memory, not for those read in batches.")
    if public_shape(given) != (records.n,):
        raise ValueError("sample_weight must be one weight a row: an array of shape (n_samples,).")
    return WeightedRows(records, given, float(largest), scaled)


def channel_of(model: "PrivateEstimator", size: int, rows: "Rows", use: str = "moments") -> str:
    """What users send: "gaussian" or "codebook", by public numbers; "gaussian" elsewhere."""
    trust = model._trust
    if model.channel == "codebook" and not (trust.can.reports or trust.exact):
        raise ValueError(
            "channel='codebook' is what users send where each reports alone, and "
            f"privacy={model.privacy!r} has a curator or a hidden sum instead: pass "
            f"{models_that('reports')}, or channel='auto'."
        )
    # Workers send the sums of their rows alone: no reports of single users.
    far = not rows.at_hand and trust.budget.mu > 0.0
    if trust.can.same_rows or (model.channel == "auto" and far):
        return "gaussian"
    if model.channel != "auto":
        return str(model.channel)
    with model._accounting():
        return best_channel(trust.can, size, trust.budget, rows.n, use)


def best_reports(
    model: "PrivateEstimator", size: int, rows: "Rows", size_of: Callable[..., Any] | None = None
) -> str:
    """The reports of users to an estimator with steps, which need Gaussian ones: by public numbers.

    Reports by a codebook have less noise, and are solved at once. Steps whiten the rows, which are
    short and uneven where only their ranges are known. So Gaussian reports are taken where the
    codebook would just resolve the Gram matrix, and they are so many that steps do not spend most
    of them on the mean of the target. From four times that resolution on its noise is too small to
    matter, while steps clip the residuals of skewed targets. This was measured for shuffled reports
    alone (docs/evidence/codebook.md): in the local model the codebook is taken, which needs no
    delta. Devices answer once, so that there are no steps.

    Parameters
    ----------
    model : PrivateEstimator
    size : int
        Length of rows for which the noise of both channels is taken.
    rows : Rows
    size_of : callable, default=None
        ``size_of(effective_records)`` is the length of rows where it depends on the noise. None is
        ``size``.
    """
    channel = channel_of(model, size, rows)
    trust = model._trust
    if (
        model.channel != "auto"
        or channel == "gaussian"
        or rows.on_devices
        or model.bounds_X is None
        or not (trust.can.amplifies and trust.budget.mu > 0.0)
    ):
        return channel
    effective = effective_by_channel(trust.can, size, trust.budget, rows.n)
    lengths = {name: size_of(many) if size_of else size for name, many in effective.items()}
    p = lengths["gaussian"]
    sloped = effective["gaussian"] >= MEAN_RECORDS[0]
    resolved = 1.0 <= effective["codebook"] / (RESOLVED * p**1.5) <= 4.0
    return "gaussian" if sloped and resolved and p >= lengths["codebook"] else channel


def open_fit(
    model: "PrivateEstimator",
    rows: "Rows",
    channel: str = "gaussian",
    *,
    smallest_share: float = 1.0,
    groups: Groups | None = None,
    currency: str = "gdp",
    parts: int = 1,
) -> "Session":
    """Open the session: the whole budget is charged, and then values are looked at.

    Parameters
    ----------
    model : PrivateEstimator
        Its ``privacy_report_`` is that of the session.
    rows : Rows
    channel : {"gaussian", "codebook"}
        What users send: reports by a codebook are paid in pure privacy.
    smallest_share : float
        The smallest share that it will ask for, by which users are divided.
    groups : Groups or None
        What `persons_of` returned.
    currency : {"gdp", "zcdp"}
        The unit in which other answers are paid.
    parts : int
        Numbers of a row of the square matrices of the fit for each feature; 0 where it has none.
    """
    # With 600 features the matrices of SSPRegressor are 15 at the peak, those of others 24 to 210
    check_memory(10 * (parts * rows.n_features) ** 2)
    currency = "pure" if channel == "codebook" else currency
    if model.calibration_size is not None:
        checked_levels(model.prediction_levels)
    # pure reports have a delta only where shuffling amplifies them
    keeps_delta = currency != "pure" or model._trust.can.amplifies
    if model._trust.can.reports:
        rows.needs_order()
        if currency == "pure" and not rows.at_hand:
            raise PrivacyError(
                "pure reports are made user by user, and rows of Dask do not leave their "
                "worker: pass delta > 0 and channel='gaussian' (of LayeredRegressor "
                "'additive'), whose noise is added to sums."
            )
    with model._accounting():
        session = open_session(
            model.privacy,
            rows,
            None,
            Budget(model.epsilon, model.delta if keeps_delta else 0.0),
            model.random_state,
            type(model).__name__,
            currency=currency,
            smallest_share=smallest_share,
            groups=groups,
        )
    model.privacy_report_ = session.report
    if isinstance(rows, WeightedRows):
        session.report.max_weight = rows.largest
    # Rows of persons with a missing value are left out, and the report does not mention them.
    rows.check(refuse=groups is None or model._trust.exact)
    return session


@frozen_object
class WithinPersons:
    """Rows and targets, clipped to public bounds, less their means over the person.

    The rest of a number in [low, high] lies within (high - low)(1 - 1 / m) of 0 for a person with m
    rows: a mean of which the number itself is a part of 1 / m is not further away. For a row of
    norm at most L it is 2 L (1 - 1 / m). The differences of a person depend on nobody else.

    Parameters
    ----------
    clipped : callable
        Rows within their public bounds.
    bounds_y : (float, float)
    """

    clipped: Any
    bounds_y: tuple[float, float]

    def __call__(
        self, X: np.ndarray, y: np.ndarray, starts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Differences of a chunk of persons."""
        sizes = np.diff(starts)
        X = self.clipped(X)
        y = np.clip(y, *self.bounds_y)
        rows = np.column_stack([X, y])
        rows -= rows[np.repeat(starts[:-1], sizes)]  # rows that are alike are exactly 0 then
        rows -= np.repeat(person_sums(rows, 1.0, starts) / sizes[:, None], sizes, axis=0)
        return rows[:, :-1], rows[:, -1]


def held_out_size(model: "PrivateEstimator", n: int) -> int:
    """Public number of calibration rows."""
    return floor((model.calibration_size or 0.0) * n * (1.0 + 1e-12))


def hold_out(model: "PrivateEstimator", session: "Session") -> Any:
    """The sessions of the fit and of what is held out; None without the latter."""
    size = held_out_size(model, session.n)
    return split(session, session.n - size, size) if size else (session, None)


WITHIN = {"estimand": "slopes within persons", "detail": "of clipped rows and targets"}
CONSTANT = (
    "constant within persons, or no more variable there than noise hides; effects of persons leave "
    "no such slope"
)


def within_maps(
    model: "PrivateEstimator",
    groups: Groups | None,
    maps: RecordMap,
    weights: dict[Any, Any] | None = None,
) -> RecordMap:
    """Maps of differences within persons, which are what will be asked about.

    Differences of what was clipped to a range lie in one about 0. An estimator that has none is
    refused before anything is charged.
    """
    if groups is None:
        raise ValueError(
            "effects='person' needs groups: pass the person of each row to fit, and "
            "max_rows_per_group, the number of rows of a person that are used at most."
        )
    if groups.largest < 2:
        raise ValueError(
            "effects='person' needs max_rows_per_group of at least 2: one row of a person has no "
            "difference from its mean."
        )
    if model.calibration_size is not None:
        raise ValueError(
            "calibration_size cannot be used with effects='person': the level of a new person is "
            "not known, and with it no interval for a new target."
        )
    if (weights or {}).get("sample_weight") is not None:
        raise ValueError("effects='person' cannot be used with sample_weight.")
    row_map = maps.row_map
    low, high = maps.bounds_y
    groups.change = WithinPersons(row_map.clipped, (low, high))
    part = 1.0 - 1.0 / groups.largest  # of a range: see `WithinPersons`
    largest = (high - low) * part
    target = TargetMap((-largest, largest), False)
    if row_map.low is None:
        ends = {"data_norm": 2.0 * row_map.data_norm * part}
    else:
        largest = (row_map.high - row_map.low) * part
        ends = {"low": -largest, "high": largest}
    return RecordMap(replace(row_map, **ends, fit_intercept=False), target)
