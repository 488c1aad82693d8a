"""The noise of the peers of `benchmarks/_peers` is that of their guarantee: replace one record."""

import sys
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from skpriv import Budget

FOLDER = Path(__file__).parents[1] / "benchmarks"
EPSILON, DELTA = 1.0, 1e-6
MU = Budget(EPSILON, DELTA).mu


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import _peers

    yield _peers
    for name in [name for name in sys.modules if name.split(".")[0] == "_peers"]:
        del sys.modules[name]


class Recorder(np.random.RandomState):
    """Draws no noise and remembers the scales that were asked for."""

    def __init__(self):
        super().__init__(0)
        self.scales = []

    def normal(self, loc=0.0, scale=1.0, size=None):
        self.scales.append(scale)
        return np.zeros(size) if size is not None else 0.0

    def laplace(self, loc=0.0, scale=1.0, size=None):
        self.scales.append(scale)
        return np.zeros(size) if size is not None else 0.0


def unit_rows(n, d, rng):
    X = rng.standard_normal((n, d))
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]


def neighbours(rng, d, draws=300):
    """Pairs of records in the unit ball with targets in [-1, 1], the extreme ones included."""
    for _ in range(draws):
        x, x2 = unit_rows(2, d, rng)
        yield (x, rng.uniform(-1, 1)), (x2, rng.uniform(-1, 1))
    x = np.eye(d)[0]
    yield (x, 1.0), (x, -1.0)
    yield (x, 1.0), (-x, 1.0)
    yield (x, 1.0), (np.eye(d)[1], 1.0)


def largest_change(sums, rng, d):
    """Of a sum over records, when one is replaced."""
    changes = [
        np.linalg.norm(np.ravel(sums(*new)) - np.ravel(sums(*old)))
        for old, new in neighbours(rng, d)
    ]
    return max(changes)


def test_clipped_gradients_move_by_twice_the_clip(peers):
    rng, clip, d = np.random.default_rng(0), 0.1, 4
    theta = rng.standard_normal(d) / 4.0
    from _peers._descent import clipped_gradient

    def gradient(x, r):
        Z = x[None, :]
        return clipped_gradient(Z, np.linalg.norm(Z, axis=1), np.array([[r - x @ theta]]), [clip])

    assert largest_change(gradient, rng, d) == pytest.approx(2.0 * clip)


def test_descent_composes_to_the_budget(peers):
    rng, rounds, clip = np.random.default_rng(0), 7, 0.3
    Z, r = unit_rows(50, 3, rng), rng.uniform(-1, 1, 50)
    drawn = []

    class Scaled(np.random.RandomState):
        def normal(self, size=None):
            drawn.append(size)
            return np.ones(size)  # one deviation, so that the step shows it

    from _peers._descent import descend

    clips, steps = np.array([clip]), np.array([1.0])
    quiet = descend(Z[:, :0], r, clips, steps, rounds, MU, Scaled(0))
    assert quiet.shape == (0, 1) and len(drawn) == rounds
    zero = np.zeros((50, 3))  # gradients of zero: the path is noise alone
    path = descend(zero, r, clips, steps, 1, MU / sqrt(rounds), Scaled(0))
    scale = float(path[0, 0]) * len(zero)
    assert rounds * (2.0 * clip / scale) ** 2 == pytest.approx(MU**2)


def test_adassp_composes_to_the_budget(peers):
    rng, recorder, d = np.random.default_rng(0), Recorder(), 4
    X, y = unit_rows(300, d, rng), rng.uniform(-1, 1, 300)
    peers.AdaSSP(fit_intercept=False, random_state=recorder).fit(X, y)
    part = MU / sqrt(3.0)
    assert recorder.scales[1:] == pytest.approx([sqrt(2.0) / part, 2.0 / part])
    # the first draw is of a standard deviation of 1, and divided by the part
    assert recorder.scales[0] == 1.0
    assert largest_change(lambda x, r: np.outer(x, x), rng, d) == pytest.approx(sqrt(2.0))
    assert largest_change(lambda x, r: r * x, rng, d) == pytest.approx(2.0)


def test_the_laplace_noise_of_the_tukey_check(peers):
    """The code published with the paper has epsilon / 2 in place of 2 / epsilon."""
    rng, recorder = np.random.default_rng(0), Recorder()
    X, y = unit_rows(600, 2, rng), rng.uniform(-1, 1, 600)
    model = peers.TukeyEM(epsilon=0.5, random_state=recorder).fit(X, y)
    assert recorder.scales == [2.0 / 0.5]
    assert not model.passed_ and not model.theta_.any()


def test_safe_distance_moves_by_one(peers):
    from _peers._tukey import depth_volumes, safe_distance

    rng, seen = np.random.default_rng(0), set()
    for _ in range(60):
        fits = rng.standard_normal((200, 2)) * rng.uniform(0.01, 1.0, 2)
        distances = []
        for change in (None, 0.0, 50.0, -1e6):
            moved = fits.copy()
            if change is not None:
                moved[rng.integers(200)] = change
            volumes = depth_volumes(np.sort(moved, axis=0))
            distances.append(safe_distance(volumes, 50, 3.0, 1e-3))
        assert np.ptp(distances) <= 2  # two tables that are one away from a third
        assert max(abs(k - distances[0]) for k in distances) <= 1
        seen.add(distances[0])
    assert max(seen) > 3


def test_depths_are_sampled_as_by_the_exponential_mechanism(peers):
    from _peers._tukey import depth_volumes, sampled

    rng, epsilon, depth = np.random.RandomState(0), 0.8, 4
    fits = np.sort(rng.standard_normal((16, 2)), axis=0)
    volumes = depth_volumes(fits)
    size = np.append(np.exp(volumes[depth:]), 0.0)
    weights = (size[:-1] - size[1:]) * np.exp(epsilon / 2.0 * np.arange(depth, 9))
    draws = np.array([sampled(fits, volumes, depth, epsilon, rng) for _ in range(4000)])
    below = (fits[None] <= draws[:, None]).sum(axis=1)
    found = np.bincount(np.minimum(below, 16 - below).min(axis=1), minlength=9)[depth:9]
    np.testing.assert_allclose(found / 4000, weights / weights.sum(), atol=0.03)


def test_binned_sums_compose_to_the_budget(peers):
    from _peers._binned import box_sums, private_boxes

    rng, d = np.random.default_rng(0), 3
    X, y = unit_rows(2000, d, rng) / sqrt(d), rng.uniform(-1, 1, 2000)
    model = peers.BinnedAggregation(random_state=0).fit(X, y)
    spent = sum((sensitivity / scale) ** 2 for sensitivity, scale in model.releases_.values())
    of_bins = MU / sqrt(28.0)
    assert spent + of_bins**2 == pytest.approx(MU**2)

    recorder = Recorder()
    private_boxes(rng.uniform(-1, 1, (100, d)), 0.5, recorder)
    assert set(recorder.scales) == {2.0 * 3.0 / 0.5}  # PrivTree's 3 / epsilon, twice

    most = dict.fromkeys(model.releases_, 0.0)
    extreme = [((np.ones(d), 1.0), (-np.ones(d), -1.0)), ((np.ones(d), 1.0), (-np.ones(d), 1.0))]
    random = [
        tuple((rng.uniform(-1, 1, d), rng.uniform(-1, 1)) for _ in range(2)) for _ in range(200)
    ]
    for old, new in extreme + random:
        for split in (False, True):
            counts, rows, targets, units = _changes(box_sums, old, new, split)
            for name, value in {"count": counts, "rows": rows / units, "targets": targets}.items():
                most[name] = max(most[name], float(np.linalg.norm(value)))
    for name, (sensitivity, _) in model.releases_.items():
        assert most[name] == pytest.approx(sensitivity)


def _changes(box_sums, old, new, split):
    """Of the sums in one box, or in the two halves of the first coordinate, and their units."""
    d, sums = len(old[0]), []
    for x, r in (old, new):
        corners = [(-np.ones(d), np.ones(d))]
        if split:
            middle = np.r_[0.0, np.ones(d - 1)]
            corners = [(-np.ones(d), middle), (-middle, np.ones(d))]
        inside = [np.flatnonzero([(low[0] <= x[0] < high[0]) or high[0] == 1.0 == x[0]])
                  for low, high in corners]  # fmt: skip
        boxes = [(*pair, members) for pair, members in zip(corners, inside)]
        sums.append(box_sums(x[None, :], np.array([r]), boxes))
    return [after - before for before, after in zip(*(part[:3] for part in sums))] + [sums[0][3]]


def test_rows_that_users_perturb(peers):
    recorder, rng = Recorder(), np.random.default_rng(0)
    X, y = unit_rows(100, 3, rng), rng.uniform(-1, 1, 100)
    peers.InputPerturbation(random_state=recorder).fit(X, y)
    assert set(recorder.scales) == {2.0 * sqrt(2.0) / MU}
    joined = largest_change(lambda x, r: np.append(x, r), rng, 3)
    assert joined <= 2.0 * sqrt(2.0)


def test_scores_of_hard_thresholding(peers):
    """2 eta x_max (R + x_max C) / n, in each coordinate, for iterates in the l1 ball."""
    recorder, rng, n = Recorder(), np.random.default_rng(0), 50
    X, y = rng.uniform(-1, 1, (n, 6)), rng.uniform(-1, 1, n)
    peers.NoisyIHT(n_nonzero_coefs=2, max_iter=1, random_state=recorder).fit(X, y)
    change = 2.0 * 1.0 * 2.0 / n
    expected = change * 2.0 * sqrt(6.0 * np.log(1.0 / DELTA)) / EPSILON
    assert recorder.scales == pytest.approx([expected] * 3)


def test_a_sketch_tells_records_apart_by_no_more_than_it_is_charged(peers):
    """Against determinants, at any two records that are no longer than the bound."""
    from _peers._mixing import ORDERS, ROUNDS, noise_level, sketch_divergence

    rng = np.random.RandomState(0)
    for _ in range(2000):
        order = 1.0 + 10.0 ** rng.uniform(-1.0, 2.0)
        size = min(rng.uniform(0.0, 0.99 / (order - 1.0)), 1.0)
        first, second = np.eye(3) * rng.uniform(0.1, 4.0, size=3), np.zeros((2, 3))
        second[:] = unit_rows(2, 3, rng) * np.sqrt(size) @ np.sqrt(first)
        one, other = (first + np.outer(u, u) for u in second)
        logs = [np.linalg.slogdet(m)[1] for m in (order * other + (1.0 - order) * one, one, other)]
        found = (-logs[0] + (1.0 - order) * logs[1] + order * logs[2]) / (2.0 * (order - 1.0))
        assert found <= float(sketch_divergence(np.array(order), size)) + 1e-9
    assert np.isinf(sketch_divergence(np.array(3.0), 0.5))
    mu, rows = MU / sqrt(2.0), 112
    gamma = noise_level(EPSILON, DELTA, mu, rows, ROUNDS)
    total = 0.5 * ORDERS * (mu**2 + rows / gamma**2)
    total += ROUNDS * rows * sketch_divergence(ORDERS, 1.0 / (gamma - 1.0))
    # The delta of these divergences (Canonne, Kamath and Steinke 2020)
    log_delta = (ORDERS - 1.0) * (total - EPSILON + np.log1p(-1.0 / ORDERS)) - np.log(ORDERS)
    assert log_delta.min() == pytest.approx(np.log(DELTA), abs=0.05)


def test_hessian_mixing_finds_a_line_and_asks_for_its_noise(peers):
    rng, recorder = np.random.RandomState(0), Recorder()
    X = unit_rows(200_000, 3, rng)
    y = X @ [0.5, -0.3, 0.2]
    model = peers.IterativeHessianMixing(epsilon=EPSILON, delta=DELTA, random_state=0).fit(X, y)
    assert np.abs(model.predict(X) - y).max() < 0.02
    recorder.normal = lambda loc=0.0, scale=1.0, size=None: (
        recorder.scales.append(scale) or np.random.RandomState(0).standard_normal(size)
    )
    peers.IterativeHessianMixing(epsilon=EPSILON, delta=DELTA, random_state=recorder).fit(X, y)
    noises = [scale for scale in recorder.scales if scale != 1.0]
    mu = Budget(EPSILON, 2.0 * DELTA / 3.0).mu
    assert noises == pytest.approx([2.0 * sqrt(3.0) / (mu / sqrt(2.0))] * 3)
