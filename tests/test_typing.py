"""What a type checker says of the public doors: no Any where a user asks for a result."""

import configparser
import functools
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest
from registry.doors import names_of
from registry.estimators import ESTIMATORS

import skpriv
from skpriv import privacy
from skpriv._parameters import PrivacyModel

ROOMS = [
    "audit", "bandits", "datasets", "inspection", "linear_model", "metrics", "model_selection",
    "preprocessing", "privacy", "protocol", "records",
]  # fmt: skip
REVEALED = {
    "LinearRegression().fit(X, y)": "LinearRegression",
    **{f"{kind.__name__}().fit(X, y).predict(X)": "ndarray" for kind in ESTIMATORS},
    "LinearRegression().confidence_interval(X).low": "ndarray",
    "LinearRegression().prediction_interval(X)": "ConfidenceInterval",
    "LinearRegression().fit(X, y).coef_": "ndarray",
    "LinearRegression().fit(X, y).privacy_report_.guarantee": "Guarantee",
    "AdditiveRegressor().curve(0)": "Curve",
    "inference(SSPRegressor()).p_value": "ndarray",
    "LinUCB().act(X)": "ndarray",
    "LinUCB().update(X, y, y)": "LinUCB",
    "SquareCB(SSPRegressor()).guarantee": "Guarantee",
    "FLIPHAT().guarantee.epsilon": "float",
    "private_off_policy_value(y, y, y, y).value": "float",
    "private_score(SSPRegressor(), X, y, epsilon=1.0, delta=1e-6)": "PrivateScore",
    "PrivateSearchCV(SSPRegressor(), {}, epsilon=1.0, delta=1e-6).fit(X, y)": "PrivateSearchCV",
    "lower_bound(None, (X, y), (X, y), n_runs=1, delta=0.0).epsilon": "float",
    "report('', X, 0.0, user=1)": "bytes | list[bytes] | None",
    "Collector(SSPRegressor(), 100, 0).task": "str | None",
    "interval_coverage_score(y, y, y)": "float",
    "skpriv.Budget(1.0)": "Budget",
    "skpriv.BudgetAccountant(1.0).spent.epsilon": "float",
    "open_session('central', X, y, skpriv.Budget(1.0)).sum(query, 1.0).value": "ndarray",
    "open_stream('central', query, skpriv.Budget(1.0), 9).read().n": "float",
    "Cost.from_epsilon(1.0)": "Cost",
}
REFUSED = [  # a text that is none of the choices
    "LinearRegression(privacy='centrall')",
    "LinUCB(privacy='curator')",
    "SSPRegressor().confidence_interval(X, method='exact')",
    "inference(SSPRegressor(), estimand='least squares')",
]
SNIPPET = """
import numpy as np

import skpriv
from skpriv.audit import lower_bound
from skpriv.bandits import FLIPHAT, LinUCB, SquareCB, private_off_policy_value
from skpriv.inspection import inference
from skpriv.linear_model import *
from skpriv.metrics import interval_coverage_score
from skpriv.model_selection import PrivateSearchCV, private_score
from skpriv.privacy import Cost, Query, open_session, open_stream
from skpriv.protocol import Collector, report

X, y = np.zeros((3, 2)), np.zeros(3)


def ask(query: Query) -> None:
"""


# The signatures of the package are read, and neither what its functions do nor other packages: that
# is the linter's part, and takes twice as long.
CONFIG = """
[mypy]
python_version = 3.11
follow_imports = skip
ignore_missing_imports = true

[mypy-skpriv.*]
follow_imports = silent
ignore_errors = true
"""


def test_names_that_are_loaded_late_are_there():
    assert all(hasattr(skpriv, name) for name in skpriv.__all__)


def test_choices_are_what_is_taken():
    assert sorted(get_args(PrivacyModel)) == sorted(privacy.MODELS)


def functions(room):
    """Public functions of a room, and public methods of its classes, own and inherited."""
    module = import_module(f"skpriv.{room}") if room else skpriv
    for name in names_of(module):
        thing = getattr(module, name)
        if inspect.isclass(thing):
            for base in thing.__mro__:
                if base.__module__.startswith("skpriv"):
                    for key, value in vars(base).items():
                        if not key.startswith("_") or key == "__init__":
                            yield f"{base.__module__}.{base.__name__}.{key}", plain(value)
        elif callable(thing):
            yield f"{module.__name__}.{name}", plain(thing)


def plain(value):
    """Function behind a property, a class method or a decorator; None if there is none."""
    for attribute in ("fget", "func", "__func__"):
        value = getattr(value, attribute, None) or value
    value = inspect.unwrap(value) if callable(value) else None
    # What dataclasses and named tuples write, they annotate from the class.
    written = inspect.isfunction(value) and value.__code__.co_filename.endswith(".py")
    return value if written and value.__module__.startswith("skpriv") else None


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_public_functions_are_annotated(room):
    bare = set()
    for name, function in functions(room):
        if function is None or isinstance(function, functools.partial):
            continue
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())
        if parameters and parameters[0].name in ("self", "cls"):
            parameters = parameters[1:]
        missing = [item.name for item in parameters if item.annotation is item.empty]
        if missing or signature.return_annotation is signature.empty:
            bare.add(f"{name}: {', '.join(missing) or 'what it returns'}")
    assert not bare, "\n" + "\n".join(sorted(bare))


def test_reveal_type(tmp_path):
    pytest.importorskip("mypy")
    path = tmp_path / "snippet.py"
    lines = [*(f"reveal_type({expression})" for expression in REVEALED), *REFUSED]
    path.write_text(SNIPPET + "".join(f"    {line}\n" for line in lines), encoding="utf-8")
    config, cache = tmp_path / "mypy.cfg", Path(__file__).parents[1] / ".mypy_cache" / "signatures"
    config.write_text(CONFIG, encoding="utf-8")
    options = ["--config-file", str(config), "--cache-dir", str(cache), str(path)]
    # In a process of its own, which ends at once: to free what mypy made takes seconds.
    done = subprocess.run([sys.executable, "-m", "mypy", *options], capture_output=True, text=True)
    text = done.stdout + done.stderr
    wrong = [line for line in text.splitlines() if "[arg-type]" in line and "Literal" in line]
    assert len(wrong) == len(REFUSED), text
    found = [line.split('"')[1] for line in text.splitlines() if "Revealed type is" in line]
    assert len(found) == len(REVEALED), text
    short = [kind.replace("numpy.", "").replace("builtins.", "") for kind in found]
    for expression, kind, expected in zip(REVEALED, short, REVEALED.values(), strict=True):
        assert expected in kind and not kind.startswith("Any"), f"{expression} is {kind}"


def test_all_is_strict():
    config = configparser.ConfigParser()
    config.read(Path(__file__).parents[1] / "setup.cfg")
    assert config["mypy"].getboolean("strict")
    # Lax is one demand: scikit-learn, whose classes estimators are, ships no types.
    lax = {name for name, value in config["mypy"].items() if value.lower() in ("false", "no", "0")}
    assert lax == {"disallow_subclassing_any"}
    others = [name for name in config.sections() if name.startswith("mypy-")]
    assert not any("skpriv" in name for name in others)
    source = "".join(f.read_text("utf-8") for f in Path(skpriv.__file__).parent.rglob("*.py"))
    assert "# mypy:" not in source and source.count("# type: ignore") <= 15
