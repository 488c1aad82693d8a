"""What is published beside a model: its coefficients as a table, and its card."""

import tomllib
from dataclasses import replace
from html import escape
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._estimation._coefficients import CoefficientLaw, NoLaw
from .._printing import Table
from .._version import VERSION
from ..preprocessing import BoundsScaler, FormulaEncoder, Schema, TableEncoder
from ._curve_display import curves
from ._inference import inference
from ._units import law_in_units

_UNIT = (
    "One record is one row. For a person with several rows epsilon is multiplied by their number, "
    "and by more where delta is to stay the same: five rows turn epsilon 1 into 5.9 at delta 1e-6. "
    "A fit with `groups` protects all rows of a person together."
)
_GROUP = "Rows of one person may depend on each other: standard errors are for persons, too."
_PUBLIC = (BoundsScaler, FormulaEncoder, TableEncoder)  # steps that learn nothing from rows
_BAND = (
    "Effects at the public knots, which add up; curves are straight between knots. A band covers "
    "all of a curve at the level {:g}. A dash is an effect that cannot be told from noise."
)
_CELLS = (
    "Values outside of a range are clipped, and values that no list has are 'other'. A missing "
    "cell is 'other', or the middle of the range, unless the column says what it is."
)
_NOT_COVERED = (
    "Other releases from the same rows: their costs add up, in an accountant or ledger of all.",
    "How the table was made: which rows and columns were taken, how bounds and lists were chosen. "
    "They are public, and must not come from the rows.",
    "The number of records, which is public, and the time that the fit took.",
    "Scores, plots and tables that were computed from the rows without a charge to the budget.",
    "What the model says about people in general, those who are not in the table included.",
)


def _estimates(model):
    """Table of the estimates of a model whose coefficients have no law."""
    last = _last(model)
    if not hasattr(last, "coef_"):
        return "This model has no coefficients."
    coef = np.column_stack([np.atleast_2d(last.coef_), np.atleast_1d(last.intercept_)]).ravel()
    nothing = np.zeros((len(coef), len(coef)))
    law = CoefficientLaw(coef, nothing, nothing, np.ones(len(coef), dtype=bool), "", 0)
    try:
        names, law = law_in_units(model, law=law)
    except NoLaw:  # those of what the steps before it return
        names, law = law_in_units(last, law=law)
    return Table(("", "estimate"), [*zip(names, (f"{x:.4g}" for x in law.estimate), strict=True)])


def shown_coefficients(model: Any, confidence_level: float) -> Any:
    """What is shown of a model: curves, coefficients with intervals, or estimates alone.

    Parameters
    ----------
    model : estimator
    confidence_level : float in (0, 1)

    Returns
    -------
    Inference, Table or str
    """
    if hasattr(_last(model), "curve"):
        return _curve_table(model, confidence_level)
    try:
        return inference(model, confidence_level=confidence_level)
    except (NoLaw, NotImplementedError):  # without standard errors, or without known units
        return _estimates(model)


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
    return str(shown_coefficients(model, confidence_level))


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
    last, schema = _last(model), schema_of(model)
    report = last.privacy_report_
    strange = [*_strange_steps(model), *map(_sentence, report.not_covered)]
    versions = [
        ("package", "version"),
        ("skpriv", VERSION),
        ("numpy", np.__version__),
        ("scikit-learn", version("scikit-learn")),
    ]
    found = [shown_coefficients(model, confidence_level)]
    if hasattr(last, "curve"):
        found = [_BAND.format(confidence_level), *found]
    return [
        ("Guarantee", [_sentence(report.guarantee), _sentence(report.randomness)]),
        ("Unit", [_sentence(report.persons), _GROUP] if report.persons else [_UNIT]),
        ("Bounds", [*_bounds(last, schema)]),
        ("Cost", [replace(report, pipeline=False, within=())]),
        ("Curves" if hasattr(last, "curve") else "Coefficients", found),
        ("Not covered", [[(text,) for text in (*strange, *_NOT_COVERED)]]),
        ("Versions", [versions]),
    ]


def _last(model):
    return model[-1] if isinstance(model, Pipeline) else model


def _curve_table(model, confidence_level):
    """Effects at the knots, with the simultaneous band of each curve."""
    rows = []
    for found in curves(model, n_points=2, confidence_level=confidence_level):
        curve = found["curve"]
        for value, *numbers in zip(
            found["values"], curve.effect, curve.band_low, curve.band_high, strict=True
        ):
            shown = f"{value:.4g}" if isinstance(value, float) else str(value)
            known = np.isfinite(numbers).all()
            rows.append((found["name"], shown, *(f"{x:.4g}" if known else "-" for x in numbers)))
    return Table(("feature", "value", "effect", "band low", "band high"), rows)


def _sentence(value):
    text = str(value)
    return f"{text[:1].upper()}{text[1:]}."


def schema_of(model: Any) -> Schema | None:
    """Schema of the table that a Pipeline begins with; None where it begins with none.

    Parameters
    ----------
    model : estimator
    """
    for _, step in model.steps if isinstance(model, Pipeline) else []:
        if isinstance(step, TableEncoder | FormulaEncoder):
            return step.schema if isinstance(step.schema, Schema) else Schema(step.schema)
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
        yield _CELLS
        tables = tomllib.loads(schema.to_toml()).items()
        yield [("column", "type", "what is public")] + [
            (name, table.pop("type"), ", ".join(f"{key} {_plain(v)}" for key, v in table.items()))
            for name, table in tables
        ]
    elif getattr(last, "bounds_X", None) is not None:
        yield f"Features are clipped to their public ranges: {last.bounds_X!r}."
    elif hasattr(last, "data_norm"):
        yield f"Rows are clipped to the l2 norm {last.data_norm!r}, as they come to the regressor."


def _plain(value):
    """A value of a schema as text."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _strange_steps(model):
    """Steps before the regressor that may have learnt from the rows without paying."""
    for name, step in model.steps[:-1] if isinstance(model, Pipeline) else []:
        if step not in (None, "passthrough") and not isinstance(step, _PUBLIC):
            yield (
                f"The step {name!r} before the regressor, {type(step).__name__}: what it has "
                "learnt from the rows is not private."
            )


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
            parts.append(content._repr_html_())
        elif len(content[0]) == 1:
            items = "".join(f"<li>{escape(row[0])}</li>" for row in content)
            parts.append(f"<ul>{items}</ul>")
        else:
            parts.append(Table(content[0], content[1:])._repr_html_())
    return "\n".join(parts)


def markdown(head: str, sections: Any) -> str:
    """Markdown of a title and of the contents of sections.

    Parameters
    ----------
    head : str
    sections : list of (str, list)

    Returns
    -------
    str
    """
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
