"""
A matrix mechanism that hides nothing
=====================================

Adding a Wishart matrix to a Gram matrix looks private: the noise has a density. But it is
one-sided.
If the record z is in the data, the answer minus z z' is positive semi-definite with
certainty; if it
is not, it fails to be with a fixed probability. No epsilon covers that event.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import wishart

D, ALPHA, DRAWS = 5, 1.0, 20_000
z = np.eye(D)[0]
scale = 4.5 / ALPHA

# %%
# The smallest eigenvalue of the answer minus z z' in both worlds: the event that it is
# negative never
# happens with z in the data. Repeated draws of the published noise, nothing else.

noise = wishart(df=D + 1, scale=scale * np.eye(D)).rvs(DRAWS, random_state=0)
with_z = np.linalg.eigvalsh(noise)[:, 0]
without_z = np.linalg.eigvalsh(noise - np.outer(z, z))[:, 0]

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
bins = np.linspace(-1, 3, 80)
ax.hist(with_z, bins, alpha=0.6, label="z is in the data")
ax.hist(without_z, bins, alpha=0.6, label="z is not in the data")
ax.axvline(0.0, color="k", linestyle=":")
ax.set(xlabel="smallest eigenvalue of the answer minus z z'", ylabel="draws")
ax.legend(title=f"P(negative) = {np.mean(with_z < 0):.3f} and {np.mean(without_z < 0):.3f}")
plt.show()

# %%
# The probability is 1 - exp(-alpha / 9), hence delta is at least that for every epsilon.

print(f"measured {np.mean(without_z < 0):.3f}, exact {1 - np.exp(-ALPHA / 9):.3f}")
