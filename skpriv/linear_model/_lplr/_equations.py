"""Estimates and certified intervals from the equations of a partition tree.

Every bin gives a noisy linear equation in theta*, with Q its basis and P its resolved directions:

    factor target = (gram Q' + factor cross P') theta* + noise,

noise = factor (sum z xi + N_target - N_cross P'theta*) - N_gram Q'theta*. For any w computed from
y-free answers and the query point x, ``factor w'target`` is then within its `BinBound` of the
equation's part in x'theta*, and what no equation explains is at most coef_norm times its length.
The events are one a bin, so that the interval holds for all x at once.
"""

from collections import Counter
from math import log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import linalg

from ..._estimation._intervals import event, shared
from ..._estimation._moments import INTERCEPT_PRIOR, SAMPLING, normal_posterior
from ..._estimation._released import Released
from ..._linalg import RELATIVE_ZERO, blocks_of, lengths_of, quadratic_forms
from ..._stored import frozen_object
from ._tree import NOISE_WEIGHTS, GaussianLaw, ReportLaw

if TYPE_CHECKING:
    from ._tree import Bin, PartitionTree
    from ..._contracts import Array

# Parts of a bin's failure probability: of the targets, and of the errors of earlier levels, given
# the gram. The events about noise have `NOISE_WEIGHTS`.
TARGETS_WEIGHTS = (0.55, 0.29)


TARGETS_WEIGHT = sum(TARGETS_WEIGHTS)  # of the default variant, which has no such errors


# Ridge penalties that intervals try, in units of the noise
BIN_PATH = np.concatenate([[0.0], np.geomspace(0.3, 30.0, 9)])


# Eigenvalues of a Gram matrix below this part of the median of its largest noise are left out: they
# would shrink the estimate.
STANDS_OUT = 0.3


class BinBound(NamedTuple):
    """Bound on w'noise of a bin's equation, for all w at once, with one failure probability.

    Attributes
    ----------
    node : Bin
    operator : float
        Bound on the noise of the Gram matrix in any direction.
    quantile : float
        Times the root of the proxy of the targets' variance.
    spread2 : float
        What the noise of z times a column adds to the proxy, in any direction.
    norm : float
        Bound on what is left, a vector.
    """

    node: "Bin"
    operator: float
    quantile: float
    spread2: float
    norm: float

    def __call__(self, W: np.ndarray) -> np.ndarray:
        """Bound for each row w of W."""
        node = self.node
        squares = quadratic_forms(W)
        quadratic = quadratic_forms(W, node.gram) + self.operator * squares
        # copies of a record bring copies of its target's error: c^2 times the gram of one copy
        proxy = node.copies * np.clip(quadratic, 0.0, node.records * squares)
        proxy += self.spread2 * squares
        return self.quantile * np.sqrt(proxy) + self.norm * np.sqrt(squares)


def _vector_quantile(d: int, tail: float) -> float:
    """A bound on the norm of a sub-Gaussian vector (Hsu, Kakade and Zhang 2012)."""
    return sqrt(d + 2.0 * sqrt(d * tail) + 2.0 * tail)


def bin_bound(node: "Bin", theta_bound: float, failure: float, gram_failure: float) -> BinBound:
    """The bound for Gaussian noise, of which targets are independent."""
    d = node.size
    law = node.law
    of_vector, of_operator = (weight * gram_failure for weight in NOISE_WEIGHTS)
    of_vector = event(f"{node.path}: noise at theta", of_vector)
    of_operator = event(f"{node.path}: noise of the Gram", of_operator)
    tail = log(1.0 / event(f"{node.path}: errors of the targets", TARGETS_WEIGHT * failure))
    outer = theta_bound**2 if node.resolved.size else 0.0
    spread = law.rms * sqrt(1.0 + outer)
    quantile = _vector_quantile(d, tail)
    if d == 1:  # the scalar bound
        quantile = min(quantile, sqrt(2.0 * (tail + log(2.0))))
    norm = theta_bound * law.vector(d, of_vector)
    return BinBound(node, law.operator(d, of_operator), node.factor * quantile, spread**2, norm)


def report_bound(node: "Bin", theta_bound: float, failure: float) -> BinBound:
    """The bound for codebook reports, whose errors depend on targets: nothing is given the grams.

    Given the levels before, each level's targets are independent of its rows, and their errors have
    a sub-Gaussian norm in the metric of the level's exact gram; the errors of the reports are
    bounded in norm. So all holds for w of any origin, and is added up; levels by sqrt(their
    number) times the root of the sum of their grams.
    """
    d = node.size
    law = node.law
    levels = len(law.parts)
    weights = {"noise of the Gram": 1.0, "noise at theta": 1.0}
    # of each level's targets: a bound that holds for all levels is that of the rarest event
    names = (f"errors of the targets of level {level}" for level in range(levels))
    weights |= dict.fromkeys(names, 1.0 / levels)
    of_operator, of_norm, *of_targets = vars(shared(failure, weights, f"{node.path}: ")).values()
    tail = log(1.0 / min(of_targets))
    operator = law.operator(d, of_operator)
    outer = theta_bound if node.resolved.size else 0.0
    norm = node.factor * law.equation(d, node.factor, theta_bound, outer, of_norm)
    quantile = node.factor * _vector_quantile(d, tail) * sqrt(levels)
    return BinBound(node, operator, quantile, 0.0, norm)


@frozen_object
class TreeFit(Released):
    """The equations of the bins of a tree, and the assumed bound on the norm of theta*."""

    tree: "PartitionTree"
    theta_bound: float

    def interval(
        self, phi: np.ndarray, confidence_level: float, method: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Centre and half-width for phi'theta*, uniformly over the points."""
        bins, bounds = _bounds(self.tree, self.theta_bound, confidence_level)
        low = np.empty(len(phi))
        high = np.empty(len(phi))
        for chunk in blocks_of(len(phi), 2 * phi.shape[1]):
            X = phi[chunk]
            norms = self.theta_bound * lengths_of(X)
            low[chunk] = -norms
            high[chunk] = norms
            for node in bins:
                for penalty in BIN_PATH:
                    centre, half = _along_chain(node, X, penalty, bounds, self.theta_bound)
                    # intersection: all of them hold on one event
                    np.maximum(low[chunk], centre - half, out=low[chunk])
                    np.minimum(high[chunk], centre + half, out=high[chunk])
        # on the rare event that the intervals do not meet, their order is not to be relied upon
        return (low + high) / 2.0, np.abs(high - low) / 2.0


def _bounds(
    tree: "PartitionTree", theta_bound: float, confidence_level: float
) -> "tuple[list[Bin], dict[tuple[Any, ...], BinBound]]":
    """Bins that the interval uses, and their bounds.

    Which bins stand out is read off the grams, so that the events about targets, given all grams,
    are shared by those bins alone; the events about the noise of grams are shared by all bins of a
    level, whose number is known before the level is asked, and by all levels. Errors of
    reports depend on targets, so that all their events are shared like the latter.
    """
    bins = [node for node in tree.bins if node.informative]
    used = {step.path: step for node in bins for step in node.chain()}
    levels = Counter(node.level for node in tree.bins)
    failure = 1.0 - confidence_level
    bounds = {}
    for node in used.values():
        gram = failure / (tree.n_levels * levels[node.level])
        if isinstance(node.law, ReportLaw):
            bounds[node.path] = report_bound(node, theta_bound, gram)
        else:
            bounds[node.path] = bin_bound(node, theta_bound, failure / len(used), gram)
    return bins, bounds


def _along_chain(
    node: "Bin",
    X: np.ndarray,
    penalty: float,
    bounds: dict[tuple[int, ...], BinBound],
    theta_bound: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Explain x'theta* by the equations of a bin and of its ancestors."""
    rest = X
    child = None
    centre = np.zeros(len(X))
    half = np.zeros(len(X))
    for step in node.chain():
        if child is None:
            part = rest @ step.basis
        else:  # what the child took as resolved: the active directions of this bin
            active = step.directions[:, : step.n_active]
            part = (rest @ active) @ (active.T @ step.basis)
        W = part @ _filter(step, penalty)
        rest = rest - _through(W, step)
        centre += step.factor * (W @ step.target)
        half += bounds[step.path](W)
        child = step
    return centre, half + theta_bound * lengths_of(rest)


def _filter(node: "Bin", penalty: float) -> "Array":
    """Regularised inverse of the gram; the plain inverse of what stands out if penalty is 0."""
    values, vectors = np.linalg.eigh(node.gram)
    floor = max(node.law.rms, values[-1] * len(values) * RELATIVE_ZERO)
    strength = penalty * node.law.rms
    above = values > floor
    inverse = np.where(above, values / (np.where(above, values, 1.0) ** 2 + strength**2), 0.0)
    return (vectors * inverse) @ vectors.T


def _through(W: np.ndarray, node: "Bin") -> "Array":
    """Rows of w'(gram Q' + factor cross P')."""
    return (W @ node.gram) @ node.basis.T + node.factor * (W @ node.cross) @ node.resolved.T


def pooled(tree: "PartitionTree", prior: np.ndarray) -> "Array":
    """Posterior mean of theta from the equations of all bins, each weighted by its noise.

    The prior's size has the largest evidence, and leaves the intercept a variance of at least 1:
    of few equations the best size alone is sometimes 0 by accident. Only directions that stand out
    of the noise of the gram enter, because noise in the design attenuates.
    """
    theta = np.zeros(len(prior))
    least = 1.0 / INTERCEPT_PRIOR
    bins = tree.bins
    exact = all(node.law.rms == 0.0 for node in bins)
    for _ in range(1 if exact else 3):
        rows = [_whitened(node, theta) for node in bins]
        design = np.vstack([row[0] for row in rows])
        response = np.concatenate([row[1] for row in rows])
        # Nothing is shrunk for sampling where privacy noise is small beside it
        private, total = (sum(row[2][k] for row in rows) for k in (0, 1))
        error = sqrt(min(1.0, (1.0 + SAMPLING) * private / max(total, 1e-300)))
        if exact:
            return linalg.lstsq(design, response)[0]
        theta = prior @ normal_posterior(design @ prior / error, response / error, least)[1]
    return theta


def _whitened(node: "Bin", theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """Equation of a bin in its eigenbasis, scaled to variance 1.

    Returns
    -------
    (design, response, variances)
        Sums of the variances that privacy noise adds, and of all noise.
    """
    values, vectors = np.linalg.eigh(node.gram)
    edge = STANDS_OUT * GaussianLaw(node.law.rms).operator(len(values), 0.5)
    floor = max(edge, values[-1] * len(values) * RELATIVE_ZERO)
    above = values > floor
    W = vectors[:, above].T
    design = _through(W, node)
    response = node.factor * (W @ node.target)
    inside = theta @ node.basis
    outside = theta @ node.resolved
    sampling = node.factor**2 * node.copies * values[above]
    private = (node.factor * node.law.rms) ** 2 * (1.0 + outside @ outside) * np.ones(len(W))
    private += node.law.rms**2 * (inside @ inside + (W @ inside) ** 2) / 2.0
    scale = 1.0 / np.sqrt(sampling + private)
    return design * scale[:, None], response * scale, (private.sum(), (sampling + private).sum())
