"""Budgets, accountants, queries and the privacy models that answer them.

An estimator never touches data: it opens a session, asks bounded-sum queries, and gets noisy
answers whose noise law is exact. The privacy model behind the session decides who adds the noise.

Names are loaded when they are first asked for: a device needs the codebook alone, for which NumPy
and the standard library are enough.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers see; a test holds it to what is loaded
    from ._amplification import amplified, amplified_epsilon
    from ._accounting._budget import Budget
    from ._accounting._capabilities import Capabilities, capabilities, models_that
    from ._accounting._cost import Cost
    from ._accounting._guarantee import Guarantee
    from ._accounting._lattice import MODULUS, NO_ROOM, Devices, Lattice
    from ._accounting._sharing import shares_needed, sharing_security
    from ._accounting._report import PrivacyReport, ReportRow, learns_nothing
    from ._ledger._accountant import BudgetAccountant
    from ._ledger._active import (
        Accounted,
        activated,
        active_ledgers,
        adds_up_gaussians,
        capture,
        charge,
        charged_once,
        noticed_charges,
        parallel_part,
    )
    from ._ledger._ledger import Ledger
    from ._ledger._limit import Limit
    from ._ledger._lineage import Lineage
    from ._ledger._numbering import Numbering
    from ._ledger._parts import prepaid
    from ._ledger._unit import protecting, unit_sentence, unit_text
    from ._noise._codebook import (
        LARGEST_EPSILON,
        codebook,
        draw_index,
        draw_ranks,
        draw_sign,
        index_weights,
        lifted,
    )
    from ._noise._codebook_law import TYPICAL_NORM, Codebook, best_codebook
    from ._noise._codebook_blocks import CodebookBlocksNoise, hadamard_entries
    from ._noise._codebook_noise import CodebookNoise
    from ._noise._codebook_reports import LiftedReports
    from ._noise._discrete_gaussian import discrete_gaussian
    from ._noise._laws import GaussianNoise, GumbelNoise, NoiseSource
    from ._noise._lattice import additive_shares, rounded, summed_shares
    from ._noise._responses import ResponseNoise
    from ._query import (
        MOST_NOISE,
        ROUNDING,
        SIDE_SHARE,
        TOLD_ABOVE,
        Answer,
        Mapped,
        Procedure,
        Query,
        reordered,
    )
    from ._session._base import Session
    from ._session._open import MODELS, begin_stream, open_session, open_stream
    from ._session._parts import Part, split
    from ._session._pieces import Piece
    from ._session._trust import Groups, Trust
    from ._stream._base import Stream
    from ._stream._central import ExactStream, FactorStream, TreeStream
    from ._stream._local import LocalStream, SharedSumStream, ShuffleStream
    from ._tape import listening
    from ._wire import (
        DEVICE_SEED_BYTES,
        INDEX_BYTES,
        LARGEST_SIZE,
        TASK_BYTES,
        WIRE_VERSION,
        is_known,
        read_report,
        read_task,
        report_bytes,
        reported_directions,
        task_hash,
        user_seed,
    )

# Where each name lives: a name is loaded when it is first asked for.
_HOMES = {
    "_amplification": ["amplified", "amplified_epsilon"],
    "_accounting._budget": ["Budget"],
    "_accounting._capabilities": ["Capabilities", "capabilities", "models_that"],
    "_accounting._cost": ["Cost"],
    "_accounting._guarantee": ["Guarantee"],
    "_accounting._lattice": ["MODULUS", "NO_ROOM", "Devices", "Lattice"],
    "_accounting._sharing": ["shares_needed", "sharing_security"],
    "_accounting._report": ["PrivacyReport", "ReportRow", "learns_nothing"],
    "_ledger._accountant": ["BudgetAccountant"],
    "_ledger._active": [
        "Accounted",
        "activated",
        "active_ledgers",
        "adds_up_gaussians",
        "capture",
        "charge",
        "charged_once",
        "noticed_charges",
        "parallel_part",
    ],
    "_ledger._ledger": ["Ledger"],
    "_ledger._limit": ["Limit"],
    "_ledger._lineage": ["Lineage"],
    "_ledger._numbering": ["Numbering"],
    "_ledger._parts": ["prepaid"],
    "_ledger._unit": ["protecting", "unit_sentence", "unit_text"],
    "_noise._codebook": [
        "LARGEST_EPSILON",
        "codebook",
        "draw_index",
        "draw_ranks",
        "draw_sign",
        "index_weights",
        "lifted",
    ],
    "_noise._codebook_law": ["TYPICAL_NORM", "Codebook", "best_codebook"],
    "_noise._codebook_blocks": ["CodebookBlocksNoise", "hadamard_entries"],
    "_noise._codebook_noise": ["CodebookNoise"],
    "_noise._codebook_reports": ["LiftedReports"],
    "_noise._discrete_gaussian": ["discrete_gaussian"],
    "_noise._laws": ["GaussianNoise", "GumbelNoise", "NoiseSource"],
    "_noise._lattice": ["additive_shares", "rounded", "summed_shares"],
    "_noise._responses": ["ResponseNoise"],
    "_wire": [
        "DEVICE_SEED_BYTES",
        "INDEX_BYTES",
        "LARGEST_SIZE",
        "TASK_BYTES",
        "WIRE_VERSION",
        "is_known",
        "read_report",
        "read_task",
        "report_bytes",
        "reported_directions",
        "task_hash",
        "user_seed",
    ],
    "_query": [
        "MOST_NOISE",
        "ROUNDING",
        "SIDE_SHARE",
        "TOLD_ABOVE",
        "Answer",
        "Mapped",
        "Procedure",
        "Query",
        "reordered",
    ],
    "_session._base": ["Session"],
    "_session._open": ["MODELS", "begin_stream", "open_session", "open_stream"],
    "_session._parts": ["Part", "split"],
    "_session._pieces": ["Piece"],
    "_tape": ["listening"],
    "_session._trust": ["Groups", "Trust"],
    "_stream._base": ["Stream"],
    "_stream._central": ["ExactStream", "FactorStream", "TreeStream"],
    "_stream._local": ["LocalStream", "SharedSumStream", "ShuffleStream"],
}

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
