"""The actions of a round: how their features are passed, and which of them may be played."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._stored import frozen
from ...records import floats, in_memory, public_shape, silence
from ._draws import in_blocks

if TYPE_CHECKING:
    from ..._contracts import Array


@frozen
class ActionSpace:
    """What contexts and rows of a policy look like: their shapes are public, their values are not.

    Parameters
    ----------
    shared : bool
        Whether contexts have features of each action. Otherwise they are features of the round, and
        each action has weights of its own.
    n_actions : int
        0 where it is not known before the contexts are.
    n_features : int or None
        None before the first rounds.
    """

    shared: bool
    n_actions: int
    n_features: int | None

    @property
    def n_blocks(self) -> int:
        """Number of blocks of the Gram matrix: actions that have weights of their own."""
        return 1 if self.shared else self.n_actions

    def checked_shape(self, contexts: Any, of_rows: bool = False) -> tuple[int, ...]:
        """Shape of contexts, or of one row a round: it is public, and no value is looked at."""
        shape = public_shape(contexts)
        name = "rows" if of_rows else "contexts"
        wanted = "(n_actions, n_features), or with shared=False (n_features,)"
        fits = len(shape) == 3 and self.n_actions in (0, shape[1])
        if of_rows or not self.shared:
            wanted = (
                "(n_features,): with shared=False the features of the round, and in rows those of "
                "the chosen action. Features of each action need shared=True"
            )
            fits = len(shape) == 2
        if self.n_features is not None and shape[-1:] != (self.n_features,):
            fits = False
            wanted += f". There must be {self.n_features} features, as in the first rounds"
        if not fits or 0 in shape[1:]:
            raise ValueError(
                f"{name} have shape {shape[1:]} in each round, and must have {wanted}. Rounds "
                "are the first axis; Loop.rank takes one round without it."
            )
        return shape

    def count(self, shape: tuple[int, ...]) -> int | None:
        """Number of actions in contexts, or rows, of this shape, as far as it is known."""
        if not self.shared:
            return self.n_actions
        return shape[1] if len(shape) == 3 else None

    def phi(self, contexts: np.ndarray) -> np.ndarray:
        """Features phi(x, a), of shape (n_rounds, n_actions, n_phi).

        With ``shared=False``, phi(x, a) = e_a (x) x: one regression with a block an action, so
        that the privacy noise is calibrated to a change of the action too.
        """
        return contexts if self.shared else in_blocks(contexts, self.n_actions)

    def chosen(self, rows: np.ndarray, actions: np.ndarray) -> "Array":
        """Rows phi(x, a) of the chosen actions; with ``shared=False`` x is in the block of a."""
        if self.shared:
            return rows
        blocks = np.eye(self.n_actions)[actions][:, :, None] * rows[:, None]
        return blocks.reshape(len(rows), -1)


@silence()
def checked_available(available: Any, n_rounds: int, n_actions: Any) -> np.ndarray | None:
    """Mask of what may be played, one row a round; None where all may be, or nothing is said."""
    if available is None:
        return None
    try:
        available = np.asarray(available) if in_memory(available) else np.empty(0)
    except Exception:  # ragged, or of objects of their own kind
        available = np.empty(0)
    if available.dtype != bool or available.shape not in ((n_rounds, n_actions), (n_actions,)):
        raise ValueError(
            f"available must be a mask, an array of bool of shape ({n_actions},), or with a row "
            f"for each round ({n_rounds}, {n_actions})."
        )
    if available.all():
        return None
    if not available.any(axis=-1).all():
        raise ValueError("available has a round without an action: let each have one.")
    return np.broadcast_to(available, (n_rounds, n_actions))


def known_actions(actions: Any, n_actions: int) -> tuple[np.ndarray, np.ndarray]:
    """Actions, 0 in place of those that are unknown, and which are valid: private, like rewards."""
    actions = floats(actions)
    valid = (actions >= 0) & (actions < n_actions) & (actions == np.floor(actions))
    return np.where(valid, actions, 0).astype(np.intp), valid
