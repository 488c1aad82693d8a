"""`check`, `describe` and `report`: tables as they are written in other countries, and a page."""

import numpy as np
import pytest

from skpriv._cli import main

pd = pytest.importorskip("pandas")
N = 1000
WRITTEN = "--decimal", ",", "--encoding", "utf-8"
FRENCH = """\
["né le"]
type = "date"
low = "1950-01-01"
high = "2005-12-31"
format = "%d/%m/%Y"
[salaire]
type = "numeric"
low = 0
high = 10000
thousands = " "
[ville]
type = "categorical"
categories = ["Orléans", "Rennes"]
other = false
"""


@pytest.fixture
def french(tmp_path):
    """Semicolons, decimal commas, thin blanks, decomposed accents, latin marks of currency."""
    rng = np.random.RandomState(0)
    towns = rng.choice(["Orle\u0301ans", "Orléans", "Rennes"], N)
    lines = ["né le;salaire;ville"]
    for town, pay in zip(towns, rng.uniform(1000, 9000, N), strict=True):
        said = f"{pay:,.2f}".replace(",", "\u202f").replace(".", ",") + " €"
        day, month, year = rng.randint(1, 29), rng.randint(1, 13), rng.randint(1950, 2006)
        lines.append(f"{day:02}/{month:02}/{year};{said};{town}")
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "schema.toml").write_text(FRENCH, encoding="utf-8")
    return tmp_path


def run(*arguments):
    return main([str(argument) for argument in arguments])


def counts(said):
    """The numbers of each line of `check`, by column."""
    lines = [line.rsplit(maxsplit=5) for line in said.splitlines()[4:] if line.strip()]
    return {
        name: [int(cell.replace(",", "")) for cell in cells]
        for name, *cells in lines
        if len(cells) == 5
    }


def test_a_french_table_goes_the_whole_way_and_loses_no_cell(french, capsys):
    table, schema = french / "table.csv", ("--schema", french / "schema.toml", *WRITTEN)
    assert run("check", table, *schema) == 0
    said = capsys.readouterr().out
    assert "do not release" in said
    assert counts(said) == {name: [N, 0, 0, 0, 0] for name in ("né le", "salaire", "ville")}
    written = ("--ledger", french / "l.db", "--out", french / "d.csv", "--plot", french / "d.png")
    assert run("describe", table, *schema, "--epsilon", 5, "--seed", 0, *written) == 0
    assert "Ledger" in capsys.readouterr().out
    frame = pd.read_csv(french / "d.csv")
    assert {"column", "statistic", "estimate", "low", "high"} <= set(frame.columns)
    assert run("fit", table, *schema, "--target", "salaire", "--epsilon", 5, "--seed", 0,
               "--out", french / "m.json") == 0  # fmt: skip
    assert run("predict", french / "m.json", table, *WRITTEN[2:], "--out", french / "p.csv") == 0
    assert pd.read_csv(french / "p.csv")["prediction"].between(0, 10000).all()
    assert run("report", french / "m.json", "--out", french / "r.html", "--title", "Salaires",
               "--ledger", french / "l.db") == 0  # fmt: skip
    page = (french / "r.html").read_text(encoding="utf-8")
    assert "<h1>Salaires</h1>" in page and "<h2>Ledger</h2>" in page


def test_tabs_and_a_code_page(french, capsys):
    table, schema = french / "table.csv", ("--schema", french / "schema.toml", *WRITTEN[:2])
    text = table.read_text(encoding="utf-8").replace(";", "\t").replace("\u202f", "\xa0")
    table.write_text(text.replace("e\u0301", "é"), encoding="cp1252")
    assert run("check", table, *schema, "--encoding", "cp1252", "--sep", "\\t") == 0
    known = counts(capsys.readouterr().out)
    assert known == {name: [N, 0, 0, 0, 0] for name in ("né le", "salaire", "ville")}


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("check", "--encoding", "ascii"), "UTF-8"),
        (("check", "--private"), "--private and --epsilon"),
        (("check", "--encoding", "klingon"), "klingon"),
        (("check", "--sep", "::"), "--sep"),
        (("check", "--sep", ","), "say how it is written with --sep"),
        (("describe", "--epsilon", 1, "--columns", "taille"), "taille"),
        (("describe", "--epsilon", 1, "--pair", "ville"), "two different columns"),
        (("describe", "--epsilon", 1, "--out", "d.txt"), ".csv"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(french, capsys, arguments, said):
    command, *options = arguments
    schema = ("--schema", french / "schema.toml", *WRITTEN[: 2 if command == "fit" else None])
    assert run(command, french / "table.csv", *schema, *options) == 2
    error = capsys.readouterr().err
    assert said in error and len(error.strip().splitlines()) == 1


def test_an_encoding_that_nothing_tells_is_asked_for(french, capsys):
    """The header is ASCII, and the schema is not: the cells may be written in any code page."""
    table, schema = french / "table.csv", french / "schema.toml"
    text = table.read_text(encoding="utf-8")
    schema.write_text(FRENCH.replace('["né le"]', "[geboren]"), encoding="utf-8")
    table.write_text(text.replace("né le", "geboren"), encoding="utf-8")
    assert run("check", table, "--schema", schema) == 2
    assert "--encoding utf-8" in capsys.readouterr().err
    schema.write_text('encoding = "utf-8"\ndecimal = ","\n' + schema.read_text(encoding="utf-8"),
                      encoding="utf-8")  # fmt: skip
    assert run("check", table, "--schema", schema) == 0
    assert counts(capsys.readouterr().out)["salaire"] == [N, 0, 0, 0, 0]
    table.write_text(text.replace("né le", "geboren"), encoding="utf-8-sig")  # which says it itself
    schema.write_text(schema.read_text(encoding="utf-8").replace('encoding = "utf-8"\n', ""),
                      encoding="utf-8")  # fmt: skip
    assert run("check", table, "--schema", schema) == 0


def test_a_private_check_is_charged_to_a_ledger_and_may_be_released(french, capsys, tmp_path):
    table, schema = french / "table.csv", ("--schema", french / "schema.toml", *WRITTEN)
    command = ("check", table, *schema, "--private", "--epsilon", 1, "--ledger", tmp_path / "l.db")
    assert run(*command) == 0
    said = capsys.readouterr().out
    assert "Spent epsilon 1 of 1" in said and "do not release" not in said
    assert run(*command) == 2
    assert "cannot pay epsilon 1" in capsys.readouterr().err
    assert run("check", table, *schema, "--ledger", tmp_path / "l.db") == 2
    assert "--private" in capsys.readouterr().err


def test_a_file_in_another_encoding_than_the_schema_says_is_named(french, capsys):
    """Its header would be words of no language, and none of the columns."""
    table, schema = french / "table.csv", french / "schema.toml"
    schema.write_text('encoding = "cp1252"\ndecimal = ","\n' + FRENCH, encoding="utf-8")
    assert run("check", table, "--schema", schema) == 2
    assert "give --encoding utf-8" in capsys.readouterr().err
    assert run("check", table, "--schema", schema, "--encoding", "utf-8") == 0


def test_a_cell_with_a_line_feed_is_two_rows_and_is_said(tmp_path, capsys):
    (tmp_path / "schema.toml").write_text('[a]\ntype = "numeric"\nlow = 0\nhigh = 9\n')
    (tmp_path / "table.csv").write_text('a,b\n1,"two\nlines"\n2,x\n')
    command = ("check", tmp_path / "table.csv", "--schema", tmp_path / "schema.toml")
    assert run(*command) == 0
    told = capsys.readouterr().out
    assert "3 rows" in told and "2 lines do not close" in told
    assert run(*command, "--private", "--epsilon", 1) == 0
    assert "quotation" not in capsys.readouterr().out  # which is exact
