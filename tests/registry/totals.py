"""The simplest query, which tests of sessions, streams and persons ask."""

import numpy as np

from skpriv.privacy import Query


class Total(Query):
    """Sum of y clipped to [0, 1]: replacing a record moves it by at most 1."""

    name, shape, sensitivity = "total", (1,), 1.0

    def sum(self, X, y):
        return np.array([np.clip(y, 0.0, 1.0).sum()])
