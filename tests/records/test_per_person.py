"""Aggregates of persons: one row each, from nobody else's rows."""

import numpy as np
import pandas as pd
import pytest

from skpriv.records import per_person

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

TABLE = {
    "who": ["b", "a", "b", None, "b"],
    "x": [1.0, 5.0, 2.0, 9.0, None],
    "year": [3, 1, 1, 1, 2],
}
RULES = {
    "x": "mean", "rows": "count", "top": ("x", "max"), "low": ("x", "min"), "all": ("x", "sum"),
    "start": ("year", "first"), "end": ("year", "last"),
}  # fmt: skip


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_every_rule_in_every_library(kind):
    found = per_person(kind(TABLE), "who", RULES)
    found = found.to_dict("list") if kind is pd.DataFrame else (
        found.to_dict(as_series=False) if kind is pl.DataFrame else found.to_pydict()
    )  # fmt: skip
    expected = {
        "x": [5.0, 1.5], "rows": [1, 3], "top": [5.0, 2.0], "low": [5.0, 1.0], "all": [5.0, 3.0],
        "start": [1, 3], "end": [1, 2],
    }  # fmt: skip
    assert list(found) == list(RULES) and found == expected


def test_first_and_last_may_follow_a_column():
    found = per_person(pd.DataFrame(TABLE), "who", {"x": "last", "y": ("x", "first")}, order="year")
    np.testing.assert_array_equal(found["x"], [5.0, 1.0])
    np.testing.assert_array_equal(found["y"], [5.0, 2.0])


def test_a_person_changes_one_row():
    rng = np.random.RandomState(0)
    table = pd.DataFrame({"who": rng.randint(0, 50, 400), "x": rng.normal(size=400)})
    other = table[table["who"] != 7]
    other = pd.concat([other, pd.DataFrame({"who": 7, "x": np.full(10_000, 1e9)})])
    rules = {"x": "mean", "last": ("x", "last"), "rows": "count"}
    before, after = (per_person(data, "who", rules).to_numpy() for data in (table, other))
    assert (before != after).any(axis=1).sum() == 1


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"x": "median"}, "a rule is one of"),
        ({"z": "mean"}, "'z' is not a column"),
        ({"who": "count"}, "no feature"),
        ({}, "mapping"),
        ("mean", "mapping"),
    ],
)
def test_wrong_rules_are_refused(rules, message):
    with pytest.raises(ValueError, match=message):
        per_person(pd.DataFrame(TABLE), "who", rules)
