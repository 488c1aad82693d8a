"""The length of a line, which clips and weights change, and the features that are guarded."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from skpriv._estimation._loop._evidence import KnownLength
from skpriv._estimation._loop._evidence import FAR_FIT, STRETCH_WEIGHT, StretchQuery
from skpriv._estimation._loop._rows import MarginsQuery
from skpriv._estimation._loop import _whitening
from skpriv._estimation._loop._whitening import whitening_by_margins
from skpriv._estimation._public_maps import RowMap, TargetMap
from skpriv.linear_model import LinearRegression
from skpriv.privacy import Answer, Budget

PUBLIC = {"bounds_X": (0.0, 1.0), "bounds_y": (0.0, 8.0), "epsilon": 1.0}


def _known(value, variance, prior):
    return KnownLength(np.zeros(1), np.ones(1), np.ones(1), value, variance, prior)


@pytest.mark.parametrize("prior", [0.01, 0.09, 0.36])
def test_the_error_of_a_length_is_what_is_counted(prior):
    """Lengths drawn from their prior, and answers with their noise: half would be told apart."""
    rng, variance = np.random.RandomState(0), 0.04
    truth = np.sqrt(prior) * rng.normal(size=20_000)
    answers = truth + np.sqrt(variance) * rng.normal(size=truth.size)
    inside = np.abs(answers) < 0.9  # what no part of a line is shortened or lengthened by
    found = np.array([_known(d, variance, prior).of(np.zeros(1)) for d in answers[inside]])
    error = np.sqrt(np.mean((found[:, 0] - truth[inside]) ** 2))
    assert error == pytest.approx(found[0, 1], rel=0.03)


def _largest_move(weight):
    """Root of the largest square by which one of two records moves the answer, on a grid.

    Answers are (v s g, c v g^2). With s = 1 and s' = -1, g g' > 0 is the case that moves it most.
    """
    g, v = np.linspace(0.0, 1.0, 401), np.array([0.0, 0.5, 1.0])
    one, other, v, w = g[:, None, None, None], g[None, :, None, None], v[:, None], v[None, :]
    squares = (v * one + w * other) ** 2 + weight**2 * (v * one**2 - w * other**2) ** 2
    return np.sqrt(squares.max())


def test_the_square_of_the_fit_is_asked_for_nothing():
    """The sensitivity stays 2 with its weight, which could be no more than a tenth larger."""
    assert _largest_move(STRETCH_WEIGHT) == pytest.approx(2.0)
    assert _largest_move(1.12 * STRETCH_WEIGHT) > 2.0005
    maps = RowMap(None, None, 1.0, False, 1), TargetMap((-1, 1), True)
    query = StretchQuery(*maps, 0.0, np.ones(1), 0.5, unit=0.5)
    X, y = np.linspace(-1.0, 1.0, 41)[:, None], np.linspace(-1.0, 1.0, 41)
    sums = np.array([query.sum(X[[i]], y[[j]]) for i in range(41) for j in range(41)])
    apart = np.linalg.norm(sums[:, None] - sums, axis=2).max()
    assert 1.99 < apart <= query.sensitivity


def test_the_length_of_a_normal_line_is_asked_without_a_bias():
    """Fits are clipped at four deviations from their mean: at two a hundredth were .04 too much.

    No interval counts what such clips do, which is nothing where a fit is normal.
    """
    f = 0.1 * stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    maps = RowMap(None, None, 1.0, False, 1), TargetMap((-1, 1), False)
    query = StretchQuery(*maps, 0.0, np.ones(1), 2.0, unit=FAR_FIT * f.std())
    answer = Answer(query.sum(f[:, None], 1.01 * f), len(f), SimpleNamespace(scale=0.0))
    product, square, _ = query.read(answer)
    assert query.limit * product / (query.unit * square) == pytest.approx(0.01, rel=0.01)


def test_a_line_that_has_its_length_is_not_made_longer():
    """Whatever the answer is, and only by what an estimate has not: it may be longer already."""
    assert _known(0.5, 0.01, 0.0).of(np.zeros(1)) == (0.0, 0.0)
    certain = _known(0.5, 0.0, 1.0)
    assert certain.of(np.zeros(1))[0] == pytest.approx(0.5)
    assert certain.of(np.array([0.3]))[0] == pytest.approx(0.2)


def _errors(make, monkeypatch, fits=6, **public):
    """Mean square errors of the mean of the target over its variance, with and without a move."""
    found = []
    for used in (True, False):
        if not used:
            monkeypatch.setattr(KnownLength, "of", lambda known, b: (0.0, 0.0))
        errors = []
        for seed in range(fits):
            X, mean, y = make(np.random.RandomState(seed))
            model = LinearRegression(**{**PUBLIC, **public}, random_state=seed).fit(X, y)
            errors.append(np.mean((model.predict(X) - mean) ** 2) / np.var(mean))
        found.append(np.mean(errors))
    return found


def test_far_rows_on_a_bent_relation_make_a_line_shorter(monkeypatch):
    """A few of the rows are far away from all others, and steps weigh them less."""

    def make(rng, n=20_000):
        chain = np.where(rng.uniform(size=n) < 0.03, rng.uniform(300.0, 900.0, size=n), 0.0)
        X = np.column_stack([chain + rng.exponential(10.0, size=n), rng.uniform(size=n)])
        mean = 2.0 * np.log1p(X[:, 0] / 30.0) + X[:, 1]
        return X, mean, mean + 2.0 * rng.normal(size=n)

    public = {"bounds_X": [(0, 1000), (0, 1)], "bounds_y": (-10, 20), "epsilon": 0.3}
    with_length, without = _errors(make, monkeypatch, **public)
    assert with_length < 0.9 * without


def test_a_skewed_target_has_a_longer_line(monkeypatch):
    """Noise that grows with the mean, of which clips take more from the largest."""

    def make(rng, n=20_000):
        X = rng.uniform(size=(n, 3))
        mean = 0.1 + X @ [0.5, 0.3, 0.0]
        return X, mean, np.minimum(mean * rng.gamma(0.5, 2.0, size=n), 8.0)

    with_length, without = _errors(make, monkeypatch)
    assert with_length < 0.9 * without


def test_indicators_alone_are_guarded():
    """By the range (0, 1) and a mean square as of values at its ends: neither alone suffices."""
    rows = RowMap(np.zeros(3), np.array([1.0, 1.0, 2.0]), None, True, 3)
    z = np.random.RandomState(0).uniform(size=(20_000, 3)) * [1.0, 1.0, 2.0]
    z[:, 0], z[:, 2] = z[:, 0] < 0.1, 2.0 * (z[:, 2] < 1.0)
    for scale, found in ((40.0, [True, False, False, True]), (1e6, [True, True, False, True])):
        answer = Answer(
            value=MarginsQuery(rows).sum(z, None), n=len(z), noise=SimpleNamespace(scale=scale)
        )
        session = SimpleNamespace(sum=lambda *asked, answer=answer: answer)
        rules = SimpleNamespace(margins=0.05, length=1.0)
        _, guarded = whitening_by_margins(session, rows, rules, None)
        assert guarded.tolist() == found


def test_an_indicator_is_guarded_whatever_noise_its_mean_square_has():
    """But for two deviations of it: one in forty fits would stretch a rare level without limit.

    With one deviation it would be one in six.
    """
    rows = RowMap(np.zeros(1), np.ones(1), None, True, 1)
    exact = MarginsQuery(rows).sum(np.arange(20_000.0)[:, None] < 200.0, None)
    rng, found = np.random.RandomState(0), []
    for _ in range(1000):
        answer = Answer(exact + 30.0 * rng.normal(size=2), 20_000, SimpleNamespace(scale=30.0))
        session = SimpleNamespace(sum=lambda *asked, answer=answer: answer)
        rules = SimpleNamespace(margins=0.05, length=1.0)
        found.append(whitening_by_margins(session, rows, rules, None)[1][0])
    assert np.mean(found) > 0.96


def test_the_guard_of_other_features_fades_as_noise_does(monkeypatch):
    """Whole where the length of the line is just asked, and below a tenth at four fifths of noise.

    With the power 6 in place of 12 it would be a quarter there.
    """
    guards, following = [], _whitening._next_whitening
    monkeypatch.setattr(
        _whitening, "_next_whitening", lambda *all: guards.append(all[-1]) or following(*all)
    )
    X = np.random.RandomState(0).uniform(-1.0, 1.0, size=(1200, 3))
    for part in (1.0, 0.8):
        n = round(1.5 * 16.0 * 8.0 / part / Budget(1.0, 1e-6).mu) + 1  # N / p^1.5 is 24 over part
        LinearRegression(
            bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0), epsilon=1.0, random_state=0
        ).fit(X[:n], X[:n, 0])
        assert guards[-1][:-1] == pytest.approx(part**12, rel=0.02)
    assert part**12 < 0.1


LOCAL, SHUFFLE = ({"privacy": name, "channel": "gaussian"} for name in ("local", "shuffle"))
TRUSTS = [
    ("rows", {}), ("rows", {"epsilon": 100.0}), ("rows", {**LOCAL, "epsilon": 8.0}),
    ("rows", SHUFFLE), ("rows", {"privacy": "aggregate"}), ("weights", {}), ("weights", SHUFFLE),
    ("persons", {}), ("persons", {"privacy": "aggregate"}), ("start", {}), ("start", SHUFFLE),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "trust"), TRUSTS)
def test_the_length_is_asked_in_every_model_of_trust(kind, trust):
    """Without a seed: shares add up, and the question costs what the rules say."""
    rng = np.random.default_rng()
    X = rng.uniform(size=(60_000, 2))
    y = np.minimum((0.2 + X @ [0.5, 0.3]) * rng.gamma(0.5, 2.0, size=len(X)), 8.0)
    model, more = LinearRegression(**{**PUBLIC, **trust}), {}
    if kind == "weights":
        more = {"sample_weight": rng.uniform(0.5, 2.0, size=len(y)), "max_weight": 2.0}
    if kind == "persons":
        model.set_params(max_rows_per_group=2)
        more = {"groups": np.arange(len(y)) // 2}
    if kind == "start":
        model.set_params(start=LinearRegression(**PUBLIC).fit(X, y).as_start())
    model.fit(X, y, **more)
    shares = {row.query: row.share for row in model.privacy_report_.rows}
    assert sum(row.share for row in model.privacy_report_.rows) == pytest.approx(1.0)
    assert 0.03 < shares["length of the line"] < 0.05
    assert np.isfinite(model.predict(X[:5])).all()


def _released_lengths(epsilon, fits):
    """The length of a line that is right, over its declared error, in some fits."""
    found = []
    for seed in range(fits):
        rng = np.random.RandomState(seed)
        X = rng.uniform(size=(20_000, 2))
        mean = 2.0 + X @ [2.0, 1.0]
        y = mean + 0.5 * rng.normal(size=len(X))
        model = LinearRegression(**{**PUBLIC, "epsilon": epsilon}, random_state=seed).fit(X, y)
        fit, maps = model._released, model._record_map
        known, points = fit.stretch, fit.points(maps.rows(X))
        left = maps.target_map.scaled(mean) - fit.location - points @ known.point
        along = points @ known.direction
        found.append((known.value - along @ left / (along @ along)) / np.sqrt(known.variance))
    return np.array(found)


@pytest.mark.parametrize("epsilon", [0.5, 300.0])  # most of the error is privacy noise, or sampling
def test_the_answer_has_the_error_that_it_declares(epsilon):
    """The root mean square of 40 is 1 but for 11%, and 1.5 at least if a part is half as large."""
    assert 0.7 < np.sqrt(np.mean(_released_lengths(epsilon, 40) ** 2)) < 1.3


def test_the_error_of_the_length_is_in_the_law():
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(20_000, 2))
    y = np.minimum((0.2 + X @ [0.5, 0.3]) * rng.gamma(0.5, 2.0, size=len(X)), 8.0)
    fit = LinearRegression(**PUBLIC, random_state=0).fit(X, y)._released
    law, sure = (one.law("function") for one in (fit, replace(fit, stretch=None)))
    _, deviation = fit.stretch.of(sure.solution)
    assert deviation > 0.0
    added = law.shared @ law.shared.T - sure.shared @ sure.shared.T
    direction = deviation * fit.stretch.direction
    np.testing.assert_allclose(added, np.outer(direction, direction), rtol=1e-6, atol=1e-12)
