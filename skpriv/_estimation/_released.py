"""What a fit released, as one value: the contract of all kinds of fits."""

from typing import Any

import numpy as np


class Released:
    """All that a fit released; here, nothing.

    A kind of fit answers what it can and has the answers of this class for the rest, so that who
    asks need not know which kind it is. Each has ``theta``, the parameter of rows phi, and the
    scaled ``location`` that is added to phi'theta.

    Attributes
    ----------
    solved : bool
        Whether there are equations of steps.
    poolable : bool
        Whether it is a likelihood of one line, see `information`.
    """

    solved: Any = False
    poolable = False

    def knowing(self, cells: Any) -> Any:
        """The same where public cells of the table are known, as directions of theta."""
        return self

    def notes(self, row_map: Any, names: Any) -> Any:
        """What a report says of it, in sentences; empty ones say nothing."""
        return ()

    def interval(self, phi: Any, confidence_level: float, method: str) -> Any:
        """Centre and half-width at rows of features, in scaled units; infinite where not known."""
        raise NotImplementedError

    def leverage(self, row_map: Any) -> Any:
        """Part of the weight of all rows that one may have; None where it is not known."""

    def rows_of_cells(self) -> float:
        """Rows that a cell of the table needs to be told from an empty one; NaN if not known."""
        return np.nan

    def information(self, constant: Any) -> Any:
        """The likelihood of a line, which is pooled with those of other fits."""
        raise NotImplementedError


NOTHING = Released()
