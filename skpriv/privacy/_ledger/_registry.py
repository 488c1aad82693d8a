"""Where the descendants of a process find its accountants.

A process writes its active accountants into a small file named after its id and start. A charge
looks for the files of all ancestors: of the parent, its parent, and so on, and of those that an
environment variable names, which a process inherits even if one between has ended. So a worker is
found whatever started it, and whether it was started before the block or in it.
"""

import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...exceptions import PrivacyError

__all__ = ["announce", "announced", "start_lineage"]

_LINEAGE = "SKPRIV_LINEAGE"
# A stale file of a process that was killed is passed over when its id has a new owner.
_UNKNOWN = "0"


def folders() -> list[Path]:
    """Places of the files, the best first: the same for parent and child, whatever TMPDIR is."""
    owner = str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    roots = ["/tmp", "/var/tmp"] if os.name == "posix" else []
    return [Path(root, f"skpriv-{owner}") for root in dict.fromkeys([*roots, _temporary()])]


def announce(accountants: list[dict[str, Any]]) -> None:
    """Write down which accountants are active in this process, for its descendants."""
    mine = f"{identity(os.getpid())}.json"
    if not accountants:
        for folder in folders():
            if _usable(folder):
                Path(folder, mine).unlink(missing_ok=True)
        return
    for folder in folders():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _usable(folder):
                continue
            descriptor, name = tempfile.mkstemp(dir=folder)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(accountants, file)
            os.replace(name, Path(folder, mine))
        except OSError:
            continue
        return
    raise PrivacyError(
        "No folder can be written where worker processes would find this accountant, of "
        f"{', '.join(map(str, folders()))}: their fits would not be charged."
    )


def announced() -> list[dict[str, Any]]:
    """List what the ancestors of this process have announced, the nearest first."""
    places = [folder for folder in folders() if _usable(folder)]
    names = [f"{name}.json" for name in _possible()] if places else []
    if not any(os.path.exists(f"{folder}/{name}") for folder in places for name in names):
        return []
    found: list[dict[str, Any]] = []
    for name in ancestors():
        for folder in places:
            try:
                text = Path(folder, f"{name}.json").read_text(encoding="utf-8")
            except OSError:
                continue
            found.extend(json.loads(text))
    return found


def ancestors() -> Iterator[str]:
    """Yield the identities of this process's ancestors, each once, the nearest first."""
    seen, pid = {identity(os.getpid())}, os.getppid()
    while pid > 0:
        name = identity(pid)
        if name not in seen:
            seen.add(name)
            yield name
        pid = _status(pid)[0]
    for name in reversed(os.environ.get(_LINEAGE, "").split(",")):
        pid = int(name.split("-")[0] or 0) if name.split("-")[0].isdigit() else 0
        if name not in seen and pid and identity(pid) in (name, f"{pid}-{_UNKNOWN}"):
            seen.add(name)
            yield name


def _possible() -> list[str]:
    """Names of all that may be ancestors now, and of some that have ended: for a quick look.

    A process whose parent has ended goes to another of its ancestors, so that no new one is added
    to those who were ancestors once.
    """
    named = os.environ.get(_LINEAGE, "").split(",")
    return [*_forebears(os.getpid(), os.getppid()), *named]


@lru_cache(maxsize=8)
def _forebears(pid: int, parent: int) -> tuple[str, ...]:
    """Names of a process's ancestors at some time since it began; its ids are for the cache."""
    found = []
    while parent > 0:
        found.append(identity(parent))
        parent = _status(parent)[0]
    return tuple(found)


def start_lineage() -> None:
    """Name this process to those that it will start."""
    names = [name for name in os.environ.get(_LINEAGE, "").split(",") if name]
    mine = identity(os.getpid())
    if mine not in names:
        os.environ[_LINEAGE] = ",".join([*names, mine][-64:])


def identity(pid: int) -> str:
    """Return a process's id and start, which no later process shares."""
    return f"{pid}-{_status(pid)[1]}"


def _status(pid: int) -> tuple[int, str]:
    """Parent and start of a process; (0, "0") where the system does not tell."""
    if sys.platform != "linux":
        return 0, _UNKNOWN
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0, _UNKNOWN
    fields = text.rpartition(")")[2].split()  # the name before may contain anything
    return int(fields[1]), fields[19]


@lru_cache(maxsize=1)
def _temporary() -> str:
    return str(Path(tempfile.gettempdir()).resolve())


def _usable(folder: Path) -> bool:
    """Whether a folder is this user's own: in anybody else's, charges could be forged away."""
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode):
        return False
    return not hasattr(os, "getuid") or (
        status.st_uid == os.getuid() and not status.st_mode & 0o022
    )
