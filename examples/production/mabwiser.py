"""
A private policy with the methods of MABWiser
=============================================

``fit``, ``partial_fit`` and ``predict`` over a policy with weights of its own for each arm. The
privacy guarantee is that of the policy, with decisions as its actions. ``fit`` starts anew, and
spends in addition what its rounds cost; ``partial_fit`` goes on. Policies learn at the end of their
epochs or periods: in between, rounds are only stored.
"""

# sphinx_gallery_thumbnail_path = '_static/thumbnails/events.svg'

import numpy as np
from sklearn.base import clone

from skpriv.bandits import LinUCB


class MABWiserAdapter:
    """A policy with ``shared=False``, and the labels of its arms: a public list."""

    def __init__(self, policy, arms):
        self.policy, self.arms = policy, list(arms)

    def fit(self, decisions, rewards, contexts):
        """Forget what was learned, and learn from some rounds."""
        self.policy_ = clone(self.policy)
        return self.partial_fit(decisions, rewards, contexts)

    def partial_fit(self, decisions, rewards, contexts):
        """Learn from further rounds; as ``fit``, if there were none."""
        if not hasattr(self, "policy_"):
            self.policy_ = clone(self.policy)
        positions = {arm: place for place, arm in enumerate(self.arms)}
        # What is no arm is refused as a number that is none: the error tells of no decision.
        actions = [positions.get(arm, np.nan) for arm in decisions]
        self.policy_.update(contexts, actions, rewards)
        return self

    def predict(self, contexts):
        """An arm if there is one round, as MABWiser does, or else a list."""
        arms = [self.arms[action] for action in self.policy_.act(contexts)]
        return arms[0] if len(arms) == 1 else arms


# %%
# The reward is the first feature, with its sign turned for "left".

rng = np.random.default_rng(0)
contexts = rng.uniform(-0.7, 0.7, size=(4000, 2))
decisions = rng.choice(["left", "right"], size=4000)
rewards = np.where(decisions == "left", -1.0, 1.0) * contexts[:, 0]
policy = LinUCB(epsilon=4.0, shared=False, n_actions=2)
adapter = MABWiserAdapter(policy, ["left", "right"]).fit(decisions, rewards, contexts)
print(adapter.predict([[-0.7, 0.0], [0.7, 0.0]]), adapter.policy_.guarantee)
