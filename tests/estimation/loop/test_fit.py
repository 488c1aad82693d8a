"""Intervals from released Newton equations, against draws of their noise."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from registry.noise import goe
from scipy.integrate import trapezoid

from skpriv._estimation._links import IDENTITY, Log, Logit
from skpriv._estimation._loop._score import CUBE, CUT, ScoreEquation
from skpriv._estimation._levels import USUAL_QUANTILE
from skpriv._estimation._cells import Cells, noise_floor
from skpriv._estimation._loop._far_rows import FarRows
from skpriv._estimation._loop._fit import LoopFit, beside_noise, mean_slope
from skpriv._estimation._loop._law import inversion_excess
from skpriv._estimation._loop._line import Line
from skpriv._estimation._loop._whitening import Pool
from skpriv._estimation._public_maps import RecordMap, RowMap, TargetMap

P, SEEN = 8, 5
GRAM = np.diag([1.0 / P] * SEEN + [0.002 / P] * (P - SEEN))
SCALE = 0.006  # of the noise of the Gram matrix: hidden directions lie below it, others above
TRUTH = np.array([1.0, -1.0] * (P // 2))


def _fit(rng):
    """A fit that knows the coefficients in visible directions, and nothing of the others."""
    point = np.where(np.arange(P) < SEEN, TRUTH, 0.0)
    moment = GRAM @ (TRUTH - point) + 0.002 * rng.normal(size=P)
    equation = ScoreEquation(
        point=point, limit=1.0, moment=moment, slope=GRAM + SCALE * goe(rng, P), square=1e-4,
        n=10_000, moment_scale=0.002, slope_scale=SCALE, residual_gram=1e-4 * GRAM,
    )  # fmt: skip
    return LoopFit(0.0, np.eye(P), point, 1e-4, GRAM, (equation,), None, True, 1000)


def _misses(part):
    """Misses at .95 over draws of the noise and of points, with a part of the hidden deviations."""
    rng, missed = np.random.RandomState(0), []
    for _ in range(1500):
        x = np.r_[rng.normal(size=SEEN), 0.3 * rng.normal(size=P - SEEN)][None]
        law = _fit(rng).law()
        counted = {name: part * getattr(law, name) for name in ("inverted", "size")}
        variance = float(sum(replace(law, **counted).variances(x))[0])
        if law.resolved(x)[0]:
            missed.append((float(law.value(x)[0] - x[0] @ TRUTH)) ** 2 > 1.96**2 * variance)
    assert len(missed) > 400
    return float(np.mean(missed))


def _stepped(rng, gram, truth, steps, scale):
    """A fit whose steps follow each other, as those of the loop do, with the noise of each."""
    p, scale, equations = len(gram), scale * np.sqrt(steps), []
    pool = Pool(p, 3.0, [np.eye(p)], np.zeros(1), 1e3, IDENTITY, 1.0, True)
    for _ in range(steps):
        equations.append(
            ScoreEquation(
                point=pool.b, limit=9.0, n=10**9, square=1e-6, residual_gram=1e-6 * gram,
                moment=gram @ (truth - pool.b) + scale * rng.normal(size=p), moment_scale=scale,
                slope=gram + scale * goe(rng, p), slope_scale=scale, square_scale=1e-9,
                residual_scale=1e-9,
            )
        )  # fmt: skip
        pool.add(equations[-1])
    return LoopFit(0.0, np.eye(p), pool.b, 1e-6, pool.slope, tuple(equations), None, True, 10**9)


@pytest.mark.parametrize(
    ("steps", "weakest"), [(10, 0.35), pytest.param(20, 1.0, marks=pytest.mark.slow)]
)
def test_the_slope_of_all_steps_has_the_noise_that_is_counted(steps, weakest):
    """Steps begin where noise of earlier slopes led: what that adds is of second order.

    Without any sampling, where noise is an eighth of a typical eigenvalue (a quarter of the
    weakest), coverage at .95 is at least .93, and below .9 if the scale of the slope is halved. Of
    200 draws of 8 coordinates the standard error is .9%: less than .905 is always found.
    """
    p, draws, rng = 8, 200, np.random.RandomState(0)
    truth, gram = 3.0 * TRUTH, np.eye(p) / p
    gram[-1, -1] *= weakest
    covered = {1.0: [], 0.5: []}
    for _ in range(draws):
        fit = _stepped(rng, gram, truth, steps, 0.125 / p / np.sqrt(2.0 * p))
        for part, found in covered.items():
            changed = [replace(eq, slope_scale=part * eq.slope_scale) for eq in fit.equations]
            changed = [replace(eq, moment_scale=part * eq.moment_scale) for eq in changed]
            centre, half = replace(fit, equations=tuple(changed)).law("fitted").interval(np.eye(p))
            found.append(np.abs(centre - truth) <= half)
    assert np.mean(covered[1.0]) > 0.93 and np.mean(covered[1.0], axis=0).min() > 0.9
    assert np.mean(covered[0.5]) < 0.9


def test_slopes_of_steps_are_brought_to_the_part_that_the_last_clip_leaves():
    """Clipped at 1 and at 2 deviations, .68 and .95 of normal residuals are left."""
    common = dict(point=np.zeros(2), moment=np.zeros(2), n=100, moment_scale=0.1, widest=9.0)
    first, last = (
        ScoreEquation(limit=k, square=square, slope=part * np.eye(2), slope_scale=noise, **common)
        for k, square, part, noise in ((1.0, 0.5161, 0.6827, 0.1), (2.0, 0.9205, 0.9545, 0.2))
    )
    slope, scale = mean_slope([first, last])
    np.testing.assert_allclose(slope, 0.9545 * np.eye(2), rtol=2e-3)
    both = np.array([0.1 * 0.9545 / 0.6827, 0.2]) ** -2.0
    assert scale == pytest.approx(both.sum() ** -0.5, rel=2e-3)
    exact = replace(last, slope_scale=0.0)
    assert mean_slope([first, exact]) == (exact.slope, 0.0)


@pytest.mark.slow
def test_what_lies_below_the_noise_is_an_error_too():
    """Collinear features: a few percent of a row's length, times coefficients as large as others.

    Misses at .95 stay below .06, and not with half of the deviations, nor without them.
    """
    found = [_misses(part) for part in (1.0, 0.5, 0.0)]
    assert found[0] < 0.06 < found[1] and found[2] > 0.2, found


@pytest.mark.parametrize("quantile", [USUAL_QUANTILE, 2.6])
def test_inversion_ends_where_the_answers_allow_no_more(quantile):
    """The farther end solves (m - d g)^2 = q^2 (v + s^2 g^2), and beyond it nothing is allowed."""
    d, s = np.array([1.0, 0.3, 5.0, 1.0]), 0.1
    m, v = np.array([0.7, -0.9, 0.0, 2.0]), np.array([0.01, 0.04, 1.0, 0.0])
    excess = inversion_excess(d, m, v, s, quantile)
    deviation = np.sqrt(v / d**2 + (s * m / d**2) ** 2 + excess**2)
    end = m / d + np.where(m < 0.0, -1.0, 1.0) * quantile * deviation
    allowed = quantile**2 * (v + (s * end) ** 2)
    np.testing.assert_allclose((m - d * end) ** 2, allowed, rtol=1e-9)
    far = 1.001 * end
    assert ((m - d * far) ** 2 > quantile**2 * (v + (s * far) ** 2)).all()
    assert inversion_excess(d, m, v, 0.0, quantile).max() < 1e-7  # no noise, but for rounding


def test_slopes_that_pass_by_chance_are_covered_by_inversion():
    """A slope of a noise and a half, told from noise in a third of draws: then it is too large, and
    the delta method at the solution covers .60, half of the excess .82, and inversion .92.
    """
    rng, scale, truth, deviation = np.random.RandomState(0), 1.0, 1.5, 0.2
    d = truth + scale * rng.normal(size=100_000)
    m = truth + deviation * rng.normal(size=d.size)  # g = 1
    told = d > USUAL_QUANTILE * scale
    d, m, v = d[told], m[told], np.full(told.sum(), deviation**2)
    counted = v / d**2 + (scale * m / d**2) ** 2
    excess = inversion_excess(d, m, v, scale, USUAL_QUANTILE)
    error = np.abs(m / d - 1.0)
    covered = [
        np.mean(error <= USUAL_QUANTILE * np.sqrt(counted + (part * excess) ** 2))
        for part in (0.0, 0.5, 1.0)
    ]
    assert covered[0] < 0.65 and covered[1] < 0.85 and covered[2] > 0.9, covered


def test_bend_is_counted_where_the_rows_see_it():
    """Rows (1, x, x^2) of mean square length 1 for normal x, at a distance along x: mean(e q) has
    the largest size that Bessel's inequality allows, and more than the half of what is counted.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    weights = weights / weights.sum()
    rows = nodes[:, None] ** np.arange(3)
    rows /= np.sqrt(weights @ (rows**2).sum(axis=1))
    slope, away = (rows * weights[:, None]).T @ rows, np.array([0.0, 0.3, 0.0])
    moment = rows.T @ (weights * (rows @ away) ** 2 / 2.0)
    equation = ScoreEquation(
        point=np.zeros(3), limit=1.0, moment=moment, slope=slope, square=1.0, n=1000,
        moment_scale=0.0, slope_scale=0.0, residual_gram=slope,
    )  # fmt: skip
    fit = LoopFit(0.0, np.eye(3), away, 1.0, slope, (equation,), None, True, 1000, link=Logit())
    counted = fit._bend(equation, away, *np.linalg.eigh(slope))
    counted, along = np.hsplit(counted, [3])
    # Once more along the distance: of one that is longer by what it may be too short
    largest = np.sqrt(moment @ np.linalg.solve(slope, moment))
    length = np.sqrt(away @ slope @ away)
    farther = largest * (1.0 + largest / length) ** 2
    np.testing.assert_allclose(along[:, 0], farther * slope @ away / length, atol=1e-12)
    seen = float(np.trace(counted.T @ np.linalg.solve(slope, counted)))
    assert np.isclose(seen, moment @ np.linalg.solve(slope, moment))
    assert (counted**2).sum() <= (away @ slope @ away / 2.0) ** 2 * (1.0 + 1e-12)
    assert not fit._bend(equation, np.zeros(3), *np.linalg.eigh(slope)).any()


@pytest.mark.parametrize("size", [1, 3, 20])
def test_noise_alone_is_seldom_above_its_floor(size):
    """Of directions that are nothing, beside seen ones: in 3% of draws, and not in 3.5% with half
    of the margin above sqrt(2 k). The standard error is .1 to .3%.
    """
    rng, draws, half = np.random.RandomState(0), 12_000 if size < 10 else 4_000, 0.27
    largest = np.linalg.eigvalsh(goe(rng, size, draws))
    seen = np.full(3, 50.0)
    floors = np.array([noise_floor(np.append(values, seen), 1.0) for values in largest])
    assert (largest[:, -1] > floors).mean() < 0.03
    assert (largest[:, -1] > floors - half).mean() > 0.035


def test_little_is_added_where_every_direction_is_seen():
    """By slopes that are 20 of their noises: a twentieth of the variance, and nothing without."""
    rng = np.random.RandomState(0)
    equation = _fit(rng).equations[0]
    for scale, most in ((SCALE, 0.05), (0.0, 1e-12)):
        whole = replace(equation, slope=np.eye(P) / P, slope_scale=scale)
        fit = LoopFit(0.0, np.eye(P), TRUTH, 1e-4, np.eye(P) / P, (whole,), None, True, 1000)
        law, points = fit.law(), rng.normal(size=(5, P))
        added = np.square(points @ law.inverted).sum(axis=1)
        assert law.resolved(points).all() and (added <= most * sum(law.variances(points))).all()
    law = _fit(rng).law()  # of which directions are hidden: all counts in full in the covariances
    np.testing.assert_allclose(np.diagonal(law.covariances(points)[1]), law.variances(points)[1])


def test_points_that_are_mostly_hidden_get_no_interval():
    """What lies there rests on the size of other coefficients, which no law makes as large."""
    equation = replace(_fit(np.random.RandomState(0)).equations[0], slope=GRAM)
    fit = LoopFit(0.0, np.eye(P), TRUTH, 1e-4, GRAM, (equation,), None, True, 1000)
    points = np.zeros((2, P))
    points[:, 0], points[:, -1] = np.sqrt([0.51, 0.49]), np.sqrt([0.49, 0.51])
    assert fit.law().resolved(points).tolist() == [True, False]


@pytest.mark.parametrize("intercept", [True, False])
def test_the_reach_of_bounds_is_that_of_a_row(intercept, global_random_seed):
    """Of a corner, and nearly the farthest one; of a row of one feature where a norm is known."""
    rng = np.random.RandomState(global_random_seed)
    low, high = -rng.uniform(1.0, 5.0, size=6), rng.uniform(1.0, 5.0, size=6)
    ranges = RowMap(low, high, None, intercept, 6)
    W = rng.normal(size=(ranges.size, ranges.size))
    corners = ranges.rows(np.array(list(product(*zip(low, high, strict=True)))))
    longest = np.linalg.norm(corners @ W.T, axis=1).max()
    if intercept:
        assert 0.9 * longest <= ranges.longest_row(W) <= longest + 1e-9
    norm = RowMap(None, None, 2.0, intercept, 6)
    rows = norm.rows(2.0 * np.vstack([np.eye(6), -np.eye(6)]))
    assert norm.longest_row(W) == pytest.approx(np.linalg.norm(rows @ W.T, axis=1).max())


def test_a_tail_like_the_inverse_cube_is_cut_by_what_is_counted():
    """Residuals c > .75 R with P(c > x) = .02 (.75 R / x)^3: cutting them at R takes E (c - R)_+
    away. Half of `CUBE` would count half of it.
    """
    limit = 0.3
    x = np.linspace(limit, 60.0 * limit, 200_001)
    beyond = 0.02 * (CUT * limit / x) ** 3
    assert CUBE * 0.02 * limit == pytest.approx(trapezoid(beyond, x), rel=1e-3)


def test_the_least_squares_line_has_its_own_equation():
    """Its moment says how far it is: a unit of noise there is one of the answer, and is counted."""
    equation = ScoreEquation(
        point=np.zeros(2), limit=0.3, moment=np.zeros(2), slope=np.eye(2) / 2.0, square=0.01,
        n=10_000, moment_scale=1e-4, slope_scale=1e-5, residual_gram=0.005 * np.eye(2),
        residual_scale=1e-6, square_scale=1e-6,
    )  # fmt: skip
    fit = LoopFit(0.0, np.eye(2), np.zeros(2), 0.01, np.eye(2) / 2.0, (equation,), None, True, 1000)
    rows, target = RowMap(np.array([0.0]), np.array([1.0]), None, True, 1), TargetMap((-1, 1), True)
    away = np.array([0.02, -0.01])
    asked = replace(fit.last, moment=fit.last.slope @ away, moment_scale=1e-3)
    both = replace(fit, line=Line(asked, np.zeros(2), 0.0))
    fitted, squares = (
        both.coefficient_law(RecordMap(rows, target), kind) for kind in (True, False)
    )
    moved = rows.coefficient_map() @ away
    np.testing.assert_allclose(squares.estimate - fitted.estimate, moved, atol=1e-12)
    noise = np.diagonal(squares.privacy) / np.diagonal(fitted.privacy)
    assert noise == pytest.approx([100.0, 100.0], rel=0.05)


def rare_cell(moment_scale):
    """A fit with a line and far rows; a cell has rows of the length 2 along the first axis.

    Steps cut none of their residuals before 6.3 deviations.
    """
    equation = ScoreEquation(
        point=np.zeros(2), limit=0.3, moment=np.array([0.01, 0.02]), slope=np.eye(2) / 2.0,
        square=0.01, n=10_000, moment_scale=moment_scale, slope_scale=1e-5,
        residual_gram=0.005 * np.eye(2), residual_scale=1e-6, square_scale=1e-6,
    )  # fmt: skip
    asked = replace(
        equation, moment=np.array([0.3, 0.4]), residual_gram=0.02 * np.eye(2), moment_scale=1e-4
    )
    line = Line(asked, np.zeros(2), 0.0, FarRows(np.zeros((2, 2)), 1e-3))
    cells = Cells(np.array([[0.5, 0.0]]), np.empty((0, 2)))
    found = (0.0, np.eye(2), np.zeros(2), 0.009, np.eye(2) / 2.0, (equation,), line, True, 1000)
    return LoopFit(*found, cells=cells)


def test_along_a_rare_cell_the_line_has_the_equation_of_the_steps():
    pooled = rare_cell(1e-4).pooled("least_squares")
    np.testing.assert_allclose(pooled.moment, [0.01, 0.4])
    np.testing.assert_allclose(pooled.residual_gram, np.diag([0.005, 0.02]))


def test_along_a_rare_cell_the_noise_of_the_line_is_that_of_the_steps():
    rows, target = RowMap(np.array([0.0]), np.array([1.0]), None, True, 1), TargetMap((-1, 1), True)
    maps = RecordMap(rows, target)
    near, far = (rare_cell(scale).coefficient_law(maps, False).privacy for scale in (1e-4, 1e-2))
    back = np.linalg.inv(rows.coefficient_map())
    near, far = (np.diagonal(back @ part @ back.T) for part in (near, far))
    assert far[0] / near[0] == pytest.approx(1e4, rel=0.1)
    assert far[1] == pytest.approx(near[1], rel=1e-6)


@pytest.mark.parametrize(("link", "moment", "hidden"), [
    (Log(), -0.0043, []), (Log(), -0.0047, [0]), (Log(), 0.02, []), (Logit(), -0.0047, []),
])  # fmt: skip
def test_a_level_whose_mean_count_may_be_none_is_hidden(link, moment, hidden):
    """Its share of the mean is .01 + 2 z, half of a deviation of the noise of which is .001.

    A larger share than the slope tells no more: the step is as long as the slope is small.
    """
    fit = rare_cell(1e-3)
    last = replace(fit.last, slope=np.diag([0.01, 0.5]), moment=np.array([moment, 0.0]))
    asked = replace(fit.line.equation, slope=np.eye(2))
    line = Line(asked, np.zeros(2), 0.0, own=np.eye(2))
    fit = replace(fit, equations=(last,), gram=last.slope, line=line, link=link)
    assert fit.textbook.cells.empty.tolist() == hidden
    faint = replace(last, slope=np.diag([0.0009, 0.5]), moment=np.zeros(2) + 0.02)
    fit = replace(fit, equations=(faint,), gram=faint.slope)
    assert fit.textbook.cells.empty.tolist() == ([0] if link.limit is None else [])


def test_a_step_beside_the_slope_of_far_rows_counts_a_deviation_of_its_noise():
    """The square of 4 normal variables of variance 2: mean 8, standard deviation sqrt(2 * 4) 2."""
    for far, more in ((False, 0.0), (True, np.sqrt(2.0 * 4.0) * 2.0)):
        assert beside_noise(20.0, 8.0, 4, far) == pytest.approx(12.0 + more)
        assert beside_noise(3.0, 8.0, 4, far) == pytest.approx(more)
