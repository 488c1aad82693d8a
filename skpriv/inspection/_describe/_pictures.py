"""One picture for each column of a private description."""

from typing import Any

import numpy as np

from ..._printing import axes_in_rows, pyplot

WIDEST_LABEL = 18  # characters of a level that are shown


def draw(description: Any, axes: Any = None) -> np.ndarray:
    """Draw a histogram of each number and bars of each list, with intervals.

    Parameters
    ----------
    description : Description
    axes : sequence of matplotlib axes, default=None
        One for each column. None makes a figure.

    Returns
    -------
    ndarray of matplotlib axes
    """
    columns = list(description.columns.values())
    if axes is None:
        axes = axes_in_rows(pyplot("Description.plot").subplots, len(columns))
    axes = np.ravel(axes)
    if len(axes) < len(columns):
        raise ValueError(f"axes must have one entry for each of {len(columns)} columns.")
    for ax, column in zip(axes, columns, strict=False):
        if hasattr(column, "edges"):
            _histogram(ax, column)
        else:
            _bars(ax, column)
        ax.set_title(column.name)
    return axes


def _histogram(ax, column):
    edges, counts = column.edges, np.maximum(column.counts, 0.0)
    ax.stairs(counts, _places(edges), fill=True, alpha=0.5)
    median = column.quantiles[0.5].estimate
    ax.axvline(_places([median])[0], color="C1", label=f"median {_short(median)}")
    ax.set(ylabel="rows", ylim=(0.0, None))
    if not isinstance(edges[0], float):
        ax.xaxis_date()
        ax.tick_params(axis="x", rotation=30)
    ax.legend(fontsize="small")


def _places(values):
    if isinstance(values[0], float):
        return np.asarray(values)
    from matplotlib.dates import date2num

    return date2num(values)


def _bars(ax, column):
    rows = column.rows()
    places = np.arange(len(rows))
    values = [found.estimate for _, found in rows]
    lengths = [
        [found.estimate - found.low for _, found in rows],
        [found.high - found.estimate for _, found in rows],
    ]
    ax.barh(places, values, alpha=0.5, xerr=np.maximum(lengths, 0.0))
    ax.set_yticks(places, [_short(said) for said, _ in rows])
    ax.invert_yaxis()
    ax.set(xlabel="rows", xlim=(0.0, None))


def _short(said):
    said = f"{said:.4g}" if isinstance(said, float) else str(said)
    return said if len(said) <= WIDEST_LABEL else said[: WIDEST_LABEL - 1] + "…"
