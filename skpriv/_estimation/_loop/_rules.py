"""Public rules: shares, clips and weights from the numbers of records and features and the noise.

All follow from two public numbers.

*Effective records* N = n mu under a curator, sqrt(n) mu of users who answer once: the number of
records over the noise of a sum of sensitivity 1 that has the whole budget. The mean of a vector in
the unit ball is known up to about 2 sqrt(p) / N. The noise of a whitened Gram matrix, whose
eigenvalues are about 1 / p, has the operator norm 2 sqrt(p) / N, so that the matrix is resolved
where the *resolution* N / p^1.5 is large.

*Precision* x = N / sqrt(n p): privacy noise beside sampling. With residuals clipped at k deviations
and rows of length 1.5 / k the noise of a coefficient by privacy is about k^2 / (1.5 x) of that by
sampling. So k grows with x, and clips and weights fade where n or epsilon grow: the limit is least
squares. If x is near 1, k is where the noise of a clipped mean, k / P(|z| < k), is least.

The value of each number is measured in docs/evidence/linear_regression.md, unless said otherwise.
"""

from collections.abc import Callable
from dataclasses import replace
from math import exp, pi, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import lambertw, ndtr

from ..._stored import frozen
from ...privacy import SIDE_SHARE
from .._links import IDENTITY, StepLink
from ._rows import SQUARES

if TYPE_CHECKING:
    from ..._contracts import Array, Scalar

# Shares of the budget. "Measured" means in docs/evidence/linear_regression.md, by ablation.
# A question of one number or of a few: the mean and spread of the target, the lengths of the scores
# of persons, the mean of the residuals, the line. Half and twice as much are worse.
QUESTION = SIDE_SHARE
# The part that is learnt first, so that the rest is asked with less noise. It is the whitening,
# with half of this share where the Gram matrix is resolved. For the line, it is the lengths of its
# scores.
LEARNT = 4.0 * QUESTION
# Up to this N each look at the mean of the target has as much, and the spread half of it; beyond,
# the noise of the looks stays what it is, until they are questions as others are. With more the
# slopes lose, with less the fit loses where bounds are wide. Of a line this N is no more than the
# second number times sqrt(p): the slopes of few features gain more than the mean
# (docs/evidence/few_records.md).
MEAN_RECORDS = 67.0, 25.0
# The equation of a declared estimand: the likelihood, with the slope of its own, as a part of all
# that comes after the mean of the target, and the least-squares line, as a part of what is left for
# it and for steps. With more of the first the slope that steps tell has too much noise. The shares
# near the second numbers where the resolution is far above `CERTIFIED`. From there on questions of
# the mean of the target and of the length of a declared line, which find its point alone, have
# shares that fall as 1 / resolution: noise that did no harm there does none beyond
# (docs/evidence/coefficients.md). Measured.
DECLARED = (0.5, 0.65), (0.7, 0.75)
# The part of the former that asks the slope (docs/evidence/glm.md).
OWN_SLOPE = 0.15
# The Gram matrix of the rows of a declared least-squares line, as a part of the same. Its noise is
# 1.4 for 4.1 of a slope that steps tell (sqrt(2), and sqrt(4.25) over the weight 1/2), so that a
# share of this size tells as much as all steps had: these find a point, and nothing else is left to
# them. Measured.
OF_GRAM = 0.1
# The last step, from which certified intervals come, where the least number of steps is taken. With
# more steps it falls with their square, to the share of the others. Measured.
LAST_SHARE = 0.7
# The mean of counts, which is a small part of the largest count and near its noise. Measured.
LAST_COUNT = 3.0 * QUESTION
# The count of clipped rows, which is asked where there is budget to spare. Measured.
CLIPPED_SHARE = QUESTION / 10.0

# Resolutions N / p^1.5.
# The Gram matrix is resolved from here on: noise with the whole budget has an operator norm of an
# eighth of a typical eigenvalue, 2 / RESOLVED. Below, the least-squares line is not asked, because
# its equation has many times the noise of the steps.
RESOLVED = 16.0
# The records of the whitening make this resolution where features have ranges, and where they have
# none, because a feature may then have any scale.
SUBSET_RESOLUTIONS = (100.0, 1e4)

# N from which rows of a line that are known by their norm alone are whitened: they are long, and
# whitening has less to gain. From 45 on yacht had an error of .51 of the mean's for .27, and
# skillcraft of .78 for .65 (docs/evidence/few_records.md).
NORMED = 100.0

# The length of a line is asked from here on, and features that are no indicators are stretched as
# far as their noise allows, since that question mends what weights of rows far away do to the line.
# From RESOLVED on, the noise of the question would do more harm than good. Measured.
STRETCHED = 1.5 * RESOLVED
# The equation of the line has a whole question from here on, and less below, where its noise is
# many times that of the steps: with a whole one from RESOLVED on these tell less than with none.
TOLD_LINE = 3.0 * RESOLVED
# Between these resolutions shares and room of a declared estimand change (see `DECLARED` and
# `MEAN_ROOM`). The question of what is cut, which certified intervals of lines alone need, is asked
# from the second one on: there half of the certified intervals of 74 fits of tables are narrower
# than half a deviation of the target, and below 300 none is. It makes standard errors of a fitted
# line an eighth larger between the two (docs/evidence/linear_regression.md), and those of a
# declared one 5 to 37%, and they differ by 6% or less beyond (docs/evidence/coefficients.md).
# Curves, where nothing is cut, ask the variances of scores in the last step alone from the first.
CERTIFIED = 100.0, 400.0

# Rounds of whitening, after which directions of little variance exceed the noise. There is a fourth
# where rows are short (see `whitening_parts`).
ROUNDS = 3

# Numbers of steps. Least and largest number. If noise rules, many small steps mend what one noisy
# Gram matrix did. Four is what clips need, which shrink with the residuals. Steps of a line that
# ask their slopes are a third of the largest number at most: half of it takes two fifths more time
# for a hundred columns, and gains .001 of R-squared (docs/evidence/linear_regression.md).
STEPS = (4, 64)
# With few records many steps follow their noise, whose variance is as 1 / N^2: there are no more
# than (N / STEP_RECORDS)^2, or the least number, but for whitened rows that are known by their norm
# (docs/evidence/few_records.md).
STEP_RECORDS = 22.0
# The number of steps times the resolution: there are ten where the Gram matrix is just resolved.
STEPS_RESOLUTION = 10.0 * RESOLVED
# Least number where the link bends. The gain in log loss is flat from 6 to 24
# (docs/evidence/glm.md). Shares rise over these steps.
BENT_STEPS = 3 * STEPS[0]

# Noise and clips.
# Margins of features are asked first where the noise of the squared deviation of a feature, in
# half-ranges, is at most as large as that of a resolved Gram matrix is beside its eigenvalues. No
# rotation spreads the noise of margins over all directions.
MARGINS_NOISE = 2.0 / RESOLVED
# Part of the residual variance of predictions that privacy noise may be, whatever sampling is.
# Otherwise it may be .4 of sampling, with rows no shorter than .9 precision^-.25: so clips fade.
AFFORDABLE = 0.002
# Deviations at which "wide" clips residuals: enough for skewed targets, and for coefficients. And
# those that it may have over sqrt(N): the mean square of an early step, with .023 of the budget,
# then has noise of a twelfth of the residual variance. With one of half of it, variances that are
# too large make limits that are, which make the next ones too large.
WIDEST_CLIP = 6.0
WIDEST_BY_NOISE = 0.1
# Length of a whitened row times the deviations k at which residuals are clipped, and the largest k
# over precision^.25. With shorter rows, and clips that are tighter by as much as leaves the noise
# the same, more rows far away count in full. The second pair is that of wide clips, of persons,
# whose scores are shortened once they are summed, and of links that bend. Measured.
ROWS_AND_CLIPS = (1.5, 1.75), (2.5, 2.5)
# Least part of their range to which residuals of two classes are bounded: the noise falls with it,
# and the slopes of probabilities from .45 to .55 are still seen. Where no standard errors are told
# residuals are clipped there. Else rows with a mean near 0 or 1 weigh less, and the limit is what
# leaves rows up to one deviation of the released fit alone, if they have length 1. From this room
# of means on it leaves more, up to all where noise is none (docs/evidence/few_records.md).
FEW_LIMIT = 0.55
NARROW_ROOM = 4.0
# Powers of the precision up to which means of counts have room, of usual estimands and of a
# declared likelihood, whose noise is that of its own equation: the second one from the larger
# resolution of CERTIFIED on, since slopes of fewer records lose more by it (docs/evidence/glm.md).
MEAN_ROOM = 1.0 / 3.0, 0.5


NORMAL = sqrt(pi / 2.0)  # standard deviation of a normal variable over its mean deviation


@frozen
class Rules:
    """The decisions of a fit before any record is read.

    Attributes
    ----------
    effective_records : float
        N.
    few_records : bool
        Whether rows are not whitened, since the records are too few.
    enough : float
        N from which rows are whitened.
    mean_only : bool
        Whether only the mean of the target is asked, with the whole budget.
    location, spread, margins, whitening : float
        Shares of the questions, which add up to one with those of the steps. The margins of
        features have the share 0 where they are not asked.
    steps : tuple of float
        Shares of the steps. The last one asks for all that intervals need.
    mean : float
        Share of the last look at the mean of the residuals, 0 where it is not asked.
    stretch : float
        Share of the question of the length of a line, 0 where it is not asked: where noise hides
        what rows weigh less.
    clipped : float
        Share of the count of rows that were clipped, 0 where noise would hide it.
    line : float
        Share of the equation of least squares or of the likelihood, 0 where it is not asked.
    gram : float
        Share of the Gram matrix of the rows of a declared least-squares line; 0 of others.
    clip : float
        k: deviations at which residuals are clipped.
    length : float
        Root mean square length of a whitened row. It is at least sqrt(p / n), where no weight is
        below 1: the leverage p / n of the average record can grow to 1 at most.
    shortest : float
        The least such length at which a typical eigenvalue is told from noise.
    mean_room : float
        Up to this factor times the mean of counts, a mean counts in full. Larger ones count for
        less, as far rows do. The noise grows with it.
    asks_cut : bool
        Whether the last step asks what is cut.
    bends : bool
        Whether the link bends, so that errors of a stretched feature are multiplied.
    lifts : bool
        Whether coordinates are lifted to the least mass from the second round of whitening on, in
        place of features: of links whose margins are never asked.
    subset : float
        Part of the records that the whitening asks.
    slopes : bool
        Whether steps ask their slopes; else the whitening has a last look.
    """

    effective_records: float
    few_records: bool
    enough: float
    mean_only: bool
    location: float
    spread: float
    margins: float
    whitening: float
    steps: tuple[float, ...]
    mean: float
    stretch: float
    line: float
    gram: float
    clipped: float
    clip: float
    length: float
    shortest: float
    mean_room: float
    asks_cut: bool
    bends: bool
    lifts: bool
    subset: float
    slopes: bool

    @classmethod
    def of(
        cls,
        n: int,
        p: int,
        effective_records: float,
        clip: str = "auto",
        fit_intercept: bool = True,
        ranged: bool = True,
        link: "StepLink" = IDENTITY,
        counted: bool = True,
        boxed: bool = False,
        textbook: bool = False,
    ) -> "Rules":
        """Rules for n records, rows of length p and so many effective records.

        Parameters
        ----------
        clip : {"auto", "wide", "persons"}
            "wide" clips at 6 deviations at least, once N is 3,600, and takes two steps. "persons"
            is "auto" where records are persons.
        ranged : bool
            Whether every feature has a public range, and not the norm of the row alone.
        link : StepLink
        counted : bool
            Whether clipped rows can be counted.
        boxed : bool
            Whether rows are features in a box and a constant, so that their margins can be asked.
        textbook : bool
            Whether the least-squares line, or the curve of maximum likelihood, was declared to be
            the estimand: its equation has most of the budget then.
        """
        N = effective_records
        linear = link.linear
        resolution = N / p**1.5
        precision = N / sqrt(n * p)
        noisy = min(1.0, RESOLVED / resolution)  # 1 where the Gram matrix is not resolved
        enough = link.enough(p) if ranged or not linear else NORMED
        few_records = N < enough
        # If noise hides typical eigenvalues, one look at the Gram matrix tells as much as slopes
        one_look = linear and resolution < RESOLVED / 8.0
        room_power = (
            float(np.interp(resolution, CERTIFIED, MEAN_ROOM)) if textbook else MEAN_ROOM[0]
        )
        k, length = _clip_and_length(p, N, precision, clip, link, sqrt(noisy))

        # Shares of the budget, for the target first
        sooner = min(1.0, CERTIFIED[0] / resolution)
        of_point = sooner if textbook and linear else 1.0
        records, of_few = MEAN_RECORDS
        if linear:
            records = min(records, of_few * sqrt(p))
        of_mean = of_point * max(QUESTION, LEARNT * min(1.0, records / N) ** 2)  # of each look
        location = of_mean * fit_intercept
        # The spread of two classes follows from their mean
        spread = of_mean / 2.0 if link.limit is None else 0.0
        rest = 1.0 - location - spread

        # All others are parts of the rest
        margins = QUESTION * noisy
        # Noise of the mean square of a feature, in half-ranges
        noise = 2.0 * sqrt(p / (rest * margins)) / (SQUARES * N)
        # Fits of counts and of several classes lose by margins (docs/evidence/glm.md)
        useful = boxed and link.parts == 1 and (linear or link.limit is not None)
        margins *= useful and noise <= MARGINS_NOISE and not few_records
        whitening = LEARNT * max(0.5, noisy) * (not few_records)
        mean = of_mean if linear or textbook else max(LAST_COUNT, of_mean)
        mean *= fit_intercept and link.limit is None and (k < 2.5 or not linear)
        stretch = of_point * QUESTION * (linear and fit_intercept and resolution >= STRETCHED)
        clipped = CLIPPED_SHARE if counted and resolution >= RESOLVED else 0.0
        left = 1.0 - margins - whitening - mean - stretch - clipped
        gram = 0.0
        if resolution < RESOLVED or link.parts > 1:
            line = 0.0
        elif textbook:
            declared, largest = DECLARED[linear]
            line = largest + (declared - largest) * sooner
            if linear:
                gram = OF_GRAM * left
                line *= left
        else:
            line = QUESTION * min(1.0, resolution / TOLD_LINE) ** 2
        left_for_steps = rest * (left - line - gram)
        capped = ranged or few_records or not linear
        steps = _shares_of_steps(N, resolution, link, one_look, capped)
        return cls(
            effective_records=N,
            few_records=few_records,
            enough=enough,
            mean_only=(fit_intercept or not linear) and N < link.mean_effective_records,
            location=location,
            spread=spread,
            margins=rest * margins,
            whitening=rest * whitening,
            steps=tuple(left_for_steps * step for step in steps),
            mean=rest * mean,
            stretch=rest * stretch,
            line=rest * line,
            gram=rest * gram,
            clipped=rest * clipped,
            clip=k,
            length=min(1.0, max(length, sqrt(p / n))),
            shortest=sqrt(noisy),
            mean_room=max(1.0, precision**room_power),
            asks_cut=resolution >= CERTIFIED[linear],
            bends=not linear,
            lifts=not (linear or useful),
            subset=part_needed(n, SUBSET_RESOLUTIONS[0 if ranged else 1] / resolution),
            slopes=few_records or not one_look,
        )

    def after_like_records(self) -> "Rules":
        """The same rules where a released fit of like records tells what is asked first.

        One round of whitening is left. The steps have what the others would cost.
        """
        whitening = self.whitening / 3.0
        stretch = self.stretch if self.mean else 0.0
        saved = (
            self.location
            + self.spread
            + self.margins
            + self.whitening
            - whitening
            + (self.stretch - stretch)
        )
        steps = tuple((1.0 + saved / sum(self.steps)) * step for step in self.steps)
        return replace(
            self, mean_only=False, location=0.0, spread=0.0, margins=0.0, whitening=whitening,
            stretch=stretch, steps=steps, slopes=True,
        )  # fmt: skip

    @property
    def declared(self) -> bool:
        """Whether the line is that of the declared estimand: no other has so large a share."""
        return self.line > LEARNT

    def with_two_users(self, users: Callable[..., Any]) -> "Rules":
        """The same rules, in which each question has two users or more.

        Where each user answers one question, a share of less than two users may get none, wherever
        it begins. A question that a fit can do without is left out then. The others have two users
        at the expense of the steps, and if too few are left for these, only the mean is asked.

        Parameters
        ----------
        users : callable
            Number of users, by the share.
        """
        shares = {
            "margins": self.margins,
            "mean": self.mean,
            "stretch": self.stretch,
            "clipped": self.clipped,
            "gram": self.gram,
            "line": 0.25 * LEARNT * self.line,  # the least of its four questions
        }
        unasked = [name for name, share in shares.items() if share and users(share) < 2]
        none: Any = dict.fromkeys(unasked, 0.0)
        everybody = users(1.0)
        two = min(2.0, everybody)

        def enough(share: float, questions: int) -> "Scalar":
            if share and users(share / questions) < two:
                return questions * two / everybody
            return share

        before = self.location, self.spread, self.whitening
        after = tuple(map(enough, before, (1, 1, ROUNDS + 1)))
        location, spread, whitening = after
        left = sum(before) + sum(self.steps) - sum(after)
        steps = self.steps
        if after != before:
            steps = tuple(left / sum(steps) * step for step in steps)
        if left <= 0.0 or users(min(steps)) < two:
            count = max(min(int(left * everybody / two), len(steps)), 1)
            steps = (left / count,) * count
        return replace(
            self, location=location, spread=spread, whitening=whitening, steps=steps,
            mean_only=self.mean_only or len(steps) < STEPS[0], **none,
        )  # fmt: skip


def _clip_and_length(
    p: int, effective_records: float, precision: float, clip: str, link: "StepLink", shortest: float
) -> tuple[float, float]:
    """Deviations k at which residuals are clipped, and the length of rows."""
    short, usual = ROWS_AND_CLIPS
    row_length, widest = short if link.linear and clip == "auto" else usual
    affordable = sqrt(AFFORDABLE) * effective_records / p
    k = sqrt(row_length / usual[0] * max(affordable, precision))
    k = max(1.0, min(widest * sqrt(sqrt(precision)), k))
    # Rows are shorter as long as two thirds of a typical eigenvalue are told from noise
    least_length = min(usual[0] / k, 1.25 * shortest)
    if clip == "wide":
        k = max(k, min(WIDEST_CLIP, WIDEST_BY_NOISE * sqrt(effective_records)))
    if link.linear:
        return k, max(row_length / k, least_length)
    # Residuals are not clipped, so that rows need not be short. Slopes of a quarter of a typical
    # one are told from noise as well, however large the budget is (docs/evidence/glm.md)
    return k, max(usual[0] / sqrt(precision), link.far_length * shortest)


def _shares_of_steps(
    effective_records: float, resolution: float, link: "StepLink", one_look: bool, capped: bool
) -> list[float]:
    """Shares of the steps, which add up to 1; ``capped`` is whether few records have few steps."""
    wanted = STEPS_RESOLUTION / resolution
    most_steps: float = STEPS[1] // 3 if link.linear and not one_look else STEPS[1]
    if capped:
        most_steps = min(most_steps, (effective_records / STEP_RECORDS) ** 2)
    count = max(STEPS[0] if link.linear else BENT_STEPS, round(min(wanted, most_steps)))
    if link.linear:
        last = max(1.0 / count, LAST_SHARE * min(1.0, STEPS[0] / wanted) ** 2)
        return [(1.0 - last) / (count - 1)] * (count - 1) + [last]
    # The first steps are asked too far away to stay in the pool
    sizes = [min(k, BENT_STEPS) for k in range(1, count + 1)]
    return [size / sum(sizes) for size in sizes]


def mean_clip(noise: float) -> float:
    """Deviations k at which residuals are clipped for their mean.

    Parameters
    ----------
    noise : float
        The mean has noise of k times this, in deviations.

    Returns
    -------
    float
        The k at which noise and twice `skewness_bias` have the least sum of squares, which is
        (noise k)^2 + 16 exp(-2 k - 2).
    """
    return 0.5 * float(lambertw(32.0 * exp(-2.0) / noise**2).real)


def part_needed(n: int, part: float) -> float:
    """This part of n records, but no fewer than 100,000, which take no time worth saving."""
    return min(1.0, max(part, 1e5 / n))


def skewness_bias(k: float) -> float:
    """How far clipping at k deviations moves a mean, in deviations.

    It is twice as far as for exponential noise, because the deviation of clipped residuals comes
    out too small.
    """
    return 2.0 * exp(-k - 1.0)


def normal_clip(square: float, limit: float) -> tuple[float, float]:
    """Part of the residuals within the limit, and the variance of all, if they are normal.

    Parameters
    ----------
    square : float
        Mean of the squares of residuals clipped at the limit.
    limit : float

    Returns
    -------
    (part, variance)
    """
    ratio = square / limit**2
    if ratio <= CLIPPED_SQUARES[0]:
        return 1.0, square
    k = float(np.interp(ratio, CLIPPED_SQUARES, LIMITS))
    return float(1.0 - 2.0 * ndtr(-k)), (limit / k) ** 2


def _clipped_squares(k: np.ndarray) -> "Array":
    """E min(z^2, k^2) / k^2 of a normal z, which decreases in k."""
    tail = ndtr(-k)
    density = np.exp(-(k**2) / 2.0) / sqrt(2.0 * pi)
    return (1.0 - 2.0 * tail - 2.0 * k * density) / k**2 + 2.0 * tail


# Limits k in deviations, and the mean squares of residuals clipped at them over those limits. With
# residuals clipped at fewer deviations than the last, their variance is not known.
LIMITS = np.geomspace(8.0, 0.5, 400)
CLIPPED_SQUARES = _clipped_squares(LIMITS)
