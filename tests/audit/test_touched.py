"""Which records each answer reads: a record pays for the answers that it is in, as claimed.

Everything public that takes an epsilon and answers under a curator runs on records whose targets
are all different. Every exact sum is watched: which records are in it, and how often. A record that
is in a sum twice pays four times. The prices are those by which the noise was drawn, so that what
is found is a bound on what an audit with the worst pair of records could find, without statistics.
"""

import importlib
import inspect
from collections import Counter
from dataclasses import dataclass, field
from functools import wraps

import numpy as np
import pandas as pd
import pytest
from registry.doors import names_of
from registry.estimators import SETTINGS as SPECS
from registry.estimators import bounded
from registry.totals import Total

from skpriv.bandits import FLIPHAT, LinSquareCB, LinUCB, private_off_policy_value
from skpriv.inspection import describe, private_quantiles
from skpriv.linear_model import (
    IHTRegressor, LogisticRegression, SSPRegressor,
)  # fmt: skip
from skpriv.model_selection import PrivateSearchCV, private_score
from skpriv.preprocessing import Numeric
from skpriv.privacy import Budget, Query, Stream, listening, open_session, split
from skpriv.privacy._session._open import CentralSession
from skpriv.records import Rows, from_batches

N = 400
BUDGET = Budget(1.0, 1e-6)
SETTINGS = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}
BOUNDS = {"bounds_X": [(-1.0, 1.0)] * 2, "bounds_y": (0.0, 1.0)}
BALL = {"data_norm": 1.0, "bounds_y": (0.0, 1.0)}


@dataclass
class Answer:
    """One answer: its price in mu^2 or rho, and how often each record is in it."""

    door: str
    currency: str
    price: float = 0.0
    sums: list = field(default_factory=list)

    def times(self):
        """How often each record counts: in a stream in all, in a procedure in its largest sum."""
        found = Counter()
        if self.door == "stream":
            return sum(self.sums, found)
        for sum_ in self.sums:
            found = Counter({key: max(found[key], sum_[key]) for key in {*found, *sum_}})
        return found


class Watch:
    """A listener that notes the answers of sessions with a curator, and their prices."""

    def __init__(self):
        self.answers, self.open = [], []

    def draw(self, name, exact, law, make):
        return make()

    choice = order = lambda self, *arguments: arguments[-1]()

    def charged(self, cost, name):
        """Charges are compared with claims elsewhere."""

    def answer(self, door, owner, asked, arguments, pending, make):
        if not isinstance(owner, CentralSession):
            return make()
        self.open.append(Answer(door, owner._currency))
        try:
            return make()
        finally:
            self.answers.append(self.open.pop())

    def paid(self, currency):
        """What each record pays in a currency."""
        paid = Counter()
        for answer in self.answers:
            for record, times in answer.times().items():
                # from a shared unit, rho: Gaussian noise of rho is sqrt(2 rho)-Gaussian-DP, and a
                # selection sqrt(pi rho)
                rho = answer.price * times**2
                if currency == "gdp":
                    rho *= np.pi if answer.door == "top" else 2.0
                paid[record] += rho
        return paid


def _names(X, y):
    """What tells records apart: their targets, or all of them where there are no targets.

    Codes of labels that are no classes are no numbers. Such records have their places.
    """
    if y is None or not np.any(y):
        return [row.tobytes() for row in np.asarray(X)]
    y = np.asarray(y, dtype=float)
    return [*range(len(y))] if np.isnan(y).all() else y.tolist()


class Watched:
    """A query that tells which records it sums over, by their targets."""

    def __init__(self, query, seen):
        self._query, self._seen = query, seen

    def __getattr__(self, name):
        found = getattr(self._query, name)
        if name not in ("sum", "sum_persons"):
            return found

        def seen(X, y, *rest):
            self._seen.update(_names(X, y))
            return found(X, y, *rest)

        return seen


@pytest.fixture
def watch(monkeypatch):
    """A watch on all sums of rows, and on the laws by which answers are drawn."""
    watch = Watch()

    def watched(total):
        @wraps(total)
        def seen(self, query, subset=None):
            if not watch.open or isinstance(query, Watched) or not isinstance(query, Query):
                return total(self, query, subset)
            watch.open[-1].sums.append(Counter())
            return total(self, Watched(query, watch.open[-1].sums[-1]), subset)

        return seen

    def priced(law):
        @wraps(law)
        def seen(self, *arguments):
            if watch.open:
                share = arguments[-1].share
                rho = self._budget.rho if self._currency == "zcdp" else self._budget.mu**2 / 2.0
                watch.open[-1].price = share * rho
            return law(self, *arguments)

        return seen

    def pushed(push):
        @wraps(push)
        def seen(self, X, y):
            if id(self) not in streams:
                return push(self, X, y)
            watch.open.append(streams[id(self)])
            try:
                return push(self, X, y)
            finally:
                watch.open.pop()

        return seen

    def begun(law):
        @wraps(law)
        def seen(self, stream, slot):
            rho = slot.share * self._budget.mu**2 / 2.0
            streams[id(stream)] = Answer("stream", "gdp", rho)
            watch.answers.append(streams[id(stream)])
            kept.append(stream)  # so that no other one has its id
            return law(self, stream, slot)

        return seen

    streams, kept = {}, []
    monkeypatch.setattr(Stream, "push", pushed(Stream.push))
    monkeypatch.setattr(CentralSession, "_stream_law", begun(CentralSession._stream_law))
    for kind in {Rows, *_subclasses(Rows)}:
        if "total" in vars(kind):
            monkeypatch.setattr(kind, "total", watched(kind.total))
    for name in ("_law", "_selection_law"):
        monkeypatch.setattr(CentralSession, name, priced(getattr(CentralSession, name)))
    with listening(watch):
        yield watch


def _subclasses(kind):
    for sub in kind.__subclasses__():
        yield sub
        yield from _subclasses(sub)


def data(n=N, d=2, seed=0):
    """Rows whose targets tell them apart."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(-0.6, 0.6, size=(n, d))
    return X, rng.permutation(np.linspace(0.01, 0.99, n))


def fitted(estimator, d=2, **options):
    return lambda: estimator.fit(*data(d=d), **options)


def played(policy, contexts=(3, 2)):
    """Forty rounds, given in two parts."""

    def run():
        rng = np.random.RandomState(0)
        rewards = rng.permutation(np.linspace(0.01, 0.99, N))
        for part in np.array_split(np.arange(N), 2):
            shown = rng.uniform(-0.5, 0.5, size=(len(part), *contexts))
            policy.update(shown, policy.act(shown), rewards[part])

    return run


def valued():
    rng = np.random.RandomState(0)
    actions, rewards = rng.randint(2, size=N), rng.permutation(np.linspace(0.01, 0.99, N))
    private_off_policy_value(np.ones(N, int), actions, rewards, np.full(N, 0.5), **SETTINGS)


def searched(n_jobs=None):
    grid = {"data_norm": [0.5, 1.0, 2.0]}
    return PrivateSearchCV(SSPRegressor(bounds_y=(0.0, 1.0)), grid, **SETTINGS).fit(*data())


def scored():
    X, y = data(seed=1)
    estimator = SSPRegressor(**BALL, **SETTINGS).fit(X, y + 1e-4)  # to other records
    private_score(estimator, *data(), **SETTINGS)


def described():
    X, y = data()
    table = pd.DataFrame({"y": y, "x": X[:, 0]})
    describe(table, NUMBERS, **SETTINGS)


def classified():
    X, y = data()  # no label is a class, but rows in batches keep their numbers, which differ
    rows = from_batches(lambda: iter([(X, y)]), n=N)
    LogisticRegression(classes=(0, 1), bounds_X=BOUNDS["bounds_X"], **SETTINGS).fit(rows)


def near(kind):
    """The needs of an estimator, as bounds of these data, so that no record is lost in noise."""
    needs = {name: ends for name, ends in BOUNDS.items() if name in SPECS[kind]}
    return needs | ({"n_nonzero_coefs": 1} if kind is IHTRegressor else {})


NUMBERS = {"y": Numeric(0.0, 1.0), "x": Numeric(-1.0, 1.0)}
BANDIT = {**SETTINGS, "bounds_y": (0.0, 1.0)}
# What runs, and the currency of its claim.
RUNS = {
    **{
        kind.__name__: (fitted(bounded(kind, **near(kind), **SETTINGS)), kind.fit_currency)
        for kind in SPECS
    },
    "LogisticRegression": (classified, "gdp"),
    "PrivateSearchCV": (searched, "gdp"),
    "private_score": (scored, "gdp"),
    "private_quantiles": (
        lambda: private_quantiles(data()[1], [0.5], bounds=(0.0, 1.0), **SETTINGS), "gdp"
    ),
    "private_off_policy_value": (valued, "gdp"),
    "describe": (described, "gdp"),
    "LinUCB": (played(LinUCB(**BANDIT)), "gdp"),
    "LinSquareCB": (played(LinSquareCB(**BANDIT)), "gdp"),
    "FLIPHAT": (played(FLIPHAT(**BANDIT, n_nonzero_coefs=1)), "zcdp"),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_no_record_pays_more_than_is_claimed(name, watch):
    run, currency = RUNS[name]
    run()
    paid = watch.paid(currency)
    claimed = BUDGET.rho if currency == "zcdp" else BUDGET.mu**2
    assert len(paid) >= 0.5 * N  # the watch sees records, and tells them apart
    assert max(paid.values()) <= claimed * (1.0 + 1e-9)
    assert max(paid.values()) >= 0.5 * claimed  # and prices


# What is not watched, and why.
OTHERS = {
    "check_table": "one sum of flags, in which records are alike",
    "propose_max_rows": "private_quantiles of one number a person",
    "BanditCombiner": "sums of claims that users make; tests/bandits/test_combiner.py",
    "OnlineLinUCB": "users randomise what they send",
    "EpsilonBound": "a result", "Replay": "a result",
    "Budget": "an amount", "BudgetAccountant": "an amount", "DeviceLedger": "an amount",
    "Codebook": "a law", "CodebookBlocksNoise": "a law",
    "ResponseNoise": "a law", "best_codebook": "a law", "index_weights": "a law",
    "draw_index": "one user's own report", "draw_ranks": "one user's own report",
}  # fmt: skip
ROOMS = (
    "audit", "bandits", "datasets", "inspection", "linear_model", "metrics", "model_selection",
    "preprocessing", "privacy", "protocol", "records",
)  # fmt: skip


def test_everything_that_takes_an_epsilon_is_watched():
    found = set()
    for room in ROOMS:
        module = importlib.import_module(f"skpriv.{room}")
        for name in names_of(module):
            public = getattr(module, name)
            try:
                parameters = inspect.signature(public).parameters
            except (TypeError, ValueError):
                continue
            if "epsilon" in parameters:
                found.add(name)
    assert found == {*RUNS, *OTHERS}


def test_a_search_fits_none_of_the_rows_that_choose(watch):
    searched()
    chosen = next(answer for answer in watch.answers if answer.door == "top").times()
    assert 0.15 * N < len(chosen) < 0.25 * N
    *_, last = (answer for answer in watch.answers if answer.door == "sum")
    assert len(last.times()) == N  # the winner is fitted to all rows


class _Score(Total):
    norm = "linf"


def test_a_selection_in_a_part_asks_its_records_alone(watch):
    """Of sums see tests/privacy/session/test_parts.py."""
    session = open_session("central", *data(), BUDGET, 0, currency="zcdp")
    for size, part in zip((100, 300), split(session, 100, 300), strict=True):
        part.top(_Score(), 1, 1.0)
        assert len(watch.answers[-1].times()) == size
    assert max(watch.paid("zcdp").values()) <= BUDGET.rho * (1.0 + 1e-9)
