"""What a fit released, as one value: the contract of all kinds of fits, and what is pooled."""

from math import sqrt
from typing import Any

import numpy as np

from .._linalg import RELATIVE_ZERO
from .._stored import frozen_object, renamed, stored
from ._coefficients import NoLaw
from ._levels import two_sided_quantile
from ._moments import normal_posterior


class Released:
    """All that a fit released; here, nothing.

    A kind of fit answers what it can and has the answers of this class for the rest, so that who
    asks need not know which kind it is. Each has ``theta``, the parameter of rows phi, and the
    scaled ``location`` that is added to phi'theta.

    Attributes
    ----------
    solved : bool
        Whether there are equations of steps.
    poolable : bool
        Whether it is a likelihood of one line, see `information`.
    """

    solved: Any = False
    poolable = False

    def knowing(self, cells: Any) -> Any:
        """The same where public cells of the table are known, as directions of theta."""
        return self

    def notes(self, row_map: Any, names: Any) -> Any:
        """What a report says of it, in sentences; empty ones say nothing."""
        return ()

    def interval(self, phi: Any, confidence_level: float, method: str) -> Any:
        """Centre and half-width at rows of features, in scaled units; infinite where not known."""
        raise NotImplementedError

    def leverage(self, row_map: Any) -> Any:
        """Part of the weight of all rows that one may have; None where it is not known."""

    def rows_of_cells(self) -> float:
        """Rows that a cell of the table needs to be told from an empty one; NaN if not known."""
        return np.nan

    def information(self, constant: Any) -> Any:
        """The likelihood of a line, which is pooled with those of other fits."""
        raise NotImplementedError


NOTHING = Released()


@stored
@frozen_object
class Information(Released):
    """Likelihood exp(moment'theta - theta' precision theta / 2) of the line phi'theta.

    A fit of the loop has equations D_k (b* - b_k) = z_k + error for b = W^-T theta, with a
    whitening W of its own. Each is as much as a normal likelihood of theta, and likelihoods of
    disjoint records multiply: their precisions add up, in the coordinates of theta, which all fits
    share.

    Attributes
    ----------
    precision : ndarray of shape (p, p)
    moment : ndarray of shape (p,)
    rows : ndarray of shape (p, p)
        Sum of phi phi' over the records: what was released, and twice the standard deviation that
        its noise gives to the mean eigenvalue of whitened rows.
    n : int
        Number of records.
    """

    precision: np.ndarray
    moment: np.ndarray
    rows: np.ndarray
    n: int
    poolable = True
    location = 0.0  # the coefficient of the constant has the location already

    def plus(self, other: "Information") -> "Information":
        """Likelihood of the records of both."""
        return Information(
            self.precision + other.precision,
            self.moment + other.moment,
            self.rows + other.rows,
            self.n + other.n,
        )

    def posterior(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of theta under the prior N(0, tau^2 I), by empirical Bayes.

        tau^2 maximizes the evidence among values of at least 1 / p, with which the expected square
        of the norm of theta is at least 1.
        """
        values, vectors = np.linalg.eigh(self.precision)
        roots = np.sqrt(np.maximum(values, 0.0))
        moment = vectors.T @ self.moment
        seen = values > RELATIVE_ZERO * max(values[-1], 0.0)
        response = np.divide(moment, roots, out=np.zeros_like(moment), where=seen)
        design = roots[:, None] * vectors.T
        _, mean, factor = normal_posterior(design, response, 1.0 / len(self.moment))
        return mean, factor @ factor.T

    @property
    def theta(self) -> np.ndarray:
        """The posterior mean."""
        return self.posterior()[0]

    def interval(
        self, points: Any, confidence_level: float, method: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Centre and half-width of normal intervals at rows of features, by the posterior."""
        if method != "asymptotic":
            raise ValueError("a pooled line has no certified interval: pass method='asymptotic'.")
        mean, covariance = self.posterior()
        variance = np.einsum("ij,jk,ik->i", points, covariance, points)
        return points @ mean, two_sided_quantile(confidence_level) * np.sqrt(variance)

    def error(self) -> float:
        """Root mean square over the rows of the error of phi'theta; no row is longer than 1."""
        _, covariance = self.posterior()
        square = (self.rows * covariance).sum() / self.n
        return sqrt(min(max(square, 0.0), np.linalg.eigvalsh(covariance)[-1]))

    def information(self, constant: Any) -> "Information":
        """It is one."""
        return self

    def coefficient_law(self, maps: Any, fitted: bool, **words: Any) -> Any:
        """There is none."""
        raise NoLaw("a pooled line has a posterior, but no law of its coefficients.")


renamed(Information, "linear_model.Information")
