from functools import partial
from itertools import pairwise
from math import log, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from registry.worlds import linear_rounds, play_signs
from scipy import stats
from sklearn.base import clone

from skpriv import BudgetAccountant, BudgetExceeded
from skpriv._estimation._moments import MomentsQuery
from skpriv._estimation._public_maps import RecordMap
from skpriv.bandits import LinSquareCB, LinUCB, load
from skpriv.bandits._ucb import _lin_ucb, _running
from skpriv.bandits._ucb._sums import certified, noise_bound, rewards_bound
from skpriv.exceptions import PrivacyError
from skpriv.privacy import Budget, open_stream

KINDS = [{"privacy": name} for name in ("none", "local", "central", "shuffle", "aggregate")]
PRIVATE = KINDS[1:]


def textbook(contexts, means, rng, bound=1.0, failure=0.05):
    """OFUL, written as in Abbasi-Yadkori, Pal and Szepesvari (2011)."""
    d = contexts.shape[-1]
    V, u, actions = np.eye(d), np.zeros(d), []
    for x, mean in zip(contexts, means):
        width = sqrt(2.0 * log(sqrt(np.linalg.det(V)) / failure)) + bound
        inverse = np.linalg.inv(V)
        index = x @ (inverse @ u) + width * np.sqrt(np.diag(x @ inverse @ x.T))
        a = int(np.argmax(index))
        reward = 1.0 if rng.uniform(-1.0, 1.0) < mean[a] else -1.0
        V += np.outer(x[a], x[a])
        u += reward * x[a]
        actions.append(a)
    return np.array(actions)


def test_without_privacy_it_is_the_textbook_algorithm(global_random_seed):
    contexts, means = linear_rounds(300, global_random_seed)
    lengths = np.random.RandomState(0).uniform(0.5, 1.0, means.shape)  # so that no actions tie
    contexts, means = contexts * lengths[..., None], means * lengths
    policy = LinUCB(
        privacy="none", width="certified", update_every=1, reward_offset=0.0, random_state=0
    )
    seen = play_signs(policy, contexts, means, seed=1)
    np.testing.assert_array_equal(seen, textbook(contexts, means, np.random.RandomState(1)))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_actions_do_not_depend_on_how_updates_are_cut(kind):
    """Estimates change at public times only, whatever the size of the batches of updates."""
    contexts, means = linear_rounds(600)
    policy = LinUCB(**kind, epsilon=20.0, update_every=60, horizon=240, random_state=0)
    other = clone(policy)
    seen = play_signs(policy, contexts, means, seed=2)
    same = play_signs(other, contexts, means, seed=2, block=20)
    np.testing.assert_array_equal(seen, same)
    assert policy.n_rounds_ == other.n_rounds_ == 600


@pytest.mark.parametrize("kind", PRIVATE, ids=str)
def test_a_run_of_many_phases_costs_what_it_says(kind):
    contexts, means = linear_rounds(900)
    policy = LinUCB(**kind, epsilon=1.0, update_every=30, horizon=210, random_state=0)
    aside = (1.0, 1e-6) if kind["privacy"] == "shuffle" else None
    with BudgetAccountant(1.0, 1e-6, set_aside=aside) as accountant:
        play_signs(policy, contexts, means)
        assert accountant.spent.epsilon == pytest.approx(1.0, rel=1e-6)
        assert len(accountant.charges) == len(policy.privacy_report_.rows) == 3
        with pytest.raises(BudgetExceeded):
            clone(policy).act(contexts)
    assert policy.privacy_report_.total.fits(Budget(1.0, 1e-6))
    assert policy.privacy_report_.guarantee == policy.guarantee
    word = {"central": "joint", "aggregate": "sums"}.get(kind["privacy"], kind["privacy"])
    assert word in str(policy.guarantee)
    assert "epsilon=1, delta=1e-06" in str(policy.guarantee)


@pytest.mark.parametrize(
    "parameters", [{"privacy": "none"}, {"privacy": "local", "epsilon": np.inf}]
)
def test_no_privacy_is_no_part_of_a_finite_budget(parameters):
    with BudgetAccountant(100.0, 1e-3), pytest.raises(BudgetExceeded):
        LinUCB(**parameters).act(np.ones((1, 2, 2)))


@pytest.mark.parametrize("p", [1, 10])
@pytest.mark.parametrize("target, design", [(1.0, 0.0), (0.0, 1.0)])
def test_noise_of_the_equations_is_within_its_bound_and_half_is_not(p, target, design):
    """N_b alone, and N_A theta alone, with one coordinate of twice the variance of the others."""
    rng, failure, draws = np.random.RandomState(0), 0.1, 20_000
    equations = SimpleNamespace(target=np.zeros(p), target_scale=target, design_scale=design)
    bound = noise_bound(equations, 2.0, np.log(1.0 / failure))
    sizes = np.full(p, np.hypot(target, np.sqrt(2.0) * design))  # |theta| = 2
    sizes[0] = np.hypot(target, 2.0 * design)
    noise = np.linalg.norm(sizes * rng.normal(size=(draws, p)), axis=1)
    assert (noise > bound).mean() <= failure < (noise > bound / 2.0).mean()


def test_rewards_are_within_their_bound_at_all_times_and_half_is_exceeded():
    """Signs along ten directions in turn, the norm after each of 1000 rounds."""
    p, ridge, failure, runs, n = 10, 0.1, 0.1, 400, 1000
    rng, missed, halved = np.random.RandomState(0), 0, 0
    counts = np.array([[t // p + (i < t % p) for i in range(p)] for t in range(1, n + 1)])
    widened = counts + ridge
    bounds = np.array([rewards_bound(row / ridge, np.log(1.0 / failure)) for row in widened])
    for _ in range(runs):
        steps = (
            np.where(rng.uniform(size=n) < 0.5, 1.0, -1.0)[:, None] * np.eye(p)[np.arange(n) % p]
        )
        sizes = np.sqrt((np.cumsum(steps, axis=0) ** 2 / widened).sum(axis=1))
        missed += (sizes > bounds).any()
        halved += (sizes > bounds / 2.0).any()
    assert missed <= failure * runs < halved


@pytest.mark.parametrize("privacy", ["none", "local", "central"])
@pytest.mark.parametrize("epsilon", [1.0, 20.0])
def test_certified_region_covers_the_weights(privacy, epsilon, global_random_seed):
    """Weights on the edge of the ball, rewards of the largest variance, hardly any exploration."""
    d, n, theta = 3, 4000, np.array([0.8, 0.6, 0.0])
    rng = np.random.RandomState(global_random_seed)
    maps = RecordMap.of_norm(1.0, (-1.0, 1.0), False, d)
    misses = 0
    for seed in range(100):
        x = rng.normal(size=(n, d)) * [1.0, 1.0, 0.05]
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        r = np.where(rng.uniform(-1.0, 1.0, size=n) < x @ theta, 1.0, -1.0)
        query = MomentsQuery(maps)
        stream = open_stream(privacy, query, Budget(epsilon, 1e-6), 4, 20 * seed + 1)
        region = certified(query.equations(stream.push(x, r).read()), 1.0, 1.0, 0.05)
        arms = np.vstack([np.eye(d), -np.eye(d), x[:50]])
        misses += bool((arms @ theta > sum(region.bounds(arms)) + 1e-9).any())
    assert misses <= 13  # 14 of 100 at .05 have probability 5e-4; at .2 13 or fewer have .05


def test_the_offset_is_only_a_shift():
    contexts, means = linear_rounds(120)
    plain = LinUCB(privacy="none", random_state=0)
    shifted = LinUCB(privacy="none", bounds_y=(4.0, 6.0), random_state=0)
    for start in range(120):
        now = slice(start, start + 1)
        a, b = plain.act(contexts[now]), shifted.act(contexts[now])
        np.testing.assert_array_equal(a, b)
        reward = means[start, a] * 0.5
        plain.update(contexts[now], a, reward)
        shifted.update(contexts[now], b, reward + 5.0)


def test_reads_share_the_failure_probability(monkeypatch):
    """The failures of all reads, however many come, add up to one minus the level."""
    failures = []
    certified = _lin_ucb.certified

    def spy(equations, alpha, bound, failure):
        failures.append(failure)
        return certified(equations, alpha, bound, failure)

    monkeypatch.setattr(_lin_ucb, "certified", spy)
    policy = LinUCB(
        privacy="central", width="certified", horizon=200, update_every=10, random_state=0
    )
    policy.act(np.zeros((1, 2, 2)))
    for _ in range(20):
        policy.update(np.zeros((10, 2, 2)), np.zeros(10, dtype=int), np.zeros(10))
    k = np.arange(1, 21)
    np.testing.assert_allclose(failures, 6.0 * 0.05 / (np.pi * k) ** 2)
    rest = failures[-1] * 20**2 / 20.5  # of the sum over later reads, nearly
    assert sum(failures) + rest == pytest.approx(0.05, rel=1e-3)


def test_noise_of_past_phases_is_counted(monkeypatch, global_random_seed):
    """Sums of nothing are noise, of the scale that is told: a hundred coordinates, in phase two."""
    seen = []
    asymptotic = _running.asymptotic

    def spy(equations, *rest, **named):
        seen.append(equations)
        return asymptotic(equations, *rest, **named)

    monkeypatch.setattr(_running, "asymptotic", spy)
    policy = LinUCB(
        privacy="central",
        width="asymptotic",
        horizon=70,
        update_every=10,
        random_state=global_random_seed,
    )
    policy.act(np.zeros((1, 1, 100)))
    for _ in range(8):
        policy.update(np.zeros((10, 1, 100)), np.zeros(10, dtype=int), np.zeros(10))
    assert len(policy.privacy_report_.rows) == 2 and len(seen) == 8
    for equations in seen[-2:]:  # the last read of the first phase, the first one of the second
        square = float((equations.target**2).sum()) / equations.target_scale**2
        assert stats.chi2.ppf(1e-5, 100) < square < stats.chi2.isf(1e-5, 100)
    # Of the two parts neither is small: without the past the square would be far outside.
    assert seen[-1].target_scale > 1.5 * seen[0].target_scale


def test_random_before_the_first_read_and_random_bonuses_after_it():
    contexts, means = linear_rounds(400)
    policy = LinUCB(epsilon=3.0, random_state=0)
    actions = policy.act(contexts[:20])
    np.testing.assert_array_equal(policy.propensities_, 0.25)
    assert len(set(actions)) == 4
    play_signs(policy, contexts, means)
    many = np.broadcast_to(contexts[0], (100, 4, 3))
    policy.act(many)
    assert set(np.round(policy.propensities_ * 16, 9) % 1.0) == {0.0}
    fixed = LinUCB(epsilon=3.0, bonus_scale=1.0, random_state=0)
    play_signs(fixed, contexts, means)
    assert len(set(fixed.act(many))) == 1


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_reads_need_no_horizon(kind):
    """Geometric public times: in one stream, or in shuffled batches of growing size.

    Exact sums are read after each of the first rounds.
    """
    policy = LinUCB(**kind, epsilon=2.0, random_state=0)
    contexts = np.zeros((1, 2, 2))
    policy.act(contexts)
    lengths, batches = [], kind["privacy"] in ("aggregate", "shuffle")
    for _ in range(12 if batches else 25):
        lengths.append(policy.rounds_until_update_)
        many = np.broadcast_to(contexts, (lengths[-1], 2, 2))
        policy.update(many, np.zeros(lengths[-1], dtype=int), np.zeros(lengths[-1]))
    ends = np.cumsum(lengths)
    if batches:
        assert lengths[:3] == [200] * 3 and lengths[11] == int(0.3 * ends[10]) > 1_000
        assert len(policy.privacy_report_.rows) == 13  # a stream a batch
    else:
        first = 1 if kind["privacy"] == "none" else 20
        assert lengths[:20] == [first] * 20 and lengths[24] == int(0.05 * ends[23])
        assert len(policy.privacy_report_.rows) == 1
    private = kind["privacy"] != "none"
    assert policy.privacy_report_.total.fits(Budget(2.0, 1e-6)) == private


def test_textbook_widths_are_those_of_every_round():
    """Between two reads a width without a random bonus plays one arm: 28% more regret."""
    policy = LinUCB(privacy="none", width="certified", horizon=50)
    contexts = np.zeros((120, 2, 2))
    for _ in range(2):
        assert policy.rounds_until_update_ == 1
        policy.update(contexts, np.zeros(120, dtype=int), np.zeros(120))
    assert len(policy.privacy_report_.rows) == 3  # phases of 50, 100 and 200 reads


@pytest.mark.parametrize(
    ("privacy", "before", "after"),
    [
        ("central", [500], [550]),
        ("local", [500], [550]),
        ("shuffle", [200, 200, 100], [200, 200, 150]),
    ],
)
def test_the_report_counts_the_users_so_far_and_not_those_of_the_longest_run(
    privacy, before, after, tmp_path
):
    contexts = np.random.default_rng(0).uniform(-0.5, 0.5, size=(550, 3, 2))
    policy = LinUCB(epsilon=2.0, privacy=privacy, random_state=0, horizon=1_000)
    for part in np.split(contexts[:500], [30, 100, 450]):
        policy.update(part, policy.act(part), np.zeros(len(part)))
    assert [row.records for row in policy.privacy_report_.rows] == before
    policy.save(tmp_path / "policy.json")
    policy = load(tmp_path / "policy.json")
    policy.update(contexts[500:], policy.act(contexts[500:]), np.zeros(50))
    assert [row.records for row in policy.privacy_report_.rows] == after


@pytest.mark.parametrize("kind", [LinUCB, LinSquareCB])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("channel", ["auto", "codebook", "gaussian"])
def test_the_promise_before_the_first_round_is_that_after_it(kind, delta, channel):
    policy = kind(epsilon=1.0, delta=delta, privacy="local", channel=channel, random_state=0)
    if delta == 0.0 and channel == "gaussian":
        with pytest.raises(PrivacyError, match="no room for Gaussian noise"):
            _ = policy.guarantee
        return
    before = policy.guarantee
    policy.act(np.zeros((1, 2, 2)))
    assert before.epsilon == pytest.approx(1.0)
    assert policy.guarantee.epsilon <= before.epsilon
    assert before.delta >= policy.guarantee.delta
    with pytest.raises(PrivacyError, match="no room for Gaussian noise"):
        _ = kind(epsilon=1.0, delta=0.0).guarantee


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("max_visits", [None, 2])
@pytest.mark.parametrize("kind", [LinUCB, LinSquareCB])
def test_exact_sums_are_used_after_each_of_the_first_rounds(kind, max_visits, shared):
    """With weights of each action and with persons, too, who come three times and count twice."""
    rng = np.random.RandomState(0)
    options = {"shared": shared} if shared else {"shared": shared, "n_actions": 3}
    make = partial(
        kind, privacy="none", fit_intercept=False, window=None, max_visits=max_visits,
        random_state=0, **options,
    )  # fmt: skip
    contexts = rng.normal(size=(45, 3, 2) if shared else (45, 2)) / 4.0
    actions = rng.randint(3, size=45)
    rewards = rng.uniform(-1.0, 1.0, size=45)
    users = np.arange(45) % 15
    policy = make()
    weights = []
    for t in range(45):
        one = slice(t, t + 1)
        persons = {} if max_visits is None else {"users": users[one]}
        policy.act(contexts[one], **persons)
        assert (t >= 40) or policy.rounds_until_update_ == 1
        policy.update(contexts[one], actions[one], rewards[one], **persons)
        weights.append(policy.coef_.copy())
    changed = [bool((old != new).any()) for old, new in pairwise(weights)]
    assert all(changed[:29])
    counted = np.arange(45) < (44 if max_visits is None else 30)  # 44 is the last read
    phi = contexts[np.arange(45), actions] if shared else np.zeros((45, 6))
    if not shared:
        for t, action in enumerate(actions):
            phi[t, 2 * action : 2 * action + 2] = contexts[t]
    target = policy._sums.mark.answer.value[: phi.shape[1]]
    np.testing.assert_allclose(target, (phi * rewards[:, None])[counted].sum(axis=0), atol=1e-12)
    persons = {} if max_visits is None else {"users": users}
    together = make().update(contexts, actions, rewards, **persons)
    np.testing.assert_allclose(together.coef_, policy.coef_, rtol=1e-9)
