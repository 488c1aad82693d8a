"""`python -m skpriv regret`: what privacy costs policies in environments."""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import bandits
from .._printing import numbered
from ..bandits import RegretDisplay, simulate
from ..linear_model import SSPRegressor
from ._arguments import (
    PICTURES,
    add_options,
    at_least,
    by_epsilon,
    check_files,
    panels,
    tell,
    with_settings,
    write,
)

if TYPE_CHECKING:
    from sklearn.utils import Bunch
    from .._parameters import PrivacyModel
    from argparse import ArgumentParser, Namespace
    from .._printing import Table

RANDOM = "RandomPolicy"


class Setting(NamedTuple):
    """An environment, private policies and references by name, and its usual size.

    The policies have no budget and no horizon yet. All references get an infinite epsilon, which is
    no privacy; the random policy needs none.
    """

    text: str
    environment: Callable[[], Any]
    private: dict[str, Any]
    references: dict[str, Any]
    horizon: int
    delta: float = 1e-6


def _sums(*models: "PrivacyModel") -> dict[str, Any]:
    """LinUCB under some models, and the online form of local privacy."""
    policies = {f"LinUCB, {name}": bandits.LinUCB(privacy=name) for name in models}
    return policies | {"OnlineLinUCB": bandits.OnlineLinUCB()}


ORACLE = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), fit_intercept=False)
EPOCHS = {
    "EpochGreedy": bandits.EpochGreedy(oracle=ORACLE),
    "SquareCB": bandits.SquareCB(oracle=ORACLE),
}
EXACT = {"LinUCB": bandits.LinUCB(), RANDOM: bandits.RandomPolicy()}
# Clipping well below the largest value costs little accuracy, and saves much noise.
SPARSE = bandits.FLIPHAT(n_nonzero_coefs=10, data_max=1.5, bounds_y=(-2.5, 2.5))
SETTINGS = {
    "linear": Setting(
        "10 actions with 5 features each, linear rewards of -1 or 1",
        bandits.LinearEnvironment, EPOCHS | _sums("central", "local"), EXACT,
        horizon=20_000,
    ),
    "fliphat": Setting(
        "3 actions with 400 features each, of which 5 matter",
        bandits.SparseLinearEnvironment, {"FLIPHAT": SPARSE},
        {"LassoBandit": bandits.LassoBandit(alpha=0.1), RANDOM: bandits.RandomPolicy()},
        horizon=10_000, delta=0.01,
    ),
    "shuffle": Setting(
        "100 actions with 5 features each, linear rewards of -1 or 1, in every trust model",
        partial(bandits.LinearEnvironment, n_actions=100),
        _sums("central", "local", "shuffle"), EXACT, horizon=20_000,
    ),
}  # fmt: skip


def with_public(policies: dict[str, Any], **public: Any) -> dict[str, Any]:
    """Policies by name, with the public parameters that each of them has."""
    return {name: with_settings(policy, **public) for name, policy in policies.items()}


def add_regret(parser: "ArgumentParser") -> None:
    """Add the arguments of the command."""
    add = parser.add_argument
    texts = "; ".join(f"{name}: {setting.text}" for name, setting in SETTINGS.items())
    add("--setting", choices=list(SETTINGS), default="linear", help=texts)
    values = {"default": [0.5, 1.0, 2.0, 5.0, 10.0], "help": "default 0.5,1,2,5,10"}
    add("--horizon", type=at_least(2), help="rounds of a run; default by setting")
    add("--runs", type=at_least(1), default=3, help="independent runs; default 3")
    add_options(
        parser, "--epsilons", "--delta", "--jobs", "--seed", "--plot", epsilons=values,
        delta={"default": None, "help": "default 1e-6; with fliphat 0.01, as published"},
        jobs={"help": "runs at the same time; -1: as many as processors"},
        seed={"default": 0, "help": "seed of rounds, actions and noise; default 0"},
    )  # fmt: skip


def run_regret(args: "Namespace") -> int:
    """Simulate private bandits at every epsilon, and print a table."""
    check_files(args, plot=PICTURES)
    setting = SETTINGS[args.setting]
    horizon = args.horizon or setting.horizon
    delta = setting.delta if args.delta is None else args.delta
    env = setting.environment()
    public = {"delta": delta, "horizon": horizon}
    references = with_public(setting.references, epsilon=inf, **public)
    private = {e: with_public(setting.private, epsilon=e, **public) for e in args.epsilons}
    reference_results = _simulate(args, "without privacy", references, env, horizon)
    results = {
        epsilon: _simulate(args, f"epsilon {epsilon:g}", policies, env, horizon)
        for epsilon, policies in private.items()
    }
    policies = [*private[args.epsilons[0]].items(), *references.items()]  # Names may repeat.
    guarantees = [f"{name}: {policy.guarantee}" for name, policy in policies]
    print(
        f"{args.setting}: {setting.text}\n{horizon:,} rounds, {args.runs} runs, "
        f"delta {delta:g}; cumulated regret: mean +- standard error, and share of {RANDOM}'s",
        table(results, reference_results),
        f"Guarantees, in the first column:\n{numbered(guarantees)}",
        sep="\n\n",
    )
    if args.plot:  # Each epsilon has a panel, and the references are in all of them.
        figure, axes = panels(len(results), share=True)
        for ax, (epsilon, result) in zip(axes, results.items(), strict=True):
            display = RegretDisplay(
                regret=np.concatenate([result.regret_, reference_results.regret_]),
                rounds=result.rounds,
                names=[*result.names, *reference_results.names],
            ).plot(ax, legend=False)
            ax.set_title(f"epsilon {epsilon:g}")
        figure.legend(handles=display.lines_, loc="outside lower center", ncols=3, frameon=False)
        figure.suptitle(f"{args.setting}, delta {delta:g}")
        write(figure, args.plot)
    return 0


def _simulate(
    args: "Namespace", title: str, policies: dict[str, Any], env: Any, horizon: int
) -> "Bunch":
    """All epsilons have the same rounds, because they have the same seed."""
    tell(f"{title}: {', '.join(policies)}")
    return simulate(
        policies,
        env,
        horizon,
        n_runs=args.runs,
        n_jobs=args.jobs,
        random_state=args.seed,
        verbose=1,
        n_records=500,  # Each line of the picture has 500 points.
    )


def table(results: "dict[float, Bunch]", reference_results: "Bunch") -> "Table":
    """Rows: policies; columns: epsilon; cells: regret at the end, and its share of the worst.

    Parameters
    ----------
    results : dict of float and Bunch
        Results of `simulate`, for each epsilon.
    reference_results : Bunch
        Results of the references, one of which is the random policy.

    Returns
    -------
    Table
    """
    chance = reference_results.regret_[reference_results.names.index(RANDOM), :, -1].mean()
    private = list(results.values())
    parts = [(name, private, i) for i, name in enumerate(private[0].names)]
    for i, name in enumerate(reference_results.names):
        parts.append((name if name == RANDOM else f"{name}, not private", [reference_results], i))
    rows = []
    for name, runs, i in parts:
        ends = [run.regret_[i, :, -1] for run in runs]
        rows += [
            [name],
            ["  regret", *map(_mean, ends)],
            ["  share of random", *(f"{end.mean() / chance:.1%}" for end in ends)],
        ]
    return by_epsilon(results, rows)


def _mean(regret: np.ndarray) -> str:
    """Mean over the runs, with its standard error if there are several."""
    error = f" +-{np.std(regret, ddof=1) / np.sqrt(len(regret)):.0f}" if len(regret) > 1 else ""
    return f"{regret.mean():.0f}{error}"
