"""Binned aggregation: private bins of the rows, noisy sums in each, a regression of the sums."""

from math import log, sqrt

import numpy as np
from scipy import stats
from sklearn.utils import check_random_state

from skpriv import Budget

from ._scaled import ScaledRegressor

SHARES = (1.0, 3.0, 3.0, 3.0)  # of mu: bins, counts, sums of rows, sums of targets (the paper's)
LEAST_COUNT = 2.0


class BinnedAggregation(ScaledRegressor):
    """BinAgg (Lin, Slavkovic and Bhoomireddy 2025, Algorithms 1 and 2), with noise for replacement.

    1. PrivTree (Zhang, Xiao and Xie 2016) halves boxes of [-1, 1]^d along their longest side, as
       long as a noisy count with a penalty on depth is positive. Its noise makes adding a record
       epsilon-private; to replace is to remove and to add, so that the noise is doubled. A pure
       guarantee of epsilon is mu-GDP for epsilon = log(Phi(mu / 2) / Phi(-mu / 2)).
    2. In each box noisy sums: of 1 (sensitivity sqrt(2), for two boxes change), of the target (2: a
       target in [-1, 1] changes its sign), and of the row. Coordinate j in box k has noise in
       units of D_kj = max |x_j| there; in those units a row moves all of its d coordinates by at
       most 2 each: sensitivity 2 sqrt(d). (The code published with the paper has 1, 1 and 1, which
       does not count that d coordinates are released.)
    3. Weighted least squares of the sums, weights 1 / count, with the known noise of the rows taken
       off the Gram matrix, and left on where it would not be positive otherwise.

    The four releases share mu as 1 : 3 : 3 : 3. An intercept is the column of counts.
    """

    def __init__(self, *, epsilon=1.0, delta=1e-6, data_norm=1.0, bounds_y=(-1, 1), random_state=0):
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.bounds_y = bounds_y
        self.random_state = random_state

    fit_intercept = True

    def _rows(self, X):
        """Entries in [-1, 1], for rows in the unit ball whose entries have 1 / sqrt(d)."""
        Z = np.asarray(X, dtype=float) * (sqrt(X.shape[1]) / self.data_norm)
        return np.column_stack([Z, np.ones(len(Z))])

    def fit(self, X, y):
        """Fit on rows whose entries are at most ``data_norm`` / sqrt(d)."""
        rng = check_random_state(self.random_state)
        Z, r = np.clip(self._rows(X)[:, :-1], -1.0, 1.0), self._targets(y)
        d, mu = Z.shape[1], Budget(self.epsilon, self.delta).mu
        of_bins, of_counts, of_rows, of_targets = mu * np.array(SHARES) / np.linalg.norm(SHARES)
        self.releases_ = {
            "count": (sqrt(2.0), sqrt(2.0) / of_counts),
            "rows": (2.0 * sqrt(d), 2.0 * sqrt(d) / of_rows),
            "targets": (2.0, 2.0 / of_targets),
        }
        self.epsilon_bins_ = log(stats.norm.cdf(of_bins / 2.0) / stats.norm.sf(of_bins / 2.0))
        boxes = private_boxes(Z, self.epsilon_bins_, rng)
        counts, rows, targets, units = box_sums(Z, r, boxes)
        counts = counts + rng.normal(scale=self.releases_["count"][1], size=counts.shape)
        scales = self.releases_["rows"][1] * units
        rows = rows + scales * rng.normal(size=rows.shape)
        targets = targets + rng.normal(scale=self.releases_["targets"][1], size=targets.shape)
        keep = counts >= LEAST_COUNT
        self.theta_ = corrected(counts[keep], rows[keep], targets[keep], scales[keep])
        return self


def private_boxes(Z, epsilon, rng):
    """[(low, high, indices of the rows)] of the leaves of PrivTree, for replacement."""
    d = Z.shape[1]
    noise = 2.0 * 3.0 / epsilon  # halving: (2 b - 1) / (b - 1) = 3; twice, for replacement
    penalty = noise * log(2.0)
    waiting = [(np.full(d, -1.0), np.full(d, 1.0), np.arange(len(Z)), 0)]
    leaves = []
    while waiting:
        low, high, members, depth = waiting.pop()
        score = max(len(members) - penalty * depth, -penalty) + rng.laplace(scale=noise)
        if score <= 0.0:
            leaves.append((low, high, members))
            continue
        side = int(np.argmax(high - low))
        middle = (low[side] + high[side]) / 2.0
        left = Z[members, side] < middle
        for inside, bound, value in ((left, 1, middle), (~left, 0, middle)):
            corners = [low.copy(), high.copy()]
            corners[bound][side] = value
            waiting.append((*corners, members[inside], depth + 1))
    return leaves


def box_sums(Z, r, boxes):
    """Counts, sums of rows and of targets, and the largest |x_j|, of each box."""
    counts = np.array([float(len(members)) for _, _, members in boxes])
    rows = np.array([Z[members].sum(axis=0) for _, _, members in boxes])
    targets = np.array([r[members].sum() for _, _, members in boxes])
    units = np.array([np.maximum(np.abs(low), np.abs(high)) for low, high, _ in boxes])
    return counts, rows, targets, units


def corrected(counts, rows, targets, scales):
    """Weighted least squares of sums, less the noise of the rows in the Gram matrix."""
    p = rows.shape[1] + 1
    if not len(counts):
        return np.zeros(p)
    design = np.column_stack([rows, counts])
    weighted = design / counts[:, None]
    gram, moment = weighted.T @ design, weighted.T @ targets
    noise = np.append((scales**2 / counts[:, None]).sum(axis=0), 0.0)
    # the column of counts has no such term: its square over the count is the count
    without = gram - np.diag(noise)
    if np.linalg.eigvalsh(without)[0] > 0.0:
        gram = without
    return np.linalg.lstsq(gram, moment, rcond=1e-10)[0]
