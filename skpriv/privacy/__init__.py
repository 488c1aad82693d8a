"""Budgets, accountants, queries and the privacy models that answer them.

An estimator never touches data: it opens a session, asks bounded-sum queries, and gets noisy
answers whose noise law is exact. The privacy model behind the session decides who adds the noise.
"""

from .._wire import (
    DEVICE_SEED_BYTES, INDEX_BYTES, LARGEST_EPSILON, LARGEST_SIZE, TASK_BYTES, WIRE_VERSION,
    codebook, draw_index, draw_ranks, draw_sign, index_weights, is_known, lifted, read_report,
    read_task, report_bytes, reported_directions, task_hash, user_seed,
)  # fmt: skip
from ._accounting._callers import Callers, learns_nothing
from ._accounting._cost import Budget, Cost
from ._accounting._guarantee import Capabilities, Guarantee, Trust, capabilities, models_that
from ._accounting._lattice import (
    MODULUS, NO_ROOM, Devices, Lattice, shares_needed, sharing_security,
)  # fmt: skip
from ._accounting._report import PrivacyReport, ReportRow
from ._amplification import amplified, amplified_epsilon
from ._ledger._accountant import (
    Accounted, BudgetAccountant, Lineage, activated, active_ledgers, adds_up_gaussians, capture,
    charge, charged_once, noticed_charges, parallel_part,
)  # fmt: skip
from ._ledger._context import prepaid, protecting
from ._ledger._ledger import Ledger, Limit, unit_sentence, unit_text
from ._ledger._numbering import Hashed, Numbering, TurnLock
from ._noise._codebook_law import TYPICAL_NORM, Codebook, LiftedReports, best_codebook
from ._noise._codebook_noise import (
    CodebookBlocksNoise, CodebookNoise, ResponseNoise, hadamard_entries,
)  # fmt: skip
from ._noise._lattice import additive_shares, discrete_gaussian, rounded, summed_shares
from ._noise._laws import GaussianNoise, GumbelNoise, NoiseSource, listening
from ._query import (
    MOST_NOISE, ROUNDING, SIDE_SHARE, TOLD_ABOVE, Answer, InnerSum, Procedure, Query,
    reordered,
)  # fmt: skip
from ._session._base import Groups, Piece, Session
from ._session._open import MODELS, begin_stream, open_session, open_stream
from ._session._parts import SessionPart, split
from ._stream import (
    BEFORE_NOISE, ExactStream, FactorStream, LocalStream, Raw, SharedSumStream, ShuffleStream,
    Stream,
)  # fmt: skip

# These names are for users. Those that are imported beside them are for builders of queries,
# privacy models and estimators (docs/howto), and may change.
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
