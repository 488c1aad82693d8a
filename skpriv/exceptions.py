"""The errors that skpriv raises on its own account, and its warning."""

__all__ = [
    "BudgetExceeded",
    "InvalidValues",
    "PrivacyError",
    "PrivacyWarning",
    "SkprivError",
    "StorageError",
]


class SkprivError(Exception):
    """Base class of every error that is particular to skpriv.

    Examples
    --------
    >>> from skpriv.exceptions import BudgetExceeded, SkprivError
    >>> issubclass(BudgetExceeded, SkprivError)
    True
    """


class BudgetExceeded(SkprivError, RuntimeError):
    """A release would cost more privacy than what is left of a budget.

    It is raised before any data is read: nothing was released, and nothing was charged.

    Examples
    --------
    >>> from skpriv.privacy import Budget, BudgetAccountant, Cost, charge
    >>> with BudgetAccountant(epsilon=1.0) as accountant:
    ...     try:
    ...         charge(Cost.from_epsilon(2.0), "a fit")
    ...     except BudgetExceeded:
    ...         print(accountant.spent)
    Budget(epsilon=0.0, delta=0.0)
    """


class PrivacyError(SkprivError, ValueError):
    """The privacy guarantee that was asked for cannot be had.

    Examples
    --------
    >>> from skpriv.privacy import Budget
    >>> Budget.from_mu(1.0, delta=0.0)
    Traceback (most recent call last):
    ...
    skpriv.exceptions.PrivacyError: a Gaussian release has no finite epsilon at delta=0;
    give a delta above 0.
    """


class InvalidValues(SkprivError, ValueError, TypeError):
    """Private rows contain something that is not a finite number.

    The text is always the same: which record it is, and what, stays private. It is raised after the
    charge, since it is an answer about the rows. (Both a ValueError and a TypeError, because which
    of them scikit-learn raises would tell numbers and text apart.)

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.exceptions import InvalidValues
    >>> from skpriv.linear_model import SSPRegressor
    >>> try:
    ...     SSPRegressor(
    ...         data_norm=1.0, bounds_y=(-1, 1)
    ...     ).fit(np.array([[0.5], [np.nan]]), [0.0, 1.0])
    ... except InvalidValues as error:
    ...     print(str(error)[:43])
    the rows or targets contain NaN, infinity,
    """


class StorageError(SkprivError, OSError):
    """A file in which something must be kept cannot be read or written, such as on a full disk.

    Everything that was acknowledged before is kept. The answer that raises this was not released.
    """


class PrivacyWarning(UserWarning):
    """A release promises less than it seems to, or can tell little.

    It is about public facts alone and costs nothing: an epsilon above 10, a delta of at least one
    over the number of records, steps of a Pipeline that learn from the rows before the fit, a
    search by scores that are not private, and records that are too few for anything but a mean. No
    row decides whether it is given. It names the line that called the fit; a search gives each
    warning once.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skpriv.exceptions import PrivacyWarning
    >>> from skpriv.linear_model import SSPRegressor
    >>> X = np.linspace(-1.0, 1.0, 1000)[:, None]
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     model = SSPRegressor(epsilon=20.0, data_norm=1.0, bounds_y=(-1, 1)).fit(X, X[:, 0])
    >>> caught[0].category is PrivacyWarning
    True
    >>> print(str(caught[0].message)[:30])
    epsilon=20 is above 10 and pro
    """
