"""Public rules: shares, clips and weights from the numbers of records and features and the noise.

All follow from two public numbers.

*Effective records* N = n mu under a curator, sqrt(n) mu of users who answer once: the number of
records over the noise of a sum of sensitivity 1 that has the whole budget. The mean of a vector in
the unit ball is known up to about 2 sqrt(p) / N. The noise of a whitened Gram matrix, whose
eigenvalues are about 1 / p, has the operator norm 2 sqrt(p) / N, so that the matrix is resolved
where the *resolution* N / p^1.5 is large.

*Precision* x = N / sqrt(n p): privacy noise beside sampling. With residuals clipped at k deviations
and rows of length 2.5 / k the privacy noise of a coefficient is about k^2 / (2.5 x) of its sampling
error. So k grows with x, and clips and weights fade where n or epsilon grow: the limit is least
squares. Where x is near 1, k is where the noise of a clipped mean, k / P(|z| < k), is least.

What each number is worth is measured in docs/evidence/linear_regression.md, unless said otherwise.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp, pi, sqrt

import numpy as np
from scipy.special import lambertw, ndtr

from ...privacy import SIDE_SHARE
from ._queries import IDENTITY, SQUARES

# Share of each question of one number or of a few: mean and spread of the target, lengths of rows
# or of persons' scores, mean of the residuals, line. Half and twice as much are worse.
QUESTION = SIDE_SHARE
# Share of what is learnt first, to ask the rest with less noise: the whitening, down to half of it
# where the Gram matrix is resolved; the mean where only it is asked, and half as much for the
# spread; of the line, the lengths of its scores. With few records 1.5 times as much for the mean:
# more loses slopes, and less loses where bounds are wide (docs/evidence/few_records.md).
LEARNT = 0.2
# Largest noise of a feature's squared deviation, in half-ranges, at which margins are asked first:
# no rotation spreads their noise over all directions.
MARGINS_NOISE = 0.125
# Least and largest number of steps, and that number times the resolution. Where noise rules, many
# small steps mend what one noisy Gram matrix did; four are what clips need that shrink with the
# residuals.
STEPS, STEPS_RESOLUTION = (4, 64), 160.0
# Share of the last step, from which certified intervals come, where the Gram matrix is resolved.
LAST_SHARE = 0.7
# Least number of steps where the link bends: the gain in log loss is flat from 6 to 24
# (docs/evidence/glm.md). Shares rise over them.
BENT_STEPS = 12
# Share of the mean of counts, which is a small part of the largest count and near its noise.
LAST_COUNT = 0.15
# Share of the count of clipped rows, from RESOLVED on, where there is budget to spare.
CLIPPED_SHARE = 0.005
# Resolution from which the Gram matrix is resolved: the noise of the whole budget has the operator
# norm of an eighth of a typical eigenvalue. The least-squares line is asked from there on: its
# equation has many times the noise of the steps.
RESOLVED = 16.0
# Resolution that the records of the whitening make, with ranges of features and without, where a
# feature may have any scale; and the number of records that take no time worth saving.
SUBSET_RESOLUTIONS, FEW_RECORDS = (100.0, 1e4), 1e5
# Part of the residual variance of predictions that privacy noise may be, whatever sampling is. Else
# it may be .4 of sampling, with rows no shorter than precision^-.25, so that clips still fade.
AFFORDABLE = 0.002
# Deviations at which "wide" clips: enough for skewed targets, and for coefficients.
WIDEST_CLIP = 6.0
# Length of a whitened row times k.
ROW_LENGTH = 2.5
SMALLEST_LIMIT = 0.5  # deviations: with residuals cut at fewer, their variance is not known


@dataclass(frozen=True)
class Rules:
    """What a fit does, decided before any record is read.

    Attributes
    ----------
    effective_records : float
        N.
    few_records : bool
        Whether rows are not whitened, since the records are too few.
    mean_only : bool
        Whether only the mean of the target can be found.
    location, spread, margins, whitening, lengths : float
        Shares of the queries; with those of the steps they add up to one. Those of the margins of
        features and of the lengths of rows are 0 if they are not asked.
    steps : tuple of float
        Shares of the steps, the last one of the whole sandwich.
    mean : float
        Share of the last look at the mean of the residuals, 0 without it.
    clipped : float
        Share of the count of rows that were clipped, 0 where noise would hide it.
    line : float
        Share of the equation of least squares or of the likelihood, 0 where it is not asked.
    clip : float
        k: deviations at which residuals are clipped.
    length : float
        Root mean square length of a whitened row. At sqrt(p / n) no weight is below 1, since the
        leverage p / n of the average record can grow to 1 at most: there is no need for less.
    shortest : float
        The least such length, at which a typical eigenvalue is told from noise.
    room : float
        Times the mean of counts: larger means count for less, as far rows do. Noise grows with it.
    whole : bool
        Whether the last step asks what is cut.
    subset : float
        Part of the records that the whitening asks.
    slopes : bool
        Whether steps ask their slopes; else the whitening has a last look.
    """

    effective_records: float
    few_records: bool
    mean_only: bool
    location: float
    spread: float
    margins: float
    whitening: float
    lengths: float
    steps: tuple
    mean: float
    line: float
    clipped: float
    clip: float
    length: float
    shortest: float
    room: float
    whole: bool
    subset: float
    slopes: bool

    @classmethod
    def of(
        cls, n, p, effective_records, clip="auto", fit_intercept=True, ranged=True, link=IDENTITY,
        counted=True, boxed=False,
    ):  # fmt: skip
        """Rules for n records, rows of length p and so many effective records.

        Parameters
        ----------
        clip : {"auto", "wide"}
            "wide" clips at 6 deviations at least, at any resolution, and takes two steps.
        ranged : bool
            Whether every feature has a public range, and not the norm of the row alone.
        link : Link
        counted : bool
            Whether clipped rows can be counted.
        boxed : bool
            Whether rows are features in a box and a constant, so that their margins can be asked.
        """
        N = effective_records
        resolution, precision = N / p**1.5, N / sqrt(n * p)
        few_records = N < link.enough(p)
        of_mean = not link.linear or fit_intercept and N < link.mean_effective_records
        mean_only = few_records and of_mean
        location, spread = QUESTION, QUESTION / 2.0
        if few_records:
            location, spread = LEARNT * (1.0 if mean_only else 1.5), LEARNT / 2.0
        if link.limit is not None:  # of two classes, whose spread follows from the mean
            spread = 0.0
        if not fit_intercept:  # the location is 0
            location = 0.0
        resolved = link.linear and resolution >= RESOLVED
        whitening = LEARNT * max(0.5, min(1.0, RESOLVED / resolution))
        rest = 1.0 - location - spread
        # Of a feature's mean square, in half-ranges
        margins = QUESTION * min(1.0, RESOLVED / resolution)
        noise = 2.0 * sqrt(p / (rest * margins)) / (SQUARES * N)
        # Counts and several classes lose by them (docs/evidence/glm.md)
        useful = link.parts == 1 and (link.linear or link.limit is not None)
        if few_records or not (boxed and useful) or noise > MARGINS_NOISE:
            margins = 0.0
        lengths = QUESTION if resolved else 0.0
        line = QUESTION if resolution >= RESOLVED and link.parts == 1 else 0.0
        number = STEPS_RESOLUTION / resolution
        last = LAST_SHARE * min(1.0, STEPS[0] / number)
        whole = number <= STEPS[0]
        number = max(STEPS[0] if link.linear else BENT_STEPS, round(min(number, STEPS[1])))
        last = max(1.0 / number, last)
        steps = [(1.0 - last) / (number - 1)] * (number - 1) + [last]
        if not link.linear:  # the first ones are asked too far away to stay in the pool
            sizes = [min(k, BENT_STEPS) for k in range(1, number + 1)]
            steps = [size / sum(sizes) for size in sizes]
        k = sqrt(max(sqrt(AFFORDABLE) * N / p, precision))
        k = max(1.0, min(ROW_LENGTH * sqrt(sqrt(precision)), k))
        if clip == "wide":
            k = max(k, WIDEST_CLIP)
        mean = QUESTION if link.linear else LAST_COUNT  # a wide clip leaves the mean as it is
        mean *= fit_intercept and link.limit is None and (k < ROW_LENGTH or not link.linear)
        length, shortest = ROW_LENGTH / k, min(1.0, sqrt(RESOLVED / resolution))
        if not link.linear:  # nothing is clipped that rows could be long for
            # Slopes that are a quarter of a typical one are told from noise as well, however large
            # the budget is (docs/evidence/glm.md).
            length = max(ROW_LENGTH / sqrt(precision), link.far * shortest)
        if few_records and link.linear:
            whitening, whole, length, mean = 0.0, False, 1.0, 1.5 * LEARNT * fit_intercept
            steps = [1.0 / STEPS[0]] * STEPS[0]
        enough = SUBSET_RESOLUTIONS[0 if ranged else 1]
        clipped = CLIPPED_SHARE if counted and resolution >= RESOLVED else 0.0
        left = rest * (1.0 - margins - whitening - lengths - mean - line - clipped)
        return cls(
            effective_records=N,
            few_records=few_records,
            mean_only=mean_only,
            location=location,
            spread=spread,
            margins=rest * margins,
            whitening=rest * whitening,
            lengths=rest * lengths,
            steps=tuple(left * step for step in steps),
            mean=rest * mean,
            line=rest * line,
            clipped=rest * clipped,
            clip=k,
            length=min(1.0, max(length, sqrt(p / n))),
            shortest=shortest,
            room=max(1.0, precision ** (1.0 / 3.0)),
            whole=whole,
            subset=part_needed(n, enough / resolution),
            # Where the noise of the whole budget hides typical eigenvalues, one look tells as much
            slopes=not link.linear or few_records or resolution >= RESOLVED / 8.0,
        )

    def begun(self):
        """The same where a released fit tells what is asked first: one round of whitening is left,
        which mends that of other records, and the rest is for the steps.
        """
        whitening = self.whitening / 3.0
        saved = self.location + self.spread + self.margins + self.whitening - whitening
        more = 1.0 + saved / sum(self.steps)
        steps = tuple(more * step for step in self.steps)
        return replace(
            self, mean_only=False, location=0.0, spread=0.0, margins=0.0, whitening=whitening,
            steps=steps, slopes=True,
        )  # fmt: skip

    def longer(self, slope):
        """The same with rows as much longer as it takes where the slope of the mean is small."""
        return replace(self, length=min(1.0, self.length / sqrt(slope)))

    @property
    def after_location(self):
        """Share of all that comes after the location and the spread of the target."""
        return 1.0 - self.location - self.spread


def mean_clip(noise):
    """Deviations k at which a look at the mean clips, for noise of k times this in deviations.

    Noise and twice `skewness_bias` have the least square together: (noise k)^2 + 16 exp(-2 k - 2).
    """
    return 0.5 * float(lambertw(32.0 * exp(-2.0) / noise**2).real)


def part_needed(n, part):
    """That part of n records, or all that are worth their time."""
    return min(1.0, max(part, FEW_RECORDS / n))


def skewness_bias(k):
    """How far clipping at k deviations moves a mean, in deviations: twice as far as it does that
    of exponential noise, since the deviation of clipped residuals comes out too small.
    """
    return 2.0 * exp(-k - 1.0)


def normal_clip(square, limit):
    """Part of the residuals within the limit, and their variance, if they are normal.

    Parameters
    ----------
    square : float
        Mean of the squares of residuals clipped at the limit.
    limit : float

    Returns
    -------
    (part, variance)
    """
    deviations, squares = _clipped_squares()
    ratio = square / limit**2
    if ratio <= squares[-1]:
        return 1.0, square
    k = float(np.interp(-ratio, -squares, deviations))
    return float(1.0 - 2.0 * ndtr(-k)), (limit / k) ** 2


@lru_cache(maxsize=1)
def _clipped_squares():
    """Limits k in deviations of a normal z, and E min(z^2, k^2) / k^2, which decreases."""
    k = np.geomspace(SMALLEST_LIMIT, 8.0, 400)
    tail, density = ndtr(-k), np.exp(-(k**2) / 2.0) / sqrt(2.0 * pi)
    return k, (1.0 - 2.0 * tail - 2.0 * k * density) / k**2 + 2.0 * tail
