"""Running sums of a linear bandit: confidence regions of its weights, windows, and the sums.

With b = sum phi r + N_b and S = sum phi phi' + N_A released, b - S theta* = sum phi zeta + N_b -
N_A theta*. Every region is one ellipsoid, so that the index of an arm costs what it costs in
LinUCB: phi'centre + sqrt(phi' form phi). Without noise the sums and their inverse are those of
the textbook, updated by rank one.

The sum of the rounds between two reads is the difference of two released sums, and the law of its
noise is known. So it costs no privacy to ask whether older and newer rounds have the same weights.
A window of the newest rounds is consistent if, wherever it is cut in two on a public grid, the
estimates of both parts differ by no more than their errors explain. The oldest consistent window is
used (the idea is that of Bifet and Gavalda 2007, for means of exact numbers).
"""

from collections.abc import Callable, Iterator
import uuid
from dataclasses import replace
from itertools import pairwise, repeat
from math import hypot, log, pi, sqrt
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtrc

from ..._contracts import passed_on
from ..._estimation._intervals import event, operator_quantile, shared
from ..._estimation._moments import PRIOR_VARIANCES
from ..._linalg import RELATIVE_ZERO, TINY, norm_of, trace_of
from ..._stored import frozen, frozen_object, stored_in_policies
from ...privacy import (
    TOLD_ABOVE,
    Answer,
    GaussianNoise,
    PrivacyReport,
    Raw,
    charge,
    open_stream,
    parallel_part,
)
from .._policy._draws import Region

if TYPE_CHECKING:
    from ..._contracts import Array, Scalar
    from ...privacy import LiftedReports, Numbering, ReportRow
    from ..._estimation._moments import NormalEquations

# Weights of the likelihood's ellipsoid beside the ball; any is valid, the smallest result is used.
# Not 0: the ball alone would leave the choice among arms of equal norm to rounding.
WEIGHTS = (0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)


def ball(size: int, bound: float) -> Region:
    """Region before anything is known: ||theta|| <= bound."""
    return Region(np.zeros(size), bound**2 * np.eye(size))


def certified(equations: "NormalEquations", alpha: float, bound: float, failure: float) -> Region:
    """Region that contains theta* with probability at least 1 - failure, actions adaptive.

    If ||theta*|| <= bound and the centred rewards lie in [-1, 1]. Three events: the largest
    eigenvalue of N_A is at most q_op, so that W = S + (q_op + lam) I >= V + lam I; the
    self-normalised bound ||sum phi zeta|| <= sqrt(2 log(1/f) + log det(I + V / lam)) in the norm of
    (V + lam I)^-1, hence of W^-1 (Abbasi-Yadkori et al. 2011, Theorem 1); and ||N_b - N_A theta*||
    <= q, a weighted chi-square (Laurent and Massart 2000, Lemma 1). Then theta* is in
    {||b - S theta||_{W^-1} <= beta} and in the ball, hence in the ellipsoids that average the two.
    """
    p = len(equations.target)
    values, vectors = np.linalg.eigh(equations.design)
    if equations.law is not None:  # one bound on b - S theta*, rewards' noise and privacy together
        residual = equations.law.martingale_bound(bound, event("errors of the reports", failure))
        return _smallest(values, vectors, equations.target, np.ones(p), residual, bound)
    parts = shared(failure, dict.fromkeys(("rewards", "noise", "operator"), 1.0), "region: ")
    level = log(1.0 / parts.rewards)
    noise = noise_bound(equations, bound, log(1.0 / parts.noise))
    operator = operator_quantile(equations.design_scale, p, parts.operator)
    ridge = max(alpha, noise**2 / (p + 2.0 * level))  # so that noise and rewards widen alike

    widened = np.maximum(values + operator + ridge, ridge)  # W in the eigenvectors of S
    beta = rewards_bound(widened / ridge, level) + noise / sqrt(ridge)
    return _smallest(values, vectors, equations.target, widened, beta, bound)


def self_normalized(
    equations: "NormalEquations", alpha: float, bound: float, failure: float
) -> Region:
    """Region of exact sums at all times together (Abbasi-Yadkori et al. 2011, Theorem 2)."""
    covariance = np.linalg.inv(equations.design + alpha * np.eye(len(equations.target)))
    growth = -np.linalg.slogdet(alpha * covariance)[1]
    radius = sqrt(2.0 * log(1.0 / failure) + growth) + sqrt(alpha) * bound
    return Region(covariance @ equations.target, radius**2 * covariance)


def noise_bound(equations: "NormalEquations", bound: float, level: float) -> float:
    """Bound on ||N_b - N_A theta||, ||theta|| <= bound, but for a probability of exp(-level)."""
    p = len(equations.target)
    design = (equations.design_scale * bound) ** 2
    largest = equations.target_scale**2 + design
    variance = largest - design / 2.0
    trace = largest + (p - 1) * variance
    square = largest**2 + (p - 1) * variance**2
    return sqrt(trace + 2.0 * sqrt(square * level) + 2.0 * largest * level)


def rewards_bound(growth: np.ndarray, level: float) -> float:
    """Bound on ||sum phi zeta|| in the norm of W^-1 at all times, but for exp(-level).

    The eigenvalues of W over the ridge are the growth.
    """
    return sqrt(2.0 * level + np.log(growth).sum())


def _smallest(
    values: np.ndarray,
    vectors: np.ndarray,
    target: np.ndarray,
    metric: np.ndarray,
    beta: float,
    bound: float,
) -> Region:
    """Smallest average of two ellipsoids: ||b - S theta||_{W^-1} <= beta, and the ball."""
    target = vectors.T @ target
    data = values**2 / metric / beta**2
    pull = values * target / metric / beta**2
    offset = (target**2 / metric).sum() / beta**2
    found = []
    for weight in WEIGHTS:
        precision = weight * data + (1.0 - weight) / bound**2
        centre = weight * pull / precision
        radius = max(0.0, 1.0 - weight * offset + (centre**2 * precision).sum())
        found.append((radius * (1.0 / precision).sum(), centre, radius / precision))
    _, centre, form = min(found, key=itemgetter(0))
    return Region(vectors @ centre, (vectors * form) @ vectors.T)


def without_blanks(equations: "NormalEquations") -> "NormalEquations":
    """Equations with a number of rounds in which those without features do not count.

    Rounds of people who came too often are blank, and how many these are is private: their zeros
    would make the mean square of the rewards too small. Rows have a norm of at most 1, so that the
    released sum of their squares is about the number of the others, or less.
    """
    return replace(equations, n=float(np.clip(trace_of(equations.design), 1.0, equations.n)))


def diagonal_blocks(matrix: np.ndarray, blocks: int) -> Any:
    """So many blocks of equal size on the diagonal of a matrix, of shape (blocks, p, p)."""
    size = len(matrix) // blocks
    return np.einsum("bibj->bij", matrix.reshape(blocks, size, blocks, size))


def about(equations: "NormalEquations", theta: float | np.ndarray) -> "NormalEquations":
    """Equations of theta* - theta, of a public or released theta.

    Entries beside the diagonal of the noise have a variance of half the square of the scale. The
    sum of squares is that of rewards about the prediction of theta, and about three deviations of
    what is taken off are left in it, so that it is not too small.
    """
    theta = np.broadcast_to(theta, equations.target.shape)
    target = equations.target - equations.design @ theta
    norm = norm_of(theta)
    scale = hypot(equations.target_scale, equations.design_scale * norm / sqrt(2.0))
    noise = norm * (equations.target_scale + scale)
    less = theta @ (equations.target + target) - TOLD_ABOVE * noise
    square = equations.square - max(0.0, less)
    return replace(equations, target=target, target_scale=scale, square=square)


def asymptotic(
    equations: "NormalEquations",
    least_variance: float = 0.0,
    blocks: int = 1,
    constant: float = 0.0,
    origin: float | np.ndarray = 0.0,
) -> Region:
    """Posterior of theta with the noise's exact law, and a normal prior chosen by its evidence.

    If each action has weights of its own, the Gram matrix is made of blocks: what is released
    outside of them is noise alone, and is left out.

    Parameters
    ----------
    equations : NormalEquations
    least_variance : float
        The least variance of the prior.
    blocks : int
        Number of blocks of equal size.
    constant : float
        Last entry of all rows; 0 if they have no constant.
    origin : float or ndarray
        Mean of the weights, from which theta is a difference: the noise of the design multiplies
        their sum.

    Returns
    -------
    Region
    """
    spectrum = np.linalg.eigh(diagonal_blocks(equations.design, blocks))
    return _posterior(equations, *spectrum, least_variance, constant, origin)


def steadied(equations: "NormalEquations", size: int) -> "NormalEquations":
    """Equations without the part of the differences in the design that noise explains.

    The matrix A of so many features has a mean m on its diagonal. R = A - m I has q orthonormal
    coordinates, each with noise of variance s^2, and m I + (1 - (q - 2) s^2 / |R|^2) R has a
    smaller expected square error than A, whatever is estimated (James and Stein 1961). Nearly all
    of R is noise if features vary alike in all directions, and it would multiply the weights. Their
    sums beside a constant are drawn towards 0 in the same way. Its square is public. Widths do not
    count that the error is smaller: regret was larger if they did. Directions that are hardly
    played seem a little better known, which a policy without widths does not make up for.
    """
    design = equations.design.copy()
    slopes = design[:size, :size]
    sums = design[size:, :size]  # of rows with a constant
    middle = trace_of(slopes) / size * np.eye(size)
    slopes -= middle
    for part, count, factor in (slopes, size * (size + 1) / 2.0 - 1.0, 1.0), (sums, size, 0.5):
        noise = max(count - 2.0, 0.0) * factor * equations.design_scale**2
        part *= max(0.0, 1.0 - noise / max((part**2).sum(), TINY))
    slopes += middle
    design[:size, size:] = sums.T
    return replace(equations, design=design)


# Prior variances of the intercept, for rewards in [-1, 1]: a zero feature earns the middle of the
# range, or it may earn anything, which are equally likely.
INTERCEPT_VARIANCES = np.array([1e-6, 1.0])


def _posterior(
    equations: "NormalEquations",
    values: np.ndarray,
    vectors: np.ndarray,
    least_variance: float,
    constant: float = 0.0,
    origin: float | np.ndarray = 0.0,
) -> Region:
    """Posterior of theta in each block, by the eigenvalues and eigenvectors of their designs.

    In the eigenvectors of the design, target_i = value_i theta_i + error_i, where the error has
    variance v value_i + s_b^2 + s_A^2 ||theta||^2 / 2, v the mean square of the rewards, about
    their mean if rows have a constant, and theta plugged in. About an origin s_b^2 has s_A^2
    ||origin||^2 / 2 in it, and ||origin + theta||^2 - ||origin||^2 takes the place of ||theta||^2.
    The prior is N(0, tau^2 I): tau^2 is the one on a public grid, and at least ``least_variance``,
    whose evidence is largest.

    The weight u of a constant has a prior variance of its own, V: a mean reward far from the middle
    says nothing about the size of slopes. With it the prior has exp(less u^2 / 2) as a factor, less
    = 1 / tau^2 - 1 / V, and so has the posterior, a change of rank one. The mean of that factor is
    what it adds to the evidence, (1 - less tau^2)^.5 its norm in the prior. Each of two V may be
    right. Their evidence makes the odds, and the centre is the mean of both posteriors. So is the
    form, which would be wider by the disagreement of the centres: with it regret was larger. Not a
    certified region.
    """
    values = np.maximum(values, 0.0)
    target, origin = (
        np.einsum("bij,bi->bj", vectors, part.reshape(values.shape))
        for part in np.broadcast_arrays(equations.target, origin)
    )
    variance = np.clip(mean_square(equations, constant), 0.01, 1.0)
    taus = np.unique(np.maximum(PRIOR_VARIANCES, least_variance))
    along = vectors[:, -1]  # the constant, in the eigenvectors
    # By prior variances of the intercept and of slopes
    less = 1.0 / taus - constant**2 / INTERCEPT_VARIANCES[:, None]
    centre = np.zeros_like(target)
    for _ in range(3):
        norms = (centre * (centre + 2.0 * origin)).sum(axis=1, keepdims=True)
        spread = equations.target_scale**2 + equations.design_scale**2 * norms / 2.0
        errors = variance * values + spread
        errors[errors == 0.0] = 1.0  # exact sums that tell nothing: their values are 0 too
        pull = (values * target / errors)[:, None]
        # By blocks, prior variances of slopes, and eigenvectors
        variances = 1.0 / ((values**2 / errors)[:, None] + 1.0 / taus[:, None])
        means = variances * pull
        fits = (np.log(variances / taus[:, None]) + means * pull).sum(axis=2)
        if not constant:
            at = np.arange(len(fits)), fits.argmax(axis=1)
            centre = means[at]
            continue
        mean = (means * along[:, None]).sum(axis=2)  # of the weight of the constant
        left = 1.0 - less[:, None] * (variances * along[:, None] ** 2).sum(axis=2)
        tilts = np.log((1.0 - less * taus)[:, None] / left) + less[:, None] * mean**2 / left
        evidence = (fits + tilts) / 2.0
        likely = np.exp(evidence - evidence.max(axis=(0, 2), keepdims=True))
        best = likely.sum(axis=0).argmax(axis=1)
        at = np.arange(len(best)), best
        chances = likely[:, *at]
        more = (chances * less[:, best] / left[:, *at]).sum(axis=0) / chances.sum(axis=0)
        spreading = variances[at] * along
        centre = means[at] + (more * mean[at])[:, None] * spreading
    form = (vectors * variances[at][:, None]) @ vectors.swapaxes(1, 2)
    if constant:
        spreading = np.einsum("bij,bj->bi", vectors, spreading)
        form += np.einsum("b,bi,bj->bij", more, spreading, spreading)
    weights = np.einsum("bij,bj->bi", vectors, centre).ravel()
    return Region(weights, form if len(form) > 1 else form[0])


def mean_square(equations: "NormalEquations", constant: float) -> "Scalar":
    """Mean square of the rewards, about their mean if rows have a constant, which tells that mean.

    Rewards of 0 or 1 at a rate of .9 vary by a third of their mean square about the middle.
    """
    square = equations.square / equations.n
    if not constant:
        return square
    mean_square = equations.target[-1] ** 2 - equations.target_scale**2
    return square - max(0.0, mean_square) / (equations.n * constant) ** 2


# The places where a window may begin and be cut: parts of the rounds so far, as public as the reads
# are.
FRACTIONS = (0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95)
# Of marks, see `Windows.add`: regret in worlds that change is the same within 1%.
MARK_SPACING = 0.2
# Rounds of a part of a window, at least: with any useful budget, fewer tell less than the noise.
LEAST_ROUNDS = 60
# If rewards are not linear in the features, the fitted weights depend on which actions are played.
# Predictions are taken to move by this root mean square in each direction of the rows, for rewards
# in [-1, 1]. Without it, regret on a table that does not change was eight times as large.
MISFIT = 0.07
# Probability that a run of any length in a stationary world raises a false alarm.
FALSE_ALARMS = 0.05


@stored_in_policies
@frozen_object
class Mark:
    """One read of the sums: where a window may begin or end.

    Attributes
    ----------
    rounds : int
        Rounds in the sum.
    answer : Answer
        The released sum of all of them.
    stream : Stream
        The stream that was read: what earlier phases released is the same in all of its reads.
    reads : int
        Reads of that stream so far.
    """

    rounds: int
    answer: Answer
    stream: Any = None
    reads: int = 0

    def noise_since(self, earlier: "Mark") -> Any:
        """Law of the noise of the sum since an earlier read, None where it is not known."""
        if earlier.rounds == 0:
            return self.answer.noise
        if earlier.stream is self.stream:
            return self.stream.between(earlier.reads, self.reads)
        if earlier.reads < earlier.stream.n_reads:
            return None  # in the middle of a phase, whose noise up to its end is not asked for
        return self.answer.noise.minus(earlier.answer.noise)  # the earlier sum is a whole phase

    def shortened(self) -> "Mark":
        """The same in half of the memory: rounding by 1e-7 of a sum is far below its noise."""
        value = self.answer.value.astype(np.float32)
        return replace(self, answer=replace(self.answer, value=value))


NOTHING = Mark(0, Answer(np.zeros(()), 0, GaussianNoise(0.0)))


@stored_in_policies
class Windows:
    """Chooses the oldest consistent window, and notes when the world has changed.

    Parameters
    ----------
    query : Query
        Its ``equations`` are those of an answer.
    persons : bool, default=False
        Whether rounds may be blank, of people who came too often.
    blocks : int, default=1
        Number of blocks of the Gram matrix.
    exact : bool, default=False
        Whether the sums have no noise. Then a misfit counts in every comparison: elsewhere it does
        for alarms alone, since noise hides the directions in which it is large, and a window that
        is too short for one read costs little.

    Attributes
    ----------
    intercept : float or None
        Latest weight of the constant, which is taken off before slopes are compared; None if rows
        have no constant. In the direction of the constant noise would hide a change of the slopes.
    changes : list of int
        Numbers of rounds at which a read said that the world had changed.
    """

    # A window is left if a world that does not change would look so inconsistent with at most this
    # probability. The decision is for one read, and a wrong one costs some rounds until the next.
    # It is seldom wrong, since errors are overrated: their variances are those of rewards, and not
    # of residuals. On six environments that do not change, regret was at most 4% more than without
    # windows (benchmarks/bandit_drift.py). With weights that turn slowly it was a fifth less than
    # with 0.003.
    doubt = 0.5

    def __init__(
        self, query: Any, persons: bool = False, blocks: int = 1, exact: bool = False
    ) -> None:
        self._query = query
        self._persons = persons
        self._blocks = blocks
        self._misfit = MISFIT if exact else 0.0
        self._marks: Any = []
        self._origin = 0  # rounds before the last alarm are not used again
        self._tests = 0
        self.intercept: Any = None
        self.changes: list[int] = []

    def add(self, mark: Any) -> None:
        """Note a read, and drop those of the past that are not needed.

        No window will begin before the first of FRACTIONS of the rounds so far, so that one mark
        before it is enough. The middle one of three neighbours is dropped where they are closer
        than MARK_SPACING of their distance from the newest read and from the origin. Their number
        grows with the logarithm of the rounds, and depends on public numbers alone.
        """
        now = mark.rounds
        origin = self._origin
        first = origin + FRACTIONS[0] * (now - origin)
        marks = [each for each in self._marks if each.rounds >= origin]
        alone = marks[:1] if origin else []  # a window may begin at the last alarm
        marks = marks[max(sum(each.rounds <= first for each in marks) - 1, len(alone)) :]
        spaced = marks[:1]
        for middle, later in pairwise(marks[1:]):
            away = min(now - later.rounds, spaced[-1].rounds - origin)
            if later.rounds - spaced[-1].rounds > MARK_SPACING * away:
                spaced.append(middle)
        self._marks = [*alone, *spaced, *(each.shortened() for each in marks[1:][-1:]), mark]

    def _slopes(self, window: Any) -> Any:
        """Equations of what is compared in a window."""
        if self.intercept is None:
            return window
        alone = self.intercept * np.eye(len(window.target))[-1]
        slopes = about(window, alone)
        return replace(slopes, design=slopes.design[:-1, :-1], target=slopes.target[:-1])

    def choose(self) -> Any:
        """Equations of the oldest consistent window that ends with the last read.

        A misfit explains a part of each difference, so that an alarm is a doubt, too.
        """
        now = self._marks[-1]
        self._tests += 1
        starts = self._starts(now)
        for place, start in enumerate(starts[:-1]):
            cuts = starts[place + 1 :]
            gaps = self._gaps(start, cuts, now)
            if (gaps(self._misfit) >= self.doubt / len(starts)).all():
                return self._since(start, now)
            if place:
                continue  # an alarm is about all rounds
            seen = np.flatnonzero(gaps(MISFIT) < self._alarm(len(starts)))
            if seen.size:
                change = cuts[seen[-1]]
                self._origin = change.rounds
                self.changes.append(now.rounds)
                return self._since(change, now)
        return self._since(starts[-1], now)

    def _alarm(self, n_cuts: int) -> float:
        """Probability below which a cut raises an alarm; over all reads they add up to 5%."""
        return FALSE_ALARMS * 6.0 / (pi * self._tests) ** 2 / n_cuts

    def _starts(self, now: Any) -> list[Any]:
        """Marks at which a window may begin, the oldest first.

        The noise since a read in the middle of an earlier phase is not known: after an alarm there,
        the first window begins with the end of that phase.
        """
        usable = [mark for mark in self._marks[:-1] if now.noise_since(mark) is not None]
        found = [usable[0] if self._origin and usable else NOTHING]
        for fraction in FRACTIONS:
            place = self._origin + fraction * (now.rounds - self._origin)
            for mark in [mark for mark in usable if mark.rounds <= place][-1:]:
                if min(mark.rounds - found[-1].rounds, now.rounds - mark.rounds) >= LEAST_ROUNDS:
                    found.append(mark)
        return found

    def _since(self, start: Any, end: Any) -> Any:
        """Equations of the rounds between two marks."""
        value = end.answer.value - start.answer.value
        answer = Answer(value, end.rounds - start.rounds, end.noise_since(start))
        return self._query.equations(answer)

    def _gaps(self, start: Any, cuts: list[Any], now: Any) -> Callable[[float], "Array"]:
        """By a misfit, probabilities of estimates before and after each cut that differ by chance.

        The noise of a sum and that of its continuation may be correlated; twice the sum of both
        covariances bounds the covariance of a difference whatever the correlation is, and the
        factor 1 + |correlation| where it is known. The effect of a misfit is added to it.
        """
        windows = [*map(self._since, repeat(start), cuts), *map(self._since, cuts, repeat(now))]
        (old, new), covariances, (_, inverses) = (
            part.reshape(2, -1, self._blocks, *part.shape[1:]) for part in self._estimates(windows)
        )
        correlations = [self._correlation(start, cut, now) for cut in cuts]
        wider = 1.0 + np.reshape(correlations, (-1, 1, 1, 1))
        scatter = wider * covariances.sum(axis=0)
        differences = new - old

        def gaps(misfit: float) -> "Array":
            found = differences * np.linalg.solve(scatter + misfit**2 * inverses, differences)
            return chdtrc(differences[0].size, found.sum(axis=(1, 2, 3)))  # tail of chi squared

        return gaps

    def _estimates(self, windows: list[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights in each window, their covariances, and inverses of the mean squares of the rows.

        They are those of a posterior, with the blocks of all windows after one another. What noise
        hides is not known. Weights of norm 1 are not taken for impossible: a prior that is too
        narrow would make the errors of two windows look smaller than they are. An eigenvalue of the
        Gram matrix is known to a factor of two where it is twice its noise.
        """
        windows = list(map(self._slopes, windows))
        if self._persons:
            windows = list(map(without_blanks, windows))
        many: Any = replace(
            windows[0],
            target=np.concatenate([each.target for each in windows]),
            **{
                name: np.repeat([getattr(each, name) for each in windows], self._blocks)[:, None]
                for name in ("n", "square", "design_scale", "target_scale")
            },
        )
        designs = [diagonal_blocks(each.design, self._blocks) for each in windows]
        values, vectors = np.linalg.eigh(np.concatenate(designs))
        turned = vectors.swapaxes(1, 2)
        noise = many.design_scale * sqrt(2.0 * values.shape[1])
        floor = np.maximum(noise, many.n * RELATIVE_ZERO)
        inverses = (vectors / np.maximum(values, floor)[:, None]) @ turned * many.n[:, None]
        hidden = values < 2.0 * noise
        values[hidden] = 0.0
        found = _posterior(many, values, vectors, 1.0 / len(windows[0].target))
        # Weights are about 1, so that a variance of 1e6 stands for knowing nothing.
        unknown = (vectors * (1e6 * hidden)[:, None]) @ turned
        return found.centre.reshape(*values.shape, 1), found.blocks + unknown, inverses

    def _correlation(self, start: Any, cut: Any, now: Any) -> "Scalar":
        """Absolute correlation of the noise before and after a cut, from the noise of the whole."""
        pairs = (start, now), (start, cut), (cut, now)
        total, before, after = (last.noise_since(first).scale for first, last in pairs)
        if not before * after:
            return 0.0
        found = (total**2 - before**2 - after**2) / (2.0 * before * after)
        return min(abs(found), 1.0)


@stored_in_policies
@frozen
class GrowingTimes:
    """Reads after 20, 40, ... rounds, and from 400 rounds on after 1.05 times as many each.

    Exact sums cost nothing to read: after each of the first 40 rounds, then as above. Learned
    answers are used soon however long the run becomes, so that nobody has to know how long it will
    be: 1,000 reads reach 1e22 rounds. The error of an estimate falls by at most 2.5% between two
    reads, so that more reads would help little, and cost noise. The noise is the least for the
    first 32 reads, or 700 rounds. Later sums grow faster than their noise does: beside a stream for
    200 reads it is .91 times as large up to 1,000 rounds, .97 at 10,000, 1.04 at 100,000, 1.12 at
    2.6 million, and .88 where a second stream would begin.

    Parameters
    ----------
    every : int
        Rounds between two reads, at least.
    growth : float
        Rounds between two reads, as a part of the rounds so far; at least ``every``.
    n_reads : int
        Number of reads of the first phase. The shuffle model has one: a batch is a stream of its
        own, whose noise is calibrated to its size.
    phases : int
        Each phase has so many times the reads of the one before.
    span : int or None
        Reads for which a curator's noise is the least; None is all of a phase.
    """

    every: int = 20
    growth: float = 0.05
    n_reads: int = 1000
    phases: int = 1
    span: int | None = 32

    @classmethod
    def even(cls, every: int | str, horizon: int) -> "GrowingTimes":
        """A read every so many rounds, "auto" being a 200th of the horizon.

        A phase has twice as many reads as the one before.
        """
        every = max(1, horizon // 200) if every == "auto" else int(every)
        return cls(every=every, growth=0.0, n_reads=-(-horizon // every), phases=2, span=None)

    def reads(self, phase: int) -> Any:
        """Number of reads of a phase, hence of one stream."""
        return self.n_reads * self.phases**phase

    def length(self, rounds: int) -> int:
        """Rounds between a read and the one before it, which came after so many rounds."""
        return max(self.every, int(self.growth * rounds))

    def end(self, rounds: int, reads: int) -> int:
        """Rounds after so many further reads."""
        for _ in range(reads):
            rounds += self.length(rounds)
        return rounds


# Batches are kept until there are so many, one has so many rows, or until a read: one sum is faster
# than many.
MOST_KEPT = 256


@stored_in_policies
class PhasedSums:
    """Running sum of a query, read at public times, for as many rounds as come.

    A phase is one stream. Phases have disjoint, publicly indexed rounds, so that one record pays
    for one of them; what a phase has released in its last read is kept and added to, since sums
    are additive. Every draw and every charge is the streams'.

    Parameters
    ----------
    query : Query
    times : GrowingTimes
        Public lengths between reads, and reads of each phase.
    options : dict
        privacy, budget, places and name, for :func:`skpriv.privacy.open_stream`.
    releases : int
        How many records of a person pay for a report each.
    random_state : None or RandomState
        Seed of the noise; None is secure.
    numbering : Numbering
        Numbers by which copies of the policy find the reads that were made.
    """

    def __init__(
        self,
        query: Any,
        times: GrowingTimes,
        options: dict[str, Any],
        releases: int,
        random_state: np.random.RandomState | None,
        numbering: "Numbering",
    ) -> None:
        self.query = query
        self.times = times
        self._numbering = numbering
        self.pending = self.rounds = 0  # since the last read, and before it
        self._opened = self._planned = 0  # streams that were opened, and rounds that they cover
        self._options = options
        self._releases = releases
        self._random_state = random_state
        self._partition = uuid.uuid4().hex
        self._streams: list[Any] = []  # that of the present phase, and those of the phases to come
        self._past = NOTHING.answer
        self.mark: Any = None  # the last read, as an end of a window
        self.report: Any = None  # with a row for each stream, once the first of them is open
        self._batches = Raw()  # (rows, rewards) of rounds that are not pushed yet
        self.reserve(1)

    @property
    def _present(self) -> Any:
        """The stream of the present phase."""
        return self._streams[0]

    @property
    def length(self) -> int:
        """Public number of rounds between the last read and the next one."""
        return self.times.length(self.rounds)

    @property
    def place(self) -> Any:
        """Number of the next read among those of all phases: that by which copies find it."""
        stream = self._present
        phase = self._opened - len(self._streams)
        ended = stream.reads == stream.n_reads
        return ((phase + ended) << 40) + (0 if ended else stream.reads)  # a phase has fewer reads

    def covers(self, rounds: int) -> bool:
        """Whether the streams are open that so many further rounds need."""
        return self.rounds + self.pending + rounds <= self._planned

    def reserve(self, rounds: int) -> None:
        """Open, hence charge, the streams that so many further rounds need."""
        while not self.covers(rounds):
            self._open()

    def take(self, X: np.ndarray, y: np.ndarray) -> Iterator[Any]:
        """Add records, and yield equations of all so far at every public time that is passed."""
        return self._taken(len(X), lambda part: self._keep(X[part], y[part]))

    def take_late(self, X: np.ndarray, y: np.ndarray, n: int) -> Iterator[Any]:
        """Add records that came in so many rounds, none of them beyond the next public time."""

        def add(part: slice) -> None:
            self._push()
            self._present.push(X, y, n)

        return self._taken(n, add)

    def take_reports(self, reports: "LiftedReports") -> Iterator[Any]:
        """Add reports that users have made, as `take` adds records."""
        return self._taken(
            len(reports.directions), lambda part: self._present.take(reports.part(part))
        )

    def counted(self) -> "list[ReportRow]":
        """Rows of the report, each with the records of its stream so far."""
        rows = [*self.report.rows]
        ended = len(rows) - len(self._streams)
        before = sum(row.records for row in rows[:ended])
        rows[ended] = replace(rows[ended], records=self.rounds + self.pending - before)
        return rows

    code: Any = passed_on("_present.noise.code", "Code of the users' reports.")

    def _taken(self, n: int, add: Callable[..., Any]) -> "Iterator[NormalEquations]":
        """Add n records in parts that end at public times, and yield equations there."""
        start = 0
        while start < n:
            length = self.length
            stop = min(n, start + length - self.pending)
            if self._present.reads == self._present.n_reads:
                self._past = self.mark.answer
                self.report.rows[:] = self.counted()
                self._streams.pop(0)
            add(slice(start, stop))
            self.pending += stop - start
            start = stop
            if self.pending == length:
                self.rounds += length
                self.pending = 0
                self._push()
                total = self._total(self._present.read())
                self.mark = Mark(self.rounds, total, self._present, self._present.reads)
                yield self.query.equations(total)

    def _keep(self, X: np.ndarray, y: np.ndarray) -> None:
        """Keep a few rows until there are enough of them for one sum."""
        # Copies: a slice would keep the whole batch alive.
        self._batches.append((X.copy(), y.copy()))
        if max(len(self._batches), len(X)) >= MOST_KEPT:
            self._push()

    def _push(self) -> None:
        """Give the rows that were kept to the present stream."""
        if batches := self._batches:
            self._batches = Raw()
            self._present.push(*map(np.concatenate, zip(*batches)))

    def _total(self, answer: Answer) -> Answer:
        if not self._past.n:
            return answer
        noise = self._past.noise.plus(answer.noise)
        return Answer(self._past.value + answer.value, self._past.n + answer.n, noise)

    def _open(self) -> None:
        reads = self.times.reads(self._opened)
        batch = self.times.length(self._planned)
        planned = self.times.end(self._planned, reads)  # a loop, which may be interrupted
        with parallel_part(self._opened, partition=self._partition):
            stream = open_stream(
                query=self.query,
                n_reads=reads,
                random_state=self._random_state,
                batch=batch,
                span=self.times.span,
                **self._options,
            )
            cost: Any = stream.report.charged
            for _ in range(self._releases - 1):  # a person pays for each of these reports
                charge(cost, self._options["name"])
        stream = stream.number(self._numbering.part(self._opened))
        if self.report is None:
            self.report = PrivacyReport(
                self._options["name"], stream.model, self._options["budget"],
                self._random_state is None, disjoint=True, simulated=stream.report.simulated,
            )  # fmt: skip
        (row,) = stream.report.rows  # the row that the session reported
        self.report.rows.append(replace(row, records=0))
        self._streams.append(stream)
        self._opened += 1
        self._planned = planned
