"""Running sums that are read many times, and from the name of a privacy model to their kinds."""

from ._base import Stream
from ._central import ExactStream, FactorStream, TreeStream
from ._local import LocalStream, ShuffleStream
from ._vector_sum import VectorSumStream

STREAMS: dict[str, dict[str, type[Stream]]] = {
    "none": {"exact": ExactStream},
    "local": {"reports": LocalStream},
    "central": {"factor": FactorStream, "tree": TreeStream},
    "shuffle": {"amplified": ShuffleStream, "vector-sum": VectorSumStream},
}


def stream_of(model, query, budget, horizon, mechanism=None, batch=None):
    """Stream that a session has not begun: what is public has been checked.

    Parameters
    ----------
    model : {"central", "local", "shuffle", "none"}
    query : Query
    budget : Budget
        What one record may lose.
    horizon : int
        How often the sum may be read at most.
    mechanism : str or None, default=None
        None is the first kind of the model; without noise there is one alone.
    batch : int, default=None
        Public number of records between two reads.

    Returns
    -------
    Stream
    """
    choices = STREAMS[model]
    if mechanism is None or model == "none":
        mechanism = next(iter(choices))
    if mechanism not in choices:
        raise ValueError(
            f"mechanism={mechanism!r} must be one of {list(choices)} for privacy={model!r}."
        )
    stream = choices[mechanism](query, horizon, batch)
    stream.check(budget)
    return stream
