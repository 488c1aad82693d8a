"""Linear algebra: coordinates of symmetric matrices, norms of any size, compensated sums."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from skpriv._linalg import CompensatedSum, psd_part, psd_power, row_norms, unvech, vech, vech_size

quick = settings(max_examples=100, deadline=None, derandomize=True, database=None)
finite = st.floats(allow_nan=False, allow_infinity=False)


def _symmetric(d, rng):
    matrix = rng.normal(size=(d, d))
    return matrix + matrix.T


@pytest.mark.parametrize("d", [1, 2, 5, 30])
def test_vech_is_an_isometry_with_an_inverse(d, global_random_seed):
    matrix = _symmetric(d, np.random.RandomState(global_random_seed))
    coordinates = vech(matrix)
    assert coordinates.shape == (vech_size(d),)
    assert np.linalg.norm(coordinates) == pytest.approx(np.linalg.norm(matrix), rel=1e-14)
    np.testing.assert_allclose(unvech(coordinates, d), matrix, rtol=1e-15)


@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_psd_part_is_the_nearest(floor, global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    matrix = _symmetric(4, rng)
    nearest = psd_part(matrix, floor)
    assert np.linalg.eigvalsh(nearest).min() >= floor - 1e-12
    distance = np.linalg.norm(matrix - nearest)
    for _ in range(50):
        root = rng.normal(size=(4, 4)) * rng.uniform(0, 2)
        assert np.linalg.norm(matrix - root @ root.T - floor * np.eye(4)) >= distance - 1e-12
    np.testing.assert_allclose(psd_part(nearest, floor), nearest, atol=1e-12)


@pytest.mark.parametrize("power", [0.5, -0.5, -1.0, 2.0])
def test_psd_power(power, global_random_seed):
    root = np.random.RandomState(global_random_seed).normal(size=(4, 6))
    matrix = root @ root.T
    found = psd_power(psd_power(matrix, power), 1.0 / power)
    np.testing.assert_allclose(found, matrix, rtol=1e-9)


@given(st.lists(finite, min_size=1, max_size=6))
@quick
def test_row_norms_are_right_for_any_size(row):
    (norm,) = row_norms(np.array([row]))
    largest = max(map(abs, row))
    if largest == 0.0:
        assert norm == 0.0
        return
    ratio = sum((Fraction(value) / Fraction(largest)) ** 2 for value in row)
    expected = largest * sqrt(ratio)
    # numbers below 1e-300 have fewer digits themselves
    assert norm == pytest.approx(expected, rel=1e-14, abs=5e-324) or norm == expected == np.inf


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_have_an_infinite_norm(bad):
    rows = np.array([[1.0, bad], [3.0, 4.0], [bad, 1e300], [0.0, 0.0]])
    assert row_norms(rows).tolist() == [np.inf, 5.0, np.inf, 0.0]


@given(st.lists(st.floats(-1e100, 1e100), max_size=60))
@quick
def test_compensated_sums_lose_little(values):
    total = CompensatedSum(())
    for value in values:
        total.add(np.float64(value))
    exact = sum(map(Fraction, values), Fraction(0))
    size = sum(map(abs, map(Fraction, values)), Fraction(0))
    error = abs(Fraction(float(total.value)) - exact)
    assert error <= abs(exact) * Fraction(2.0**-52) + size * Fraction(2.0**-96)
