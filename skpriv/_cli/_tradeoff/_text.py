"""The table of `tradeoff`, and what is said above and below it."""

import textwrap

import numpy as np

from ...privacy import capabilities
from .._arguments import row

_HEAD = """\
{data}: {rows:,} rows, {columns} features, target clipped to [{low:g}, {high:g}]
{sentence}, delta {delta:g}; {cv} folds, {repeats} draws of the noise
R2: median, +- half of the 10% to 90% range over folds and draws; {intervals} intervals at {level:g}
"""
_NOTES = """\
"held-out y inside" is the share of held-out targets inside their prediction intervals, at a level \
of {level:g}; {size:.0%} of the training rows are kept for them. It is a true number for any y.
{intervals} intervals are for the mean of y at x. They assume that it is linear in x, that the \
coefficients in scaled units have norm at most {coef_norm:g} (--coef-norm), and that y is in \
[{low:g}, {high:g}], to which it is clipped. Where the mean is not linear, none covers it as stated.
R2, "held-out y inside" and the reference are computed without privacy: this table is for public \
data, or for those who may see the data anyway.
"""
_SEEDED = "With --seed the noise is reproducible, and so not for a release."


def head(args, data):
    """Describe what was run."""
    rows, columns = data.data.shape
    return _HEAD.format(
        **{**vars(args), "level": args.confidence_level},
        rows=rows,
        columns=columns,
        low=data.bounds_y[0],
        high=data.bounds_y[1],
        sentence=capabilities(args.privacy).sentence,
    ).rstrip()


def notes(args, data):
    """Say what the intervals assume, and what may be published."""
    low, high = data.bounds_y
    text = _NOTES.format(
        intervals=args.intervals.capitalize(),
        coef_norm=args.coef_norm,
        low=low,
        high=high,
        level=args.confidence_level,
        size=args.calibration_size,
    )
    lines = [*text.splitlines(), *([] if args.seed is None else [_SEEDED])]
    return "\n".join(
        textwrap.fill(line, 99, initial_indent="* ", subsequent_indent="  ", break_on_hyphens=False)
        for line in lines
    )


def table(curves):
    """Rows: estimators and the reference; columns: epsilon; cells: median and spread.

    Parameters
    ----------
    curves : list of Bunch
        Curves of `privacy_utility_curve`, with the same epsilons and the same reference.

    Returns
    -------
    str
    """
    epsilons = curves[0].epsilons
    lines = [row("epsilon", [f"{epsilon:g}" for epsilon in epsilons])]
    lines.append("-" * len(lines[0]))
    for curve in curves:
        lines += [
            curve.estimator_name,
            row("  R2", map(_score, curve.test_scores)),
            *_rows("  held-out y inside", _share, curve.prediction_coverages),
            *_rows("  width, a new y", _width, curve.prediction_widths),
            *_rows("  width, mean of y", _width, curve.interval_widths),
        ]
    lines += [
        "Least squares, not private (the reference)",
        row("  R2", [_score(curves[0].reference_scores)]),
        row("  width, mean of y", [_width(curves[0].reference_widths)]),
    ]
    return "\n".join(line.rstrip() for line in lines)


def _rows(label, cell, values):
    """One row, or none for what an estimator does not have."""
    return [] if values is None else [row(label, map(cell, values))]


def _score(values):
    """Median, and half of the range from the 10% to the 90% quantile."""
    # Quantiles that are values, so that three equal draws spread as much as one.
    low, high = np.quantile(values, [0.1, 0.9], method="inverted_cdf")
    middle = np.median(values)
    return f"{middle:.3f} +-{(high - low) / 2:.3f}"


def _share(values):
    return f"{np.mean(values):.1%}"


def _width(values):
    return f"{np.median(values):.4g}"
