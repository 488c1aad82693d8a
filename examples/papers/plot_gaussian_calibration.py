"""
The formula that everybody uses
===============================

``sqrt(2 log(1.25 / delta)) / epsilon`` is the best-known calibration of Gaussian noise. It
was proved
for epsilon below 1; above, it wastes noise at first, and then promises more than it keeps.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from skpriv import Budget

DELTA = 1e-5
epsilons = np.geomspace(0.1, 30, 80)
classical = epsilons / np.sqrt(2 * np.log(1.25 / DELTA))  # mu = sensitivity / scale
exact = np.array([Budget(epsilon, DELTA).mu for epsilon in epsilons])

# %%
# The true delta of a Gaussian release with this mu, exactly (Balle and Wang 2018).

true_delta = norm.cdf(-epsilons / classical + classical / 2) - np.exp(
    epsilons + norm.logcdf(-epsilons / classical - classical / 2)
)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.plot(epsilons, exact / classical)
left.axhline(1.0, color="k", linestyle=":")
left.set(xscale="log", xlabel="epsilon", ylabel="noise of the formula / noise that is needed")
right.plot(epsilons, true_delta, label="true delta of the formula")
right.axhline(DELTA, color="k", linestyle=":", label="claimed delta")
right.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="delta", ylim=(1e-9, 1))
right.legend()
plt.show()
