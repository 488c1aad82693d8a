"""Hostile schema files: each value of each key is read, or refused in a sentence that names it."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

from skpriv.preprocessing import Schema, TableEncoder
from skpriv.preprocessing._schema import TYPES, TableFormat

BEGINNINGS = {
    "numeric": {"low": "0", "high": "10"},
    "categorical": {"categories": '["a", "b"]'},
    "ordinal": {"categories": '["a", "b", "c"]'},
    "boolean": {},
    "date": {"low": "2000-01-01", "high": "2020-01-01"},
}
VALUES = [
    "1", "-1.5", "nan", "-inf", "1e308", "1e400", "9" * 400, "true", '""', '"a"', '"\\u0000"',
    '";"', '"\\n"', '"\\""', '"\\u202E"', '"%Q"', '"indicator"', '"day"', '"hex"', '"idna"', "[]",
    "[1, 2]",
    '["a"]', '["a", "a "]', '["\\u00e9", "e\\u0301"]', '[1, "1"]', '["NA", "a"]', '[""]', "[[]]",
    "[nan, 1]", "[inf, 1]", "[{}]", "[1979-05-27]", "[1e308, -1e308]", "{}", '{ "z" = "a" }',
    "{ a = [] }", '[["a", "b"]]', "1979-05-27", "1979-05-27T07:32:00Z", "07:32:00", "0001-01-01",
    "9999-12-31T23:59:59-14:00",
]  # fmt: skip
CELLS = ["a", "1", "", None, "2001-01-01"]


def _text(top, column):
    lines = [f"{key} = {value}" for key, value in top.items()]
    return "\n".join([*lines, "[col]", *(f"{key} = {value}" for key, value in column.items())])


def _texts():
    for kind, beginning in BEGINNINGS.items():
        usual = {"type": f'"{kind}"'} | beginning
        for key in [*(field.name for field in fields(TYPES[kind])), "role", "type", "strange"]:
            yield from ((key, _text({}, usual | {key: value})) for value in VALUES)
    usual = {"type": '"numeric"', "low": "0", "high": "1"}
    for key in [*(field.name for field in fields(TableFormat)), "strange"]:
        person = {"person": '"p"'} if key == "limit" else {}
        yield from ((key, _text(person | {key: value}, usual)) for value in VALUES)


@pytest.mark.filterwarnings("error")
def test_every_value_of_every_key_is_read_or_refused_by_its_name():
    frame = pd.DataFrame({"col": CELLS})
    counts = {True: 0, False: 0}
    for key, text in _texts():
        try:
            schema = Schema.from_toml(text)
            schema.check_filled()
        except ValueError as error:
            counts[False] += 1
            assert key in str(error) or "col" in str(error), text
            assert str(error).isprintable(), text
        else:
            counts[True] += 1
            assert Schema.from_toml(schema.to_toml()) == schema, text
            rows = TableEncoder(schema.select(["col"])).fit_transform(frame)
            assert np.linalg.norm(rows, axis=1).max() <= 1.0, text
    assert min(counts.values()) > 50  # neither side is empty


NUMERIC = "type = 'numeric'\nlow = 0\nhigh = 1\n"


@pytest.mark.parametrize("text", [
    f"[col]\nlow = {'9' * 5000}\n{NUMERIC[:17]}", f"[col]\ntype = {'[' * 3000}{']' * 3000}",
    f"[col]\ntype = {'{a = ' * 2000}1{'}' * 2000}", f"[[col]]\n{NUMERIC}", f"[col.a]\n{NUMERIC}",
    f"[col]\n{NUMERIC}[col]\n{NUMERIC}", "[col]\n\0", f"[col]\r{NUMERIC}", "", "# col",
])  # fmt: skip
def test_files_that_are_no_schema(text):
    with pytest.raises(ValueError, match=r"The schema|'col'"):
        Schema.from_toml(text)


@pytest.mark.parametrize("names", [["a", "a "], ["1", "1.0"], ["\u00e9", "e\u0301"]])
def test_two_names_of_one_column_are_not_read_as_two_columns(names):
    schema = Schema.from_toml("\n".join(f'["{name}"]\n{NUMERIC}' for name in names))
    with pytest.raises(ValueError, match="two names of the column"):
        TableEncoder(schema).fit(pd.DataFrame({names[0]: [0.5]}))
    TableEncoder(schema).fit(pd.DataFrame({name: [0.5] for name in names}))  # they are two
