"""Every public door that takes numbers, and how it is called with those of NumPy.

Estimators, policies and other classes with parameters convert numbers when they are assigned, and
decorated functions before they begin: both by rules, which are tested by themselves. Every other
door has a maker here: ``DOORS[name](number)`` calls it, and passes all numbers through `number`.
"""

import inspect
import os
import tempfile
from types import SimpleNamespace

import numpy as np
import pandas as pd
from registry.doors import arguments, public

from skpriv import Budget, BudgetAccountant
from skpriv.bandits import CobaLearner, EpochSchedule, LinearEnvironment, LinUCB, Loop
from skpriv.linear_model import (
    AdditiveRegressor, ImproperSGDRegressor, IHTRegressor, IVRegressor, LayeredRegressor,
    LinearRegression, LogisticRegression, PoissonRegressor, ReweightedRegressor, SSPRegressor,
)  # fmt: skip
from skpriv.preprocessing import Numeric, Ordinal
from skpriv.privacy import Cost, GaussianNoise, Groups, Query, open_session, split
from skpriv.protocol import Collector, DeviceLedger, report
from skpriv.records import BatchRows, from_batches, from_table

KINDS = np.float16, np.float32, np.float64, np.int8, np.int64

# Names of arguments that are numbers, or may be
NUMBERS = {
    "confidence_level", "data_norm", "delta", "epsilon", "first", "high", "horizon", "k", "largest",
    "largest_epsilon", "least_propensity", "length", "level", "low", "max_interval_rows",
    "max_rows_per_group", "max_visits", "max_weight", "mu", "n", "n_actions", "n_features",
    "n_jobs", "n_min", "n_nonzero", "n_pairs", "n_points", "n_records", "n_repeats", "n_rounds",
    "n_runs", "n_samples", "n_users", "noise", "probability", "rho", "smallest", "smallest_level",
    "smallest_share", "target_deviation", "target_mean",
}  # fmt: skip
# Classes of results, which functions of the package make of what they have converted
RESULTS = {
    "CoefficientDisplay", "CurveDisplay", "Description", "EpsilonBound", "Inference",
    "IntervalDisplay", "Pair", "PrivateScore", "PrivateValue", "Replay", "TableCheck",
    "TypicalPredictions", "WaldTest",
}  # fmt: skip
# Doors that pass a number on to another door, and those of which a number is no setting
PASSED_ON = {
    "Date": "its ends are dates",
    "CobaLearner.learn": "the probability that predict returned",
    "coefficient_table": "inference",
    "confidence_interval": "the method of the same name",
    "prediction_interval": "the method of the same name",
    "release_page": "inference",
    "curves": "AdditiveRegressor.curve",
    "CurveDisplay.from_estimator": "AdditiveRegressor.curve",
    "interval_coverage_score": "the ends of intervals are arrays",
    "interval_mean_width": "the ends of intervals are arrays",
    "LinearEnvironment.sample": "simulate",
    "SparseLinearEnvironment.sample": "simulate",
    "SupervisedEnvironment.sample": "simulate",
    "worst_pairs": "names of norms, and a number of pairs",
    "mean_of_linear_part": "an array of numbers",
    "ArrayRows": "threads, passed to joblib",
    "DeviceLedger.charge": "the number of a step, which the ledger gave",
    "Collector.add": "the user of a report, whose bytes have the number",
    "Collector.close_round": "the number of devices that servers counted",
    "ShareServer": "one of two servers",
    "ShareServer.add": "the user of a report",
    "FormulaEncoder.level_shares": "ColumnType.expected_shares",
    "TableEncoder.level_shares": "ColumnType.expected_shares",
    "Loop.rank_many": "Loop.rank",
    "report": "a maker of Collector calls it",
}


class Total(Query):
    """A sum with a sensitivity of any kind of number."""

    name = "total"
    shape = (1,)
    sensitivity = 1.0

    def __init__(self, sensitivity=1.0):
        self.sensitivity = sensitivity

    def sum(self, X, y):
        """Exact sum."""
        return np.array([y.sum()])

    def local_noise(self, budget):
        """That of one report."""
        return GaussianNoise.calibrated(self.sensitivity, budget.mu)


_RNG = np.random.RandomState(0)
X = _RNG.uniform(-1.0, 1.0, size=(150, 3))
Y = np.clip(X @ [1.0, -0.5, 0.2], -1.0, 1.0)
LABELS = (Y > 0.0).astype(int)
PERSONS = np.arange(150) // 2
TABLE = pd.DataFrame({"x": X[:, 0], "y": Y})
NORM = {"data_norm": 2.0, "bounds_y": (-1.0, 1.0)}
BOX = {"bounds_X": (-1.0, 1.0), "bounds_y": (-1.0, 1.0)}
CAUSES = {"instruments": [0], "endogenous": [1]}
EASY = {"epsilon": 9.0, "random_state": 0}


def _fitted(Estimator, y=Y, **settings):
    return Estimator(**{**EASY, **settings}).fit(X, y)


def _line(**settings):
    return _fitted(LinearRegression, **BOX, **settings)


def _intervals(Estimator, **settings):
    def ask(number):
        return _fitted(Estimator, **settings).confidence_interval(X[:5], number(0.875))

    return ask


def _asked(privacy):
    def ask(number):
        budget = Budget(number(4.0), 1e-6)
        session = open_session(privacy, X, Y, budget, 0, smallest_share=number(0.25))
        query, share = Total(number(1.5)), number(0.25)
        answer = session.sum(query, share)
        law = session.noise(query, share).scale, session.records(share), session.used
        return answer.value, answer.noise.scale, law

    return ask


def _stream(number):
    stream = open_session("central", X, Y, Budget(4.0, 1e-6), 0).stream(
        Total(), number(8), batch=number(2)
    )
    return stream.noise.scale


def _pieces(number):
    session = open_session("central", X, Y, Budget(4.0, 1e-6), 0)
    return session.sum(Total(), 0.5, session.piece(number(0.5))).value


def _parts(number):
    session = open_session("central", X, Y, Budget(4.0, 1e-6), 0)
    return [part.sum(Total(), number(1.0)).value for part in split(session, number(70), number(80))]


def _with_weights(number):
    model = LinearRegression(**EASY, **BOX)
    weights = np.linspace(0.1, 1.0, len(X))
    return model.fit(X, Y, sample_weight=weights, max_weight=number(1.5)).coef_


def _of_persons(number):
    model = LinearRegression(**EASY, **BOX)
    return model.fit(X, Y, groups=PERSONS, max_rows_per_group=number(2)).coef_


def _bounds(number):
    ends = number(-1.0), number(1.0)
    within = {"bounds_X": np.array([ends] * 3), "bounds_y": list(ends), "usual_X": [ends] * 3}
    return _fitted(LinearRegression, **within).coef_


def _classes(number):
    classes = number(0), number(1)
    return _fitted(LogisticRegression, LABELS, bounds_X=(-1.0, 1.0), classes=classes).coef_


def _calibrated(Estimator, ask, y=Y, **settings):
    def door(number):
        model = _fitted(Estimator, y, calibration_size=number(0.25), **settings)
        return getattr(model, ask)(X[:5], number(0.875))

    return door


def _collector(number):
    ends = number(-1.0), number(1.0)
    model = LinearRegression(
        epsilon=number(4.0), delta=number(2.0**-20), privacy="local", bounds_X=ends, bounds_y=ends
    )
    collector = Collector(model, number(100), number(7), n_features=number(3))
    task = collector.task
    report(task, X[0], Y[0], user=number(99), largest_epsilon=number(8.0))
    return task


def _device(number):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ledger")
        ledger = DeviceLedger(path, number(4.0), number(0.25), number(20))
        return ledger.budget, ledger.n_min


def _ledger(number):
    aside = number(0.5), number(0.125)
    ledger = BudgetAccountant(number(4.0), number(0.25), unit=("patient", 9), set_aside=aside)
    return str(ledger.remaining), ledger.unit


def _policy(number, **settings):
    return LinUCB(epsilon=number(1.0), horizon=number(50), random_state=number(0), **settings)


CONTEXTS = np.random.RandomState(0).uniform(size=(4, 3, 2))


def _visits(number):
    policy = _policy(number, max_visits=number(3))
    users = [number(user) for user in (1, 2, 1, 3)]
    return policy.act(CONTEXTS, users=users), _policy(number).user_guarantee(number(2))


def _service(number):
    with tempfile.TemporaryDirectory() as folder:
        service = Loop(
            _policy(number), os.path.join(folder, "events"), max_visits=number(2),
            learn_every=number(1), cutoff=number(4.0), default_reward=number(0.5),
        )  # fmt: skip
        return service.rank("a", CONTEXTS[0], user=number(3), k=number(2))


def _rounds(number):
    environment = LinearEnvironment(n_actions=number(4), n_features=number(5))
    policy = _policy(number, delta=number(2.0**-20))
    policy.act(np.ones((2, 4, 5)))
    return environment.n_actions, policy.propensities_


def _by_instruments(number):
    model = IVRegressor(**EASY, **BOX, **CAUSES)
    return model.fit(X, Y, groups=PERSONS, max_rows_per_group=number(2)).coef_


DOORS = {
    "Budget": lambda number: (Budget(number(2.0), number(0.25)), Budget(number(2), 0.25).mu),
    "Budget.from_mu": lambda number: Budget.from_mu(number(0.5), number(0.25)),
    "Budget.from_rho": lambda number: Budget.from_rho(number(0.5), number(0.25)),
    "Cost": lambda number: [
        make(number(0.5))
        for make in (Cost.from_mu, Cost.from_rho, Cost.from_epsilon, Cost.from_range)
    ],
    "BudgetAccountant": _ledger,
    "DeviceLedger": _device,
    "Collector": _collector,
    "CobaLearner": lambda number: CobaLearner(_policy(number), n_hashed=number(8)).n_hashed,
    "from_table": lambda number: from_table(TABLE, "y", n=number(150)).n,
    "IVRegressor.fit": _by_instruments,
    "Numeric": lambda number: Numeric(number(-1.0), number(1.0), usual=(number(-0.5), number(0.5))),
    "ColumnType.expected_shares": lambda number: Ordinal([1, 2, 3]).expected_shares(
        smallest=number(0.125)
    ),
    "open_session, central": _asked("central"),
    "open_session, aggregate": _asked("aggregate"),
    "open_session, local": _asked("local"),
    "open_session, shuffle": _asked("shuffle"),
    "Session.stream": _stream,
    "Session.piece": _pieces,
    "split": _parts,
    "Groups": lambda number: Groups(PERSONS, number(2)).largest,
    "FitsPersons.fit": _of_persons,
    "FitsPersons.fit, weights": _with_weights,
    "bounds": _bounds,
    "classes": _classes,
    "BatchRows": lambda number: (lambda rows: (rows.n, rows.n_features))(
        BatchRows(lambda: iter([(X, Y)]), number(150), number(3))
    ),
    "from_batches": lambda number: from_batches(lambda: iter([(X[:100], Y[:100])]), number(100)).n,
    "EpochSchedule": lambda number: EpochSchedule(number(32), number(1.5))(number(3)),
    "PolicyRun.user_guarantee": _visits,
    "ActingPolicy.rank": lambda number: _policy(number).rank(CONTEXTS, number(2)),
    "RunningSumsPolicy.public_state": lambda number: (
        LinUCB(epsilon=number(1.0), horizon=number(50), privacy="local", data_norm=number(1.0))
        .public_state(n_actions=number(3), n_features=number(2))
        .split('"id"')[0]
    ),
    "Loop.rank": _service,
    "policies and environments": _rounds,
    "FitsBySteps.plan": lambda number: PoissonRegressor(bounds_X=(-1, 1), bounds_y=(0, 10)).plan(
        number(500), number(1), target_mean=number(2.0), target_deviation=number(1.5)
    ),
    "AdditiveRegressor.curve": lambda number: _fitted(AdditiveRegressor, **BOX).curve(
        number(1), [number(-0.5), number(0.5)], confidence_level=number(0.875)
    ),
    "LinearRegression.confidence_interval": lambda number: [
        _line().confidence_interval(X[:5], number(0.875), method=method)
        for method in ("asymptotic", "certified")
    ],
    "LogisticRegression.confidence_interval": lambda number: _fitted(
        LogisticRegression, LABELS, bounds_X=(-1.0, 1.0), classes=(0, 1)
    ).confidence_interval(X[:5], number(0.875)),
    "IHTRegressor.confidence_interval": _intervals(
        IHTRegressor, data_max=1.0, bounds_y=(-1.0, 1.0), n_nonzero_coefs=2
    ),
    "IVRegressor.confidence_interval": _intervals(IVRegressor, **BOX, **CAUSES),
    "ImproperSGDRegressor.confidence_interval": _intervals(ImproperSGDRegressor, **NORM),
    "LayeredRegressor.confidence_interval": _intervals(LayeredRegressor, **NORM),
    "ReweightedRegressor.confidence_interval": _intervals(ReweightedRegressor, **NORM),
    "SSPRegressor.confidence_interval": _intervals(SSPRegressor, **NORM),
    "LinearRegression.prediction_interval": _calibrated(
        LinearRegression, "prediction_interval", **BOX
    ),
    "LogisticRegression.prediction_set": _calibrated(
        LogisticRegression, "prediction_set", LABELS, bounds_X=(-1.0, 1.0), classes=(0, 1)
    ),
}


def numbers_of(function):
    """Arguments of a callable that are numbers, by their names or their annotations."""
    found = {name for name in arguments(function) if name in NUMBERS}
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return found
    words = ("int", "float", "int | None", "float | None")
    return found | {one.name for one in given if _words(one.annotation) in words}


def _words(annotation):
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def by_a_rule(thing):
    """Whether all numbers are converted where a callable is decorated or parameters are set."""
    if inspect.isclass(thing):
        if "_parameter_constraints" in vars(thing):
            return True
        thing = thing.__init__
    while thing is not None:  # beneath what makes a frame forget its rows
        code = getattr(thing, "__code__", SimpleNamespace(co_qualname=""))
        if code.co_qualname.startswith("of_numbers."):
            return True
        thing = getattr(thing, "__wrapped__", None)
    return False


def strange():
    """Public callables with numbers that nothing above names."""
    known = {name.partition(",")[0] for name in DOORS} | RESULTS | set(PASSED_ON)
    return sorted(
        f"{name}({', '.join(sorted(numbers_of(thing)))})"
        for name, thing in public().items()
        if numbers_of(thing)
        and not by_a_rule(thing)
        and not {name, thing.__qualname__, thing.__name__} & known
    )
