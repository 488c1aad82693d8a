"""Private moment sums over an open-ended run, read at public times."""

import uuid
from dataclasses import replace
from typing import Any

import numpy as np

from ._windows import Mark
from ...privacy import (
    Answer,
    GaussianNoise,
    PrivacyReport,
    charge,
    open_stream,
    parallel_part,
)

MOST_KEPT_ROWS = 256  # rows, fewer of which are kept until there are so many, or a read


class PhasedSums:
    """Running sum of a query, read at public times, for as many rounds as come.

    A phase is one stream. Phases have disjoint, publicly indexed rounds, so that one record pays
    for one of them; what a phase has released in its last read is kept and added to, since sums
    are additive. Every draw and every charge is the streams'.

    Parameters
    ----------
    query : Query
    times : GrowingTimes
        Public lengths between reads, and reads of each phase.
    options : dict
        privacy, budget, places and name, for :func:`skpriv.privacy.open_stream`, and
        releases: how many records of a person pay for a report each.
    random_state : None or RandomState
        Seed of the noise; None is secure.
    numbering : Numbering
        Numbers by which copies of the policy find the reads that were made.
    """

    def __init__(self, query, times, options, random_state, numbering):
        self.query, self.times, self._numbering = query, times, numbering
        self.pending = self.rounds = 0  # since the last read, and before it
        self._opened = self._planned = 0  # streams so far, and rounds for which there are some
        self._options, self._random_state = options, random_state
        self._partition = uuid.uuid4().hex
        self._streams = []  # the present phase, and those opened for rounds on their way
        self._past = Answer(np.zeros(query.shape), 0, GaussianNoise(0.0))
        self._last = self._past
        self.mark: Any = None  # the last read, as an end of a window
        self._secure = random_state is None
        self._report: Any = None  # until the first stream is open
        self._users: list = []  # of every stream
        self._kept = 0  # rows that are not pushed yet
        self._rows: Any = None
        self._rewards: Any = None
        self.reserve(1)

    @property
    def length(self):
        """Public number of rounds between the last read and the next one."""
        return self.times.length(self.rounds)

    @property
    def report(self):
        """`PrivacyReport`, with a row for each stream and the users in it so far."""
        rows = self._report.rows
        for place, n in enumerate(self._users):
            rows[place] = replace(rows[place], records=n)
        return self._report

    @property
    def place(self):
        """Number of the next read among those of all phases: that by which copies find it."""
        stream, phase = self._streams[0], self._opened - len(self._streams)
        ended = stream.reads == stream.n_reads
        return ((phase + ended) << 40) + (0 if ended else stream.reads)  # a phase has fewer reads

    def covers(self, rounds):
        """Whether the streams are open that so many further rounds need."""
        return self.rounds + self.pending + rounds <= self._planned

    def reserve(self, rounds):
        """Open, hence charge, the streams that so many further rounds need."""
        while not self.covers(rounds):
            self._open()

    def take(self, X, y):
        """Add records, and yield equations of all so far at every public time that is passed."""
        return self._taken(len(X), lambda part: self._keep(X[part], y[part]))

    def take_late(self, X, y, n):
        """Add records that came in so many rounds, none of them beyond the next public time."""

        def add(part):
            self._push()
            self._streams[0].push(X, y, n)

        return self._taken(n, add)

    def take_reports(self, reports):
        """Add reports that users have made, as `take` adds records."""
        return self._taken(
            len(reports.directions), lambda part: self._streams[0].take(reports.part(part))
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
            add(slice(start, stop))
            self._users[-len(self._streams)] += stop - start
            self.pending += stop - start
            start = stop
            if self.pending == length:
                self.rounds, self.pending = self.rounds + length, 0
                self._push()
                self._last = self._streams[0].read()
                total = self._total(self._last)
                self.mark = Mark(self.rounds, total, _Span(self._streams[0], total))
                yield self.query.equations(total)

    def widen(self, query, extra):
        """Go on with a query of further features, which were 0; return equations of all so far.

        The phase ends here, at a public time, with a read of the users who are in it: a new one
        serves the others. The new coordinates have no noise of earlier phases, and less noise than
        its law says moves no bound on a norm (Anderson's inequality).
        """
        if self.pending:
            self._push()
            self.rounds, self.pending = self.rounds + self.pending, 0
            self._last = self._streams[0].read()
        past = self._total(self._last)
        self._past = Answer(self.query.widened(past.value, extra), past.n, past.noise)
        self._last = Answer(np.zeros(query.shape), 0, GaussianNoise(0.0))
        self.query, self._streams, self._planned = query, [], self.rounds
        self.reserve(1)
        return self.query.equations(self._past) if self._past.n else None

    def _keep(self, X, y):
        """Keep a few rows until there are a block of them: one sum is faster than many."""
        if self._kept + len(X) > MOST_KEPT_ROWS:
            self._push()
        if len(X) > MOST_KEPT_ROWS:
            self._streams[0].push(X, y)
            return
        if self._rows is None:
            self._rows, self._rewards = (
                np.empty((MOST_KEPT_ROWS, X.shape[1])),
                np.empty(MOST_KEPT_ROWS),
            )
        stop = self._kept + len(X)
        self._rows[self._kept : stop], self._rewards[self._kept : stop] = X, y
        self._kept = stop

    def _push(self):
        """Give the rows that were kept to the present stream."""
        if self._kept:
            X, y = self._rows[: self._kept], self._rewards[: self._kept]
            self._kept, self._rows, self._rewards = 0, None, None
            self._streams[0].push(X, y)

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
                batch=batch,
                places=self._options["places"],
            )
            for _ in range(self._options["releases"] - 1):  # a person pays for so many of them
                charge(stream.report.charged, self._options["name"])
        self._streams.append(stream.number(self._numbering.part(self._opened)))
        self._opened += 1
        self._planned = self.times.end(planned, reads)
        if self._report is None:
            self._report = PrivacyReport(
                self._options["name"], stream.model, self._options["budget"], self._secure
            )
            self._report.disjoint = True
            self._report.simulated = stream.report.simulated
        (row,) = stream.report.rows  # what the session said of it
        self._report.add(replace(row, records=0))
        self._users.append(0)


class _Span:
    """Law of the noise of the sum between an earlier read and this one.

    Parameters
    ----------
    stream : Stream
        The stream of this read: what earlier phases released is the same in both sums.
    total : Answer
        The sum of all rounds up to this read.
    """

    def __init__(self, stream, total):
        self._stream, self._reads, self._noise = stream, stream.reads, total.noise

    def __call__(self, earlier):
        span = earlier.span
        if span._stream is self._stream:
            return self._stream.between(span._reads, self._reads)
        if span._reads < span._stream.n_reads:
            return None  # a phase of its own, in the middle: its noise is not asked for
        return self._noise.minus(span._noise)  # the earlier sum is the whole of its phase
