"""No CSV file that a command writes has a cell that a spreadsheet takes for a formula."""

import csv

import numpy as np
import pandas as pd
import pytest
from registry.names import HOSTILE_NAMES

from skpriv._cli import main
from skpriv.preprocessing import reads_as_value

FORMULAS = [
    "=cmd|' /C calc'!A0", '=HYPERLINK("http://x","y")', "+1+cmd()", "-2+3", "@SUM(A1)", " =1+1",
    "\t=1+1", "\r=1+1", "\n@x", "=", "+", "-",
]  # fmt: skip
NUMBERS = ["-5", "+5", "-1.5e3", "+49"]


def cells(path):
    """All cells of a file, its header among them."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def run(*words):
    return main([str(word) for word in words])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table whose names, levels and cells are formulas, its schema, and a model of it."""
    tmp_path = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame({"=x": rng.random(n), "@y": rng.random(n)})
    frame["k"] = rng.choice(FORMULAS, n)
    frame["number"] = rng.choice([*FORMULAS, *NUMBERS, *HOSTILE_NAMES], n)
    frame.loc[: len(NUMBERS) - 1, "number"] = NUMBERS
    table = tmp_path / "table.parquet"
    frame.to_parquet(table)
    levels = [level for level in FORMULAS if level.strip() == level]
    schema = tmp_path / "schema.toml"
    numeric = 'type = "numeric"\nlow = 0\nhigh = 1\n'
    schema.write_text(
        f'["=x"]\n{numeric}["@y"]\n{numeric}[k]\ntype = "categorical"\ncategories = {levels!r}\n'
    )
    model = tmp_path / "model.json"
    options = ("--schema", schema, "--target", "@y", "--epsilon", 10, "--out", model)
    assert run("fit", table, *options) == 0
    return table, schema, model


def check(found):
    for row in found:
        for cell in row:
            risky = cell.lstrip().startswith(("=", "+", "-", "@"))
            assert not risky or reads_as_value(cell), cell


def test_kept_cells_of_predictions_are_no_formulas(files, tmp_path):
    table, _, model = files
    out = tmp_path / "out.csv"
    keep = ("--keep", '"=x"', "--keep", "number", "--keep", "k")
    assert run("predict", model, table, "--out", out, *keep) == 0
    header, *rows = cells(out)
    check([header, *rows])
    assert header[:3] == ["'=x", "number", "k"]
    # Numbers are what they were, and texts but for the sign in front of them
    assert [row[1] for row in rows[: len(NUMBERS)]] == NUMBERS
    numbers = pd.read_parquet(table)["number"]
    assert all("\n" not in cell and "\r" not in cell for row in rows for cell in row)
    for row, text in zip(rows, numbers, strict=True):  # each row is one line
        assert row[1].lstrip("'").split() == text.lstrip("'").split()


def test_nor_are_names_in_a_description(files, tmp_path):
    table, schema, _ = files
    out = tmp_path / "out.csv"
    assert run("describe", table, "--schema", schema, "--epsilon", 9, "--out", out) == 0
    found = cells(out)
    check(found)
    assert {"'=x", "'@y", "k"} <= {row[0] for row in found}
