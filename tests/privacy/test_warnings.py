"""Warnings of public facts: given at the user's line, once, before the charge, and by no row."""

import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_backend
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingRegressor
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Binarizer, Normalizer, OneHotEncoder, StandardScaler

from skpriv import BudgetAccountant, describe, private_quantiles
from skpriv.bandits import EpochGreedy, LinearEnvironment, simulate
from skpriv._cli._main import main
from skpriv.exceptions import InvalidValues, PrivacyWarning
from skpriv.linear_model import (
    LinearRegression, LogisticRegression, PoissonRegressor, ReweightedRegressor, SSPRegressor,
)  # fmt: skip
from skpriv.model_selection import private_score
from skpriv.preprocessing import BoundsScaler, Numeric
from skpriv.privacy import learns_nothing

N = 2000
X = np.linspace(-1.0, 1.0, 2 * N).reshape(N, 2)
Y = X[:, 0]
BOUNDS = {"data_norm": 2.0, "bounds_y": (-1.0, 1.0), "random_state": 0}


def said(call, *data):
    """Warnings of a call, each at a line of this file; what a fit refuses later does not matter."""
    with warnings.catch_warnings(record=True) as caught, suppress(InvalidValues):
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", PrivacyWarning)
        call(*data)
    assert {warned.filename for warned in caught} <= {__file__}
    return [str(warned.message) for warned in caught]


def ssp(**parameters):
    return SSPRegressor(**(BOUNDS | parameters))


def few(kind, **bounds):
    model = kind(epsilon=0.1, data_norm=2.0, random_state=0, **bounds)
    return lambda X, Y: model.fit(X[:40], Y[:40])


FACTS = {
    "epsilon": (lambda X, Y: ssp(epsilon=11.0).fit(X, Y), "epsilon=11 is above 10"),
    "delta": (lambda X, Y: ssp(delta=1.0 / N).fit(X, Y), "at least 1/n for n=2,000 records"),
    "persons": (
        lambda X, Y: LinearRegression(
            **BOUNDS, epsilon=9.0, delta=1.0 / 20, max_rows_per_group=100
        ).fit(X, Y, groups=np.arange(N) % 20),
        "n=20 persons",
    ),
    "steps": (
        lambda X, Y: make_pipeline(StandardScaler(), ssp()).fit(X, Y),
        "last step of the Pipeline alone",
    ),
    "search": (
        lambda X, Y: GridSearchCV(ssp(), {"fit_intercept": [True, False]}, cv=3).fit(X, Y),
        "GridSearchCV",
    ),
    "scores": (lambda X, Y: cross_val_score(ssp(), X, Y, cv=5), "sklearn.model_selection"),
    "resampling": (lambda X, Y: BaggingRegressor(ssp(), 5).fit(X, Y), "BaggingRegressor"),
    "nested search": (
        lambda X, Y: SequentialFeatureSelector(ssp(), n_features_to_select=1, cv=3).fit(X, Y),
        "SequentialFeatureSelector",
    ),
    "mean": (few(LinearRegression, bounds_y=(-1, 1)), "Only the mean of the target was asked"),
    "few counts": (few(PoissonRegressor, bounds_y=(0, 9)), "Only the mean of the target"),
    "few classes": (few(LogisticRegression, classes=(0, 1)), "Only the"),
    "rates": (few(LogisticRegression, classes=(0, 1, 2)), "Only the rates of the classes"),
    "describe": (
        lambda X, Y: describe(
            pd.DataFrame({"a": X[:, 0]}), {"a": Numeric(-1, 1)}, epsilon=20.0, delta=1e-6
        ),
        "epsilon=20",
    ),
    "quantiles": (
        lambda X, Y: private_quantiles(Y, (0.5,), bounds=(-1, 1), epsilon=20.0, delta=1e-6),
        "epsilon=20",
    ),
    "private score": (
        lambda X, Y: private_score(ssp().fit(X, Y), X, Y, epsilon=20.0, delta=1e-6),
        "epsilon=20",
    ),
    "steps of gradients": (
        lambda X, Y: ReweightedRegressor(**BOUNDS, epsilon=20.0).fit(X, Y),
        "epsilon=20",
    ),
    "policy": (
        lambda X, Y: simulate(
            [EpochGreedy(oracle=ssp(epsilon=20.0))],
            LinearEnvironment(n_actions=2, n_features=2),
            300,
            n_runs=2,
        ),
        "epsilon=20",
    ),
}


@pytest.mark.parametrize("fact", FACTS)
def test_a_public_fact_is_warned_of_once(fact):
    call, words = FACTS[fact]
    found = said(call, X, Y)
    assert len(found) == len(set(found)) == 1, found
    assert words in found[0]


def test_usual_fits_are_silent():
    assert not said(lambda: ssp(epsilon=10.0, delta=0.9 / N).fit(X, Y))
    scaled = make_pipeline(BoundsScaler((-1, 1)), ssp())
    assert not said(lambda: scaled.fit(X, Y))
    assert not said(lambda: ssp(epsilon=np.inf).fit(X, Y))
    assert not said(lambda: make_pipeline(StandardScaler(), ssp(privacy="none")).fit(X, Y))


def test_each_fit_warns_and_a_search_of_many_warns_once_under_any_filter():
    model = ssp(epsilon=11.0)
    assert len(said(lambda: [model.fit(X, Y) for _ in range(3)])) == 3
    search = GridSearchCV(ssp(), {"epsilon": [20.0, 30.0]}, cv=4)
    assert len(said(lambda: search.fit(X, Y))) == 3  # of two budgets, and of scores


def test_an_error_of_it_comes_before_the_charge():
    with warnings.catch_warnings(), BudgetAccountant(100.0, 0.5) as accountant:
        warnings.simplefilter("error", PrivacyWarning)
        with pytest.raises(PrivacyWarning, match="epsilon=50"):
            ssp(epsilon=50.0).fit(X, Y)
    assert not accountant.charges


@pytest.mark.parametrize("fact", sorted(FACTS.keys() - {"policy", "private score"}))
def test_no_row_decides(fact):
    call, _ = FACTS[fact]
    before = said(call, X, Y)
    extreme = np.full_like(X, 1e308), -np.full_like(Y, 1e308)
    no_number = np.full_like(X, np.nan), np.full_like(Y, np.inf)
    assert said(call, *extreme) == before
    if fact in ("epsilon", "delta", "persons"):  # before the charge, and before rows are refused
        assert said(call, *no_number) == before


def test_tasks_in_other_threads_have_no_line_to_name_and_are_silent():
    with parallel_backend("threading"):
        assert not said(lambda: cross_val_score(ssp(epsilon=20.0), X, Y, cv=4, n_jobs=2))


def test_a_command_prints_it_in_one_line(tmp_path, capsys):
    pd.DataFrame({"a": X[:, 0], "b": Y}).to_csv(tmp_path / "t.csv")
    columns = "".join(f'[{name}]\ntype = "numeric"\nlow = -1\nhigh = 1\n' for name in "ab")
    (tmp_path / "s.toml").write_text(columns)
    command = "fit {0}/t.csv --schema {0}/s.toml --target b --epsilon 20 --out {0}/m.json"
    with warnings.catch_warnings():
        warnings.simplefilter("default", PrivacyWarning)
        assert main(command.format(tmp_path).split()) == 0
    found = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert len(found) == 1 and "fit: warning: epsilon=20 is above 10" in found[0]


LISTS = {"categories": [[-1.0, 1.0]], "handle_unknown": "ignore", "sparse_output": False}


@pytest.mark.parametrize(
    "lists, warned",
    [
        (LISTS, True),  # which refuses infinity before the charge
        (LISTS | {"categories": "auto"}, True),
        (LISTS | {"handle_unknown": "error"}, True),  # which looks for other values
        (LISTS | {"drop": "first"}, True),  # which warns of other values
        (LISTS | {"sparse_output": True}, True),
    ],
)
def test_the_steps_that_may_have_learned_are_named_and_no_others(lists, warned):
    columns = ColumnTransformer([("list", OneHotEncoder(**lists), [0]), ("x", "passthrough", [1])])
    model = Pipeline([("columns", columns), ("ranges", BoundsScaler((-1, 1))), ("model", ssp())])
    found = said(lambda: model.fit(np.sign(X), Y))
    assert len(found) == warned
    assert all("'columns' (ColumnTransformer)" in one and "'ranges'" not in one for one in found)
    assert all("have learned" in one and "stop at a cell" in one for one in found)


def test_columns_that_pass_are_silent_unless_their_rows_are_sparse():
    columns = ColumnTransformer([("x", "passthrough", [0, 1])])
    assert not said(lambda: make_pipeline(columns, ssp()).fit(X, Y))
    assert not learns_nothing(columns, sparse=True)
    for step in (Normalizer(), Binarizer(), OneHotEncoder(**LISTS)):  # which refuse infinity
        assert learns_nothing(step, charged=True) and not learns_nothing(step)
    assert not learns_nothing(ColumnTransformer([("x", "drop", lambda X: [0])]))
