"""Estimators whose fits are charged in whatever process they happen."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from ._active import Handle, activated, capture

__all__ = ["Accounted"]

_HANDLE = "_skpriv_accountants"


class Accounted:
    """Mixin of estimators: their fits in other processes reach the accountants of this one.

    An estimator that is pickled while accountants are active takes along a handle of them, its
    clones inherit it, and `_accounting` activates it. Put the mixin before ``BaseEstimator``, and
    do everything that is charged inside ``with self._accounting():``.

    Notes
    -----
    An estimator that is pickled outside of any accountant carries nothing. In the process that
    made an accountant no handle of it is needed: there, the ``with`` blocks decide. In other
    processes it is charged as long as its ledger can be reached; after that, and on other machines,
    a fit raises `PrivacyError`, and so does that of a clone: a new estimator, made of its
    parameters, is free.

    The part of the data is not carried along, because a pickled estimator may be fitted to other
    records: outside of a part, its fits are charged as if about all records.

    An estimator that a descendant of this process makes from nothing finds the accountants that
    are active here by itself, see `BudgetAccountant`. For a worker elsewhere, hand `capture()` to
    it and use `activated` there.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from skpriv.privacy import Accounted, BudgetAccountant, Cost, charge
    >>> class Dummy(Accounted, BaseEstimator):
    ...     def fit(self, X, y=None):
    ...         with self._accounting():
    ...             charge(Cost.from_epsilon(0.5), "Dummy")
    ...         return self
    >>> with BudgetAccountant(epsilon=1.0) as accountant:
    ...     _ = Dummy().fit(None)
    >>> accountant.spent
    Budget(epsilon=0.5, delta=0.0)
    """

    @contextmanager
    def _accounting(self) -> Iterator[None]:
        """Charge the accountants under which this estimator was pickled, if not yet active."""
        with activated(self.__dict__.get(_HANDLE)):
            yield

    def __getstate__(self) -> dict[str, Any]:
        state = dict(cast(dict[str, Any], super().__getstate__()))
        handle = state.pop(_HANDLE, Handle()).joined(capture(with_parts=False))
        if handle:
            state[_HANDLE] = handle
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        handle = state.pop(_HANDLE, Handle()).abroad()
        parent = getattr(super(), "__setstate__", self.__dict__.update)
        parent(state)
        if handle:
            self.__dict__[_HANDLE] = handle

    def __sklearn_clone__(self) -> "Accounted":
        clone = super().__sklearn_clone__()  # type: ignore[misc]
        handle = self.__dict__.get(_HANDLE)
        if handle:
            clone.__dict__[_HANDLE] = handle
        return clone
