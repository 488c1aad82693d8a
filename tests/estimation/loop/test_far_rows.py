"""Far rows: what their weights take away from the slope of the least-squares line."""

from dataclasses import replace

import numpy as np
import pytest

from skpriv._estimation._loop._far_rows import FAR_LENGTH, FarRows
from skpriv._estimation._loop._rows import Whitened
from skpriv._estimation._public_maps import RowMap
from skpriv._linalg import unvech
from skpriv.inspection import inference
from skpriv.linear_model import LinearRegression
from skpriv.privacy import Answer, GaussianNoise


def goe(p, scale, rng):
    """Noise of a matrix: entries of this deviation, those of the diagonal sqrt(2) times it."""
    return unvech(scale * rng.normal(size=p * (p + 1) // 2), p)


def test_what_is_missing_in_the_directions_of_far_rows_is_found():
    rng = np.random.RandomState(0)
    far = np.array([[0.6, 0.8, 0.0, 0.0]])
    slope, noise = 0.05 * np.eye(4), 1e-3
    seen = FarRows(slope + 0.03 * far.T @ far + goe(4, noise, rng), noise)
    missing, directions, deviation = seen.missing_from(slope + goe(4, noise, rng), noise)
    np.testing.assert_allclose(missing, 0.03 * far.T @ far, atol=4.0 * noise)
    np.testing.assert_allclose(directions @ directions.T, far.T @ far, atol=0.15)
    assert deviation == pytest.approx(np.sqrt(2.0) * noise)


def test_noise_alone_is_seldom_taken_for_far_rows():
    """In 3% of draws at most, as the floor promises; with half of the floor it is in most."""
    rng = np.random.RandomState(0)
    for p in (1, 3, 10):
        found = [
            FarRows(goe(p, 0.8, rng), 0.8).missing_from(goe(p, 0.6, rng), 0.6)[0].any()
            for _ in range(400)
        ]
        assert np.mean(found) < 0.06  # passes with a chance of 99% for 3%, of 1% for 9%


def curved(n=20_000):
    """Rows of which one in fifty is far, and a mean that the line misses there."""
    rng = np.random.RandomState(0)
    X = rng.uniform(-0.05, 0.05, size=(n, 3))
    far = rng.uniform(size=n) < 0.02
    X[far, 0] = rng.uniform(0.4, 0.6, size=far.sum())
    y = X @ [1.0, 1.0, -1.0] - 2.0 * X[:, 0] ** 2 + 0.1 * rng.uniform(-1.0, 1.0, size=n)
    return X, np.clip(y, -1.0, 1.0)


def test_least_squares_counts_far_rows_in_full():
    X, y = curved()
    Z = np.c_[X, np.ones(len(X))]
    line = np.linalg.lstsq(Z, y, rcond=None)[0]
    errors, covered = [], []
    for seed in range(6):
        model = LinearRegression(
            epsilon=3.0, delta=1e-6, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0),
            estimand="least_squares", random_state=seed,
        ).fit(X, y)  # fmt: skip
        table = inference(model)
        covered.append((table.low[0] <= line[0]) & (line[0] <= table.high[0]))
        released = model._released
        model._released = replace(released, line=released.line._replace(far=None))
        without = inference(model)
        errors.append([abs(t.estimate[0] - line[0]) for t in (table, without)])
        lengths = np.linalg.norm(released.points(model._record_map.rows(X)), axis=1)
        assert lengths.max() > 1.2  # there are far rows
    close, away = np.mean(errors, axis=0)
    assert close < 0.6 * away
    assert sum(covered) >= 5
    assert FAR_LENGTH > lengths.max()  # whose lengths count in full


class _Session:
    """Three rows of the lengths 1/2, 3/2 and 3 once they are whitened, and noise of a scale."""

    rows = np.diag([0.5, 1.5, 3.0]) / 3.0

    def sum(self, query, share, subset):
        """The exact sum, which says that it has this noise."""
        noise = GaussianNoise(0.6 * query.sensitivity)
        return Answer(query.sum(self.rows, np.zeros(3)), len(self.rows), noise)


def test_rows_and_their_noise_count_up_to_twice_the_length_of_others():
    whitened = Whitened(RowMap(None, None, 1.0, False, 3), 3.0 * np.eye(3))
    found = FarRows.ask(_Session(), whitened, 1.0, None)
    np.testing.assert_allclose(found.gram, np.diag([0.25, 2.25, FAR_LENGTH**2]) / 3.0, atol=1e-12)
    # A row moves the matrix by FAR_LENGTH^2 vv', |v| <= 1: sqrt(2) times that, over three records
    np.testing.assert_allclose(found.scale, 0.6 * FAR_LENGTH**2 * np.sqrt(2.0) / 3.0, rtol=1e-5)


def test_the_noise_of_far_rows_is_in_the_law(monkeypatch):
    """What the matrix adds to the slope moves the solution by its noise times the step."""
    X, y = curved()
    model = LinearRegression(
        epsilon=3.0, delta=1e-6, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0),
        estimand="least_squares", random_state=0,
    ).fit(X, y)  # fmt: skip
    released = model._released
    pooled, law = released.pooled("least_squares"), released.law("least_squares")
    directions, deviation = pooled.far
    along = directions.T @ np.linalg.solve(pooled.slope, pooled.moment)
    rng = np.random.RandomState(0)
    noise = [goe(len(along), deviation, rng) @ along for _ in range(4000)]
    square = np.mean(np.square(noise), axis=0)
    missing = pooled.slope - released.pooled("fitted").slope
    monkeypatch.setattr(FarRows, "missing_from", lambda *_: (missing, directions, 0.0))
    sure = replace(released).law("least_squares")
    points = directions.T @ pooled.slope  # each is mapped to one far direction
    added = law.variances(points)[1] - sure.variances(points)[1]
    np.testing.assert_allclose(added, square, rtol=0.1)
    across = np.linalg.svd(directions)[0][:, len(along) :].T @ pooled.slope
    others = law.variances(across)[1] / sure.variances(across)[1]
    np.testing.assert_allclose(others, 1.0, rtol=1e-6)  # they do not know the far rows' noise
