"""Every argument that names people or columns, and a call with it.

A door is a pair (callable, argument), found by walking `__all__` as in `doors`. Each one is called
twice, with a clean spelling and with an odd one of the same people or of the same column, and must
do the same. An argument that names neither stands in `EXEMPT` with the reason.
"""

from functools import cache, partial
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupKFold

from skpriv import bandits, describe, linear_model
from skpriv.audit import replay
from skpriv.bandits import LinUCB, Loop
from skpriv.bandits._policy._base import BasePolicy
from skpriv.inspection import (
    CurveDisplay, IntervalDisplay, curves, inference, propose_max_rows,
)  # fmt: skip
from skpriv.model_selection import privacy_utility_curve
from skpriv.preprocessing import (
    Boolean, BoundsScaler, Categorical, FormulaEncoder, Numeric, Schema, TableEncoder, check_table,
)  # fmt: skip
from skpriv.privacy import Budget, Groups, open_session
from skpriv.records import ArrayRows, from_table

from .totals import Total

PEOPLE = {"groups", "user", "users", "labels"}
COLUMNS = {
    "bounds", "bounds_X", "columns", "endogenous", "exclusive", "feature", "features", "formula",
    "frame", "instruments", "knots", "linear_features", "name", "names", "pairs",
    "schema", "target", "usual_X", "weights",
}  # fmt: skip
POLICIES = [
    name for name in bandits.__all__
    if isinstance(getattr(bandits, name), type) and issubclass(getattr(bandits, name), BasePolicy)
]  # fmt: skip
TYPES = ("Boolean", "Categorical", "Date", "Numeric", "Ordinal")
METHODS = ("block", "missing_effect")
LEVELS = ("Categorical", "missing_effect")  # which there is not
EXEMPT = {
    **{(f"{policy}.{method}", "users"): "people go to `Visits`, as those of LinUCB.update do"
       for policy in POLICIES for method in ("act", "update")
       if (policy, method) != ("LinUCB", "update")},
    **{(f"{kind}.{method}", "name"): "makes names of new columns"
       for kind in TYPES for method in METHODS if (kind, method) != LEVELS},
    **{(f"{kind}.plan", "schema"): "a schema has found its columns, and no rows are given"
       for kind in ("AdditiveRegressor", "LinearRegression", "LogisticRegression",
                    "PoissonRegressor")},
    ("Collector.add", "user"): "the number of a device",
    ("ShareServer.add", "user"): "the number of a device",
    ("ShareServer.total", "users"): "numbers of devices",
    ("report", "user"): "the number of a device",
    ("BudgetAccountant.part", "name"): "who asks, for reports",
    ("open_session", "name"): "who asks, for reports",
    ("EpochsReport", "name"): "of a policy",
    ("PrivacyUtilityDisplay.plot", "name"): "of a curve, for a legend",
    ("private_off_policy_value", "target"): "a policy",
    ("private_quantiles", "bounds"): "two numbers",
    ("ReweightedRegressor", "weights"): "the name of a rule",
    ("Schema.template", "frame"): "names of new columns",
    ("TableCheck", "columns"): "a result, made by check_table",
    ("Description", "schema"): "a result, made by describe",
    ("BatchRows", "names"): "names of new columns",
    ("CoefficientDisplay", "names"): "names of a picture",
    ("CoefficientMap", "names"): "names of new columns",
    ("Inference", "names"): "a result, made by inference",
    ("RegretDisplay", "names"): "names of a picture",
    **{(f"{model}.fit", "weights"): "one number a row" for model in (
        "AdditiveRegressor", "LinearRegression", "LogisticRegression", "PoissonRegressor",
        "ReweightedRegressor", "SSPRegressor")},
}  # fmt: skip
N_PEOPLE, EACH = 400, 2
CLEAN_PEOPLE = [person for person in range(N_PEOPLE) for _ in range(EACH)]
ODD_PEOPLE = [written(p) for p in range(N_PEOPLE) for written in (str, " {}.0\u00a0".format)]
CLEAN, ODD = "größe m", "gro\u0308ße\u00a0m "
N = N_PEOPLE * EACH
_rng = np.random.RandomState(0)
X = _rng.uniform(-1.0, 1.0, (N, 2))
y = np.clip(X @ [0.5, -0.25] + _rng.uniform(-0.1, 0.1, N), -1.0, 1.0)
TABLE = pd.DataFrame({CLEAN: X[:, 0], "other": X[:, 1], "sex": np.where(y > 0, "F", "M")})
MAYBE = {CLEAN: Numeric(-1, 1), "other": Numeric(-1, 1), "sex": Categorical(["F", "M"])}


BY_NORM = "ReweightedRegressor", "SSPRegressor"
GUESSING = "LinearRegression", "LogisticRegression", "PoissonRegressor"


def _schema(name):
    return {name: Numeric(-1, 1), "other": Numeric(-1, 1)}


def _fit(kind, labels, target=y, **settings):
    settings = {"bounds_y": (-1, 1), "epsilon": 5.0, "random_state": 0, **settings}
    model = getattr(linear_model, kind)(max_rows_per_group=2).set_params(
        **{name: value for name, value in settings.items() if value is not None}
    )
    model.set_params(**{"data_norm": 1.5} if kind in BY_NORM else {"bounds_X": (-1, 1)})
    model.fit(X, target, groups=labels)
    return model.privacy_report_.size, model.predict(X[:3])


@cache
def _fitted(kind="LinearRegression", **settings):
    model = getattr(linear_model, kind)(bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=0)
    return model.set_params(epsilon=5.0, **settings).fit(TABLE[[CLEAN, "other"]], y)


def _additive(name, parameter, value):
    model = linear_model.AdditiveRegressor(bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=0)
    model.set_params(**{parameter: value(name)}).fit(TABLE[[CLEAN, "other"]], y)
    return model.predict(TABLE[[CLEAN, "other"]][:3])


def _instrumented(endogenous, instruments):
    model = linear_model.IVRegressor(
        endogenous=[endogenous], instruments=[instruments], bounds_X=(-1, 1), bounds_y=(-1, 1),
        epsilon=5.0, random_state=0,
    )  # fmt: skip
    return model.fit(TABLE[["other", CLEAN]], y).coef_


def _policy(**settings):
    return LinUCB(
        max_visits=1, epsilon=5.0, delta=1e-6, random_state=0, horizon=N, update_every=20,
        **settings,
    )  # fmt: skip


CONTEXTS = np.repeat(X[:, None, :], 2, axis=1)


def _visits(users):
    policy = _policy().update(CONTEXTS, np.zeros(N, dtype=int), y, users=users)
    return policy.act(CONTEXTS[:50])


def _service(users, together):
    """Actions of a service, which learns from one of two rounds of each of ten people."""
    with TemporaryDirectory() as folder:
        service = Loop(_policy(), f"{folder}/service")
        events = [f"event {at}" for at in range(40)]
        if together:
            service.rank_many(events, CONTEXTS[:40], users=users[:40])
        else:
            for event, context, user in zip(events, CONTEXTS, users):
                service.rank(event, context, user=user)
        service.reward_many(events, y[:40])
        service.learn(force=True)
        return service.policy.n_rounds_, service.policy.act(CONTEXTS[:50])


def _replayed(who):
    """A neighbour in all rows of one person."""
    D_prime = np.where(np.arange(N)[:, None] < EACH, -X, X), y
    make = partial(linear_model.SSPRegressor, data_norm=1.5, bounds_y=(-1, 1), random_state=0)
    return replay(
        lambda: make(max_rows_per_group=2), (X, y), D_prime, groups=who,
        run=lambda model, D: model.fit(*D, groups=who),
    ).epsilon  # fmt: skip


def _score_curve(who):
    """Folds of a splitter that keeps the rows of a person together."""
    model = linear_model.SSPRegressor(data_norm=1.5, bounds_y=(-1, 1))
    return privacy_utility_curve(
        model, X, y, groups=who, cv=GroupKFold(2), epsilons=(1.0,), n_repeats=1, random_state=0
    ).test_scores


def _ranges(name, kind, target, **settings):
    settings = settings or {"bounds_y": (-1, 1)}
    model = getattr(linear_model, kind)(epsilon=5.0, random_state=0, **settings)
    model.set_params(bounds_X={name: (-1, 1), "other": (-1, 1)})
    if kind in GUESSING:
        model.set_params(usual_X={name: (-0.9, 0.9)})
    frame = TABLE[[CLEAN, "other"]]
    return model.fit(frame, target).predict(frame[:3])


def _curve_model():
    return _fitted("AdditiveRegressor")


DOORS = {
    ("Groups", "labels"): lambda who: (Groups(who, 2).n, Groups(who, 2).codes),
    ("open_session", "groups"): lambda who: open_session(
        "central", ArrayRows(X, y), None, Budget(1.0, 1e-6), 0, groups=Groups(who, 2)
    ).sum(Total(), 1.0).value,
    ("AdditiveRegressor.fit", "groups"): lambda who: _fit("AdditiveRegressor", who),
    ("LinearRegression.fit", "groups"): lambda who: _fit("LinearRegression", who),
    ("PoissonRegressor.fit", "groups"): lambda who: _fit(
        "PoissonRegressor", who, np.rint(2 + 2 * y), bounds_y=(0, 4)
    ),
    ("LogisticRegression.fit", "groups"): lambda who: _fit(
        "LogisticRegression", who, TABLE["sex"], bounds_y=None, classes=("F", "M")
    ),
    ("IVRegressor.fit", "groups"): lambda who: _fit(
        "IVRegressor", who, instruments=[0], endogenous=[1]
    ),
    ("privacy_utility_curve", "groups"): _score_curve,
    ("replay", "groups"): _replayed,
    ("LinUCB.update", "users"): _visits,
    ("Loop.rank", "user"): partial(_service, together=False),
    ("Loop.rank_many", "users"): partial(_service, together=True),
    ("ReweightedRegressor.fit", "groups"): lambda who: _fit("ReweightedRegressor", who),
    ("SSPRegressor.fit", "groups"): lambda who: _fit("SSPRegressor", who),
    ("check_table", "groups"): lambda who: check_table(
        TABLE, MAYBE, epsilon=1.0, delta=1e-6, groups=who, max_rows_per_group=2, random_state=0
    ).counts,
    ("describe", "groups"): lambda who: str(describe(
        TABLE, MAYBE, epsilon=1.0, delta=1e-6, groups=who, max_rows_per_group=2, random_state=0
    )),
    ("propose_max_rows", "groups"): lambda who: str(propose_max_rows(
        who, largest=9, epsilon=1.0, delta=1e-6, random_state=0
    )),
    ("TableEncoder", "schema"): lambda name: TableEncoder(_schema(name)).fit_transform(TABLE),
    ("FormulaEncoder", "schema"): lambda name: FormulaEncoder(
        f"`{CLEAN}` + other", _schema(name)
    ).fit_transform(TABLE),
    ("FormulaEncoder", "formula"): lambda name: FormulaEncoder(
        f"`{name}` + I(`{name}`**2) + other", MAYBE
    ).fit_transform(TABLE),
    ("TableEncoder.coded_levels", "name"): lambda name: TableEncoder(
        {**MAYBE, CLEAN: Boolean()}
    ).fit(TABLE).coded_levels(name)[1],
    ("TableEncoder.inverse_column", "name"): lambda name: TableEncoder(MAYBE).fit(
        TABLE
    ).inverse_column(name, [0.1]),
    ("check_table", "schema"): lambda name: check_table(TABLE, _schema(name)).counts,
    ("describe", "schema"): lambda name: describe(
        TABLE, _schema(name), epsilon=1.0, delta=1e-6, random_state=0
    ).to_frame()["estimate"].to_numpy(),
    ("describe", "columns"): lambda name: str(describe(
        TABLE, MAYBE, columns=[name], epsilon=1.0, delta=1e-6, random_state=0
    )),
    ("describe", "pairs"): lambda name: str(describe(
        TABLE, MAYBE, pairs=[(name, "sex")], epsilon=1.0, delta=1e-6, random_state=0
    )),
    ("Schema", "columns"): lambda name: Schema(_schema(name), target=name).read_target(TABLE),
    ("Schema", "target"): lambda name: Schema(MAYBE, target=name).target,
    ("Schema.template", "target"): lambda name: Schema.template(TABLE, target=name).target,
    ("Schema.check_dtypes", "names"): lambda name: Schema(MAYBE).check_dtypes(TABLE, [name]),
    ("Schema.select", "names"): lambda name: Schema(MAYBE).select([name]),
    ("Schema.groups", "frame"): lambda name: Schema(_schema("other"), person=CLEAN).groups(
        TABLE.rename(columns={CLEAN: name})
    )["groups"].tolist(),
    ("Schema.with_target", "target"): lambda name: Schema(MAYBE).with_target(name).target,
    ("Schema.check_filled", "names"): lambda name: Schema(MAYBE).check_filled([name]),
    ("Schema.read_target", "frame"): lambda name: Schema(MAYBE, target=CLEAN).read_target(
        TABLE.rename(columns={CLEAN: name})
    ),
    ("Schema.weights", "frame"): lambda name: Schema(
        {CLEAN: Numeric(0, 1, missing="indicator")}, target=CLEAN
    ).weights(TABLE.rename(columns={CLEAN: name}))["sample_weight"],
    ("Schema.read_labels", "frame"): lambda name: Schema(MAYBE, target="sex").read_labels(
        TABLE.rename(columns={"sex": {CLEAN: "sex", ODD: "\uff53ex "}[name]})
    ).tolist(),
    ("from_table", "features"): lambda name: from_table(TABLE, features=[name]).names,
    ("from_table", "target"): lambda name: from_table(TABLE, target=name).names,
    ("BoundsScaler", "bounds"): lambda name: BoundsScaler(
        {name: (-2, 2), "other": (-1, 1)}
    ).fit_transform(TABLE[[CLEAN, "other"]]),
    ("BoundsScaler", "exclusive"): lambda name: BoundsScaler(
        (0, 1), exclusive=[[name, "other"]]
    ).fit_transform(TABLE[[CLEAN, "other"]]),
    ("curves", "features"): lambda name: curves(_curve_model(), features=[name])[0],
    ("CurveDisplay.from_estimator", "features"): lambda name: CurveDisplay.from_estimator(
        _curve_model(), features=[name]
    ).curves[0],
    ("AdditiveRegressor.curve", "feature"): lambda name: _curve_model().curve(
        name, [0.5]
    ).effect,
    ("IntervalDisplay.from_estimator", "feature"): lambda name: IntervalDisplay.from_estimator(
        _fitted(), TABLE[[CLEAN, "other"]][:3], feature=name
    ).values,
    ("Inference.wald_test", "names"): lambda name: inference(_fitted()).wald_test([name]).statistic,
    ("Inference.contrast", "weights"): lambda name: inference(_fitted()).contrast(
        {name: 1.0, "other": -1.0}
    ).estimate,
    ("AdditiveRegressor", "linear_features"): lambda name: _additive(
        name, "linear_features", lambda name: [name]
    ),
    ("AdditiveRegressor", "knots"): lambda name: _additive(
        name, "knots", lambda name: {name: [-1.0, 0.25, 1.0]}
    ),
    ("IVRegressor", "bounds_X"): lambda name: linear_model.IVRegressor(
        endogenous=["other"], instruments=[CLEAN], bounds_X={name: (-1, 1), "other": (-1, 1)},
        bounds_y=(-1, 1), epsilon=5.0, random_state=0,
    ).fit(TABLE[[CLEAN, "other"]], y).coef_,
    ("IVRegressor", "endogenous"): lambda name: _instrumented(name, "other"),
    ("IVRegressor", "instruments"): lambda name: _instrumented("other", name),
    ("LinearRegression", "bounds_X"): lambda name: _ranges(name, "LinearRegression", y),
    ("AdditiveRegressor", "bounds_X"): lambda name: _ranges(name, "AdditiveRegressor", y),
    ("LogisticRegression", "bounds_X"): lambda name: _ranges(
        name, "LogisticRegression", TABLE["sex"], classes=("F", "M")
    ),
    ("PoissonRegressor", "bounds_X"): lambda name: _ranges(
        name, "PoissonRegressor", np.rint(2 + 2 * y), bounds_y=(0, 4)
    ),
}  # fmt: skip
DOORS |= {(kind, "usual_X"): DOORS[kind, "bounds_X"] for kind in GUESSING}
