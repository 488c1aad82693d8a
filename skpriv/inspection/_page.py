"""One self-contained HTML page about a release, for the person who signs it."""

from html import escape
from io import StringIO
from math import exp, isinf
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._printing import STYLE
from ._card import card_sections, html_section, markdown, schema_of, shown_coefficients
from ._coefficient_display import CoefficientDisplay
from ._curve_display import CurveDisplay
from ._inference import Inference

_STYLE = """
:root { color-scheme: light; }
body { font-family: system-ui, sans-serif; line-height: 1.5; color: #1c2733; margin: 0;
  background: #f4f6f8; }
main { max-width: 58rem; margin: 0 auto; padding: 1.5rem; background: #fff; }
h1 { line-height: 1.2; margin-top: 0.5rem; overflow-wrap: anywhere; }
h2 { border-bottom: 2px solid #dde3e9; padding-bottom: 0.2rem; margin-top: 2.2rem; }
.summary, .warning { background: #eef4fb; border-left: 5px solid #2b6cb0; padding: 0.8rem 1.2rem; }
.warning { background: #fff4e5; border-color: #c05621; }
.scroll, figure { overflow-x: auto; margin: 1rem 0; }
.scroll th, .scroll td { border-bottom: 1px solid #dde3e9; white-space: nowrap; }
figure svg { max-width: 100%; height: auto; }
.signature { display: grid; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr));
  gap: 2.5rem 2rem; margin: 3rem 0 1rem; }
.signature div { border-top: 1px solid #1c2733; padding-top: 0.3rem; }
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
    last = model[-1] if isinstance(model, Pipeline) else model
    sections = dict(card_sections(model, confidence_level))
    report = last.privacy_report_
    head = title or _name(model)
    said = "Curves" if "Curves" in sections else "Coefficients"
    parts = [
        f"<h1>{escape(head)}</h1>",
        _summary(report),
        f"<h2>{said}</h2>",
        _scrolled(html_section(sections[said])),
        _svg(model, confidence_level),
        "<h2>What the guarantee means</h2>",
        *(f"<p>{escape(text)}</p>" for text in meaning(report)),
        html_section(sections["Guarantee"] + sections["Unit"]),
        "<h2>What the guarantee does not cover</h2>",
        html_section(sections["Not covered"]),
        "<h2>Which noisy sums were released, and what they cost</h2>",
        _scrolled(html_section(sections["Cost"])),
        "<h2>What is public</h2>",
        _scrolled(html_section(sections["Bounds"])),
        _ledger(accountant),
        _description(description),
        "<h2>Software</h2>",
        html_section(sections["Versions"]),
        '<div class="signature"><div>Released by</div><div>Date</div><div>Signature</div></div>',
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(head)}</title>{STYLE}<style>{_STYLE}</style></head>\n"
        '<body><main class="skpriv">\n'
        + "\n".join(part for part in parts if part)
        + "\n</main></body></html>\n"
    )


def model_card(
    model: Any,
    *,
    format: str = "markdown",
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
    if format not in ("markdown", "html"):
        raise ValueError(f"format={format!r} must be 'markdown' or 'html'.")
    if format == "html":
        return release_page(model, title=title, confidence_level=confidence_level)
    check_is_fitted(model)
    head = f"Model card: {title or _name(model)}"
    return markdown(head, card_sections(model, confidence_level))


def _name(model):
    """The estimator and its target."""
    target = getattr(schema_of(model), "target", None)
    return type(_steps(model)[-1]).__name__ + (f" of {target}" if target else "")


def meaning(report: Any) -> list[str]:
    """What the guarantee of a report means, in sentences for somebody who decides.

    Parameters
    ----------
    report : PrivacyReport

    Returns
    -------
    list of str
    """
    guarantee = report.guarantee
    epsilon, delta, unit = guarantee.epsilon, guarantee.delta, guarantee.unit
    if isinf(epsilon):
        return [
            "There is no privacy guarantee. The numbers were computed without noise, and they may "
            "give away what single rows hold."
        ]
    factor = exp(epsilon)
    most = f"{factor:.2g}" if factor < 1000 else f"{factor:.0e}"
    lines = [
        f"Suppose that somebody wants to find out something about one {unit}, and that they know "
        "everything about all the others. With this release in their hands they are hardly better "
        f"off than with a release for which the data of this {unit} had been replaced by other "
        "data.",
        f"In numbers: whatever they conclude, its probability changes by a factor of at most "
        f"{most} (e to the power epsilon, {epsilon:g}) when the data of one {unit} are replaced"
        + (f", apart from a probability of at most {delta:g} (delta)." if delta else "."),
        "The guarantee holds whatever else they know, and whatever is computed from this release "
        "later. It does not hide what is true of people in general.",
    ]
    if epsilon > 10.0:
        lines.append(
            "This epsilon is large, so that the factor promises little protection. Ask why a "
            "smaller epsilon was not enough."
        )
    return lines


def _summary(report):
    epsilon = report.guarantee.epsilon
    noise = "no noise" if isinf(epsilon) else "noise"
    what = "rows" if report.rows_per_unit is None else "persons"
    said = (
        f"The numbers on this page were computed from {report.size:,} {what}, with {noise} added "
        f"to protect each {report.guarantee.unit}. Guarantee: {report.guarantee}."
    )
    return f'<div class="summary"><p>{escape(said)}</p></div>' + _warning(report)


def _warning(report):
    """What must be said of numbers that are not for release."""
    if isinf(report.guarantee.epsilon):
        said = "These numbers have no noise at all: do not publish them."
    elif not report.secure:
        said = (
            "The noise of these numbers can be reproduced from a seed. They are for study only: do "
            "not publish this page as a release."
        )
    else:
        return ""
    return f'<div class="warning"><p>{said}</p></div>'


def picture(model: Any, confidence_level: float) -> Any:
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
    target = getattr(schema_of(model), "target", None)
    if hasattr(_steps(model)[-1], "curve"):
        return CurveDisplay.from_estimator(
            model, confidence_level=confidence_level, target_name=target or "prediction"
        )
    found = shown_coefficients(model, confidence_level)
    if not isinstance(found, Inference):
        return None
    unit = f"on {target}, in the units of the table" if target and not found.law.ratio else ""
    display = CoefficientDisplay.from_inference(found, odds=bool(found.law.ratio))
    display.unit = unit
    return display.plot()


def _svg(model, confidence_level):
    """The picture of the model as SVG text; nothing where it cannot be drawn."""
    try:
        from matplotlib import pyplot
    except ImportError:
        return ""
    if (display := picture(model, confidence_level)) is None:
        return ""
    out = StringIO()
    # Texts stay texts, so that the page can be searched; the date would make it differ each time.
    with pyplot.rc_context({"svg.fonttype": "none", "svg.hashsalt": "skpriv"}):
        display.figure_.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    pyplot.close(display.figure_)
    svg = out.getvalue()
    return f"<figure>{svg[svg.index('<svg') :]}</figure>"


def _description(description):
    if description is None:
        return ""
    guarantee = escape(str(description.privacy_report.guarantee))
    return (
        "<h2>The table in numbers</h2>"
        + _warning(description.privacy_report)
        + f"<p>These numbers were released separately, with their own guarantee: {guarantee}. "
        "The costs of both add up.</p>" + _scrolled(description._repr_html_())
    )


def _ledger(accountant):
    if accountant is None:
        return ""
    said = "Epsilons of single charges do not add up to the total, which is composed exactly."
    return f"<h2>Ledger</h2>{_scrolled(accountant._repr_html_())}<p>{said}</p>"


def _steps(model):
    return [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]


def _scrolled(html):
    return f'<div class="scroll">{html}</div>'
