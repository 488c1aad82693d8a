"""A policy in mid-run, in a file: one format, with a version."""

from typing import Any
import io
import json
import os
import pickle
from pathlib import Path

from ..privacy import BEFORE_NOISE

MAGIC = b"skpriv policy\n"
STATE_VERSION = 3


def tell_taken(error, taken, n_rounds):
    """Say in an error of `update` how many rounds were taken, as its text and ``rounds_taken``."""
    error.rounds_taken = taken
    words = (
        f"Of these {n_rounds} rounds, the first {taken} were taken, and the policy has learnt from "
        "those of them whose epochs closed: update it with the others only."
    )
    # A combiner says of its rounds what one of its policies has said of those that it was given.
    args, notes = vars(error).setdefault("_said", (error.args, [*getattr(error, "__notes__", [])]))
    if len(args) == 1 and isinstance(args[0], str):
        error.args = (f"{args[0]} {words}",)
    else:
        error.__notes__ = [*notes, words]


def save(policy, path, raw_path):
    """Write a policy; see `BasePolicy.save`."""
    apart: list = []
    chances: list = []  # of the last rounds: they tell of these users' contexts

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            if isinstance(obj, dict) and "propensities_" in obj:  # the state of a policy
                chances.append(obj["propensities_"])
            raw = isinstance(obj, BEFORE_NOISE) or any(obj is one for one in chances)
            if raw_path is None or not raw:
                return None
            apart.append(obj)
            return len(apart) - 1

    buffer = io.BytesIO()
    Pickler(buffer, protocol=5).dump(policy)
    header = {"version": STATE_VERSION, "policy": type(policy).__name__, "apart": len(apart)}
    if raw_path is not None:
        _write(raw_path, {**header, "policy": "raw data of an open epoch"}, pickle.dumps(apart))
    _write(path, header, buffer.getvalue())


def _write(path, header, body):
    """Write a file whole or not at all."""
    path = Path(path)
    partial = path.with_name(path.name + f".{os.getpid()}.part")
    with open(partial, "wb") as file:
        file.write(MAGIC + json.dumps(header).encode() + b"\n" + body)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def _read(path):
    content = Path(path).read_bytes()
    if not content.startswith(MAGIC):
        raise ValueError(f"{os.fspath(path)!r} is not a file that a policy was saved in.")
    line, body = content[len(MAGIC) :].split(b"\n", 1)
    header = json.loads(line)
    if header["version"] != STATE_VERSION:
        raise ValueError(
            f"{os.fspath(path)!r} has version {header['version']} of the format, and this skpriv "
            f"reads version {STATE_VERSION}."
        )
    return header, body


def load(path: Any, *, raw_path: Any = None) -> Any:
    """Load a policy that was saved in mid-run; it goes on where it was.

    What was paid for is not paid again, and of several copies one goes on: an answer that one copy
    has released is not given again by another with fresh noise. A `RandomState` that the policy
    shared with something else is a copy of its own from then on, as in every pickle.

    Parameters
    ----------
    path : str or path-like
        Written by a policy's ``save``. It holds Python objects: load only files that you trust.
    raw_path : str or path-like, default=None
        Where the raw data of the open epoch was kept, if it was kept apart.

    Returns
    -------
    policy

    Raises
    ------
    ValueError
        If the file is of another kind or version, or its raw data is elsewhere.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from skpriv.bandits import LinUCB, load
    >>> policy, contexts = LinUCB(epsilon=1.0, random_state=0), np.eye(3)[None]
    >>> policy = policy.update(contexts, policy.act(contexts), [1.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     policy.save(pathlib.Path(folder) / "policy")
    ...     again = load(pathlib.Path(folder) / "policy")
    >>> again.n_rounds_
    1
    """
    header, body = _read(path)
    apart = []
    if header["apart"]:
        if raw_path is None:
            raise ValueError(f"the raw data of {os.fspath(path)!r} was kept apart: pass raw_path.")
        apart = pickle.loads(_read(raw_path)[1])

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, pid):
            return apart[pid]

    return Unpickler(io.BytesIO(body)).load()
