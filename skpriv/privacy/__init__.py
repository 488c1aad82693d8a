"""Budgets, accountants, queries and the privacy models that answer them.

An estimator never touches data: it opens a session, asks bounded-sum queries, and gets noisy
answers whose noise law is exact. The privacy model behind the session decides who adds the noise.
"""

from .._wire import (
    DEVICE_SEED_BYTES as DEVICE_SEED_BYTES, INDEX_BYTES as INDEX_BYTES,
    LARGEST_EPSILON as LARGEST_EPSILON, LARGEST_SIZE as LARGEST_SIZE, TASK_BYTES as TASK_BYTES,
    WIRE_VERSION as WIRE_VERSION, codebook as codebook, draw_index, draw_ranks as draw_ranks,
    draw_sign as draw_sign, index_weights as index_weights, is_known as is_known, lifted as lifted,
    read_report as read_report, read_task as read_task, report_bytes as report_bytes,
    reported_directions as reported_directions, task_hash as task_hash, user_seed as user_seed,
)  # fmt: skip
from ._accounting._callers import Callers as Callers, learns_nothing as learns_nothing
from ._accounting._cost import Budget, Cost
from ._accounting._guarantee import (
    Capabilities, Guarantee, Trust as Trust, capabilities, models_that as models_that,
)  # fmt: skip
from ._accounting._lattice import (
    MODULUS as MODULUS, NO_ROOM as NO_ROOM, Devices as Devices, Lattice as Lattice, shares_needed,
    sharing_security as sharing_security,
)  # fmt: skip
from ._accounting._report import PrivacyReport, ReportRow
from ._amplification import amplified as amplified, amplified_epsilon
from ._ledger._accountant import (
    Accounted as Accounted, BudgetAccountant, Lineage as Lineage, activated as activated,
    active_ledgers as active_ledgers, adds_up_gaussians as adds_up_gaussians, capture as capture,
    charge, charged_once as charged_once, noticed_charges as noticed_charges, parallel_part,
)  # fmt: skip
from ._ledger._context import prepaid as prepaid, protecting as protecting
from ._ledger._ledger import (
    Ledger as Ledger, Limit as Limit, unit_sentence as unit_sentence, unit_text as unit_text,
)  # fmt: skip
from ._ledger._numbering import Hashed as Hashed, Numbering as Numbering, TurnLock as TurnLock
from ._noise._codebook_law import (
    TYPICAL_NORM as TYPICAL_NORM, Codebook, LiftedReports as LiftedReports, best_codebook,
)  # fmt: skip
from ._noise._codebook_noise import (
    CodebookBlocksNoise as CodebookBlocksNoise, CodebookNoise as CodebookNoise,
    ResponseNoise as ResponseNoise, hadamard_entries as hadamard_entries,
)  # fmt: skip
from ._noise._lattice import (
    additive_shares as additive_shares, discrete_gaussian as discrete_gaussian, rounded as rounded,
    summed_shares as summed_shares,
)  # fmt: skip
from ._noise._laws import (
    GaussianNoise, GumbelNoise as GumbelNoise, NoiseSource as NoiseSource, listening as listening,
)  # fmt: skip
from ._query import (
    MOST_NOISE as MOST_NOISE, ROUNDING, SIDE_SHARE as SIDE_SHARE, TOLD_ABOVE as TOLD_ABOVE, Answer,
    InnerSum as InnerSum, Procedure, Query, reordered as reordered,
)  # fmt: skip
from ._session._base import Session
from ._session._groups import Groups as Groups
from ._session._open import MODELS, begin_stream as begin_stream, open_session, open_stream
from ._session._parts import SessionPart as SessionPart, split
from ._session._pieces import Piece as Piece
from ._stream import (
    BEFORE_NOISE as BEFORE_NOISE, ExactStream as ExactStream, FactorStream as FactorStream,
    LocalStream as LocalStream, Raw as Raw, SharedSumStream as SharedSumStream,
    ShuffleStream as ShuffleStream, Stream,
)  # fmt: skip

# These names are for users. Those that are imported beside them, each as itself, are for builders
# of queries, privacy models and estimators (docs/howto), and may change.
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
