"""Each table has one kind, which is found from its class, and says what is public about it."""

import narwhals.stable.v2 as nw
import pandas as pd
import pytest

from skpriv.records import _sources, is_lazy

pa = pytest.importorskip("pyarrow")
ds = pytest.importorskip("pyarrow.dataset")
FRAME = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [0, 1, 0]})
TABLE = pa.Table.from_pandas(FRAME)
# Makers of a table, its kind, and the number of rows that is public without a look at one.
KINDS = {
    "pandas": (lambda: FRAME, "Frame", 3),
    "polars": (lambda: pytest.importorskip("polars").from_pandas(FRAME), "Frame", 3),
    "table": (lambda: TABLE, "Frame", 3),
    "batch": (lambda: TABLE.to_batches()[0], "Frame", 3),
    "lazy": (lambda: pytest.importorskip("polars").from_pandas(FRAME).lazy(), "LazyFrame", None),
    "reader": (lambda: TABLE.to_reader(2), "ArrowReader", None),
    "scanner": (lambda: ds.dataset(TABLE).scanner(columns=["x", "y"]), "ArrowScanner", None),
    "filtered": (lambda: ds.dataset(TABLE).filter(ds.field("x") > 1.0), "ArrowDataset", None),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_table_has_one_kind(name):
    make, kind, count = KINDS[name]
    source = _sources.source_of(make())
    assert type(source).__name__ == kind and source.count() == count
    assert source.names == ["x", "y"] == list(source.dtypes())
    assert source.is_lazy == is_lazy(make()) == (kind != "Frame")
    read = [
        nw.from_native(_sources.frame(block), pass_through=True)["y"].to_list()
        for block in source.batches(["x", "y"])
    ]
    assert sum(read, []) == ([1, 0] if name == "filtered" else [0, 1, 0])


@pytest.mark.parametrize("data", [[1, 2], "text", None, FRAME["x"], TABLE.column("x")])
def test_what_is_no_table_has_none(data):
    assert _sources.source_of(data) is None
