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


def panels(n_panels):
    """Figure without a window, and axes side by side."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5 * n_panels, 4), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(1, n_panels, squeeze=False)[0])


def write(figure, path):
    """Write the picture, and say so."""
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise CommandError(f"--plot {path} cannot be written: {error}.") from error
    print(f"Wrote {path}.", file=sys.stderr)
