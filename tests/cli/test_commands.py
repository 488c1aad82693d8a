import argparse
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from registry.refusals import one_sentence as refused
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_score

from skpriv._cli import main
from skpriv._cli._arguments import Joined, positives
from skpriv._cli._main import COMMANDS
from skpriv._cli._tradeoff import ESTIMATORS

pd = pytest.importorskip("pandas")
FAST = ["--epsilons", "1,10", "--repeats", "1", "--cv", "2"]
BOUNDS = {"age": [0, 120], "height": [50, 250], "dose": [0, 100]}


@pytest.fixture
def csv_file(tmp_path):
    rng = np.random.RandomState(0)
    age, height = rng.uniform(20, 80, 400), rng.uniform(150, 200, 400)
    dose = 80 - 0.5 * age + 0.1 * (height - 150) + rng.uniform(-5, 5, 400)
    path = tmp_path / "study.csv"
    pd.DataFrame({"age": age, "height": height, "dose": dose}).to_csv(path, index=False)
    return path


def written(**bounds):
    """A schema of numbers, as a file has it."""
    pairs = bounds.items()
    return "".join(f'[{k}]\ntype = "numeric"\nlow = {a}\nhigh = {b}\n' for k, (a, b) in pairs)


@pytest.fixture
def schema_file(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(written(**BOUNDS))
    return path


def edit(path, **columns):
    pd.read_csv(path).assign(**columns).to_csv(path, index=False)


def study(csv_file, schema_file, *options):
    data = ["--data", str(csv_file), "--target", "dose", "--schema", str(schema_file)]
    return main(["tradeoff", *data, *FAST, "--seed", "0", *options])


def test_table_of_a_csv_file(csv_file, schema_file, tmp_path, capsys):
    """The same seed gives the same table, with a picture and with columns that have no bounds."""
    edit(csv_file, name=["x"] * 400)
    assert study(csv_file, schema_file) == 0
    out, err = capsys.readouterr()
    for word in (
        "SSPRegressor", "ReweightedRegressor", "not private", "width, a new y", "held-out y inside",
        "epsilon", "400 rows, 2 features", "[0, 100]", "linear in x", "--coef-norm", "clipped",
        "With --seed", "not linear", "a true number", "computed without privacy",
    ):  # fmt: skip
        assert word in " ".join(out.split())
    assert "3 estimators: 12 of 12 fits" in err  # all estimators together
    assert "Left out, as" in err
    assert max(map(len, out.splitlines()[1:])) <= 100  # the first names the file
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    path = tmp_path / "picture.png"
    assert study(csv_file, schema_file, "--plot", str(path)) == 0
    assert path.read_bytes().startswith(b"\x89PNG") and capsys.readouterr().out == out


def test_all_estimators_have_a_part_of_the_table(csv_file, schema_file, capsys):
    """Those of the papers too; not all of them find intervals for a new y."""
    study(csv_file, schema_file, "--estimators", ",".join(ESTIMATORS))
    out, err = capsys.readouterr()
    for estimator in ESTIMATORS.values():
        assert type(estimator).__name__ in out
    assert out.count("R2  ") == 1 + len(ESTIMATORS) and out.count("held-out y inside  ") == 4
    assert f"{4 * len(ESTIMATORS)} of" in err


@pytest.mark.parametrize("options", [["--privacy", "local"], ["--intervals", "asymptotic"]])
def test_options_and_the_reference_of_least_squares(options, csv_file, schema_file, capsys):
    assert study(csv_file, schema_file, *options, "--estimators", "reweighted") == 0
    out = capsys.readouterr().out
    assert options[1] in out and "SSPRegressor" not in out
    frame = pd.read_csv(csv_file)
    cv = KFold(2, shuffle=True, random_state=0)
    scores = cross_val_score(LinearRegression(), frame[["age", "height"]], frame["dose"], cv=cv)
    lines = out.split("Least squares, not private\n")[1].splitlines()
    assert lines[0].split()[1] == f"{np.median(scores):.3f}"


@pytest.mark.parametrize(
    "argv, words",
    [
        (["--data", "absent.csv"], ["absent.csv", "wages"]),
        (["--target", "a"], ["--target", "for tables"]),
        (["--data", "study.csv", "--target", "dose"],
         ["--schema", "read off the data", "skpriv schema"]),
        (["--data", "study.csv", "--schema", "schema.toml"], ["--target"]),
        (["--data", "study.csv", "--schema", "schema.toml", "--target", "wage"],
         ["'wage'", "age, height, dose"]),
        (["--data", "study.csv", "--schema", "schema.toml", "--target", "dose", "--cv", "201"],
         ["--cv"]),
        (["--plot", "a.doc"], [".png"]),
        (["--plot", "absent/a.png"], ["no such directory"]),
    ],
)  # fmt: skip
def test_refuses_improper_arguments(argv, words, csv_file, schema_file, capsys, monkeypatch):
    monkeypatch.chdir(csv_file.parent)
    refused(main(["tradeoff", *argv]), capsys, *words)


@pytest.mark.parametrize(
    "line",
    [
        "tradeoff --epsilons 0", "tradeoff --epsilons 1,a", "tradeoff --epsilons inf",
        "tradeoff --delta 1", "tradeoff --delta 0", "tradeoff --estimators ols",
        "tradeoff --privacy none", "tradeoff --repeats 0", "tradeoff --cv 1",
        "tradeoff --coef-norm -1", "tradeoff --seed -1", "tradeoff --confidence-level 95",
        "tradeoff --jobs 0", "fit", "fit a.csv --epsilon -1", "unknown", "",
    ],
)  # fmt: skip
def test_argument_errors_name_the_argument(line, capsys):
    words = line.split()
    with pytest.raises(SystemExit) as error:
        main(words)
    refused(error.value.code, capsys, *(word for word in words if word.startswith("--")))


@pytest.mark.parametrize(
    "schema, word",
    [
        (written(age=(0, 120), height=(50, 250)), "target 'dose'"),
        (written(dose=(0, 100)), "no column but the target"),
        (written(**BOUNDS, weight=(0, 1)), "'weight'"),
        (written(**BOUNDS) + '[x]\ntype = "numeric"\n', "'x'"),
    ],
)
def test_refuses_improper_schemas(schema, word, csv_file, schema_file, capsys):
    schema_file.write_text(schema)
    refused(study(csv_file, schema_file), capsys, word)


def test_cells_of_all_kinds_are_read_by_the_schema(csv_file, schema_file, capsys):
    """Lists, holes and words among numbers: each was refused before."""
    edit(csv_file, age=["a", np.nan] * 200, site=["A", "B"] * 200)
    site = '[site]\ntype = "categorical"\ncategories = ["A", "B"]\n'
    schema_file.write_text(written(**BOUNDS) + site)
    assert study(csv_file, schema_file, "--estimators", "ssp") == 0
    assert "400 rows, 3 features" in capsys.readouterr().out


def test_help_imports_no_command():
    """A command is imported when it is called: that took 3 seconds, and --help takes a tenth."""
    code = (
        "import sys; from skpriv._cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print(*{'numpy', 'sklearn', 'skpriv.privacy'} & set(sys.modules))"
    )
    run = partial(subprocess.run, capture_output=True, text=True, check=True)
    assert "audit" in run([sys.executable, "-m", "skpriv", "--help"]).stdout
    done = run([sys.executable, "-c", code])
    assert done.stdout.endswith("\n\n") and all(name in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help(name, capsys):
    with pytest.raises(SystemExit) as error:
        main([name, "--help"])
    said = capsys.readouterr().out
    assert error.value.code == 0 and "usage" in said and "None" not in said


@pytest.mark.parametrize("typed", [["3,1"], ["3", "1"], ["3,", "1"], ["3, 1, 3"]])
def test_lists_are_one_argument_or_several(typed):
    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilons", type=positives, nargs="+", action=Joined)
    assert parser.parse_args(["--epsilons", *typed]).epsilons == [1.0, 3.0]
