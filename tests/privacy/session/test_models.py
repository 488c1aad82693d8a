"""From the name of a model to its session; one walk over all models, a new one among them."""

import warnings
from math import sqrt

import numpy as np
import pytest
from registry.estimators import ESTIMATORS, SETTINGS, VARIANTS, curve, targets
from registry.refusals import uncharged
from registry.totals import Total

from skpriv import Budget
from skpriv.bandits import LinSquareCB, LinUCB
from skpriv.exceptions import PrivacyError
from skpriv.inspection import model_card
from skpriv.privacy import (
    MODELS, Answer, Capabilities, Cost, GaussianNoise, Guarantee, Session, Trust, capabilities,
    open_session, open_stream,
)  # fmt: skip

DATA = np.zeros((20, 1)), np.zeros(20)
TOY = "toy of the tests"


class Toy(Session):
    """Sums alone, with the noise of a curator: the least that a model can be."""

    model = TOY
    capabilities = Capabilities(
        sees_rows="nobody", divides="budget", strength=1.5, sentence="differential privacy of a toy"
    )

    def _law(self, query, slot):
        return GaussianNoise.calibrated(self._change(query), self._budget.mu * sqrt(slot.share))

    def _answer(self, query, slot, law):
        exact = self._pieces.sum(query, slot.piece)
        return Answer(self._source.add(exact, law), self._size(slot), law)


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """The toy is one of the models, as far as a test goes."""
    monkeypatch.setitem(MODELS, TOY, Toy)


every_model = pytest.mark.parametrize("privacy", [*MODELS, TOY])
CASES = [(Estimator, variant) for Estimator, all_of in VARIANTS.items() for variant in all_of]


@every_model
def test_an_infinite_epsilon_is_no_privacy(privacy):
    session = open_session(privacy, *DATA, Budget(float("inf"), 1e-6))
    assert session.trust.exact
    assert open_session("none", *DATA, Budget(1.0, 1e-6)).report.budget == session.report.budget


@every_model
@pytest.mark.parametrize(("Estimator", "variant"), CASES, ids=lambda value: str(value)[-40:])
def test_every_estimator_fits_under_every_model_or_says_why_not(privacy, Estimator, variant):
    """What is needed and cannot be had is refused by name, and a report says who is trusted."""
    X = np.random.RandomState(0).uniform(-0.5, 0.5, size=(300, 5))
    y = targets(Estimator, X @ [1.0, -0.5, 0.0, 0.0, 0.0])
    model = Estimator(
        privacy=privacy, epsilon=3.0, random_state=0, **{**SETTINGS[Estimator], **variant}
    )
    try:
        with warnings.catch_warnings(action="ignore"):
            model.fit(X, y)
    except PrivacyError:
        with uncharged(f"(?s)(?=.*{privacy}).*use ", PrivacyError):
            model.fit(X, y)
        can = capabilities(privacy)
        assert not (can.selects and can.perturbs)  # a curator refuses nobody
        assert not hasattr(model, "privacy_report_")
        return
    guarantee = model.privacy_report_.guarantee
    assert guarantee.model == privacy
    if not capabilities(privacy).exact:
        assert guarantee.epsilon <= 3.0 * (1.0 + 1e-9)
        assert capabilities(privacy).sentence in str(guarantee)
        assert capabilities(privacy).sentence in str(model.privacy_report_)
    assert np.isfinite(curve(model, X)).all()
    assert str(guarantee) in " ".join(str(model_card(model)).split())


def test_a_sum_costs_what_a_curator_pays_where_all_rows_answer():
    """Estimators plan by what a share divides: the toy is the central model, but for choices."""
    X = np.random.RandomState(0).uniform(-0.5, 0.5, size=(500, 3))
    for Estimator in ESTIMATORS:
        if "n_nonzero_coefs" in VARIANTS[Estimator][0]:
            continue
        settings, y = {**SETTINGS[Estimator], "random_state": 0}, targets(Estimator, X[:, 0])
        models = [Estimator(privacy=name, **settings).fit(X, y) for name in ("central", TOY)]
        reports = [model.privacy_report_ for model in models]
        used = [sum(row.share for row in report.rows) for report in reports]
        assert min(used) > 0.9 and max(used) < 2.0 + 1e-6
        assert reports[0].guarantee.epsilon == pytest.approx(reports[1].guarantee.epsilon)


@every_model
@pytest.mark.parametrize("Policy", [LinUCB, LinSquareCB])
def test_policies_learn_under_every_model_or_say_why_not(privacy, Policy):
    every = "auto" if capabilities(privacy).batches else 10
    policy = Policy(privacy=privacy, epsilon=3.0, update_every=every, random_state=0)
    contexts = np.random.RandomState(0).uniform(-0.5, 0.5, size=(30, 2, 2))
    if not MODELS[privacy].running_sums:
        with pytest.raises(PrivacyError, match="no running sums"):
            policy.act(contexts)
        return
    policy.update(contexts, policy.act(contexts), np.zeros(30))
    assert policy.guarantee.model == privacy


@pytest.mark.parametrize("privacy", ["unheard-of", "Central", ""])
def test_an_unknown_model_is_refused_everywhere(privacy):
    """Nobody is taken to be trusted by default."""
    budget = Budget(1.0, 1e-6)
    with pytest.raises(PrivacyError, match="stated whom it trusts"):
        Trust.of(privacy, budget)
    with pytest.raises(PrivacyError, match="stated whom it trusts"):
        open_session(privacy, *DATA, budget)
    with pytest.raises(PrivacyError, match="stated whom it trusts"):
        open_stream(privacy, None, budget, 1)
    with pytest.raises(PrivacyError, match="stated whom it trusts"):
        Guarantee(privacy, ())
    for Estimator in ESTIMATORS:
        with pytest.raises(ValueError, match="privacy"):
            Estimator(privacy=privacy, **SETTINGS[Estimator]).fit(*DATA)


def test_a_model_that_has_no_session_any_more_is_refused(monkeypatch):
    monkeypatch.delitem(MODELS, TOY)
    with pytest.raises(PrivacyError, match="no session"):
        open_session(TOY, *DATA, Budget(1.0, 1e-6))


def test_a_class_that_names_a_model_must_state_its_capabilities():
    with pytest.raises(TypeError, match="must state its capabilities"):

        class Silent(MODELS["central"]):
            model = "silent"

    with pytest.raises(ValueError, match="has stated other capabilities"):

        class Liar(Toy):
            model, capabilities = "local", Toy.capabilities

    with pytest.raises(ValueError, match="sees_rows"):
        Capabilities("a friend", "budget", 1.0, "trust me")
    with pytest.raises(ValueError, match="divides"):
        Capabilities("nobody", "cake", 1.0, "trust me")


def test_what_a_toy_cannot_do_is_refused_by_the_session():
    """A session that states no choice refuses it, whatever laws its class may have inherited."""
    session = open_session(TOY, *DATA, Budget(1.0, 1e-6), 0, currency="zcdp")

    class Asked:
        name, norm, sensitivity, shape = "asked", "linf", 1.0, (3,)

    with pytest.raises(PrivacyError, match="has no curator that selects.*privacy='central'"):
        session.top(Asked(), 1, 0.5)
    with pytest.raises(PrivacyError, match="has no curator that perturbs.*privacy='central'"):
        session.release(Asked(), 0.5)
    assert session.used == 0.0


@pytest.mark.parametrize("model", [TOY, "shuffle"])
def test_a_law_that_costs_more_than_its_share_is_refused(model, monkeypatch):
    law = MODELS[model]._law
    monkeypatch.setattr(MODELS[model], "_law", lambda *a: GaussianNoise(law(*a).scale / 1.01))
    session = open_session(model, np.zeros((9_000, 1)), np.zeros(9_000), Budget(1.0, 1e-6), 0)
    with pytest.raises(PrivacyError, match="more than its share"):
        session.sum(Total(), 0.5)
    assert session.used == 0.0


def test_a_stream_has_no_law_that_its_model_does_not_state(monkeypatch):
    """The law of a report, for all users of a session, would not be that of a batch."""
    monkeypatch.setattr(Toy, "running_sums", MODELS["local"].running_sums)
    with pytest.raises(NotImplementedError):
        open_stream(TOY, Total(), Budget(1.0, 1e-6), 1)


def test_a_combination_has_the_model_of_its_weakest_part():
    cost = (Cost.from_mu(0.1),)
    strong, weak = Guarantee(TOY, cost, 1e-6), Guarantee("central", cost, 1e-6)
    assert (strong + weak).model == (weak + strong).model == "central"
    assert Guarantee.weakest([strong, Guarantee("local", cost, 1e-6)]).model == TOY
    order = [Guarantee(model, cost, 1e-6) for model in ("central", "aggregate", "shuffle", "local")]
    assert all((a + b).model == a.model for a, b in zip(order, order[1:], strict=False))


@pytest.mark.parametrize("privacy", MODELS)
def test_a_curator_is_whoever_answers_about_rows_and_no_report_needs_one(privacy):
    can = capabilities(privacy)
    assert can.curator == (can.selects or can.perturbs) and not (can.curator and can.reports)
