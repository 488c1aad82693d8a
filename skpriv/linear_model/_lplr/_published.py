"""LPLR as published, corrected: one direction and two batches of records a level."""

from math import inf, log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimation._intervals import split_failure
from ..._estimation._released import Released
from ..._linalg import lengths_of
from ..._stored import frozen_object, stored
from ...privacy import ROUNDING
from ._equations import TARGETS_WEIGHTS
from ._tree import ACTIVATION_FAILURE, NOISE_WEIGHTS, LevelQuery, PartitionTree, law_of

if TYPE_CHECKING:
    from ...privacy import Answer, Session
    from ._tree import Bin
    from ..._contracts import Array, Scalar
    from ..._estimation._public_maps import RecordMap

# The published variant has one direction and two batches of records a level. Corrected are its
# sensitivities, and residual targets, which are bounded without bias. The constants of its interval
# rules are quantiles of the noise: those of the paper are vacuous below 1e9 records. Along a path,
# the error of the prediction is at most eta(phi), the sum of |u'phi| tau over active bins.


def target_bound(level: int, theta_bound: float) -> float:
    """Largest absolute value of a residual target at a level."""
    return 1.0 if level == 1 else 1.0 + theta_bound


@frozen_object
class PaperLevelQuery(LevelQuery):
    """Sums of r z and z z' of :class:`LevelQuery` alone, with residual targets r.

    r = (y - clip(phi'total, -B, B)) / c with c = 1 + B at level 2 and below: |r| <= 1 although
    predictions are noisy, and clipping to an interval that contains the truth only reduces their
    error (clipping y_h itself would bias it). So the sensitivity is that of level 1, sqrt(4.5). The
    counts of the paper are not asked: nothing uses them.
    """

    theta_bound: float = 1.0

    def residual(self, node: "Bin", phi: np.ndarray, target: np.ndarray) -> "Array":
        """The r of records of a bin, in [-1, 1]."""
        predicted = (phi @ node.total).clip(-self.theta_bound, self.theta_bound)
        return (target - predicted) / target_bound(self.level, self.theta_bound)

    def deliver(self, answer: "Answer", overlap: bool) -> None:
        """Hand the answer to the bins, targets in their own units."""
        super().deliver(answer, overlap)
        for node in self.bins:
            node.target = node.target * target_bound(self.level, self.theta_bound)


@frozen_object
class ErrorQuery(LevelQuery):
    """Sum over each bin of min(eta, c) |u'z| / c in [0, 1]: how much earlier errors weigh.

    Moving a record between bins changes two blocks: sensitivity sqrt(2); the printed noise allows
    for 1.
    """

    cap: float = 1.0
    width = None
    name_prefix = "errors of "

    @property
    def shape(self) -> tuple[int, int]:
        """A number for each bin."""
        return (len(self.bins), 1)

    @property
    def sensitivity(self) -> float:
        """Sensitivity of the whole vector, see above."""
        return sqrt(2.0) * ROUNDING

    def sum(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
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


def grow_paper(
    session: "Session",
    maps: "RecordMap",
    *,
    gamma: float,
    n_scales: int,
    n_levels: int,
    theta_bound: float,
) -> "tuple[PartitionTree, PaperIntervals]":
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
            node.half_widths[0] = width = widths.get(node.path, inf)
            # inactive bins keep neither direction nor estimate: their error would not be covered
            if width < theta_bound:
                along = node.directions[:, 0]
                estimate = node.factor * (along @ node.basis @ node.target) / node.eigenvalues[0]
                node.total = node.total + estimate * along
                node.activate(1, gamma, n_scales if level < n_levels else 0)
    return tree, rules


@stored
@frozen_object
class PaperIntervals(Released):
    """Predictions and intervals along the paths of a published tree."""

    tree: PartitionTree
    theta_bound: float
    overlap: bool

    def half_widths(self, confidence_level: float) -> dict[tuple[int, ...], float]:
        """Half-width tau of the coefficient of each informative bin, parents first."""
        widths: dict[tuple[Any, ...], float] = {}
        levels: "dict[int, list[Bin]]" = {}
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

    def _half_width(
        self, node: "Bin", widths: dict[tuple[int, ...], float], failure: float, gram_failure: float
    ) -> "Scalar":
        law = node.law
        d = node.size
        of_targets, of_errors = (weight * failure for weight in TARGETS_WEIGHTS)
        of_vector, of_operator = (weight * gram_failure for weight in NOISE_WEIGHTS)
        operator = law.operator(d, of_operator)
        vector = self.theta_bound * law.vector(d, of_vector)
        spread = target_bound(node.level, self.theta_bound) * law.rms
        along = min(node.eigenvalues[0] + operator, node.records)
        tail = sqrt(2.0 * log(2.0 / of_targets) * (along + spread**2))
        earlier = self._earlier(node, widths, of_errors) if node.parent is not None else 0.0
        return (node.factor * (earlier + tail) + vector) / node.eigenvalues[0]

    def _earlier(
        self, node: "Bin", widths: dict[tuple[int, ...], float], failure: float
    ) -> "Scalar":
        """Bound on |sum of u'z times the error of earlier levels| over the first batch."""
        answer, released = node.earlier
        cap = 2.0 * self.theta_bound
        # the batch was weighed with the half-widths of the fit: rescale to these ones
        ratio = max([1.0, *(widths[s.path] / s.half_widths[0] for s in node.parent.chain())])
        of_noise, *of_batches = split_failure(failure, 1.0, 1.0, 1.0)
        total = max(released + law_of(answer.noise).vector(1, of_noise), 0.0)
        if not self.overlap:  # other records: uniform deviation over u, and of both batches
            first = node.records
            second = answer.n
            tail = log(1.0 / of_batches[0]) / 2.0
            total *= first / second
            total += 2.0 * sqrt(first) + sqrt(first * tail) + first / second * sqrt(second * tail)
        return cap * ratio * min(total, node.records)

    def predict(self, points: np.ndarray) -> np.ndarray:
        """phi'theta of the last active bin of each path."""
        predicted = np.zeros(len(points))
        for node, rows in self.tree.locate(points):
            predicted[rows] = points[rows] @ node.total
        return predicted

    def interval(
        self, phi: np.ndarray, confidence_level: float, method: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Intersection over the levels of each path; all hold on one event, for all x at once."""
        widths = self.half_widths(confidence_level)
        norms = self.theta_bound * lengths_of(phi)
        low = -norms
        high = norms
        for node, rows in self.tree.locate(phi):
            path = [step for step in node.chain() if step.active][::-1]
            X = phi[rows]
            eta = np.zeros(len(rows))
            for step in path:
                eta += abs(X @ step.directions[:, 0]) * widths[step.path]
                rest = lengths_of(X @ step.directions[:, 1:])
                centre = X @ step.total
                half = eta + self.theta_bound * rest
                low[rows] = np.maximum(low[rows], centre - half)
                high[rows] = np.minimum(high[rows], centre + half)
        return (low + high) / 2.0, np.abs(high - low) / 2.0
