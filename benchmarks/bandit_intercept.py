"""LinUCB and LinSquareCB where the mean reward of a zero feature is known, and where it is not.

Run: python benchmarks/bandit_intercept.py [--horizon 10000] [--runs 8] [--jobs 2]
     [--epsilon 0.3 1 5 inf] [--only WORLD ...] [--label now]

Worlds: those of ``bandits.py`` and ``bandit_drift.py``, clicks of several rates, and a catalogue of
which five of 200 items come in each round. "told" is what a policy does that is told the mean
reward of a zero feature, "default" what one does that is told nothing but the bounds. With a label
the numbers are those of another version, which PYTHONPATH names.
"""

import argparse
import warnings

import numpy as np
from _bandit_environments import environments
from _record import record
from bandit_drift import Changing
from joblib import Parallel, delayed

from skpriv.bandits import LinearEnvironment, LinSquareCB, LinUCB

POLICIES = {"LinUCB": LinUCB, "LinSquareCB": LinSquareCB}


class Clicks(LinearEnvironment):
    """Rewards of 0 or 1 at a rate that moves with the features, whose mean is not zero.

    Parameters
    ----------
    rate : float
        Mean reward of a zero feature.
    effect : float
        Length of the weights.
    shift : float
        Mean of each feature.
    items : int or None
        Number of items, of which five come in each round; None draws features anew.
    """

    bounds_rewards = (0.0, 1.0)

    def __init__(self, rate, effect, shift=0.3, items=None):
        super().__init__(n_actions=5, n_features=6)
        self.rate, self.effect, self.shift, self.items = rate, effect, shift, items

    def start(self, rng):
        """Draw the weights of a run, and its items."""
        coef = rng.standard_normal(self.n_features)
        self.coef = self.effect * coef / np.linalg.norm(coef)
        self.rows = self._rows((self.items,), rng) if self.items else None
        return self

    def _rows(self, shape, rng):
        rows = rng.standard_normal((*shape, self.n_features)) / 2.5 + self.shift
        return rows / np.maximum(1.0, np.linalg.norm(rows, axis=-1, keepdims=True))

    def sample(self, n_rounds, rng):
        """Contexts and mean rewards."""
        shape = n_rounds, self.n_actions
        if self.items:
            contexts = self.rows[rng.integers(self.items, size=shape)]
        else:
            contexts = self._rows(shape, rng)
        return contexts, np.clip(self.rate + contexts @ self.coef, 0.001, 0.999)

    def rewards(self, means, actions, rng):
        """Rewards of 0 or 1."""
        return 1.0 * (rng.random(len(actions)) < means[np.arange(len(actions)), actions])


class ChangingClicks(Clicks):
    """Clicks whose weights are drawn anew after half of the rounds."""

    def sample(self, n_rounds, rng):
        """Contexts and mean rewards of all rounds."""
        parts = []
        for rounds in (n_rounds // 2, n_rounds - n_rounds // 2):
            self.start(rng)
            parts.append(super().sample(rounds, rng))
        return tuple(map(np.concatenate, zip(*parts, strict=True)))


def worlds(horizon):
    """Worlds by name, and the mean reward of a zero feature."""
    return {
        **environments(horizon),
        "new weights after a half": (Changing(horizon // 2), 0.0),
        "weights that turn slowly": (Changing(horizon // 2, slowly=True), 0.0),
        "clicks at .85": (Clicks(0.85, 0.16), 0.85),
        "clicks at .5": (Clicks(0.5, 0.6), 0.5),
        "clicks at .1": (Clicks(0.1, 0.16), 0.1),
        "clicks at .02": (Clicks(0.02, 0.03), 0.02),
        "centred clicks": (Clicks(0.5, 0.6, shift=0.0), 0.5),
        "catalogue": (Clicks(0.5, 0.45, shift=0.0, items=200), 0.5),
        "clicks at .1 that change": (ChangingClicks(0.1, 0.16), 0.1),
        "clicks at .85 that change": (ChangingClicks(0.85, 0.16), 0.85),
    }


def play(world, policy, horizon, seed):
    """Regret of a run."""
    warnings.simplefilter("ignore")
    start, contexts_seed, rewards_seed = np.random.SeedSequence(seed).spawn(3)
    world = world.start(np.random.default_rng(start))
    contexts, means = world.sample(horizon, np.random.default_rng(contexts_seed))
    rng, done, regret = np.random.default_rng(rewards_seed), 0, 0.0
    while done < horizon:
        part = slice(done, min(horizon, done + policy.rounds_until_update_))
        actions = policy.act(contexts[part])
        policy.update(contexts[part], actions, world.rewards(means[part], actions, rng))
        found = means[part]
        regret += float((found.max(axis=1) - found[np.arange(len(found)), actions]).sum())
        done = part.stop
    return regret


def run(name, kind, told, epsilon, horizon, seed):
    """Regret of one policy in one run of a world."""
    world, offset = worlds(horizon)[name]
    options = {"reward_offset": offset} if told else {}
    bounds = world.bounds_rewards
    policy = POLICIES[kind](epsilon=epsilon, bounds_y=bounds, random_state=seed, **options)
    return play(world, policy, horizon, seed)


def main():
    """Play, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 1.0, 5.0, np.inf])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="names of worlds")
    parser.add_argument("--policies", nargs="*", default=list(POLICIES))
    parser.add_argument("--kinds", nargs="*", default=["told", "default"])
    parser.add_argument("--label", default="now", help="of the version")
    options, numbers = parser.parse_args(), {}
    for name in options.only or worlds(options.horizon):
        for kind in options.policies:
            for epsilon in options.epsilon:
                key = f"{name}, {kind}, {epsilon:g}"
                numbers[key] = {}
                for way in options.kinds:
                    told = way == "told"
                    runs = Parallel(options.jobs)(
                        delayed(run)(name, kind, told, epsilon, options.horizon, seed)
                        for seed in range(options.runs)
                    )
                    numbers[key][f"{options.label}, {way}"] = [round(each, 1) for each in runs]
                cells = "".join(
                    f"{np.mean(runs):9.0f} {label}" for label, runs in numbers[key].items()
                )
                print(f"{key:45}{cells}", flush=True)
    record("bandit_intercept", numbers)


if __name__ == "__main__":
    main()
