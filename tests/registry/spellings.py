"""One person, header or level in many spellings, and what is nobody."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd

# Each list is one person, and two lists are two.
SAME = (
    [1, 1.0, True, np.int64(1), np.uint8(1), np.float32(1.0), np.bool_(True), Decimal("1.00"),
     Fraction(1), "1", "1.0", np.str_("1"), b"1", np.array(1.0), " 1", "1e0", "001", "true", "1,0",
     1 + 0j, np.complex128(1), "\u00a01\u202f", "\uff11"],
    [0, -0.0, False, "0", "-0", "00"],
    [1.5, Decimal("1.5"), Fraction(3, 2), np.float64(1.5), "1.5", "1.50"],
    [0.1, np.float32(0.1), Decimal("0.1"), Fraction(1, 10), "0.10", ".1"],
    [-7, -7.0, "-7", "\u22127"],
    ["Ada", "Ada ", np.str_("\u200bAda"), b"Ada", "\uff21da"], ["ada"],
    ["O'Brien  Jos\u00e9", "O\u2019Brien Jose\u0301"],
    ["20-29", "20\u201329"],
    [("a", 1), ("a", 1.0), ["a", "1"], ("a ", np.int64(1)), {"x": "a", "y": 1}],
    ["('a', 1)"], [(("a",), 1)], ["10\u00b2"], [102, "102", "102.00"],
    [2**60, str(2**60), f"{2**60}.0", Decimal(2**60)], [2**60 + 1],
    [b"\xff\x00"], ["(1+0j)"], ["a_1"], ["1_000"], ["1,000"],
    [dt.date(2020, 1, 31), dt.datetime(2020, 1, 31), np.datetime64("2020-01-31"), "2020-01-31",
     pd.Timestamp("2020-01-31"), "2020-01-31 00:00:00"],
)  # fmt: skip
NOBODY = (
    None, float("nan"), np.float64("nan"), complex("nan"), np.float32("nan"), np.array(np.nan),
    np.datetime64("NaT", "ns"), np.timedelta64("NaT", "ns"), pd.NA, pd.NaT, np.ma.masked,
    Decimal("nan"), Decimal("sNaN"), ("a", None), ["a", float("nan")], ("a", "NA"), {"x": None},
    "", " \u00a0", b"", "NA", "null", "None ", "NaN", "#N/A", "\\N",
    float("inf"), Decimal("inf"), object(),
    2.0**53, np.float32(2.0**24),  # other whole numbers were rounded to them
)  # fmt: skip
