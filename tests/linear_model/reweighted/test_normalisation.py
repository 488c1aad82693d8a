"""The learned normalisation: what is summed, what it finds, and of whom it asks."""

from types import SimpleNamespace

import numpy as np
import pytest

from skpriv import Budget
from skpriv._estimation._moments import Instrument, ResidualGramQuery
from skpriv._estimation._public_maps import RecordMap
from skpriv.linear_model._reweighted._normalisation import (
    NormalisationQuery,
    ReweightedMomentsQuery,
    learn_normalisation,
)
from skpriv.privacy import Answer, open_session

U = np.array([[0.1, 0.02, 0.0], [0.02, 0.2, 0.03], [0.0, 0.03, 0.9]])


def records(n, scales, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, len(scales))) * scales
    return X / np.linalg.norm(X, axis=1).max(), rng.uniform(-1.0, 1.0, size=n)


def exact(query, X, y):
    return Answer(query.sum(X, y), len(y), SimpleNamespace(scale=0.0))


@pytest.mark.parametrize("matrix", [U, np.eye(3)], ids=["full", "identity"])
@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_answers_are_read_as_sums_of_the_papers_rows(matrix, floor):
    """The rows that are summed are turned; what is read is not."""
    X, y = records(500, (1.0, 0.5, 0.1))
    maps, theta = RecordMap.of_norm(1.0, (-1.0, 1.0), False, 3), np.array([0.5, -0.5, 0.2])
    instrument = Instrument(matrix, floor=floor)
    e = X @ matrix / np.maximum(np.linalg.norm(X @ matrix, axis=1), floor)[:, None]
    query = ReweightedMomentsQuery(maps, instrument)
    found = query.equations(exact(query, X, y))
    np.testing.assert_allclose(found.design, e.T @ X, atol=1e-10)
    np.testing.assert_allclose(found.target, e.T @ y, atol=1e-10)
    np.testing.assert_allclose(found.gram, e.T @ e, atol=1e-10)
    query = ResidualGramQuery(maps, tuple(theta), instrument, 0.5)
    gram = query.read(exact(query, X, y))["residual_gram"]
    rows = e * np.clip(y - X @ theta, -0.5, 0.5)[:, None]
    np.testing.assert_allclose(gram, rows.T @ rows, atol=1e-10)


@pytest.mark.parametrize("length", [1e-3, 0.2, 1.0])
def test_sigma_of_the_paper_is_asked_up_to_the_length(length):
    X, y = records(500, (1.0, 0.5, 0.1))
    rows = X @ U
    sizes = np.linalg.norm(rows, axis=1)
    rows /= np.sqrt(sizes * np.maximum(sizes, length))[:, None]
    query = NormalisationQuery(
        RecordMap.of_norm(1.0, (-1.0, 1.0), False, 3), Instrument(U, length=length)
    )
    mean, _ = query.read(exact(query, X, y))
    np.testing.assert_allclose(mean, rows.T @ rows / len(y), atol=1e-12)
    if length == 1.0:  # longer than all rows
        paper = (X @ U).T @ (X @ U / sizes[:, None]) / len(y)
        np.testing.assert_allclose(query.root @ mean @ query.root, paper, atol=1e-12)


def learnt(X, y, epsilon, privacy="central", size=None):
    maps = RecordMap.of_norm(1.0, (-1.0, 1.0), False, X.shape[1])
    session = open_session(privacy, X, y, Budget(epsilon, 1e-6), random_state=0)
    return learn_normalisation(session, maps, 0.08, 3), session.report


@pytest.mark.parametrize("privacy", ["central", "none"])
def test_the_learned_normalisation_makes_all_directions_alike(privacy):
    """The variance of the last feature is a fiftieth of the noise of the first answer."""
    X, y = records(20_000, (1.0, 0.1, 0.02, 0.01))
    rows = X @ learnt(X, y, 3.0, privacy)[0].matrix
    lengths = np.linalg.norm(rows, axis=1)
    values = np.linalg.eigvalsh(rows.T @ (rows / lengths[:, None]))
    assert values[-1] / values[0] < 2.0
    assert learnt(X, y, 3.0, privacy)[0].length == pytest.approx(lengths.mean(), rel=0.25)


def test_what_the_noise_of_the_moments_hides_is_not_made_larger():
    """The boost of a direction in which nothing varies ends at the least deviation in sight."""
    X, y = records(20_000, (1.0, 0.5, 1e-9))
    n, p, mu = *X.shape, Budget(1.0, 1e-6).mu
    found = learnt(X, y, 1.0)[0]
    deviation = np.sqrt(np.mean(X[:, 0] ** 2))
    hidden = 2.0 * np.sqrt(8.0) * p / (n * mu)
    boost = found.matrix[2, 2] / found.matrix[0, 0]
    assert 0.3 * deviation / hidden < boost < 1.1 * deviation / hidden


def test_many_records_are_asked_in_part_at_secret_random_positions():
    X, y = np.random.RandomState(0).uniform(-0.5, 0.5, size=(300_000, 2)), np.zeros(300_000)
    maps = RecordMap.of_norm(1.0, (-1.0, 1.0), False, 2)
    shown = []

    class Watched(NormalisationQuery):
        def sum(self, X, y):
            shown.extend(y.tolist())
            return super().sum(X, y)

    session = open_session("central", X, np.arange(300_000.0), Budget(1.0, 1e-6), random_state=0)
    learn_normalisation(session, maps, 0.08, 1, kind=Watched)
    assert 90_000 < len(shown) < 110_000  # resolved, hence as few as cost little time
    gaps = np.diff(sorted(shown))
    assert gaps.max() > 10.0  # geometric gaps, as of a random part, and no step of 3
    assert learnt(X, y, 1e-3)[1].rows[0].records == 300_000  # the noise is large: all
