"""Whitening: features of about equal length in all directions; and what pools Gram matrices.

The pool of all released equations gives noise-aware estimates, without a price.
"""

from math import sqrt
from typing import Any

import numpy as np
from scipy import stats
from scipy.linalg import solve_triangular

from ..._linalg import row_norms
from ...privacy import TOLD_ABOVE
from .._moments import PRIOR_VARIANCES, SAMPLING
from ._queries import LENGTHS, SQUARES, LengthsQuery, MarginsQuery, Whitened, WhiteningQuery
from ._rules import normal_clip

ASKED = "point", "moment", "n", "moment_scale", "slope_scale"  # that a pool knows of each equation


def denoised_gram(gram, scale):
    """Eigenvalues and eigenvectors of an estimate of a symmetric matrix from a noisy one.

    It underrates neither the level nor leading directions. The mean of the James-Stein estimate
    towards the multiple of I of the same trace, which is good where eigenvalues are about equal,
    and of the rotationally invariant estimate for additive Gaussian noise (Bun, Allez, Bouchaud and
    Potters 2016), which is good where a few directions are far above the others: James-Stein
    divides all of them alike, and a Newton step along one that is underrated goes too far.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        A matrix of nonnegative eigenvalues plus GOE(scale).
    scale : float

    Returns
    -------
    (values, vectors, weight)
        No eigenvalue is negative. The weight in [0, 1] is James and Stein's of the noisy matrix.
    """
    p = len(gram)
    values, vectors = np.linalg.eigh(gram)  # the estimates have the directions of the matrix
    if not scale:
        return np.maximum(values, 0.0), vectors, 1.0
    trace = values.sum()
    level = max(trace / p, scale / sqrt(p))
    away, noise = values - level, scale**2 * (p * (p + 1) / 2.0 - 1.0)
    weight = max(0.0, 1.0 - noise / max(float(away @ away), 1e-300))
    first = weight * away + level
    if p == 1:
        return np.maximum(first, 0.0), vectors, weight
    variance = 0.5 * p * scale**2  # of the semicircle
    gaps = values[:, None] - values
    width = 2.0 * sqrt(variance / p)
    attraction = (gaps / (gaps**2 + width**2)).sum(axis=1) / p  # Hilbert transform of the spectrum
    second = np.maximum(values - 2.0 * variance * attraction, 0.0)
    second *= max(trace, scale * sqrt(p)) / max(second.sum(), 1e-300)
    return np.maximum(0.5 * (first + second), 0.0), vectors, weight


def fitted_shapes(values, vectors, priors):
    """Candidates L of a prior in the directions of G, each in a unit in which LL'G has the trace
    of G.

    Parameters
    ----------
    values, vectors : ndarray of shape (p,) and (p, p)
        Eigenvalues, none of them negative, and eigenvectors of G.
    priors : ndarray of shape (n_priors, p, k)
    """
    rotated, trace = vectors.T @ priors, values.sum()
    shares = np.einsum("ijk,ijk->ij", rotated, rotated) @ values
    units = trace / np.where(shares > 0.0, shares, trace or 1.0)  # a single one may be 0
    rotated *= np.sqrt(units)[:, None, None]
    return rotated


def prior_model(values, part, shapes):
    """What the posterior rests on but the noise: of moment = G b + error, b = tau L c.

    The error is privacy noise, and sampling where privacy noise is not small beside it: as epsilon
    grows nothing is shrunk, and b is the least-squares line of the records themselves.

    Parameters
    ----------
    values : ndarray of shape (p,)
        Eigenvalues of G, none of them negative.
    part : float
        Variance of the moment by sampling, which has a covariance like G, over that of the noise.
    shapes : ndarray of shape (n_priors, p, k)
        The candidates L, as `fitted_shapes` returns them.

    Returns
    -------
    (weights, squares, bases)
        Eigenvalues over the variance of the error in units of the noise; of L'G C^-1 G L for its
        covariance C, eigenvalues, and eigenvectors times L.
    """
    typical = max(float(values.mean()), 1e-300)
    weights = values / (1.0 + min(SAMPLING, part) / typical * values)
    known = shapes.transpose(0, 2, 1) @ ((values * weights)[:, None] * shapes)
    squares, bases = np.linalg.eigh(known)
    return weights, squares, shapes @ bases


def posterior_mean(vectors, moment, spread, model, variances, odds):
    """Mean of b for moment = G b + error under b = tau L c, c ~ N(0, I), averaged by evidence.

    A typical coordinate is shrunk by 1 / (1 + signal), for its signal tau^2 over its noise. That
    part has the prior of Jeffreys for a proportion, which is sqrt(signal) / (1 + signal) for
    log(tau). Where all log(tau) were as likely, most of them would be far below the noise, and weak
    signals were shrunk to nothing by how far down the candidates go.

    Parameters
    ----------
    vectors : ndarray of shape (p, p)
        Eigenvectors of G.
    moment : ndarray of shape (p,)
    spread : float
        Variance of the privacy noise of each coordinate.
    model : tuple
        What `prior_model` returns.
    variances : ndarray
        The candidates tau^2.
    odds : ndarray of shape (n_priors,)
        Logarithms of the odds against each L.
    """
    weights, squares, bases = model
    squares = squares / spread
    score = weights / spread * (vectors.T @ moment)
    along = (score @ bases)[:, None]  # one row for each prior
    total = 1.0 + variances[:, None] * np.maximum(squares, 0.0)[:, None]
    # log N(moment; 0, C + tau^2 G L L'G), C the covariance of the error, but what all have
    weights = variances[:, None] * along / total
    evidences = 0.5 * (weights * along - np.log(total)).sum(axis=2)
    signal = np.maximum(squares.sum(axis=1), 1e-300)[:, None] / len(moment) * variances
    evidences += 0.5 * np.log(signal) - np.log1p(signal) - odds[:, None]
    chances = np.exp(evidences - evidences.max())
    means = (chances / chances.sum())[:, None] @ weights
    return vectors @ (bases @ means.transpose(0, 2, 1)).sum(axis=0)[:, 0]


class Pool:
    """Equations moment = slope (b* - point), weighed by the precision of their noise.

    The noise of the slopes acts on b* - point, so that an equation counts the more the nearer it
    was asked. Where the link bends, too: the moment is that up to half of mean(e mu'' (psi'd)^2)
    with d = b* - point, a vector of at most half the square of d in the norm of the slope, since
    |mu''| <= mu' and |e| <= 1. Its direction is not known: it counts as noise of all coordinates.

    Parameters
    ----------
    size : int
        Length of b.
    deviation : float
        Deviation of the target. A least-squares fit has no larger mean square than its target.
    priors : list of ndarray of shape (p, p)
        Shapes of the prior of b, see :func:`posterior_mean`.
    odds : ndarray of shape (n_priors,)
        Logarithms of the odds against each.
    largest : float
        Largest variance of a coordinate of b that is thought possible.
    link : MeanLink
    length : float
        Root mean square length of a whitened row.
    curator : bool
        Whether all equations are of the same records, or of a part of them; else of disjoint ones.
    gram : tuple of (ndarray of shape (p, p), float), default=None
        Noisy mean of ee' and its scale, where the steps do not ask for their slopes: it is the
        slope of the line but for the part of the records that is cut, as of normal residuals.

    Attributes
    ----------
    b : ndarray of shape (p,)
        Starts at 0.
    variance : float
        Residual variance.
    noise : float
        Variance of the privacy noise of a coordinate of the pooled moment.
    """

    def __init__(self, size, deviation, priors, odds, largest, link, length, curator, gram=None):
        width = max(prior.shape[1] for prior in priors)
        self._priors = np.zeros((len(priors), size, width))
        for filled, prior in zip(self._priors, priors, strict=True):
            filled[:, : prior.shape[1]] = prior
        self._variances = PRIOR_VARIANCES[PRIOR_VARIANCES <= max(largest, PRIOR_VARIANCES[0])]
        self._link, self._curator, self._gram = link, curator, gram
        self._odds = odds if link.linear else np.append(odds, 0.0)
        self._equations: list = []
        self._asked: dict = {name: [] for name in ASKED}
        self._raw: Any = 0.0
        self._most, self._length = deviation**2, length
        self.b, self.variance = np.zeros(size), min(deviation**2, 1.0)
        self._origin = self.b

    def begin(self, b, variance):
        """Begin at this b, towards which the posterior is shrunk, and this residual variance.

        The target of other records may vary more: its range is all that bounds it.
        """
        self.b = self._origin = b
        self.variance, self._most = variance, 1.0

    def add(self, equation):
        """Solve again with one more equation."""
        if not self._equations:  # at 0
            self._most = max(self._most, equation.variance)
        self._equations.append(equation)
        for name, known in self._asked.items():
            known.append(getattr(equation, name))
        self._known = {name: np.array(known) for name, known in self._asked.items()}
        self.variance = equation.variance
        begin = self.b
        self._average_slopes()
        for part in (0.0, 0.5):  # noise of slopes at the last solution, then half way to this one
            self._solve(begin, part)
            if not self._link.linear:  # eta of a row of usual length moves by no more than this
                move = self.b - begin
                size = float(np.linalg.norm(move)) * self._length / self._link.signal
                self.b = begin + move / max(size, 1.0)

    def _average_slopes(self):
        """Mean of the slopes, weighed by their noise, and where the link bends by their distance.

        Slopes of two points differ by about the root of d / h of their size, where d is the square
        of the distance in the norm of the slope, and h the mean slope: as noise of each coordinate
        of a matrix of trace t, whose Frobenius norm is t / sqrt(p), that is t d length^2 / p^3.
        """
        if self._gram:
            if len(self._equations) == 1:  # all clips are as many deviations
                first = self._equations[0]
                kept = normal_clip(first.square, first.limit)[0]
                self._raw, self.scale = (kept * known for known in self._gram)
                self._decompose()
            return
        scales = self._known["slope_scale"]
        noises = np.maximum(scales, 1e-300) ** 2
        if len(noises) > 1 and not self._link.linear:
            aways = self.b - self._known["point"]
            squares = np.einsum("ij,ij->i", aways @ self.slope, aways)
            trace, p = float(np.trace(self.slope)), len(self.b)
            noises += trace * np.maximum(squares, 0.0) * self._length**2 / p**3
        weights = (1.0 / noises) / (1.0 / noises).sum()
        noise = weights * scales
        self.scale = sqrt(noise @ noise)
        if self._link.linear:  # weights of the others keep their ratios
            self._raw = self._raw + weights[-1] * (self._equations[-1].slope - self._raw)
        else:
            slopes = [eq.slope for eq in self._equations]
            self._raw = sum(w * slope for w, slope in zip(weights, slopes, strict=True))
        self._decompose()

    def _decompose(self):
        self._spectrum: Any = denoised_gram(self._raw, self.scale)[:2]
        values, vectors = self._spectrum
        self.slope: np.ndarray = (vectors * values) @ vectors.T
        priors = self._priors if self._link.linear else [*self._priors, self._even_prior()]
        self._shapes = fitted_shapes(values, vectors, np.asarray(priors))
        self._model: Any = None

    @property
    def spread(self):
        """Root mean square of the fitted function."""
        return sqrt(max(float(self.b @ self.slope @ self.b), 0.0))

    def _solve(self, begin, part):
        """Solve with weights and noise by the distance of the points to one near the solution.

        Where the noise of slopes is all there is, that at a far solution shrinks the next one to
        nothing, and that at nothing lets it go far: half way there both agree. What a link bends is
        counted from the point where the last equation was asked: that is then a Newton step
        wherever it is told from noise, and equations that are left behind do not hold it up.
        """
        p, trace = len(self.b), max(float(self.slope.trace()), 1e-300)
        known = self._known
        bends = begin - known["point"]
        aways = bends + part * (self.b - begin)
        distances = np.einsum("ij,ij->i", aways, aways)
        # GOE noise N: N u has the variance |u|^2 along u and half of it across, on average 3/4
        noises = known["moment_scale"] ** 2 + 0.75 * self.scale**2 * distances
        counts = known["n"]
        if self._curator:  # those of a part of the records have its sampling error
            noises = noises + self.variance * trace / p * (1.0 / counts - 1.0 / counts.max())
        errors = noises
        if not self._link.linear:
            errors = noises + np.einsum("ij,ij->i", bends @ self.slope, bends) ** 2 / (4.0 * p)
        weights = 1.0 / np.maximum(errors, 1e-300)
        weights /= weights.sum()
        moment = weights @ known["moment"] + self.slope @ (weights @ known["point"] - self._origin)
        # Variance of the target over the slope of its mean, which is 1 for a line
        dispersion = self.variance / (1.0 if self._link.linear else trace / self._length**2)
        self.noise = float(weights**2 @ noises)
        sampling = dispersion / (counts.max() if self._curator else counts.sum()) * trace / p
        # What sampling adds to the noise changes little from step to step of one slope
        part, before = sampling / max(self.noise, 1e-300), self._model
        if not (self._gram and before and 0.8 <= (1.0 + part) / (1.0 + before[0]) <= 1.25):
            self._model = part, prior_model(self._spectrum[0], part, self._shapes)
        self.b = self._origin + posterior_mean(
            self._spectrum[1], moment, self.noise, self._model[1], self._variances, self._odds
        )
        square = max(float(self.b @ self.slope @ self.b), float(self.b @ self._raw @ self.b))
        if self._link.linear and square > self._most:
            self.b = self.b * sqrt(self._most / square)

    def _even_prior(self):
        """Shape of a prior by which every direction explains about as much.

        Of a link that bends, whose signal is often in directions that whitening could not stretch:
        there equal coefficients are shrunk too much. Directions below the noise of the slope count
        as those that just reach it.
        """
        values, vectors = self._spectrum
        least = max(self.scale * sqrt(2.0 * len(values)), 1e-14 * float(values.max()), 1e-300)
        shape = vectors / np.sqrt(np.maximum(values, least))
        return np.hstack([shape, np.zeros((len(values), self._priors.shape[2] - len(values)))])


ROUNDS = 3  # for directions of little variance to rise above the noise
# A feature counts as having that part of the typical mass: with half of it, features that move
# together and are skewed stay hidden; with a tenth, rare categories are stretched without end.
LEAST_MASS = 0.25
# Rows are shortened in steps of 2^(1/4), by as much as 16.
SHORTER = 2.0 ** (-np.arange(17) / 4.0)
MOST_CUT_OFF = 0.1  # part of the squared lengths that weights may cut off


def whitening_parts(session, rules):
    """Secret random parts of the records, for each round.

    With few records the rows of the last round cannot be short, and a fourth round would sharpen
    noise; where steps do not ask their slopes, there is a look at the rows in its place. Where not
    all are needed each round asks twice as many as the one before: what it finds is whitened again.
    All parts are asked for at once, so that rows of files are read once for them.
    """
    rounds = ROUNDS + (_short(rules) < 1.0 or not rules.slopes) if rules.whitening else 0
    halves = range(rounds - 1, -1, -1) if rules.subset < 1.0 else [0] * rounds
    return [session.part(rules.subset * 0.5**half) for half in halves]


def _short(rules):
    """Part of their length that rows have in a fourth round, which sees far rows with weights of 1:
    else they hide what they add to the Gram matrix, and are further still once it is whitened.
    """
    return min(1.0, rules.shortest / rules.length)


def learn_whitening(session, rows, rules, start=None):
    """W such that W phi has about equal length in all directions that are above the noise.

    Under a curator the rounds ask secret random parts of the records, where these are enough. With
    a start its Gram matrix is the first round, and one more is asked.

    Returns
    -------
    (W, length, gram)
        The root mean square length of a row W phi, as far as weights leave it whole; the Gram
        matrix of the rows with the scale of its noise, or None where steps ask their slopes.
    """
    p = rows.size
    parts = whitening_parts(session, rules)
    first = None
    if start:
        W = _whiter(start.W, start.gram, start.scale, rules)
        parts = parts[-1:]
    elif rules.margins:
        W = first = scaled(session, rows, rules, parts[-1])
    else:
        W = np.eye(p)
    for number, subset in enumerate(parts):
        W = (_short(rules) if number == ROUNDS and rules.slopes else 1.0) * W
        look = number == ROUNDS and not rules.slopes
        asked = WhiteningQuery(Whitened(rows, W), kept=look)
        gram, scale = asked.gram(session.sum(asked, rules.whitening / len(parts), subset))
        if look:
            return W, rules.length, (gram, scale)
        if first is not None:
            gram = filled(gram, solve_triangular(first.T, W.T, lower=True).T)
        W = _whiter(W, gram, scale, rules)
    if not rules.lengths:
        return W, rules.length, None
    query = LengthsQuery(Whitened(rows, W))
    answer = session.sum(query, rules.lengths, session.part(rules.subset))
    shorter = shortening(answer.value / answer.n, answer.noise.scale / answer.n, rules, p)
    return _longest(shorter * W), shorter * rules.length, None


def _whiter(W, gram, scale, rules):
    """W after one more round, which found this Gram matrix with noise of this scale."""
    p = len(W)
    values, vectors, weight = denoised_gram(gram, scale)
    ridge = weight * scale * sqrt(0.5 * p)  # half of the operator norm that the noise would have
    values = np.maximum(values + ridge, max(weight * scale, 1e-14 * values.max()))
    W = (vectors * values**-0.5) @ vectors.T @ W
    # The sum is the number of directions that are above the noise.
    W *= rules.length / sqrt(max((np.maximum(values - ridge, 0.0) / values).sum(), 1.0))
    # Rotated: cheaper to apply, and otherwise the same
    return np.asarray(np.linalg.qr(_longest(W), mode="r"))


def scaled(session, rows, rules, part):
    """W of features with mean 0 and variance 1, as far as their released margins tell them.

    A matrix of p (p + 1) / 2 numbers has noise whose operator norm is sqrt(2 p) times that of one
    of them; that of a feature's mean and square is of its own, and each of them uses its whole
    range. Variances count as one deviation of their noise more than is released, so that a feature
    that is hardly seen, as a rare category is, is not stretched beyond that.
    """
    d, (long, short) = rows.n_features, rows.parts
    answer = session.sum(MarginsQuery(rows), rules.margins, part)
    mean, square = answer.value.reshape(2, d) / answer.n
    noise = answer.noise.scale / answer.n
    variance = np.maximum(square / SQUARES - mean**2 + noise**2, 0.0) + noise / SQUARES + noise**2
    # James and Stein's means of features, towards the middle of their ranges
    mean = mean * max(0.0, 1.0 - d * noise**2 / max(float(mean @ mean), 1e-300))
    W = np.eye(rows.size) / short
    W[:d, :d] *= short / long * sqrt(d)
    W[:d, d] = -np.clip(mean, -1.0, 1.0) / short
    W[:d] /= np.sqrt(np.clip(variance, 1e-14, 1.0))[:, None]
    return _longest(rules.length / sqrt(rows.size) * W)


def filled(gram, turn):
    """Gram matrix of turned rows, where no feature has less than LEAST_MASS of the typical mass.

    Before the turn features have about equal mean squares, so that a feature with less in the Gram
    matrix has it in rows that weights cut: those of a rare category. To stretch it would cut them
    further. What is missing is put back as if it moved with no other feature; so a direction is
    stretched where its features are seen and cancel, and not where rows are cut. The typical mass
    is the mean over mass, not over features: those that are cut may be the most. The last row is
    that of the constant, which is never cut.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
    turn : ndarray of shape (p, p)
        Matrix of the turn, upper triangular: its inverse leads back to features.
    """
    back = solve_triangular(turn, np.eye(len(turn)))
    mass = np.einsum("ij,ij->i", back @ gram, back)
    seen = np.maximum(mass[:-1], 0.0)
    least = LEAST_MASS * float(seen @ seen) / max(float(seen.sum()), 1e-300)
    return gram + (turn * np.maximum(least - mass, 0.0)) @ turn.T


def shortening(parts, noise, rules, p):
    """Factor in (0, 1] on whitened rows, by what is released of their lengths.

    With rows of squared length A on average, of which weights leave T, predictions have privacy
    noise of A (2 k p / (N T))^2 over the share of the steps, as part of the residual variance.
    Where a few rows are far from the others, as those of a rare category are, A is much more than
    T: shorter rows have less noise, until T itself falls. They have less bias as well, since far
    rows whose weights are below 1 hardly count for the line that is to predict them, too. So the
    length is the one of least noise or, as long as weights cut off more than a tenth of A, shorter
    still.

    Parameters
    ----------
    parts : ndarray of shape (len(LENGTHS) + 1,)
        Noisy part of the rows in each class of lengths.
    noise : float
    rules : Rules
    p : int
    """
    parts = believed(parts, noise)
    if not parts.sum():
        return 1.0
    ends = np.array([0.5 * LENGTHS[0], *LENGTHS, 2.0 * LENGTHS[-1]])
    squares = ends[1:] * ends[:-1]  # the middle of a class
    factors = SHORTER[: max(1, np.count_nonzero(rules.length * SHORTER >= rules.shortest))]
    scaled = squares * factors[:, None] ** 2
    whole, left = (lengths @ parts / parts.sum() for lengths in (scaled, np.minimum(scaled, 1.0)))
    noises = 2.0 * rules.clip * p / (rules.effective_records * left)
    variance = whole * noises**2 / sum(rules.steps)
    chosen = int(np.argmin(variance))
    few = np.flatnonzero(left[chosen:] >= (1.0 - MOST_CUT_OFF) * whole[chosen:])
    return float(factors[chosen + few[0]] if len(few) else factors[-1])


def believed(parts, noise):
    """Noisy parts, and 0 for those that noise may explain.

    Noise passes for one of them as rarely as it does for one number at TOLD_ABOVE deviations.
    """
    least = stats.norm.isf(stats.norm.sf(TOLD_ABOVE) / len(parts))
    return np.where(parts > least * noise, parts, 0.0)


def _longest(W):
    """The same, longer where no row is as long as 1: that costs no weight."""
    if row_norms(W).max() >= 1.0:  # a bound that costs nothing
        return W
    return W / min(1.0, float(np.linalg.norm(W, 2)))
