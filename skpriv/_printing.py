"""How results are shown: tables and sentences as text and HTML, and pictures by matplotlib."""

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from math import floor, isfinite, isnan, log10
from typing import Any, Self

import numpy as np
from itertools import starmap

from ._stored import frozen

LINE = 88  # width of a line of text in characters
# Characters that are not shown, and control how others are: but for joiners, which some languages
# need inside of words.
CONTROLS = ("Cc", "Cf", "Zl", "Zp", "Cs")
JOINERS = "\u200c\u200d"
LATEX = {
    **{character: f"\\{character}" for character in "{}$&#%_"},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "[": "{[}",
}  # fmt: skip
STYLE = """<style>
.skpriv {font-family: sans-serif; line-height: 1.4}
.skpriv table {border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .6em 0}
.skpriv th, .skpriv td {padding: .15em .7em; text-align: left; border: 0; vertical-align: top}
.skpriv .number {text-align: right}
.skpriv thead th {border-bottom: 2px solid #7bb6e8}
.skpriv tbody tr:hover {background: rgba(123, 182, 232, .15)}
.skpriv ol {font-size: .9em; padding-left: 1.6em; max-width: 48em}
</style>"""


def _cell(text: str) -> str:
    """A cell in one line; blanks of numbers, which stand for digits, stay."""
    return text if text.isprintable() else one_line(text)


@frozen
class Table:
    """Cells of text below a header; it prints with aligned columns.

    Parameters
    ----------
    header : sequence of str
        It may be empty.
    rows : sequence of sequences of str
    left : int, default=1
        Number of columns, the first ones, that begin at the left; the others end at the right.
    """

    header: Any
    rows: Any
    left: int = 1

    def __str__(self) -> str:
        lines = [[_cell(cell) for cell in line] for line in (self.header, *self.rows) if line]
        widths = [max(map(text_width, column)) for column in zip(*lines)]

        def shown(place: int, cell: str) -> str:
            blanks = " " * (widths[place] - text_width(cell))
            return cell + blanks if place < self.left else blanks + cell

        return "\n".join("  ".join(starmap(shown, enumerate(line))).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        def line(cells: Sequence[str], tag: str) -> str:
            at = [' class="number"' * (place >= self.left) for place in range(len(cells))]
            # Blanks at the end of a number stand for digits, and HTML would drop them.
            said = (
                escape(cell.replace(" ", "\u2007") if cell[-1:] == " " else _cell(cell))
                for cell in cells
            )
            parts = (f"<{tag}{kind}>{text}</{tag}>" for kind, text in zip(at, said, strict=True))
            return f"<tr>{''.join(parts)}</tr>"

        head = f"<thead>{line(self.header, 'th')}</thead>" if self.header else ""
        body = "".join(line(cells, "td") for cells in self.rows)
        return f"<table>{head}<tbody>{body}</tbody></table>"


class Head(Table):
    """Labels and words, which go on in further lines where they are long."""

    def __str__(self) -> str:
        size = 2 + max(len(label) for label, _ in self.rows)
        return "\n".join(
            textwrap.fill(
                one_line(words),
                LINE,
                initial_indent=label.ljust(size),
                subsequent_indent=size * " ",
            )
            for label, words in self.rows
        )


def one_line(text: object) -> str:
    """A text of a person in one line, without characters that control how others are shown.

    Marks that turn the direction of what follows could exchange the digits of a number beside it.

    Parameters
    ----------
    text : object
        Its text is taken.
    """
    shown = (
        letter if unicodedata.category(letter) not in CONTROLS or letter in JOINERS else " "
        for letter in str(text)
    )
    return " ".join("".join(shown).split())


def text_width(text: str) -> int:
    """Columns of a terminal that a text takes: two for a wide letter, none for an accent alone."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    none = sum(unicodedata.combining(character) > 0 for character in text)
    return len(text) + wide - none


def picture_text(text: object, width: int = 32) -> str:
    """A text of a person for a picture: one line, shortened in the middle, and never markup.

    Parameters
    ----------
    text : object
    width : int, default=32
        Columns that it may take.
    """
    line = one_line(text)
    if text_width(line) > width:
        tail = _begin(line[::-1], (width - 1) // 2)[::-1]
        line = f"{_begin(line, width - 1 - text_width(tail))}…{tail}"
    # Two dollar signs would be mathematics. An empty text, or one that begins with _, would
    # be no entry of a legend, but for a character without width.
    hidden = "" if line and line[0] != "_" else "\u200b"
    return hidden + line.replace("$", r"\$")


def _begin(line: str, width: int) -> str:
    """The begin of a line that takes at most so many columns."""
    size = len(line)
    while text_width(line[:size]) > width:
        size -= 1
    return line[:size]


def picture_texts(texts: Iterable[object], width: int = 32) -> list[str]:
    """Texts for a picture; of those that are shortened to the same one, the later have numbers."""
    met: dict[str, list[object]] = {}
    shown = []
    for text in texts:
        line = picture_text(text, width)
        alike = met.setdefault(line, [])
        if text not in alike:
            alike.append(text)
        place = alike.index(text)
        shown.append(f"{line} ({place + 1})" if place else line)
    return shown


TURNED = {"rotation": 45.0, "rotation_mode": "anchor", "ha": "right", "va": "center"}


def level_ticks(axis: Any, texts: Iterable[object], **style: Any) -> None:
    """Name levels along an axis so that no name stands on another.

    Parameters
    ----------
    axis : matplotlib Axis
    texts : sequence of str
        One for each level; of 16 levels and more every second or third has its name.
    **style : dict
        Such as `TURNED`, below a picture.
    """
    names = picture_texts(texts, 18)
    step = 1 + len(names) // 16
    axis.set_ticks(range(0, len(names), step), names[::step], fontsize="small", **style)


def markdown_text(text: object) -> str:
    """A text as Markdown that shows it as it is: no emphasis, links, tables, mathematics or HTML.

    Parameters
    ----------
    text : object
    """
    line = re.sub(r"([\\`*_\[\]<>&|$~])", r"\\\1", one_line(text))
    return re.sub(r"^(\d*)([#+=.)-])(?=[\s#+=-]|$)", r"\1\\\2", line)


def latex_text(text: object) -> str:
    """A text as LaTeX that shows it as it is, in a text or in a cell of a table.

    Parameters
    ----------
    text : object
    """
    return "".join(LATEX.get(character, character) for character in one_line(text))


def _latex_cell(text: object) -> str:
    """A cell; a number has a proper minus."""
    shown = latex_text(text)
    return f"${shown.strip()}$" if re.fullmatch(r"-[\d.e+-]+", shown.strip()) else shown


def latex_table(
    parts: Sequence[Table], notes: Sequence[str], caption: str | None, label: str | None
) -> str:
    """Tables below each other and notes, for LaTeX with booktabs and threeparttable.

    Parameters
    ----------
    parts : sequence of Table
    notes : sequence of str
    caption, label : str, default=None

    Returns
    -------
    str
    """
    lines = [r"\begin{table}", r"\centering", r"\begin{threeparttable}"]
    lines += [rf"\caption{{{latex_text(caption)}}}"] if caption else []
    lines += [rf"\label{{{re.sub(r'[^A-Za-z0-9:._-]', '', label)}}}"] if label else []
    for part in parts:
        rows = [" & ".join(map(_latex_cell, row)) + r" \\" for row in (part.header, *part.rows)]
        columns = "l" * part.left + "r" * (len(part.header) - part.left)
        lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", rows[0], r"\midrule", *rows[1:]]
        lines += [r"\bottomrule", r"\end{tabular}", ""]
    if notes:
        items = [rf"\item {latex_text(note)}" for note in notes if note]
        lines += [r"\begin{tablenotes}\footnotesize", *items, r"\end{tablenotes}"]
    return "\n".join([*lines, r"\end{threeparttable}", r"\end{table}"]) + "\n"


def markdown(part: object) -> str:
    """Markdown of a sentence, of a list of sentences, of a table, or of what else can be printed.

    Parameters
    ----------
    part : str, list of str, Table or object
    """
    if isinstance(part, str):
        return markdown_text(part)
    if isinstance(part, list):
        return "\n".join(f"- {markdown_text(text)}" for text in part)
    if isinstance(part, Exported):
        return part.to_markdown().rstrip()
    if not isinstance(part, Table):
        text = str(part)
        fence = "`" * max([3, *(1 + len(run) for run in re.findall("`+", text))])
        return f"{fence}\n{text}\n{fence}"
    header = part.header or [""] * len(part.rows[0])
    rows = [[markdown_text(cell) for cell in row] for row in (header, *part.rows)]
    rows.insert(1, ["---"] * len(header))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def aligned(values: Iterable[float], errors: Iterable[float]) -> list[str]:
    """Numbers with three digits of their errors, and their decimal points below each other.

    Parameters
    ----------
    values, errors : sequence of float
        What is not known is NaN.

    Returns
    -------
    list of str
        A dash stands for NaN.
    """
    texts = []
    for value, error in zip(values, errors, strict=True):
        digits = 4 if not (isfinite(error) and error > 0.0) else 2 - floor(log10(error))
        plain = isfinite(value) and digits <= 8 and abs(value) < 1e9
        fixed = f"{value:.{max(digits, 0)}f}" if plain else f"{value:.4g}"
        texts.append("-" if isnan(value) else fixed)
    after = [len(text) - text.find(".") if "." in text else 0 for text in texts]
    return [text + " " * (max(after) - own) for text, own in zip(texts, after, strict=True)]


def short_number(value: object, digits: int = 4) -> str:
    """A number with so many digits, and never with an exponent if it is large.

    Parameters
    ----------
    value : float, or a date or a level, whose text is taken
    digits : int, default=4
    """
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def first_names(names: Iterable[object]) -> str:
    """The first ten of some names as one text.

    Parameters
    ----------
    names : iterable
    """
    texts = list(map(str, names))
    return ", ".join(texts[:10]) + (", ..." if len(texts) > 10 else "")


def sentence(value: object) -> str:
    """A text as a sentence of its own: with a capital letter and a full stop."""
    text = str(value)
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def numbered(notes: Iterable[str]) -> str:
    """Notes with numbers, each wrapped to lines of text.

    Parameters
    ----------
    notes : sequence of str
    """
    return "\n".join(
        textwrap.fill(one_line(note), LINE, initial_indent=f"{i}. ", subsequent_indent="   ")
        for i, note in enumerate(notes, 1)
    )


class Printed:
    """Mixin of results that are shown as sentences and tables.

    A subclass implements `_parts()`, an iterable of texts, of `Table`, and of lists of notes.
    """

    _parts: Any

    def __str__(self) -> str:
        return "\n".join(map(_plain_text, self._parts()))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'{STYLE}<div class="skpriv">{"".join(map(html, self._parts()))}</div>'


class Exported(Printed):
    """Mixin of results that papers show.

    A subclass implements `_tables()`, a list of `Table`, and `_notes()`, an iterable of sentences.
    """

    _tables: Any
    _notes: Any

    def to_latex(self, caption: str | None = None, label: str | None = None) -> str:
        """The table for LaTeX, with the packages booktabs and threeparttable.

        Parameters
        ----------
        caption, label : str, default=None
            The caption, in which characters with a meaning in LaTeX are escaped, and the label of
            the table.

        Returns
        -------
        str
            LaTeX of the table, to be written to a file or pasted.
        """
        above = [": ".join(filter(None, line)) for line in self._head()]
        return latex_table(self._tables(), [*above, *self._notes()], caption, label)

    def to_markdown(self) -> str:
        """The table in Markdown, with its notes.

        Returns
        -------
        str
            Markdown, which ends with a new line.
        """
        return "\n\n".join(map(markdown, filter(None, self._parts()))) + "\n"

    def _head(self) -> Iterable[tuple[str, str]]:
        """Pairs of a label and words that stand above."""
        return ()

    def _parts(self) -> Iterable[object]:
        head = [*self._head()]
        tables = [Head((), head, left=2)] * bool(head) + self._tables()
        return [*(part for table in tables for part in (table, "")), [*self._notes()]]


def _plain_text(part: object) -> str:
    """A part of what is printed, as text."""
    if isinstance(part, str):
        return "\n".join(map(_cell, part.split("\n")))
    return numbered(part) if isinstance(part, list) else str(part)


class Html(str):
    """A part of a page that is HTML already."""

    def _repr_html_(self) -> str:
        return self


def html(part: object) -> str:
    """HTML of a sentence, of a list of sentences, or of what shows itself in HTML.

    Parameters
    ----------
    part : str, list of str or object
    """
    if isinstance(part, Html | Table | Printed):
        return part._repr_html_()
    if isinstance(part, list):
        return f"<ol>{''.join(f'<li>{escape(one_line(note))}</li>' for note in part)}</ol>"
    return f"<p>{escape(one_line(part))}</p>" if part else ""


class Display:
    """Base class of pictures: `plot` of a subclass draws into axes, and keeps them.

    A maker that has an `ax` asks for `pyplot` first: an error comes before the work and its charge.

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
            _, ax = pyplot(f"{type(self).__name__}.plot").subplots(layout="constrained", **options)
        return ax

    def _drawn(self, ax: Any) -> Self:
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


def installed(name: str, extra: str, caller: str = "to_frame") -> Any:
    """A module of an optional package; without it an error says how to install it.

    Parameters
    ----------
    name : str
    extra : str
        The extra of this library that has the package.
    caller : str, default="to_frame"
        Who needs it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{caller} needs {name.split('.')[0]}, which comes with the {extra} extra: "
            f'python -m pip install "skpriv[{extra}]"'
        ) from error


def pyplot(caller: str) -> Any:
    """The module of matplotlib; an error that names the caller says how to install it."""
    return installed("matplotlib.pyplot", "plot", caller)


def given_axes(axes: Any, number: int, caller: str, sharey: bool = False) -> Any:
    """Axes for so many panels: the first that are given, or those of a new figure.

    A new figure has at most three in a row.

    Parameters
    ----------
    axes : sequence of matplotlib Axes, or None
    number : int
    caller : str
        Who needs matplotlib.
    sharey : bool, default=False
        Whether the panels of a new figure share their vertical axis.
    """
    if axes is not None:
        axes = np.ravel(axes)
        if len(axes) < number:
            raise ValueError(f"There are {number} panels, but {len(axes)} axes.")
        return axes[:number]
    across = min(number, 3)
    down = -(-number // across)
    _, axes = pyplot(caller).subplots(
        down, across, figsize=(4.0 * across, 3.0 * down), layout="constrained", squeeze=False,
        sharey=sharey,
    )  # fmt: skip
    for empty in axes.ravel()[number:]:
        empty.remove()
    return axes.ravel()[:number]
