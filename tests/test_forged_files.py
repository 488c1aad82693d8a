"""Files and texts that somebody else wrote: what is forged is refused in words, or does no harm.

What would pass: a cell that is of the right kind and has another value, since who may write a file
may write that. A charge below 0 is of no right kind, and counts as an infinite one.
"""

import ast
import importlib
import json
import pkgutil
import re
import shutil
import sqlite3
import tempfile
from contextlib import ExitStack, closing
from functools import cache, partial
from pathlib import Path

import pytest
from registry.files import FILES, make_ledger
from registry.texts import OWN, STRANGE, TEXTS

import skpriv
from skpriv import BudgetAccountant, bandits
from skpriv.exceptions import BudgetExceeded, SkprivError
from skpriv.privacy import Cost, charge

pytestmark = pytest.mark.filterwarnings(
    "ignore:.* is not the file in which this collection was begun"
)
FORGED = [None, -5.0, 2**62, 1e308, "x", b"\0\xff", "[]", '{"a": 1}', "[[1, 2]]", "[" * 2000]
# Without a disk there is nothing to wait for.
FOLDER = next((folder for folder in ("/dev/shm",) if Path(folder).is_dir()), None)
KINDS = sorted({make: module for module, (make, _) in FILES.items()}.values())


def test_every_kind_of_file_is_forged():
    found = {
        info.name.removeprefix("skpriv.")
        for info in pkgutil.walk_packages(skpriv.__path__, "skpriv.")
        if not info.name.endswith(("__main__", "._sqlite"))
        and "_sqlite"
        in (importlib.import_module(info.name).__dict__.get("Database", type).__module__)
    }
    assert found <= set(FILES)


@cache
def cells(kind):
    """A file of a kind, and (table, column, rowid) of the cells of the first row of each table."""
    folder = tempfile.TemporaryDirectory(dir=FOLDER)
    path = Path(folder.name, "file.db")
    FILES[kind][0](path)
    found = []
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        tables = file.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        for table, text in tables:
            if "WITHOUT ROWID" in text:
                continue
            columns = [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
            # Settings are rows, and one of the values is in each
            for (row,) in file.execute(f"SELECT rowid FROM {table} LIMIT 20").fetchall():
                found += [(table, column, row) for column in columns]
                if table not in ("settings", "answers"):
                    break
    return folder, path, found


def forged(kind, change):
    """What is raised where a copy of the file is used that a function of a connection changed."""
    _, path, _ = cells(kind)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        copy = Path(folder, "file.db")
        shutil.copy(path, copy)
        with closing(sqlite3.connect(copy, isolation_level=None)) as file:
            try:
                change(file)
            except (sqlite3.Error, OverflowError):  # the table has a rule of its own
                return None
        try:
            FILES[kind][1](copy)
        except Exception as error:
            return error
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_a_forged_cell_is_refused_in_words(kind, capsys):
    _, _, places = cells(kind)
    for number, (table, column, row) in enumerate(places):
        for value in FORGED[number % 3 :: 3]:
            statement = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"
            error = forged(kind, lambda file: file.execute(statement, (value, row)))  # noqa: B023
            told = type(error) in (ValueError, type(None)) or isinstance(error, SkprivError)
            assert told, (table, column, value, error)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", KINDS)
def test_so_is_a_table_without_rows(kind):
    _, _, places = cells(kind)
    for table in {place[0] for place in places}:
        error = forged(kind, lambda file: file.execute(f"DELETE FROM {table}"))  # noqa: B023
        told = type(error) in (ValueError, type(None)) or isinstance(error, SkprivError)
        assert told, (table, error)


@pytest.mark.parametrize("kind", KINDS)
def test_no_file_has_programs(kind):
    """A view could take its place and have no end, and a trigger could remove what is written."""
    _, path, places = cells(kind)
    for table in {place[0] for place in places} - {"sqlite_sequence"}:
        for program in (
            f"ALTER TABLE {table} RENAME TO other; CREATE VIEW {table} AS SELECT * FROM other",
            f"CREATE TRIGGER often AFTER INSERT ON {table} BEGIN DELETE FROM {table}; END",
            "CREATE VIRTUAL TABLE module USING fts5(text)",
            f"CREATE INDEX often ON {table} (length(zeroblob(9)))",
        ):
            error = forged(kind, lambda file: file.executescript(program))  # noqa: B023
            assert isinstance(error, SkprivError), (table, program)
            assert re.search("file.db is no .* .it holds programs", str(error))


RULES = [
    "UNIQUE ON CONFLICT REPLACE", "UNIQUE/**/ON/**/CONFLICT/**/IGNORE", "COLLATE NOCASE",
    "CHECK (length(zeroblob(9)) > 0)", "DEFAULT (abs(random()))", "GENERATED ALWAYS AS (0)",
    "NOT NULL ON CONFLICT REPLACE DEFAULT 0", "REFERENCES other ON DELETE CASCADE",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_no_table_has_a_rule_by_which_entries_are_lost(kind):
    """A charge took the place of the one before, in a table of ``ON CONFLICT REPLACE``."""
    columns = {table: column for table, column, _ in cells(kind)[2]}

    def add(rule, file):
        query = "SELECT sql FROM sqlite_master WHERE name = ?"
        ((text,),) = file.execute(query, (table,)).fetchall()
        changed = re.sub(rf"\b{column}\b([A-Z ]*)", rf"{column}\1 {rule} ", text, count=1)
        file.execute("PRAGMA writable_schema = ON")
        file.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (changed, table))

    for table, column in columns.items():
        for rule in RULES:
            error = forged(kind, partial(add, rule))
            assert isinstance(error, SkprivError), (table, rule)
            assert re.search("file.db is no .* .(it holds programs|malformed)", str(error))


def test_each_statement_names_the_key_that_it_may_meet():
    """A forged table may have further keys, for which ``OR REPLACE`` and ``OR IGNORE`` hold too."""
    for path in Path(*skpriv.__path__).rglob("*.py"):
        assert not re.search(r"(INSERT|UPDATE) OR |REPLACE INTO", path.read_text("utf-8")), path


@pytest.mark.parametrize("kind", KINDS)
def test_no_error_quotes_a_text(kind):
    """SQLite does, of a text that is no UTF-8: one flipped bit of a person's name is enough."""
    _, _, places = cells(kind)
    for table, column, row in places:
        change = f"UPDATE {table} SET {column} = CAST(X'ff484956' AS TEXT) WHERE rowid = {row}"
        error = forged(kind, lambda file: file.execute(change))  # noqa: B023
        told = type(error) in (ValueError, type(None)) or isinstance(error, SkprivError)
        assert told and "HIV" not in str(error), (table, column, error)


@pytest.mark.parametrize("part", ["' []'", "X'5b5d'", "'[ ]'", "'{}'"])
def test_charges_under_two_texts_of_a_part_add_up(part, tmp_path):
    """Those under a second text had taken the place of the others."""
    path = tmp_path / "ledger.db"
    make_ledger(path)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("INSERT INTO charges SELECT * FROM charges")
        file.execute(f"UPDATE charges SET part = {part} WHERE rowid = 2")
    with BudgetAccountant(ledger=path) as accountant:
        assert accountant.ledger.total().gaussian == pytest.approx(0.02)


def test_a_part_in_many_parts_counts_as_one_that_holds_it(tmp_path):
    """A ledger that had charges of it could not be read again.

    The first 100 parts are disjoint from others of their partition, and what is deeper adds up.
    """
    path = tmp_path / "ledger.db"
    with BudgetAccountant(9.0, 1e-5, ledger=path) as accountant, ExitStack() as stack:
        for number in range(110):
            for name in ("x", "y") if number >= 90 else ():
                with accountant.part(name, partition=str(number)):
                    charge(Cost.from_mu(0.1), "one")
            stack.enter_context(accountant.part("x", partition=str(number)))
        assert accountant.ledger.total().gaussian == pytest.approx(0.01 * (10 + 2 * 10))
    deep = json.dumps([[str(number), "x"] for number in range(2000)])
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE charges SET part = ? WHERE rowid = 1", (deep,))
    assert BudgetAccountant(ledger=path).spent.epsilon > 0.0


def test_a_charge_below_nothing_gives_no_budget_back(tmp_path):
    path = tmp_path / "ledger.db"
    make_ledger(path)
    for column in ("gaussian", "pure", "delta"):
        with closing(sqlite3.connect(path)) as file, file:
            file.execute(
                f"INSERT INTO charges (name, part, {column}) VALUES ('refund', '[]', -1e-9)"
            )
        with BudgetAccountant(ledger=path) as accountant:
            assert (
                accountant.charges[-1].cost.amount("zcdp") + accountant.charges[-1].cost.delta > 1
            )
            with pytest.raises(BudgetExceeded):
                charge(Cost.from_mu(0.01), "more")
        with closing(sqlite3.connect(path)) as file, file:
            file.execute("DELETE FROM charges WHERE name = 'refund'")
    with BudgetAccountant(ledger=path):
        charge(Cost.from_mu(0.01), "more")


def test_a_service_ends_its_forgetting_whatever_number_its_file_names():
    """It had looked for a million million events that are not there."""
    kind = "bandits._service._store"
    error = forged(kind, lambda file: file.execute("UPDATE policy SET first = ?", (2**62,)))
    assert error is None or isinstance(error, SkprivError)


@pytest.mark.parametrize("header", ["{}", "[]", "7", '{"version": 4}'])
def test_a_damaged_header_of_a_policy_is_refused_in_words(header, tmp_path):
    path = tmp_path / "policy"
    path.write_bytes(b"skpriv policy\n" + header.encode() + b"\n{}")
    with pytest.raises(ValueError, match=re.escape(f"{str(path)!r}: its header is damaged")):
        bandits.load(path)


PARSERS = {"json.loads", "json.load", "tomllib.loads", "tomllib.load", "ast.parse"}


def parses(path):
    """Whether a file of Python parses texts."""
    found = ast.walk(ast.parse(path.read_text("utf-8")))
    return any(isinstance(one, ast.Attribute) and ast.unparse(one) in PARSERS for one in found)


def test_every_place_that_parses_a_text_has_a_door():
    root = Path(*skpriv.__path__)
    found = {
        ".".join(p.relative_to(root).with_suffix("").parts) for p in root.rglob("*.py") if parses(p)
    }
    assert found <= {*TEXTS, *OWN}
    assert {*TEXTS, *OWN} - {*FILES} <= found


@pytest.mark.parametrize("door", [name for name, door in TEXTS.items() if door])
def test_a_strange_text_is_refused_in_words(door, tmp_path, capsys):
    for text in STRANGE:
        try:
            TEXTS[door](text, tmp_path)
        except Exception as error:
            assert isinstance(error, ValueError | SkprivError), (text[:9], error)
    assert "Traceback" not in capsys.readouterr().err
