"""Public shape of a partition tree, and how it is grown level by level."""

from math import ceil, log, sqrt
from typing import TYPE_CHECKING, Any

from ..._linalg import HALF_DIGITS
from ...exceptions import PrivacyError
from ...privacy import adds_up_gaussians, models_that
from ._tree import (
    ACTIVATION_FAILURE,
    CodebookLevelQuery,
    GaussianLaw,
    LevelQuery,
    PartitionTree,
    law_of,
)

if TYPE_CHECKING:
    from ._tree import Bin
    from ...privacy import Session, Trust
    from ..._estimation._public_maps import RecordMap
    from ._regressor import LayeredRegressor

# Resolution over sqrt(p) from which a second level is worth its records, as was measured.
RESOLUTION_FOR_TWO = 150.0


def resolution(query: LevelQuery, trust: "Trust", records: int, share: float) -> float:
    """Public number of reports over the standard deviation of their summed noise and sampling."""
    noise = 0.0
    budget = trust.budget
    if trust.can.reports:
        records = max(1, int(share * records))
        noise = law_of(query.local_noise(budget).summed(records)).rms
    elif not trust.exact and budget.mu > 0.0:
        noise = query.local_noise(budget).scale / sqrt(share)
    return records / max(noise, sqrt(records))


def noise_kind(est: "LayeredRegressor") -> str:
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


def tree_shape(
    est: "LayeredRegressor", maps: "RecordMap", records: int, kind: str
) -> dict[str, Any]:
    """Public shape of the tree: nothing is read off the records but their number.

    By default there is a second level where the noise is low enough to pay for it, and there are
    as many norm bins as show more than noise or sampling error: in the units of the target, an
    estimate in a bin has an error of about one over the resolution, whatever the norm of the bin
    is, so that smaller norms are not worth a bin.
    """
    size = maps.size
    n_levels: Any = est.n_levels
    n_scales: Any = est.n_scales
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


def query_kind(kind: str) -> type[Any]:
    return CodebookLevelQuery if kind == "codebook" else LevelQuery


def grow(
    session: "Session",
    maps: "RecordMap",
    *,
    gamma: float,
    n_scales: int,
    n_levels: int,
    theta_bound: float,
    kind: str,
) -> PartitionTree:
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


def _resolved(node: "Bin", theta_bound: float) -> int:
    """How many leading directions stand out of the noise, and have an error below coef_norm."""
    edge = GaussianLaw(node.law.rms).operator(node.size, ACTIVATION_FAILURE)
    spread = node.law.rms
    if node.resolved.size:
        spread *= sqrt(1.0 + theta_bound**2)
    needed = max(edge, 2.0 * node.factor * spread / theta_bound)
    tiny = max(node.eigenvalues[0], 0.0) * 1e-13
    return int((node.eigenvalues > max(needed, tiny)).sum())
