"""Running policies in an environment, many times."""

import time
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import Bunch
from sklearn.utils.parallel import Parallel, delayed

from ..._parameters import Count, RandomState, validated
from ..._progress import progress
from .._base import MAX_SEED

BLOCK_NUMBERS = 2**23  # numbers in the contexts of a block of rounds, at most


class SimulationResult(Bunch):
    """What `simulate` returns: a dictionary whose entries are attributes too."""

    def to_frame(self):
        """Long table of the regret, with columns policy, run, round, regret and reward.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        n_runs = self.regret_.shape[1]
        index = pd.MultiIndex.from_product(
            [self.names, range(n_runs), self.rounds], names=["policy", "run", "round"]
        )
        columns = {"regret": self.regret_.ravel(), "reward": self.rewards.ravel()}
        return pd.DataFrame(columns, index=index).reset_index()


@validated
def simulate(
    policies: list | tuple | dict,
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
    rounds = _records(horizon, n_records)
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(MAX_SEED))
    seeds = np.random.SeedSequence(random_state).spawn(n_runs)
    tasks = (
        delayed(_run)(list(named.values()), env, horizon, rounds, seed, random_state is not None)
        for seed in seeds
    )
    results = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
    runs = list(progress(results, n_runs, "simulate", unit="runs", enabled=verbose > 0))
    regrets, rewards, reports, seconds = zip(*runs, strict=True)
    return SimulationResult(
        regret_=np.stack(regrets, axis=1),
        rewards=np.stack(rewards, axis=1),
        rounds=rounds,
        names=list(named),
        privacy_reports=[list(column) for column in zip(*reports, strict=True)],
        seconds=np.array(seconds).T,
    )


def _named(policies):
    if isinstance(policies, Mapping):
        return dict(policies)
    named = {}
    for policy in policies:
        name = base = type(policy).__name__
        count = 1
        while name in named:
            count += 1
            name = f"{base} {count}"
        named[name] = policy
    return named


def _records(horizon, n_records):
    if n_records is None or n_records >= horizon:
        return np.arange(1, horizon + 1)
    return np.unique(np.geomspace(1.0, horizon, n_records).round().astype(np.int64))


def _run(policies, env, horizon, rounds, seed, seeded):
    """One run of all policies: regrets and rewards (n_policies, n_records), reports, seconds."""
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
    return tuple(
        np.array([getattr(lane, name) for lane in lanes]) for name in ("regrets", "rewards")
    ) + ([lane.report for lane in lanes], [lane.seconds for lane in lanes])


class _Lane:
    """One policy in one run."""

    def __init__(self, policy, env, seed, rng, rounds, seeded):
        self.policy, self.env, self.rng, self.rounds = clone(policy), env, rng, rounds
        seed_all(self.policy, seed, seeded)
        self.regrets, self.rewards = np.zeros(len(rounds)), np.zeros(len(rounds))
        self.regret = self.reward = self.seconds = 0.0
        self.done = 0

    @property
    def report(self):
        return getattr(self.policy, "privacy_report_", None)

    def play(self, contexts, means):
        """Go through the rounds of a block, in chunks in which the policy does not change."""
        began, start = time.process_time(), 0
        regrets, rewards = np.empty(len(means)), np.empty(len(means))
        best = means.max(axis=1)
        while start < len(means):
            part = slice(start, min(len(means), start + self.policy.rounds_until_update_))
            actions = self.policy.act(contexts[part])
            rewards[part] = self.env.rewards(means[part], actions, self.rng)
            self.policy.update(contexts[part], actions, rewards[part])
            regrets[part] = best[part] - means[part][np.arange(len(actions)), actions]
            start = part.stop
        self._record(regrets, rewards)
        self.seconds += time.process_time() - began

    def _record(self, regrets, rewards):
        regrets, rewards = np.cumsum(regrets) + self.regret, np.cumsum(rewards) + self.reward
        here = (self.rounds > self.done) & (self.rounds <= self.done + len(regrets))
        index = self.rounds[here] - self.done - 1
        self.regrets[here], self.rewards[here] = regrets[index], rewards[index]
        self.regret, self.reward = regrets[-1], rewards[-1]
        self.done += len(regrets)


def seed_all(policy, seed, seeded):
    """Give a seed to everything random of a policy; to what is to be secure only if `seeded`."""
    params = policy.get_params(deep=True)
    names = sorted(name for name in params if name.split("__")[-1] == "random_state")
    for name, value in zip(names, seed.generate_state(max(1, len(names))), strict=False):
        if seeded or params[name] is not None:
            policy.set_params(**{name: int(value) % MAX_SEED})
