"""Budgets, accountants, queries and the privacy models that answer them.

An estimator never touches data: it opens a session, asks bounded-sum queries, and gets noisy
answers whose noise law is exact. The privacy model behind the session decides who adds the noise.
"""

from ._ledger._accountant import BudgetAccountant, activated, capture, charge, parallel_part
from ._ledger._accounted import Accounted
from ._ledger._numbering import Numbering, only_copy
from ._ledger._prepaid import prepaid
from ._accounting._budget import Budget
from ._accounting._cost import Cost
from ._accounting._guarantee import Guarantee
from ._accounting._selection import repeated_mu
from ._session._open import MODELS, open_session
from ._session._trust import LOCAL_MODELS, Trust
from ._noise._codebook import codebook, draw_index, draw_ranks, draw_sign, index_weights, lifted
from ._noise._codebook_blocks import CodebookBlocksNoise
from ._noise._codebook_law import Codebook, best_codebook
from ._noise._codebook_noise import CodebookNoise
from ._noise._codebook_reports import LiftedReports
from ._noise._laws import (
    NO_SECURE_REPORTS,
    NO_SECURE_SAMPLER,
    GaussianNoise,
    GumbelNoise,
    NoiseSource,
    SymmetricWishartNoise,
    geometric,
)
from ._noise._privunit import PrivUnitNoise, hadamard_entries
from ._quantile import BoundsQuery
from ._query import ROUNDING, Answer, Procedure, Query
from ._accounting._report import PrivacyReport, ReportRow
from ._session._base import Session
from ._stream._base import Stream
from ._stream._exact import ExactStream
from ._stream._factor import FactorStream
from ._stream._local import LocalStream
from ._stream._shuffle import ShuffleStream
from ._stream._tree import TreeStream
from ._stream._vector_sum import VectorSumStream
from ._stream._open import STREAMS, open_stream

__all__ = [
    "LOCAL_MODELS",
    "MODELS",
    "NO_SECURE_REPORTS",
    "NO_SECURE_SAMPLER",
    "ROUNDING",
    "STREAMS",
    "Accounted",
    "Answer",
    "BoundsQuery",
    "Budget",
    "BudgetAccountant",
    "Cost",
    "ExactStream",
    "FactorStream",
    "GaussianNoise",
    "Guarantee",
    "GumbelNoise",
    "LocalStream",
    "NoiseSource",
    "Numbering",
    "PrivUnitNoise",
    "PrivacyReport",
    "Procedure",
    "Query",
    "ReportRow",
    "Session",
    "ShuffleStream",
    "Stream",
    "SymmetricWishartNoise",
    "TreeStream",
    "Trust",
    "VectorSumStream",
    "activated",
    "capture",
    "charge",
    "geometric",
    "hadamard_entries",
    "only_copy",
    "open_session",
    "open_stream",
    "parallel_part",
    "prepaid",
    "repeated_mu",
]
