"""A plan lists what a fit asks, without data and without a charge."""

import numpy as np
import pytest

from skpriv import BudgetAccountant
from skpriv.linear_model import LinearRegression

BOUNDS = {"age": (20, 60), "dose": (0, 1)}


def _fitted(model, n):
    rng = np.random.RandomState(0)
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({name: rng.uniform(*ends, n) for name, ends in BOUNDS.items()})
    return model.fit(X, 5.0 + X["dose"] + rng.normal(0, 1, n))


@pytest.mark.parametrize(("n", "privacy"), [
    (300, "central"), (5000, "central"), (150_000, "central"), (5000, "aggregate"),
])  # fmt: skip
def test_it_agrees_with_the_report_of_a_fit(n, privacy):
    model = LinearRegression(
        epsilon=1.0, privacy=privacy, bounds_X=BOUNDS, bounds_y=(0, 10), random_state=1
    )
    plan = model.plan(n, 2)
    rows = _fitted(model, n).privacy_report_.rows
    assert plan.questions == [row.query for row in rows]
    np.testing.assert_allclose(plan.shares, [row.share for row in rows], rtol=1e-9)
    # That of the line depends on how many long scores were counted
    of_line = np.array(["of the line" in question for question in plan.questions])
    ratio = plan.noise / [row.scale for row in rows]
    np.testing.assert_allclose(ratio[~of_line], 1.0, rtol=0.035)
    np.testing.assert_allclose(ratio[of_line], 1.0, rtol=0.2)
    records = [row.records for row in rows]
    np.testing.assert_allclose(plan.noise_of_mean, plan.noise / records)
    assert plan.guarantee == str(model.privacy_report_.guarantee)
    lines = list(filter(None, str(plan).splitlines()))
    assert len(set(lines)) == len(lines)


def test_it_costs_nothing_and_changes_nothing():
    model = LinearRegression(epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1))
    with BudgetAccountant(0.5, 1e-6) as accountant:
        first, second = model.plan(1000, 3), model.plan(1000, 3)
        assert not accountant.charges
    assert str(first) == str(second) and not hasattr(model, "coef_")
    assert list(first.to_frame()["question"]) == first.questions
    assert model.random_state is None


def test_more_epsilon_has_smaller_errors():
    errors = [
        LinearRegression(epsilon=epsilon, bounds_X=(0, 1), bounds_y=(0, 1)).plan(20_000, 4)
        for epsilon in (0.5, 1.0, 4.0)
    ]
    medians = [float(np.nanmedian(plan.std_error)) for plan in errors]
    assert medians[0] > medians[1] > medians[2] > 0.0


def planned(n, features, epsilon, privacy):
    bounds = {"bounds_X": (0, 1), "bounds_y": (0, 1)}
    return LinearRegression(epsilon=epsilon, privacy=privacy, **bounds).plan(n, features)


@pytest.mark.parametrize("privacy", ["central", "local"])
@pytest.mark.parametrize("features", [1, 7])
def test_what_it_proposes_would_do_and_less_would_not(privacy, features):
    small = planned(200, features, 0.5, privacy)
    assert not small.estimable
    assert planned(small.records, features, 0.5, privacy).estimable
    assert not planned(int(0.99 * small.records), features, 0.5, privacy).estimable
    if small.epsilon < np.inf:
        assert planned(200, features, 1.001 * small.epsilon, privacy).estimable
        assert not planned(200, features, 0.99 * small.epsilon, privacy).estimable
    assert f"{small.records:,} records" in str(small)
    enough = str(planned(small.records, features, 0.5, privacy))
    assert f"Most coefficients are estimable, from {small.records:,} records on" in enough


def test_small_integers_of_numpy_do_not_overflow():
    plan = LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1)).plan(np.uint8(200), np.uint8(7))
    assert repr(plan) == str(plan)
    assert type(plan.n) is int and str(plan) == str(planned(200, 7, 1.0, "central"))


@pytest.mark.parametrize(("settings", "sizes", "words"), [
    *(({}, (size, 2), "n must be a positive integer") for size in (0, True, 2.5, "3")),
    ({}, (np.full((4, 2), 7), 2), "n must be a positive integer: a public number, not the rows.$"),
    ({}, (1000, [2, 3]), "n_features must be a positive integer"),
    ({"privacy": "none"}, (1000, 2), "has no plan"),
    ({"bounds_X": BOUNDS}, (100, 3), "shape .2, 2., but X has 3 features"),
])  # fmt: skip
def test_what_cannot_be_planned_is_refused_in_words(settings, sizes, words):
    with pytest.raises(ValueError, match=words):
        LinearRegression(**{"bounds_X": (0, 1), "bounds_y": (0, 1), **settings}).plan(*sizes)
