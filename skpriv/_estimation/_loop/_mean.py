"""The mean: of the target before a fit, of the residuals after it, and alone."""

from math import ceil, pi, sqrt

import numpy as np

from ...privacy import TOLD_ABOVE
from ._score import CUBE
from ._estimate import KnownMean, weights_move_mean
from ._fit import LoopFit
from ._links import IDENTITY
from ._queries import Location, LocationQuery, ResidualMeanQuery, SpreadQuery
from ._rules import mean_clip, skewness_bias

NORMAL = sqrt(pi / 2.0)  # standard deviation of a normal variable over its mean deviation
# What the report says where there are too few records, by public numbers and the released spread.
MEAN_ONLY = "Only the mean of the target was asked: the records are too few for coefficients."
RATES_ONLY = "Only the rates of the classes were asked: records are too few for coefficients."
NO_INTERCEPT = "The records are too few for coefficients, and there is no intercept: the fit is 0."
FEW_RECORDS = (
    "The records are few: features were not whitened, and coefficients are shrunk as far as noise "
    "requires."
)
MEAN_HIDDEN = "The noise of the mean is {:.2g} half-ranges of the target, which hides it, too."
TARGET_HIDDEN = (
    "Only the mean of the target was asked: it varies too little inside of bounds_y to be told "
    "from noise. Narrower bounds_y would help, if they hold."
)


def find_location(session, rows, target, rules, link=IDENTITY):
    """Noisy mean (None without an intercept), and the target's deviation, if it were normal."""
    mean = None
    if rules.location:
        mean = _mean(session, rows, target, link, rules.location)
    if link.parts > 1:
        return mean, 1.0
    if not rules.spread:  # of two classes
        rate = mean.mean if mean else 0.5
        return mean, sqrt(rate * (1.0 - rate))
    query = SpreadQuery(target, mean.mean if mean else 0.0, link.low, rows)
    answer = session.sum(query, rules.spread)
    noise = answer.noise.scale / answer.n
    size = max(float(answer.value[0]) / answer.n, 2.0 * noise, 1e-6)
    return mean, min(NORMAL * size / (mean.part if mean else 1.0), 1.0)


def mean_only(session, rows, target, rules, link=IDENTITY):
    """The private mean with all that is left, pooled with what is known of it.

    Once a location and the spread are known, the last look clips the residuals at a few deviations:
    of a target that varies by a tenth of its range it has a third of the noise.
    """
    location, scale, found = link.origin, 0.0, None
    if rows.constant is not None and link.parts > 1:
        location = _mean(session, rows, target, link, 1.0).mean
    elif rows.constant is not None:
        plain = link.linear and not getattr(rows, "weighted", False)
        plain = plain and session.records(rules.spread) > 0  # see `fit_rows`
        if plain:
            found, deviation = find_location(session, rows, target, rules)
        share = rules.after_location if found else 1.0
        means = [found] if found else []
        if plain:
            means.append(_mean_of_residuals(session, rows, target, rules, share, found, deviation))
        else:
            means.append(_mean(session, rows, target, link, share))
        weights = np.array([one.scale**-2.0 for one in means])
        location = float(weights @ [one.mean for one in means] / weights.sum())
        scale = float(weights.sum() ** -0.5)
    p = rows.size * link.parts
    session.report.add_note(_words(session, rules, rows, link, scale))
    nothing, variance = np.zeros((p, p)), 1.0 if link.parts > 1 else 1.0 - location**2
    if rows.constant is not None:
        location = link.linear_part(location)
    return LoopFit(location, np.eye(p), nothing[0], variance, nothing, (), None, True, session.n,
                   rules.effective_records, link=link)  # fmt: skip


def _words(session, rules, rows, link, scale):
    """What the report says of a constant fit."""
    p = rows.size * link.parts
    if rows.constant is None:
        return NO_INTERCEPT
    if link.parts > 1:
        return f"{RATES_ONLY} {more_needed(session, rules, link.enough(p))}"
    words = TARGET_HIDDEN
    if rules.mean_only:
        least = link.mean_effective_records if link.linear else link.enough(p)
        words = f"{MEAN_ONLY} {more_needed(session, rules, least)}"
    words += f" Noise of the mean: {50.0 * scale:.2g}% of bounds_y (standard deviation)."
    # 1 / sqrt(3) is the deviation of a target that is anywhere in its range
    return words + (f" {MEAN_HIDDEN.format(scale)}" if scale > sqrt(1.0 / 3.0) else "")


def more_needed(session, rules, effective_records):
    """How many times the records or epsilon make this effective number of records, in words."""
    times = effective_records / rules.effective_records
    power = 1.0 if session.trust.can.same_rows else 2.0  # see `Rules`
    records, budget = (ceil(10.0 * size) / 10.0 for size in (times**power, times))
    return f"About {records:g} times the records, or {budget:g} times epsilon, would do."


def _mean(session, rows, target, link, share):
    """Noisy mean of the target."""
    several = link.parts > 1
    query = link.rates_query(rows, target) if several else LocationQuery(target, link.low, rows)
    found = query.read(session.sum(query, share))
    if not query.weighted:
        tell_labels(session, found.part, 2.0 * found.scale * found.part)
    return found


def tell_labels(session, part, noise):
    """Say in the report which part of the rows has a target, unless noise may explain the rest."""
    if part < 1.0 - TOLD_ABOVE * noise and (session.persons or 1) == 1:
        session.report.add_note(
            f"About {part:.1%} of the rows have a target that can be learned from: a class, or a "
            "number."
        )


def _mean_of_residuals(session, rows, target, rules, share, found, deviation):
    """Noisy mean of the target by what is left of it."""
    clip = mean_clip(2.0 / (rules.effective_records * sqrt(share)))
    limit = clip * deviation + 2.0 * found.scale
    if limit >= 1.0:  # no less noise
        return _mean(session, rows, target, IDENTITY, share)
    query = ResidualMeanQuery(rows, target, found.mean, np.zeros(rows.size), limit)
    answer = session.sum(query, share)
    mean = found.mean + limit * float(answer.value[0]) / answer.n
    return Location(float(np.clip(mean, -1.0, 1.0)), limit * answer.noise.scale / answer.n, 1.0)


def known_mean(session, whitened, target, mean, deviation, pool, equation, rules, link=IDENTITY):
    """What is known of the mean of a fit beside its steps, and by how much they miss it.

    The mean of the target, which cuts nothing, and where clips are tight the mean of the residuals
    at a wider clip, each by its precision; what that clip may do counts as one more error. The last
    step moves the mean by what `skewness_bias` says, or by what a tail like the inverse cube does
    if that is more, but by no more than if all residuals that it counted near its limit were on one
    side and as far beyond it as targets reach. All are differences of linear parts: where the link
    bends the mean of the linear part does not tell that of the target, and only residuals do.

    Parameters
    ----------
    mean : Location
        Released mean of the target.
    deviation : float
        Deviation of the target.
    equation : ScoreEquation
        The last one.

    Returns
    -------
    KnownMean
    """
    constant = np.linalg.solve(whitened.W.T, whitened.rows.constant)
    start = link.linear_part(mean.mean)
    slope = mean.part * link.steepest / link.far * float(link.slope(start, mean.mean))
    gram = pool.slope / slope
    level = max(float(constant @ gram @ constant), 0.1)  # mean of w^2
    moved = weights_move_mean(level, float(pool.b @ gram @ pool.b))
    value, precision = float(constant @ gram @ pool.b) / level, 0.0
    if link.linear:
        precision = 1.0 / (mean.scale**2 + pool.variance / equation.n + moved)
        # Of residuals that no clip made small: clipped at 1.25 of their own deviations, those of a
        # rare target have a third of theirs.
        deviation = sqrt(max(pool.variance, deviation**2 - pool.spread**2))
    unit = 1.0 if link.linear else slope / mean.part
    if rules.mean:
        clip = mean_clip(2.0 / (rules.effective_records * sqrt(rules.mean)))
        limit = min(link.farthest, clip * deviation)
        theta = whitened.W.T @ pool.b
        query = ResidualMeanQuery(whitened.rows, target, start, theta, limit, link)
        answer = session.sum(query, rules.mean)
        residual = limit * float(answer.value[0]) / answer.n / mean.part
        noise = limit * answer.noise.scale / answer.n / mean.part
        # The mean of counts is not thought to be below this noise
        found = link.linear_part(max(mean.mean - residual, noise)) - start
        found = -residual if link.linear else found
        error = noise**2 + (deviation * skewness_bias(clip)) ** 2
        if session.trust.can.reports:  # the residuals of other users
            error += deviation**2 / answer.n
        error /= unit**2
        value = (value * precision + found / error) / (precision + 1.0 / error)
        precision += 1.0 / error
    clip, counted = equation.limit / deviation, max(equation.nearly_cut, 0.0)
    counted += 2.0 * equation.cut_scale
    skew = deviation * max(skewness_bias(clip), CUBE * clip * counted)
    skew = min(skew, max(link.farthest - equation.limit, 0.0) * counted)
    skew *= (1.0 + equation.fall) / unit
    return KnownMean(pool.b, constant, gram, value, 1.0 / precision, skew, slope)
