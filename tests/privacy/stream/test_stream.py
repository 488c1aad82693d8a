import copy
import itertools
import pickle
from math import inf, sqrt

import numpy as np
import pytest
from registry.processes import needs_fork, refused_in_a_fork
from registry.refusals import uncharged
from registry.replays import losses, record_noise
from scipy import stats
from scipy.linalg import toeplitz

from skpriv import Budget, BudgetAccountant, BudgetExceeded
from skpriv._estimation._public_maps import RecordMap
from skpriv._estimation._reports import LiftedMomentsQuery
from skpriv.exceptions import PrivacyError
from skpriv.privacy import MODELS, LiftedReports, Query, best_codebook, open_session, open_stream
from skpriv.privacy._amplification import amplified
from skpriv.privacy._noise._codebook_law import simulated_directions
from skpriv.privacy._stream import FactorStream

BUDGET = Budget(1.0, 1e-6)
BATCHED = ["shuffle", "aggregate"]
NOISY = [name for name, kind in MODELS.items() if name != "none" and kind.running_sums]
BATCH = 50
# A Kolmogorov-Smirnov test fails by chance once in so many runs of the whole file.
CHANCE = 1e-5


class Clipped(Query):
    """Sum of rows clipped to [-1, 1]; two rows differ by at most 2 sqrt(size) in l2."""

    name = "clipped rows"
    shape = sensitivity = None

    def __init__(self, size=3):
        self.shape, self.sensitivity = (size,), 2.0 * sqrt(size)

    def sum(self, X, y):
        return np.clip(X, -1.0, 1.0).sum(axis=0)


def opened(privacy, n_reads, random_state=0, size=3, budget=BUDGET, span=None):
    return open_stream(
        privacy, Clipped(size), budget, n_reads, random_state, batch=BATCH, span=span
    )


def records(n, seed=0, size=3):
    return np.random.RandomState(seed).uniform(-2.0, 2.0, size=(n, size)), np.zeros(n)


def test_exact_stream_is_the_running_sum():
    X, y = records(500)
    stream = opened("none", 10, budget=Budget(inf))
    for k in range(10):
        answer = stream.push(X[50 * k : 50 * (k + 1)], y[:50]).read()
        np.testing.assert_allclose(answer.value, np.clip(X[: 50 * (k + 1)], -1, 1).sum(axis=0))
        assert answer.n == 50 * (k + 1) and answer.noise.scale == 0.0


@pytest.mark.parametrize("privacy", NOISY)
@pytest.mark.parametrize("reads", [1, 6, 7, 13])
def test_every_read_has_the_noise_law_of_its_answer(privacy, reads, global_random_seed):
    X, y = records(BATCH * reads, size=400)
    stream = opened(privacy, 13, global_random_seed, size=400)
    for k in range(reads):
        block = slice(BATCH * k, BATCH * (k + 1))
        answer = stream.push(X[block], y[block]).read()
    noise = (answer.value - np.clip(X, -1, 1).sum(axis=0)) / answer.noise.scale
    assert stats.kstest(noise, "norm").pvalue > CHANCE
    assert answer.noise.scale == pytest.approx(stream.between(0, reads).scale)
    if privacy != "central":  # each batch has noise of its own
        assert stream.between(reads - 1, reads).scale == pytest.approx(stream.between(0, 1).scale)


@pytest.mark.parametrize("privacy", NOISY)
def test_replacing_a_record_moves_what_is_released_within_the_cost(privacy, monkeypatch):
    """The squared shifts of all noisy values, over their variances, add up to mu^2 at most."""
    X, y = records(BATCH * 20)
    X[:] = 1.0
    shifts = []
    for index in (0, BATCH * 7 + 3, BATCH * 20 - 1):
        released = []
        for sign in (1.0, -1.0):
            released.append(record_noise(monkeypatch)[0])
            stream, changed = opened(privacy, 20), X.copy()
            changed[index] *= sign
            for k in range(20):
                stream.push(changed[BATCH * k : BATCH * (k + 1)], y[:BATCH]).read()
        shifts.append(sqrt(sum(losses(*released))))
    mu = stream.query.sensitivity / stream.noise.scale
    promised = amplified(BUDGET, BATCH, dimension=3).mu if privacy == "shuffle" else BUDGET.mu
    if privacy == "central":
        mu = sqrt(stream.cost.gaussian)
        # The first record is in a node of every level: both mechanisms attain their bounds.
        assert shifts[0] == pytest.approx(mu, rel=1e-9)
    elif privacy == "local":
        # The sum of k reports has k times the variance of one.
        assert max(shifts) == pytest.approx(mu / sqrt(BATCH), rel=1e-9)
    assert max(shifts) <= mu * (1.0 + 1e-9)
    assert 1.0 - 1e-6 <= mu / promised <= 1.0 + 1e-9


def test_a_sum_of_shuffled_reports_does_not_tell_their_order(global_random_seed):
    query = LiftedMomentsQuery(RecordMap.of_norm(1.0, (-1.0, 1.0), False, 2))
    code, rng = best_codebook(3, 1.0), np.random.RandomState(global_random_seed)
    vectors = np.tile(np.eye(3)[0], (BATCH, 1))
    reports = LiftedReports(simulated_directions(vectors, code, rng), code)
    orders = [reports.part(rng.permutation(BATCH)) for _ in range(9)]
    sums = []
    for order in orders:
        made, simulated = (
            open_stream("shuffle", query, BUDGET, 1, 0, batch=BATCH) for _ in range(2)
        )
        simulated._source.lifted_reports = lambda *_, order=order: order.directions
        simulated.push(np.zeros((BATCH, 2)), np.zeros(BATCH))
        sums.append([made.take(order).read().value, simulated.read().value])
    assert (np.array(sums) == sums[0]).all()
    assert not all((order.moments() == orders[0].moments()).all() for order in orders)


@pytest.mark.parametrize("privacy", BATCHED)
def test_a_batch_is_a_public_number_of_users(privacy):
    for batch in (None, 0, -1):
        with uncharged("batch="):
            open_stream(privacy, Clipped(), Budget(1.0, 1e-6), 3, batch=batch)
    assert open_stream("central", Clipped(), Budget(1.0, 1e-6), 3, random_state=0).batch == 0


@pytest.mark.parametrize("privacy", BATCHED)
def test_a_batch_that_is_not_full_is_not_released(privacy):
    stream = opened(privacy, 20)
    X, y = records(BATCH - 1)
    with pytest.raises(PrivacyError, match="do not fill"):
        stream.push(X, y).read()


@pytest.mark.parametrize("privacy", NOISY)
def test_opening_charges_once_and_reading_does_not(privacy):
    X, y = records(BATCH)
    aside = (1.0, 1e-6) if privacy == "shuffle" else None
    with BudgetAccountant(1.0, 1e-6, set_aside=aside) as accountant:
        stream = opened(privacy, 4)
        assert len(accountant.charges) == 1
        for _ in range(4):
            stream.push(X, y).read()
        with pytest.raises(PrivacyError, match="4 reads"):
            stream.push(X, y).read()
        assert len(accountant.charges) == 1
        assert accountant.spent.epsilon == pytest.approx(1.0, rel=1e-6)
        with pytest.raises(BudgetExceeded):
            opened(privacy, 4)


@pytest.mark.parametrize("privacy", NOISY)
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))]
)
def test_many_copies_have_one_answer(privacy, copied):
    """The mean of fresh answers would come near to the exact sum."""
    X, y = records(BATCH)
    stream = opened(privacy, 4, random_state=None)
    stream.push(X, y).read()
    stream.push(X, y)
    answers = np.array([copied(stream).read().value for _ in range(12)])
    np.testing.assert_array_equal(answers, np.tile(answers[0], (12, 1)))
    np.testing.assert_array_equal(stream.read().value, answers[0])
    # And the next read is one answer again, whoever asks for it first.
    other = copied(stream)
    np.testing.assert_array_equal(stream.push(X, y).read().value, other.push(-X, y).read().value)


def test_a_copy_that_cannot_ask_refuses(monkeypatch, tmp_path):
    X, y = records(BATCH)
    monkeypatch.setenv("SKPRIV_STATE", str(tmp_path))
    stream = opened("central", 4)
    assert not list(tmp_path.iterdir())  # nothing is written for a stream that is not copied
    other = pickle.loads(pickle.dumps(stream))
    (file,) = tmp_path.iterdir()
    file.unlink()
    for each in (stream, other):
        with pytest.raises(PrivacyError, match="is gone.*answers"):
            each.push(X, y).read()
        assert each.reads == 0
    with BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "ledger"):
        stream = opened("central", 4)
    other = pickle.loads(pickle.dumps(stream))  # numbered in the ledger that it was charged to
    assert {path.name for path in tmp_path.iterdir()} == {"ledger", "ledger.mark"}
    np.testing.assert_array_equal(stream.push(X, y).read().value, other.push(X, y).read().value)


@needs_fork
def test_a_fork_of_a_stream_refuses():
    X, y = records(BATCH)
    assert refused_in_a_fork(opened("central", 4, random_state=None).push(X, y).read)


def test_a_session_opens_a_stream_for_all_it_has_and_nothing_else():
    X, y = records(BATCH)
    session = open_session("central", X, y, BUDGET, 0, "run")
    stream = session.stream(Clipped(3), 10)
    assert stream.report is session.report and len(session.report.rows) == 1
    assert session.report.total.fits(BUDGET) and stream.guarantee.epsilon == BUDGET.epsilon
    for ask in (session.stream, session.sum):
        with pytest.raises(PrivacyError, match="add up to at most 1"):
            ask(Clipped(3), 1)


@pytest.mark.parametrize("privacy", NOISY)
def test_a_stream_has_what_a_session_has_left(privacy):
    session = open_session(privacy, *records(BATCH), BUDGET, 0, smallest_share=0.5)
    session.sum(Clipped(3), 0.5)
    session.rebase()
    if session.trust.can.reports:  # a user who has answered could be among those of the stream
        with pytest.raises(PrivacyError, match="users answer once"):
            session.stream(Clipped(3), 10, batch=BATCH)
    else:
        session.stream(Clipped(3), 10, batch=BATCH)
    assert session.report.total.fits(BUDGET)


@pytest.mark.parametrize("options, message", [
    ({"privacy": "central", "budget": Budget(1.0)}, "leaves no room"),
    ({"privacy": "shuffle"}, "batch"),
    ({"privacy": "aggregate"}, "batch"),
    ({"privacy": "aggregate", "batch": 9, "budget": Budget(1.0)}, "delta above 0"),
    ({"privacy": "aggregate", "batch": 10**16}, "do not fit"),
    ({"privacy": "local", "n_reads": 0}, "n_reads"),
])  # fmt: skip
def test_what_cannot_be_had_costs_nothing(options, message):
    with uncharged(message):
        open_stream(**{"query": Clipped(3), "budget": BUDGET, "n_reads": 1, **options})


@pytest.mark.parametrize("n_reads, span", [
    (1, None), (2, None), (3, None), (65, None), (400, None), (700, None),
    (9, 1), (90, 7), (700, 32),
])  # fmt: skip
def test_the_factors_make_running_sums(n_reads, span, global_random_seed, monkeypatch):
    """What noise is added to is C x, and what is read is B (C x + z); the noise is the root's."""
    increments = np.random.RandomState(global_random_seed).uniform(-1.0, 1.0, size=(n_reads, 3))
    stream, (released, _) = opened("central", n_reads, span=span), record_noise(monkeypatch)
    # A record of the first round is in all reads, also in those beyond the span.
    norm = np.linalg.norm(stream.column)
    assert stream.sensitivity == pytest.approx(norm * Clipped().sensitivity)
    assert stream.noise.scale == pytest.approx(stream.sensitivity / BUDGET.mu)
    values, scales = [], []
    for row in increments:
        answer = stream.push(row[None], np.zeros(1)).read()
        values.append(answer.value)
        scales.append(answer.noise.scale)
    factor = toeplitz(stream.column, np.zeros(n_reads))
    exact = np.array([value for value, _ in released])
    np.testing.assert_allclose(exact, factor @ increments, rtol=1e-12, atol=1e-12)
    row = np.cumsum(np.linalg.solve(factor, np.eye(n_reads)[0]))  # of B, by its definition
    other = toeplitz(row, np.zeros(n_reads))
    np.testing.assert_allclose(other @ factor, np.tri(n_reads), atol=1e-9)
    between = [stream.between(first, n_reads).scale for first in range(n_reads)]
    apart = other[-1] - np.vstack([np.zeros(n_reads), other[:-1]])  # of draws between two reads
    np.testing.assert_allclose(between, stream.noise.scale * np.linalg.norm(apart, axis=1))
    noise = np.linalg.solve(other, np.array(values)) - exact
    assert n_reads < 60 or 0.8 < noise.std() / stream.noise.scale < 1.2
    # The square root of the matrix is nearly the best factor: its noise is a bar. That of reads
    # beyond the span adds a few percent.
    odd = 2.0 * np.arange(1, span or n_reads) - 1.0
    root = np.concatenate([[1.0], np.cumprod(odd / (odd + 1.0))])
    bar = 2.0 * sqrt(3.0) / BUDGET.mu * np.linalg.norm(root) * np.sqrt(np.cumsum(root**2))
    last = scales[: len(root)][-1] / bar[-1]
    assert (np.array(scales[: len(root)]) <= 1.08 * bar).all() and last <= (1.08 if span else 1.001)
    assert span or (np.array(scales) <= 1.02 * bar).all()


def test_exact_states_keep_every_digit():
    """After many reads a record is still moved by C alone, however large the sums have become."""
    column = []
    for first in (0.0, 1.0):
        stream = opened("central", 400, size=1)
        stream._add_noise, values = lambda exact, noise: values.append(exact) or exact, []
        for k in range(400):
            stream._increment.add(np.array([2.0**40 / 3.0 + first * (k == 0)]))
            stream.read()
        column.append(np.ravel(values))
    np.testing.assert_allclose(np.subtract(*column[::-1]), stream.column, atol=0.01)
    assert stream.column[-1] < 0.03


@pytest.mark.parametrize("n_reads", [400, 6400])
def test_memory_does_not_grow_with_reads(n_reads):
    stream = opened("central", n_reads, size=1000)
    for _ in range(20):
        stream.push(*records(1, size=1000)).read()
    assert len(pickle.dumps(stream)) < 8 * 1000 * 48


@pytest.mark.parametrize("span", [None, 1, 2, 4])
@pytest.mark.parametrize("places", [1, 2, 3, 5, 9])
def test_a_person_of_any_places_moves_a_stream_by_what_is_declared(places, span):
    """All sets of places of 7 reads: those of a places cost a / m of the whole mu^2 at most."""
    stream = FactorStream(Clipped(), 7, span=span)
    columns = toeplitz(stream.column, np.zeros(7))
    stream.spread(places)
    declared = stream.sensitivity / Clipped().sensitivity
    for a in range(1, min(places, 7) + 1):
        sets = itertools.combinations(range(7), a)
        largest = max(np.linalg.norm(columns[:, list(one)].sum(axis=1)) for one in sets)
        assert largest**2 <= a / places * declared**2 * (1.0 + 1e-12)
    assert places > 7 or declared == pytest.approx(largest)  # no more than that


def test_a_person_of_one_place_is_a_record():
    one, other = FactorStream(Clipped(), 7), FactorStream(Clipped(), 7)
    other.spread(1)
    assert other.sensitivity == pytest.approx(one.sensitivity, rel=1e-12)
