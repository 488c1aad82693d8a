"""Text of a person is never markup: one list of names through all that shows names."""

import re
import warnings
from functools import cache
from html.parser import HTMLParser
from io import BytesIO, StringIO

import numpy as np
import pytest
from registry.names import HOSTILE_NAMES, USUAL_NAMES
from sklearn.pipeline import make_pipeline

import skpriv.audit
import skpriv.inspection as inspection
import skpriv.model_selection as model_selection
from skpriv import BudgetAccountant, bandits, describe
from skpriv._printing import (
    LINE, Display, Head, Printed, Table, latex_text, markdown_text, one_line, picture_text,
    picture_texts, text_width,
)  # fmt: skip
from skpriv.inspection import (
    CoefficientDisplay, CurveDisplay, IntervalDisplay, coefficient_table, compare_models, inference,
    model_card, release_page, typical_predictions,
)  # fmt: skip
from skpriv.inspection._page import Html, shown_coefficients
from skpriv.linear_model import AdditiveRegressor, IVRegressor, LinearRegression, LogisticRegression
from skpriv.preprocessing import Categorical, Numeric, Schema, TableEncoder, check_table

pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib").use("Agg")
N = 1000


def names_of(kind):
    return HOSTILE_NAMES if kind == "hostile" else USUAL_NAMES


@cache
def table(kind):
    """A table whose columns, levels and target have these names, and its schema."""
    names, rng = names_of(kind), np.random.default_rng(0)
    columns = {name: rng.random(N) for name in names[::6]}  # each of them is a picture
    levels = [name for name in names if name not in columns]
    target = names[0] + names[15] + names[17]
    columns[names[1] + names[16]] = rng.choice(levels, N)
    frame = pd.DataFrame({**columns, target: rng.random(N)})
    types = {name: Numeric(0, 1) for name in [*columns][:-1]}
    types[[*columns][-1]] = Categorical(levels, other=False)
    return frame, Schema({**types, target: Numeric(0, 1)}, target=target), target


@cache
def fitted(kind, regressor="linear"):
    frame, schema, target = table(kind)
    ends = {"bounds_X": (0, 1), "epsilon": 1e5, "random_state": 0}
    if regressor == "classes":
        labels = names_of(kind)[15:18]
        last, y = LogisticRegression(classes=labels, **ends), np.array(labels, object)
        y = y[np.arange(N) % 3]
    elif regressor == "two classes":
        labels = names_of(kind)[:2]
        last, y = LogisticRegression(classes=labels, **ends), np.array(labels, object)
        y = y[np.arange(N) % 2]
    else:
        kinds = {"linear": LinearRegression, "additive": AdditiveRegressor}
        last, y = kinds[regressor](**ends, bounds_y=(0, 1)), frame[target]
    with BudgetAccountant(1e6, 1e-3, who=names_of(kind)[15], purpose=names_of(kind)[5]) as spent:
        return make_pipeline(TableEncoder(schema), last).fit(frame, y), spent


def intervals(kind):
    """Different rows of texts, one of each level."""
    frame, _, target = table(kind)
    model, _ = fitted(kind)
    column = names_of(kind)[1] + names_of(kind)[16]
    rows = frame.drop_duplicates(column).sort_values(column)
    return IntervalDisplay.from_estimator(model, rows, column, target_name=target)


def regret(kind, part=slice(0, 45, 4)):
    names = names_of(kind)[part]
    runs = np.cumsum(np.random.default_rng(0).random((len(names), 2, 20)), axis=2)
    return bandits.RegretDisplay(regret=runs, rounds=np.arange(1, 21), names=names).plot()


def utility(kind):
    X = np.random.default_rng(0).random((200, 1))
    curve = model_selection.privacy_utility_curve(
        LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1)), X, X[:, 0], epsilons=[1.0, 10.0], cv=2
    )
    display = model_selection.PrivacyUtilityDisplay.from_curve(curve)
    for name in names_of(kind)[::3]:
        display.estimator_name = display.score_name = name
        display.plot(getattr(display, "ax_", None), name=name)
    return display


@cache
def description(kind):
    frame, schema, _ = table(kind)
    return describe(frame, schema, epsilon=1e4, delta=1e-6, random_state=0)


def first_stage(kind):
    names, rng = names_of(kind), np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((N, 10)), columns=names[15:25])
    model = IVRegressor(
        instruments=[names[15]],
        endogenous=[names[16]],
        bounds_X=(0, 1),
        bounds_y=(0, 1),
        epsilon=1e5,
    )
    return model.fit(frame, frame[names[17]]).first_stage_


def epochs_report(kind):
    report = bandits.LinUCB().guarantee
    return bandits.EpochsReport(names_of(kind)[15], report)


PICTURES = {
    "CoefficientDisplay": lambda kind: CoefficientDisplay.from_estimator(fitted(kind)[0]),
    "CoefficientDisplay of odds": lambda kind: CoefficientDisplay.from_estimator(
        fitted(kind, "two classes")[0], scale="odds", intercept=True
    ),
    "CurveDisplay": lambda kind: CurveDisplay.from_estimator(
        fitted(kind, "additive")[0], target_name=table(kind)[2]
    ),
    "IntervalDisplay": intervals,
    "RegretDisplay": regret,
    "PrivacyUtilityDisplay": utility,
}
PRINTED = {
    "Inference": lambda kind: inference(fitted(kind)[0]),
    "Inference of classes": lambda kind: inference(fitted(kind, "classes")[0]),
    "Inference of two": lambda kind: inference(fitted(kind, "two classes")[0]),
    "Description": description,
    "TableCheck": lambda kind: check_table(*table(kind)[:2]),
    "PrivacyReport": lambda kind: fitted(kind)[0][-1].privacy_report_,
    "BudgetAccountant": lambda kind: fitted(kind)[1],
    "FirstStage": first_stage,
    "EpochsReport": epochs_report,
    "Plan": None,  # of numbers alone
    "Exported": None,  # a base class
    "_Curves": lambda kind: shown_coefficients(fitted(kind, "additive")[0], 0.95)[0],
    "ModelComparison": lambda kind: compare_models(
        {name: fitted(kind)[0] for name in names_of(kind)[:2]}
    ),
    "TypicalPredictions": lambda kind: typical_predictions(fitted(kind)[0], table(kind)[0][:3]),
}


def subclasses(kind):
    for inner in kind.__subclasses__():
        if inner.__module__.startswith("skpriv."):
            yield inner.__name__
            yield from subclasses(inner)


def test_every_display_and_table_is_shown_with_hostile_names():
    for base, makers in ((Display, PICTURES), (Printed, PRINTED)):
        assert set(subclasses(base)) == {name.split(" of ")[0] for name in makers}
    shown = {*inspection.__all__, *model_selection.__all__, *skpriv.audit.__all__}
    assert {name for name in shown if name.endswith(("Display", "_card", "_page", "_table"))} == {
        "CoefficientDisplay", "CurveDisplay", "IntervalDisplay", "PrivacyUtilityDisplay",
        "coefficient_table", "model_card", "release_page",
    }  # fmt: skip


def drawn(display, **options):
    """The figure as bytes; a letter that no font has is no concern of ours."""
    from matplotlib import pyplot

    figure = display if hasattr(display, "savefig") else display.figure_
    out = (StringIO if options["format"] == "svg" else BytesIO)()
    with warnings.catch_warnings(), pyplot.rc_context({"svg.fonttype": "none"}):
        warnings.filterwarnings("ignore", "(Glyph|Matplotlib currently does not support)")
        figure.savefig(out, bbox_inches="tight", **options)
    return out.getvalue()


def check_picture(figure):
    from matplotlib import pyplot
    from matplotlib.text import Text

    page = drawn(figure, format="svg")
    tags = re.findall(r"<(/?\w+)", page)
    assert not {"script", "h1", "td"} & set(tags)
    for text in figure.findobj(Text):
        line = text.get_text()
        assert text_width(line) <= 120 and "\n" not in line
        if "mathdefault" not in line:
            assert not text._preprocess_math(line)[1], f"{line!r} is taken for mathematics"
    for ax in figure.axes:  # labels have not pushed the axes away
        assert ax.get_position().width * figure.get_figwidth() > 1.0, ax
        assert ax.get_position().height * figure.get_figheight() > 0.6
    pyplot.close(figure)
    return page


@pytest.mark.parametrize("name", [name for name, maker in PICTURES.items() if maker])
def test_pictures(name):
    check_picture(PICTURES[name]("hostile").figure_)


def test_pictures_of_a_description():
    axes = description("hostile").plot()
    drawn(axes[0].figure, format="png", dpi=20)
    axes[0].figure.set_layout_engine("none")  # where its parts stand is known now
    check_picture(axes[0].figure)


def test_legends_and_ticks_have_all_names():
    display = regret("hostile", slice(None))
    (legend,) = [ax.get_legend() for ax in display.figure_.axes]
    assert len(legend.get_texts()) == len(set(legend_texts(legend))) == len(HOSTILE_NAMES)
    from matplotlib import pyplot

    pyplot.close(display.figure_)


def legend_texts(legend):
    return [text.get_text() for text in legend.get_texts()]


class Tags(HTMLParser):
    """Which elements a page has, one after the other, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, sorted(name for name, _ in attributes)))

    def handle_data(self, data):
        self.text += data


def without_picture(page):
    return re.sub(r"<figure>.*</figure>", "", page, flags=re.DOTALL)


def check_html(hostile, usual):
    """The same elements: no name is one, ends one, or is an attribute."""
    one, two = Tags(without_picture(hostile)), Tags(without_picture(usual))
    assert one.tags == two.tags
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08]", hostile)


@pytest.mark.parametrize("name", [name for name, maker in PRINTED.items() if maker])
def test_tables_as_text_and_html(name):
    hostile, usual = (PRINTED[name](kind) for kind in ("hostile", "usual"))
    check_html(hostile._repr_html_(), usual._repr_html_())
    for part in hostile._parts():
        if isinstance(part, Table):
            lines = str(part).split("\n")
            goes_on = isinstance(part, Head) and max(map(len, lines)) <= LINE
            assert len(lines) == len(part.rows) + bool(part.header) or goes_on
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\t\r]", str(hostile))


@pytest.mark.parametrize("regressor", ["linear", "additive", "classes", "two classes"])
def test_pages_and_cards(regressor, monkeypatch):
    made = {}
    for kind in ("hostile", "usual"):
        (model, spent), title = fitted(kind, regressor), names_of(kind)[15]
        found = description(kind) if regressor == "linear" else None
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "(Glyph|Matplotlib currently does not support)")
            page = release_page(model, title=title, accountant=spent, description=found)
        # Tags of the usual page are compared without its picture.
        monkeypatch.setattr("skpriv.inspection._page._picture_html", lambda *_: Html())
        made[kind] = page, model_card(model, title=title), coefficient_table(model)
    check_html(made["hostile"][0], made["usual"][0])
    assert "<script" not in made["hostile"][0] and "&lt;script&gt;" in made["hostile"][0]
    check_markdown(made["hostile"][1], made["usual"][1])
    assert not re.search("[\u202a-\u202e\t\r]", made["hostile"][2])


def check_markdown(hostile, usual):
    """The same paragraphs, lists and tables, and no emphasis, link or HTML in them."""
    markdown_it = pytest.importorskip("markdown_it")
    reader = markdown_it.MarkdownIt("gfm-like", {"linkify": False}).disable("linkify")
    blocks = [[(t.type, t.tag) for t in reader.parse(text)] for text in (hostile, usual)]
    assert blocks[0] == blocks[1]
    inner = {child.type for t in reader.parse(hostile) for child in t.children or ()}
    assert inner <= {"text", "softbreak", "text_special"}


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_a_text_is_shown_as_it_is(name):
    markdown_it = pytest.importorskip("markdown_it")
    line = one_line(name)
    for text in (f"{markdown_text(name)}", f"- {markdown_text(name)}", f"# {markdown_text(name)}"):
        rendered = markdown_it.MarkdownIt("gfm-like", {"linkify": False}).render(text)
        parsed = Tags(rendered)
        assert parsed.text.strip() == line
        assert {tag for tag, _ in parsed.tags} <= {"p", "ul", "li", "h1"}
    unescaped = re.sub(r"\\[{}$&#%_]|\\text\w+\{\}|\{\[\}", "", latex_text(name))
    assert not re.search(r"[\\{}$&#%_^~<>|]", unescaped)
    shown = picture_text(name).lstrip("\u200b").replace(r"\$", "$")
    assert text_width(shown) <= 32 and (shown == line or "…" in shown)
    assert shown[:6] == line[:6] and shown[-6:] == line[-6:]


def test_names_that_are_shortened_to_the_same_text_are_told_apart():
    one, two = ("y" * 90 + digit + "y" * 109 for digit in "12")
    shown = picture_texts([one, two, one, "short"])
    assert shown[0] == shown[2] and shown[1] == f"{shown[0]} (2)" and shown[3] == "short"


def test_wide_letters_are_aligned():
    lines = str(Table(("", "n"), [("收入", "1"), ("ab", "22"), ("e\u0301", "3")])).split("\n")
    assert {text_width(line) for line in lines} == {8}
