"""A person with several rows: which are kept, how much noise, what is refused, what it costs."""

from functools import partial

import numpy as np
import pytest
from registry.estimators import ssp
from registry.refusals import uncharged
from registry.totals import Total
from sklearn import config_context
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skpriv
from skpriv import BudgetAccountant
from skpriv.audit import replay
from skpriv.exceptions import PrivacyError
from skpriv.inspection import model_card
from skpriv.linear_model import (
    AdditiveRegressor,
    LinearRegression,
    ReweightedRegressor,
    SSPRegressor,
)
from skpriv.privacy import Budget, Groups, NoiseSource, Query, open_session
from skpriv.records._persons import MeanOfPlaces

M, N = 5, 400
LABELS = np.repeat(np.arange(N // M), M)
BOUNDS = {"bounds_X": (-1.0, 1.0), "bounds_y": (-1.0, 1.0)}
MAKERS = {
    LinearRegression: BOUNDS,
    AdditiveRegressor: {**BOUNDS, "knots": 3},
    SSPRegressor: {"data_norm": 2.0, "bounds_y": (-1, 1)},
    ReweightedRegressor: {"data_norm": 2.0, "bounds_y": (-1, 1)},
}
every_class = pytest.mark.parametrize("Estimator", MAKERS, ids=lambda kind: kind.__name__)


def draw(seed=0):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1.0, 1.0, size=(N, 2))
    return X, np.clip(X @ [0.5, -0.3] + rng.normal(scale=0.1, size=N), -1.0, 1.0)


def pair(kind, rows=slice(0, M)):
    """Two data sets of persons that differ in all rows of one, as far as it goes."""
    X, y = draw()
    X, y, other, answer = X.copy(), y.copy(), X.copy(), y.copy()
    X[rows], y[rows] = (1.0, -1.0), 1.0
    other[rows], answer[rows] = ((1.0, -1.0), -1.0) if kind == "targets" else ((1.0, 1.0), 1.0)
    return (X, y, LABELS), (other, answer, LABELS)


def test_more_places_are_counted_than_noise_hides(monkeypatch):
    """By four deviations: the sum over persons is divided by too few in one fit of 30,000."""
    monkeypatch.setattr(NoiseSource, "add", lambda source, exact, law: exact)
    session = open_session("central", *draw(), Budget(100.0, 1e-6), 0, groups=Groups(LABELS, 2 * M))
    (row,) = session.report.rows
    assert session.sum(Total(), 0.5).n == pytest.approx(N / M / 2 + 4.0 * row.scale, rel=1e-12)


def test_a_person_is_a_record():
    """The noise of a mean is in proportion to the rows that a person may have."""
    X, y = draw()
    scales = []
    for groups in (None, Groups(LABELS, 1), Groups(LABELS, 3), Groups(LABELS, M)):
        session = open_session("central", X, y, Budget(1.0, 1e-6), 0, groups=groups)
        assert session.n == (N if groups is None else N // M)
        answer = session.sum(Total(), 0.5)
        scales.append(answer.noise.scale / answer.n)
        session.sum(Total(), 0.5)
        assert session.report.total.epsilon(1e-6) == pytest.approx(1.0, rel=1e-9)
        assert session.report.size == session.n
    np.testing.assert_allclose(np.array(scales[1:]) / scales[0], M, rtol=0.006)


def test_the_number_of_rows_is_released_and_not_read_off():
    """With half of the places empty means are of the rows that there are, up to a little noise."""
    n, labels = 20_000, np.repeat(np.arange(4_000), M)
    for privacy, slack in (("none", 1e-12), ("central", 0.02)):
        session = open_session(
            privacy, np.zeros((n, 1)), np.full(n, 0.7), Budget(10.0, 1e-6), 0,
            groups=Groups(labels, 2 * M),
        )  # fmt: skip
        answer = session.sum(Total(), 1.0)
        assert answer.value[0] / answer.n == pytest.approx(0.7, rel=slack)
        assert answer.n == pytest.approx(n / M / 2, rel=slack)


@every_class
@pytest.mark.parametrize("kind", ["targets", "rows"])
def test_replacing_a_person_stays_within_the_claim(Estimator, kind):
    # At this budget more than the mean is released.
    options = {"epsilon": 30.0, "random_state": 0, "max_rows_per_group": M, **MAKERS[Estimator]}
    found = replay(lambda: Estimator(**options), *pair(kind))
    assert found.holds, str(found)
    assert found.epsilon > 0.05


def test_half_the_noise_would_break_the_claim(monkeypatch):
    """All rows of a person point the same way: the factor m is needed."""
    make = partial(ssp, random_state=0, data_norm=2.0**0.5, max_rows_per_group=M)
    assert replay(make, *pair("targets")).holds
    total = MeanOfPlaces.sum
    monkeypatch.setattr(MeanOfPlaces, "sum", lambda self, X, y: 2.0 * total(self, X, y))
    assert not replay(make, *pair("targets")).holds


def test_a_pair_of_two_persons_is_refused():
    D, D_prime = pair("targets", rows=slice(0, M + 1))
    for data, groups in (((D[:2], D_prime[:2]), LABELS), ((D, D_prime), None)):
        with pytest.raises(ValueError, match="differ in 2"):
            replay(ssp, *data, groups=groups)


@every_class
def test_the_report_names_the_unit(Estimator):
    X, y = draw()
    model = Estimator(random_state=0, **MAKERS[Estimator])
    with BudgetAccountant(1.0, 1e-6, unit=("person", 3)) as accountant:
        model.fit(X, y, groups=LABELS, max_rows_per_group=3)
    assert accountant.spent.epsilon == pytest.approx(1.0, rel=1e-9)
    report = model.privacy_report_
    assert report.guarantee.unit == "person" and report.unit == "person"
    assert "one person, with all rows" in str(report) and "at most 3 rows" in str(report)
    assert {row.records for row in report.rows} == {N // M} and report.size == N // M
    assert "A record is a person: at most 3 rows" in model_card(model)
    assert skpriv.from_dict(skpriv.to_dict(model)).privacy_report_.unit == "person"
    alone = Estimator(random_state=0, **MAKERS[Estimator]).fit(X, y)
    assert alone.privacy_report_.unit == "record"


BAD = [
    ({"groups": LABELS}, {}, ValueError, "needs max_rows_per_group"),
    ({"max_rows_per_group": 3}, {}, ValueError, "needs groups"),
    ({"groups": LABELS, "max_rows_per_group": 0}, {}, ValueError, "at least 1"),
    ({"groups": LABELS, "max_rows_per_group": 1.5}, {}, ValueError, "at least 1"),
    ({"groups": LABELS[1:], "max_rows_per_group": 1}, {}, ValueError, r"^\D*each row\.$"),
    ({"groups": LABELS[None], "max_rows_per_group": 1}, {}, ValueError, "one label a row"),
    ({"groups": LABELS, "max_rows_per_group": 1}, {"privacy": "local"}, PrivacyError, "central"),
    ({"groups": LABELS, "max_rows_per_group": 1}, {"privacy": "shuffle"}, PrivacyError, "central"),
]


@every_class
@pytest.mark.parametrize(("arguments", "settings", "error", "message"), BAD)
def test_what_cannot_be_protected_is_refused_uncharged(
    Estimator, arguments, settings, error, message
):
    with uncharged(message, error):
        Estimator(**MAKERS[Estimator], **settings).fit(*draw(), **arguments)


def test_streams_and_pure_noise_are_about_rows_alone():
    groups = {"groups": Groups(LABELS, 1)}
    session = open_session("central", *draw(), Budget(1.0, 1e-6), 0, **groups)
    with pytest.raises(PrivacyError, match="not persons"):
        session.stream(Total(), 3)
    with uncharged("protects rows alone", PrivacyError):
        open_session("central", *draw(), Budget(1.0), 0, currency="pure", **groups)


def test_groups_are_routed():
    X, y = draw()
    with config_context(enable_metadata_routing=True):
        model = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), random_state=0).set_fit_request(
            groups=True, max_rows_per_group=True
        )
        pipeline = make_pipeline(FunctionTransformer(), model)
        pipeline.fit(X, y, groups=LABELS, max_rows_per_group=2)
        assert pipeline[-1].privacy_report_.unit == "person"
        found = cross_validate(
            pipeline, X, y, cv=GroupKFold(4), return_estimator=True, error_score="raise",
            params={"groups": LABELS, "max_rows_per_group": 2},
        )  # fmt: skip
    assert all(fit[-1].privacy_report_.rows_per_unit == 2 for fit in found["estimator"])


class Scores(Query):
    """Three coordinates, each bounded by the target."""

    name, shape, norm, sensitivity = "scores", (3,), "linf", 2.0

    def sum(self, X, y):
        return np.outer(np.ones(3), np.clip(y, -1.0, 1.0)).sum(axis=1)


def persons(y):
    groups = Groups(LABELS, M)
    return open_session(
        "central", np.zeros((N, 1)), y, Budget(1.0, 1e-6), 0, currency="zcdp", groups=groups
    )


def test_noise_is_for_all_rows_of_a_person(monkeypatch):
    """A person whose rows all turn over moves an answer by no more than its noise is for."""
    exact, laws = [], []
    for person in (1.0, -1.0):
        session = persons(np.append(np.full(M, person), np.full(N - M, 0.1)))
        monkeypatch.setattr(
            session._source,
            "add",
            lambda value, law: exact.append(value) or laws.append(law) or value,
        )
        session.sum(Total(), 1.0)
    cost = laws[0].cost(float(np.abs(exact[0] - exact[1]).max()))
    assert 0.0 < cost.amount("zcdp") <= Budget(1.0, 1e-6).rho * (1.0 + 1e-9)


def test_no_selection_is_made_with_the_noise_of_one_row():
    with pytest.raises(PrivacyError, match="not about persons"):
        persons(np.full(N, 0.1)).top(Scores(), 1, 1.0)


def test_the_report_names_the_column_of_persons_where_labels_have_one():
    pd = pytest.importorskip("pandas")
    X = np.zeros((40, 2))
    labels = np.repeat(np.arange(20), 2)
    for name in ("patient", None):
        model = ssp().fit(X, X[:, 0], groups=pd.Series(labels, name=name), max_rows_per_group=2)
        assert ("column 'patient'" in str(model.privacy_report_)) == (name is not None)
        assert model.privacy_report_.to_dict()["person_column"] == (name or "")
