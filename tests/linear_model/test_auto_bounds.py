"""Bounds that are "auto": public outer ranges, a share of the budget, and less noise."""

import numpy as np
import pytest

from skpriv.linear_model import ReweightedRegressor, SSPRegressor

OUTER = {"outer_norm": 100.0, "outer_bounds_y": (-100.0, 100.0)}
AUTO = {"data_norm": "auto", "bounds_y": "auto", **OUTER}
every_class = pytest.mark.parametrize("Estimator", [SSPRegressor, ReweightedRegressor])


def _data(n, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ [1.0, -1.0, 0.5] + 20.0 + rng.normal(size=n)


@every_class
@pytest.mark.parametrize("privacy", ["central", "local", "shuffle", "none"])
def test_shares_still_add_up_to_one(Estimator, privacy):
    X, y = _data(60_000)
    est = Estimator(epsilon=16.0, privacy=privacy, random_state=0, **AUTO).fit(X, y)
    rows = est.privacy_report_.rows
    assert rows[0].query == "quantiles of bounds"
    assert sum(row.share for row in rows) == pytest.approx(1.0)
    assert est.data_norm_ < 10.0 and est.bounds_y_[0] > 0.0 and est.bounds_y_[1] < 50.0


@every_class
def test_narrow_bounds_help(Estimator, global_random_seed):
    X, y = _data(20_000, global_random_seed)
    f = X @ [1.0, -1.0, 0.5] + 20.0
    wide = {"data_norm": 100.0, "bounds_y": (-100.0, 100.0)}
    errors = [
        np.abs(Estimator(random_state=global_random_seed, **s).fit(X, y).predict(X) - f).mean()
        for s in (AUTO, wide)
    ]
    assert errors[0] < 0.3 * errors[1]


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
        Estimator(**{name: "auto"}).fit(*_data(50))


@every_class
def test_one_bound_alone(Estimator):
    X, y = _data(20_000)
    est = Estimator(data_norm="auto", outer_norm=50.0, bounds_y=(0, 40), random_state=0).fit(X, y)
    assert est.bounds_y_ == (0.0, 40.0) and est.data_norm_ < 10.0
