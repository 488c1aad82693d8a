"""Noise-aware estimates, and the pool of all released equations: without a price."""

from math import sqrt

import numpy as np
from scipy import linalg

from ..._equations._newton_estimate import weights_move_mean
from ..._linalg import psd_part

# Public grid of prior variances of the coordinates of b.
PRIOR_VARIANCES = np.geomspace(1e-5, 1e3, 49)
ODDS = 3.0  # logarithm of the odds of each candidate against the next
SAMPLING = 10.0  # privacy noise over sampling, from where sampling is shrunk as a whole
ROUNDS = 3  # of solving and weighing by the distance to the solution
DESIGN = 0.75  # (1 + 1/2) / 2: variance of N u between its values along u and across, GOE noise N
SURE = 2.0  # squared deviations by which a shift must exceed its error


def shrunk_gram(gram, scale):
    """James-Stein estimate of a symmetric matrix, towards the multiple of I of the same trace.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        A matrix of nonnegative eigenvalues plus GOE(scale).
    scale : float

    Returns
    -------
    (matrix, weight)
        The weight in [0, 1] is that of the released matrix.
    """
    p = len(gram)
    level = max(np.trace(gram) / p, scale / sqrt(p))
    away = gram - level * np.eye(p)
    noise = scale**2 * (p * (p + 1) / 2.0 - 1.0)
    weight = 1.0 - noise / max(float((away**2).sum()), 1e-300) if scale else 1.0
    weight = max(0.0, weight)
    return weight * away + level * np.eye(p), weight


def denoised_gram(gram, scale):
    """Estimate of a symmetric matrix that underrates neither level nor leading directions.

    The mean of the James-Stein estimate, which is good where eigenvalues are about equal, and of
    the rotationally invariant estimate for additive Gaussian noise (Bun, Allez, Bouchaud and
    Potters 2016), which is good where a few directions are far above the others: James-Stein
    divides all of them alike, and a Newton step along one that is underrated goes too far.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        A matrix of nonnegative eigenvalues plus GOE(scale).
    scale : float

    Returns
    -------
    ndarray of shape (p, p), positive semi-definite
    """
    p = len(gram)
    first = shrunk_gram(gram, scale)[0]
    if not scale or p == 1:
        return psd_part(first)
    values, vectors = np.linalg.eigh(gram)
    variance = 0.5 * p * scale**2  # of the semicircle
    gaps = values[:, None] - values
    width = 2.0 * sqrt(variance / p)
    attraction = (gaps / (gaps**2 + width**2)).sum(axis=1) / p  # Hilbert transform of the spectrum
    second = np.maximum(values - 2.0 * variance * attraction, 0.0)
    second *= max(np.trace(gram), scale * sqrt(p)) / max(second.sum(), 1e-300)
    return psd_part(0.5 * (first + (vectors * second) @ vectors.T))


def posterior_mean(gram, moment, spread, sampling, priors, largest=np.inf):
    """Mean of b for moment = gram b + error under b = tau L c, c ~ N(0, I), averaged by evidence.

    The error is privacy noise, and sampling where privacy noise is not small beside it: as epsilon
    grows nothing is shrunk, and b is the least-squares line of the records themselves.

    Parameters
    ----------
    gram : ndarray of shape (p, p), positive semi-definite
    moment : ndarray of shape (p,)
    spread : float
        Variance of the privacy noise of each coordinate.
    sampling : float
        The error of sampling has covariance sampling * gram.
    priors : list of ndarray of shape (p, p)
        The candidates L.
    largest : float
        Largest tau^2 that is thought possible, for an L with the trace of LL' gram that I has.
    """
    p = len(moment)
    variances = PRIOR_VARIANCES[PRIOR_VARIANCES <= max(largest, 2.0 * PRIOR_VARIANCES[0])]
    typical = max(sampling * float(np.trace(gram)) / p, 1e-300)
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0.0)
    error = spread + min(1.0, SAMPLING * spread / typical) * sampling * values
    root = vectors / np.sqrt(error)  # C^{-1/2} = diag(error^-1/2) vectors'
    response = root.T @ moment
    evidences, means = [], []
    for rank, prior in enumerate(priors):
        share = np.einsum("ij,ij->", gram @ prior, prior)
        prior = prior * sqrt(np.trace(gram) / share) if share > 0.0 else prior
        left, singular, right = _svd(root.T @ gram @ prior)
        projected = left.T @ response
        total = 1.0 + variances[:, None] * singular**2
        # log N(response; 0, I + tau^2 D D'): what lies across the range of D is the same for all.
        fitted = variances[:, None] * (singular * projected) ** 2 / total
        evidences.append(0.5 * (fitted - np.log(total)).sum(axis=1) - ODDS * rank)
        weights = variances[:, None] * singular * projected / total
        means.append(weights @ right @ prior.T)
    evidence = np.concatenate(evidences)
    weights = np.exp(evidence - evidence.max())
    return (weights / weights.sum()) @ np.concatenate(means)


def _svd(matrix):
    """Thin decomposition; divide and conquer, which is faster, fails for a few matrices."""
    try:
        return linalg.svd(matrix, full_matrices=False)
    except linalg.LinAlgError:
        return linalg.svd(matrix, full_matrices=False, lapack_driver="gesvd")


class Pool:
    """Equations moment = gram (b* - point), weighed by the precision of their noise.

    The noise of the Gram matrix acts on b* - point, so that an equation counts the more the nearer
    it was expanded.

    Parameters
    ----------
    first_moments : tuple of three pairs
        Means of e (r - m) w, of ee' and of the square of (r - m) w, each with the noise's scale.
    n : int
    curator : bool
    largest : float
        Largest variance of a coordinate of b that is thought possible.
    priors : list of ndarray of shape (p, p)
        Shapes of the prior of b, see :func:`posterior_mean`.
    deviation : float
        Of the target. A least-squares fit has no larger mean square than its target.

    Attributes
    ----------
    b : ndarray of shape (p,)
    variance : float
        Residual variance.
    noise : float
        Variance of the privacy noise of a coordinate of b, before shrinkage.
    """

    def __init__(self, first_moments, n, curator, largest, priors, deviation):
        moment, gram, square = first_moments
        self._n, self._curator, self._largest = n, curator, largest
        self._priors, self._most = priors, max(deviation**2, float(square[0]))
        self._grams = [gram]
        self._equations = [(moment[0], moment[1] ** 2, np.zeros(len(moment[0])))]
        self.b = np.zeros(len(moment[0]))
        floor = max(1e-6, square[1])
        self.variance = float(np.clip(square[0], floor, 1.0))
        matrix = self.gram()[1]
        for _ in range(ROUNDS + 1):
            self._solve()
            left = square[0] - 2.0 * self.b @ moment[0] + self.b @ matrix @ self.b
            self.variance = float(np.clip(left, floor, 1.0))

    def add(self, equation):
        """Solve again with one more Newton equation.

        Where residuals are clipped at few deviations its slope is gram times the part that is not
        cut, which is taken from the released square of the clipped residuals as if they were
        normal; at three deviations and more this changes nothing.
        """
        if not self._curator:  # other users each time
            self._n += equation.n
        kept, self.variance = equation.kept, equation.variance
        self._grams.append((equation.gram, equation.gram_scale))
        self._equations.append(
            (equation.moment / kept, (equation.moment_scale / kept) ** 2, equation.point)
        )
        for _ in range(ROUNDS):
            self._solve()

    def recentre(self, constant, location_scale, skew=None):
        """Undo what clipping skewed residuals did to the mean, where it is beyond doubt.

        What :meth:`excess` says is shrunk by its error (James-Stein), so that nothing happens where
        residuals are symmetric.

        Parameters
        ----------
        constant : ndarray of shape (p,)
            The vector v with psi'v = 1 for every record.
        location_scale : float
            Standard deviation of the noise of the released location.
        skew : float, default=None
            How far the clip may have moved the mean: a standard deviation. With wide clips that is
            much less than the noise of what the first moments say.

        Returns
        -------
        float
            By how much the mean was lowered.
        """
        found, variances = self.excess(constant, location_scale)
        precisions = 1.0 / variances
        shift = float(precisions @ found) / precisions.sum()
        shift *= max(0.0, 1.0 - SURE / max(precisions.sum() * shift**2, 1e-300))
        if skew is not None:
            shift *= skew**2 / (skew**2 + 1.0 / precisions.sum())
        self.b = self.b - constant * shift
        return shift

    def excess(self, constant, location_scale):
        """By how much the mean of the fit is above that of the target, where no residual is cut.

        Two released numbers tell it: the mean of the target, up to the weights (w < 1 moves the
        mean of the fit by a part of its spread), and the first moments along the constant, up to
        their noise.

        Returns
        -------
        (values, variances)
            Each an ndarray of shape (2,).
        """
        scale, matrix = self.gram()
        moment, variance, _ = self._equations[0]
        level = max(float(constant @ matrix @ constant), 0.1)  # mean of w^2
        sampling = self.variance / self._n
        mean = constant @ matrix @ self.b
        size, away = constant @ constant, self.b @ self.b
        by_moments = (mean - constant @ moment) / level
        first = (size * (variance + 0.5 * scale**2 * away)) / level**2 + sampling
        moved = weights_move_mean(level, float(self.b @ matrix @ self.b))
        second = location_scale**2 + sampling + moved
        return np.array([by_moments, mean / level]), np.array([first, second])

    @property
    def spread(self):
        """Root mean square of the fitted function."""
        return sqrt(max(float(self.b @ self.gram()[1] @ self.b), 0.0))

    def gram(self):
        """Scale of the noise of the pooled Gram matrix, and its positive part after shrinkage."""
        weights = np.array([1.0 / scale**2 for _, scale in self._grams])
        total = sum(weight * gram for weight, (gram, _) in zip(weights, self._grams, strict=True))
        scale = 1.0 / sqrt(weights.sum())
        self._raw = total / weights.sum()
        return scale, denoised_gram(self._raw, scale)

    def _solve(self):
        scale, gram = self.gram()
        precisions, moments = [], []
        for moment, variance, point in self._equations:
            away = self.b - point
            precisions.append(1.0 / (variance + DESIGN * scale**2 * (away @ away)))
            moments.append(moment + gram @ point)
        pooled = np.average(moments, axis=0, weights=precisions)
        level = max(float(np.trace(gram)) / len(gram), 1e-300)
        self.noise = 1.0 / (sum(precisions) * level**2)
        self.b = posterior_mean(
            gram,
            pooled,
            1.0 / sum(precisions),
            self.variance / self._n,
            self._priors,
            self._largest,
        )
        square = max(float(self.b @ gram @ self.b), float(self.b @ self._raw @ self.b))
        if square > self._most:
            self.b = self.b * sqrt(self._most / square)
