"""More than two classes: the fit, the law of its coefficients, and intervals of probabilities."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from scipy import special

from ..._estimation._coefficients import MEAN_ONLY, loop_law
from ..._estimation._intervals import two_sided_quantile
from ..._estimation._loop._fit import LoopFit
from ..._estimation._loop._queries import Whitened
from ..._estimation._loop._steps import (
    SHARE,
    ask_steps,
    at_solution,
    count_clipped,
    make_pool,
    public_rules,
)
from ..._estimation._loop._whitening import learn_whitening, whitening_parts
from ..._estimation._public_maps import TargetMap
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
    count, p, each = link.n_classes, rows.size, np.eye(link.n_classes - 1)
    location = np.zeros(count)
    kind = ClassScoreQuery if session.persons is None else PersonClassScoreQuery
    if session.trust.exact:
        likely = session.release(SoftmaxLikelihood(rows, target, link), SHARE).value

        def exactly(whitened, b):
            return kind(whitened, target, location, b, link)

        return at_solution(session, rows, target, link, likely, exactly), location
    rules = public_rules(session, rows, "auto", ranged, link, len(each))
    if not rules.mean_only:
        whitening_parts(session, rules)  # so that files are read once for them and the targets
    if rows.constant is not None:
        counts = ClassRatesQuery(rows, target, count)
        share = 1.0 if rules.mean_only else rules.location
        rates = counts.rates(session.sum(counts, share))
        rules = rules.longer(link.smallest_slope(rates))
        location = np.log(rates) - np.log(rates).mean()
    if rules.mean_only:
        return _rates_only(session, len(each) * p, link), location
    W, length, _ = learn_whitening(session, rows, rules)
    whitened = Whitened(rows, W)
    pool = make_pool(session, whitened, length, link, 1.0, parts=len(each))

    def ask(last):
        return kind(whitened, target, location, pool.b, link)

    equations, _ = ask_steps(session, rules, pool, ask)
    fit = LoopFit(
        0.0, 0.0, np.kron(each, W), pool.b, pool.variance, pool.slope, equations, None,
        same_rows=session.trust.can.same_rows, link=link, places=session.persons or 1,
        degrees=link.degrees, clipped=count_clipped(session, rows, rules),
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


def class_law(fit, rows, location, n, **words):
    """Law of the coefficients and the intercept of one class after the other.

    Returns
    -------
    CoefficientLaw
    """
    matrix = np.kron(contrasts(len(location)), rows.coefficient_map())
    maps = SimpleNamespace(coefficient_map=lambda: matrix, constant=None, size=len(fit.b))
    words = {"estimand": LAW, "ratio": RATIO, "classes": len(location), **words}
    law = loop_law(fit, maps, TargetMap((-1.0, 1.0), True), n, **words)
    shift = np.zeros((len(location), rows.n_features + 1))
    shift[:, -1] = location
    return replace(law, estimate=law.estimate + shift.reshape(-1))


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
    quantile = two_sided_quantile(confidence_level)
    for k in range(len(location)):
        rest = np.maximum(1.0 - probabilities[:, k], np.finfo(float).tiny)
        slope = (np.eye(len(location))[k] - probabilities) / rest[:, None]
        points = ((slope @ Q)[:, :, None] * phi[:, None, :]).reshape(len(phi), -1)
        estimate = fit.estimate(fit.points(points))
        half = quantile * np.sqrt(sum(estimate.variances()))
        middle, told = log_odds[:, k] - np.log(rest), estimate.resolved & np.isfinite(half)
        low[told, k], high[told, k] = (middle - half)[told], (middle + half)[told]
    return low, high
