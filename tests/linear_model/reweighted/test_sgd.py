"""Re-weighted regression by descent: the worst gradients, exactness, intervals for any link."""

import math

import numpy as np
import pytest
from registry.estimators import reweighted
from scipy import optimize, stats
from sklearn.linear_model import LinearRegression, LogisticRegression

from skpriv._estimation._moments import Instrument
from skpriv._estimation._public_maps import RecordMap
from skpriv.linear_model import ReweightedRegressor
from skpriv.linear_model._reweighted import (
    LINKS,
    LinkGradientQuery,
    NormalisationQuery,
    ReweightedMomentsQuery,
    descend,
    gradient_change,
    nearest,
    step_shares,
)
from skpriv.privacy import ROUNDING, Budget, capabilities, open_session


def plane_query(link, norm, condition, weight=0.0):
    U = np.diag([1.0, 1.0 / condition])
    scaling = RecordMap.of_norm(1.0, (-1.0, 1.0), False, 2)
    angle = np.pi / 5
    theta = norm * np.array([np.cos(angle), np.sin(angle)])
    return LinkGradientQuery(scaling, Instrument(U), LINKS[link], theta, weight)


def largest_change(query, directions=181):
    """Largest change over pairs of records of the plane, by a grid and a polish."""

    def record(angle, length, y):
        x = length * np.array([[np.cos(angle), np.sin(angle)]])
        return query.sum(x, np.array([y]))

    def change(p):
        lengths = 10.0 ** -np.abs(p[2:4])
        return np.linalg.norm(record(p[0], lengths[0], 1.0) - record(p[1], lengths[1], 1.0))

    angles = np.linspace(0.0, 2.0 * np.pi, directions)
    # y = -1 at phi is y = 1 at -phi with the same e r, so that y = 1 is enough.
    values = [(change([a, b, s, t]), a, b, s, t)
              for s in (0.0, 8.0) for t in (0.0, 8.0)
              for a in angles for b in angles[::3]]  # fmt: skip
    best = 0.0
    for _, *start in sorted(values, reverse=True)[:2]:
        found = optimize.minimize(
            lambda p: -change(p), start, method="Nelder-Mead", options={"maxfev": 250}
        )
        best = max(best, -found.fun)
    return best


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("norm, condition", [(0.0, 10.0), (0.6, 1.0), (0.6, 10.0), (1.0, 10.0)])
def test_the_gradient_moves_by_its_sensitivity(link, norm, condition):
    declared = gradient_change(LINKS[link], norm, condition)
    query = plane_query(link, norm, condition)
    assert query.sensitivity == pytest.approx(declared, rel=1e-5)
    # theta and U are not aligned in the worst way here; where U = I or norm = 0 all are alike
    alike = condition == 1.0 or norm == 0.0
    found = largest_change(query, directions=5 if alike else 9)
    assert found <= declared * ROUNDING
    if alike:
        assert found >= 0.995 * declared


def test_sensitivity_for_ill_conditioned_normalisation():
    values = [gradient_change(LINKS["identity"], 1.0, c) for c in (1.0, 3.0, 10.0, 100.0, 1e9)]
    np.testing.assert_allclose(values, [3.0, 3.29, 3.74, 3.97, 4.0], atol=0.01)
    assert gradient_change(LINKS["logit"], 1.0, 1e9) <= 2.0 * (1.0 + np.tanh(0.5))


def _binary(n=4_000, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 3))
    probability = 1.0 / (1.0 + np.exp(-(X @ [1.0, -0.5, 0.2] + 0.3)))
    return X, (rng.uniform(size=n) < probability).astype(float)


def test_logit_without_noise_is_logistic_regression(global_random_seed):
    X, y = _binary(seed=global_random_seed)
    est = ReweightedRegressor(
        privacy="none", link="logit", solver="sgd", data_norm=2.0, bounds_y=(0, 1), coef_norm=10.0
    ).fit(X, y)
    reference = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12).fit(X, y)
    np.testing.assert_allclose(est.predict(X), reference.predict_proba(X)[:, 1], atol=1e-7)
    np.testing.assert_allclose(est.coef_, reference.coef_[0], atol=1e-6)
    assert est.intercept_ == pytest.approx(reference.intercept_[0], abs=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_identity_without_noise_is_least_squares(fit_intercept):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(500, 4)) * [1.0, 0.1, 0.01, 1e-3]
    y = np.clip(X @ [0.3, 1.0, -2.0, 0.0] + rng.normal(size=500) * 0.1, -1, 1)
    est = ReweightedRegressor(
        bounds_y=(-1, 1),
        privacy="none",
        solver="sgd",
        fit_intercept=fit_intercept,
        data_norm=100.0,
        coef_norm=1e6,
    ).fit(X, y)
    reference = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(est.predict(X), reference.predict(X), atol=1e-8)


def test_descent_with_exact_answers_solves_the_weighted_equations():
    # The private code path at a budget so large that its noise is rounding.
    rng = np.random.RandomState(0)
    X = rng.uniform(-0.5, 0.5, size=(2_000, 3)) * [1.0, 0.3, 0.1]
    y = np.clip(X @ [0.5, 0.5, 0.5] + rng.uniform(-0.3, 0.3, size=2_000), -1, 1)
    U = np.diag([0.2, 0.6, 1.0])
    scaling, instrument = RecordMap.of_norm(1.0, (-1.0, 1.0), False, 3), Instrument(U)
    session = open_session("central", X, y, Budget(1e16, 1e-3), 0)
    theta, _ = descend(
        session,
        scaling,
        instrument,
        LINKS["identity"],
        5.0,
        step_shares("budget", LINKS["identity"], 0.0),
    )
    e = instrument.rows(X)
    np.testing.assert_allclose(theta, np.linalg.solve(e.T @ X, e.T @ y), atol=1e-4)


def test_nearest_point_of_the_ball(global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    root = rng.normal(size=(4, 4)) * [1.0, 0.3, 0.1, 0.01]
    metric, point = root @ root.T, 5.0 * rng.normal(size=4)
    found = nearest(point, metric, 1.0)
    assert np.linalg.norm(found) == pytest.approx(1.0, rel=1e-9)
    # Optimal: the gradient of the distance is along the normal of the sphere, and points inwards
    gradient = metric @ (point - found)
    normal = (gradient @ found) * found
    np.testing.assert_allclose(gradient, normal, atol=1e-7 * abs(gradient).max())
    assert gradient @ found > 0.0
    assert nearest(found / 2, metric, 1.0) is not None
    np.testing.assert_array_equal(nearest(found / 2, metric, 1.0), found / 2)


@pytest.mark.parametrize("privacy", ["central", "local"])
@pytest.mark.parametrize("link", LINKS)
def test_the_report_adds_up(privacy, link):
    X, y = _binary()
    est = reweighted(link=link, solver="sgd", privacy=privacy, random_state=0).fit(X, y)
    report = est.privacy_report_
    assert report.total.gaussian == pytest.approx(Budget(1.0, 1e-6).mu ** 2, rel=1e-9)
    assert sum(row.share for row in report.rows) == pytest.approx(1.0)
    assert len(report.rows) == 3 + len(
        step_shares(capabilities(privacy).divides, LINKS["identity"], 0.0)
    )


def _misses(privacy, link, design, epsilon, n, d, repeats, seed, level=0.9):
    """Number of fits whose interval misses the truth at *any* point, and the mean half-width."""
    rng = np.random.RandomState(seed)
    misses, half = 0, []
    for _ in range(repeats):
        X = rng.normal(size=(n, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        if design == "small":
            X[:, 0] *= 0.05
        elif design == "rare":
            X[:, 0] = 0.0
            X[rng.uniform(size=n) < 0.01] = np.eye(d)[0]
        theta = rng.normal(size=d)
        theta /= np.linalg.norm(theta)
        mean = LINKS[link].mean(X @ theta)
        y = np.where(rng.uniform(-1, 1, size=n) < mean, 1.0, -1.0)
        est = reweighted(
            epsilon=epsilon,
            link=link,
            solver="sgd",
            privacy=privacy,
            fit_intercept=False,
            coef_norm=1.0,
            random_state=rng,
        ).fit(X, y)
        points = np.vstack([X[:500], np.eye(d), -np.eye(d), theta])
        truth = LINKS[link].mean(points @ theta)
        low, high = est.confidence_interval(points, level)
        misses += ((truth < low - 1e-12) | (high + 1e-12 < truth)).any()
        half.append((high - low).mean() / 2)
    return misses, np.mean(half)


def _assert_covers(misses, repeats, level=0.9):
    assert stats.binom.sf(misses - 1, repeats, 1.0 - level) > 1e-4, f"{misses} of {repeats}"


@pytest.mark.slow
@pytest.mark.parametrize("privacy", ["central", "local", "none"])
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("design", ["isotropic", "small", "rare"])
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
@pytest.mark.parametrize(("n", "d"), [(1_000, 2), (30_000, 6)])
def test_coverage_in_a_large_grid(privacy, link, design, epsilon, n, d):
    misses, _ = _misses(privacy, link, design, epsilon, n, d, 40, 0)
    _assert_covers(misses, 40)


def test_the_prediction_lies_in_the_interval(global_random_seed):
    X, y = _binary(20_000, global_random_seed)
    est = ReweightedRegressor(
        link="logit", solver="sgd", data_norm=2.0, bounds_y=(0, 1), coef_norm=3.0,
        random_state=global_random_seed,
    ).fit(X, y)  # fmt: skip
    low, high = est.confidence_interval(X, 0.9)
    prediction = est.predict(X)
    assert ((low <= prediction) & (prediction <= high)).all()
    assert (low >= 0.0).all()
    assert (high <= 1.0).all()


def test_without_a_norm_descent_leaves_the_ball():
    rng = np.random.RandomState(0)
    X = rng.uniform(-0.5, 0.5, size=(20_000, 3))
    y = np.clip(X @ [1.5, -0.7, 0.6] + rng.uniform(-0.05, 0.05, size=len(X)), -1.0, 1.0)
    for privacy in ("central", "none"):
        settings = {"solver": "sgd", "privacy": privacy, "random_state": 0, "epsilon": 2.0}
        settings |= {"data_norm": 1.0, "bounds_y": (-1, 1)}
        assert ReweightedRegressor(**settings).fit(X, y).score(X, y) > 0.97
        assert ReweightedRegressor(**settings, coef_norm=1.0).fit(X, y).score(X, y) < 0.95


def test_refused_intervals():
    X, y = _binary()
    est = reweighted(link="logit", solver="sgd", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="must be 'certified'"):
        est.confidence_interval(X, method="asymptotic")
    with pytest.raises(ValueError, match="confidence_level"):
        est.confidence_interval(X, 1.0)


def test_rounding_stays_below_the_slack_of_the_sensitivity():
    """Rows whose U phi is 1e-8 long have weights of 1e8: U is applied before they are summed."""
    rng = np.random.RandomState(0)
    p, n = 6, 2**10
    Q = np.linalg.qr(rng.normal(size=(p, p)))[0]
    values = np.geomspace(1e-8, 1.0, p)
    U = (Q * values) @ Q.T
    scaling = RecordMap.of_norm(1.0, (-1.0, 1.0), False, p)
    X = np.tile(Q[:, 0], (n, 1)) + 1e-12 * rng.normal(size=(n, p))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1.0 + 1e-15)
    for query in (
        LinkGradientQuery(scaling, Instrument((U + U.T) / 2), LINKS["identity"], np.zeros(p)),
        NormalisationQuery(scaling, Instrument((U + U.T) / 2, length=1e-8)),
        ReweightedMomentsQuery(scaling, Instrument((U + U.T) / 2)),
    ):
        rows = np.array([query.sum(X[i : i + 1], np.ones(1)) for i in range(n)])
        exact = np.array([math.fsum(column) for column in rows.T])
        error = np.linalg.norm(query.sum(X, np.ones(n)) - exact)
        assert error <= (ROUNDING - 1.0) / 2.0 * query.sensitivity
