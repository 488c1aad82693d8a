"""From the name of a model to its session."""

import numpy as np
import pytest

from skpriv import Budget
from skpriv.privacy import MODELS, open_session

DATA = np.zeros((20, 1)), np.zeros(20)


@pytest.mark.parametrize("privacy", MODELS)
def test_every_model_has_its_session(privacy):
    session = open_session(privacy, *DATA, Budget(1.0, 1e-6), 0, "who")
    assert type(session) is MODELS[privacy]
    assert session.model == session.report.privacy == privacy
    assert session.report.name == "who"
    assert session.n == 20


@pytest.mark.parametrize("privacy", MODELS)
def test_an_infinite_epsilon_is_no_privacy(privacy):
    session = open_session(privacy, *DATA, Budget(float("inf"), 1e-6))
    assert session.model == "none"


def test_no_privacy_says_so_in_its_budget():
    assert open_session("none", *DATA, Budget(1.0, 1e-6)).report.budget.epsilon == float("inf")
