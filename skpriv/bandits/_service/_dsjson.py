"""Logged rounds in the line format of Vowpal Wabbit (dsjson)."""

from typing import Any
import json

import numpy as np
from sklearn.utils import Bunch


def read_dsjson(lines: Any, *, features: Any = None) -> Bunch:
    """Read rounds from lines of dsjson, as Vowpal Wabbit and Personalizer write them.

    Numbers in the namespaces of an action are its features; those beside ``_multi`` are shared,
    and put before them. A namespace is an object, or a list of objects, and its name is put before
    those of its features: ``User.age``. A text is a feature ``User.sex=f`` of value 1, as in Vowpal
    Wabbit, the words under ``_text`` are features of their own, ``true`` is 1, and ``null`` and
    ``false`` are no feature.

    Parameters
    ----------
    lines : iterable of str
        Lines that are no decision, and those with ``_skipLearn``, are left out and counted.
    features : list of str, default=None
        Public names, in order; others are left out and missing ones are 0. None takes all names
        that occur, in the order in which they do: not for private logs, whose texts become names.

    Returns
    -------
    rounds : Bunch
        ``contexts`` (n_rounds, n_actions, n_features), with rows of zeros where a round has fewer
        actions than another, and ``available`` (n_rounds, n_actions), which says where;
        ``actions``, ``rewards``, ``propensities`` and ``weights``, each (n_rounds,),
        ``event_ids`` and ``features``; and ``n_left_out``, the number of lines, but for empty ones,
        that were left out. A weight is 1 / (1 - pdrop): of rounds like this one,
        the part ``pdrop`` was dropped before the log was written.

    Raises
    ------
    ValueError
        If a line is no dsjson; which one is not said.
    """
    slates, event_ids, n_left_out = [], [], 0
    columns: dict[str, list] = {
        "actions": [], "rewards": [], "propensities": [], "weights": []
    }  # fmt: skip
    for number, line in enumerate(lines, 1):
        wrong = False
        try:
            event = json.loads(line) if line.strip() else {}
            if "_label_Action" not in event or "c" not in event or event.get("_skipLearn"):
                n_left_out += bool(line.strip())
                continue
            slate, action = _rows(event["c"]), int(event["_label_Action"]) - 1
            read = (
                action,
                -float(event["_label_cost"]),
                float(event["_label_probability"]),
                1.0 / (1.0 - float(event.get("pdrop") or 0.0)),
            )
            wrong = not (0 <= action < len(slate) and np.isfinite(read).all())
        except Exception:  # its text may hold a part of the line
            wrong = True
        if wrong:
            raise ValueError("a line is no event of dsjson.")
        slates.append(slate)
        for column, value in zip(columns.values(), read, strict=True):
            column.append(value)
        event_ids.append(str(event.get("EventId", number)))
    if features is None:
        features = list(dict.fromkeys(name for slate in slates for row in slate for name in row))
    contexts, available = _filled(slates, list(features))
    return Bunch(
        contexts=contexts,
        available=available,
        actions=np.array(columns.pop("actions"), dtype=np.intp),
        **{name: np.array(column, dtype=float) for name, column in columns.items()},
        event_ids=event_ids,
        features=list(features),
        n_left_out=n_left_out,
    )


def _filled(slates, features):
    """Arrays of slates of different sizes, and which of their rows are actions."""
    most = max(map(len, slates), default=0)
    contexts = np.zeros((len(slates), most, len(features)))
    available = np.zeros((len(slates), most), dtype=bool)
    places = {name: place for place, name in enumerate(features)}
    for at, slate in enumerate(slates):
        available[at, : len(slate)] = True
        for row, found in enumerate(slate):
            for name in found.keys() & places.keys():
                contexts[at, row, places[name]] = found[name]
    return contexts, available


def _rows(context):
    """Features by name of each action, the shared ones first."""
    shared = _flat({key: value for key, value in context.items() if key != "_multi"})
    return [{**shared, **_flat(action)} for action in context["_multi"]]


def _flat(value, prefix=""):
    """Features by name of an object of namespaces and features."""
    found: dict[str, float] = {}
    for key, item in value.items():
        if key == "_text" and isinstance(item, str):
            found.update((f"{prefix}{word}", 1.0) for word in item.split())
        elif not key.startswith("_"):
            found.update(_features(f"{prefix}{key}", item))
    return found


def _features(key, item):
    """Features by name of one entry, whatever it is."""
    if item is None or item is False:
        return {}
    if isinstance(item, dict):
        return _flat(item, f"{key}.")
    if isinstance(item, list):
        found = {}
        for j, part in enumerate(item):
            found.update(_features(key if isinstance(part, dict) else f"{key}[{j}]", part))
        return found
    if isinstance(item, str):
        return {f"{key}={item}": 1.0}
    return {key: float(item)}
