"""Texts of Arrow, which are numbered once a batch, are read as all others are."""

from functools import partial

import narwhals.stable.v2 as nw
import numpy as np
import pytest

from skpriv.preprocessing import _values

CELLS = ["a", "b ", None, "NA", "1", "1.0", "true", "2020-02-29", "e\u0301", "\u00e9", "", "?", "a"]
LEVELS = {"a": 0, "b": 1, "1": 2, "\u00e9": 3, "True": 4}
READERS = [
    lambda series: _values.codes_of(series, LEVELS, 98, 99),
    _values.numbers_of,
    partial(_values.booleans_of, words={}),
    _values.days_of,
]


@pytest.mark.parametrize("read", READERS)
def test_arrow_says_what_a_list_says(read):
    pa = pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    expected = read(nw.from_native(pd.Series(CELLS, dtype=object), series_only=True))
    plain = pa.chunked_array([CELLS[:3], [], CELLS[3:]], type=pa.string())
    coded = plain.dictionary_encode()
    for column in (plain, coded, plain.cast(pa.large_string())):
        for start, stop in ((0, len(CELLS)), (2, 9), (5, 5)):
            part = nw.from_native(column.slice(start, stop - start), series_only=True)
            assert isinstance(part.dtype, nw.String | nw.Categorical)
            np.testing.assert_array_equal(read(part), expected[start:stop])
