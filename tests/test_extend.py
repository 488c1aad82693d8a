"""Estimators of other packages: the how-to's own, checked, saved and read from outside."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import skpriv
from skpriv import extend
from skpriv.linear_model import SSPRegressor

ESTIMATOR = '''
import numpy as np
from skpriv.extend import (
    ROUNDING, Positive, PrivateRegressor, Query, fit_context, open_fit, parameters, register,
    scaled_rows,
)


class TargetTotal(Query):
    name, shape, sensitivity = "total of the targets", (1,), 2.0 * ROUNDING

    def __init__(self, maps):
        self.maps = maps

    def sum(self, X, y):
        return np.array([self.maps.target(y).sum()])


@register
@parameters
class MeanRegressor(PrivateRegressor):
    """The mean of y, whatever the features are."""

    data_norm: Positive = 1.0

    fit_intercept = True

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        rows, maps = scaled_rows(self, X, y)
        session = open_fit(self, rows)
        del X, y, rows
        answer = session.sum(TargetTotal(maps), 1.0)
        self.mean_ = float(maps.unscale(answer.value[0] / answer.n))
        return self

    def predict(self, X):
        return np.full(len(self._points(X)), self.mean_)
'''


SAID = """
try:
    load(sys.argv[3])
except Exception as error:
    print(error)
"""


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A package of its own, beside skpriv."""
    package = tmp_path / "means"
    package.mkdir()
    (package / "__init__.py").write_text(ESTIMATOR, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("means", None)


def test_an_estimator_of_another_package_is_checked_saved_and_read(outside):
    from means import MeanRegressor, TargetTotal

    extend.check_estimator(MeanRegressor(bounds_y=(-1, 1), random_state=0))
    X, y = np.zeros((400, 2)), np.linspace(-1, 1, 400)
    model = MeanRegressor(bounds_y=(-1, 1), random_state=0).fit(X, y)
    path = outside / "model.json"
    skpriv.save(model, path)
    assert skpriv.load(path).mean_ == model.mean_
    ours = outside / "ours.json"
    skpriv.save(SSPRegressor(data_norm=1.0, bounds_y=(-1, 1)).fit(X, y), ours)
    # Without pandas, which no file of a model needs, and which takes a second to load.
    read = "import sys; sys.modules['pandas'] = None; sys.path.insert(0, sys.argv[1]); "
    read += f"from skpriv import load; print(type(load(sys.argv[2])).__name__)\n{SAID}"
    command = [sys.executable, "-c", read, str(outside), str(ours), str(path)]
    alone = subprocess.run(command, capture_output=True, text=True)
    kind, unread = alone.stdout.splitlines()
    assert kind == "SSPRegressor"  # whose room has not been imported before
    assert "import the package" in unread  # a file imports nothing by itself
    _, maps = extend.scaled_rows(MeanRegressor(bounds_y=(-1, 1)), X, y)
    ratio, _, _ = extend.worst_pair(TargetTotal(maps), 2, n_tries=200)
    assert 0.99 <= ratio <= 1.0


def test_without_assertions_nothing_is_checked():
    """Python with -O takes them out: a program of its own would compile all that it imports."""
    source, names = Path(extend.__file__), {**vars(extend)}
    exec(compile(source.read_text("utf-8"), source.name, "exec", optimize=1), names)
    with pytest.raises(RuntimeError, match="leave it out"):
        names["check_estimator"](None)


class Wrong(extend.Query):
    """Twice what is declared."""

    name, shape, sensitivity = "wrong", (1,), 1.0 * extend.ROUNDING

    def sum(self, X, y):
        return np.array([np.clip(np.nan_to_num(y), -1.0, 1.0).sum()])


def test_a_sensitivity_that_is_too_small_is_found():
    ratio, first, second = extend.worst_pair(Wrong(), 1, n_tries=200)
    assert ratio > 1.9 and first[0].shape == second[0].shape == (1, 1)


def test_what_keeps_rows_or_leaks_is_found(outside):
    from means import MeanRegressor

    class Leaky(MeanRegressor):
        def fit(self, X, y=None):
            super().fit(X, y)
            self.largest_ = float(np.max(y))
            return self

    with pytest.raises(AssertionError, match="a replaced record shows"):
        extend.check_privacy(Leaky(bounds_y=(-1, 1), random_state=0))
