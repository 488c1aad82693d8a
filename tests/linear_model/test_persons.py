"""The person is the record: intervals of dependent rows, and what one person can change."""

from itertools import product

import numpy as np
import pytest
from sklearn.base import clone

from skpriv.audit import replay
from skpriv.inspection import inference
from skpriv.linear_model import (
    AdditiveRegressor,
    IVRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    ReweightedRegressor,
    SSPRegressor,
)
from skpriv.records import _persons, from_batches

BOUNDS = {"bounds_X": (-1.0, 1.0), "bounds_y": (-2.0, 2.0)}
NORM = {"data_norm": 2.0**0.5, "bounds_y": (-2.0, 2.0)}
MAKERS = {
    LinearRegression: {**BOUNDS, "clip": "wide"},
    AdditiveRegressor: {**BOUNDS, "knots": 3},
    SSPRegressor: NORM,
    ReweightedRegressor: NORM,
}
every_class = pytest.mark.parametrize("Estimator", MAKERS, ids=lambda kind: kind.__name__)
TRUTH = np.array([0.3, 0.2, 0.0])


def panel(seed, persons=400, rows=5, effect=0.5, unequal=False):
    """Rows with an effect of the person in the error and a feature that is constant in persons."""
    rng = np.random.RandomState(seed)
    sizes = rng.randint(1, rows + 1, persons) if unequal else np.full(persons, rows)
    groups = np.repeat(np.arange(persons), sizes)
    X = np.column_stack([rng.uniform(-1, 1, persons)[groups], rng.uniform(-1, 1, len(groups))])
    error = effect * rng.uniform(-1, 1, persons)[groups] + rng.uniform(-0.5, 0.5, len(groups))
    return X, X @ TRUTH[:2] + error, groups


def fit(Estimator, data, rows, **settings):
    X, y, groups = data
    model = Estimator(**MAKERS[Estimator], max_rows_per_group=rows, **settings)
    return model.fit(X, y, groups=groups)


@pytest.mark.parametrize("Estimator", [LinearRegression, SSPRegressor, ReweightedRegressor])
def test_intervals_count_that_rows_of_a_person_depend_on_each_other(Estimator):
    """Where rows count as independent, those of a feature of persons cover less than .8 here.

    Without privacy the covariances are those of linearmodels: see `test_fixed_effects.py`.
    """
    found, points = [], np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, 0.5]])
    inside = {"asymptotic": [], "certified": []}
    for seed in range(36):
        data = panel(seed, 400, 10, 1.0, unequal=seed % 2 == 1)
        model = fit(Estimator, data, 10, epsilon=20.0, random_state=seed)
        result = inference(model)
        assert result.unit == "person" and "Persons     400" in str(result)
        found.append((result.low <= TRUTH) & (TRUTH <= result.high))
        for method, hits in inside.items():
            if method == "certified" and Estimator is LinearRegression:
                with pytest.raises(ValueError, match="cut together at a released length"):
                    model.confidence_interval(points, method=method)
                continue
            low, high = model.confidence_interval(points, method=method)
            hits.append((low <= points @ TRUTH[:2]) & (points @ TRUTH[:2] <= high))
    # of 36 intervals at 95% fewer than 29 cover with a probability below 4e-4
    assert (np.mean(found, axis=0) >= 0.8).all()
    assert all((np.mean(hits, axis=0) >= 0.8).all() for hits in inside.values() if hits)


@pytest.mark.parametrize("epsilon", [0.1, 0.2, 0.3, 0.5, 1.0, 20.0])
def test_persons_with_some_rows_are_fitted_at_every_budget(epsilon):
    """The released number of their rows is in the number of effective records, and in all rules."""
    model = fit(LinearRegression, panel(0, 2000, 3, unequal=True), 3, epsilon=epsilon)
    assert np.isfinite(inference(model).std_error).all()


@pytest.mark.parametrize("clip", ["auto", "wide"])
@pytest.mark.parametrize("persons", [1500, 5000])
def test_rows_of_persons_tell_no_less_than_one_row_of_each(persons, clip):
    """Limits of six deviations made the noise of a variance as large as it, so that they stayed.

    Standard errors were up to 100 times as large as with one row of each person. Here they are .3
    to .6 of those; 1 would pass.
    """
    rng, p = np.random.default_rng(0), 7
    X = rng.normal(size=(3 * persons, p)).clip(-4.0, 4.0)
    y = X @ np.linspace(-1.0, 1.0, p) + rng.normal(size=len(X))
    groups = np.repeat(np.arange(persons), 3)
    errors = {}
    for rows in (1, 3):
        model = LinearRegression(epsilon=3.0, bounds_X=(-4.0, 4.0), bounds_y=(-20.0, 20.0))
        model.set_params(max_rows_per_group=rows, clip=clip)
        fits = [
            clone(model).set_params(random_state=seed).fit(X, y, groups=groups) for seed in range(3)
        ]
        errors[rows] = np.median([inference(one).std_error[:p] for one in fits])
    assert errors[3] < errors[1] < 0.1


def test_limits_of_persons_stay_where_noise_is_large():
    """The noise of early mean squares made limits grow from step to step: R2 was .1 for .75."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (5100, 7))
    y = X @ np.linspace(-1.0, 1.0, 7) + 0.5 * rng.normal(size=len(X))
    model = LinearRegression(epsilon=0.3, bounds_X=(-1.0, 1.0), bounds_y=(-10.0, 10.0))
    groups = np.repeat(np.arange(1700), 3)
    scores = [
        clone(model)
        .set_params(random_state=seed, max_rows_per_group=3)
        .fit(X, y, groups=groups)
        .score(X, y)
        for seed in range(4)
    ]
    assert np.mean(scores) > 0.6


def test_fewer_rows_are_used_where_noise_hides_slopes():
    """As many as persons have in the mean, so that a larger number of places costs little."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(4000), np.where(np.arange(4000) % 10, 3, 20))
    X = rng.uniform(-1.0, 1.0, (len(groups), 7))
    y = X @ np.linspace(-1.0, 1.0, 7) + 0.5 * rng.normal(size=len(X))
    model = LinearRegression(**BOUNDS, max_rows_per_group=20, random_state=0)
    errors = {}
    for epsilon in (1.0, 20.0):
        model.set_params(epsilon=epsilon).fit(X, y, groups=groups)
        report = model.privacy_report_
        assert sum(row.share for row in report.rows) == pytest.approx(1.0)
        assert ("were used, at random" in str(report)) == (epsilon == 1.0)
        errors[epsilon] = np.median(inference(model).std_error[:7])
    assert model._released.rows_per_record == 20 and errors[1.0] < 0.06


def test_a_person_with_one_row_is_a_row():
    """With the questions of rows, and their certified intervals."""
    X, y, groups = panel(0, persons=4000, rows=1)
    model = LinearRegression(**BOUNDS, epsilon=20.0, max_rows_per_group=1, random_state=0)
    low, high = model.fit(X, y, groups=groups).confidence_interval(X[:3], method="certified")
    assert (high - low < 2.0).all()
    assert "lengths of scores" not in str(model.privacy_report_)


SIGNS = np.resize([1.0, -1.0], 2000)
PERSONS = {
    "many rows": (np.outer(SIGNS, [1.0, 1.0]), 9.0 * SIGNS),
    "one row": (np.ones((1, 2)), np.full(1, 2.0)),
    "no numbers": (
        np.repeat([[np.nan, np.nan], [np.inf, np.inf]], 5, axis=0),
        np.repeat([np.nan, -np.inf], 5),
    ),
}
INSTRUMENTS = {**BOUNDS, "instruments": [0], "endogenous": [1]}
SUMS = {
    **{kind.__name__: (kind, public) for kind, public in MAKERS.items()},
    "two classes": (LogisticRegression, {"bounds_X": (-1.0, 1.0), "classes": (0, 1)}),
    "three classes": (LogisticRegression, {"bounds_X": (-1.0, 1.0), "classes": (0, 1, 2)}),
    "counts": (PoissonRegressor, {"bounds_X": (-1.0, 1.0), "bounds_y": (0.0, 5.0)}),
    "instruments": (IVRegressor, INSTRUMENTS),
    "effects": (LinearRegression, {**BOUNDS, "effects": "person"}),
    "effects and instruments": (IVRegressor, {**INSTRUMENTS, "effects": "person"}),
}


def replaced(kind, binary):
    """Rows of persons, of whom the first has these; None is their own."""
    X, y, groups = panel(0, persons=200, rows=5)
    y = (y > 0.0).astype(float) if binary else y
    if kind is None:
        return X, y, groups
    (more, targets), rest = PERSONS[kind], groups > 0
    if binary:
        targets = np.where(np.isfinite(targets), targets > 0.0, targets)
    labels = np.append(np.zeros(len(more), dtype=int), groups[rest])
    return np.vstack([more, X[rest]]), np.append(targets, y[rest]), labels


@pytest.mark.parametrize(("name", "kind", "other", "privacy"), [
    *((name, kind, None, "central") for name, kind in product(SUMS, PERSONS)),
    *((name, "many rows", "no numbers", "aggregate") for name in ("SSPRegressor", "instruments")),
])  # fmt: skip
def test_one_person_changes_nothing_but_noise(name, kind, other, privacy):
    """However many rows they have, and whatever stands in them: no error, no count, no warning."""
    binary, (Estimator, public) = name in ("two classes", "three classes", "counts"), SUMS[name]
    settings = {"epsilon": 20.0, "random_state": 0, "max_rows_per_group": 5, "privacy": privacy}
    make = lambda: Estimator(**public, **settings)  # noqa: E731
    found = replay(make, replaced(other, binary), replaced(kind, binary))
    assert found.holds and found.epsilon > 1.0, str(found)


def test_the_number_of_rows_decides_no_number_of_steps():
    """It is private: the steps of maximum likelihood are as many as that of persons allows."""
    settings = {"link": "logit", "data_norm": 1.5, "bounds_y": (0.0, 1.0), "random_state": 0}
    found = replay(
        lambda: ReweightedRegressor(**settings, epsilon=20.0, max_rows_per_group=5),
        replaced(None, True),
        replaced("many rows", True),
    )
    assert found.holds, str(found)


@every_class
def test_prediction_intervals_hold_out_persons(Estimator):
    """The level is for one row of a new person; rows of one person are not on both sides."""
    inside = []
    for seed in range(3):
        X, y, groups = panel(seed, persons=1500, rows=4, effect=1.0)
        settings = {} if Estimator is AdditiveRegressor else {"prediction_levels": (0.9,)}
        model = fit(
            Estimator, (X, y, groups), 4, epsilon=10.0, random_state=seed,
            calibration_size=0.4, **settings,
        )  # fmt: skip
        new_X, new_y, _ = panel(100 + seed, persons=500, rows=1, effect=1.0)
        low, high = model.prediction_interval(new_X, confidence_level=0.9)
        inside.append(np.mean((low <= new_y) & (new_y <= high)))
    assert np.mean(inside) > 0.89


@pytest.mark.parametrize("Estimator", [LinearRegression, SSPRegressor])
def test_rows_of_a_person_may_lie_anywhere_in_batches(Estimator, monkeypatch):
    """They are brought together in as many passes as memory takes: the fit is that of arrays."""
    monkeypatch.setattr(_persons, "KEPT_BYTES", 8 * 3 * 4 * 650)  # of 1500 persons
    X, y, groups = panel(0, persons=1500, rows=4, effect=1.0)
    order = np.random.RandomState(1).permutation(len(y))
    data = X[order], y[order]
    batches = from_batches(
        lambda: [
            (part, target)
            for part, target in zip(
                np.array_split(data[0], 5), np.array_split(data[1], 5), strict=True
            )
        ],
        n=len(y),
    )
    settings = {**MAKERS[Estimator], "epsilon": 20.0, "random_state": 0, "max_rows_per_group": 4}
    able = (None, "person") if Estimator is LinearRegression else (None,)
    for effects in able:
        model = Estimator(**settings, **({"effects": effects} if effects else {}))
        found = inference(model.fit(batches, groups=groups[order]))
        memory = inference(model.fit(*data, groups=groups[order]))
        np.testing.assert_allclose(found.estimate, memory.estimate, rtol=1e-9)
        np.testing.assert_allclose(found.std_error, memory.std_error, rtol=1e-9)


def test_the_limit_may_stand_in_the_constructor_or_in_fit():
    X, y, groups = panel(0)
    first = SSPRegressor(**NORM, max_rows_per_group=3, random_state=0).fit(X, y, groups=groups)
    second = SSPRegressor(**NORM, random_state=0).fit(X, y, groups=groups, max_rows_per_group=3)
    np.testing.assert_array_equal(first.coef_, second.coef_)
    with pytest.raises(ValueError, match="needs groups"):
        SSPRegressor(**NORM, max_rows_per_group=3).fit(X, y)
