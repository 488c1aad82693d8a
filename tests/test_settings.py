"""Settings that no behaviour of a test shows: what a commit is worth when the power fails."""

import pytest

from skpriv._sqlite import Database

# What SQLite says of each; EXTRA is 3. A connection that stays open writes ahead.
SETTINGS = {"synchronous": 3, "secure_delete": 1}
JOURNALS = {False: "delete", True: "wal"}


@pytest.mark.parametrize("stays_open", [False, True])
def test_every_connection_syncs_and_overwrites_what_it_deletes(tmp_path, stays_open):
    file = Database(tmp_path / "file", "file", stays_open=stays_open)
    file.prepare("CREATE TABLE one (a INTEGER)")
    for name, value in SETTINGS.items():
        assert file.ask(f"PRAGMA {name}") == [(value,)], name
    assert file.ask("PRAGMA journal_mode") == [(JOURNALS[stays_open],)]
    file.close()
