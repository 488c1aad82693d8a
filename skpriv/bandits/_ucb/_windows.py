"""Which of the released sums still describe the world: windows between two reads.

The sum of the rounds between two reads is the difference of two released sums, and the law of its
noise is known. So it costs no privacy to ask whether older and newer rounds have the same weights.
A window of the newest rounds is consistent if, wherever it is cut in two on a public grid, the
estimates of both parts differ by no more than their errors explain. The oldest consistent window is
used (the idea is that of Bifet and Gavalda 2007, for means of exact numbers).
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy import stats

from ..._linalg import RELATIVE_ZERO, psd_part
from ...privacy import Answer, GaussianNoise

# Where a window may begin and be cut: parts of the rounds so far, as public as the reads are.
FRACTIONS = (0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95)
LEAST_ROUNDS = 60  # of a part: fewer tell nothing beside the noise of any useful budget
# An eigenvalue of a window's Gram matrix is known to a factor of two where it is twice its noise.
MIN_RESOLUTION_FOR_WINDOWS = 2.0
# Root mean square by which a misfit moves predictions in each direction of the rows, rewards in
# [-1, 1]: where the line is not true, its weights depend on which actions are played. Without it
# regret on a stationary table was eight times as large without privacy.
MISFIT = 0.07
# Probability that a run of any length in a stationary world raises a false alarm.
FALSE_ALARMS = 0.05


@dataclass(frozen=True)
class Mark:
    """One read of the sums: where a window may begin or end.

    Attributes
    ----------
    rounds : int
        Rounds in the sum.
    answer : Answer
        The released sum of all of them.
    span : callable
        ``span(earlier)`` is the law of the noise of the sum since an earlier mark, or None where
        it is not known.
    """

    rounds: int
    answer: Answer
    span: Any


class Windows:
    """Chooses the oldest consistent window, and notes when the world has changed.

    Parameters
    ----------
    equations : callable
        Equations of an answer.
    estimate : callable
        ``estimate(equations)`` is a Region: centre and covariance of the weights.
    exact : bool
        Whether the sums have no noise. Then a misfit counts in every comparison: elsewhere it does
        for alarms alone, since noise hides the directions in which it is large, and a window that
        is too short for one read costs little.

    Attributes
    ----------
    changes : list of int
        Numbers of rounds at which a read said that the world had changed.
    """

    # Bound on the probability with which a window of a stationary world looks inconsistent by
    # chance: one in which a change is as likely as not is left. That is a decision for one read,
    # and no alarm: a wrong one costs some data until the next read. Errors are overrated (variances
    # are those of rewards, not of residuals), so that it is seldom wrong: on six stationary
    # environments regret was at most 4% more than without windows (benchmarks/bandit_drift.py), and
    # with weights that turn slowly a fifth less than at 0.003.
    doubt = 0.5

    def __init__(self, equations: Any, estimate: Any, exact: bool = False) -> None:
        self._equations, self._estimate = equations, estimate
        self._misfit = MISFIT if exact else 0.0
        self._marks: list[Any] = []
        self._origin, self._tests = 0, 0  # rounds before the last alarm are not used again
        self.changes: list[int] = []

    def add(self, mark: Any) -> None:
        """Note a read."""
        self._marks.append(mark)

    def choose(self) -> Any:
        """Equations of the oldest consistent window that ends with the last read."""
        now = self._marks[-1]
        self._tests += 1
        starts = self._starts(now)
        alarm = self._alarm(len(starts))
        regions: dict = {}
        for place, start in enumerate(starts):
            cuts, given = starts[place + 1 :], (now, regions)
            if start is starts[0]:
                seen = [cut for cut in cuts if self._gap(start, cut, *given, MISFIT) < alarm]
                if seen:
                    self._origin = seen[-1].rounds
                    self.changes.append(now.rounds)
                    return self._since(seen[-1], now)
            gaps = [self._gap(start, cut, *given, self._misfit) for cut in cuts]
            if min(gaps, default=1.0) >= self.doubt / len(starts):
                return self._since(start, now)
        return self._since(starts[-1], now)

    def _alarm(self, n_cuts):
        """Probability below which a cut raises an alarm: over all reads they add up."""
        return FALSE_ALARMS * 6.0 / (np.pi * self._tests) ** 2 / n_cuts

    def _starts(self, now):
        """Marks at which a window may begin, the oldest first.

        The noise since a read in the middle of an earlier phase is not known: after an alarm there,
        the first window begins with the end of that phase.
        """
        usable = [
            mark
            for mark in self._marks[:-1]
            if mark.rounds >= self._origin and self._known(mark, now)
        ]
        found = [usable[0] if self._origin and usable else NOTHING]
        for fraction in FRACTIONS:
            place = self._origin + fraction * (now.rounds - self._origin)
            earlier = [mark for mark in usable if mark.rounds <= place]
            if not earlier or earlier[-1].rounds - found[-1].rounds < LEAST_ROUNDS:
                continue
            if now.rounds - earlier[-1].rounds >= LEAST_ROUNDS:
                found.append(earlier[-1])
        return found

    def _known(self, mark, now):
        """Whether the law of the noise since a mark is known."""
        return now.span(mark) is not None

    def _since(self, start, end):
        """Equations of the rounds between two marks."""
        if start is NOTHING:
            return self._equations(end.answer)
        value = end.answer.value - start.answer.value
        return self._equations(Answer(value, end.rounds - start.rounds, end.span(start)))

    def _gap(self, start, cut, now, regions, misfit):
        """Probability of estimates before and after a cut that differ so much by chance.

        The noise of a sum and that of its continuation may be correlated; twice the sum of both
        covariances bounds the covariance of a difference whatever the correlation is, and the
        factor 1 + |correlation| where it is known. What a misfit moves is added to it.
        """
        parts = []
        for first, last in ((start, cut), (cut, now)):
            key = first.rounds, last.rounds
            if key not in regions:
                regions[key] = self._estimate(self._since(first, last))
            parts.append(regions[key])
        (old, _), (new, rows) = parts
        scatter = (1.0 + self._correlation(start, cut, now)) * (old.form + new.form)
        scatter += misfit**2 * np.linalg.inv(rows)
        difference = new.centre - old.centre
        square = float(difference @ np.linalg.solve(scatter, difference))
        return float(stats.chi2.sf(square, len(difference)))

    def _correlation(self, start, cut, now):
        """Absolute correlation of the noise before and after a cut, from the noise of the whole."""
        whole = _scale(start, now)
        before, after = _scale(start, cut), _scale(cut, now)
        if not before * after:
            return 0.0
        found = (whole**2 - before**2 - after**2) / (2.0 * before * after)
        return min(abs(found), 1.0)


def mean_rows(equations):
    """Mean of phi phi' over rounds, of eigenvalues that are not below the noise."""
    noise = equations.design_scale * sqrt(2.0 * len(equations.design))
    return psd_part(equations.design, max(noise, equations.n * RELATIVE_ZERO)) / equations.n


def _scale(first, last):
    law = last.answer.noise if first is NOTHING else last.span(first)
    return law.scale


NOTHING = Mark(0, Answer(np.zeros(0), 0, GaussianNoise(0.0)), None)
