"""Private searches: one charge, runs held to their cost, and a winner worth having."""

import multiprocessing
import os
import pickle
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from registry.estimators import iht, line_data, ssp
from registry.refusals import charged, uncharged
from scipy.stats import uniform
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder

from skpriv import BudgetAccountant
from skpriv.exceptions import BudgetExceeded, PrivacyError, PrivacyWarning
from skpriv.inspection import inference, model_card
from skpriv.linear_model import LinearRegression, LogisticRegression, SSPRegressor
from skpriv.model_selection import PrivateSearchCV
from skpriv.preprocessing import Categorical, Date, Numeric, TableEncoder
from skpriv.privacy import Budget, Cost, prepaid
from skpriv.records import public_zeros

GRID = {"data_norm": [0.05, 1.0, 20.0]}


def search(model=None, grid=GRID, **options):
    settings = {"epsilon": 2.0, "delta": 1e-6, "random_state": 0, **options}
    return PrivateSearchCV(ssp() if model is None else model, grid, **settings)


def search_of_iht(**options):
    """Of a model whose sessions divide rho, which its search divides, too."""
    return search(iht(n_nonzero_coefs=2), {"n_nonzero_coefs": [1, 2, 3]}, **options)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("make, currency", [(search, "gdp"), (search_of_iht, "zcdp")])
def test_one_charge_of_the_stated_total(make, currency, n_jobs):
    X, y = line_data(5_000)
    with BudgetAccountant(2.0, 1e-6, currency=currency) as accountant:
        found = make(n_jobs=n_jobs).fit(X, y)
        with pytest.raises(BudgetExceeded):  # nothing is left
            make(n_jobs=n_jobs).fit(X, y)
    assert len(accountant.charges) == 1
    assert accountant.spent.epsilon == pytest.approx(2.0)
    assert found.privacy_report_.guarantee.epsilon == pytest.approx(2.0)


def steps(monkeypatch, model, n):
    """Costs of the steps of a search of three candidates: scale, fits, choice, score, last fit."""
    paid = []

    @contextmanager
    def seen(cost, currency="zcdp"):
        paid.append(cost)
        with prepaid(cost, currency):
            yield

    monkeypatch.setattr("skpriv.model_selection._private_search.prepaid", seen)
    model.fit(*line_data(n))
    scale, *fits, choice, score, last = [cost for cost in paid if cost != Cost()]  # and the checks
    assert len(fits) == len(model.candidates_) == 3
    return scale + last, sum(fits, Cost()), choice, score


def test_the_steps_add_up_to_the_total(monkeypatch):
    """A record fits, or scores; it is in the scale and in the last fit in any case."""
    both, fits, choice, score = steps(monkeypatch, search(), 2_000)
    mu2 = Budget(2.0, 1e-6).mu ** 2
    assert both.amount("gdp") + fits.amount("gdp") == pytest.approx(mu2)
    # the selection is priced in rho, and has a bounded range: see Cost.amount
    paid = (both + score).amount("gdp") + np.pi * choice.amount("zcdp")
    assert paid == pytest.approx(mu2)


def test_the_steps_of_a_search_of_iht_add_up_to_the_total_in_its_currency(monkeypatch):
    both, fits, choice, score = steps(monkeypatch, search_of_iht(), 5_000)
    rho = Budget(2.0, 1e-6).rho
    assert (both + fits).amount("zcdp") == pytest.approx(rho)
    assert (both + choice + score).amount("zcdp") == pytest.approx(rho)


def test_without_privacy_it_finds_the_best():
    X, y = line_data(2_000)
    found = search(epsilon=float("inf")).fit(X, y)
    assert found.best_params_ == {"data_norm": 1.0}
    assert found.score(X, y) > 0.85


def test_candidates_are_public():
    X, y = line_data(500)
    assert search().fit(X, y).candidates_ == [{"data_norm": norm} for norm in GRID["data_norm"]]
    assert len(search(n_iter=2).fit(X, y).candidates_) == 2
    drawn = search().set_params(param_distributions={"data_norm": uniform(0.5, 1.0)})
    assert len(drawn.fit(X, y).candidates_) == 30


def test_progress_goes_to_stderr_only_if_asked_for(capsys):
    X, y = line_data(500)
    search().fit(X, y)
    assert capsys.readouterr().err == ""
    search(verbose=1).fit(X, y)
    assert "3 of 3 candidates" in capsys.readouterr().err


def test_finds_the_scale(global_random_seed):
    X, y = line_data(20_000, seed=global_random_seed)
    found = search(random_state=global_random_seed).fit(X, y)
    assert found.best_params_ == {"data_norm": 1.0}
    assert found.score(X, y) > 0.8
    low, high = found.confidence_interval(X[:5])
    assert (low < high).all()


def test_a_run_may_not_spend_more():
    class Greedy(SSPRegressor):
        """Spends ten times its epsilon."""

        def fit(self, X, y):
            honest = self.epsilon
            self.epsilon = 10.0 * honest
            try:
                return super().fit(X, y)
            finally:
                self.epsilon = honest

    X, y = line_data(1_000)
    with pytest.raises(BudgetExceeded):
        search(Greedy(bounds_y=(-1, 1))).fit(X, y)


def test_shuffled_fits_are_refused():
    X, y = line_data(1_000)
    shuffled = search().set_params(estimator__privacy="shuffle")
    with pytest.raises(BudgetExceeded):
        shuffled.fit(X, y)


@pytest.mark.parametrize("name", ["epsilon", "delta", "privacy"])
def test_budgets_are_no_candidates(name):
    X, y = line_data(100)
    with pytest.raises(ValueError, match=name):
        clone(search()).set_params(param_distributions={name: [1.0]}).fit(X, y)


def test_what_is_wrong_with_a_parameter_is_said_of_tables_too():
    model = make_pipeline(TableEncoder({"age": Numeric(0, 100)}), ssp())
    table = pd.DataFrame({"age": np.arange(100.0)})
    with pytest.raises(ValueError, match="'fit_intercept' parameter"):
        search(model, {"sspregressor__fit_intercept": [True, "no"]}).fit(table, table["age"])


def test_the_winner_says_what_it_cost_with_the_search():
    """Its own fit has a part of the budget, and alone it is not what is published."""
    X, y = line_data(2000)
    grid = {"data_norm": [0.5, 1.0]}
    search = PrivateSearchCV(ssp(), grid, epsilon=2.0, delta=1e-6, random_state=0)
    winner = search.fit(X, y).best_estimator_
    assert "(epsilon=2, delta" not in str(winner.privacy_report_.guarantee)
    for text in (str(winner.privacy_report_), str(inference(winner)), model_card(winner)):
        assert "(epsilon=2, delta=1e-06)" in " ".join(text.split())


def test_nothing_of_the_other_candidates_is_shown():
    X, y = line_data(2_000)
    found = search().fit(X, y)
    fitted = {name for name in vars(found) if name.endswith("_") and not name.startswith("_")}
    assert fitted == {
        "best_estimator_", "best_params_", "best_score_", "candidates_", "epsilon_per_run_",
        "privacy_report_",
    }  # fmt: skip


def test_where_a_value_is_that_is_no_number_is_not_told():
    """Rows that fit and rows that score are refused by the same words."""
    X, y = line_data(20)
    for row in range(20):
        bad = X.copy()
        bad[row, 1] = np.nan
        with charged():
            search(epsilon=1.0).fit(bad, y)


def test_no_step_warns_of_an_overflow():
    """Warnings are errors here, and the step would be told to have met a value that is none."""
    X, y = line_data(50)
    X[7] = 1e308
    model = make_pipeline(Normalizer(norm="l1"), ssp())
    search(model, {"sspregressor__data_norm": [0.5, 1.0]}).fit(X, y)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_pickled_search_is_charged_wherever_it_is_fitted(tmp_path):
    """It carries the handle of the accountant into other processes, as any estimator does."""
    fork = multiprocessing.get_context("fork")
    with BudgetAccountant(2.0, 1e-6, ledger=tmp_path / "ledger") as accountant:
        data = pickle.dumps(search())
    rows = np.ones((20, 3)) / 4, np.ones(20) / 4
    child = fork.Process(target=lambda: pickle.loads(data).fit(*rows))
    child.start()
    child.join()
    assert [charge.name for charge in accountant.charges] == ["PrivateSearchCV"]


def table_of_texts(n, library=pd.DataFrame):
    """A table with texts, days as texts and dates, and a schema of it."""
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    columns = {
        "age": rng.uniform(0.0, 100.0, n), "site": rng.choice(["A", "B"], n).tolist(),
        "day": days.to_pydatetime().tolist(), "written": days.strftime("%d.%m.%Y").tolist(),
    }  # fmt: skip
    ends = "2020-01-01", "2022-12-31"
    schema = {
        "age": Numeric(0, 100), "site": Categorical(["A", "B"]), "day": Date(*ends),
        "written": Date(*ends, format="%d.%m.%Y"),
    }  # fmt: skip
    return library(columns), columns["age"] / 100.0, schema


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_table_of_texts_is_searched(library):
    make = pytest.importorskip(library).DataFrame
    table, y, schema = table_of_texts(500, make)
    model = make_pipeline(TableEncoder(schema), ssp())
    grid = {"sspregressor__fit_intercept": [True, False]}
    assert search(model, grid).fit(table, y).predict(table).shape == (500,)


@pytest.mark.parametrize("settings, grid, said", [
    ({"bounds_X": [(0, 1)] * 2}, {"clip": ["auto", "wide"]}, "bounds_X has shape"),
    ({"bounds_X": {"age": (0, 1)}}, {"clip": ["auto", "wide"]}, "no feature names"),
    ({"bounds_X": (-1, 1)}, {"clip": ["auto", "none"]}, "'clip' parameter"),
])  # fmt: skip
def test_what_is_wrong_in_public_is_refused_before_the_charge(settings, grid, said):
    with uncharged(said):
        search(LinearRegression(bounds_y=(-1, 1), **settings), grid).fit(*line_data(200))


def test_classes_are_named_where_targets_must_be_numbers():
    model = LogisticRegression(classes=(0, 1), data_norm=1.0)
    X, y = line_data(200)
    with uncharged("classifier has none", PrivacyError):
        search(model, {"estimand": ["fitted"]}).fit(X, y > 0.0)


def test_no_cell_of_objects_decides_whether_a_search_is_refused():
    said = []
    for cell in ("1.5", 1.5):
        X = pd.DataFrame({"a": pd.Series([cell] + 19 * ["1.5"], dtype=object)})
        search().fit(X, np.linspace(0.0, 1.0, 20))
        said.append(public_zeros(X).dtypes.to_dict())
    assert said[0] == said[1]


def test_steps_that_read_after_the_charge_are_covered():
    """A fit alone warns of them, since there they read before it."""
    table, y, _ = table_of_texts(300)
    sites = OneHotEncoder(categories=[["A", "B"]], handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer([("raw", "passthrough", ["age"]), ("sites", sites, ["site"])])
    bounds = [(0, 100), (0, 1), (0, 1)]
    model = make_pipeline(columns, LinearRegression(bounds_X=bounds, bounds_y=(0, 1)))
    found = search(model, {"linearregression__clip": ["auto", "wide"]}, epsilon=9.0).fit(table, y)
    assert not found.best_estimator_[-1].privacy_report_.pipeline
    with pytest.warns(PrivacyWarning, match="before the charge"):
        model.fit(table, y)
