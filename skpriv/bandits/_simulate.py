"""Running policies in an environment, many times, and a picture of their regret."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import Bunch
from sklearn.utils.parallel import Parallel, delayed

from .._estimation._levels import two_sided_quantile
from .._parameters import Count, RandomState, validated
from .._printing import Display, installed, picture_texts
from .._progress import progress
from ._policy._run import MAX_SEED
from ._environments import chosen

if TYPE_CHECKING:
    from ._environments import Environment
    from ._policy._base import BasePolicy

# Contexts of a block of rounds have at most so many numbers, which take 64 megabytes.
BLOCK_NUMBERS = 2**23


class SimulationResult(Bunch):
    """What `simulate` returns: a dictionary whose entries are attributes too."""

    def to_frame(self) -> Any:
        """Long table of the regret, with columns policy, run, round, regret and reward.

        Returns
        -------
        pandas.DataFrame
        """
        pd = installed("pandas", "data")
        n_runs = self.regret_.shape[1]
        index = pd.MultiIndex.from_product(
            [self.names, range(n_runs), self.rounds], names=["policy", "run", "round"]
        )
        columns = {"regret": self.regret_.ravel(), "reward": self.rewards.ravel()}
        return pd.DataFrame(columns, index=index).reset_index()


@validated
def simulate(
    policies: list[Any] | tuple[Any, ...] | dict[str, Any],
    env: Any,
    horizon: Count = 10_000,
    n_runs: Count = 1,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    verbose: Annotated[int, "verbose"] = 0,
    n_records: Count | None = None,
) -> Bunch:
    """Run policies in an environment, all of them on the same rounds.

    Parameters
    ----------
    policies : list of policies, or dict of names and policies
        They are cloned, and not changed.
    env : environment
        An environment with `sample` and `rewards`, and perhaps `start`, as
        :class:`LinearEnvironment`.
    horizon : int, default=10_000
        Number of rounds.
    n_runs : int, default=1
        Number of independent repetitions.
    n_jobs : int, default=None
        Number of runs at the same time; the result does not depend on it. None is 1, unless in a
        :obj:`joblib.parallel_config` context.
    random_state : None, int or RandomState, default=None
        Seed of contexts, rewards, actions and privacy noise: given one, the result is reproducible,
        and the noise is that for study. With None, an oracle whose ``random_state`` is None draws
        secure noise, which is slower.
    verbose : int, default=0
        Above 0, a line on stderr tells how far the work is.
    n_records : int, default=None
        Number of rounds at which the regret is kept, about evenly spaced on a logarithmic scale;
        None keeps it for all.

    Returns
    -------
    result : Bunch
        Has the method ``to_frame`` and these attributes:

        - ``regret_``, ndarray of shape (n_policies, n_runs, n_records or horizon): cumulated
          pseudo-regret, the best mean reward of each round less that of the action;
        - ``rewards``, ndarray of the same shape: cumulated rewards;
        - ``rounds``, ndarray of shape (n_records or horizon,): rounds of the last axis, from 1;
        - ``names``, list of str;
        - ``privacy_reports``, list of lists: for each policy and run, what the policy reports, or
          None;
        - ``seconds``, ndarray of shape (n_policies, n_runs): processor time of the policy.

    Examples
    --------
    >>> from skpriv.bandits import LinearEnvironment, RandomPolicy, simulate
    >>> env = LinearEnvironment(n_actions=3, n_features=2)
    >>> result = simulate([RandomPolicy()], env, horizon=100, n_runs=2, random_state=0)
    >>> result.regret_.shape
    (1, 2, 100)
    """
    named = _named(policies)
    if not named:
        raise ValueError("policies is empty: there is nothing to run.")
    if isinstance(env, type):
        raise ValueError(f"env is the class {env.__name__}: pass an object that it makes.")
    rounds = np.arange(1, horizon + 1)
    if n_records is not None and n_records < horizon:
        rounds = np.unique(np.geomspace(1.0, horizon, n_records).round().astype(np.int64))
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(MAX_SEED)
    seeds = np.random.SeedSequence(random_state).spawn(n_runs)
    tasks = (
        delayed(_run)(list(named.values()), env, horizon, rounds, seed, random_state is not None)
        for seed in seeds
    )
    results = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
    runs = list(progress(results, n_runs, "simulate", unit="runs", enabled=verbose > 0))
    totals, reports, seconds = (
        [[run[place] for run in policy] for policy in zip(*runs)] for place in range(3)
    )
    regret, rewards = np.moveaxis(np.array(totals), 2, 0)
    return SimulationResult(
        regret_=regret,
        rewards=rewards,
        rounds=rounds,
        names=list(named),
        privacy_reports=reports,
        seconds=np.array(seconds),
    )


def _named(policies: Any) -> "dict[str, BasePolicy]":
    if isinstance(policies, Mapping):
        return dict(policies)
    named: dict[str, Any] = {}
    for policy in policies:
        name = type(policy).__name__
        same = sum(type(other).__name__ == name for other in named.values())
        named[f"{name} {same + 1}" if same else name] = policy
    return named


def _run(
    policies: "list[BasePolicy]",
    env: Any,
    horizon: int,
    rounds: np.ndarray,
    seed: np.random.SeedSequence,
    seeded: bool,
) -> list[Any]:
    """One run: totals of regret and reward, report and seconds of each policy."""
    start, contexts_seed, rewards_seed, policies_seed = seed.spawn(4)
    if hasattr(env, "start"):
        env = env.start(np.random.default_rng(start))
    rng = np.random.default_rng(contexts_seed)
    lanes = [
        _Lane(policy, env, policy_seed, np.random.default_rng(rewards_seed), rounds, seeded)
        for policy, policy_seed in zip(policies, policies_seed.spawn(len(policies)), strict=True)
    ]
    block = max(1, min(horizon, BLOCK_NUMBERS // (env.n_actions * env.n_features)))
    for first in range(0, horizon, block):
        contexts, means = env.sample(min(block, horizon - first), rng)
        for lane in lanes:
            lane.play(contexts, means)
    return [
        (lane.totals, getattr(lane.policy, "privacy_report_", None), lane.seconds) for lane in lanes
    ]


class _Lane:
    """One policy in one run."""

    def __init__(
        self,
        policy: "BasePolicy",
        env: "Environment",
        seed: np.random.SeedSequence,
        rng: np.random.Generator,
        rounds: np.ndarray,
        seeded: bool,
    ) -> None:
        self.policy = clone(policy)
        self.env = env
        self.rng = rng
        self.rounds = rounds
        seed_all(self.policy, seed, seeded)
        self.totals = np.zeros((2, len(rounds)))  # regret and reward of all rounds up to these
        self.last = np.zeros((2, 1))
        self.done = 0
        self.seconds = 0.0

    def play(self, contexts: np.ndarray, means: np.ndarray) -> None:
        """Go through the rounds of a block, in chunks in which the policy does not change."""
        began = time.process_time()
        start = 0
        each = np.empty((2, len(means)))  # regret and reward of each round
        while start < len(means):
            part = slice(start, min(len(means), start + self.policy.rounds_until_update_))
            actions = self.policy.act(contexts[part])
            rewards = self.env.rewards(means[part], actions, self.rng)
            self.policy.update(contexts[part], actions, rewards)
            each[:, part] = means[part].max(axis=1) - chosen(means[part], actions), rewards
            start = part.stop
        totals = self.last + np.cumsum(each, axis=1)
        here = (self.rounds > self.done) & (self.rounds <= self.done + len(means))
        self.totals[:, here] = totals[:, self.rounds[here] - self.done - 1]
        self.last = totals[:, -1:]
        self.done += len(means)
        self.seconds += time.process_time() - began


def seed_all(policy: "BasePolicy", seed: Any, seeded: bool) -> None:
    """Seed everything random of a policy and of those that it has in a list.

    A secure policy is seeded only if ``seeded``.
    """
    params = policy.get_params(deep=True)
    names = sorted(name for name in params if name.split("__")[-1] == "random_state")
    for name, value in zip(names, seed.generate_state(max(1, len(names))), strict=False):
        if seeded or params[name] is not None:
            policy.set_params(**{name: int(value) % MAX_SEED})
    inner = [
        part
        for parts in params.values()
        if isinstance(parts, list | tuple)
        for part in parts
        if hasattr(part, "get_params")
    ]
    for part, own in zip(inner, seed.spawn(len(inner)), strict=True):
        seed_all(part, own, seeded)


@dataclass(kw_only=True, eq=False, repr=False)
class RegretDisplay(Display):
    """Cumulated regret over the rounds, one line a policy.

    Make it with `from_result`; it holds arrays only.

    Parameters
    ----------
    regret : ndarray of shape (n_policies, n_runs, n_rounds)
        Cumulated regret.
    rounds : ndarray of shape (n_rounds,)
        Rounds of the last axis.
    names : list of str
        Labels of the lines.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the lines.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    lines_ : list of matplotlib Line2D
        Mean regret.
    bands_ : list of matplotlib PolyCollection
        Mean with its interval at level .95; none of a single run.

    Examples
    --------
    >>> from skpriv.bandits import LinearEnvironment, RandomPolicy, RegretDisplay, simulate
    >>> env = LinearEnvironment(n_actions=3, n_features=2)
    >>> result = simulate([RandomPolicy()], env, horizon=100, n_runs=2, random_state=0)
    >>> RegretDisplay.from_result(result).ax_.get_ylabel()
    'cumulated regret'
    """

    regret: Any
    rounds: Any
    names: Any

    @classmethod
    def from_result(cls, result: Any, **options: Any) -> Self:
        """Plot the result of :func:`simulate`.

        Parameters
        ----------
        result : Bunch
            Result of :func:`simulate`.
        **options : dict
            Options of `plot`, such as ``ax``.

        Returns
        -------
        display : RegretDisplay
        """
        return cls(regret=result.regret_, rounds=result.rounds, names=result.names).plot(**options)

    @validated
    def plot(self, ax: Any = None, *, legend: bool = True) -> Self:
        """Draw the mean regret of each policy, with its uncertainty, on a logarithmic scale.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to plot; None makes a figure.
        legend : bool, default=True
            Whether to name the curves beside the axes, in their order at the last round. False
            leaves that to the caller, who may have several axes: `lines_` have the labels.

        Returns
        -------
        display : RegretDisplay
            Itself, with `ax_` and `figure_`.
        """
        ax = self._axes(ax, figsize=(7.0, max(3.6, 0.25 * len(self.names))))
        x = self.rounds
        means = self.regret.mean(axis=1)
        self.lines_ = []
        self.bands_ = []
        names = picture_texts(self.names)
        for runs, mean, name in zip(self.regret, means, names, strict=True):
            self.lines_.extend(ax.plot(x, mean, label=name, linewidth=1.5))
            if len(runs) > 1:
                half = two_sided_quantile(0.95) * runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
                color = self.lines_[-1].get_color()
                band = ax.fill_between(
                    x, mean - half, mean + half, alpha=0.2, color=color, linewidth=0
                )
                self.bands_.append(band)
        ax.set(xlabel="round", ylabel="cumulated regret", yscale="log")
        start = means[:, np.searchsorted(x, 0.01 * x[-1])]  # the first hundredth shows little
        ax.set_ylim(bottom=start.min() or None)
        if legend:
            order = np.argsort(-means[:, -1])
            ax.legend(
                handles=[self.lines_[i] for i in order],
                loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False,
            )  # fmt: skip
        return self._drawn(ax)
