"""Questions of a policy to the regressor that it learns with, beside fits and predictions."""

from collections.abc import Callable
from typing import Any, ClassVar, TYPE_CHECKING

from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if


if TYPE_CHECKING:
    from .._contracts import F
    from ..privacy import PrivacyReport


class Oracle(BaseEstimator):
    """Base class of what a policy can learn with privately; each answer here is the neutral one.

    A regressor that is none of them is an oracle without privacy.
    """

    # Currency, "gdp" or "zcdp", of all that a fit with Gaussian noise costs. None: it is not known
    # before the fit. Then epsilon and delta of several fits add up, which always holds.
    fit_currency: ClassVar[Any] = None
    interval_claims: ClassVar[tuple[str, ...]] = ()
    bounds_y_: Any  # of a classifier, its classes have a range
    privacy_report_: "PrivacyReport"
    random_state: Any
    _trust: Any

    def _check_model(self) -> None:
        """Refuse parameters that no rows can be fitted with; policies ask before they begin."""

    def _next_start(self) -> Any:
        """Released answers from which a fit to other rows may start, None if there are none."""
        return None


def interval_claims(oracle: Any) -> tuple[str, ...]:
    """Methods of the intervals that an oracle has, or may have if it does not say."""
    return oracle.interval_claims if isinstance(oracle, Oracle) else ("certified", "asymptotic")


# Decorates a method that a fit without sums does not have
with_sums: Callable[["F"], "F"] = available_if(lambda self: self._has_sums)


class PoolsFits:
    """Mixin of regressors that solve released sums, which those of another fit can be added to.

    A class has ``_has_sums``, whether a fit has them, ``_pooled(other)``, the fit to the sums of
    both, ``_coefficients()``, their mean and covariance, and ``_error()``, that of predictions.
    """

    _has_sums: ClassVar[Any]
    _pooled: ClassVar[Any]
    _coefficients: ClassVar[Any]
    _error: ClassVar[Callable[..., float | None]]
    privacy_report_: "PrivacyReport"

    @with_sums
    def pooled(self, other: Any) -> Any:
        """Regressor from the released sums of two fits with the same bounds.

        That is post-processing: it costs no privacy. Fits to disjoint records (as those of the
        epochs of a bandit) cost what the more expensive of the two costs; see
        :func:`skpriv.privacy.parallel_part`.

        Parameters
        ----------
        other : fitted regressor of the same class
            A regressor with the same bounds; itself a pooled one, perhaps.

        Returns
        -------
        regressor
            A regressor with `coef_`, `intercept_` and intervals from the records of both, weighted
            by what the numbers of records and the scales of the noise say. Certified intervals need
            rows that were not chosen in view of the targets of the other fit. The report is that of
            the more expensive fit.

        Raises
        ------
        ValueError
            If the two do not have sums of the same scaled records.
        """
        fit = self._pooled(other)
        dearer = max(self, other, key=lambda fit: fit.privacy_report_.guarantee.epsilon)
        fit.privacy_report_ = dearer.privacy_report_
        return fit

    @with_sums
    def posterior(self) -> Any:
        """Mean and covariance of (coefficients, intercept), by released sums and their noise.

        The prior is normal, of a size chosen by its evidence, but not smaller than ``coef_norm``
        says, where None stands for 1 in scaled units: coefficients of which little is known are not
        taken for 0. So the mean may differ from `coef_`.

        Returns
        -------
        mean : ndarray of shape (n_features,) or (n_features + 1,)
            The intercept comes last. Without one it is left out, or 0 for `LinearRegression`.
        covariance : ndarray of shape (n_features, n_features) or one larger
        """
        return self._coefficients()

    @with_sums
    def prediction_error(self) -> float | None:
        """Root mean square error of the predictions for the rows of the fit, by its posterior.

        It is computed from released sums: the trace of the posterior covariance times the noisy
        Gram matrix of the rows, over their number.

        Returns
        -------
        error : float or None
            The root mean square, in the units of y. None where only a Gram matrix of normalised
            rows was released.
        """
        return self._error()

    def normal_equations(self) -> Any:
        """Released sums of scaled rows, for those who compare or combine fits.

        Returns
        -------
        equations : NormalEquations or None
            The sums; None where rows were weighted by residuals, as those of `LinearRegression`
            are.
        """
        return None
