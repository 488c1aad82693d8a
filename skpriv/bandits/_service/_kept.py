"""The policy of a service, as its file keeps it, and what went wrong with it."""

import pickle
from typing import Any
from hashlib import sha256

import numpy as np

from ...exceptions import PrivacyError, SkprivError
from ...privacy import Budget, Numbering
from .._evaluation._private_value import ValueQuery, interval_of_all
from .._ucb._running import GrowingTimes
from .._ucb._sums import PhasedSums
from .._visits import name_of


def dumped(policy, value=None):
    """State of a service for its file: its policy, what it earns, and a hash of both."""
    state = pickle.dumps((policy, value), protocol=5)
    return sha256(state).digest() + state


def protecting_persons(policy, max_visits):
    """The policy with this parameter; it stays as it is where the parameter is not given."""
    if max_visits is None:
        return policy
    if getattr(policy, "max_visits", max_visits) not in (None, max_visits):
        raise ValueError(f"max_visits={max_visits} is not that of the policy.")
    if "max_visits" not in policy.get_params(deep=False):
        raise ValueError(
            f"{type(policy).__name__} has no max_visits: it protects rounds, and user_guarantee "
            "says what that means for people who come back."
        )
    return pickle.loads(pickle.dumps(policy)).set_params(max_visits=int(max_visits))


def value_budget(policy, epsilon, delta):
    """Budget of the running value, None where it is not asked for."""
    if epsilon is None:
        return None
    RunningValue.bounds(policy)
    if getattr(policy, "max_visits", None) is not None:
        raise ValueError("value_epsilon protects single rounds, and max_visits people: choose one.")
    return Budget(float(epsilon), float(delta))


def begun(policy, in_order):
    """State of a file that begins; all copies of it find each other's answers."""
    policy = pickle.loads(pickle.dumps(policy))
    policy._numbering = Numbering()
    if not in_order:
        if hasattr(policy, "n_rounds_"):
            raise ValueError(
                "in_order=False needs a policy that has not acted: this one has acted."
            )
        policy._late = True
    return dumped(policy)


def check_order(policy, in_order, value_budget):
    """Refuse to learn out of order what cannot be learned so."""
    if not in_order and (not getattr(policy, "_can_be_late", False) or value_budget is not None):
        raise ValueError(
            "in_order=False is for LinUCB and LinSquareCB with privacy='central', a finite epsilon "
            "and width='asymptotic', and without value_epsilon: what else learns needs the rewards "
            "in the order of the ranks."
        )


def loaded(state):
    """Policy and running value of a state."""
    digest, state = state[:32], state[32:]
    if sha256(state).digest() != digest:
        raise PrivacyError("the policy in the file of Loop is damaged: put a backup of it back.")
    policy, value = pickle.loads(state)
    if getattr(policy, "random_state", None) is None and hasattr(policy, "_rng"):
        # Processes that load one state must not explore in step.
        policy._rng = np.random.RandomState()
    return policy, value


def event_name(event):
    """Text of an event's name, or bytes where it has parts: the same for equal names alone."""
    name = str(event).encode(errors="surrogatepass") if isinstance(event, str) else name_of(event)
    if name is None:
        raise ValueError("an event needs a name: None, NaN and floats of 2**53 or more are none.")
    if not 1 <= len(name) <= 1_000:
        raise ValueError(f"an event's name has 1 to 1,000 bytes, and here {len(name):,}.")
    if isinstance(event, str):
        return str(event)
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name


def check_same(saved, policy, in_order):
    if saved._late == in_order:
        raise PrivacyError(f"the file was begun with in_order={not in_order}: go on with that.")
    one, two = saved.get_params(deep=True), policy.get_params(deep=True)
    if type(saved) is not type(policy) or repr(sorted(one.items(), key=str)) != repr(
        sorted(two.items(), key=str)
    ):
        raise PrivacyError(
            "the file holds another policy: give Loop the same class and parameters, or another "
            "path. Parameters of a policy that has promised a guarantee cannot be changed."
        )


def sentence_of(error, meaning):
    """What went wrong; the text of an error that is not skpriv's might hold a value."""
    told = f": {error}" if isinstance(error, SkprivError) else ""
    return f"Learning failed with {type(error).__name__}{told} ({meaning})"


def mask_of(available, n_rounds):
    """A mask for so many rounds; what is none is refused by the policy."""
    if available is None:
        return None
    try:
        mask = np.asarray(available)
    except Exception:  # ragged, or of objects of their own kind
        mask = np.empty(())
    if mask.dtype != bool or mask.ndim not in (1, 2) or len(mask) != n_rounds and mask.ndim == 2:
        raise ValueError(
            "available must be a mask: an array of bool, with one entry for each action of a round."
        )
    return np.broadcast_to(mask, (n_rounds, mask.shape[-1]))


class RunningValue:
    """Mean reward of all events that were learned, read at public numbers of events.

    Parameters
    ----------
    policy : policy
        Its ``bounds_y``, or its oracle's, is the public range of the rewards.
    budget : Budget
        What an event pays for it, in addition to what it pays for the policy.
    numbering : Numbering
        Numbers by which copies of the service find what was read.
    """

    def __init__(self, policy: Any, budget: Budget, numbering: Any) -> None:
        low, high = map(float, self.bounds(policy))
        query = ValueQuery(low=low, high=high, max_weight=1.0)
        options = {
            "privacy": "central", "budget": budget, "name": "Loop.value",
            "places": 1, "releases": 1,
        }  # fmt: skip
        seed = getattr(policy, "random_state", None)
        noise = None if seed is None else np.random.RandomState(policy._rng.randint(2**31 - 1))
        self._sums = PhasedSums(query, GrowingTimes(), options, noise, numbering)
        self._last: Any = None

    @staticmethod
    def bounds(policy: Any) -> Any:
        """Public range of the rewards of a policy."""
        bounds = getattr(policy, "bounds_y", None)
        bounds = getattr(getattr(policy, "oracle", None), "bounds_y", bounds)
        if bounds is None or isinstance(bounds, str):
            raise ValueError("value_epsilon needs a policy, or an oracle, with given bounds_y.")
        return bounds

    @property
    def guarantee(self) -> Any:
        """What it promises, by itself."""
        return self._sums.report.guarantee.protecting("user")

    def take(self, rewards: np.ndarray) -> None:
        """Add rewards of events; each is looked at no more."""
        n = len(rewards)
        self._sums.reserve(n + 1)
        for answer in self._sums.take(np.ones((n, 1)), rewards):
            self._last = answer

    def read(self, confidence_level: float) -> Any:
        """`PrivateValue` as of the last public number of events, or None before the first."""
        if self._last is None:
            return None
        return interval_of_all(self._sums.query, self._last, confidence_level)
