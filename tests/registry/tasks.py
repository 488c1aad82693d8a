"""Tasks that a malicious server may make of good ones, with a hash that fits."""

import json

from skpriv.privacy import task_hash

JUNK = [
    None, 0, -1, 1, 2, 3, 1.5, -0.5, 0.0, 1e-300, 1e300, 2**70, "1", "whole", "residual", "halves",
    [], [0.0], [1.0, -1.0], [[1.0, 0.0], [0.0, 1.0]], {}, {"n": 3}, True, False, "codebook",
    "central", 1e308, [[[1] * 7, 40]],
]  # fmt: skip


def places(value, path=()):
    """All places in a JSON document."""
    yield path
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def changed_task(state, rng):
    """A task in which some parts were changed, deleted or added."""
    state = json.loads(json.dumps(state))
    task = state["task"] if "task" in state else state
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        inside = [path for path in places(task) if path]
        *path, last = inside[rng.randint(len(inside))]
        parent = task
        for key in path:
            parent = parent[key]
        kind = rng.randint(4)
        if kind == 0 and isinstance(parent, dict):
            parent.pop(last)
        elif kind == 1 and isinstance(parent, dict):
            parent[f"nonce {rng.randint(9)}"] = rng.randint(9)
        else:
            parent[last] = json.loads(json.dumps(JUNK[rng.randint(len(JUNK))]))
    if rng.uniform() < 0.3 and isinstance(task.get("channel"), dict):
        task["channel"]["epsilon"] = [0.0, 1e-300, 0.5, 2.0, 65.0, 1e9][rng.randint(6)]
    if rng.uniform() < 0.3 and isinstance(task.get("policy"), dict):
        n_actions = int(rng.randint(1, 9))
        task["policy"].update(n_actions=n_actions, shared=bool(rng.randint(2)))
        if isinstance(task.get("query"), dict):
            task["query"]["n_features"] = int(n_actions * rng.randint(1, 3))
    if rng.uniform() < 0.97:
        task["hash"] = task_hash(task)
    return json.dumps(state)
