import numpy as np

from skpriv.datasets import load_wages


def test_meaning_of_the_columns():
    wages = load_wages()
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


def test_target_is_not_clipped():
    wages = load_wages()
    assert wages.target.max() > wages.bounds_y[1]
    assert np.mean(wages.target > wages.bounds_y[1]) < 0.01
