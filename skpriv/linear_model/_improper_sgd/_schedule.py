"""Number and size of the steps of improper gradient descent, from public numbers alone."""

from math import ceil, e, sqrt

import numpy as np
from scipy import optimize

# time = factor (bound mu n / (D sqrt(2 e)))^(2/3) balances the bias bound / sqrt(2 e time) with the
# noise time D / (mu n) of the worst spectrum (sqrt(n) for n in the local model). The factors were
# chosen by measurement, as was the cap sqrt(n) / CAP beyond which descent fits the targets' noise.
TIME_FACTOR = {"gradient": 0.7, "output": 0.4}
GRADIENT_CHANGE = {"gradient": 4.0, "output": 2.6}
CAP = 2.5
# Fewest noisy gradients, and the largest time for each of them, with and without a curator.
N_ITER, REACH = {True: 32, False: 8}, {True: 2.5, False: 1.0}
MAX_DESCENT = 400  # steps between which nothing is released
CONTRACTION = 3.5  # momentum must leave time for exp(-CONTRACTION) in directions of large curvature


def schedule(n, mu, theta_bound, curator, perturbation, n_iter):
    """Number of steps, their size, and their momentum.

    The time n_iter * step_size of plain descent is all that matters in directions of small
    curvature; more steps than needed cost only passes over the records, because the noise of a step
    shrinks with its size. Momentum goes further in the same number of steps.
    """
    precision = theta_bound * mu * (n if curator else sqrt(n))
    reach = precision / (GRADIENT_CHANGE[perturbation] * sqrt(2.0 * e))
    time = min(TIME_FACTOR[perturbation] * reach ** (2 / 3), sqrt(n) / CAP)
    if n_iter == "auto":
        n_iter = max(N_ITER[curator], ceil(time / REACH[curator]))
        if perturbation == "output":
            n_iter = max(1, ceil(min(time, MAX_DESCENT)))
    plain = perturbation == "output" or time <= n_iter
    return n_iter, min(1.0, time / n_iter), 0.0 if plain else momentum_for(n_iter, time)


def momentum_for(n_iter, time):
    """Momentum with which unit steps go as far as plain descent in this time, where both are slow.

    In a direction of small curvature gradient j moves the last iterate by sum_{i < n_iter - j}
    momentum^i, and these add up to sum_k (1 - momentum^k) / (1 - momentum), k = 1..n_iter. With
    large curvature the iterates contract by sqrt(momentum) a step, which bounds the momentum.
    """

    def excess(momentum):
        powers = momentum ** np.arange(1, n_iter + 1)
        return ((1.0 - powers) / (1.0 - momentum)).sum() - time

    largest = max(0.0, 1.0 - CONTRACTION / n_iter) ** 2
    if excess(largest) <= 0.0:
        return largest
    return float(optimize.brentq(excess, 0.0, largest))
