"""What is said once serves all commands: persons, outcomes, how a table is written; predictions."""

import numpy as np
import pandas as pd
import pytest

import skpriv
from skpriv import BudgetAccountant, describe
from skpriv._cli import main
from skpriv.exceptions import PrivacyError
from skpriv.preprocessing import Schema

N_PERSONS, EACH = 300, 3
HEAD = """\
encoding = "cp1252"
sep = ";"
decimal = ","
person = "Fall Nr"
limit = 2

"""
COLUMNS = """\
["Alter, Jahre"]
type = "numeric"
low = 0
high = 100
usual = [20, 80]

[raucht]
type = "boolean"
true = ["ja"]
false = ["nein"]

["Größe"]
type = "numeric"
low = 100
high = 220

[Tage]
type = "numeric"
low = 0
high = 40
role = "outcome"

[verstorben]
type = "boolean"
true = ["ja"]
false = ["nein"]
role = "outcome"
"""


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    """A register of a German clinic: each person comes three times, under three spellings."""
    folder = tmp_path_factory.mktemp("clinic")
    rng = np.random.RandomState(0)
    age = rng.uniform(20, 90, N_PERSONS * EACH)
    words = np.where(rng.rand(3, N_PERSONS * EACH) < 0.4, "ja", "nein")
    days = np.clip(0.3 * age + rng.normal(0, 2, len(age)), 0, 40)
    lines = ["Fall Nr;Alter, Jahre;raucht;Größe;Tage;verstorben;"]
    for i, years in enumerate(age):
        person, at = divmod(i, EACH)
        name = [f"{person + 1}", f" {person + 1:05}", f"{person + 1}.0"][at]
        name = ["", "NA", " "][at] if person == N_PERSONS - 1 else name
        numbers = f"{years:.1f};{words[0, i]};{150 + i % 50},5;{days[i]:.1f}".replace(".", ",")
        lines.append(f"{name};{numbers};{words[1, i]};")
    (folder / "table.csv").write_text("\r\n".join(lines) + "\r\n", encoding="cp1252")
    (folder / "schema.toml").write_text(HEAD + COLUMNS, encoding="utf-8")
    return folder


def run(*arguments):
    return main([str(argument) for argument in arguments])


def refused(code, capsys, *words):
    error = capsys.readouterr().err
    assert code == 2 and len(error.strip().splitlines()) == 1
    for word in words:
        assert word in error


def test_a_schema_says_it_once(clinic, tmp_path, capsys):
    """No command needs an option for what stands in the schema, and `predict` has none."""
    table, schema = clinic / "table.csv", ("--schema", clinic / "schema.toml")
    assert run("check", table, *schema) == 0
    told = capsys.readouterr().out
    for words in ("300 persons in 'Fall Nr'", "3 rows have no person", "300 persons are written in",
                  "300 persons have more rows than the limit, 2 of each"):  # fmt: skip
        assert words in told
    for name in ("Alter, Jahre", "raucht", "Größe", "Tage", "verstorben"):
        (line,) = [line for line in told.splitlines() if line.startswith(name)]
        assert line.split()[-5:] == ["900", "0", "0", "0", "0"]
    assert run("check", table, *schema, "--private", "--epsilon", 1) == 0
    assert "900 rows" not in (told := capsys.readouterr().out) and "300" in told
    assert run("describe", table, *schema, "--epsilon", 5, "--columns", '"alter, jahre"') == 2
    capsys.readouterr()
    assert run("describe", table, *schema, "--epsilon", 5, "--columns", '"Alter, Jahre"') == 0
    assert "300 persons" in capsys.readouterr().out
    model = tmp_path / "m.json"
    fit = ("fit", table, *schema, "--epsilon", 9, "--seed", 0, "--target", "Tage", "--out", model)
    assert run(*fit) == 0
    told = capsys.readouterr()
    assert "300 persons" in told.out
    assert "'Fall Nr' count as" in told.out
    assert "Left out, as outcomes: verstorben." in told.err
    assert run("predict", model, table, "--out", tmp_path / "p.csv") == 0


def test_outcomes_are_no_features_in_silence(clinic, tmp_path, capsys):
    table, schema = clinic / "table.csv", ("--schema", clinic / "schema.toml")
    fit = ("fit", table, *schema, "--epsilon", 9, "--seed", 0, "--plan")
    refused(run(*fit), capsys, "Name one target", 'role = "target"')
    named = ("--target", "Tage", "--features", '"Alter, Jahre",raucht', "--features", "verstorben")
    out = ("--out", tmp_path / "m.json")
    assert run(*fit[:-1], *named, *out) == 0
    told = capsys.readouterr()
    assert "verstorben=ja" in told.out and "Größe" not in told.out
    assert "as outcomes" not in told.err
    only = (clinic / "schema.toml").read_text(encoding="utf-8").rpartition("\nrole")
    # A single outcome is the target
    (tmp_path / "one.toml").write_text(only[0] + "\n", encoding="utf-8")
    assert run("fit", table, "--schema", tmp_path / "one.toml", *fit[4:]) == 0
    wrong = ("--target", "Tage", "--features", "Alter, Jahre")
    refused(run(*fit, *wrong), capsys, "'Alter'", "quotation marks")


def test_the_unit_of_a_ledger_is_the_default_of_group(clinic, tmp_path, capsys):
    bare = tmp_path / "schema.toml"
    bare.write_text(HEAD.partition("person")[0] + COLUMNS, encoding="utf-8")
    table, ledger = clinic / "table.csv", tmp_path / "ledger"
    assert run("budget", ledger, "--epsilon", 9, "--unit", "Fall Nr:2") == 0
    check = ("check", table, "--schema", bare, "--private", "--epsilon", 1, "--ledger", ledger)
    assert run(*check) == 0
    capsys.readouterr()
    assert run(*check, "--max-rows", 1) == 0
    refused(run(*check, "--max-rows", 3), capsys, "at most 2 rows")
    refused(run(*check, "--group", "raucht"), capsys, "take it out")
    (charge,) = {charge.unit for charge in BudgetAccountant(ledger=ledger).charges[:1]}
    assert charge == "Fall Nr:2"
    other = tmp_path / "other"
    assert run("budget", other, "--epsilon", 9, "--unit", "Patient:2") == 0
    refused(run(*check[:-1], other), capsys, "--ledger", "as its unit", "'Patient'")
    assert run("check", table, "--schema", bare, "--private", "--epsilon", 1) == 0
    assert "900 rows" in capsys.readouterr().out


def test_python_takes_the_person_of_a_schema(clinic):
    frame = pd.read_csv(clinic / "table.csv", sep=";", decimal=",", encoding="cp1252", dtype=str)
    schema = Schema.read(clinic / "schema.toml")
    settings = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0, "columns": ["raucht"]}
    assert describe(frame, schema, **settings).n == N_PERSONS
    with BudgetAccountant(9.0, 1e-6, unit="row") as accountant, pytest.raises(PrivacyError):
        describe(frame, schema, **settings)
    assert not accountant.charges


def test_predictions_have_keys_intervals_and_digits_that_mean_something(clinic, tmp_path, capsys):
    table, schema = clinic / "table.csv", ("--schema", clinic / "schema.toml")
    model, out = tmp_path / "m.json", tmp_path / "p.csv"
    assert run("fit", table, *schema, "--epsilon", 9, "--seed", 0, "--target", "Tage",
               "--out", model) == 0  # fmt: skip
    predict = ("predict", model, table, "--out", out, "--force")
    capsys.readouterr()
    assert run(*predict, "--keep", "Fall nr") == 2
    assert run(*predict, "--keep", "Fall Nr", "--keep", "raucht", "--confidence-level", 0.5) == 0
    assert "the model may be published" in capsys.readouterr().err
    found = pd.read_csv(out, dtype=str, keep_default_na=False)
    assert list(found) == ["Fall Nr", "raucht", "prediction", "low", "high"]
    assert found["Fall Nr"].tolist()[:2] == ["1", " 00001"]
    numbers = found[["low", "prediction", "high"]].astype(float).to_numpy()
    assert (np.diff(numbers, axis=1) >= 0.0).all()
    assert max(len(text.partition(".")[2]) for text in found["prediction"]) <= 4
    exact = skpriv.load(model).predict(
        pd.read_csv(table, sep=";", encoding="cp1252", dtype=str)
    )  # fmt: skip
    np.testing.assert_allclose(numbers[:, 1], exact, atol=0.006)
    assert run(*predict) == 0
    wide = pd.read_csv(out)
    assert ((wide["high"] - wide["low"]) >= numbers[:, 2] - numbers[:, 0] - 0.02).all()


def test_a_schema_is_printed_with_what_was_said(clinic, tmp_path, capsys):
    said = ("--encoding", "cp1252", "--sep", ";", "--group", "fall nr ", "--max-rows", 2)
    assert run("schema", clinic / "table.csv", *said) == 2
    capsys.readouterr()
    said = (*said[:5], "Fall Nr", *said[6:])
    assert run("schema", clinic / "table.csv", *said) == 0
    schema = Schema.from_toml(capsys.readouterr().out)
    given = {"encoding": "cp1252", "sep": ";", "person": "Fall Nr", "limit": 2}
    assert run("schema", clinic / "table.csv", *said[:-2]) == 0
    assert 'person = "Fall Nr"\nlimit = 1\n' in capsys.readouterr().out
    assert schema.table_format.given() == given and "Fall Nr" not in schema
    assert [column.kind for column in schema.values()] == [
        "numeric", "categorical", "numeric", "numeric", "categorical",
    ]  # fmt: skip
