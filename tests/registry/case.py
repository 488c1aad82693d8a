"""How one class is made and attacked."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from skpriv._linalg import unvech
from skpriv.records import as_rows

ORDER = {"l1": 1, "l2": 2, "linf": np.inf}


def _nuclear(change):
    """Sum of the nuclear norms of the symmetric matrices whose vech coordinates are the rows."""
    return sum(np.linalg.norm(unvech(row, int(np.sqrt(2 * len(row)))), "nuc") for row in change)


def answer(asked, X, y):
    """Exact answer: of a query on a chunk as it is, of a procedure on all rows."""
    return np.asarray(asked.run(as_rows(X, y)) if hasattr(asked, "run") else asked.sum(X, y))


def distance(asked, first, second, ask=answer):
    """How far a query or procedure moves from one data set to the other, in its own norm."""
    with np.errstate(all="ignore"):
        change = ask(asked, *first) - ask(asked, *second)
    assert np.isfinite(change).all(), "an answer is not finite"
    if asked.norm == "nuclear":
        return _nuclear(change)
    return float(linalg.norm(change.ravel(), ORDER[asked.norm]))  # squares do not overflow


@dataclass(frozen=True)
class Case:
    """A class of queries or procedures under attack.

    Parameters
    ----------
    make : callable
        ``make(rng)`` draws the public parameters and returns an instance; among them are all the
        branches of the class.
    worst : tuple of callables
        ``worst()`` returns an instance and two data sets (X, y) that differ in one record, and
        comes to ``reached`` of the sensitivity.
    reached : float
        The part of the declared sensitivity that the worst pairs reach. Below .97 a sensitivity
        that is a little too small could pass, which takes a reason.
    reason : str
        Why the worst pairs do not reach more.
    width : int
        Number of columns that instances of ``make`` expect.
    n : int
        Number of records of a data set: procedures depend on it, and sums do not.
    unit : callable
        ``unit(asked)``: public size of an entry, so that some of the rows are near the clips.
    sparse : bool
        Whether its rows may be a sparse matrix.
    ask : callable
        ``ask(asked, X, y)``: exact answer, where it takes more than a chunk of rows.
    measure, declared : callables
        What moves and how far it may, where it is not the sum or the output.
    """

    make: Callable
    worst: tuple
    reached: float = 0.99
    reason: str = ""
    width: int = 3
    n: int = 1
    unit: Callable = lambda asked: 1.0
    sparse: bool = False
    ask: Callable = answer
    measure: Callable | None = None
    declared: Callable = lambda asked: asked.sensitivity

    def moved(self, asked, first, second):
        """How far the answer moves from one data set to the other."""
        if self.measure is not None:
            return self.measure(asked, first, second)
        return distance(asked, first, second, self.ask)
