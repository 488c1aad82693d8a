"""Public times at which running sums are read."""

from dataclasses import dataclass

FIRST = 20  # rounds before the first read, and between the first ones
GROWTH = 0.05  # of the rounds so far, between two later reads
READS = 400  # of one stream: these times then reach 4e10 rounds
BATCH = 200  # users of the first shuffled batch
BATCH_GROWTH = 0.3
EVEN_READS = 200  # of the first phase, with a given period


@dataclass(frozen=True)
class EvenTimes:
    """A read every ``every`` rounds; a phase has twice as many as the one before.

    Parameters
    ----------
    every : int
    first_reads : int
        Reads of the first phase.
    """

    every: int
    first_reads: int = EVEN_READS

    def reads(self, phase):
        """Reads of a phase: of one stream."""
        return self.first_reads * 2**phase

    def length(self, rounds):
        """Rounds between a read and the one before it, which came after so many rounds."""
        return self.every

    def end(self, rounds, reads):
        """Rounds after so many further reads."""
        return rounds + reads * self.every


@dataclass(frozen=True)
class GrowingTimes:
    """Reads after 20, 40, ... rounds, and from 400 rounds on after 1.05 times as many each.

    What was learned is used soon however long the run becomes, so that nobody has to know how long
    it will be: 400 reads reach 4e10 rounds. The error of an estimate falls by at most 2.5% between
    two reads, so that more reads would help little, and cost noise.

    Parameters
    ----------
    first : int
        Rounds before the first read.
    growth : float
        Rounds between two reads, as a part of the rounds so far; at least ``every``.
    every : int
        Rounds between two reads, at least.
    n_reads : int
        Of a phase. The shuffle model has one: a batch is a stream of its own, whose noise is
        calibrated to its size.
    """

    first: int = FIRST
    growth: float = GROWTH
    every: int = FIRST
    n_reads: int = READS

    def reads(self, phase):
        """Reads of a phase: of one stream."""
        return self.n_reads

    def length(self, rounds):
        """Rounds between a read and the one before it, which came after so many rounds."""
        if rounds == 0:
            return self.first
        return max(self.every, int(self.growth * rounds))

    def end(self, rounds, reads):
        """Rounds after so many further reads."""
        for _ in range(reads):
            rounds += self.length(rounds)
        return rounds
