"""The certified region of running sums: what its proof needs of its parts."""

import numpy as np

from skpriv._estimation._intervals import operator_quantile
from skpriv._estimation._moments import NormalEquations
from skpriv.bandits._ucb import _sums as _region


def test_the_metric_dominates_the_exact_design_and_the_ridge(monkeypatch):
    """W >= V + lam I wherever the noise of the design is at most its quantile."""
    rng, alpha, failure, scale, p = np.random.RandomState(0), 1.0, 0.05, 40.0, 3
    root = rng.normal(size=(p, p))
    exact = 500.0 * root @ root.T
    noise = operator_quantile(scale, p, failure / 3.0)
    design = exact - noise * np.eye(p)  # as far below as the event allows
    equations = NormalEquations(
        design=design, target=np.zeros(p), gram=design, square=1.0, n=5_000, symmetric=True,
        design_scale=scale, target_scale=1e-3, gram_scale=scale,
    )  # fmt: skip
    seen, growths, grown = [], [], _region.rewards_bound

    def smallest(values, vectors, target, metric, beta, bound):
        seen.append((vectors * metric) @ vectors.T - exact)
        seen.append(metric)

    def rewards_bound(growth, level):
        growths.append(growth)
        return grown(growth, level)

    monkeypatch.setattr(_region, "_smallest", smallest)
    monkeypatch.setattr(_region, "rewards_bound", rewards_bound)
    _region.certified(equations, alpha, 1.0, failure)
    beyond, metric = seen
    ridge = float((metric / growths[0])[0])
    assert ridge >= alpha and np.linalg.eigvalsh(beyond)[0] >= ridge * (1.0 - 1e-9)
