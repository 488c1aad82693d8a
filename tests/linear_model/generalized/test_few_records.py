"""Two classes with few records: shrunk slopes, and no standard errors."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import skpriv
from skpriv._estimation._links import Logit
from skpriv._estimation._loop._rows import Whitened
from skpriv._estimation._loop._rules import Rules
from skpriv._estimation._loop._score import ScoreQuery
from skpriv._estimation._public_maps import RowMap
from skpriv.inspection import inference
from skpriv.linear_model import LinearRegression, LogisticRegression
from skpriv.linear_model._generalized._labels import ClassTarget
from skpriv.privacy import ROUNDING

COEF = np.array([4.0, -4.0, 2.0, 1.0])


def data(n, seed):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1.0, 1.0, (n, 4))
    return X, (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-X @ COEF))).astype(int)


def fitted(n, seed, **settings):
    settings = {"classes": (0, 1), "bounds_X": (-1, 1), "random_state": seed, **settings}
    return LogisticRegression(**settings).fit(*data(n, seed))


def test_slopes_are_asked_and_are_not_behind_a_line():
    """The truth has an AUC of .94, and a fit of the rate alone one of .5. Over 8 fits each."""
    X, y = data(5000, 99)
    found = {}
    for n in (200, 300, 400, 600):
        curves = [roc_auc_score(y, fitted(n, seed).decision_function(X)) for seed in range(8)]
        lines = [
            roc_auc_score(
                y,
                LinearRegression(bounds_X=(-1, 1), bounds_y=(0, 1), random_state=seed)
                .fit(*data(n, seed))
                .predict(X),
            )
            for seed in range(8)
        ]
        found[n] = np.mean(curves), np.mean(lines)
    assert found[200][0] > 0.88 and found[400][0] > 0.91, found
    assert all(curve > line - 0.01 for curve, line in found.values()), found
    assert found[200][0] < found[300][0] < found[400][0], found


def test_the_questions_are_a_rate_and_eight_steps():
    report = fitted(300, 0).privacy_report_
    assert [row.query for row in report.rows] == ["mean of the target", *["scores"] * 8]
    assert sum(float(row.share) for row in report.rows) == pytest.approx(1.0)
    assert "have no intervals and coefficients no standard errors" in str(report)


def test_what_clips_would_bias_is_not_told():
    """Cut residuals make another curve, whose coefficients are no log-odds."""
    model = fitted(300, 0)
    assert model.coef_.any()
    assert np.isnan(inference(model).std_error).all()
    low, high = model.confidence_interval(data(5, 1)[0])
    assert not low.any() and (high == 1.0).all()
    with pytest.raises(ValueError, match="no start"):
        model.as_start()
    copy = skpriv.from_dict(skpriv.to_dict(model))
    np.testing.assert_array_equal(copy.coef_, model.coef_)


def test_below_forty_effective_records_the_rate_is_asked_alone():
    assert not fitted(140, 0).coef_.any()
    assert Rules.of(200, 5, 39.0, link=Logit()).mean_only
    rules = Rules.of(200, 5, 41.0, link=Logit())
    assert rules.few_records and not rules.mean_only and not rules.whitening and not rules.line
    assert not Rules.of(500, 5, 101.0, link=Logit()).few_records


@pytest.mark.parametrize("rate", [0.5, 0.2, 0.97])
def test_a_clipped_logit_declares_the_sensitivity_of_any_clipped_score(rate):
    """No residual of a fit near the rate is cut."""
    link = Logit().of_few(rate)
    assert link.limit == min(1.0, 1.1 * max(rate, 1.0 - rate))
    rows = Whitened(RowMap(None, None, 1.0, True, 2), np.eye(3))
    query = ScoreQuery(rows, ClassTarget((0.0, 1.0)), 0.0, np.zeros(3), link.limit, link, True)
    full = link.limit == 1.0
    assert query.sensitivity == (2.0 if full else np.sqrt(4.25)) * ROUNDING
    assert query.weights["slope"] == (1.0 if full else 0.5)
