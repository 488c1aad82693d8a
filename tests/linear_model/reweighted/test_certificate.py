import numpy as np
import pytest

from skpriv._linalg import unvech, vech_size
from skpriv.linear_model import ReweightedRegressor
from skpriv.linear_model import _reweighted as _sgd
from skpriv.linear_model._reweighted import (
    CERTIFICATE_PARTS,
    GradientCertificate,
    IdentityLink,
)


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
    read = _sgd.LinkGradientQuery.read

    def spy(query, answer):
        answers.append(read(query, answer))
        return answers[-1]

    monkeypatch.setattr(_sgd.LinkGradientQuery, "read", spy)
    rng = np.random.RandomState(0)
    X = rng.uniform(-0.5, 0.5, size=(20_000, 2))
    est = ReweightedRegressor(
        data_norm=1.0, bounds_y=(-1, 1), solver="sgd", privacy=privacy, epsilon=5.0, random_state=0
    )
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
