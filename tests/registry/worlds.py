"""Worlds that turn round, to see what is forgotten, and a policy that tells its rounds."""

import numpy as np

from skpriv.bandits import RandomPolicy
from skpriv.extend import register


@register
class Noting(RandomPolicy):
    """Keeps the first feature and the reward of what it learns, in order."""

    def _start(self, n_phi):
        self.seen = []

    def _update(self, rows, rewards):
        self.seen += [*zip(rows[:, 0].tolist(), rewards.tolist(), strict=True)]
        super()._update(rows, rewards)


def linear_rounds(n, seed=0, n_actions=4):
    """Contexts in the unit ball, and mean rewards that are linear in them."""
    contexts = np.random.RandomState(seed).normal(size=(n, n_actions, 3))
    contexts /= np.maximum(1.0, np.linalg.norm(contexts, axis=-1, keepdims=True))
    return contexts, contexts @ [0.6, -0.5, 0.3]


def play_signs(policy, contexts, means, seed=0, block=None):
    """Actions of a run whose rewards are signs with these means, the same however it is cut."""
    rng, actions = np.random.RandomState(seed), []
    while len(actions) < len(contexts):
        size = block or policy.rounds_until_update_
        now = slice(len(actions), len(actions) + size)
        chosen = policy.act(contexts[now])
        mean = means[now][np.arange(len(chosen)), chosen]
        rewards = np.where(rng.uniform(-1.0, 1.0, size=len(chosen)) < mean, 1.0, -1.0)
        policy.update(contexts[now], chosen, rewards)
        actions.extend(chosen)
    return np.array(actions)


def regret_of(policy, environment, seed=0, horizon=2000, block=50, turn=None):
    """Regret of a run in which the mean rewards change their sign at one round."""
    rng = np.random.default_rng(seed)
    started, regret = environment.start(rng), 0.0
    for start in range(0, horizon, block):
        contexts, means = started.sample(block, rng)
        means = -means if turn is not None and start >= turn else means
        actions = policy.act(contexts)
        regret += float((means.max(axis=1) - means[np.arange(block), actions]).sum())
        policy.update(contexts, actions, started.rewards(means, actions, rng))
        assert policy.n_rounds_ == start + block
    return regret
