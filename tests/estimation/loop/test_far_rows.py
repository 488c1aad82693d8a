"""Far rows: what their weights take away from the slope of the least-squares line."""

from dataclasses import replace

import numpy as np

from skpriv._estimation._loop._far_rows import FAR_LENGTH, FarRows, FarRowsQuery
from skpriv._estimation._loop._rows import Whitened
from skpriv._estimation._loop._line import Line
from skpriv._estimation._loop._line_queries import LineScoreQuery
from skpriv._estimation._loop._score import ScoreEquation
from skpriv._estimation._public_maps import RowMap, TargetMap
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
    seen = FarRows(0.03 * far.T @ far + goe(4, noise, rng), noise)
    missing, directions = seen.missing(slope)
    np.testing.assert_allclose(missing, 0.03 * far.T @ far, atol=4.0 * noise)
    np.testing.assert_allclose(directions @ directions.T, far.T @ far, atol=0.15)
    assert not seen.missing(slope, far)[1].size  # where it is known otherwise


def test_noise_alone_is_seldom_taken_for_far_rows():
    """In 3% of draws at most, as the floor promises, and in 2.5% along the slope's eigenvectors."""
    rng = np.random.RandomState(0)
    for p in (1, 3, 10):
        slopes = [goe(p, 0.1, rng) for _ in range(400)]
        found = [FarRows(goe(p, 0.8, rng), 0.8).missing(slope)[0].any() for slope in slopes]
        assert np.mean(found) < 0.09  # passes with a chance of 99% for 5.5%, of 1% for 13%


def test_noise_of_one_number_is_taken_for_far_rows_as_seldom_as_is_stated():
    """What is found is added to the slope, which would be too large: in .025 of 8,000 draws.

    Twice as often is 14 deviations away.
    """
    rng, slope = np.random.RandomState(0), np.eye(1)
    found = [FarRows(rng.normal(size=(1, 1)), 1.0).missing(slope)[0].any() for _ in range(8000)]
    assert 0.02 < np.mean(found) < 0.03


def test_a_rare_level_is_found_along_its_weak_direction():
    """The slope says where it is: noise of any direction would hide what is one in particular."""
    rng, rare = np.random.RandomState(0), np.eye(10)[:1]
    slope = 0.04 * np.eye(10) - 0.03 * rare.T @ rare
    found = [
        FarRows(0.025 * rare.T @ rare + goe(10, 0.006, rng), 0.006).missing(slope)[0]
        for _ in range(100)
    ]
    assert np.mean([matrix[0, 0] > 0.01 for matrix in found]) > 0.8


def test_scores_are_shorter_along_far_rows_alone():
    """Rows twice as long as those of steps become as long as usual ones, or a quarter of that."""
    far = np.eye(4)[:1]
    seen = FarRows(3.0 * 0.01 * far.T @ far, 1e-3)
    slope = 0.04 * np.eye(4) - 0.03 * far.T @ far
    found = seen.shorter(slope, 1e-3, 0.4)
    for matrix, factor in zip(found, (1.0, 4.0), strict=True):
        own = 1.0 / np.sqrt(1.0 + 3.0 * factor**2 / 0.16)
        np.testing.assert_allclose(matrix, np.diag([own, 1.0, 1.0, 1.0]), atol=1e-12)
    assert FarRows(1e-4 * np.eye(4), 1e-3).shorter(slope, 1e-3, 0.4) == []


def test_answers_in_shorter_coordinates_lead_back():
    """The moment, its errors and the residual Gram are those of the whitened rows' coordinates."""
    rng = np.random.RandomState(0)
    X, y = rng.uniform(-0.5, 0.5, size=(50, 3)), rng.uniform(-1.0, 1.0, size=50)
    whitened = Whitened(RowMap(None, None, 1.0, False, 3), 3.0 * np.eye(3))
    turn, point = np.linalg.qr(rng.normal(size=(3, 3)))[0], np.array([0.2, -0.1, 0.0])
    shorter = (turn * [1.0, 0.5, 0.2]) @ turn.T
    back = np.linalg.inv(shorter)
    maps = TargetMap((-1.0, 1.0), False), 0.1
    rows, factors = LineScoreQuery(whitened, *maps, point, 10.0).score_rows(X, y)
    u = rows * factors[:, None]
    other = Whitened(whitened.row_map, shorter @ whitened.W)
    query = LineScoreQuery(other, *maps, back @ point, 10.0, missed=0.3)
    last = ScoreEquation(np.zeros(3), 1.0, None, None, 1.0, 50, 0.0, 0.0)
    answer = Answer(query.sum(X, y), len(y), GaussianNoise(0.0))
    line = Line.of(query, answer, last, (np.eye(3), 0.0), shorter)
    np.testing.assert_allclose(line.equation.point, point, atol=1e-12)
    np.testing.assert_allclose(line.equation.moment, u.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(line.equation.residual_gram, u.T @ u / 50.0, atol=1e-12)
    noisy = line._replace(equation=replace(line.equation, moment_scale=0.7))
    deviations = noisy.errors[:, 1:]
    everywhere = 0.7**2 * np.eye(3) + deviations @ deviations.T
    np.testing.assert_allclose(everywhere, (0.7**2 + 0.3**2 / 3.0) * back @ back, atol=1e-12)


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
    query = FarRowsQuery(whitened)
    found = FarRows(*query.gram(_Session().sum(query, 1.0, None)))
    most = FAR_LENGTH**2 - 1.0
    np.testing.assert_allclose(found.gram, np.diag([0.0, 1.25, most]) / 3.0, atol=1e-12)
    # A row moves the matrix by that times ee', |e| = 1: sqrt(2) times, over three records
    np.testing.assert_allclose(found.scale, 0.6 * most * np.sqrt(2.0) / 3.0, rtol=1e-5)


def test_the_noise_of_far_rows_is_in_the_law(monkeypatch):
    """What the matrix adds to the slope moves the solution by its noise times the step."""
    X, y = curved()
    model = LinearRegression(
        epsilon=3.0, delta=1e-6, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0),
        estimand="least_squares", random_state=0,
    ).fit(X, y)  # fmt: skip
    released = model._released
    pooled, law = released.pooled("least_squares"), released.law("least_squares")
    directions, deviation, _ = pooled.far
    along = directions.T @ np.linalg.solve(pooled.slope, pooled.moment)
    rng = np.random.RandomState(0)
    noise = [goe(len(along), deviation, rng) @ along for _ in range(4000)]
    square = np.mean(np.square(noise), axis=0)
    missing = pooled.slope - released.pooled("fitted").slope
    monkeypatch.setattr(FarRows, "missing", lambda *_: (missing, directions))
    monkeypatch.setattr(FarRows, "scale", 0.0)
    sure = replace(released).law("least_squares")
    points = directions.T @ pooled.slope  # each is mapped to one far direction
    added = law.variances(points)[1] - sure.variances(points)[1]
    np.testing.assert_allclose(added, square, rtol=0.1)
    across = np.linalg.svd(directions)[0][:, len(along) :].T @ pooled.slope
    others = law.variances(across)[1] / sure.variances(across)[1]
    np.testing.assert_allclose(others, 1.0, rtol=1e-6)  # they do not know the far rows' noise
    # One more deviation: the bounds allow rows this many times longer than FAR_LENGTH
    farther = np.log(model._record_map.row_map.longest_row(released.W) / FAR_LENGTH)
    longer = farther * directions.T @ missing @ np.linalg.solve(pooled.slope, pooled.moment)
    far = released.line.far._replace(farther=0.0)
    known = replace(released, line=released.line._replace(far=far)).law("least_squares")
    added = sure.variances(points)[1] - known.variances(points)[1]
    np.testing.assert_allclose(added, longer**2, rtol=1e-6)


def test_steps_tell_of_a_rare_level_only_where_they_cut_none_of_its_residuals():
    """Along a rare cell the equation of steps is that of the line if they cut at 6 deviations."""
    rng = np.random.RandomState(0)
    X = np.column_stack([rng.uniform(size=8000) < 0.01, rng.normal(size=(8000, 2)).clip(-4, 4)])
    y = X @ [0.5, 0.3, -0.2] + 0.1 * rng.exponential(size=8000)
    fit = LinearRegression(
        epsilon=1.0, bounds_X=[(0, 1), (-4, 4), (-4, 4)], bounds_y=(-3, 3),
        estimand="least_squares", random_state=0,
    ).fit(X, y)._released  # fmt: skip
    long, unit = fit.cells.long[0], fit.cells.unit[0]
    assert long > 1.0
    for deviations, of_steps in ((5.9, False), (6.1, True)):
        limited = replace(fit, variance=(long * fit.last.limit / deviations) ** 2)
        moments = limited.pooled("least_squares").moment, limited.line.equation.moment
        assert np.isclose(*(moment @ unit for moment in moments)) != of_steps
