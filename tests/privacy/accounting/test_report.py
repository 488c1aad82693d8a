"""The report: public facts only, as text and HTML."""

import json
import pickle
import re
import sys

import numpy as np
import pandas as pd
import pytest
from registry.estimators import iht, ssp
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skpriv import Budget
from skpriv.preprocessing import BoundsScaler, Numeric, TableEncoder
from skpriv.privacy import Query, open_session
from skpriv.privacy._accounting._report import HEADERS


class Total(Query):
    """Sum of y, with a name that HTML must escape."""

    name, shape, sensitivity = "total <y>", (1,), 2.0

    def sum(self, X, y):
        return np.array([y.sum()])


def _report(privacy, random_state=0, shares=(0.25, 0.75)):
    y = np.full(400, 0.7310585)
    session = open_session(
        privacy, np.zeros((400, 1)), y, Budget(1.5, 1e-6), random_state, "Who", smallest_share=0.2
    )
    answers = [session.sum(Total(), share) for share in shares]
    return session.report, answers


@pytest.mark.parametrize("privacy", ["central", "local", "shuffle", "none"])
@pytest.mark.parametrize("random_state", [None, 0])
def test_text(privacy, random_state):
    report, _ = _report(privacy, random_state)
    lines = str(report).splitlines()
    assert repr(report) == str(report)
    assert len(lines) == 6
    priced = ["epsilon"] if privacy == "shuffle" else ["mu"]
    assert re.split(r"\s{2,}", lines[1]) == [*HEADERS[:-1], *priced]
    assert all(line.startswith("total <y>") for line in lines[2:4])
    if privacy == "none":
        assert lines[0] == "Who: no privacy: the answers are exact"
    else:
        assert "(epsilon=1.5, delta=1e-06)" in lines[0]
        assert "replacing one record" in lines[0]
        total = "epsilon = 1.5" if privacy == "shuffle" else f"mu = {Budget(1.5, 1e-6).mu:.4g}"
        assert f"total {total}" in lines[-1]
    assert ("users" in lines[4]) == (privacy in ("local", "shuffle"))  # what a share is a part of
    trusted = {"central": "trusted curator", "shuffle": "trusted shuffler", "local": "local"}
    assert trusted.get(privacy, "") in lines[0]
    assert ("not for release" in lines[-1]) == (random_state == 0 and privacy != "none")


def test_queries_that_print_alike_are_one_line():
    report, _ = _report("central", shares=(0.2, 0.2, 0.2, 0.4))
    lines = str(report).splitlines()
    assert [line.split("  ")[0] for line in lines[2:4]] == ["total <y> (x 3)", "total <y>"]
    assert lines[4].startswith("(x k): asked k times") and len(lines) == 6
    assert len(report.to_frame()) == 4
    page = report._repr_html_()
    assert page.count("<tr>") == 3 and "(x 3)" in page and "(x k)" in page
    assert "total &lt;y&gt;" in page and "total <y>" not in page


@pytest.mark.parametrize("privacy", ["central", "local", "shuffle", "none"])
def test_no_answer_is_in_the_report(privacy):
    report, answers = _report(privacy)
    kept = [str(report), report._repr_html_(), repr(report.rows)]
    for answer in answers:
        for digits in (f"{answer.value[0]:.3f}", f"{answer.value[0]:.4g}"):
            assert not any(digits in text for text in kept)


def test_rows_are_the_queries_in_order():
    report, answers = _report("local")
    assert [row.share for row in report.rows] == [0.25, 0.75]
    assert [row.records for row in report.rows] == [100, 300]
    assert [row.scale for row in report.rows] == [answer.noise.scale for answer in answers]
    assert {row.sensitivity for row in report.rows} == {2.0}
    frame = report.to_frame()
    assert tuple(frame.columns) == HEADERS
    for name in ("query", "sensitivity", "share"):
        assert list(frame[name]) == [getattr(row, name) for row in report.rows]


def test_a_fit_in_a_pipeline_says_that_it_covers_the_last_step_alone():
    X, y = np.linspace(-1.0, 1.0, 60).reshape(30, 2) / 2.0, np.zeros(30)
    pipeline = make_pipeline(StandardScaler(), ssp(random_state=0)).fit(X, y)
    alone = ssp(random_state=0).fit(X, y)
    nested = make_pipeline(StandardScaler(), BaggingRegressor(ssp(random_state=0), 2))
    for report, said in (
        (pipeline[-1].privacy_report_, True),
        (pickle.loads(pickle.dumps(pipeline[-1])).privacy_report_, True),
        (nested.fit(X, y)[-1].estimators_[0].privacy_report_, True),
        (alone.privacy_report_, False),
    ):
        assert ("last step of the Pipeline" in str(report)) == said
        assert ("last step of the Pipeline" in report._repr_html_()) == said


def test_steps_that_learn_nothing_are_covered():
    X, y = np.linspace(-1.0, 1.0, 60).reshape(30, 2) / 2.0, np.zeros(30)
    X = pd.DataFrame(X, columns=["a", "b"])
    model = ssp(random_state=0)
    schema = {"a": Numeric(-1.0, 1.0), "b": Numeric(-1.0, 1.0)}
    for steps, alone in (
        ((BoundsScaler(),), False),
        ((TableEncoder(schema),), False),
        ((ColumnTransformer([("all", BoundsScaler(), ["a", "b"])]),), False),
        (("passthrough", None), False),
        ((ColumnTransformer([("a", BoundsScaler(), ["a"])], remainder=StandardScaler()),), True),
        ((StandardScaler(), BoundsScaler()), True),
        ((FunctionTransformer(np.tanh),), True),  # of which nobody knows
    ):
        pipeline = make_pipeline(*steps, model).fit(X, y)
        assert bool(pipeline[-1].privacy_report_.pipeline) == alone
        inner = make_pipeline("passthrough", make_pipeline(*steps, model)).fit(X, y)
        assert bool(inner[-1][-1].privacy_report_.pipeline) == alone
        outer = make_pipeline(*steps, make_pipeline("passthrough", model)).fit(X, y)
        assert bool(outer[-1][-1].privacy_report_.pipeline) == alone


@pytest.mark.parametrize(
    "model",
    [
        ssp(random_state=0),
        ssp(privacy="local", delta=0.0, epsilon=2.0, random_state=0),
        iht(n_nonzero_coefs=1, random_state=0),
    ],
)
def test_an_independent_accountant_reads_the_same_epsilon_from_the_events(model):
    dp = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    X = np.linspace(-1.0, 1.0, 500)[:, None]
    report = model.fit(X, X[:, 0]).privacy_report_
    event, relation = report.to_dp_event(), dp.NeighboringRelation.REPLACE_ONE
    kind = RdpAccountant if "ZCDp" in str(event) else PLDAccountant
    accountant = kind(neighboring_relation=relation)
    accountant.compose(event)
    assert accountant.get_epsilon(report.guarantee.delta) == pytest.approx(model.epsilon, rel=1e-4)
    plain = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert plain["epsilon"] == model.epsilon and plain["neighbours"] == "replace one"
    assert [row["query"] for row in plain["mechanisms"]] == [row.query for row in report.rows]


def test_an_event_without_its_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    X = np.linspace(-1.0, 1.0, 500)[:, None]
    report = ssp(random_state=0).fit(X, X[:, 0]).privacy_report_
    with pytest.raises(ImportError, match=r"to_dp_event needs dp_accounting.*skpriv\[accounting\]"):
        report.to_dp_event()


def test_what_has_no_event_is_refused_and_exact_answers_promise_nothing():
    X = np.linspace(-1.0, 1.0, 500)[:, None]
    exact = ssp(privacy="none").fit(X, X[:, 0])
    assert exact.privacy_report_.to_dict()["epsilon"] is None
    shuffled = ssp(privacy="shuffle", random_state=0)
    for model in (exact, shuffled.fit(X, X[:, 0])):
        with pytest.raises(ValueError, match="to_dict"):
            model.privacy_report_.to_dp_event()
