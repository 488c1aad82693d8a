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

from ._links import IDENTITY

# Of the budget. The mean of the target takes what makes its noise 2 / (N sqrt(share)) at most
# 2 / 28 of the half-range, and half as much goes to the spread.
LOCATION_SHARES, LOCATION_REACH = (0.05, 0.3), 28.0
# Of the rest, of the whitening; the steps have what is left.
WHITENING_SHARES = (0.1, 0.2)
# Many small steps find what few large ones do not, where noise rules: a step with a noisy Gram
# matrix goes wrong in part, and the next ones mend that. So their number falls with the resolution,
# down to what clips need that shrink with the residuals; and the last one, from which certified
# intervals come, has the more the better the Gram matrix is known.
STEPS, STEPS_RESOLUTION = (4, 64), 160.0
LAST_SHARE, LAST_RESOLUTION = 0.7, 30.0
# At least, where the link bends: the gain in log loss is flat from 6 to 24. Shares rise over them.
BENT_STEPS = 12
# Of the equation of the least-squares line, which has no clips: its noise is many times that of the
# steps, so that it is asked where the others say something of single coefficients.
LINE_SHARE, LINE_RESOLUTION = 0.05, 10.0
# The count of clipped rows, from N on at which its noise is a twentieth of the records
CLIPPED_SHARE, CLIPPED_REACH = 0.005, 400.0
WHOLE = 200.0  # N / p from which what is cut is asked, so that there are certified intervals
WHITENING_RESOLUTION = 20.0
# The last round of the whitening should see the rows with weights of 1: those of far rows hide what
# they add to the Gram matrix, and once it is whitened they are further still. Its rows are as short
# as leaves a typical eigenvalue at about one operator norm of the noise.
WHITENED_RESOLUTION = 16.0
# The whitening asks as many records as make this resolution, so many for each coordinate, and all
# of so few that their time does not matter: badly scaled features are whitened the better for it.
# Features without ranges of their own may have any scale: there the second resolution is asked.
SUBSET_RESOLUTIONS, SUBSET_RECORDS, FEW_RECORDS = (100.0, 1e4), 400.0, 1e5
# From that resolution on it is asked how long whitened rows are: with less they cannot be
# shortened, since the noise of the Gram matrix does not allow it.
LENGTHS_SHARE = 0.03
# Only the mean is released unless one of these resolutions and the reach beside it are there, or if
# the released deviation of the target is below that many noises of its mean. Many small steps find
# the leading directions at any resolution, from that reach on (docs/evidence/linear_regression.md).
LEAST_RESOLUTIONS, LEAST_REACHES, LEAST_SPREAD = (6.0, 0.1), (60.0, 100.0), 9.0
# Shares of its first look and of the spread, and deviations at which the second look clips
ALONE_LOCATION, ALONE_SPREAD, ALONE_CLIP = 0.25, 0.1, 3.0
# k grows as precision^.45 where noise rules and as precision^.2 beyond, so that noise falls below
# sampling and clips still fade; and it is on the second line before that as far as it costs little:
# a loss of .002 of the residual variance, and a Gram matrix that stays resolved.
LEAST_CLIP, CLIP_GROWTH = 1.25, 0.45
WIDE_CLIP, WIDE_GROWTH, AFFORDABLE, RESOLVED_CLIP = 3.3, 0.2, 0.002, 0.66
WIDEST_CLIP = 6.0  # enough for skewed targets, and for coefficients
# Below NARROW deviations the mean of the fit is asked for once more: a tight clip moves the mean of
# skewed residuals, and along whitened rows it has sqrt(p) times the noise of one number.
# A mean count is a small part of the largest one and near its noise: it takes more.
NARROW, LAST_MEAN, LAST_COUNT = 3.0, 0.06, 0.15
MEAN_CLIPS = tuple(1.5 + 0.25 * i for i in range(19))
ROW_LENGTH = 2.5  # length of a whitened row times k


@dataclass(frozen=True)
class Rules:
    """What a fit does, decided before any record is read.

    Attributes
    ----------
    reach : float
        N.
    mean_only : bool
        Whether only the mean of the target can be found.
    location, spread, whitening, lengths : float
        Shares of the queries; with those of the steps they add up to one. That of the lengths of
        rows is 0 if they are not asked.
    steps : tuple of float
        Shares of the steps, the last one of the whole sandwich.
    mean : float
        Share of the last look at the mean of the residuals, 0 without it.
    clipped : float
        Share of the count of rows that were clipped, 0 where noise would hide it.
    line : float
        Share of the equation of the least-squares line, 0 where it is not asked.
    clip : float
        k: deviations at which residuals are clipped.
    length : float
        Root mean square length of a whitened row. At sqrt(p / n) no weight is below 1, since the
        leverage p / n of the average record can grow to 1 at most: there is no need for less.
    shortest : float
        The least, however far some rows are: with less the Gram matrix would not be resolved.
    whitened : float
        The largest such length in the last round of the whitening.
    whole : bool
        Whether the last step asks what is cut.
    wide : bool
        Whether the last step is to cut no tail that the one before has seen.
    subset : float
        Part of the records that the whitening asks.
    """

    reach: float
    mean_only: bool
    location: float
    spread: float
    whitening: float
    lengths: float
    steps: tuple
    mean: float
    line: float
    clipped: float
    clip: float
    length: float
    whitened: float
    shortest: float
    whole: bool
    wide: bool
    subset: float

    @classmethod
    def of(cls, n, p, reach, clip="auto", fit_intercept=True, ranged=True, link=IDENTITY):
        """Rules for n records, rows of length p and this reach.

        Parameters
        ----------
        clip : {"auto", "wide"}
            "wide" clips at 6 deviations at least, at any resolution, and takes two steps.
        ranged : bool
            Whether every feature has a public range, and not the norm of the row alone.
        link : Link
        """
        resolution = reach / p**1.5
        # Counts lose by less than half as many again (at N of 105 and 130, p of 20 and 40)
        more = 1.0 if link.linear or link.limit is not None else 1.5
        mean_only = all(
            resolution < least or reach < more * few
            for least, few in zip(LEAST_RESOLUTIONS, LEAST_REACHES, strict=True)
        )
        location = _within(LOCATION_SHARES, (LOCATION_REACH / reach) ** 2)
        spread = location / 2.0
        if mean_only:
            location, spread = ALONE_LOCATION, ALONE_SPREAD
        if link.limit is not None:  # of two classes, whose spread follows from the mean
            spread = 0.0
        if not fit_intercept:  # the location is 0
            location = 0.0
        rest = 1.0 - location - spread
        whitening = _within(
            WHITENING_SHARES, WHITENING_SHARES[0] * WHITENING_RESOLUTION / resolution
        )
        lengths = LENGTHS_SHARE if resolution >= WHITENED_RESOLUTION and link.linear else 0.0
        whole = reach >= WHOLE * p
        least = STEPS[0] if link.linear else BENT_STEPS
        number = max(least, round(_within(STEPS, STEPS_RESOLUTION / resolution)))
        last = max(1.0 / number, LAST_SHARE * min(1.0, resolution / LAST_RESOLUTION))
        steps = [(1.0 - last) / (number - 1)] * (number - 1) + [last]
        if not link.linear:  # the first ones are asked too far away to stay in the pool
            sizes = [min(k, BENT_STEPS) for k in range(1, number + 1)]
            steps = [size / sum(sizes) for size in sizes]
        precision = reach / sqrt(n * p)
        wide = WIDE_CLIP * precision**WIDE_GROWTH
        cheap = min(sqrt(sqrt(AFFORDABLE) * reach / p), RESOLVED_CLIP * sqrt(resolution))
        k = max(LEAST_CLIP, min(wide, max(cheap, precision**CLIP_GROWTH)))
        if clip == "wide":
            k = max(k, WIDEST_CLIP)
        line = LINE_SHARE if resolution >= LINE_RESOLUTION and link.linear else 0.0
        clipped = CLIPPED_SHARE if reach >= CLIPPED_REACH else 0.0
        clipped_mean = k < NARROW if link.linear else link.limit is None
        mean = LAST_MEAN if link.linear else LAST_COUNT
        mean *= fit_intercept and clipped_mean
        length = ROW_LENGTH / k if link.linear else link.row_length / precision
        enough = SUBSET_RESOLUTIONS[0 if ranged else 1]
        return cls(
            reach=reach,
            mean_only=mean_only,
            location=location,
            spread=spread,
            whitening=rest * whitening,
            lengths=rest * lengths,
            steps=tuple(
                rest * (1.0 - whitening - lengths - mean - line - clipped) * step for step in steps
            ),
            mean=rest * mean,
            line=rest * line,
            clipped=rest * clipped,
            clip=k,
            length=min(1.0, max(length, sqrt(p / n))),
            whitened=min(1.0, sqrt(WHITENED_RESOLUTION / resolution)),
            shortest=ROW_LENGTH / (RESOLVED_CLIP * sqrt(resolution)),
            whole=whole,
            wide=clip == "wide",
            subset=min(1.0, part_needed(n, p, enough / resolution)),
        )

    def without_count(self):
        """The same rules where clipped rows cannot be counted: the last step has their share."""
        steps = (*self.steps[:-1], self.steps[-1] + self.clipped)
        return replace(self, steps=steps, clipped=0.0)

    @property
    def after_location(self):
        """Share of all that comes after the location and the spread of the target."""
        return (
            self.whitening + self.lengths + sum(self.steps) + self.mean + self.line + self.clipped
        )

    @property
    def mean_clip(self):
        """Deviations at which the last look at the mean clips: least noise and bias together."""
        noise = 2.0 / (self.reach * sqrt(self.mean))
        return min(MEAN_CLIPS, key=lambda k: (noise * k) ** 2 + 4.0 * skewness_bias(k) ** 2)


def part_needed(n, p, part):
    """That part of n records, or all that are worth their time; from 1 on it is all of them."""
    return max(part, max(SUBSET_RECORDS * p, FEW_RECORDS) / n)


def skewness_bias(k):
    """How far clipping at k deviations moves a mean, in deviations: twice as far as it does that
    of exponential noise, since the deviation of clipped residuals comes out too small.
    """
    return 2.0 * exp(-k - 1.0)


def _within(bounds, value):
    return min(bounds[1], max(bounds[0], value))
