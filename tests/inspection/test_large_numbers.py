"""Incomes and costs are large: no number of a sentence or of a table of effects has an exponent."""

import re
from functools import cache

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from skpriv._printing import short_number
from skpriv.inspection import (
    CoefficientDisplay,
    CurveDisplay,
    coefficient_table,
    describe,
    marginal_effects,
    model_card,
    release_page,
    typical_predictions,
)
from skpriv.linear_model import AdditiveRegressor, LinearRegression, PoissonRegressor
from skpriv.preprocessing import Categorical, Date, Numeric, Schema, TableEncoder

pd = pytest.importorskip("pandas")
SCHEMA = Schema(
    {
        "income": Numeric(0, 250_000, unit="€"),
        "day": Date("2020-01-01", "2024-12-31"),
        "ward": Categorical(["A", "B"]),
    }
)
EXPONENT = re.compile(r"\d[eE]\+\d")  # 1e+05; 1e-06 is a delta


@cache
def fitted(kind, epsilon=1.0):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"income": rng.uniform(0, 250_000, 4000), "ward": rng.choice(["A", "B"], 4000)}
    )
    table["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1800, 4000), "D")
    encoder = TableEncoder(SCHEMA).fit(table)
    options = {"epsilon": epsilon, "bounds_X": encoder.bounds_out_, "random_state": 0}
    if kind == "curves":
        last = AdditiveRegressor(
            bounds_y=(0, 1_000_000), linear_features=encoder.linear_features_out_, **options
        )
    elif kind == "counts":
        last = PoissonRegressor(bounds_y=(0, 1_000_000), **options)
    else:
        last = LinearRegression(bounds_y=(0, 1_000_000), **options)
    cost = 3.0 * table["income"] + rng.normal(0, 20_000, 4000)
    return make_pipeline(encoder, last).fit(table, np.clip(cost, 0, None).round()), table


@pytest.mark.usefixtures("no_picture")
@pytest.mark.parametrize("kind", ["line", "curves", "counts"])
def test_printed_numbers_have_no_exponent(kind):
    model, table = fitted(kind)
    texts = [coefficient_table(model), model_card(model)]
    texts += [release_page(model)]
    if kind != "curves":
        typical = table.head(1).assign(income=1_234_567.0)  # made up
        texts += [str(typical_predictions(model, typical)), str(marginal_effects(model, typical))]
        assert "income=1,234,567" in texts[-1]
    texts += [
        str(
            describe(
                table, SCHEMA, epsilon=1.0, delta=1e-6, pairs=[("income", "ward")], random_state=0
            )
        )
    ]
    for text in texts:
        assert not EXPONENT.search(text), EXPONENT.search(text)


@pytest.mark.parametrize(
    "value, text",
    [(1234567.8, "1,234,568"), (999.96, "1000"), (0.012345, "0.01235"), (-2e4, "-20,000")],
)
def test_a_short_number(value, text):
    assert short_number(value) == text


def test_a_picture_of_ranges_says_how_wide_they_are():
    """A number "per year" would be wrong beside the effect of five years."""
    pytest.importorskip("matplotlib").use("agg")
    display = CoefficientDisplay.from_estimator(fitted("line")[0], scale="range")
    assert display.names[:3] == ["income per € × 250,000", "day per year × 5", "ward=B"]


def test_a_curve_that_is_noise_has_an_empty_panel_with_its_range():
    """It had the range from -.05 to .05 of nothing, and days of January 1970."""
    pytest.importorskip("matplotlib").use("agg")
    display = CurveDisplay.from_estimator(fitted("curves", 0.05)[0])
    income, day, _ = display.axes_
    assert [text.get_text() for ax in (income, day) for text in ax.texts] == 2 * ["not estimable"]
    low, high = income.get_xlim()
    assert -25_000 <= low <= 0.0 and 250_000 <= high <= 275_000
    first, last = day.get_xlim()  # days from 1970 on
    assert 18_000 < first <= 18_262 and 20_088 <= last < 20_400
