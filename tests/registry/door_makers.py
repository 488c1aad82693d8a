"""How each public door is called, with one of its arguments replaced by a table with a bad cell.

``DOORS[name](given)`` calls the door; ``given(argument, array)`` is what it gets for an argument:
the array, or a table of another kind with a cell that cannot be read.
"""

import tempfile
from contextlib import contextmanager
from functools import cache, partial
from inspect import signature
from pathlib import Path

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge

from skpriv import (
    audit, bandits, inspection, metrics, model_selection, preprocessing, privacy, protocol, records,
)  # fmt: skip
from skpriv.linear_model import SSPRegressor

from .estimators import ESTIMATORS, SETTINGS, targets

N, K, D = 40, 3, 2  # records or rounds, actions, features
SEED: int | None = 0  # of all noise; a test replaces it by None, which is what users run
_RNG = np.random.RandomState(0)
X = _RNG.uniform(-0.4, 0.4, size=(N, D))
Y = _RNG.uniform(-0.4, 0.4, size=N)
ONES, LABELS = np.ones(N), np.repeat(np.arange(N // 2), 2)
CONTEXTS = _RNG.uniform(-0.4, 0.4, size=(N, K, D))
ACTIONS, CHANCES = _RNG.randint(K, size=N), np.full(N, 1.0 / K)
FREE, REWARD = np.ones((N, K), dtype=bool), np.zeros(1)


def door(find, *by_place, **arguments):
    """Caller of a door, which is found when it is called; a seed goes to whatever takes one.

    Parameters
    ----------
    find : callable
    *by_place : str
        The arguments that are rows and have no other array than that of `USUAL`.
    **arguments : dict
        Public arguments.
    """

    def call(given):
        function = find()
        rows = {name: given(name, USUAL[name]) for name in by_place}
        seed = {"random_state": SEED} if "random_state" in signature(function).parameters else {}
        return function(**rows, **{**seed, **arguments})

    return call


USUAL = {
    "X": X, "y": Y, "groups": LABELS, "labels": LABELS, "sample_weight": ONES, "f_true": Y,
    "actions": ACTIONS, "target": ACTIONS, "rewards": Y, "propensities": CHANCES,
}  # fmt: skip


def optional(given, beside=(), **arrays):
    """Arguments that most calls leave out: the one that is replaced, and what must stand beside."""
    found = {name: given(name, array) for name, array in arrays.items() if name == given.argument}
    return {**found, **dict(beside)} if found else {}


def _regressor(Estimator, **settings):
    extra = {} if Estimator in _NO_CALIBRATION else {"calibration_size": 0.3}
    return Estimator(**{**REGRESSORS[Estimator], "random_state": SEED, **extra, **settings})


REGRESSORS = {Estimator: SETTINGS[Estimator] for Estimator in ESTIMATORS}
AT_POINTS = (
    "predict", "confidence_interval", "prediction_interval", "prediction_set", "predict_proba",
    "predict_log_proba", "decision_function",
)  # fmt: skip
_NO_CALIBRATION = {E for E in REGRESSORS if "calibration_size" not in E().get_params()}


@cache
def _fitted(Estimator):
    return _regressor(Estimator, privacy="none").fit(X, _targets(Estimator))


def _targets(Estimator):
    """Labels for a classifier, numbers for a regressor."""
    return targets(Estimator, Y)


def _fit(Estimator, given):
    settings = {} if Estimator in _NO_CALIBRATION else {"calibration_size": None}
    options = optional(given, {"max_rows_per_group": 2}, groups=LABELS)
    for weights in optional(given, sample_weight=ONES, weights=ONES).values():
        options |= {"sample_weight": weights, "max_weight": 1.0}
    model = _regressor(Estimator, **settings)
    model.fit(given("X", X), given("y", _targets(Estimator)), **options)


def _score(model, given):
    """Also of a search, whose targets are numbers."""
    y = Y if hasattr(model, "best_params_") else _targets(type(model))
    model.score(given("X", X), given("y", y), **optional(given, sample_weight=ONES))


def _search():
    return model_selection.PrivateSearchCV(
        SSPRegressor(bounds_y=(-1, 1)), {"data_norm": [0.5, 1.0]},
        epsilon=1.0, delta=1e-6, random_state=SEED,
    )  # fmt: skip


class Clean:
    """No argument is replaced."""

    argument = None

    def __call__(self, argument, array):
        return array


@cache
def _searched():
    return _search().fit(X, Y)


def _regressors():
    for Estimator in REGRESSORS:
        name = Estimator.__name__
        yield f"{name}.fit", partial(_fit, Estimator)
        yield f"{name}.score", lambda given, E=Estimator: _score(_fitted(E), given)
        for method in AT_POINTS:
            if hasattr(Estimator, method):
                yield f"{name}.{method}", door(partial(_method, Estimator, method), "X")


def _method(Estimator, name):
    return getattr(_fitted(Estimator), name)


def _oracle():
    return SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), epsilon=1.0, delta=1e-3, random_state=SEED)


_PLAN = (N, N)
POLICIES = {
    "ActionElimination": lambda: bandits.ActionElimination(_oracle(), schedule=_PLAN),
    "SquareCB": lambda: bandits.SquareCB(_oracle(), schedule=_PLAN),
    "EpochGreedy": lambda: bandits.EpochGreedy(_oracle(), schedule=_PLAN),
    "EpsilonGreedy": lambda: bandits.EpsilonGreedy(Ridge(), schedule=_PLAN),
    "FLIPHAT": lambda: bandits.FLIPHAT(delta=1e-3, n_nonzero_coefs=2, schedule=_PLAN),
    "LassoBandit": lambda: bandits.LassoBandit(alpha=0.01, schedule=_PLAN),
    "LinUCB": lambda: bandits.LinUCB(epsilon=5.0),
    "LinSquareCB": lambda: bandits.LinSquareCB(epsilon=5.0),
    "OnlineLinUCB": lambda: bandits.OnlineLinUCB(epsilon=5.0),
    "BanditCombiner": lambda: bandits.BanditCombiner(
        [bandits.LinUCB(epsilon=1.0), bandits.LinUCB(epsilon=2.0)], epsilon=1.0
    ),
    "RandomPolicy": lambda: bandits.RandomPolicy(),
}


def _policy(name):
    return POLICIES[name]().set_params(random_state=SEED)


def _act(name, given, method="act", **more):
    options = optional(given, available=FREE, users=LABELS)
    getattr(_policy(name), method)(given("contexts", CONTEXTS), **more, **options)


def _update(name, given):
    policy = _policy(name)
    actions = policy.act(CONTEXTS)
    if given.argument == "rows":
        policy.update(rows=given("rows", CONTEXTS[:, 0]), rewards=Y)
        return
    policy.update(given("contexts", CONTEXTS), given("actions", actions), given("rewards", Y))


def _policies():
    for name in POLICIES:
        yield f"{name}.act", partial(_act, name)
        yield f"{name}.probabilities", partial(_act, name, method="probabilities")
        yield f"{name}.rank", partial(_act, name, method="rank", k=1)
        yield f"{name}.update", partial(_update, name)


def _loop(given):
    with _store() as loop:
        loop.rank("event", given("contexts", CONTEXTS[0]), **optional(given, available=FREE[0]))
        if given.argument == "reward":
            loop.reward("event", _only(given("reward", REWARD)))


def _loops(given):
    with _store() as loop:
        names, options = list(map(str, range(N))), optional(given, available=FREE)
        loop.rank_many(names, given("contexts", CONTEXTS), **options)
        if given.argument == "rewards":
            loop.reward_many(names, given("rewards", Y))


@contextmanager
def _store():
    """A loop in a file that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        yield bandits.Loop(bandits.RandomPolicy(random_state=0), Path(folder) / "loop.db")


def _only(values):
    return values[0] if len(values) else None


def _mabwiser(method, given):
    policy = bandits.RandomPolicy(shared=False, n_actions=K, random_state=0)
    adapter = bandits.MABWiserAdapter(policy, list(range(K)))
    if method == "predict":
        adapter.fit(ACTIONS, Y, X).predict(given("contexts", X))
    else:
        learn = getattr(adapter, method)
        learn(given("decisions", ACTIONS), given("rewards", Y), given("contexts", X))


def _coba(given):
    learner = bandits.CobaLearner(bandits.RandomPolicy(random_state=0))
    context = given("context", X[0])
    actions = given("actions", np.eye(K)) if given.argument == "actions" else np.eye(K).tolist()
    action, chance, known = learner.predict(context, list(actions))
    if given.argument in ("action", "reward", "contexts"):
        reward = _only(given("reward", REWARD))
        chosen = given("action", np.array(action))
        contexts = given("contexts", known["contexts"])
        learner.learn(context, chosen, reward, chance, contexts, known["actions"])


def _supervised(given):
    bandits.SupervisedEnvironment(given("X", X), given("y", ACTIONS)).start(
        np.random.RandomState(0)
    )


def _make(seed=None):
    return SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), random_state=seed)


def _pair(given):
    other = Y.copy()
    other[1] = 0.9
    return (given("D", X), Y), (given("D_prime", X), other)


def _replayed(given):
    audit.replay(lambda: _make(0), *_pair(given), **optional(given, groups=LABELS))


_SERIES = np.linspace(0.1, 0.9, N)


def _objects(values):
    """A series of cells one by one: of a list older pandas looks into each."""
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return pd.Series(found)


def _column(call_with):
    def call(given):
        values = given("series", _SERIES)
        if not hasattr(values, "dtype") or isinstance(values, np.ndarray):
            values = _objects(values)
        call_with(nw.from_native(values, series_only=True))

    return call


def _columns():
    kinds = preprocessing
    made = {
        "Numeric": kinds.Numeric(0, 1), "Boolean": kinds.Boolean(),
        "Date": kinds.Date("2000-01-01", "2020-01-01"),
        "Categorical": kinds.Categorical(["a", "b"]), "Ordinal": kinds.Ordinal(["a", "b"]),
    }  # fmt: skip
    for name, column in made.items():
        for method in ("encode", "states"):
            if hasattr(column, method):
                yield f"{name}.{method}", _column(getattr(column, method))
    yield "guessed_type", _column(kinds.guessed_type)


SCHEMA = preprocessing.Schema(
    {"x0": preprocessing.Numeric(-1, 1), "x1": preprocessing.Numeric(-1, 1)}
)


def _table(given, name="X"):
    """A data frame of what is given: columns are found by name."""
    found = given(name, X)
    if isinstance(found, np.ndarray | list):
        columns = {f"x{j}": [row[j] for row in found] for j in range(D)}
        found = pd.DataFrame({key: _objects(column) for key, column in columns.items()})
    return found


def _encoder():
    return preprocessing.TableEncoder(SCHEMA)


def _encoded():
    return _encoder().fit(_table(Clean()))


TARGETED = SCHEMA.with_target("x0")
MAYBE_TARGETED = preprocessing.Schema(
    {"x0": preprocessing.Numeric(-1, 1, missing="indicator")}, target="x0"
)
OF_PERSONS = preprocessing.Schema({"x1": preprocessing.Numeric(-1, 1)}, person="x0", limit=2)


def _formula():
    return preprocessing.FormulaEncoder("x0 + I(x0**2) + x1", SCHEMA)


def _scaler():
    return preprocessing.BoundsScaler((-1, 1))


@cache
def _task():
    model = SSPRegressor(
        data_norm=1.0, bounds_y=(-1, 1), epsilon=4.0, delta=0.0, privacy="local", channel="codebook"
    )
    return protocol.Collector(model, n_users=3, seed=0, n_features=D).task


def _state():
    policy = bandits.LinUCB(
        epsilon=8.0, delta=0.0, privacy="local", channel="codebook", random_state=0
    )
    return policy.public_state(n_actions=K, n_features=D)


def _report(given):
    if given.argument == "action":
        action = _only(given("action", np.zeros(1, int)))
        protocol.report(_state(), CONTEXTS[0], 0.1, user=1, action=action)
    else:
        protocol.report(_task(), given("x", X[0]), _only(given("y", REWARD)), user=1)


def _session(given):
    persons = {k: privacy.Groups(v, 2) for k, v in optional(given, groups=LABELS).items()}
    rows = records.as_rows(given("X", X), given("y", Y))
    budget = privacy.Budget(1.0, 1e-6)
    privacy.open_session("central", rows, None, budget, SEED, **persons)
    rows.check()
    rows.sum(_Total())


class _Total(records.Summed):
    shape = (1,)

    def sum(self, X, y):
        return np.array([y.sum() + X.sum()])


def _curve(function, given):
    function(
        _make(SEED), given("X", X), given("y", Y), epsilons=(1.0,), cv=2, n_repeats=1,
        random_state=SEED, **optional(given, groups=LABELS),
    )  # fmt: skip


def _describe(function, given):
    options = optional(given, {"max_rows_per_group": 2}, groups=LABELS)
    function(_table(given, "table"), SCHEMA, epsilon=5.0, delta=1e-6, random_state=SEED, **options)


COST = {"epsilon": 1.0, "delta": 1e-6}
DOORS = {
    **dict(_regressors()),
    **dict(_policies()),
    **dict(_columns()),
    "PrivateSearchCV.fit": door(lambda: _search().fit, "X", "y"),
    "PrivateSearchCV.predict": door(lambda: _searched().predict, "X"),
    "PrivateSearchCV.confidence_interval": door(lambda: _searched().confidence_interval, "X"),
    "PrivateSearchCV.score": lambda given: _score(_searched(), given),
    "private_score": door(
        lambda: partial(model_selection.private_score, _fitted(SSPRegressor)), "X", "y", **COST
    ),
    "privacy_utility_curve": partial(_curve, model_selection.privacy_utility_curve),
    "PrivacyUtilityDisplay.from_estimator": partial(
        _curve, model_selection.PrivacyUtilityDisplay.from_estimator
    ),
    "private_quantiles": door(
        lambda: inspection.private_quantiles, "y", levels=[0.5], bounds=(-1, 1), **COST
    ),
    "propose_max_rows": door(lambda: inspection.propose_max_rows, "groups", largest=9, **COST),
    "describe": partial(_describe, inspection.describe),
    "check_table": partial(_describe, preprocessing.check_table),
    "IntervalDisplay.from_estimator": door(
        lambda: partial(inspection.IntervalDisplay.from_estimator, _fitted(SSPRegressor)),
        "X", feature=0,
    ),
    "interval_coverage_score": door(
        lambda: metrics.interval_coverage_score, "f_true", "sample_weight", low=Y - 1, high=Y + 1
    ),
    "interval_mean_width": door(
        lambda: metrics.interval_mean_width, "sample_weight", low=Y - 1, high=Y + 1
    ),
    "BoundsScaler.fit": door(lambda: _scaler().fit, "X", "y"),
    "BoundsScaler.transform": door(lambda: _scaler().fit(X).transform, "X"),
    "BoundsScaler.inverse_transform": door(lambda: _scaler().fit(X).inverse_transform, "X"),
    "TableEncoder.fit": lambda given: _encoder().fit(_table(given), given("y", Y)),
    "TableEncoder.transform": lambda given: _encoded().transform(_table(given)),
    "TableEncoder.inverse_transform": door(lambda: _encoded().inverse_transform, "X"),
    "TableEncoder.inverse_column": lambda given: (
        _encoded().inverse_column("x0", given("X", X[:, 0]))
    ),
    "FormulaEncoder.fit": lambda given: _formula().fit(_table(given), given("y", Y)),
    "FormulaEncoder.transform": lambda given: (
        _formula().fit(_table(Clean())).transform(_table(given))
    ),
    "Schema.read_target": lambda given: TARGETED.read_target(_table(given, "frame")),
    "Schema.read_labels": lambda given: TARGETED.read_labels(_table(given, "frame")),
    "Schema.weights": lambda given: MAYBE_TARGETED.weights(_table(given, "frame")),
    "Schema.check_dtypes": lambda given: SCHEMA.check_dtypes(_table(given, "table"), ["x0"]),
    "Schema.groups": lambda given: OF_PERSONS.groups(_table(given, "frame")),
    "Schema.template": lambda given: preprocessing.Schema.template(_table(given, "frame")),
    "Loop.rank": _loop,
    "Loop.reward": _loop,
    "Loop.rank_many": _loops,
    "Loop.reward_many": _loops,
    "confidence_interval": door(
        lambda: partial(inspection.confidence_interval, _fitted(SSPRegressor)), "X"
    ),
    "prediction_interval": door(
        lambda: partial(inspection.prediction_interval, _fitted(SSPRegressor)), "X"
    ),
    "SupervisedEnvironment": _supervised,
    "MABWiserAdapter.fit": partial(_mabwiser, "fit"),
    "MABWiserAdapter.partial_fit": partial(_mabwiser, "partial_fit"),
    "MABWiserAdapter.predict": partial(_mabwiser, "predict"),
    "CobaLearner.predict": _coba,
    "CobaLearner.learn": _coba,
    "private_off_policy_value": door(
        lambda: bandits.private_off_policy_value, "target", "actions", "rewards", "propensities"
    ),
    "lower_bound": lambda given: audit.lower_bound(
        _make, *_pair(given), n_runs=8, delta=1e-6, confidence_level=0.9
    ),
    "replay": _replayed,
    "worst_pairs": door(
        lambda: partial(audit.worst_pairs, lambda: _make(0)), "X", "y", row_norm="linf", n_pairs=1
    ),
    "act": lambda given: protocol.act(_state(), given("contexts", CONTEXTS[0])),
    "report": _report,
    "open_session": _session,
    "Groups": door(lambda: privacy.Groups, "labels", largest=2),
    "ArrayRows": lambda given: records.ArrayRows(given("X", X), given("y", Y)).sum(_Total()),
    "as_rows": lambda given: records.as_rows(given("X", X), given("y", Y)).sum(_Total()),
    "from_table": lambda given: records.from_table(_table(given, "table")).each(lambda X, y: 0),
}  # fmt: skip


def prepare():
    """Fit, before anything is counted, what the doors need fitted."""
    for Estimator in REGRESSORS:
        _fitted(Estimator)
    _searched()


# Environments that draw their rounds: actions and contexts are simulated ones.
SIMULATED = ("SupervisedEnvironment.rewards", "LinearEnvironment", "SparseLinearEnvironment")
