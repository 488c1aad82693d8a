"""Fitted objects as plain values and JSON: released answers and public numbers, no code.

One format serves models, the answers of policies in a ledger, and the state of policies. A file
names classes that say of themselves that they are stored (`_stored`), and nothing else: reading it
opens no file, imports no module by a name of the file, and calls no constructor that does more than
assign. So the worst that a forged file can do is to hold wrong numbers.

An estimator keeps public values and released answers after `fit`; the seed of its noise is neither,
and is never written into a model: who knows it can take the noise off again.
"""

import json
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from inspect import signature
from math import isfinite, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn
from uuid import uuid4

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ._contracts import Acting, Reporting, Starting
from ._stored import set_state, stored_kind, stored_name
from ._version import VERSION

if TYPE_CHECKING:
    from ._contracts import Array

MODEL_VERSION = 1
# A parameter that estimators had: it decided what is fitted, and old files hold the result.
_FORMER = "monotonic_cst"
_SECRET = "random_state"
# The values that a process keeps beside the state of an object: its locks, and the accountants that
# it charges
_OF_A_PROCESS = ("_lock", "_skpriv")
MOST_BYTES = 2**28  # of a model: a file that is larger is not read
MOST_ENTRIES = 2**31  # bytes of the state of a policy, and of an array
MOST_SHOWN = 2**14  # entries of an array that is written as numbers; a larger one is packed
MOST_MET = 1_000_000  # values of a small file, each as often as others refer to it
# Bytes of an array of texts that count as one more value: its places are as long as the longest
BYTES_EACH = 64
MOST_FEATURES = 2**22  # of an estimator, each of which gets a name where its table is told
MOST_DEPTH = 150  # of values in each other; a policy that combines others has about 40
# Types of arrays: truth values, numbers, texts, and what is several of these
DTYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|U\d{1,6}|O\d?)")


def save(model: Any, path: Any, *, overwrite: bool = False) -> None:
    """Write a fitted model to a JSON file.

    Parameters
    ----------
    model : estimator
        A regressor or transformer of skpriv, or a Pipeline of them.
    path : path-like
        File to write.
    overwrite : bool, default=False
        Whether a file that exists may be replaced.

    Raises
    ------
    FileExistsError
        If there is a file, and it may not be replaced.

    Notes
    -----
    **Privacy guarantee**: the file holds what `to_dict` returns and nothing else.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import skpriv
    >>> from skpriv.linear_model import SSPRegressor
    >>> X = np.linspace(-1.0, 1.0, 1000)[:, None]
    >>> model = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1)).fit(X, X[:, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     skpriv.save(model, os.path.join(folder, "model.json"))
    ...     os.listdir(folder)
    ['model.json']
    """
    text = to_json(model)
    if len(text) > MOST_BYTES:
        raise ValueError(f"The model needs {len(text):,} bytes as JSON: {TOO_LARGE}")
    write_whole({path: text.encode()}, overwrite)


def write_whole(contents: dict[Any, bytes], overwrite: bool = True) -> None:
    """Write files so that a crash leaves the old ones: all are written before one is replaced.

    No part of one stays, which may hold raw data.
    """
    parts = {Path(f"{Path(path)}.{uuid4()}.part"): path for path in contents}
    try:
        for part, path in parts.items():
            with part.open("wb") as file:
                file.write(contents[path])
                file.flush()
                os.fsync(file.fileno())
        for part, path in parts.items():
            if overwrite:
                part.replace(path)
            else:
                _into_place(part, Path(path))
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _into_place(part: Path, path: Path) -> None:
    """Give a whole file a name that no file has, in one step: a failure leaves no empty file."""
    try:
        path.hardlink_to(part)
    except FileExistsError:
        raise FileExistsError(f"{path} is there already: overwrite=True replaces it.") from None
    except (NotImplementedError, OSError):  # this place has no links: the name is taken first
        path.touch(exist_ok=False)
        try:
            part.replace(path)
        except BaseException:
            path.unlink()
            raise


def load(path: Any) -> Any:
    """Return the fitted model of a file that `save` wrote.

    Parameters
    ----------
    path : path-like
        File that `save` wrote.

    Returns
    -------
    estimator
        It predicts as the one that was written; a new fit draws secure noise.

    Raises
    ------
    ValueError
        If the file is not one of `save`, or is larger than 256 megabytes.

    Notes
    -----
    The file may come from somebody else: reading it runs no code, opens no other file and makes
    none. Whether its numbers are right, nothing can tell (docs/deployment.md).

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
    with Path(path).open("rb") as file:
        text = file.read(MOST_BYTES + 1)
    with naming(path):
        if len(text) > MOST_BYTES:
            raise ValueError(f"It has more than {MOST_BYTES:,} bytes: {TOO_LARGE}")
        return from_dict(parsed(text))


@contextmanager
def naming(path: Any) -> Iterator[None]:
    """Let errors of what stands in a file begin with its path."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"The file {str(path)!r}: {error}") from error


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

    if isinstance(model, Acting):
        raise TypeError("a policy goes on learning: keep it by policy.save(path), not as a model.")
    check_is_fitted(model)
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    head = {"format": MODEL_VERSION, "skpriv": VERSION}
    if isinstance(last, Reporting):
        report = last.privacy_report_
        head |= {"guarantee": str(report.guarantee), "privacy": report.to_dict()}
    return {**head, "model": _Encoder().encode(model)}


def from_dict(data: Any) -> Any:
    """Return the fitted model of what `to_dict` returned.

    Parameters
    ----------
    data : dict
        What `to_dict` returned.

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
        raise ValueError("This is not a model of skpriv: pass what save wrote or to_dict returned.")
    if data["format"] != MODEL_VERSION:
        raise ValueError(
            f"The model has format {data['format']!r}, and this version of skpriv reads format "
            f"{MODEL_VERSION}: use the version that wrote it, {data.get('skpriv')!r}."
        )
    model = decoded(data["model"])
    if not isinstance(model, BaseEstimator):
        raise ValueError(DAMAGED.format("it is no estimator"))
    return model


def to_json(model: Any) -> str:
    """Text of `to_dict`."""
    return json.dumps(to_dict(model), indent=1, allow_nan=False)


def parsed(text: Any) -> Any:
    """Values of a JSON text, or of its bytes in UTF-8."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise ValueError(DAMAGED.format(TOO_DEEP)) from None
    except ValueError as error:
        raise ValueError(
            f"This is not JSON: {error}. Give a saved model, such as `skpriv fit --out` writes; "
            "policies have a reader of their own."
        ) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a name stands twice in it")
    return values


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def encoded(value: Any, **options: Any) -> Any:
    """Plain values of a value, whose arrays are packed; see `_Encoder` for the options."""
    return _Encoder(packed=True, **options).encode(value)


def decoded(plain: Any, **options: Any) -> Any:
    """The value of plain values, of which nothing is believed; see `_Decoder` for the options.

    Raises
    ------
    ValueError
        If they are not what `_Encoder` makes, or name a class that is not stored.
    """
    try:
        return _Decoder(plain, **options).decode(plain)
    except RecursionError:
        raise ValueError(DAMAGED.format(TOO_DEEP)) from None
    except (LookupError, TypeError, AttributeError, ArithmeticError, MemoryError) as error:
        raise ValueError(DAMAGED.format("a value is missing, or is of another kind")) from error


DAMAGED = "The file is damaged, or another version of skpriv wrote it: {}."
TOO_DEEP = "values stand too deep in each other"
TOO_LARGE = "keep a model of this size by joblib, which is for files that you trust."


@dataclass
class _Encoder:
    """Turns values into plain values; an object that comes again becomes a reference to itself.

    Parameters
    ----------
    packed : bool, default=False
        Whether arrays of numbers are written as their bytes, which is quick, or as numbers, which
        people and other languages can read. Large arrays are written as bytes in any case.
    of_policies : bool, default=False
        Whether it is the state of a policy, with its seeds.
    apart : list, default=None
        It takes values that are written elsewhere: those of some classes, and attributes of some
        names. None writes all into one place.
    apart_kinds : tuple of type, default=()
    apart_names : tuple of str, default=()
    """

    packed: bool = False
    of_policies: bool = False
    apart: Any = None
    apart_kinds: tuple[Any, ...] = ()
    apart_names: tuple[Any, ...] = ()
    # By the id of an object: the object, so that it lives, and its values
    _met: dict[int, Any] = field(default_factory=dict, init=False)
    _count: int = 0

    def encode(self, value: Any) -> Any:
        """Plain values of a value: a dict, or a number or text as it is."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if isinstance(value, np.generic):
            # The item of a long number is a long number.
            return self.encode(float(value) if isinstance(value, np.floating) else value.item())
        if kind is float:
            return value if isfinite(value) else {"float": str(value)}
        if isinstance(value, self.apart_kinds):
            return self._written_apart(value)
        if kind is dict:
            return {"dict": [[self.encode(k), self.encode(item)] for k, item in value.items()]}
        if kind is slice:
            return {"slice": [value.start, value.stop]}
        if kind is Pipeline:
            return {"pipeline": [[name, self.encode(step)] for name, step in value.steps]}
        for base in (bytes, set, tuple, list):
            if isinstance(value, base):
                items = _text_of(value) if base is bytes else [self.encode(item) for item in value]
                if kind is list:
                    return items
                named = {} if kind is base else {"of": self._name(kind)}
                return {base.__name__: items, **named}
        return self._reference(value)

    def _name(self, kind: type[Any]) -> str:
        return stored_name(kind, self.of_policies)

    def _reference(self, value: Any) -> dict[str, Any]:
        if id(value) in self._met:
            _, met = self._met[id(value)]
            if "#id" not in met:
                met["#id"] = self._count
                self._count += 1
            return {"ref": met["#id"]}
        plain: dict[str, Any] = {}
        self._met[id(value)] = value, plain
        if type(value) is np.ndarray:
            plain.update(self._array(value))
        elif isinstance(value, BaseEstimator):
            plain.update(self._estimator(value))
        elif self.of_policies and type(value) is np.random.RandomState:
            plain.update(self._generator(value))
        else:
            kind: Any = type(value)
            plain["object"] = self._name(kind)
            of_class = () if _has_fields(kind) else _names_of_class(kind)
            plain["state"] = self._state(_remembered(value), of_class)
        return plain

    def _array(self, value: np.ndarray) -> dict[str, Any]:
        shape = {"shape": list(value.shape), "dtype": value.dtype.str}
        if not DTYPE.fullmatch(value.dtype.str):
            raise TypeError(f"An array of {value.dtype} cannot be written.")
        if _is_endless(value):
            raise TypeError("A matrix of infinite numbers cannot be written: make them finite.")
        if (self.packed or value.size > MOST_SHOWN) and value.dtype.kind in "biuf":
            across = value.flags.f_contiguous and not value.flags.c_contiguous
            if across:  # sums of its entries are rounded as they were
                shape["order"] = "F"
            return {"array": _text_of(value.tobytes("F" if across else "C")), **shape}
        return {"array": [self.encode(item) for item in value.ravel().tolist()], **shape}

    def _estimator(self, value: Any) -> dict[str, Any]:
        params = value.get_params(deep=False)
        public = dict(params)
        if not self.of_policies and _SECRET in public:
            public[_SECRET] = None
        start: Any = public.get("start")
        if isinstance(start, Starting):  # so that a chain of fits is not written
            public["start"] = start.as_start()
        kind: Any = type(value)
        fitted = {name: item for name, item in vars(value).items() if name not in params}
        attributes = self._state(fitted, _names_of_class(kind))
        return {"estimator": self._name(kind), "params": self._state(public), "fitted": attributes}

    def _generator(self, value: Any) -> dict[str, Any]:
        state = value.get_state(legacy=False)
        if state["bit_generator"] != "MT19937":
            raise TypeError("only a RandomState of MT19937, NumPy's default, can be written.")
        state |= state.pop("state")
        return {"generator": self._state(state)}

    def _state(self, items: dict[str, Any], of_class: Collection[str] = ()) -> dict[str, Any]:
        """Attributes or parameters, of which none has a name that is of the class."""
        if not items.keys().isdisjoint(of_class):
            raise TypeError(
                f"An object with an attribute {', '.join(items.keys() & of_class)} cannot be "
                "written, which its class has, too: a file must not replace methods. A class "
                "whose instances change it declares it by field(init=False)."
            )
        return {
            name: self._written_apart(item) if name in self.apart_names else self.encode(item)
            for name, item in items.items()
            if not name.startswith(_OF_A_PROCESS)
        }

    def _written_apart(self, value: Any) -> Any:
        self.apart.append(value)
        return {"apart": len(self.apart) - 1}


_has_fields: Any = is_dataclass  # which a type checker would believe to change the class


def _is_endless(array: np.ndarray) -> bool:
    """Whether it is a matrix of which a decomposition may have no end."""
    return array.ndim == 2 and array.dtype.kind == "f" and np.isinf(array).any()


def _text_of(value: Any) -> str:
    return b64encode(value).decode("ascii")


def _remembered(value: Any) -> dict[str, Any]:
    """Attributes of an object; of a dataclass the fields alone, from which the rest is computed."""
    state = value.__getstate__() or {}  # None of an object without attributes
    kind: Any = type(value)
    if not _has_fields(kind):
        return state
    return {f.name: state[f.name] for f in _kept_fields(kind) if f.name in state}


@cache
def _kept_fields(kind: type[Any]) -> list[Any]:
    """Fields of a dataclass, but for those that its `__post_init__` computes from the others."""
    return [f for f in fields(kind) if f.init or not hasattr(kind, "__post_init__")]


@cache
def _names_of_class(kind: type[Any]) -> set[str]:
    """Names that an attribute of an object cannot have: those of the methods of its class."""
    own = {item.name for item in fields(kind)} if _has_fields(kind) else set()
    return {name for name in dir(kind) if not name.startswith(_OF_A_PROCESS)} - own


@cache
def _parameters_of(kind: type[Any]) -> set[str]:
    """Names of the parameters of an estimator."""
    return set(signature(kind).parameters)


def _bytes_of(text: Any, size: int | None = None) -> bytes:
    """Bytes of a text of the file, and so many if that is known."""
    try:
        found = b64decode(text, validate=True)
    except ValueError as error:
        raise TypeError("no text of bytes") from error
    if size not in (None, len(found)):
        raise TypeError("another number of bytes")
    return found


def _items(value: Any, size: int | None = None) -> list[Any]:
    """A list of the file, of this length if one is given."""
    if not isinstance(value, list) or size not in (None, len(value)):
        raise TypeError("no list, or one of another length")
    return value


def _natural(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError("no number of 0 or more")
    return value


class _Decoder:
    """Turns the plain values of `_Encoder` back into values.

    Parameters
    ----------
    plain : plain values
    of_policies : bool, default=False
        Whether they may be the state of a policy.
    apart : list, default=()
        Values that were written elsewhere.
    """

    def __init__(self, plain: Any, of_policies: bool = False, apart: Any = ()) -> None:
        self._of_policies = of_policies
        self._apart = apart
        self._met: dict[int, Any] = {}
        self._places: dict[int, Any] = {}  # objects by their numbers, wherever they stand
        waiting: list[tuple[Any, int]] = [([plain], -1)]
        found = 0
        while waiting:
            value, depth = waiting.pop()
            if depth > MOST_DEPTH:
                raise RecursionError
            if isinstance(value, dict):
                if "#id" in value:
                    self._places[_natural(value["#id"])] = value
                value = value.values()
            found += len(value)
            waiting += [(item, depth + 1) for item in value if isinstance(item, dict | list)]
        # How many values may be met, and how many were met in one with a number: they double with
        # each value that has the next one twice, and so does the time of a hash or a text
        self._left = MOST_MET + 10 * found
        self._weights: dict[Any, int] = {}

    def decode(self, value: Any) -> Any:
        """Value of plain values."""
        self._spend(1)
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if isinstance(value, float) and not isfinite(value):
            raise TypeError("a number that is too large")
        if not isinstance(value, dict):
            return value
        number = value.get("#id", -id(value))
        self._spend(self._weights.get(number, 0))
        if number in self._met:
            return self._met[number]
        before = self._left
        for name in value:
            if name in self._makers:
                found = self._makers[name](self, value)
                self._weights[number] = before - self._left
                return found
        raise KeyError("of no known kind")

    def _spend(self, count: int) -> None:
        """Count values that are met, or as much work, of which a small file has little."""
        self._left -= count
        if self._left < 0:
            raise TypeError("a small file of too many values")

    def _float(self, value: Any) -> float:
        return {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}[value["float"]]

    def _dict(self, value: Any) -> dict[Any, Any]:
        return dict(self.decode(_items(pair, 2)) for pair in _items(value["dict"]))

    def _set(self, value: Any) -> set[Any]:
        return set(self.decode(_items(value["set"])))

    def _slice(self, value: Any) -> slice:
        start, stop = _items(value["slice"], 2)
        if not all(end is None or type(end) is int for end in (start, stop)):
            raise TypeError("no slice")
        return slice(start, stop)

    def _ref(self, value: Any) -> Any:
        return self.decode(self._places[value["ref"]])

    def _written_apart(self, value: Any) -> Any:
        return self._apart[_natural(value["apart"])]

    def _bytes(self, value: Any) -> Any:
        return self._of(value, bytes)(_bytes_of(value["bytes"]))

    def _list(self, value: Any) -> Any:
        return self._of(value, list)(self.decode(_items(value["list"])))

    def _tuple(self, value: Any) -> tuple[Any, ...]:
        kind = self._of(value, tuple)
        items = self.decode(_items(value["tuple"]))
        return tuple(items) if kind is tuple else kind(*items)

    def _pipeline(self, value: Any) -> Any:
        return Pipeline([self._step(*_items(step, 2)) for step in _items(value["pipeline"])])

    def _kind(self, name: str) -> Any:
        return stored_kind(name, self._of_policies)

    def _of(self, value: Any, base: Any) -> Any:
        """The class of bytes, a list or a tuple: the builtin one, or one that is stored."""
        if "of" not in value:
            return base
        kind = self._kind(value["of"])
        if not issubclass(kind, base):
            raise TypeError("another kind of class")
        return kind

    def _step(self, name: Any, step: Any) -> Any:
        """A step of a Pipeline, with its name."""
        step = self.decode(step)
        if not isinstance(name, str) or not (step is None or isinstance(step, BaseEstimator | str)):
            raise TypeError("no step")
        return name, step

    def _array(self, value: Any) -> "Array":
        array = self._entries(value["array"], value)
        if _is_endless(array):
            raise TypeError("a matrix of infinite numbers")
        return self._place(value, array)

    def _entries(self, items: Any, value: Any) -> np.ndarray:
        if not DTYPE.fullmatch(value["dtype"]):
            raise TypeError("a type that arrays of a model do not have")
        kind = np.dtype(value["dtype"])
        shape = tuple(map(_natural, _items(value["shape"])))
        size = prod(shape)
        across = value.get("order") == "F"
        if max(size, *shape, 1) * kind.itemsize > MOST_ENTRIES:
            raise TypeError("an array that is too large")
        if isinstance(items, str):
            if kind.kind not in "biuf":
                raise TypeError("bytes of no numbers")
            array = np.frombuffer(_bytes_of(items, size * kind.itemsize), kind)
            # A copy is writable
            return array.reshape(shape, order="F" if across else "C").copy("K")
        flat = self.decode(_items(items, size))
        allowed = {"b": bool, "i": int, "u": int, "f": int | float, "U": str}
        scalars = allowed.get(kind.kind, bool | int | float | str | None)
        if not all(isinstance(item, scalars) for item in flat):
            raise TypeError("an entry of another type")
        self._spend(size * kind.itemsize // BYTES_EACH)
        array = np.empty(size, kind)
        array[:] = flat
        return array.reshape(shape)

    def _generator(self, value: Any) -> Any:
        if not self._of_policies:
            raise TypeError("a seed, which no model has")
        state = self._state(value["generator"])
        inner = {name: state.pop(name) for name in ("key", "pos")}
        generator = np.random.RandomState(0)
        try:
            generator.set_state({**state, "bit_generator": "MT19937", "state": inner})
        except ValueError as error:
            raise TypeError("no state of a generator") from error
        return self._place(value, generator)

    def _estimator(self, value: Any) -> Any:
        kind = self._kind(value["estimator"])
        fitted = value["fitted"]
        if not issubclass(kind, BaseEstimator):
            raise TypeError("no estimator")
        params = self._state(value["params"])
        params.pop(_FORMER, None)
        if unknown := params.keys() - _parameters_of(kind):
            raise ValueError(
                f"The model has parameters of {kind.__name__} that this skpriv does not know: "
                f"{', '.join(sorted(unknown))}. Use the version that wrote it, which the file "
                "names, or fit again."
            )
        if not self._of_policies and _SECRET in params:
            params[_SECRET] = None  # a new fit draws secure noise, whatever the file says
        estimator = self._place(value, kind(**params))
        if not params.keys().isdisjoint(fitted):
            raise TypeError("a parameter that is also an attribute")
        attributes = self._state(fitted, _names_of_class(kind))
        if not 0 <= attributes.get("n_features_in_", 0) <= MOST_FEATURES:
            raise TypeError("a number of features that no model has")
        set_state(estimator, **attributes)
        return estimator

    def _object(self, value: Any) -> Any:
        kind = self._kind(value["object"])
        state = value["state"]
        if issubclass(kind, BaseEstimator):
            raise TypeError("an estimator, which has parameters")
        # The object is known before its attributes, which may refer to it.
        result = self._place(value, object.__new__(kind))
        if not _has_fields(kind):
            set_state(result, **self._state(state, _names_of_class(kind)))
            return result
        state = self._state(state)
        for entry in _kept_fields(kind):
            if entry.name in state:
                vars(result)[entry.name] = state[entry.name]
            elif entry.default is MISSING and entry.default_factory is MISSING:
                raise ValueError(
                    f"The model has no {entry.name!r} of a {kind.__name__}: another version of "
                    "skpriv wrote it. Use that version, which the file names, or fit again."
                )
            elif entry.default is MISSING:
                vars(result)[entry.name] = entry.default_factory()
        if hasattr(kind, "__post_init__"):
            result.__post_init__()  # which checks the fields of a dataclass
        return result

    def _state(
        self, items: dict[str, Any], of_class: Collection[str] = frozenset()
    ) -> dict[str, Any]:
        """Attributes or parameters, of which none has a name that is of the class."""
        if not isinstance(items, dict) or not items.keys().isdisjoint(of_class):
            raise TypeError("no attributes, or with the name of a method")
        for name in items:
            if not name.isidentifier() or name.startswith(("__", *_OF_A_PROCESS)):
                raise TypeError("no name of an attribute")
        return {name: self.decode(item) for name, item in items.items()}

    def _place(self, value: Any, result: Any) -> Any:
        if "#id" in value:
            self._met[value["#id"]] = result
        return result

    _makers: ClassVar[dict[str, Any]] = {
        "float": _float,
        "dict": _dict,
        "set": _set,
        "slice": _slice,
        "ref": _ref,
        "apart": _written_apart,
        "bytes": _bytes,
        "list": _list,
        "tuple": _tuple,
        "pipeline": _pipeline,
        "array": _array,
        "generator": _generator,
        "estimator": _estimator,
        "object": _object,
    }
