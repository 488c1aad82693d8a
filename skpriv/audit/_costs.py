"""What the change of exact sums costs, under the noise that was in force."""

from math import inf, sqrt

import numpy as np

from ..privacy import (
    LARGEST_EPSILON,
    Budget,
    Cost,
    ExactStream,
    FactorStream,
    GaussianNoise,
    GumbelNoise,
    LocalStream,
    SharedSumStream,
    ShuffleStream,
    TreeStream,
    amplified,
    amplified_epsilon,
    capabilities,
)
from ._tape import REPORTS

ORDER = {"l1": 1, "l2": 2, "linf": np.inf}


def size(change, norm):
    """How large a change is, in the norm of the sensitivity."""
    return float(np.linalg.norm(np.ravel(change), ORDER[norm]))


def event_cost(first, second, budget):
    """Cost of the change between two runs of one answer that is not a stream's.

    Parameters
    ----------
    first, second : Event
    budget : Budget
        The claim; only the shuffle model needs its delta.

    Returns
    -------
    Cost
    """
    norm = "l2" if first.asked is None else first.asked.norm
    can = None if first.owner is None else capabilities(first.owner.model)
    reports = first.value.n if can is not None and can.reports else 1
    amplified_ones = can is not None and can.amplifies
    total = Cost()
    for before, now in zip(first.draws, second.draws, strict=True):
        if before.method in REPORTS:
            likely = getattr(first.asked, "likely", None)
            shuffle = (reports, budget, likely) if amplified_ones else None
            total += _reports_cost(before, now, shuffle)
        else:
            total += _draw_cost(before, now, norm, reports)
    if not first.draws and not _same(first.value, second.value):
        return Cost(gaussian=inf)  # an answer without noise
    if amplified_ones and total.gaussian:
        dimension = first.value.value.size
        return shuffled_cost(sqrt(total.gaussian), reports, budget, dimension)
    return total


def _same(first, second):
    return np.array_equal(getattr(first, "value", first), getattr(second, "value", second))


def _draw_cost(before, now, norm, reports):
    """Cost of one draw; ``reports`` of equal noise are in the sum, and one user changes one."""
    change = now.exact - before.exact
    if not np.isfinite(change).all():
        return Cost(gaussian=inf)
    if not change.any():
        return Cost()
    noise = before.law[-1]
    if isinstance(noise, GumbelNoise):
        return noise.cost(size(change, "linf"), before.law[0])
    return GaussianNoise(noise.scale / sqrt(reports)).cost(size(change, "l2"))


def sent_cost(stream, pairs, budget):
    """Cost of the reports that the users of a stream sent, which its reads add up."""
    likely = getattr(stream.query, "likely", None)
    shuffle = (stream.batch, budget, likely) if stream.can.amplifies else None
    draws = [zip(before.draws, now.draws, strict=False) for before, now in pairs]
    return sum((_reports_cost(*draw, shuffle) for read in draws for draw in read), Cost())


def _reports_cost(before, now, shuffle):
    """Cost of the pure reports that changed, of one row a user.

    A report costs the largest log ratio of its probabilities, whatever the two records are.
    """
    each = before.law[0].log_ratio
    same = np.isclose(before.exact, now.exact, rtol=0.0, atol=0.0, equal_nan=True)
    changed = int((~same).any(axis=1).sum())
    cost = Cost.from_epsilon(each) if shuffle is None else _shuffled_reports(each, *shuffle)
    return sum([cost] * changed, Cost())


def _shuffled_reports(epsilon, n, budget, likely):
    """As `shuffled_cost`, of a pure report."""
    delta, high = budget.delta, max(budget.epsilon, 1e-3)
    epsilon *= 1.0 - 1e-9
    while amplified_epsilon(Budget(high, delta), n, likely) < epsilon and high < LARGEST_EPSILON:
        high *= 1.05
    return Cost(approximate=min(high, epsilon), delta=delta)


def shuffled_cost(mu, n, budget, dimension):
    """Cost at the claim's delta of one Gaussian report of this mu among n shuffled ones.

    It is the claim if the report's noise is enough for it, and no pair is told apart better than
    without a shuffler. (That a pair is closer than the worst one does not count: how well the
    others hide it depends on how far apart *they* may be.)
    """
    delta, high = budget.delta, max(budget.epsilon, 1e-3)
    mu *= 1.0 - 1e-9
    while amplified(Budget(high, delta), n, dimension=dimension).mu < mu and high < LARGEST_EPSILON:
        high *= 1.05
    return Cost(approximate=min(high, Budget.from_mu(mu, delta).epsilon), delta=delta)


def stream_cost(stream, changes, budget):
    """Cost of the change of a whole stream, from the change of each of its increments.

    Parameters
    ----------
    stream : Stream
        The stream, for its kind and its noise (public).
    changes : ndarray of shape (n_reads_so_far, *shape)
        Changes of the exact sums between two reads.
    budget : Budget
        The claim.

    Returns
    -------
    Cost
    """
    if not np.any(changes):
        return Cost()
    if isinstance(stream, ExactStream) or not np.isfinite(changes).all():
        return Cost(gaussian=inf)
    noise, flat = stream.noise, changes.reshape(len(changes), -1)
    if isinstance(stream, ShuffleStream):
        sizes = np.linalg.norm(flat, axis=1) / noise.scale
        costs = [
            shuffled_cost(mu, stream.batch, budget, flat.shape[1]) for mu in sizes[sizes > 0.0]
        ]
        return sum(costs, Cost())
    if isinstance(stream, SharedSumStream):
        return Cost.from_mu(float(np.linalg.norm(flat)) / noise.scale)
    if isinstance(stream, LocalStream):
        return sum((noise.cost(size(change, "l2")) for change in changes if change.any()), Cost())
    if isinstance(stream, FactorStream):
        flat = _rooted(flat)
    elif isinstance(stream, TreeStream):
        flat = _nodes(flat)
    else:
        raise TypeError(f"streams of type {type(stream).__name__} cannot be audited yet.")
    return Cost.from_mu(float(np.linalg.norm(flat)) / noise.scale)


def _rooted(increments):
    """R x for the root R of the matrix of running sums: Toeplitz, binom(2k, k) / 4^k."""
    odd = 2.0 * np.arange(1, len(increments)) - 1.0
    root = np.concatenate([[1.0], np.cumprod(odd / (odd + 1.0))])
    return np.array([root[k::-1] @ increments[: k + 1] for k in range(len(increments))])


def _nodes(increments):
    """Sums of the nodes of the binary tree that each read completes, and releases."""
    nodes = []
    for k in range(1, len(increments) + 1):
        span = k & -k
        nodes.append(increments[k - span : k].sum(axis=0))
    return np.array(nodes)
