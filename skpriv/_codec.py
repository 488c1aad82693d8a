"""Fitted objects as plain values and JSON: released answers and public numbers, no code.

Only objects of skpriv are written, and read back by their names, so that a file can do nothing but
hold numbers. What an estimator keeps after `fit` is public or a released answer; the seed of its
noise is neither, and is never written: who knows it can take the noise off again.
"""

from typing import Any
import json
import sys
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib import import_module
from math import isfinite
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ._version import VERSION

MODEL_VERSION = 1
_SECRET = ("random_state",)


def save(model: Any, path: Any, *, overwrite: bool = False) -> None:
    """Write a fitted model to a JSON file.

    Parameters
    ----------
    model : estimator
        A regressor or transformer of skpriv, or a Pipeline of them.
    path : path-like
    overwrite : bool, default=False
        Whether a file that exists may be replaced.

    Raises
    ------
    FileExistsError
        If there is a file, and it may not be replaced.

    Notes
    -----
    **Privacy guarantee**: the file holds what `to_dict` returns and nothing else.
    """
    text = to_json(model)
    if not overwrite and Path(path).exists():
        raise FileExistsError(f"{path} is there already: overwrite=True replaces it.")
    with Path(path).open("w" if overwrite else "x", encoding="utf-8") as file:
        file.write(text)


def load(path: Any) -> Any:
    """Return the fitted model of a file that `save` wrote.

    Parameters
    ----------
    path : path-like

    Raises
    ------
    ValueError
        If the file is not one of `save`.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import skpriv
    >>> from skpriv.linear_model import SSPRegressor
    >>> X = np.linspace(-1.0, 1.0, 1000)[:, None]
    >>> model = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), random_state=0).fit(X, X[:, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.json")
    ...     skpriv.save(model, path)
    ...     again = skpriv.load(path)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    return from_dict(parsed(Path(path).read_bytes()))


def to_dict(model: Any) -> dict[str, Any]:
    """Return a fitted model as plain values, for JSON: released answers and public numbers.

    Parameters
    ----------
    model : estimator
        A regressor or transformer of skpriv, or a Pipeline of them.

    Returns
    -------
    dict
        Without the seed of the noise, which would give it away.

    Raises
    ------
    TypeError
        If a step is not one of skpriv: what it has learnt from the rows is not private.

    Examples
    --------
    >>> import numpy as np
    >>> import skpriv
    >>> from skpriv.linear_model import SSPRegressor
    >>> X = np.linspace(-1.0, 1.0, 1000)[:, None]
    >>> plain = skpriv.to_dict(SSPRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1), random_state=0
    ... ).fit(X, X[:, 0]))
    >>> plain["guarantee"][:23]
    '(epsilon=1, delta=1e-06'
    """

    if hasattr(model, "act") and not hasattr(model, "fit"):
        raise TypeError("a policy goes on learning: keep it by policy.save(path), not as a model.")
    check_is_fitted(model)
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    report = getattr(last, "privacy_report_", None)
    head: dict[str, Any] = {"format": MODEL_VERSION, "skpriv": VERSION}
    if report is not None:
        head |= {"guarantee": str(report.guarantee), "privacy": report.to_dict()}
    return {**head, "model": _Encoder().encode(model)}


def from_dict(data: Any) -> Any:
    """Return the fitted model of what `to_dict` returned.

    Parameters
    ----------
    data : dict

    Returns
    -------
    estimator
        It predicts as the one that was written; a new fit draws secure noise.

    Raises
    ------
    ValueError
        If it is not what `to_dict` returned.

    Examples
    --------
    >>> import numpy as np
    >>> import skpriv
    >>> from skpriv.linear_model import SSPRegressor
    >>> X = np.linspace(-1.0, 1.0, 1000)[:, None]
    >>> model = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), random_state=0).fit(X, X[:, 0])
    >>> again = skpriv.from_dict(skpriv.to_dict(model))
    >>> bool(again.intercept_ == model.intercept_)
    True
    """
    if not isinstance(data, dict) or "model" not in data or "format" not in data:
        raise ValueError("This is not a model of skpriv: pass what to_dict returned.")
    if data["format"] != MODEL_VERSION:
        raise ValueError(
            f"The model has format {data['format']!r}, and this version of skpriv reads format "
            f"{MODEL_VERSION}: use the version that wrote it, {data.get('skpriv')!r}."
        )
    try:
        return _Decoder([data["model"]]).decode(data["model"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("The model is damaged: it is not what to_dict returned.") from error


def to_json(model):
    """Text of `to_dict`."""
    return json.dumps(to_dict(model), indent=1, allow_nan=False)


def parsed(text):
    """Values of a JSON text, or of its bytes in UTF-8."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"This is not JSON (bandits.load reads policies): {error}.") from None


class _Encoder:
    """Turns values into plain values; an object that comes again becomes a reference to itself."""

    def __init__(self):
        self._met = {}  # by the id of an object: the object, so that it lives, and its plain values
        self._count = 0

    def encode(self, value):
        """Plain values of a value: a dict, or a number or text as it is."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if isfinite(value) else {"float": str(value)}
        if isinstance(value, list):
            return [self.encode(item) for item in value]
        if isinstance(value, dict):
            return {"dict": [[self.encode(k), self.encode(item)] for k, item in value.items()]}
        if isinstance(value, slice):
            return {"slice": [value.start, value.stop]}
        if type(value) is Pipeline:
            return {"pipeline": [[name, self.encode(step)] for name, step in value.steps]}
        if isinstance(value, tuple):
            name = {} if type(value) is tuple else {"of": _name(type(value))}
            return {"tuple": [self.encode(item) for item in value], **name}
        return self._reference(value)

    def _reference(self, value):
        if id(value) in self._met:
            _, encoded = self._met[id(value)]
            if "#id" not in encoded:
                encoded["#id"], self._count = self._count, self._count + 1
            return {"ref": encoded["#id"]}
        plain: dict = {}
        self._met[id(value)] = value, plain
        if isinstance(value, np.ndarray):
            flat = [self.encode(item) for item in value.ravel().tolist()]
            plain.update(array=flat, shape=list(value.shape), dtype=value.dtype.str)
        elif isinstance(value, BaseEstimator):
            plain.update(self._estimator(value))
        else:
            plain["object"], plain["state"] = _name(type(value)), self._state(_remembered(value))
        return plain

    def _estimator(self, value):
        params = value.get_params(deep=False)
        public = {key: None if key in _SECRET else item for key, item in params.items()}
        start: Any = public.get("start")
        if hasattr(start, "as_start"):  # so that a chain of fits is not written
            public["start"] = start.as_start()
        # Attributes that bind an estimator to accountants are no part of the model.
        fitted = {k: v for k, v in vars(value).items() if k not in params and "accountant" not in k}
        name = _name(type(value))
        return {"estimator": name, "params": self._state(public), "fitted": self._state(fitted)}

    def _state(self, items):
        return {key: self.encode(item) for key, item in items.items()}


def _remembered(value):
    """Attributes of an object; of a dataclass the fields alone, from which the rest is computed."""
    state = vars(value)
    if not is_dataclass(value):
        return state
    return {f.name: state[f.name] for f in _kept_fields(value) if f.name in state}


def _kept_fields(value):
    """Fields of a dataclass, but for those that its `__post_init__` computes from the others."""
    return [f for f in fields(value) if f.init or not hasattr(value, "__post_init__")]


class _Decoder:
    """Turns the plain values of `_Encoder` back into values."""

    def __init__(self, plain):
        self._met = {}
        self._places = {}  # objects by their numbers, wherever they stand in the file
        self._find_places(plain)

    def _find_places(self, value):
        if isinstance(value, dict) and "#id" in value:
            self._places[value["#id"]] = value
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, dict | list):
                self._find_places(item)

    def decode(self, value):
        """Value of plain values."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        if value.get("#id", None) in self._met:
            return self._met[value["#id"]]
        match value:
            case {"float": text}:
                return float(text)
            case {"dict": items}:
                return {self.decode(key): self.decode(item) for key, item in items}
            case {"slice": ends}:
                return slice(*ends)
            case {"ref": number}:
                return self.decode(self._places[number])
            case {"pipeline": steps}:
                return Pipeline([(name, self.decode(step)) for name, step in steps])
            case {"tuple": items, "of": name}:
                return _class(name)(*self.decode(items))
            case {"tuple": items}:
                return tuple(self.decode(items))
            case {"array": items, "shape": shape, "dtype": dtype}:
                array = np.array(self.decode(items), dtype=np.dtype(dtype))
                return self._place(value, array.reshape(shape))
            case {"estimator": name, "params": params, "fitted": fitted}:
                estimator = self._place(value, _class(name)(**self._state(params)))
                vars(estimator).update(self._state(fitted))
                return estimator
            case {"object": name, "state": state}:
                return self._object(value, _class(name), state)
        raise KeyError("of no known kind")

    def _object(self, value, kind, state):
        # The object is known before its attributes, which may refer to it.
        result = self._place(value, kind.__new__(kind))
        vars(result).update(self._state(state))
        for field in _kept_fields(kind) if is_dataclass(kind) else ():
            if field.default is MISSING and field.name not in vars(result):
                raise ValueError(
                    f"The model has no {field.name!r} of a {kind.__name__}: another version of "
                    "skpriv wrote it. Use that version, which the file names, or fit again."
                )
        if hasattr(result, "__post_init__"):
            result.__post_init__()  # which checks the fields of a dataclass
        return result

    def _state(self, items):
        return {key: self.decode(item) for key, item in items.items()}

    def _place(self, value, result):
        if "#id" in value:
            self._met[value["#id"]] = result
        return result


_FOREIGN: dict[str, type] = {}  # classes of other packages, by the names that files have for them


def register(kind: type) -> type:
    """Let models of a class of another package be written and read; a decorator.

    What stands in its attributes is written as it is: the class says by this that all of it is
    public or a released answer. Whoever reads a file imports the package first.

    Parameters
    ----------
    kind : type
        An estimator, a transformer, or a class of what they keep.

    Returns
    -------
    type
        The class itself.
    """
    _FOREIGN[f"{kind.__module__}:{kind.__qualname__}"] = kind
    return kind


def _name(kind):
    """Room and name of a class, without its file: old models are read even if it has moved."""
    name, foreign = kind.__name__, f"{kind.__module__}:{kind.__qualname__}"
    if _FOREIGN.get(foreign) is kind:
        return foreign
    parts, home = kind.__module__.split("."), sys.modules.get(kind.__module__)
    own = parts[0] == __package__ and len(parts) > 1
    if not own or getattr(home, name, None) is not kind:
        raise TypeError(
            f"A {kind.__qualname__} cannot be written: only numbers, texts and skpriv's own "
            "estimators, transformers and links can, and classes of skpriv.extend.register."
        )
    return f"{parts[1]}.{name}"


def _class(name):
    if ":" in name:
        if name not in _FOREIGN:
            raise ValueError(
                f"The model needs {name!r}: import the package that has it, which must pass the "
                "class to skpriv.extend.register."
            )
        return _FOREIGN[name]
    return _own_class(name)


@cache
def _own_class(name):
    """The class of skpriv with this room and name, which is looked for once."""
    room, _, simple = name.partition(".")
    room = {"_equations": "_estimation"}.get(room, room)  # in files from before version 0.3
    if room.isidentifier():
        with suppress(ImportError):
            import_module(f"{__package__}.{room}")  # the room may not have been needed so far
    found = _classes(room, simple)
    if len(found) != 1:
        raise ValueError(f"The model needs {name!r}, which this version of skpriv does not have.")
    return found[0]


def _classes(room, name):
    """Return the classes of this name that the modules of a room define."""
    prefix, inside = f"{__package__}.{room}", f"{__package__}.{room}."
    modules = [m for k, m in list(sys.modules.items()) if k == prefix or k.startswith(inside)]
    found = [vars(module).get(name) for module in modules if module is not None]
    own = {kind for kind in found if isinstance(kind, type)}
    return [kind for kind in own if f"{kind.__module__}.".startswith(inside)]
