"""Growth of regret in T: elimination and its oracles on an instance with a rare direction.

Run: python benchmarks/bandit_elimination.py [--horizon 10000000] [--runs 2] [--jobs 2] [--seed 2]
     [--epsilon 10] [--rare 0.2] [--privacy local central] [--width asymptotic]
     [--only WORDS]

Fixed arms (d=5, K=10), Bernoulli rewards of -1 or 1, delta 1e-6. The feature that matters most is
the one along which arms are shortest, --rare: a Gram matrix hidden in noise does not show it before
T is about --rare to the power -4, and re-weighting finds it when T is about the power -2.
Slopes are of log regret on log T from a hundredth of the horizon.
"""

import argparse
import time

import numpy as np
from _record import record

from skpriv.bandits import (
    ActionElimination,
    EpochSchedule,
    LinearEnvironment,
    LinUCB,
    RandomPolicy,
    SquareCB,
    simulate,
)
from skpriv.linear_model import LayeredRegressor, ReweightedRegressor, SSPRegressor

D, K = 5, 10
COEF = np.array([0.0, 0.95, 0.15, 0.15, 0.15])


def instance(rare):
    """Arms, rows of the unit ball: what matters most, feature 1, has a length of at most `rare`."""
    rng = np.random.default_rng(0)
    arms = np.full((K, D), 0.7)
    arms[:, 1] = rare * np.linspace(-1.0, 1.0, K)  # the best arm is the last: ties do not find it
    others = rng.normal(size=(K, D - 2))
    arms[:, 2:] = 0.5 * others / np.linalg.norm(others, axis=1, keepdims=True)
    return arms


def policies(options, privacy):
    """Every policy of the comparison, by name."""
    common = {"epsilon": options.epsilon, "delta": 1e-6, "privacy": privacy, "fit_intercept": False}
    common |= {"data_norm": 1.0, "bounds_y": (-1.0, 1.0)}
    schedule = EpochSchedule(first=options.first, ratio=2.0)
    oracles = {
        "re-weighted": ReweightedRegressor(**common, coef_norm=1.0, random_state=0),
        "layered": LayeredRegressor(**common, random_state=0),
        "SSP": SSPRegressor(**common, coef_norm=1.0, random_state=0),
    }
    named = {"random": RandomPolicy()}
    for name, oracle in oracles.items():
        width = "certified" if name == "layered" else options.width  # it has no other
        named[f"elimination, {name}"] = ActionElimination(
            oracle=oracle, schedule=schedule, interval=width
        )
    for interval in ("certified", "posterior"):
        named[f"elimination, re-weighted, {interval}"] = ActionElimination(
            oracle=oracles["re-weighted"],
            schedule=schedule,
            interval=interval,
        )
    named["SquareCB, re-weighted"] = SquareCB(oracle=oracles["re-weighted"], schedule=schedule)
    linear = {"epsilon": options.epsilon, "delta": 1e-6, "privacy": privacy}
    named["LinUCB, certified"] = LinUCB(**linear, width="certified")
    named["LinUCB, asymptotic"] = LinUCB(**linear)
    if options.only:
        named = {k: v for k, v in named.items() if any(word in k for word in options.only)}
    return named


def slope(rounds, regret):
    """Slope of log mean regret on log round over the last two decades."""
    late = rounds >= rounds[-1] / 100
    return np.polyfit(np.log(rounds[late]), np.log(np.maximum(regret[late], 1e-9)), 1)[0]


def report(result, options, privacy):
    """Print regrets at powers of ten, slopes and processor seconds."""
    stops = [10**k for k in range(4, 9) if 10**k <= options.horizon]
    print(f"\n{privacy}, epsilon={options.epsilon:g}, rare={options.rare:g}, {options.runs} runs")
    header = "".join(f"{f'T={stop:.0e}':>12}" for stop in stops)
    print(f"{'regret':38}{header}{'slope':>8}{'last':>8}{'CPU s':>8}")
    for name, regrets, seconds in zip(result.names, result.regret_, result.seconds):
        regret = regrets.mean(axis=0)
        cells = (regret[np.argmin(np.abs(result.rounds - stop))] for stop in stops)
        row = "".join(f"{value:12.0f}" for value in cells)
        last = np.polyfit(np.log(result.rounds[-8:]), np.log(regret[-8:] + 1e-9), 1)[0]
        both = f"{slope(result.rounds, regret):8.2f}{last:8.2f}"
        print(f"{name:38}{row}{both}{seconds.mean():8.1f}", flush=True)


def draw(numbers):
    """Regret against rounds on logarithmic axes, a panel a trust model, of a record."""
    from matplotlib import pyplot

    models = numbers["privacy"]
    size = (3.8 * len(models), 3.4)
    figure, axes = pyplot.subplots(1, len(models), figsize=size, squeeze=False, sharey=True)
    for ax, privacy in zip(axes[0], models):
        rounds = np.array(numbers[privacy]["rounds"])
        late = rounds >= 1000
        for name, regrets in zip(numbers[privacy]["names"], numbers[privacy]["regret"]):
            style = {"LinUCB": "--", "random": ":"}.get(name.split(",")[0], "-")
            ax.plot(rounds[late], np.mean(regrets, axis=0)[late], style, label=name)
        ax.set(xscale="log", yscale="log", xlabel="round", title=privacy)
    axes[0, 0].set_ylabel("mean regret")
    axes[0, -1].legend(fontsize=6)
    figure.tight_layout()
    return figure


def main():
    """Print the tables, and record them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--horizon", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--epsilon", type=float, default=10.0)
    parser.add_argument("--first", type=int, default=4096, help="rounds of the first epoch")
    parser.add_argument("--rare", type=float, default=0.2)
    parser.add_argument("--privacy", nargs="+", default=["local", "central"])
    parser.add_argument("--width", choices=["certified", "asymptotic"], default="asymptotic")
    parser.add_argument("--only", nargs="+", help="policies whose name has any of these words")
    options = parser.parse_args()
    env = LinearEnvironment(n_actions=K, n_features=D, contexts=instance(options.rare), coef=COEF)
    results, start = {}, time.perf_counter()
    for privacy in options.privacy:
        results[privacy] = simulate(
            policies(options, privacy),
            env,
            options.horizon,
            n_runs=options.runs,
            n_jobs=options.jobs,
            random_state=options.seed,
            n_records=100,
        )
        report(results[privacy], options, privacy)
    print(f"{time.perf_counter() - start:.0f} seconds in all")
    record(
        "bandit_elimination",
        {
            **vars(options),
            **{
                name: {"names": r.names, "rounds": r.rounds, "regret": r.regret_}
                for name, r in results.items()
            },
        },
    )


if __name__ == "__main__":
    main()
