"""
An interval for a new person
============================

A confidence interval is for the mean of people with given features. An interval for one new
person's wage is wider, and needs no linear model to hold: a part of the rows is set aside, and a
private quantile of their errors is released.
"""

from skpriv.datasets import load_wages
from skpriv.inspection import IntervalDisplay
from skpriv.linear_model import LinearRegression

wages = load_wages()
model = LinearRegression(
    epsilon=1.0,
    delta=1e-6,
    bounds_X=wages.bounds,
    bounds_y=wages.bounds_y,
    calibration_size=0.1,
    prediction_levels=(0.9,),
    random_state=0,
)
people, pay = wages.data, wages.target
model.fit(people.iloc[:50_000], pay.iloc[:50_000])

# %%
# Of people who were in no fit, about nine in ten are inside.

held_out = people.iloc[50_000:]
low, high = model.prediction_interval(held_out, confidence_level=0.9)
inside = (low <= pay.iloc[50_000:]) & (pay.iloc[50_000:] <= high)
print(f"{100 * inside.mean():.1f}% of {len(inside)} people")

# %%
# Predictions with both kinds of intervals, along one feature.

display = IntervalDisplay.from_estimator(
    model, held_out.head(200), feature="education", kind="prediction", confidence_level=0.9
)
