"""Environments on which the policies are compared; none was made for one of them."""

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)

from scipy.special import expit

from skpriv.bandits import LinearEnvironment, SupervisedEnvironment


class LogisticEnvironment(LinearEnvironment):
    """Rewards of 0 or 1 whose log-odds are twice a linear predictor."""

    bounds_rewards = (0.0, 1.0)

    def _mean(self, values):
        return expit(2.0 * values)

    def rewards(self, means, actions, rng):
        """Rewards of 0 or 1."""
        chances = means[np.arange(len(actions)), actions]
        return (rng.random(len(actions)) < chances).astype(float)


class RareArms:
    """Five arms a round from a catalogue of 30 directions, the later of which come rarely."""

    n_actions, n_features, bounds_rewards = 5, 10, (-1.0, 1.0)

    def start(self, rng):
        """Draw the catalogue and the weights of a run."""
        self.arms = _directions(30, rng)
        self.coef = _directions(1, rng)[0]
        return self

    def sample(self, n_rounds, rng):
        """Contexts and mean rewards."""
        chances = 1.0 / np.arange(1, 31) ** 1.5
        index = rng.choice(30, size=(n_rounds, 5), p=chances / chances.sum())
        return self.arms[index], (self.arms @ self.coef)[index]

    def rewards(self, means, actions, rng):
        """Rewards of -1 or 1."""
        chosen = means[np.arange(len(actions)), actions]
        return np.where(rng.random(len(actions)) < (1.0 + chosen) / 2.0, 1.0, -1.0)


class Coba:
    """Synthetic environments of coba: features of the context times those of the action."""

    bounds_rewards = (0.0, 1.0)

    def __init__(self, kind, n_rounds):
        self.kind, self.n_rounds = kind, n_rounds

    def start(self, rng):
        """Read the rounds of a run; rows (context, action, products), within the unit ball."""
        import coba

        make = getattr(coba.Environments, f"from_{self.kind}_synthetic")
        made = make(
            self.n_rounds, n_actions=5, n_context_features=3, n_action_features=3,
            seed=int(rng.integers(1 << 30)),
        )  # fmt: skip
        rows, means = [], []
        for interaction in made[0].read():
            x, actions = np.array(interaction["context"]), np.array(interaction["actions"])
            products = (actions[:, :, None] * x).reshape(len(actions), -1)
            context, constant = np.tile(x, (len(actions), 1)), np.ones((len(actions), 1))
            rows.append(np.column_stack([context, actions, products, constant]))
            means.append([interaction["rewards"](action) for action in interaction["actions"]])
        self.rows, self.means, self.next = np.array(rows), np.array(means), 0
        self.rows /= 4.0  # all features are in [0, 1]: the squares of 16 of them add up to 16
        self.n_actions, self.n_features = self.rows.shape[1:]
        return self

    def sample(self, n_rounds, rng):
        """Return the next rounds."""
        part = slice(self.next, self.next + n_rounds)
        self.next += n_rounds
        return self.rows[part], self.means[part]

    def rewards(self, means, actions, rng):
        """Return the rewards, which are certain."""
        return means[np.arange(len(actions)), actions]


def _directions(n, rng):
    rows = rng.standard_normal((n, 10))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def table(loader):
    """Classes as actions; rows scaled by public bounds, a constant, and within the unit ball."""
    X, y = loader(return_X_y=True)
    if loader is load_digits:  # means of blocks of 4 pixels
        X = X.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(len(X), 16)
    low, high = X.min(axis=0), X.max(axis=0)
    X = (X - low) / (high - low) - 0.5
    rows = np.column_stack([X, np.full(len(X), 0.5 * np.sqrt(X.shape[1]))])
    return SupervisedEnvironment(rows / np.linalg.norm(rows, axis=1).max(), y)


def synthetic(return_X_y):
    """Four classes in eight features, five of which tell something."""
    return make_classification(
        3000, n_features=8, n_informative=5, n_classes=4, n_clusters_per_class=1, random_state=1
    )


def environments(horizon):
    """Environments by name, and what is publicly known of them: the reward of a zero feature.

    The last five were added when all constants of the policies had been set.
    """
    return {
        "linear": (LinearEnvironment(), 0.0),
        "fixed arms": (LinearEnvironment(contexts="fixed"), 0.0),
        "rare arms": (RareArms(), 0.0),
        "logistic": (LogisticEnvironment(), 0.5),
        "breast cancer": (table(load_breast_cancer), 0.5),
        "wine": (table(load_wine), 0.5),
        "digits": (table(load_digits), 0.5),
        "coba linear": (Coba("linear", horizon), 0.5),
        "coba MLP": (Coba("mlp", horizon), 0.5),
        "30 arms": (LinearEnvironment(n_actions=30, n_features=8), 0.0),
        "20 fixed arms": (LinearEnvironment(n_actions=20, n_features=10, contexts="fixed"), 0.0),
        "10 logistic": (LogisticEnvironment(n_actions=10, n_features=10), 0.5),
        "iris": (table(load_iris), 0.5),
        "synthetic": (table(synthetic), 0.5),
    }
