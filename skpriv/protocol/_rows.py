"""Rows that stay on the devices: an estimator's fit meets reports that have been collected."""

from ..exceptions import PrivacyError
from ..records import PublicOrder, Rows
from ._device import public_order

NO_ROWS = (
    "the rows are on the users' devices, which send one index of a codebook each: pass "
    "SSPRegressor, LinearRegression, ReweightedRegressor or ImproperSGDRegressor with "
    "privacy='local' or 'shuffle' and channel='codebook'. Other estimators ask what a device "
    "cannot answer."
)


class RoundNeeded(Exception):
    """A fit has come to a query that devices have not answered yet.

    Parameters
    ----------
    query : Query
    law : CodebookNoise
        Law of the noise of one report.
    start, stop : int
        The users who are asked, by their position in the public order.
    """

    def __init__(self, query, law, start, stop):
        super().__init__(query.name)
        self.query, self.law, self.start, self.stop = query, law, start, stop


class DeviceOrder(PublicOrder):
    """Public order of users of which only positions are needed."""

    def users(self, start, stop, subset=None):
        """Users from position start up to stop."""
        if subset is not None:
            raise NotImplementedError("devices are asked by their position in the order alone.")
        return range(start, stop)


class DeviceRows(Rows):
    """Rows of n users who each keep their own; queries are answered from the rounds so far.

    A fit is run once more after every round, on this: it takes the same public decisions as before
    until it comes to the first query without an answer, which is the next round. So an estimator
    needs no code of its own for devices, and the server no state but the reports.

    Parameters
    ----------
    n, n_features : int
    seed : int
        Seed of the public order of users.
    rounds : list of LiftedReports
        Reports of the rounds that are closed.
    paid_for : bool
        Whether the collection was charged before, in this process.
    lineage : Lineage or None
        Lineage of the collection's file: ledgers that know it are not charged again.
    """

    on_devices = True

    def __init__(self, n, n_features, seed, rounds, paid_for, lineage=None):
        self.n, self.n_features, self._paid_for = n, n_features, paid_for
        self.lineage = lineage
        self._seed, self._rounds, self._asked = seed, rounds, 0

    @property
    def paid_for(self):
        """Whether the collection was charged before."""
        return self._paid_for

    def pieces(self, most, subset=None, sparse=True):
        """Refuse: no server has rows."""
        raise PrivacyError(NO_ROWS)

    def sum(self, query, subset=None):
        """Refuse: only reports leave the devices."""
        raise PrivacyError(NO_ROWS)

    def order(self, permutation):
        """Public order of the collection's seed, whatever the estimator would draw."""
        return DeviceOrder(public_order(self.n, self._seed))

    def collect(self, query, law, users):
        """Reports of a round, if it is closed.

        Raises
        ------
        RoundNeeded
            If it is not.
        """
        self._asked += 1
        if self._asked > len(self._rounds):
            raise RoundNeeded(query, law, users.start, users.stop)
        return self._rounds[self._asked - 1]
