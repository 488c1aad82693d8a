"""
Write rounds for Vowpal Wabbit
==============================

Rounds of a policy as lines of dsjson, from which Vowpal Wabbit learns and which
:func:`skpriv.bandits.read_dsjson` reads. The label is a cost, minus the reward.
"""

import json


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
