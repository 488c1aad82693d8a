"""No public door tells a value: a cell that nobody can read is given to each of them."""

from traceback import walk_tb

import numpy as np
import pandas as pd
import pytest
from registry import door_makers
from registry.door_makers import DOORS, SIMULATED, Clean, prepare
from registry.doors import releases, wanted
from registry.poison import KINDS, Outcome, supported

from skpriv._cli import main
from skpriv._compat import forgets_rows
from skpriv.privacy import NoiseSource
from skpriv.records import SeededOrder

# The number of persons is public, and counted before there is a charge.
READ_FIRST = {"groups"}
WANTED = sorted(
    door
    for door in wanted()[0]
    if door[0].split(".")[0] not in SIMULATED and door[0] not in SIMULATED
)


# Columns are found by name, which nested sequences do not have.
NAMED = ("Schema", "TableEncoder", "FormulaEncoder", "check_table", "describe", "from_table")
LONG = ("worst_pairs", "lower_bound")  # they fit for seconds


@pytest.fixture(autouse=True, scope="module")
def _fits():
    prepare()


class Given:
    """Replaces one argument by a table with a bad cell."""

    def __init__(self, argument, table):
        self.argument, self.table, self.used = argument, table, False

    def __call__(self, argument, array):
        if argument != self.argument:
            return array
        self.used = True
        return self.table(array)


def test_every_argument_is_rows_or_public():
    """A new argument is put into one of the lists of `registry/doors.py`."""
    assert not wanted()[1]


def test_every_door_has_a_maker():
    """A new door is one line in `registry/door_makers.py`."""
    assert not [name for name, _ in WANTED if name not in DOORS]


@pytest.mark.parametrize("name, argument", WANTED, ids=lambda part: part)
def test_no_door_tells_a_value(name, argument):
    """Nothing quotes the cell, its place or how it is bad; and nothing is read before a charge."""
    kinds = [("objects", False), ("pandas", True)]
    _attack(name, argument, kinds[:1] if name in LONG else kinds)


@pytest.mark.slow  # two minutes: the same of every kind of table
@pytest.mark.parametrize("name, argument", WANTED, ids=lambda part: part)
def test_no_door_tells_a_value_of_any_table(name, argument):
    _attack(name, argument, [(kind, last) for kind in KINDS for last in (False, True)])


def _attack(name, argument, places):
    seen = set()
    for kind, last in places:
        if not supported(kind):
            continue
        bad = _outcome(name, argument, kind, last, None)
        where = f"{kind}, {'last' if last else 'first'} record"
        assert not bad.quotes, f"{where}: {bad.said}"
        if bad.is_refusal:
            seen.add(bad.said)
            if not releases(name):
                continue
        good = _outcome(name, argument, kind, last, 1)
        if releases(name):
            assert name == "open_session" or not bad.held, bad.held
            assert argument in READ_FIRST or not bad.early, f"{where}: read before a charge"
            assert bad.charges == good.charges, where
        if good.error is None:
            assert bad.is_refusal, f"{where}: {bad.said}"
        elif not bad.is_refusal:  # this door takes no such table, whatever is in it
            assert type(bad.error) is type(good.error) and bad.said == good.said, where
    assert len(seen) <= 2, seen  # nothing said, or one sentence


def _outcome(name, argument, kind, last, clean):
    given = None

    def call(table):
        nonlocal given
        given = Given(argument, table)
        DOORS[name](given)

    outcome = Outcome(call, kind, last, clean)
    assert given.used, f"the maker of {name} does not use {argument}"
    return outcome


def sequences(array):
    """A tuple of numbers, or of nested lists."""
    return tuple(array.tolist()) if np.ndim(array) else array


def frame(array):
    if np.ndim(array) == 2:
        return pd.DataFrame(array, columns=[f"x{j}" for j in range(np.shape(array)[1])])
    return pd.Series(array) if np.ndim(array) == 1 else array


@pytest.mark.filterwarnings("ignore::UserWarning")  # of names of columns, and of unused groups
@pytest.mark.parametrize("name, argument", WANTED, ids=lambda part: part)
def test_every_door_takes_lists_tuples_and_frames(name, argument):
    """Rows, rewards, labels and masks, whatever holds them."""
    for kind in [frame] if name.startswith((*NAMED, *LONG)) else [sequences, frame]:
        given = Given(argument, lambda array, kind=kind: kind(np.asarray(array)))
        DOORS[name](given)
        assert given.used


def test_the_causes_of_an_error_forget_rows_too():
    def read(rows):
        raise ValueError

    @forgets_rows
    def fit(rows):
        try:
            read(rows)
        except ValueError as error:
            raise RuntimeError from error

    with pytest.raises(RuntimeError) as caught:
        fit([1.0, 2.0])
    for error in (caught.value, caught.value.__cause__):
        frames = [frame for frame, _ in walk_tb(error.__traceback__)][1:]
        assert frames and not any("rows" in frame.f_locals for frame in frames)


@pytest.fixture
def drawn(monkeypatch):
    """What is random while no door is given a seed: seeds of noise, and those of orders."""
    monkeypatch.setattr(door_makers, "SEED", None)
    seeds, orders = [], []
    for kind, found in ((NoiseSource, seeds), (SeededOrder, orders)):

        def record(self, *given, _begin=kind.__init__, _found=found, **named):
            _found.append([*given, *named.values(), None][0])
            _begin(self, *given, **named)

        monkeypatch.setattr(kind, "__init__", record)
    return seeds, orders


# An audit repeats a fit by its seed, and a collector's task is public.
REPEATED = {"audit_one_run", "lower_bound", "replay", "worst_pairs", "act", "report"}


@pytest.mark.parametrize("name", sorted({name for name, _ in WANTED} - REPEATED))
def test_without_a_seed_no_noise_has_one_and_no_two_runs_have_one_order(name, drawn):
    """A public seed would let anybody subtract the noise, or say whom a question did not see."""
    seeds, orders = drawn
    for _ in range(2):
        DOORS[name](Clean())
    assert set(seeds) <= {None} and (seeds or not releases(name))
    assert len(set(orders)) == len(orders)


@pytest.mark.parametrize("command", ["fit", "describe"])
def test_nor_does_that_of_a_command(command, drawn, tmp_path, capsys):
    table, schema = tmp_path / "table.csv", tmp_path / "schema.toml"
    table.write_text("a,b\n" + "".join(f"{i / 500},{i / 500}\n" for i in range(500)))
    column = 'type = "numeric"\nlow = 0\nhigh = 1\n'
    schema.write_text(f"[a]\n{column}[b]\n{column}")
    options = ["--target", "b", "--out", str(tmp_path / "m.json")] if command == "fit" else []
    assert main([command, str(table), "--schema", str(schema), "--epsilon", "1", *options]) == 0
    assert set(drawn[0]) == {None}
    if command == "fit":
        assert "The noise is cryptographic." in capsys.readouterr().out
        options += ["--seed", "0", "--force"]
        assert main([command, str(table), "--schema", str(schema), "--epsilon", "1", *options]) == 0
        assert "not for a release" in capsys.readouterr().out
