"""A command prints plain words: no name, value or call of Python, in results and in refusals."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skpriv._cli import main
from skpriv._cli._main import COMMANDS
from skpriv.bandits import LinUCB, Loop

SCHEMA = """
person = "patient"
limit = 1
[age]
type = "numeric"
low = 18
high = 100
unit = "year"
[ward]
type = "categorical"
categories = ["surgery", "icu"]
[days]
type = "numeric"
low = 0
high = 60
role = "target"
[dead]
type = "boolean"
role = "outcome"
"""
FIT = "fit stays.csv --schema schema.toml --epsilon 1 --force"
PLAN = "plan --schema schema.toml --n 1000 --epsilon 1"
RUNS = {  # in this order: some read what others wrote
    "schema": ["stays.csv --target days", "stays.csv --target nix"],
    "check": ["stays.csv --schema schema.toml"],
    "budget": ["study.db --epsilon 30", "study.db", "study.db --epsilon 4", "nix.db"],
    "describe": [
        "stays.csv --schema schema.toml --epsilon 1 --ledger study.db",
        "stays.csv --schema schema.toml --epsilon 0",
    ],
    "plan": [
        PLAN.partition(" ")[2] + rest
        for rest in (
            " --effect ward=icu=1", " --model logistic --target dead", " --privacy local",
            " --model poisson --privacy local", " --effect nix=1", " --estimand likelihood",
        )
    ],
    "fit": [
        FIT.partition(" ")[2] + rest
        for rest in (
            " --out m.json", " --out l.json --model logistic --target dead --features age,ward",
            " --out m.json --estimand least_squares --card card.md", " --plan", " --out m.txt",
            " --out p.json --model poisson --privacy local", " --out m.json --features nix",
            " --out m.json --ledger study.db", " --out m.json --formula 'days ~ age + nix'",
            " --out a.json --model additive --seed 0 --card additive.md", "",
            " --out s.json --privacy shuffle --max-rows 2", " --out m.json --epsilon 20",
        )
    ],
    "report": ["m.json --out page.html", "nix.json --out a.html", "schema.toml --out a.html"],
    "predict": ["m.json stays.csv --out p.csv", "m.json nix.csv --out p.csv"],
    "learn": ["s.sqlite visits.csv", "s.sqlite", "nix.sqlite", "s.sqlite nix.csv"],
    "tradeoff": ["--data stays.csv --schema schema.toml --epsilons 1,x"],
    "regret": ["--horizon 60 --runs 1 --epsilons 1", "--setting nix"],
    "audit": ["ssp --runs 0"],
}  # fmt: skip
# A name with an underscore, an argument with its sign, None, a call, a part of the package
PYTHON = re.compile(
    r"\b[A-Za-z]+_\w+|\b\w+=(?=[\s'\"(),.;]|$)|\bNone\b|\bnan\b|\w\(\)|\bskpriv\.\w"
)
TYPED = {"least_squares"}  # values that a user types after an option


def plain(text):
    """Pieces of Python in a text, but for what somebody types on the command line."""
    text = re.sub(
        r"<(?:style|script|svg)\b.*?</(?:style|script|svg)>|<[^>]*>", " ", text, flags=re.S
    )
    return {found for found in PYTHON.findall(text) if found not in TYPED}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    rng = np.random.default_rng(0)
    age, ward = rng.uniform(18, 95, 1000), rng.choice(["surgery", "icu"], 1000)
    days = rng.poisson(2 + 0.05 * age + 4 * (ward == "icu"))
    dead, patient = rng.choice(["yes", "no"], 1000), np.arange(1000) // 2
    columns = {"patient": patient, "age": age.round(1), "ward": ward, "days": days, "dead": dead}
    pd.DataFrame(columns).to_csv(folder / "stays.csv", index=False)
    (folder / "schema.toml").write_text(SCHEMA)
    pd.DataFrame({"event": ["1", "2"], "reward": [1, 0]}).to_csv(folder / "visits.csv")
    Loop(LinUCB(), folder / "s.sqlite").rank("1", np.eye(2))
    return folder


@pytest.mark.usefixtures("three_rehearsals")
@pytest.mark.parametrize("command", RUNS)
@pytest.mark.filterwarnings("ignore::skpriv.exceptions.PrivacyWarning")
def test_a_command_prints_no_python(command, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    if command in ("report", "predict"):
        main(shlex.split(f"{FIT} --out m.json"))
    for rest in (*RUNS[command], "--help"):
        with pytest.raises(SystemExit) if rest == "--help" else _any_end():
            main([command, *shlex.split(rest)])
        printed = "".join(capsys.readouterr())
        assert printed and not plain(printed), (command, rest)
    for page in (*Path().glob("*.html"), *Path().glob("*.md")):
        assert not plain(page.read_text(encoding="utf-8")), page


class _any_end:
    """A command may succeed, or refuse with exit code 2."""

    def __enter__(self):
        return self

    def __exit__(self, kind, stop, trace):
        return kind is None or (kind is SystemExit and stop.code in (0, 2))


def test_all_commands_are_here_and_python_is_found():
    assert set(RUNS) == set(COMMANDS)
    assert plain("targets have the mean 30 (target_mean=), None, skpriv.save") == {
        "target_mean", "None", "skpriv.s",
    }  # fmt: skip
    assert not plain("--estimand least_squares: R-squared 0.3, ward=icu")
