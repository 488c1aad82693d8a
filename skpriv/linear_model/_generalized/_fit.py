"""What a generalised linear fit has released, and what it knows of its own error."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from ..._equations._coefficients import CoefficientLaw
from ..._equations._loop._estimate import LoopEstimate
from ..._equations._loop._fit import UNRESOLVED
from ..._linalg import RELATIVE_ZERO
from ._links import Link

SLOPE_RESOLUTION = (
    1.0  # operator norms of the noise, from where an eigenvalue of the slopes is known
)
NOISE = (
    "the released equations do not tell some directions from noise: more records or epsilon, "
    "narrower bounds, and no column that hardly varies help (such as the 'other' of a "
    "complete list of categories: other=False)"
)


@dataclass(frozen=True, eq=False)
class MeanOfFit:
    """The mean of a fit, which clipped residuals of one long tail would move.

    Attributes
    ----------
    point : ndarray of shape (p,)
        b, at which it was asked.
    constant : ndarray of shape (p,)
        The vector v with psi'v = 1 for every record.
    shift : float
        What eta must grow by at that point, for the fit to have the mean of the target.
    scale : float
        Standard deviation of its privacy noise.
    """

    point: np.ndarray
    constant: np.ndarray
    shift: float
    scale: float

    def moved(self, b):
        """The fit at its point, with the mean of the target."""
        return b + self.shift * self.constant


@dataclass(frozen=True, eq=False)
class ScoreFit:
    """Released score equations: eta = psi'b for whitened rows psi = W phi.

    Attributes
    ----------
    link : Link
    W : ndarray of shape (p, p)
    b : ndarray of shape (p,)
        The posterior mean, which predicts.
    equations : tuple of ScoreEquation
    same_rows : bool
        Whether all equations are of the same records (else of disjoint ones).
    mean : MeanOfFit or None
        What is known of the mean of the fit beside its steps.
    """

    link: Link
    W: np.ndarray
    b: np.ndarray
    equations: tuple
    same_rows: bool
    mean: MeanOfFit | None = None

    @property
    def theta(self):
        """W'b: eta = phi'theta."""
        return self.W.T @ self.b

    def estimate(self, points):
        """Estimate of psi'b* without shrinkage, and what its errors are made of.

        Each equation is expanded at its own point with its own slopes G_k, which are independent of
        that point. With weights a_k that add up to one and G = sum a_k G_k,

            G (b^ - b*) = mean(e xi) + sum a_k (N_k + M_k (b_k - b*)),

        where xi are the weighted residuals at b*, and N_k and M_k the privacy noises of moments and
        slopes. The weights are those of the pool: equations that were asked far away, where the
        link bends, have next to none.

        Parameters
        ----------
        points : ndarray of shape (n_points, p)

        Returns
        -------
        LoopEstimate
        """
        weights = self._weights()
        pairs = list(zip(weights, self.equations, strict=True))
        slopes = sum(w * eq.slopes for w, eq in pairs)
        scale = sqrt(sum((w * eq.slope_scale) ** 2 for w, eq in pairs))
        p = len(self.b)
        values, vectors = np.linalg.eigh(slopes)
        floor = max(
            SLOPE_RESOLUTION * scale * sqrt(2.0 * p),
            RELATIVE_ZERO * float(values[-1]),
            RELATIVE_ZERO * self.link.unit,
        )
        hidden = values < floor
        inverse = (vectors / np.maximum(values, floor)) @ vectors.T
        moment = sum(w * (eq.moment + eq.slopes @ (eq.point - self.b)) for w, eq in pairs)
        solution = self.b + inverse @ moment
        dual = replies = points @ inverse
        value, mean = points @ solution, np.zeros((len(points), 0))
        if self.mean is not None:
            # The mean of the fit changes by g'(b - point) to first order, g = Hc / c'Hc
            constant = self.mean.constant
            gradient = slopes @ constant / max(float(constant @ slopes @ constant), floor)
            part = points @ constant
            shift = self.mean.shift - float(gradient @ (solution - self.mean.point))
            value = value + part * shift
            replies = dual - np.outer(part, gradient @ inverse)
            mean = self.mean.scale * part[:, None]
        noise, shared, bent = 0.0, [], 0.0
        for w, eq in pairs:
            away = solution - eq.point
            unit = w * eq.slope_scale / sqrt(2.0)
            bent += 0.5 * w * max(float(away @ slopes @ away), 0.0)
            noise += (w * eq.moment_scale) ** 2 + unit**2 * float(away @ away)
            shared.append(unit * (replies @ away))
        # Where the link bends moments are off by at most that length, in no direction that is known
        noise += bent**2 / p
        lost = ((points @ vectors)[:, hidden] ** 2).sum(axis=1)
        meat = sum(w * eq.meat for w, eq in pairs)
        meat_scale = sqrt(sum((w * eq.meat_scale) ** 2 for w, eq in pairs))
        spread = max(float(np.trace(meat)), 0.0) / max(float(np.trace(slopes)), floor)
        counts = [eq.n for eq in self.equations]
        records = counts[-1] if self.same_rows else 1.0 / sum(w**2 / eq.n for w, eq in pairs)
        return LoopEstimate(
            value=value,
            dual=dual,
            residual_gram=meat,
            residual_scale=meat_scale,
            typical_gram=max(spread, RELATIVE_ZERO)
            * (vectors * np.maximum(values, floor))
            @ vectors.T,
            records=records,
            noise=noise,
            tail=0.0,
            shared=np.column_stack([*shared, mean]),
            noise_dual=replies,
            resolved=lost <= UNRESOLVED * (points**2).sum(axis=1),
        )

    def _weights(self):
        """Weights of the equations in the estimate; they add up to one."""
        p, gram = len(self.b), self.equations[-1].slopes
        gram = sum(eq.slopes for eq in self.equations) / len(self.equations)
        precisions = []
        for eq in self.equations:
            away = self.b - eq.point
            noise = eq.moment_scale**2 + 0.75 * eq.slope_scale**2 * float(away @ away)
            bent = max(float(away @ gram @ away), 0.0) ** 2 / (4.0 * p)
            precisions.append(1.0 / max(noise + bent, 1e-300))
        return np.array(precisions) / sum(precisions)

    def law(self, matrix, n, estimand, ratio):
        """Law of matrix @ theta.

        Parameters
        ----------
        matrix : ndarray of shape (q, p)
        n : int
        estimand, ratio : str
            What is estimated, and what the exponential of a coefficient is.

        Returns
        -------
        CoefficientLaw
        """
        estimate = self.estimate(matrix @ self.W.T)
        sampling, privacy = estimate.covariances()
        told = estimate.resolved
        both = np.outer(told, told)
        return CoefficientLaw(
            np.where(told, estimate.value, np.nan),
            np.where(both, sampling, np.nan),
            np.where(both, privacy, np.nan),
            told,
            "" if told.all() else NOISE,
            n,
            estimand,
            ratio=ratio,
        )
