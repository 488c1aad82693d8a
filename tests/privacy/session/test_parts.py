"""Parts of a session: disjoint, public, each with the whole budget and never more."""

from itertools import product

import numpy as np
import pytest
from registry.totals import Total

from skpriv import Budget, BudgetAccountant
from skpriv.exceptions import PrivacyError
from skpriv.privacy import Cost, Query, open_session, split
from skpriv.privacy._session import _pieces
from skpriv.privacy._session._pieces import Piece
from skpriv.records import BatchRows, DaskRows, from_batches

BUDGET = Budget(1.0, 1e-6)
N = 1000


class Chosen(Query):
    """Indicator of each record, read off its first column."""

    name, shape, sensitivity = "chosen", (N,), np.sqrt(2.0)

    def sum(self, X, y):
        return np.bincount(X[:, 0].astype(int), minlength=N).astype(float)


class Count(Query):
    name, shape, norm, sensitivity = "count", (3,), "linf", 1.0

    def sum(self, X, y):
        return np.array([len(y), 0.0, -2.0 * len(y)])


def _session(privacy, seed=0, **options):
    X, y = np.arange(float(N))[:, None], np.full(N, 0.5)
    return open_session(privacy, X, y, BUDGET, seed, "who", **options)


def test_parts_are_disjoint_and_random(global_random_seed):
    parts = split(_session("none", global_random_seed), 600, 300)
    first, second = (part.sum(Chosen(), 1.0).value for part in parts)
    assert [part.n for part in parts] == [600, 300]
    assert first.sum() == 600 and second.sum() == 300 and (first + second).max() == 1.0
    other = split(_session("none", global_random_seed + 1), 600, 300)[0].sum(Chosen(), 1.0).value
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("privacy", ["central", "aggregate", "local", "shuffle"])
def test_each_part_has_the_whole_budget_for_one_charge(privacy):
    alone = _session_noise(privacy, 700)
    aside = {"set_aside": (1.0, 1e-6)} if privacy == "shuffle" else {}
    with BudgetAccountant(2.0, 2e-6, **aside) as accountant:
        session = _session(privacy)
        fit, held_out = split(session, 700, 300)
        assert fit.noise(Total(), 1.0).scale == pytest.approx(alone, rel=1e-12)
        for part, size in ((fit, 700), (held_out, 300)):
            records = [part.sum(Total(), share).n for share in (0.25, 0.75)]
            users = [size // 4, size - size // 4]
            assert records == ([size] * 2 if privacy in ("central", "aggregate") else users)
    assert len(accountant.charges) == 1
    report = session.report
    assert report.total.epsilon(1e-6) == pytest.approx(1.0, rel=1e-9)
    assert report.total.fits(BUDGET)


def _session_noise(privacy, n):
    X, y = np.zeros((n, 1)), np.zeros(n)
    return open_session(privacy, X, y, BUDGET, 0).noise(Total(), 1.0).scale


@pytest.mark.parametrize("privacy", ["central", "local", "shuffle"])
def test_a_part_is_not_asked_for_more_than_it_has(privacy):
    session = _session(privacy)
    fit, held_out = split(session, 700, 300)
    fit.sum(Total(), 0.6)
    with pytest.raises(PrivacyError, match="at most what is left"):
        fit.sum(Total(), 0.6)
    assert fit.sum(Total(), 0.4).n > 0
    with pytest.raises(PrivacyError):
        session.sum(Total(), 1.0)  # the whole has records that have paid
    assert held_out.sum(Total(), 1.0).n == 300
    assert session.report.total.fits(BUDGET)


@pytest.mark.parametrize("privacy", ["central", "local"])
def test_parts_of_parts(privacy):
    parts = split(split(_session(privacy), 400, 500)[1], 200, 300)
    assert [part.sum(Total(), 1.0).n for part in parts] == [200, 300]


def test_parts_of_parts_are_of_other_records_than_the_other_parts():
    """Their places are counted from that of the part that is divided."""
    session = _session("none")
    others, divided = split(session, 300, 500)
    counts = sum(part.sum(Chosen(), 1.0).value for part in split(divided, 200, 250))
    counts += others.sum(Chosen(), 1.0).value
    assert counts.sum() == 750 and counts.max() == 1.0


@pytest.mark.parametrize("privacy", ["central", "local"])
def test_a_ten_thousandth_too_much_is_too_much(privacy):
    """Of a part, and of a session that is divided after it has answered."""
    (part,) = split(_session(privacy), N)
    part.sum(Total(), 0.6)
    with pytest.raises(PrivacyError, match="share=.*left.*add up"):
        part.sum(Total(), 0.4001)
    part.sum(Total(), 0.4)
    session = _session(privacy)
    session.sum(Total(), 0.001)
    with pytest.raises(PrivacyError, match="before it answers"):
        split(session, 10)


def test_selections_in_a_part_cost_what_they_say():
    session = _session("central", currency="zcdp")
    fit, held_out = split(session, 700, 300)
    assert fit.top(Count(), 1, 0.5)[0] == 2
    fit.sum(Total(), 0.5)
    held_out.sum(Total(), 1.0)
    total = session.report.total
    assert total.amount("zcdp") == pytest.approx(BUDGET.rho, rel=1e-9)
    assert total.fits(BUDGET) and total != Cost()


def test_what_does_not_fit_is_refused():
    for sizes in ((600, 500), (0, 10), ()):
        with pytest.raises(PrivacyError, match="do not fit"):
            split(_session("central"), *sizes)
    session = _session("central")
    session.sum(Total(), 0.5)
    with pytest.raises(PrivacyError, match="before it answers"):
        split(session, 10)
    for chosen, words in ((slice(10), "must be a random one"), (Piece(0, N + 1), "not one")):
        with pytest.raises(PrivacyError, match=words):
            session.sum(Total(), 0.1, chosen)
    part = split(_session("central"), 10)[0]
    with pytest.raises(PrivacyError, match="share=.* above 0.*left"):
        part.sum(Total(), 1.5)


def test_pieces_with_a_record_in_common():
    for first, second in product([Piece(0, 5), Piece(5, 9), Piece(4, 12), Piece(6, 7)], repeat=2):
        both = set(range(first.start, first.stop)) & set(range(second.start, second.stop))
        common = first.common(second)
        assert set(range(common.start, common.stop)) == both and len(common) == len(both)
        assert first.holds(second) == (len(both) == len(second))


@pytest.mark.parametrize("privacy", ["central", "local"])
def test_all_records_lie_above_pieces_and_a_piece_above_itself(privacy):
    session, piece = _session(privacy), Piece(0, N // 2)
    for subset, used in ((piece, 0.2), (Piece(N // 2, N), 0.2), (piece, 0.4), (None, 0.6)):
        session.sum(Total(), 0.2, subset)
        assert abs(session.used - used) < 1e-12
        paid = session.report.total.amount("gdp") / BUDGET.mu**2
        assert paid == pytest.approx(used if privacy == "central" else 1.0)


def test_the_order_of_a_real_release_is_not_that_of_another():
    sessions = [_session("central", None) for _ in range(2)]
    first, other = (
        session._pieces.subset_or_all(session.piece(0.5)).positions for session in sessions
    )
    assert not np.array_equal(first, other)


def test_a_part_of_a_part_is_of_its_own_records():
    first, second = split(_session("none"), 600, 300)
    everybody, few = first.sum(Chosen(), 0.5).value, first.piece(0.5)
    answer = first.sum(Chosen(), 0.5, few)
    assert answer.n == answer.value.sum() == len(few) == 300 and first.used == 1.0
    assert (answer.value <= everybody).all()
    assert second.sum(Chosen(), 0.25, second.piece(0.1)).n == 30
    for foreign in (few, slice(10)):
        with pytest.raises(PrivacyError, match="pieces of it"):
            second.sum(Chosen(), 0.25, foreign)


def test_subsets_of_a_part_never_cost_more_than_the_budget():
    (part,) = split(_session("central"), 800)
    few = part.piece(0.125)
    law = part.noise(Total(), 0.5, few)
    assert part.records(0.5, few) == 100
    assert part.sum(Total(), 0.5, few).noise == law == part.noise(Total(), 0.5)
    part.sum(Total(), 0.5, few)
    with pytest.raises(PrivacyError, match="share=.*left.*add up"):
        part.sum(Total(), 0.1, part.piece(0.05))
    assert part.report.total.fits(BUDGET)
    (users,) = split(_session("local"), 800)
    with pytest.raises(PrivacyError, match="answer once"):
        users.sum(Total(), 0.5, slice(100))


def _batches(n_features=1):
    X, y = np.tile(np.arange(float(N))[:, None], n_features), np.full(N, 0.5)
    return from_batches(lambda: [(X[a : a + 300], y[a : a + 300]) for a in range(0, N, 300)], n=N)


@pytest.fixture
def too_large(monkeypatch):
    """Rows of three columns that are not kept, but half of them, or the targets, are."""
    monkeypatch.setattr(_pieces, "KEPT_BYTES", 8 * 4 * N // 2 + 8 * N)
    return _batches(n_features=3)


def test_rows_of_files_that_fit_are_read_once():
    rows = _batches()
    session = open_session("central", rows, None, BUDGET, 0)
    for piece in (None, session.piece(0.1), None, session.piece(0.9)):
        assert session.sum(Chosen(), 0.1, piece).n == (N if piece is None else len(piece))
    assert rows.passes == session.report.passes == 1


def test_parts_of_files_are_read_once_for_all_queries(too_large):
    """The larger part was asked for before the smaller one was read, and has it inside."""
    session = open_session("central", too_large, None, BUDGET, 0)
    small, large = session.piece(0.1), session.piece(0.4)
    for piece in (small, large, small, session.piece(0.2)):
        assert session.sum(Chosen(), 0.1, piece).n == len(piece)
    assert too_large.passes == 1
    session.sum(Chosen(), 0.1)
    session.sum(Chosen(), 0.1, session.piece(0.9))
    assert too_large.passes == 3 == session.report.passes


class OfTargets(Total):
    """It reads no column of X."""

    width = 0

    def sum(self, X, y):
        return np.array([y.sum()])


def test_files_and_arrays_draw_the_same_order_and_noise(too_large):
    X = np.tile(np.arange(float(N))[:, None], 3)
    found = []
    for rows, y in ((too_large, None), (X, np.full(N, 0.5))):
        session = open_session("central", rows, y, BUDGET, 0)
        part = session.piece(0.2)
        asked = (OfTargets(), None), (Chosen(), part), (Total(), None)
        found.append([session.sum(query, 0.1, piece).value for query, piece in asked])
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12)


def test_parts_that_are_too_large_are_read_again(monkeypatch):
    monkeypatch.setattr(_pieces, "KEPT_BYTES", 8 * 4 * 150)
    rows = _batches(n_features=3)
    session = open_session("central", rows, None, BUDGET, 0)
    few, more = session.piece(0.1), session.piece(0.2)
    for piece, passes in ((more, 1), (more, 2), (few, 3), (few, 3), (more, 4)):
        session.sum(Total(), 0.1, piece)
        assert rows.passes == passes


def _in_another_order_each_time(n_features=1):
    """Rows that are too many to be kept, in a new order in each pass."""
    rng, X = np.random.RandomState(3), np.tile(np.arange(float(N))[:, None], n_features)

    def blocks():
        order = rng.permutation(N)
        yield from ((X[part], np.full(len(part), 0.5)) for part in np.array_split(order, 7))

    return BatchRows(blocks, N, n_features, stable=False)


@pytest.fixture
def room_for_half(monkeypatch):
    monkeypatch.setattr(_pieces, "KEPT_BYTES", 8 * 2 * N // 2)


def test_rows_without_an_order_have_the_pieces_of_one_pass(room_for_half, global_random_seed):
    rows = _in_another_order_each_time()
    session = open_session("none", rows, None, BUDGET, global_random_seed, "who")
    large, small = session.piece(0.5), session.piece(0.2)
    first, second = (session.sum(Chosen(), 0.2, piece).value for piece in (small, large))
    assert first.sum() == 0.2 * N and second.sum() == 0.5 * N
    assert (first <= second).all() and second.max() == 1.0
    assert (session.sum(Chosen(), 0.2, small).value == first).all()
    assert rows.passes == 1
    assert (session.sum(Chosen(), 0.2).value == 1.0).all() and rows.passes == 2


def test_what_one_pass_has_not_kept_is_no_piece_of_rows_without_an_order(room_for_half):
    session = open_session("none", _in_another_order_each_time(), None, BUDGET, 0, "who")
    assert session.piece(0.51) is None  # does not fit into memory
    small = session.piece(0.2)
    session.sum(Chosen(), 0.2, small)
    assert session.piece(0.4) is None  # its pass was made before
    assert session.piece(0.1) is not None
    with pytest.raises(ValueError, match="order"):
        session.sum(Chosen(), 0.2, Piece(0, 400))
    with pytest.raises(ValueError, match="order"):
        fresh = open_session("none", _in_another_order_each_time(), None, BUDGET, 0, "who")
        split(fresh, 600, 300)[0].sum(Chosen(), 0.5)


def test_a_piece_without_room_in_its_pass_is_not_read_in_another(room_for_half):
    """Its places would hold other records than those of the smaller piece inside of it."""
    session = open_session("none", _in_another_order_each_time(), None, BUDGET, 0, "who")
    large, small = session.piece(0.5), session.piece(0.2)
    session._pieces._bytes_left = 8 * 2 * N // 4  # what was kept since they were handed out
    session.sum(Chosen(), 0.2, small)
    session._pieces._bytes_left = 8 * 2 * N  # room for it now
    with pytest.raises(ValueError, match="order"):
        session.sum(Chosen(), 0.2, large)


def test_rows_on_a_cluster_keep_a_piece_where_they_are(global_random_seed):
    da = pytest.importorskip("dask.array")
    made = []

    def counted(block):
        made.append(len(block))
        return block

    X = np.arange(float(N))[:, None]
    parts = da.from_array(X, chunks=(250, 1)).map_blocks(counted, meta=np.empty((0, 1)))
    rows = DaskRows.of(parts, da.full(N, 0.5, chunks=250))
    session = open_session("none", rows, None, BUDGET, global_random_seed, "who")
    large, small = session.piece(0.5), session.piece(0.2)
    first, second = (session.sum(Chosen(), 0.2, piece).value for piece in (small, large))
    assert (first <= second).all() and (first.sum(), second.sum()) == (0.2 * N, 0.5 * N)
    assert sum(made) == N and rows.passes == 1
    plain = open_session("none", X, np.full(N, 0.5), BUDGET, global_random_seed, "who")
    assert (plain.sum(Chosen(), 0.2, plain.piece(0.5)).value == second).all()
