"""The commands `fit`, `predict` and `budget`: from a raw table to a published model."""

import json
import os
import re

import numpy as np
import pandas as pd
import pytest
from registry.refusals import one_sentence
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline

import skpriv
from skpriv import BudgetAccountant
from skpriv._cli import main
from skpriv._cli._arguments import PRIVATE
from skpriv._cli._frames import read_table
from skpriv.preprocessing import (
    Boolean, Categorical, Date, Numeric, Ordinal, Schema, TableEncoder,
)  # fmt: skip
from skpriv.privacy import capabilities

SCHEMA = """
[age]
type = "numeric"
low = 18
high = 95
unit = "year"

[bmi]
type = "numeric"
low = 10
high = 60
missing = "indicator"

[sex]
type = "categorical"
categories = ["F", "M"]
missing = "indicator"
other = false

[ward]
type = "categorical"
categories = ["medicine", "surgery", "icu"]

[smoker]
type = "boolean"

[stay]
type = "numeric"
low = 0
high = 60
"""


def table(n=2_000, seed=0):
    """Text, holes and values that nobody expected; a skewed target."""
    rng = np.random.RandomState(seed)
    age, bmi = np.clip(rng.gamma(9, 5, n), 18, 95), rng.normal(27, 5, n)
    sex, smoker = rng.choice(["F", "M"], n), rng.choice([True, False], n, p=[0.3, 0.7])
    ward = rng.choice(["surgery", "medicine", "icu", "attic"], n, p=[0.5, 0.35, 0.14, 0.01])
    effect = pd.Series(ward).map({"surgery": 3.0, "medicine": 0.0, "icu": 9.0, "attic": 4.0})
    stay = 0.12 * age + 0.2 * (bmi - 27) + 1.5 * (sex == "M") + effect + 2.0 * smoker
    stay = (stay + 2.0 + rng.gamma(2, 2, n)).round(3)
    frame = pd.DataFrame(
        {"age": age.round(1), "bmi": bmi.round(2), "sex": sex, "ward": ward, "smoker": smoker}
    ).astype(object)
    frame.loc[rng.rand(n) < 0.05, "bmi"] = "n/a"
    frame.loc[rng.rand(n) < 0.03, "sex"] = ""
    frame.loc[rng.rand(n) < 0.001, "age"] = "old"
    return frame.assign(stay=stay, name=[f"person-{i}" for i in range(n)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables")
    table().to_csv(path / "train.csv", index=False)
    table(seed=1).to_csv(path / "test.csv", index=False)
    (path / "schema.toml").write_text(SCHEMA)
    return path


@pytest.fixture
def argv(folder, tmp_path):
    return {
        "table": str(folder / "train.csv"),
        "--schema": str(folder / "schema.toml"),
        "--target": "stay",
        "--epsilon": "1",
        "--delta": "1e-6",
        "--seed": "0",
        "--out": str(tmp_path / "model.json"),
    }


def fit(argv, *more, **changes):
    argv = {**argv, **{f"--{name}" if name != "table" else name: v for name, v in changes.items()}}
    options = [part for name, value in argv.items() if name != "table" for part in (name, value)]
    return main(["fit", argv["table"], *options, *more])


def predictions(folder, argv):
    """What the command predicts for the rows that are held out."""
    out = f"{argv['--out']}.csv"
    assert main(["predict", argv["--out"], str(folder / "test.csv"), "--out", out]) == 0
    return pd.read_csv(out)


def held_out(folder, argv):
    """The rows that are held out, as texts, and their targets."""
    rows = pd.read_csv(folder / "test.csv", dtype=str, keep_default_na=False)
    return rows, Schema.read(argv["--schema"]).with_target("stay").read_target(rows)


def refused(code, capsys, *words):
    """And no value of the table is quoted."""
    error = one_sentence(code, capsys, *words)
    assert "person-" not in error and not re.search(r"\d\d\.\d", error)


def test_from_a_table_to_predictions(folder, argv, tmp_path, capsys):
    assert fit(argv, epsilon="4") == 0
    out, err = capsys.readouterr()
    for words in ("age per year", "sex=M", "ward=icu", "bmi=missing", "smoker=True", "intercept",
                  "2,000 records", "features: age, ", "epsilon=4", "[0, 60]"):  # fmt: skip
        assert words in out
    assert re.search(r"Left out, as .*--features.*: name\.", err)
    predicted = predictions(folder, argv)
    assert list(predicted.columns) == ["prediction", "low", "high"] and len(predicted) == 2_000
    assert (predicted["low"] <= predicted["prediction"]).all()
    assert (predicted["prediction"] <= predicted["high"]).all()
    # The same linear model without privacy, on the same encoded rows.
    schema = Schema.read(argv["--schema"]).with_target("stay")
    rows = pd.read_csv(folder / "train.csv", dtype=str, keep_default_na=False)
    exact = make_pipeline(TableEncoder(schema), LinearRegression())
    exact.fit(rows, schema.read_target(rows))
    others, y = held_out(folder, argv)
    expected = r2_score(y, exact.predict(others))
    assert expected > 0.6
    assert r2_score(y, predicted["prediction"]) > expected - 0.02


@pytest.mark.parametrize("privacy", PRIVATE)
def test_whoever_adds_the_noise_is_named(privacy, argv, tmp_path, capsys):
    ledger = tmp_path / "ledger"
    assert fit(argv, "--privacy", privacy) == 0
    stated, out = capabilities(privacy), capsys.readouterr().out
    assert stated.sentence in " ".join(out.split()) and "2,000 records" in out
    assert ("rehearsal" in out) == (privacy != "central")
    assert skpriv.load(argv["--out"])[-1].privacy == privacy
    more = {"out": str(tmp_path / "other.json"), "ledger": str(ledger)}
    if stated.amplifies:
        refused(
            fit(argv, "--privacy", privacy, **more),
            capsys,
            "--ledger",
            privacy,
            "take another --privacy",
        )
        assert not ledger.exists()
    else:
        assert fit(argv, "--privacy", privacy, **more) == 0
        assert "left epsilon 0." in capsys.readouterr().out


def test_parquet(argv, tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "train.parquet"
    frame = table().assign(
        age=lambda t: pd.to_numeric(t["age"], errors="coerce"),
        bmi=lambda t: pd.to_numeric(t["bmi"], errors="coerce"),
        smoker=lambda t: t["smoker"].astype(bool),
    )
    frame.to_parquet(path)
    assert fit(argv, table=str(path)) == 0
    assert fit(argv, out=str(tmp_path / "other.json")) == 0
    expected, found = json.loads((tmp_path / "other.json").read_text()), skpriv.load(argv["--out"])
    np.testing.assert_array_equal(skpriv.from_dict(expected)[-1].coef_, found[-1].coef_)
    for suffix, read in ((".csv", pd.read_csv), (".parquet", pd.read_parquet)):
        out = tmp_path / f"predictions{suffix}"
        assert main(["predict", argv["--out"], str(path), "--out", str(out)]) == 0
        np.testing.assert_allclose(read(out)["prediction"], found.predict(frame), atol=0.00501)


def test_a_stay_as_a_duration_needs_a_unit(argv, tmp_path, capsys):
    """Every target was the middle of the range, in silence and after the charge."""
    frame = table()
    frame["stay"] = pd.to_timedelta(frame["stay"].round(), unit="D")
    path, schema = tmp_path / "stays.parquet", tmp_path / "days.toml"
    frame.drop(columns=["age", "bmi", "sex"]).to_parquet(path)
    columns = ["ward", "smoker", "stay"]
    text = "".join(f"[{part}" for part in SCHEMA.split("\n[")[1:] if part.split("]")[0] in columns)
    options = {"table": str(path), "schema": str(schema), "ledger": str(tmp_path / "stays.db")}
    options |= {"epsilon": "3", "seed": "0"}
    schema.write_text(text)
    refused(fit(argv, **options), capsys, "'stay' of the table holds durations", "unit='day'")
    schema.write_text(text + 'unit = "day"\n')
    assert fit(argv, **options) == 0  # for all that the ledger has
    lines = map(str.split, capsys.readouterr().out.splitlines())
    found = {words[0]: float(words[1]) for words in lines if words and words[0] == "smoker=True"}
    assert 1.0 < found["smoker=True"] < 3.0


@pytest.mark.usefixtures("three_rehearsals")
def test_a_ledger_pays_until_nothing_is_left(argv, tmp_path, capsys):
    ledger = str(tmp_path / "ledger.db")
    asked = {name: value for name, value in argv.items() if name != "--out"}
    refused(fit(asked), capsys, "--out")
    assert fit(asked, "--plan", ledger=ledger) == 0  # asks nothing, and is free
    assert "whitening" in (plan := capsys.readouterr().out) and "2,000" in plan
    for other in ({"model": "logistic", "target": "smoker"}, {"group": "name"}):
        with skpriv.BudgetAccountant(9.0, 1e-5) as accountant:  # active, and not charged either
            assert fit(asked, "--plan", ledger=ledger, **other) == 0 and not accountant.charges
        assert "made-up rows" in capsys.readouterr().out and not [*tmp_path.iterdir()]
    assert main(["budget", ledger, "--epsilon", "2"]) == 0
    said = capsys.readouterr().out
    assert "left epsilon 2" in said and "No charges yet" in said
    assert fit(argv, ledger=ledger) == 0
    assert "Spent epsilon 1 of 2" in capsys.readouterr().out
    refused(
        fit(argv, "--force", ledger=ledger, epsilon="2"),
        capsys,
        "cannot pay",
        "left epsilon",
        "smaller",
    )
    assert fit(argv, "--force", ledger=ledger) == 0
    assert "epsilon 1.455 of 2" in capsys.readouterr().out  # squares of mu add up, and not epsilon
    assert main(["budget", ledger]) == 0
    assert (said := capsys.readouterr().out).count("LinearRegression") == 2
    assert "can exceed the total" in said
    refused(
        main(["budget", ledger, "--epsilon", "9"]),
        capsys,
        "cannot be changed",
        "Leave --epsilon out",
    )


def test_ledgers_that_are_none(tmp_path, argv, capsys):
    refused(main(["budget", str(tmp_path / "absent.db")]), capsys, "absent.db")
    (tmp_path / "text.db").write_text("no ledger" * 100)
    refused(main(["budget", str(tmp_path / "text.db")]), capsys, "text.db")


def test_a_ledger_of_python_has_no_total_yet(tmp_path, argv, capsys):
    path = tmp_path / "python.db"
    with skpriv.BudgetAccountant(float("inf"), ledger=path):
        assert fit(argv) == 0
    capsys.readouterr()
    assert main(["budget", str(path)]) == 0
    assert "Spent epsilon 1 at delta 1e-06; it has no total." in capsys.readouterr().out
    refused(main(["budget", str(path), "--epsilon", "0.5"]), capsys, "has spent more")
    assert main(["budget", str(path), "--epsilon", "2"]) == 0
    assert "Spent epsilon 1 of 2" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", [".md", ".html"])
def test_card_and_picture(suffix, argv, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    card, plot = tmp_path / f"card{suffix}", tmp_path / "plot.png"
    assert fit(argv, card=str(card), plot=str(plot)) == 0
    text = card.read_text()
    for words in ("uarantee", "is public", "ot cover", "scikit-learn", "sex=M", "low 18"):
        assert words in text
    assert ("<table>" in text) == (suffix == ".html")
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_the_schema_may_name_the_target(argv, folder, tmp_path, capsys):
    asked = {name: value for name, value in argv.items() if name != "--target"}
    refused(fit(asked), capsys, 'role = "target"')
    schema = tmp_path / "named.toml"
    schema.write_text(SCHEMA.replace("[stay]\n", '[stay]\nrole = "target"\n'))
    assert fit(asked, "--plan", schema=str(schema)) == 0


@pytest.mark.parametrize("model, target, estimand", [
    ("linear", "stay", "least_squares"), ("logistic", "smoker", "likelihood"),
    ("poisson", "stay", "likelihood"),
])  # fmt: skip
def test_the_estimand_is_declared(model, target, estimand, argv, capsys):
    """The head of the table names it; a model that has no such line or curve is refused."""
    assert fit(argv, model=model, target=target, estimand=estimand) == 0
    assert f"Estimand    {estimand}: " in capsys.readouterr().out
    code = fit(argv, "--force", model="additive", target=target, estimand=estimand)
    refused(code, capsys, f"--estimand {estimand} is for --model l")


@pytest.mark.usefixtures("three_rehearsals")
@pytest.mark.parametrize("model, target", [("linear", "stay"), ("logistic", "smoker")])
def test_a_plan_needs_no_table_and_has_the_numbers_of_fit(model, target, argv, capsys):
    assert fit(argv, "--plan", model=model, target=target) == 0
    of_fit = capsys.readouterr().out
    # A newcomer who asks for nothing is told what the table of a yes or no is of
    assert fit(argv, target="smoker") == 0
    assert "has odds ratios" in capsys.readouterr().out
    public = ["--schema", argv["--schema"], "--target", target, "--model", model]
    public += ["--epsilon", argv["--epsilon"], "--n", "2000"]
    assert main(["plan", *public]) == 0
    assert capsys.readouterr().out == of_fit


@pytest.mark.usefixtures("three_rehearsals")
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_plan_takes_all_that_a_schema_says_of_cells(library, tmp_path, monkeypatch, capsys):
    """Made-up rows are of no dtype that a type does not read."""
    pytest.importorskip(library)
    monkeypatch.setattr("skpriv._cli._fit.LIBRARIES", (library,))
    schema = Schema({
        "day": Date("2020-01-01", "2022-12-31", format="%d.%m.%Y"), "grade": Ordinal([1, 2, 3]),
        "paid": Numeric(0, 5000, thousands=",", decimal="."), "site": Categorical([10, 20]),
        "smoker": Boolean(true=["ja"], false=["nein"]), "stay": Numeric(0, 60),
    }, target="stay")  # fmt: skip
    schema.write(tmp_path / "schema.toml")
    options = ["--schema", str(tmp_path / "schema.toml"), "--n", "2000", "--epsilon", "1"]
    assert main(["plan", *options]) == 0
    assert "day per year" in capsys.readouterr().out


@pytest.mark.usefixtures("three_rehearsals")
def test_a_plan_warns_of_no_made_up_fit(argv, capsys):
    options = ["--schema", argv["--schema"], "--target", "stay", "--epsilon", "1"]
    assert main(["plan", *options, "--n", "20", "--effect", "smoker=True=9"]) == 0
    out, err = capsys.readouterr()
    assert "Not estimable" in out and err == ""


@pytest.mark.usefixtures("three_rehearsals")
def test_a_plan_takes_what_is_expected_of_the_target(argv, capsys):
    """Counts are not Poisson's as a rule, and errors of a plan grow with their deviation."""
    given = ["plan", "--schema", argv["--schema"], "--target", "stay", "--model", "poisson"]
    given += ["--n", "20000", "--epsilon", "1", "--target-mean", "3"]
    errors = []
    for options, deviation in ((), 3.0**0.5), (("--target-deviation", "6"), 6.0):
        assert main([*given, *options]) == 0
        text = capsys.readouterr().out
        told = re.search(r"mean ([\d.]+) and deviate from it by ([\d.]+) at", text).groups()
        assert [*map(float, told)] == pytest.approx([3.0, deviation], rel=0.05)
        assert "better guesses" in text
        (line,) = (line for line in text.splitlines() if line.startswith("smoker=True "))
        errors.append(float(line.split()[1]))
    assert 2.0 < errors[1] / errors[0] < 6.0
    assert main([*given[:7], "--n", "2000", "--epsilon", "4", "--max-rows", "2"]) == 0
    assert "each person has" in capsys.readouterr().out


def full(*_, **__):
    """A disk without room, whose error names no file."""
    raise OSError(28, "No space left on device")


def test_a_model_that_cannot_be_written_is_paid_for_and_shown(argv, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("os.fsync", full)
    ledger = str(tmp_path / "ledger.db")
    assert fit(argv, ledger=ledger) == 2
    out, err = capsys.readouterr()
    assert "age per year" in out and "Wrote" not in out
    assert "the charge stays: [Errno 28]" in err
    assert len(BudgetAccountant(ledger=ledger).charges) == 1


def test_other_files_that_cannot_be_written_are_told_in_a_sentence(
    folder, argv, tmp_path, monkeypatch, capsys
):
    assert fit(argv) == 0
    capsys.readouterr()
    monkeypatch.setattr("pathlib.Path.write_text", full)
    monkeypatch.setattr("skpriv._cli._predict.write_columns", full)
    page, table_of = str(tmp_path / "page.html"), str(tmp_path / "of.csv")
    for argv_of in (
        ["report", argv["--out"], "--out", page],
        ["schema", argv["table"], "--out", str(tmp_path / "of.toml")],
        ["predict", argv["--out"], str(folder / "test.csv"), "--out", table_of],
    ):
        one_sentence(main(argv_of), capsys, "No space left")
    assert fit(argv, "--force", card=str(tmp_path / "card.md")) == 2
    assert "card.md cannot be written" in capsys.readouterr().err


@pytest.mark.usefixtures("three_rehearsals")
def test_an_effect_may_leave_out_the_unit(tmp_path, capsys):
    """The name of a column does for the coefficient that has a unit, if there is one alone."""
    schema = tmp_path / "schema.toml"
    parts = [("dose", "mg"), ("dose per day", "mg"), ("age", "year"), ("days", None)]
    schema.write_text("".join(
        f'["{name}"]\ntype = "numeric"\nlow = 0\nhigh = 90\n' + f'unit = "{unit}"\n' * bool(unit)
        for name, unit in parts
    ))  # fmt: skip
    plan = ["plan", "--schema", str(schema), "--target", "days", "--epsilon", "1", "--delta",
            "1e-6", "--n", "2000", "--effect"]  # fmt: skip
    assert main([*plan, "age=0.5", "--effect", "age per year=0.5", "--power", "0.9"]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if "for a power of 0.9" in line]
    assert len(told) == 2 and len(set(told)) == 1 and told[0].startswith("age per year = 0.5: ")
    assert main([*plan, "dose=0.5"]) == 2
    assert "dose per day per mg" in capsys.readouterr().err


@pytest.mark.usefixtures("three_rehearsals")
@pytest.mark.parametrize(
    "options, words",
    [
        (["--n", "0"], ["--n", "at least 1"]),
        (["--effect", "bmy=1"], ["--effect bmy=1", "NAME=SIZE", "bmi"]),
        (["--effect", "bmi"], ["NAME=SIZE"]),
        (["--effect", "bmi=x"], ["must have a SIZE"]),
        (["--effect", "bmi=0"], ["must have a SIZE", "not 0"]),
        (["--estimand", "likelihood"], ["--model logistic or poisson"]),
        (["--privacy", "local", "--max-rows", "2"], ["--group needs --privacy"]),
        (["--privacy", "local", "--model", "poisson"], ["no such plan", "PoissonRegressor"]),
        (["--target", "dose"], ["'dose'", "age"]),
    ],
)
def test_improper_arguments_of_a_plan(options, words, argv, capsys):
    given = ["--schema", argv["--schema"], "--target", "stay", "--n", "2000", "--epsilon", "1"]
    try:
        code = main(["plan", *given, *options])
    except SystemExit as stop:
        code = stop.code
    refused(code, capsys, *words)


def test_nothing_is_overwritten(argv, tmp_path, capsys):
    (tmp_path / "model.json").write_text("precious")
    refused(fit(argv), capsys, "--out", "--force")
    assert (tmp_path / "model.json").read_text() == "precious"
    assert fit(argv, "--force") == 0


@pytest.mark.parametrize("option", ["out", "plot", "card"])
def test_a_folder_that_cannot_be_written_costs_nothing(option, argv, tmp_path, capsys, monkeypatch):
    """The charge was made, and then neither the model nor the picture could be written."""
    ledger, folder = tmp_path / "ledger.db", tmp_path / "folder"
    folder.mkdir()
    monkeypatch.setattr(os, "access", lambda place, mode: not place.endswith("folder/"))
    end = {"out": "json", "plot": "png", "card": "md"}[option]
    changes = {option: str(folder / f"a.{end}"), "ledger": str(ledger)}
    refused(fit(argv, **changes), capsys, f"--{option}", "or it cannot be written")
    assert not ledger.exists()


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"target": "dose"}, ["'dose'", "age, bmi"]),
        ({"target": "sex"}, ["take --model logistic"]),
        ({"target": "stay", "model": "logistic"}, ["--model poisson", "--model linear"]),
        ({"target": "name"}, ["no table for the target 'name'"]),
        ({"table": "absent.csv"}, ["absent.csv", "check its name"]),
        ({"table": "absent.xlsx"}, [".csv", ".parquet"]),
        ({"schema": "absent.toml"}, ["absent.toml", "skpriv schema"]),
        ({"out": "/absent/folder/model.json"}, ["no such directory"]),
        ({"out": "page.html"}, ["end with .json"]),
        ({"card": "card.pdf"}, [".md or .html"]),
        ({"plot": "plot.doc"}, [".png"]),
        ({"max-rows": "3"}, ["--max-rows needs --group"]),
        ({"privacy": "local", "group": "name"}, ["--group needs --privacy aggregate or central"]),
        ({"privacy": "shuffle", "group": "name"}, ["--group needs --privacy", "shuffle"]),
        ({"privacy": "local", "model": "poisson"}, ["PoissonRegressor: each user"]),
        ({"ledger": "/absent/folder/ledger"}, ["/absent/folder/ledger", "folder that exists"]),
    ],
)
def test_improper_arguments(changes, words, argv, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(fit(argv, **changes), capsys, *words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("[age]", "[agee]", ["'agee'", "age, bmi"]),
        ("low = 0\nhigh = 60", "", ["'stay'", "still open"]),
        ("[age]", "[age", ["not TOML"]),
        (SCHEMA, '[stay]\ntype = "numeric"\nlow = 0\nhigh = 60', ["no column but the target"]),
    ],
)
def test_improper_schemas(old, new, words, argv, capsys, tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(SCHEMA.replace(old, new, 1))
    refused(fit(argv, schema=str(path)), capsys, *words)


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("a.csv", "", "no rows"), ("a.csv", "\n1,2\n", "no rows"),
        ("a.csv", "a,a\n1,2\n", "columns 1 and 2"),
        ("a.csv", "a,b\n", "no rows"),
        ("a.parquet", "person-7 no parquet", "cannot be read as Parquet"),
    ],
)  # fmt: skip
def test_improper_tables(name, text, words, argv, capsys, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_text(text)
    refused(fit(argv, table=str(tmp_path / name)), capsys, words)


@pytest.mark.parametrize(
    "cell", ["", "x", "1e999", "nan", 'a "quoted", cell', "a\rreturn", "=1+1", "True", "٣", "\x00"]
)
def test_a_record_moves_its_own_row_alone(cell, folder, tmp_path):
    schema, tables = Schema.from_toml(SCHEMA).with_target("stay"), []
    rows = table(50).astype(str)
    for path in (tmp_path / "a.csv", tmp_path / "b.csv"):
        rows.to_csv(path, index=False)
        frame = read_table(path)
        encoded = TableEncoder(schema).fit_transform(frame)
        tables.append(np.column_stack([encoded, schema.read_target(frame)]))
        rows.iloc[7] = cell
    assert np.isfinite(tables[1]).all()
    for kept in (slice(0, 7), slice(8, None)):
        np.testing.assert_array_equal(tables[0][kept], tables[1][kept])


def test_predict_refuses(folder, argv, tmp_path, capsys):
    assert fit(argv) == 0
    capsys.readouterr()
    rows, out = str(folder / "test.csv"), str(tmp_path / "out.csv")
    refused(main(["predict", "absent.json", rows, "--out", out]), capsys, "absent.json")
    refused(main(["predict", argv["--out"], "absent.csv", "--out", out]), capsys, "absent.csv")
    refused(
        main(["predict", argv["--schema"], rows, "--out", out]), capsys, "not JSON", "fit --out"
    )
    refused(main(["predict", argv["--out"], rows, "--out", "out.txt"]), capsys, ".csv")
    pd.DataFrame({"age": [1]}).to_csv(tmp_path / "few.csv", index=False)
    refused(
        main(["predict", argv["--out"], str(tmp_path / "few.csv"), "--out", out]), capsys, "'bmi'"
    )


def test_curves_from_a_table(folder, argv, tmp_path, capsys):
    card, plot = tmp_path / "card.md", tmp_path / "curves.png"
    more = {"card": str(card), "plot": str(plot), "epsilon": "4"}
    assert fit(argv, "--model", "additive", **more) == 0
    assert "AdditiveRegressor of 'stay'" in capsys.readouterr().out
    assert "## Curves" in card.read_text() and "| age |" in card.read_text()
    assert plot.stat().st_size > 1000
    model = skpriv.load(argv["--out"])
    bent = [len(knots) > 2 for knots in model[-1].knots_]
    assert sum(bent) == 2  # age and bmi; levels and indicators stay lines
    rows, y = held_out(folder, argv)
    assert r2_score(y, model.predict(rows)) > 0.6


def test_all_rows_of_a_person_are_protected(folder, argv, tmp_path, capsys):
    frame = pd.read_csv(folder / "train.csv", dtype=str, keep_default_na=False)
    frame["person"] = [f"p{i // 4}" if i % 50 else "" for i in range(len(frame))]
    path = tmp_path / "visits.csv"
    frame.to_csv(path, index=False)
    card = str(tmp_path / "card.md")
    assert fit(argv, "--group", "person", "--max-rows", "2", table=str(path), card=card) == 0
    out, err = capsys.readouterr()
    assert "one person, with all rows" in " ".join(out.split())
    assert (
        "Left out, as the schema or --features does not name them: name." in err
    )  # and not the persons
    persons = frame.loc[frame["person"] != "", "person"].nunique() + 1  # nobody is one together
    assert f"{persons:,} persons" in out
    assert "person (column 'person'): at most 2 rows of each" in (tmp_path / "card.md").read_text()
    out = str(tmp_path / "other.json")
    refused(fit(argv, "--group", "persons", table=str(path), out=out), capsys, "'persons'")
    refused(fit(argv, "--group", "age", table=str(path), out=out), capsys, "'age'", "take it out")


def test_nothing_that_was_read_is_overwritten(folder, argv, tmp_path, capsys):
    """Not by --force either: the table would be gone."""
    table, schema = tmp_path / "train.csv", tmp_path / "schema.toml"
    table.write_bytes((folder / "train.csv").read_bytes())
    schema.write_text(SCHEMA)
    same = {"table": str(table), "schema": str(schema)}
    for option, name in (("out", table), ("card", schema), ("plot", table), ("ledger", schema)):
        changed = fit(argv, "--force", **same, **{option: str(tmp_path / "." / name.name)})
        refused(changed, capsys, f"--{option}", "is read")
    refused(fit(argv, "--force", **same, card=argv["--out"]), capsys, "--card", "--out")
    assert table.read_bytes() == (folder / "train.csv").read_bytes()
    assert schema.read_text() == SCHEMA
    assert fit(argv, **same) == 0
    capsys.readouterr()
    refused(
        main(["predict", argv["--out"], str(table), "--out", str(table), "--force"]),
        capsys, "--out", "is read",
    )  # fmt: skip


@pytest.mark.parametrize(
    "line", ['"unclosed', "", "\r", '1,"2', "a\rb", 'x"y"z,"', "\x00", "," * 99, "\x0b"]
)
def test_each_line_of_a_file_is_a_row(line, tmp_path):
    """The number of rows is printed as public, so that no cell may decide it."""
    path = tmp_path / "table.csv"
    for end in ("\n", "\r\n"):
        path.write_bytes(end.join(["age,stay", "1,2", line, "3,4", "5,6", ""]).encode())
        frame = read_table(path)
        assert len(frame) == 4
        assert [cell.strip() for cell in frame["age"].tolist()[2:]] == ["3", "5"]
        assert frame["stay"].tolist()[2:] == ["4", "6"]  # the end of a line is in no cell


@pytest.mark.parametrize(("model", "target"), [("logistic", "smoker"), ("poisson", "stay")])
def test_other_links(folder, argv, tmp_path, capsys, model, target):
    assert fit(argv, "--model", model, target=target, card=str(tmp_path / "card.md")) == 0
    out, _ = capsys.readouterr()
    assert "age per year" in out
    found = predictions(folder, argv)
    assert found["prediction"].between(0.0, 60.0).all()
    if model == "logistic":
        chances = found[["probability of False", "probability of True"]]
        assert set(found["prediction"]) <= {0.0, 1.0}
        assert np.allclose(chances.sum(axis=1), 1.0, atol=2e-4)
        for name in chances:
            ends = found[[f"{name} (low)", f"{name} (high)"]].to_numpy().T
            assert (ends[0] <= chances[name]).all() and (chances[name] <= ends[1]).all()


def test_more_than_two_classes(folder, argv, tmp_path, capsys):
    """A cell that is none of the categories counts as nothing, and no word is said of it."""
    assert fit(argv, "--model", "logistic", target="ward", card=str(tmp_path / "card.md")) == 0
    out, error = capsys.readouterr()
    assert "one of medicine, surgery, icu" in out and "attic" not in out + error
    assert "icu: age per year" in out and "surgery: intercept" in out
    assert set(predictions(folder, argv)["prediction"]) <= {"medicine", "surgery", "icu"}


def test_a_schema_is_guessed_filled_in_and_used_by_a_formula(tmp_path, capsys):
    """From a raw table to the coefficients of a formula, on the command line alone."""
    table().to_csv(tmp_path / "visits.csv", index=False)
    assert main(["schema", f"{tmp_path}/visits.csv", "--out", f"{tmp_path}/guess.toml"]) == 0
    assert Schema.read(tmp_path / "guess.toml")["smoker"].kind == "boolean"
    (tmp_path / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    fitted = [
        "fit", f"{tmp_path}/visits.csv", "--schema", f"{tmp_path}/schema.toml", "--epsilon", "5",
        "--seed", "0", "--out", f"{tmp_path}/model.json",
    ]  # fmt: skip
    assert main([*fitted, "--formula", "stay ~ age + I(age**2) + C(ward) + age:smoker"]) == 0
    said = capsys.readouterr().out
    for term in ("I(age ** 2)", "C(ward)[T.surgery]", "age:smoker", "intercept"):
        assert term in said
    assert main([*fitted, "--force", "--target", "stay", "--features", "age"]) == 0
    assert "ward" not in capsys.readouterr().out
    for wrong in (["--formula", "stay ~ log(smoker)"], ["--target", "stay", "--features", "x"]):
        assert main([*fitted, "--force", *wrong]) == 2


def test_brackets_of_incomes_are_drawn(tmp_path, capsys):
    """Two dollar signs in a level were mathematics to the drawing library, after the charge."""
    rng, levels = np.random.default_rng(0), ["$0-$10k", "$10k_$20k"]
    table = pd.DataFrame({"income": rng.choice(levels, 600), "y": rng.uniform(0, 10, 600)})
    names = ("m.csv", "m.toml", "l.db", "m.json", "m.png", "m.html", "m.md")
    data, schema, ledger, model, picture, page, card = (str(tmp_path / name) for name in names)
    table.to_csv(data, index=False)
    types = {"income": Categorical(levels, other=False), "y": Numeric(0, 10)}
    Schema(types, target="y").write(schema)
    fit = ["fit", data, "--schema", schema, "--epsilon", "5", "--ledger", ledger, "--out", model]
    assert main([*fit, "--plot", picture, "--card", card]) == 0
    assert main(["report", model, "--out", page]) == 0
    assert "$10k_$20k" in capsys.readouterr().out
    assert "$0-$10k" in (tmp_path / "m.html").read_text("utf-8")
    assert r"\$0-\$10k" in (tmp_path / "m.md").read_text("utf-8")


@pytest.mark.parametrize("model", ["linear", "poisson", "additive"])
def test_a_row_without_a_target_counts_for_nothing_where_the_schema_says_so(
    model, argv, tmp_path, capsys
):
    """Counts of about 10 in the range 0 to 60, of which half are missing: their mean is 10."""
    rng = np.random.RandomState(0)
    n = 4_000
    days = rng.poisson(10.0, n).astype(object)
    days[rng.rand(n) < 0.5] = "n/a"
    table = tmp_path / "days.csv"
    pd.DataFrame({"age": rng.randint(0, 100, n), "days": days}).to_csv(table, index=False)
    means = {}
    for missing in ("", 'missing = "indicator"', "missing = 10"):
        schema = tmp_path / "days.toml"
        schema.write_text(
            '[age]\ntype = "numeric"\nlow = 0\nhigh = 100\n'
            f'[days]\ntype = "numeric"\nlow = 0\nhigh = 60\n{missing}\n'
        )
        code = fit(
            {**argv, "table": str(table)}, schema=str(schema), target="days", model=model,
            epsilon="4", out=str(tmp_path / f"{len(missing)}.json"),
        )  # fmt: skip
        assert code == 0
        said = capsys.readouterr().out
        fitted = skpriv.load(tmp_path / f"{len(missing)}.json")
        means[missing] = float(np.ravel(fitted.predict(pd.DataFrame({"age": [50]})))[0])
        words = {"": "middle", "missing = 10": "schema"}
        assert re.search(f"without a target .*{words.get(missing, 'nothing')}", said)
    assert means[""] == pytest.approx(20.0, abs=1.0)
    assert means['missing = "indicator"'] == pytest.approx(10.0, abs=0.5)
    assert means["missing = 10"] == pytest.approx(10.0, abs=0.5)


def test_labels_and_other_targets_need_no_weights():
    frame = pd.DataFrame({"a": [1, None], "b": ["x", None]})
    schema = Schema({"a": Numeric(0, 2), "b": Categorical(["x"], missing="indicator")})
    for target in (None, "a", "b"):
        assert schema.with_target(target).weights(frame) == {}
