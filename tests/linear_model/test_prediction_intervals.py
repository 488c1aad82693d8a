"""Prediction intervals: split conformal to rounding, paid once, total queries, every branch."""

import pickle
from itertools import product
from math import inf

import numpy as np
import pytest
from registry.estimators import ESTIMATORS as ALL, SETTINGS, targets
from registry.refusals import uncharged
from scipy import sparse
from sklearn.utils import check_random_state

from skpriv import Budget, BudgetAccountant
from skpriv.linear_model import (
    AdditiveRegressor,
    IHTRegressor,
    LinearRegression,
    ReweightedRegressor,
    SSPRegressor,
    _prediction_intervals as intervals,
)
from skpriv.linear_model._prediction_intervals import Score, ScoreReports
from skpriv.metrics import interval_coverage_score, interval_mean_width
from skpriv.privacy import Answer, Cost, GaussianNoise, Trust
from skpriv.records import SEED_BYTES, SeededOrder

CLASSES = {
    LinearRegression: {"bounds_X": (-0.5, 0.5)},
    SSPRegressor: {"data_norm": 1.0},
    ReweightedRegressor: {"data_norm": 1.0},
    IHTRegressor: {"data_max": 1.0, "n_nonzero_coefs": 2},
}
# With delta = 0 every user who is held out sends one random bit.
NOISY = [
    *((Estimator, "central", 1e-6) for Estimator in CLASSES),
    *((Estimator, "local", 0.0) for Estimator in (*list(CLASSES)[:3], AdditiveRegressor)),
    *((Estimator, "local", 1e-6) for Estimator in (LinearRegression, SSPRegressor)),
    (SSPRegressor, "shuffle", 1e-6),
]
every_class = pytest.mark.parametrize("Estimator", CLASSES)


def _data(n=4000, seed=0, noise="uniform"):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, 3))
    error = rng.uniform(-0.1, 0.1, size=n)
    if noise == "skewed":
        error = 0.1 * (rng.exponential(size=n) - 1.0)
    return X, X @ [1.0, -0.5, 0.0] + error


def _settings(Estimator, **params):
    return {"bounds_y": (-1.0, 1.0), **CLASSES.get(Estimator, {"bounds_X": (-0.5, 0.5)}), **params}


def _fit(Estimator, X, y, **params):
    params = {"calibration_size": 0.25, "random_state": 0, **params}
    return Estimator(**_settings(Estimator, **params)).fit(X, y)


@pytest.mark.parametrize(
    "Estimator", [E for E in ALL if hasattr(E, "_function") or hasattr(E, "_probabilities")]
)
def test_a_prediction_is_a_function_of_its_row_alone(Estimator):
    """To the last digit, and where terms overflow: no kernel of BLAS may look at other rows.

    A score would depend on its chunk, and one record could move the scores of others.
    """
    rng = np.random.RandomState(0)
    X = rng.uniform(-0.5, 0.5, size=(201, 7))
    y = targets(Estimator, X[:, 0])
    fitted = Estimator(**SETTINGS[Estimator], privacy="none").fit(X, y)
    function = getattr(fitted, "_probabilities", None) or fitted._function
    X[::3] *= 10.0 ** rng.uniform(300, 308.2, size=X[::3].shape)
    for rows in (X, np.asfortranarray(X)):
        with np.errstate(all="ignore"):
            alone = np.concatenate([function(rows[i : i + 1]) for i in range(len(rows))])
            np.testing.assert_array_equal(function(rows), alone)
            np.testing.assert_array_equal(function(rows[5:18]), alone[5:18])
            if not hasattr(fitted, "classes_"):  # held-out scores are of what is predicted
                inside = np.clip(fitted.predict(rows), *fitted.bounds_y_)
                np.testing.assert_array_equal(np.clip(alone, *fitted.bounds_y_), inside)
                assert not hasattr(fitted, "bounds_X") or np.isfinite(alone).all()  # clipped


@pytest.mark.parametrize(("Estimator", "score", "level"), [
    *product([SSPRegressor], ["absolute", "signed"], [0.5, 0.9, 0.99]),
    *product([LinearRegression, ReweightedRegressor, IHTRegressor], ["signed"], [0.9]),
])  # fmt: skip
def test_none_is_textbook_split_conformal(Estimator, score, level):
    X, y = _data(401)
    est = _fit(Estimator, X, y, privacy="none", conformity_score=score, prediction_levels=(level,))
    seed = check_random_state(0).bytes(SEED_BYTES)  # of the random order: the first use of the seed
    held_out, fit = np.split(SeededOrder(seed, 401).dealt(0, 401), [100])
    plain = Estimator(**_settings(Estimator, privacy="none")).fit(X[np.sort(fit)], y[np.sort(fit)])
    assert est.predict(X) == pytest.approx(plain.predict(X), abs=1e-12)
    residual = y[held_out] - plain.predict(X[held_out])
    if score == "absolute":
        rank = int(np.ceil(level * 101 - 1e-9))
        below = above = np.sort(np.abs(residual))[rank - 1] if rank <= 100 else inf
    else:
        rank = int(np.ceil((1.0 + level) / 2.0 * 101 - 1e-9))
        above = np.sort(residual)[rank - 1] if rank <= 100 else inf
        below = np.sort(-residual)[rank - 1] if rank <= 100 else inf
    low, high = est.prediction_interval(X, level)
    centre = plain.predict(X)
    assert low == pytest.approx(np.maximum(centre - below, -1.0), abs=1e-10)
    assert high == pytest.approx(np.minimum(centre + above, 1.0), abs=1e-10)


def _paid(rows):
    """Sum of mu^2, or 2 rho, of some answers."""
    cost = sum((row.cost for row in rows), Cost())
    return 2.0 * cost.amount("zcdp")


@pytest.mark.parametrize(("Estimator", "privacy", "delta"), NOISY)
def test_the_whole_is_charged_once(Estimator, privacy, delta):
    X, y = _data()
    aside = {"set_aside": (2.0, 1e-6)} if privacy == "shuffle" else {}
    with BudgetAccountant(4.0, 2.0 * delta, **aside) as accountant:
        est = _fit(
            Estimator, X, y, privacy=privacy, delta=delta, epsilon=2.0,
            random_state=0 if delta else None,
        )  # fmt: skip
    (charge,) = accountant.charges
    report = est.privacy_report_
    assert report.total.epsilon(delta) == pytest.approx(2.0, rel=1e-6)
    held_out = [row for row in report.rows if row.query == "scores within"]
    fit = [row for row in report.rows if row.query != "scores within"]
    assert held_out and fit  # the report shows both
    if privacy == "central":
        # Whitening may ask a public part of the fit's records.
        assert max(row.records for row in fit) == 3000
        assert {row.records for row in held_out} == {1000}
        assert sum(row.share for row in fit) == pytest.approx(1.0)
        assert sum(row.share for row in held_out) == pytest.approx(1.0)
        assert _paid(fit) == pytest.approx(_paid(held_out), rel=1e-5)
        return
    assert sum(row.records for row in fit) <= 3000
    if privacy == "shuffle":  # every user answers once
        assert sum(row.records for row in held_out) == 1000
        return
    # The same number of users for every count: fewer than there are counts are not asked
    assert len({row.records for row in held_out}) == 1
    assert 1000 - len(held_out) < sum(row.records for row in held_out) <= 1000
    if not delta:
        assert {row.noise for row in held_out} == {"randomised response"}
        assert {row.cost.pure for row in held_out} == {2.0}
        assert "randomised response" in str(report)


# What is scored does not depend on who predicts: signed scores are those of one in every model.
SCORED = [
    (*case, "absolute") for case in NOISY if case[1] == "central" or case[0] is SSPRegressor
] + [(AdditiveRegressor, "local", 0.0, "absolute")]
SCORED += [(*case, "signed") for *case, _ in SCORED if case[0] is SSPRegressor]


@pytest.mark.parametrize(("Estimator", "privacy", "delta", "score"), SCORED)
def test_intervals_hold_new_targets(Estimator, privacy, delta, score):
    """Over fits and new rows; a binomial test would be kinder, and this is far enough from it."""
    covered = []
    for seed in range(3):
        X, y = _data(4000, seed, "skewed")
        params = {"epsilon": 8.0 if delta else 4.0, "privacy": privacy, "delta": delta}
        est = _fit(Estimator, X, y, **params, conformity_score=score, random_state=seed)
        new, target = _data(2000, 100 + seed, "skewed")
        low, high = est.prediction_interval(new, 0.9)
        inside = np.clip(est.predict(new), -1.0, 1.0)
        assert (low >= -1.0).all() and (high <= 1.0).all()
        assert ((low <= inside) & (inside <= high)).all()
        covered.append(interval_coverage_score(target, low, high))
    assert np.mean(covered) >= 0.9 - 3 * np.std(covered) / np.sqrt(3) - 0.002


def test_signed_intervals_follow_the_skew():
    X, y = _data(40_000, noise="skewed")
    widths = {}
    for score in ("absolute", "signed"):
        est = _fit(SSPRegressor, X, y, conformity_score=score, epsilon=4.0)
        low, high = est.prediction_interval(X, 0.9)
        centre = est.predict(X)
        widths[score] = (np.mean(centre - low), np.mean(high - centre))
    assert widths["absolute"][0] == pytest.approx(widths["absolute"][1])
    assert widths["signed"][1] > 1.5 * widths["signed"][0]


@pytest.mark.parametrize(("Estimator", "privacy", "delta", "n", "size", "epsilon"), [
    *((E, "central", 1e-6, 60, 0.25, 0.5) for E in CLASSES),
    (SSPRegressor, "central", 1e-6, 5, 0.1, 1.0),
    (SSPRegressor, "local", 0.0, 200, 0.01, 4.0),  # fewer users than counts
    (SSPRegressor, "local", 0.0, 200, 0.1, 0.5),  # too few bits
])  # fmt: skip
def test_too_few_rows_give_the_range(Estimator, privacy, delta, n, size, epsilon):
    X, y = _data(n)
    est = _fit(
        Estimator, X, y, privacy=privacy, delta=delta, epsilon=epsilon, calibration_size=size
    )
    low, high = est.prediction_interval(X, 0.9)
    assert (low == -1.0).all() and (high == 1.0).all()
    assert all(row.query != "scores within" for row in est.privacy_report_.rows)


def test_shuffled_bits_have_less_noise():
    X, y = _data(5_000)
    options = {"channel": "codebook", "epsilon": 1.0}
    alone = _fit(SSPRegressor, X, y, **options, privacy="local", delta=0.0)
    hidden = _fit(SSPRegressor, X, y, **options, privacy="shuffle", delta=1e-6)
    scales = [
        {row.scale / np.sqrt(row.records) for row in est.privacy_report_.rows[-3:]}
        for est in (alone, hidden)
    ]
    assert max(scales[1]) < min(scales[0])
    low, high = hidden.prediction_interval(X, 0.9)
    assert interval_coverage_score(y, low, high) > 0.85


def test_a_device_sends_a_bit_of_any_record():
    asked = ScoreReports(Score(lambda X: X[:, 0], (-1.0, 1.0)), ((0, 0.5),))
    values = [-1e308, -np.inf, np.nan, 0.0, 0.4, 1e308]
    for x, y, rng in product(values, values, (None, 0)):
        assert asked.randomize([x], y, Budget(1.0), rng) in (0.0, 1.0)
    sure = Budget(50.0)  # the other bit comes with probability e^-50
    assert asked.randomize([0.0], 0.3, sure) == 1.0 and asked.randomize([0.0], 0.7, sure) == 0.0
    assert asked.randomize([np.nan], 0.3, sure) == 0.0
    chosen = asked.sum(np.array([[0.0], [0.0], [np.nan]]), np.array([0.3, 0.7, 0.0]))
    assert chosen.tolist() == [1.0]


def test_the_next_level_serves_and_beyond_all_is_the_range():
    X, y = _data(20_000)
    est = _fit(SSPRegressor, X, y, prediction_levels=(0.95, 0.8))
    narrow, wide = est.prediction_interval(X, 0.8), est.prediction_interval(X, 0.95)
    assert np.array_equal(est.prediction_interval(X, 0.7).low, narrow.low)
    assert np.array_equal(est.prediction_interval(X, 0.81).low, wide.low)
    assert interval_mean_width(*narrow) < interval_mean_width(*wide) < 0.5
    with pytest.warns(UserWarning, match="above all prediction_levels"):
        low, high = est.prediction_interval(X, 0.99)
    assert (low == -1.0).all() and (high == 1.0).all()
    again = pickle.loads(pickle.dumps(est.set_params(prediction_levels=(0.5,))))
    assert np.array_equal(again.prediction_interval(X, 0.8).low, narrow.low)


@pytest.mark.parametrize("params", [
    {"calibration_size": 0.0}, {"calibration_size": 1.0}, {"prediction_levels": (0.0,)},
    {"prediction_levels": (0.9, 1.0)}, {"prediction_levels": ()}, {"prediction_levels": "x"},
    {"prediction_levels": (np.nan,)}, {"conformity_score": "squared"},
])  # fmt: skip
def test_wrong_settings_are_refused_uncharged(params):
    X, y = _data(500)
    with uncharged():
        _fit(SSPRegressor, X, y, **params)


def test_sparse_rows_and_links():
    X, y = _data(3000)
    dense, rows = _fit(IHTRegressor, X, y), _fit(IHTRegressor, sparse.csr_matrix(X), y)
    assert rows.prediction_interval(X).low == pytest.approx(dense.prediction_interval(X).low)
    binary = (y > 0).astype(float)
    est = _fit(
        ReweightedRegressor, X, binary, link="logit", solver="sgd", bounds_y=(0.0, 1.0), epsilon=8.0
    )
    low, high = est.prediction_interval(X, 0.9)
    assert np.mean((low <= binary) & (binary <= high)) > 0.85


def test_scores_lie_in_the_range_whatever_the_rows_are():
    score = Score(lambda X: X[:, 0], (-1.0, 3.0))
    X, y = np.array([[1e308], [-1e308], [0.0]]), np.array([-1e308, 1e308, 7.0])
    for side in (-1, 0, 1):
        assert (np.abs(score(X, y, side)) <= 4.0).all()


class Scripted:
    """A session whose answers go left or right by a script."""

    model, n, trust = "central", 100, Trust.of("central", Budget(1.0, 1e-6))

    def __init__(self, script):
        self.script, self.asked = list(script), []

    def sum(self, query, share):
        self.asked.append((query.thresholds, share))
        value = np.where(self.script.pop(0), 1e9, -1e9) * np.ones(len(query.thresholds))
        return Answer(value, self.n, GaussianNoise(1.0))


@pytest.mark.parametrize("script", product([False, True], repeat=3))
def test_the_search_returns_the_right_end(script):
    """All paths of a real search: the grid point is the one that the decisions leave."""
    grid, session = np.arange(1.0, 9.0), Scripted(script)
    (found,) = intervals._search(session, None, [0.0], (0,), grid, 3)
    low, high = 0.0, 8.0
    for (((_, asked),), share), left in zip(session.asked, script, strict=True):
        assert share == pytest.approx(1 / 3)
        assert asked == (low + high) / 2
        low, high = (low, asked) if left else (asked, high)
    assert found == high


def test_searches_share_their_nodes_and_the_shares_add_up():
    grid, session = np.arange(1.0, 17.0), Scripted([False, True, False, True])
    found = intervals._search(session, None, [0.0, 1.0], (-1, 1), grid, 4)
    assert len(set(found)) == 1
    assert [len(asked) for asked, _ in session.asked] == [2, 4, 4, 4]
    assert sum(share for _, share in session.asked) == pytest.approx(1.0)
