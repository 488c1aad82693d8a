"""What is published beside a model: its coefficients as a table, and its card."""

import platform
from dataclasses import replace
from html import escape
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._printing import Table
from .._version import VERSION
from ..preprocessing import BoundsScaler, Schema, TableEncoder
from ._curve_display import curves
from ._inference import inference

_STYLE = (
    "<style>body{font-family:sans-serif;max-width:60em;margin:2em auto;line-height:1.4}"
    "td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ccc}"
    "table{border-collapse:collapse}pre{overflow-x:auto}</style>"
)
HEADERS = ("", "estimate", "std. error", "low", "high", "p-value")
_UNIT = (
    "One record is one row of the table: the guarantee is for replacing one row by any other. For "
    "a person with several rows epsilon is multiplied by their number. A fit with `groups` "
    "protects all rows of a person together."
)
_GROUP = (
    "One record is a person with all rows: the guarantee is for replacing one person by any other, "
    "whatever rows they have. At most {} of each person were used, chosen at random. Standard "
    "errors and intervals are for persons, too: rows of one person may depend on each other."
)
_CURRENCY = (
    "The last column is the cost. If it is mu, of Gaussian differential privacy, its squares add "
    "up exactly. If it is epsilon, it adds up itself."
)
_NOT_COVERED = (
    "Other releases from the same rows: their costs add up. Only an accountant or a ledger that "
    "all releases share keeps the total.",
    "How the table was made: which rows and columns were taken, how bounds and lists were chosen. "
    "They are public, and must not come from the rows.",
    "The number of records, which is public, and the time that the fit took.",
    "Scores, plots and tables that were computed from the rows without a charge to the budget.",
    "What the model says about people in general. It may allow a good guess about somebody, "
    "whether or not this person is in the table.",
)


def coefficients(model: Any, confidence_level: float = 0.95) -> dict[str, Any]:
    """Names, estimates and, where there are any, intervals, in the units of the table.

    Parameters
    ----------
    model : estimator
        A fitted regressor of skpriv, or a Pipeline of `TableEncoder` or `BoundsScaler` and one.
    confidence_level : float in (0, 1), default=0.95
        Confidence level of the intervals.

    Returns
    -------
    dict of str to list or ndarray
        ``names``, ``estimate``, and if `inference` has them ``std_error``, ``low``, ``high`` and
        ``p_value``, NaN where they are not estimable, and the ``reason`` why. The last is the
        intercept. Empty if the model has no coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.inspection import coefficients
    >>> from skpriv.linear_model import SSPRegressor
    >>> X = np.linspace(-1.0, 1.0, 1000)[:, None]
    >>> found = coefficients(SSPRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1), privacy="none"
    ... ).fit(X, X[:, 0]))
    >>> found["estimate"].round(6) + 0.0
    array([1., 0.])
    """
    try:
        found = inference(model, confidence_level=confidence_level)
        names = ("names", "estimate", "std_error", "low", "high", "p_value", "reason")
        return _with_estimates({name: getattr(found, name) for name in names}, model)
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        pass  # a regressor without standard errors: its estimates then
    return _estimates(model)


def _with_estimates(found, model):
    """Where a coefficient is not estimable, the estimate that the model predicts with."""
    estimate = np.asarray(found["estimate"], dtype=float)
    known = _estimates(model).get("estimate", estimate)[: len(estimate)]
    return {**found, "estimate": np.where(np.isnan(estimate), known, estimate)}


def _estimates(model):
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    coef, intercept = getattr(steps[-1], "coef_", None), getattr(steps[-1], "intercept_", 0.0)
    if coef is None:
        return {}
    blocks: list = getattr(steps[-1], "coefficient_blocks", [])
    found: dict = {}
    pairs = zip(np.atleast_2d(coef), np.atleast_1d(intercept).astype(float), strict=True)
    for i, (coef, intercept) in enumerate(pairs):  # of classes, a row each
        names = list(getattr(steps[-1], "feature_names_in_", [f"x{i}" for i in range(len(coef))]))
        for step in reversed(steps[:-1]):
            if not hasattr(step, "coefficient_map"):
                break  # then they are those of what this step returns
            mapping = step.coefficient_map()
            (coef, intercept), names = mapping.apply(coef, intercept), mapping.names
        first = f"{blocks[i]}: " if blocks else ""
        for name, value in zip((*names, "intercept"), (*coef, intercept), strict=True):
            found[f"{first}{name}"] = float(value)
    return {"names": list(found), "estimate": np.array(list(found.values()))}


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
    found, last = coefficients(model, confidence_level), _last(model)
    curved = hasattr(last, "curve")
    rows = _curve_rows(model, confidence_level) if curved else _cells(found)
    lines = [str(Table(rows[0], rows[1:]))]
    if found.get("reason"):
        lines.append(f"not estimable (-): {found['reason']}")
    return "\n".join(lines)


def _cells(found):
    """Header and rows as texts."""
    if not found:
        return [("this model has no coefficients",)]
    keys = ("estimate", "std_error", "low", "high", "p_value")
    shown = [key for key in keys if key in found]
    header = (HEADERS[0], *(HEADERS[1 + keys.index(key)] for key in shown))
    return [header] + [
        (str(name), *(_cell(key, v) for key, v in zip(shown, values, strict=True)))
        for name, *values in zip(found["names"], *(found[key] for key in shown), strict=True)
    ]


def _cell(key, value):
    """A number as text; a dash where it is not known, and no p-value below .0001."""
    if np.isnan(value):
        return "-"
    return "<.0001" if key == "p_value" and value < 1e-4 else f"{value:.4g}"


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
        Format of the text.
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
    check_is_fitted(model)
    schema = _schema(model)
    target = "" if schema is None or schema.target is None else f" of {schema.target}"
    head = f"Model card: {title or type(_last(model)).__name__ + target}"
    sections = card_sections(model, confidence_level)
    return (_html if format == "html" else _markdown)(head, sections)


def card_sections(model: Any, confidence_level: float) -> list[tuple[str, list]]:
    """Title and contents of each section: sentences, tables as lists of rows, and reports.

    Parameters
    ----------
    model : estimator
    confidence_level : float in (0, 1)

    Returns
    -------
    list of (str, list)
    """
    last, schema = _last(model), _schema(model)
    report = last.privacy_report_
    m = report.rows_per_unit
    strange = [*_strange_steps(model), *map(_sentence, report.not_covered)]
    versions = [
        ("package", "version"),
        ("skpriv", VERSION),
        ("numpy", np.__version__),
        ("scikit-learn", version("scikit-learn")),
        ("Python", platform.python_version()),
    ]
    found = coefficients(model, confidence_level)
    unknown = [f"Not estimable (-): {reason}."] if (reason := found.get("reason")) else []
    level = f"Intervals are at the level {confidence_level:g}, privacy noise included."
    said = [_cells(found), *([level] if "low" in found else []), *unknown]
    if hasattr(last, "curve"):
        said = list(_curve_tables(model, confidence_level))
    return [
        ("Guarantee", [_sentence(report.guarantee), _sentence(report.randomness)]),
        ("Unit", [_UNIT if m is None else _GROUP.format(f"{m} row{'s' * (m > 1)}")]),
        ("Bounds", [*_bounds(last, schema)]),
        ("Cost", [_CURRENCY, replace(report, pipeline=False, within=())]),
        ("Curves" if hasattr(last, "curve") else "Coefficients", said),
        ("Not covered", [[(text,) for text in (*strange, *_NOT_COVERED)]]),
        ("Versions", [versions]),
    ]


def _last(model):
    return model[-1] if isinstance(model, Pipeline) else model


def _curve_rows(model, confidence_level):
    """Effects at the knots, with the simultaneous band of each curve."""
    rows = [("feature", "value", "effect", "band low", "band high")]
    for found in curves(model, n_points=2, confidence_level=confidence_level):
        curve = found["curve"]
        for value, *numbers in zip(
            found["values"], curve.effect, curve.band_low, curve.band_high, strict=True
        ):
            shown = f"{value:.4g}" if isinstance(value, float) else str(value)
            said = (f"{number:.4g}" if np.isfinite(number) else "-" for number in numbers)
            rows.append((found["name"], shown, *said))
    return rows


def _curve_tables(model, confidence_level):
    rows = _curve_rows(model, confidence_level)
    yield "Effects at the public knots. Curves are straight between knots, and effects add up."
    yield rows
    yield (
        f"A band covers all of a curve at the level {confidence_level:g}. It counts privacy noise "
        "and what straight lines between knots can miss. A dash means that the effect cannot be "
        "told from noise, or that there are too few knots."
    )


def _sentence(value):
    text = str(value)
    return f"{text[:1].upper()}{text[1:]}."


def _schema(model):
    for _, step in model.steps if isinstance(model, Pipeline) else []:
        if isinstance(step, TableEncoder):
            return step.schema if hasattr(step.schema, "target") else Schema(step.schema)
    return None


def _bounds(last, schema):
    """What is public about the columns and the target."""
    if hasattr(last, "classes_"):
        known = ", ".join(map(str, last.classes_))
        yield f"The classes are {known}. Nothing is learned from a row with any other label."
    else:
        bounds = getattr(last, "bounds_y_", None) or last.bounds_y
        yield f"The target is clipped to [{bounds[0]:g}, {bounds[1]:g}]."
    if (largest := last.privacy_report_.max_weight) is not None:
        yield f"Weights of rows are clipped to [0, {largest:g}]."
    if schema is not None:
        yield "Values outside of a range are clipped. Values that no list has count as 'other'."
        yield [("column", "type", "range or list", "missing becomes")] + [
            (name, column.kind, _range(column), str(_missing(column)))
            for name, column in schema.items()
        ]
    elif getattr(last, "bounds_X", None) is not None:
        yield f"Features are clipped to their public ranges: {last.bounds_X!r}."
    elif hasattr(last, "data_norm"):
        yield f"Rows are clipped to the l2 norm {last.data_norm!r}, as they come to the regressor."


def _range(column):
    if column.kind in ("numeric", "date"):
        low, high = column.low, column.high
        return f"{low} to {high}" if column.kind == "date" else f"{low:g} to {high:g}"
    if column.kind == "boolean":
        return "true, false"
    other = ", other" if getattr(column, "other", False) else ""
    return ", ".join(map(str, column.categories)) + other


def _missing(column):
    if column.missing is not None:
        return column.missing
    return "other" if getattr(column, "other", False) else "middle"


def _strange_steps(model):
    """Steps before the regressor that may have learnt from the rows without paying."""
    for name, step in model.steps[:-1] if isinstance(model, Pipeline) else []:
        if not isinstance(step, BoundsScaler | TableEncoder) and step not in (None, "passthrough"):
            yield (
                f"The step {name!r} before the regressor, {type(step).__name__}: what it has "
                "learnt from the rows is not private."
            )


def _markdown(head, sections):
    lines = [f"# {head}"]
    for title, contents in sections:
        lines.append(f"## {title}")
        for content in contents:
            if isinstance(content, str):
                lines.append(content)
            elif not isinstance(content, list):
                lines.append(f"```\n{content}\n```")
            elif len(content[0]) == 1:
                lines.append("\n".join(f"- {row[0]}" for row in content))
            else:
                cells = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in content]
                cells.insert(1, " | ".join("---" for _ in content[0]))
                lines.append("\n".join(f"| {row} |" for row in cells))
    return "\n\n".join(lines) + "\n"


def _html(head, sections):
    title = escape(head)
    parts = ["<!DOCTYPE html>", '<html lang="en"><meta charset="utf-8">', f"<title>{title}</title>"]
    parts += [_STYLE, f"<h1>{title}</h1>"]
    for title, contents in sections:
        parts += [f"<h2>{escape(title)}</h2>", html_section(contents)]
    return "\n".join([*parts, "</html>"]) + "\n"


def html_section(contents: Any) -> str:
    """HTML of the contents of a section.

    Parameters
    ----------
    contents : list
        Sentences, tables as lists of rows (a list, where they have one cell), and reports.

    Returns
    -------
    str
    """
    parts = []
    for content in contents:
        if isinstance(content, str):
            parts.append(f"<p>{escape(content)}</p>")
        elif not isinstance(content, list):
            parts.append(f"<pre>{escape(str(content))}</pre>")
        elif len(content[0]) == 1:
            items = "".join(f"<li>{escape(row[0])}</li>" for row in content)
            parts.append(f"<ul>{items}</ul>")
        else:
            parts.append(Table(content[0], content[1:])._repr_html_())
    return "\n".join(parts)
