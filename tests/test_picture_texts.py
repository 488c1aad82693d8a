"""Every text of a picture lies within its figure, and no two labels of ticks stand on each other.

Measured by the renderer of matplotlib, for each display with names that are long, many and odd. A
public display that is not here fails the last test.
"""

from itertools import combinations

import numpy as np
import pytest
from registry.doors import public

pyplot = pytest.importorskip("matplotlib.pyplot")

from matplotlib.axis import Axis  # noqa: E402
from matplotlib.text import Text  # noqa: E402

from skpriv.bandits import RegretDisplay  # noqa: E402
from skpriv.inspection import (  # noqa: E402
    CoefficientDisplay,
    CurveDisplay,
    IntervalDisplay,
    describe,
)
from skpriv.linear_model import AdditiveRegressor  # noqa: E402
from skpriv.model_selection import PrivacyUtilityDisplay  # noqa: E402
from skpriv.preprocessing import Boolean, Categorical, Date, Numeric, Schema  # noqa: E402

LONG = "the number of days that passed between the admission and the discharge of a patient"
NAMES = {
    "long": [f"{LONG} {k}" for k in range(8)],
    "many": [f"level {k} of the list" for k in range(24)],
    "odd": [
        "$x_1$", "_a", "Größe des Körpers in Zentimetern, gemessen im Stehen", "漢字" * 20,
        "\n\n", "%s\\frac{", "<b>" * 30, "",
    ],
}  # fmt: skip
WITHIN = 1.0  # pixels: what the renderer rounds


def ticks_of(figure):
    """Extents of the labels of each axis that are drawn: inside of the range that it shows."""
    renderer = figure.canvas.get_renderer()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            labels = [tick.label1 for tick in ticks if tick.label1.get_visible()]
            drawn = [label for label in labels if label.get_text().strip()]
            yield axis, [(label, label.get_window_extent(renderer)) for label in drawn]


def texts_of(figure):
    """Extents of all texts that are drawn."""
    renderer = figure.canvas.get_renderer()
    ticks = {id(one) for ax in figure.findobj(Axis) for one in ax.findobj(Text)} - {
        id(axis.label) for axis in figure.findobj(Axis)
    }
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and id(text) not in ticks:
            yield text, text.get_window_extent(renderer)
    for _, labels in ticks_of(figure):
        yield from labels


def apart(first, second):
    """Whether two labels are apart: turned ones by the distance of their lines."""
    (one, a), (two, b) = first, second
    angle = one.get_rotation() % 180
    if angle in (0.0, 90.0):
        return not (a.shrunk(0.98, 0.9).overlaps(b.shrunk(0.98, 0.9)))
    height = one.get_fontsize() * one.figure.dpi / 72.0
    anchors = [
        np.array(label.get_transform().transform(label.get_position())) for label in (one, two)
    ]
    return np.linalg.norm(anchors[0] - anchors[1]) * np.sin(np.radians(angle)) >= 0.9 * height


def faults(figure):
    """Texts that are cut, and labels that stand on each other."""
    figure.canvas.draw()
    box = figure.bbox
    for text, extent in texts_of(figure):
        seen = text.get_text() != "\u200b"  # that of an empty name, which nobody sees
        if seen and (
            extent.x0 < box.x0 - WITHIN or extent.y0 < box.y0 - WITHIN
            or extent.x1 > box.x1 + WITHIN or extent.y1 > box.y1 + WITHIN
        ):  # fmt: skip
            yield f"cut: {text.get_text()!r} {extent.extents.round()} of {box.extents}"
    for axis, labels in ticks_of(figure):
        for first, second in combinations(labels, 2):
            if not apart(first, second):
                yield f"overlap: {first[0].get_text()!r}, {second[0].get_text()!r} of {axis}"


def coefficients(names, **changes):
    size = len(names)
    estimate = np.linspace(-1.0, 2.0, size)
    estimate[0] = np.nan
    given = {
        "names": names, "estimate": estimate, "low": estimate - 0.3, "high": estimate + 0.4,
        "privacy_share": np.full(size, 0.5), "confidence_level": 0.95,
    } | changes  # fmt: skip
    return CoefficientDisplay(**given).plot().figure_


def odds(names):
    ends = {name: np.geomspace(0.02, 30.0, len(names)) * k for name, k in
            (("estimate", 1.0), ("low", 0.5), ("high", 2.0))}  # fmt: skip
    return coefficients(names, ratio="odds ratio", **ends)


def intervals(names):
    prediction = np.linspace(0.0, 1.0, len(names))
    return IntervalDisplay(
        values=np.array(names, dtype=object), prediction=prediction, low=prediction - 1.0,
        high=prediction + 1.0, feature_name=names[0], target_name=names[-1], label=LONG,
    ).plot().figure_  # fmt: skip


def grids(names):
    values = np.linspace(1e6, 2e6, 20)
    return IntervalDisplay(
        values=values, prediction=values * 1e6, low=values, high=values * 3e6,
        feature_name=names[0], target_name=names[-1], label="95% interval", joined=True,
    ).plot().figure_  # fmt: skip


def additive(names):
    import pandas as pd

    names = list(dict.fromkeys(names))[:7]
    X = pd.DataFrame(np.random.default_rng(0).uniform(size=(2_000, len(names))), columns=names)
    model = AdditiveRegressor(
        epsilon=20.0, bounds_X=(0, 1), bounds_y=(0, 1), random_state=0, knots=3,
    ).fit(X, X.iloc[:, 0])  # fmt: skip
    return CurveDisplay.from_estimator(model, target_name=names[-1]).figure_


def levels(names):
    import pandas as pd
    from sklearn.pipeline import make_pipeline

    from skpriv.preprocessing import TableEncoder

    rng = np.random.default_rng(0)
    column = Categorical(list(dict.fromkeys(filter(str.strip, names))))
    table = pd.DataFrame({names[0]: rng.choice(column.categories, 4_000)})
    encoder = TableEncoder({names[0]: column}).fit(table)
    last = AdditiveRegressor(
        epsilon=20.0, bounds_X=encoder.bounds_out_, linear_features=encoder.linear_features_out_,
        bounds_y=(0, 1), random_state=0,
    )  # fmt: skip
    model = make_pipeline(encoder, last).fit(table, rng.uniform(size=4_000))
    return CurveDisplay.from_estimator(model).figure_


def description(names):
    import pandas as pd

    listed = list(dict.fromkeys(filter(str.strip, names)))
    columns = {
        f"{listed[0]} 0": Numeric(0, 1e9), f"{listed[-1]} 1": Categorical(listed),
        f"{listed[-1]} 2": Date("2019-01-01", "2024-12-31"), LONG: Boolean(),
    }  # fmt: skip
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 2000, 500), "D")
    cells = [
        rng.uniform(0, 1e9, 500),
        rng.choice(listed, 500),
        days,
        rng.choice([True, False], 500),
    ]
    table = pd.DataFrame(dict(zip(columns, cells, strict=True)))
    found = describe(table, Schema(columns), epsilon=1.0, delta=1e-6, random_state=0)
    return found.plot()[0].figure


def regrets(names):
    runs = np.cumsum(np.random.default_rng(0).uniform(size=(len(names), 2, 50)), axis=2)
    return RegretDisplay(rounds=np.arange(1, 51) * 1000, regret=runs, names=names).plot().figure_


def utility(names):
    scores = np.random.default_rng(0).uniform(size=(6, 2, 3))
    return PrivacyUtilityDisplay(
        epsilons=np.array([0.1, 0.11, 0.3, 1.0, 3.0, 10.0]), test_scores=scores,
        reference_scores=np.ones(3), estimator_name=names[0], score_name=LONG,
    ).plot().figure_  # fmt: skip


MAKERS = {
    "CoefficientDisplay": [coefficients, odds], "IntervalDisplay": [intervals, grids],
    "CurveDisplay": [additive, levels], "Description": [description],
    "RegretDisplay": [regrets], "PrivacyUtilityDisplay": [utility],
}  # fmt: skip


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("maker", [one for makers in MAKERS.values() for one in makers])
def test_texts_lie_within_the_figure(maker, kind):
    assert not list(faults(maker(NAMES[kind])))


def test_cut_and_crowded_labels_are_found():
    figure, ax = pyplot.subplots(figsize=(2.0, 2.0))
    ax.set(xlabel=LONG, xticks=[0.0, 0.01], xticklabels=["first label", "second label"])
    found = " ".join(faults(figure))
    assert "cut: 'the number" in found and "overlap: 'first label'" in found


def test_every_display_is_drawn():
    drawn = {name for name, thing in public().items() if callable(getattr(thing, "plot", None))}
    assert drawn == set(MAKERS), drawn ^ set(MAKERS)
