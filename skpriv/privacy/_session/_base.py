"""Sessions: the only door to private rows."""

from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from math import isinf

from joblib import effective_n_jobs
from scipy.sparse import issparse

from ..._linalg import CompensatedSum, one_blas_thread
from ...exceptions import PrivacyError
from .._ledger._accountant import charge
from .._accounting._cost import Cost
from .._noise._laws import NoiseSource
from .._accounting._report import PrivacyReport, ReportRow

CHUNK_ROWS = 2**14  # at most; see ROUNDING
CHUNK_BYTES = 2**22  # a chunk of rows and its transforms stay in the cache
SHARE_SLACK = 1e-9  # rounding of shares such as 0.1 + 0.2 + 0.7


class Session(ABC):
    """Answers the queries of one fit under one privacy model.

    Opening a session charges the whole budget to every active accountant, before any row is read.
    The shares of the queries then divide the budget (or the users), and add up to at most one.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_features)
    y : ndarray of shape (n_records,)
    budget : Budget
        What one record may lose in the whole session.
    random_state : None, int or RandomState
        None draws secure noise; see :class:`skpriv.privacy.NoiseSource`.
    name : str
        Who asks, for reports and accountants.
    currency : {"gdp", "zcdp", "pure"}
        What the shares divide: mu^2 (only Gaussian answers, which compose exactly), rho
        (selections too), or epsilon itself (pure noise only, for ``delta=0``).
    smallest_share : float
        The smallest share that will be asked for: too few records for it are refused here, before
        anything is charged.
    """

    model: str

    def __init__(
        self,
        X,
        y,
        budget,
        random_state=None,
        name="session",
        *,
        currency="gdp",
        smallest_share=1.0,
    ):
        self._currency = currency
        self._check(budget, X.shape[0], smallest_share)
        charge(self._price(budget, currency), name)
        self._X, self._y = X, y
        self._budget = budget
        self._source = NoiseSource(random_state)
        self._used = 0.0
        self._unit = 1.0  # what a share of 1 is of the whole
        self.report = PrivacyReport(name, self.model, budget, self._source.secure)

    @property
    def n(self):
        """Public number of records."""
        return self._X.shape[0]

    def sum(self, query, share):
        """Noisy sum of a query over the records, for a share of the resource.

        Parameters
        ----------
        query : Query
        share : float in (0, 1]

        Returns
        -------
        Answer
        """
        share = self._spend(query, share)
        answer, cost = self._answer(query, share)
        self.report.add(ReportRow.of(query, share, answer, cost))
        return answer

    def top(self, query, k, share):
        """Indices of the k largest coordinates, in absolute value, of a bounded sum.

        Parameters
        ----------
        query : Query
            With a "linf" sensitivity.
        k : int
            Number of coordinates (public).
        share : float in (0, 1]

        Returns
        -------
        ndarray of shape (k,)
        """
        share = self._spend(query, share)
        indices, row = self._select(query, k, share)
        self.report.add(row)
        return indices

    def release(self, procedure, share):
        """Noisy output of a procedure that reads all the records (output perturbation).

        Parameters
        ----------
        procedure : Procedure
        share : float in (0, 1]

        Returns
        -------
        Answer
        """
        share = self._spend(procedure, share)
        answer, cost = self._perturb(procedure, share)
        self.report.add(ReportRow.of(procedure, share, answer, cost))
        return answer

    def _select(self, query, k, share):
        raise PrivacyError(self._unavailable("selects coordinates", query))

    def _perturb(self, procedure, share):
        raise PrivacyError(self._unavailable("perturbs the output of a procedure", procedure))

    def _unavailable(self, what, asked):
        return (
            f"privacy={self.model!r} has no curator that {what}, which {asked.name!r} needs: "
            "use privacy='central'."
        )

    @staticmethod
    def _price(budget, currency):
        if currency == "pure":
            return Cost.from_epsilon(budget.epsilon)
        return Cost.from_mu(budget.mu) if currency == "gdp" else Cost.from_rho(budget.rho)

    @abstractmethod
    def _answer(self, query, share):
        """Return the answer and its cost to a record; the share has been spent."""

    def _check(self, budget, n, smallest_share):
        gaussian = self._currency != "pure" and not isinf(budget.epsilon)
        if gaussian and not budget.mu > 0.0:
            raise PrivacyError(
                f"delta={budget.delta} leaves no room for Gaussian noise at "
                f"epsilon={budget.epsilon}: pass delta in (0, 1), for example delta=1e-6, "
                "and epsilon > 0."
            )

    def noise(self, query, share):
        """Law of the noise that the answer to a query would have for this share (public).

        Returns
        -------
        GaussianNoise, or what the query brings
        """
        return self._noise(query, share * self._unit)

    def records(self, share):
        """Public number of records that the answer to a query for this share would sum over."""
        return self._records(share * self._unit)

    def _records(self, share):
        return self.n

    def rebase(self):
        """From now on a share of 1 means all that is left of the session.

        For a step before the proper algorithm, such as choosing bounds, whose shares then need not
        know of it.
        """
        self._unit = max(0.0, 1.0 - self._used)

    @abstractmethod
    def _noise(self, query, share):
        """Law of the noise of an answer; the share is one of the whole session."""

    def _spend(self, query, share):
        if not 0.0 < share <= 1.0:
            raise PrivacyError(f"share={share} of query {query.name!r} must lie in (0, 1].")
        share *= self._unit
        if self._used + share > 1.0 + SHARE_SLACK:
            raise PrivacyError(
                f"share={share} of query {query.name!r} exceeds what is left of the session "
                f"({max(1.0 - self._used, 0.0):.4g}): the shares of a fit add up to at most 1."
            )
        self._used += share
        return share

    def _exact(self, query, users=None):
        """Exact sum over all records, or over the users with these indices."""
        width = query.width or self._X.shape[1]
        rows = CHUNK_ROWS if issparse(self._X) else _dense_rows(width)
        n = self.n if users is None else len(users)

        def chunk_sum(start):
            chunk = slice(start, start + rows)
            index = chunk if users is None else users[chunk]
            return query.sum(self._X[index], self._y[index])

        total = CompensatedSum(query.shape)
        for term in _in_threads(chunk_sum, range(0, n, rows)):
            total.add(term)
        return total.value


def _dense_rows(width):
    return max(64, min(CHUNK_ROWS, CHUNK_BYTES // (8 * max(1, width))))


def _in_threads(function, arguments):
    """Results in order; many chunks run on all cores, each with one BLAS thread of its own.

    The order of the results, and with it the rounding of their sum, does not depend on the number
    of cores.
    """
    if len(arguments) <= 2:
        yield from map(function, arguments)
        return
    with one_blas_thread(), ThreadPoolExecutor(effective_n_jobs(-1)) as pool:
        yield from pool.map(function, arguments)
