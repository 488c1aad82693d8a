"""Private moment sums over an open-ended run, read at public times."""

import uuid
from dataclasses import replace
from typing import Any

import numpy as np

from ...privacy import (
    Answer,
    GaussianNoise,
    PrivacyReport,
    ReportRow,
    open_stream,
    parallel_part,
)


class PhasedSums:
    """Running sum of a query, read at public times, for as many rounds as come.

    A phase is one stream. Phases have disjoint, publicly indexed rounds, so that one record pays
    for one of them; what a phase has released in its last read is kept and added to, since sums
    are additive. Every draw and every charge is the streams'.

    Parameters
    ----------
    query : Query
    times : EvenTimes or GrowingTimes
        Public lengths between reads, and reads of each phase.
    options : dict
        privacy, budget, mechanism and name, for :func:`skpriv.privacy.open_stream`.
    random_state : None or RandomState
        Of the noise; None is secure.
    """

    def __init__(self, query, times, options, random_state):
        self.query, self.times = query, times
        self.pending = self.rounds = 0  # since the last read, and before it
        self._opened = self._planned = 0  # streams so far, and rounds for which there are some
        self._options, self._random_state = options, random_state
        self._partition = uuid.uuid4().hex
        self._streams = []  # the present phase, and those opened for rounds on their way
        self._past = Answer(np.zeros(query.shape), 0, GaussianNoise(0.0))
        self._last = self._past
        self._secure = random_state is None
        self.report: Any = None  # until the first stream is open
        self.reserve(1)

    @property
    def length(self):
        """Public number of rounds between the last read and the next one."""
        return self.times.length(self.rounds)

    def reserve(self, rounds):
        """Open, hence charge, the streams that so many further rounds need."""
        while self._planned < self.rounds + self.pending + rounds:
            self._open()

    def take(self, X, y):
        """Add records, and yield equations of all so far at every public time that is passed."""
        return self._taken(len(X), lambda stream, part: stream.push(X[part], y[part]))

    def take_reports(self, reports):
        """Add reports that users have made, as `take` adds records."""
        return self._taken(
            len(reports.directions), lambda stream, part: stream.take(reports.part(part))
        )

    @property
    def code(self):
        """Code of the users' reports."""
        return self._streams[0].noise.code

    def _taken(self, n, add):
        """Add n records in parts that end at public times, and yield equations there."""
        start = 0
        while start < n:
            length = self.length
            stop = min(n, start + length - self.pending)
            if self._streams[0].reads == self._streams[0].n_reads:
                self._past = self._total(self._last)
                self._streams.pop(0)
            add(self._streams[0], slice(start, stop))
            self._count(stop - start)
            self.pending += stop - start
            start = stop
            if self.pending == length:
                self.rounds, self.pending = self.rounds + length, 0
                self._last = self._streams[0].read()
                yield self.query.equations(self._total(self._last))

    def _total(self, answer):
        if not self._past.n:
            return answer
        noise = self._past.noise.plus(answer.noise)
        return Answer(self._past.value + answer.value, self._past.n + answer.n, noise)

    def _open(self):
        reads, planned = self.times.reads(self._opened), self._planned
        batch = self.times.length(planned)
        with parallel_part(self._opened, partition=self._partition):
            stream = open_stream(
                self._options["privacy"],
                self.query,
                self._options["budget"],
                reads,
                self._random_state,
                self._options["name"],
                mechanism=self._options["mechanism"],
                batch=batch,
            )
        self._streams.append(stream)
        self._opened += 1
        self._planned = self.times.end(planned, reads)
        if self.report is None:
            self.report = PrivacyReport(
                self._options["name"], stream.model, self._options["budget"], self._secure
            )
            self.report.disjoint = True
        self.report.add(ReportRow.of_noise(self.query, 1.0, 0, stream.noise, stream.cost))

    def _count(self, n):
        """Add n users, a public number, to the report's row of the present stream."""
        rows, place = self.report.rows, self._opened - len(self._streams)
        rows[place] = replace(rows[place], records=rows[place].records + n)
