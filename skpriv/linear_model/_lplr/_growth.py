"""How a partition tree is grown level by level."""

from math import sqrt
from typing import TYPE_CHECKING, Any

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
