import argparse
import json
import subprocess
import sys

import numpy as np
import pytest

from skpriv._cli import main
from skpriv._cli._arguments import CommandError, Joined, positives
from skpriv._cli._main import COMMANDS
from skpriv._cli._tradeoff import read_bounds
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


@pytest.fixture
def bounds_file(tmp_path):
    path = tmp_path / "bounds.json"
    path.write_text(json.dumps(BOUNDS))
    return path


def edit(path, **columns):
    pd.read_csv(path).assign(**columns).to_csv(path, index=False)


def study(csv_file, bounds_file, *options):
    data = ["--data", str(csv_file), "--target", "dose", "--bounds", str(bounds_file)]
    return main(["tradeoff", *data, *FAST, "--seed", "0", *options])


def refused(code, capsys, *words):
    """Exit code 2, nothing on stdout, and one sentence with these words on stderr."""
    out, err = capsys.readouterr()
    assert code == 2 and out == ""
    for word in words:
        assert word in err


def exits(argv, capsys, *words):
    with pytest.raises(SystemExit) as error:
        main(argv)
    refused(error.value.code, capsys, *words)


def test_table_of_a_csv_file(csv_file, bounds_file, capsys):
    assert study(csv_file, bounds_file) == 0
    out, err = capsys.readouterr()
    for word in (
        "SSPRegressor", "ReweightedRegressor", "not private", "width, a new y", "held-out y inside",
        "epsilon", "400 rows, 2 features", "[0, 100]", "linear in x", "--coef-norm", "clipped",
        "With --seed", "not linear", "a true number", "computed without privacy",
    ):  # fmt: skip
        assert word in out
    assert "3 estimators: 14 of 14 fits" in err  # the reference and all estimators together
    assert max(map(len, out.splitlines()[1:])) <= 100  # the first names the file


def test_all_estimators_have_a_part_of_the_table(csv_file, bounds_file, capsys):
    """Those of the papers too; not all of them find intervals for a new y."""
    study(csv_file, bounds_file, "--estimators", ",".join(ESTIMATORS))
    out, err = capsys.readouterr()
    for estimator in ESTIMATORS.values():
        assert type(estimator).__name__ in out
    assert out.count("R2  ") == 1 + len(ESTIMATORS) and out.count("held-out y inside  ") == 4
    assert f"{2 + 4 * len(ESTIMATORS)} of" in err


def test_seed_makes_it_reproducible(csv_file, bounds_file, capsys):
    tables = []
    for _ in range(2):
        study(csv_file, bounds_file, "--estimators", "ssp")
        tables.append(capsys.readouterr().out)
    assert tables[0] == tables[1]


@pytest.mark.parametrize("options", [["--privacy", "local"], ["--intervals", "asymptotic"]])
def test_options(options, csv_file, bounds_file, capsys):
    assert study(csv_file, bounds_file, *options, "--estimators", "reweighted") == 0
    out = capsys.readouterr().out
    assert options[1] in out and "SSPRegressor" not in out


def test_reference_is_least_squares(csv_file, bounds_file, capsys):
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import KFold, cross_val_score

    study(csv_file, bounds_file, "--estimators", "ssp")
    frame = pd.read_csv(csv_file)
    cv = KFold(2, shuffle=True, random_state=0)
    scores = cross_val_score(LinearRegression(), frame[["age", "height"]], frame["dose"], cv=cv)
    lines = capsys.readouterr().out.split("the reference)\n")[1].splitlines()
    assert lines[0].split()[1] == f"{np.median(scores):.3f}"


def test_columns_without_bounds_are_left_out_aloud(csv_file, bounds_file, capsys):
    edit(csv_file, name=["x"] * 400)
    assert study(csv_file, bounds_file, "--estimators", "ssp") == 0
    out, err = capsys.readouterr()
    assert "2 features" in out and "Left out, for want of bounds: name." in err


def test_picture(csv_file, bounds_file, tmp_path, capsys):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    path = tmp_path / "picture.png"
    assert study(csv_file, bounds_file, "--plot", str(path)) == 0
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "plot, words", [("a.doc", [".png"]), ("absent/a.png", ["no such directory"])]
)
def test_refuses_a_picture_before_the_work(plot, words, csv_file, bounds_file, tmp_path, capsys):
    refused(study(csv_file, bounds_file, "--plot", str(tmp_path / plot)), capsys, *words)


def test_refuses_a_csv_file_without_bounds(csv_file, capsys):
    code = main(["tradeoff", "--data", str(csv_file), "--target", "dose"])
    refused(code, capsys, "--bounds", "read off the data", "name,low,high", "JSON")


@pytest.mark.parametrize(
    "argv, words",
    [
        (["--data", "absent.csv"], ["absent.csv", "wages"]),
        (["--target", "a"], ["--target", "CSV"]),
    ],
)
def test_refuses_improper_arguments(argv, words, capsys):
    refused(main(["tradeoff", *argv]), capsys, *words)


@pytest.mark.parametrize(
    "argv",
    [
        ["--epsilons", "0"], ["--epsilons", "1,a"], ["--epsilons", "inf"], ["--delta", "1"],
        ["--delta", "0"], ["--estimators", "ols"], ["--privacy", "none"], ["--repeats", "0"],
        ["--cv", "1"], ["--coef-norm", "-1"], ["--seed", "-1"], ["--confidence-level", "95"],
        ["--jobs", "0"],
    ],
)  # fmt: skip
def test_argument_errors_name_the_argument(argv, capsys):
    exits(["tradeoff", *argv], capsys, argv[0])


def test_refuses_an_unknown_target(csv_file, bounds_file, capsys):
    refused(study(csv_file, bounds_file, "--target", "wage"), capsys, "'wage'", "age, height, dose")


def test_refuses_a_missing_target(csv_file, bounds_file, capsys):
    argv = ["tradeoff", "--data", str(csv_file), "--bounds", str(bounds_file)]
    refused(main(argv), capsys, "--target")


@pytest.mark.parametrize(
    "column, words",
    [(["a", "b"] * 200, ["numbers only"]), ([np.nan, 1.0] * 200, ["missing"])],
)
def test_refuses_improper_columns(column, words, csv_file, bounds_file, capsys):
    edit(csv_file, age=column)
    refused(study(csv_file, bounds_file), capsys, *words)


@pytest.mark.parametrize(
    "bounds, words",
    [
        ({"age": [0, 120], "height": [50, 250]}, ["target 'dose'"]),
        ({"dose": [0, 100]}, ["features"]),
        ({**BOUNDS, "weight": [0, 1]}, ["'weight'"]),
    ],
)
def test_refuses_bounds_of_other_columns(bounds, words, csv_file, bounds_file, capsys):
    bounds_file.write_text(json.dumps(bounds))
    refused(study(csv_file, bounds_file), capsys, *words)


@pytest.mark.parametrize("text", ["", "\n", "a,b\n"])
def test_refuses_a_csv_file_without_rows(text, csv_file, bounds_file, capsys):
    csv_file.write_text(text)
    refused(study(csv_file, bounds_file), capsys, "study.csv")


def test_refuses_too_few_rows(csv_file, bounds_file, capsys):
    pd.read_csv(csv_file).head(3).to_csv(csv_file, index=False)
    refused(study(csv_file, bounds_file), capsys, "--cv")


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [0, 1], "b": [-1.5, 2]}',
        "name,low,high\na,0,1\nb,-1.5,2\n",
        "a, 0, 1\n\nb, -1.5, 2",
        "\ufeffname,low,high\na,0,1\nb,-1.5,2\n",
    ],
)
def test_bounds_in_either_format(text, tmp_path):
    path = tmp_path / "bounds"
    path.write_text(text, encoding="utf-8")
    assert read_bounds(path) == {"a": (0.0, 1.0), "b": (-1.5, 2.0)}


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "empty"),
        ("{", "cannot be read"),
        ('{"a": 1}', "two numbers"),
        ('{"a": [0, "x"]}', "two numbers"),
        ('{"a": {"low": 0}}', "two numbers"),
        ('{"a": [0, 1], "a": [0, 2]}', "twice"),
        ("a,0\n", "two numbers"),
        ("a,0,1,2\n", "two numbers"),
        ("a,1,0\n", "low < high"),
        ("a,0,inf\n", "finite"),
        ("a,nan,1\n", "finite"),
        ("a,0,1\na,0,1\n", "twice"),
    ],
)
def test_refuses_malformed_bounds(text, message, tmp_path):
    path = tmp_path / "bounds"
    path.write_text(text)
    with pytest.raises(CommandError, match=message):
        read_bounds(path)


def test_bounds_that_cannot_be_read(tmp_path):
    with pytest.raises(CommandError, match="cannot be read"):
        read_bounds(tmp_path / "absent")


def test_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "skpriv", "tradeoff", "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "--bounds" in done.stdout


def test_help_imports_no_command():
    """A command is imported when it is called: that took 3 seconds, and --help takes a tenth."""
    code = (
        "import sys; from skpriv._cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print(*{'numpy', 'sklearn', 'skpriv.privacy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
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
