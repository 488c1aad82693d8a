"""More than two classes: the fit, the law of its coefficients, and intervals of probabilities."""

from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
from scipy import special, stats

from ..._equations._coefficients import MEAN_ONLY, NOISE, CoefficientLaw
from ..._equations._loop._fit import LoopFit
from ..._equations._loop._pool import Pool
from ..._equations._loop._queries import ClippedRowsQuery, Whitened
from ..._equations._loop._rules import QUESTION, Rules
from ..._equations._loop._steps import SHARE, SIGNAL, prior_shapes, public_reach
from ..._equations._loop._whitening import learn_whitening, whitening_parts
from ..._equations._persons import PersonLengthsQuery, cluster_degrees, seldom_cut
from ._softmax import (
    ClassRatesQuery,
    ClassScoreQuery,
    PersonClassScoreQuery,
    SoftmaxLikelihood,
    contrasts,
)

LAW = "log-odds of each class against the geometric mean of all, by the curve of weighted scores"
RATIO = "odds of a class over the geometric mean of all classes; a contrast compares two classes"


def fit_classes(session, rows, target, link, ranged):
    """Ask for the rates of the classes, a whitening, and many small score steps; and solve.

    Parameters
    ----------
    session : Session
    rows : RowMap or WeightedMap
    target : object with ``scaled(y)``
    link : Softmax
    ranged : bool
        Whether every feature has a public range.

    Returns
    -------
    (LoopFit, ndarray of shape (n_classes,))
        The linear part in contrasts of the classes, and the location of each class.
    """
    if session.trust.exact:
        return _fit_exactly(session, rows, target, link)
    count, p, each = link.n_classes, rows.size, np.eye(link.n_classes - 1)
    rules = Rules.of(
        session.n, len(each) * p, public_reach(session), "auto", rows.constant is not None, ranged,
        link,
    )  # fmt: skip
    if not hasattr(rows, "outside"):
        rules = rules.without_count()
    location = np.zeros(count)
    if not rules.mean_only:
        whitening_parts(session, rules)  # so that files are read once for them and the targets
    if rows.constant is not None:
        counts = ClassRatesQuery(rows, target, count)
        share = 1.0 if rules.mean_only else rules.location
        rates = counts.rates(session.sum(counts, share))
        # In each contrast, as if it were the only one
        length = link.row_length * sqrt(session.n * p) / rules.reach
        length = max(length * link.longer(rates), sqrt(p / session.n))
        rules = replace(rules, length=min(1.0, length))
        location = np.log(rates) - np.log(rates).mean()
    if rules.mean_only:
        return _rates_only(session, len(each) * p, link), location
    W, length, _ = learn_whitening(session, rows, rules)
    whitened = Whitened(rows, W)
    shapes = prior_shapes(whitened, link.signal, link.signal / length)
    pool = Pool(
        len(each) * p, 1.0, [np.kron(each, shape) for shape in shapes],
        SIGNAL * (link.signal / length) ** 2, link, length, session.trust.can.same_rows,
    )  # fmt: skip
    persons, equations = session.persons is not None, []
    kept, lengths = 1.0, QUESTION if persons else 0.0
    for number, share in enumerate(rules.steps, 1):
        asked = whitened, target, location, pool.b
        query: Any = (PersonClassScoreQuery if persons else ClassScoreQuery)(*asked)
        if persons:
            if number in (1, len(rules.steps)):
                part = lengths * sum(rules.steps) / 2.0
                kept = seldom_cut(session, PersonLengthsQuery(query), part)
            query = replace(query, length=kept)
        equations.append(query.equation(session.sum(query, share * (1.0 - lengths))))
        pool.add(equations[-1])
    clipped = None
    if rules.clipped:
        outside, few = ClippedRowsQuery(rows), session.part(rules.subset)
        clipped = outside.read(session.sum(outside, rules.clipped, few))
    fit = LoopFit(
        0.0, 0.0, np.kron(each, W), pool.b, pool.variance, pool.slope, tuple(equations), None,
        same_rows=session.trust.can.same_rows, link=link, places=session.persons or 1,
        degrees=link.degrees, clipped=clipped,
    )  # fmt: skip
    return fit, location


def _fit_exactly(session, rows, target, link):
    """The same without privacy, by maximum likelihood."""
    theta = session.release(SoftmaxLikelihood(rows, target, link), SHARE).value
    # Rows of length at most 1: none counts for less
    whitened, location = Whitened(rows, np.eye(rows.size)), np.zeros(link.n_classes)
    kind = ClassScoreQuery if session.persons is None else PersonClassScoreQuery
    query = kind(whitened, target, location, theta)
    answer = session.sum(query, SHARE)
    equation, places, degrees = query.equation(answer), session.persons or 1, link.degrees
    if session.persons is not None:
        degrees = cluster_degrees(session.n, round(answer.n * places), len(theta))
    fit = LoopFit(
        0.0, 0.0, np.eye(len(theta)), theta, equation.square, equation.slope, (equation,), None,
        True, link=link, places=places, degrees=degrees,
    )  # fmt: skip
    return fit, location


def _rates_only(session, size, link):
    """The same probabilities for every row: the records are too few for coefficients."""
    session.report.note = f"Only the rates of the classes were asked: {MEAN_ONLY}."
    zero = np.zeros(size)
    return LoopFit(
        0.0, 0.0, np.eye(size), zero, 1.0, np.zeros((size, size)), (), None, True, link=link
    )


def class_coefficients(fit, rows, location):
    """Coefficients of each class, shape (n_classes, n_features), and intercepts."""
    matrix = np.kron(contrasts(len(location)), rows.coefficient_map())
    found = (matrix @ fit.theta).reshape(len(location), -1)
    return found[:, :-1], found[:, -1] + location


def class_law(fit, rows, location, n):
    """Law of the coefficients and the intercept of one class after the other.

    Returns
    -------
    CoefficientLaw
    """
    matrix = np.kron(contrasts(len(location)), rows.coefficient_map())
    shift = np.zeros((len(location), rows.n_features + 1))
    shift[:, -1] = location
    if not fit.equations:
        nothing, none = np.full((len(matrix),) * 2, np.nan), np.zeros(len(matrix), dtype=bool)
        return CoefficientLaw(
            nothing[0], nothing, nothing, none, MEAN_ONLY, n, LAW, ratio=RATIO,
            classes=len(location),
        )  # fmt: skip
    estimate = fit.estimate(fit.points(matrix))
    sampling, privacy = estimate.covariances()
    told, both = estimate.resolved, np.outer(estimate.resolved, estimate.resolved)
    return CoefficientLaw(
        np.where(told, estimate.value + shift.reshape(-1), np.nan),
        np.where(both, sampling, np.nan),
        np.where(both, privacy, np.nan),
        told,
        "" if told.all() else NOISE,
        n,
        LAW,
        distance=np.where(told, np.inf, np.nan) if fit.last.slope_scale else None,
        ratio=RATIO,
        classes=len(location),
    )


def class_intervals(fit, phi, location, confidence_level):
    """Intervals for the log-odds of each class against all others, to first order.

    Their derivative by the linear parts is (1{k = j} - pi_j) / (1 - pi_k) up to a sum over classes
    that is 0, at the probabilities pi of the estimate.

    Parameters
    ----------
    fit : LoopFit
    phi : ndarray of shape (n_rows, p)
    location : ndarray of shape (n_classes,)
    confidence_level : float

    Returns
    -------
    (low, high)
        Two arrays of shape (n_rows, n_classes), infinite where a direction is not resolved.
    """
    Q, shape = contrasts(len(location)), (len(phi), len(location))
    everything = np.full(shape, np.inf)
    if not fit.equations:
        return -everything, everything
    eta = np.column_stack([
        fit.estimate(fit.points(np.kron(row, phi))).value for row in Q
    ])  # fmt: skip
    log_odds = special.log_softmax(eta + location, axis=1)
    probabilities = np.exp(log_odds)
    low, high = -everything, everything
    quantile = stats.norm.ppf(0.5 + confidence_level / 2.0)
    for k in range(len(location)):
        rest = np.maximum(1.0 - probabilities[:, k], np.finfo(float).tiny)
        slope = (np.eye(len(location))[k] - probabilities) / rest[:, None]
        points = ((slope @ Q)[:, :, None] * phi[:, None, :]).reshape(len(phi), -1)
        estimate = fit.estimate(fit.points(points))
        half = quantile * np.sqrt(sum(estimate.variances()))
        middle, told = log_odds[:, k] - np.log(rest), estimate.resolved & np.isfinite(half)
        low[told, k], high[told, k] = (middle - half)[told], (middle + half)[told]
    return low, high
