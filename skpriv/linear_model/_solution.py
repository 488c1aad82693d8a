"""How noisy normal equations are solved, and what else their fit asks of the records.

The equations may be for w in theta = basis w; without a basis they are for theta itself.
"""

import numpy as np

from .._estimation._moments import Instrument, ResidualGramQuery
from .._estimation._normal_equations import RESIDUAL_CLIP, ridge_prior
from .._estimation._persons import PersonGramQuery, cluster_degrees
from .._estimation._weights import WeightedMap
from .._linalg import blas_for
from ._opening import weighted_rows

# Of the budget, for the residual Gram and what its clip cuts: 1.6% more noise elsewhere than the
# .05 that would do for the first alone.
RESIDUAL_SHARE = 0.08


def asked_records(model, rows, scaling, weights):
    """Rows of the session and the map of its queries, which weights are a part of."""
    weighted = weighted_rows(model, rows, weights, scaling.target)
    return weighted, scaling if weighted is rows else WeightedMap(scaling)


def residual_share(trust):
    """Users are too expensive in the local model: there the bound |r| <= 1 serves instead."""
    return RESIDUAL_SHARE if trust.can.same_rows else 0.0


def solve(equations, scaling, alpha, shapes=(), basis=None):
    """Post-processing of released answers: theta, by a ridge penalty or by its noise ("auto")."""
    if alpha == "auto" and not equations.exact:
        return posterior(equations, scaling, shapes, basis, fading=True)[0]
    penalty = scaling.penalty(0.0 if alpha == "auto" else alpha)
    if basis is not None:
        penalty = basis.T @ (penalty[:, None] * basis)
    return _theta(basis, equations.solve_ridge(penalty))


def posterior(equations, scaling, shapes=(), basis=None, least_variance=0.0, fading=False):
    """Mean and covariance of theta, by priors of these shapes beside that of a ridge."""
    prior = ridge_prior(scaling.size, scaling.fit_intercept)
    priors = [prior, *(prior @ shape for shape in shapes)]
    if basis is not None:
        priors = [np.linalg.solve(basis, shape) for shape in priors]
    with blas_for(scaling.size):
        mean, covariance = equations.posterior(priors, least_variance, fading)
    return _theta(basis, mean), _theta(basis, _theta(basis, covariance).T)


def _theta(basis, solution):
    return solution if basis is None else basis @ solution


def residual_gram(session, equations, theta, asked, instrument=Instrument()):
    """What `NormalEquations` keep of the residuals, for the asymptotic interval.

    Parameters
    ----------
    session : Session
    equations : NormalEquations
        Those that theta solves.
    theta : ndarray of shape (p,)
    asked : Scaling or WeightedMap
        Map of the queries.
    instrument : Instrument
    """
    share = residual_share(session.trust)
    if not share:
        return {}
    limit = 2.0
    if not equations.exact:
        limit = min(limit, RESIDUAL_CLIP * equations.residual_deviation(theta)[1])
    kind = ResidualGramQuery if session.persons is None else PersonGramQuery
    query = kind(asked, tuple(theta), instrument, limit)
    answer = session.sum(query, share)
    found = query.read(answer)
    if session.persons is not None and session.trust.exact:
        rows = round(answer.n * session.persons)
        found["debias"] = cluster_degrees(session.n, rows, asked.size)
    return found


def deviation(equations, scaling, theta):
    """Limits on the deviation of the residuals, in the units of y, from released answers."""
    return tuple(scaling.radius * limit for limit in equations.residual_deviation(theta))
