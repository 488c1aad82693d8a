"""Models as plain values: they predict as before, and hold nothing of the rows."""

import copy
import json
import re

import numpy as np
import pandas as pd
import pytest
from registry.estimators import ESTIMATORS, VARIANTS, bounded, line_data, ssp, targets
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from skpriv import BudgetAccountant, from_dict, linear_model, load, save, to_dict
from skpriv._codec import MOST_SHOWN, parsed, to_json, write_whole
from skpriv.bandits import LinUCB
from skpriv.linear_model import IHTRegressor, LayeredRegressor, ReweightedRegressor, SSPRegressor
from skpriv.preprocessing import Boolean, BoundsScaler, Categorical, Numeric, Schema, TableEncoder

N, FITTED = 1009, {}
CASES = [
    *((kind, name, VARIANTS[kind][0]) for kind, names in ESTIMATORS.items() for name in names),
    (ReweightedRegressor, "central", {"solver": "sgd", "link": "logit"}),
    (IHTRegressor, "central", {"sparsity": 2}),
    (LayeredRegressor, "local", {"variant": "paper"}),
]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def fitted(Estimator, privacy, params):
    """The model of a case, which is fitted once."""
    key = Estimator, privacy, repr(params)
    if key not in FITTED:
        X, y = line_data(N)
        model = bounded(Estimator, privacy=privacy, random_state=12345, **params)
        FITTED[key] = model.fit(X, targets(Estimator, y))
    return copy.deepcopy(FITTED[key])


@pytest.mark.parametrize("Estimator, privacy, params", CASES)
def test_a_model_that_was_written_predicts_as_before_and_has_no_row(Estimator, privacy, params):
    X, y = line_data(N)
    y, model = targets(Estimator, y), fitted(Estimator, privacy, params)
    text = to_json(model)
    again = from_dict(parsed(text))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert str(again.privacy_report_) == str(model.privacy_report_)
    assert to_dict(again) == to_dict(model)
    for method in ("certified", "asymptotic"):
        np.testing.assert_equal(*(interval(one, X[:5], method) for one in (again, model)))
    written = {float(number) for number in NUMBER.findall(text)}
    known = X if is_classifier(model) else np.append(X, y)
    assert not written & {*known.ravel(), *np.abs(known).ravel()}
    assert 12345 not in written, "the seed gives the noise away"


def interval(model, X, method):
    """An interval, or in which words it is refused; a class may have none at all."""
    try:
        return tuple(model.confidence_interval(X, method=method))
    except (AttributeError, ValueError, NotImplementedError) as error:
        return str(error)


TABLE = pd.DataFrame({"age": [31.5, 48.25, None], "sex": ["M", "F", "hidden"], "y": [0, 1, 1]})
SCHEMA = Schema({"age": Numeric(0, 120, missing="indicator"), "sex": Categorical(["F", "M"])})


def test_a_pipeline_of_a_table():
    model = make_pipeline(
        TableEncoder(SCHEMA), SSPRegressor(data_norm=1.0, bounds_y=(0, 1), random_state=0)
    )
    model.fit(TABLE, TABLE["y"])
    text = to_json(model)
    again = from_dict(json.loads(text))
    np.testing.assert_array_equal(again.predict(TABLE), model.predict(TABLE))
    assert again[0].schema == SCHEMA and list(again.named_steps) == list(model.named_steps)
    for value in ("31.5", "48.25", "hidden"):
        assert value not in text


def test_files(tmp_path):
    X, y = line_data(N)
    model, path = (ssp(random_state=0).fit(X, y), tmp_path / "model.json")
    save(model, path)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        save(model, path)
    save(model, path, overwrite=True)
    np.testing.assert_array_equal(load(path).predict(X), model.predict(X))


def test_a_file_that_is_not_written_to_its_end_leaves_the_old_one(tmp_path, monkeypatch):
    X, y = line_data(N)
    model, path = (ssp(random_state=0).fit(X, y), tmp_path / "model.json")
    save(model, path)

    def full(_):
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        save(model.fit(X, -y), path, overwrite=True)
    with pytest.raises(OSError, match="no space left"):
        save(model, tmp_path / "new.json")
    assert list(tmp_path.iterdir()) == [path]
    np.testing.assert_array_equal(load(path).predict(X), ssp(random_state=0).fit(X, y).predict(X))


@pytest.mark.parametrize("links", [True, False])
def test_a_name_is_taken_by_a_whole_file_or_by_none(tmp_path, monkeypatch, links):
    """Also where a file system has no links; nobody's file is replaced by one of the same name."""
    path = tmp_path / "model.json"

    def fails(*_):
        raise OSError("not supported")

    if not links:
        monkeypatch.setattr("pathlib.Path.hardlink_to", fails)
    write_whole({path: b"first"}, overwrite=False)
    with pytest.raises(FileExistsError):
        write_whole({path: b"second"}, overwrite=False)
    assert path.read_bytes() == b"first" and list(tmp_path.iterdir()) == [path]
    path.unlink()
    monkeypatch.setattr("pathlib.Path.hardlink_to", fails)
    monkeypatch.setattr("pathlib.Path.replace", fails)
    with pytest.raises(OSError, match="not supported"):
        write_whole({path: b"third"}, overwrite=False)
    assert not list(tmp_path.iterdir())


def test_threads_write_one_path_each_by_its_own_parts(tmp_path, monkeypatch):
    model = ssp().fit(*line_data(50))
    path = tmp_path / "model.json"

    def meanwhile(descriptor):
        monkeypatch.undo()
        save(model, path)

    monkeypatch.setattr("os.fsync", meanwhile)
    save(model, path, overwrite=True)
    assert load(path).predict([[0.0] * model.n_features_in_]).size == 1
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("size, is_list", [(MOST_SHOWN, True), (MOST_SHOWN + 1, False)])
def test_large_arrays_are_written_as_bytes(size, is_list):
    """As numbers, the matrices of 20 classes and 20 features are more than a file may have."""
    model = ssp().fit(*line_data(N))
    model.extra_ = np.random.default_rng(0).normal(size=size)
    text = to_json(model)
    assert isinstance(parsed(text)["model"]["fitted"]["extra_"]["array"], list) == is_list
    np.testing.assert_array_equal(from_dict(parsed(text)).extra_, model.extra_)


def test_long_numbers_are_written_as_they_are_read():
    model = ssp(bounds_y=(np.longdouble(-1), np.longdouble(1))).fit(*line_data(N))
    assert from_dict(parsed(to_json(model))).bounds_y == (-1.0, 1.0)


def test_a_bounds_scaler():
    scaler = BoundsScaler({"age": (0, 120)}).fit(TABLE[["age"]].fillna(0))
    again = from_dict(to_dict(scaler))
    row = pd.DataFrame({"age": [30.0]})
    np.testing.assert_array_equal(again.transform(row), scaler.transform(row))


def test_plain_values_are_json_of_any_order():
    X, y = line_data(N)
    model = fitted(LayeredRegressor, "central", {})
    text = json.dumps(to_dict(model), allow_nan=False, sort_keys=True)
    again, expected = from_dict(json.loads(text)), model.confidence_interval(X)
    np.testing.assert_array_equal(again.confidence_interval(X), expected)


def test_the_guarantee_stands_at_the_top():
    model = ssp(random_state=0)
    plain = to_dict(model.fit(*line_data(N)))
    assert plain["format"] == 1 and "epsilon=1" in plain["guarantee"]
    exact = parsed(to_json(model.set_params(epsilon=np.inf).fit(*line_data(N))))
    assert "no privacy" in exact["guarantee"] and from_dict(exact).epsilon == np.inf


def test_an_accountant_is_not_written():
    X, y = line_data(N)
    with BudgetAccountant(2.0, 1e-6) as accountant:
        model = ssp(random_state=0)
        model.__setstate__(model.__getstate__())
        text = to_json(model.fit(X, y))
    assert "ccountant" not in text and str(accountant.ledger.path) not in text
    assert from_dict(parsed(text)).coef_.shape == (3,)


def test_what_cannot_be_written():
    with pytest.raises(NotFittedError):
        to_dict(ssp())
    X, y = line_data(N)
    with pytest.raises(TypeError, match="class Ridge.*a file holds"):
        to_dict(make_pipeline(Ridge()).fit(X, y))

    model = ssp(random_state=0).fit(X, y)
    model.alpha = lambda: 0.0
    with pytest.raises(TypeError, match="class function.*a file holds"):
        to_dict(model)


def test_answers_that_another_version_did_not_ask_are_missed_when_it_is_read():
    """Not when an interval is asked for: predictions alone would seem to work."""
    X = np.linspace(-1.0, 1.0, 2000)[:, None]
    model = linear_model.LinearRegression(data_norm=1.0, bounds_y=(-1, 1), random_state=0)
    text = to_json(model.fit(X, X[:, 0]))
    assert '"slope"' in text
    with pytest.raises(ValueError, match="no 'slope' of a ScoreEquation.*or fit again"):
        from_dict(json.loads(text.replace('"slope"', '"excesses"')))
    older = json.loads(text.replace('"max_weight"', '"unknown"'))  # which has a default
    assert from_dict(older).privacy_report_.max_weight is None


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda plain: [], "not a model of skpriv"),
        (lambda plain: {}, "not a model of skpriv"),
        (lambda plain: {**plain, "format": 99}, "format 99"),
        (lambda plain: {**plain, "model": {}}, "damaged"),
        (lambda plain: {**plain, "model": {"object": "os.system", "state": {}}}, "no class that"),
    ],
)
def test_improper_values_are_refused(change, message):
    plain = to_dict(fitted(SSPRegressor, "central", {}))
    with pytest.raises(ValueError, match=message):
        from_dict(change(plain))


def test_a_policy_is_sent_to_its_own_file():
    with pytest.raises(TypeError, match=r"policy\.save"):
        to_dict(LinUCB())
    for text in ("{", b"\x80"):
        with pytest.raises(ValueError, match="not JSON.*a reader of their own"):
            parsed(text)


def test_checks_of_a_dataclass_are_done_again():
    schema = Schema({"age": Numeric(0, 120), "ill": Boolean()})
    encoder = TableEncoder(schema).fit(pd.DataFrame({"age": [1], "ill": [True]}))
    text = to_json(encoder).replace("120.0", "-120.0")
    with pytest.raises(ValueError, match="below"):
        from_dict(parsed(text))
