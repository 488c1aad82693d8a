"""Audits of what one device sends: never above the claim, whatever codebook, record or rounding."""

import json
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from registry.estimators import improper, reweighted, ssp

from skpriv import _wire as _codebook
from skpriv.audit import replay
from skpriv.linear_model import AdditiveRegressor, LinearRegression
from skpriv.privacy import index_weights, task_hash
from skpriv.protocol import Collector, _device, report

EPSILONS = (0.5, 1.0, 4.0)
ESTIMATORS = {
    "sums": ssp,
    "line": partial(LinearRegression, data_norm=1.0, bounds_y=(-1.0, 1.0)),
    "weighted": reweighted,
    "descent": improper,
    "curves": partial(AdditiveRegressor, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0)),
}
RECORDS = [
    ([0.6, 0.8], 1.0), ([0.6, 0.8], -1.0), ([-0.6, 0.8], 0.3), ([0.0, 0.0], 0.0),
    ([np.nan, 1.0], np.nan), ([1e308, -1e308], 1e308), ([-np.inf, 0.0], -np.inf), ([1e-308, 0], 1),
]  # fmt: skip
BOOKS = {
    "honest": lambda book: book,
    "all alike": lambda book: np.ones_like(book),
    "not numbers": lambda book: np.full_like(book, np.nan),
    "huge": lambda book: 1e308 * np.sign(book),
    "two points": lambda book: np.where(np.arange(len(book))[:, None] % 2, 1.0, -1.0) * book[:1],
}


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_changed_record_costs_no_more_than_the_claim(name, epsilon, records):
    options = {"epsilon": epsilon, "privacy": "local", "channel": "codebook", "random_state": 0}
    found = replay(lambda: ESTIMATORS[name](**options), *records(n=60))
    near, far = index_weights(epsilon)
    assert found.holds and found.epsilon <= epsilon, str(found)
    assert found.epsilon in (0.0, pytest.approx(np.log(near / far), rel=1e-9))


def law_of_report(monkeypatch, task, x, y, weights):
    """Exact law of the bytes: every value of the one draw, and both values of the sign's coin."""
    near, far, counts = *weights, {}
    channel = _device.read_task(task)["channel"]
    total = channel["nearest"] * near + (channel["count"] - channel["nearest"]) * far
    monkeypatch.setattr(_codebook, "index_weights", lambda epsilon: weights)
    _, r = _device.scaled_record(_device.read_task(task)["query"], x, y)
    for sign in (1, -1):
        chance = (1 + sign * Fraction(r)) / 2
        monkeypatch.setattr(_device, "draw_sign", lambda mean, sign=sign: float(sign))
        for drawn in range(total):
            monkeypatch.setattr(_codebook.secrets, "randbelow", lambda bound, drawn=drawn: drawn)
            answer = report(task, x, y, user=1)
            counts[answer] = counts.get(answer, 0) + chance / total
    return counts


@pytest.mark.parametrize("book", BOOKS)
def test_bytes_have_probabilities_within_the_claim_for_any_codebook(monkeypatch, book):
    model = ssp(delta=0.0, privacy="local", channel="codebook", fit_intercept=False)
    fields, weights = json.loads(Collector(model, 3, 0, n_features=2).task), (5, 2)
    fields["channel"].update(count=16, nearest=5)  # so that all values of a draw are few
    task = json.dumps({**fields, "hash": task_hash(fields)})
    honest = _device.codebook  # of the same user each time
    monkeypatch.setattr(_device, "codebook", cache(lambda *args: BOOKS[book](honest(*args))))
    monkeypatch.setattr(_device, "read_task", cache(_device.read_task))
    records = RECORDS if book == "honest" else RECORDS[1::3]
    laws = [law_of_report(monkeypatch, task, x, y, weights) for x, y in records]
    count = _device.read_task(task)["channel"]["count"]
    for law in laws:
        assert len(law) == count and sum(law.values()) == 1
    for answer in laws[0]:
        chances = [law[answer] for law in laws]
        assert max(chances) / min(chances) <= Fraction(*weights)
