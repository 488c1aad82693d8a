"""The policy of a service, as its file keeps it, and what went wrong with it."""

import pickle
from hashlib import sha256

import numpy as np

from ...exceptions import PrivacyError, SkprivError
from ...privacy import Budget, Numbering
from .._visits import name_of
from ._value import RunningValue


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


def one_round(available):
    """A mask for a batch of one round; what is none is refused by the policy."""
    return [available] if isinstance(available, list | tuple) else np.asarray(available)[None]
