"""The fit of a generalised linear model: a rate, a whitening, and many small score steps."""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from ..._linalg import psd_part
from ..._equations._loop._pool import DESIGN, SOLVES, posterior_mean, shrunk_gram
from ..._equations._loop._queries import Whitened
from ..._equations._loop._rules import SUBSET_RESOLUTIONS, part_needed
from ..._equations._loop._whitening import learn_whitening
from ._fit import MeanOfFit, ScoreFit
from ._score import RateQuery, ResidualQuery, ScoreEquation, ScoreQuery

LONGEST_MOVE = 3.0  # change of eta in one step, for a row of usual length
WIDEST_PRIOR = 100.0  # variance of eta, a priori
MEAN_ROOM = 4.0  # times the mean count, above which a mean needs no more room: see `Log`
LEAST_SIZE = 0.3  # of the mean count: residuals are not thought to be smaller on average
MEAN_CLIP = 3.0  # the limit at which the mean of the fit is asked, over that of the steps


@dataclass(frozen=True)
class Rules:
    """What a fit does, by public numbers alone.

    Attributes
    ----------
    rate, mean, whitening, step : float
        Shares of the mean of the target (twice for counts), of the mean of the fit, of the
        whitening, and of each score step.
    clip : float
        Limit of residuals, in units of their mean size; where the link leaves it open.
    steps : int
    length : float
        Root mean square length of a whitened row.
    subset : float
        Part of the records that the whitening asks.
    """

    rate: float
    mean: float
    clip: float
    whitening: float
    step: float
    steps: int
    length: float
    subset: float
    lengths = 0.0  # the lengths of rows are not asked: far rows count for less by their weights

    @property
    def whitened(self):
        """Length in the last round of the whitening."""
        return self.length

    @classmethod
    def of(cls, n, p, reach, same_rows=True, clipped=False, fit_intercept=True):
        """Rules for n records, rows of length p, and N of the records over the noise of a count."""
        rate = min(max((RATE_REACH / reach) ** 2, RATE_SHARES[0]), RATE_SHARES[1])
        whitening, mean = WHITENING_SHARE, MEAN_SHARE if clipped and fit_intercept else 0.0
        if not same_rows:  # each share is of the users, of whom there must be some
            rate, whitening, mean = USER_SHARE, 3.0 * USER_SHARE, mean and USER_SHARE
        resolution = reach / p**1.5
        steps = SCORE_STEPS if same_rows else USER_STEPS
        length = NOISE_LENGTH * sqrt(n * p) / reach
        rest = 1.0 - (2.0 if clipped else 1.0) * rate - mean - whitening
        return cls(
            rate=rate,
            mean=mean,
            clip=COUNT_CLIP * max(1.0, reach / sqrt(n * p) / FREE_PRECISION) ** 0.5,
            whitening=whitening,
            step=rest / steps,
            steps=steps,
            length=min(1.0, max(length, LEAST_LENGTH)),
            subset=min(1.0, part_needed(n, p, SUBSET_RESOLUTIONS[0] / resolution)),
        )


# The noise of the rate is 1 / (N sqrt(share)): at most 1 / 50, where that costs at most a tenth
RATE_SHARES, RATE_REACH = (0.01, 0.1), 50.0
WHITENING_SHARE, MEAN_SHARE = 0.15, 0.08
# The limit of counts, in mean sizes of residuals, grows with N / sqrt(n p): privacy noise, which is
# in proportion to it, falls beside sampling, and the limit fades
COUNT_CLIP, FREE_PRECISION = 2.5, 8.0
# The gain in log loss is flat between 6 and 24 steps; users who answer once are divided by them.
SCORE_STEPS, USER_STEPS, USER_SHARE = 12, 3, 0.1
# Privacy noise of eta is 2 sqrt(n p) / (N length sqrt(h)) of its sampling error, h the slope: a
# fifth of it, at h = 1/6, where rows need not be longer
NOISE_LENGTH, LEAST_LENGTH = 24.0, 0.25  # below that no row counts for less anyway


def fit_scores(session, rows, asked, target, link, rules, weighted=False):
    """Ask the session for all that the rules plan, and solve.

    Parameters
    ----------
    session : Session
    rows : RowMap
        The map of the features.
    asked : RowMap or WeightedMap
        The map of what the session has: the features, or those and the root of a weight.
    target : object with ``scaled(y)``
    link : Link
    rules : Rules
    weighted : bool

    Returns
    -------
    ScoreFit
    """
    query = RateQuery(target, weighted)
    rate, part = query.rate(session.sum(query, rules.rate))
    start = np.zeros(rows.size)
    if rows.constant is not None:
        start = rows.constant * link.inverse(rate)
    if link.clipped:
        sizes = ResidualQuery(
            rows, target, link, start, 1.0, weighted, size=True, name="mean size of the residuals"
        )
        answer = session.sum(sizes, rules.rate)
        size = float(answer.value[0]) / answer.n / part
        size = float(np.clip(size, LEAST_SIZE * rate, 1.0))
        link = replace(link, level=min(1.0, MEAN_ROOM * rate), limit=min(1.0, rules.clip * size))
    W, _ = learn_whitening(session, asked, rules)
    whitened = Whitened(rows, W)
    pool = Pool(np.linalg.solve(W.T, start), rules.length, session.trust.can.same_rows)
    for _ in range(rules.steps):
        step = ScoreQuery(whitened, target, link, pool.b, weighted)
        pool.add(ScoreEquation.of(step, session.sum(step, rules.step)))
    known = None
    if rules.mean:
        known = _known_mean(
            session, rows, target, link, rate, part, rules, weighted, whitened, pool
        )
    fit = ScoreFit(link, W, pool.b, tuple(pool.equations), session.trust.can.same_rows, known)
    return fit if known is None else replace(fit, b=known.moved(fit.b))


def _known_mean(session, rows, target, link, rate, part, rules, weighted, whitened, pool):
    """The mean of the fit, asked with a wider limit than that of the steps."""
    wide = min(1.0, MEAN_CLIP * link.limit)
    asked = ResidualQuery(rows, target, link, whitened.W.T @ pool.b, wide, weighted)
    answer = session.sum(asked, rules.mean)
    residual = wide * float(answer.value[0]) / answer.n / part
    level = max(rate - residual, LEAST_SIZE * rate)  # the mean of the fitted means
    scale = wide * answer.noise.scale / answer.n / part
    constant = np.linalg.solve(whitened.W.T, rows.constant)
    shift = float(np.clip(np.log(max(level + residual, LEAST_SIZE * level) / level), -1.0, 1.0))
    return MeanOfFit(pool.b, constant, shift, scale / level)


class Pool:
    """Score equations, weighed by their noise and by how far the mean bends up to the solution.

    The moment of an equation at b_k is H (b* - b_k) up to half of mean(e m (psi'(b* - b_k))^2),
    with m the second derivative of the mean. For the logit and the log link |m| is at most the
    slope, so that this vector is at most d / 2 long for rows of length at most 1, where d is the
    square of b* - b_k in the norm of H. An error of that size in a direction that is not known
    counts as noise of variance d^2 / (4 p) in each coordinate, so that an equation that was asked
    far away leaves the pool as later ones come near. The slopes of two points differ by about the
    root of d / h of their size, h the mean slope: as noise of each coordinate of a matrix of trace
    t, whose Frobenius norm is t / sqrt(p), that is t d length^2 / p^3.

    A Newton step on a curve that bends may go too far, and where classes are rare it does. No step
    changes the fit by more than ``LONGEST_MOVE`` for a row of usual length.

    Parameters
    ----------
    start : ndarray of shape (p,)
        The centre of the prior.
    length : float
        Root mean square length of a whitened row.
    same_rows : bool
        Whether all equations are of the same records.

    Attributes
    ----------
    b : ndarray of shape (p,)
    equations : list of ScoreEquation
    """

    def __init__(self, start, length, same_rows):
        self._start, self._length, self._same_rows = start, length, same_rows
        self.b, self.equations, self._gram = start, [], None

    def add(self, equation):
        """Solve again with one more equation."""
        self.equations.append(equation)
        begin = self.b
        for _ in range(SOLVES):
            move = self._solution() - begin
            far = float(np.linalg.norm(move)) * self._length / LONGEST_MOVE
            self.b = begin + move / max(far, 1.0)

    def _solution(self):
        """Posterior mean, with equations weighed by their distance to the last solution."""
        p, equations = len(self.b), self.equations
        gram, scale, squares = self._slopes()
        precisions, moments = [], []
        for eq, square in zip(equations, squares, strict=True):
            away = self.b - eq.point
            noise = eq.moment_scale**2 + DESIGN * scale**2 * float(away @ away)
            precisions.append(1.0 / (noise + square**2 / (4.0 * p)))
            moments.append(eq.moment + gram @ (eq.point - self._start))
        pooled = np.average(moments, axis=0, weights=precisions)
        counts = [eq.n for eq in equations]
        n = counts[-1] if self._same_rows else sum(counts)
        level = max(float(np.trace(gram)), scale * sqrt(p), 1e-300)
        meat = np.average([np.trace(eq.meat) for eq in equations], weights=precisions)
        sampling = max(float(meat) / level, 1.0) / n
        largest = WIDEST_PRIOR / self._length**2
        noise = 1.0 / sum(precisions)
        return self._start + posterior_mean(gram, pooled, noise, sampling, [np.eye(p)], largest)

    def _slopes(self):
        """Mean slopes at the solution, positive; the noise of its coordinates; all d."""
        p, equations = len(self.b), self.equations
        noises = np.array([eq.slope_scale**2 for eq in equations])
        gram, squares = self._gram, np.zeros(len(equations))
        if gram is not None:
            aways = np.array([self.b - eq.point for eq in equations])
            squares = np.einsum("ij,jk,ik->i", aways, gram, aways)
            noises = noises + float(np.trace(gram)) * squares * self._length**2 / p**3
        weights = (1.0 / noises) / (1.0 / noises).sum()
        total = sum(w * eq.slopes for w, eq in zip(weights, equations, strict=True))
        scale = sqrt(sum((w * eq.slope_scale) ** 2 for w, eq in zip(weights, equations)))
        self._gram = psd_part(shrunk_gram(total, scale)[0])
        return self._gram, scale, squares
