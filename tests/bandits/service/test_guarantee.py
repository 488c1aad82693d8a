"""What a service promises when workers start together, fits fail, and files are copied."""

import pathlib

import numpy as np
import pytest
from registry.processes import forked, held_by_another_thread, needs_fork, of_threads

from skpriv import BudgetAccountant
from skpriv.bandits import BanditCombiner, LinUCB, Loop, RandomPolicy, SquareCB
from skpriv.bandits._service import _store
from skpriv.exceptions import BudgetExceeded
from skpriv.extend import register
from skpriv.linear_model import SSPRegressor

SSP = SSPRegressor(epsilon=1.0, delta=1e-6, data_norm=1.0, bounds_y=(0, 1))
POLICIES = {
    "sums": lambda: LinUCB(epsilon=1.0, delta=1e-6, bounds_y=(0, 1)),
    "codebook": lambda: LinUCB(epsilon=1.0, delta=0.0, privacy="local", bounds_y=(0, 1)),
    "two phases": lambda: LinUCB(
        epsilon=1.0, delta=1e-6, bounds_y=(0, 1), update_every=4, horizon=12
    ),
    "epochs": lambda: SquareCB(SSP, schedule=20),
    "combiner": lambda: BanditCombiner(
        [LinUCB(epsilon=1.0, bounds_y=(0, 1), privacy="local"), RandomPolicy()],
        epsilon=1.0, bounds_y=(0, 1), horizon=400, update_every=5,
    ),
}  # fmt: skip  # unseeded: of noise that is drawn twice the draws would differ


def released(policy):
    """What a policy tells of its data, as numbers."""
    if isinstance(policy, BanditCombiner):
        return np.concatenate([policy._totals, *map(released, policy.policies_)])
    if isinstance(policy, RandomPolicy):
        return np.zeros(0)
    if hasattr(policy, "oracle_"):
        return np.append(policy.oracle_.coef_, policy.oracle_.intercept_)
    return policy._sums.mark.answer.value if policy.n_rounds_ else np.zeros(2)


def serve(loop, start, stop, seed=0):
    rng = np.random.default_rng(seed)
    for k in range(stop):
        contexts, reward = rng.standard_normal((3, 2)) / 3.0, float(rng.random() < 0.5)
        if k >= start:
            loop.rank(f"visit {k}", contexts)
            assert loop.reward(f"visit {k}", reward) == "taken"
    return loop


@pytest.mark.parametrize("name", POLICIES)
def test_restored_backups_give_one_answer(name, tmp_path):
    make = POLICIES[name]
    loop = serve(Loop(make(), tmp_path / "service.sqlite"), 0, 13)
    answers = []
    for k in range(2):
        loop.backup(tmp_path / f"restored {k}")
        again = Loop(make(), tmp_path / f"restored {k}")
        # other users may come to a backup than to the one before
        answers.append(released(serve(again, 13, 40, seed=k).policy))
        assert not again.troubles and again.n_learned + again.status()["waiting"] == 40
    answers.append(released(serve(loop, 13, 40).policy))
    assert np.abs(answers[0]).sum() > 0
    for answer in answers:
        np.testing.assert_array_equal(answer, answers[0])


def test_a_backup_refuses_where_it_does_not_find_what_was_released(tmp_path, monkeypatch):
    """It plays on with what it has learned, and learns when the file is put back."""
    monkeypatch.setenv("SKPRIV_STATE", str(tmp_path / "state"))
    loop = serve(Loop(POLICIES["sums"](), tmp_path / "service.sqlite"), 0, 25)
    (answers,) = (tmp_path / "state").glob("*.answers")
    answers.rename(tmp_path / "elsewhere")
    before = released(loop.policy)
    serve(loop, 25, 60)
    assert loop.n_learned == 20
    np.testing.assert_array_equal(released(loop.policy), before)
    assert "PrivacyError" in loop.status()["last_trouble"]
    (tmp_path / "elsewhere").rename(answers)
    assert loop.learn(force=True) == 40
    assert (released(loop.policy) != before).any()


@pytest.mark.parametrize("name", ["sums", "epochs"])
def test_what_was_released_is_not_put_back_to_an_earlier_day(name, tmp_path, monkeypatch):
    """A file of answers that is older than the service's own would let it draw noise again."""
    monkeypatch.setenv("SKPRIV_STATE", str(tmp_path / "state"))
    loop = serve(Loop(POLICIES[name](), tmp_path / "service.sqlite"), 0, 25)
    (answers,) = (tmp_path / "state").glob("*.answers")
    older = answers.read_bytes()
    serve(loop, 25, 45)
    assert loop.n_learned == 40 and not loop.troubles
    answers.write_bytes(older)
    serve(loop, 45, 70)
    assert loop.n_learned == 40 and "put back" in loop.status()["last_trouble"]


@pytest.mark.parametrize("name, in_order", [("sums", True), ("sums", False), ("epochs", True)])
def test_workers_that_start_together_charge_once(name, in_order, tmp_path):
    given = {"path": tmp_path / "service.sqlite", "in_order": in_order}
    with BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "ledger") as accountant:
        with accountant.part("north", partition="sites"):
            loops = [Loop(POLICIES[name](), **given) for _ in range(4)]
    for k in range(60):  # outside of the block under which they were made
        loops[k % 4].rank(f"visit {k}", np.eye(2) / 2.0)
    for k in range(60):
        assert loops[k % 4].reward(f"visit {k}", 1.0) == "taken"
    assert accountant.spent.epsilon == pytest.approx(1.0)
    assert not any(charge.part.startswith("north") for charge in accountant.charges)
    for loop in reversed(loops):  # the last of them has seen the last event
        loop.rank("last", np.eye(2) / 2.0)
        assert loop.policy.n_rounds_ == 60
        assert loop.policy.guarantee.epsilon == pytest.approx(1.0)


@register
class Flaky(SSPRegressor):
    """Fails after it was charged, as long as a file is there."""

    file = pathlib.Path()

    def fit(self, X, y):
        super().fit(X, y)
        if self.file.exists():
            raise OSError("patient 4711")
        return self


def test_a_fit_that_fails_once_it_was_charged_costs_its_epoch_only(tmp_path):
    Flaky.file = tmp_path / "broken"
    Flaky.file.touch()
    policy = SquareCB(Flaky(epsilon=1.0, delta=1e-6, data_norm=1.0, bounds_y=(0, 1)), schedule=16)
    with BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "ledger") as accountant:
        loop = serve(Loop(policy, tmp_path / "service.sqlite"), 0, 30)
        assert (loop.n_learned, loop.policy.epoch_) == (16, 1)
        assert not hasattr(loop.policy, "oracle_")
        assert accountant.spent.epsilon == pytest.approx(1.0)
        ((_, sentence),) = loop.troubles
        assert "OSError" in sentence and "spent" in sentence and "4711" not in sentence
        Flaky.file.unlink()
        serve(loop, 30, 40)
        assert loop.policy.epoch_ == 2 and hasattr(loop.policy, "oracle_")
    assert accountant.spent.epsilon == pytest.approx(1.0)
    assert loop.policy.guarantee.epsilon == pytest.approx(1.0)


def test_a_spent_ledger_does_not_stop_a_service(tmp_path):
    """Nothing is charged, and nothing is lost: it is tried again later."""
    now = [0.0]
    with BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "ledger") as accountant:
        X = np.random.default_rng(0).standard_normal((100, 2)) / 3.0
        SSP.fit(X, np.ones(100))
        loop = Loop(POLICIES["epochs"](), tmp_path / "service.sqlite", clock=lambda: now[0])
        serve(loop, 0, 50)
        assert (loop.n_events, loop.n_learned, len(loop.troubles)) == (50, 0, 1)
        assert "BudgetExceeded" in loop.status()["last_trouble"]
        assert len(accountant.charges) == 1
        now[0] = 61.0
        loop.rank("later", np.eye(2))
        assert len(loop.troubles) == 2
        with pytest.raises(BudgetExceeded):  # a policy that cannot start has nothing to play
            Loop(POLICIES["sums"](), tmp_path / "other.sqlite").rank("a", np.eye(2))
    assert loop.learn(force=True) == 0 and len(loop.troubles) == 3  # the block does not matter


def test_a_late_reward_of_a_combiner_counts_for_who_acted(tmp_path):
    combiner = BanditCombiner(
        [LinUCB(epsilon=1.0, privacy="local", random_state=0), RandomPolicy(random_state=0)],
        epsilon=1.0, horizon=400, update_every=5, random_state=0,
    )  # fmt: skip
    loop, acted = Loop(combiner, tmp_path / "service.sqlite"), {}
    rng = np.random.default_rng(0)
    for k in range(60):
        loop.rank(f"visit {k}", rng.standard_normal((3, 2)) / 3.0)
        acted[k] = loop.policy.choice_
        if k >= 7:
            loop.reward(f"visit {k - 7}", 1.0)
    assert set(acted.values()) == {0, 1}
    learned = [acted[k] for k in range(loop.n_learned)]
    rounds = [getattr(policy, "n_rounds_", 0) for policy in loop.policy.policies_]
    assert rounds == [learned.count(0), learned.count(1)]


def test_several_events_in_one_call(tmp_path):
    one, many = (
        Loop(LinUCB(epsilon=1.0, bounds_y=(0, 1), random_state=0), tmp_path / name)
        for name in ("one", "many")
    )
    rng = np.random.default_rng(0)
    for block in range(6):
        names = [f"visit {block} {k}" for k in range(10)]
        contexts, rewards = rng.standard_normal((10, 3, 2)) / 3.0, rng.random(10)
        actions, propensities = many.rank_many(names, contexts)
        single = [one.rank(*pair) for pair in zip(names, contexts, strict=True)]
        assert propensities.shape == (10,) and [a for a, _ in single] == actions.tolist()
        assert many.reward_many(names, rewards) == ["taken"] * 10
        for name, reward in zip(names, rewards, strict=True):
            one.reward(name, reward)
    again, _ = many.rank_many(names[:2] + ["new"], contexts[:3])
    assert again[:2].tolist() == actions[:2].tolist()
    assert one.policy.n_rounds_ == many.policy.n_rounds_ == 60
    np.testing.assert_array_equal(released(one.policy), released(many.policy))
    with pytest.raises(ValueError, match="twice"):
        many.rank_many(["a", "a"], contexts[:2])


@needs_fork
@pytest.mark.parametrize("charged", [False, True])
def test_two_processes_that_learn_one_epoch_charge_once(charged, tmp_path, monkeypatch):
    """Another one learns it while the first one fits, before its charge or after it."""
    fit, path = SSPRegressor.fit, tmp_path / "service.sqlite"
    make = lambda: Loop(POLICIES["epochs"](), path, learn="elsewhere")  # noqa: E731

    def learned():
        assert make().learn() == 20

    def overtaken(self, X, y):
        monkeypatch.setattr(SSPRegressor, "fit", fit)
        found = fit(self, X, y) if charged else self
        assert forked(learned)
        return found if charged else fit(self, X, y)

    with BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "ledger") as accountant:
        loop = serve(make(), 0, 20)
        monkeypatch.setattr(SSPRegressor, "fit", overtaken)
        assert loop.learn() == 0 and loop.n_learned == 20 and not loop.troubles
    assert len(accountant.charges) == 1 and accountant.spent.epsilon == pytest.approx(1.0)
    np.testing.assert_array_equal(released(loop.policy), released(make().policy))
    assert loop.policy.epoch_ == 1


@needs_fork
def test_a_forked_worker_has_a_connection_of_its_own(tmp_path):
    loop = serve(Loop(POLICIES["sums"](), tmp_path / "service.sqlite"), 0, 3)
    assert forked(lambda: serve(loop, 3, 20))
    serve(loop, 20, 45)
    assert loop.n_events == 45 and loop.policy.n_rounds_ == 40 and not loop.troubles


@needs_fork
@of_threads
@pytest.mark.parametrize("busy", [lambda loop: loop._store.lock, lambda loop: loop._learning])
def test_a_forked_worker_waits_for_no_thread_of_its_parent(busy, tmp_path):
    loop = serve(Loop(POLICIES["sums"](), tmp_path / "service.sqlite"), 0, 3)
    with held_by_another_thread(busy(loop)):
        assert forked(lambda: serve(loop, 3, 19).learn() or serve(loop, 19, 20))
    assert loop.n_learned == 20 and not loop.troubles


@pytest.mark.parametrize("name", ["sums", "two phases", "epochs", "combiner"])
def test_what_died_before_its_answer_is_charged_once(name, tmp_path, monkeypatch):
    """Two processes die between charge and answer; what the third one gives costs no more."""

    def charges(deaths):
        """Serve 40 events; where learning or a start would be saved first, it dies."""
        save, died = _store.Transaction.save, []

        def dies(held, version, first, state):
            if version and died.count(first) < deaths:
                died.append(first)
                raise KeyboardInterrupt
            save(held, version, first, state)

        folder = tmp_path / str(deaths)
        folder.mkdir()
        with (
            monkeypatch.context() as patch,
            BudgetAccountant(50.0, 1e-3, folder / "ledger") as paid,
        ):
            patch.setattr(_store.Transaction, "save", dies)
            loop, k = Loop(POLICIES[name](), folder / "service"), 0
            rng = np.random.default_rng(0)
            contexts, rewards = rng.standard_normal((40, 3, 2)) / 3.0, rng.integers(0, 2, 40)
            while k < 40:
                try:
                    loop.rank(f"visit {k}", contexts[k])
                    loop.reward(f"visit {k}", float(rewards[k]))
                    k += 1
                except KeyboardInterrupt:
                    loop = Loop(POLICIES[name](), folder / "service")  # a new process
            assert loop.n_learned >= 20 and not loop.troubles
            assert len(died) >= 2 * deaths
            return [charge.cost for charge in paid.charges]

    assert charges(2) == charges(0)


def test_a_combiner_is_charged_in_a_service_what_it_promises(tmp_path):
    """A policy that begins later costs what another one has cost that began first."""
    second = LinUCB(privacy="local", channel="gaussian")
    policy = BanditCombiner([RandomPolicy(), second], horizon=100, update_every=5)
    with BudgetAccountant(10.0, 1e-6) as accountant:
        loops = [Loop(policy, tmp_path / "service", learn="elsewhere") for _ in range(3)]
    for k in range(30):  # two of them act in turn, and the third one learns
        loops[k % 2].rank(f"visit {k}", np.eye(2))
        loops[0].reward(f"visit {k}", 1.0)
        loops[2].learn()
    assert [one.part for one in accountant.charges] == ["0", "1/0", "1"]
    assert accountant.spent.epsilon == pytest.approx(loops[2].guarantee.epsilon)
