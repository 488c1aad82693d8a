"""What a fit will ask, and with how much noise: public numbers, before there are any data."""

from dataclasses import dataclass
from math import ceil, inf, sqrt
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri
from sklearn.base import clone

from ..._estimation._public_maps import column_bounds
from ..._linalg import CompensatedSum
from ..._printing import Printed, Table
from ...privacy import LARGEST_EPSILON, Budget, Trust
from ...records import Rows

IMAGINED = 4096  # made-up rows that stand for all; only the noise counts, which they do not decide

# A whitened Gram matrix of p columns has eigenvalues of about .9 / p, and the noise of its mean has
# the operator norm 4 sqrt(2 p) / N, with the effective sample size N = n mu. The matrix is known to
# a factor of two where the first is twice the second: where N / p^1.5 exceeds this number.
ESTIMABLE = 2.0 * 4.0 * sqrt(2.0) / 0.9


@dataclass(frozen=True)
class Plan(Printed):
    """The questions that a fit will ask.

    Attributes
    ----------
    n : int
        Number of records.
    n_features : int
        Number of features.
    questions : list of str
        What is asked, in this order.
    shares : ndarray of shape (n_questions,)
        Fraction of the budget for each question; they add up to one.
    noise : ndarray of shape (n_questions,)
        Standard deviation of the noise of each answer, which is a sum over records. That of a
        step is up to 3% larger or smaller in a fit, by whether its limit clips any residual.
    noise_of_mean : ndarray of shape (n_questions,)
        The same of a mean over records: a question's answers lie between -1 and 1.
    std_error : ndarray of shape (n_features,)
        What privacy alone would add to the standard error of each coefficient, in the units of the
        result, for features that are spread evenly over their ranges and residuals with a fifth of
        the half-range of the target. NaN where it is not estimable.
    guarantee : str
        What the fit would promise.
    resolution : float
        The effective sample size N = n mu (the square root of n times mu where users answer for
        themselves) over p^1.5, with p columns, the constant included.
    records : int
        Number of records from which most coefficients of features that are not nearly the same are
        estimable, at this epsilon.
    epsilon : float
        The epsilon from which they are, with this number of records; infinite if none below 100 is.
    """

    n: int
    n_features: int
    questions: list
    shares: np.ndarray
    noise: np.ndarray
    noise_of_mean: np.ndarray
    std_error: np.ndarray
    guarantee: str
    resolution: float
    records: int
    epsilon: float

    @property
    def estimable(self) -> bool:
        """Whether most coefficients would be estimable: a rule for features that differ."""
        return self.resolution >= ESTIMABLE

    @property
    def _advice(self):
        said = f"effective sample size over columns^1.5: {self.resolution:.3g}. "
        if self.estimable:
            return said + (
                f"Most coefficients are estimable, from {self.records:,} records on; as a rough "
                "guide, all are from half as many again."
            )
        epsilon = f" or epsilon {self.epsilon:.2g}" if self.epsilon < inf else ""
        return said + (
            f"Many coefficients may not be estimable: {self.records:,} records{epsilon} would do "
            "for most and, as a rough guide, half as much again for all."
        )

    def _parts(self):
        yield f"{self.n:,} records, {self.n_features} features: {self.guarantee}"
        yield self._advice
        if not self.questions:
            return
        yield ""
        numbers = zip(self.questions, self.shares, self.noise, self.noise_of_mean, strict=True)
        rows = [(q, f"{s:.4f}", f"{x:.4g}", f"{m:.4g}") for q, s, x, m in numbers]
        yield Table(("question", "share", "noise", "of a mean"), rows)
        yield ""
        known = self.std_error[np.isfinite(self.std_error)]
        said = f"{np.median(known):.3g} in the median" if len(known) else "not estimable"
        yield f"standard error that privacy adds to a coefficient: {said}"

    def to_frame(self) -> Any:
        """The questions as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "question": self.questions,
                "share": self.shares,
                "noise": self.noise,
                "noise_of_mean": self.noise_of_mean,
            }
        )


class Plans:
    """Mixin of estimators whose questions depend on public numbers alone."""

    def plan(self, n: int, n_features: int) -> Plan:
        """List the questions that `fit` would ask, their shares and noise, before any data.

        Nothing is charged and no data are needed: a fit to made-up rows asks the same questions.
        It also says whether most coefficients will be estimable, and how many records or how much
        epsilon would do. That is a rule for features that are not nearly the same as others. With
        5, 12 and 25 independent features and a curator, two thirds to nine tenths of all
        coefficients were estimable at ``records``. All were in 38 of 120 fits there, in 110 with
        1.2 times as many, and in 120 with 1.5 times. Where users answer for themselves shares are
        parts of the users, and no questions are listed.

        Parameters
        ----------
        n : int
            Number of records.
        n_features : int
            Number of features.

        Returns
        -------
        Plan
            It prints as a table.

        Raises
        ------
        ValueError
            If a parameter is wrong, or no noise is added.

        Examples
        --------
        >>> from skpriv.linear_model import LinearRegression
        >>> model = LinearRegression(epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1))
        >>> plan = model.plan(n=20_000, n_features=4)
        >>> round(float(plan.shares.sum()), 6)
        1.0
        """
        if n < 1 or n_features < 1:
            raise ValueError(f"n={n} and n_features={n_features} must be at least 1.")
        trust = Trust.of(self.privacy, Budget(self.epsilon, self.delta))  # type: ignore
        if trust.exact:
            raise ValueError(f"privacy={trust.model!r} has no plan: no noise is added.")
        advice = _advice(trust, n, n_features + 1)
        if not trust.can.same_rows:
            none, unknown = np.empty(0), np.full(n_features, np.nan)
            guarantee = str(trust.guarantee("record"))
            return Plan(n, n_features, [], none, none, none, unknown, guarantee, *advice)
        model = clone(self).set_params(random_state=0)
        model.fit(_Imagined(n, n_features, model))
        rows = model.privacy_report_.rows
        records = np.array([float(row.records) for row in rows])
        noise = np.array([float(row.scale) for row in rows])
        return Plan(
            n,
            n_features,
            [row.query for row in rows],
            np.array([float(row.share) for row in rows]),
            noise,
            noise / records,
            _std_error(model, n_features),
            str(model.privacy_report_.guarantee),
            *advice,
        )


def _advice(trust, n, p):
    """The number that decides, and the records and the epsilon from which it is large enough."""
    effective = (n if trust.can.same_rows else sqrt(n)) / p**1.5

    def missing(epsilon):
        return effective * Budget(epsilon, trust.budget.delta).mu - ESTIMABLE

    resolution = effective * trust.budget.mu
    ratio = ESTIMABLE / resolution
    records = ceil(n * ratio if trust.can.same_rows else n * ratio**2)
    if missing(LARGEST_EPSILON) < 0.0:
        return resolution, records, inf
    return resolution, records, float(brentq(missing, 1e-6, LARGEST_EPSILON, xtol=1e-4))


def _std_error(model, n_features):
    """Part of the standard errors that privacy adds, without the intercept."""
    try:
        law = model.coefficient_law()
    except (NotImplementedError, ValueError):
        return np.full(n_features, np.nan)
    variances = np.diagonal(np.asarray(law.privacy))[:n_features]
    return np.sqrt(np.where(np.asarray(law.resolved)[:n_features], variances, np.nan))


class _Imagined(Rows):
    """Made-up rows inside of public bounds: each of a few stands for many."""

    paid_for = True  # nothing of anybody is in them

    def __init__(self, n, n_features, model):
        self.n, self.n_features = n, n_features
        names = getattr(model.bounds_X, "keys", None)
        self.names = None if names is None else [str(name) for name in names()]
        part = _spread_out(IMAGINED, n_features + 1)
        part, error = 2.0 * part[:, :-1] - 1.0, ndtri(part[:, -1])
        self._X = part * (model.data_norm or 1.0) / np.sqrt(n_features)
        if model.bounds_X is not None:
            given = getattr(model.bounds_X, "values", None)
            given = list(given()) if callable(given) else model.bounds_X
            low, high = column_bounds(given, [], n_features, "bounds_X")
            self._X = low + (high - low) * (part + 1.0) / 2.0
        low, high = map(float, model.bounds_y)
        self._y = (low + high) / 2.0 + (high - low) / 10.0 * error

    def pieces(self, most, subset=None, sparse=True):
        """The few rows, whatever was asked for."""
        yield lambda: (self._X, self._y)

    def total(self, query, subset=None):
        """Sum over as many rows as were asked for."""
        count = self.n if subset is None else len(subset)
        total = CompensatedSum(query.shape)
        with np.errstate(all="ignore"):
            total.add(query.sum(self._X, self._y) * (count / IMAGINED))
        return total


def _spread_out(n, size):
    """Points of the open unit cube that are spread evenly, without chance.

    Multiples of powers of a root of x^(size + 1) = x + 1, of which the fractions are taken (Roberts
    2018, a generalisation of the golden section).
    """
    root = brentq(lambda x: x ** (size + 1) - x - 1.0, 1.0, 2.0)
    steps = root ** -np.arange(1.0, size + 1.0)
    return (np.arange(1.0, n + 1.0)[:, None] * steps) % 1.0 * (1.0 - 2e-9) + 1e-9
