"""Each number at which something is refused, or certified, is asked a little beside itself."""

import pytest
from registry.thresholds import NOT_ASKED, THRESHOLDS, answered, found

from skpriv.exceptions import PrivacyError


@pytest.mark.parametrize("name", THRESHOLDS)
def test_a_threshold_is_where_it_should_be(name):
    """A ten-thousandth beside its number, so that no verdict is off by a factor."""
    threshold = THRESHOLDS[name]
    accepted, refused = threshold.sides()
    assert threshold.accepted(accepted) and not threshold.accepted(refused)


def test_every_comparison_of_these_rooms_is_asked_or_says_why_not():
    """A new comparison is one line in `registry/thresholds.py`."""
    asked = {name.partition(",")[0] for name in THRESHOLDS}
    assert not found() - asked - NOT_ASKED.keys()
    assert not NOT_ASKED.keys() - found()
    assert not asked & NOT_ASKED.keys()


def test_without_a_ledger_nobody_has_agreed_to_a_delta():
    """A sum has Gaussian noise, whose epsilon is infinite at delta 0."""
    for largest in (2.0, 1e6):
        with pytest.raises(PrivacyError, match="agreed to"):
            answered("aggregate", largest=largest)
    assert answered("aggregate")
