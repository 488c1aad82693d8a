"""Curves as a table of plain text."""

import numpy as np

_CELL = 15
_LABEL = 24


def table(curves):
    """Rows: estimators and the reference; columns: epsilon; cells: median and spread.

    Parameters
    ----------
    curves : list of Bunch
        Of `privacy_utility_curve`, with the same epsilons and the same reference.

    Returns
    -------
    str
    """
    epsilons = curves[0].epsilons
    lines = [_row("epsilon", [f"{epsilon:g}" for epsilon in epsilons])]
    lines.append("-" * len(lines[0]))
    for curve in curves:
        lines += [
            curve.estimator_name,
            _row("  R2", map(_score, curve.test_scores)),
            _row("  held-out y inside", map(_share, curve.prediction_coverages)),
            _row("  width, a new y", map(_width, curve.prediction_widths)),
            _row("  width, mean of y", map(_width, curve.interval_widths)),
        ]
    lines += [
        "Least squares, not private (the reference)",
        _row("  R2", [_score(curves[0].reference_scores)]),
        _row("  width, mean of y", [_width(curves[0].reference_widths)]),
    ]
    return "\n".join(line.rstrip() for line in lines)


def _row(label, cells):
    return f"{label:<{_LABEL}}" + "".join(f"{cell:>{_CELL}}" for cell in cells)


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
