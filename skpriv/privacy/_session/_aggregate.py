"""The model in which nobody sees a row, and users add the noise: sums that are hidden."""

from dataclasses import dataclass
from math import exp, prod, sqrt

import numpy as np

from ...exceptions import PrivacyError
from .._accounting._budget import Budget
from .._accounting._capabilities import AGGREGATE
from .._accounting._cost import Cost
from .._accounting._lattice import Devices, Lattice
from .._accounting._sharing import sharing_security
from .._noise._laws import GaussianNoise
from .._query import Answer
from .._stream._local import SharedSumStream
from ._base import Session


@dataclass(frozen=True)
class SummedNoise(GaussianNoise):
    """Sum of the discrete Gaussian noise of all users, on a grid.

    Parameters
    ----------
    lattice : Lattice
        The grid, and the noise of one user.
    size : int
        Number of coordinates.
    """

    lattice: Lattice = Lattice(0.0, 0, 0)  # by `of`
    size: int = 1

    @classmethod
    def of(cls, lattice, size):
        """Law of the noise that is counted on."""
        return cls(lattice.scale, lattice, size)

    def cost(self, sensitivity):
        """Price of a sum of this l2 sensitivity: the rounding to the grid is part of it."""
        return Cost.from_mu(self.lattice.mu(sensitivity, self.size))

    def collected(self, query, rows, users, source):
        """Refuse: no report hides behind one user's part of the noise, which is next to nothing."""
        raise PrivacyError(
            f"{query.name!r} has noise that all users add together: a single report with a user's "
            "part of it would show the record. Devices send shares: skpriv.protocol.report."
        )


class AggregateSession(Session):
    """Every user adds a small part of the noise, and a protocol hides all but the noisy sum.

    A user rounds the vector of the own record to a grid, adds discrete Gaussian noise and sends
    shares that add up to the result modulo 2^64. All users are in every answer: shares of a fit
    divide the budget, and the noise of an answer is that of a trusted curator. What can be had from
    sums can be had here; choosing the largest coordinate of a sum that nobody sees cannot.

    Here the rows are at hand, and one draw stands for the noise of all users (the laws differ by a
    relative 1e-9). On devices the rows stay where they are: see :mod:`skpriv.protocol`.

    Notes
    -----
    **Privacy guarantee**: mu-Gaussian-DP of the sums, exactly as for a curator, proved in
    docs/mathematics/aggregate.md. Users trust that those who add up do not collude, and that at
    least as many devices add their noise as the report says. If all who add up collude,
    they see each record almost as it is.
    """

    model, capabilities = "aggregate", AGGREGATE
    streams = {"shared-sum": SharedSumStream}

    def __init__(self, rows, *arguments, **named):
        self._simulated = getattr(rows, "devices", None) is None
        self._mixed = not self._simulated and rows.devices.transport == "shuffled-shares"
        super().__init__(rows, *arguments, **named)
        self.report.simulated = self._simulated
        if self.n:
            self.report.devices = self._devices

    def begin(self, stream):
        """Calibrate and book a stream, of batches whose users all add their noise."""
        self.report.devices = Devices(stream.batch, stream.batch)
        return super().begin(stream)

    def _check(self, budget, n, smallest_share):
        if self._currency != "gdp":
            raise PrivacyError(
                f"privacy={self.model!r} has Gaussian noise alone, which users can add in parts: "
                "pass delta in (0, 1), and use privacy='central' for selections."
            )
        super()._check(budget, n, smallest_share)

    def _answer(self, query, slot, law):
        lattice = law.lattice
        zero = np.zeros((1, self._rows.n_features))
        lattice.check(float(np.abs(query.sum(zero, np.zeros(1))).max()), self._change(query))
        if self._simulated:
            exact = self._pieces.sum(query, slot.subset)
            noise = GaussianNoise(law.scale)
            value, counted = self._source.add(exact, noise), self.persons is None
            return Answer(value, self._size(slot), noise, counted=counted)
        # Of all the shares of a fit, those of this query may be as far from their sums
        security = sharing_security(self._budget) * slot.share if self._mixed else 0.0
        prices = self.report, law.cost(self._change(query))
        value, n = self._rows.shared_sum(query, lattice, security, prices, slot.subset)
        return Answer(value, n, GaussianNoise(law.scale * sqrt(n / lattice.adding)))

    def _law(self, query, slot):
        return SummedNoise.of(self._lattice(query, slot), prod(query.shape))

    def _lattice(self, query, slot):
        users, mu = self._count(slot), self._left(self._budget).mu * sqrt(slot.share)
        devices = self._devices
        adding = max(1, users * devices.adding // devices.total)
        return Lattice.calibrated(self._change(query), mu, prod(query.shape), users, adding)

    def _left(self, budget):
        """What the noise must meet: where shares are mixed, their security is taken off delta."""
        if not self._mixed:
            return budget
        return Budget(budget.epsilon, budget.delta - self._owed(budget))

    def _owed(self, budget):
        return (1.0 + exp(min(budget.epsilon, 700.0))) * sharing_security(budget)

    def _price(self, budget):
        price = Cost.from_mu(self._left(budget).mu)
        return price + Cost(delta=self._owed(budget)) if self._mixed else price

    @property
    def _devices(self):
        """How many there are, and how many of them are counted on."""
        return Devices(self.n, self.n) if self._simulated else self._rows.devices

    def _stream_law(self, stream, slot):
        return stream.batch_noise(self._budget)
