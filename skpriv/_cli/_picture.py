"""Writing a picture to a file, for the commands with --plot."""

import sys
from importlib.util import find_spec
from pathlib import Path

from ._error import CommandError

PICTURES = (".pdf", ".png", ".svg")


def check_plot(path):
    """Whether the picture can be written is found out before the work, and not after it."""
    if path is None:
        return
    if find_spec("matplotlib") is None:
        raise ImportError(
            "--plot needs matplotlib, which comes with the plot extra: "
            'python -m pip install "skpriv[plot]"'
        )
    if Path(path).suffix.lower() not in PICTURES:
        raise CommandError(f"--plot {path} must end with one of {', '.join(PICTURES)}.")
    if not Path(path).absolute().parent.is_dir():
        raise CommandError(f"--plot {path}: there is no such directory.")


def panels(n_panels, *, share=False):
    """Figure without a window, and axes in rows of at most three: a page is not wider."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(n_panels, 3)
    rows = -(-n_panels // columns)
    figure = Figure(figsize=(max(5.0, 3.2 * columns), 3.0 * rows + 1.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, sharey=share).ravel()
    for empty in axes[n_panels:]:
        empty.remove()
    return figure, list(axes[:n_panels])


def write(figure, path):
    """Write the picture, and say so."""
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise CommandError(f"--plot {path} cannot be written: {error}.") from error
    print(f"Wrote {path}.", file=sys.stderr)
