"""What a study can tell from noise, before there are data."""

from math import inf

import pytest

from skpriv.inspection import resolution


@pytest.mark.parametrize("privacy", ["central", "aggregate", "local"])
@pytest.mark.parametrize("columns", [1, 7, 30])
def test_what_it_proposes_would_do_and_less_would_not(privacy, columns):
    small = resolution(200, columns, 0.5, privacy=privacy)
    assert not small.estimable
    assert resolution(small.records, columns, 0.5, privacy=privacy).estimable
    assert not resolution(int(0.99 * small.records), columns, 0.5, privacy=privacy).estimable
    if small.epsilon < inf:
        assert resolution(200, columns, 1.001 * small.epsilon, privacy=privacy).estimable
        assert not resolution(200, columns, 0.99 * small.epsilon, privacy=privacy).estimable
    assert f"{small.records:,} records" in str(small)
    assert "for most" in str(small) and "half as much again for all" in str(small)
    enough = str(resolution(small.records, columns, 0.5, privacy=privacy))
    assert f"Most coefficients are estimable, from {small.records:,} records on" in enough


def test_without_privacy_everything_is_estimable():
    assert resolution(10, 5, inf).estimable and resolution(10, 5, 1.0, privacy="none").estimable


def test_sizes_must_be_sizes():
    with pytest.raises(ValueError, match="at least 1"):
        resolution(0, 3, 1.0)
