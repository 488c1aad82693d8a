"""LinUCB under every kind of trust, on the experiment of the shuffle and online LDP papers.

Run: python benchmarks/linucb_comparison.py [--trials 50] [--delta 0.1] [--jobs 2] [--only NAME ...]

100 arms, d=5, T=20,000, Bernoulli rewards. Arms and weights are a 4-dimensional vector of norm
1/sqrt(2), uniform, with 1/sqrt(2) appended (Chowdhury and Zhou 2022, Section 6). Every policy has
the guarantee on its label. "published widths" uses the ridge and the confidence width of those
papers, with noise that is calibrated to the guarantee (their code's is not), and rewards in [0, 1].
The others know that the features have a constant among them, and centre the rewards.

Mean pseudo-regret, with its standard error, and CPU seconds a run. The record is written after
each row, in the order in which --only names them, so that a run that is ended leaves its rows.
"""

import argparse
import time
from math import log, sqrt

import numpy as np
from _pair_reports import PairOnlineLinUCB
from _record import record
from joblib import Parallel, delayed

from skpriv.bandits import LinUCB, OnlineLinUCB, RandomPolicy
from skpriv.bandits._ucb._sums import Region

T, ARMS, D = 20_000, 100, 5
EPSILONS = (0.2, 1.0, 10.0)
CHECKPOINTS = np.arange(200, T + 1, 200)
EXACT = ("random", "LinUCB, textbook", "LinUCB, one posterior deviation")


class PublishedWidths(LinUCB):
    """The ridge 2 Gamma and width of the published scripts, Gamma the size of the noise."""

    def _make_region(self, equations):
        gamma = max(equations.design_scale * sqrt(D), 1.0)
        width = sqrt(gamma * D) + 0.5 * sqrt(D * log((1.0 + T / gamma) * T))
        precision = equations.design + 2.0 * gamma * np.eye(D)
        values, vectors = np.linalg.eigh(precision)
        inverse = (vectors / np.maximum(values, gamma)) @ vectors.T
        return Region(inverse @ equations.target, width**2 * inverse)


def policies(epsilon, delta, seed):
    """Every policy of the comparison, by name."""
    common = {"epsilon": epsilon, "delta": delta, "horizon": T, "random_state": seed}
    raw = {**common, "bounds_y": (-1.0, 1.0), "bonus_scale": 1.0, "update_every": T // 200}
    raw["fit_intercept"] = False  # the published scripts have none
    ours = {**common, "bounds_y": (0.0, 1.0), "reward_offset": 0.5, "coef_norm": sqrt(2.0)}
    centred = {**ours, "width": "certified"}
    exact = {**centred, "privacy": "none"}
    return {
        "random": RandomPolicy(random_state=seed),
        "LinUCB, textbook": LinUCB(**exact),
        "LinUCB, one posterior deviation": LinUCB(**{**exact, "width": "asymptotic"}),
        "published widths, local": PublishedWidths(**raw, privacy="local"),
        "published widths, joint": PublishedWidths(**raw, privacy="central"),
        "published widths, shuffle, amplified": PublishedWidths(
            **raw, privacy="shuffle", channel="gaussian"
        ),
        "published widths, shared sum": PublishedWidths(**raw, privacy="aggregate"),
        "certified, local": LinUCB(**centred, privacy="local"),
        "certified, joint": LinUCB(**centred, privacy="central"),
        "certified, shuffle, amplified": LinUCB(**centred, privacy="shuffle", channel="gaussian"),
        "certified, shared sum": LinUCB(**centred, privacy="aggregate"),
        "asymptotic, local": LinUCB(**ours, privacy="local"),
        "asymptotic, joint": LinUCB(**ours, privacy="central"),
        "asymptotic, shuffle, amplified": LinUCB(**ours, privacy="shuffle", channel="gaussian"),
        "asymptotic, shuffle, codebook": LinUCB(**ours, privacy="shuffle"),
        "asymptotic, shared sum": LinUCB(**ours, privacy="aggregate"),
        "OnlineLinUCB, Maler": OnlineLinUCB(**ours),
        "OnlineLinUCB, OGD": OnlineLinUCB(**ours, learner="ogd"),
        "OnlineLinUCB, OGD, faithful": PairOnlineLinUCB(**ours, learner="ogd"),
    }


def make_vectors(n, rng):
    """Vectors of norm 1 whose last entry is 1/sqrt(2)."""
    directions = rng.normal(size=(n, D - 1))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.column_stack([directions, np.ones(n)]) / sqrt(2.0)


def trial(name, epsilon, delta, seed):
    """Cumulative pseudo-regret at the checkpoints, and CPU seconds, of one run."""
    rng = np.random.RandomState(seed)
    arms, theta = make_vectors(ARMS, rng), make_vectors(1, rng)[0]
    means = arms @ theta
    policy, start = policies(epsilon, delta, seed)[name], time.process_time()
    regret, done = np.empty(T), 0
    while done < T:
        size = min(policy.rounds_until_update_, T - done)
        contexts = np.broadcast_to(arms, (size, ARMS, D))
        actions = policy.act(contexts)
        rewards = (rng.uniform(size=size) < means[actions]).astype(float)
        policy.update(contexts, actions, rewards)
        regret[done : done + size] = means.max() - means[actions]
        done += size
    return np.cumsum(regret)[CHECKPOINTS - 1], time.process_time() - start


def draw(numbers):
    """Mean regret and its standard error against rounds, a panel an epsilon, of a record."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(EPSILONS), figsize=(15, 4), sharey=True)
    for axis, epsilon in zip(axes, EPSILONS):
        axis.set_prop_cycle(color=plt.get_cmap("tab20").colors)
        for name, curves in numbers["curves"].items():
            if not name.startswith(("random", "certified")):
                mean, error = np.array(curves[f"{epsilon:g}"])
                (line,) = axis.plot(CHECKPOINTS, mean, label=name)
                ends = mean - error, mean + error
                axis.fill_between(CHECKPOINTS, *ends, color=line.get_color(), alpha=0.2, lw=0)
        axis.set(title=f"epsilon = {epsilon:g}, delta = {numbers['delta']:g}", xlabel="round")
    axes[0].set(ylabel="regret", yscale="log")
    axes[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
    return figure


def main():
    """Print the table, and record it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--delta", type=float, default=0.1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=[""], help="beginnings of names")
    arguments = parser.parse_args()
    parallel, curves, seconds = Parallel(arguments.jobs), {}, time.perf_counter()
    numbers = dict(vars(arguments))
    print(f"T={T}, {ARMS} arms, d={D}, delta={arguments.delta:g}, {arguments.trials} trials")
    header = "".join(f"{f'epsilon {e:g}':>16}" for e in EPSILONS)
    print(f"{'regret':40}{header}{'CPU s':>8}")
    names = list(policies(1.0, 0.1, 0))
    chosen = [name for start in arguments.only for name in names if name.startswith(start)]
    for name in dict.fromkeys(chosen):
        cells, curves[name], cpu = [], {}, []
        for epsilon in EPSILONS:
            jobs = (
                delayed(trial)(name, epsilon, arguments.delta, seed)
                for seed in range(arguments.trials)
            )
            if not (name in EXACT and cpu):  # epsilon changes nothing there
                runs, times = zip(*parallel(jobs))
            final = np.array(runs)[:, -1]
            error = np.std(runs, axis=0) / sqrt(len(runs))
            curves[name][f"{epsilon:g}"] = [np.mean(runs, axis=0).round(1), error.round(2)]
            numbers[f"{name}, {epsilon:g}"] = final
            error = f" +-{final.std() / sqrt(len(final)):4.0f}" * (len(final) > 1)
            cells.append(f"{final.mean():9.0f}{error}")
            cpu.extend(times)
        print(
            f"{name:40}" + "".join(f"{c:>16}" for c in cells) + f"{np.mean(cpu):8.2f}", flush=True
        )
        numbers |= {"curves": curves, "left out": [name for name in names if name not in curves]}
        record(f"linucb_comparison{'_part' if numbers['left out'] else ''}", numbers)
    print(f"{time.perf_counter() - seconds:.0f} seconds in all")


if __name__ == "__main__":
    main()
