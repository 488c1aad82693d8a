"""Everything before the first record of a file, and what is said of it: never a cell."""

import numpy as np
import pandas as pd
import pytest

from skpriv._cli import main
from skpriv._cli._frames import TextTable, read_table
from skpriv.preprocessing import Schema

ROWS = "".join(f"{20 + i % 50};F;{i % 9}\n" for i in range(50))
HEADER = "age;sex;days\n"
SCHEMA = """\
[age]
type = "numeric"
low = 0
high = 100
[sex]
type = "categorical"
categories = ["F", "M"]
[days]
type = "numeric"
low = 0
high = 20
"""
READ = {  # how a file begins or is written, and still is the same table
    "plain": HEADER + ROWS,
    "carriage returns": (HEADER + ROWS).replace("\n", "\r"),
    "both": (HEADER + ROWS).replace("\n", "\r\n"),
    "no last line end": (HEADER + ROWS).rstrip("\n"),
    "sep=": "sep=;\n" + HEADER + ROWS,
    "quoted sep=": '"SEP=;"\r\n' + (HEADER + ROWS).replace("\n", "\r\n"),
    "empty lines above": "\n  \n" + HEADER + ROWS,
    "ends of lines": "age;sex;days;;\n" + ROWS.replace("\n", ";;\n"),
    "row names": ';"age";"sex";"days"\n' + "".join(
        f'"{i}";{row}\n' for i, row in enumerate(ROWS.split())
    ),
    "bars": (HEADER + ROWS).replace(";", "|"),
    "tabs": (HEADER + ROWS).replace(";", "\t"),
    "commas": (HEADER + ROWS).replace(";", ","),
    "blanks in the header": " age ;\u00a0sex; days\n" + ROWS,
    "quoted names": '"age";"sex";"days"\n' + ROWS,
    "another order": "days;more;age;sex\n" + "".join(
        ";".join([r.split(";")[2], "x", *r.split(";")[:2]]) + "\n" for r in ROWS.split()
    ),
}  # fmt: skip
CODES = ["utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252"]


@pytest.fixture
def schema(tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return str(tmp_path / "schema.toml")


def expected():
    cells = [row.split(";") for row in ROWS.split()]
    return {name: [row[at] for row in cells] for at, name in enumerate(("age", "sex", "days"))}


@pytest.mark.parametrize("kind", READ)
def test_what_comes_before_the_first_record_changes_no_cell(kind, schema, tmp_path, capsys):
    path = tmp_path / "table.csv"
    path.write_bytes(READ[kind].encode())
    frame = read_table(path, Schema.read(schema))
    assert {name: frame[name].tolist() for name in ("age", "sex", "days")} == expected()
    assert main(["check", str(path), "--schema", schema]) == 0
    assert "50 rows" in capsys.readouterr().out


@pytest.mark.parametrize("encoding", CODES)
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_files_say_in_what_they_are_written(encoding, end, schema, tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes((HEADER + ROWS).replace("\n", end).encode(encoding))
    frame = read_table(path, Schema.read(schema))
    assert {name: frame[name].tolist() for name in ("age", "sex", "days")} == expected()


SECRET = "Smith-31337"
NO_HEADER = {  # a first line that is a row, or a title
    "numbers": f"34;F;{SECRET}\n" + ROWS,
    "blanks": f"3.4 69 {SECRET}\n4 5 x\n",
    "dates": f"{SECRET};31.12.1980;F\n",
    "ISO dates": f"{SECRET};1980-12-31T10:00;F\n",
    "decimal commas": f"{SECRET};12,5;F\n",
    "money": f"{SECRET};$5;F\n",
    "title": f"Export of {SECRET};;\n\n" + HEADER + ROWS,
    "comment": f"# {SECRET}\n" + HEADER + ROWS,
    "texts": f"{SECRET};F;Berlin\n" + ROWS,
    "one name twice": f"{SECRET};{SECRET} ;age\n" + ROWS,
    "no names": ";;;\n" + ROWS,
    "empty": "",
}


@pytest.mark.parametrize("kind", NO_HEADER)
def test_a_first_line_that_is_no_header_is_not_repeated(kind, schema, tmp_path, capsys):
    path = tmp_path / "table.csv"
    path.write_text(NO_HEADER[kind], encoding="utf-8")
    common = ["--epsilon", "1", "--schema", schema]
    for command in (
        ["check", str(path), "--schema", schema],
        ["describe", str(path), *common],
        ["fit", str(path), *common, "--target", "days", "--out", str(tmp_path / "m.json")],
        ["tradeoff", "--data", str(path), "--target", "days", "--schema", schema],
    ):
        assert main(command) == 2
        error = capsys.readouterr().err
        assert SECRET not in error and "31337" not in error
        assert any(word in error for word in ("first line", "--sep", "rename")), error


def test_columns_named_by_numbers_are_those_of_a_schema(tmp_path, capsys):
    """A first line of numbers is a header only where a schema says so."""
    path = tmp_path / "years.csv"
    path.write_text("name,2019,2020\na,1,2\nb,3,4\n")
    assert main(["schema", str(path)]) == 2
    assert "2019" not in (error := capsys.readouterr().err) and "y2020" in error
    (tmp_path / "schema.toml").write_text(
        "".join(f'["{y}"]\ntype = "numeric"\nlow = 0\nhigh = 9\n' for y in (2019, 2020))
    )
    assert main(["check", str(path), "--schema", str(tmp_path / "schema.toml")]) == 0


def test_files_of_another_kind_are_named(schema, tmp_path, capsys):
    """`tradeoff` printed the bytes of a Parquet file as names of columns."""
    pytest.importorskip("pyarrow")
    columns = {"age": np.arange(40.0), "sex": "F", "days": np.arange(40.0) % 7, "name": SECRET}
    frame = pd.DataFrame(columns)
    frame.to_parquet(tmp_path / "table.parquet")
    (tmp_path / "table.csv").write_bytes((tmp_path / "table.parquet").read_bytes())
    (tmp_path / "sheet.csv").write_bytes(b"PK\x03\x04" + SECRET.encode())
    study = ["--target", "days", "--schema", schema, "--estimators", "ssp", "--repeats", "1"]
    study += ["--epsilons", "1", "--cv", "2", "--seed", "0"]
    for name, remedy in (("table", "name it .parquet"), ("sheet", "save it as CSV")):
        path = str(tmp_path / f"{name}.csv")
        check = ["check", path, "--schema", schema]
        for command in (["tradeoff", "--data", path, *study], check):
            assert main(command) == 2
            assert remedy in (error := capsys.readouterr().err) and SECRET not in error
    assert main(["tradeoff", "--data", str(tmp_path / "table.parquet"), *study]) == 0
    assert "40 rows, 2 features" in capsys.readouterr().out


def test_names_with_line_feeds_in_quotation_marks(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('"age\nin years","sex",days\n1,F,2\n3,"M\n')
    table = TextTable.read(path)
    assert table.names == {0: "age in years", 1: "sex", 2: "days"} and len(table.lines) == 2
    path.write_text('"age,sex\n1,2\n')  # a quotation mark that nobody closes ends with the line
    assert len(TextTable.read(path).lines) == 1


def test_the_curator_hears_how_a_boolean_names_its_words(tmp_path, capsys):
    table, schema = tmp_path / "table.csv", tmp_path / "schema.toml"
    table.write_text("a\noui\nnon\n")
    hint = "by true = [...], false = [...]"
    for words, told in (("", True), ('true = ["oui"]\nfalse = ["non"]\n', False)):
        schema.write_text(f'[a]\ntype = "boolean"\n{words}')
        assert main(["check", str(table), "--schema", str(schema)]) == 0
        assert (hint in capsys.readouterr().out) == told


def test_the_curator_hears_what_is_strange(tmp_path, capsys):
    path = tmp_path / "table.csv"
    path.write_bytes("a;b\n1;2;\n1;2;x\nalone\n1\r;2\n".encode())
    assert main(["schema", str(path)]) == 0
    said = capsys.readouterr()
    for words in ("have more cells", "have no separator", "have a carriage return"):
        assert f"1 lines {words}" in said.err
    assert said.out.count("\ntype = ") == 2 and '\nencoding = "utf-8"\n' in said.out
    assert "# low =" in said.out and "role =" in said.out
