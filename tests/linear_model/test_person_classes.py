"""Classes and counts of persons with several rows: held to statsmodels, covered, and less noisy."""

import numpy as np
import pytest
from scipy import stats

from skpriv.inspection import inference
from skpriv.linear_model import LogisticRegression, PoissonRegressor

sm = pytest.importorskip("statsmodels.api")

TRUTH = np.array([0.8, -0.5, 0.2])
MAKERS = {
    LogisticRegression: {"bounds_X": (-1.0, 1.0), "classes": (0, 1)},
    PoissonRegressor: {"bounds_X": (-1.0, 1.0), "bounds_y": (0.0, 20.0)},
}
both = pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.__name__)


def draw(kind, seed, persons, rows):
    """Unequal numbers of rows that go along with each other; the mean of a row is the truth's."""
    rng = np.random.RandomState(seed)
    groups = np.repeat(np.arange(persons), rng.randint(1, rows + 1, persons))
    X = np.column_stack([rng.uniform(-1, 1, persons)[groups], rng.uniform(-1, 1, len(groups))])
    eta = X @ TRUTH[:2] + TRUTH[2]
    if kind is PoissonRegressor:
        own = rng.gamma(4.0, 0.25, persons)[groups]
        return X, np.minimum(rng.poisson(np.exp(eta) * own), 20).astype(float), groups
    own, rest = rng.normal(size=persons)[groups], rng.normal(size=len(groups))
    return X, (stats.norm.cdf(0.7 * own + 0.51**0.5 * rest) < 1 / (1 + np.exp(-eta))) * 1.0, groups


def fit(kind, data, rows, **settings):
    X, y, groups = data
    return kind(**MAKERS[kind], max_rows_per_group=rows, **settings).fit(X, y, groups=groups)


@both
@pytest.mark.parametrize("clustered", [True, False])
def test_standard_errors_are_those_of_statsmodels(kind, clustered):
    X, y, groups = draw(kind, 0, 300, 6)
    model = kind(**MAKERS[kind], privacy="none")
    named = {"cov_type": "HC0"}
    if clustered:
        named = {"cov_type": "cluster"}
        named["cov_kwds"] = {"groups": groups, "use_correction": True}
        model.set_params(max_rows_per_group=6)
    found = inference(model.fit(X, y, groups=groups if clustered else None))
    family = sm.families.Poisson() if kind is PoissonRegressor else sm.families.Binomial()
    peer = sm.GLM(y, np.column_stack([X, np.ones(len(y))]), family=family).fit(tol=1e-14, **named)
    np.testing.assert_allclose(found.estimate, peer.params, rtol=1e-7)
    np.testing.assert_allclose(found.covariance, peer.cov_params(), rtol=1e-7)
    assert found.unit == ("person" if clustered else "record")


@both
def test_noise_for_persons_leaves_the_truth(kind):
    model = fit(kind, draw(kind, 0, 2000, 4), 4, epsilon=20.0, random_state=0)
    found = np.append(np.ravel(model.coef_), model.intercept_)
    np.testing.assert_allclose(found, TRUTH, atol=0.3)


@pytest.mark.slow
@both
def test_intervals_cover_and_rest_on_most_of_the_budget(kind):
    """Intervals of the last of twelve steps alone would have twice this privacy noise."""
    inside, shares = [], []
    for seed in range(20):
        found = inference(fit(kind, draw(kind, seed, 4000, 5), 5, epsilon=5.0, random_state=seed))
        inside.append((found.low <= TRUTH) & (TRUTH <= found.high))
        shares.append(np.nanmedian(found.privacy_share))
    assert (np.mean(inside, axis=0) >= 0.75).all()  # of 20 at 95% fewer once in 3,000
    error = np.sqrt(np.pi / 2 / len(shares)) * np.std(shares)  # of their median
    assert np.median(shares) + 3.0 * error < 0.7  # what the last step alone has, and more
