"""What every policy promises: shapes, errors that change nothing, scikit-learn's conventions."""

import copy
import inspect
import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import numpy as np
import pytest
from registry.processes import (
    forked, held_by_another_thread, largest_file, needs_fork, needs_rlimit, of_threads,
    refused_in_a_fork,
)  # fmt: skip
from sklearn.base import clone
from sklearn.utils.estimator_checks import (
    check_get_params_invariance,
    check_no_attributes_set_in_init,
    check_set_params,
)

from skpriv.bandits import (
    BanditCombiner, EpochGreedy, LinSquareCB, LinUCB, Loop, RandomPolicy, load,
)  # fmt: skip
from skpriv.bandits._epochs._policy import EpochPolicy
from skpriv.bandits._policy import _run
from skpriv.exceptions import InvalidValues
from skpriv.linear_model import SSPRegressor
from skpriv.privacy import BudgetAccountant, NoiseSource
from skpriv.records import INVALID_VALUES


def state(policy):
    return pickle.dumps(policy.__getstate__())


def test_conventions_of_scikit_learn(policy):
    name = type(policy).__name__
    check_no_attributes_set_in_init(name, clone(policy))
    check_get_params_invariance(name, clone(policy))
    check_set_params(name, clone(policy))
    assert name in repr(policy)


def test_parameters_do_not_change(policy, make_rounds):
    before = pickle.dumps(policy.get_params())
    make_rounds(60).play(policy)
    assert pickle.dumps(policy.get_params()) == before


def test_reset_and_clone_start_again(policy, make_rounds):
    rounds = make_rounds(100)
    first, _ = rounds.play(policy)
    again = clone(policy)
    assert not hasattr(again, "n_rounds_")
    np.testing.assert_array_equal(rounds.play(again)[0], first)
    np.testing.assert_array_equal(rounds.play(policy.reset())[0], first)
    assert policy.n_rounds_ == len(rounds.contexts)


GOOD = {"contexts": np.zeros((4, 5, 3)), "actions": [0, 1, 2, 3], "rewards": np.zeros(4)}
WRONG_SHAPES = [
    *({"contexts": np.zeros(shape)} for shape in [(4, 5), (4, 5, 3, 1), (4, 5, 2), (4, 0, 3), ()]),
    {"contexts": np.zeros((3, 5, 3))},
    {"actions": [0, 1, 2]},
    {"actions": [[0], [1], [3], [4]]},
    {"rewards": [0.0, 1.0, 2.0]},
    {"rewards": ["secret", 0.0]},
]


def test_wrong_shapes_leave_the_state_unchanged(policy, make_rounds):
    make_rounds().play(policy, stop=25)
    before = state(policy)
    for change in WRONG_SHAPES:
        if np.shape(change.get("contexts"))[1:] != (5, 3) and "contexts" in change:
            with pytest.raises(ValueError, match="have shape"):
                policy.act(change["contexts"])
        with pytest.raises(ValueError, match="have shape") as caught:
            policy.update(**{**GOOD, **change})
        assert "secret" not in str(caught.value)
        assert state(policy) == before
    assert policy.update(**GOOD).n_rounds_ == 29


NO_NUMBERS = [
    {"rewards": [0.0, 1.0, 2.0, np.nan]},
    {"rewards": [0.0, 1.0, 2.0, np.inf]},
    {"rewards": [0.0, 1.0, "secret", None]},
    {"rewards": [0.0, 1.0, 2.0, np.complex64(1j)]},
    {"rewards": [0.0, 1.0, [2.0], 3.0]},
    {"actions": [0, 1, 2, 5]},
    {"actions": [0, 1, 2, -1]},
    {"contexts": np.full((4, 5, 3), np.nan)},
    {"contexts": np.full((4, 5, 3), -np.inf)},
    {"contexts": [[[0.0, 0.0, 0.0]] * 5] * 3 + [[[0.0, "secret", 0.0]] * 5]},
    {"contexts": [[[0.0, 0.0, 0.0]] * 5] * 3 + [[[0.0, 0.0]] * 5]},
]


def test_what_is_no_number_is_told_after_the_charge_in_one_sentence(policy, make_rounds):
    rounds = make_rounds()
    private = isinstance(policy, EpochPolicy) and policy.guarantee.private
    for change in NO_NUMBERS[::5] if private else NO_NUMBERS:  # a fit checks its whole table
        again = clone(policy)
        rounds.play(again, stop=25)
        if isinstance(policy, RandomPolicy):  # looks at nothing
            assert again.update(**{**GOOD, **change}).n_rounds_ == 29
        elif private:
            _told_by_the_fit(again, rounds, change)
        else:
            before = state(again)
            with pytest.raises(InvalidValues) as caught:
                again.update(**{**GOOD, **change})
            assert str(caught.value) == INVALID_VALUES and caught.value.__cause__ is None
            assert state(again) == before
            assert again.update(**GOOD).n_rounds_ == 29


def _told_by_the_fit(policy, rounds, change):
    """No question is answered for nothing: the fit charges, refuses, and the epoch is lost."""
    policy.update(**{**GOOD, **change})
    promised = policy.guarantee
    with BudgetAccountant(100.0, 0.1, currency="zcdp") as accountant:
        with pytest.raises(InvalidValues) as caught:
            rounds.play(policy, start=29, stop=50)
        assert len(accountant.charges) == 1
        assert str(caught.value).startswith(INVALID_VALUES) and caught.value.rounds_taken == 21
        assert (policy.n_rounds_, policy.epoch_) == (50, 2)
        rounds.play(policy, start=50, stop=100)
        assert (policy.n_rounds_, policy.epoch_, len(accountant.charges)) == (100, 3, 2)
    assert policy.guarantee.private and policy.guarantee.epsilon == promised.epsilon
    assert len(policy.privacy_report_.epochs) == 3 and "20-49" in str(policy.privacy_report_)


def test_contexts_of_act_that_are_no_numbers(policy):
    """The policy has started, and been charged, before it looks."""
    for change in NO_NUMBERS[-2:]:
        again = clone(policy)
        if isinstance(policy, RandomPolicy):
            assert len(again.act(change["contexts"])) == 4
            continue
        with pytest.raises(InvalidValues) as caught:
            again.act(change["contexts"])
        assert str(caught.value) == INVALID_VALUES
        assert hasattr(again, "n_rounds_") and len(again.act(GOOD["contexts"])) == 4


def test_large_contexts_that_are_not_finite():
    contexts = np.zeros((5000, 3, 2))
    contexts[1, 1, 1], contexts[2, 1, 1] = np.inf, -np.inf
    with pytest.raises(InvalidValues):
        LinUCB().act(contexts)
    assert len(LinUCB().act(np.full((5000, 3, 2), 1e308))) == 5000  # the sum overflows


def test_logs_before_the_first_act_are_learned(policy):
    contexts, before = np.zeros((4, 5, 3)), state(policy)
    with pytest.raises(ValueError, match="needs contexts"):
        policy.update(None, [0, 1, 2, 3], np.zeros(4), rows=contexts[:, 0])
    assert set(vars(policy)) - {"_lock"} == set(pickle.loads(before)) - {"_lock"}
    assert policy.update(contexts, [0, 1, 2, 3], np.zeros(4)).n_rounds_ == 4


def test_bad_first_act_leaves_nothing(policy):
    with pytest.raises(ValueError):
        policy.act(np.zeros((4, 5)))
    policy.set_params(random_state="zero")
    with pytest.raises(ValueError):
        policy.act(np.zeros((4, 5, 3)))
    assert not hasattr(policy, "n_rounds_")
    policy.set_params(random_state=0).act(np.zeros((4, 5, 3)))
    with pytest.raises(ValueError, match="data_norm"):  # a row over it is no number
        LinUCB(data_norm=1e-310).act(np.zeros((4, 5, 3)))


def test_no_rounds(policy, make_rounds):
    make_rounds().play(policy, stop=25)
    assert policy.act(np.zeros((0, 5, 3))).shape == policy.propensities_.shape == (0,)
    assert policy.update(np.zeros((0, 5, 3)), np.array([], dtype=int), []).n_rounds_ == 25


def test_separate_weights_are_blocks(make_rounds):
    """shared=False is the same as contexts with the row in the block of the action."""
    rng = np.random.RandomState(0)
    rows, actions = rng.uniform(-0.5, 0.5, size=(60, 2)), rng.randint(3, size=60)
    blocks = np.einsum("ab,nd->nabd", np.eye(3), rows).reshape(60, 3, 6)
    oracle = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), epsilon=5.0, random_state=0)
    separate = EpochGreedy(oracle=oracle, schedule=60, shared=False, n_actions=3, random_state=0)
    joint = EpochGreedy(oracle=oracle, schedule=60, random_state=0)
    for policy, contexts in ((separate, rows), (joint, blocks)):
        policy.act(contexts)
        policy.update(contexts, actions, rows[:, 0])
    np.testing.assert_array_equal(separate.oracle_.coef_, joint.oracle_.coef_)
    np.testing.assert_array_equal(separate.act(rows), joint.act(blocks))
    with pytest.raises(ValueError, match="n_actions"):
        EpochGreedy(oracle=oracle, shared=False).act(rows)


def test_only_available_actions_are_played(policy, make_rounds):
    """Each as often as its propensity says, and nothing else; then learned from rows alone."""
    rounds = make_rounds()
    rounds.play(policy, stop=120)
    n = 20_000
    for mask in ([True, False, True, False, True], [False, False, False, True, False]):
        many = np.broadcast_to(rounds.contexts[-1], (n, *rounds.contexts[-1].shape))
        actions = policy.act(many, np.array(mask))
        propensities = policy.propensities_
        np.testing.assert_array_equal(policy.propensities_, propensities)
        stated = np.zeros(5)
        stated[actions] = propensities
        assert stated.sum() == pytest.approx(1.0) and not stated[~np.array(mask)].any()
        shares = np.bincount(actions, minlength=5) / n
        np.testing.assert_allclose(shares, stated, atol=5.0 / np.sqrt(n))
    twin = policy.act(many.copy()[:50], np.array([mask] * 50))
    np.testing.assert_array_equal(twin, 3)


def test_masks_are_checked(policy):
    contexts = np.ones((2, 3, 2))
    for wrong in ([1, 1, 0], [True, True], [[True, False, False], [False] * 3]):
        with pytest.raises(ValueError, match="available"):
            policy.act(contexts, wrong)
    assert not hasattr(policy, "n_rounds_")


def test_rows_of_chosen_actions_are_enough(policy, make_rounds):
    rounds = make_rounds()
    twin = clone(policy)
    rounds.play(policy, stop=40)
    rounds.play(twin, stop=40)
    contexts = rounds.contexts[40:100]
    for start in range(0, 60, 10):
        part = slice(start, start + 10)
        actions = policy.act(contexts[part])
        np.testing.assert_array_equal(actions, twin.act(contexts[part]))
        rewards = rounds.rewards(actions, slice(40 + start, 50 + start))
        policy.update(contexts[part], actions, rewards)
        twin.update(rewards=rewards, rows=contexts[part][np.arange(10), actions])
    assert policy.n_rounds_ == twin.n_rounds_
    np.testing.assert_array_equal(policy.act(contexts), twin.act(contexts))
    with pytest.raises(ValueError, match="rows"):
        policy.update(contexts, actions, rewards, rows=contexts[:, 0])


def test_actions_may_come_and_go(policy, make_rounds):
    rounds = make_rounds()
    rounds.play(policy, stop=60)
    actions = policy.act(rounds.contexts[60:80, :2])
    assert actions.max() < 2
    policy.update(rounds.contexts[60:80, :2], actions, np.zeros(20))
    more = np.concatenate([rounds.contexts[80:], rounds.contexts[:120]], axis=1)
    assert policy.act(more).shape == (120,)
    assert policy.n_actions_ == 10


def test_saved_and_loaded_policies_go_on(policy, make_rounds, tmp_path):
    """Like one that was never stopped; with the raw data in another file, on request."""
    rounds, twin = make_rounds(100), clone(policy)
    with pytest.raises(ValueError, match="nothing to keep"):
        policy.save(tmp_path / "policy")
    rounds.play(policy, stop=35)
    expected, wanted = rounds.play(twin)
    for raw in ({}, {"raw_path": tmp_path / "raw"}):
        policy.save(tmp_path / "policy", **raw)
        actions, chances = rounds.play(load(tmp_path / "policy", **raw), start=35)
        np.testing.assert_array_equal(actions, expected[35:])
        np.testing.assert_allclose(chances, wanted[35:], rtol=1e-12)


SSP = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1))


@pytest.mark.parametrize("policy", [
    LinUCB(random_state=0, max_visits=2),  # windows know the streams of sums
    LinUCB(privacy="local", channel="codebook", random_state=0),
    EpochGreedy(SSP, schedule=50, random_state=0),
    BanditCombiner([LinUCB(random_state=0), EpochGreedy(SSP)], random_state=0),
])  # fmt: skip
def test_what_is_kept_apart_is_nowhere_else(policy, make_rounds, tmp_path, monkeypatch):
    """Neither a sum nor a record as it was before noise."""
    exact, add = [np.array(0.123456789)], NoiseSource.add
    monkeypatch.setattr(NoiseSource, "add", lambda *given: exact.append(given[1]) or add(*given))
    policy, rounds = clone(policy), make_rounds(90)
    rounds.play(policy, stop=88)
    given = {"users": [88, 89]} if policy._max_visits else {}
    policy.update(rounds.contexts[88:], [0, 1], [exact[0], 0.5], **given)  # which no read has seen
    policy.act(rounds.contexts)
    exact.append(policy.propensities_)
    files = [tmp_path / "policy", tmp_path / "raw"]
    policy.save(files[0], raw_path=files[1])
    kinds = [b"\x8c%c%b" % (len(k), k) for k in (b"Raw", b"Hashed", b"CompensatedSum")]
    shown = files[0].read_bytes()
    assert not any(before in shown for before in (*kinds, *(np.array(x).tobytes() for x in exact)))
    copy = load(files[0], raw_path=files[1])
    marks = copy._windows._marks if isinstance(copy, LinUCB) else []
    assert all(mark.stream is copy._sums._streams[0] for mark in marks)


@needs_rlimit
@pytest.mark.parametrize("raw", [False, True])
def test_a_full_disk_leaves_the_files_before_and_no_raw_data(raw, make_rounds, tmp_path):
    """Both files of a pair, or none; and two files that are no pair are refused."""
    policy, rounds = LinUCB(random_state=0), make_rounds(40)
    path, apart = tmp_path / "policy", {"raw_path": tmp_path / "raw"} if raw else {}
    rounds.play(policy, stop=20)
    policy.save(path, **apart)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    rounds.play(policy, start=20)
    refused = 0
    for size in range(0, 9_000, 500):
        with largest_file(size):
            try:
                policy.save(path, **apart)
            except OSError:
                refused += 1
                assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
            else:
                before = {file: file.read_bytes() for file in tmp_path.iterdir()}
        assert load(path, **apart).n_rounds_ in (20, 40)
    assert refused > 3
    policy.save(path)
    if raw:
        policy.save(path, raw_path=tmp_path / "new")
        with pytest.raises(ValueError, match="raw'.*together with the policy") as caught:
            load(path, **apart)
        assert str(path) not in str(caught.value)  # an error names one file


def test_a_policy_is_saved_before_an_update_or_after_it(make_rounds, tmp_path, monkeypatch):
    """A copy of the midst of one would give a second answer about the same rounds."""
    policy, fit = EpochGreedy(SSP), SSPRegressor.fit
    saver = Thread(target=lambda: policy.save(tmp_path / "saved"))

    def slow(self, X, y=None):
        saver.start()
        saver.join(0.1)  # who need not wait is done by then
        return fit(self, X, y)

    monkeypatch.setattr(SSPRegressor, "fit", slow)
    make_rounds(64).play(policy)
    saver.join()
    assert load(tmp_path / "saved").epoch_ == policy.epoch_ == 1
    player = Thread(target=lambda: policy.act(make_rounds(1).contexts))

    def written(*given):
        player.start()
        player.join(0.1)
        assert player.is_alive()  # nobody takes a turn while it is written

    monkeypatch.setattr(_run, "save", written)
    policy.save(tmp_path / "saved")
    player.join()


def test_files_of_another_version_are_refused(tmp_path):
    (tmp_path / "other").write_bytes(b"skpriv policy\n" + b'{"version": 99}\n')
    with pytest.raises(ValueError, match="version 99"):
        load(tmp_path / "other")


def test_changed_parameters_change_no_promise(private_policy, make_rounds):
    """Neither the noise nor the guarantee of a run that has started."""
    rounds, twin = make_rounds(), clone(private_policy)
    rounds.play(private_policy, stop=25)
    promised = str(private_policy.guarantee)
    changes = {"epsilon": 0.5, "delta": 0.5, "privacy": "none"}
    for name in private_policy.get_params():
        if (parameter := name.split("__")[-1]) in changes:
            private_policy.set_params(**{name: changes[parameter]})
    actions, _ = rounds.play(private_policy, start=25)
    np.testing.assert_array_equal(actions, rounds.play(twin)[0][25:])
    assert str(private_policy.guarantee) == promised


def test_the_number_of_actions_of_a_run_does_not_change():
    """An action beyond it is refused in the fixed sentence, which has no number in it."""
    policy, X = LinUCB(shared=False, n_actions=3, random_state=0), np.zeros((2, 2))
    policy.update(X, policy.act(X), [0.0, 0.0]).set_params(n_actions=5).act(X)
    with pytest.raises(InvalidValues):
        policy.update(X, [4, 0], [0.0, 0.0])


def test_threads_take_turns(policy, make_rounds):
    """Every round is taken once, and the epochs or reads are those of one thread."""
    rounds = make_rounds(60)
    alone = clone(policy)
    rounds.play(alone, size=1)

    def play(part):
        for i in range(part, 60, 4):
            action = policy.act(rounds.contexts[i : i + 1])
            policy.update(rounds.contexts[i : i + 1], action, [0.5])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(play, range(4)))
    assert policy.n_rounds_ == 60
    assert policy.rounds_until_update_ == alone.rounds_until_update_
    assert getattr(policy, "epoch_", 0) == getattr(alone, "epoch_", 0)


@pytest.mark.parametrize("kind", [LinSquareCB, LinUCB])
def test_no_warning_tells_of_a_huge_context(kind):
    """Warnings are errors here."""
    policy = kind(data_norm=0.1, random_state=0)
    contexts = np.random.RandomState(0).uniform(-0.1, 0.1, size=(100, 3, 2))
    policy.update(contexts, policy.act(contexts), np.ones(100))
    huge = np.full((2, 3, 2), 1.7e308) * [1.0, -1.0]
    actions = policy.act(huge)
    assert np.isfinite(policy.propensities_).all()
    policy.update(huge, actions, [1.0, -1.0])


def test_whatever_looks_at_a_policy_may(policy, make_rounds):
    """``dir``, ``inspect.getmembers``, copies and pickles, before the first round and after it."""
    for played in (0, 60):
        if played:
            make_rounds().play(policy, stop=played)
        assert "act" in dir(policy)
        assert "guarantee" in dict(inspect.getmembers(policy))
        for again in (copy.copy(policy), copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
            assert getattr(again, "n_rounds_", 0) == played


def test_a_copy_is_of_one_moment():
    """Another thread updates the policy when a part of it is copied already, or waits."""
    threads, contexts = [], np.eye(3)[None].repeat(20, axis=0)

    class Part:
        def __reduce__(self):
            threads.append(Thread(target=policy.update, args=(contexts, [0] * 20, [1.0] * 20)))
            threads[-1].start()
            threads[-1].join(0.2)
            return int, ()

    for copied in (copy.deepcopy, lambda policy: pickle.loads(pickle.dumps(policy))):
        policy = LinUCB(epsilon=1.0, update_every=10, random_state=0)
        policy.update(contexts, [0] * 20, [1.0] * 20)
        whole = dict(vars(policy))
        vars(policy).clear()
        vars(policy).update(first=Part(), **whole)  # it is copied before the sums
        again = copied(policy)
        assert again.n_rounds_ == again._sums._streams[0].n == 20
        threads[-1].join()
        assert policy.n_rounds_ == 40


@needs_fork
@of_threads
def test_a_fork_is_no_copy_in_the_midst_of_an_update():
    """It has none of the threads that hold the lock: it would wait for ever, or go on half-way."""
    policy, contexts = LinUCB(epsilon=1.0, random_state=0), np.eye(3)[None]
    policy.act(contexts)
    with held_by_another_thread(policy._turn_lock):
        assert refused_in_a_fork(lambda: policy.act(contexts))
        assert refused_in_a_fork(lambda: pickle.dumps(policy))
    assert forked(lambda: policy.act(contexts))


@pytest.mark.parametrize("wrong", [[True], [1, 0, 1], [[True], [True, False]], 3])
def test_what_is_no_mask_is_refused(wrong, tmp_path):
    loop = Loop(LinUCB(epsilon=1.0, random_state=0), tmp_path / "file")
    with pytest.raises(ValueError, match="available"):
        loop.rank("event", np.eye(3), available=wrong)


@pytest.mark.parametrize(
    "chances",
    [
        lambda shape: np.ones(shape),
        lambda shape: np.full(shape, np.nan),
        lambda shape: np.tile([-1.0, 1.0, 1.0], (shape[0], 1)),
        lambda shape: np.full(shape, 1.0 / 3.0),  # also for an action that is not available
        lambda shape: np.full(shape[0], 1.0),
        lambda shape: np.full((shape[0], 2), 0.5),
    ],
)
@pytest.mark.parametrize("base", [LinSquareCB, EpochGreedy])
def test_what_is_no_probability_is_refused_wherever_it_is_used(base, chances):
    """The propensities of a log, and what is estimated from it, would be wrong in silence."""

    class Own(base):
        def _choose(self, contexts, available):
            return chances(contexts.shape[:2])

        _has_learned = True

    own = Own(SSPRegressor(bounds_y=(-1, 1), data_norm=1.0)) if base is EpochGreedy else Own()
    contexts, available = np.zeros((4, 3, 2)), np.array([True, True, False])
    for use in (own.act, own.probabilities, lambda *given: own.rank(given[0], 1, given[1])):
        with pytest.raises(ValueError, match="Own._choose.*sum of a round|broadcast"):
            use(contexts, available)
