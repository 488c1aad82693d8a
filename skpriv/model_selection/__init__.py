"""The price of privacy in accuracy, and scores and searches that may be published."""

from ._curve import PrivacyUtilityDisplay, privacy_utility_curve
from ._private_score import PrivateScore, private_score
from ._private_search import PrivateSearchCV

__all__ = [
    "PrivacyUtilityDisplay",
    "PrivateScore",
    "PrivateSearchCV",
    "privacy_utility_curve",
    "private_score",
]
