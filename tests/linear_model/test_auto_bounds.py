"""Bounds that are "auto": public outer ranges, a share of the budget, and less noise."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression

from skpriv import BudgetAccountant
from skpriv.bandits import FLIPHAT, SquareCB
from skpriv.bandits._epochs._square_cb import ERROR_WEIGHT
from skpriv.exceptions import PrivacyError
from skpriv.linear_model import (
    IHTRegressor,
    ImproperSGDRegressor,
    LayeredRegressor,
    ReweightedRegressor,
    SSPRegressor,
)
from skpriv.model_selection import privacy_utility_curve

OUTER = {"outer_norm": 100.0, "outer_bounds_y": (-100.0, 100.0)}
AUTO = {"data_norm": "auto", "bounds_y": "auto", **OUTER}
CLASSES = [SSPRegressor, ReweightedRegressor, LayeredRegressor, ImproperSGDRegressor]
every_class = pytest.mark.parametrize("Estimator", CLASSES)
SPARSE_AUTO = {
    "data_max": "auto", "bounds_y": "auto", "outer_max": 100.0, "outer_bounds_y": (-100.0, 100.0),
    "n_nonzero_coefs": 3,
}  # fmt: skip
ALL = [(Estimator, AUTO) for Estimator in CLASSES] + [(IHTRegressor, SPARSE_AUTO)]
every_auto = pytest.mark.parametrize(("Estimator", "settings"), ALL)


def _data(n, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ [1.0, -1.0, 0.5] + 20.0 + rng.normal(size=n)


@every_auto
@pytest.mark.parametrize("privacy", ["central", "local", "shuffle", "none"])
def test_shares_still_add_up_to_one(Estimator, settings, privacy):
    if Estimator is IHTRegressor and privacy in ("local", "shuffle"):
        pytest.skip("selections need a curator")
    X, y = _data(60_000)
    est = Estimator(epsilon=16.0, privacy=privacy, random_state=0, **settings).fit(X, y)
    rows = est.privacy_report_.rows
    assert rows[0].query == "quantiles of bounds"
    if settings is AUTO or privacy != "none":  # an exact IHT needs no sizes of residuals
        spent = {row.records: 0.0 for row in rows[1:]}  # disjoint parts may each spend all
        for row in rows[1:]:
            spent[row.records] += row.share
        parallel = Estimator is ImproperSGDRegressor and privacy in ("central", "none")
        for total in spent.values() if parallel else [sum(spent.values())]:
            assert rows[0].share + total == pytest.approx(1.0)
    assert _released(est) < 10.0 and est.bounds_y_[0] > 0.0 and est.bounds_y_[1] < 50.0
    assert privacy == "none" or est.privacy_report_.total.fits(est.privacy_report_.budget)


def _released(est):
    return est.data_max_ if isinstance(est, IHTRegressor) else est.data_norm_


@every_auto
@pytest.mark.parametrize("privacy", ["central", "local", "shuffle"])
def test_the_accountant_sees_the_budget_once(Estimator, settings, privacy):
    if Estimator is IHTRegressor and privacy != "central":
        pytest.skip("selections need a curator")
    X, y = _data(5000)
    currency = "zcdp" if Estimator is IHTRegressor else "gdp"
    aside = (2.0, 1e-6) if privacy == "shuffle" else None  # (epsilon, delta) charges need a part
    with BudgetAccountant(2.0, 1e-6, currency=currency, set_aside=aside) as accountant:
        Estimator(epsilon=2.0, privacy=privacy, random_state=0, **settings).fit(X, y)
    assert len(accountant.charges) == 1
    assert accountant.spent.epsilon == pytest.approx(2.0, rel=1e-9)


@every_auto
def test_released_bounds_are_on_the_public_grid(Estimator, settings, global_random_seed):
    X, y = _data(20_000, global_random_seed)
    est = Estimator(random_state=global_random_seed, epsilon=4.0, **settings)
    est.set_params(privacy="central").fit(X, y)
    halvings = 2.0 * np.log2(100.0 / _released(est))
    assert halvings == pytest.approx(round(halvings), abs=1e-9) and 0 < halvings < 24
    bins = (np.array(est.bounds_y_) + 100.0) / 200.0 * 64
    assert bins == pytest.approx(np.round(bins), abs=1e-9)


@pytest.mark.parametrize("privacy", ["central", "none"])
def test_sparse_rows_give_the_same_bounds_and_fit(privacy):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(20_000, 40)) * (rng.uniform(size=(20_000, 40)) < 0.2)
    y = 20.0 + X[:, :3] @ [1.0, -1.0, 0.5] + rng.normal(size=20_000)
    est = IHTRegressor(privacy=privacy, random_state=0, **SPARSE_AUTO).fit(X, y)
    found = est.data_max_, est.bounds_y_, est.coef_
    est.fit(sparse.csr_matrix(X), y)
    assert (est.data_max_, est.bounds_y_) == found[:2] and est.data_max_ < 5.0
    np.testing.assert_allclose(est.coef_, found[2], atol=1e-9)


@pytest.mark.parametrize("privacy", ["local", "shuffle"])
@every_class
def test_too_few_users_for_a_quantile(Estimator, privacy):
    X, y = _data(3 if Estimator is SSPRegressor else 60)  # of 3 users none could be asked
    est = Estimator(privacy=privacy, random_state=0, **AUTO)
    if isinstance(est, ImproperSGDRegressor):
        est.set_params(n_iter=2)
    est.fit(X, y)
    assert est.data_norm_ == 100.0 and est.bounds_y_ == (-100.0, 100.0)


def test_one_user_cannot_be_divided():
    X, y = _data(1)
    for privacy in ("local", "shuffle"):
        SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), privacy=privacy, random_state=0).fit(X, y)
        with pytest.raises(PrivacyError, match="n_samples=1 is too few"):
            SSPRegressor(privacy=privacy, random_state=0, **AUTO).fit(X, y)


def test_pure_privacy_has_no_quantiles_and_nothing_is_charged():
    X, y = _data(1000)
    refused = pytest.raises(ValueError, match="'auto' need delta in")
    with BudgetAccountant(2.0, 1e-6) as accountant, refused:
        LayeredRegressor(delta=0.0, random_state=0, **AUTO).fit(X, y)
    assert accountant.charges == []


@every_class
def test_narrow_bounds_help(Estimator, global_random_seed):
    X, y = _data(20_000, global_random_seed)
    f = X @ [1.0, -1.0, 0.5] + 20.0
    wide = {"data_norm": 100.0, "bounds_y": (-100.0, 100.0)}
    est = Estimator(random_state=global_random_seed, privacy="central")
    errors = [np.abs(est.set_params(**s).fit(X, y).predict(X) - f).mean() for s in (AUTO, wide)]
    assert errors[0] < 0.5 * errors[1]


@every_class
def test_too_few_records_keep_the_outer_bounds_and_pay_nothing(Estimator):
    X, y = _data(200)
    est = Estimator(random_state=0, **AUTO).fit(X, y)
    assert est.data_norm_ == 100.0 and est.bounds_y_ == (-100.0, 100.0)
    plain = Estimator(random_state=0, data_norm=100.0, bounds_y=(-100.0, 100.0)).fit(X, y)
    assert (est.coef_ == plain.coef_).all()


@every_class
@pytest.mark.parametrize(
    "name, outer", [("data_norm", "outer_norm"), ("bounds_y", "outer_bounds_y")]
)
def test_an_outer_bound_is_needed(Estimator, name, outer):
    with pytest.raises(ValueError, match=f"{name}='auto' needs {outer}"):
        Estimator(**{"data_norm": 1.0, name: "auto"}).fit(*_data(50))


@pytest.mark.parametrize("name, outer", [("data_max", "outer_max"), ("bounds_y", "outer_bounds_y")])
def test_an_outer_bound_is_needed_for_entries(name, outer):
    with pytest.raises(ValueError, match=f"{name}='auto' needs {outer}"):
        IHTRegressor(**{"data_max": 1.0, name: "auto"}).fit(*_data(50))
    with pytest.raises(ValueError, match=f"{outer}=.*must"):
        wrong = {"data_max": 1e301, "bounds_y": (1.0, 1.0)}[name]
        IHTRegressor(**{"data_max": 1.0, name: "auto", outer: wrong}).fit(*_data(50))


@every_class
def test_one_bound_alone(Estimator):
    X, y = _data(20_000)
    est = Estimator(data_norm="auto", outer_norm=50.0, bounds_y=(0, 40), random_state=0)
    est.set_params(privacy="central").fit(X, y)
    assert est.bounds_y_ == (0.0, 40.0) and est.data_norm_ < 10.0


def test_the_bounds_that_were_used_are_always_known():
    X, y = _data(500)
    for Estimator in (SSPRegressor, ReweightedRegressor, LayeredRegressor, ImproperSGDRegressor):
        est = Estimator(data_norm=3, bounds_y=[10, 30], random_state=0).fit(X, y)
        assert (est.data_norm_, est.bounds_y_) == (3.0, (10.0, 30.0))
    est = IHTRegressor(data_max=3, bounds_y=[10, 30], random_state=0).fit(X, y)
    assert (est.data_max_, est.bounds_y_) == (3.0, (10.0, 30.0))


def test_consumers_take_the_released_bounds():
    """SquareCB and the coverage of the curve crashed on "auto", FLIPHAT after its first epoch."""
    rng = np.random.RandomState(0)
    oracle = SSPRegressor(epsilon=8.0, random_state=0, **AUTO)
    policy = SquareCB(oracle=oracle, schedule=4000, random_state=0)
    contexts = rng.uniform(-1, 1, size=(4000, 2, 3))
    policy.update(contexts, policy.act(contexts), rng.uniform(10, 30, size=4000))
    error = policy.oracle_.prediction_error()
    assert policy._weight == pytest.approx(ERROR_WEIGHT * np.sqrt(2) / error)
    policy.set_params(gap_weight=lambda n: np.sqrt(2 * n)).reset()
    policy.update(contexts, policy.act(contexts), rng.uniform(10, 30, size=4000))
    low, high = policy.oracle_.bounds_y_
    assert policy._weight == pytest.approx(np.sqrt(2 * 4000) / ((high - low) / 2))
    X, y = _data(4000)
    curve = privacy_utility_curve(
        oracle, X, y, epsilons=[8.0], cv=2, n_repeats=1, reference=LinearRegression()
    )
    assert np.isfinite(curve["interval_coverages"]).all()
    with pytest.raises(ValueError, match="data_max"):
        FLIPHAT(data_max="auto").act(contexts)
