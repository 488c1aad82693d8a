"""Certified intervals of normal equations: their ingredients, where they are tight, coverage."""

from dataclasses import replace
from math import log, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from registry.noise import goe
from scipy import stats

from skpriv._estimation import _intervals as module
from skpriv._estimation._intervals import (
    DISTANCES, GRAM_PART, SHARP_EVENTS, TARGET_PARTS, USUAL_QUANTILE, _cross, expected_sum, _sharp,
    _solve, _SumBounds, asymptotic_interval, certified_by_equations, certified_by_norm, main_region,
    norm_quantile, operator_quantile, shared,
)  # fmt: skip
from skpriv._estimation._moments import NormalEquations

BOTH = certified_by_equations, certified_by_norm
LEVEL = 1e-4  # family-wise, of each Monte Carlo test over its parameters


def draw(rng, values, theta, sigma, scale, symmetric=True, residual=True, n=100_000):
    """Equations with a diagonal design of these values, Gaussian sums and fresh noises."""
    p, A = len(values), np.diag(np.asarray(values, float))

    def noise(size):
        return size * (goe(rng, p) if symmetric else rng.normal(size=(p, p)))

    first = noise(scale)
    sums = sigma * np.sqrt(values) * rng.normal(size=p)
    target = A @ theta + sums + scale * rng.normal(size=p)
    gram = first if symmetric else np.zeros((p, p))
    known = {
        "residual_gram": sigma**2 * A + (noise(0.5 * scale) if symmetric else 0.0),
        "residual_scale": 0.5 * scale,
        "excess_scale": scale,
        "residual_thetas": (tuple(theta),),
    }
    return NormalEquations(
        design=A + first, target=target, gram=A + gram, square=sigma**2 * n, n=n,
        symmetric=symmetric, design_scale=scale, target_scale=scale,
        gram_scale=scale if symmetric else 0.0, **(known if residual else {}),
    )  # fmt: skip


def test_expected_squares_are_bounded_by_those_that_are_seen(global_random_seed):
    """Terms of 0 and 4; for terms of half the size, or half of what is seen, it fails."""
    rng, failure, draws = np.random.RandomState(global_random_seed), 1e-3, 400_000
    worst = dict.fromkeys(("whole", "terms", "seen"), 0.0)
    for mean in (6.0, 30.0, 200.0, 1000.0):
        seen, expected = 4.0 * rng.poisson(mean, size=draws), 4.0 * mean
        for name, size, factor in (("whole", 1, 1), ("terms", 0.5, 1), ("seen", 1, 0.5)):
            unit = 4.0 * size * log(1.0 / failure)
            missed = (expected_sum(factor * seen, unit) < expected).mean()
            worst[name] = max(worst[name], missed)
    assert worst["whole"] <= failure < min(worst["terms"], worst["seen"])


def test_what_depends_on_the_residuals_parameter_is_bounded(global_random_seed):
    """The largest of sum a zeta d over all thetas within a distance, |phi| = 1, p = 3."""
    rng, failure = np.random.RandomState(global_random_seed), 0.01
    phi = rng.normal(size=(400, 3))
    phi /= np.linalg.norm(phi, axis=1, keepdims=True)
    a, distance = rng.uniform(0.0, 1.0, size=400), float(DISTANCES[15])
    zeta = rng.choice([-1.0, 1.0], size=(5000, 400))
    largest = distance * np.linalg.norm((zeta * a) @ phi, axis=1)  # if no fitted value is clipped
    bound = _cross(1.0, float(a @ a), distance, failure)
    assert np.quantile(largest, 1.0 - failure) <= bound
    assert np.quantile(largest, 1.0 - failure) > bound / 8.0
    # as the proof has it, term by term, at a distance of the grid and rounded up to the next
    length, V = log(len(DISTANCES) / 0.01), 50.0
    mean = 2.0 * distance * sqrt(3.0 * V)
    found = mean + sqrt(2.0 * length * (distance**2 * 3.0 * V + 2.0 * 6.0 * distance * mean))
    found += 2.0 * 6.0 * distance * length / 3.0
    assert _cross(3.0, V, distance, 0.01) == pytest.approx(found, rel=1e-12)
    assert _cross(3.0, V, 0.999 * distance, 0.01) == pytest.approx(found, rel=1e-12)
    assert _cross(3.0, V, 1.001 * distance, 0.01) > found
    assert _cross(3.0, V, 2.1, 0.01) == np.inf


@pytest.mark.parametrize("p", [1, 6])
def test_the_norm_of_a_sum_is_bounded(p, global_random_seed):
    """|A^-1 S| of rows along the axes and targets of 1 and -1, from the Gram matrix alone."""
    rng, n, failure = np.random.RandomState(global_random_seed), 600, 0.05
    parts = shared(1.0, SHARP_EVENTS)
    parts.sums = failure
    counts = np.full(p, n // p)
    sums = np.array([2.0 * rng.binomial(c, 0.5, size=20_000) - c for c in counts])
    norms = np.linalg.norm(sums / counts[:, None], axis=0)
    equations = NormalEquations(
        design=np.diag(counts), target=np.zeros(p), gram=np.diag(counts).astype(float),
        square=n, n=n, symmetric=True, design_scale=0.0, target_scale=0.0, gram_scale=0.0,
    )  # fmt: skip
    inverse = np.diag(1.0 / counts)
    bound = _SumBounds(equations, inverse, inverse[0, 0], 0.0, 0.0, parts).norm(np.inf)
    assert (norms > bound).mean() <= failure < (norms > bound / 2.0).mean()


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("values", [[40.0], [3000.0, 900.0, 70.0, 60.0]])
def test_the_solution_is_as_near_as_it_is_said_to_be(symmetric, values, global_random_seed):
    rng, theta = np.random.RandomState(global_random_seed), np.full(len(values), 1.5)
    parts, missed, draws = shared(0.2, SHARP_EVENTS), 0, 100
    for _ in range(draws):
        equations = draw(rng, values, theta, 0.3, 5.0, symmetric)
        solved = _solve(equations, np.inf, parts)
        if solved is not None:
            away = np.linalg.norm(solved.theta - theta)
            missed += (solved.size < np.linalg.norm(theta)) or (solved.distance < away)
    assert missed <= stats.binom.isf(LEVEL / 4, draws, 0.2)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("values", [[45.0], [3000.0, 900.0, 70.0, 60.0], [2000.0] * 12])
@pytest.mark.parametrize("theta", [0.3, 20.0])
def test_intervals_cover_in_weak_directions(symmetric, values, theta, global_random_seed):
    """At the rows' points and along the weakest direction, of large coefficients too."""
    rng, level, draws = np.random.RandomState(global_random_seed), 0.8, 40
    p = len(values)
    truth, points = np.full(p, theta), np.vstack([np.eye(p)[-1], rng.normal(size=(3, p))])
    missed = np.zeros(4)
    for _ in range(draws):
        equations = draw(rng, values, truth, 0.3, 5.0, symmetric)
        centre, half = certified_by_equations(equations, points, None, level)
        missed += np.abs(centre - points @ truth) > half
    assert missed.max() <= stats.binom.isf(LEVEL / 48, draws, 1.0 - level)


@pytest.mark.parametrize("symmetric", [True, False])
def test_an_interval_of_a_known_norm_by_hand(symmetric, monkeypatch):
    """The noise of the targets counts in the sum of the records, or beside that of the design."""
    V, squares, bias = np.array([[3.0, 4.0]]), np.array([25.0]), np.array([0.2])
    monkeypatch.setattr(module, "_best_on_path", lambda e, x, half: (0, half(V, squares, bias)))
    equations = NormalEquations(
        design=np.eye(2), target=np.zeros(2), gram=np.diag([40.0, 60.0]), square=1.0, n=100,
        symmetric=symmetric, design_scale=2.0, target_scale=5.0, gram_scale=0.1,
    )  # fmt: skip
    b, a, ways = 25.0, 9.0, []  # variances of the noise of the target, and of that along theta
    rest = a / 2.0 if symmetric else a
    for part in TARGET_PARTS:
        factor, noise = sqrt(2.0 * log(2.0 / (0.05 * part))), 0.05 * (1.0 - GRAM_PART - part)
        ways.append((factor, 0.0, norm_quantile(b + a, b + rest, 2, noise)))
        ways.append((factor, 5.0, norm_quantile(a, rest, 2, noise)))
    factor, joined, remainder = min(ways, key=lambda w: w[0] * sqrt(50.0 + w[1] ** 2) + w[2])
    gram = 9.0 * 40.0 + 16.0 * 60.0 + 25.0 * operator_quantile(0.1, 2, 0.05 * GRAM_PART)
    half = factor * sqrt(gram + 25.0 * joined**2) + 5.0 * remainder + 1.5 * 0.2
    assert joined and certified_by_norm(equations, np.eye(2), 1.5, 0.95)[1] == pytest.approx(half)
    exact = replace(equations, design_scale=0.0, target_scale=0.0, gram_scale=0.0)
    half = certified_by_norm(exact, np.eye(2), 1.5, 0.95)[1]
    assert half == pytest.approx(sqrt(2.0 * log(2.0 / 0.05) * (360.0 + 960.0)) + 1.5 * 0.2)


def test_reports_bound_their_own_parameter():
    """By the first norm t that is at least 2 + (2 + t / 2) / 4, and what that is for it."""
    law = SimpleNamespace(norm_bound=lambda norm, failure: 2.0 + 0.5 * norm)
    equations = SimpleNamespace(design=np.array([[4.0]]), target=np.array([8.0]), law=law)
    norm = module.NORMS[module.NORMS >= 2.5 / 0.875][0]
    assert module._joint_bound(equations, 0.05) == pytest.approx(2.5 + 0.125 * norm)


def test_public_numbers_decide_which_interval_is_taken():
    """With a norm the plain one alone up to 100 times the noise that rows could stand above."""
    rng, points = np.random.RandomState(0), np.eye(3)
    values = [900.0, 400.0, 4.0]
    unknown = draw(rng, values, np.ones(3), 0.3, 9.0)
    assert np.isinf(certified_by_equations(unknown, points, None, 0.95)[1]).all()
    least = 3 * module.CLEAR * 9.0 * np.sqrt(1.5)
    levels = {certified_by_norm: 0.95, module._sharp: 0.05 * (1.0 - module.LEFT)}
    for n, law in ((0.99 * least, certified_by_norm), (1.01 * least, module._sharp)):
        equations = draw(rng, [8000.0] * 3, np.ones(3), 0.3, 9.0, n=int(n))
        expected = law(equations, points, 2.0, levels[law])
        np.testing.assert_allclose(certified_by_equations(equations, points, 2.0, 0.95), expected)
    # Beyond, a direction that is not resolved has what the plain one says with a tenth of the
    # failure probability, whose logarithms grow by log(10) at most: more rows do not hide it.
    weak = draw(rng, [8000.0, 8000.0, 4.0], np.ones(3), 0.3, 9.0, n=int(1.01 * least))
    half, before = (law(weak, points, 2.0, 0.95)[1] for law in BOTH)
    assert (half <= before * np.sqrt(1.0 + np.log(1.0 / module.LEFT) / np.log(40.0))).all()


def test_more_that_is_known_makes_intervals_narrower():
    rng, points = np.random.RandomState(0), np.eye(4)
    arguments = [8000.0] * 4, np.full(4, 0.5), 0.2, 9.0
    state = rng.get_state()
    widths = []
    for residual in (True, False):
        rng.set_state(state)
        equations = draw(rng, *arguments, residual=residual)
        widths.append(certified_by_equations(equations, points, None, 0.95)[1])
        # Logarithms of the tenth that is left to the plain one: log(1 / .9) / log(40) at most.
        assert (certified_by_equations(equations, points, 1.2, 0.95)[1] <= widths[-1] * 1.03).all()
    assert (widths[0] < 0.7 * widths[1]).all()


def test_normal_intervals_say_nothing_below_the_noise():
    equations = draw(np.random.RandomState(0), [900.0, 0.0], np.ones(2), 0.3, 1.0)
    assert np.linalg.svd(equations.design, compute_uv=False)[-1] < 1.5 + USUAL_QUANTILE
    assert np.isinf(asymptotic_interval(equations, np.eye(2), np.ones(2), None, 0.95)[1]).all()
    assert np.isfinite(asymptotic_interval(equations, np.eye(2), np.ones(2), 2.0, 0.95)[1]).all()


def by_hand(eq, x, failure):
    """Half-width of one coefficient, as the module's proof has it: numbers alone."""
    part = shared(failure, SHARP_EVENTS)
    isf, scale = stats.norm.isf, eq.design_scale
    A, G, theta = eq.design[0, 0], eq.gram[0, 0], eq.target[0] / eq.design[0, 0]
    length = 1.0 / A  # |A^-1|
    worst = scale * stats.chi.isf(part.norms / 2.0, 1)  # s q
    k = worst / A
    gram = min(G + eq.gram_scale * (sqrt(2.0) + sqrt(2.0 * log(1.0 / part.gram))), eq.n)
    cut = max(eq.residual_excess + isf(part.excess) * eq.excess_scale, 0.0)
    moment = log(1.0 / part.moment)
    privacy = eq.target_scale * length * sqrt(1.0 + 2.0 * sqrt(moment) + 2.0 * moment)
    R, noise = eq.residual_gram[0, 0], eq.residual_scale

    def expected(seen, failure):
        return float(expected_sum(seen, 4.0 * log(1.0 / failure)))  # see its own test

    def cross(V, distance, failure):
        reach, l = DISTANCES[DISTANCES >= distance][0], log(27.0 / failure)
        mean = 2.0 * reach * sqrt(V)
        return mean + sqrt(2.0 * l * (reach**2 * V + 4.0 * reach * mean)) + 4.0 * reach * l / 3.0

    operator = sqrt(2.0) + sqrt(2.0 * log(1.0 / part.weak))
    seen, most = R + isf(part.total) * noise + cut, R + operator * noise + cut
    total = weak = gram
    away = abs(theta - eq.residual_thetas[0][0])
    t, q = main_region(part.size)
    distance = size = np.inf
    for turn in range(6):
        if turn and distance + away <= 2.0:
            reach = distance + away
            total = min(
                total, expected(seen + 2 * cross(total, reach, part.whole), part.squares / 2)
            )
            minkowski = (sqrt(most) + reach * sqrt(gram)) ** 2
            weak = min(weak, expected(minkowski, part.squares / 2), total)
        l, root = log(1.0 / part.sums), sqrt(total)
        sums = root + sqrt(2.0 * l * (weak + 4.0 * root)) + 4.0 * l / 3.0
        known = sums * length + privacy
        distance = min(distance, (known + k * abs(theta)) / (1.0 - k))
        along = sqrt(2.0 * t * weak + (eq.target_scale * q) ** 2) * length + 2.0 * t * length / 3.0
        size = min(size, abs(theta) + distance, (abs(theta) + along) / (1.0 - k))
        distance = min(distance, known + k * size)
    variance, along = gram, R + isf(part.seen) * noise + cut
    for _ in range(6):
        if distance + away <= 2.0:
            twice = 2.0 * cross(variance, distance + away, part.cross)
            variance = min(variance, expected(along + twice, part.realised))
    v, v0 = abs(x) / A, abs(x) / A / (1.0 - k)
    design = (scale * v0 * size) ** 2
    if eq.symmetric:
        other = v * (abs(theta) + distance) + (v0 - v) * size
        design = (design + scale**2 * min(v0 * size, other) ** 2) / 2.0
    t, q = main_region(part.main / 2.0)
    main = sqrt(2.0 * t * variance * v**2 + ((eq.target_scale * v0) ** 2 + design) * q**2)
    follows = eq.target_scale * isf(part.follows / 2.0) + worst * size
    first = main + 2.0 * v * t / 3.0 + k * v0 * follows
    t, q = main_region(part.bounded / 2.0)
    second = sqrt(2.0 * t * variance * v**2 + (eq.target_scale * v * q) ** 2) + 2.0 * v * t / 3.0
    return min(first, second + v * worst * size)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("value", [30.0, 90.0, 600.0, 20_000.0])
@pytest.mark.parametrize("sigma", [0.05, 0.5])
@pytest.mark.parametrize("cut", [0.0, 100.0])
def test_one_coefficient_by_hand(symmetric, value, sigma, cut):
    equations = draw(np.random.RandomState(0), [value], np.array([0.7]), sigma, 5.0, symmetric)
    shifted = ((float(equations.residual_thetas[0][0]) + 0.01,),)
    equations = replace(
        equations, residual_excess=cut, residual_thetas=shifted, target_scale=7.0, gram_scale=3.0
    )
    found = _sharp(equations, np.array([[0.9]]), None, 0.04)[1][0]
    assert found == pytest.approx(by_hand(equations, 0.9, 0.04), rel=1e-9)


def test_pooled_sums_keep_what_was_cut(global_random_seed):
    rng, theta = np.random.RandomState(global_random_seed), np.array([0.5, -0.5])
    missed, points = 0, np.array([[1.0, 0.0], [0.0, 1.0]])
    for _ in range(60):
        one, two = (draw(rng, [v, 0.3 * v], theta, 0.3, 5.0) for v in (8000.0, 3000.0))
        both = one.pooled(replace(two, residual_excess=50.0))
        assert both.residual_thetas == one.residual_thetas + two.residual_thetas
        assert 0.0 < both.residual_excess <= 50.0 and both.excess_scale > 0.0
        centre, half = certified_by_equations(both, points, None, 0.8)
        assert (half < 1.1 * certified_by_equations(one, points, None, 0.8)[1]).all()
        missed += np.abs(centre - points @ theta) > half
    assert missed.max() <= stats.binom.isf(LEVEL / 4, 60, 0.2)
    unknown = one.pooled(replace(two, residual_gram=None, residual_thetas=()))
    assert unknown.residual_thetas == ()
