"""Replays of pure reports: an index of a codebook costs the log ratio of its weights, no more."""

from functools import partial

import numpy as np
import pytest
from registry.estimators import layered, ssp

from skpriv import _wire as _codebook
from skpriv.audit import replay
from skpriv.privacy import Codebook, ResponseNoise, index_weights

lifted = partial(ssp, privacy="local", channel="codebook")
blocks = partial(layered, privacy="local", channel="codebook", delta=0.0)


@pytest.fixture(params=[lifted, blocks], ids=["lifted", "blocks"])
def make_pure(request):
    return request.param


@pytest.mark.parametrize("random_state", [0, None])
def test_a_report_costs_the_log_ratio_of_its_weights(make_pure, random_state, records):
    found = replay(lambda: make_pure(random_state=random_state), *records(n=30))
    near, far = index_weights(1.0)
    assert found.holds, str(found)
    assert found.epsilon == pytest.approx(np.log(near / far), rel=1e-9)
    assert found.epsilon <= 1.0


def test_a_record_that_says_the_same_costs_nothing(make_pure, records):
    (X, y), _ = records(n=30)
    longer = X.copy()
    y[0], X[0] = 1.0, [0.8, 0.6]  # on the edge: what is longer is clipped to it
    longer[0] = [1.6, 1.2]
    told = y.copy()
    told[0] = 5.0
    found = replay(lambda: make_pure(random_state=0, fit_intercept=False), (X, y), (longer, told))
    assert found.holds and found.epsilon == 0.0


@pytest.mark.parametrize("random_state", [0, None])
def test_weights_for_twice_the_epsilon_are_flagged(random_state, records, monkeypatch):
    make = partial(lifted, random_state=random_state)
    assert replay(make, *records(n=30)).holds
    monkeypatch.setattr(_codebook, "index_weights", lambda epsilon: index_weights(2.0 * epsilon))
    found = replay(make, *records(n=30))
    assert not found.holds and found.epsilon > 1.1, str(found)


def test_shuffled_weights_for_twice_the_epsilon_are_flagged_or_refused(records, monkeypatch):
    monkeypatch.setattr(_codebook, "index_weights", lambda epsilon: index_weights(2.0 * epsilon))
    found = replay(lambda: lifted(privacy="shuffle", random_state=0), *records(n=30))
    assert found.epsilon > 1.1 or found.answers == []  # amplification refuses such a law


def test_a_simulated_law_for_twice_the_epsilon_is_flagged(records, monkeypatch):
    honest = Codebook.probability.fget
    double = property(
        lambda code: honest(Codebook(code.size, 2.0 * code.epsilon, code.count, code.nearest))
    )
    monkeypatch.setattr(Codebook, "probability", double)
    found = replay(lambda: lifted(random_state=0), *records(n=30))
    assert not found.holds and found.epsilon == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("epsilon", [1e-4, 1.0])
def test_a_shuffled_report_costs_the_claim(records, epsilon):
    make = partial(lifted, privacy="shuffle", epsilon=epsilon, delta=0.01, random_state=0)
    found = replay(make, *records(n=400))
    assert found.holds and found.epsilon == pytest.approx(epsilon, rel=1e-9)


def held_out_bits(seed):
    """A fit of which most users are held out, and send a bit each."""
    options = {"calibration_size": 0.9, "prediction_levels": (0.5,)}
    return partial(ssp, privacy="local", delta=0.0, random_state=seed, **options)


def test_a_bit_costs_the_log_ratio_of_its_weights(records):
    near, far = index_weights(1.0)
    asked = held_out_bits(0)().fit(*records(n=400)[0]).privacy_report_.rows
    assert sum(row.records for row in asked if row.query == "scores within") > 350
    found = [replay(held_out_bits(seed), *records(n=400)) for seed in (None, *range(8))]
    assert all(one.holds for one in found)
    for one in found:  # the record was not asked, or says the same about its threshold
        assert one.epsilon in (0.0, pytest.approx(np.log(near / far), rel=1e-9))
    assert max(one.epsilon for one in found) > 0.9


def test_bits_for_twice_the_epsilon_are_flagged(records, monkeypatch):
    honest = ResponseNoise.truth.fget
    twice = property(lambda law: honest(ResponseNoise(2.0 * law.epsilon)))
    monkeypatch.setattr(ResponseNoise, "truth", twice)
    found = [replay(held_out_bits(seed), *records(n=400)) for seed in (22, 25)]
    # a record of the fit sends an index, whose price is not touched
    assert any(not one.holds and one.epsilon == pytest.approx(2.0, rel=1e-6) for one in found)
