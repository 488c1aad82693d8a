"""Online LinUCB with the reports as they were published: noisy features and a noisy reward.

Reference code for the comparison in docs/experiments.md, with the noise of one joint release.
"""

from dataclasses import dataclass, replace
from math import sqrt
from types import SimpleNamespace

import numpy as np

from skpriv._estimation._moments import NormalEquations
from skpriv._estimation._public_maps import RecordMap
from skpriv.bandits import OnlineLinUCB
from skpriv.privacy import ROUNDING, Query, begin_stream


@dataclass(frozen=True)
class PairQuery(Query):
    """Sum of (phi, r): what each user reports with noise.

    Replacing a user moves (phi, r), ||phi|| <= 1 and |r| <= 1, by at most (2^2 + 2^2)^(1/2),
    attained at opposite unit vectors with opposite rewards. (The published noise is calibrated to 2
    for each of the two, with the whole budget for each: not (epsilon, delta)-LDP for delta = 1e-5
    and epsilon = 1 or 10.)
    """

    maps: RecordMap
    name: str = "features and reward"
    sensitivity: float = 2.0 * sqrt(2.0) * ROUNDING

    @property
    def shape(self):
        """Number of coordinates."""
        return (self.maps.size + 1,)

    def records(self, X, y):
        """The pairs of a chunk of users, one a row."""
        return np.column_stack([self.maps.rows(X), self.maps.target(y)])

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        return self.records(X, y).sum(axis=0)


class PairReports:
    """Moment sums of x~ = phi + eta and y~ = r + xi, corrected for the known noise.

    Same use as `PhasedSums`: ``reserve`` and ``take``, which yields NormalEquations with design
    sum x~ x~' - n s^2 I and target sum x~ y~. Their errors are products of noises: for the same
    guarantee many times those of sums that are perturbed directly.

    Parameters
    ----------
    maps : RecordMap
    every : int
        Rounds between two reads (public).
    budget : Budget
    name : str
    random_state : None or RandomState
    numbering : Numbering
        Numbers by which copies of the policy find the reports that were sent.
    """

    def __init__(self, maps, every, budget, name, random_state, numbering):
        self.maps, self.every, self.pending, self.n = maps, every, 0, 0
        self.query = PairQuery(maps)
        self.name, self.norm = self.query.name, self.query.norm
        self.sensitivity, self.n_reads, self.batch = self.query.sensitivity, 1, 0
        self._numbering = numbering
        self._design = np.zeros((maps.size, maps.size))
        self._target = np.zeros(maps.size)
        self._square = 0.0
        begin_stream("local", self, budget, random_state, name)

    def begin(self, noise, cost, report, source):
        """Take what the session has calibrated, charged and reported."""
        self.noise, self.report, self._source = noise, report, source
        return self

    @property
    def length(self):
        """Public number of rounds between two reads."""
        return self.every

    def covers(self, rounds):
        """Whether so many further rounds need nothing: a user who comes later pays the same."""
        return True

    def reserve(self, rounds):
        """Nothing to open: a user who comes later pays the same, once."""

    def take(self, X, y):
        """Randomise records, and yield the equations at every public time that is passed."""
        start, p = 0, self.maps.size
        while start < len(X):
            stop = min(len(X), start + self.every - self.pending)
            # A copy of the policy repeats the reports that users have sent.
            sent = self._source.add(self.query.records(X[start:stop], y[start:stop]), self.noise)
            sent = self._numbering.settle(self.n, sent)
            noisy, rewards = sent[:, :p], sent[:, p]
            excess = len(sent) * self.noise.scale**2
            self._design += noisy.T @ noisy - excess * np.eye(p)
            self._target += noisy.T @ rewards
            self._square += rewards @ rewards - excess
            self.n += len(sent)
            self.pending, start = (self.pending + len(sent)) % self.every, stop
            if self.pending == 0:
                yield self.equations()

    @property
    def mark(self):
        """The sums so far, in place of the answer that a policy keeps."""
        return SimpleNamespace(answer=self.equations())

    def equations(self):
        """Sums so far; the scales are root mean squares over coordinates, ||phi|| = |r| = 1."""
        s2, p = self.noise.scale**2, self.maps.size
        # x eta' + eta x' + eta eta' - s^2 I, and eta r + x xi + eta xi
        design = sqrt(self.n * (2.0 * s2**2 + 4.0 * s2 / p))
        target = sqrt(self.n * (s2**2 + s2 * (1.0 + 1.0 / p)))
        return NormalEquations(
            design=self._design.copy(),
            target=self._target.copy(),
            gram=self._design.copy(),
            square=float(self._square),
            n=self.n,
            symmetric=True,
            design_scale=design,
            target_scale=target,
            gram_scale=design,
        )


class PairOnlineLinUCB(OnlineLinUCB):
    """`OnlineLinUCB` on reports of pairs, with asymptotic widths."""

    def _since(self, before):
        """Equations of the rounds after an earlier read, whose errors are independent of it."""
        now = self._sums.equations()
        if before is None:
            return now
        later = {
            name: getattr(now, name) - getattr(before, name)
            for name in ("design", "target", "gram", "square", "n")
        }
        part = sqrt(later["n"] / now.n)
        scales = {
            name: part * getattr(now, name)
            for name in ("design_scale", "target_scale", "gram_scale")
        }
        return replace(now, **later, **scales)

    def _open_sums(self):
        with self._accounting():
            return PairReports(
                self._scaling, self._times.every, self._round_budget, type(self).__name__,
                self._noise_state(), self._numbering.part("reports"),
            )  # fmt: skip
