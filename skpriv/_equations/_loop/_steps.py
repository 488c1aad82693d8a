"""The fit: location, whitening, and many small steps of one question, asked of one session."""

from dataclasses import replace
from math import sqrt

import numpy as np

from ._equation import ScoreEquation
from ._fit import LoopFit
from ._links import IDENTITY
from .._persons import seldom_cut
from ._mean import REACHES, find_location, known_mean, mean_only
from ._persons import PersonLengthsQuery, PersonScoreQuery
from ._pool import Pool
from ._queries import ClippedRowsQuery, Whitened
from ._rules import LEAST_SPREAD
from ._score import ScoreQuery
from ._whitening import learn_whitening, whitening_parts

SIGNAL = 2.0  # bound on tau^2, in units of the target's variance over the squared length
# |r - m| <= 2, and a fit is seldom more than half of that away, or three deviations of itself
RESIDUAL = 2.5
LARGEST_RESIDUAL, FREE_CLIP = 4.0, 8.0  # more room where k is so large that noise does not count
# Of the steps, for the lengths of the scores of persons, before the first and before the last one
PERSON_LENGTHS_SHARE = 0.06
LEAST_EXCESS = 0.01  # of the clip, that is, of its noise
# Deviations of the target by which half of a feature's range moves it, a priori: as features do
# that use their ranges, and, next, as those that use a thirtieth of them.
EFFECTS = 1.0, 30.0
CONSTANT_PRIOR = 10.0  # the prior of the constant, which is the best determined coefficient


def fit_rows(session, rows, target, rules, link=IDENTITY, priors=()):
    """Ask the session for all that the rules plan, and solve.

    Parameters
    ----------
    session : Session
        Session of the rows to fit; nothing else is read.
    rows : RowMap, or what stands in its place
        Public map with ``size``, ``rows(X)`` (norms at most 1) and ``constant``.
    target : TargetMap
    rules : Rules
    link : Link
    priors : sequence of ndarray
        Shapes L of a prior theta = tau L c that are thought more likely than equal coefficients.

    Returns
    -------
    LoopFit
    """
    if rules.mean_only:
        return mean_only(session, rows, target, rules)
    if not hasattr(rows, "outside"):  # a public property of the map
        rules = rules.without_count()
    whitening_parts(session, rules)  # so that files are read once for them and the targets
    means, deviation = find_location(session, target, rules)
    if deviation * rules.reach < LEAST_SPREAD:  # the mean itself is hard to find: see Rules
        return mean_only(session, rows, target, rules, means, deviation)
    mean, mean_scale = means[0] if means else (0.0, 0.0)
    location = link.linear_part(mean)
    W, length = learn_whitening(session, rows, rules)
    whitened = Whitened(rows, W)
    signal = deviation if link.signal is None else link.signal
    pool = Pool(
        rows.size, deviation, _shapes(whitened, signal, signal / length, priors),
        SIGNAL * (signal / length) ** 2, link, session.trust.can.same_rows,
    )  # fmt: skip
    equations: list[ScoreEquation] = []
    count = ClippedRowsQuery(rows) if rules.clipped else None
    kept, lengths = 1.0, PERSON_LENGTHS_SHARE if session.persons is not None else 0.0
    for number, share in enumerate(rules.steps, 1):
        last = number == len(rules.steps)
        clip = _clip(rules, pool, link, 1.0 + abs(mean))
        excess = _largest_excess(whitened, location, pool.b, clip) if link.linear else None
        if excess and not (rules.whole and last):
            excess = None  # only certified intervals ask for it
        elif excess and excess < LEAST_EXCESS * clip:  # not worth a number: nothing is cut
            clip, excess = clip + excess, 0.0
        query = ScoreQuery(
            whitened, target, location, pool.b, clip, link,
            sandwich=last or not rules.whole, most_excess=excess,
        )  # fmt: skip
        if lengths:
            asked = whitened, target, location, pool.b, clip, link
            if last or number == 1:
                part = lengths * sum(rules.steps) / 2.0
                kept = seldom_cut(session, PersonLengthsQuery(*asked), part)
            query = PersonScoreQuery(*asked, sandwich=True, length=kept)
            share *= 1.0 - lengths
        if last and count:  # which files are read once for
            session.together(query, count)
        equations.append(ScoreEquation.of(query, session.sum(query, share)))
        pool.add(equations[-1])
    clipped = count.read(session.sum(count, rules.clipped)) if count else None
    known = None
    if link.linear and rules.location and rows.constant is not None:
        known = known_mean(
            session, whitened, target, means[0], deviation, pool, equations[-1], rules
        )
        # What clips did to the mean is undone as far as what is known beside the steps tells.
        excess, _, _ = known.excess(pool.b, pool.noise, np.zeros((rows.size, 0)))
        pool.b = pool.b - known.constant * excess
        known = replace(known, point=pool.b, value=known.value - excess)
    line = None
    if rules.line:
        line = _least_squares(session, whitened, target, location, pool.b, link, rules.line)
    return LoopFit(
        location,
        mean_scale,
        W,
        pool.b,
        pool.variance,
        pool.slope,
        tuple(equations),
        line,
        same_rows=session.trust.can.same_rows,
        mean=known,
        link=link,
        places=session.persons or 1,
        clipped=clipped,
    )


def _clip(rules, pool, link, whole):
    """Limit of the residuals of the next step, in half-ranges of the target."""
    if link.limit is not None:
        return link.limit
    most = LARGEST_RESIDUAL
    if rules.clip < FREE_CLIP:
        most = min(whole + REACHES * pool.spread, RESIDUAL)
    return min(rules.clip * sqrt(pool.variance), most)


def _least_squares(session, whitened, target, location, b, link, share):
    """The equation of all rows without clips or weights, of rows so short that none is longer than
    1. What is asked of them is brought back to the length that they had.
    """
    reach = whitened.rows.reach(whitened.W) if hasattr(whitened.rows, "reach") else 0.0
    reach = max(reach or float(np.linalg.norm(whitened.W, 2)), 1.0)
    short = Whitened(whitened.rows, whitened.W / reach)
    limit, excess = link.limit, None
    if link.linear:
        limit, excess = _largest_excess(short, location, reach * b, 0.0), 0.0
    query = ScoreQuery(short, target, location, reach * b, limit, link, most_excess=excess)
    equation = ScoreEquation.of(query, session.sum(query, share))
    return replace(
        equation,
        point=b,
        moment=reach * equation.moment,
        moment_scale=reach * equation.moment_scale,
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


def _shapes(whitened, deviation, unit, priors):
    """Shapes of the prior of b, the most likely first.

    Coefficients of equal size in whitened coordinates, as far as ranges of features bound them.
    """
    back = np.linalg.inv(whitened.W.T)
    bounded = [_bounded_prior(whitened, size * deviation, unit) for size in EFFECTS]
    return [*(back @ prior for prior in priors), *bounded]


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
        prior += (CONSTANT_PRIOR - 1.0) * np.outer(unit, unit)
    return prior
