"""Fits that begin where a released one ended."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import skpriv
from skpriv import BudgetAccountant
from skpriv.linear_model import (
    AdditiveRegressor, LinearRegression, LogisticRegression, PoissonRegressor,
)  # fmt: skip
from skpriv.preprocessing import BoundsScaler

PUBLIC = {"bounds_X": (-3.0, 3.0), "bounds_y": (-5.0, 5.0)}


def rows(n, seed, sign=1.0):
    """Rows with directions of a tenth of others, whose line is the same for every seed."""
    rng, fixed = np.random.RandomState(seed), np.random.RandomState(7)
    mix = 0.3 * fixed.normal(size=(8, 8)) * np.geomspace(1.0, 0.1, 8)
    X, coef = np.clip(rng.normal(size=(n, 8)) @ mix, -3.0, 3.0), sign * fixed.normal(size=8)
    return X, X @ coef, X @ coef + rng.uniform(-0.5, 0.5, size=n)


def fitted(seed=0, n=2000, sign=1.0, **options):
    X, _, y = rows(n, 100 + seed, sign)
    return LinearRegression(**{**PUBLIC, "random_state": seed, **options}).fit(X, y)


def errors(n, begin, seeds=4):
    """Mean square error over the variance, mean half-width, coverage."""
    found = []
    for seed in range(seeds):
        X, line, y = rows(n, seed)
        model = LinearRegression(**PUBLIC, start=begin(seed), random_state=50 + seed).fit(X, y)
        low, high = model.confidence_interval(X)
        covered = np.mean((low <= line) & (line <= high))
        error = np.mean((model.predict(X) - line) ** 2) / np.var(line)
        found.append((error, np.mean(high - low) / 2.0, covered))
    return np.mean(found, axis=0)


@pytest.mark.slow
def test_a_start_is_worth_records_and_one_of_others_loses_nothing():
    begins = {}.get, fitted, lambda seed: fitted(seed, sign=-1.0)
    alone, begun, other = (errors(2000, begin, seeds=8) for begin in begins)
    assert begun[0] < 0.9 * alone[0] and begun[1] < 1.05 * alone[1]
    assert other[0] < 1.05 * alone[0]
    assert min(alone[2], begun[2], other[2]) > 0.9


def test_like_records_are_not_asked_for_what_the_last_ones_told():
    """As those of a policy's epochs are: the whitening of many records is worth most to a few."""
    begun, alike = (
        errors(1000, lambda seed, alike=alike: replace(fitted(seed).as_start(), alike=alike))
        for alike in (False, True)
    )
    assert alike[0] < 2.0 * begun[0] and alike[1] < 0.8 * begun[1] and alike[2] > 0.9
    X, _, y = rows(400, 0)  # of so few records no fit without a start has more than a mean
    model = LinearRegression(**PUBLIC, start=replace(fitted().as_start(), alike=True)).fit(X, y)
    asked = {row.query for row in model.privacy_report_.rows}
    assert not asked & {"mean of the target", "means and squares of features"} and "scores" in asked


@pytest.mark.parametrize("kind", [LogisticRegression, PoissonRegressor, AdditiveRegressor])
def test_each_kind_begins(kind):
    X, line, y = rows(3000, 0)
    public = {"bounds_X": (-3.0, 3.0), "bounds_y": (-5.0, 5.0), "random_state": 0}
    if kind is LogisticRegression:
        y = (y > 0.0).astype(int)
        public = {**public, "classes": (0, 1)}
        del public["bounds_y"]
    elif kind is PoissonRegressor:
        y = np.random.RandomState(0).poisson(np.exp(np.clip(line, -2.0, 2.0)))
        public["bounds_y"] = (0.0, 30.0)
    first = kind(**public).fit(X, y)
    public, X, y = {**public, "random_state": 1}, X[:1500], y[:1500]
    alone, model = (kind(**public, start=start).fit(X, y) for start in (None, first))
    asked = [[(row.query, row.share) for row in m.privacy_report_.rows] for m in (alone, model)]
    assert asked[0] == asked[1] and (alone.predict(X) != model.predict(X)).any()
    assert (
        f"began at a release before it: {kind.__name__}, (epsilon=1" in model.privacy_report_.note
    )


def test_a_start_of_counts_with_another_mean_loses_nothing():
    """Its mean and whitening in place of answers made fits to other counts 50 times worse."""
    lost, public = [], {"bounds_X": (-1.0, 1.0), "bounds_y": (0, 20)}
    for seed in range(4):
        rng = np.random.RandomState(seed)
        X = rng.uniform(-1.0, 1.0, (6000, 4))
        X[:, 0] = np.where(rng.uniform(size=6000) < 0.02, 1.0, -1.0)
        mean = np.exp(X @ [0.5, 0.5, 0.3, 0.0]) * np.repeat([0.1, 0.3], 3000)
        y, start = rng.poisson(mean), None
        for rows in (slice(3000, 6000), slice(3000), slice(3000, 6000)):
            model = PoissonRegressor(**public, start=start, random_state=seed + rows.stop)
            start = model.fit(X[rows], y[rows])
            lost.append(mean_poisson_deviance(mean[rows], model.predict(X[rows])))
    alone, _, begun = np.median(np.reshape(lost, (4, 3)), axis=0)
    assert begun < 1.5 * alone


def test_the_number_of_rows_of_persons_decides_about_no_start():
    """It is private: one more row would be a reason for one more knot, and for an error."""
    (X, _, y), public = rows(1025, 0), {**PUBLIC, "knots": {0: 3}, "epsilon": 100.0}
    model = AdditiveRegressor(**public, random_state=0).fit(X[:1000], y[:1000])
    for n in (1024, 1025):
        model = AdditiveRegressor(**public, start=model, max_rows_per_group=9)
        model.fit(X[:n], y[:n], groups=np.arange(n) % 300)


def test_clones_searches_pipelines_and_files_keep_it(tmp_path):
    first, (X, _, y) = fitted(), rows(1500, 0)
    model = LinearRegression(**PUBLIC, start=first, random_state=1)
    assert clone(model).start is first and clone(clone(model)).get_params()["start"] is first
    begun = model.fit(X, y)
    again = clone(model).set_params(start=first.as_start()).fit(X, y)
    np.testing.assert_array_equal(begun.coef_, again.coef_)
    np.testing.assert_array_equal(
        clone(model).set_params(start=FrozenEstimator(first)).fit(X, y).coef_, begun.coef_
    )
    search = GridSearchCV(model, {"start": [None, first.as_start()]}, cv=2).fit(X, y)
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    scaler = BoundsScaler(bounds=(-3.0, 3.0))
    make_pipeline(scaler, LinearRegression(data_norm=1.0, bounds_y=(-5, 5))).fit(X, y)
    skpriv.save(begun, tmp_path / "model.json")
    loaded = skpriv.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict(X), begun.predict(X))
    next_one = [LinearRegression(**PUBLIC, start=one, random_state=2) for one in (begun, loaded)]
    np.testing.assert_array_equal(*(one.fit(X, y).coef_ for one in next_one))


def test_what_is_no_start_is_refused_before_anything_is_charged():
    first, mean, (X, _, y) = fitted(), fitted(n=60), rows(500, 0)
    exact = fitted(epsilon=np.inf).set_params(epsilon=1.0)  # what it was fitted with counts
    with BudgetAccountant(epsilon=1.0, delta=1e-6) as accountant:
        for wrong, options, words in (
            (first, {"bounds_X": (-4.0, 4.0)}, "other columns, bounds"),
            (first, {"bounds_y": (-6.0, 5.0)}, "other columns, bounds"),
            (first, {"fit_intercept": False}, "other columns, bounds"),
            (exact, {}, "tells of its rows"),
            (mean, {}, "no equations"),
            (LinearRegression(**PUBLIC), {}, "pass a fitted LinearRegression"),
            ("last year", {}, "start is a str, at which"),
            (first, {"privacy": "local", "channel": "codebook"}, "channel='gaussian'"),
        ):
            with pytest.raises(ValueError, match=words):
                LinearRegression(**{**PUBLIC, **options}, start=wrong).fit(X, y)
        with pytest.raises(ValueError, match="without weights"):
            LinearRegression(**PUBLIC, start=first).fit(
                X, y, sample_weight=np.ones(500), max_weight=1.0
            )
        assert not accountant.charges


def test_an_exact_fit_is_a_start_where_its_rows_are_public():
    X, _, y = rows(1500, 0)
    start = fitted(privacy="none").as_start(public_rows=True)
    model = LinearRegression(**PUBLIC, start=start, random_state=0).fit(X, y)
    assert "of rows that were said to be public" in str(model.privacy_report_)
    exact = LinearRegression(**PUBLIC, privacy="none").fit(X, y)
    begun = LinearRegression(**PUBLIC, privacy="none", start=start).fit(X, y)
    np.testing.assert_array_equal(begun.coef_, exact.coef_)


def test_words_of_a_start_of_a_start_are_a_chain(tmp_path):
    """What was said of the first rows is not lost, in as many generations as there are."""
    X, _, y = rows(1500, 0)
    start = fitted(privacy="none").as_start(public_rows=True)
    for generation in range(3):
        model = LinearRegression(**PUBLIC, start=start, random_state=generation).fit(X, y)
        text = str(model.privacy_report_)
        assert text.count("of rows that were said to be public") == 1
        assert text.count("which began at") == min(generation, 1)  # the same words stand once
        skpriv.save(model, tmp_path / f"{generation}.json")
        start = skpriv.load(tmp_path / f"{generation}.json").as_start()
    assert [len(start.chain), len(start.before)] == [2, 2]
    without = LinearRegression(**PUBLIC, random_state=0).fit(X, y).as_start()
    assert without.before == () and len(without.chain) == 1


def damaged(start, name):
    """A start in which one number is not what it may be."""
    W, gram, scale = (np.array(part, dtype=float) for part in start.whitening)
    size = len(W)
    match name:
        case "infinite whitening":
            W[-1, 0] = np.inf
        case "huge whitening":
            W[-1, : size - 2] = 1e308
        case "singular whitening":
            W = np.zeros((size, size))
        case "nearly singular whitening":
            W = np.diag(np.append(np.ones(size - 1), 1e-200))
        case "smaller whitening":
            W = np.eye(size - 1)
        case "NaN in the Gram matrix":
            gram[0, 0] = np.nan
        case "infinite noise":
            scale = np.inf
        case "huge coefficients":
            return replace(start, theta=np.full(size, 1e200), alike=True)
        case "a variance of NaN":
            return replace(start, variance=np.nan, alike=True)
    return replace(start, whitening=(W, gram, float(scale)), alike=True)


@pytest.mark.parametrize(
    "name",
    [
        "infinite whitening", "huge whitening", "singular whitening", "nearly singular whitening",
        "smaller whitening", "NaN in the Gram matrix", "infinite noise", "huge coefficients",
        "a variance of NaN",
    ],
)  # fmt: skip
def test_a_damaged_start_is_refused(name):
    """With entries of 1e308 one record turned the sums of all others into NaN."""
    start = fitted().as_start()
    assert damaged(start, "none").alike
    with pytest.raises(ValueError, match="The start is damaged: .* pass start=None"):
        damaged(start, name)


def hostile(start):
    """Starts in which one part is what no fit releases, each as it would be made."""
    W, gram, scale = start.whitening
    size = len(W)
    for value in (0.0, -1.0, 1e-300, 1e10, 9e49, 1e300, np.inf, -np.inf, np.nan):
        yield {"theta": np.full(size, value)}
        yield {"theta": np.append(value, start.theta[1:])}
        yield {"deviation": value}
        yield {"variance": value}
        yield {"mean": start.mean._replace(mean=value)}
        yield {"whitening": (W + np.diag(np.full(size - 1, value), 1), gram, scale)}
        yield {"whitening": (np.full_like(W, value), gram, scale)}
        yield {"whitening": (W, np.diag(np.append(value, np.ones(size - 1))), scale)}
        yield {"whitening": (W, gram, value)}
    for other in (start.theta[1:], np.append(start.theta, 0.0), start.theta[:, None], 1.0, None):
        yield {"theta": other}
    yield {"theta": start.theta * 1j}
    yield {"theta": np.array(["a"] * size)}
    for name in ("maps", "link", "mean", "words"):
        yield {name: None}
    yield {"before": (1,)}
    yield {"whitening": (W, gram)}


@pytest.mark.parametrize("kind", [LogisticRegression, PoissonRegressor, LinearRegression])
def test_a_hostile_start_is_refused_by_name_or_fits(kind):
    """A start with a variance of 1e-300 ended in a bare OverflowError, one of 0 in a division."""
    X, line, y = rows(300, 0)
    public = {"bounds_X": (-3.0, 3.0), "epsilon": 10.0, "random_state": 0}
    if kind is LogisticRegression:
        y = (y > 0.0).astype(int)
        public["classes"] = (0, 1)
    else:
        y = np.abs(np.round(y))
        public["bounds_y"] = (0.0, 30.0)
    start = kind(**public).fit(X, y).as_start()
    refused = 0
    for changed in hostile(start):
        for alike in (True, False):
            try:
                model = kind(**public, start=replace(start, **changed, alike=alike)).fit(X, y)
            except ValueError as error:
                assert str(error).lower().startswith(("the start is", "start was")), changed
                refused += 1
            else:
                assert np.isfinite(model.predict(X)).all(), changed
    assert refused > 80


def test_a_damaged_start_in_a_model_is_refused_when_it_is_read():
    X, _, y = rows(1500, 0)
    model = LinearRegression(**PUBLIC, start=fitted(), random_state=0).fit(X, y)
    plain = skpriv.to_dict(model)
    whitening = plain["model"]["params"]["start"]["state"]["whitening"]
    whitening["tuple"][0]["array"][-1] = 1e300
    with pytest.raises(ValueError, match="The start is damaged"):
        skpriv.from_dict(plain)
