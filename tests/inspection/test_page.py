"""The page that somebody signs: self-contained, in plain words, and readable on a phone."""

import inspect
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skpriv import BudgetAccountant, describe, inspection
from skpriv.inspection import inference, model_card, picture, release_page
from skpriv.linear_model import (
    AdditiveRegressor, LinearRegression, LogisticRegression, PoissonRegressor, SSPRegressor,
)  # fmt: skip
from skpriv.preprocessing import Categorical, Numeric, Schema, TableEncoder

pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib").use("Agg")
N = 5000


@pytest.fixture(scope="module")
def released():
    rng = np.random.RandomState(0)
    table = pd.DataFrame(
        {"age": rng.uniform(20, 60, N), "sex <&>": rng.choice(["F", "M"], N), "pay": rng.rand(N)}
    )
    schema = Schema(
        {
            "age": Numeric(20, 60),
            "sex <&>": Categorical(["F", "M"], other=False),
            "pay": Numeric(0, 1),
        },
        target="pay",
    )
    model = make_pipeline(TableEncoder(schema), SSPRegressor(data_norm=1.0, bounds_y=(0, 1)))
    with BudgetAccountant(3.0, 1e-6) as accountant:
        model.fit(table, table["pay"])
        found = describe(table, schema, epsilon=1.0, delta=1e-6)
    return release_page(model, title="Pay <by> age", accountant=accountant, description=found)


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.headings, self.sources = [], [], []

    def handle_starttag(self, tag, attributes):
        self.sources += [v for k, v in attributes if k in ("src", "href") and not v.startswith("#")]
        if tag not in ("meta", "br", "link", "path", "use", "rect", "g", "defs"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in ("path", "use", "rect", "g", "defs"):
            return
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attributes):
        self.sources += [v for k, v in attributes if k == "src"]

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)


def test_it_is_one_well_formed_file_that_loads_nothing(released):
    page = _Page()
    page.feed(released)
    assert page.open == [] and page.sources == []
    assert page.headings[0] == "Pay <by> age"
    for heading in ("Coefficients", "What the guarantee means", "Ledger", "The table in numbers"):
        assert heading in page.headings
    assert "url(http" not in released and "<script" not in released


def test_it_says_what_a_manager_and_an_auditor_need(released):
    text = re.sub(r"<[^>]+>", " ", released)
    assert "a factor of at most 2.7" in text  # e to the power of 1
    assert "5,000 rows" in text and "does not cover" in text
    assert "Spent epsilon" in text and "Signature" in text
    assert "sex &lt;&amp;&gt;=M" in released
    assert "study only" not in text


def test_a_seed_is_warned_of_and_no_privacy_is_said():
    X = np.linspace(-1.0, 1.0, N)[:, None]
    options = {"data_norm": 1.0, "bounds_y": (-1, 1)}
    seeded = release_page(SSPRegressor(**options, random_state=0).fit(X, X[:, 0]))
    assert "study only" in seeded
    exact = release_page(SSPRegressor(**options, privacy="none").fit(X, X[:, 0]))
    assert "There is no privacy guarantee" in exact


def test_curves_have_a_page_too():
    X = np.random.RandomState(0).uniform(-1, 1, size=(N, 2))
    model = AdditiveRegressor(bounds_X=(-1, 1), bounds_y=(-1, 2), random_state=0)
    page = release_page(model.fit(X, X[:, 0] ** 2))
    assert "<h2>Curves</h2>" in page and "<svg" in page


def test_the_picture_has_the_effects_of_whole_ranges():
    """A slope per year beside the effect of a yes or no would look like nothing."""
    rng = np.random.default_rng(0)
    X = rng.uniform((0.0, 0.0), (50.0, 1.0), size=(5000, 2))
    y = 0.02 * X[:, 0] + X[:, 1]
    line = LinearRegression(bounds_X=[(0, 50), (0, 1)], bounds_y=(0, 3), random_state=0).fit(X, y)
    shown, own = picture(line, 0.95), inference(line)
    np.testing.assert_allclose(shown.estimate, own.estimate[:2] * [50.0, 1.0])
    assert shown.unit == "of the whole range"


@pytest.mark.parametrize("name", inspection.__all__)
def test_a_search_is_refused_with_the_fit_that_it_holds(name):
    """Whatever takes a fitted model says the remedy."""
    door = getattr(inspection, name)
    first, *others = inspect.signature(door).parameters
    if not inspect.isfunction(door) or first not in ("model", "models", "estimator"):
        return
    X = np.random.default_rng(0).uniform(size=(100, 1))
    line = SSPRegressor(data_norm=1.0, bounds_y=(0, 1), random_state=0)
    search = GridSearchCV(line, {"alpha": ["auto"]}, cv=2).fit(X, X[:, 0])
    rows = [X[:1]] if others[0] in ("X", "rows", "row") else []
    with pytest.raises(TypeError, match="GridSearchCV.*best_estimator_"):
        door({"a": search} if first == "models" else search, *rows)


def test_marks_of_numbers_are_quoted():
    """They were read as the commas of a list: "decimal ,, usual"."""
    schema = {"pay": Numeric(0, 1, decimal=",", thousands=".", usual=(0.2, 0.4))}
    table = pd.DataFrame({"pay": np.linspace(0.0, 1.0, 50)})
    model = make_pipeline(
        TableEncoder(Schema(schema)), SSPRegressor(data_norm=1.0, bounds_y=(0, 1))
    )
    page = model_card(model.fit(table, table["pay"]))
    assert "decimal ','" in page and ",," not in page


NOTED = {
    "line": (LinearRegression, {"bounds_y": (0, 1)}),
    "classes": (LogisticRegression, {"classes": (0, 1)}),
    "counts": (PoissonRegressor, {"bounds_y": (0, 2)}),
}


@pytest.mark.usefixtures("three_rehearsals", "no_picture")
@pytest.mark.parametrize("bounds", [(0, 0.5), (-100, 100)], ids=["narrow", "wide"])
@pytest.mark.parametrize("kind", NOTED)
def test_no_sentence_ends_in_two_full_stops(kind, bounds):
    """Notes of a report end in one, and a table added another."""
    rng = np.random.RandomState(0)
    X = pd.DataFrame({"age": rng.rand(N), "dose": rng.rand(N)})
    y = rng.randint(0, 2, N).astype(float)
    if kind == "classes":
        y[: N // 2] = np.nan
    Estimator, settings = NOTED[kind]
    model = Estimator(**settings, epsilon=5.0, bounds_X=bounds, random_state=0).fit(X, y)
    notes = model.privacy_report_.note
    assert "bounds" in notes
    texts = [notes, model.privacy_report_, inference(model), model_card(model), release_page(model)]
    for text in (*texts, Estimator(**settings, bounds_X=bounds).plan(N, 2)):
        assert not re.search(r"[^.]\.\.(?![./])", str(text))
