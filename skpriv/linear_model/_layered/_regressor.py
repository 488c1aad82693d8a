"""Layered private linear regression: estimates and certified intervals from a partition tree.

Every bin gives a noisy linear equation in theta*, with Q its basis and P its resolved directions:

    factor target = (gram Q' + factor cross P') theta* + noise,

noise = factor (sum z xi + N_target - N_cross P'theta*) - N_gram Q'theta*. For any w computed from
y-free answers and the query point x, ``factor w'target`` is then within its `BinBound` of the
equation's part in x'theta*, and what no equation explains is at most coef_norm times its length.
The events are one a bin, so that the interval holds for all x at once.
"""

from collections import Counter
from dataclasses import dataclass
from math import ceil, log, sqrt
from numbers import Real
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from scipy import linalg

from ..._compat import Interval
from ..._estimation._intervals import event, inside_bounds, shared, split_failure
from ..._estimation._moments import INTERCEPT_PRIOR, SAMPLING, normal_posterior, ridge_prior
from ..._linalg import HALF_DIGITS, RELATIVE_ZERO, blocks_of
from ..._parameters import Count, DataNorm, Positive, parameters
from ..._stored import stored
from ...exceptions import PrivacyError
from ...privacy import ROUNDING, adds_up_gaussians, models_that
from .._base import CertifiedIntervals, PrivateRegressor
from .._opening import open_fit, scaled_rows
from ._tree import (
    ACTIVATION_FAILURE,
    NOISE_WEIGHTS,
    Bin,
    CodebookLevelQuery,
    GaussianLaw,
    LevelQuery,
    PartitionTree,
    ReportLaw,
    law_of,
)

# Resolution over sqrt(p) from which a second level is worth its records, as was measured.
RESOLUTION_FOR_TWO = 150.0


def resolution(query, trust, records, share):
    """Public number of reports over the standard deviation of their summed noise and sampling."""
    noise, budget = 0.0, trust.budget
    if trust.can.reports:
        records = max(1, int(share * records))
        noise = law_of(query.local_noise(budget).summed(records)).rms
    elif not trust.exact and budget.mu > 0.0:
        noise = query.local_noise(budget).scale / sqrt(share)
    return records / max(noise, sqrt(records))


def noise_kind(est):
    """Which noise the parameters ask for; what cannot be had is refused before any charge."""
    if est._trust.exact:
        return "none"
    by_users = est._trust.can.alone and est.variant == "one-batch"
    if est.channel == "auto" and by_users:
        with est._accounting():
            if est.delta == 0.0 or not adds_up_gaussians():
                return "codebook"
    if est.channel != "codebook":
        return "gaussian"
    if not by_users:
        raise PrivacyError(
            "channel='codebook' is one report of each user about all moments of a level: it needs "
            f"{models_that('alone')} and variant='one-batch'. Use channel='additive'."
        )
    return "codebook"


def tree_shape(est, maps, records, kind):
    """Public shape of the tree: nothing is read off the records but their number.

    By default there is a second level where the noise is low enough to pay for it, and there are
    as many norm bins as show more than noise or sampling error: in the units of the target, an
    estimate in a bin has an error of about one over the resolution, whatever the norm of the bin
    is, so that smaller norms are not worth a bin.
    """
    size, n_levels, n_scales = maps.size, est.n_levels, est.n_scales
    probe = query_kind(kind)(maps, PartitionTree(size, est.gamma, 1, 1), (), crossed=True)
    if n_levels == "auto":
        n_levels = size
        if est.variant != "paper":
            pays = resolution(probe, est._trust, records, 1.0) >= RESOLUTION_FOR_TWO * sqrt(size)
            n_levels = min(size, 2) if pays else 1
    if n_scales == "auto":
        ratio = max(resolution(probe, est._trust, records, 1.0 / n_levels), 1.0)
        largest = int(log(HALF_DIGITS) / log(est.gamma))
        n_scales = min(max(1, ceil(log(ratio) / log(est.gamma))), largest)
    return {"gamma": est.gamma, "n_scales": n_scales, "n_levels": n_levels}


def query_kind(kind):
    return CodebookLevelQuery if kind == "codebook" else LevelQuery


def grow(session, maps, *, gamma, n_scales, n_levels, theta_bound, kind):
    """Ask level by level; each level splits what is left of every active bin.

    Records whose path has ended report to their last bin again, so that no record is wasted. The
    shape of the tree depends on released grams only, to which targets do not contribute: their
    noise is independent of it, even if the levels share their records. Not so with reports, whose
    levels never share any: see :func:`report_bound`.
    """
    tree = PartitionTree(maps.size, gamma, n_scales, n_levels)
    overlap = session.trust.can.same_rows
    for level in range(1, n_levels + 1):
        frontier = tree.frontier()
        query = query_kind(kind)(maps, tree, (*tree.bins, *frontier), level > 1, level)
        query.deliver(session.sum(query, 1.0 / n_levels), overlap)
        for node in frontier:
            node.decompose()
            node.activate(_resolved(node, theta_bound), gamma, n_scales if level < n_levels else 0)
        tree.bins.extend(frontier)
    return tree


def _resolved(node, theta_bound):
    """How many leading directions stand out of the noise, and have an error below coef_norm."""
    edge = GaussianLaw(node.law.rms).operator(node.size, ACTIVATION_FAILURE)
    spread = node.law.rms
    if node.resolved.size:
        spread *= sqrt(1.0 + theta_bound**2)
    needed = max(edge, 2.0 * node.factor * spread / theta_bound)
    tiny = max(node.eigenvalues[0], 0.0) * 1e-13
    return int((node.eigenvalues > max(needed, tiny)).sum())


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

    node: Bin
    operator: float
    quantile: float
    spread2: float
    norm: float

    def __call__(self, W):
        """Bound for each row w of W."""
        node, squares = self.node, np.einsum("ij,ij->i", W, W)
        quadratic = np.einsum("ij,ij->i", W @ node.gram, W) + self.operator * squares
        # copies of a record bring copies of its target's error: c^2 times the gram of one copy
        proxy = node.copies * np.clip(quadratic, 0.0, node.records * squares)
        proxy += self.spread2 * squares
        return self.quantile * np.sqrt(proxy) + self.norm * np.sqrt(squares)


def _vector_quantile(d, tail):
    """A bound on the norm of a sub-Gaussian vector (Hsu, Kakade and Zhang 2012)."""
    return sqrt(d + 2.0 * sqrt(d * tail) + 2.0 * tail)


def bin_bound(node, theta_bound, failure, gram_failure):
    """The bound for Gaussian noise, of which targets are independent."""
    d, law = node.size, node.law
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


def report_bound(node, theta_bound, failure):
    """The bound for codebook reports, whose errors depend on targets: nothing is given the grams.

    Given the levels before, each level's targets are independent of its rows, and their errors have
    a sub-Gaussian norm in the metric of the level's exact gram; the errors of the reports are
    bounded in norm. So all holds for w of any origin, and is added up; levels by sqrt(their
    number) times the root of the sum of their grams.
    """
    d, law, levels = node.size, node.law, len(node.law.parts)
    weights = {"noise of the Gram": 1.0, "noise at theta": 1.0}
    # of each level's targets: a bound that holds for all levels is that of the rarest event
    names = (f"errors of the targets of level {level}" for level in range(levels))
    weights |= dict.fromkeys(names, 1.0 / levels)
    parts = shared(failure, weights, f"{node.path}: ")
    of_operator, of_norm, *of_targets = vars(parts).values()
    tail, operator = log(1.0 / min(of_targets)), law.operator(d, of_operator)
    outer = theta_bound if node.resolved.size else 0.0
    norm = node.factor * law.equation(d, node.factor, theta_bound, outer, of_norm)
    quantile = node.factor * _vector_quantile(d, tail) * sqrt(levels)
    return BinBound(node, operator, quantile, 0.0, norm)


def certified_by_tree(tree, points, theta_bound, confidence_level):
    """Low and high ends for x'theta*, uniformly over the points."""
    bins, bounds = _bounds(tree, theta_bound, confidence_level)
    low, high = np.empty(len(points)), np.empty(len(points))
    for chunk in blocks_of(len(points), 2 * points.shape[1]):
        X = points[chunk]
        norms = theta_bound * np.linalg.norm(X, axis=1)
        low[chunk], high[chunk] = -norms, norms
        for node in bins:
            for penalty in BIN_PATH:
                centre, half = _along_chain(node, X, penalty, bounds, theta_bound)
                # intersection: all of them hold on one event
                np.maximum(low[chunk], centre - half, out=low[chunk])
                np.minimum(high[chunk], centre + half, out=high[chunk])
    # on the rare event that the intervals do not meet, their order is not to be relied upon
    return np.minimum(low, high), np.maximum(low, high)


def _bounds(tree, theta_bound, confidence_level):
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


def _along_chain(node, X, penalty, bounds, theta_bound):
    """Explain x'theta* by the equations of a bin and of its ancestors."""
    rest, child = X, None
    centre, half = np.zeros(len(X)), np.zeros(len(X))
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
    return centre, half + theta_bound * np.linalg.norm(rest, axis=1)


def _filter(node, penalty):
    """Regularised inverse of the gram; the plain inverse of what stands out if penalty is 0."""
    values, vectors = np.linalg.eigh(node.gram)
    floor = max(node.law.rms, values[-1] * len(values) * RELATIVE_ZERO)
    strength = penalty * node.law.rms
    above = values > floor
    inverse = np.where(above, values / (np.where(above, values, 1.0) ** 2 + strength**2), 0.0)
    return (vectors * inverse) @ vectors.T


def _through(W, node):
    """Rows of w'(gram Q' + factor cross P')."""
    return (W @ node.gram) @ node.basis.T + node.factor * (W @ node.cross) @ node.resolved.T


def pooled(tree, prior):
    """Posterior mean of theta from the equations of all bins, each weighted by its noise.

    The prior's size has the largest evidence, and leaves the intercept a variance of at least 1:
    of few equations the best size alone is sometimes 0 by accident. Only directions that stand out
    of the noise of the gram enter, because noise in the design attenuates.
    """
    theta, least = np.zeros(len(prior)), 1.0 / INTERCEPT_PRIOR
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


def _whitened(node, theta):
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
    inside, outside = theta @ node.basis, theta @ node.resolved
    sampling = node.factor**2 * node.copies * values[above]
    private = (node.factor * node.law.rms) ** 2 * (1.0 + outside @ outside) * np.ones(len(W))
    private += node.law.rms**2 * (inside @ inside + (W @ inside) ** 2) / 2.0
    scale = 1.0 / np.sqrt(sampling + private)
    parts = (private.sum(), (sampling + private).sum())
    return design * scale[:, None], response * scale, parts


def half_widths(tree, theta_bound, confidence_level=0.95):
    """Fill in every informative bin's half-widths along its directions, for who reads the tree."""
    bins, bounds = _bounds(tree, theta_bound, confidence_level)
    for node in bins:
        halves = [
            _along_chain(node, node.directions.T, penalty, bounds, theta_bound)[1]
            for penalty in BIN_PATH
        ]
        node.half_widths = np.minimum(np.min(halves, axis=0), theta_bound)


# The published variant has one direction and two batches of records a level. Corrected are its
# sensitivities, and residual targets, which are bounded without bias. The constants of its interval
# rules are quantiles of the noise: those of the paper are vacuous below 1e9 records. Along a path,
# the error of the prediction is at most eta(phi), the sum of |u'phi| tau over active bins.


def target_bound(level, theta_bound):
    """Largest absolute value of a residual target at a level."""
    return 1.0 if level == 1 else 1.0 + theta_bound


@dataclass(frozen=True, eq=False)
class PaperLevelQuery(LevelQuery):
    """Sums of r z and z z' of :class:`LevelQuery` alone, with residual targets r.

    r = (y - clip(phi'total, -B, B)) / c with c = 1 + B at level 2 and below: |r| <= 1 although
    predictions are noisy, and clipping to an interval that contains the truth only reduces their
    error (clipping y_h itself would bias it). So the sensitivity is that of level 1, sqrt(4.5). The
    counts of the paper are not asked: nothing uses them.
    """

    theta_bound: float = 1.0

    def residual(self, node, phi, target):
        """The r of records of a bin, in [-1, 1]."""
        predicted = np.clip(phi @ node.total, -self.theta_bound, self.theta_bound)
        return (target - predicted) / target_bound(self.level, self.theta_bound)

    def deliver(self, answer, overlap):
        """Hand the answer to the bins, targets in their own units."""
        super().deliver(answer, overlap)
        for node in self.bins:
            node.target = node.target * target_bound(self.level, self.theta_bound)


@dataclass(frozen=True, eq=False)
class ErrorQuery(LevelQuery):
    """Sum over each bin of min(eta, c) |u'z| / c in [0, 1]: how much earlier errors weigh.

    Moving a record between bins changes two blocks: sensitivity sqrt(2); the printed noise allows
    for 1.
    """

    cap: float = 1.0
    width: None = None

    @property
    def name(self):
        """Its name in the privacy report."""
        return f"level {self.level}, errors of {len(self.bins)} bins"

    @property
    def shape(self):
        """A number for each bin."""
        return (len(self.bins), 1)

    @property
    def sensitivity(self):
        """Sensitivity of the whole vector, see above."""
        return sqrt(2.0) * ROUNDING

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        phi = self.maps.rows(X)
        total = np.zeros(self.shape)
        for slot, node, rows in self.located(phi):
            eta = np.zeros(len(rows))
            for step in node.parent.chain():
                eta += abs(phi[rows] @ step.directions[:, 0]) * step.half_widths[0]
            along = node.factor * abs(phi[rows] @ node.directions[:, 0])
            total[slot] += np.minimum(eta / self.cap, 1.0) @ np.minimum(along, 1.0)
        return total


def grow_paper(session, maps, *, gamma, n_scales, n_levels, theta_bound):
    """Algorithm 2: a batch for the moments of a level, and another for its errors.

    Level 1 has no earlier errors, so that it needs no second batch.
    """
    tree = PartitionTree(maps.size, gamma, n_scales, n_levels)
    share = 1.0 / (2 * n_levels - 1)
    rules = PaperIntervals(tree, theta_bound, session.trust.can.same_rows)
    for level in range(1, n_levels + 1):
        frontier = tree.frontier()
        if not frontier:
            break
        query = PaperLevelQuery(maps, tree, tuple(frontier), False, level, theta_bound)
        query.deliver(session.sum(query, share), overlap=False)
        for node in frontier:
            node.decompose()
        tree.bins.extend(frontier)
        candidates = tuple(node for node in frontier if node.informative)
        if level > 1 and candidates:
            errors = ErrorQuery(maps, tree, candidates, False, level, cap=2.0 * theta_bound)
            answer = session.sum(errors, share)
            for node, value in zip(candidates, answer.value[:, 0], strict=True):
                node.earlier = answer, float(value)
        widths = rules.half_widths(1.0 - ACTIVATION_FAILURE)
        for node in candidates:
            node.half_widths[0] = width = widths.get(node.path, np.inf)
            # inactive bins keep neither direction nor estimate: their error would not be covered
            if width < theta_bound:
                along = node.directions[:, 0]
                estimate = node.factor * (along @ node.basis @ node.target) / node.eigenvalues[0]
                node.total = node.total + estimate * along
                node.activate(1, gamma, n_scales if level < n_levels else 0)
    return tree, rules


@stored
@dataclass(frozen=True, eq=False)
class PaperIntervals:
    """Predictions and intervals along the paths of a published tree."""

    tree: PartitionTree
    theta_bound: float
    overlap: bool

    def half_widths(self, confidence_level):
        """Half-width tau of the coefficient of each informative bin, parents first."""
        widths: dict[tuple, float] = {}
        levels: dict[int, list[Bin]] = {}
        for node in self.tree.bins:
            levels.setdefault(node.level, []).append(node)
        for nodes in levels.values():
            failure = (1.0 - confidence_level) / self.tree.n_levels
            candidates = [node for node in nodes if node.informative]
            for node in candidates:
                widths[node.path] = self._half_width(
                    node, widths, failure / len(candidates), failure / len(nodes)
                )
        return widths

    def _half_width(self, node, widths, failure, gram_failure):
        law, d = node.law, node.size
        of_targets, of_errors = (weight * failure for weight in TARGETS_WEIGHTS)
        of_vector, of_operator = (weight * gram_failure for weight in NOISE_WEIGHTS)
        operator = law.operator(d, of_operator)
        vector = self.theta_bound * law.vector(d, of_vector)
        spread = target_bound(node.level, self.theta_bound) * law.rms
        along = min(node.eigenvalues[0] + operator, node.records)
        tail = sqrt(2.0 * log(2.0 / of_targets) * (along + spread**2))
        earlier = self._earlier(node, widths, of_errors) if node.parent is not None else 0.0
        return (node.factor * (earlier + tail) + vector) / node.eigenvalues[0]

    def _earlier(self, node, widths, failure):
        """Bound on |sum of u'z times the error of earlier levels| over the first batch."""
        (answer, released), cap = node.earlier, 2.0 * self.theta_bound
        # the batch was weighed with the half-widths of the fit: rescale to these ones
        ratio = max([1.0, *(widths[s.path] / s.half_widths[0] for s in node.parent.chain())])
        of_noise, *of_batches = split_failure(failure, 1.0, 1.0, 1.0)
        total = max(released + law_of(answer.noise).vector(1, of_noise), 0.0)
        if not self.overlap:  # other records: uniform deviation over u, and of both batches
            first, second, tail = node.records, answer.n, log(1.0 / of_batches[0]) / 2.0
            total *= first / second
            total += 2.0 * sqrt(first) + sqrt(first * tail) + first / second * sqrt(second * tail)
        return cap * ratio * min(total, node.records)

    def predict(self, points):
        """phi'theta of the last active bin of each path."""
        predicted = np.zeros(len(points))
        for node, rows in self.tree.locate(points):
            predicted[rows] = points[rows] @ node.total
        return predicted

    def certified_by_rules(self, points, confidence_level):
        """Intersection over the levels of each path; all hold on one event, for all x at once."""
        widths = self.half_widths(confidence_level)
        norms = self.theta_bound * np.linalg.norm(points, axis=1)
        low, high = -norms, norms
        for node, rows in self.tree.locate(points):
            path: list[Bin] = [step for step in node.chain() if step.active][::-1]
            X, eta = points[rows], np.zeros(len(rows))
            for step in path:
                eta += abs(X @ step.directions[:, 0]) * widths[step.path]
                rest = np.linalg.norm(X @ step.directions[:, 1:], axis=1)
                centre, half = X @ step.total, eta + self.theta_bound * rest
                low[rows] = np.maximum(low[rows], centre - half)
                high[rows] = np.minimum(high[rows], centre + half)
        return np.minimum(low, high), np.maximum(low, high)


# code -> paper (Li, Simchi-Levi and Wang 2024):
#   bin -> B, path -> (k_1, ..., k_h), factor -> gamma^k, n_scales -> M, gram -> Lambda,
#   target -> lambda, eigenvalues, directions -> s, u, half_widths -> tau, n_levels -> d


@stored
@parameters
class LayeredRegressor(CertifiedIntervals, PrivateRegressor):
    """LPLR, layered private linear regression: each direction is estimated at its own scale.

    Records are put into bins by their norm and scaled up to the unit ball. In every bin the leading
    directions are estimated. The rest of each record is put into bins by its norm again, and so on.
    So the noise is as small as the part of the records that is not yet explained, and the error
    does not depend on the smallest eigenvalue of the Gram matrix, even in the local model. It is
    mostly of interest for its tree and its uniform intervals: see the measurements in the Notes.

    Parameters
    ----------
    delta : float in [0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of records. 0 is pure privacy,
        which needs ``channel="codebook"``.
    privacy : {"central", "aggregate", "local", "shuffle", "none"}, default="central"
        Who adds the noise: a trusted curator, all users together by secure aggregation, every user,
        every user with a trusted shuffler that makes the reports anonymous, or nobody.
    variant : {"one-batch", "paper"}, default="one-batch"
        "paper" is the published algorithm, with one direction and two batches of records a level,
        corrected sensitivities and usable interval constants. "one-batch" resolves all directions
        that stand out of the noise, and pools the equations of all bins.
    channel : {"auto", "codebook", "additive"}, default="auto"
        "codebook" is one report a user by the index of a public codebook, on a random row of a
        Hadamard matrix: pure whatever ``delta``. "additive" is Gaussian noise on all moments.
        "auto" is "codebook" in the local model with the default variant, else
        "additive".
    gamma : float >= 1.1, default=2.0
        Ratio of the norms of neighbouring bins.
    n_levels : int or "auto", default="auto"
        Depth of the tree; "auto" is 2 where the budget and the number of records pay for it and 1
        elsewhere, for ``variant="paper"`` the number of features.
    n_scales : int or "auto", default="auto"
        Bins that a bin is divided into; "auto" goes down to norms that drown in the noise.
    data_norm : float, required
        Public: every row of X is clipped to this l2 norm.
    coef_norm : float, default=1.0
        Assumed bound on the l2 norm of (coefficients, intercept) in scaled units, rows in the unit
        ball and target in [-1, 1]. Intervals use it, and the decision what a bin resolves.

    Attributes
    ----------
    tree_ : PartitionTree
        Bins, directions, eigenvalues and half-widths, which it prints.
    coef_, intercept_ : ndarray of shape (n_features,), float
        Only for ``variant="one-batch"``; the published prediction is piecewise linear.
    privacy_report_ : PrivacyReport
        What was asked of the records, and at what price.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        The names only when X has some that are all strings.

    See Also
    --------
    ReweightedRegressor : More accurate in most designs, at the same budget.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record,
    local in the local model. Released: for every level the second moments of its bins, as one
    vector with one sensitivity (sqrt(4.5) at level 1 and for the published, else sqrt(8)), and in
    the paper's variant weighted errors. Central: all records serve every level, whose costs compose
    exactly; local: every user answers for one level, by default with one index of a public
    codebook, drawn by one exact integer: then delta is 0. Public: the number of records and all
    parameters.

    **Intervals** hold for all x at once, at any n, if the clipped target has a linear mean with
    ``coef_norm``, and if targets' errors are independent given the rows. In the paper's variant
    under local privacy, records must also be independent and identically distributed. There is no
    asymptotic interval: bins and directions are chosen by noisy Gram matrices, and no normal limit
    holds uniformly over their eigenvalues.

    Departures from the paper: its noise protects half of what a replaced record changes, and its
    Wishart noise is not private at all. Its residual targets are unbounded, and its interval
    constants are vacuous below 1e9 records. All four are corrected in both variants. "one-batch"
    asks for cross moments of z and the resolved directions, which propagate errors of earlier
    levels linearly and exactly, and needs neither residual targets, nor counts, nor a second batch.

    **Expected accuracy** (local model, delta = 1e-6, no intercept, +-1 targets, mean absolute error
    and half-width of the 95% interval; theirs hold at each x, these for all x at once):

    ==================  =====  ===========  ============  ==========  ============
    design              n      epsilon      this class    SSP         re-weighted
    ==================  =====  ===========  ============  ==========  ============
    unit sphere, d=2    1e5    4            .021, .11     .018, .06   .019, .09
    unit sphere, d=5    1e5    1            .14, .89      .13, .61    .21, .92
    unit sphere, d=5    1e6    4            .016, .10     .011, .06   .016, .09
    (.5, +-.1), d=2     1e5    4            .061, .14     .047, .16   .021, .10
    (.5, +-.1), d=2     1e6    4            .026, .083    .026, .087  .007, .033
    (.5, +-.1), d=5     1e5    1            .092, .49     .10, .43    .11, .44
    ==================  =====  ===========  ============  ==========  ============

    A direction of length .05 to .1 that sufficient statistics cannot resolve (d=2, n=1e6,
    epsilon=4, coefficient .95) is estimated with an error of .012 by two levels, against .025 to
    .044 by ``SSPRegressor`` and .008 by ``ReweightedRegressor``. Intervals say little below n = 1e5
    at epsilon = 1: a half-width of 1 is no information. The paper's variant is 1.2 to 9 times wider
    than the default. It says little below n = 1e6, and for d=5 on the unit sphere nothing even
    there. On isotropic designs use ``SSPRegressor``. An intercept costs an extra feature, and with
    it the norms of all rows are alike at level 1.

    References
    ----------
    J. Li, D. Simchi-Levi and Y. Wang (2024). On the optimal regret of locally private linear
    contextual bandit: Algorithms 2 to 6.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import LayeredRegressor
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(200_000, 2))
    >>> y = X @ [0.5, 0.8] + rng.uniform(-0.2, 0.2, size=200_000)
    >>> est = LayeredRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1), epsilon=4.0, fit_intercept=False, random_state=0
    ... ).fit(X, y)
    >>> bool(abs(est.predict(X) - X @ [0.5, 0.8]).mean() < 0.05)
    True
    >>> low, high = est.confidence_interval(X[:2], confidence_level=0.9)
    >>> bool((low < high).all())
    True
    """

    variant: Literal["one-batch", "paper"] = "one-batch"
    channel: Literal["auto", "codebook", "additive"] = "auto"
    gamma: Annotated[float, Interval(Real, 1.1, None, closed="left")] = 2.0
    n_levels: Count | Literal["auto"] = "auto"
    n_scales: Count | Literal["auto"] = "auto"
    data_norm: DataNorm = None
    coef_norm: Positive = 1.0
    fit_intercept: bool = True

    interval_estimand: ClassVar[str | None] = "least-squares line of the clipped rows and targets"
    interval_claims: ClassVar[tuple[str, ...]] = ("certified",)

    def _fit(self, X, y):
        rows, maps = scaled_rows(self, X, y)
        kind = noise_kind(self)
        shape = tree_shape(self, maps, rows.n, kind)
        batches = 2 * shape["n_levels"] - 1 if self.variant == "paper" else shape["n_levels"]
        session = open_fit(self, rows, kind, smallest_share=1.0 / batches)
        del X, y, rows  # only the session has the data now

        bound = maps.theta_bound(self.coef_norm)
        if self.variant == "paper":
            self.tree_, self._rules = grow_paper(session, maps, **shape, theta_bound=bound)
        else:
            self.tree_ = grow(session, maps, **shape, theta_bound=bound, kind=kind)
            prior = ridge_prior(maps.size, maps.fit_intercept)
            self.coef_, self.intercept_ = maps.coefficients(pooled(self.tree_, prior))
            half_widths(self.tree_, bound)
        self._scaling = maps

    def _function(self, X):
        if self.variant == "paper":
            return self._scaling.unscale(self._rules.predict(self._scaling.features(X)))
        return super()._function(X)

    def _interval(self, X, confidence_level, method):
        """The interval at checked rows."""
        maps = self._scaling
        points = maps.features(X)
        if self.variant == "paper":
            low, high = self._rules.certified_by_rules(points, confidence_level)
        else:
            bound = maps.theta_bound(self.coef_norm)
            low, high = certified_by_tree(self.tree_, points, bound, confidence_level)
        return inside_bounds(maps, (low + high) / 2.0, (high - low) / 2.0, self._predicted(X))
