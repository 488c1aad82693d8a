"""Linear algebra: coordinates of symmetric matrices, norms of any size, compensated sums."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from skpriv._linalg import CompensatedSum, psd_part, row_norms, unvech, vech, vech_size


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
def test_powers_of_psd_part(power, global_random_seed):
    root = np.random.RandomState(global_random_seed).normal(size=(4, 6))
    matrix = root @ root.T
    found = psd_part(psd_part(matrix, power=power), power=1.0 / power)
    np.testing.assert_allclose(found, matrix, rtol=1e-9)


def test_row_norms_are_right_for_any_size():
    """Of numbers with any bits, of nearly equal ones of any size, and of zeros."""
    rng = np.random.RandomState(0)
    bits = rng.randint(0, 2**64, size=(400, 4), dtype=np.uint64).view(np.float64)
    alike = rng.uniform(-1.0, 1.0, (400, 4)) * 10.0 ** rng.uniform(-307.0, 308.0, (400, 1))
    rows = np.concatenate([np.nan_to_num(bits), alike, [[0.0] * 4, [5e-324, 0.0, 0.0, 5e-324]]])
    rows[::3, 2:] = 0.0
    norms = *row_norms(rows), *row_norms(np.asfortranarray(rows))
    for row, norm in zip(rows.tolist() * 2, norms, strict=True):
        largest = max(map(abs, row)) or 1.0
        expected = largest * sqrt(sum((Fraction(value) / Fraction(largest)) ** 2 for value in row))
        # Numbers below 1e-300 have fewer digits themselves.
        assert norm == pytest.approx(expected, rel=1e-14, abs=5e-324) or norm == expected == np.inf


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_have_an_infinite_norm(bad):
    rows = np.array([[1.0, bad], [3.0, 4.0], [bad, 1e300], [0.0, 0.0]])
    assert row_norms(rows).tolist() == [np.inf, 5.0, np.inf, 0.0]


def test_compensated_sums_lose_little():
    """Of terms of all sizes, which cancel each other in part."""
    rng = np.random.RandomState(0)
    terms = rng.uniform(-1.0, 1.0, (60, 200)) * 10.0 ** rng.uniform(-100.0, 100.0, (60, 200))
    terms[30:, :150] = rng.permutation(-terms[:30, :150])
    terms[:, 100:] *= 1e-80  # other sums than those of the largest term
    total = CompensatedSum((200,))
    for term in terms:
        total.add(term)
    for values, found in zip(terms.T.tolist(), total.value.tolist(), strict=True):
        exact, size = sum(map(Fraction, values)), sum(map(abs, map(Fraction, values)))
        error = abs(Fraction(found) - exact)
        assert error <= abs(exact) * Fraction(2.0**-52) + size * Fraction(2.0**-96)
