"""Budgets, accountants, queries and the privacy models that answer them.

An estimator never touches data: it opens a session, asks bounded-sum queries, and gets noisy
answers whose noise law is exact. The privacy model behind the session decides who adds the noise.
"""

from ._accountant import BudgetAccountant, activated, capture, charge, parallel_part
from ._accounted import Accounted
from ._answer import Answer
from ._budget import Budget
from ._cost import Cost
from ._models import MODELS, open_session
from ._noise import GaussianNoise, GumbelNoise, NoiseSource
from ._procedure import Procedure
from ._query import ROUNDING, Query
from ._report import PrivacyReport
from ._session import Session

__all__ = [
    "MODELS",
    "ROUNDING",
    "Accounted",
    "Answer",
    "Budget",
    "BudgetAccountant",
    "Cost",
    "GaussianNoise",
    "GumbelNoise",
    "NoiseSource",
    "PrivacyReport",
    "Procedure",
    "Query",
    "Session",
    "activated",
    "capture",
    "charge",
    "open_session",
    "parallel_part",
]
