"""Drawing actions, with their propensities, for many rounds at once."""

import numpy as np


def flat(contexts):
    """Rows of all actions of all rounds, of shape (n_rounds * n_actions, n_phi), and their shape.

    Rounds that are one array seen many times (`numpy.broadcast_to`), as those of an environment
    with fixed arms, are flattened once.
    """
    if len(contexts) > 1 and contexts.strides[0] == 0:
        contexts = contexts[:1]
    shape = contexts.shape[:2]
    return contexts.reshape(-1, contexts.shape[2]), shape


def uniform_among(mask, rng):
    """Draw one of the marked actions of each round: actions and propensities."""
    counts = mask.sum(axis=1)
    rank = (rng.random_sample(len(mask)) * counts).astype(np.intp)
    rank = np.minimum(rank, counts - 1)
    actions = np.argmax(np.cumsum(mask, axis=1) > rank[:, None], axis=1)
    return actions, 1.0 / counts


def uniform(n_rounds, n_actions, rng):
    """Draw any action in each round: actions and propensities."""
    actions = rng.randint(n_actions, size=n_rounds).astype(np.intp)
    return actions, np.full(n_rounds, 1.0 / n_actions)


def by_chance(chances, rng):
    """Draw from probabilities of shape (n_rounds, n_actions): actions and propensities."""
    n, n_actions = chances.shape
    cumulated = np.cumsum(chances, axis=1)
    draws = rng.random_sample(n)[:, None] * cumulated[:, -1:]
    # "<=", so that an action of probability zero is never drawn, not even by a draw of 0.
    actions = np.minimum((cumulated <= draws).sum(axis=1), n_actions - 1)
    return actions, chances[np.arange(n), actions]


def greedy(oracle, contexts):
    """Action of the largest prediction in each round; the first of those that tie."""
    rows, shape = flat(contexts)
    best = np.argmax(oracle.predict(rows).reshape(shape), axis=1)
    return np.array(np.broadcast_to(best, len(contexts)))
