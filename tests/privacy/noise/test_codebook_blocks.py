"""The Hadamard rows that spread the blocks of a sum over users."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.linalg import hadamard

from skpriv.privacy import CodebookBlocksNoise, hadamard_entries
from skpriv.privacy._noise._codebook_noise import walsh_hadamard


def test_the_transform_is_sylvesters_matrix():
    index = np.arange(16)
    assert_array_equal(walsh_hadamard(np.eye(16)), hadamard(16))
    assert_array_equal(hadamard_entries(index[:, None], index), hadamard(16))
    assert_array_equal(walsh_hadamard(np.ones((1, 3))), np.ones((1, 3)))


@pytest.mark.parametrize("blocks, rows", [(1, 1), (2, 2), (3, 4), (8, 8), (9, 16)])
def test_there_is_a_column_for_every_block(blocks, rows):
    assert CodebookBlocksNoise(1.0, 4, 1.0, blocks).rows == rows
