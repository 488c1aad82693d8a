"""FLIPHAT on the published experiment, with a guarantee that holds, and what clipping does.

Run: python benchmarks/bandit_fliphat.py [--runs 20] [--sweep-runs 6] [--jobs 2] [--seed 1]
     [--horizon 20000] [--dimensions 400 1000 2000 4000] [--supports 2 5 10 20] [--actions 2 3 5 10]
     [--only rounds dimensions supports actions clipping] [--noise-law gaussian uniform]

Autoregressive Gaussian contexts, d=400, s*=5, K=3, delta=.01 (Chakraborty, Roy and Basu 2024,
Section 6). All policies of a run see the same contexts. Numbers are mean regret as a fraction of
that of RandomPolicy in the same runs, with the standard error over runs. The default seed is not
that on which the default schedule of FLIPHAT was chosen.
"""

import argparse
import time

import numpy as np
from _record import record

from skpriv.bandits import FLIPHAT, RandomPolicy, SparseLinearEnvironment, simulate

EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
SWEPT = (0.5, 1.0, 5.0)  # epsilons of the sweeps
PUBLIC = {"delta": 0.01, "n_nonzero_coefs": 10, "data_max": 1.5, "bounds_y": (-2.5, 2.5)}
CLIPS = (0.5, 1.0, 1.5, 2.5, 4.0)
RANGES = (0.5, 1.0, 1.5, 2.5, 4.0, 6.0)
TARGETS = {0.5: 0.11, 1.0: 0.055, 2.0: 0.03, 5.0: 0.015, 10.0: 0.012}  # at 10,000 rounds


def run(epsilons, options, runs, horizon, environment=(), **parameters):
    """Result of a simulation, and regrets as fractions (n_epsilons, n_runs, n_records)."""
    policies = {"random": RandomPolicy()}
    for epsilon in epsilons:
        public = {**PUBLIC, **parameters}
        policies[f"epsilon {epsilon:g}"] = FLIPHAT(epsilon=epsilon, **public)
    env = SparseLinearEnvironment(**dict(environment))
    result = simulate(
        policies, env, horizon, n_runs=runs, n_jobs=options.jobs, random_state=options.seed
    )
    result.fractions = result.regret_[1:] / result.regret_[0].mean(axis=0)
    return result


def cell(values):
    """Mean and standard error over the runs; of one run there is none."""
    if len(values) == 1:
        return f"{values.mean():.3f}"
    return f"{values.mean():.3f} +-{values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def rounds(options):
    """Regret against T."""
    environment = {"noise_law": options.noise_law}
    result = run(EPSILONS, options, options.runs, options.horizon, environment)
    stops = [t for t in (2500, 5000, 10_000, 20_000) if t <= options.horizon]
    print(f"\nfraction of random's regret, {options.runs} runs")
    print(f"{'epsilon':>8}" + "".join(f"{f'T={t}':>16}" for t in stops) + "  target at 10,000")
    for epsilon, fractions in zip(EPSILONS, result.fractions):
        cells = "".join(f"{cell(fractions[:, t - 1]):>16}" for t in stops)
        print(f"{epsilon:8g}{cells}  {TARGETS[epsilon]:.2f}", flush=True)
    print(f"random's regret at the end: {result.regret_[0, :, -1].mean():.0f}")
    print(f"processor seconds a run of a policy: {result.seconds[1:].mean():.2f}")
    curve = np.arange(99, options.horizon, 100)
    return {
        "epsilons": EPSILONS,
        "rounds": stops,
        "fractions": result.fractions[..., [t - 1 for t in stops]],
        "curve": curve + 1,
        "names": result.names,
        "mean regret": result.regret_[:, :, curve].mean(axis=1).round(2),
    }


def draw_rounds(numbers):
    """Regret against rounds, and the same as a fraction of random's, of a record."""
    numbers = numbers["rounds"]
    figure, (ax, relative) = subplots(2)
    rounds, regret = numbers["curve"], np.array(numbers["mean regret"])
    for name, mean in zip(numbers["names"][1:], regret[1:]):
        ax.plot(rounds, mean, label=name)
        relative.plot(rounds, mean / regret[0])
    ax.plot(rounds, regret[0], "k:", label="random")
    ax.set(xlabel="round", ylabel="mean regret", yscale="log")
    relative.set(xlabel="round", ylabel="fraction of random's regret", ylim=(0, 1))
    ax.legend(fontsize=8)
    return figure


def sweep(options, label, values, make, title):
    """Fractions at the last round, of shape (values, epsilons, runs), printed as a table."""
    print(f"\nfraction of random's regret at T={options.sweep_horizon}, {title}")
    print(f"{label:>10}" + "".join(f"{f'epsilon {e:g}':>16}" for e in SWEPT))
    table = []
    for value in values:
        result = run(SWEPT, options, options.sweep_runs, options.sweep_horizon, **make(value))
        table.append(result.fractions[:, :, -1])
        print(f"{value:10g}" + "".join(f"{cell(f):>16}" for f in table[-1]), flush=True)
    return np.array(table)


def sizes(options):
    """Regret against d, s* and K, as chosen."""
    chosen = {
        "dimensions": ("d", options.dimensions, "n_features"),
        "supports": ("s*", options.supports, "n_informative"),
        "actions": ("K", options.actions, "n_actions"),
    }
    numbers = {}
    for label, values, name in (chosen[part] for part in chosen if part in options.only):

        def make(value, name=name):
            public = {"environment": {name: value}}
            if name == "n_informative":  # the same number of spare features, and reach in units
                scale = np.sqrt(value / 5.0)
                public |= {"n_nonzero_coefs": 2 * value, "bounds_y": (-2.5 * scale, 2.5 * scale)}
            return public

        table = sweep(options, label, values, make, f"against {label}")
        numbers[label] = {"values": values, "fractions": table}
    return numbers


def draw_sizes(numbers):
    """Regret against each size, of a record."""
    axes = draw_swept(numbers["sizes"])
    for ax, swept in zip(axes, numbers["sizes"].values()):
        ax.set(xscale="log")
        ax.set_xticks(swept["values"], [f"{value:g}" for value in swept["values"]])
        ax.set_xticks([], minor=True)
    return axes[0].figure


def clipping(options):
    """Regret against the public bounds: the noise is in proportion, the signal is not."""
    entries = sweep(options, "data_max", CLIPS, lambda c: {"data_max": c}, "against data_max")
    title = "against bounds_y = (-c, c)"
    targets = sweep(options, "|y| <=", RANGES, lambda c: {"bounds_y": (-c, c)}, title)
    return {
        "data_max (entries have deviation 1)": {"values": CLIPS, "fractions": entries},
        "c of bounds_y=(-c, c)": {"values": RANGES, "fractions": targets},
    }


def draw_clipping(numbers):
    """Regret against the public bounds, of a record."""
    return draw_swept(numbers["clipping"])[0].figure


def draw_swept(swept):
    """Axes with lines of each table, one an epsilon, with standard errors."""
    _, axes = subplots(len(swept))
    for ax, (label, found) in zip(axes, swept.items()):
        table = np.array(found["fractions"])  # values, epsilons, runs
        errors = table.std(axis=2, ddof=1) / np.sqrt(table.shape[2])
        for epsilon, mean, error in zip(SWEPT, table.mean(axis=2).T, errors.T):
            label_ = f"epsilon {epsilon:g}"
            ax.errorbar(found["values"], mean, error, marker="o", ms=3, label=label_)
        ax.set(xlabel=label, ylabel="fraction of random's regret", ylim=(0, None))
    axes[0].legend(fontsize=8)
    return axes


def subplots(columns):
    """Figure and axes side by side."""
    from matplotlib import pyplot

    size = (3.6 * columns, 3.2)
    figure, axes = pyplot.subplots(1, columns, figsize=size, squeeze=False, layout="constrained")
    return figure, axes[0]


def main():
    """Print the tables, and record them."""
    parts = ["rounds", "dimensions", "supports", "actions", "clipping"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--sweep-runs", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--horizon", type=int, default=20_000)
    parser.add_argument("--sweep-horizon", type=int, default=10_000)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[400, 1000, 2000, 4000])
    parser.add_argument("--supports", type=int, nargs="+", default=[2, 5, 10, 20])
    parser.add_argument("--actions", type=int, nargs="+", default=[2, 3, 5, 10])
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--noise-law", choices=["gaussian", "uniform"], default="gaussian")
    options = parser.parse_args()
    start = time.perf_counter()
    numbers = {"seed": options.seed, "sizes": sizes(options)}
    if "rounds" in options.only:
        numbers["rounds"] = rounds(options)
    if "clipping" in options.only:
        numbers["clipping"] = clipping(options)
    print(f"\n{time.perf_counter() - start:.0f} seconds in all")
    suffix = "" if options.noise_law == "gaussian" else f"_{options.noise_law}"
    record(f"bandit_fliphat{suffix}", numbers)


if __name__ == "__main__":
    main()
