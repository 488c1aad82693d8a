"""
What privacy costs on a real table
==================================

Cross-validated R2 of warfarin doses at several epsilons, with the non-private fit as a line. This
curve is for study: its scores are exact functions of held-out rows, and are not private.
"""

from sklearn.pipeline import make_pipeline

from skpriv.datasets import load_warfarin
from skpriv.linear_model import SSPRegressor
from skpriv.model_selection import PrivacyUtilityDisplay
from skpriv.preprocessing import BoundsScaler

warfarin = load_warfarin()
model = make_pipeline(
    BoundsScaler(warfarin.bounds, exclusive=warfarin.exclusive),
    SSPRegressor(data_norm=1.0, delta=1e-6, bounds_y=warfarin.bounds_y, random_state=0),
)
display = PrivacyUtilityDisplay.from_estimator(
    model, warfarin.data, warfarin.target, epsilons=[0.3, 1.0, 3.0, 10.0], n_repeats=2
)
