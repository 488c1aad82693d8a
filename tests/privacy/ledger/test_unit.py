"""A ledger adds up releases that protect one kind of unit, and refuses any other."""

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

from skpriv import Budget, BudgetAccountant, describe
from skpriv._cli import main
from skpriv.bandits import LinUCB
from skpriv.exceptions import PrivacyError
from skpriv.inspection import propose_max_rows
from skpriv.linear_model import LinearRegression
from skpriv.preprocessing import Numeric, Schema, check_table
from skpriv.privacy import Cost, charge, protecting
from skpriv.privacy._ledger._ledger import unit_text, unit_value

RNG = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(300), 5)
X = RNG.uniform(size=(1_500, 2))
Y = X[:, 0]
MODEL = LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), epsilon=1.0, delta=1e-6)
TABLE = pd.DataFrame({"a": X[:, 0], "patient": GROUPS})
SCHEMA = Schema({"a": Numeric(0, 1)})
PERSON = {"groups": GROUPS, "max_rows_per_group": 2}
RELEASES = {  # of rows, and of persons with these further parameters
    "fit": (lambda **more: MODEL.fit(X, Y, **more), PERSON),
    "describe": (lambda **more: describe(TABLE, SCHEMA, epsilon=1.0, delta=1e-6, **more), PERSON),
    "check": (lambda **more: check_table(TABLE, SCHEMA, epsilon=1.0, delta=1e-6, **more), PERSON),
    "policy": (
        lambda **more: LinUCB(epsilon=1.0, bounds_y=(0, 1), **more).act(np.full((1, 2, 2), 0.1)),
        {"max_visits": 2},
    ),
}


@pytest.mark.parametrize("release, of_persons", RELEASES.values(), ids=RELEASES)
def test_another_unit_is_refused_with_the_remedy(release, of_persons):
    with BudgetAccountant(9.0, 1e-5) as rows:
        with pytest.raises(PrivacyError, match=r"protects a row.*the unit \('person', 2\)"):
            release(**of_persons)
        assert rows.charges == []
        release()
    assert rows.unit == "row" and rows.charges[0].unit == "row"
    with BudgetAccountant(99.0, 1e-5, unit=("patient", 2)) as persons:
        with pytest.raises(PrivacyError, match="at most 2 rows of each"):
            release()
        assert persons.charges == []
        release(**of_persons)
    assert persons.unit == ("patient", 2)
    assert {charge.unit for charge in persons.charges} == {":2"}
    with BudgetAccountant(99.0, 1e-5, unit=("patient", 1)) as fewer:
        with pytest.raises(PrivacyError, match="at most 1 row"):
            release(**of_persons)
        assert fewer.charges == []


def test_a_column_of_another_name_is_another_person():
    groups = pd.Series(GROUPS, name="doctor")
    with BudgetAccountant(9.0, 1e-5, unit=("patient", 2)):
        with pytest.raises(PrivacyError, match="column 'doctor'"):
            MODEL.fit(X, Y, groups=groups, max_rows_per_group=2)
        MODEL.fit(X, Y, groups=groups.rename("patient"), max_rows_per_group=1)
        propose_max_rows(GROUPS, largest=9, epsilon=1.0, delta=1e-6)


def test_the_unit_is_set_once_and_stands_in_the_file(tmp_path):
    path = tmp_path / "ledger"
    BudgetAccountant(2.0, 1e-6, ledger=path, unit=("patient", 9))
    for unit in (None, ("patient", 9), "patient:9"):
        assert BudgetAccountant(ledger=path, unit=unit).unit == ("patient", 9)
    for unit in ("row", ("patient", 8), ("doctor", 9)):
        with pytest.raises(PrivacyError, match="leave unit out.*another ledger"):
            BudgetAccountant(ledger=path, unit=unit)
    with BudgetAccountant(ledger=path) as accountant, pytest.raises(PrivacyError, match="a row"):
        charge(Cost.from_mu(0.1), "rows")
    with accountant, protecting("patient", 3):
        charge(Cost.from_mu(0.1), "persons")
    assert "a person (column &#x27;patient&#x27;, at most 3 rows)" in accountant._repr_html_()


@pytest.mark.parametrize("unit", ["rows", "", "patient", ("patient",), ("a", 0), ("a", 1.5), 9])
def test_what_is_no_unit_is_refused(unit):
    with pytest.raises(ValueError, match="must be 'row'.*column"):
        BudgetAccountant(1.0, unit=unit)


def test_units_are_texts_and_back():
    for unit in ("row", ("patient", 9), ("a:b", 1), ("", 3)):
        assert unit_value(unit_text(unit)) == unit


def test_a_ledger_of_the_version_before_protects_rows(tmp_path):
    path = tmp_path / "ledger"
    with BudgetAccountant(2.0, 1e-6, ledger=path):
        charge(Cost.from_mu(0.1), "a")
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in ("ledger", "charges"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN unit")
        connection.execute("PRAGMA user_version = 1")
    with BudgetAccountant(ledger=path) as accountant:
        charge(Cost.from_mu(0.1), "b")
    assert [row.unit for row in accountant.charges] == ["row", "row"]
    assert accountant.budget == Budget(2.0, 1e-6) and accountant.unit == "row"


@pytest.fixture
def hospital(tmp_path):
    TABLE.assign(stay=Y).to_csv(tmp_path / "table.csv", index=False)
    lines = "".join(f'[{name}]\ntype = "numeric"\nlow = 0\nhigh = 1\n' for name in ("a", "stay"))
    (tmp_path / "schema.toml").write_text(lines)
    table = (str(tmp_path / "table.csv"), "--schema", str(tmp_path / "schema.toml"))
    return {
        "ledger": str(tmp_path / "ledger.db"),
        "describe": ["describe", *table, "--epsilon", "0.5"],
        "check": ["check", *table, "--private", "--epsilon", "0.5"],
        "fit": ["fit", *table, "--epsilon", "0.5", "--target", "stay", "--out",
                str(tmp_path / "model.json"), "--force"],
    }  # fmt: skip


@pytest.mark.parametrize("command", ["describe", "check", "fit"])
def test_commands_go_by_the_unit_of_the_ledger(command, hospital, capsys):
    ledger, group = hospital["ledger"], ["--group", "patient", "--max-rows", "3"]
    assert main(["budget", ledger, "--epsilon", "2", "--unit", "patient:9"]) == 0
    assert "for a person (column 'patient', at most 9 rows)" in capsys.readouterr().out
    assert main([*hospital[command], "--ledger", ledger]) == 0  # the unit is the default
    assert "for a person (column 'patient', at most 9 rows)" in capsys.readouterr().out
    assert main([*hospital[command], "--ledger", ledger, *group]) == 0
    assert "for a person (column 'patient'" in capsys.readouterr().out
    assert main(["budget", ledger]) == 0
    assert "(column 'patient', at most 3 rows)" in capsys.readouterr().out


def test_a_new_ledger_protects_what_its_first_release_does(hospital, capsys):
    assert main([*hospital["describe"], "--ledger", hospital["ledger"]]) == 0
    assert main([*hospital["fit"], "--ledger", hospital["ledger"], "--group", "patient"]) == 2
    assert "budget --unit 'patient:1'" in capsys.readouterr().err
    other = hospital["ledger"] + "2"
    assert main([*hospital["describe"], "--ledger", other, "--group", "patient"]) == 0
    assert BudgetAccountant(ledger=other).unit == ("patient", 1)
    assert main(["budget", other, "--unit", "row"]) == 2
    assert "--unit needs --epsilon" in capsys.readouterr().err
    assert main(["budget", other + "3", "--epsilon", "1", "--unit", "patient"]) == 2
    assert "must be 'row', or the column" in capsys.readouterr().err
