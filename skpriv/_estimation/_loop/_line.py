"""The released equation of the least-squares line or of the likelihood, and how it is asked for.

Its scores have no clips or weights. The longest are shortened to a length with the least error,
which private counts of the lengths tell.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import hypot, inf, log, sqrt
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from scipy.special import ndtr, ndtri

from ..._linalg import SQRT2, norm_of, psd_part, trace_of, unvech
from ..._stored import stored
from ...privacy import TOLD_ABOVE, Answer
from .._links import IDENTITY, StepLink
from .._persons import ScoreLengthsQuery, of_several_rows
from ._far_rows import FAR_LENGTH, SHORTER, FarRows, FarRowsQuery
from ._line_queries import UNEVEN, LineScoreQuery, OwnSlopeQuery, StepAndLineQuery
from ._rows import Whitened
from ._rules import LEARNT, OWN_SLOPE, Rules
from ._score import ScoreEquation, ScoreQuery, largest_excess

if TYPE_CHECKING:
    from ...privacy import Piece, Session, SessionPart
    from ..._contracts import Array, Scalar

    Q = TypeVar("Q", bound=LineScoreQuery)


# Exponents a of power laws P(|u| > x) like x^-a that the scores beyond a length may follow. With
# the mean excess 1 / (a - 1) from .1 to 1 its logarithm is uniform a priori, and so are slower laws
# in a. Those have an infinite variance, and visible counts have to say so.
EXPONENTS = np.concatenate([np.arange(1.0, 1.95, 0.1), 1.0 + 1.0 / np.linspace(1.0, 0.1, 10)])
PRIOR = np.maximum(EXPONENTS - 1.0, 1.0)
LEAST_EXCESS = 0.1
LOCAL_CLASSES = 3  # classes just below T, or the last visible ones, that say how a tail falls
SLOWER = 0.45  # by how much slower than there it may fall beyond
SPACING = np.gradient(EXPONENTS)
FASTER = EXPONENTS < np.minimum(EXPONENTS + SLOWER, 2.0)[:, None]  # than each, by row
# The part of the largest vector that shortening may take away from a declared line which counts as
# one deviation. On 60 tables the root mean square of the part that is missing is .60
# (docs/evidence/coefficients.md).
MISSED = 0.83
# The part of that which is missing in the root mean square, .60 / .83: T is chosen by what scores
# lack, and not by what intervals have to cover.
TYPICAL = 0.72
# The part w of what shortening takes away in the mean direction of long scores that is put back to
# lines by the way, and to declared ones; all of it if the link bends. Noise grows as 1 + w h,
# and the mean distance of an exponential variable from w of its mean is w - 1 + 2 exp(-w) of that:
# .71 for one half, and UNEVEN for all. Nothing is better, since scores up to T (1 + w h) are whole
# with as much noise. Lines by the way keep their questions (docs/evidence/coefficients.md).
# Beside it stands the part of that excess which counts as missing.
PUT_BACK = (0.5, UNEVEN), (0.0, MISSED)
# The same of a declared likelihood of counts: how long a score is depends on the count more than on
# the row. In the metric of the slope errors of six tables are 1.1 times what half of UNEVEN says,
# in the root mean square (docs/evidence/glm.md).
COUNTS_PUT_BACK = 1.0, 0.5 * UNEVEN
# Length over the root mean square from which rows are as those of a rare level where slopes are
# asked, and that rows have at most along any direction where they are asked anew. With 4 six tables
# of counts, whose columns use a small part of their ranges, tell fewer coefficients
# (docs/evidence/glm.md).
EVEN_ROWS = 8.0
# The first fields of a `ScoreQuery`: whitened rows, the map of targets, location and point
ScoreFields = tuple[Whitened, Any, float, np.ndarray]
NoisyMatrix = tuple[np.ndarray, float]  # a released matrix, and the scale of its noise


@stored
class Line(NamedTuple):
    """The released equation of the least-squares line.

    Attributes
    ----------
    equation : ScoreEquation
        It has the moment of all rows, without clips or weights, and the slope of the step before.
    along : ndarray of shape (p,), or (p, p) in files of earlier versions
        An error of the moment by shortening, one deviation long, beside privacy noise.
    across : float or ndarray of shape (p, p)
        Standard deviation of another one, in each direction, or deviations of several.
    far : FarRows or None
        Rows that steps weigh down; None where there are none, or records are persons.
    shorter : ndarray of shape (p, p) or float
        Takes whitened rows to the coordinates in which the noise of the moment has its scale, and
        the other error is `across`. Symmetric; no eigenvalue is above 1, which is the identity.
    own : ndarray of shape (p, p) or None
        Takes whitened rows of the steps to those of this equation, which has a slope of its own;
        None where it has that of the steps.
    """

    equation: ScoreEquation
    along: np.ndarray
    across: Any
    far: FarRows | None = None
    shorter: Any = 1.0  # that of the files of earlier versions
    own: np.ndarray | None = None

    @property
    def errors(self) -> np.ndarray:
        """Deviations of these independent errors, and of noise beside that of the scale of the
        moment, shape (p, n_errors).
        """
        values, vectors = np.linalg.eigh(np.dot(np.eye(len(self.along)), self.shorter))
        more = self.equation.moment_scale * np.sqrt(np.maximum(values**-2.0 - 1.0, 0.0))
        back = vectors / values @ vectors.T
        return np.column_stack([self.along, np.dot(back, self.across), vectors * more])

    @classmethod
    def of(
        cls,
        query: "LineScoreQuery",
        answer: "Answer",
        last: ScoreEquation,
        noisy_slope: NoisyMatrix,
        shorter: np.ndarray,
        far: FarRows | None = None,
    ) -> "Line":
        """Read the answer to a `LineScoreQuery`, with the slope of the last step.

        Let B be the mean of the directions of scores that are longer than T, and h T the mean of
        what they are longer. Shortening takes away h T B if lengths do not depend on directions
        there, and w h T B is added, with PUT_BACK for w. If that is 0, a vector is missing that is
        no longer than `missed`. Its square is along the moment, as far as noise does not explain
        the square of that, and the rest in equal parts in p directions, or what hidden records lack
        there, if that is more. It is not added, since `missed` has a deviation of the noise of
        counts in it, which hides records, too. Else the moment has three errors.
        The noise of B counts as that of the moment. The error of h, which follows from noisy
        counts, is along B. And lengths may depend on directions: then a vector is missing that is
        no longer than the mean distance of lengths from w of their mean, `missed`. Its direction is
        not known: it is that of B, or each of p has an equal part. The error along B counts by the
        square of B, less that of its noise.

        If a link bends, more is used, which was not measured for lines with their heavy tails:
        cov(l, a) is missing, of lengths l and directions a with the second moment S. In orthonormal
        functions S^-1/2 a the squares of its coordinates add up to var(l) at most (Bessel). Each of
        p has an equal part: the covariance is S var(l) / p. S is that of the squares of scores, as
        far as their noise does not hide it. The deviation of l is its mean for an exponential tail,
        and 1.5 times that here: T is where the tail looks light, by noise as well.

        Parameters
        ----------
        query : LineScoreQuery
        answer : Answer
        last : ScoreEquation
        noisy_slope : (ndarray of shape (p, p), float)
            A released slope, and the scale of its noise.
        shorter : ndarray of shape (p, p)
            What the whitening of the query was multiplied by.
        far : FarRows or None
        """
        means, scales = query.named(answer.mean, answer.mean_scale)
        p = len(query.point)
        scale = scales.get("beyond", scales["moment"])
        beyond = means.get("beyond", means["moment"])
        square = max(beyond @ beyond, 1e-300)
        seen = max(1.0 - query.link.linear * p * scale**2 / square, 0.0)
        back = np.linalg.inv(shorter)
        beyond = back @ beyond
        across = query.missed / sqrt(p)
        residual = unvech(means["residual"], p)
        if not query.link.linear:
            values, vectors = np.linalg.eigh(residual)
            squares = np.maximum(values, 0.0) + scales["residual"] / sqrt(p)
            across = 2.0 * query.missed * vectors * np.sqrt(squares / squares.sum() / p)
        equation = replace(
            last,
            point=shorter @ query.point,
            moment=back @ means["moment"] + query.mean_excess * beyond,
            moment_scale=hypot(scales["moment"], query.mean_excess * scale),
            residual_gram=back @ residual @ back,
            residual_scale=scales["residual"],
            limit=query.limit,
            length=1.0,
            n=answer.n,
        )
        along = sqrt(seen) * query.along * beyond
        if not query.mean_excess:
            along = sqrt(seen / square) * query.missed * beyond
            slope, slope_scale = noisy_slope
            turned, hidden = query.hidden_scores(
                shorter @ slope @ shorter, slope_scale, means["moment"], answer.n
            )
            across = turned * np.maximum(hidden, sqrt(1.0 - seen) * across)
        return cls(equation, along, across, far, shorter)


def length_classes(longest: float, cut_length: float) -> "Array":
    """Ends of classes of lengths, from a quarter of the cut_length on, by factors of sqrt(2)."""
    first = 0.25 * cut_length  # typical scores are longer than that
    return first * SQRT2 ** np.arange(np.ceil(2.0 * np.log2(max(longest / first, 1.0))) + 1.0)


def line_query(
    session: "Session | SessionPart",
    fields: ScoreFields,
    cut_length: float,
    rules: "Rules",
    noisy_slope: NoisyMatrix,
    link: StepLink = IDENTITY,
    shapes: Sequence[np.ndarray] = (),
) -> tuple[LineScoreQuery, np.ndarray, FarRows | None]:
    """The question of the line; its scores are shortened by their lengths.

    Lengths are counted in classes, up to the longest score that bounds of rows and targets allow.
    Those of a declared estimand are counted of all records: counts of a part would hide as large a
    part of the records however many there are, while the noise of the moment falls.
    A quarter of that share is for the far rows of a line that can have rows beyond the length 1.
    If there are any, the lengths are counted in several coordinates. Those are taken in which
    the ellipsoid of the error has the least volume: a few directions of far rows have more noise,
    if all others have so much less.

    Parameters
    ----------
    session : Session
    fields : (Whitened, TargetMap, float, ndarray)
        The first fields of a `ScoreQuery`.
    cut_length : float
        Where the scores of steps are cut.
    rules : Rules
    noisy_slope : (ndarray of shape (p, p), float)
        A released slope of steps, and the scale of its noise.
    link : StepLink
    shapes : sequence of ndarray of shape (p, p)
        Further coordinates, as `Line.shorter`.

    Returns
    -------
    (query, shorter, far)
        A `LineScoreQuery`, and the last arguments of `Line.of`.
    """
    query = LineScoreQuery(*fields, cut_length, link)
    whitened, _, location, point = fields
    longest = longest_row = _longest(whitened)
    if link.linear:  # means of a link that bends count as inside of the range of the target
        query = replace(query, put_back=PUT_BACK[rules.declared])
        longest *= largest_excess(
            Whitened(whitened.row_map, whitened.W / longest), location, longest * point, 0.0
        )
    elif rules.declared and link.limit is None:
        query = replace(query, put_back=COUNTS_PUT_BACK)
    ends = length_classes(longest, cut_length)
    far = None
    learnt = LEARNT * rules.line
    subset = None if rules.declared else session.piece(rules.subset)
    if link.linear and not of_several_rows(session) and longest_row > 1.0:
        far_query = FarRowsQuery(whitened, asked_again=True)
        gram, scale = far_query.gram(session.sum(far_query, 0.25 * learnt, subset))
        far = FarRows(gram, scale, log(max(longest_row / FAR_LENGTH, 1.0)))
        learnt *= 0.75
        shapes = far.shorter(*noisy_slope, rules.length)
    queries = [(query, np.eye(len(point))), *((_turned(query, shape), shape) for shape in shapes)]
    shares = learnt / len(queries), (1.0 - LEARNT) * rules.line
    choices = []
    for turned, shorter in queries:
        chosen, error = _shortened(session, turned, ends, shares, subset)
        volume = error / np.linalg.det(shorter) ** (2.0 / len(point))
        choices.append((volume, chosen, shorter, far))
    return min(choices, key=itemgetter(0))[1:]


def _longest(whitened: Whitened) -> "Scalar":
    """Length of the longest row, or 1 where that is more."""
    return max(whitened.row_map.longest_row(whitened.W) or norm_of(whitened.W, 2), 1.0)


def _turned(query: "Q", shorter: np.ndarray) -> "Q":
    """The same question in other coordinates, in which two are asked at most."""
    return replace(
        query,
        whitened=replace(query.whitened, W=shorter @ query.whitened.W, passing=True),
        point=np.linalg.solve(shorter, query.point),
    )


def _shortened(
    session: "Session | SessionPart",
    query: "Q",
    ends: np.ndarray,
    shares: Sequence[float],
    subset: "Piece | None",
    power: float = 1.0,
) -> "tuple[Q, float]":
    """The question with its best length, by private counts, and its error there.

    The shares are those of the counts and of the question, and the length is chosen for this power
    of the lengths. If that is 2, the noise counts twice: what is missing beyond the length is a
    part of a difference from a matrix that is known.
    """
    counts = session.sum(
        ScoreLengthsQuery(query, ends, "lengths of the line's scores"), shares[0], subset
    )
    parts = counts.mean
    # Noise passes for any of them as seldom as one number does for TOLD_ABOVE deviations
    from_counts = parts > -ndtri(ndtr(-TOLD_ABOVE) / len(parts)) * counts.mean_scale
    noise = power * session.noise(query, shares[1]).scale / query.sensitivity
    length, mean_excess, along, missed, error = _best_length(
        parts,
        from_counts,
        counts.mean_scale,
        ends**power,
        noise / session.records(shares[1]),
        len(query.point),
        *query.put_back,
    )
    return replace(
        query,
        limit=length ** (1.0 / power),
        mean_excess=mean_excess,
        along=along,
        missed=missed,
        uncounted=counts.mean_scale,
        longest=float((from_counts * ends).max()),
    ), error


def with_line(
    session: "Session | SessionPart",
    step: ScoreQuery,
    share: float,
    rules: "Rules",
    noisy_slope: NoisyMatrix,
) -> tuple[ScoreEquation, Line]:
    """The equation of a step and the `Line` at the same point, in one pass over the records if both
    have the same coordinates.
    """
    query, shorter, far = line_query(
        session,
        (step.whitened, step.target_map, step.location, step.point),
        step.limit,
        rules,
        noisy_slope,
    )
    own = (1.0 - LEARNT) * rules.line
    if query.whitened is step.whitened:
        both = StepAndLineQuery(step, query, (share, own))
        answer, answer_of_line = both.read(session.sum(both, share + own))
    else:
        answer = session.sum(step, share)
        answer_of_line = session.sum(query, own)
    last = ScoreEquation.of(step, answer)
    return last, Line.of(query, answer_of_line, last, noisy_slope, shorter, far)


def line_alone(
    session: "Session | SessionPart",
    fields: ScoreFields,
    last: ScoreEquation,
    rules: "Rules",
    noisy_slope: NoisyMatrix,
    link: StepLink,
    shapes: Sequence[np.ndarray] = (),
) -> Line:
    """The `Line` at a point, after the last step."""
    query, shorter, far = line_query(
        session, fields, last.cut_length, rules, noisy_slope, link, shapes
    )
    answer = session.sum(query, (1.0 - LEARNT) * rules.line)
    return Line.of(query, answer, last, noisy_slope, shorter, far)


def likelihood_alone(
    session: "Session | SessionPart",
    fields: ScoreFields,
    last: ScoreEquation,
    rules: "Rules",
    noisy_slope: NoisyMatrix,
    link: Any,
) -> Line:
    """The equation of the likelihood with a slope of its own, in coordinates of its own.

    Weights of far rows and of large means take a part of the slope D of steps, which is no more
    than the slope H of the likelihood. So H - D is asked in coordinates in which D is the identity,
    as `FarRows` are of a line. Rows of a rare level may be fifty times as long there as usual ones.
    If counts show such rows, T follows them, or what they have is put back for others. So lengths
    are counted once more, in coordinates in which no row inside of its bounds is longer along any
    principal direction than EVEN_ROWS. All that were seen are shorter there, but so is the slope of
    usual rows where bounds are wide. The scores are then asked in those coordinates in which the
    ellipsoid of the error has the least volume: of what was asked, of H, of the steps, and of what
    was asked with directions shortened in which rows beyond the released length have most of H.
    Such a row counts by its length there, and makes scores longer in all directions.

    Parameters
    ----------
    session : Session
    fields : (Whitened, TargetMap, float, ndarray)
    last : ScoreEquation
    rules : Rules
    noisy_slope : (ndarray of shape (p, p), float)
        D, and the scale of its noise.
    link : StepLink

    Returns
    -------
    Line
    """

    def own_slope(own: np.ndarray, share: float) -> OwnSlopeQuery:
        query = _turned(OwnSlopeQuery(*fields, 1.0, link), own)
        ends = np.sqrt(length_classes(_longest(query.whitened) ** 2, p))
        return _shortened(session, query, ends, (counts, share), None, 2.0)[0]

    of_steps, scale_of_steps = noisy_slope
    p = len(of_steps)
    own = psd_part(of_steps, 2.0 * scale_of_steps * sqrt(2.0 * p), -0.5)
    share = OWN_SLOPE * rules.line
    counts = LEARNT * share
    share -= counts
    query = own_slope(own, share)
    if query.longest > 1.1 * EVEN_ROWS * sqrt(p):  # 8 is the end of a class
        directions, rows = query.whitened.longest_along
        rows *= sqrt(link.free(query.location)[1]) / EVEN_ROWS
        shorter = own @ directions / np.maximum(rows, 1.0)
        own = psd_part(shorter @ shorter.T, power=0.5)
        share -= counts
        query = own_slope(own, share)
    slope, put_back, scale = query.read(session.sum(query, share))
    # Directions in which rows beyond T have more than half of the slope of rows shortened to T
    mostly = put_back / query.mean_excess - 0.5 * (slope - put_back)
    _, long = FarRows(mostly, scale).missing(slope)
    turned = own @ of_steps @ own
    turned_scale = scale_of_steps * norm_of(own, 2) ** 2
    both_scales = hypot(scale, turned_scale)
    directions = np.empty((p, 0))
    if turned_scale < scale:  # directions of far rows alone have the noise of what was asked
        missing, directions = FarRows(slope - turned, both_scales).missing(turned)
        slope = turned + missing
    # Rows beyond T have about the length l = T sqrt(1 + h), and the slope (1 + 1 / h) of what was
    # put back. A step x moves their linear part by l |x| over the root of mu', and the bend of the
    # link half as much of their slope.
    bend = query.limit * sqrt((1.0 + query.mean_excess) / link.free(query.location)[1])
    bend *= (1.0 + 1.0 / query.mean_excess) / (2.0 * UNEVEN)
    last = replace(
        last,
        limit=sqrt(p * max(last.square, last.square_scale) / max(trace_of(of_steps), 1e-300)),
        slope=slope,
        slope_scale=min(scale, turned_scale),
        far=(directions, both_scales, UNEVEN * put_back, bend),
    )
    rules = replace(rules, line=(1.0 - OWN_SLOPE) * rules.line)
    shapes = [
        shape / norm_of(shape, 2)
        for shape in (psd_part(slope, scale / 4.0, -0.5), np.linalg.inv(own))
    ]
    if long.size:
        shapes.append(np.eye(p) - (1.0 - 1.0 / SHORTER[1]) * long @ long.T)
    fields = query.whitened, query.target_map, query.location, query.point
    return line_alone(session, fields, last, rules, noisy_slope, link, shapes)._replace(own=own)


def _best_length(
    parts: np.ndarray,
    from_counts: np.ndarray,
    deviation: float,
    ends: np.ndarray,
    noise: float,
    size: int,
    put_back: float,
    missing: float,
) -> tuple[float, ...]:
    """The length T with the least error, and what is known of scores beyond it.

    The error has three parts: noise, what is missing beyond T if lengths depend on directions, and
    the error of the mean excess if all scores there have one direction. If nothing is put back,
    what is missing is no longer than the part of the records beyond T times their mean excess.
    MISSED of that counts in intervals, and TYPICAL of this in the choice of T.

    Parameters
    ----------
    parts : ndarray of shape (n_classes,)
        Noisy parts of the records in each class.
    from_counts : ndarray of bool of shape (n_classes,)
        Which of them stand out of their noise.
    deviation : float
        Standard deviation of the noise of these.
    ends : ndarray of shape (n_classes,)
    noise : float
        Standard deviation of each coordinate of a mean of scores, for the sensitivity 1.
    size : int
        Number of coordinates.
    put_back : float
        w, which is 1 if the link bends.
    missing : float
        The part of the mean excess that is missing.

    Returns
    -------
    (length, mean_excess, along, missed, error) : tuple of float
        T, w times the mean excess h in units of T, `along` and `missed` of a `LineScoreQuery`, and
        the mean square of the error in each of the coordinates.
    """
    best: tuple[float, ...] = (inf,)
    for place, end in enumerate(ends, 1):
        if best[-1] < (2.0 * noise * end) ** 2:
            break  # each longer one has more noise than that alone
        beyond, mean_excess, unknown = _tail(parts, from_counts, place, deviation, put_back == 1.0)
        missed = missing * mean_excess * beyond
        along = hypot(UNEVEN * mean_excess, unknown)
        lost = hypot(missed, unknown * beyond) if put_back else TYPICAL * missed
        mean_excess *= put_back
        error = (lost**2 / size + (2.0 * (1.0 + mean_excess) * noise) ** 2) * end**2
        if error < best[-1]:
            best = end, mean_excess, along, end * missed, error
    return tuple(map(float, best))


def _tail(
    parts: np.ndarray, from_counts: np.ndarray, place: int, deviation: float, bends: bool = False
) -> tuple[float, float, float]:
    """Part of the records beyond a length T, and by how much they exceed it in the mean, relative.

    Classes that noise hides are filled in by the power law whose counts are nearest to all,
    averaged over such laws. Usual tails fall no more slowly beyond T than below. So a law of an
    infinite variance has the weight 2 P - 1, or 0 if that is negative, for the chance P that the
    last visible classes up to T, or the first three, give to exponents below its own and SLOWER,
    and below 2. If the link bends, all laws are as likely, since means of far rows may grow faster
    than any power of their lengths. A score in a class is taken to be as long as the geometric
    middle of its ends, and so a little longer than such laws say: more is missing where lengths
    depend on directions.

    Parameters
    ----------
    parts : ndarray of shape (n_classes,)
        Noisy parts of the records in each class.
    from_counts : ndarray of bool of shape (n_classes,)
        Which of them stand out of their noise.
    place : int
        The first class beyond T.
    deviation : float
    bends : bool, default=False
        Whether the link bends.

    Returns
    -------
    (part, mean_excess, deviation) : tuple of float
        The part is one deviation of the noise of counts more than is found. The deviation of the
        excess is that over the laws which counts leave possible, and by the noise of the counts
        that stand for themselves.
    """
    if place == len(parts):
        return 0.0, 1.0, 0.0  # no record is longer
    last = max(np.flatnonzero(from_counts[1 : max(place, LOCAL_CLASSES + 1)]), default=-1) + 2
    local = parts[max(last - LOCAL_CLASSES, 1) : last]
    _, chances = _power_laws(local, deviation, SPACING)
    usual = EXPONENTS >= 2.0
    slow = np.where(usual | bends, 1.0, np.maximum(2.0 * FASTER @ chances - 1.0, 0.0))
    parts = parts[place:]
    from_counts = from_counts[place:]
    laws, chances = _power_laws(parts, deviation, slow * PRIOR)
    filled = np.where(from_counts, parts, laws)
    lengths = SQRT2 ** (np.arange(len(parts)) + 0.5) - 1.0
    records = filled.sum(axis=1)
    excesses = np.maximum(filled @ lengths / records, LEAST_EXCESS)
    mean_excess = chances @ excesses
    beyond = chances @ records + deviation
    noise = deviation * norm_of(lengths[from_counts] - mean_excess) / beyond
    by_law = sqrt(chances @ (excesses - mean_excess) ** 2)
    return beyond, mean_excess, min(hypot(by_law, noise), mean_excess)


def _power_laws(
    parts: np.ndarray, deviation: float, prior: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Power laws with EXPONENTS that are nearest to noisy parts, and the chances of these.

    Returns
    -------
    (laws, chances) : ndarrays of shape (n_laws, n_classes) and (n_laws,)
    """
    shapes = SQRT2 ** (-EXPONENTS[:, None] * np.arange(len(parts)))
    laws = shapes @ parts / np.maximum((shapes**2).sum(axis=1), 1e-300)
    laws = np.maximum(laws, 1e-12)[:, None] * shapes
    misfit = np.square((parts - laws) / max(deviation, 1e-9)).sum(axis=1)
    chances = prior * np.exp(np.maximum(0.5 * (misfit.min() - misfit), -200.0))
    return laws, chances / chances.sum()
