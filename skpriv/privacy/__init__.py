"""Budgets, accountants, queries and the privacy models that answer them.

An estimator never touches data: it opens a session, asks bounded-sum queries, and gets noisy
answers whose noise law is exact. The privacy model behind the session decides who adds the noise.
"""

from ._accountant import BudgetAccountant, activated, capture, charge, parallel_part
from ._accounted import Accounted
from ._answer import Answer
from ._budget import Budget
from ._cost import Cost
from ._models import LOCAL_MODELS, MODELS, open_session
from ._noise import (
    NO_SECURE_REPORTS,
    NO_SECURE_SAMPLER,
    GaussianNoise,
    GumbelNoise,
    NoiseSource,
    SymmetricWishartNoise,
)
from ._privunit import PrivUnitNoise, hadamard_entries
from ._procedure import Procedure
from ._quantile import BoundsQuery
from ._query import ROUNDING, Query
from ._report import PrivacyReport, ReportRow
from ._session import Session
from ._stream import Stream
from ._stream_exact import ExactStream
from ._stream_factor import FactorStream
from ._stream_local import LocalStream
from ._stream_shuffle import ShuffleStream
from ._stream_tree import TreeStream
from ._stream_vector_sum import VectorSumStream
from ._streams import STREAMS, open_stream

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
    "GumbelNoise",
    "LocalStream",
    "NoiseSource",
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
    "VectorSumStream",
    "activated",
    "capture",
    "charge",
    "hadamard_entries",
    "open_session",
    "open_stream",
    "parallel_part",
]
