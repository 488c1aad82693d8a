"""A strong effect has few records in between, and hides itself: it is covered or not told."""

import numpy as np
import pytest

from skpriv._estimation._links import Logit
from skpriv.inspection import inference
from skpriv.linear_model import LogisticRegression

COEF = np.array([7.0, -2.0, 1.0, 0.0])


def fitted(seed, n=600):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1.0, 1.0, (n, 4))
    y = rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-X @ COEF))
    return LogisticRegression(classes=(0, 1), bounds_X=(-1, 1), random_state=seed).fit(
        X, y.astype(int)
    )


@pytest.mark.slow
@pytest.mark.parametrize("n", [450, 600, 1000])
def test_a_strong_effect_is_covered_or_not_told(n):
    """Of 40 fits half tell it. Of 20 that do so 80% passes with a chance of 4% where .95 do.

    With the bend of the link in equal parts for all directions .76, .75 and .57 covered it.
    """
    covered = []
    for seed in range(40):
        table = inference(fitted(seed, n))
        if not table.law.hidden[0]:
            covered.append(table.low[0] <= COEF[0] <= table.high[0])
    assert len(covered) > 14 and np.mean(covered) > 0.85


def test_what_is_hidden_is_as_large_as_its_estimate():
    found = 0
    for seed in range(8):
        law = fitted(seed)._released.law("fitted")
        if law.hidden.size:
            found += 1
            assert law.size >= np.abs(law.hidden.T @ law.solution).max() * (1.0 - 1e-9)
    assert found


def test_strong_effects_are_farther_away_than_shrunk_ones_say(monkeypatch):
    """By 40 / N, which widens errors by a quarter and more; half of it would widen them by .13.

    Without it .82 of fits to 450 rows cover an effect of 7, and .96 with it.
    """
    counted = inference(fitted(1, 450)).std_error
    monkeypatch.setattr(Logit, "shrunk_by", 0.0)
    wider = counted / inference(fitted(1, 450)).std_error
    assert 1.2 < wider[0] < 1.4, wider
