"""Commands given cells that nobody can use: they cost their own row, and no message quotes them."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from skpriv import BudgetAccountant
from skpriv._cli import main
from skpriv._cli._frames import TextTable, read_table
from skpriv.preprocessing import Numeric, Schema

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
N = 200
SECRET = "HIV 31337"
SCHEMA = """\
[age]
type = "numeric"
low = 0
high = 120
[sex]
type = "categorical"
categories = ["F", "M"]
[born]
type = "date"
low = "1950-01-01"
high = "2005-12-31"
[smoker]
type = "boolean"
[stay]
type = "numeric"
low = 0
high = 90
"""
LINES = [
    f"{SECRET},F,{SECRET},{SECRET},{SECRET}",
    f'"{SECRET},F',
    "",
    f"1,F\r{SECRET},2",
    f"1e999,{SECRET}",
    f"{SECRET}," * 50,
    f"\x00{SECRET}\udcff",
]


def _broken_text():
    """Arrow texts of which none is UTF-8."""
    broken = pa.array([b"\xff\xfe" + SECRET.encode()])
    text = pa.Array.from_buffers(pa.string(), 1, broken.buffers())
    return text.take(pa.array([0] * N))


CELLS = {
    "text": lambda: pa.array([SECRET] * N),
    "bytes": lambda: pa.array([b"\xff" + SECRET.encode()] * N),
    "no UTF-8": _broken_text,
    "list": lambda: pa.array([[SECRET]] * N),
    "record": lambda: pa.array([{"a": SECRET}] * N),
    "categories": lambda: pa.array([SECRET] * N).dictionary_encode(),
    "no value": lambda: pa.nulls(N),
    "large integer": lambda: pa.array([2**64 - 31337] * N, pa.uint64()),
    "far date": lambda: pa.array([2**31 - 31337] * N, pa.date32()),
    "duration": lambda: pa.array([31337] * N, pa.duration("s")),
    "time of day": lambda: pa.array([dt.time(3, 13, 37)] * N),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cells")
    (path / "schema.toml").write_text(SCHEMA)
    rng = np.random.RandomState(0)
    rows = [f"{rng.randint(120)},F,1970-01-01,true,{rng.randint(90)}" for _ in range(N)]
    (path / "good.csv").write_text("\n".join(["age,sex,born,smoker,stay", *rows]) + "\n")
    assert main(_commands(path, path / "good.csv", "model.json")["fit"]) == 0
    return path


def _commands(folder, table, out="again.json"):
    table, schema = str(table), ["--schema", str(folder / "schema.toml")]
    cost = ["--epsilon", "1", "--seed", "0"]
    model, written = str(folder / "model.json"), str(folder / "out.csv")
    fit = ["fit", table, *schema, "--target", "stay", *cost, "--force"]
    found = {
        "fit": [*fit, "--out", str(folder / out)],
        "predict": ["predict", model, table, "--out", written, "--force"],
        "check": ["check", table, *schema],
        "private check": ["check", table, *schema, "--private", "--epsilon", "1"],
        "describe": ["describe", table, *schema, *cost],
    }
    if table.endswith(".csv"):
        study = ["tradeoff", "--data", table, "--target", "stay"]
        study += [*schema, "--estimators", "ssp", "--epsilons", "1"]
        found["tradeoff"] = [*study, "--repeats", "1", "--cv", "2"]
    return found


def _exit_codes(commands, capsys):
    """Yield names and exit codes; only "check" tells its owner cells that no schema knows."""
    words = ("HIV", "31337", "18446744", "21474", "03:13", "codec", "Trace")
    for name, command in commands.items():
        code, said = main(command), "".join(capsys.readouterr())
        assert name == "check" or not any(word in said for word in words)
        yield name, code, said


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_a_csv_file(line, folder, capsys):
    lines, path = (folder / "good.csv").read_text().splitlines(), folder / "bad.csv"
    text = "\n".join([*lines[:9], line, *lines[9:], ""])
    path.write_bytes(text.encode(errors="surrogateescape"))
    for name, code, _ in _exit_codes(_commands(folder, path), capsys):
        assert code == 0, name


@pytest.mark.parametrize("encoding", ["iso2022_jp", "hz", "utf_7", "utf-8-sig", "utf-16"])
def test_no_cell_shifts_the_code_of_the_next_line(encoding, tmp_path):
    """Some encodings have signs that change what follows, beyond the line feed."""
    text, path = "a,b\n1,2\nxx\n3,4\n5,6\n".encode(encoding), tmp_path / "table.csv"
    for bad in (b"\x1b$", b"~{", b"+-", b"\xff\xfe"):
        if encoding != "utf-16":
            path.write_bytes(text.replace(b"xx", bad))
        else:
            path.write_bytes(text.replace("xx".encode("utf-16-le"), (2 * bad)[:4]))
        schema = Schema({}, encoding=encoding.replace("-sig", ""))  # a mark is no letter
        cells = TextTable.read(path, schema).columns()
        for name, values in (("a", ["1", "3", "5"]), ("b", ["2", "4", "6"])):
            assert cells[name][:1] + cells[name][2:] == values and len(cells[name]) == 4


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("encoding, cell", [
    ("utf-7", b"+2AA-"), ("raw_unicode_escape", b"\\ud800"), ("unicode_escape", b"\\q"),
])  # fmt: skip
def test_half_of_a_letter_is_no_text_and_no_error(encoding, cell, tmp_path):
    """Frames of tables refuse it, before a charge; an unknown escape warns."""
    path = tmp_path / "table.csv"
    path.write_bytes(b"a,b\n1,2\n%b,3\n" % cell)
    frame = pd.DataFrame(read_table(path, Schema({}, encoding=encoding)))
    assert frame.shape == (2, 2) and frame["b"].tolist() == ["2", "3"]


def test_a_mark_in_a_record_does_not_end_the_header(tmp_path):
    """A header with an open mark went on to the next one of a record, whose cells became names."""
    schema = Schema({name: Numeric(0, 9) for name in ("a", '12" pipes')})
    for record in ("3,4", '3,4"', '"3,4'):
        path = tmp_path / "table.csv"
        path.write_text(f'a,12" pipes\n1,2\n{record}\n5,6\n')
        for known in (schema, schema.with_target("a"), schema.select(["a"])):
            assert TextTable.read(path, known).lines == ["1,2", record, "5,6"]


# What a numeric column cannot be, by its dtype: what it holds, and a word of what to do
NO_NUMBERS = {
    "list": ("lists or records", "make a column of each"),
    "record": ("lists or records", "make a column of each"),
    "far date": ("dates", "Date(low, high)"),
    "duration": ("durations", "unit='day'"),
    "time of day": ("times of day", "hours since midnight"),
}


@pytest.mark.parametrize("kind", CELLS)
def test_columns_of_a_parquet_file(kind, folder, capsys):
    """All commands refuse what no cell of a dtype can be, with a remedy, before any charge."""
    path, ledger = folder / "bad.parquet", folder / f"{kind}.db"
    names = ["age", "sex", "born", "smoker", "stay", "person"]
    pq.write_table(pa.table(dict.fromkeys(names, CELLS[kind]())), path)
    commands = _commands(folder, path)
    commands["fit of persons"] = [*commands["fit"], "--group", "person"]
    with BudgetAccountant(100.0, 0.5, ledger=ledger):
        pass
    for name, command in commands.items():
        if name not in ("check", "predict", "fit of persons"):
            commands[name] = [*command, "--ledger", str(ledger)]
    for name, code, said in _exit_codes(commands, capsys):
        assert code == (2 if kind in NO_NUMBERS else 0), name
        if kind in NO_NUMBERS:
            holds, remedy = NO_NUMBERS[kind]
            assert any(f"'{column}'" in said for column in names) and holds in said, name
            assert remedy in said, name
    with BudgetAccountant(100.0, 0.5, ledger=ledger) as accountant:
        assert bool(accountant.charges) is (kind not in NO_NUMBERS)
