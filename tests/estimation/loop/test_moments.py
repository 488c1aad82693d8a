"""Steps that ask their moments alone: what they say, what is kept for them, and what is left."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from skpriv._estimation._loop._line import _turned
from skpriv._estimation._loop._line_queries import LineScoreQuery
from skpriv._estimation._loop._score import PersonScoreQuery, ScoreEquation, ScoreQuery
from skpriv._estimation._loop._whitening import Pool
from skpriv._estimation._links import IDENTITY
from skpriv._estimation._persons import ScoreLengthsQuery as lengths
from skpriv._estimation._loop._far_rows import FarRowsQuery
from skpriv._estimation._loop._rows import Whitened, WhiteningQuery
from skpriv._estimation._loop._rules import RESOLVED, Rules, normal_clip
from skpriv._estimation._public_maps import RowMap, TargetMap, WeightedMap
from skpriv.inspection import inference
from skpriv.linear_model import LinearRegression
from skpriv.privacy import Answer, Budget
from skpriv.privacy._session import _pieces
from skpriv.privacy._session._open import CentralSession
from skpriv.records import ArrayRows


def _query(weighted=False):
    rows = RowMap(None, None, 1.0, True, 3)
    W = np.triu(np.random.RandomState(1).normal(size=(4, 4)))
    target = TargetMap((-1.0, 1.0), False)
    white = Whitened(WeightedMap(rows) if weighted else rows, W)
    point = np.array([0.2, -0.1, 0.4, 0.1])
    return ScoreQuery(white, target, 0.1, point, 0.5, sandwich=True, matrices=False)


def _rows(weighted=False, n=3_000):
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(n, 3)), rng.normal(size=n)
    X[5], y[6], X[7] = np.nan, np.nan, 1e200
    if weighted:
        roots = np.sqrt(rng.uniform(size=n)) * (np.arange(n) != 8)
        X, y = np.column_stack([X, roots]), y * roots
    return X, y


@pytest.mark.parametrize("weighted", [False, True])
def test_the_sums_are_those_of_a_step_with_matrices(weighted):
    (X, y), query = _rows(weighted), _query(weighted)
    arguments = query.whitened, query.target_map, 0.1, query.point, 0.5
    whole, line = ScoreQuery(*arguments, sandwich=True), LineScoreQuery(*arguments)
    found = dict(zip(whole.parts, np.split(whole.sum(X, y), np.cumsum([*whole.parts.values()]))))
    expected = np.concatenate([found[name] for name in ("moment", "square", "nearly_cut")])
    np.testing.assert_allclose(query.sum(X, y), expected, atol=1e-9)
    if weighted:
        assert query.prepared is None and whole.prepared is None
        return
    scaled = replace(query, whitened=replace(query.whitened, target_map=query.target_map))
    assert replace(scaled, target_map=TargetMap((-2.0, 2.0), False)).prepared is None
    grams = (
        kind(other.whitened, asked_again=True)
        for kind in (WhiteningQuery, FarRowsQuery)
        for other in (query, scaled)
    )
    for asked in (query, whole, line, scaled, *grams):
        maker, of_prepared = asked.prepared
        rows = maker.records(X, y)
        before = [block.copy() for _, block, *_ in rows[0].blocks]
        np.testing.assert_allclose(of_prepared.sum(*rows), asked.sum(X, y), atol=1e-9)
        assert of_prepared.sensitivity == asked.sensitivity
        assert (rows[1] is y) == (asked.whitened.target_map is None)
        assert all(
            map(np.array_equal, before, (block for _, block, *_ in rows[0].blocks))
        )  # for the next one


@pytest.mark.parametrize("by_person", [False, True])
@pytest.mark.parametrize("kind", [PersonScoreQuery, LineScoreQuery])
def test_kept_rows_of_persons_have_the_same_sums(kind, by_person):
    (X, y), query = _rows(n=30_000), _query()  # of two blocks
    whitened = replace(query.whitened, by_person=by_person)
    asked = kind(whitened, query.target_map, 0.1, query.point, 0.5)
    starts = np.append(np.arange(0, 30_000, 2), 30_000)
    maker, of_prepared = asked.prepared
    rows = maker.records(X, y)
    for _ in range(2):  # no question writes over what is kept
        for one, other in ((of_prepared, asked), (lengths(of_prepared), lengths(asked))):
            expected = other.sum_persons(X, y, starts, 2)
            np.testing.assert_allclose(one.sum_persons(*rows, starts, 2), expected, atol=1e-9)
            if one is of_prepared:  # rows of which each is a person, as a plan without privacy asks
                np.testing.assert_allclose(one.sum(*rows), asked.sum(X, y), atol=1e-9)


@pytest.mark.parametrize("room", [0, 196_799, 196_800])
def test_a_session_keeps_what_questions_are_of_for_the_records_that_they_ask(room, monkeypatch):
    """Other records have not paid for the answer. What is not needed any more makes room."""
    monkeypatch.setattr(_pieces, "KEPT_BYTES", room)
    X, y = _rows()
    session = CentralSession(ArrayRows(X, y), Budget(1.0, 1e-6), 0)
    pieces, part, first = session._pieces, session.piece(0.3), _query()
    second = replace(first, whitened=Whitened(first.whitened.row_map, 2.0 * first.whitened.W))
    asked = (first, part), (first, part), (second, part), (second, None), (second, part)
    for query, piece in asked:
        records = slice(None) if piece is None else pieces.subset_or_all(piece).positions
        exact = query.sum(X[records], y[records])
        np.testing.assert_allclose(pieces.sum(query, piece), exact, atol=1e-9)
    made = [rows for rows in (pieces._prepared_rows, *dict(pieces._kept_pieces).values()) if rows]
    assert [rows.n for rows in made] == ([len(X) - (room < 196_800), len(part)] if room else [])
    assert pieces._bytes_left == room - sum(8 * rows.n * (rows.n_features + 1) for rows in made)


def test_rows_in_other_coordinates_take_the_place_of_none_that_are_kept():
    (X, y), query = _rows(), _query()
    pieces = CentralSession(ArrayRows(X, y), Budget(1.0, 1e-6), 0)._pieces
    turned = _turned(query, np.diag([1.0, 2.0, 0.5, 1.0]))
    for asked in (query, turned, query):
        np.testing.assert_allclose(pieces.sum(asked, None), asked.sum(X, y), atol=1e-9)
        assert pieces._prepared_by[0] is query.whitened


def test_what_a_clip_takes_from_normal_residuals_is_undone():
    z = np.random.default_rng(0).normal(size=10**6)
    square = 4.0 * np.mean(np.clip(z, -1.2, 1.2) ** 2)
    assert normal_clip(square, 2.4) == pytest.approx((np.mean(np.abs(z) < 1.2), 4.0), rel=5e-3)


def test_rows_that_could_not_be_made_are_no_others(monkeypatch):
    """After an error, sums are not those of rows that were made before it, or of former ones."""
    (X, y), query = _rows(), _query()
    pieces = CentralSession(ArrayRows(X, y), Budget(1.0, 1e-6), 0)._pieces
    other = replace(query, whitened=replace(query.whitened, W=np.zeros((4, 4))))
    pieces.sum(query, None)
    with monkeypatch.context() as patch, pytest.raises(TypeError):
        patch.setattr(Whitened, "records", None)
        pieces.sum(other, None)
    np.testing.assert_allclose(pieces.sum(other, None), other.sum(X, y), atol=1e-9)
    third, made = replace(query.whitened), Whitened.records

    def asking(maker, X, y):
        if maker is third:
            pieces.sum(other, None)
        return made(maker, X, y)

    with monkeypatch.context() as patch:  # a question while rows are made
        patch.setattr(Whitened, "records", asking)
        pieces.sum(replace(query, whitened=third), None)
    np.testing.assert_allclose(pieces.sum(other, None), other.sum(X, y), atol=1e-9)


def _equation(point, moment, square=0.02, limit=0.2):
    query = _query()
    value = np.concatenate([moment / query.limit, [square / query.limit**2, 0.0]])
    query = replace(query, location=0.0, point=point)
    answer = Answer(value=1000.0 * value, n=1000, noise=SimpleNamespace(scale=0.01))
    return ScoreEquation.of(query, answer)


def test_a_pool_takes_the_slope_that_it_was_given():
    """But for the part of the residuals that is cut, as of normal ones."""
    gram = 0.25 * np.eye(4)
    pool = Pool(4, 0.3, [np.eye(4)], np.zeros(1), 1e6, IDENTITY, 1.0, True, (gram, 1e-9))
    truth, kept = np.array([0.1, -0.05, 0.0, 0.02]), 0.9
    for _ in range(4):
        equation = _equation(pool.b, kept * gram @ (truth - pool.b), square=0.07)
        assert equation.slope is None and equation.residual_gram is None
        assert equation.slope_scale == np.inf
        pool.add(equation)
    np.testing.assert_allclose(pool.b, truth, atol=2e-3)
    assert np.trace(pool.slope) == pytest.approx(kept, abs=0.1)


def test_steps_ask_their_slopes_where_the_whole_budget_would_show_them():
    for reach, slopes in ((1.99, False), (2.01, True)):
        assert Rules.of(20_000, 100, reach * RESOLVED / 16.0 * 100**1.5).slopes is slopes


def test_a_fit_below_that_has_one_look_and_its_intervals():
    rng = np.random.RandomState(0)
    X = rng.uniform(-1.0, 1.0, size=(3_500, 60))
    y = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=3_500)
    model = LinearRegression(bounds_X=(-1.0, 1.0), bounds_y=(-3.0, 3.0), random_state=0).fit(X, y)
    fit, rows = model._released, model.privacy_report_.rows
    assert [row.query for row in rows].count("whitening") == 4
    assert sum(row.share for row in rows) == pytest.approx(1.0)
    assert [eq.slope is None for eq in fit.equations] == [True] * (len(fit.equations) - 1) + [False]
    assert model.score(X, y) > 0.2
    assert fit.recent_equations()[0] == [fit.last]
    for method in ("asymptotic", "certified"):
        low, high = model.confidence_interval(X[:5], method=method)
        assert (low < high).all() and not np.isnan(low).any()
    assert not np.isnan(inference(model).estimate).any()
