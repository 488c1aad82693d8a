"""What an optional package is needed for says how to install it."""

import ast
import inspect
import sys
from pathlib import Path

import numpy as np
import pytest
from sizes import nodes, parsed

import skpriv
from skpriv._printing import Display, installed
from skpriv.datasets import load_wages
from skpriv.inspection import inference
from skpriv.linear_model import LinearRegression

FILES = sorted(Path(skpriv.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_results_become_frames_by_an_import_that_explains_itself(file):
    methods = [
        n for n in nodes(parsed(file)[1]) if isinstance(n, ast.FunctionDef) and n.name == "to_frame"
    ]
    for method in methods:
        assert not [node for node in ast.walk(method) if isinstance(node, ast.Import)]


@pytest.mark.parametrize("name, extra", [("pandas", "data"), ("matplotlib.pyplot", "plot")])
def test_an_absent_package_is_named_with_its_extra(name, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=f"needs {name.split('.')[0]}.*skpriv.{extra}."):
        installed(name, extra)


def test_tables_and_loaders_without_pandas(monkeypatch):
    X = np.random.default_rng(0).uniform(size=(2000, 1))
    model = LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), random_state=0).fit(X, X[:, 0])
    monkeypatch.setitem(sys.modules, "pandas", None)
    for door in (inference(model).to_frame, model.privacy_report_.to_frame, load_wages):
        with pytest.raises(ImportError, match=r"needs pandas, .* python -m pip install"):
            door()


def makers():
    """Each method of a picture that draws it, too: it has an `ax`."""
    for kind in Display.__subclasses__():
        for name, maker in inspect.getmembers(kind, inspect.ismethod):
            if name.startswith("from_") and "ax" in inspect.signature(maker).parameters:
                yield pytest.param(maker, id=f"{kind.__name__}.{name}")


@pytest.mark.parametrize("maker", makers())
def test_a_picture_asks_for_matplotlib_before_its_work(maker, monkeypatch):
    """The objects that are passed cannot be worked on: any look at them is another error."""
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    needed = [
        object()
        for one in inspect.signature(maker).parameters.values()
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    with pytest.raises(ImportError, match=rf"{maker.__name__}.*skpriv\[plot"):
        maker(*needed)
