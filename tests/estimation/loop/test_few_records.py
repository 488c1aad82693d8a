"""What is decided by released evidence: Gram matrices, and the mean alone."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from registry.noise import goe
from sklearn.base import clone

from skpriv._estimation._links import IDENTITY, Logit
from skpriv._estimation._loop._rows import MarginsQuery, SQUARES
from skpriv._estimation._targets import LocationQuery
from skpriv._estimation._loop._rules import Rules
from skpriv._estimation._loop._steps import NORMAL, find_location
from skpriv._estimation._loop._whitening import (
    _next_whitening, denoised_gram, whitening_by_margins, with_least_mass,
)  # fmt: skip
from skpriv._estimation._public_maps import RecordMap, RowMap, TargetMap
from skpriv.linear_model import LinearRegression
from skpriv.privacy import Answer, GaussianNoise


def test_leading_directions_of_a_noisy_gram_matrix_are_not_divided_like_the_others():
    """James-Stein leaves .57 of five directions that are 2.5 noises high, and this .7 of them."""
    p, scale = 100, 0.02
    rng = np.random.RandomState(0)
    top = np.linalg.qr(rng.normal(size=(p, 5)))[0]
    gram = 0.005 * np.eye(p) + 2.5 * scale * np.sqrt(2.0 * p) * top @ top.T
    along = {name: [] for name in ("shrunk", "denoised", "true")}
    for _ in range(5):
        noisy = gram + scale * goe(rng, p)
        values, vectors, weight = denoised_gram(noisy, scale)
        even = noisy.trace() / p * np.eye(p)
        found = weight * (noisy - even) + even, (vectors * values) @ vectors.T, gram
        for name, matrix in zip(along, found, strict=True):
            along[name].append(np.trace(top.T @ matrix @ top))
    shrunk, denoised, true = (np.mean(values) for values in along.values())
    assert shrunk < 0.8 * true
    assert 0.8 * shrunk + 0.2 * true < denoised < 1.1 * true


def test_a_mean_of_few_targets_has_the_noise_of_few():
    """Half of the records have a target, or no more than what the noise of their number hides."""
    query = LocationQuery(None, low=0.0, prior_variance=np.inf)
    for counted, scale, part in ((50.0, 1.0, 0.5), (0.0, 10.0, 0.2), (0.0, 0.1, 0.03)):
        answer = Answer(np.array([0.5 * part * 100.0, counted]), 100, GaussianNoise(scale))
        assert query.read(answer) == pytest.approx((0.75, 0.5 * scale / 100.0 / part, part))
    answer = Answer(np.array([25.0, 50.0]), 100, GaussianNoise(20.0))
    mean, *_ = LocationQuery(None, low=0.0).read(answer)
    assert mean == pytest.approx(0.5 + 0.25 / (1.0 + 3.0 * 0.4**2))


@pytest.mark.parametrize("p", [1, 2, 30])
def test_a_gram_matrix_without_noise_is_itself(p):
    rows = np.random.RandomState(p).normal(size=(50, p))
    gram = rows.T @ rows / 50.0
    for scale, most in (0.0, 1e-12), (1e-9, 1e-7):
        values, vectors, _ = denoised_gram(gram, scale)
        np.testing.assert_allclose((vectors * values) @ vectors.T, gram, rtol=1e-9, atol=most)
    assert denoised_gram(gram, 10.0)[0].min() >= 0.0


def test_many_columns_alike_are_fitted_with_few_records():
    """N / p^1.5 = .6: the fits that stepped too far had an R2 of -1.4 to -3.6."""
    n, d, scores = 2573, 100, []
    for seed in range(2):
        rng = np.random.RandomState(seed)
        X = rng.normal(size=(n, 5)) @ rng.normal(size=(5, d)) + rng.normal(size=(n, d))
        y = X @ rng.normal(size=d)
        y = 0.7 * y / y.std() + 0.7 * rng.normal(size=n)
        model = LinearRegression(bounds_X=(-7, 7), bounds_y=(-5, 5), random_state=seed).fit(X, y)
        scores.append(model.score(X, y))
    assert min(scores) > 0.0 and np.mean(scores) > 0.1


def test_a_rare_category_is_stretched_no_further_than_its_noise():
    """Whatever is released, a variance counts as one deviation of its noise at least."""
    rows = RowMap(-np.ones(3), np.ones(3), None, True, 3)
    z = np.random.RandomState(0).uniform(-1.0, 1.0, size=(20_000, 3))
    z[:, 0] = np.where(np.arange(len(z)) < 150, 1.0, -1.0)
    for scale in (0.02 * len(z), 0.2 * len(z)):
        answer = Answer(
            value=MarginsQuery(rows).sum(z, None), n=len(z), noise=SimpleNamespace(scale=scale)
        )
        session = SimpleNamespace(sum=lambda *asked, answer=answer: answer)
        rules = SimpleNamespace(margins=0.05, length=1.0)
        W, _ = whitening_by_margins(session, rows, rules, None)
        moved = rows.rows(np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])) @ W.T
        unit = W[3, 3] * rows.parts[1]  # length of a coordinate of one deviation
        most = 2.0 * unit * np.sqrt(SQUARES * len(z) / scale)
        assert np.linalg.norm(moved[0] - moved[1]) <= most


@pytest.mark.parametrize("masses", [(1.0, 1.0, 0.01), (1.0, 1.0, 7.0), (0.3, 0.3, 7.0)])
def test_cut_features_are_lifted_and_those_that_cancel_are_left(masses):
    """Of features 0 and 1 only the difference is small; 2 is cut, or was stretched by noise."""
    gram, seen = np.diag([*masses, 1.0]), np.minimum([*masses, 1.0], 2.0)
    gram[0, 1] = gram[1, 0] = 0.999 * masses[0]
    lifted = np.maximum(
        0.25 * (seen @ seen) / seen.sum() - np.diagonal(gram), 0.0
    )  # and the constant
    mixed = np.triu(np.random.RandomState(0).normal(size=(4, 4))) + 2.0 * np.eye(4)
    for turn in (np.eye(4), mixed * 7.0, np.diag([1.0, 30.0, 2.0, 1.0]) @ mixed):
        back = np.linalg.inv(turn)
        found = back @ with_least_mass(turn @ gram @ turn.T, turn, 1.0) @ back.T
        np.testing.assert_allclose(found - np.diag(lifted), gram, atol=1e-9)


def test_a_feature_with_far_rows_is_stretched_no_further_than_a_look_before_allows():
    """Feature 1 lost mass between two looks, since its rows are cut; 2 is narrow, below noise."""
    before, last, noise = (np.diag(masses) for masses in ([8, 4, 0.02], [8, 1, 0.02], [0, 0, 0.08]))

    def stretched(share, *grams):
        looks = [(np.eye(3), gram / 40.0, 0.001) for gram in grams]
        rules = SimpleNamespace(stretch=share, length=1.0, bends=False, effective_records=1e3)
        return np.diag(_next_whitening(looks, rules, None, 1.0)) ** 2

    alone, both = stretched(0.05, last), stretched(0.05, before + noise, last)
    assert both[0] == pytest.approx(alone[0]) and both[2] > 0.8 * alone[2]
    assert both[1] == pytest.approx(alone[1] * last[1, 1] / before[1, 1], rel=0.2)
    np.testing.assert_allclose(stretched(0.0, before, last), alone)


def test_noise_of_looks_before_hardly_shortens_rows(global_random_seed):
    """Three looks of which the first is nothing but noise, as of 20 features and parts of rows."""
    p, rng = 20, np.random.RandomState(global_random_seed)
    looks, W = [], np.eye(p)
    for scale in (0.003, 0.0015, 0.0008):
        normal = rng.normal(size=(p, p))
        gram = W @ W.T * 0.0065 + scale * np.triu(normal) + scale * np.triu(normal, 1).T
        looks.append((W, gram, scale))
    rules = SimpleNamespace(stretch=0.05, length=0.37, bends=False, effective_records=1e3)
    alone, both = (
        np.linalg.svd(_next_whitening(kept, rules, None, 1.0), compute_uv=False) ** 2
        for kept in (looks[-1:], looks)
    )
    assert alone.mean() > both.mean() > 0.86 * alone.mean()


@pytest.mark.parametrize(
    ("bends", "resolution", "part"),
    [(False, 1e3, 0.5), (True, 4.0, 0.5), (True, 12.0, 0.75), (True, 16.0, 1.0), (True, 1e3, 1.0)],
)
def test_curves_stretch_directions_of_noise_by_its_whole_norm_where_rows_are_resolved(
    bends, resolution, part
):
    """Rows along them would weigh less, and move the curve; lines have half of that norm."""
    gram, scale = np.diag([0.2, 0.1, 0.001]), 0.01
    rules = SimpleNamespace(
        stretch=0.0, length=1.0, bends=bends, effective_records=resolution * 3**1.5
    )
    W = _next_whitening([(np.eye(3), gram, scale)], rules, np.eye(3), 0.0)
    values, _, weight = denoised_gram(gram, scale)
    values += part * weight * scale * np.sqrt(6.0)
    np.testing.assert_allclose(np.diag(W)[::-1] ** 2 * values, np.diag(W)[0] ** 2 * values[2])


def test_far_rows_on_a_bent_relation_are_fitted():
    """A tenth as many as the others, ten times as far: the weights of long rows gave R2 < 0."""
    scores = []
    for seed in range(4):
        rng = np.random.RandomState(seed)
        chain = np.where(rng.uniform(size=30_000) < 0.03, rng.uniform(300, 900, 30_000), 0.0)
        X = np.column_stack([chain + rng.exponential(10.0, size=30_000), rng.uniform(size=30_000)])
        y = 2.0 * np.log1p(X[:, 0] / 30.0) + X[:, 1] + 2.0 * rng.normal(size=30_000)
        model = LinearRegression(bounds_X=[(0, 1000), (0, 1)], bounds_y=(-10, 20))
        found = [
            clone(model).set_params(random_state=seed, privacy=privacy).fit(X, y).score(X, y)
            for privacy in ("none", "central")
        ]
        scores.append(found[0] - found[1])
    assert np.mean(scores) < 0.05


def test_the_mean_is_looked_for_where_it_is():
    """At N = 95 the mean of a target of deviation .05 has a third of the noise of one look."""
    errors = []
    for seed in range(25):
        rng = np.random.RandomState(seed)
        X, y = rng.uniform(size=(400, 20)), rng.normal(0.3, 0.05, size=400)
        model = LinearRegression(bounds_X=(0, 1), bounds_y=(-1, 1), random_state=seed).fit(X, y)
        errors.append(model.predict(X).mean() - y.mean())
    assert np.sqrt(np.mean(np.square(errors))) < 0.6 * 2.0 / 95.0


@pytest.mark.parametrize(
    ("p", "reach", "whitened"),
    [
        (2, 31.0, True), (4, 46.0, True), (4, 44.0, False), (80, 46.0, True), (80, 44.0, False),
    ],
)  # fmt: skip
def test_where_rows_are_whitened(p, reach, whitened):
    """Measured: docs/evidence/linear_regression.md and docs/evidence/few_records.md."""
    rules = Rules.of(4 * round(reach), p, reach)
    assert (rules.whitening > 0.0) == (not rules.few_records) == whitened
    assert not rules.mean_only and Rules.of(120, p, 29.0).mean_only
    assert not Rules.of(120, p, 29.0, fit_intercept=False).mean_only


FULL = {"data_norm": 1.0, "bounds_y": (-1.0, 1.0), "fit_intercept": False}
WIDE = {"bounds_X": (-1.0, 1.0), "bounds_y": (-1.0, 1.0)}


@pytest.mark.parametrize("link", [IDENTITY, Logit()], ids=["line", "logit"])
@pytest.mark.parametrize("reach", [20.0, 300.0, 5_000.0, 1e6])
@pytest.mark.parametrize("intercept", [True, False])
def test_shares_add_up_to_the_budget(link, reach, intercept):
    rules = Rules.of(4 * round(reach), 5, reach, fit_intercept=intercept, link=link, boxed=True)
    assert (rules.margins > 0.0) == (reach >= 300.0)
    parts = "location", "spread", "margins", "whitening", "mean", "stretch", "line", "clipped"
    shares = [getattr(rules, part) for part in parts]
    assert min(shares) >= 0.0 and sum(shares) + sum(rules.steps) == pytest.approx(1.0)


def _part_lost(n, epsilon, bounds, slope=0.7, seeds=6):
    """Mean square error of the fit to n rows over that of the mean of their function."""
    lost, function = [], []
    for seed in range(seeds):
        rng = np.random.RandomState(seed)
        X = rng.normal(size=(n, 6)) @ np.diag([2.0, 1.5, 1.0, 1.0, 0.7, 0.5])
        X /= np.linalg.norm(X, axis=1)[:, None]
        X = X if bounds is FULL else 0.5 * X + 0.2
        true = slope * (X - X.mean(axis=0)) @ [1.0, -1.0, 0.5, 0.0, 0.3, 0.0]
        y = true + rng.uniform(-0.3, 0.3, size=n)
        model = LinearRegression(**bounds, epsilon=epsilon, random_state=seed).fit(X, y)
        lost.append(np.mean((model.predict(X) - true) ** 2))
        function.append(np.mean(true**2))
    return np.mean(lost) / np.mean(function)


@pytest.mark.parametrize(
    ("bounds", "most"), [(FULL, 0.35), pytest.param(WIDE, 1.05, marks=pytest.mark.slow)]
)
def test_more_records_and_more_budget_are_never_worse_where_records_are_few(bounds, most):
    """N of 19 to 190, across what only the mean is released below, and rows are not whitened."""
    sizes = [_part_lost(n, 1.0, bounds) for n in (80, 160, 300, 400, 440, 800)]
    budgets = [_part_lost(300, epsilon, bounds) for epsilon in (0.3, 0.7, 1.3, 3.0)]
    budgets.insert(2, sizes[2])
    for lost in (sizes, budgets):
        assert all(later < earlier + 0.03 for earlier, later in zip(lost, lost[1:], strict=False))
        assert lost[2] < most and lost[-1] < 0.3


def test_what_is_not_there_costs_little():
    for n in (60, 150, 400):
        rng, errors = np.random.RandomState(n), []
        for seed in range(10):
            X, y = rng.normal(size=(n, 8)), rng.uniform(-1.0, 1.0, size=n)
            X /= np.linalg.norm(X, axis=1)[:, None]
            model = LinearRegression(**FULL, random_state=seed).fit(X, y)
            errors.append(np.mean(model.predict(X) ** 2) / np.mean(y**2))
        assert np.mean(errors) < 0.05


def test_intervals_of_few_records_hold():
    covered = []
    for seed in range(10):
        rng = np.random.RandomState(seed)
        X = rng.uniform(-0.5, 0.5, size=(380, 2))
        true = X @ [0.8, -0.4]
        model = LinearRegression(**FULL, random_state=seed)
        model.fit(X, true + rng.uniform(-0.2, 0.2, size=380))
        low, high = model.confidence_interval(X)
        covered.append(np.mean((low <= true) & (true <= high)))
        assert (low < high).all()
    assert np.mean(covered) > 0.9


def test_the_report_says_when_records_are_few():
    rng = np.random.RandomState(0)
    X, y = rng.uniform(size=(200, 3)), rng.uniform(size=200)
    public = {"bounds_X": (0, 1), "bounds_y": (0, 1), "random_state": 0}
    few = LinearRegression(**public).fit(X[:180], y[:180])
    least = LinearRegression(**public).fit(X[:100], y[:100])
    for model, words, records, epsilon in (
        (few, "features were not whitened", 1.1, 1.1),
        (least, "Only the mean of the target", 1.3, 1.3),
    ):
        for text in (str(model.privacy_report_), model.privacy_report_._repr_html_()):
            assert words in text
            asked = f"About {records} times the records, or {epsilon} times epsilon, would do"
            assert asked in text
    assert not LinearRegression(**public, epsilon=10.0).fit(X, y).privacy_report_.note
    tiny = LinearRegression(**public, epsilon=1e-4).fit(X, y)
    times = float(re.search(r"or ([0-9.e+]+) times epsilon", tiny.privacy_report_.note)[1])
    model = LinearRegression(**public, epsilon=1e-4 * times).fit(X, y)
    assert "Only the mean" not in model.privacy_report_.note


def test_one_record_and_a_handful_of_users_are_fitted():
    for n in (1, 2, 7):
        X = np.full((n, 1), 0.5)
        for privacy in ("central", "local", "shuffle"):
            model = LinearRegression(**FULL, privacy=privacy, epsilon=4.0, random_state=0)
            for channel in ("auto", "gaussian"):
                assert np.isfinite(model.set_params(channel=channel).fit(X, X[:, 0]).coef_).all()


@pytest.mark.parametrize("noise", [0.1, 0.5, 1.0, 3.0])
def test_a_noisy_mean_is_shrunk_to_what_is_likely_of_a_mean_anywhere_in_the_range(noise):
    """Its error is never above that of the middle of the range, nor above that of its noise."""
    rng = np.random.default_rng(0)
    errors = []
    for mean in rng.uniform(-1.0, 1.0, 4000):
        value = np.array([mean + noise * rng.normal()])
        read = LocationQuery(None).read(Answer(value, 1, GaussianNoise(noise)))
        errors.append(read.mean - mean)
    best = noise**2 / (1.0 + 3.0 * noise**2)  # of all functions that are linear in the answer
    assert 0.85 * best < np.mean(np.square(errors)) < 1.05 * best
    counts = LocationQuery(None, 0.0, prior_variance=np.inf)  # their mean is no smaller than noise
    found = counts.read(Answer(np.array([-1.2e4, 1e4]), 10_000, GaussianNoise(1e3 * noise)))
    assert found.mean == pytest.approx(0.05 * noise)


@pytest.mark.parametrize(("noise", "least", "most"), [(0.01, 0.08, 0.121), (10.0, 0.24, 0.31)])
def test_a_noisy_spread_is_that_of_a_usual_target(noise, least, most):
    """Of a mean deviation of .1: noise as large as the range does not make a target fill it."""
    maps, rules = RecordMap(None, TargetMap((-1, 1), True)), SimpleNamespace(location=0, spread=0.1)
    for z in np.linspace(-2.0, 2.0, 9):
        answer = Answer(np.array([0.1 + noise * z]), 1, GaussianNoise(noise))
        session = SimpleNamespace(sum=lambda query, share, a=answer: a)
        _, deviation = find_location(session, maps, rules, IDENTITY, None)
        assert least < deviation / NORMAL < most


def at(resolution, p=20, **more):
    """Rules of a line at this resolution N / p^1.5."""
    reach = resolution * p**1.5
    return Rules.of(4 * round(reach), p, reach, **more)


def test_rows_known_by_their_norm_are_whitened_from_a_hundred_records_on():
    few = [Rules.of(400, 3, N, ranged=False).few_records for N in (99.99, 100.01)]
    assert few == [True, False]


def test_the_line_has_a_whole_question_from_three_times_resolved_on():
    """Below, it falls with the square of the resolution, and nothing is asked below `RESOLVED`."""
    whole, half = (at(resolution).line for resolution in (48.01, 24.0))
    assert half == pytest.approx(whole / 4.0, rel=1e-2) and at(100.0).line == pytest.approx(whole)
    assert at(15.99).line == 0.0 < at(16.01).line


def test_a_line_has_at_most_a_third_of_the_most_steps():
    assert len(at(4.0).steps) == 21


def test_the_last_of_many_steps_has_the_share_of_the_others():
    """Of four steps it has .7; of eight .7 / 4, which is still more than an eighth."""
    for resolution, share in ((50.0, 0.7), (20.0, 0.175), (10.0, 1.0 / 16.0)):
        steps = np.array(at(resolution).steps)
        assert steps[-1] / steps.sum() == pytest.approx(share, rel=1e-2)
