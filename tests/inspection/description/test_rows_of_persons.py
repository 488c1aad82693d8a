"""A proposal of the most rows of a person: charged once, and next to nobody decides it."""

import numpy as np
import pytest
from registry.refusals import uncharged

from skpriv import BudgetAccountant
from skpriv.inspection import propose_max_rows
from skpriv.inspection._distribution import DistributionQuery

OPTIONS = {"largest": 100, "delta": 1e-6, "random_state": 0}


def labels(seed=0, persons=4000):
    return np.repeat(np.arange(persons), np.random.RandomState(seed).poisson(3.0, persons) + 1)


@pytest.mark.parametrize("level", [0.5, 0.75, 0.9])
def test_it_is_the_quantile_without_noise_and_near_it_with_noise(level):
    counts = np.bincount(labels())
    exact = np.quantile(counts, level, method="inverted_cdf")
    assert propose_max_rows(labels(), epsilon=np.inf, level=level, **OPTIONS) == exact
    assert abs(propose_max_rows(labels(), epsilon=0.5, level=level, **OPTIONS) - exact) <= 1


def test_it_is_never_more_than_the_public_bound():
    many = np.repeat(np.arange(50), 1000)
    assert propose_max_rows(many, epsilon=np.inf, **OPTIONS) == 100
    assert propose_max_rows(np.arange(50), epsilon=np.inf, **OPTIONS) == 1
    with pytest.raises(ValueError, match="epsilon=0 allows no answer"):
        propose_max_rows(many, epsilon=0.0, **OPTIONS)


def test_one_person_is_one_record_and_the_charge_comes_first(monkeypatch):
    """However many rows somebody has, they are one number, and answers move by no more."""
    asked = []
    with BudgetAccountant(1.0, 1e-6, unit=("person", 9)) as accountant:
        propose_max_rows(labels(), epsilon=1.0, **OPTIONS)
    assert accountant.spent.epsilon == pytest.approx(1.0, rel=1e-9)
    total = DistributionQuery.sum

    def recorded(query, X, y):
        asked.append((query, total(query, X, y)))
        return asked[-1][1]

    monkeypatch.setattr(DistributionQuery, "sum", recorded)
    groups = labels()
    for rest in (groups, np.append(groups, np.zeros(10_000, dtype=int))):
        propose_max_rows(rest, epsilon=1.0, **OPTIONS)
    (query, first), (_, second) = asked
    assert 0.0 < np.linalg.norm(first - second) <= query.sensitivity


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"largest": 0}, "Got 0"),
        ({"largest": 2**15}, "Got 32768"),
        ({"largest": 2.5}, "Got 2.5"),
        ({"level": 1.0}, "Got 1.0"),
        ({"groups": np.zeros((3, 2))}, "one label a row"),
    ],
)
def test_wrong_parameters_are_refused_uncharged(changed, message):
    options = {"groups": labels(), "epsilon": 1.0, **OPTIONS, **changed}
    groups = options.pop("groups")
    with uncharged(message):
        propose_max_rows(groups, **options)
