"""What privacy costs in accuracy: curves over epsilon, and their picture."""

from ._curve import privacy_utility_curve
from ._display import PrivacyUtilityDisplay

__all__ = ["PrivacyUtilityDisplay", "privacy_utility_curve"]
