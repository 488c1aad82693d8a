"""How a partition tree grows, level by level, from the answers of a session."""

from math import ceil, log, sqrt

from ..._linalg import HALF_DIGITS
from ...exceptions import PrivacyError
from ...privacy import adds_up_gaussians, models_that
from ._laws import law_of
from ._reports import CodebookLevelQuery
from ._queries import LevelQuery
from ._tree import ACTIVATION_FAILURE, PartitionTree

RESOLUTION_FOR_TWO = 150.0  # measured: below, the records of a second level are better spent on one


def depth(resolution, size):
    """Public default number of levels: a second one where the noise is low enough to pay for it."""
    return min(size, 2) if resolution >= RESOLUTION_FOR_TWO * sqrt(size) else 1


def scales(resolution, gamma):
    """Public number of norm bins: finer ones would drown in the noise, or in sampling error.

    An estimate in a bin has error of the order of one over the resolution in the units of the
    target whatever the bin's norm, so that norms below that are not worth a bin.
    """
    most = int(log(HALF_DIGITS) / log(gamma))
    return min(max(1, ceil(log(max(resolution, 1.0)) / log(gamma))), most)


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
        if est.delta == 0.0:
            raise PrivacyError(
                "delta=0.0 leaves no room for Gaussian noise: pass delta in (0, 1), or "
                "channel='codebook', one pure report of each user, with "
                f"{models_that('alone')}, and variant='one-batch'."
            )
        return "gaussian"
    if not by_users:
        raise PrivacyError(
            "channel='codebook' is one report of each user about all moments of a level: it needs "
            f"{models_that('alone')} and variant='one-batch'. Use channel='additive'."
        )
    return "codebook"


def tree_shape(est, scaling, records, kind):
    """Public shape of the tree: nothing is read off the records but their number."""
    empty = PartitionTree(scaling.size, est.gamma, 1, 1)
    probe = _asked(kind)(scaling, empty, (), crossed=True)
    n_levels, n_scales = est.n_levels, est.n_scales
    if n_levels == "auto" and est.variant == "paper":
        n_levels = scaling.size
    elif n_levels == "auto":
        n_levels = depth(resolution(probe, est._trust, records, 1.0), scaling.size)
    if n_scales == "auto":
        share = 1.0 / n_levels
        n_scales = scales(resolution(probe, est._trust, records, share), est.gamma)
    return {"gamma": est.gamma, "n_scales": n_scales, "n_levels": n_levels}


def _asked(kind):
    return CodebookLevelQuery if kind == "codebook" else LevelQuery


def grow(session, scaling, *, gamma, n_scales, n_levels, theta_bound, kind):
    """Ask level by level; each level splits what is left of every active bin.

    Records whose path has ended report to their last bin again, so that no record is wasted. The
    shape of the tree depends on released grams only, to which targets do not contribute: their
    noise is independent of it, even if the levels share their records. Not so with reports, whose
    levels never share any: see :class:`ReportBound`.
    """
    tree = PartitionTree(scaling.size, gamma, n_scales, n_levels)
    overlap = session.trust.can.same_rows
    for level in range(1, n_levels + 1):
        frontier = tree.frontier()
        query = _asked(kind)(scaling, tree, (*tree.bins, *frontier), level > 1, level)
        query.deliver(session.sum(query, 1.0 / n_levels), overlap)
        for node in frontier:
            node.decompose()
            node.activate(_resolved(node, theta_bound), gamma, n_scales if level < n_levels else 0)
        tree.bins.extend(frontier)
    return tree


def _resolved(node, theta_bound):
    """How many leading directions stand out of the noise, and have an error below coef_norm."""
    edge = node.law.typical.operator(node.size, ACTIVATION_FAILURE)
    spread = node.law.cross(node.size, 0.5) if node.law.rms else 0.0
    if node.resolved.size:
        spread *= sqrt(1.0 + theta_bound**2)
    needed = max(edge, 2.0 * node.factor * spread / theta_bound)
    tiny = max(node.eigenvalues[0], 0.0) * 1e-13
    return int((node.eigenvalues > max(needed, tiny)).sum())
