"""A public guess of where values lie: it helps where noise hides the margins, and binds nobody."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from skpriv._estimation._loop import _whitening
from skpriv.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from skpriv.preprocessing import Categorical, FormulaEncoder, Numeric, Schema, TableEncoder

BOUNDS = [(0.0, 1000.0), (-1.0, 1.0), (0.0, 1.0)]
USUAL = [(20.0, 60.0), (-0.4, 0.2), (np.nan, np.nan)]
MODELS = {
    LinearRegression: {"bounds_y": (0.0, 10.0)},
    LogisticRegression: {"classes": (0, 1)},
    PoissonRegressor: {"bounds_y": (0.0, 10.0)},
}


def table(n, seed=0):
    rng = np.random.RandomState(seed)
    X = np.column_stack(
        [rng.normal(40.0, 12.0, n), rng.normal(-0.1, 0.18, n), rng.uniform(size=n) < 0.5]
    )
    return X, 4.0 + 0.08 * (X[:, 0] - 40.0) + 5.0 * X[:, 1] + rng.normal(0.0, 0.5, n)


def fitted(Model, n=1000, usual=None, epsilon=1.0, seed=0, **settings):
    X, y = table(n, seed)
    target = y > 4.0 if Model is LogisticRegression else np.clip(np.round(y), 0, None)
    settings = {"bounds_X": BOUNDS, "random_state": seed, **MODELS[Model], **settings}
    return Model(epsilon=epsilon, usual_X=usual, **settings).fit(X, target.astype(float))


def wrong_by(factor):
    """The guess with ranges that are so many times too wide or too narrow, and off by a half."""
    ends = np.array(USUAL)
    middle, half = ends.mean(axis=1), (ends[:, 1] - ends[:, 0]) / 2.0
    middle, half = middle + 0.5 * half, half * factor
    low, high = np.transpose(BOUNDS)
    return np.column_stack([np.maximum(middle - half, low), np.minimum(middle + half, high)])


@pytest.mark.parametrize("Model", MODELS)
def test_a_guess_asks_the_same_questions_for_the_same_price(Model):
    without, within = fitted(Model, 450), fitted(Model, 450, USUAL)
    # Where long scores of the line are cut follows from their lengths, and its noise. The noise of
    # scores of two classes follows from the limit that the released fit leaves
    follow = ("line", "scores") if Model is LogisticRegression else ("line",)
    reports = [
        [
            (row.query, row.share, row.scale * (not any(map(row.query.count, follow))))
            for row in rows
        ]
        for rows in (model.privacy_report_.rows for model in (without, within))
    ]
    assert reports[0] == reports[1]
    assert without.privacy_report_.guarantee == within.privacy_report_.guarantee
    assert not np.array_equal(without.coef_, within.coef_)


@pytest.mark.parametrize("Model", MODELS)
def test_a_guess_moves_no_bound_and_is_not_used_where_margins_are_known(Model):
    X, _ = table(5)
    bounds = [(0.0, 80.0), *BOUNDS[1:]]
    without, within = (fitted(Model, 30_000, usual, bounds_X=bounds) for usual in (None, USUAL))
    maps = without._record_map, within._record_map
    assert maps[0].same_as(maps[1])
    outside = X + [5000.0, 3.0, 2.0]
    assert np.array_equal(*(one.row_map.clipped(outside) for one in maps))
    if Model is not PoissonRegressor:  # counts are not asked for their margins
        law = without.coefficient_law()
        errors = np.sqrt(np.diagonal(law.sampling + law.privacy))[:3]
        assert (np.abs(without.coef_ - within.coef_) < 0.1 * errors).all()


# Rows that are not whitened, and whitened ones, which hardly need the guess here
@pytest.mark.parametrize("n, gain", [
    (450, 0.1), pytest.param(700, 0.0, marks=pytest.mark.slow),
])  # fmt: skip
def test_good_guesses_help_and_wrong_ones_do_not_harm(n, gain):
    """The first feature uses a twentieth of its range. Over 12 fits each; R2 of the line itself is
    .82. A guess that did nothing would leave the gain at 0.
    """
    X, y = table(5000, 99)
    found = {"none": [], "right": [], "wide": [], "narrow": []}
    guesses = {"none": None, "right": USUAL, "wide": wrong_by(4.0), "narrow": wrong_by(0.25)}
    for seed in range(12):
        for name, usual in guesses.items():
            model = fitted(LinearRegression, n, usual, seed=seed)
            found[name].append(model.score(X, y))
    mean = {name: np.mean(scores) for name, scores in found.items()}
    assert mean["right"] > mean["none"] + gain, mean
    assert min(mean["wide"], mean["narrow"]) > mean["none"], mean


def test_forms_of_a_guess_are_the_same_guess():
    X, y = table(400)
    frame = pd.DataFrame(X, columns=["age", "score", "member"])
    mapping = {"age": (20.0, 60.0), "score": (-0.4, 0.2)}
    settings = {"bounds_X": BOUNDS, "bounds_y": (0.0, 10.0), "random_state": 0}
    coefs = [
        LinearRegression(usual_X=usual, **settings).fit(frame, y).coef_
        for usual in (mapping, USUAL, np.array(USUAL))
    ]
    np.testing.assert_array_equal(coefs[0], coefs[1])
    np.testing.assert_array_equal(coefs[0], coefs[2])
    alike = {"bounds_X": (-1, 1), "bounds_y": (0.0, 10.0), "random_state": 0}
    pair, each = (
        LinearRegression(usual_X=usual, **alike).fit(X, y).coef_
        for usual in ((-0.5, 0.5), [(-0.5, 0.5)] * 3)
    )
    np.testing.assert_array_equal(pair, each)


@pytest.mark.parametrize(
    ("usual", "words"),
    [
        ((2.0, 1.0), "low < high"),
        (
            (-2.0, 0.5),
            r"\(-2, 0.5\),.* public range \(-1, 1\) by bounds_X",
        ),
        ([(0.0, 1.0)] * 2, "has shape"),
        ("wide", "pairs"),
        ({"age": (0.0, 1.0)}, "no columns of X"),
        ([(np.nan, 0.5)] * 3, "finite"),
    ],
)
def test_wrong_guesses_are_refused_before_a_charge(usual, words):
    X, y = table(50)
    model = LinearRegression(bounds_X=(-1, 1), bounds_y=(0, 10), usual_X=usual)
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)
    assert not hasattr(model, "privacy_report_")


def test_a_guess_of_values_is_none_of_differences_within_persons():
    X, y = table(60)
    model = LinearRegression(
        bounds_X=BOUNDS, bounds_y=(0, 10), usual_X=USUAL, effects="person", max_rows_per_group=3
    )
    with pytest.raises(ValueError, match="effects='person'"):
        model.fit(X, y, groups=np.arange(60) // 3)


@pytest.mark.parametrize("intercept", [True, False])
def test_guessed_rows_have_the_moments_that_are_guessed(intercept):
    """Of the columns of X in the coordinates of the first steps, where they are as guessed."""
    rows = (
        LinearRegression(
            bounds_X=BOUNDS,
            bounds_y=(0, 10),
            usual_X=USUAL,
            fit_intercept=intercept,
            random_state=0,
        )
        .fit(*table(300))
        ._record_map.row_map
    )
    rng = np.random.RandomState(0)
    X = np.column_stack([rng.normal(40.0, 10.0, 50_000), rng.normal(-0.1, 0.15, 50_000)])
    X = np.column_stack([X, np.full(len(X), 0.5)])
    ends = np.array(USUAL)
    mean, variance = rows.half_range_moments(*np.nan_to_num(ends, nan=0.5).T)
    turned = rows.features(X) @ rows.whitening(mean, variance).T
    np.testing.assert_allclose((turned[:, :2] ** 2).mean(axis=0), 1.0, rtol=0.4)
    if intercept:
        np.testing.assert_allclose(turned[:, :2].mean(axis=0), 0.0, atol=0.05)
        np.testing.assert_allclose(turned[:, 3], 1.0)


FRAME = pd.DataFrame({"income": [1.0], "age": [2.0], "site": ["A"]})
SCHEMA = {
    "income": Numeric(0, 1e6, usual=(20_000, 80_000)),
    "age": Numeric(0, 120),
    "site": Categorical(["A", "B"], other=False),
}


def test_an_encoder_carries_the_usual_ranges_of_a_schema():
    encoder = TableEncoder(SCHEMA).fit(FRAME)
    usual = encoder.usual_out_
    assert np.isnan(usual).all(axis=1).tolist() == [False, True, True]
    ends = encoder.transform(FRAME.assign(income=[20_000.0]))[0, 0]
    np.testing.assert_allclose(usual[0, 0], ends, atol=2e-3)
    without = {name: SCHEMA[name] for name in ("age", "site")}
    assert TableEncoder(without).fit(FRAME).usual_out_ is None
    terms = FormulaEncoder("income + age + income:age + C(site)", SCHEMA).fit(FRAME)
    known = ~np.isnan(terms.usual_out_).any(axis=1)
    names = list(terms.get_feature_names_out())
    assert {name for name, one in zip(names, known) if one} == {"income", "income:age"}


def test_a_usual_range_of_a_schema_helps_a_fit():
    rng = np.random.RandomState(0)
    gains = []
    for seed in range(6):
        frame = pd.DataFrame(
            {
                "income": rng.uniform(20_000, 80_000, 800),
                "age": rng.uniform(18, 90, 800),
                "site": rng.choice(["A", "B"], 800),
            }
        )
        y = frame["income"] / 10_000 + rng.normal(size=800)
        encoder = TableEncoder(Schema(SCHEMA)).fit(frame)
        X = encoder.transform(frame)
        scores = [
            LinearRegression(data_norm=1.0, bounds_y=(0, 20), usual_X=usual, random_state=seed)
            .fit(X, y)
            .score(X, y)
            for usual in (None, encoder.usual_out_)
        ]
        gains.append(scores[1] - scores[0])
    assert np.mean(gains) > 0.2


@pytest.mark.parametrize("noise, factor", [(1.0, 16.0), (0.75, 1.5**4), (0.6, 1.2**4), (0.5, 1.0)])
def test_a_guess_fades_with_the_fourth_power_of_the_noise_of_margins(noise, factor):
    """It divides a released variance by 16 at most, and by 1 at half of that noise.

    With the power 2 or 8 the factor would be 2.25 or 26 at three quarters of that noise.
    """
    scale = noise * _whitening.MARGINS_NOISE * _whitening.SQUARES
    answer = SimpleNamespace(value=np.array([0.0, 0.9]), n=1, mean_scale=scale)
    session = SimpleNamespace(sum=lambda *asked: answer)
    used = []

    def whitening(mean, variance):
        used.append(variance)
        return np.eye(2)

    rows = SimpleNamespace(n_features=1, size=2, whitening=whitening, may_be_indicators=[False])
    rules = SimpleNamespace(margins=0.1, length=1.0)
    for usual in (None, (np.eye(2), np.array([1e-9]))):
        _whitening.whitening_by_margins(session, rows, rules, None, usual)
    assert used[0] / used[1] == pytest.approx(factor)
