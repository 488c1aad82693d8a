"""The public maps of a task: from any record to a row and a target in the unit ball.

NumPy and the standard library are all that is imported here, directly or not. Before a device's
ledger is charged only shapes are looked at, and no cell; afterwards nothing here raises or warns
because of what a cell holds.
"""

from collections.abc import Sized
from decimal import Decimal
from math import inf, isfinite, nan, prod, sqrt
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from .._contracts import Shaped, is_whole
from ..exceptions import PrivacyError

if TYPE_CHECKING:
    from .._wire import Task
    from .._contracts import Array, Scalar

# Devices and collector of sums derive the same questions and shares of the budget. The name
# changes with these, and each nonce begins with it: no collection goes on by others than it began
# with.
CHANNEL = "shared-sum-2"
DAMAGED = "the task has parts that are missing, or of a wrong kind or size: nothing was answered."


def scaled_record(query: dict[str, Any], x: Any, y: Any) -> tuple[np.ndarray, float]:
    """(phi, r) of a record by the public maps of a query: |phi| <= 1 and |r| <= 1.

    Any record has an answer: what is not a finite number becomes a zero row or a zero target.
    """
    x = floats(x)
    check_query(query, len(x))
    with np.errstate(all="ignore"):  # a warning would tell of the record
        long, short = query["parts"]
        unit = _in_box(query, x) if "low" in query else _in_ball(query, x)
        phi = long * unit
        if query["fit_intercept"]:
            phi = np.append(phi, short)
        r = _scaled_target(query, number(y) - query.get("offset", 0.0))
        weights = query.get("weights")
        return (phi, r) if weights is None else weighted(weights, phi, r)


def number(cell: Any) -> float:
    """A cell as a float; NaN if it is text or anything else that is no real number.

    Numbers of Python and of NumPy alone are converted, and what a cell of Arrow or another library
    says it is. Other objects, and what is masked, could warn of what they hold, and filters of
    warnings would be those of all threads.
    """
    try:
        if isinstance(cell, np.ndarray):
            cell = cell[()]  # of an array without an axis
        elif not isinstance(cell, (Real, Decimal, np.generic)):
            is_arrow = type(cell).__module__.startswith("pyarrow.")
            cell = cell.as_py() if is_arrow else cell.item()
        return float(cell) if isinstance(cell, (Real, Decimal, np.bool_)) else nan
    except Exception:  # what is wrong with a cell must not be seen
        return nan


def floats(cells: Any) -> np.ndarray:
    """Cells as an array of floats of shape (n_cells,), by `number`."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
        with np.errstate(all="ignore"):
            return np.asarray(np.ma.filled(cells.astype(float), nan)).ravel()
    if isinstance(cells, Shaped):  # the row of a frame, or an array of objects
        cells = np.asarray(cells, object).ravel()
    return np.array([number(cell) for cell in (cells if _sized(cells) else [cells])], float)


def check_size(amount: int, bound: int, unit: str) -> None:
    """Refuse a task of more work than a device does, by its public numbers.

    Raises
    ------
    PrivacyError
    """
    if amount > bound:
        raise PrivacyError(
            f"the task asks for more than {bound:,} {unit}, which is too much for a device: "
            "nothing was answered. Whoever collects must ask for less."
        )


def _sized(x: Any) -> bool:
    return isinstance(x, Sized) and not isinstance(x, (str, bytes, bytearray, dict))


def n_cells(x: Any) -> int:
    """Public number of cells of a record, without a look at any of them."""
    if isinstance(x, Shaped):
        return prod(x.shape)
    return len(x) if _sized(x) else 1


def n_phi(fields: "Task", x: Any) -> int:
    """Number of features that a task asks of a record, by the task and public shapes alone.

    Raises
    ------
    ValueError
        If the record has another shape.
    """
    size = fields["query"]["n_features"]
    actions = fields.get("policy")
    if actions is None:
        found = n_cells(x)
    elif not actions["shared"]:
        found = n_cells(x) * actions["n_actions"]
    else:  # a row for each action; a list of rows has no public shape, and is not looked at
        found = x.shape[-1] if isinstance(x, Shaped) and x.shape else size
    if size not in (None, found):
        raise ValueError(f"a record has {size} features in this task, not {found}.")
    return found


def chosen(fields: "Task", size: int, x: Any, action: int | None) -> Any:
    """Cells phi(x, a) of the action that was taken; None if there is no such action."""
    actions = fields.get("policy")
    if actions is None:
        return x
    if not is_whole(action, 0, inf):
        return None
    if actions["shared"]:
        rows = np.asarray(x, object) if isinstance(x, Shaped) else x
        return rows[action] if action < len(rows) else None
    width = size // actions["n_actions"]
    if action >= actions["n_actions"]:
        return None
    cells = np.zeros(size)
    cells[action * width : (action + 1) * width] = floats(x)
    return cells


def check_query(query: dict[str, Any], n_features: int) -> None:
    """Refuse a query by which some records have no answer, or one of another size.

    A server could otherwise learn from what fails, and the ledger would not know. Nothing but the
    task and the public number of features is looked at.
    """
    if query["n_features"] not in (None, n_features):
        raise ValueError(
            f"a record has {query['n_features']} features in this task, not {n_features}."
        )
    p = n_features + bool(query.get("fit_intercept"))
    try:
        low, high = _numbers(query["bounds_y"], 2)
        _ = _numbers(query.get("offset", 0.0))
        if "low" in query:
            lows, highs = (_numbers(query[name], n_features) for name in ("low", "high"))
            sizes = highs / 2.0 - lows / 2.0
        else:
            sizes = _numbers(query["data_norm"])
        proper = (
            type(query["fit_intercept"]) is bool
            and high / 2.0 - low / 2.0 > 0  # hence low < high
            and (np.abs(_numbers(query["parts"], 2)) <= 1.0).all()
            and (sizes > 0.0).all()
            and _proper_weights(query.get("weights"), p)
        )
    except (KeyError, TypeError, ValueError):
        proper = False
    if not proper:
        raise ValueError("the task's query has parts that are missing, or of a wrong kind or size.")


def _numbers(given: Any, *shape: int) -> np.ndarray:
    """An array of finite numbers of this shape."""
    array = np.asarray(given)
    if array.dtype.kind not in "if" or array.shape != shape or not np.isfinite(array).all():
        raise ValueError
    return array.astype(float)


def _proper_weights(weights: Any, p: int) -> bool:
    if weights is None:
        return True
    if weights["kind"] == "residual":
        _numbers(weights["theta"], p)
        return bool(_numbers(weights["limit"]) > 0.0)
    _numbers(weights["matrix"], p, p)
    if weights["kind"] == "halves":
        _numbers(weights["root"], p, p)
    return weights["kind"] in ("whole", "halves")


def weighted(weights: dict[str, Any], phi: np.ndarray, r: float) -> tuple[np.ndarray, float]:
    """(h, k) of a record (phi, r): what re-weighted regression and descents ask about."""
    if weights["kind"] == "residual":
        residual = np.clip(np.array(weights["theta"]) @ phi, -1.0, 1.0) - r
        return phi, float(np.clip(residual / weights["limit"], -1.0, 1.0))
    whitened = np.array(weights["matrix"]) @ phi
    length = float(np.sqrt(whitened @ whitened))
    if weights["kind"] == "whole":
        return whitened / max(length, 1.0), r / max(length, 1.0)
    if not length > 1e-150:
        return np.zeros(len(phi)), 0.0
    half = np.array(weights["root"]) @ phi / sqrt(length)
    return half / max(float(np.sqrt(half @ half)), 1.0), 0.0


def _in_ball(query: dict[str, Any], x: Any) -> "Array":
    """Row of norm at most 1: clipped to a norm and divided by it."""
    largest = float(np.abs(x).max(initial=0.0))  # NaN or infinite if an entry is
    if not isfinite(largest) or largest == 0.0:
        return np.zeros(len(x))
    unit = x / largest
    norm = float(np.sqrt(unit @ unit))  # norm of the row over its largest entry
    return unit / max(norm, query["data_norm"] / largest)


def _in_box(query: dict[str, Any], x: Any) -> np.ndarray:
    """Row of norm at most 1: every feature clipped to +-1 / sqrt(d), which its range becomes."""
    middle, half = _middle_and_half(query, np.array(query["low"]), np.array(query["high"]))
    limit = 1.0 / sqrt(len(x))
    with np.errstate(all="ignore"):
        unit = np.clip((x - middle) * (limit / half), -limit, limit)
    return np.where(np.isnan(unit), 0.0, unit)


def _scaled_target(query: dict[str, Any], y: Any) -> "Scalar":
    if not y == y:
        return 0.0
    low, high = query["bounds_y"]
    centre, radius = _middle_and_half(query, low, high)
    return min(1.0, max(-1.0, (min(high, max(low, y)) - centre) / radius))


def _middle_and_half(query: dict[str, Any], low: Any, high: Any) -> tuple[Any, Any]:
    """Middle and half of the length of ranges; those of symmetric ranges without an intercept."""
    if query["fit_intercept"]:
        return low / 2.0 + high / 2.0, high / 2.0 - low / 2.0
    return 0.0 * low, np.maximum(np.abs(low), np.abs(high))
