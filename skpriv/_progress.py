"""A line that tells how far a long run is."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any


def progress(
    results: Iterable[Any],
    total: Any,
    label: str,
    *,
    unit: str = "fits",
    enabled: bool = True,
    every: float = 1.0,
    after: float = 0.0,
    size: Any = None,
) -> Iterator[Any]:
    """Yield from `results`, with a line on stderr about once in `every` seconds.

    On a terminal the line is rewritten; elsewhere a tenth of the work gets at most one. Work that
    ends within `after` seconds gets none. A result is one of `total`, or as many as `size` says.
    """
    start = shown = time.monotonic()
    tenth = done = 0
    for result in results:
        yield result
        done += 1 if size is None else size(result)
        now = time.monotonic()
        live = sys.stderr.isatty()
        due = now - shown >= every and (live or 10 * done // total > tenth)
        if not enabled or now - start < after or not (due or done == total):
            continue
        shown = now
        tenth = 10 * done // total
        left = (now - start) * (total - done) / done
        text = f"{label}: {done} of {total} {unit}, {now - start:.0f} s, about {left:.0f} s left"
        end = "\n" if done == total or not live else ""
        print(f"\r{text:<78}" if live else text, end=end, file=sys.stderr, flush=True)
