"""What is known of the mean of a fit, and intervals that contain their predictions."""

from types import SimpleNamespace

import numpy as np
import pytest

from skpriv._estimation._intervals import inside_bounds
from skpriv._estimation._loop import _evidence
from skpriv._estimation._links import IDENTITY, Log
from skpriv._estimation._targets import Location
from skpriv._estimation._loop._rules import skewness_bias
from skpriv._estimation._loop._score import CUBE
from skpriv._estimation._public_maps import RecordMap
from skpriv.privacy import Answer


@pytest.fixture
def known(monkeypatch):
    """What is known of a mean, by residuals of n records and a last step with these numbers."""
    for name in ("ResidualMeanQuery", "SpreadOfCountsQuery"):
        monkeypatch.setattr(_evidence, name, lambda *arguments, **more: None)

    def found(n, reports=False, link=IDENTITY, **equation):
        session = SimpleNamespace(
            sum=lambda query, share: Answer(np.zeros(4), n, SimpleNamespace(scale=1e-9)),
            trust=SimpleNamespace(can=SimpleNamespace(reports=reports)),
        )  # fmt: skip
        maps = RecordMap(SimpleNamespace(constant=np.array([1.0, 0.0])), None)
        pool = SimpleNamespace(b=np.zeros(2), slope=np.eye(2), variance=0.04, spread=0.0)
        step = dict(n=2_000, limit=1.0, nearly_cut=0.0, cut_scale=0.0, fall=0.0) | equation
        rules = SimpleNamespace(mean=0.1, spread=0.0, effective_records=1_000.0)
        return _evidence.known_mean(
            session, SimpleNamespace(W=np.eye(2)), maps,
            Location(0.0 if link.linear else 0.1, 0.3, 1.0), 0.2, pool, SimpleNamespace(**step),
            rules, link,
        )  # fmt: skip

    return found


@pytest.mark.parametrize("n", [50, 5_000])
def test_the_mean_of_other_users_has_their_sampling_error(n, known):
    """Where each user answers once, residuals of other users are a sample of their own."""
    # precisions add up: that of the answer is at most n over the square of the deviation, and more
    # than half of it, since the bias of the clip counts too
    alone = 0.3**2 + 0.04 / 2_000
    least = 1.0 / (1.0 / alone + n / 0.2**2)
    assert known(n, True).variance >= least * (1.0 - 1e-9)
    assert known(n).variance < known(n, True).variance


@pytest.mark.parametrize("nearly_cut, cut_scale", [(0.02, 0.01), (-1.0, 0.02)])
@pytest.mark.parametrize("limit, moved", [
    (0.2, 0.2 * skewness_bias(1.0)),  # as of an exponential tail, of a deviation of .2
    (1.0, 0.2 * CUBE * 5.0 * 0.04),  # as of an inverse cube beyond that, .04 of which is cut
    (1.9, 0.1 * 0.04),  # and by no more than up to where targets can be
])  # fmt: skip
def test_a_clip_moves_a_mean_by_its_longest_tail(limit, moved, nearly_cut, cut_scale, known):
    step = {"limit": limit, "nearly_cut": nearly_cut, "cut_scale": cut_scale, "fall": 0.5}
    assert known(50, **step).skew == pytest.approx(1.5 * moved)


@pytest.mark.parametrize("taken", [0.2, 0.35])
def test_a_clip_moves_a_mean_of_counts_by_no_more_than_counts_say(taken, known):
    """Clips that take a third of all counts move the logarithm of their mean by less than .5.

    That is one deviation of the constant, however much more a bound on tails would allow. Half of
    it would count less than such clips do.
    """
    skew = known(50, link=Log(), limit=0.05, nearly_cut=0.5, cut_scale=0.1).skew
    assert -np.log(1.0 - taken) < skew == 0.5


def test_an_interval_contains_a_prediction_beside_it():
    """As that of a monotone curve is, where the line goes the other way."""
    target = SimpleNamespace(bounds_y=(-1.0, 1.0), unscale=lambda scaled: np.clip(scaled, -1, 1))
    predicted = np.array([0.9, -0.9, 0.0])
    low, high = inside_bounds(target, np.zeros(3), np.full(3, 0.1), predicted)
    assert (low <= predicted).all() and (predicted <= high).all()
    assert (low <= -0.1).all() and (high >= 0.1).all()
