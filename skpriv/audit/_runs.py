"""One run of an estimator or a policy, with all that somebody could see of it."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from .._compat import pipeline_steps, safe_indexing
from .._contracts import Acting, Guaranteeing, Reporting
from ..exceptions import InvalidValues
from ..privacy import Budget, Guarantee, Trust, listening
from ..records import INVALID_VALUES, codes, floats, silence
from ._tape import snapshot

if TYPE_CHECKING:
    from .._contracts import Array


@dataclass
class Run:
    """The traces that one run left behind.

    Attributes
    ----------
    model : object
        The fitted estimator, or the policy at the end.
    leaves : dict
        Its snapshot, and that of the transcript.
    warnings : list of str
    error : str or None
    """

    model: Any
    leaves: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    error: str | None = None

    @property
    def refused(self) -> bool:
        """Whether values were refused by the one fixed sentence, as docs/privacy.md says."""
        return self.error == REFUSAL


REFUSAL = f"{InvalidValues.__name__}: {INVALID_VALUES}"


def check_maker(make: Callable[..., Any], arguments: Any) -> None:
    """Refuse what makes no models, before anything is run.

    Parameters
    ----------
    make : callable
    arguments : str
        Its arguments, for the text of the error.
    """
    if not callable(make):
        raise TypeError(
            f"make({arguments}) must return an unfitted estimator or a policy, and "
            f"{type(make).__name__} cannot be called: pass a function of ({arguments})."
        )


def run_once(make: Callable[..., Any], data: Any, run: Callable[..., Any], listener: Any) -> Run:
    """Make, run, and look at everything.

    Parameters
    ----------
    make : callable
    data : tuple of arrays
    run : callable ``run(model, data)``
        Returns a transcript of what others see beside the model, or None.
    listener : Recorder

    Returns
    -------
    Run
    """
    model = _seeded(unfitted(make()))
    result = Run(model)
    transcript = None
    with warnings.catch_warnings(record=True, action="always") as caught, listening(listener):
        try:
            transcript = run(model, data)
        except Exception as error:  # Others see an error, so that it is compared.
            result.error = f"{type(error).__name__}: {error}"
    result.warnings = [f"{w.category.__name__}: {w.message}" for w in caught]
    result.leaves = snapshot(model) | {f"transcript{k}": v for k, v in snapshot(transcript).items()}
    return result


def unfitted(model: Any) -> Any:
    """The model that a maker returned, which must be one and not its class."""
    if isinstance(model, type):
        raise TypeError(f"make returned the class {model.__name__}: return an unfitted instance.")
    return model


def _seeded(model: Any) -> Any:
    """All that is public and random must be the same in both runs: it is made from a seed."""
    params = parameters_of(model)
    for value in params.values():
        for part in value if isinstance(value, list | tuple) else ():
            _seeded(part)
    unset = [name for name, value in params.items() if value is None]
    seeds = {name: 0 for name in unset if name.split("__")[-1] == "random_state"}
    return model.set_params(**seeds) if seeds else model


def parameters_of(model: Any) -> dict[str, Any]:
    """Parameters of a model and of its parts; those of anything else are not known."""
    return model.get_params() if isinstance(model, BaseEstimator) else {}


def is_policy(model: object) -> bool:
    """Whether it acts and is updated, rather than fitted."""
    return isinstance(model, Acting)


def fit(model: Any, data: Any) -> None:
    """Run of an estimator on (X, y) or (X, y, groups); what a fitted one computes is compared."""
    if len(data) == 3:
        model.fit(*data[:2], groups=data[2])
    else:
        model.fit(*data)


@dataclass
class Play:
    """Run of a policy on rounds (contexts, rewards) or (contexts, actions, rewards).

    Rewards of shape (n_rounds, n_actions) are those of all actions: the policy acts, and is told
    the reward of its action. With logged actions and rewards of shape (n_rounds,) it is told these.
    The transcript has the actions and propensities of all rounds but those of the user who is
    replaced, whose own action is not protected from who sees it.

    Parameters
    ----------
    replaced : ndarray of int
        Rounds of the user who differs.
    order : callable, default=None
        ``order(*rounds)`` returns keys by which the rounds of each update are sorted, if a curator
        collects them. If users answer for themselves, each stays in the own round.
    """

    replaced: Any
    order: Any = None

    def __call__(self, policy: Any, data: Any) -> Any:
        """Drive the policy through all rounds; return the transcript."""
        contexts = floats(data[0])
        rewards = floats(data[-1])
        logged = np.asarray(data[1]) if len(data) == 3 else None
        actions = []
        chances = []
        start = 0
        curator = Trust(policy.guarantee.model, Budget(inf)).can.curator
        while start < len(contexts):
            stop = min(len(contexts), start + int(policy.rounds_until_update_))
            part = slice(start, stop)
            acted = np.asarray(policy.act(contexts[part]))
            actions.append(acted)
            chances.append(np.asarray(policy.propensities_, float))
            chosen = acted if logged is None else logged[part]
            earned = rewards[part]
            if earned.ndim == 2:
                earned = earned[np.arange(stop - start), chosen]
            batch: tuple[Any, ...] = contexts[part], chosen, earned
            if self.order is not None and curator:
                keys = self.order(*(array[part] for array in data))
                batch = tuple(array[np.argsort(keys, kind="stable")] for array in batch)
            policy.update(*batch)
            start = stop
        others = np.ones(len(contexts), bool)
        others[self.replaced] = False
        del policy.propensities_  # The transcript has those of all rounds.
        return {
            "actions": np.concatenate(actions)[others],
            "propensities": np.concatenate(chances)[others],
        }


def ordered(data: Any, order: Callable[..., np.ndarray]) -> tuple[Any, ...]:
    """The records sorted by the keys that ``order(*data)`` gives them.

    A list stays one: an array of names of several kinds would take them for one kind.
    """
    sorted_ = np.argsort(order(*data), kind="stable")
    return tuple(safe_indexing(array, sorted_) for array in data)


def one_replaced(first: Any, second: Any, of_persons: bool, groups: Any = None) -> Any:
    """Indices of the records in which two data sets differ: those of one record, or of one group.

    Parameters
    ----------
    first, second : tuple of arrays
    of_persons : bool
        Whether they are (X, y, groups), in which the rows of a person have no places.
    groups : array-like of shape (n_records,), default=None
        The person to whom each record belongs.

    Raises
    ------
    ValueError
        If they differ in none or in several.
    """
    replaced = np.arange(0) if of_persons else replaced_rows(first, second)
    of_groups = replaced if groups is None else np.unique(codes(groups)[replaced])
    units = replaced_persons(first, second) if of_persons else len(of_groups)
    if units != 1:
        what = "records" if groups is None and not of_persons else "groups"
        raise ValueError(f"D and D_prime differ in {units} {what}, and not in one.")
    return replaced


@silence()
def replaced_rows(first: Any, second: Any) -> np.ndarray:
    """Indices of the records in which two data sets differ.

    Raises
    ------
    ValueError
        If their shapes differ: neighbours have the same number of records.
    """
    differs = False
    for before, now in zip(first, second, strict=True):
        before = _dense(before)
        now = _dense(now)
        if before.shape != now.shape:
            raise ValueError(
                f"D and D_prime have arrays of shapes {before.shape} and {now.shape}: neighbours "
                "have the same number of records, of which one is replaced."
            )
        same = _same(before, now)
        differs |= ~same.reshape(len(before), -1).all(axis=1)
    return np.flatnonzero(differs)


def replaced_persons(first: Any, second: Any) -> int:
    """Number of persons who differ in two data sets (X, y, groups); order does not count.

    Raises
    ------
    ValueError
        If they have not the same number of persons.
    """
    mine, others = map(_by_person, (first, second), _person_numbers(first, second))
    if len(mine) != len(others):
        raise ValueError(
            f"D has {len(mine)} persons and D_prime {len(others)}: neighbours have the same number "
            "of persons, of whom one is replaced."
        )
    return sum(others.get(label) != rows for label, rows in mine.items())


def numbered(first: Any, second: Any) -> tuple[Any, Any]:
    """Two data sets (X, y, groups) with numbers for labels, the same for a person of both.

    Which of their rows are used follows from a secret seed and the number of a person. A person who
    replaces somebody with another label has the same number, so that the others have theirs.
    """
    mine, others = _person_numbers(first, second)
    gone = np.setdiff1d(mine, others)
    new = np.setdiff1d(others, mine)
    if len(gone) == len(new) == 1:
        others = np.where(others == new, gone, others)
    return (*first[:2], mine), (*second[:2], others)


def _person_numbers(first: Any, second: Any) -> list[np.ndarray]:
    """The number of each row's person in both data sets: equal labels have equal numbers."""
    return np.split(codes([*first[2], *second[2]]), [len(first[2])])


def _by_person(data: Any, groups: np.ndarray) -> dict[int, list[bytes]]:
    """The rows of each person as sorted bytes."""
    rows = np.column_stack([floats(_dense(part)) for part in data[:2]])
    found: dict[int, list[bytes]] = {}
    for label, row in zip(groups.tolist(), rows, strict=True):
        found.setdefault(label, []).append(row.tobytes())
    return {label: sorted(rows) for label, rows in found.items()}


def _same(before: Any, now: Any) -> Any:
    """Which cells are the same, NaN included; one that cannot be compared is the same as itself."""
    try:
        return (before == now) | ((before != before) & (now != now))
    except Exception:
        return np.vectorize(_same_cell, otypes=[bool])(before, now)


def _same_cell(one: object, other: object) -> bool:
    with suppress(Exception):
        return one is other or bool(one == other)
    return False


def _dense(array: Any) -> "Array":
    with suppress(Exception):  # A cell of a nested list may be one that cannot be read.
        return array.toarray() if issparse(array) else np.asarray(array)
    return floats(array)


def claim_of(model: Any) -> Budget:
    """Budget that a fitted model or a policy claims, from its guarantee or its parameters."""
    model = pipeline_steps(model)[-1]
    of_estimator = isinstance(model, Reporting) and not isinstance(model, Guaranteeing)
    says = model.privacy_report_ if of_estimator else model
    claimed = says.guarantee if isinstance(says, Guaranteeing) else None
    if isinstance(claimed, Guarantee):
        return Budget(claimed.epsilon, claimed.delta if claimed.private else 0.0)
    params = parameters_of(model)
    if "epsilon" in params and not Trust.absent(str(params.get("privacy")), params["epsilon"]):
        return Budget(float(params["epsilon"]), float(params.get("delta", 0.0)))
    return Budget(inf)
