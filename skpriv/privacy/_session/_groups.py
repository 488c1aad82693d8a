"""Rows that are protected together, and how many of them there are."""

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from ..._contracts import is_whole
from ..._stored import frozen
from ...exceptions import PrivacyError
from ...records import Rows, codes, in_memory, public_shape
from .._accounting._guarantee import capabilities, models_that
from .._query import ROUNDING, Query


class Groups:
    """The person of each row, and how many rows of a person are used at most.

    Neighbours are data sets that differ in one person: all rows of one are replaced by any rows of
    another, however many. The number of persons and `largest` are public. A session makes
    :class:`skpriv.records.PersonRows` of them, in which a person is one record.

    Parameters
    ----------
    labels : array-like of shape (n_records,)
        Who each row belongs to.
    largest : int
        Rows of a person that are used at most.
    change : callable, default=None
        ``change(X, y, starts)`` replaces the rows of persons before they are asked about: person g
        has those from starts[g] up to starts[g + 1], and those alone decide what replaces them.

    Attributes
    ----------
    codes : ndarray of int of shape (n_records,)
        Labels as numbers from 0 up to the number of persons.
    n : int
        Public number of persons.
    name : str
        Name of the column of labels; "" where it has none.
    largest : int

    Raises
    ------
    ValueError

    Examples
    --------
    >>> from skpriv.privacy import Groups
    >>> Groups(["a", "b", "a", "a"], 2).codes.tolist()
    [0, 1, 0, 0]
    """

    def __init__(self, labels: Any, largest: Any, change: Callable[..., Any] | None = None) -> None:
        if len(public_shape(labels)) != 1:
            raise ValueError("groups must be one label a row: an array of shape (n_samples,).")
        if not in_memory(labels):
            raise TypeError(
                "groups must be in memory, since the number of persons is public and counted "
                f"before the charge: pass numpy.asarray of this {type(labels).__name__}."
            )
        if not is_whole(largest, 1, inf):
            raise ValueError(
                "groups needs max_rows_per_group, a number of at least 1: how many rows of each "
                f"person are used, not {largest!r}. The noise grows in proportion to it."
            )
        self.largest = int(largest)
        self.change = change
        self.codes = codes(labels)
        self.n = int(self.codes.max(initial=-1)) + 1
        name = getattr(labels, "name", None)
        self.name = name if isinstance(name, str) else ""

    def __len__(self) -> int:
        return len(self.codes)

    def check(self, rows: Rows, model: str, currency: str) -> None:
        """Refuse what cannot be protected, and labels of other rows."""
        if not capabilities(model).protects_groups or currency == "pure":
            raise PrivacyError(
                f"privacy={model!r} with the currency {currency!r} protects rows alone: groups "
                f"need {models_that('protects_groups')} and Gaussian noise. Where users send "
                "reports let every person send one."
            )
        if len(self) != rows.n:
            raise ValueError("groups must have one label for each row.")  # their number is private
        # Whether rows would be left out, and an error come of it, is private: it comes always.
        rows.needs_order()


@frozen
class FilledPlaces(Query):
    """Number of rows of persons, over the places of a person: each person adds at most 1.

    Replacing a person moves it by less than 1. It reads nobody's values, only whose row it is.
    """

    name = "rows of persons"
    sensitivity = 1.0 * ROUNDING

    shape = (1,)
    width = 0

    def sum(self, X: Any, y: Any) -> np.ndarray:
        """The exact number, which `PersonRows` divides by the places of a person."""
        return np.array([float(len(X))])
