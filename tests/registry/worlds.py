"""Worlds that turn round, to see what is forgotten, and a policy that tells its rounds."""

import numpy as np

from skpriv.bandits import RandomPolicy


class Noting(RandomPolicy):
    """Keeps the first feature and the reward of what it learns, in order."""

    def _start(self, n_phi):
        self.seen = []

    def _update(self, rows, rewards):
        self.seen += [*zip(rows[:, 0].tolist(), rewards.tolist(), strict=True)]
        super()._update(rows, rewards)


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
