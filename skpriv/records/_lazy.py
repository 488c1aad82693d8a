"""Values of rows that do not fit, computed when they are read."""

import numpy as np


class LazyValues:
    """One value for each row, computed chunk by chunk whenever they are read.

    NumPy makes an array of them (`numpy.asarray`), and a loop goes over arrays of one chunk each,
    so that predictions can be written to a file without all of them being in memory.

    Parameters
    ----------
    rows : BatchRows
    function : callable
        From a chunk of X to its values.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.records import from_batches
    >>> rows = from_batches(lambda: [np.ones((2, 3)), np.zeros((1, 3))], n=3)
    >>> values = rows.evaluated(lambda X: X.sum(axis=1))
    >>> values.shape, [chunk.tolist() for chunk in values], np.asarray(values).tolist()
    ((3,), [[3.0, 3.0], [0.0]], [3.0, 3.0, 0.0])
    """

    ndim = 1
    dtype = np.dtype(np.float64)

    def __init__(self, rows, function):
        self._rows, self._function = rows, function
        self.shape = (rows.n,)

    def __len__(self):
        return self._rows.n

    def __iter__(self):
        return iter(self._rows.each(lambda X, y: self._function(X)))

    def compute(self):
        """All values, as an array."""
        found = np.empty(self.shape)
        start = 0
        for values in self:
            found[start : start + len(values)] = values
            start += len(values)
        return found

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("lazy values are computed: they have no array to share.")
        return self.compute().astype(dtype or self.dtype, copy=False)

    def __repr__(self):
        return f"LazyValues of {len(self)} rows"
