"""Updates of running sums that do not come to their end: no round counts twice."""

import os

import numpy as np
import pytest
from registry.replays import record_noise

from skpriv.bandits import LinSquareCB, LinUCB, OnlineLinUCB, load
from skpriv.bandits._ucb._running import GrowingTimes, RunningSumsPolicy
from skpriv.bandits._ucb._sums import PhasedSums
from skpriv.exceptions import PrivacyError
from skpriv.privacy import NoiseSource, Numbering

COMMON = {"epsilon": 1.0, "delta": 1e-6, "horizon": 20, "update_every": 20, "random_state": 0}
POLICIES = {"LinUCB": LinUCB, "LinSquareCB": LinSquareCB, "sums": OnlineLinUCB}
CONTEXTS, ACTIONS = np.ones((20, 2, 3)) / 2.0, np.zeros(20, dtype=int)


def started(name, most, **given):
    policy = POLICIES[name](**COMMON, max_visits=most, **given)
    policy.act(CONTEXTS)
    users = {} if most is None else {"users": range(20)}
    return policy, lambda policy: policy.update(CONTEXTS, ACTIONS, np.ones(20), **users)


PLACES = [
    (PhasedSums, "_keep", True), (PhasedSums, "_push", False), (PhasedSums, "_push", True),
    (NoiseSource, "add", False), (NoiseSource, "add", True), (Numbering, "settle", True),
    (RunningSumsPolicy, "_learn", True),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "method", "after"), PLACES)
@pytest.mark.parametrize("most", [None, 1])
@pytest.mark.parametrize("name", POLICIES)
def test_rounds_of_an_interrupted_update_are_not_added_again(
    name, most, owner, method, after, tmp_path, monkeypatch, interrupt
):
    monkeypatch.setenv("SKPRIV_STATE", str(tmp_path))
    policy, update = started(name, most)
    policy.save(tmp_path / "policy")
    interrupt(owner, method, after)
    with pytest.raises(KeyboardInterrupt) as caught:
        update(policy)
    with pytest.raises(PrivacyError, match="twice"):
        update(policy)
    policy.act(CONTEXTS)  # what was released is played on
    policy.save(tmp_path / "interrupted")
    with pytest.raises(PrivacyError, match="twice"):
        update(load(tmp_path / "interrupted"))
    exact, _ = record_noise(monkeypatch)
    again = update(load(tmp_path / "policy"))
    other, update = started(name, most)
    update(other)
    assert again.n_rounds_ == other.n_rounds_ == 20 and len(exact) == 2 and not vars(caught.value)
    np.testing.assert_array_equal(exact[0][0], exact[1][0])  # each round is in the read once


@pytest.mark.parametrize("most", [None, 1])
@pytest.mark.parametrize("name", POLICIES)
def test_an_update_that_cannot_begin_changes_nothing(name, most, tmp_path, monkeypatch, interrupt):
    """Its file is gone, or it is interrupted while it opens the next stream."""
    monkeypatch.setenv("SKPRIV_STATE", str(tmp_path))
    policy, update = started(name, most)
    policy.save(tmp_path / "policy")
    (file,) = tmp_path.glob("*.answers")
    os.rename(file, tmp_path / "away")
    with pytest.raises(PrivacyError, match="gone"):
        update(policy)
    os.rename(tmp_path / "away", file)
    interrupt(GrowingTimes, "end", True)
    with pytest.raises(KeyboardInterrupt):
        update(policy)
    exact, _ = record_noise(monkeypatch)
    other, _ = started(name, most)
    for one in [policy, other] * 3:
        update(one)
    np.testing.assert_array_equal(*([value for value, _ in exact[k::2]] for k in (0, 1)))
    assert policy.n_rounds_ == 60
