import numpy as np
import pytest

from skpriv.linear_model import ReweightedRegressor
from skpriv.linear_model._reweighted import _sgd


@pytest.mark.parametrize("privacy", ["central", "local", "shuffle"])
def test_the_certificate_is_about_the_rows_of_its_gradient(monkeypatch, privacy):
    """Where users answer once, earlier answers are about other rows: they are left out.

    A curator asks the same records in every step: all their means may be averaged.
    """
    answers = []
    read = _sgd.GradientQuery.read

    def spy(query, answer):
        answers.append(read(query, answer))
        return answers[-1]

    monkeypatch.setattr(_sgd.GradientQuery, "read", spy)
    rng = np.random.RandomState(0)
    X = rng.uniform(-0.5, 0.5, size=(20_000, 2))
    est = ReweightedRegressor(
        data_norm=1.0, bounds_y=(-1, 1), solver="sgd", privacy=privacy, epsilon=5.0, random_state=0
    )
    certificate = est.fit(X, X[:, 0])._certificate
    assert len(answers) > 1
    gradient, scale, latest, latest_scale = answers[-1]
    np.testing.assert_array_equal(certificate.gradient, gradient)
    assert certificate.gradient_scale == scale
    if privacy == "central":
        weights = np.array([answer[3] ** -2 for answer in answers])
        mean = np.tensordot(weights / weights.sum(), [answer[2] for answer in answers], 1)
        np.testing.assert_allclose(certificate.mean_phi, mean)
        assert certificate.mean_scale == pytest.approx(weights.sum() ** -0.5)
    else:
        np.testing.assert_array_equal(certificate.mean_phi, latest)
        assert certificate.mean_scale == latest_scale
