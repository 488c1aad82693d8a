"""Budgets, accountants, queries and the privacy models that answer them.

An estimator never touches data: it opens a session, asks bounded-sum queries, and gets noisy
answers whose noise law is exact. The privacy model behind the session decides who adds the noise.

Names are loaded when they are first asked for: a device needs the codebook alone, for which NumPy
and the standard library are enough.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers see; a test holds it to what is loaded
    from ._accounting._cost import Budget, Cost
    from ._accounting._guarantee import (
        Capabilities, Guarantee, Trust, capabilities, models_that,
    )  # fmt: skip
    from ._accounting._lattice import (
        MODULUS, NO_ROOM, Devices, Lattice, shares_needed, sharing_security,
    )  # fmt: skip
    from ._accounting._report import PrivacyReport, ReportRow, learns_nothing
    from ._amplification import amplified, amplified_epsilon
    from ._ledger._accountant import (
        Accounted, BudgetAccountant, Lineage, activated, active_ledgers, adds_up_gaussians, capture,
        charge, charged_once, noticed_charges, parallel_part,
    )  # fmt: skip
    from ._ledger._ledger import Ledger, Limit, unit_sentence, unit_text
    from ._ledger._numbering import Numbering
    from ._ledger._parts import prepaid, protecting
    from ._noise._codebook import (
        LARGEST_EPSILON, codebook, draw_index, draw_ranks, draw_sign, index_weights, lifted,
    )  # fmt: skip
    from ._noise._codebook_law import TYPICAL_NORM, Codebook, LiftedReports, best_codebook
    from ._noise._codebook_noise import (
        CodebookBlocksNoise, CodebookNoise, ResponseNoise, hadamard_entries,
    )  # fmt: skip
    from ._noise._lattice import additive_shares, discrete_gaussian, rounded, summed_shares
    from ._noise._laws import GaussianNoise, GumbelNoise, NoiseSource
    from ._query import (
        MOST_NOISE, ROUNDING, SIDE_SHARE, TOLD_ABOVE, Answer, InnerSum, Mapped, Procedure, Query,
        reordered,
    )  # fmt: skip
    from ._session._base import Groups, Piece, Session
    from ._session._open import MODELS, begin_stream, open_session, open_stream
    from ._session._parts import Part, split
    from ._stream import (
        ExactStream, FactorStream, LocalStream, SharedSumStream, ShuffleStream, Stream,
    )  # fmt: skip
    from ._tape import listening
    from ._wire import (
        DEVICE_SEED_BYTES, INDEX_BYTES, LARGEST_SIZE, TASK_BYTES, WIRE_VERSION, is_known,
        read_report, read_task, report_bytes, reported_directions, task_hash, user_seed,
    )  # fmt: skip

# Where each name lives: a name is loaded when it is first asked for.
_PLACES = {
    "_accounting._cost": "Budget Cost",
    "_accounting._guarantee": "Capabilities Guarantee Trust capabilities models_that",
    "_accounting._lattice": "MODULUS NO_ROOM Devices Lattice shares_needed sharing_security",
    "_accounting._report": "PrivacyReport ReportRow learns_nothing",
    "_amplification": "amplified amplified_epsilon",
    "_ledger._accountant": "Accounted BudgetAccountant Lineage activated active_ledgers "
    "adds_up_gaussians capture charge charged_once noticed_charges parallel_part",
    "_ledger._ledger": "Ledger Limit unit_sentence unit_text",
    "_ledger._numbering": "Numbering",
    "_ledger._parts": "prepaid protecting",
    "_noise._codebook": "LARGEST_EPSILON codebook draw_index draw_ranks draw_sign index_weights "
    "lifted",
    "_noise._codebook_law": "TYPICAL_NORM Codebook LiftedReports best_codebook",
    "_noise._codebook_noise": "CodebookBlocksNoise CodebookNoise ResponseNoise hadamard_entries",
    "_noise._lattice": "additive_shares discrete_gaussian rounded summed_shares",
    "_noise._laws": "GaussianNoise GumbelNoise NoiseSource",
    "_query": "MOST_NOISE ROUNDING SIDE_SHARE TOLD_ABOVE Answer InnerSum Mapped Procedure Query "
    "reordered",
    "_session._base": "Groups Piece Session",
    "_session._open": "MODELS begin_stream open_session open_stream",
    "_session._parts": "Part split",
    "_stream": "ExactStream FactorStream LocalStream SharedSumStream ShuffleStream Stream",
    "_tape": "listening",
    "_wire": "DEVICE_SEED_BYTES INDEX_BYTES LARGEST_SIZE TASK_BYTES WIRE_VERSION is_known "
    "read_report read_task report_bytes reported_directions task_hash user_seed",
}
_HOMES = {home: names.split() for home, names in _PLACES.items()}

# The users' door. What is loaded beside these names is the builders' door: for queries, privacy
# models and estimators that are added (docs/howto), without a promise that it stays.
__all__ = [
    "MODELS",
    "ROUNDING",
    "Answer",
    "Budget",
    "BudgetAccountant",
    "Capabilities",
    "Codebook",
    "Cost",
    "GaussianNoise",
    "Guarantee",
    "PrivacyReport",
    "Procedure",
    "Query",
    "ReportRow",
    "Session",
    "Stream",
    "amplified_epsilon",
    "best_codebook",
    "capabilities",
    "charge",
    "draw_index",
    "open_session",
    "open_stream",
    "parallel_part",
    "shares_needed",
    "split",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            globals()[name] = found = getattr(import_module(f".{home}", __name__), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *(name for names in _HOMES.values() for name in names)})
