"""Re-weighted regression by descent: exactness, any link, certificates."""

import math

import numpy as np
import pytest
from registry.estimators import reweighted
from sklearn.linear_model import LinearRegression, LogisticRegression

from skpriv._estimation._links import LINKS, IdentityLink
from skpriv._estimation._moments import Instrument
from skpriv._estimation._public_maps import RecordMap
from skpriv._linalg import nearest_in_ball, unvech, vech_size
from skpriv.linear_model import Link, ReweightedRegressor
from skpriv.linear_model._reweighted._certificate import CERTIFICATE_PARTS, GradientCertificate
from skpriv.linear_model._reweighted._descent import (
    LinkGradientQuery,
    descend,
    gradient_change,
    step_shares,
)
from skpriv.linear_model._reweighted._normalisation import (
    NormalisationQuery,
    ReweightedMomentsQuery,
)
from skpriv.privacy import ROUNDING, Budget, capabilities, open_session


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
    wide = {"data_norm": 100.0, "coef_norm": 1e6, "fit_intercept": fit_intercept}
    est = reweighted(privacy="none", solver="sgd", **wide).fit(X, y)
    reference = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(est.predict(X), reference.predict(X), atol=1e-8)


def test_descent_with_exact_answers_solves_the_weighted_equations():
    # The private code path at a budget so large that its noise is rounding.
    rng = np.random.RandomState(0)
    X = rng.uniform(-0.5, 0.5, size=(2_000, 3)) * [1.0, 0.3, 0.1]
    y = np.clip(X @ [0.5, 0.5, 0.5] + rng.uniform(-0.3, 0.3, size=2_000), -1, 1)
    U = np.diag([0.2, 0.6, 1.0])
    maps, instrument = RecordMap.of_norm(1.0, (-1.0, 1.0), False, 3), Instrument(U)
    session = open_session("central", X, y, Budget(1e16, 1e-3), 0)
    theta, _ = descend(
        session,
        maps,
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
    found = nearest_in_ball(point, metric, 1.0)
    assert np.linalg.norm(found) == pytest.approx(1.0, rel=1e-9)
    # Optimal: the gradient of the distance is along the normal of the sphere, and points inwards
    gradient = metric @ (point - found)
    normal = (gradient @ found) * found
    np.testing.assert_allclose(gradient, normal, atol=1e-7 * abs(gradient).max())
    assert gradient @ found > 0.0
    assert nearest_in_ball(found / 2, metric, 1.0) is not None
    np.testing.assert_array_equal(nearest_in_ball(found / 2, metric, 1.0), found / 2)


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


def test_without_a_norm_descent_leaves_the_ball():
    rng = np.random.RandomState(0)
    X = rng.uniform(-0.5, 0.5, size=(20_000, 3))
    y = np.clip(X @ [1.5, -0.7, 0.6] + rng.uniform(-0.05, 0.05, size=len(X)), -1.0, 1.0)
    for privacy in ("central", "none"):
        settings = {"solver": "sgd", "privacy": privacy, "random_state": 0, "epsilon": 2.0}
        settings |= {"data_norm": 1.0, "bounds_y": (-1, 1)}
        assert ReweightedRegressor(**settings).fit(X, y).score(X, y) > 0.97
        assert ReweightedRegressor(**settings, coef_norm=1.0).fit(X, y).score(X, y) < 0.95


def test_rounding_stays_below_the_slack_of_the_sensitivity():
    """Rows whose U phi is 1e-8 long have weights of 1e8: U is applied before they are summed."""
    rng = np.random.RandomState(0)
    p, n = 6, 2**10
    Q = np.linalg.qr(rng.normal(size=(p, p)))[0]
    values = np.geomspace(1e-8, 1.0, p)
    U = (Q * values) @ Q.T
    maps = RecordMap.of_norm(1.0, (-1.0, 1.0), False, p)
    X = np.tile(Q[:, 0], (n, 1)) + 1e-12 * rng.normal(size=(n, p))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1.0 + 1e-15)
    for query in (
        LinkGradientQuery(maps, Instrument((U + U.T) / 2), LINKS["identity"], np.zeros(p)),
        NormalisationQuery(maps, Instrument((U + U.T) / 2, length=1e-8)),
        ReweightedMomentsQuery(maps, Instrument((U + U.T) / 2)),
    ):
        rows = np.array([query.sum(X[i : i + 1], np.ones(1)) for i in range(n)])
        exact = np.array([math.fsum(column) for column in rows.T])
        error = np.linalg.norm(query.sum(X, np.ones(n)) - exact)
        assert error <= (ROUNDING - 1.0) / 2.0 * query.sensitivity


GRID = np.linspace(-3.0, 3.0, 2001)
every_link = pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)


class Arctan(Link):
    """The mean is (2 / pi) arctan(t)."""

    def mean(self, linear):
        return 2.0 / np.pi * np.arctan(linear)

    def slope_bounds(self, bound):
        return 2.0 / np.pi / (1.0 + bound**2), 2.0 / np.pi


@every_link
@pytest.mark.parametrize("bound", [0.5, 1.0, 3.0])
def test_slopes_reach_their_bounds_and_do_not_pass_them(link, bound):
    inside = GRID[np.abs(GRID) <= bound]
    slopes = np.diff(link.mean(inside)) / np.diff(inside)
    low, high = link.slope_bounds(bound)
    assert low * (1 - 1e-9) <= slopes.min() <= low * 1.01
    assert high * 0.99 <= slopes.max() <= high * (1 + 1e-9)


@every_link
def test_links_are_odd(link):
    # The sensitivity of the gradient relies on it.
    np.testing.assert_array_equal(link.mean(-GRID), -link.mean(GRID))


def test_a_link_of_ones_own(global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    X = rng.uniform(-0.7, 0.7, size=(40_000, 2))
    mean = Arctan().mean(X @ [0.7, -0.7])
    y = np.where(rng.uniform(-1.0, 1.0, size=len(X)) < mean, 1.0, -1.0)
    settings = {"solver": "sgd", "fit_intercept": False, "coef_norm": 1.0}  # the certificate's
    est = reweighted(epsilon=2.0, link=Arctan(), **settings, random_state=global_random_seed)
    est.fit(X, y)
    assert np.abs(est.predict(X) - mean).mean() < 0.03
    low, high = est.confidence_interval(X, 0.9)
    assert ((low <= mean) & (mean <= high)).all()
    assert (high - low).mean() < 0.5


def test_moments_refuse_a_nonlinear_link_before_any_charge():
    with pytest.raises(ValueError, match="needs solver='sgd'"):
        reweighted(link="logit", solver="moments").fit(np.zeros((5, 1)), np.zeros(5))


def test_a_nonlinear_link_works_with_the_defaults():
    rng = np.random.RandomState(0)
    X, y = rng.uniform(-0.5, 0.5, size=(5000, 2)), rng.choice([-1.0, 1.0], size=5000)
    found, other = (
        reweighted(link="logit", random_state=0, **settings).fit(X, y)
        for settings in ({}, {"solver": "sgd"})
    )
    np.testing.assert_array_equal(found.predict(X), other.predict(X))
    found.confidence_interval(X)


def certificate(p, n, scale):
    """A certificate of whose errors one is all there is."""
    zero = np.zeros(p)
    return GradientCertificate(IdentityLink(), np.eye(p), zero, zero, scale, np.eye(p), scale, n)


@pytest.mark.parametrize("p", [1, 8])
def test_each_error_is_within_its_bound_and_halves_would_not_be(p):
    """The gradient at the truth, the noise of the gradient, the largest eigenvalue of that of H."""
    rng, failure, draws, n = np.random.RandomState(0), 0.1, 20_000, 400
    if p == 1:  # in more directions the bound allows for rows that are all alike
        truth = abs(rng.binomial(n, 0.5, size=draws) - n / 2.0) * 2.0 / n
        bound = certificate(p, n, 0.0)._events(failure)[0]
        assert (truth > bound).mean() <= failure < (truth > bound / 2.0).mean()
    bound, slack = certificate(p, 10**12, 1.0)._events(failure)
    noise = np.linalg.norm(rng.normal(size=(draws, p)), axis=1)
    assert (noise > bound).mean() <= failure < (noise > bound / 2.0).mean()
    matrices = [unvech(rng.normal(size=vech_size(p)), p) for _ in range(2000)]
    largest = np.linalg.eigvalsh(matrices)[:, -1]
    assert (largest > slack).mean() <= failure
    assert (largest > slack / 2.0).mean() > (CERTIFICATE_PARTS[2] * failure if p == 1 else failure)


@pytest.mark.parametrize("privacy", ["central", "local", "shuffle"])
def test_the_certificate_is_about_the_rows_of_its_gradient(monkeypatch, privacy):
    """Where users answer once, earlier answers are about other rows: they are left out.

    A curator asks the same records in every step: all their means may be averaged.
    """
    answers = []
    read = LinkGradientQuery.read

    def spy(query, answer):
        answers.append(read(query, answer))
        return answers[-1]

    monkeypatch.setattr(LinkGradientQuery, "read", spy)
    X = np.random.RandomState(0).uniform(-0.5, 0.5, size=(20_000, 2))
    est = reweighted(solver="sgd", privacy=privacy, epsilon=5.0, random_state=0)
    certificate = est.fit(X, X[:, 0])._certificate
    assert len(answers) > 1
    np.testing.assert_array_equal(certificate.gradient, answers[-1].gradient)
    assert certificate.gradient_scale == answers[-1].gradient_scale
    if privacy == "central":
        weights = np.array([answer.mean_scale**-2 for answer in answers])
        mean = np.tensordot(weights / weights.sum(), [answer.mean_phi for answer in answers], 1)
        np.testing.assert_allclose(certificate.mean_phi, mean)
        assert certificate.mean_scale == pytest.approx(weights.sum() ** -0.5)
    else:
        np.testing.assert_array_equal(certificate.mean_phi, answers[-1].mean_phi)
        assert certificate.mean_scale == answers[-1].mean_scale


def test_the_ridge_reaches_as_far_as_the_truth_may_be(monkeypatch):
    """The truth may lie on the other side of the ball, at radius plus the norm of the point."""
    reached = []

    def spy(self, points, ridge, slopes, residual, slack, reach):
        reached.append(reach)
        return points @ self.theta, np.full(len(points), np.inf)

    monkeypatch.setattr(GradientCertificate, "_about_point", spy)
    monkeypatch.setattr(GradientCertificate, "_about_step", spy)
    theta = np.array([0.3, -0.4])
    one = certificate(2, 1_000, 0.0)
    GradientCertificate(
        one.link, one.U, theta, one.gradient, 0.0, one.mean_phi, 0.0, one.n
    ).interval(np.eye(2), 1.5, 0.95)  # fmt: skip
    truth = -1.5 * theta / np.linalg.norm(theta)
    assert reached and min(reached) >= np.linalg.norm(theta - truth) * (1.0 - 1e-12)
