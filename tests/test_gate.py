"""Nothing recorded gets worse unseen: cells of records are compared with the last ones."""

import json
import sys
from pathlib import Path

import pytest

from skpriv import bandits, linear_model
from skpriv.privacy import MODELS, Accounted

FOLDER = Path(__file__).parents[1] / "benchmarks"
sys.path.append(str(FOLDER))

import _gate  # noqa: E402
import _record  # noqa: E402
import every_model  # noqa: E402
from _gate import Cell, difference, unnamed, worse_cells  # noqa: E402

TEN = {str(seed): 0.5 + 0.01 * seed for seed in range(10)}


def moved(by, noise=0.0, cell=None):
    """A cell whose runs are all moved by so much, and by a noise of changing sign."""
    cell = cell or Cell("a: r2", "r2", TEN)
    runs = {key: v + by + noise * (-1) ** int(key) for key, v in cell.runs.items()}
    return Cell(cell.kind, cell.measure, runs)


def test_no_cell_is_worse_than_the_last_one_unless_the_changelog_says_so():
    changelog = (FOLDER.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    worse = worse_cells(_gate.read_last(FOLDER), _gate.cells(FOLDER))
    assert not list(unnamed(worse, _gate.read_accepted(FOLDER), changelog))


def test_every_record_is_compared_or_says_why_not():
    records = {path.stem for path in (FOLDER / "results").glob("*.json")}
    assert records == _gate.CELLS.keys() | _gate.NOT_COMPARED.keys()
    assert not _gate.CELLS.keys() & _gate.NOT_COMPARED.keys()
    assert all(_gate.cells_of(FOLDER, name) for name in _gate.CELLS)


def test_every_cell_has_a_last_one():
    assert _gate.cells(FOLDER).keys() <= _gate.read_last(FOLDER).keys()


def test_every_model_source_and_policy_has_a_recorded_cell():
    record = json.loads((FOLDER / "results/every_model.json").read_text(encoding="utf-8"))
    assert record["numbers"].keys() == every_model.FITS.keys() | every_model.POLICIES.keys()
    measured = {key.rpartition(", ")[2] for key in _gate.cells_of(FOLDER, "every_model")}
    assert measured == {"r2", "told", "covered", "width", "cost", "regret"}


MEASURED = {"line": ("r2", "covered", "told"), "policy": ("regret",)}
KINDS = {
    **{f"LinearRegression, {model},": MEASURED["line"] for model in MODELS},
    **dict.fromkeys(
        (
            "LinearRegression, p=100", "LinearRegression, parts of", "LinearRegression, polars",
            "LinearRegression, Dask", "LinearRegression, Parquet", "LinearRegression, DuckDB",
            "LinearRegression, batches", "LinearRegression, persons", "LinearRegression, weights",
        ), MEASURED["line"],
    ),
    "SSPRegressor, lazy polars": ("r2",), "LinearRegression, shuffled parts": ("r2",),
    "LogisticRegression, five classes": ("told", "cost"),
    "LogisticRegression, two classes": ("r2", "told"),
    **{
        f"LinUCB, {model}, {kind} an intercept": MEASURED["policy"]
        for model in MODELS for kind in ("with", "without")
    },
    **{
        f"{policy}, {kind} an intercept": MEASURED["policy"]
        for policy in ("LinSquareCB", "SquareCB", "EpochGreedy", "ActionElimination")
        for kind in ("with", "without")
    },
}  # fmt: skip


@pytest.fixture(scope="module", params=[_gate.cells, _gate.read_last], ids=["now", "last"])
def recorded_cells(request):
    return request.param(FOLDER)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_cell_of_each_of_its_measures(kind, recorded_cells):
    """Trust models, classes, parts, lazy frames, p = 100, policies with an intercept or without."""
    keys = [key for key in recorded_cells if key.startswith(f"every_model: {kind}")]
    for measure in KINDS[kind]:
        assert any(key.rpartition(", ")[2].startswith(measure) for key in keys), measure


def test_every_public_estimator_and_policy_of_a_trust_model_has_a_cell():
    """Meta-policies, references and adapters play others."""
    others = {"BanditCombiner", "EpsilonGreedy", "LassoBandit", "RandomPolicy", "FLIPHAT"}
    public = [vars(room)[name] for room in (bandits, linear_model) for name in room.__all__]
    learners = [kind for kind in public if isinstance(kind, type) and issubclass(kind, Accounted)]
    keys = _gate.cells(FOLDER)
    for name in {kind.__name__ for kind in learners} - others:
        assert any(key.startswith(f"every_model: {name},") for key in keys), name
    assert len(learners) - len(others) > 10


@pytest.mark.parametrize("by, noise, is_worse", [
    (-0.02, 0.0, True), (-0.004, 0.0, False), (0.02, 0.0, False),
    (-0.02, 0.01, True), (-0.02, 0.05, False),
])  # fmt: skip
def test_a_cell_is_worse_by_more_than_the_error_of_the_same_seeds(by, noise, is_worse):
    """Seeds differ by a standard deviation of .03 here, which a comparison of means would allow."""
    last = {"one": Cell("a: r2", "r2", TEN)}
    assert bool(worse_cells(last, {"one": moved(by, noise)})) is is_worse


@pytest.mark.parametrize("measure, factor, is_worse", [
    ("regret", 1.2, True), ("regret", 1.02, False), ("regret", 0.5, False),
    ("cost", 1.2, True), ("cost", 1.1, False),
    ("rough cost", 1.9, False), ("rough cost", 2.1, True),
    ("told", 0.9, True), ("told", 0.98, False),
    ("covered at .95", 0.96, False), ("covered at .9", 0.85, True), ("speed", 0.6, True),
])  # fmt: skip
def test_more_is_better_or_worse(measure, factor, is_worse):
    """Costs of one seed spread on a busy machine: the least of them is compared."""
    runs = dict.fromkeys(TEN, 1.0)
    last = Cell("a", measure, runs), Cell("a", measure, {key: factor for key in runs})
    worse, error = difference(*last)
    assert bool(worse > error) is is_worse


def test_a_coverage_above_its_level_may_fall_to_it():
    last, new = (Cell("a", "covered at .95", dict.fromkeys(TEN, v)) for v in (1.0, 0.95))
    worse, error = difference(last, new)
    assert worse == 0.0 < error


def test_one_number_is_compared_by_its_error():
    last, new = (Cell("a", "regret", {"": v}, 5.0) for v in (100.0, 130.0))
    assert difference(last, new) == (pytest.approx(0.3), pytest.approx(3.0 * 50**0.5 / 100.0))
    worse, error = difference(Cell("a", "regret", {"": 1.0}), Cell("a", "regret", {"": 1.07}))
    assert worse > error == 0.06


def test_runs_are_compared_by_their_mean_with_a_mean():
    last = Cell("a", "covered at .95", {"": 0.95})
    worse, _ = difference(last, Cell("a", "covered at .95", {"0": 1.0, "1": 0.9, "2": 0.95}))
    assert worse == pytest.approx(0.0)


def test_a_cell_that_is_gone_is_worse():
    assert list(worse_cells({"one": Cell("a: r2", "r2", TEN)}, {})) == ["one"]


def test_a_small_loss_everywhere_is_seen():
    """.004 of R2 is within the slack of one cell, and not within that of ten."""
    last = {f"b: {place}": Cell("a: r2", "r2", TEN) for place in range(10)}
    now = {key: moved(-0.004, 0.05) for key in last}
    assert list(worse_cells(last, now)) == ["b: all of a: r2"]


def test_what_is_worse_is_named_with_a_reason_that_the_changelog_has():
    worse = {"one: two": "is worse"}
    accepted = [{"cells": ["one: *"], "reason": "It takes\nlonger."}]
    assert list(unnamed(worse, [], "")) == ["one: two is worse"]
    assert not list(unnamed(worse, accepted, "- Fits: It takes longer."))
    assert len(list(unnamed(worse, accepted, ""))) == 1
    assert len(list(unnamed({}, accepted, "It takes longer."))) == 1


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A place for records of code that is committed."""
    monkeypatch.setattr(_record, "_git", lambda *command: "" if "status" in command else "abc")
    monkeypatch.setattr(_record, "HERE", tmp_path)
    monkeypatch.setattr(_record, "replaces", False)
    return tmp_path


def recorded(folder, name="every_model"):
    return json.loads((folder / f"results/{name}.json").read_text(encoding="utf-8"))


def test_a_record_keeps_what_a_run_did_not_measure(folder):
    _record.record("every_model", {"a": {"r2": [0.5, 0.6, 0.7]}, "b": {"r2": [0.5, 0.6, 0.7]}})
    _record.record("every_model", {"b": {"r2": [0.6, 0.7, 0.8, 0.9]}, "c": {"cost": [1.0]}})
    found = recorded(folder)
    assert found["numbers"] == {
        "a": {"r2": [0.5, 0.6, 0.7]}, "b": {"r2": [0.6, 0.7, 0.8, 0.9]}, "c": {"cost": [1.0]},
    }  # fmt: skip
    assert len(found["earlier"]) == 1
    last = _gate.read_last(folder)
    assert len(last["every_model: b, r2"].runs) == 4 and "every_model: c, cost" in last


@pytest.mark.parametrize("fewer", [
    {"a": {"r2": [0.5]}}, {"runs": 2}, {"fits": {"0.0": 1.0}}, {"nested": [[1.0], [1.0, 2.0]]},
])  # fmt: skip
def test_fewer_runs_are_refused_and_kept_beside(folder, fewer, capsys, monkeypatch):
    whole = {
        "a": {"r2": [0.5, 0.6]}, "runs": 3, "fits": {"0.0": 1.0, "0.1": 1.0},
        "nested": [[1.0, 2.0], [1.0, 2.0]], "only": ["one", "two"], "width": {"x": 1.0, "y": 2.0},
    }  # fmt: skip
    _record.record("some", whole)
    _record.record("some", fewer)
    assert recorded(folder, "some")["numbers"] == whole
    assert "--replace" in capsys.readouterr().out
    kept = json.loads((folder / "results/some.refused").read_text(encoding="utf-8"))
    assert kept["numbers"] == fewer
    monkeypatch.setattr(_record, "replaces", True)
    _record.record("some", fewer)
    assert recorded(folder, "some")["numbers"] == {**whole, **fewer}


def test_words_and_columns_are_no_runs(folder):
    _record.record("some", {"only": ["one", "two"], "width": {"x": 1.0, "y": 2.0}})
    _record.record("some", {"only": ["one"], "width": {"x": 3.0}})
    assert recorded(folder, "some")["numbers"] == {"only": ["one"], "width": {"x": 3.0, "y": 2.0}}


def test_every_script_understands_replace(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["some.py", "--seeds", "3", "--replace"])
    assert _record._takes_replace() and sys.argv == ["some.py", "--seeds", "3"]
    assert not _record._takes_replace()


@pytest.mark.parametrize("new, stays", [(0.8, False), (0.503, True), (0.2, True)])
def test_what_is_better_is_compared_with_from_then_on(folder, new, stays):
    """A cell that is worse, or no better than chance explains, does not move the bar."""
    _record.record("every_model", {"a": {"r2": [0.5] * 4}})
    _record.record("every_model", {"a": {"r2": [new] * 4}})
    last = _gate.read_last(folder)["every_model: a, r2"].runs
    assert last["0"] == (0.5 if stays else new)
    worse = worse_cells(_gate.read_last(folder), _gate.cells(folder))
    assert bool(worse) is (new == 0.2)


def test_last_cells_are_read_as_they_were_written(tmp_path):
    kept = {"a": Cell("k", "r2", TEN), "b": Cell("k", "regret", {"": 2.0}, 0.5),
            "c": Cell("k", "r2", {"0.0": 1.0, "1.3": 2.0})}  # fmt: skip
    _gate.write_last(tmp_path, kept)
    assert _gate.read_last(tmp_path) == kept
