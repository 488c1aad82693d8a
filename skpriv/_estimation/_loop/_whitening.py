"""Whitening of rows, and the pool of released equations.

Whitened rows have about the same mean square in every direction. The pool combines all equations
that were released so far into one estimate, which costs no privacy.
"""

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import lapack

from ..._linalg import norm_of, psd_part, quadratic_forms, row_norms, trace_of
from ...records import in_threads
from .._moments import PRIOR_VARIANCES, SAMPLING
from .._persons import of_several_rows
from ._rows import SQUARES, MarginsQuery, Whitened, WhiteningQuery
from ._rules import MARGINS_NOISE, RESOLVED, ROUNDS, STRETCHED, Rules, normal_clip

if TYPE_CHECKING:
    from ...privacy import Piece, Session, SessionPart
    from ..._contracts import Array
    from .._links import StepLink
    from .._public_maps import RecordMap, RowMap
    from ._score import ScoreEquation


def denoised_gram(gram: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Eigenvalues and eigenvectors of an estimate of a symmetric matrix from a noisy one.

    The estimate is the mean of two others. James and Stein's shrinks towards the multiple of I with
    the same trace; it is good where eigenvalues are about equal. The rotationally invariant one for
    additive Gaussian noise (Bun, Allez, Bouchaud and Potters 2016) is good where a few eigenvalues
    are far above the others. James and Stein's shrinks these as much as all others, and a Newton
    step along a direction whose eigenvalue is too small goes too far.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        A matrix of nonnegative eigenvalues plus GOE(scale).
    scale : float

    Returns
    -------
    (values, vectors, weight)
        No eigenvalue of the estimate is negative. The weight, in [0, 1], is that of the noisy
        matrix in James and Stein's estimate.
    """
    p = len(gram)
    values, vectors = np.linalg.eigh(gram)  # both estimates keep the eigenvectors
    if not scale:
        return np.maximum(values, 0.0), vectors, 1.0
    trace = values.sum()
    level = max(trace / p, scale / sqrt(p))
    away = values - level
    noise = scale**2 * (p * (p + 1) / 2.0 - 1.0)
    weight = max(0.0, 1.0 - noise / max(away @ away, 1e-300))
    first = weight * away + level
    # The semicircle of the noise has the variance p scale^2 / 2
    gaps = values[:, None] - values
    attraction = (gaps / (gaps**2 + 2.0 * scale**2)).sum(axis=1)  # Hilbert transform, times p
    second = np.maximum(values - scale**2 * attraction, 0.0)
    second *= max(trace, scale * sqrt(p)) / max(second.sum(), 1e-300)
    return np.maximum(0.5 * (first + second), 0.0), vectors, weight


def prior_model(
    part: float, priors: np.ndarray, values: np.ndarray, vectors: np.ndarray, n_jobs: int | None = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The part of the posterior of b = tau L c that does not depend on the size of the noise.

    The observation is moment = G b + error. The error is privacy noise and sampling error.

    Parameters
    ----------
    part : float
        Sampling variance of the moment, whose covariance is like G, over the noise variance.
    priors : ndarray of shape (n_priors, p, k)
        The candidates L. They are scaled so that LL'G has the trace of G.
    values, vectors : ndarray of shape (p,) and (p, p)
        Eigenvalues, none of them negative, and eigenvectors of G.
    n_jobs : int or None, default=1
        Threads that decompose at the same time.

    Returns
    -------
    (precision, squares, bases, certain)
        The diagonal of G C^-1, with the error covariance C in units of the noise variance; the
        eigenvalues of L'G C^-1 G L, one row for each L; L times its eigenvectors, side by side; and
        the diagonal of C^-1. All are in the basis of the eigenvectors of G, in which G and C are
        diagonal.
    """
    trace = max(values.sum(), 1e-300)
    certain = 1.0 / (1.0 + part * len(values) / trace * values)
    precision = values * certain

    def decomposed(some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rotated = vectors.T @ some
        shares = np.square(rotated).sum(axis=2) @ values
        units = trace / np.where(shares > 0.0, shares, trace)  # a share may be 0
        rotated *= np.sqrt(units)[:, None, None]
        scaled = np.sqrt(values * precision)[:, None] * rotated
        squares, bases = np.linalg.eigh(scaled.transpose(0, 2, 1) @ scaled)
        return squares, rotated @ bases

    # To decompose so many columns takes longer than to wake a thread
    parts = priors[:, None] if len(values) >= 300 else [priors]
    squares, bases = map(np.concatenate, zip(*in_threads(decomposed, parts, n_jobs, True)))
    return precision, np.maximum(squares, 0.0), np.concatenate([*bases], axis=1), certain


def posterior_mean(
    moment: np.ndarray,
    origins: np.ndarray,
    spread: float,
    model: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    variances: np.ndarray,
    odds: np.ndarray,
) -> "Array":
    """Mean of b for moment = G b + error under b = tau L c, c ~ N(0, I), averaged by evidence.

    A typical coordinate is shrunk by the factor 1 / (1 + signal), where the signal is tau^2 over
    the noise variance. This factor has Jeffreys' prior for a proportion, so that log(tau) has the
    density sqrt(signal) / (1 + signal). With a flat prior of log(tau) most candidates would be far
    below the noise, and weak signals would be shrunk to zero.

    Parameters
    ----------
    moment : ndarray of shape (n_origins, p)
        That of b less each origin, which are as likely. Its coordinates are in the basis of the
        eigenvectors of G, as are those of the mean.
    origins : ndarray of shape (n_origins, p)
    spread : float
        Variance of the privacy noise in each coordinate.
    model : tuple
        What `prior_model` returns.
    variances : ndarray
        The candidates tau^2.
    odds : ndarray of shape (n_priors,)
        Logarithms of the odds against each L.
    """
    precision, squares, bases, certain = model
    n_origins, p = moment.shape
    n_priors, size = squares.shape
    along = (precision * moment / spread @ bases).reshape(n_origins, n_priors, 1, size)
    total = 1.0 / variances[:, None] + squares[:, None] / spread
    solutions = along / total  # one row for each origin, prior and candidate
    # log N(moment; 0, C + tau^2 G L L'G) up to a constant, where C is the error covariance
    evidences = (solutions * along - np.log(total)).sum(axis=3)
    if n_origins > 1:
        evidences -= (moment**2 @ certain / spread)[:, None, None]
    signal = np.maximum(squares.sum(axis=1) / spread, 1e-300)[:, None] / p * variances
    evidences += np.log(signal) - size * np.log(variances)
    chances = np.exp(0.5 * (evidences - evidences.max()) - odds[:, None]) / (1.0 + signal)
    chances /= chances.sum()
    means = (chances[:, :, None] @ solutions).sum(axis=0)
    return bases @ means.ravel() + chances.sum(axis=(1, 2)) @ origins


class Pool:
    """Equations moment = slope (b* - point), weighted by the precision of their noise.

    The noise of a slope is multiplied by d = b* - point, so an equation has the more weight the
    nearer to b* it was asked. If the link is not linear, the equation holds up to half of
    mean(e mu'' (psi'd)^2). This vector is at most half of the square of d in the norm of the slope,
    because |mu''| <= mu' and |e| <= 1. Its direction is unknown, so it counts as noise in all
    coordinates.

    Parameters
    ----------
    size : int
        Length of b.
    deviation : float
        Standard deviation of the target.
    priors : list of ndarray of shape (p, p)
        Shapes of the prior of b, see :func:`posterior_mean`.
    odds : ndarray of shape (n_priors,)
        Logarithm of the odds against each shape.
    largest : float
        Largest prior variance of a coordinate of b.
    link : StepLink
    length : float
        Root mean square length of a whitened row.
    curator : bool
        Whether all equations are about the same records or parts of them; if not, each is about
        records of its own.
    gram : tuple of (ndarray of shape (p, p), float), default=None
        The noisy mean of ee' and the scale of its noise, where steps do not ask for slopes. The
        slope of a line is this matrix times the fraction of records whose residuals are not
        clipped; the fraction is that of normal residuals.
    n_jobs : int or None, default=1
        Threads that decompose large matrices.
    most_sampling : float, default=10
        Variance of sampling over that of privacy noise up to which it counts. So a line is not
        shrunk as epsilon grows, and becomes that of the records themselves.

    Attributes
    ----------
    b : ndarray of shape (p,)
        Starts at 0.
    variance : float
        Residual variance.
    noise : float
        Variance of the privacy noise of a coordinate of the pooled moment.
    """

    def __init__(
        self,
        size: int,
        deviation: float,
        priors: list[np.ndarray],
        odds: np.ndarray,
        largest: float,
        link: "StepLink",
        length: float,
        curator: bool,
        gram: tuple[np.ndarray, float] | None = None,
        n_jobs: int | None = 1,
        most_sampling: float = SAMPLING,
    ) -> None:
        width = max(prior.shape[1] for prior in priors)
        self._priors = np.zeros((len(priors) + (not link.linear), size, width))
        for place, prior in zip(self._priors, priors):
            place[:, : prior.shape[1]] = prior
        self._variances = PRIOR_VARIANCES[PRIOR_VARIANCES <= max(largest, PRIOR_VARIANCES[0])]
        self._link = link
        self._curator = curator
        self._gram = gram
        self._n_jobs = n_jobs
        self._most_sampling = most_sampling
        self._odds = odds if link.linear else np.append(odds, 0.0)
        # Point and moment of each equation, and its number of records and scales
        self._pairs = np.empty((0, 2, size))
        self._numbers = np.empty((0, 3))
        self._slopes: list[np.ndarray] = []
        self._noisy_slope: Any = 0.0
        self._length = length
        self.b = np.zeros(size)
        self.variance = min(deviation**2, 1.0)
        self._origins = np.zeros((1, size))
        self._last_step = self.b
        # If the link bends, a row of usual length moves by half of the deviation of linear parts
        self._longest_step = 0.5 * (link.signal or 0.0) * sqrt(link.parts) / length

    def begin(self, b: np.ndarray, like_start: Any) -> None:
        """Shrink the posterior towards this b as well as towards 0.

        If like records were asked, it is shrunk towards this b alone, at which the steps begin.
        """
        self._origins = np.stack([b] if like_start else [self.b, b])
        if like_start:
            self.b = b
            self.variance = like_start.variance

    def add(self, equation: "ScoreEquation") -> None:
        """Solve again with one more equation."""
        first = not len(self._pairs)
        self.variance = equation.variance
        self._pairs = np.concatenate([self._pairs, [(equation.point, equation.moment)]])
        self._numbers = np.concatenate(
            [self._numbers, [(equation.n, equation.moment_scale, equation.slope_scale)]]
        )
        if not self._gram:
            self._average_slopes(equation.slope)
        elif first:  # later clips are the same number of deviations
            uncut = normal_clip(equation.square, equation.limit)[0]
            gram, scale = self._gram
            self.scale = uncut * scale
            self._decompose(*denoised_gram(uncut * gram, self.scale))
        self._solve()

    def _average_slopes(self, slope: np.ndarray) -> None:
        """Mean of the slopes, weighted by their noise and, if the link bends, by their distance.

        The relative difference of the slopes at two points is about sqrt(d / h), where d is the
        squared distance in the norm of the slope and h is the mean slope. For a matrix of trace t,
        whose Frobenius norm is about t / sqrt(p), this counts as noise of variance
        t d length^2 / p^3 in each coordinate.
        """
        scales = self._numbers[:, 2]
        noises = np.maximum(scales, 1e-300) ** 2
        if len(noises) > 1 and not self._link.linear:
            squares = quadratic_forms(self.b - self._pairs[:, 0], self.slope)
            trace = trace_of(self.slope)
            p = len(self.b)
            noises += trace * np.maximum(squares, 0.0) * self._length**2 / p**3
        weights = 1.0 / noises
        weights /= weights.sum()
        noise = weights * scales
        self.scale = sqrt(noise @ noise)
        if self._link.linear:  # the ratios of the earlier weights do not change
            self._noisy_slope += weights[-1] * (slope - self._noisy_slope)
        else:
            self._slopes.append(slope)
            self._noisy_slope = np.tensordot(weights, self._slopes, 1)
        self._decompose(*denoised_gram(self._noisy_slope, self.scale))

    def _decompose(self, values: np.ndarray, vectors: np.ndarray, _: float) -> None:
        """Take up the slope that `denoised_gram` found."""
        self._spectrum: Any = values, vectors
        self.slope: np.ndarray = (vectors * values) @ vectors.T
        if not self._link.linear:
            # A prior under which every direction explains about the same variance. The signal is
            # often in directions that whitening could not stretch, where one of equal coefficients
            # shrinks too much. Eigenvalues below the noise of the slope are raised to it.
            least = max(self.scale * sqrt(2.0 * len(values)), 1e-14 * values.max(), 1e-300)
            self._priors[-1, :, : len(values)] = vectors / np.sqrt(np.maximum(values, least))
        self._model: Any = None

    def _solve(self) -> None:
        """Solve, where weights and noise follow from distances to a point near the solution.

        If slope noise dominates, the noise at a distant solution would shrink the next solution to
        zero, and the noise at zero would let it go far. So it is counted at the last solution
        first, and then half way to the new one. The curvature of the link is counted from the point
        of the last equation: the solution is then a Newton step from there wherever it exceeds the
        noise, and old equations do not slow it down.
        """
        start = self.b
        linear = self._link.linear
        values, vectors = self._spectrum
        p = len(start)
        trace = max(values.sum(), 1e-300)
        counts = self._numbers[:, 0]
        from_points = start - self._pairs[:, 0]
        noises = self._numbers[:, 1] ** 2
        bend: Any = 0.0
        if self._curator:  # equations of a part of the records have its sampling error
            noises += self.variance * trace / p * (1.0 / counts - 1.0 / counts.max())
        # Variance of the target over the slope of its mean; that slope is 1 for a line
        dispersion = self.variance
        if not linear:
            dispersion /= trace / self._length**2
            bend = quadratic_forms(from_points, self.slope) ** 2 / (4.0 * p)
        sampling = dispersion / (counts.max() if self._curator else counts.sum()) * trace / p
        # In the basis of its eigenvectors the slope is diagonal: products by it are short
        pairs = self._pairs.reshape(len(counts), -1)
        origins = self._origins @ vectors
        for part in (0.0, 0.5):
            aways = from_points + part * (self.b - start)
            # GOE noise N: N u has the variance |u|^2 along u and half of it across; 3/4 is between
            errors = noises + 0.75 * self.scale**2 * np.square(aways).sum(axis=1)
            weights = 1.0 / np.maximum(errors + bend, 1e-300)
            weights /= weights.sum()
            self.noise = float(weights**2 @ errors)
            # While the slope stays, the ratio of sampling to noise seldom changes enough to matter
            ratio = sampling / max(self.noise, 1e-300)
            last_model = self._model
            if not (last_model and 0.8 <= (1.0 + ratio) / (1.0 + last_model[0]) <= 1.25):
                part = min(ratio, self._most_sampling)
                self._model = ratio, prior_model(part, self._priors, values, vectors, self._n_jobs)
            point, moment = (weights @ pairs).reshape(2, p) @ vectors
            moments = values * (point - origins) + moment
            b = posterior_mean(
                moments, origins, self.noise, self._model[1], self._variances, self._odds
            )
            self.b = vectors @ b
            if not linear:
                self.b = start + self._shortened(self.b - start)

    def _shortened(self, move: np.ndarray) -> np.ndarray:
        """A step from the last solution, no longer than steps may be.

        Rows of a rare category may go so far that their slope is next to 0, and the step from there
        goes as far back. So a step that is too long and turns back halves what steps may be.
        """
        length = norm_of(move)
        if length > self._longest_step:
            self._longest_step *= 0.5 if move @ self._last_step < 0.0 else 1.0
            move *= self._longest_step / length
        self._last_step = move
        return move


# The least mass of a feature, as a fraction of the typical mass. With 1/2, skewed features that
# move together stay hidden; with 1/10, rare categories are stretched without limit.
LEAST_MASS = 0.25
AT_ENDS = 2.0  # deviations of noise by which a mean square may be below that of an indicator


def whitening_parts(session: "Session | SessionPart", rules: "Rules") -> "list[Piece | None]":
    """Secret random parts of the records, for each round.

    A fourth round is for records that are many enough for shorter rows; with few records it would
    sharpen noise. Distant rows have weights of 1 there: otherwise the weights hide what they add to
    the Gram matrix, and whitening by it moves them further away. If steps do not ask for slopes,
    the Gram matrix of the whitened rows is asked in its place. If not all records are needed, each
    round asks twice as many as the one before, since a later round corrects an earlier one. All
    parts are requested together, so that a file is read once for all of them.
    """
    rounds = ROUNDS + (rules.shortest < rules.length or not rules.slopes) if rules.whitening else 0
    halves = range(rounds - 1, -1, -1) if rules.subset < 1.0 else [0] * rounds
    return [session.piece(rules.subset * 0.5**half) for half in halves]


def learn_whitening(
    session: "Session | SessionPart",
    maps: "RecordMap",
    rules: "Rules",
    like_start: Any,
    usual: tuple[np.ndarray, np.ndarray] | None,
    longest: float,
) -> tuple[Whitened, tuple[np.ndarray, float] | None, Any]:
    """Rows W phi of about equal mean squares in all directions that exceed the noise.

    Under a curator the rounds may ask secret random parts of the records. If like records were
    asked, their Gram matrix is the first round, and only one more is asked. Where noise hides the
    margins of features, a public guess of them scales the rows that are asked first; with so few
    records that there is no whitening, all steps are asked about these rows.

    Parameters
    ----------
    session : Session
    maps : RecordMap
    rules : Rules
    like_start : Start or None
        A released fit of like records.
    usual : tuple of (ndarray of shape (p, p), ndarray of shape (n_features,)), or None
        The whitening by a public guess of the moments of features, and their variances.
    longest : float
        Largest length of a row where few records have no whitening.

    Returns
    -------
    (whitened, gram, indicators)
        The `Whitened` rows, and their Gram matrix with the scale of its noise, or None if steps ask
        for slopes. The last are the features that margins do not tell from indicators, and the
        constant; none where margins are not asked.
    """
    parts = whitening_parts(session, rules)
    W = np.eye(maps.size)
    indicators: Any = []
    to_even = None  # from W phi back to rows of about equal mean squares
    guarded: Any = 1.0  # to which part features are lifted, see `with_least_mass`
    looks: list[Any] = []
    if like_start:
        to_even = np.linalg.inv(like_start.whitening[0]) if rules.bends else None
        W = _next_whitening([like_start.whitening], rules, to_even, guarded)
        parts = parts[-1:]
    elif rules.margins:
        W, indicators = whitening_by_margins(session, maps.row_map, rules, parts[-1], usual)
        if rules.stretch:  # without a cliff: with four fifths of the noise it is below a tenth
            fading = STRETCHED * len(W) ** 1.5 / rules.effective_records
            guarded = np.maximum(indicators, fading**12)
        to_even, _ = lapack.dtrtri(W)
    elif usual:
        W = _lengthened(rules.length / sqrt(maps.size) * usual[0])
    elif rules.few_records:
        W = longest * W
    for number, subset in enumerate(parts):
        fourth = number == ROUNDS
        if fourth and rules.slopes:
            W = rules.shortest / rules.length * W
        last_look = fourth and not rules.slopes
        whitened = Whitened(maps.row_map, W, maps.target_map)
        query = WhiteningQuery(whitened, asked_again=last_look)
        gram, scale = query.gram(session.sum(query, rules.whitening / len(parts), subset))
        if last_look:
            return whitened, (gram, scale), indicators
        looks.append((W, gram, scale))
        W = _next_whitening(looks, rules, to_even, guarded)
        if to_even is None and rules.lifts:  # a line loses by it (docs/evidence/glm.md)
            to_even, _ = lapack.dtrtri(W)
    return Whitened(maps.row_map, W, maps.target_map, of_several_rows(session)), None, indicators


def _next_whitening(
    looks: list[Any], rules: "Rules", to_even: np.ndarray | None, guarded: float | np.ndarray
) -> np.ndarray:
    """W after one more round, by all looks: their W, the Gram matrix that they released, and the
    scale of its noise.

    Rows have at least the Gram matrix that a look saw, since it shortens them. Later looks shorten
    more of them, and each would stretch a feature with far rows further, as if it were a narrow
    one. So where the length of a line is asked, the Gram matrix of the rows, as the last look has
    it, is raised to that of looks before, where it has more mass than the operator norm of their
    noise: the others are narrow directions, of which later looks know more.

    The ridge is half of the operator norm of the noise, and all of it where a link bends and the
    Gram matrix is resolved. Directions of noise that are stretched further have rows longer than 1,
    whose weights move the curve away from that of maximum likelihood (docs/evidence/glm.md).
    """
    W, gram, scale = looks[-1]
    p = len(W)
    if to_even is not None:
        gram = with_least_mass(gram, W @ to_even, guarded)
    values, vectors, weight = denoised_gram(gram, scale)
    norm = sqrt(2.0 * p)  # operator norm of noise with the scale 1
    resolution = rules.bends * rules.effective_records / p**1.5  # 0 of a line
    ridge = weight * scale * norm * min(max(0.5, resolution / RESOLVED), 1.0)
    values = np.maximum(values + ridge, max(weight * scale, 1e-14 * values.max()))
    root = vectors * values**-0.25  # of a matrix and itself BLAS computes one half
    W = root @ root.T @ W
    for before, seen, noise in looks[:-1] if rules.stretch else ():
        turn = before @ np.linalg.inv(W)
        mass = turn @ turn.T
        part = np.linalg.solve(mass + noise * norm * np.eye(p), mass)
        mass += psd_part(part @ (seen - mass) @ part)
        W = psd_part(mass, 1e-15, -0.5) @ before
    # The sum is the number of directions that exceed the noise.
    W *= rules.length / sqrt(max((np.maximum(values - ridge, 0.0) / values).sum(), 1.0))
    # An upper triangular W differs by a rotation only. `with_least_mass` takes it back to features.
    return np.asarray(np.linalg.qr(_lengthened(W), mode="r"))


def whitening_by_margins(
    session: "Session | SessionPart",
    row_map: "RowMap",
    rules: "Rules",
    part: "Piece | None",
    usual: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """W that gives features mean 0 and variance 1 by released margins, and which are indicators.

    The noise of a matrix has an operator norm sqrt(2 p) times as large as the noise of one entry;
    the mean and the mean square of a feature have the noise of one number each. One standard
    deviation of the noise is added to each released variance, so that a feature that rarely varies,
    such as a rare category, is not stretched beyond what the noise allows. A feature with the range
    (0, 1) is an indicator where noise may explain what its mean square lacks to that of values at
    the two ends.

    A public guess makes variances smaller, by a factor of up to 16 where margins are just asked.
    The factor is 1 from half of that noise on: features with far rows lose by smaller units, and
    others gain no more (docs/evidence/few_records.md).
    """
    d = row_map.n_features
    answer = session.sum(MarginsQuery(row_map), rules.margins, part)
    mean, square = answer.value.reshape(2, d) / answer.n
    noise = answer.mean_scale
    variance = np.maximum(square / SQUARES - mean**2 + noise**2, 0.0) + noise / SQUARES + noise**2
    if usual:
        room = max(1.0, 2.0 * noise / (SQUARES * MARGINS_NOISE)) ** 4
        variance = usual[1].clip(variance / room, variance)
    # James and Stein's estimate shrinks the means towards the middles of the ranges.
    mean *= max(0.0, 1.0 - d * noise**2 / max(mean @ mean, 1e-300))
    W = row_map.whitening(mean.clip(-1.0, 1.0), variance)
    W = _lengthened(rules.length / sqrt(row_map.size) * W)
    at_ends = square > SQUARES - AT_ENDS * noise
    return W, np.append(row_map.may_be_indicators & at_ends, True)


def with_least_mass(gram: np.ndarray, turn: np.ndarray, guarded: float | np.ndarray) -> "Array":
    """Gram matrix of turned rows, where no indicator has less than LEAST_MASS of the typical mass.

    Before the turn features have about equal mean squares; after a first round, or the fit of like
    records, coordinates have, and stand for them. If a feature has less mass in the Gram matrix,
    weights have shortened its rows, as happens to a rare category, and to stretch it would shorten
    them further. The missing mass is added as if the feature were independent of the others. A
    direction is then stretched where its features cancel each other, and not where rows were
    shortened. The typical mass is a mean weighted by mass, because shortened features may be the
    majority, or all: it has the constant in it, the last row, which is never shortened. A feature
    with many times its mass was stretched too far, since noise made its released variance too
    small. It counts as no more than twice the constant: otherwise it would lift all others, though
    nothing was cut, and this hides the directions in which they cancel each other.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
    turn : ndarray of shape (p, p)
        Upper triangular matrix of the turn; its inverse leads back to features.
    guarded : ndarray of shape (p,), or float
        The part of LEAST_MASS to which a feature is lifted.
    """
    back, _ = lapack.dtrtri(turn)
    mass = np.einsum("ji,ij->i", gram @ back.T, back)
    seen = mass.clip(0.0, 2.0 * max(mass[-1], 0.0))
    least = guarded * LEAST_MASS * (seen @ seen) / max(seen.sum(), 1e-300)
    shortened = mass < least
    return gram + (turn[:, shortened] * (least - mass)[shortened]) @ turn[:, shortened].T


def _lengthened(W: np.ndarray) -> "Array":
    """W, made longer if no row can reach the length 1, so that still no row is shortened."""
    if row_norms(W).max() >= 1.0:  # the operator norm is at least that, and costs more to compute
        return W
    return W / min(1.0, norm_of(W, 2))
