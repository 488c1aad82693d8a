"""What the file of a collection says of its estimator, of the records and of itself."""

import importlib
import json
import os

import numpy as np

from ..privacy import LARGEST_SIZE

MOST_FEATURES = LARGEST_SIZE - 2  # beside a constant and what is lifted
ROOMS = ("skpriv.linear_model",)  # whose public classes a file may name


def described(estimator):
    """Name and parameters of an estimator of this library, as JSON can hold them."""
    kind = type(estimator)
    room = ".".join(kind.__module__.split(".")[:2])
    params = estimator.get_params(deep=False)
    params.pop("random_state", None)
    try:
        text = json.dumps(params, allow_nan=False, default=_plain)
    except (TypeError, ValueError):
        raise ValueError(
            f"a parameter of {kind.__name__} has no JSON form, which a public task needs: "
            f"{params!r}."
        ) from None
    return {"room": room, "class": kind.__name__, "params": json.loads(text)}


def restored(description):
    """Estimator of a description; only classes that this library exports are made."""
    if description["room"] not in ROOMS:
        raise ValueError(f"{description['room']!r} is no room of estimators.")
    room = importlib.import_module(description["room"])
    if description["class"] not in room.__all__:
        raise ValueError(f"{description['class']!r} is no estimator of {description['room']}.")
    params = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in description["params"].items()
    }
    return getattr(room, description["class"])(**params)


def home(path):
    """What tells a file from its copies; None of a collection in memory."""
    if path is None:
        return None
    status = os.stat(path)
    return [status.st_dev, status.st_ino]


def _plain(value):
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError


def n_features_of(estimator, n_features):
    if n_features is None:
        n_features = getattr(estimator, "n_features_in_", None)
    bounds = getattr(estimator, "bounds_X", None)
    if n_features is None and bounds is not None and np.ndim(bounds) != 1:
        n_features = len(bounds)
    if n_features is None:
        return None
    if not isinstance(n_features, (int, np.integer)) or n_features < 1:
        raise ValueError(f"n_features={n_features!r} must be a whole number of at least 1.")
    if n_features > MOST_FEATURES:
        raise ValueError(
            f"n_features={n_features} is above {MOST_FEATURES}, which reports can say."
        )
    return int(n_features)
