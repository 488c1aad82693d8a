"""The documents that are published beside a model: its coefficients as a table, its card, and one
page."""

from collections.abc import Iterator
import tomllib
from contextlib import suppress
from dataclasses import dataclass, replace
from html import escape
from importlib.metadata import version
from io import StringIO
from math import exp, isinf
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from .._estimation._coefficients import NoLaw
from .._parameters import validated
from .._printing import (
    STYLE,
    Exported,
    Html,
    Table,
    aligned,
    html,
    markdown,
    markdown_text,
    short_number,
    sentence,
)
from .._version import VERSION
from ..preprocessing import FormulaEncoder, Schema, TableEncoder, as_schema
from ..privacy import learns_nothing
from ._coefficient_display import CoefficientDisplay
from ._curve_display import CurveDisplay, curves
from ._inference import Inference, inference
from ._units import last_step, model_steps, named_note, public_widths, table_units

if TYPE_CHECKING:
    from ..privacy import BudgetAccountant, PrivacyReport
    from ._description import Description

_ONE_RECORD = (
    "One record is one row. For a person with several rows epsilon is multiplied by their number, "
    "and by more where delta is to stay the same: five rows turn epsilon 1 into 5.9 at delta 1e-6. "
    "A fit with `groups` protects all rows of a person together."
)
_GROUP = "Rows of one person may depend on each other: standard errors are for persons, too."
_BAND = (
    "Effects add up, and curves are straight between the public knots.",
    "A band covers all of a curve at once. It counts sampling and privacy noise.",
    "A dash is an effect that cannot be told from noise.",
)
_CELLS_NOTE = (
    "Values outside of a range are clipped, and values that no list has are 'other'. A missing "
    "cell, also of a target that is a number, is 'other', or the middle of the range, unless the "
    'column says what it is; with `missing = "indicator"` on the target it counts for nothing. In '
    "a list "
    "without 'other' it counts as the mean of all levels, and so does a value that is not listed."
)
_LEDGER = "Epsilons of single charges do not add up to the total, which is composed exactly."
_DESCRIPTION = (
    "These numbers were released separately, with their own guarantee: {}. The costs of both add "
    "up."
)
_NOT_COVERED = (
    "Other releases from the same rows: their costs add up, in an accountant or ledger of all.",
    "How the table was made: which rows and columns were taken, how bounds and lists were chosen. "
    "They are public, and must not come from the rows.",
    "The number of records, which is public, and the time that the fit took.",
    "Scores, plots and tables that were computed from the rows without a charge to the budget.",
    "What the model says about people in general, those who are not in the table included.",
)


def _estimates(model: Any) -> Table | str:
    """Table of the estimates of a model whose coefficients have no law."""
    last = last_step(model)
    if not hasattr(last, "coef_"):
        return "This model has no coefficients."
    try:
        names, matrix, _ = table_units(model)
    except NoLaw:  # The units of the table are not known: name what the steps before return.
        names, matrix, _ = table_units(last)
    coef = np.column_stack([np.atleast_2d(last.coef_), np.atleast_1d(last.intercept_)]).ravel()
    return Table(("", "estimate"), list(zip(names, map(short_number, matrix @ coef), strict=True)))


def shown_coefficients(model: Any, confidence_level: float) -> list[Any]:
    """The parts of a model that are shown: curves, coefficients with intervals, or estimates alone.

    Parameters
    ----------
    model : estimator
    confidence_level : float in (0, 1)

    Returns
    -------
    list
        The last item is an Inference, a Table or a str, or it prints curves.
    """
    if last_step(model).curve:
        return [_Curves(model, confidence_level)]
    try:
        return [inference(model, confidence_level=confidence_level)]
    except (NoLaw, NotImplementedError):  # There are no standard errors, or no known units.
        return [_estimates(model)]


def coefficient_table(model: Any, *, confidence_level: float = 0.95) -> str:
    """Coefficients of a fitted model as plain text, in the units of its table; or its curves.

    Parameters
    ----------
    model : estimator
        A fitted regressor of skpriv, or a Pipeline of `TableEncoder` or `BoundsScaler` and one.
    confidence_level : float in (0, 1), default=0.95
        Confidence level of the intervals, where the regressor has standard errors.

    Returns
    -------
    str
        The table as text; of an additive model the effects at the knots and at levels, with the
        simultaneous band.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.inspection import coefficient_table
    >>> from skpriv.linear_model import SSPRegressor
    >>> X = np.linspace(-1.0, 1.0, 1000)[:, None]
    >>> model = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), privacy="none").fit(X, X[:, 0])
    >>> "estimate" in coefficient_table(model)
    True
    """
    check_is_fitted(model)
    return "\n\n".join(map(str, shown_coefficients(model, confidence_level)))


def _sections(
    model: Any,
    confidence_level: float,
    accountant: "BudgetAccountant | None" = None,
    description: "Description | None" = None,
) -> dict[str, list[Any]]:
    """Contents of each section by its title: sentences, lists of them, tables and reports."""
    last = last_step(model)
    report = last.privacy_report_
    unit = [sentence(report.persons), _GROUP] if report.persons else [_ONE_RECORD]
    strange = [
        f"A step before the regressor, {type(step).__name__}: what it has learnt from the rows is "
        "not private."
        for step in model_steps(model)[:-1] if not learns_nothing(step)
    ]  # fmt: skip
    strange += map(sentence, report.not_covered)
    versions = {"skpriv": VERSION, "numpy": np.__version__, "scikit-learn": version("scikit-learn")}
    title = "Curves" if last.curve else "Coefficients"
    sections = {
        title: shown_coefficients(model, confidence_level),
        "What the guarantee means": [
            *meaning(report), sentence(report.guarantee), sentence(report.randomness), *unit,
        ],
        "What the guarantee does not cover": [[*strange, *_NOT_COVERED]],
        "Which noisy sums were released, and what they cost": [
            replace(report, pipeline=False, within=(), note=None)
        ],
        "What is public": [*_bounds(last, schema_of(model))],
    }  # fmt: skip
    if accountant is not None:
        sections["Ledger"] = [accountant, _LEDGER]
    if description is not None:
        of_table = description.privacy_report
        words = _DESCRIPTION.format(of_table.guarantee)
        sections["The table in numbers"] = [*_warnings(of_table), words, description]
    sections["Software"] = [Table(("package", "version"), [*versions.items()], left=2)]
    return sections


@dataclass(frozen=True, repr=False)
class _Curves(Exported):
    """Effects at the knots and at levels, with the simultaneous band of each curve."""

    model: Any
    confidence_level: float

    def _head(self) -> Iterator[tuple[str, str]]:
        last = last_step(self.model)
        report = last.privacy_report_
        yield "Estimand", last.interval_estimand
        yield f"{report.unit.capitalize()}s", f"{report.size:,}"
        yield "Privacy", str(report.guarantee)
        yield "Bands", f"{100.0 * self.confidence_level:g}% for all of a curve at once"
        mean = short_number(last.intercept_)
        yield "Reference", f"each effect is 0 on average, where the prediction is {mean}"

    def _tables(self) -> list[Table]:
        rows: list[Any] = []
        for found in curves(self.model, n_points=2, confidence_level=self.confidence_level):
            missing = found["missing"]
            effect, *_, low, high = np.hstack([found["curve"][1:6], missing])
            error = np.where(np.isfinite(high), high - low, np.nan)
            ends = (np.where(np.isnan(error), np.nan, end) for end in (effect, low, high))
            names = [*map(short_number, found["values"]), *["missing"] * len(missing[0])]
            columns = (aligned(end, error) for end in ends)
            rows += zip(len(names) * [found["name"]], names, *columns, strict=True)
        return [Table(("feature", "value", "effect", "band low", "band high"), rows)]

    def _notes(self) -> tuple[str, str, str]:
        return _BAND


def schema_of(model: Any) -> Schema:
    """Schema of the table that a Pipeline begins with; an empty one where it begins with none.

    Parameters
    ----------
    model : estimator
    """
    for step in model_steps(model):
        if isinstance(step, TableEncoder | FormulaEncoder):
            return as_schema(step.schema)
    return Schema({})


def _bounds(last: Any, schema: Schema) -> Iterator[Table | str]:
    """Public facts about the columns and the target."""
    if is_classifier(last):
        classes = ", ".join(map(str, last.classes_))
        yield f"The classes are {classes}. Nothing is learned from a row with any other label."
    else:
        low, high = last.bounds_y_
        yield f"The target is clipped to [{low:,.12g}, {high:,.12g}]."
    if (largest := last.privacy_report_.max_weight) is not None:
        yield f"Weights of rows are clipped to [0, {largest:g}]."
    if schema:
        yield _CELLS_NOTE
        rows = [
            (name, table.pop("type"), ", ".join(f"{key} {_plain(v)}" for key, v in table.items()))
            for name, table in tomllib.loads(schema.to_toml()).items()
            if isinstance(table, dict)  # and not how a CSV file is written
        ]
        yield Table(("column", "type", "what is public"), rows, left=3)
    elif last.bounds_X is not None:
        yield f"Features are clipped to their public ranges: {last.bounds_X!r}."
    elif last.data_norm is not None:
        yield f"Rows are clipped to the l2 norm {last.data_norm!r}, as they come to the regressor."


def _plain(value: Any) -> str:
    """A value of a schema as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if text.strip(" ,.'") else repr(text)  # a mark alone is not read as punctuation


_STYLE = """
body { font-family: system-ui, sans-serif; line-height: 1.5; color: #1c2733; margin: 0;
  background: #f4f6f8; }
main { max-width: 58rem; margin: 0 auto; padding: 1.5rem; background: #fff; }
h1 { line-height: 1.2; margin-top: 0.5rem; overflow-wrap: anywhere; }
h2 { border-bottom: 2px solid #dde3e9; padding-bottom: 0.2rem; margin-top: 2.2rem; }
.summary, .warning { background: #eef4fb; border-left: 5px solid #2b6cb0; padding: 0.8rem 1.2rem; }
.warning { background: #fff4e5; border-color: #c05621; }
.scroll, figure { overflow-x: auto; margin: 1rem 0; }
.scroll th, .scroll td { border-bottom: 1px solid #dde3e9; }
.scroll .number { white-space: nowrap; }
figure svg { max-width: 100%; height: auto; }
.signature { display: flex; flex-wrap: wrap; gap: 2.5rem 2rem; margin: 3rem 0 1rem; }
.signature div { flex: 1 14rem; border-top: 1px solid #1c2733; padding-top: 0.3rem; }
@media print { body { background: #fff; } main { padding: 0; } }
"""


def release_page(
    model: Any,
    *,
    title: str | None = None,
    confidence_level: float = 0.95,
    accountant: Any = None,
    description: Any = None,
) -> str:
    """Write one self-contained HTML page about a fitted model, for the person who signs it.

    The page says in plain words what the guarantee means, shows the table of coefficients and a
    picture, and lists what was asked of the rows, what it cost, what the guarantee covers and what
    it does not cover. It loads nothing from elsewhere.

    Parameters
    ----------
    model : estimator
        A fitted estimator of skpriv, or a Pipeline that ends with one.
    title : str, default=None
        Title of the page. None takes the name of the estimator and of its target.
    confidence_level : float in (0, 1), default=0.95
        Confidence level of the intervals.
    accountant : BudgetAccountant, default=None
        An accountant whose charges are listed, such as that of a ledger.
    description : Description, default=None
        A private description of the table, from :func:`skpriv.describe`, which is shown too.

    Returns
    -------
    str
        The page. It holds released answers and public numbers only, so that it may be published,
        unless ``random_state`` was given: then the noise can be drawn again and taken away.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.inspection import release_page
    >>> from skpriv.linear_model import SSPRegressor
    >>> X = np.linspace(-1.0, 1.0, 1000)[:, None]
    >>> model = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), random_state=0).fit(X, X[:, 0])
    >>> page = release_page(model, title="A study")
    >>> "What the guarantee means" in page
    True
    """
    check_is_fitted(model)
    sections = _sections(model, confidence_level, accountant, description)
    next(iter(sections.values())).append(_picture_html(model, confidence_level))
    head = title or _name(model)
    report = last_step(model).privacy_report_
    body = "\n".join(
        f'<h2>{heading}</h2>\n<div class="scroll">{"".join(map(html, contents))}</div>'
        for heading, contents in sections.items()
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(head)}</title>{STYLE}<style>{_STYLE}</style></head>\n"
        f'<body><main class="skpriv">\n<h1>{escape(head)}</h1>\n'
        f'<div class="summary"><p>{escape(_summary(report))}</p></div>\n'
        f"{''.join(map(html, _warnings(report, named_note(model))))}\n{body}\n"
        '<div class="signature"><div>Released by</div><div>Date</div><div>Signature</div></div>\n'
        "</main></body></html>\n"
    )


@validated
def model_card(
    model: Any,
    *,
    format: Literal["markdown", "html"] = "markdown",
    title: str | None = None,
    confidence_level: float = 0.95,
) -> str:
    """Card of a fitted model: what it guarantees, what it assumes, what it says.

    Parameters
    ----------
    model : estimator
        A fitted regressor of skpriv, or a Pipeline that ends with one.
    format : {"markdown", "html"}, default="markdown"
        Format of the text; in HTML it is that of :func:`release_page`.
    title : str, default=None
        Title of the card; None is the name of the regressor and its target.
    confidence_level : float in (0, 1), default=0.95
        Confidence level of the intervals of the coefficients.

    Returns
    -------
    str
        Released answers and public numbers only: it may be published, unless ``random_state`` was
        given.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.inspection import model_card
    >>> from skpriv.linear_model import SSPRegressor
    >>> X = np.linspace(-1.0, 1.0, 1000)[:, None]
    >>> card = model_card(SSPRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1), random_state=0
    ... ).fit(X, X[:, 0]))
    >>> print(card.splitlines()[0])
    # Model card: SSPRegressor
    """
    if format == "html":
        return release_page(model, title=title, confidence_level=confidence_level)
    check_is_fitted(model)
    lines = [
        f"# Model card: {markdown_text(title or _name(model))}",
        markdown_text(_summary(last_step(model).privacy_report_)),
    ]
    for heading, contents in _sections(model, confidence_level).items():
        lines += [f"## {heading}", *map(markdown, contents)]
    return "\n\n".join(lines) + "\n"


def _name(model: Any) -> str:
    """The estimator and its target."""
    target = schema_of(model).target
    return type(last_step(model)).__name__ + (f" of {target}" if target else "")


def meaning(report: "PrivacyReport") -> Iterator[str]:
    """Say what the guarantee of a report means, in sentences for somebody who decides.

    Parameters
    ----------
    report : PrivacyReport

    Yields
    ------
    str
    """
    guarantee = report.guarantee
    epsilon = guarantee.epsilon
    delta = guarantee.delta
    unit = guarantee.unit
    if isinf(epsilon):
        yield (
            "There is no privacy guarantee. The numbers were computed without noise, and they may "
            "give away what single rows hold."
        )
        return
    factor = f"e to the power epsilon, {epsilon:g}"
    factor = factor if epsilon > 7.0 else f"{exp(epsilon):.2g} ({factor})"
    yield (
        f"Suppose that somebody wants to find out something about one {unit}, and that they know "
        "everything about all the others. With this release in their hands they are hardly better "
        f"off than with a release for which the data of this {unit} had been replaced by other "
        "data."
    )
    yield (
        f"In numbers: whatever they conclude, its probability changes by a factor of at most "
        f"{factor} when the data of one {unit} are replaced"
        + (f", apart from a probability of at most {delta:g} (delta)." if delta else ".")
    )
    yield (
        "The guarantee holds whatever else they know, and whatever is computed from this release "
        "later. It does not hide what is true of people in general."
    )
    if epsilon > 10.0:
        yield (
            "This epsilon is large, so that the factor promises little protection. Ask why a "
            "smaller epsilon was not enough."
        )


def _summary(report: "PrivacyReport") -> str:
    noise = "no noise" if isinf(report.guarantee.epsilon) else "noise"
    what = "rows" if report.rows_per_unit is None else "persons"
    return (
        f"The numbers on this page were computed from {report.size:,} {what}, with {noise} added "
        f"to protect each {report.guarantee.unit}. Guarantee: {report.guarantee}."
    )


def _warned(text: str) -> Html:
    return Html(f'<div class="warning"><p>{text}</p></div>')


def _warnings(report: "PrivacyReport", note: str | None = None) -> Iterator[Html]:
    """The words about numbers that are not for release, and what a reader has to know of a fit."""
    if note:
        yield _warned(escape(note))
    if isinf(report.guarantee.epsilon):
        yield _warned("These numbers have no noise at all: do not publish them.")
    elif not report.secure:
        yield _warned(
            "The noise of these numbers can be reproduced from a seed. They are for study only: do "
            "not publish this page as a release."
        )


def picture(model: Any, confidence_level: float) -> CoefficientDisplay | CurveDisplay | None:
    """Draw coefficients with their intervals, or curves with their bands.

    Parameters
    ----------
    model : estimator
    confidence_level : float in (0, 1)

    Returns
    -------
    CoefficientDisplay, CurveDisplay or None
        None where there are estimates without intervals. Ratios are drawn where there are any.
    """
    target = schema_of(model).target
    if last_step(model).curve:
        return CurveDisplay.from_estimator(
            model, confidence_level=confidence_level, target_name=target or "prediction"
        )
    *_, found = shown_coefficients(model, confidence_level)
    if not isinstance(found, Inference):
        return None
    display = CoefficientDisplay._of(found, odds=bool(found.law.ratio))
    if not found.law.ratio:
        # A slope per year beside the effect of a yes or no would look like nothing.
        with suppress(ValueError):  # without public ranges it is per unit
            display = display.per_range(public_widths(model))
        display.unit += f" on {target}" if target else ""
    return display.plot()


def _picture_html(model: Any, confidence_level: float) -> Html:
    """The picture of the model as SVG; nothing where it cannot be drawn."""
    try:
        from matplotlib import pyplot
    except ImportError:
        return Html()
    if (display := picture(model, confidence_level)) is None:
        return Html()
    out = StringIO()
    # Texts stay texts, so that the page can be searched. A date would make each page another one.
    with pyplot.rc_context({"svg.fonttype": "none", "svg.hashsalt": "skpriv"}):
        display.figure_.savefig(out, format="svg", metadata={"Date": None}, bbox_inches="tight")
    pyplot.close(display.figure_)
    svg = out.getvalue()
    return Html(f"<figure>{svg[svg.index('<svg') :]}</figure>")
