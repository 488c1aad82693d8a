"""The fit: the mean, the whitening, and many small steps of one question, asked of one session."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import ceil, inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import lapack

from ..._linalg import RELATIVE_ZERO, norm_of, trace_of
from ...privacy import TOLD_ABOVE, Callers, Session
from .._cells import Cells
from .._links import IDENTITY
from .._moments import SAMPLING, cluster_degrees
from .._persons import ScoreLengthsQuery, of_several_rows, seldom_cut
from .._targets import Location, SpreadQuery, best_linear
from ._evidence import known_length, known_mean
from ._fit import LoopFit
from ._rows import ClippedRowsQuery, Whitened, WhiteningQuery
from ._rules import FEW_LIMIT, NARROW_ROOM, NORMAL, QUESTION, TOLD_LINE, Rules
from ._line import Line, likelihood_alone, line_alone, with_line
from ._score import SLOPE_WEIGHTS, PersonScoreQuery, ScoreEquation, ScoreQuery, largest_excess
from ._whitening import Pool, learn_whitening, whitening_parts

if TYPE_CHECKING:
    from .._links import StepLink
    from ...privacy import SessionPart
    from ..._contracts import Scalar
    from .._public_maps import PublicRows, RecordMap

# By how many deviations of the target half of the range of a feature moves it, a priori. The first
# is for features that use their ranges. The second is for those that use a thirtieth of them,
# because bounds may be too wide.
EFFECTS = 1.0, 30.0


# What the report says where the records are too few: by public numbers and the released spread.
MEAN_ONLY = "Only the mean of the target was asked: the records are too few for coefficients."


RATES_ONLY = "Only the rates of the classes were asked: records are too few for coefficients."


FEW_RECORDS = "The records are few: features were not whitened, and noise shrinks coefficients."


def fit_rows(
    session: "Session | SessionPart",
    maps: "RecordMap",
    rules: Rules,
    link: "StepLink" = IDENTITY,
    priors: Sequence[np.ndarray] = (),
    start: Any = None,
    usual: tuple[np.ndarray, np.ndarray] | None = None,
) -> LoopFit:
    """Ask the session for all that the rules plan, and solve.

    Parameters
    ----------
    session : Session
        Session of the rows to fit; nothing else is read.
    maps : RecordMap
        Public map of rows, with ``size``, ``rows(X)`` (norms at most 1) and ``constant``, and of
        targets.
    rules : Rules
    link : StepLink
    priors : sequence of ndarray
        Shapes L of a prior theta = tau L c that are thought as likely as equal coefficients.
    start : Start, default=None
        A released fit of other records, or of the same ones.
    usual : tuple of (ndarray of shape (p, p), ndarray of shape (n_features,)), default=None
        The whitening by a public guess of the moments of features, and their variances.

    Returns
    -------
    LoopFit
    """
    like_start = start if start and start.alike else None
    if like_start:
        rules = rules.after_like_records()
    rules = rules.with_two_users(session.records)
    if rules.mean_only:
        return mean_only(session, maps, rules, link)
    of_persons = of_several_rows(session)
    rules = replace(rules, slopes=rules.slopes or of_persons)
    # The parts for the whitening are announced here, though they are asked about later: one pass
    # over a file then reads them together with the targets.
    whitening_parts(session, rules)
    # 1. The mean and the spread of the target
    released, deviation = find_location(session, maps, rules, link, like_start)
    location = link.origin
    if released:
        location = link.linear_part(released.mean)
        link = link.near(released.mean, rules.mean_room)
        slope = float(link.slope(location, released.mean))  # where it is small, rows may be longer
        rules = replace(rules, length=min(1.0, rules.length / sqrt(slope)))
    # 2. The whitening, in whose coordinates all else is asked
    whitened, gram, indicators = learn_whitening(
        session, maps, rules, like_start, usual, link.far_length
    )
    pool = make_pool(session, whitened, rules.length, link, deviation, priors, gram)
    if start:
        pool.begin(np.linalg.solve(whitened.W.T, start.theta), like_start)
    # 3. The steps, whose answers are pooled
    equations = []
    if rules.gram:
        equations.append(ask_gram(session, whitened, pool, rules.gram))
        pool.add(*equations)
    ask = partial(step_query, maps, rules, link, of_persons, whitened, location, pool)
    line = ask_steps(session, rules, pool, ask, equations)
    last = equations[-1]
    b = pool.b
    if start:
        chain = "; which began at ".join(start.chain)
        session.report.add_note(f"The fit began at a release before it: {chain}.")
    elif rules.few_records:
        session.report.add_note(f"{FEW_RECORDS} {more_needed(session, rules, rules.enough)}")
    # 4. The questions beside them, which intervals and coefficients need
    clipped = None
    fit_mean = None
    stretch = None
    if rules.clipped:
        count = ClippedRowsQuery(maps.row_map, maps.target_map)
        clipped = count.read(session.sum(count, rules.clipped, session.piece(rules.subset)))
    # The mean of a start has infinite noise
    if link.limit is None and released and (rules.mean or not like_start):
        fit_mean = known_mean(session, whitened, maps, released, deviation, pool, last, rules, link)
        # The effect of clips on the mean is undone as far as other answers about the mean tell
        excess = fit_mean.excess(b, pool.noise, np.zeros((maps.size, 0)))[0]
        b = b - fit_mean.constant * excess
        moved = max(fit_mean.value**2 - fit_mean.variance, 0.0)
        fit_mean = replace(fit_mean, point=b, value=fit_mean.value - excess)
    if rules.line and not line:
        fields = whitened, maps.target_map, location, b
        declared = rules.declared and not of_persons and session.trust.can.same_rows
        ask_line = likelihood_alone if declared and not link.linear else line_alone
        line = ask_line(session, fields, last, rules, (pool.slope, pool.scale), link)
    if rules.stretch and fit_mean:
        stretch = known_length(
            session,
            maps,
            whitened,
            location,
            b,
            deviation,
            pool,
            last,
            rules,
            fit_mean.constant,
            moved,
        )
        b = b + stretch.of(b)[0] * stretch.direction
    # 5. All that was released
    resolved = link.linear or rules.effective_records >= link.least_told(len(b))
    fit = LoopFit(
        location,
        link.repeated(whitened.W),
        b,
        pool.variance,
        pool.slope,
        tuple(equations if resolved else ()),
        line,
        same_rows=session.trust.can.same_rows,
        n=session.n,
        effective_records=rules.effective_records,
        mean=fit_mean,
        stretch=stretch,
        link=link,
        rows_per_record=session.persons or 1,
        degrees=link.degrees,
        clipped=clipped,
        length=rules.length,
        part=released.part if released else 1.0,
    )
    if link.linear:  # columns of two values are cells, whether or not a schema says so
        fit = fit.knowing(Cells.of_rows(maps.row_map, np.eye(maps.size)[indicators][:-1]))
    return fit


def step_query(
    maps: "RecordMap",
    rules: Rules,
    link: "StepLink",
    of_persons: bool,
    whitened: Whitened,
    location: float,
    pool: Pool,
    last: bool,
) -> Any:
    """The question of the next step, at the point of the pool."""
    if link.parts > 1:
        return link.score_query(of_persons, whitened, maps.target_map, location, pool.b)
    # Deviations are in half-ranges of the target
    clip = link.limit or min(rules.clip * sqrt(pool.variance), link.farthest)
    if link.limit:
        size = len(pool.b)
        if rules.effective_records < link.least_told(size):
            clip *= FEW_LIMIT
        else:
            away = max(1.0, rules.mean_room / NARROW_ROOM) * norm_of(pool.b) / sqrt(size)
            clip = float(link.mean(abs(location) + away))
            link = replace(link, limit=clip)
    most_excess = largest_excess(whitened, location, pool.b, clip) if link.linear else None
    if most_excess and not (rules.asks_cut and last):
        most_excess = None  # certified intervals alone need it
    arguments = whitened, maps.target_map, location, pool.b, clip, link
    if of_persons:
        weight = float(np.clip(link.far_length * rules.shortest, *SLOPE_WEIGHTS))
        return PersonScoreQuery(*arguments, sandwich=True, slope_weight=weight)
    return ScoreQuery(*arguments, last or not rules.asks_cut, most_excess, last or rules.slopes)


def ask_gram(
    session: "Session | SessionPart", whitened: Whitened, pool: Pool, share: float
) -> ScoreEquation:
    """The Gram matrix of the rows, as an equation that tells a slope alone."""
    query = WhiteningQuery(whitened, asked_again=True)
    answer = session.sum(query, share)
    gram, scale = query.gram(answer)
    # No residual is longer than 2, nor a moment, which is not asked
    none = 0.0 * pool.b
    return ScoreEquation(pool.b, 2.0, none, gram, pool.variance, answer.n, 2.0, scale)


def ask_steps(
    session: "Session | SessionPart",
    rules: Rules,
    pool: Pool,
    ask: Callable[..., Any],
    equations: list[ScoreEquation],
) -> Any:
    """Ask one step after the other, and pool them.

    Parameters
    ----------
    session : Session
    rules : Rules
    pool : Pool
    ask : callable
        The question of the next step at the point of the pool, by whether it is the last.
    equations : list of ScoreEquation
        It grows by those of the steps.

    Returns
    -------
    Line or None
    """
    line = None
    shares = np.array(rules.steps)
    total = sum(rules.steps)
    counting = QUESTION if of_several_rows(session) else 0.0
    piece = session.piece(rules.subset)
    # The point of the last step of a line is found by steps on a part of the records, which is
    # large enough to know the slope. If the link bends, half of the steps asks that part. They
    # share what a quarter would have, because their answers have more noise. Shares of the others
    # rise anew, because the first of them is far away as well (docs/evidence/glm.md).
    early = (len(shares) // 2 if rules.bends else len(shares) - 1) if piece else 0
    if piece and rules.bends:
        first = shares[:early] / shares[:early].sum()
        quarter = shares[: early // 2].sum()
        shares = np.append(quarter * first, (total - quarter) * first)
    # A part of each share, `counting`, is for the lengths of the scores of persons. They are
    # counted before the first step, and again before most of the budget is spent.
    count = len(shares)
    recount = 1 + (early or (count - 1 if shares[-1] > 0.5 * total else count // 4))
    for number, share in enumerate(shares.tolist(), 1):
        last = number == count
        query = ask(last)
        if counting:
            if number in (1, recount):
                length = seldom_cut(session, ScoreLengthsQuery(query), counting * total / 2.0)
            query = replace(query, length=length)
        share *= 1.0 - counting
        if last and rules.line and early and not (counting or rules.bends):  # one pass, not two
            equation, line = with_line(session, query, share, rules, (pool.slope, pool.scale))
        else:
            answer = session.sum(query, share, piece if number <= early else None)
            equation = ScoreEquation.of(query, answer)
        equations.append(equation)
        pool.add(equation)
    return line


def at_solution(
    session: "Session | SessionPart",
    maps: "RecordMap",
    link: "StepLink",
    theta: np.ndarray,
    priors: Sequence[np.ndarray] = (),
) -> LoopFit:
    """The fit at a theta that a procedure found on the exact rows.

    With priors it is at the posterior mean instead, whose error is that of sampling alone. It has
    the same equation, and what no record tells is what the priors say.

    Parameters
    ----------
    session : Session
    maps : RecordMap
    link : StepLink
    theta : ndarray of shape (p,), or of some such vectors one after the other
    priors : sequence of ndarray
        Shapes L of a prior theta = tau L c, see `fit_rows`.

    Returns
    -------
    LoopFit
    """
    p = maps.size
    gram_query = WhiteningQuery(Whitened(maps.row_map, np.eye(p)))
    gram, _ = gram_query.gram(session.sum(gram_query, QUESTION))
    values, vectors = np.linalg.eigh(gram)
    # No row is longer than 1, so that no weight is below 1
    # Of curves no direction is stretched that less than ten records tell
    least = 10.0 * values.sum() / session.n if priors else RELATIVE_ZERO * values[-1]
    values = np.maximum(values, least + 1e-300)
    W = (vectors * np.sqrt(values[0] / values)) @ vectors.T
    whitened = Whitened(maps.row_map, W)
    each = link.repeated(W)
    b = np.linalg.solve(each.T, theta)
    of_persons = session.persons is not None
    if link.parts == 1:
        limit = link.limit or 2.0 + norm_of(b)  # no residual of a line is larger
        kind = PersonScoreQuery if of_persons else ScoreQuery
        query = kind(
            whitened, maps.target_map, 0.0, b, limit, link, True, 0.0 if link.linear else None
        )
    else:
        query = link.score_query(of_persons, whitened, maps.target_map, link.origin, b)
    answer = session.sum(query, QUESTION)
    equation = ScoreEquation.of(query, answer)
    if priors and equation.slope.any():  # some record has a weight
        slope = equation.slope
        level = np.linalg.solve(W.T, maps.row_map.constant)
        of_level = slope @ level
        weight = of_level @ level  # mean of the weights of the records
        level *= of_level @ b / weight  # the mean of the fit
        away = b - level
        deviation = sqrt(max((equation.square + away @ slope @ away) / weight, 1e-12))
        square = trace_of(slope)
        noise = 1e-3 * deviation * square / sqrt(answer.n)  # in place of none: far above rounding
        pool = make_pool(session, whitened, sqrt(square / weight), link, deviation, priors, None)
        pool.add(replace(equation, point=away, moment_scale=noise, slope_scale=noise))
        b = pool.b + level
        equation = replace(equation, point=b, moment=equation.moment + slope @ (away - pool.b))
    most_rows = session.persons or 1
    degrees = link.degrees
    if of_persons:
        degrees = cluster_degrees(session.n, round(answer.n * most_rows), len(b))
    line = Line(equation, np.zeros(p), 0.0) if link.parts == 1 else None
    return LoopFit(
        link.origin, each, b, equation.square, equation.slope, (equation,), line, True, session.n,
        link=link, rows_per_record=most_rows, degrees=degrees,
    )  # fmt: skip


def effective_records_of(session: "Session | SessionPart") -> "Scalar":
    """N: records over the noise of a sum of sensitivity 1 that has the whole budget."""
    # The `SpreadQuery` is not asked: it stands for any query of sensitivity 1.
    return session.records(1.0) / session.noise(SpreadQuery(None, 0.0), 1.0).scale


def public_rules(
    session: "Session | SessionPart",
    row_map: "PublicRows",
    clip: str = "auto",
    ranged: bool = True,
    link: "StepLink" = IDENTITY,
    textbook: bool = False,
) -> Rules:
    """Rules by public numbers: nothing of the session but its number of records and its noise.

    No more rows of a person are used than persons have in the mean where noise hides slopes:
    persons with k rows of m places are as many records as k / m of them (docs/mathematics).
    """
    intercept = row_map.constant is not None
    effective = effective_records_of(session)
    size = link.parts * row_map.size
    if of_several_rows(session):
        clip = "persons" if clip == "auto" else clip
        hidden = effective < TOLD_LINE * size**1.5
        if hidden and intercept and isinstance(session, Session):
            session.use_fewer_rows()
            effective = effective_records_of(session)
    boxed = row_map.half_ranges is not None
    return Rules.of(
        session.n, size, effective, clip, intercept, ranged, link, row_map.bounded, boxed, textbook
    )


def make_pool(
    session: "Session | SessionPart",
    whitened: Whitened,
    length: float,
    link: "StepLink",
    deviation: float,
    priors: Sequence[np.ndarray],
    gram: tuple[np.ndarray, float] | None,
) -> Pool:
    """An empty pool, whose priors have no more variance than the target has, or the link allows."""
    signal = deviation if link.signal is None else link.signal
    shapes = [*map(link.repeated, prior_shapes(whitened, signal, signal / length, priors))]
    # Log odds against each shape. Effects are a scale parameter, whose prior density is 1 / scale.
    odds = np.log([*np.ones(len(priors)), *EFFECTS])
    size = len(shapes[0])
    largest = (signal / length) ** 2
    # Curves are smooth because errors by sampling are shrunk as well
    most_sampling = inf if priors else SAMPLING
    return Pool(
        size,
        deviation,
        shapes,
        odds,
        largest,
        link,
        length,
        session.trust.can.same_rows,
        gram,
        session.n_jobs,
        most_sampling,
    )


def prior_shapes(
    whitened: Whitened,
    deviation: float,
    unit: float,
    priors: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """Shapes of the prior of b: given ones, and equal coefficients in whitened coordinates.

    Coefficients are equal as far as half of the range of a feature moves the target by about each
    of EFFECTS. W stretches a constant column or a rare category as far as noise lets it. A
    coefficient of usual size in whitened coordinates would then move a row that has it by many
    deviations, out of the bounds of the target. Precisions add up: 1 / unit^2 for a function whose
    variance is that of the target, and those of the effects. Without this bound the coefficients of
    a constant column had no limit as n grew.
    """
    W = whitened.W
    p = len(W)
    square = W @ W.T
    shapes = [np.linalg.solve(W.T, prior) for prior in priors]
    for effect in EFFECTS:
        precision = np.eye(p) / unit**2 + square / (p * (effect * deviation) ** 2)
        # Any L with L L' = precision^-1 is as good
        shapes.append(lapack.dtrtri(np.linalg.cholesky(precision), lower=1)[0].T)
    return shapes


def find_location(
    session: "Session | SessionPart",
    maps: "RecordMap",
    rules: Rules,
    link: "StepLink",
    like_start: Any,
) -> "tuple[Location | None, float]":
    """Noisy mean of the target, or None without an intercept, and the target's deviation.

    The deviation is that of a normal target with the released mean absolute deviation. If like
    records were asked, both are theirs.
    """
    if like_start:
        mean = like_start.mean if maps.row_map.constant is not None else None
        return mean, like_start.deviation
    released = _noisy_mean(session, maps, link, rules.location) if rules.location else None
    if link.parts > 1:
        return released, 1.0
    if not rules.spread:  # of two classes
        rate = released.mean if released else 0.5
        return released, sqrt(rate * (1.0 - rate))
    query = SpreadQuery(maps.target_map, released.mean if released else 0.0, link.low, maps.row_map)
    answer = session.sum(query, rules.spread)
    size = float(answer.value[0]) / answer.n
    noise = answer.mean_scale
    # The mean absolute deviation is a priori uniform from 0 to 1/2, with the mean 1/4 and the
    # variance 1/48. A target that is uniform on [-1, 1] has 1/2.
    least = 2.0 * noise / sqrt(1.0 + 48.0 * noise**2)
    size = max(best_linear(size, noise, 1.0 / 4.0, 1.0 / 48.0), least, 1e-6)
    return released, min(NORMAL * size / (released.part if released else 1.0), 1.0)


def mean_only(
    session: "Session | SessionPart", maps: "RecordMap", rules: Rules, link: "StepLink"
) -> LoopFit:
    """The private mean of the target, with the whole budget."""
    p = maps.size * link.parts
    mean = 0.0
    location = link.origin
    scale = 0.0
    part = 1.0
    words = "The records are too few for coefficients, and there is no intercept: the fit is 0."
    if maps.row_map.constant is not None:
        mean, scale, part = _noisy_mean(session, maps, link, 1.0)
        location = link.linear_part(mean)
        needed = more_needed(session, rules, link.mean_effective_records)
        words = f"{RATES_ONLY if link.parts > 1 else MEAN_ONLY} {needed}"
    called = Callers.now()
    if not called.in_policy:  # whose early epochs have few records
        called.warn(words)
    if scale and link.parts == 1:
        of_range = 100.0 * scale / (1.0 - link.low)
        words += f" Noise of the mean: {of_range:.2g}% of its range (standard deviation)."
    session.report.add_note(words)
    # A target in [-1, 1] with this mean has no larger variance.
    nothing = np.zeros((p, p))
    variance = 1.0 if link.parts > 1 else 1.0 - mean**2
    return LoopFit(location, np.eye(p), nothing[0], variance, nothing, (), None, True, session.n,
                   rules.effective_records, link=link, part=part)  # fmt: skip


def more_needed(session: "Session | SessionPart", rules: Rules, effective_records: float) -> str:
    """How many times the records or epsilon make this effective number of records, in words."""
    needed = session.trust.times_needed(effective_records / rules.effective_records)
    records, larger = (ceil(10.0 * size) / 10.0 for size in needed)
    return f"About {records:g} times the records, or {larger:g} times epsilon, would do."


def _noisy_mean(
    session: "Session | SessionPart", maps: "RecordMap", link: "StepLink", share: float
) -> "Location":
    """Noisy mean of the target."""
    query = link.location_query(maps)
    found: Location = query.read(session.sum(query, share))
    # Some rows have no target that can be learned from, unless noise may explain the difference
    without_target = found.part < 1.0 - 2.0 * TOLD_ABOVE * found.scale * found.part
    if without_target and not (query.weighted or of_several_rows(session)):
        session.report.add_note(
            f"About {found.part:.1%} of the rows have a target that can be learned from: a class, "
            "or a number."
        )
    return found
