"""
A first fit
===========

Hourly wages of 61,395 people: public bounds go in, coefficients in dollars come out, with intervals
that count sampling and privacy noise.
"""

from skpriv.datasets import load_wages
from skpriv.inspection import CoefficientDisplay, inference
from skpriv.linear_model import LinearRegression

# %%
# Bounds are public: they come from what the columns mean, and not from the rows. ``clip="wide"``
# is for coefficients that will be published.

wages = load_wages()
model = LinearRegression(
    epsilon=1.0,
    delta=1e-6,
    bounds_X=wages.bounds,
    bounds_y=wages.bounds_y,
    clip="wide",
    random_state=0,
)
model.fit(wages.data, wages.target)
print(inference(model))

# %%
# What was asked of the data, and at what price.

print(model.privacy_report_)

# %%
# Estimates with 95% intervals, in dollars an hour for one unit of the feature.

display = CoefficientDisplay.from_estimator(model)
