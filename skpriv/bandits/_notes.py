"""What a policy says of its bounds and weights, by released moments and their noise alone."""

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from ..privacy import TOLD_ABOVE
from ._ucb._sums import mean_square

if TYPE_CHECKING:
    from .._estimation._moments import NormalEquations
    from .._estimation._public_maps import RecordMap

FULL = 0.95  # least mean square length of rows of which most have the largest length
# Least part of it that is of one feature, which is then 5 times as long as all others
NEARLY_ALL = 0.96
OF_A_TENTH = 0.01 / 3.0  # variance of rewards that are spread evenly over a tenth of [-1, 1]


def moment_notes(equations: "NormalEquations", maps: "RecordMap", n_blocks: int) -> list[str]:
    """Sentences about what the moments of the rounds exclude by three deviations of their noise.

    Parameters
    ----------
    equations : NormalEquations
        Released sums of scaled rows of the actions that were played, and of rewards. Those of
        several epochs have weights of at most 1, so that lengths are understated.
    maps : RecordMap
        The public scales.
    n_blocks : int
        Number of actions that have weights of their own; 1 where all share them.

    Returns
    -------
    list of str
    """
    length, constant = maps.row_map.parts
    n = equations.n
    if equations.weight and constant:  # the weights of all rounds
        n = equations.design[-1, -1] / constant**2
    squares = np.diagonal(equations.design)[: maps.n_features].reshape(n_blocks, -1)
    noise = TOLD_ABOVE * equations.design_scale
    error = noise * sqrt(squares.size)  # of their sum
    total = squares.sum()
    columns = squares.sum(axis=0)
    kind, parts = ("actions", squares) if n_blocks > 1 else ("features", squares.T)
    hidden = np.flatnonzero(parts.sum(axis=1) <= noise * sqrt(parts.shape[1])).tolist()
    # Of the square, whose weight is at least a half, and of the constant times the mean
    target_error = 2.0 * TOLD_ABOVE * equations.target_scale / n
    margin = mean_square(equations, constant) + target_error - OF_A_TENTH
    said = {
        "Nearly all rows are as long as data_norm, or longer and were clipped to it: if they are "
        "longer, raise data_norm or scale the features.": total - error > FULL * n * length**2,
        f"Feature {columns.argmax()} is more than 5 times as long as all others together, of which "
        "little can be learned: bring the features to one scale.": len(columns) > 1
        and columns.max() - error > NEARLY_ALL * total,
        "The rewards use less than a tenth of the range in bounds_y, which may be too wide; or "
        "they are beyond its end and were clipped.": constant * margin + target_error < 0.0,
        f"After {equations.n:,.0f} rounds the noise hides the weights of {kind} {hidden[:10]}: "
        "they are known after more rounds, with longer features or a larger epsilon.": hidden,
    }
    return [words for words, wrong in said.items() if wrong]
