import sys
from dataclasses import fields

import numpy as np
import pytest
from registry.estimators import line_data, ssp

from skpriv.model_selection import PrivacyUtilityDisplay, privacy_utility_curve

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")


DATA = line_data(300, 2)


@pytest.fixture(scope="module")
def curve():
    options = {"epsilons": [10.0, 0.5, np.inf], "cv": 3, "n_repeats": 2, "random_state": 0}
    return privacy_utility_curve(ssp(), *DATA, reference=ssp(privacy="none"), **options)


@pytest.mark.parametrize(
    "quantity, values, reference",
    [
        ("score", "test_scores", "reference_scores"),
        ("width", "interval_widths", "reference_widths"),
        ("coverage", "interval_coverages", None),
    ],
)
def test_draws_medians_in_order(quantity, values, reference, curve):
    display = PrivacyUtilityDisplay.from_curve(curve)
    assert display.plot(quantity=quantity) is display
    x, y = display.line_.get_data()
    np.testing.assert_array_equal(x, [0.5, 10.0])  # infinity has no place on the axis
    np.testing.assert_allclose(y, [np.median(curve[values][i]) for i in (1, 0)])
    assert display.ax_.get_xscale() == "log"
    assert display.figure_ is display.ax_.figure
    if reference:
        assert display.reference_line_.get_ydata()[0] == np.median(curve[reference])
    else:
        assert display.reference_line_ is None


def test_holds_arrays_only(curve):
    display = PrivacyUtilityDisplay.from_curve(curve)
    held = [getattr(display, field.name) for field in fields(display)]
    assert all(value is None or isinstance(value, (np.ndarray, str)) for value in held)


def test_plots_on_given_axes(curve):
    _, ax = pyplot.subplots()
    display = PrivacyUtilityDisplay.from_curve(curve, ax=ax, name="mine", show_reference=False)
    assert display.ax_ is ax and len(ax.lines) == 1
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["mine"]


def test_from_estimator_is_the_curve():
    options = {"epsilons": [0.5, 5.0], "cv": 3, "n_repeats": 1, "random_state": 0}
    _, ax = pyplot.subplots()
    display = PrivacyUtilityDisplay.from_estimator(ssp(), *DATA, ax=ax, quantity="width", **options)
    curve = privacy_utility_curve(ssp(), *DATA, **options)
    np.testing.assert_allclose(display.test_scores, curve.test_scores, rtol=1e-9)
    assert display.ax_ is ax and "width" in ax.get_ylabel()


@pytest.mark.parametrize("quantity, message", [("coverage", "not measured"), ("r2", "one of")])
def test_refuses_what_it_has_not(quantity, message, curve):
    other = type(curve)(**{**curve, "interval_coverages": None})
    with pytest.raises(ValueError, match=message):
        PrivacyUtilityDisplay.from_curve(other, quantity=quantity)


def test_names_the_extra_before_any_work(curve, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"skpriv\[plot\]"):
        PrivacyUtilityDisplay.from_estimator(None, *DATA)
    with pytest.raises(ImportError, match=r"skpriv\[plot\]"):
        PrivacyUtilityDisplay.from_curve(curve)
