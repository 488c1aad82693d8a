"""The least-squares line: what is shortened, how much that may hide, and where."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from skpriv._estimation._links import Log, Logit
from skpriv._estimation._loop import _line
from skpriv._estimation._loop._fit import LoopFit
from skpriv._estimation._loop._rules import LEARNT, Rules
from skpriv._estimation._loop._line import COUNTS_PUT_BACK, MISSED, PUT_BACK, UNEVEN
from skpriv._estimation._loop._score import ScoreEquation, ScoreQuery
from skpriv._estimation._loop._line_queries import LineScoreQuery, OwnSlopeQuery, StepAndLineQuery
from skpriv._estimation._persons import ScoreLengthsQuery
from skpriv._estimation._loop._rows import Whitened, WhiteningQuery
from skpriv._estimation._public_maps import RowMap, TargetMap
from skpriv._linalg import SQRT2, unvech
from skpriv.linear_model import LinearRegression
from skpriv.privacy import Answer, GaussianNoise

WHITENED = Whitened(RowMap(None, None, 1.0, False, 2), np.diag([3.0, 2.0]))
TARGET = TargetMap((-1.0, 1.0), False)
MAPS = WHITENED, TARGET, 0.0, np.zeros(2)
LAST = ScoreEquation(np.zeros(2), 1.0, None, None, 1.0, 1, 0.0, 0.0)


class _Session:
    """A session with noise of a deviation, which knows its rows."""

    persons = None

    def __init__(self, X, y, deviation=0.0):
        self.rows, self.deviation = (X, y), deviation
        self.exact, self.rng = {}, np.random.RandomState(0)
        self.rng_of_far_rows = np.random.RandomState(1)  # the others stay as they are

    def sum(self, query, share, subset=None):
        """The answer; each kind of question is asked with the same numbers every time."""
        if type(query) not in self.exact:
            self.exact[type(query)] = query.sum(*self.rows)
        value = self.exact[type(query)]
        far = isinstance(query, WhiteningQuery)
        rng = self.rng_of_far_rows if far else self.rng
        value = value + self.deviation * rng.normal(size=len(value))
        return Answer(value=value, n=len(self.rows[0]), noise=self.noise(query, share))

    def noise(self, query, share):
        """Its deviation."""
        return SimpleNamespace(scale=self.deviation)

    def piece(self, part):
        """All of them."""

    def records(self, share):
        """All of them."""
        return len(self.rows[0])


def _asked(session, line=1.0):
    rules = replace(Rules.of(4000, 2, 1e4), line=line, subset=1.0, length=0.4)
    query, *far = _line.line_query(session, MAPS, 1.0, rules, (np.eye(2), 0.0))
    return _line.Line.of(query, session.sum(query, 0.8), LAST, (np.eye(2), 0.0), *far)


def _rows(n=500):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(n, 2))
    X *= (rng.uniform(size=n) / np.linalg.norm(X, axis=1))[:, None]
    return X, rng.uniform(-1.0, 1.0, size=n)


def test_nothing_is_clipped_or_weighed_that_is_no_longer_than_it_may_be():
    """Rows W phi of length 3 have their whole part, and so have targets, in sums and in persons."""
    X, y = _rows()
    point = np.array([0.2, -0.1])
    psi = X @ WHITENED.W.T
    u = psi * (y - 0.1 - psi @ point)[:, None]
    query = LineScoreQuery(WHITENED, TARGET, 0.1, point, 10.0)
    sums = query.sum(X, y)
    np.testing.assert_allclose(10.0 * sums[:2], u.sum(axis=0))
    assert not sums[2:4].any()
    np.testing.assert_allclose(100.0 * np.sqrt(2.0) * unvech(sums[4:], 2), u.T @ u)
    np.testing.assert_allclose(query.sum_persons(X, y, np.arange(len(X) + 1), 1), sums)
    pairs = (u[::2] + u[1::2]) / 2.0
    asked = query.sum_persons(X, y, np.arange(0, len(X) + 1, 2), 2)
    np.testing.assert_allclose(100.0 * np.sqrt(2.0) * unvech(asked[4:], 2), pairs.T @ pairs)
    ends = np.array([0.1, 0.5, 1.0])
    counts = ScoreLengthsQuery(query, ends).sum(X, y)
    lengths = np.linalg.norm(u, axis=1)
    assert counts.tolist() == np.histogram(lengths, [0.0, 0.1, 0.5, np.inf])[0].tolist()


@pytest.mark.parametrize("most_excess", [None, 0.0, 2.0])
@pytest.mark.parametrize("limit", [0.05, 0.4, 10.0])
def test_a_step_and_the_line_are_the_same_in_one_pass(limit, most_excess):
    """The sums, and the noise of each, are those that it would have alone for its share."""
    X, y = _rows()
    maps = WHITENED, TARGET, 0.1, np.array([0.2, -0.1])
    step = ScoreQuery(*maps, 0.6, sandwich=True, most_excess=most_excess)
    line = LineScoreQuery(*maps, limit)
    both = StepAndLineQuery(step, line, (0.5, 0.04))
    law = GaussianNoise.calibrated(both.sensitivity, 0.7 * np.sqrt(0.54))
    found = both.read(Answer(both.sum(X, y), len(y), law))
    for query, share, answer in zip((step, line), (0.5, 0.04), found, strict=True):
        np.testing.assert_allclose(answer.value, query.sum(X, y), atol=1e-12)
        alone = GaussianNoise.calibrated(query.sensitivity, 0.7 * np.sqrt(share))
        assert answer.noise.scale == pytest.approx(alone.scale, rel=1e-5)
    assert len(np.unique([one.n for one in found])) == 1


@pytest.mark.parametrize("shorter", [np.eye(2), np.diag([0.5, 0.25])])
def test_a_line_has_the_same_equation_in_coordinates_of_its_own(monkeypatch, shorter):
    """It is asked beside the step where both have the same coordinates, and else after it."""
    X, y = _rows()
    step = ScoreQuery(*MAPS, 0.6, sandwich=True)
    query = LineScoreQuery(*MAPS, 10.0)
    if shorter[0, 0] < 1.0:
        query = _line._turned(query, shorter)
    monkeypatch.setattr(_line, "line_query", lambda *given: (query, shorter, None))
    rules = replace(Rules.of(4000, 2, 1e4), line=1.0)
    last, line = _line.with_line(_Session(X, y), step, 0.5, rules, (np.eye(2), 0.0))
    u = X @ WHITENED.W.T * y[:, None]
    np.testing.assert_allclose(line.equation.moment, u.mean(axis=0))
    np.testing.assert_allclose(line.equation.residual_gram, u.T @ u / len(u))
    np.testing.assert_allclose(last.moment, 0.6 * step.sum(X, y)[:2] / len(X))


def test_of_long_scores_the_directions_are_summed():
    """With the root of the mean excess, which is put back of each: see the test of its errors."""
    X, y = _rows()
    u = X @ WHITENED.W.T * y[:, None]
    lengths = np.linalg.norm(u, axis=1)
    far = (u / lengths[:, None])[lengths > 0.3]
    found = LineScoreQuery(*MAPS, 0.3, mean_excess=0.5).sum(X, y)[2:4]
    np.testing.assert_allclose(found, np.sqrt(0.5) * far.sum(axis=0))
    assert 10 < len(far) < 490


@pytest.mark.parametrize("part, most", [(0.15, 1.3), (1.0, 2.2)])
def test_what_is_still_missing_is_counted(part, most):
    """A part of the longest scores have one direction, and many that are shortened another.

    In the root mean square of 40 draws the error is .78 of the deviation that is counted, and 2.18
    if all of the longest have one direction: counts with such noise tell too few of them in some
    draws. It was 2.39 when each direction had an equal part, and not the moment's what stands out.
    """
    n, rng = 20_000, np.random.RandomState(0)
    X, y = rng.uniform(-0.3, 0.3, size=(n, 2)), rng.uniform(-0.4, 0.4, size=n)
    far = rng.uniform(size=n) < 0.02
    X[far, 0], y[far] = 0.6 + 0.4 * rng.exponential(0.3, size=far.sum()).clip(0.0, 1.0), 0.9
    side = rng.uniform(size=n) < 0.06
    X[side] = 0.5 * rng.choice([-1.0, 1.0], size=(side.sum(), 1)) * [0.0, 1.0]
    y[side] = 0.8 * rng.choice([-1.0, 1.0], size=side.sum())
    even = far & (rng.uniform(size=n) >= part)
    y[even] *= rng.choice([-1.0, 1.0], size=even.sum())
    whole = (X @ WHITENED.W.T * y[:, None]).mean(axis=0)
    session, found = _Session(X, y, deviation=60.0), []
    for _ in range(40):
        line = _asked(session)
        session.exact.clear()  # each is shortened elsewhere
        counted = np.hypot(line.equation.moment_scale, np.linalg.norm(line.errors, axis=1))
        found.append((line.equation.moment - whole) / counted)
    assert np.sqrt(np.mean(np.square(found), axis=0)).max() < most


def test_half_of_the_mean_is_put_back_because_the_rest_is_bounded_as_well():
    """Lengths of an exponential law differ from all of their mean by this part of it."""
    assert _away(1.0) == pytest.approx(UNEVEN, rel=1e-3)


def test_half_of_what_is_asked_of_long_scores_is_put_back():
    """Lengths differ from half of their mean by .71 of it, and from a quarter of it by .81.

    `UNEVEN` counts as missing, which is the part for all of the mean, .74.
    """
    (half, missing), _ = PUT_BACK
    assert _away(half) < missing < _away(0.25)


def _away(part):
    """Mean distance of an exponential variable from this part of its mean, over the mean."""
    lengths = -np.log((np.arange(100_000) + 0.5) / 100_000)
    return np.abs(lengths - part).mean()


def test_the_scales_are_those_of_the_noise(monkeypatch):
    """1,500 draws: each deviation is known to 2%, and half or twice of it is not what is drawn."""
    monkeypatch.setattr(_line, "_best_length", lambda *given: (0.5, 0.4, 0.7, 0.3, 1.0))
    X, y = _rows(40)
    session = _Session(X, y, deviation=0.3)
    exact = _asked(_Session(X, y), LEARNT)
    lines = [_asked(session, LEARNT) for _ in range(1500)]
    for found, truth, scale in (
        ([a.equation.moment for a in lines], exact.equation.moment, "moment_scale"),
        ([np.diagonal(a.equation.residual_gram) for a in lines],
         np.diagonal(exact.equation.residual_gram), "residual_scale"),
    ):  # fmt: skip
        away = np.array(found) - truth
        assert away.std() == pytest.approx(getattr(lines[0].equation, scale), rel=0.1)
        assert abs(away.mean()) < 0.1 * away.std()
    across, more = np.split(exact.errors[:, 1:], 2, axis=1)
    np.testing.assert_allclose(across, 0.3 / np.sqrt(2.0) * np.eye(2))
    assert not more.any()  # where scores have the coordinates of rows
    u = X @ WHITENED.W.T * y[:, None]
    u *= np.minimum(0.5 / np.linalg.norm(u, axis=1), 1.0)[:, None]
    np.testing.assert_allclose(exact.equation.residual_gram, u.T @ u / len(u))


def _power_law(power, n, size=24):
    """Counts of n records in classes, whose lengths have this exponent."""
    survivors = SQRT2 ** (-power * np.arange(size + 1))
    return n * (survivors[:-1] - survivors[1:])


@pytest.mark.parametrize("power", [1.6, 2.5, 4.0])
def test_the_mean_excess_of_a_tail_is_told_by_noisy_counts(power):
    """Power laws, at most 1,000 records beyond T, counted with a noise of 30: 200 draws.

    Half or twice the excess is far from the median. Below an exponent of 2 the excess is above 1.
    """
    rng, counts, place = np.random.RandomState(0), _power_law(power, 5000.0), 0
    while counts[place:].sum() > 1000.0:
        place += 1
    lengths = SQRT2 ** (np.arange(len(counts) - place) + 0.5) - 1.0
    excess = counts[place:] @ lengths / counts[place:].sum()
    assert (excess > 1.0) == (power < 2.0)
    found = []
    for _ in range(200):
        parts = counts + 30.0 * rng.normal(size=len(counts))
        found.append(_line._tail(parts, parts > 99.0, place, 30.0))
    beyond, middle, _ = np.median(found, axis=0)
    assert beyond == pytest.approx(counts[place:].sum() + 30.0, rel=0.15)
    assert 0.7 < middle / excess < 1.4
    assert 0.7 < np.std([(one[1] - middle) / one[2] for one in found]) < 1.5


def test_a_tail_is_as_heavy_as_counts_below_it_say():
    """Where noise hides what is beyond T, visible counts below T alone tell an infinite variance.

    The mean excess is 2 at an exponent of 1.5, and .25 and .5 at exponents of 5 and 3.
    """
    found = {}
    for power in (1.5, 3.0, 5.0):
        counts = _power_law(power, 1e6) * (np.arange(24) < 6)
        found[power] = _line._tail(counts, counts > 0.0, 6, 0.1 * counts[5])[1:]
    assert found[1.5] == pytest.approx((0.74, 0.74), abs=0.02)
    usual = _line._tail(np.zeros(24), np.zeros(24, dtype=bool), 6, 1.0)[1:]
    for one in (usual, found[3.0], found[5.0]):
        assert one == pytest.approx((0.42, 0.25), abs=0.02)
    # Of a link that bends, all laws are as likely, whatever counts below T say
    bent = _line._tail(counts, counts > 0.0, 6, 0.1 * counts[5], bends=True)[1:]
    assert bent == pytest.approx(found[1.5], abs=0.3) and bent[0] > 0.6


def test_a_tail_falls_as_slowly_as_its_first_visible_classes_say():
    """With T below all of them, too: the excess of an exponent of 1 is finite by the bounds alone.

    In 14 classes the mean excess is 3.70, 2.60 and .383, and 3.42, 2.60 and .385 are found. Half of
    `SLOWER` would make it 2.56 at an exponent of 1.2.
    """
    found = []
    for power in (1.0, 1.2, 4.0):
        counts = _power_law(power, 2000.0, 14)
        found.append(_line._tail(counts, counts > 60.0, 1, 20.0)[1])
    assert found == pytest.approx([3.42, 2.60, 0.385], rel=0.01)


@pytest.mark.parametrize("deviation", [1.0, 30.0])
def test_a_tail_has_one_deviation_more_than_its_counts(deviation):
    """Noise may have taken so many away, and what is missing beyond T must not be too small."""
    counts = _power_law(2.5, 5000.0)
    for place in (0, 3, 12):
        beyond = _line._tail(counts, np.ones(24, dtype=bool), place, deviation)[0]
        assert beyond == pytest.approx(counts[place:].sum() + deviation, rel=1e-9)


def test_no_class_beyond_the_last_has_a_record():
    assert _line._tail(np.zeros(5), np.zeros(5, dtype=bool), 5, 1.0)[0] == 0.0


def test_scores_are_shortened_where_noise_and_what_is_missing_are_about_equal():
    ends = SQRT2 ** np.arange(16)
    lengths = np.exp(np.random.RandomState(0).normal(size=10**6))
    places = np.minimum(np.searchsorted(ends, lengths), len(ends) - 1)
    parts = np.bincount(places, minlength=len(ends)) / len(lengths)
    lengths = [
        _line._best_length(parts, parts > 1e-8, 1e-9, ends, noise, 6, 1.0, UNEVEN)[0]
        for noise in 10.0 ** -np.arange(1, 7)
    ]
    assert lengths == sorted(lengths) and lengths[0] == ends[0] and lengths[-1] > ends[8]
    # The error is the noise 2 (1 + h) T, and UNEVEN of what shortening takes away, over sqrt(6)
    found = _line._best_length(parts, parts > 1e-8, 1e-9, ends, 1e-3, 6, 1.0, UNEVEN)
    length, excess, _, missed, _ = found

    def missing(other):
        middles = ends[ends > other] / 2**0.25
        excess = parts[ends > other] @ (middles - other) / other / parts[ends > other].sum()
        return excess * other * parts[ends > other].sum(), excess

    taken, mean_excess = missing(length)
    assert missed == pytest.approx(UNEVEN * taken, rel=0.15)
    assert excess == pytest.approx(mean_excess, rel=0.15)

    def error(other):
        taken, mean_excess = missing(other)
        noise = 2.0 * (1.0 + mean_excess) * 1e-3 * other
        return np.hypot(noise, UNEVEN * taken / np.sqrt(6.0))

    assert 1.02 * error(length / np.sqrt(2.0)) > error(length) < 1.02 * error(length * np.sqrt(2.0))


def test_of_a_declared_line_nothing_is_put_back(monkeypatch):
    """MISSED of the bound counts, and what is not put back is not asked."""
    ends = SQRT2 ** np.arange(16)
    parts = 0.8 * 0.2 ** np.arange(16.0)
    given = parts, parts > 1e-8, 1e-9, ends, 1e-3, 6
    length, excess, _, missed, error = _line._best_length(*given, *PUT_BACK[1])
    assert not excess
    assert missed == pytest.approx(MISSED / UNEVEN * _line._best_length(*given, *PUT_BACK[0])[3])
    # The length has the least error with what is missing in the mean, .60 of the bound
    missing = 0.6 / MISSED * missed / np.sqrt(6.0)
    assert error == pytest.approx(missing**2 + (2e-3 * length) ** 2, rel=0.01)
    assert missing > 2e-4 * length
    # The directions of long scores are asked of a line that is not declared
    session = _Session(*_rows(), 1e-6)
    monkeypatch.setattr(_line.Line, "of", lambda query, *others: query)
    assert _asked(session, LEARNT).mean_excess > 0.0 and "beyond" not in _asked(session).parts


def test_lengths_of_a_declared_line_are_counted_of_all_records():
    """Counts of 100,000 of 600,000 hide six times as many, which move the line more than noise."""
    session = _Session(*_rows(), 1e-6)
    subsets = []
    ask = session.sum

    def kept(query, share, subset=None):
        subsets.append(subset)
        return ask(query, share)

    session.sum, session.piece = kept, lambda part: part
    _asked(session)
    assert len(subsets) >= 3 and set(subsets) == {None}  # far rows, counts and the equation
    subsets.clear()
    _asked(session, LEARNT)
    assert subsets[-1] is None and set(subsets[:-1]) == {1.0}


def test_hidden_scores_count_by_the_mean_square_of_what_they_move_a_line():
    """Along each axis, of any length from that of T on and any target; half of it would not pass.

    Another direction has lengths of its own: rows of an empty level make no other longer. However
    long rows may be, the line has to stay near them. If no score is longer than T, none is hidden.
    The line is that which the moment tells, wherever it was asked.
    """
    point, slope, n = np.array([0.2, -0.1]), np.array([0.5, 0.2]), 400
    moment = np.array([-0.3, 0.1])
    told = point + moment / slope
    targets = np.linspace(-1.0, 1.0, 2001)
    for limit in (0.01, 0.1, 0.5):
        for length in (2.0, 20.0, 1e6):
            maps = Whitened(WHITENED.row_map, np.diag([3.0, length])), TARGET, -0.1, point
            query = LineScoreQuery(*maps, limit, uncounted=13.0 / n)
            directions, said = query.hidden_scores(np.diag(slope), 0.0, moment, n)
            for axis, deviation in zip(np.abs(directions).argmax(axis=0), said, strict=True):
                lengths = [3.0, length][axis] * np.geomspace(1e-9, 1.0, 200_000)
                ends = -0.1 + lengths * told[axis] * np.array([[-1.0], [1.0]])
                scores = lengths * np.sqrt(np.mean(ends**2, axis=0) + np.mean(targets**2))
                records = np.minimum(scores.max() / scores, 13.0)
                steps = records * (scores - limit) / (n * slope[axis] + records * lengths**2)
                moved = np.sqrt((steps[scores > limit] ** 2).mean())
                assert deviation == pytest.approx(slope[axis] * moved, rel=0.02) and moved < 1.0
    for query in LineScoreQuery(*MAPS, 3.0, uncounted=1.0), LineScoreQuery(*MAPS, 0.01):
        assert not query.hidden_scores(np.zeros((2, 2)), 0.1, np.zeros(2), n)[1].any()


def test_hidden_scores_do_not_depend_on_where_the_line_is_asked():
    """A point that is flat along far rows, as more budget for the line makes it, hides no less.

    Rows may be 40 long there. If their scores were those at a flat point, with residuals of
    targets alone, the deviation would be less than a tenth.
    """
    told, slope, n = np.array([0.9, -0.1]), np.array([0.01, 0.02]), 60_000
    found = []
    for point in (told, 0.5 * told, np.zeros(2), -told):
        maps = Whitened(WHITENED.row_map, np.diag([40.0, 1.0])), TARGET, -0.1, point
        query = LineScoreQuery(*maps, 0.6, uncounted=20.0 / n)
        found.append(query.hidden_scores(np.diag(slope), 0.0, slope * (told - point), n)[1])
        at_point = query.hidden_scores(np.diag(slope), 0.0, np.zeros(2), n)[1]
        if not point.any():
            assert at_point.max() < 0.1 * found[0].max()
    np.testing.assert_allclose(found, np.broadcast_to(found[0], (4, 2)))


def test_a_declared_line_has_records_that_noise_may_hide(monkeypatch):
    """Each direction has those, or an equal part of what is missing beside that along the moment.

    As much as noise explains of the square of the moment is not along it. Others put that back.
    """
    session = _Session(*_rows(), 1.0)
    queries = []
    of = _line.Line.of

    def kept(query, *given):
        # Nothing is known to be missing, and scores may be longer than T
        queries.append(replace(query, missed=0.0, limit=0.5 * query.limit) if shorter else query)
        return of(queries[-1], *given)

    monkeypatch.setattr(_line.Line, "of", kept)
    for deviation, fewest, most, shorter in (
        (1.0, 0.5, 2.0, False), (1e-3, 0.0, 0.5, False), (1e-3, 0.0, 0.5, True),
        (10.0, 2.0, 100.0, True),
    ):  # fmt: skip
        session.deviation = deviation
        line = _asked(session)
        query = queries[-1]
        assert query.uncounted == pytest.approx(deviation / 500)  # the noise of a count of lengths
        # A record that stands out of the noise of a moment is hidden in part alone
        records = line.equation.moment_scale / query.limit
        assert fewest < 500 * records < most
        moment, noise = line.equation.moment, line.equation.moment_scale
        directions, hidden = query.hidden_scores(np.eye(2), 0.0, moment, 500)
        seen = max(1.0 - 2.0 * noise**2 / (moment @ moment), 0.0)
        deviations = np.maximum(hidden, np.sqrt((1.0 - seen) / 2.0) * query.missed)
        np.testing.assert_allclose(line.errors[:, 1:3], directions * deviations)
        along = np.sqrt(seen) * query.missed * moment / np.linalg.norm(moment)
        np.testing.assert_allclose(line.along, along)
        assert hidden.any() == shorter
    assert _asked(session, LEARNT).along.any()


def test_the_classes_reach_as_far_as_a_score_may():
    ends = _line.length_classes(3.0, 1.0)
    assert ends[0] == 0.25 and ends[-2] < 3.0 <= ends[-1]
    assert len(_line.length_classes(0.1, 1.0)) == 1


@pytest.mark.parametrize("persons", [None, 2])
def test_the_shares_of_the_line_add_up(persons):
    """Its two questions have a twentieth of what the first ones leave, of records or persons."""
    rng = np.random.RandomState(0)
    X = rng.uniform(-1.0, 1.0, size=(20_000, 2))
    model = LinearRegression(bounds_X=(-1.0, 1.0), bounds_y=(-2.0, 2.0), random_state=0)
    people = (
        {} if persons is None else {"groups": np.arange(20_000) // 2, "max_rows_per_group": persons}
    )
    report = model.fit(X, X[:, 0] + 0.1 * rng.normal(size=20_000), **people).privacy_report_
    shares = {row.query: row.share for row in report.rows}
    lengths = shares["lengths of the line's scores"]
    assert 0.04 < 5.0 * lengths < 0.05
    assert shares["scores of the line"] == pytest.approx(4.0 * lengths)
    assert sum(row.share for row in report.rows) == pytest.approx(1.0)


@pytest.mark.parametrize("resolution", [50.0, 100.0, 400.0])
def test_a_line_that_is_declared_has_most_of_what_the_first_questions_leave(resolution):
    """And the slope by itself a tenth, which tells more of it than all steps do with twice that.

    From a resolution of 100 on shares of the mean and of the length fall, for the line.
    """
    N = resolution * 3.0**1.5
    plain, declared = (Rules.of(20_000, 3, N, textbook=one) for one in (False, True))
    assert not plain.gram
    assert declared.line > 10.0 * plain.line
    part = min(1.0, 100.0 / resolution)
    parts = declared.gram, sum(declared.steps), declared.line
    shares = 0.1, 0.15 + 0.05 * part, 0.75 - 0.05 * part
    np.testing.assert_allclose(np.divide(parts, sum(parts)), shares)
    assert declared.location == part * plain.location
    left = 1.0 - declared.location - declared.spread
    assert declared.stretch == pytest.approx(part * left * 0.05)


def test_of_many_records_the_line_is_asked_with_the_last_step():
    """Its share and that of the step add up, and nothing else is asked of all records after it."""
    n, rng = 120_000, np.random.RandomState(0)
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=n)
    model = LinearRegression(bounds_X=(-1.0, 1.0), bounds_y=(-2.0, 2.0), random_state=0).fit(X, y)
    rows = model.privacy_report_.rows
    lengths = next(row.share for row in rows if row.query == "lengths of the line's scores")
    step = next(row.share for row in rows if row.query == "scores")
    both = next(row.share for row in rows if row.query == "scores, and those of the line")
    assert both == pytest.approx(4.0 * lengths + 7.0 * step)  # the last step has .7, others .1
    assert sum(row.share for row in rows) == pytest.approx(1.0)
    line = model._released.line.equation
    assert line.n == n and (line.point == model._released.last.point).all()


def test_errors_of_the_moment_are_those_of_the_excess_and_of_directions():
    query = LineScoreQuery(*MAPS, 1.0, along=np.hypot(UNEVEN, 0.4), missed=0.2)
    value = np.r_[np.zeros(2), np.sqrt(0.5) * np.array([3.0, -4.0]), np.zeros(3)]
    tail = 0.5 * np.array([3.0, -4.0])  # h T B / 2
    # Noise of B as long as the tail: then nothing is known to be along it
    scale = 5.0 * np.sqrt(0.5) / np.sqrt(2.0)
    for noise, seen in ((0.0, 1.0), (np.sqrt(0.75) * scale, 0.5), (1.01 * scale, 0.0)):
        answer = Answer(value=value, n=1, noise=SimpleNamespace(scale=noise))
        line = _line.Line.of(query, answer, LAST, (np.eye(2), 0.0), np.eye(2))
        np.testing.assert_allclose(line.equation.moment, tail)
        # Of h, which is 1, .4 may be wrong; and lengths may depend on directions
        along, *across = line.errors.T
        np.testing.assert_allclose(along, seen * np.hypot(UNEVEN, 0.4) * 2.0 * tail, atol=1e-9)
        np.testing.assert_allclose(across[:2], 0.2 / np.sqrt(2.0) * np.eye(2))


def test_along_a_curve_what_shortening_loses_has_an_equal_part_in_each_direction(monkeypatch):
    """Bessel's inequality: along each direction the square is S var(l) / p, here with S = .9, .1.

    Lengths count nearly half as much again. Half of it, or the same in each direction, would not
    pass. The sum over all functions S^-1/2 a is reached where lengths depend on one direction.
    """
    query = LineScoreQuery(*MAPS, 1.0, Logit(), mean_excess=0.5, missed=0.3 * UNEVEN)
    sums = {"moment": np.zeros(2), "beyond": np.zeros(2), "residual": np.array([0.9, 0.1, 0.0])}
    answer = SimpleNamespace(mean=query.joined(sums), mean_scale=0.0, n=1000)
    along, *across = _line.Line.of(query, answer, LAST, (np.eye(2), 0.0), np.eye(2)).errors.T
    across = np.transpose(across)  # beside columns of zeros
    np.testing.assert_allclose(across @ across.T, (0.6 * UNEVEN) ** 2 * np.diag([0.45, 0.05]))
    assert not along.any()  # of B, which is 0 here
    # The length T is chosen by a square over all directions
    parts = np.array([0.9, 0.09, 0.01, 0.0])
    given = parts, parts > 1e-8, 1e-9, SQRT2 ** np.arange(4), 0.01, 2, 1.0, UNEVEN
    length, excess, along, missed, error = _line._best_length(*given)
    noise = 2.0 * (1.0 + excess) * 0.01 * length
    dependent = (missed * along / (UNEVEN * excess)) ** 2
    assert error == pytest.approx(dependent / 2.0 + noise**2, rel=1e-6)
    asked = []
    choose = _line._best_length
    monkeypatch.setattr(_line, "_best_length", lambda *all: asked.append(all[-2:]) or choose(*all))
    _of_curve(1e-6)
    _asked(_Session(*_of_curve(1e-6)[-1].rows, 1e-6))
    # All of what is missing along the mean direction is put back, and nothing of a declared line
    assert (asked[0], asked[-1]) == ((1.0, UNEVEN), PUT_BACK[1])
    length, half, *_ = _line._best_length(*given[:-2], *PUT_BACK[0])
    place = 1 + np.flatnonzero(SQRT2 ** np.arange(4) == length)[0]
    assert half == pytest.approx(0.5 * _line._tail(parts, parts > 1e-8, place, 1e-9)[1])
    a = np.random.RandomState(0).normal(size=(100_000, 3)) * [3.0, 1.0, 0.3]
    a /= np.linalg.norm(a, axis=1)[:, None]
    lengths = a[:, 1]
    missing = (a * (lengths - lengths.mean())[:, None]).mean(axis=0)
    size = missing @ np.linalg.solve(a.T @ a / len(a), missing)
    assert 0.9 < size / lengths.var() <= 1.0 + 1e-6


class _Curve(_Session):
    """The same of two classes, whose noise falls with the root of the share."""

    trust = SimpleNamespace(can=SimpleNamespace(same_rows=True))

    def noise(self, query, share):
        return GaussianNoise(self.deviation / np.sqrt(share))

    def sum(self, query, share, subset=None):
        value = query.sum(*self.rows)
        noise = self.noise(query, share)
        more = noise.scale * self.rng.normal(size=len(value)) if self.deviation else 0.0
        return Answer(value=value + more, n=len(self.rows[0]), noise=noise)


def _of_curve(deviation, ask=_line.line_alone, link=Logit()):
    """The equation of two classes at a point, and the slope and the moment there."""
    rng = np.random.RandomState(0)
    X = rng.uniform(-1.0, 1.0, size=(4000, 2))
    y = (rng.uniform(size=4000) < 1.0 / (1.0 + np.exp(-X @ [1.0, -1.0]))).astype(float)
    maps = Whitened(RowMap(None, None, 1.5, False, 2), np.eye(2)), TARGET, 0.0
    point = np.array([0.5, -0.5])
    rules = replace(Rules.of(4000, 2, 1e4), line=1.0, length=0.4)
    psi = X / 1.5
    mean = 1.0 / (1.0 + np.exp(-psi @ point))
    slope = (psi * (mean * (1.0 - mean))[:, None]).T @ psi / 4000
    last = ScoreEquation(point, 1.0, None, None, 0.2, 4000, 0.0, 0.0)
    session = _Curve(X, y, deviation)
    steps = np.diag([1.0, 0.5]) @ slope @ np.diag([1.0, 0.5])  # what weights leave
    found = ask(session, (*maps, point), last, rules, (steps, 1e-9), link)
    return found, slope, psi.T @ (y - mean) / 4000, session


@pytest.mark.parametrize("link", [Log(), Logit()])
def test_scores_of_declared_counts_may_miss_half_as_much(link, monkeypatch):
    asked = []
    choose = _line._best_length
    monkeypatch.setattr(_line, "_best_length", lambda *all: asked.append(all[-2:]) or choose(*all))
    _of_curve(1e-6, link=link)
    assert asked == [COUNTS_PUT_BACK if link.limit is None else (1.0, UNEVEN)]


def test_what_shortened_counts_miss_beside_a_rare_category_is_what_is_said():
    """Its rows are the longest, so that lengths depend on directions: half as much would not pass.

    Without such rows they miss a third of that.
    """
    parts = []
    for seed, rare in itertools.product(range(3), (True, False)):
        rng = np.random.RandomState(seed)
        X = rng.uniform(-1.0, 1.0, size=(200_000, 6))
        X[:, 0] = rng.uniform(size=len(X)) < 0.02 if rare else X[:, 0]
        X[:, 5] = 1.0
        mean = np.exp(X @ [1.0, 0.5, -0.5, 0.3, 0.0, 0.5])
        y = rng.poisson(mean * rng.gamma(2.0, 0.5, size=len(X)))
        root = np.linalg.cholesky((X * mean[:, None]).T @ X / len(X))
        u = np.linalg.solve(root, X.T).T * (y - mean)[:, None]
        lengths = np.linalg.norm(u, axis=1)
        T = 5.0 * np.sqrt(np.mean(lengths**2))
        far = lengths > T
        a = u[far] / lengths[far, None]
        excess = lengths[far] - T
        missing = a.T @ (excess - excess.mean()) / len(X)
        said = 2.0 * COUNTS_PUT_BACK[1] * excess.mean() * far.mean() / np.sqrt(6.0)
        parts.append(np.linalg.norm(missing) / said)
    assert 0.8 < np.mean(parts[::2]) < 1.3 and 0.2 < np.mean(parts[1::2]) < 0.6


def test_a_declared_likelihood_has_a_slope_of_its_own():
    """In its own coordinates, where weights of the steps took half of a direction."""
    line, slope, moment, _ = _of_curve(1e-9, _line.likelihood_alone)
    own = line.own
    np.testing.assert_allclose(own @ slope @ own, line.equation.slope, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(own @ moment, line.equation.moment, rtol=1e-3, atol=1e-3)


def test_lengths_of_a_declared_likelihood_are_counted_of_all_records(monkeypatch):
    """Those for its slope, too, of which counts of a part would hide as large a part."""
    subsets = []
    ask = _Curve.sum
    monkeypatch.setattr(_Curve, "sum", lambda *all: subsets.append(all[3:]) or ask(*all))
    monkeypatch.setattr(_Curve, "piece", lambda session, part: part)
    _of_curve(0.01, _line.likelihood_alone)
    assert len(subsets) >= 4 and set(subsets) <= {(), (None,)}


def test_where_the_slope_that_is_asked_has_more_noise_that_of_the_steps_stays():
    """What weights take is put back in directions that are told, with the noise of what is asked.

    The square of its length is chosen for twice that noise: what is missing is a part of what is
    put back.
    """
    line, *_, session = _of_curve(0.3, _line.likelihood_alone)
    directions, noise, *_ = line.equation.far
    assert line.equation.slope_scale == pytest.approx(1e-9 * np.linalg.norm(line.own, 2) ** 2)
    along = directions.T @ line.equation.slope @ directions
    assert directions.size and noise > 1e-6 and np.trace(along) > 1.0 + 2.0 * noise


def test_the_slope_that_is_asked_has_the_noise_that_is_said_of_it():
    """3,000 draws of pure noise: its deviation is known to 2%."""
    query = replace(OwnSlopeQuery(*MAPS, 1.0, Logit()), limit=1.5, mean_excess=0.6)
    rng = np.random.RandomState(0)
    drawn = [
        query.read(SimpleNamespace(mean=rng.normal(size=query.shape), mean_scale=1.0))
        for _ in range(3000)
    ]
    spread = np.std([found.diagonal() for found, *_ in drawn], axis=0)
    np.testing.assert_allclose(spread, drawn[0][2], rtol=0.06)


def test_a_slope_may_lack_as_much_as_a_bound_of_its_lengths_says(monkeypatch):
    """UNEVEN of what is put back, as of the scores of a line."""
    put_back = np.diag([0.3, 0.1])
    given = 1.5 * np.eye(2), put_back, 1e-3
    monkeypatch.setattr(OwnSlopeQuery, "read", lambda query, answer: given)
    line, *_ = _of_curve(0.01, _line.likelihood_alone)
    np.testing.assert_allclose(line.equation.far[2], UNEVEN * put_back)


def test_of_a_declared_likelihood_far_rows_bend_the_link(monkeypatch):
    """Rows of the length 2 sqrt(1.5), a step of length 1 and mu' of 1/4 at the location."""

    def shortened(session, line, *arguments):
        return replace(line, limit=2.0, mean_excess=0.5), 1.0

    monkeypatch.setattr(_line, "_shortened", shortened)
    line, *_ = _of_curve(0.01, _line.likelihood_alone)
    far_slope = 1.5 / 0.5 / UNEVEN  # over UNEVEN of what was put back
    assert line.equation.far[3] == pytest.approx(0.5 * 2.0 * np.sqrt(1.5 / 0.25) * far_slope)


@pytest.mark.parametrize(("weaker", "moved"), [(0.6, 0.5), (-0.2, 1.0)])
def test_a_trace_of_noise_bends_the_link_by_no_more_than_the_step(weaker, moved):
    """A step of .1 and a bend of 10: its direction has a quarter of the slope, or noise is all."""
    far_slope = np.diag([0.2, weaker])
    pooled = SimpleNamespace(far=(np.empty((2, 0)), 0.0, far_slope, 10.0))
    *_, bent = LoopFit._far_errors(None, pooled, np.array([0.1, 0.0]))
    np.testing.assert_allclose(bent, [0.02 * np.hypot(1.0, moved), 0.0])


@pytest.mark.parametrize("textbook", [False, True])
def test_what_is_cut_is_asked_where_certified_intervals_say_something(textbook):
    """They alone need it, and its noise is that of the slope of the line."""
    asked = [Rules.of(n, 3, 1.0 * n, textbook=textbook).asks_cut for n in (530, 2070, 2090)]
    assert asked == [False, False, True]
