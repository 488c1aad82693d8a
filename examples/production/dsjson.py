"""
Read and write rounds of Vowpal Wabbit
======================================

Rounds as lines of dsjson, which Vowpal Wabbit learns from and Personalizer logs. The label is a
cost, minus the reward. What is read is what ``update`` of a policy takes; pass the names of the
features if the log is private, since its texts become names.
"""

# sphinx_gallery_thumbnail_path = '_static/thumbnails/events.svg'

import json

import numpy as np


def write_dsjson(file, contexts, actions, rewards, propensities, event_ids):
    """Write rounds; contexts have shape (n_rounds, n_actions, n_features)."""
    rounds = zip(contexts, actions, rewards, propensities, event_ids, strict=True)
    for rows, action, reward, propensity, event in rounds:
        order = [int(action), *(k for k in range(len(rows)) if k != action)]
        others = (1.0 - float(propensity)) / max(1, len(rows) - 1)
        features = [{f"x{j}": float(x) for j, x in enumerate(row)} for row in rows]
        line = {
            "_label_cost": -float(reward),
            "_label_probability": float(propensity),
            "_label_Action": int(action) + 1,
            "_labelIndex": int(action),
            "Version": "1",
            "EventId": str(event),
            "a": [k + 1 for k in order],
            "c": {"_multi": [{"f": row} for row in features]},
            "p": [float(propensity), *([others] * (len(rows) - 1))],
        }
        file.write(json.dumps(line) + "\n")


def read_dsjson(lines, features=None):
    """Read rounds with as many actions each: contexts, actions, rewards, propensities, features.

    Numbers are features, and a text is a feature ``User.sex=f`` of value 1; the features beside
    ``_multi`` are those of all actions. Lines that are no decision are left out.
    """
    events = [json.loads(line) for line in lines if line.strip()]
    events = [event for event in events if "_label_Action" in event and "c" in event]
    slates = []
    for event in events:
        context = dict(event["c"])
        actions = context.pop("_multi")
        slates.append([dict([*_flat(context), *_flat(action)]) for action in actions])
    if features is None:
        features = list(dict.fromkeys(name for slate in slates for row in slate for name in row))
    contexts = [[[row.get(name, 0.0) for name in features] for row in slate] for slate in slates]
    actions = np.array([int(event["_label_Action"]) - 1 for event in events])
    rewards = np.array([-float(event["_label_cost"]) for event in events])
    propensities = np.array([float(event["_label_probability"]) for event in events])
    return np.array(contexts), actions, rewards, propensities, features


def _flat(value, name=""):
    """Features of an entry, as pairs of a name and a number."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for item in value:
            yield from _flat(item, name)
    elif isinstance(value, str):
        yield f"{name}={value}", 1.0
    elif value:
        yield name, float(value)
