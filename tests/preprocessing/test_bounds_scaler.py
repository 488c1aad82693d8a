import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from registry.refusals import charged
from sklearn.pipeline import make_pipeline

from skpriv.linear_model import SSPRegressor
from skpriv.preprocessing import BoundsScaler

MIXED = {"bounds": [(20, 60), (-3, 5), (0, 1), (0, 2), (0, 1)], "exclusive": [[2, 3], [4]]}


@given(
    X=arrays(
        np.float64, st.tuples(st.integers(1, 5), st.just(5)), elements=st.floats(-1e300, 1e300)
    )
)
def test_every_row_is_in_the_unit_ball(X):
    assert np.linalg.norm(BoundsScaler(**MIXED).fit_transform(X), axis=1).max() <= 1.0


@pytest.mark.parametrize("n_features", [1, 2, 3, 7, 100, 10_000])
@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (0.1, 0.3), (-1e300, 1e300), (1e-300, 1e-299)])
def test_corners_stay_in_the_unit_ball_despite_rounding(n_features, bounds):
    X = np.vstack([np.full(n_features, 1e301), np.full(n_features, -1e301)])
    Z = BoundsScaler(bounds).fit_transform(X)
    for norms in (np.linalg.norm(Z, axis=1), np.sqrt(np.einsum("ij,ij->i", Z, Z))):
        assert norms.max() <= 1.0
        assert norms.min() > 1.0 - 1e-9


def test_map_of_each_kind_of_column():
    X = [[40.0, 1.0, 1.0, 0.0, 0.0], [70.0, -9.0, 0.0, 1.0, 1.0]]
    scaler = BoundsScaler(**MIXED).fit(X)
    # Two plain features and two groups.
    np.testing.assert_allclose(scaler.norm_, 2.0)
    expected = np.array([[0.0, 0.0, 1.0, 0.0, 0.0], [1.0, -1.0, 0.0, 0.5, 1.0]]) / 2
    np.testing.assert_allclose(scaler.transform(X), expected, atol=1e-15)


def test_several_nonzeros_in_a_group_share_its_room():
    Z = BoundsScaler((0, 1), exclusive=[[0, 1, 2, 3]]).fit_transform(np.ones((1, 4)))
    np.testing.assert_allclose(Z, np.full((1, 4), 0.5))


def test_fit_learns_nothing_from_the_rows(global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    first = BoundsScaler(**MIXED).fit(rng.normal(size=(20, 5)))
    second = BoundsScaler(**MIXED).fit(1e6 * rng.normal(size=(3, 5)))
    X = rng.normal(scale=30, size=(50, 5))
    np.testing.assert_array_equal(first.transform(X), second.transform(X))
    np.testing.assert_array_equal(first.transform(X)[7:8], first.transform(X[7:8]))


def test_inverse_transform_within_the_ranges(global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    X = np.column_stack(
        [rng.uniform(20, 60, 30), rng.uniform(-3, 5, 30), np.eye(3)[rng.randint(3, size=30)]]
    )
    scaler = BoundsScaler(**MIXED).fit(X)
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(X)), X, atol=1e-12)


def test_names_decide_and_not_the_order_of_the_mapping():
    X = pd.DataFrame({"age": [18.0, 60.0], "score": [0.0, 10.0]})
    bounds = {"score": (0, 10), "unused": (5, 6), "age": (20, 60)}
    scaler = BoundsScaler(bounds, exclusive=[["score"], ["unused"]]).set_output(transform="pandas")
    Z = scaler.fit_transform(X)
    assert list(Z.columns) == list(scaler.get_feature_names_out()) == ["age", "score"]
    np.testing.assert_allclose(Z.to_numpy(), np.array([[-1, 0], [1, 1]]) / np.sqrt(2))


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"bounds": (1.0, 1.0)}, "low < high"),
        ({"bounds": (0.0, np.inf)}, "finite"),
        ({"bounds": (-1.7e308, 1.7e308)}, "finite"),
        ({"bounds": [(0, 1), (np.nan, 1)]}, "column 1"),
        ({"bounds": [(0, 1)] * 3}, "X has 2 features"),
        ({"bounds": ["a", "b"]}, "pairs"),
        ({"bounds": {"a": (0, 1)}}, "pass a DataFrame"),
        ({"exclusive": [[0, 1]]}, "it must be 0"),
        ({"bounds": (0, 1), "exclusive": [[0, 1], [1]]}, "must not overlap"),
        ({"bounds": (0, 1), "exclusive": [[0, 2]]}, "not a column"),
        ({"bounds": (0, 1), "exclusive": [["a"]]}, "not a column"),
        ({"bounds": (0, 1), "exclusive": [0, 1]}, "list of lists"),
    ],
)
def test_errors_name_parameter_and_remedy(parameters, message):
    with pytest.raises(ValueError, match=message):
        BoundsScaler(**parameters).fit(np.zeros((2, 2)))


@pytest.mark.parametrize(
    "other, message",
    [({}, r"no range for \['b'\]"), ({"b": (2, 1)}, r"bounds of 'b' are \(2, 1\): low and high")],
)
def test_a_wrong_range_is_named_by_its_feature(other, message):
    with pytest.raises(ValueError, match=message):
        BoundsScaler({"a": (0, 1), **other}).fit(pd.DataFrame({"a": [0.0], "b": [1.0]}))


@pytest.mark.parametrize("bad", [np.nan, np.inf, "HIV positive", None, 1j, 10**400])
def test_what_is_no_number_is_left_to_the_charge_of_a_regressor(bad):
    X = np.linspace(0.0, 1.0, 100)[:, None].astype(object)
    clean = BoundsScaler((0, 1)).fit_transform(X)
    X[7, 0] = bad
    scaled = BoundsScaler((0, 1)).fit_transform(X)
    assert np.isnan(scaled[7]).all()
    assert np.array_equal(np.delete(scaled, 7, 0), np.delete(clean, 7, 0))
    model = make_pipeline(BoundsScaler((0, 1)), SSPRegressor(data_norm=1.0, bounds_y=(0, 1)))
    with charged():
        model.fit(X, np.zeros(100))
