"""The fit: location, whitening, first moments and two Newton steps, asked of one session."""

from dataclasses import replace
from math import sqrt

import numpy as np

from ..._equations._newton import CUBE, FirstEquation, NewtonEquation, NewtonFit
from ..._equations._newton_estimate import KnownMean
from ..._equations._weights import WeightedMeanQuery
from ._pool import Pool, shrunk_gram
from ._queries import (
    FALL,
    FirstMomentsQuery,
    LocationQuery,
    NewtonQuery,
    ResidualMeanQuery,
    SpreadQuery,
    Whitened,
    WhiteningQuery,
)
from ._rules import LEAST_SPREAD, ROUNDS, skewness_bias

LAST_ROUND = 2.0  # records of the last round of the whitening over those of the first ones
EIGENVALUE_FLOOR = 0.1  # of the ridge of a whitening round
NORMAL = 1.25  # standard deviation of a normal variable over its mean deviation
SIGNAL = 2.0  # bound on tau^2, in units of the target's variance over the squared length
# |r - m| <= 2, and a fit is seldom more than half of that away, or three deviations of itself
RESIDUAL, REACHES = 2.5, 3.0
LARGEST_RESIDUAL, FREE_CLIP = 4.0, 8.0  # more room where k is so large that noise does not count
TAIL, WIDER_CLIP = 0.2, 1.1  # see _without_tail
LEAST_EXCESS = 0.01  # of the clip, that is, of its noise
# What the report says where there are too few records, by public numbers and the released spread.
MEAN_ONLY = "Only the mean of the target was asked: the records are too few for coefficients."
NOTHING = "The records are too few for coefficients, and there is no intercept: the fit is 0."
LOST = "The noise of the mean is {:.2g} half-ranges of the target, which hides it, too."
LOST_MEAN = 0.5  # half-ranges: nearly the deviation of a target that is anywhere in its range
# Deviations of the target by which half of a feature's range moves it, a priori: as features do
# that use their ranges, and, next, as those that use a thirtieth of them.
EFFECTS = 1.0, 30.0
WIDER = 10.0  # the prior of the constant, which is the best determined coefficient


def fit_rows(session, rows, target, rules, priors=()):
    """Ask the session for all that the rules plan, and solve.

    Parameters
    ----------
    session : Session
        Of the rows to fit; nothing else is read.
    rows : RowMap, or what stands in its place
        Public map with ``size``, ``rows(X)`` (norms at most 1) and ``constant``.
    target : TargetMap
    rules : Rules
    priors : sequence of ndarray
        Shapes L of a prior theta = tau L c that are thought more likely than equal coefficients.

    Returns
    -------
    NewtonFit
    """
    if rules.mean_only:
        return _mean_only(session, rows, target, [], 1.0)
    means, deviation = _location(session, target, rules)
    if deviation * rules.reach < LEAST_SPREAD:  # the mean itself is hard to find: see Rules
        return _mean_only(session, rows, target, means, rules.after_location)
    location, location_scale = means[0] if means else (0.0, 0.0)
    whitened = Whitened(rows, learn_whitening(session, rows, rules))
    whole = 1.0 + abs(location)
    limit = whole if rules.whole else min(whole, rules.target_clip * deviation)
    moments = FirstMomentsQuery(whitened, target, location, limit)
    answer = session.sum(moments, rules.moments)
    largest = SIGNAL * (deviation / rules.length) ** 2
    _, (gram, gram_noise), _ = first = moments.read(answer)
    # Coefficients of equal size in whitened coordinates, or in those of the rows
    back = np.linalg.inv(whitened.W.T)
    bounded = [
        _bounded_prior(whitened, size * deviation, deviation / rules.length) for size in EFFECTS
    ]
    shapes = [*bounded, back @ _row_prior(rows)]
    shapes = [*(back @ prior for prior in priors), *shapes]
    pool = Pool(first, answer.n, session.trust.curator, largest, shapes)
    newton: list[NewtonEquation] = []
    for share in filter(None, (rules.first, rules.last)):
        most = LARGEST_RESIDUAL
        if rules.clip < FREE_CLIP:
            most = min(whole + REACHES * pool.spread, RESIDUAL)
        clip = min(rules.clip * sqrt(pool.variance), most)
        if newton and rules.wide:
            reach = _largest_excess(whitened, location, pool.b, 0.0)
            clip = _without_tail(newton[0], clip, most, rules, reach)
        excess: float | None = _largest_excess(whitened, location, pool.b, clip)
        if excess and not (rules.whole and share == rules.last):
            excess = None  # only certified intervals ask for it
        elif excess and excess < LEAST_EXCESS * clip:  # not worth a number: nothing is cut
            clip, excess = clip + excess, 0.0
        step = NewtonQuery(
            whitened,
            target,
            location,
            pool.b,
            clip,
            count_far=rules.published,
            most_excess=excess,
        )
        newton.append(NewtonEquation.of(step, session.sum(step, share)))
        pool.add(newton[-1])
    mean = None
    if rules.location and rows.constant is not None:
        constant = np.linalg.solve(whitened.W.T, rows.constant)
        mean = _known_mean(pool, constant, location_scale, newton[-1], deviation)
        if rules.mean:
            mean = _move_mean(session, whitened, target, means[0], deviation, pool, mean, rules)
        else:
            pool.recentre(constant, location_scale, mean.skew)
    return NewtonFit(
        location,
        location_scale,
        whitened.W,
        pool.b,
        pool.variance,
        pool.gram()[1],
        FirstEquation(gram, gram_noise),
        tuple(newton),
        same_rows=session.trust.curator,
        mean=mean,
    )


def _largest_excess(whitened, location, b, clip):
    """Largest excess of a residual w (r - m) - e'b over the clip: w <= 1, r in [-1, 1], and e'b is
    w phi'theta, and at most |b|.
    """
    theta, most = whitened.W.T @ b, float(np.linalg.norm(b))
    low, high = (-np.linalg.norm(theta), np.linalg.norm(theta))
    if hasattr(whitened.rows, "span"):
        low, high = whitened.rows.span(theta)
    above, below = 1.0 + location + min(high, most), 1.0 - location + min(-low, most)
    return max(max(above, below) - clip, 0.0)


def _without_tail(equation, clip, most, rules, reach):
    """The least limit from this one on at which the tail that a step has seen moves no coordinate
    of the next one by more than a part of its error, of privacy and sampling together.

    What is beyond the limit counts for less still where it is asked for: see `NewtonQuery`.
    """
    p = len(equation.moment)
    unit = equation.moment_scale / equation.limit * sqrt(rules.first / rules.last)
    sampling = equation.variance * rules.length**2 / p / equation.n
    while clip < most:
        slope = min(FALL * clip / max(reach - clip, FALL * clip), 1.0) if rules.whole else 0.0
        bias = (1.0 + slope) * equation.tail_bias(clip)
        if bias <= TAIL * sqrt((unit * clip) ** 2 + sampling):
            break
        clip = min(WIDER_CLIP * clip, most)
    return clip


def _known_mean(pool, constant, location_scale, equation, deviation):
    """What the location and the first moments, which cut nothing, say of the mean of the fit.

    The last Newton step moves the mean by what `skewness_bias` says, or by what a tail like the
    inverse cube does if that is more, but by no more than if all residuals that it counted near its
    limit were on one side and a deviation beyond it.
    """
    values, variances = pool.excess(constant, location_scale)
    deviation = _deviation(pool, deviation)
    clip, counted = equation.limit / deviation, max(equation.nearly_cut, 0.0)
    counted += 2.0 * equation.cut_scale
    skew = deviation * min(counted, max(skewness_bias(clip), CUBE * clip * counted))
    skew *= 1.0 + equation.slope
    gram, none = pool.gram()[1], np.zeros(len(values))
    return KnownMean(pool.b, constant, gram, values, variances, none, skew)


def _deviation(pool, deviation):
    """Deviation of the residuals that no clip made small: clipped at 1.25 of their own deviations,
    those of a rare target have a third of theirs.
    """
    return sqrt(max(pool.variance, deviation**2 - pool.spread**2))


def _move_mean(session, whitened, target, means, deviation, pool, known, rules):
    """Move the mean of the fit to where all that is released together says that it is.

    The excess of the mean is 0 by the Newton steps, up to their noise along the constant and what
    clipping skewed residuals did to it; the mean of the residuals knows it up to its noise and what
    its wider clip does, the location and the first moments up to their noise. Skewness moves the
    first two in one direction: s times what `skewness_bias` says, with s ~ N(0, 1) the other
    unknown of a least-squares problem.

    Returns
    -------
    KnownMean
        What was known, and the mean of the residuals.
    """
    location, location_scale = means
    constant = known.constant
    moved = pool.recentre(constant, location_scale)
    deviation = _deviation(pool, deviation)
    limit = min(1.0 + abs(location) + REACHES * pool.spread, rules.mean_clip * deviation)
    theta = whitened.W.T @ pool.b
    query = ResidualMeanQuery(whitened.rows, target, location, theta, limit)
    answer = session.sum(query, rules.mean)
    found = np.array([0.0, moved - limit * float(answer.value[0]) / answer.n, *known.values])
    noise = (limit * answer.noise.scale / answer.n) ** 2
    clips = np.array([rules.clip * sqrt(pool.variance), limit]) / deviation
    skew = [deviation * skewness_bias(clip) for clip in clips]
    variances = np.array([noise, *known.variances])
    error = np.sqrt([pool.noise * float(constant @ constant), *variances])
    design = np.column_stack([np.ones(4), [*skew, 0.0, 0.0]]) / error[:, None]
    normal = design.T @ design + np.diag([0.0, 1.0])
    excess = np.linalg.solve(normal, design.T @ (found / error))[0]
    pool.b = pool.b - constant * (float(excess) - moved)
    if not session.trust.curator:  # the residuals of other users
        variances[0] += deviation**2 / answer.n
    skews = np.array([skew[1], 0.0, 0.0])
    return replace(known, values=found[1:], variances=variances, skews=skews)


def _bounded_prior(whitened, effect, unit):
    """Equal coefficients in whitened coordinates, as far as half of a feature's range moves the
    target by about this effect.

    Of a constant column or a rare category W makes what noise lets it, so that a coefficient of
    usual size in whitened coordinates would move a row that has it by many deviations, out of the
    bounds of the target. Precisions add up: 1 / unit^2 of a function whose variance is that of the
    target, and those of the effects. Where features use little of their range evidence speaks for
    the larger effect. Without a bound a small part of the evidence would do: coefficients of a
    constant column had no limit as n grew.
    """
    W = whitened.W
    prior = effect * sqrt(len(W)) * _row_prior(whitened.rows)
    along = W @ np.linalg.inv(prior)
    precision = np.eye(len(W)) / unit**2 + along @ along.T
    values, vectors = np.linalg.eigh(precision)
    return vectors * values**-0.5


def _row_prior(rows):
    """Prior of theta: equal coefficients of phi, and a wider constant."""
    prior = np.eye(rows.size)
    if rows.constant is not None:
        unit = rows.constant / np.linalg.norm(rows.constant)
        prior += (WIDER - 1.0) * np.outer(unit, unit)
    return prior


def _mean_only(session, rows, target, means, share):
    """The private mean with all that is left, pooled with what is known of it."""
    if getattr(rows, "weighted", False) and rows.constant is not None:
        query = WeightedMeanQuery(rows)
        means = [query.read(session.sum(query, share))]
    elif rows.constant is not None:
        means = [*means, _mean(session, target, share)]
    location, scale = 0.0, 0.0
    if means:
        weights = np.array([scale**-2.0 for _, scale in means])
        location = float(weights @ [mean for mean, _ in means] / weights.sum())
        scale = float(weights.sum() ** -0.5)
    session.report.note = MEAN_ONLY if rows.constant is not None else NOTHING
    if scale > LOST_MEAN:
        session.report.note += f" {LOST.format(scale)}"
    p = rows.size
    nothing, variance = np.zeros((p, p)), 1.0 - location**2
    return NewtonFit(location, scale, np.eye(p), nothing[0], variance, nothing, None, (), True)


def _mean(session, target, share):
    """Noisy mean of the target, and the standard deviation of its noise."""
    answer = session.sum(LocationQuery(target), share)
    return float(np.clip(answer.value[0] / answer.n, -1.0, 1.0)), answer.noise.scale / answer.n


def _location(session, target, rules):
    """Noisy means (none without an intercept), and the target's deviation if it were normal."""
    means = [_mean(session, target, rules.location)] if rules.location else []
    query = SpreadQuery(target, means[0][0] if means else 0.0)
    answer = session.sum(query, rules.spread)
    noise = answer.noise.scale / answer.n
    return means, NORMAL * max(float(answer.value[0]) / answer.n, 2.0 * noise, 1e-6)


def learn_whitening(session, rows, rules):
    """W such that W phi has about equal length in all directions that are above the noise."""
    p = rows.size
    W = np.eye(p)
    for part in (1.0, 1.0, LAST_ROUND):
        subset = None
        if session.model == "central" and session.ordered and part * rules.subset < 1.0:
            # Evenly spread positions: public, whatever the records are.
            step = 1.0 / (part * rules.subset)
            subset = np.arange(0.0, session.n - 1.0, step).astype(np.intp)
        query = WhiteningQuery(Whitened(rows, W))
        gram, scale = query.gram(session.sum(query, rules.whitening / ROUNDS, subset))
        gram, weight = shrunk_gram(gram, scale)
        ridge = weight * scale * sqrt(2.0 * p)  # the operator norm that the noise would have
        values, vectors = np.linalg.eigh(gram + ridge * np.eye(p))
        values = np.maximum(values, max(EIGENVALUE_FLOOR * ridge, 1e-14 * values[-1]))
        W = (vectors * values**-0.5) @ vectors.T @ W
        # The sum is the number of directions that are above the noise.
        W *= rules.length / sqrt(max((np.maximum(values - ridge, 0.0) / values).sum(), 1.0))
        # No row is longer than W makes it: where that is below 1, more costs no weight.
        W /= min(1.0, float(np.linalg.norm(W, 2)))
        # Rotated: cheaper to apply, and otherwise the same
        W = np.asarray(np.linalg.qr(W, mode="r"))
    return W
