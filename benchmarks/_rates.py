"""What the scripts of rates share: sweeps over sizes and seeds, slopes with intervals, figures."""

import argparse

import numpy as np
from _record import record
from joblib import Parallel, delayed

BOOTSTRAP = 500
NOISE = 10_000  # added to seeds: with the seed of the data, noise would repeat their draws


def arguments(doc, **defaults):
    """Parsed options: seeds, jobs, epsilon, plot, and a list of numbers for every default."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--epsilon", type=float, default=defaults.pop("epsilon", 1.0))
    for name, values in defaults.items():
        kind = float if any(isinstance(value, float) for value in values) else int
        parser.add_argument(f"--{name}", type=kind, nargs="+", default=values)
    return parser.parse_args()


def sweep(measure, sizes, options):
    """Errors of shape (sizes, seeds, methods); measure(size, epsilon, seed) gives one a method."""
    jobs = (
        delayed(measure)(size, options.epsilon, seed)
        for size in sizes
        for seed in range(options.seeds)
    )
    errors = np.array(Parallel(options.jobs)(jobs))
    return errors.reshape(len(sizes), options.seeds, -1)


def slope(sizes, errors):
    """Slope of log median error on log size, and a 90% interval by resampling the seeds."""
    rng = np.random.default_rng(0)
    logs = np.log(sizes)

    def fitted(values):
        return np.polyfit(logs, np.log(np.median(values, axis=1)), 1)[0]

    seeds = errors.shape[1]
    draws = [fitted(errors[:, rng.integers(0, seeds, seeds)]) for _ in range(BOOTSTRAP)]
    return (fitted(errors), *np.quantile(draws, [0.05, 0.95]))


def show(title, axis, sizes, methods, errors, last=None):
    """Table: medians with 10% and 90% quantiles, and slopes (over the last sizes only)."""
    first = 0 if last is None else len(sizes) - last
    print(f"\n{title}")
    print(f"{axis:>9}  " + "  ".join(f"{name:26}" for name in methods))
    for size, values in zip(sizes, errors):
        low, mid, high = np.quantile(values, [0.1, 0.5, 0.9], axis=0)
        cells = (f"{m:7.5f} [{a:7.5f}, {b:7.5f}]" for m, a, b in zip(mid, low, high))
        print(f"{size:9g}  " + "  ".join(f"{cell:26}" for cell in cells))
    slopes = (slope(sizes[first:], errors[first:, :, j]) for j in range(len(methods)))
    cells = (f"{s:6.3f} [{a:6.3f}, {b:6.3f}]" for s, a, b in slopes)
    print(f"{'slope':>9}  " + "  ".join(f"{cell:26}" for cell in cells), flush=True)


def written(name, axis, ylabel, panels):
    """Record panels (title, sizes, methods, errors, {label: power of a guide}) and their axes."""
    names = ("title", "sizes", "methods", "errors", "guides")
    panels = [dict(zip(names, panel)) for panel in panels]
    record(name, {"axis": axis, "ylabel": ylabel, "panels": panels})


def draw(numbers):
    """Log-log panels of a record: medians over the seeds, and the range from 10% to 90%."""
    from matplotlib import pyplot

    panels = numbers["panels"]
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(4 * len(panels), 3.5), squeeze=False, layout="constrained"
    )
    for ax, panel in zip(axes[0], panels):
        sizes = panel["sizes"]
        low, mid, high = np.quantile(panel["errors"], [0.1, 0.5, 0.9], axis=1)
        for j, name in enumerate(panel["methods"]):
            (line,) = ax.plot(sizes, mid[:, j], marker="o", markersize=3, label=name)
            ax.fill_between(sizes, low[:, j], high[:, j], color=line.get_color(), alpha=0.15)
        for (label, power), style in zip(panel["guides"].items(), (":", "--", "-.")):
            guide = mid[0].max() * (np.asarray(sizes) / sizes[0]) ** power
            ax.plot(sizes, guide, style, color="gray", linewidth=1, label=label)
        ax.set(xscale="log", yscale="log", xlabel=numbers["axis"], title=panel["title"])
        ax.legend(fontsize=8)
    axes[0][0].set_ylabel(numbers["ylabel"])
    return figure
