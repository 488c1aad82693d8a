"""Coverage of the simultaneous bands of additive curves on a known smooth truth, many draws.

Run: python benchmarks/additive_bands.py [--seeds 25] [--n 12000 50000] [--privacy central]

Three features on [-1, 1]: t^2, t / 2 and .3 sin(3 t), noise of deviation .4, range [-2, 3], default
parameters. Printed are the part of the curves that lie in their band at all of 41 points, the mean
part of the points in the pointwise interval, and the median width of the band.
"""

import argparse

import numpy as np
from _record import record

from skpriv.linear_model import AdditiveRegressor

FUNCTIONS = (np.square, lambda t: 0.5 * t, lambda t: 0.3 * np.sin(3.0 * t))
GRID = np.linspace(-1.0, 1.0, 41)


def measure(n, epsilon, seeds, privacy):
    """Coverage of bands and of points, and width, over draws and curves."""
    inside, points, widths = [], [], []
    for seed in range(seeds):
        rng = np.random.RandomState(1000 + seed)
        X = rng.uniform(-1.0, 1.0, size=(n, 3))
        y = sum(f(X[:, j]) for j, f in enumerate(FUNCTIONS)) + rng.normal(scale=0.4, size=n)
        model = AdditiveRegressor(
            epsilon=epsilon,
            privacy=privacy,
            bounds_X=(-1.0, 1.0),
            bounds_y=(-2.0, 3.0),
            random_state=seed,
        ).fit(X, y)
        for j, function in enumerate(FUNCTIONS):
            curve = model.curve(j, GRID)
            truth = function(GRID) - function(X[:, j]).mean()
            inside.append(((curve.band_low <= truth) & (truth <= curve.band_high)).all())
            points.append(((curve.low <= truth) & (truth <= curve.high)).mean())
            widths.append(np.median(curve.band_high - curve.band_low))
    return {
        "band": float(np.mean(inside)),
        "pointwise": float(np.mean(points)),
        "width": float(np.median(widths)),
        "curves": len(inside),
    }


def main():
    """Print one line a number of records and epsilon, and record all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="*", default=[12_000, 50_000])
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--privacy", default="central")
    parser.add_argument("--name", default="additive_bands")
    options = parser.parse_args()
    numbers = {}
    for n in options.n:
        for epsilon in (0.5, 1.0, 4.0):
            numbers[f"{n} {epsilon}"] = found = measure(n, epsilon, options.seeds, options.privacy)
            print(n, epsilon, found, flush=True)
    record(options.name, numbers)


if __name__ == "__main__":
    main()
