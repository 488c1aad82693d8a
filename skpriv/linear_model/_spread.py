"""How far targets lie from a released function, as a released function of the row."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .._estimation._moments import MomentsQuery
from .._estimation._normal_equations import ridge_prior
from .._estimation._scaling import Scaling
from .._linalg import row_products
from ..privacy import Query

LEAST_WIDTH = 0.3  # of the mean distance: no width falls below it, so that scores stay bounded


@dataclass(frozen=True, eq=False)
class DistanceMoments(Query):
    """Second moments of rows with their scores |y - f| in place of the target.

    The sensitivity is that of MomentsQuery, which holds for any targets: it clips them.

    Parameters
    ----------
    score : callable
        ``score(X, y, 0)`` gives the distances of a chunk of rows.
    moments : MomentsQuery
    """

    score: Callable
    moments: MomentsQuery
    name: str = "moments of distances"

    @property
    def shape(self):
        """Number of coordinates."""
        return self.moments.shape

    @property
    def sensitivity(self):
        """Largest change, rounded up."""
        return self.moments.sensitivity

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        return self.moments.sum(X, self.score(X, y, 0))


@dataclass(frozen=True, eq=False)
class Spread:
    """A released positive function of the row, at least ``floor``.

    Attributes
    ----------
    scaling : Scaling
    theta : ndarray of shape (p,)
    floor : float
    """

    scaling: Scaling
    theta: np.ndarray
    floor: float

    def __call__(self, X):
        """Typical distances at a chunk of rows; not a number counts as the largest."""
        with np.errstate(all="ignore"):
            value = self.scaling.unscale(row_products(self.scaling.features(X), self.theta))
        high = self.scaling.bounds_y[1]
        return np.clip(np.nan_to_num(value, nan=high), self.floor, high)


def learn_spread(session, score, scaling):
    """Linear regression of distances on rows, by all that a session of other rows has.

    Parameters
    ----------
    session : Session
        Neither of the fit nor of the calibration rows.
    score : callable
    scaling : Scaling
        Scaling of the rows of the fit.

    Returns
    -------
    Spread
    """
    width = score.bounds[1] - score.bounds[0]
    scaling = replace(scaling, bounds_y=(0.0, width), fit_intercept=True)
    query = DistanceMoments(score, MomentsQuery(scaling))
    equations = query.moments.equations(session.sum(query, 1.0))
    if equations.exact:
        theta = equations.solve_ridge(np.zeros(scaling.size))
    else:
        theta = equations.solve_shrunk([ridge_prior(scaling.size, True)])
    count = scaling.shrink * equations.n
    mean = scaling.unscale(float(equations.target[-1]) / count)
    noise = scaling.radius * equations.target_scale / count
    return Spread(scaling, theta, float(max(LEAST_WIDTH * mean, noise, 1e-6 * width)))
