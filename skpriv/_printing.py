"""How results are shown: tables and sentences as text and HTML, and pictures by matplotlib."""

from dataclasses import dataclass
from html import escape
from typing import Any, Self

__all__ = ["Display", "Printed", "Table", "axes_in_rows", "pyplot"]


@dataclass(frozen=True)
class Table:
    """Cells of text below a header; it prints with aligned columns.

    Parameters
    ----------
    header : sequence of str
    rows : iterable of sequences of str
    left : int, default=1
        Number of columns, the first ones, that begin at the left; the others end at the right.
    """

    header: Any
    rows: Any
    left: int = 1

    def __str__(self) -> str:
        lines = [tuple(self.header), *map(tuple, self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if place < self.left else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )

    def _repr_html_(self) -> str:
        def line(cells, tag):
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(line(cells, "td") for cells in self.rows)
        return f"<table><thead>{line(self.header, 'th')}</thead><tbody>{body}</tbody></table>"


class Printed:
    """Mixin of results that are shown as sentences and tables.

    A subclass implements `_parts`, an iterable of texts and of `Table`.
    """

    def _parts(self) -> Any:
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join(map(str, self._parts()))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return "".join(
            part._repr_html_() if isinstance(part, Table) else f"<p>{escape(part)}</p>"
            for part in self._parts()
            if part
        )


class Display:
    """Base class of pictures: `plot` of a subclass draws into axes, and keeps them.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    ax_: Any
    figure_: Any

    def _axes(self, ax: Any, **options: Any) -> Any:
        """The axes that are given, or those of a new figure with these options."""
        if ax is None:
            make = pyplot(f"{type(self).__name__}.plot").subplots
            _, ax = make(layout="constrained", **options)
        return ax

    def _drawn(self, ax: Any) -> Self:
        self.ax_, self.figure_ = ax, ax.figure
        return self


def pyplot(caller: str) -> Any:
    """The module of matplotlib; an error that names the caller says how to install it."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib, which comes with the plot extra: "
            'python -m pip install "skpriv[plot]"'
        ) from error
    return pyplot


def axes_in_rows(make: Any, number: int, **options: Any) -> Any:
    """So many axes of a new figure, at most three in a row.

    Parameters
    ----------
    make : callable
        ``subplots`` of matplotlib's module.
    number : int
    **options : dict
        Options of `make`.
    """
    across = min(number, 3)
    down = -(-number // across)
    _, axes = make(
        down, across, figsize=(4.0 * across, 3.0 * down), layout="constrained", squeeze=False,
        **options,
    )  # fmt: skip
    for empty in axes.ravel()[number:]:
        empty.remove()
    return axes.ravel()[:number]
