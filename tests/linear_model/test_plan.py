"""A plan says what a fit asks and tells, without data and without a charge, and it is true."""

import re
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skpriv import BudgetAccountant
from skpriv.inspection import inference
from skpriv.linear_model import (
    AdditiveRegressor, LinearRegression, LogisticRegression, PoissonRegressor,
)  # fmt: skip
from skpriv.linear_model._plan import _Imagined
from skpriv.preprocessing import Boolean, Categorical, FormulaEncoder, Numeric, TableEncoder

BOUNDS = {"age": (20, 60), "dose": (0, 1)}
RANGES = {"epsilon": 1.0, "random_state": 1}
MODELS = {
    "line": (LinearRegression, {"bounds_y": (0, 10)}),
    "counts": (PoissonRegressor, {"bounds_y": (0, 30)}),
    "classes": (LogisticRegression, {"classes": (0, 1)}),
    "curves": (AdditiveRegressor, {"bounds_y": (0, 10)}),
}


def model_of(kind, **settings):
    Estimator, own = MODELS[kind]
    return Estimator(**{**RANGES, "bounds_X": BOUNDS, **own, **settings})


def made(kind, n, seed=0):
    """A frame of two features, and targets that hardly depend on them, but for classes."""
    pd, rng = pytest.importorskip("pandas"), np.random.RandomState(seed)
    X = pd.DataFrame({name: rng.uniform(*ends, n) for name, ends in BOUNDS.items()})
    if kind == "counts":
        return X, rng.poisson(np.exp(1.2 + 0.2 * X["dose"])).astype(float)
    if kind == "classes":
        return X, (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(1.0 - 2.0 * X["dose"]))).astype(int)
    return X, 5.0 + 0.2 * X["dose"].to_numpy() + rng.normal(0, 1, n)


def errors_of(model):
    """Standard errors of a fit, as a plan tells them."""
    if not isinstance(model, AdditiveRegressor):
        return inference(model).std_error[:-1]
    found = []
    for name, (low, high) in BOUNDS.items():
        curve = model.curve(name, np.linspace(low, high, 21))
        found.append(np.sqrt(np.mean(((curve.high - curve.low) / 3.92) ** 2)))
    return np.array(found)


@pytest.mark.usefixtures("three_rehearsals")
@pytest.mark.parametrize("kind, n, privacy", [
    ("line", 300, "central"), ("line", 5000, "central"), ("line", 150_000, "central"),
    ("line", 5000, "aggregate"), ("counts", 20_000, "central"), ("classes", 20_000, "central"),
    ("curves", 20_000, "central"), ("line", 3000, "local"),
])  # fmt: skip
def test_it_agrees_with_the_report_of_a_fit(kind, n, privacy):
    model = model_of(kind, privacy=privacy)
    plan = model.plan(n, 2)
    rows = model.fit(*made(kind, n)).privacy_report_.rows
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


@pytest.mark.parametrize("kind, estimand, n", [
    ("line", "fitted", 3000), ("line", "least_squares", 10_000), ("counts", "fitted", 10_000),
    ("classes", "likelihood", 30_000), ("curves", "fitted", 10_000),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in [
        ("line", "fitted", 100_000), ("line", "least_squares", 100_000),
        ("counts", "likelihood", 100_000), ("classes", "fitted", 10_000),
    ]),
])  # fmt: skip
def test_its_errors_are_those_of_fits(kind, estimand, n):
    """The median of three fits. A variance for an error, or rows in half of the ranges, are not."""
    settings = {} if kind == "curves" else {"estimand": estimand}
    plan = model_of(kind, **settings).plan(n, 2)
    fits = [errors_of(model_of(kind, **settings).fit(*made(kind, n, seed))) for seed in range(3)]
    ratio = plan.std_error / np.median(fits, axis=0)
    assert (0.77 < ratio).all() and (ratio < 1.3).all()
    assert plan.estimand == estimand and plan.names == list(BOUNDS)


@pytest.mark.parametrize("settings", [
    {"privacy": "shuffle"}, {"privacy": "local", "epsilon": 8.0}, {"max_rows_per_group": 2},
], ids=lambda found: "-".join(map(str, found.values())))  # fmt: skip
def test_its_errors_hold_in_other_models_and_for_persons(settings):
    n, model = 20_000, model_of("line", **settings)
    plan = model.plan(n, 2)
    X, y = made("line", n * settings.get("max_rows_per_group", 1))
    people = {"groups": np.arange(len(y)) // 2} if "max_rows_per_group" in settings else {}
    fits = [clone(model).set_params(random_state=seed).fit(X, y, **people) for seed in range(3)]
    ratio = plan.std_error / np.median([errors_of(one) for one in fits], axis=0)
    assert (0.77 < ratio).all() and (ratio < 1.3).all()
    assert ("20,000 persons" in str(plan)) == bool(people)


@pytest.mark.usefixtures("three_rehearsals")
@pytest.mark.parametrize("privacy", ["central", "shuffle"])
def test_errors_by_sampling_alone_are_those_of_the_textbook(privacy):
    """They are of a fit without privacy, beside a rare level too, and of every trust model."""
    schema = {"site": Categorical(["A", "B", "C"], other=False)}
    model = LinearRegression(epsilon=1.0, bounds_y=(0.0, 10.0), data_norm=1.0, privacy=privacy)
    n, rare = 20_000, 0.02
    plan = model.plan(n, schema=schema, shares={"site": {"C": rare}}, target_deviation=1.0)
    usual = (1.0 - rare) / 2.0
    textbook = np.sqrt([2.0 / usual, 1.0 / usual + 1.0 / rare]) / np.sqrt(n)
    np.testing.assert_allclose(plan.sampling_error, textbook, rtol=0.06)


@pytest.mark.usefixtures("three_rehearsals")
def test_it_costs_nothing_and_changes_nothing():
    model = LinearRegression(epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1))
    with BudgetAccountant(0.5, 1e-6) as accountant:
        first, second = model.plan(1000, 3), model.plan(1000, 3)
        model.set_params(privacy="shuffle").plan(1000, 3)
        assert not accountant.charges
    assert str(first) == str(second) and not hasattr(model, "coef_")
    assert list(first.to_frame().index) == ["x0", "x1", "x2"]
    assert model.random_state is None


def test_more_epsilon_and_more_records_have_smaller_errors():
    middle, *others = (
        LinearRegression(epsilon=epsilon, bounds_X=(0, 1), bounds_y=(0, 1)).plan(20_000, 4)
        for epsilon in (1.0, 0.5, 4.0)
    )
    few, many = (middle.rehearse(n, "fitted") for n in (5_000, 80_000))
    for less, more in (others, (few, many)):
        errors = [float(np.median(one.std_error)) for one in (less, middle, more)]
        assert errors[0] > errors[1] > errors[2] > 0.0


@pytest.mark.parametrize("kind, least, most", [
    ("line", 0.0, 0.0), ("counts", 0.17, 0.3), ("classes", 0.17, 0.3),
])  # fmt: skip
def test_made_up_classes_and_counts_go_along_with_every_column(kind, least, most):
    """Without an effect of columns the noise of curves is a quarter less than that of fits. Half of
    what they have in common would have correlations of .14 and less.
    """
    X, y = model_of(kind).plan(20_000, 2).rehearse.__self__.few_rows
    for column in X.T:
        assert least - 0.01 < np.corrcoef(column, y)[0, 1] < most + 0.01


SITES = {
    "age": Numeric(18, 90, usual=(25, 65)),
    "site": Categorical(["A", "B", "C"], other=False),
}


def counts_of_sites(epsilon):
    return PoissonRegressor(epsilon=epsilon, data_norm=1.0, bounds_y=(0, 20), estimand="likelihood")


def planned_beside_a_rare_level(model, sizes):
    """Standard errors of the common level that are planned where the other one is rare."""
    plan = model.plan(sizes[0], schema=SITES, shares={"site": {"C": 0.02}}, target_mean=1.1)
    return [plan.rehearse(n, "likelihood").std_error[1] for n in sizes]


def test_more_records_have_smaller_errors_at_a_small_budget():
    """They rose by a seventh from 5,000 to 7,000, since medians of five rehearsals vary so."""
    planned = planned_beside_a_rare_level(counts_of_sites(0.3), (5_000, 7_000, 10_000))
    assert planned[0] > planned[1] > planned[2]


def test_more_records_have_smaller_errors_beside_a_rare_level():
    """Of a declared likelihood of counts they were .028, .090 and .031.

    Rows of a level of 2% are fifty times as long as usual ones where the slope is asked. From
    20,000 records on noisy counts showed them, and the noise of the slope followed their square.
    The level itself stays told by the steps.
    """
    pd = pytest.importorskip("pandas")
    model = counts_of_sites(1.0)
    planned = planned_beside_a_rare_level(model, (10_000, 20_000, 40_000))
    assert planned[0] > 1.2 * planned[1] > 1.44 * planned[2]
    for seed in (0, 2):
        rng = np.random.default_rng(seed)
        age = rng.normal(45.0, 12.0, 40_000).clip(18.0, 90.0)
        site = rng.choice(["A", "B", "C"], 40_000, p=[0.5, 0.48, 0.02])
        y = rng.poisson(np.exp(0.02 * (age - 45.0) + 0.3 * (site == "B")))
        line = make_pipeline(TableEncoder(SITES), model.set_params(random_state=seed))
        found = inference(line.fit(pd.DataFrame({"age": age, "site": site}), y))
        assert not found.hidden and found.std_error[1] < 1.5 * planned[2]


@pytest.mark.usefixtures("three_rehearsals")
@pytest.mark.parametrize("estimand", ["fitted", "least_squares"])
def test_as_many_people_as_are_needed_find_an_effect(estimand):
    """With them the error is the effect over 1.96 + .84, and with a tenth fewer it is larger."""
    model = model_of("line", estimand=estimand)
    plan = model.plan(1000, 2)
    n = plan.people_needed(0.3, name="dose")
    place = plan.names.index("dose")
    assert plan.rehearse(int(n), estimand).std_error[place] <= 0.3 / 2.8016
    assert plan.rehearse(int(0.9 * n), estimand).std_error[place] > 0.3 / 2.8016
    assert n < plan.people_needed(0.3, 0.95, name="dose")
    # An effect of .3 for each year of age is far larger
    assert plan.people_needed(-0.3, estimand=estimand) == n


@pytest.mark.usefixtures("three_rehearsals")
def test_from_so_many_records_on_all_are_estimable(monkeypatch):
    model = LinearRegression(epsilon=0.5, bounds_X=(0, 1), bounds_y=(0, 1))
    plan = model.plan(300, 7)
    assert not plan.estimable.all() and "Not estimable (-)" in str(plan)
    found = plan.records
    with monkeypatch.context() as patch:
        patch.setattr(_Imagined, "_rehearsed", None)  # of what is known nothing is rehearsed again
        assert plan.records == found
    assert not np.isfinite(plan.rehearse(int(0.9 * found), "fitted").std_error).all()
    enough = model.plan(int(found), 7)
    assert enough.estimable.all() and "Not estimable" not in str(enough)


SCHEMA = {
    "age": Numeric(0, 120, usual=(20, 60)),
    "site": Categorical(["A", "B", "C"], other=False),
    "ill": Boolean(),
    "pay": Numeric(0, 1e6, usual=(1e4, 1e5), missing="indicator"),
}
SHARES = {"site": {"B": 0.3, "C": 0.05}, "ill": 0.1, "pay": {"missing": 0.08}}


def table(n, seed=0):
    """A table as the schema and the shares say."""
    pd, rng = pytest.importorskip("pandas"), np.random.RandomState(seed)
    pay = rng.normal(55_000, 90_000 / 3.29, n).clip(0, 1e6)
    pay[rng.uniform(size=n) < 0.08] = np.nan
    frame = pd.DataFrame({
        "age": rng.normal(40, 40 / 3.29, n).clip(0, 120),
        "site": rng.choice(["A", "B", "C"], n, p=[0.65, 0.3, 0.05]),
        "ill": rng.uniform(size=n) < 0.1,
        "pay": pay,
    })  # fmt: skip
    return frame, 5.0 + 0.01 * frame["age"].to_numpy() + rng.normal(0, 1, n)


@pytest.mark.parametrize("encoder", [
    TableEncoder(SCHEMA), FormulaEncoder("age + I(age**2) + site + ill:age", SCHEMA),
], ids=["table", "formula"])  # fmt: skip
def test_of_a_schema_it_tells_the_coefficients_of_the_table(encoder):
    pytest.importorskip("formulaic")
    model = LinearRegression(data_norm=1.0, bounds_y=(0, 10), estimand="least_squares", **RANGES)
    if isinstance(encoder, FormulaEncoder):
        shares = {name: share for name, share in SHARES.items() if name != "pay"}
        plan = model.plan(40_000, schema=encoder, shares=shares)
    else:
        plan = model.plan(40_000, schema=SCHEMA, shares=SHARES)
    rows, ratios = table(40_000), []
    for seed in range(5):  # the errors of a fit vary by a tenth with its noise
        model.set_params(random_state=seed)
        found = inference(make_pipeline(encoder, model).fit(*rows))
        ratios.append(plan.std_error / found.std_error[:-1])
    assert plan.names == found.names[:-1]
    ratio = np.median(ratios, axis=0)
    assert 0.77 < np.median(ratio) < 1.3 and (0.77 < ratio).all() and (ratio < 1.3).all()
    assert "needs up to about" in str(plan)


@pytest.mark.usefixtures("three_rehearsals")
def test_a_usual_target_is_as_wide_as_it_says():
    model = LinearRegression(data_norm=1.0, bounds_y=(0, 100), **RANGES)
    schema = {"age": Numeric(0, 120), "pay": Numeric(0, 100, usual=(20, 60))}
    with_target = TableEncoder(dict(schema)).schema
    from skpriv.preprocessing import Schema

    plan = model.plan(20_000, schema=Schema(with_target, target="pay"))
    given = model.plan(
        20_000, schema={"age": Numeric(0, 120)}, target_mean=40.0,
        target_deviation=0.87 * 40.0 / 3.2897,
    )  # fmt: skip
    assert plan.std_error == pytest.approx(given.std_error, rel=1e-3)


@pytest.mark.parametrize("mean, farthest", [(5.0, 95.0), (95.0, 12.0)])
def test_made_up_targets_come_near_an_upper_bound_that_is_far_away(mean, farthest):
    """Nine tenths are in the usual range. With half of the skewness none would come half as far."""
    model = LinearRegression(bounds_X=(0, 1), bounds_y=(0, 100))
    made_up = model._imagined_target((np.arange(2**13) + 0.5) / 2**13, mean, 2.0)
    low, high = np.quantile(made_up, [0.05, 0.95])
    assert (high - low) / 3.2897 == pytest.approx(2.0, rel=0.01)
    assert made_up.mean() == pytest.approx(mean, abs=0.1)
    assert 0.8 < (made_up - mean).max() / farthest < 1.3


def test_a_level_needs_as_many_rows_as_are_said():
    """With a quarter of them a level of a list is hidden, and with four times as many it is not."""
    model = LinearRegression(data_norm=1.0, bounds_y=(0, 10), **RANGES)
    schema = {"site": Categorical(["A", "B", "C"], other=False), "age": Numeric(0, 120)}
    needed = model.plan(20_000, schema=schema).level_records
    found = [
        model.plan(20_000, schema=schema, smallest_level=factor * needed / 20_000)
        for factor in (0.25, 4.0)
    ]
    place = found[0].names.index("site=C")
    assert [bool(plan.estimable[place]) for plan in found] == [False, True]


@pytest.mark.parametrize(("n", "most_rows", "columns"), [
    (20_000, None, 1), (2_000, None, 7), (2_000, 3, 1), (10_000, 3, 4),
])  # fmt: skip
def test_a_level_needs_as_many_rows_as_the_table_says(n, most_rows, columns):
    """A plan says at least half of what the table says: the third case was 9 times less."""
    pd = pytest.importorskip("pandas")
    schema = {"site": Categorical(["A", "B", "C"], other=False)}
    schema |= {f"x{i}": Numeric(0, 1) for i in range(columns)}
    model = LinearRegression(data_norm=1.0, bounds_y=(0, 1), max_rows_per_group=most_rows, **RANGES)
    planned = model.plan(n, schema=schema).level_records
    rows = n * (most_rows or 1)
    frame = pd.DataFrame(np.random.default_rng(0).uniform(size=(rows, len(schema))), columns=schema)
    y = frame.pop("site")
    frame["site"] = np.where(frame["x0"] < 0.3, "A", "B")
    groups = {"linearregression__groups": np.arange(rows) % n} if most_rows else {}
    model.set_params(random_state=0)
    line = make_pipeline(TableEncoder(schema), model).fit(frame, y, **groups)
    said = re.search("up to about ([0-9,]+) rows", inference(line).reason).group(1)
    assert planned >= 0.45 * float(said.replace(",", ""))
    if n == 20_000:  # the design is resolved
        assert planned <= 2.0 * float(said.replace(",", ""))


@pytest.mark.parametrize("kind", ["classes", "counts"])
def test_the_rows_that_a_plan_says_tell_a_level_that_has_an_effect(kind):
    """A dash in at most 3 of 12 fits: of 30 fits 3 of classes, and 9 of counts, have one.

    Noise moves the linear part of rarer levels to where the slope is 0. Before that was counted, a
    plan said 89 rows, with which 2 of 3 fits had a dash. Half of `run_off`, or twice `slope_left`,
    would say .71 of these rows, with which 6 and 7 of the 12 have one.
    """
    pd = pytest.importorskip("pandas")
    Model, target = {
        "classes": (LogisticRegression, {"classes": (0, 1)}),
        "counts": (PoissonRegressor, {"bounds_y": (0, 20)}),
    }[kind]
    schema = {"site": Categorical(["A", "B", "C", "rare"], other=False), "x": Numeric(-3, 3)}
    model = Model(epsilon=1.0, data_norm=1.0, **target)
    rows = round(model.plan(5_000, schema=schema).level_records)
    hidden = []
    for seed in range(12):
        rng = np.random.RandomState(seed)
        site = rng.choice(3, 5_000)
        site[:rows] = 3
        x = rng.normal(size=5_000).clip(-3, 3)
        means = np.exp([0.0, 0.5, 1.0, -0.5 if kind == "counts" else 1.0])[site] * np.exp(x / 2.0)
        y = rng.poisson(means).clip(0, 20)
        if kind == "classes":
            y = (rng.uniform(size=5_000) < 1.0 / (1.0 + np.exp(0.5 - x / 2.0) / means)).astype(int)
        frame = {"site": np.array(["A", "B", "C", "rare"], dtype=object)[site], "x": x}
        line = make_pipeline(TableEncoder(schema), model.set_params(random_state=seed))
        hidden.append("site=rare" in inference(line.fit(pd.DataFrame(frame), y)).hidden)
    assert sum(hidden) <= 3


@pytest.mark.usefixtures("three_rehearsals")
def test_small_integers_of_numpy_do_not_overflow():
    model = LinearRegression(epsilon=9.0, bounds_X=(0, 1), bounds_y=(0, 1))
    plan = model.plan(np.uint8(200), np.uint8(3))
    assert repr(plan) == str(plan)
    assert type(plan.n) is int and str(plan) == str(model.plan(200, 3))


@pytest.mark.parametrize(("settings", "given", "words"), [
    *(({}, {"n": size, "n_features": 2}, "n must be a positive integer")
      for size in (0, True, 2.5, "3")),
    ({}, {"n": np.full((4, 2), 7), "n_features": 2},
     "n must be a positive integer: a public number, not the rows.$"),
    ({}, {"n": 1000, "n_features": [2, 3]}, "n_features must be a positive integer"),
    ({}, {"n": 1000}, "n_features, or a schema"),
    ({"privacy": "none"}, {"n": 1000, "n_features": 2}, "has no plan"),
    ({"bounds_X": BOUNDS}, {"n": 100, "n_features": 3}, "shape .2, 2., but X has 3 features"),
    ({}, {"n": 100, "n_features": 3, "smallest_level": 0.1}, "Only a schema has levels"),
    ({}, {"n": 100, "n_features": 3, "schema": SCHEMA}, "n_features, or a schema"),
    ({}, {"n": 100, "schema": SCHEMA, "shares": {"site": {"D": 0.1}}}, "shares names 'D'"),
    ({}, {"n": 100, "schema": SCHEMA, "shares": {"site": {"A": 1.5}}}, "add up to more"),
    ({}, {"n": 100, "schema": SCHEMA, "shares": {"sex": 0.5}}, "'sex'"),
])  # fmt: skip
def test_what_cannot_be_planned_is_refused_in_words(settings, given, words):
    bounds = {"bounds_X": (0, 1), "bounds_y": (0, 1)}
    with pytest.raises(ValueError, match=words):
        LinearRegression(**{**bounds, **settings}).plan(**given)


@pytest.mark.parametrize(("given", "words"), [
    ({"effect": 0.0}, "effect=0.0"), ({"effect": 1.0, "name": "x9"}, "people_needed names 'x9'"),
    ({"effect": 1.0, "estimand": "likelihood"}, "estimand names 'likelihood'"),
    ({"effect": 1.0, "power": 1.0}, "confidence_level"),
])  # fmt: skip
def test_effects_that_are_none_are_refused_in_words(given, words):
    with pytest.raises(ValueError, match=words):
        plan_of_two().people_needed(**given)


@cache
def plan_of_two():
    return LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1)).plan(1000, 2)


SHARED = {
    "age": Numeric(18, 90, missing="indicator"), "sex": Categorical(["F", "M"]),
    "w": Boolean(missing="indicator"),
}  # fmt: skip


@pytest.mark.usefixtures("three_rehearsals")
def test_what_no_share_names_is_assumed_absent_and_not_said_to_be_hidden():
    """A real fit estimated what a plan had called not estimable "with these records"."""
    model = LinearRegression(data_norm=1.0, bounds_y=(0, 10), random_state=0)
    plan = " ".join(str(model.plan(20_000, schema=SHARED)).split())
    absent = "age=missing against 54, sex=other, w=missing against False."
    assert "Assumed absent" in plan and absent in plan
    assert "Not estimable" not in plan
    rare = {"age": {"missing": 1e-5}}
    told = " ".join(str(model.plan(20_000, schema=SHARED, shares=rare)).split())
    assert "this budget: age=missing against 54." in told and "of them: sex=other" in told


@pytest.mark.parametrize("level", [True, "True", "true", 1])
def test_shares_of_truth_values_may_be_named_in_any_way(level):
    """The key True was found, and then nothing had it."""
    encoder = TableEncoder(SHARED).fit(pd_frame())
    assert encoder.level_shares({"w": {level: 0.05}})["w"] == {"true": 0.05, "false": 0.95}


@pytest.mark.parametrize(("shares", "said"), [
    ({"q": 0.1}, "shares names 'q', not among the columns of the encoder: age, sex, w"),
    ({"w": {"ja": 0.1}}, "shares names 'ja', not among the levels of this column: false, true"),
    ({"sex": {"X": 0.1}}, "shares names 'X', not among the levels of this column: F, M, other"),
])  # fmt: skip
def test_shares_of_what_is_not_there_are_refused(shares, said):
    with pytest.raises(ValueError, match=said):
        LinearRegression(data_norm=1.0, bounds_y=(0, 10)).plan(20_000, schema=SHARED, shares=shares)


def pd_frame():
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({"age": [20.0, 30.0], "sex": ["F", "M"], "w": [True, False]})
