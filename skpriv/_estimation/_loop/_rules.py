"""Public rules: shares, clips and weights from the numbers of records and features and the noise.

All follow from two public numbers. The *reach* N is the number of records over the noise of a sum
of sensitivity 1 that has the whole budget: n mu under a curator, sqrt(n) mu for users who answer
once. The mean of a vector in the unit ball is then known up to about 2 sqrt(p) / N, and a whitened
Gram matrix, whose eigenvalues are about 1 / p, up to sqrt(2 p) sqrt(2) / N in operator norm: it is
resolved where the resolution N / p^1.5 is large. The *precision* x = N / sqrt(n p) compares privacy
noise with sampling: with residuals clipped at k deviations and rows of length 2.5 / k, the privacy
noise of a coefficient is about k^2 / (2.5 x) of its sampling error. So k may grow with x, and clips
and weights fade where n or epsilon grow: the limit is least squares. Where x is near 1 the noise
rules: there the noise of a clipped mean, k / P(|z| < k) for a normal z, is what k is chosen for.
"""

from dataclasses import dataclass, replace
from math import exp, sqrt

from scipy.special import lambertw

from ...privacy import SIDE_SHARE
from ._links import IDENTITY
from ._queries import SQUARES

# Of the budget, each question of one number or of a few: the mean of the target, its spread, the
# lengths of rows or of persons' scores, the mean of the residuals, and the least-squares line.
QUESTION = SIDE_SHARE
# What is learnt first, to ask the rest with less noise: of all but questions the whitening, where
# the Gram matrix is not resolved, and down to half of that where it is; where only the mean is
# asked, a first look at it and half of that for the spread; of the line, the lengths of its scores.
# Of few records, half as much again for the mean, first and of the rest: more loses slopes, and
# less loses where bounds are wide (docs/evidence/few_records.md).
LEARNT = 0.2
# Means and squares of features come first, with a noise of their own that no rotation spreads over
# all directions: where the square of a deviation, in half-ranges, has at most this noise.
MARGINS_NOISE = 0.125
# Many small steps find what few large ones do not, where noise rules: a step with a noisy Gram
# matrix goes wrong in part, and the next ones mend that. So their number falls with the resolution,
# down to what clips need that shrink with the residuals; and the last one, from which certified
# intervals come, has the more the better the Gram matrix is known.
STEPS, STEPS_RESOLUTION = (4, 64), 160.0
LAST_SHARE = 0.7
# At least, where the link bends: the gain in log loss is flat from 6 to 24. Shares rise over them.
BENT_STEPS = 12
# A mean count is a small part of the largest one and near its noise: it takes more.
LAST_COUNT = 0.15
# Of the count of clipped rows, which a report speaks of above its noise, where there is budget to
# spare: from RESOLVED on
CLIPPED_SHARE = 0.005
# N / p^1.5 from which the Gram matrix is resolved: with the whole budget its noise would have the
# operator norm of an eighth of a typical eigenvalue. From there on the least-squares line is asked:
# its equation, which has no clips, has many times the noise of the steps, and below single
# coefficients are hidden anyway.
RESOLVED = 16.0
# The whitening asks as many records as make this resolution, and all of so few that their time does
# not matter: badly scaled features are whitened the better for it. Features without ranges of their
# own may have any scale: there the second resolution is asked.
SUBSET_RESOLUTIONS, FEW_RECORDS = (100.0, 1e4), 1e5
# k has as much privacy noise as is cheap, AFFORDABLE of the residual variance in predictions, or as
# is .4 of sampling; but with rows no shorter than precision^-.25, so that noise falls like the root
# of sampling and clips still fade. A clip below one deviation has hardly less noise.
AFFORDABLE = 0.002
WIDEST_CLIP = 6.0  # "wide" is enough for skewed targets, and for coefficients
ROW_LENGTH = 2.5  # length of a whitened row times k


@dataclass(frozen=True)
class Rules:
    """What a fit does, decided before any record is read.

    Attributes
    ----------
    reach : float
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

    reach: float
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
        cls, n, p, reach, clip="auto", fit_intercept=True, ranged=True, link=IDENTITY, counted=True,
        boxed=False,
    ):  # fmt: skip
        """Rules for n records, rows of length p and this reach.

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
        resolution, precision = reach / p**1.5, reach / sqrt(n * p)
        few_records = reach < link.enough(p)
        mean_only = few_records and (not link.linear or fit_intercept and reach < link.mean_reach)
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
        noise = 2.0 * sqrt(p / (rest * margins)) / (SQUARES * reach)
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
        k = sqrt(max(sqrt(AFFORDABLE) * reach / p, precision))
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
            reach=reach,
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
