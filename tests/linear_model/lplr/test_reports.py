"""Layered regression by codebook reports: unbiased sums, honest bounds, price, refusals."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skpriv._estimation._public_maps import RecordMap
from skpriv._linalg import unvech
from skpriv.linear_model._lplr._growth import grow
from skpriv.linear_model._lplr._tree import CodebookLevelQuery, ReportLaw
from skpriv.privacy import Budget, open_session

D, N = 2, 400
SCALING = RecordMap.of_norm(1.0, (-1.0, 1.0), False, D)
BUDGET = Budget(2.0, 0.0)


def _records(seed=0, n=N):
    """Records of many norms, some of them in no bin."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, D))
    X *= (2.0 ** -rng.randint(0, 4, size=n) / np.linalg.norm(X, axis=1))[:, None]
    return X, rng.choice([-1.0, 1.0], size=n)


def _query(crossed):
    """The query of level 1, or of level 2, on a tree that was grown without noise."""
    X, y = _records(1)
    session = open_session("none", X, y, Budget(np.inf, 0.0))
    shape = {"gamma": 2.0, "n_scales": 3, "n_levels": 1 + crossed}
    tree = grow(session, SCALING, **shape, theta_bound=1.0, kind="none")
    if crossed:
        roots = [node for node in tree.bins if node.level == 1]
        for node in roots:
            node.activate(1, 2.0, 3)
        tree.bins = roots
        bins = (*roots, *tree.frontier())
    else:
        bins = tuple(tree.bins)
    return CodebookLevelQuery(SCALING, tree, bins, crossed, 1 + crossed)


@pytest.mark.parametrize("crossed", [False, True])
def test_unit_vectors_are_the_moments(crossed):
    query, (X, y) = _query(crossed), _records()
    slots, vectors = query.units(X, y)
    assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-12)
    used = np.delete(np.arange(query.shape[1]), query.joint_length - 1)
    total = np.zeros(query.shape)
    np.add.at(total, slots, query.radius * vectors)
    assert_allclose(total[:, used], query.sum(X, y)[:, used], atol=1e-9)
    X[:2], y[:2] = [[np.nan, 1.0], [1e300, -1e300]], [np.nan, np.inf]
    assert_allclose(np.linalg.norm(query.units(X, y)[1], axis=1), 1.0, atol=1e-12)


@cache
def _errors(crossed, repetitions, seed, n=N):
    query, (X, y) = _query(crossed), _records(n=n)
    sessions = [
        open_session("local", X, y, BUDGET, seed * 10_000 + i, currency="pure")
        for i in range(repetitions)
    ]
    answers = [session.sum(query, 1.0) for session in sessions]
    used = np.delete(np.arange(query.shape[1]), query.joint_length - 1)
    exact = query.sum(X, y)
    return np.array([answer.value - exact for answer in answers])[:, :, used], answers[0].noise


@pytest.mark.parametrize("crossed", [False, True])
def test_sums_are_unbiased_and_no_more_variable_than_stated(crossed, global_random_seed):
    errors, noise = _errors(crossed, 100, global_random_seed)
    errors = errors.reshape(len(errors), -1)
    z = np.sqrt(len(errors)) * errors.mean(axis=0) / errors.std(axis=0)
    assert (abs(z) <= stats.norm.isf(1e-5 / len(z))).all()
    stated = noise.reports * max(noise.along, noise.across)
    slack = stats.chi2.isf(1e-5 / len(z), len(errors) - 1) / (len(errors) - 1)
    assert (errors.var(axis=0, ddof=1) <= stated * slack).all()
    assert errors.var(axis=0).mean() == pytest.approx(noise.scale**2, rel=0.15)


def test_a_device_reports_with_the_law_of_the_session(global_random_seed):
    query, (X, y) = _query(False), _records(n=12)
    noise, repetitions = query.local_noise(BUDGET), 60
    errors, _ = _errors(False, 60, global_random_seed, n=12)
    rng, values = np.random.RandomState(global_random_seed), []
    for _ in range(repetitions):
        buckets = np.zeros((noise.rows, noise.size))
        for x, target in zip(X, y, strict=True):
            row, report = query.randomize(x, target, BUDGET, rng)
            buckets[row] += report
        values.append(noise.estimate(buckets)[0] - query.sum(X, y)[0])
    for column in (0, 1):
        pvalue = stats.ks_2samp(np.array(values)[:, column], errors[:, 0, column]).pvalue
        assert pvalue > 1e-5


@pytest.mark.parametrize("failure", [0.5, 0.05])
def test_bounds_on_the_noise_hold(failure, global_random_seed):
    query, d = _query(False), D
    errors, noise = _errors(False, 100, global_random_seed)
    law, theta = ReportLaw((noise,)), np.array([0.6, -0.8])
    operator, equation = law.operator(d, failure), law.equation(d, 1.0, 1.0, 0.0, failure)
    exceeded = np.zeros(2)
    for error in errors[:, 0]:
        moments = unvech(np.insert(error, query.joint_length - 1, 0.0), query.joint_length)
        gram, target = moments[:d, :d], moments[:d, d] * np.sqrt(2.0)
        exceeded += (
            np.linalg.eigvalsh(-gram)[-1] > operator,
            (np.linalg.norm(target - gram @ theta) > equation),
        )
    assert (exceeded <= stats.binom.isf(1e-4, len(errors), failure)).all()
    # By hand: of a Frobenius norm of d (d + 1) / 2 coordinates
    tail, weak = np.log(1.0 / failure), noise.reports * max(noise.along, noise.across)
    squares = d * (d + 1) / 2 * noise.across + max(noise.along - noise.across, 0.0)
    mean, first = np.sqrt(noise.reports * squares), 3.0 * noise.bound * tail
    beyond = np.sqrt(first**2 + 8.0 * tail * (weak + 2.0 * noise.bound * mean))
    assert operator == pytest.approx(mean + (first + beyond) / 2.0)
    both = ReportLaw((noise, replace(noise, reports=N // 2)))
    assert both.operator(d, failure) > operator
    assert both.rms == pytest.approx(law.rms * np.sqrt(1.5))
