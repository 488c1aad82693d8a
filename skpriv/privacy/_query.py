"""The questions that may be asked about private rows: bounded sums, and procedures made of them;
the answer."""

from abc import ABC, abstractmethod
from sys import float_info
from typing import Any, ClassVar

import numpy as np

from .._stored import frozen, frozen_object, stored
from ..exceptions import PrivacyError
from ..records import CHUNK_ROWS, Summed
from ._noise._codebook_law import LiftedReports
from ._noise._laws import GaussianNoise, Noise, NoiseSource

# Fraction of the budget for a question of one or a few numbers beside the questions that matter,
# which then have 2.5% more noise.
SIDE_SHARE = 0.05
TOLD_ABOVE = 3.0  # a released number counts as not 0 above so many deviations of its noise
# A released number is used for decisions if its noise is at most this fraction of the records, or
# of the range that the number may have.
MOST_NOISE = 0.2
EPS = float_info.epsilon  # 2^-52
# Every declared sensitivity is multiplied by this factor, 1 + 2^-20. Clipping leaves a norm as
# large as 1 + a few EPS. A sum of a chunk of rows has a rounding error of at most CHUNK_ROWS^2 EPS
# of the largest term. Only one chunk changes when a record is replaced in its place, because chunks
# are added with compensation. The last rounding of the total adds EPS for each record, which is
# 2^-20 at MOST_RECORDS (see `reordered`). This holds for sums of terms of bounded norm: a public
# matrix is applied to rows before they are summed, and never to the sum.
ROUNDING = 1.0 + 16.0 * CHUNK_ROWS**2 * EPS
# Error for each record where the order of all records may change, 2^-37 of the largest term
# (docs/mathematics/sensitivities.md). Up to RECORDS_IN_ROUNDING it is half of what ROUNDING allows.
REORDERED = 2.0 * CHUNK_ROWS * EPS
RECORDS_IN_ROUNDING = (ROUNDING - 1.0) / 2.0 / REORDERED
MOST_RECORDS = int((ROUNDING - 1.0) / EPS)


def reordered(n: int) -> float:
    """Factor of a sensitivity for sums over records whose order may change when one is replaced.

    Floating-point sums depend on the order of their terms. In another order every chunk of at most
    c = 2^14 records may have another error, of at most c^2 2^-54 of the largest term B, and every
    term be evaluated with another error, of at most 2^-39 B. Two sums over n records are hence
    within n (2^-39 + 2^-38 + 2^-52) B < n 2^-37 B of what they differ by without rounding. The
    factor ROUNDING of a declared sensitivity covers 2^16 records.

    Parameters
    ----------
    n : int

    Returns
    -------
    float

    Raises
    ------
    PrivacyError
        Beyond 2^32 records, where the errors of sums are no longer small beside one record.

    Examples
    --------
    >>> from skpriv.privacy import reordered
    >>> reordered(1000), reordered(2**27)
    (1.0, 1.0009765625)
    """
    if n > MOST_RECORDS:
        raise PrivacyError(
            f"n={n} records are more than {MOST_RECORDS}, up to which the rounding of sums is "
            "proved to be small beside what one record changes: divide them among several fits."
        )
    return 1.0 + n * REORDERED if n > RECORDS_IN_ROUNDING else 1.0


@stored
@frozen
class Answer:
    """Noisy sum of a query, with the exact law of its noise.

    Parameters
    ----------
    value : ndarray
        The noisy sum over ``n`` records.
    n : float
        Number of records in the sum (public), an integer where it is exact.
    noise : Noise
        Law of ``value`` minus the exact sum, for intervals.
    reports : LiftedReports or None
        Where users sent more than the sum tells: what they sent.
    counted : bool
        Whether ``n`` is exact. For persons with several rows it is a released number of rows.
    """

    value: np.ndarray
    n: float
    noise: Noise
    reports: LiftedReports | None = None
    counted: bool = True

    @property
    def mean(self) -> np.ndarray:
        """The noisy mean over the records."""
        return self.value / self.n

    @property
    def mean_scale(self) -> float:
        """Scale of the noise of that mean."""
        return self.noise.scale / self.n


class Query(Summed, ABC):
    """A sum over records of a bounded function of the record.

    A query clips: its sensitivity holds for any input, adversarial ones included. Subclasses are
    small frozen classes which set the four attributes and write ``sum`` for a chunk of rows.

    Attributes
    ----------
    name : str
        Its name in the privacy report.
    shape : tuple of int
        Shape of the sum.
    norm : {"l2", "linf"}
        Norm in which the sensitivity is measured.
    sensitivity : float
        Largest change of the sum when one record is replaced, in that norm, rounded up.
    width : int or None
        Number of columns of X that ``sum`` reads, if it is not all of them (public).
    takes_sparse : bool
        Whether ``sum`` takes sparse chunks as they are, which it must make canonical before it
        clips (:func:`skpriv.records.canonical`). Otherwise rows are handed over dense.
    one_row_each : bool
        Where a record is a person with several rows (:class:`skpriv.records.PersonRows`), whether
        one of them is asked about. Otherwise a query of rows is averaged over those of the person:
        then the norm of ``sum`` of one row must be at most the sensitivity, since rows may be
        absent.
    prepared : (maker, Query) or None
        Queries that are asked several times about the same function of each record have it: a
        session computes the values of this function once, and keeps them in memory as *prepared
        rows*. The maker has ``records(X, y)``, which makes them of a chunk, and their public
        ``width``, the number of columns. The second query takes them in place of X, and has the
        same sum.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.privacy import Budget, Query
    >>> class ClippedTotal(Query):
    ...     '''Sum of y clipped to [0, 1]; replacing a record moves it by at most 1.'''
    ...     name, shape, norm, sensitivity = "total", (1,), "l2", 1.0
    ...     def sum(self, X, y):
    ...         return np.array([np.nan_to_num(np.clip(y, 0.0, 1.0)).sum()])
    >>> ClippedTotal().sum(np.zeros((3, 1)), np.array([0.2, 5.0, -1.0]))
    array([1.2])
    >>> report = ClippedTotal().randomize(np.zeros(1), 0.5, Budget(1.0, 1e-6), rng=0)
    >>> report.shape
    (1,)
    """

    prepared: ClassVar[Any] = None
    likely: Any = None  # probability of the likeliest report, by the epsilon that it has

    norm: str = "l2"

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in the privacy report."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the sum."""

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """Largest change of the sum when one record is replaced, rounded up."""

    @abstractmethod
    def sum(self, X: Any, y: Any) -> np.ndarray:
        """Exact sum over a chunk of rows.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Features in their own units, unclipped, NaN and infinities included.
        y : ndarray of shape (n_rows,)
            Targets in their own units, unclipped.

        Returns
        -------
        ndarray of shape ``self.shape``
            The sum, for any values of the rows.
        """

    def local_noise(self, budget: Any) -> Noise:
        """Law of the noise that one user adds to a report under this budget.

        Parameters
        ----------
        budget : Budget
            The whole local budget of the user.

        Returns
        -------
        Noise
            Law of the noise of each coordinate.
        """
        return GaussianNoise.calibrated(self.sensitivity, budget.mu)

    def randomize(self, x: Any, y: Any, budget: Any, rng: Any = None) -> np.ndarray:
        """Report of one user: the code that a user's own device runs.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            Features of the user, in their own units.
        y : float
            Target of the user, in its own units.
        budget : Budget
            The whole local budget of the user, who answers this query only.
        rng : None, int or RandomState
            None draws secure noise.

        Returns
        -------
        ndarray of shape ``self.shape``
            The noisy report.
        """
        X = np.asarray(x, float).reshape(1, -1)
        noise = self.local_noise(budget)
        return self._report(X, np.asarray([y], float), noise, NoiseSource(rng))

    def _report(self, X: Any, y: Any, noise: Any, source: NoiseSource) -> np.ndarray:
        """Report of the user of one row."""
        return source.add(self.sum(X, y), noise)


@frozen_object
class InnerSum(Summed):
    """A sum inside of a procedure, whose output alone is released and has a sensitivity.

    Attributes
    ----------
    sum : callable
        ``sum(X, y)``: the exact sum over a chunk of rows, an array.
    shape : tuple of int
        Shape of the sum.
    takes_sparse : bool
        Whether sparse chunks are taken as they are.
    """

    sum: Any
    shape: tuple[int, ...]
    takes_sparse: bool = False
    width: int | None = None


class Procedure(ABC):
    """A function of exact sums whose output has a bounded l2 sensitivity.

    For algorithms whose every step asks the rows but whose output alone is released, such as
    gradient descent with output perturbation. Only a curator can run one. It is given the rows that
    it is about, of which it can ask nothing but sums.

    Attributes
    ----------
    name : str
        Its name in the privacy report.
    norm : str
        Norm in which the sensitivity is measured.
    sensitivity : float
        Largest change of the output when one record is replaced, rounded up.
    """

    norm = "l2"

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in the privacy report."""

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """Largest change of the output when one record is replaced, rounded up."""

    @abstractmethod
    def run(self, rows: Any) -> np.ndarray:
        """Output on all the records, for any input.

        Parameters
        ----------
        rows : skpriv.records.Rows
            ``rows.n`` is public, and ``rows.sum(InnerSum(...))`` gives exact sums.

        Returns
        -------
        ndarray
            The exact output, of the declared shape.
        """
