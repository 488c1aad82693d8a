"""Every place that parses a text: the door by which somebody else's text comes there.

``TEXTS[module]`` is a function of a text and of a folder to write into. Texts in SQLite files are
forged by ``files.py``. Whoever parses another text adds it here.
"""

import pandas as pd

from skpriv import BudgetAccountant, load
from skpriv._cli import main
from skpriv._sqlite import MOST_OF_MARK
from skpriv.preprocessing import FormulaEncoder, Numeric, Schema
from skpriv.protocol import act, report
from skpriv.protocol._sums import _of_servers
from skpriv.records import from_parquet

from .files import FILES, make_ledger, make_service

DEEP = "[" * 100_000, '{"a":' * 100_000, f"I({'-' * 5000}x)", "(" * 5000
STRANGE = (
    *DEEP,
    f"1{'0' * 400}",
    f"1{'0' * 5000}",
    "1e999",
    "NaN",
    "null",
    "7",
    "[]",
    "{}",
    "",
    "\0",
)


def written(text, path):
    path.write_text(text, encoding="utf-8")
    return path


def formula(text, folder):
    frame = pd.DataFrame({"x": [0.1, 0.2]})
    FormulaEncoder(text, {"x": Numeric(0, 1)}).fit(frame)


def parquet(text, folder):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"x": [0.1, 0.2], "y": [0.3, 0.4]})
    table = table.replace_schema_metadata({b"pandas": text.encode()})
    pyarrow.parquet.write_table(table, folder / "table.parquet")
    assert from_parquet(folder / "table.parquet", target="y").names == ["x"]


def rewards(text, folder):
    if not (folder / "service.db").exists():
        make_service(folder / "service.db")
    file = written(f'{{"event": "a", "reward": {text}}}', folder / "rewards.jsonl")
    main(["learn", str(folder / "service.db"), str(file)])


def mark(text, folder):
    if not (folder / "ledger.db").exists():
        make_ledger(folder / "ledger.db")
    written(text[:MOST_OF_MARK], folder / "ledger.db.mark")
    assert len(BudgetAccountant(ledger=folder / "ledger.db").charges) == 1


TEXTS = {
    "_codec": lambda text, folder: load(written(text, folder / "model.json")),
    "_wire": lambda text, _: report(text, [0.1], 0.2, user=0),
    "_cli._learn": rewards,
    "_sqlite": mark,
    "preprocessing._formula": formula,
    "preprocessing._schema": lambda text, _: Schema.from_toml(text),
    "protocol._device": lambda text, _: act(text, [[0.1]]),
    "protocol._sums": lambda text, _: _of_servers({"hash": ""}, [text, text], 1),
    "records._tables": parquet,
    **dict.fromkeys(FILES),
}
# Texts that the package has written itself, and nobody else can
OWN = {
    "inspection._page": "a schema that was read",
    "privacy._amplification": "a table of the package",
    "privacy._ledger._context": "what an ancestor of the same user announced",
}
