"""Groups of rows that are protected together, such as all rows of one person."""

from numbers import Integral

import numpy as np


class Groups:
    """To whom each row belongs, and how many rows of each are used: both are public.

    Neighbours are data sets that differ in the values of all rows of one group. Of each group at
    most m rows are used, which are chosen by a public random order, so that m rows change at most:
    by the triangle inequality, replacing them one after the other moves an answer of sensitivity D
    by at most m D, and a session calibrates its noise to that. (It is tight: m equal rows.)

    Parameters
    ----------
    labels : array-like of shape (n_records,)
        Who each row belongs to.
    largest : int
        m.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.privacy import Groups
    >>> groups = Groups(["a", "b", "a", "a"], 2)
    >>> groups.kept(np.array([3, 1, 0, 2])).tolist()
    [0, 1, 3]
    """

    def __init__(self, labels, largest):
        labels = np.asarray(labels)
        if labels.ndim != 1:
            raise ValueError("groups must be one label a row: an array of shape (n_samples,).")
        if isinstance(largest, bool) or not isinstance(largest, Integral) or largest < 1:
            raise ValueError(
                "groups needs max_rows_per_group, a number of at least 1: how many rows of each "
                f"group are used, not {largest!r}. The noise grows in proportion to it."
            )
        self.largest = int(largest)
        if labels.dtype == object:  # of any kinds, which need not have an order
            numbers: dict = {}
            self._codes = np.array([numbers.setdefault(label, len(numbers)) for label in labels])
        else:
            self._codes = np.unique(labels, return_inverse=True)[1].reshape(-1)

    def __len__(self):
        return len(self._codes)

    def kept(self, order):
        """Positions of the rows that are used, ascending: the first of each group in an order.

        Parameters
        ----------
        order : ndarray of shape (n_records,)
            A permutation, drawn without looking at the rows.
        """
        codes = self._codes[order]
        by_group = np.argsort(codes, kind="stable")
        found = codes[by_group]
        rank = np.arange(len(found)) - np.searchsorted(found, found)
        return np.sort(order[by_group[rank < self.largest]])
