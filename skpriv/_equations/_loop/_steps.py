"""The fit: location, whitening, and many small steps of one question, asked of one session."""

from dataclasses import replace
from math import sqrt

import numpy as np

from ..._linalg import RELATIVE_ZERO
from ._equation import ScoreEquation
from ._fit import LoopFit
from ._line import (
    Line,
    LineLengthsQuery,
    StepAndLineQuery,
    least_squares,
    length_classes,
    line_scores,
)
from ._links import IDENTITY
from .._persons import PersonLengthsQuery, cluster_degrees, seldom_cut
from ._mean import find_location, known_mean, mean_only
from ._persons import PersonScoreQuery
from ._pool import Pool
from ._queries import ClippedRowsQuery, SpreadQuery, Whitened, WhiteningQuery
from ._rules import LEAST_SPREAD, QUESTION, Rules
from ._score import ScoreQuery
from ._whitening import learn_whitening, whitening_parts

SHARE = 1.0 / 3.0  # of nothing: exact answers are free
SIGNAL = 2.0  # bound on tau^2, in units of the target's variance over the squared length
LEAST_EXCESS = 0.01  # of the clip, that is, of its noise
# Deviations of the target by which half of a feature's range moves it, a priori: as features do
# that use their ranges, and, next, as those that use a thirtieth of them: bounds may be too wide.
EFFECTS = 1.0, 30.0


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
        return mean_only(session, rows, target, rules, link)
    if not hasattr(rows, "outside"):  # a public property of the map
        rules = rules.without_count()
    several = (session.persons or 1) > 1  # a person with one row is a row
    rules = replace(rules, slopes=rules.slopes or several)
    whitening_parts(session, rules)  # so that files are read once for them and the targets
    mean, deviation = find_location(session, rows, target, rules, link)
    if deviation * rules.reach < LEAST_SPREAD:  # the mean itself is hard to find: see Rules
        return mean_only(session, rows, target, rules, link, mean, deviation)
    location = link.linear_part(mean.mean) if mean else 0.0
    if mean:
        link = link.near(mean.mean)
        rules = replace(rules, length=min(1.0, rules.length * link.longer(mean.mean)))
    W, length, gram = learn_whitening(session, rows, rules)
    whitened = Whitened(rows, W)
    signal = deviation if link.signal is None else link.signal
    pool = Pool(
        rows.size, deviation, prior_shapes(whitened, signal, signal / length, priors),
        SIGNAL * (signal / length) ** 2, link, length, session.trust.can.same_rows, gram,
    )  # fmt: skip
    equations: list[ScoreEquation] = []
    line = far = None
    few = session.part(rules.subset)
    kept, lengths = 1.0, QUESTION if several else 0.0
    # Lengths are counted again where most of the budget is to come, at one length
    number = len(rules.steps)
    recount = number if rules.steps[-1] > 0.5 * sum(rules.steps) else 1 + number // 4
    for number, share in enumerate(rules.steps, 1):
        last = number == len(rules.steps)
        clip = _clip(rules, pool, link, mean.mean if mean else 0.0)
        excess = _largest_excess(whitened, location, pool.b, clip) if link.linear else None
        if excess and not (rules.whole and last):
            excess = None  # only certified intervals ask for it
        elif excess and excess < LEAST_EXCESS * clip:  # not worth a number: nothing is cut
            clip, excess = clip + excess, 0.0
        asked = whitened, target, location, pool.b, clip, link
        query = ScoreQuery(*asked, sandwich=last or not rules.whole, most_excess=excess)
        query = replace(query, matrices=last or rules.slopes)
        if lengths:
            query = PersonScoreQuery(*asked, sandwich=True)
            if number in (1, recount):
                part = lengths * sum(rules.steps) / 2.0
                kept = seldom_cut(session, PersonLengthsQuery(query), part)
            query = replace(query, length=kept)
            share *= 1.0 - lengths
        if last and rules.line:
            far = _far_scores(whitened, target, location, pool.b, query)
        if far and few and not several:  # a pass takes time, and the slope is well known
            beside, part = line_scores(session, far, rules.line, few)
            both = StepAndLineQuery(query, beside, (share, part))
            answer, found = both.read(session.sum(both, share + part))
            line = least_squares(beside, found, ScoreEquation.of(query, answer))
        else:
            # Where a part of the records resolves the slope, it tells where the last step is asked
            answer = session.sum(query, share, few if link.linear and not last else None)
        equations.append(ScoreEquation.of(query, answer))
        pool.add(equations[-1])
    clipped = None
    if rules.clipped:
        count = ClippedRowsQuery(rows)
        clipped = count.read(session.sum(count, rules.clipped, few))
    if far and not line:
        beside, part = line_scores(session, far, rules.line, few)
    known = None
    if link.limit is None and mean and rows.constant is not None:
        known = known_mean(
            session, whitened, target, mean, deviation, pool, equations[-1], rules, link
        )
        # What clips did to the mean is undone as far as what is known beside the steps tells.
        excess, _, _ = known.excess(pool.b, pool.noise, np.zeros((rows.size, 0)))
        pool.b = pool.b - known.constant * excess
        known = replace(known, point=pool.b, value=known.value - excess)
    if far and not line:
        beside = replace(beside, point=pool.b)
        line = least_squares(beside, session.sum(beside, part), equations[-1])
    return LoopFit(
        location,
        mean.scale if mean else 0.0,
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
        degrees=link.degrees,
        clipped=clipped,
    )


def at_solution(session, rows, target, link, theta):
    """The fit at a theta that a procedure found on the exact rows.

    Parameters
    ----------
    session : Session
    rows : RowMap, or what stands in its place
    target : TargetMap, or what stands in its place
    link : Link
    theta : ndarray of shape (p,)

    Returns
    -------
    LoopFit
    """
    query, p = WhiteningQuery(Whitened(rows, np.eye(rows.size))), rows.size
    gram, _ = query.gram(session.sum(query, SHARE))
    values, vectors = np.linalg.eigh(gram)
    # Rows of length at most 1: no weight is below 1
    values = np.maximum(values, RELATIVE_ZERO * values[-1])
    W = (vectors * np.sqrt(values[0] / values)) @ vectors.T
    b = np.linalg.solve(W.T, theta)
    limit = link.limit or 2.0 + float(np.linalg.norm(b))
    asked = Whitened(rows, W), target, 0.0, b, limit, link
    nothing = 0.0 if link.linear else None  # is cut
    step, degrees = ScoreQuery(*asked, sandwich=True, most_excess=nothing), link.degrees
    if session.persons is not None:
        step = PersonScoreQuery(*asked, sandwich=True)
    answer = session.sum(step, SHARE)
    equation, places = ScoreEquation.of(step, answer), session.persons or 1
    if session.persons is not None:
        degrees = cluster_degrees(session.n, round(answer.n * places), p)
    line = Line(equation, np.zeros(p), 0.0) if link.linear else None
    return LoopFit(
        0.0, 0.0, W, b, equation.square, equation.slope, (equation,), line, True,
        link=link, places=places, degrees=degrees,
    )  # fmt: skip


def public_reach(session):
    """N: records over the noise of a sum of sensitivity 1 that has the whole budget."""
    return session.records(1.0) / session.noise(SpreadQuery(None, 0.0), 1.0).scale


def public_rules(session, rows, clip="auto", ranged=True, link=IDENTITY):
    """Rules by public numbers: nothing of the session but its number of records and its noise."""
    # The sum of a person's scores is cut where next to none are: rows need no tight clip
    clip = clip if (session.persons or 1) == 1 else "wide"
    intercept = rows.constant is not None
    reach = public_reach(session)
    return Rules.of(session.n, rows.size, reach, clip, intercept, ranged, link)


def _clip(rules, pool, link, mean):
    """Limit of the residuals of the next step, in half-ranges of the target."""
    if link.limit is not None:
        return link.limit
    return min(rules.clip * sqrt(pool.variance), link.farthest(mean, pool.spread))


def _far_scores(whitened, target, location, b, step):
    """How long scores of the line are, up to the longest that bounds of rows and targets allow."""
    reach = whitened.rows.reach(whitened.W) if hasattr(whitened.rows, "reach") else 0.0
    reach = max(reach or float(np.linalg.norm(whitened.W, 2)), 1.0)
    short = Whitened(whitened.rows, whitened.W / reach)
    longest = reach * _largest_excess(short, location, reach * b, 0.0)
    ends = length_classes(longest, getattr(step, "length", 1.0) * step.limit)
    return LineLengthsQuery(whitened, target, location, b, step.limit, ends=ends)


def _largest_excess(whitened, location, b, clip):
    """Largest excess of a residual w (r - m) - e'b over the clip: w <= 1, r in [-1, 1], and e'b is
    w phi'theta, and at most |b|.
    """
    theta, most = whitened.W.T @ b, sqrt(b @ b)
    if hasattr(whitened.rows, "span"):
        low, high = whitened.rows.span(theta)
    else:
        high = sqrt(theta @ theta)
        low = -high
    above, below = 1.0 + location + min(high, most), 1.0 - location + min(-low, most)
    return max(max(above, below) - clip, 0.0)


def prior_shapes(whitened, deviation, unit, priors=()):
    """Shapes of the prior of b, the most likely first: given ones, and equal coefficients in
    whitened coordinates.

    These as far as half of a feature's range moves the target by about each of EFFECTS. Of a
    constant column or a rare category W makes what noise lets it, so that a coefficient of usual
    size in whitened coordinates would move a row that has it by many deviations, out of the bounds
    of the target. Precisions add up: 1 / unit^2 of a function whose variance is that of the target,
    and those of the effects. Without a bound a small part of the evidence would do: coefficients of
    a constant column had no limit as n grew.
    """
    W, shapes = whitened.W, [np.linalg.inv(whitened.W.T) @ prior for prior in priors]
    values, vectors = np.linalg.eigh(W @ W.T)
    for effect in EFFECTS:
        bound = np.maximum(values, 0.0) / (len(W) * (effect * deviation) ** 2)
        shapes.append(vectors * (1.0 / unit**2 + bound) ** -0.5)
    return shapes
