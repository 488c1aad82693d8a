"""simulate: reproducible, fair between policies, and honest about the budget."""

import numpy as np
import pytest
from joblib import parallel_backend
from registry.estimators import ssp
from sklearn.linear_model import Ridge

from skpriv.bandits import (
    EpochGreedy,
    EpsilonGreedy,
    LinearEnvironment,
    RandomPolicy,
    RegretDisplay,
    _simulate as module,
    simulate,
)
from skpriv.privacy import BudgetAccountant

ENV = LinearEnvironment(n_actions=4, n_features=3)


def policies():
    return {
        "random": RandomPolicy(),
        "greedy": EpochGreedy(oracle=ssp()),
        "ridge": EpsilonGreedy(regressor=Ridge()),
    }


def test_reproducible_whatever_n_jobs():
    with parallel_backend("threading"):
        results = [
            simulate(policies(), ENV, horizon=100, n_runs=2, n_jobs=n_jobs, random_state=seed)
            for n_jobs, seed in ((1, 0), (2, 0), (1, 1), (1, np.random.RandomState(3)))
        ]
    np.testing.assert_array_equal(results[0].regret_, results[1].regret_)
    np.testing.assert_array_equal(results[0].rewards, results[1].rewards)
    assert not np.array_equal(results[0].regret_, results[2].regret_)
    assert results[0].regret_.shape == (3, 2, 100)
    assert (np.diff(results[0].regret_) >= 0).all()
    again = simulate(policies(), ENV, horizon=100, n_runs=2, random_state=np.random.RandomState(3))
    np.testing.assert_array_equal(again.regret_, results[3].regret_)


def test_blocks_of_rounds_do_not_matter(monkeypatch):
    """Draws of an environment come in the same order, whatever the size of the blocks."""
    env = LinearEnvironment(n_actions=4, n_features=3, contexts="fixed")
    whole = simulate(policies(), env, horizon=300, random_state=0)
    monkeypatch.setattr(module, "BLOCK_NUMBERS", 12 * 7)
    parts = simulate(policies(), env, horizon=300, random_state=0)
    np.testing.assert_allclose(whole.regret_, parts.regret_, rtol=1e-12)


def test_all_policies_see_the_same_rounds():
    """So twins have the same regret, and company does not change a policy's."""
    result = simulate([RandomPolicy(), Constant(), Constant()], ENV, horizon=200, random_state=0)
    np.testing.assert_array_equal(result.rewards[1], result.rewards[2])
    np.testing.assert_array_equal(result.regret_[1], result.regret_[2])
    assert result.names == ["RandomPolicy", "Constant", "Constant 2"]


class Constant(RandomPolicy):
    """Always the first action, in small chunks."""

    @property
    def rounds_until_update_(self):
        return 3

    def _act(self, contexts, available, rng):
        return np.zeros(len(contexts), dtype=np.intp), np.ones(len(contexts))


def test_policies_are_not_changed():
    mine = policies()
    simulate(mine, ENV, horizon=100, random_state=0)
    assert all(not hasattr(policy, "n_rounds_") for policy in mine.values())
    assert mine["greedy"].random_state is None
    assert mine["greedy"].oracle.random_state is None


def test_noise_is_secure_only_without_a_seed():
    for seed, secure in ((0, False), (None, True)):
        result = simulate([EpochGreedy(oracle=ssp())], ENV, horizon=70, random_state=seed)
        (report,) = result.privacy_reports[0]
        assert [epoch.report.secure for epoch in report.epochs] == [secure]


def test_runs_are_charged():
    """Runs could be about the same users, so they add up."""
    policy = EpochGreedy(oracle=ssp(epsilon=0.1), schedule=50)
    with BudgetAccountant(epsilon=5.0, delta=1e-5) as accountant, parallel_backend("threading"):
        simulate([policy], ENV, horizon=100, n_runs=2, n_jobs=2, random_state=0)
    assert len(accountant.charges) == 4
    assert accountant.spent.epsilon > 0.12


def test_records_and_frame():
    pytest.importorskip("pandas")
    env = LinearEnvironment(n_actions=2, n_features=2)
    full = simulate([RandomPolicy()], env, horizon=1000, n_runs=2, random_state=0)
    few = simulate([RandomPolicy()], env, horizon=1000, n_runs=2, random_state=0, n_records=20)
    assert few.rounds[0] == 1
    assert few.rounds[-1] == 1000
    np.testing.assert_array_equal(few.regret_, full.regret_[:, :, few.rounds - 1])
    frame = few.to_frame()
    assert list(frame.columns) == ["policy", "run", "round", "regret", "reward"]
    last = frame[(frame.run == 1) & (frame["round"] == 1000)]
    assert last.regret.item() == full.regret_[0, 1, -1]


def test_progress(capsys):
    simulate([RandomPolicy()], ENV, horizon=10, n_runs=2, verbose=1)
    assert "2 of 2 runs" in capsys.readouterr().err
    simulate([RandomPolicy()], ENV, horizon=10, n_runs=2)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "parameters",
    [
        {"horizon": 0}, {"n_runs": 0}, {"policies": []}, {"policies": RandomPolicy()},
        {"env": type(ENV)},
    ],
)  # fmt: skip
def test_bad_parameters(parameters):
    with pytest.raises(ValueError):
        simulate(**{"policies": [RandomPolicy()], "env": ENV, "horizon": 10, **parameters})


def test_display():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    result = simulate(policies(), ENV, horizon=200, n_runs=2, random_state=0)
    axes = pyplot.figure().subplots()
    display = RegretDisplay.from_result(result, ax=axes)
    assert display.ax_ is axes
    assert [line.get_label() for line in display.lines_] == result.names
    x, y = display.lines_[0].get_data()
    assert len(x) == 200
    assert y[-1] == pytest.approx(result.regret_[0, :, -1].mean())
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert sorted(legend) == sorted(result.names)
    final = dict(zip(result.names, result.regret_[:, :, -1].mean(axis=1)))
    assert [final[name] for name in legend] == sorted(final.values(), reverse=True)
