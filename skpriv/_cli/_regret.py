"""`python -m skpriv regret`: what privacy costs in regret, in simulated and real rounds."""

import sys
import textwrap

import numpy as np

from ..bandits import RegretDisplay, simulate
from ._arguments import Joined, add_options, at_least, check_plot, panels, positives, row, write
from ._regret_settings import RANDOM, SETTINGS


def add_regret(parser):
    """Add the arguments of the command."""
    parser.description = "Simulates private bandits at every epsilon, and prints a table."
    add = parser.add_argument
    texts = "; ".join(f"{name}: {setting.text}" for name, setting in SETTINGS.items())
    add("--setting", choices=list(SETTINGS), default="linear", help=texts)
    add("--epsilons", type=positives, nargs="+", action=Joined,
        default=[0.5, 1.0, 2.0, 5.0, 10.0], metavar="E", help="default 0.5,1,2,5,10")  # fmt: skip
    add("--horizon", type=at_least(2), default=None, help="rounds of a run; default by setting")
    add("--runs", type=at_least(1), default=3, help="independent runs; default 3")
    add_options(
        parser, "--delta", "--jobs", "--seed", "--plot",
        delta={"default": None, "help": "default 1e-6; with fliphat 0.01, as published"},
        jobs={"help": "runs at the same time; -1: as many as processors"},
        seed={"default": 0, "help": "seed of rounds, actions and noise; default 0"},
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(args):
    """Simulate, print the table, draw the picture; return the exit code."""
    check_plot(args.plot)
    setting = SETTINGS[args.setting]
    horizon = args.horizon or setting.horizon
    delta = setting.delta if args.delta is None else args.delta
    env, references = setting.environment(), setting.references(horizon)
    private = {e: setting.private(e, delta, horizon) for e in args.epsilons}
    known = _simulate(args, "without privacy", references, env, horizon)
    results = {
        epsilon: _simulate(args, f"epsilon {epsilon:g}", policies, env, horizon)
        for epsilon, policies in private.items()
    }
    print(
        f"{args.setting}: {setting.text}\n{horizon:,} rounds, {args.runs} runs, "
        f"delta {delta:g}; cumulated regret: mean +- standard error, and share of {RANDOM}'s",
        table(results, known),
        guarantees(private[args.epsilons[0]], references),
        sep="\n\n",
    )
    if args.plot:
        _draw(args, delta, results, known)
    return 0


def _simulate(args, title, policies, env, horizon):
    """All epsilons have the same rounds, because they have the same seed."""
    print(f"{title}: {', '.join(policies)}", file=sys.stderr, flush=True)
    # So many rounds of a line are drawn
    return simulate(
        policies,
        env,
        horizon,
        n_runs=args.runs,
        n_jobs=args.jobs,
        random_state=args.seed,
        verbose=1,
        n_records=500,
    )


def table(results, known):
    """Rows: policies; columns: epsilon; cells: regret at the end, and its share of the worst.

    Parameters
    ----------
    results : dict of float and Bunch
        Results of `simulate`, for each epsilon.
    known : Bunch
        Results of the references, one of which is the random policy.

    Returns
    -------
    str
    """
    chance = known.regret_[known.names.index(RANDOM), :, -1].mean()
    lines = [row("epsilon", [f"{epsilon:g}" for epsilon in results])]
    lines.append("-" * len(lines[0]))
    for i, name in enumerate(next(iter(results.values())).names):
        lines += _cells(name, [result.regret_[i, :, -1] for result in results.values()], chance)
    for i, name in enumerate(known.names):
        title = name if name == RANDOM else f"{name}, not private"
        lines += _cells(title, [known.regret_[i, :, -1]], chance)
    return "\n".join(lines)


def _cells(name, regrets, chance):
    return [
        name,
        row("  regret", map(_mean, regrets)),
        row("  share of random", [f"{regret.mean() / chance:.1%}" for regret in regrets]),
    ]


def _mean(regret):
    if len(regret) == 1:
        return f"{regret[0]:.0f}"
    return f"{regret.mean():.0f} +-{np.std(regret, ddof=1) / np.sqrt(len(regret)):.0f}"


def guarantees(private, references):
    """One line a policy: what it guarantees, at the smallest epsilon."""
    policies = [*private.items(), *references.items()]  # two may have one name
    lines = (f"{name}: {policy.guarantee}" for name, policy in policies)
    return "\n".join(
        ["Guarantees, in the first column:"]
        + [textwrap.fill(x, 99, initial_indent="* ", subsequent_indent="  ") for x in lines]
    )


def _draw(args, delta, results, known):
    """A panel for each epsilon, with the references in all of them."""
    figure, axes = panels(len(results), share=True)
    for ax, (epsilon, result) in zip(axes, results.items(), strict=True):
        display = RegretDisplay(
            regret=np.concatenate([result.regret_, known.regret_]),
            rounds=result.rounds,
            names=[*result.names, *known.names],
        ).plot(ax, legend=False)
        ax.set_title(f"epsilon {epsilon:g}")
    figure.legend(handles=display.lines_, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(f"{args.setting}, delta {delta:g}")
    write(figure, args.plot)
