"""The fit: location, whitening, and many small steps of one question, asked of one session."""

from dataclasses import replace
from math import sqrt

import numpy as np
from scipy.linalg import solve_triangular

from ..._linalg import RELATIVE_ZERO
from .._persons import ScoreLengthsQuery, cluster_degrees, seldom_cut
from .._public_maps import RowMap
from ._fit import LoopFit
from ._score import Line, largest_excess, line_alone, with_line
from ._links import IDENTITY
from ._mean import FEW_RECORDS, find_location, known_mean, mean_only, more_needed
from ._whitening import Pool
from ._queries import ClippedRowsQuery, SpreadQuery, Whitened, WhiteningQuery
from ._rules import QUESTION, Rules
from ._score import PersonScoreQuery, ScoreEquation, ScoreQuery
from ._whitening import learn_whitening, whitening_parts

# Deviations of the target by which half of a feature's range moves it, a priori: as features do
# that use their ranges, and those that use a thirtieth of them: bounds may be too wide.
EFFECTS = 1.0, 30.0


def fit_rows(session, rows, target, rules, link=IDENTITY, priors=(), start=None):
    """Ask the session for all that the rules plan, and solve.

    Parameters
    ----------
    session : Session
        Session of the rows to fit; nothing else is read.
    rows : RowMap, or what stands in its place
        Public map with ``size``, ``rows(X)`` (norms at most 1) and ``constant``.
    target : TargetMap
    rules : Rules
    link : MeanLink
    priors : sequence of ndarray
        Shapes L of a prior theta = tau L c that are thought as likely as equal coefficients.
    start : Start, default=None
        A released fit in place of the questions that would find what it knows.

    Returns
    -------
    LoopFit
    """
    if start:
        rules = rules.begun()
    # Of users who answer once, nobody may be left for a question
    first = rules.spread or rules.steps[0]
    if rules.mean_only or (rules.few_records and not session.records(first)):
        return mean_only(session, rows, target, rules, link)
    several = (session.persons or 1) > 1  # a person with one row is a row
    rules = replace(rules, slopes=rules.slopes or several)
    whitening_parts(session, rules)  # so that files are read once for them and the targets
    if start:
        mean, deviation = start.known if rows.constant is not None else None, start.deviation
    else:
        mean, deviation = find_location(session, rows, target, rules, link)
    location = link.linear_part(mean.mean) if mean else link.origin
    if mean:
        link = link.near(mean.mean, rules.room)
        rules = rules.longer(float(link.slope(location, mean.mean)))
    W, length, gram = learn_whitening(session, rows, rules, start)
    whitened = Whitened(rows, W)
    pool = make_pool(session, whitened, length, link, deviation, priors, gram)
    if start:
        pool.begin(np.linalg.solve(W.T, start.theta), start.variance)

    def ask(last):
        """The question of the next step."""
        if link.parts > 1:
            return link.score_query(several, whitened, target, location, pool.b)
        # In half-ranges of the target
        clip = link.limit or min(rules.clip * sqrt(pool.variance), link.farthest)
        excess = largest_excess(whitened, location, pool.b, clip) if link.linear else None
        if excess and not (rules.whole and last):
            excess = None  # only certified intervals ask for it
        asked = whitened, target, location, pool.b, clip, link
        if several:
            return PersonScoreQuery(*asked, sandwich=True)
        return ScoreQuery(*asked, last or not rules.whole, excess, last or rules.slopes)

    equations, line = ask_steps(session, rules, pool, ask)
    if start:
        session.report.add_note(f"The fit began at a release before it: {start.words}.")
    elif rules.few_records:
        needed = more_needed(session, rules, link.enough(rows.size))
        session.report.add_note(f"{FEW_RECORDS} {needed}")
    clipped, known = count_clipped(session, rows, rules, target), None
    asks_mean = rules.mean or not start
    if link.limit is None and mean and rows.constant is not None and asks_mean:
        known = known_mean(
            session, whitened, target, mean, deviation, pool, equations[-1], rules, link
        )
        # What clips did to the mean is undone as far as what is known beside the steps tells.
        excess, _, _ = known.excess(pool.b, pool.noise, np.zeros((rows.size, 0)))
        pool.b = pool.b - known.constant * excess
        known = replace(known, point=pool.b, value=known.value - excess)
    if rules.line and not line:
        maps = whitened, target, location, pool.b
        line = line_alone(session, maps, equations[-1], rules, link)
    return LoopFit(
        location,
        W if link.parts == 1 else np.kron(np.eye(link.parts), W),
        pool.b,
        pool.variance,
        pool.slope,
        equations,
        line,
        same_rows=session.trust.can.same_rows,
        n=session.n,
        effective_records=rules.effective_records,
        mean=known,
        link=link,
        rows_per_record=session.persons or 1,
        degrees=link.degrees,
        clipped=clipped,
    )


def ask_steps(session, rules, pool, ask):
    """Ask one step after the other, and pool them.

    Parameters
    ----------
    session : Session
    rules : Rules
    pool : Pool
    ask : callable
        The question of the next step at the point of the pool, by whether it is the last.

    Returns
    -------
    (tuple of ScoreEquation, Line or None)
    """
    equations, line, number, total = [], None, len(rules.steps), sum(rules.steps)
    lengths, few = QUESTION if (session.persons or 1) > 1 else 0.0, session.part(rules.subset)
    # Lengths are counted again where most of the budget is to come, at one length
    recount = number if rules.steps[-1] > 0.5 * total else 1 + number // 4
    for number, share in enumerate(rules.steps, 1):
        last = number == len(rules.steps)
        query = ask(last)
        if lengths:
            if number in (1, recount):
                kept = seldom_cut(session, ScoreLengthsQuery(query), lengths * total / 2.0)
            query = replace(query, length=kept)
        share *= 1.0 - lengths
        if (
            last and rules.line and few and not lengths and query.link.linear
        ):  # a pass takes time, and slopes are known
            equation, line = with_line(session, query, share, rules)
        else:
            # Where a part of the records resolves the slope, it tells where the last step is asked
            piece = few if query.link.linear and not last else None
            equation = ScoreEquation.of(query, session.sum(query, share, piece))
        equations.append(equation)
        pool.add(equation)
    return tuple(equations), line


def count_clipped(session, rows, rules, target=None):
    """Released parts of the records that are outside of their bounds; None if not asked."""
    if not rules.clipped:
        return None
    count = ClippedRowsQuery(rows, target)
    return count.read(session.sum(count, rules.clipped, session.part(rules.subset)))


def at_solution(session, rows, target, link, theta):
    """The fit at a theta that a procedure found on the exact rows.

    Parameters
    ----------
    session : Session
    rows : RowMap, or what stands in its place
    target : TargetMap, or what stands in its place
    link : MeanLink
    theta : ndarray of shape (p,), or of some such vectors one after the other

    Returns
    -------
    LoopFit
    """
    gram_query, p = WhiteningQuery(Whitened(rows, np.eye(rows.size))), rows.size
    gram, _ = gram_query.gram(session.sum(gram_query, QUESTION))
    values, vectors = np.linalg.eigh(gram)
    # Rows of length at most 1: no weight is below 1
    values = np.maximum(values, max(RELATIVE_ZERO * values[-1], 1e-300))
    W = (vectors * np.sqrt(values[0] / values)) @ vectors.T
    whitened, each = Whitened(rows, W), np.kron(np.eye(link.parts), W)
    b = np.linalg.solve(each.T, theta)
    if link.parts == 1:
        limit = link.limit or 2.0 + float(np.linalg.norm(b))
        nothing = 0.0 if link.linear else None  # is cut
        kind = ScoreQuery if session.persons is None else PersonScoreQuery
        query = kind(whitened, target, 0.0, b, limit, link, True, nothing)
    else:
        query = link.score_query(session.persons is not None, whitened, target, link.origin, b)
    answer = session.sum(query, QUESTION)
    equation, most_rows, degrees = (
        ScoreEquation.of(query, answer),
        session.persons or 1,
        link.degrees,
    )
    if session.persons is not None:
        degrees = cluster_degrees(session.n, round(answer.n * most_rows), len(b))
    line = Line(equation, np.zeros(p), 0.0) if link.parts == 1 else None
    return LoopFit(
        link.origin, each, b, equation.square, equation.slope, (equation,), line, True, session.n,
        link=link, rows_per_record=most_rows, degrees=degrees,
    )  # fmt: skip


def effective_records_of(session):
    """N: records over the noise of a sum of sensitivity 1 that has the whole budget."""
    return session.records(1.0) / session.noise(SpreadQuery(None, 0.0), 1.0).scale


def public_rules(session, rows, clip="auto", ranged=True, link=IDENTITY):
    """Rules by public numbers: nothing of the session but its number of records and its noise."""
    # The sum of a person's scores is cut where next to none are: rows need no tight clip
    clip = clip if (session.persons or 1) == 1 else "wide"
    intercept, effective = rows.constant is not None, effective_records_of(session)
    size = link.parts * rows.size
    counted = hasattr(rows, "outside")
    boxed = isinstance(rows, RowMap) and rows.half_ranges is not None
    return Rules.of(session.n, size, effective, clip, intercept, ranged, link, counted, boxed)


def make_pool(session, whitened, length, link, deviation, priors=(), gram=None):
    """An empty pool, for priors of the size of the signal and no more."""
    signal = deviation if link.signal is None else link.signal
    shapes = prior_shapes(whitened, signal, signal / length, priors)
    shapes = [np.kron(np.eye(link.parts), shape) for shape in shapes]
    odds = np.log([*np.ones(len(priors)), *EFFECTS])  # of a scale: its density is 1 / scale
    size, largest, curator = len(shapes[0]), (signal / length) ** 2, session.trust.can.same_rows
    return Pool(size, deviation, shapes, odds, largest, link, length, curator, gram)


def prior_shapes(whitened, deviation, unit, priors=()):
    """Shapes of the prior of b: given ones, and equal coefficients in whitened coordinates.

    These as far as half of a feature's range moves the target by about each of EFFECTS. Of a
    constant column or a rare category W makes what noise lets it, so that a coefficient of usual
    size in whitened coordinates would move a row that has it by many deviations, out of the bounds
    of the target. Precisions add up: 1 / unit^2 of a function whose variance is that of the target,
    and those of the effects. Without a bound a small part of the evidence would do: coefficients of
    a constant column had no limit as n grew.
    """
    W, p = whitened.W, len(whitened.W)
    shapes = [np.linalg.solve(W.T, prior) for prior in priors]
    for effect in EFFECTS:
        precision = np.eye(p) / unit**2 + W @ W.T / (p * (effect * deviation) ** 2)
        root = np.linalg.cholesky(precision)  # with the inverse of L'L, any L is as good
        shapes.append(solve_triangular(root, np.eye(p), lower=True, overwrite_b=True).T)
    return shapes
