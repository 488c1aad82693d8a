"""A policy in mid-run, in a file: one format, with a version."""

import json
from secrets import token_hex
from typing import Any

from ..._codec import MOST_ENTRIES, decoded, encoded, naming, parsed, write_whole
from ...privacy import BEFORE_NOISE, Accounted


MAGIC = b"skpriv policy\n"
RAW = "raw data of an open epoch"  # in place of the name of a policy
STATE_VERSION = 4  # version 3 held Python objects


def tell_taken(error: Any, taken: int, n_rounds: int) -> None:
    """Say in an error of `update` how many rounds were taken, as its note and ``rounds_taken``.

    A combiner says it of its rounds, in place of what its policy has said.
    """
    error.rounds_taken = taken
    error.__notes__ = [
        f"Of these {n_rounds} rounds, the first {taken} were taken, and the policy has learnt from "
        "those of them whose epochs closed: update it with the others only."
    ]


def policy_values(policy: Any, **options: Any) -> Any:
    """Plain values of a policy as it is now, for a file; see `_codec.encoded` for the options."""
    with policy._turn_lock:
        values = encoded(policy, of_policies=True, **options)
        return {"policy": values, "accountants": encoded(policy.written_accountants())}


def policy_of(values: Any, apart: Any = ()) -> Any:
    """The policy of plain values, of which nothing is believed."""
    if not isinstance(values, dict) or values.keys() != {"policy", "accountants"}:
        raise ValueError("This is no policy that was saved.")
    policy = decoded(values["policy"], of_policies=True, apart=apart)
    if not isinstance(policy, Accounted):
        raise ValueError("This is no policy that was saved.")
    try:
        policy.charge_to(decoded(values["accountants"]))
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ValueError("The accountants of a policy that was saved are damaged.") from error
    return policy


def save(policy: Accounted, path: Any, raw_path: Any) -> None:
    """Write a policy; see `BasePolicy.save`."""
    apart: list[Any] = []
    # Propensities of the last rounds tell of these users' contexts
    away = {"apart": apart, "apart_names": ("propensities_",), "apart_kinds": BEFORE_NOISE}
    values = policy_values(policy, **({} if raw_path is None else away))
    header = {
        "version": STATE_VERSION,
        "policy": type(policy).__name__,
        "apart": len(apart),
        "pair": token_hex(16),
    }
    files = {path: [header, values]}
    if raw_path is not None:
        files[raw_path] = [{**header, "policy": RAW}, encoded(apart, of_policies=True)]
    write_whole(
        {name: MAGIC + "\n".join(map(json.dumps, parts)).encode() for name, parts in files.items()}
    )


def _read(path: Any) -> Any:
    with open(path, "rb") as file, naming(path):
        content = file.read(MOST_ENTRIES + 1)
        if not content.startswith(MAGIC) or len(content) > MOST_ENTRIES:
            raise ValueError("it is no saved policy: pass a file that policy.save(path) wrote.")
        line, _, body = content[len(MAGIC) :].partition(b"\n")
        header = parsed(line)
        version = header.get("version") if isinstance(header, dict) else None
        if version not in (None, STATE_VERSION):
            raise ValueError(
                f"it has version {version} of the format, and this skpriv reads version "
                f"{STATE_VERSION}: go on with the skpriv that wrote it."
            )
        if version is None or "apart" not in header:
            raise ValueError("its header is damaged: give a backup.")
        return header, parsed(body)


def load(path: Any, *, raw_path: Any = None) -> Any:
    """Load a policy that was saved in mid-run; it goes on where it was.

    A paid answer is not paid again, and of several copies one goes on: an answer that one copy has
    released is not given again by another with fresh noise. A `RandomState` that the policy shared
    with something else is a copy of its own from then on.

    Reading a file runs no code of it, and opens no other file. The policy goes on with the numbers
    that the file has, and is charged to the ledgers that it names, and writes its answers where it
    says: load only files of whom you would let play.

    Parameters
    ----------
    path : str or path-like
        Written by a policy's ``save``.
    raw_path : str or path-like, default=None
        Where the raw data of the open epoch was kept, if it was kept apart.

    Returns
    -------
    policy
        The policy, of the class that was saved.

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
    header, values = _read(path)
    apart = ()
    if header["apart"]:
        if raw_path is None:
            raise ValueError(f"The file {str(path)!r}: the raw data was kept apart: pass raw_path.")
        raw_header, raw = _read(raw_path)
        with naming(raw_path):
            if raw_header != {**header, "policy": RAW}:
                raise ValueError("it was not saved together with the policy: give their last pair.")
            apart = decoded(raw, of_policies=True)
    with naming(path):
        return policy_of(values, apart)
