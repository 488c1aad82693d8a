"""More than two classes: exactness, labels, charges, accuracy, intervals, persons."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression as Reference

import skpriv
from skpriv import BudgetAccountant
from skpriv.inspection import inference, model_card
from skpriv.linear_model import LogisticRegression
from skpriv.linear_model._generalized._classes import Softmax, contrasts
from skpriv.linear_model._generalized._labels import checked_classes, class_codes

NAMES = np.array(["a", "b", "c"])
COEF = np.array([[1.0, 0.5], [-1.0, 1.0], [0.0, -1.5]])
INTERCEPT = np.array([0.3, 0.0, -0.3])


def data(n=4000, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    likely = special.softmax(X @ COEF.T + INTERCEPT, axis=1).cumsum(axis=1)
    return X, (likely < rng.uniform(size=n)[:, None]).sum(axis=1)


def make(**settings):
    return LogisticRegression(
        **{"bounds_X": (-1.0, 1.0), "classes": (0, 1, 2), "random_state": 0, **settings}
    )


def test_what_is_not_fitted_says_so():
    X, _ = data(5)
    for method in ("predict", "predict_proba", "decision_function", "confidence_interval",
                   "prediction_set"):  # fmt: skip
        with pytest.raises(NotFittedError):
            getattr(make(), method)(X)


def test_without_privacy_its_standard_errors_are_the_sandwich():
    sm = pytest.importorskip("statsmodels.api")
    X, y = data()
    found = inference(make(privacy="none").fit(X, y))
    fit = sm.MNLogit(y, np.column_stack([X, np.ones(len(X))])).fit(disp=0, cov_type="HC0")
    for k, name in enumerate(("x0", "x1", "intercept")):
        for other in (1, 2):  # against the first class
            pair = found.contrast({f"{other}: {name}": 1.0, f"0: {name}": -1.0})
            params, errors = (np.asarray(v)[k, other - 1] for v in (fit.params, fit.bse))
            np.testing.assert_allclose(pair.estimate[0], params, atol=1e-6)
            np.testing.assert_allclose(pair.std_error[0], errors, rtol=2e-3)


def test_the_order_of_the_classes_does_not_matter():
    X, y = data()
    first = make(privacy="none").fit(X, y)
    other = make(privacy="none", classes=(2, 0, 1)).fit(X, y)
    np.testing.assert_allclose(other.coef_, first.coef_[[2, 0, 1]], atol=1e-9)
    two, turned = (make(classes=c, privacy="none").fit(X, y == 1) for c in ((0, 1), (1, 0)))
    np.testing.assert_allclose(two.coef_, -turned.coef_, atol=1e-9)


@pytest.mark.parametrize("privacy", ["central", "shuffle"])
def test_the_report_adds_up_and_the_fit_can_be_written(privacy):
    X, y = data(2000)
    part = (5.0, 1e-4) if privacy == "shuffle" else None
    with BudgetAccountant(10.0, 1e-3, set_aside=part) as accountant:
        model = make(privacy=privacy).fit(X, y)
    assert len(accountant.charges) == 1
    assert sum(row.share for row in model.privacy_report_.rows) == pytest.approx(1.0)
    copy = skpriv.from_dict(skpriv.to_dict(model))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert np.isfinite(model.coef_).all()
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-9)
    assert "0, 1, 2" in str(model_card(model))


def test_few_records_have_rates_and_no_coefficients():
    X, y = data(60)
    model = make().fit(X, y)
    assert not model.coef_.any() and np.isfinite(model.predict_proba(X)).all()
    assert "rates of the classes" in str(model.privacy_report_)
    assert np.isnan(inference(model).std_error).all()
    low, high = model.confidence_interval(X)
    assert not low.any() and (high == 1.0).all()


def test_intervals_contain_probabilities_and_sets_hold_labels():
    X, y = data(20_000)
    model = make(calibration_size=0.3, epsilon=3.0).fit(X[:10_000], y[:10_000])
    low, high = model.confidence_interval(X[:50])
    proba = model.predict_proba(X[:50])
    assert low.shape == (50, 3)
    assert ((0.0 <= low) & (low <= proba) & (proba <= high) & (high <= 1.0)).all()
    found = model.prediction_set(X[10_000:], 0.9)
    held = found[np.arange(10_000), y[10_000:]].mean()
    assert held >= 0.89 and found.shape == (10_000, 3)


@pytest.mark.slow  # its ingredients, errors and levels, are tested beside it
@pytest.mark.parametrize("people", [{}, {"groups": np.arange(20_000) // 4}], ids=["rows", "people"])
def test_intervals_cover_coefficients_and_probabilities(people):
    """Of 20 fits with 9 coefficients each fewer than .88 are inside once in thousands."""
    inside, told, points = [], [], np.array([[0.5, -0.5], [-0.8, 0.3]])
    truth = np.column_stack([COEF, INTERCEPT])
    truth -= truth.mean(axis=0)
    curve = special.softmax(points @ COEF.T + INTERCEPT, axis=1)
    for seed in range(8):
        X, y = data(20_000, seed)
        more = {**people, "max_rows_per_group": 4} if people else {}
        model = make(epsilon=3.0, random_state=seed).fit(X, y, **more)
        found = inference(model)
        inside += ((found.low < truth.ravel()) & (truth.ravel() < found.high)).tolist()
        low, high = model.confidence_interval(points)
        told += ((low < curve) & (curve < high)).ravel().tolist()
    assert found.names[0] == "0: x0" and found.names[-1] == "2: intercept"
    assert np.mean(inside) >= 0.85 and np.mean(told) >= 0.8


def test_the_proof_of_the_joint_score_is_tight_in_its_weight():
    """Its function f is nowhere above 0, and is for a weight of the slopes that is larger by 3%."""
    P = np.linspace(0.0, 0.5, 100_001)

    def most(c):
        return (-2.0 * P + P**2 / 2.0 + c**2 * np.minimum(16.0 * P**2, 1.0)).max()

    assert most(Softmax.slope_weight) <= 0.0 < most(1.03 * Softmax.slope_weight + 0.01)


def test_a_contrast_of_classes_says_what_it_compares():
    X, y = data()
    found = inference(make(classes=NAMES, privacy="none").fit(X, NAMES[y]))
    assert found.estimand.startswith("log-odds of each class against the geometric mean")
    between = found.contrast({"a: x0": 1.0, "b: x0": -1.0})
    assert "geometric mean" not in str(between)
    assert between.estimand.startswith("log-odds of classes against each other")
    rate = Reference(C=np.inf, tol=1e-10).fit(X[y < 2], y[y < 2])  # b against a
    assert between.estimate == pytest.approx(-rate.coef_[0, :1], abs=0.2)
    alone = found.contrast([{"a: x0": 1.0}.get(name, 0.0) for name in found.names])
    assert alone.estimand.startswith("weighted sums of log-odds of each class against the geo")
    crossed = found.contrast({"a: x0": 1.0, "b: x1": -1.0})  # each mean stays
    assert crossed.estimand == alone.estimand
    assert between.contrast([2.0]).estimand == between.estimand


@pytest.mark.parametrize("labels", [("No, never", "Yes, often"), ("odds", "rate"), ("a: b", "")])
def test_the_head_names_labels_as_they_are(labels):
    """Sentences that hold labels are not cut at their commas, and are searched for no words."""
    X, y = data()
    inside = y < 2
    model = make(classes=labels, privacy="none").fit(X[inside], np.array(labels)[y[inside]])
    found = inference(model)
    words = f"log-odds of {labels[1]} against {labels[0]}"
    # Lines are wrapped, so that an empty label leaves one blank
    assert str(found).splitlines()[0].endswith(" ".join(words.split()))
    assert found.ratio_name == "odds ratio"
    assert found.estimand.endswith(", by the logistic curve of maximum likelihood")


def test_contrasts_are_orthonormal_and_across_the_ones():
    for K in (2, 3, 7):
        Q = np.column_stack([np.ones(K) / np.sqrt(K), contrasts(K)])
        np.testing.assert_allclose(Q.T @ Q, np.eye(K), atol=1e-12)


def test_one_label_of_a_list_does_not_change_how_the_others_are_read():
    """NumPy makes text of all numbers that stand in a list beside one text."""
    for first in (1, "x"):
        assert class_codes([first, 1, 2], np.array(["1", "2"]), 3)[1:].tolist() == [0.0, 1.0]
    # A number that equals two classes, as a double, is the last of them
    assert class_codes(np.array([2.0**53]), 2**53 + np.arange(-1, 2), 1) == 2.0


LABELS = ["yes", "no ", "ye\u0301s", "none", None, "no"]


@pytest.mark.parametrize("kind", [list, np.array, partial(np.array, dtype=object), pd.Series])
def test_a_label_is_a_class_however_it_is_written(kind):
    labels = LABELS if kind is not np.array else [label or "" for label in LABELS]
    found = class_codes(kind(labels), np.array(["no", "yes", "y\u00e9s", "none"]), len(labels))
    assert found.tolist() == [1.0, 0.0, 2.0, 3.0, 4.0, 0.0]
    with pytest.raises(ValueError, match="different labels"):
        checked_classes(["yes", "yes "])


@pytest.mark.parametrize("row", [lambda label: [label], lambda label: (label,), np.atleast_1d])
@pytest.mark.parametrize("other", ["x", None, [1, 2], [], np.zeros((2, 2)), np.ma.masked, 1.5])
def test_one_label_of_a_column_does_not_change_how_the_others_are_read(row, other):
    """Of a list of rows of one label NumPy makes no column if one of them has another shape."""
    labels = [row(label) for label in (0, 1, 1, 0)]
    np.testing.assert_array_equal(class_codes(labels, np.array([0, 1]), 4), [0.0, 1.0, 1.0, 0.0])
    labels[1] = other
    found = class_codes(labels, np.array([0, 1]), 4)
    np.testing.assert_array_equal(found, [0.0, 2.0, 1.0, 0.0])
