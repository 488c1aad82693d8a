"""Codebook reports about unit vectors in blocks: what PrivUnit does, with a secure sampler."""

from dataclasses import dataclass

from ._codebook_law import best_codebook
from ._privunit import PrivUnitNoise


@dataclass(frozen=True)
class CodebookBlocksNoise(PrivUnitNoise):
    """What codebook reports, spread over rows of a Hadamard matrix, add to the sums of blocks.

    As :class:`PrivUnitNoise`, from which it takes all: a report is a unit vector whose mean is a
    multiple of the secret one, with two second moments. It is the direction of an index, so that
    the price rests on one exact integer draw. The row of the matrix is public, drawn without a look
    at the record; the sign that it gives the vector is part of the secret.

    Parameters
    ----------
    epsilon, size, radius, blocks, reports
        As in :class:`PrivUnitNoise`.
    """

    @property
    def cap(self):
        """Law of one report."""
        return best_codebook(self.size, self.epsilon, "vector")

    def directions(self, vectors, source):
        """One report about each row, the direction of an index."""
        return source.codebook_reports(vectors, self.cap)

    def __str__(self):
        return "codebook"
