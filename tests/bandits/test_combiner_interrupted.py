"""Updates of a combiner that are interrupted, or fail in part: no round counts or costs twice."""

from unittest.mock import Mock

import numpy as np
import pytest

from skpriv import BudgetAccountant
from skpriv.bandits import BanditCombiner, LinUCB, RandomPolicy, SquareCB, load
from skpriv.bandits._ucb._sums import PhasedSums
from skpriv.exceptions import BudgetExceeded, PrivacyError
from skpriv.linear_model import SSPRegressor
from skpriv.privacy import NoiseSource, Numbering

CONTEXTS, ACTIONS = np.ones((20, 2, 3)) / 2.0, np.zeros(20, dtype=int)
SSP = SSPRegressor(epsilon=1.0, delta=1e-6, data_norm=1.0, bounds_y=(-1, 1), random_state=0)
POLICIES = {
    "sums": lambda: LinUCB(epsilon=1.0, delta=1e-6, update_every=10, horizon=400, random_state=0),
    "exact": lambda: LinUCB(privacy="none", random_state=0),
    "epochs": lambda: SquareCB(SSP, schedule=10, random_state=0),
}


def combiner(name, **given):
    policies = [POLICIES[name](), RandomPolicy(random_state=0)]
    options = {"epsilon": 1.0, "delta": 1e-6, "horizon": 400, "update_every": 10, "random_state": 0}
    policy = BanditCombiner(policies, **{**options, **given})
    policy.act(CONTEXTS)
    return policy


def update(policy, part=slice(None)):
    return policy.update(CONTEXTS[part], ACTIONS[part], np.ones(len(ACTIONS[part])))


PLACES = [
    (BanditCombiner, "_credit", True), (BanditCombiner, "_credit", False),
    (BanditCombiner, "_close_block", True), (BanditCombiner, "_close_block", False),
    (PhasedSums, "_push", True), (NoiseSource, "add", False), (NoiseSource, "add", True),
    (Numbering, "settle", True),
]  # fmt: skip


def state(policy):
    """What the combiner and its first policy have learned."""
    first = policy.policies_[0]
    known = getattr(getattr(first, "oracle_", None), "coef_", np.zeros(3))
    mark = first._sums.mark if hasattr(first, "_sums") else None
    sums = [] if mark is None else [mark.answer.value]
    return [policy._counts, policy._totals, policy._regrets, known, *sums]


@pytest.mark.parametrize(("owner", "method", "after"), PLACES)
@pytest.mark.parametrize("name", POLICIES)
def test_an_interrupted_update_is_the_last_one(
    name, owner, method, after, tmp_path, monkeypatch, interrupt
):
    if owner is PhasedSums and name == "epochs":
        pytest.skip("it has no such sums")
    monkeypatch.setenv("SKPRIV_STATE", str(tmp_path))
    policy = combiner(name)
    policy.save(tmp_path / "policy")
    interrupt(owner, method, after)
    with pytest.raises(KeyboardInterrupt) as caught:
        update(policy)
    if policy._midway:
        with pytest.raises(PrivacyError, match="twice"):
            update(policy)
        policy.save(tmp_path / "interrupted")
        with pytest.raises(PrivacyError, match="twice"):
            update(load(tmp_path / "interrupted"))
        policy.act(CONTEXTS)  # what was released is played on
        policy = update(load(tmp_path / "policy"))
    else:  # the epoch of the first rounds was lost, and nothing of it is learned
        assert name == "epochs" and policy.n_rounds_ == 10 and len(caught.value.__notes__) == 1
        update(policy, slice(10, None))
        assert not np.isnan(np.concatenate(state(policy))).any()
        assert policy.n_rounds_ == policy._counts.sum() == 20
        return
    undisturbed = update(combiner(name))
    assert policy.n_rounds_ == policy._counts.sum() == 20
    assert policy.policies_[0].n_rounds_ == undisturbed.policies_[0].n_rounds_
    if name != "epochs":  # whose noise depends on the number of its partition
        for one, other in zip(state(policy), state(undisturbed), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_policy_that_cannot_pay_leaves_the_other_rounds_to_be_given_again():
    """The first epoch is paid, and of the rounds behind it nothing was counted."""
    with BudgetAccountant(2.0, 1e-5):
        policy = combiner("epochs")
        update(policy)
        before = policy.n_rounds_
        broke = combiner("epochs", epsilon=1.0)
        first = broke.policies_[0]
        first._close = Mock(side_effect=BudgetExceeded("nothing is left"))
        with pytest.raises(BudgetExceeded) as caught:
            update(broke)
        assert caught.value.rounds_taken == broke.n_rounds_ == 0
        (note,) = caught.value.__notes__
        assert note.startswith("Of these") and "first 0 " in note
        del first._close
        update(broke)
        assert broke.n_rounds_ == before == broke._counts.sum() == 20


def test_a_policy_that_acted_is_credited_after_a_failure():
    policy = combiner("epochs")
    first = policy.policies_[0]
    first._close = None
    with pytest.raises(TypeError):
        update(policy)
    del first._close
    policy.choice_ = 1
    policy.act(CONTEXTS[:5])
    update(policy)
    assert first.n_rounds_ == 20 and policy._waiting == [1] * 5


def test_an_act_that_fails_has_not_acted(monkeypatch):
    policy = combiner("sums")
    before = list(policy._waiting)
    monkeypatch.setattr(LinUCB, "_act", None)
    with pytest.raises(TypeError):
        policy.act(CONTEXTS)
    assert policy._waiting == before


def test_people_are_not_counted_and_it_is_said():
    with pytest.raises(ValueError, match="no smaller price"):
        BanditCombiner([LinUCB(max_visits=3), RandomPolicy()]).act(CONTEXTS)
    policy = combiner("sums")
    with pytest.raises(ValueError, match="no smaller price"):
        policy.act(CONTEXTS, users=range(20))
    with pytest.raises(ValueError, match="no smaller price"):
        policy.update(CONTEXTS, ACTIONS, np.ones(20), users=range(20))
    assert policy.user_guarantee(3).epsilon > policy.guarantee.epsilon


def test_rewards_are_paid_for_before_they_are_looked_at():
    """One that is no number is told after the charge of whoever acted."""
    policy = combiner("sums")
    with BudgetAccountant(100.0, 1e-4) as accountant, pytest.raises(ValueError):
        rewards = np.full(20, np.nan)
        policy.update(CONTEXTS, ACTIONS, rewards, players=np.ones(20, dtype=int))
    assert [name for name, *_ in accountant.charges] == ["BanditCombiner"]
    assert policy.n_rounds_ == 0 and not policy._midway
