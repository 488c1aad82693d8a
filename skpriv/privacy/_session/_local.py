"""The local model: every user adds the noise, before anything leaves the device."""

from math import ceil, floor

import numpy as np

from ...exceptions import PrivacyError
from .._answer import Answer
from .._noise._privunit import PrivUnitNoise
from ._base import CHUNK_ROWS, SHARE_SLACK, Session


class LocalSession(Session):
    """Every user answers one query, with the full budget; shares divide the users.

    Which users answer which query is a public random order, drawn without looking at them. Blocks
    of users are disjoint, so that each record pays for one report (parallel composition). A sum of
    m reports with N(0, s^2) noise has N(0, m s^2) noise: m users cost one draw, exactly.
    """

    model = "local"

    _order = None

    def _check(self, budget, n, smallest_share):
        super()._check(budget, n, smallest_share)
        if floor((smallest_share + SHARE_SLACK) * n) < 1:
            raise PrivacyError(
                f"n_samples={n} is too few: in the local model each user answers one query, and "
                f"a query needs a share of {smallest_share:.4g} of the users. "
                f"Give at least {ceil(1.0 / smallest_share)} rows, or use privacy='central'."
            )

    def _answer(self, query, share):
        if self._order is None:
            self._order = self._source.permutation(self.n)
        stop = self._users(self._used)
        start = self._users(self._used - share)
        noise = query.local_noise(self._report_budget(stop - start))
        total, users = noise.summed(stop - start), self._order[start:stop]
        if isinstance(noise, PrivUnitNoise):
            value = self._gathered(query, users, noise)
        else:
            value = self._source.add(self._exact(query, users), total)
        return Answer(value, stop - start, total), self._report_cost(query, noise)

    def _gathered(self, query, users, noise):
        """Sums of blocks from one PrivUnit report a user, which no single draw can replace."""
        buckets = np.zeros((noise.rows, noise.size))
        for start in range(0, len(users), CHUNK_ROWS):
            chunk = users[start : start + CHUNK_ROWS]
            rows, reports = query.reports(self._X[chunk], self._y[chunk], noise, self._source)
            for column, values in zip(buckets.T, reports.T, strict=True):
                column += np.bincount(rows, values, minlength=noise.rows)
        return noise.estimate(buckets)

    def _noise(self, query, share):
        users = self._records(share)
        return query.local_noise(self._report_budget(users)).summed(users)

    def _records(self, share):
        return self._users(self._used + share) - self._users(self._used)

    def _users(self, share):
        return floor((share + SHARE_SLACK) * self.n)

    def _report_budget(self, users):
        """Budget of each report of a block of this many users."""
        return self._budget

    def _report_cost(self, query, noise):
        """Cost of one report to its user."""
        return noise.cost(query.sensitivity)
