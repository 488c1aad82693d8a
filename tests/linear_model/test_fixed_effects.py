"""Standard errors by persons and fixed effects, held to linearmodels, and what they do not tell."""

import numpy as np
import pandas as pd
import pytest
from registry.refusals import uncharged
from sklearn.pipeline import make_pipeline

from skpriv.audit import replay
from skpriv.inspection import inference
from skpriv.linear_model import LinearRegression, SSPRegressor
from skpriv.preprocessing import BoundsScaler

PanelOLS = pytest.importorskip("linearmodels.panel").PanelOLS
PooledOLS = pytest.importorskip("linearmodels.panel").PooledOLS

SETTINGS = {"data_norm": 2.0, "bounds_y": (-3.0, 3.0), "max_rows_per_group": 6}


def panel(seed=0, persons=300):
    """Unequal numbers of rows, effects of persons that features go along with, and memory."""
    rng = np.random.RandomState(seed)
    sizes = rng.randint(1, 7, persons)
    person = np.repeat(np.arange(persons), sizes)
    effect = rng.uniform(-1, 1, persons)[person]
    X = np.column_stack([0.2 * effect, np.zeros(len(person))])
    X += rng.uniform(-0.5, 0.5, X.shape)
    noise = rng.uniform(-0.3, 0.3, len(person))
    noise[1:] += 0.5 * noise[:-1]
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame["y"] = X @ [0.5, -0.3] + 0.8 * effect + noise
    frame["person"], frame["time"] = person, np.arange(len(person))
    return frame


def fit(frame, names=("a", "b"), kind=LinearRegression, **settings):
    bounds = {} if kind is SSPRegressor else {"bounds_X": (-1.0, 1.0), "data_norm": None}
    model = kind(**{**SETTINGS, **bounds, **settings})
    return model.fit(frame[list(names)], frame["y"], groups=frame["person"])


def assert_same(found, peer):
    peer = peer.fit(cov_type="clustered", cluster_entity=True, group_debias=True)
    np.testing.assert_allclose(found.estimate, peer.params, rtol=1e-8)
    np.testing.assert_allclose(found.covariance, peer.cov, rtol=1e-8)


both = pytest.mark.parametrize("kind", [SSPRegressor, LinearRegression])


@both
def test_clustered_errors_are_those_of_linearmodels(kind):
    frame = panel()
    found = inference(fit(frame, kind=kind, privacy="none"))
    table = frame.set_index(["person", "time"])
    assert_same(found, PooledOLS(table["y"], table[["a", "b"]].assign(intercept=1.0)))


def test_fixed_effects_are_those_of_linearmodels():
    """Also with a person of six rows, of which one is as far from the mean as bounds allow."""
    frame, values = panel(), ["a", "b", "y"]
    largest = frame.index[frame["person"] == frame["person"].mode()[0]]
    frame.loc[largest, values] = [-1.0, 1.0, -3.0]
    frame.loc[largest[0], values] = [1.0, -1.0, 3.0]
    found = inference(fit(frame, privacy="none", effects="person"))
    table = frame.set_index(["person", "time"])
    assert_same(found, PanelOLS(table["y"], table[["a", "b"]], entity_effects=True))
    assert "slopes within persons" in str(found)


@pytest.mark.parametrize("privacy", ["none", "central"])
def test_columns_that_are_constant_within_persons_are_named(privacy):
    frame = panel(persons=2000)
    frame["born"] = np.random.RandomState(1).uniform(-1, 1, 2000)[frame["person"]]
    model = fit(frame, ("a", "born", "b"), privacy=privacy, epsilon=50.0, effects="person",
                random_state=0)  # fmt: skip
    found = inference(model)
    assert np.isnan(found.estimate).tolist() == [False, True, False]  # and no intercept
    assert "born: constant within persons" in found.reason
    assert found.contrast({"a": 1.0, "b": -1.0}).reason == ""  # born is not in it
    assert abs(model.coef_[1]) < 0.2  # noise around 0
    frame["born"] = 0.0
    assert np.isfinite(inference(fit(frame, privacy="none", effects="person")).std_error).all()


def test_no_level_is_told():
    frame = panel()
    model = fit(frame, effects="person", random_state=0)
    with pytest.raises(ValueError, match="tells no level"):
        model.confidence_interval(frame[["a", "b"]])
    difference = model.predict(frame[["a", "b"]])
    np.testing.assert_allclose(difference, frame[["a", "b"]] @ model.coef_)
    assert model.intercept_ == 0.0
    scaled = make_pipeline(
        BoundsScaler({"a": (-6.0, 4.0), "b": (-4.0, 6.0)}),  # its middles are not 0
        LinearRegression(
            data_norm=1.0, bounds_y=(-4, 4), effects="person", max_rows_per_group=8, random_state=0
        ),
    ).fit(frame[["a", "b"]], frame["y"], linearregression__groups=frame["person"])
    assert inference(scaled).names == ["a", "b"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"max_rows_per_group": 1}, "at least 2"), ({"calibration_size": 0.2}, "calibration_size")],
)
def test_what_has_no_effects_is_refused_uncharged(settings, message):
    with uncharged(message):
        fit(panel(), effects="person", **settings)
    model = LinearRegression(data_norm=1.0, bounds_y=(-1, 1), effects="person")
    with uncharged("needs groups"):
        model.fit(panel()[["a", "b"]], panel()["y"])


def test_a_person_without_any_number_leaves_no_trace():
    """Where nobody else has one either, a public map was kept as it was before its first row."""
    X, persons = np.full((3, 2), 0.5), np.zeros(3, dtype=int)
    bounds = {"bounds_X": (-1.0, 1.0), "bounds_y": (-1.0, 1.0), "max_rows_per_group": 2}
    first, second = (X, X[:, 0], persons), (np.full((3, 2), np.nan), X[:, 0], persons)
    assert replay(lambda: LinearRegression(effects="person", **bounds), first, second).holds
