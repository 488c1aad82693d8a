"""The law of released coefficients: expansions against draws of the noise, and exact algebra."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from registry.noise import goe

from skpriv._estimation import _coefficients as coefficients
from skpriv._estimation._coefficients import equations_law, sandwich
from skpriv._estimation._moments import NormalEquations
from skpriv._estimation._public_maps import RecordMap

P = 5
SCALING = RecordMap.of_norm(1.0, (-1.0, 1.0), True, P - 1)


def _equations(resolution, symmetric, rng=None):
    """Equations of a fixed design with eigenvalues from 1 to 8, with or without a draw of noise."""
    basis = np.linalg.qr(np.random.RandomState(0).normal(size=(P, P)))[0]
    design = (basis * np.geomspace(100.0, 800.0, P)) @ basis.T
    theta = np.linspace(-1.0, 1.0, P)
    unit = np.sqrt(2.0 * P) if symmetric else 2.0 * np.sqrt(P)
    scale, released, target = 100.0 / (unit * resolution), design, design @ theta
    residual = 0.05 * design
    if rng is not None:
        noise = scale * goe(rng, P) if symmetric else scale * rng.normal(size=(P, P))
        released = design + noise
        target = target + rng.multivariate_normal(np.zeros(P), residual)
        target = target + scale * rng.normal(size=P)
    found = NormalEquations(
        released, target, design, 500.0, 5000, symmetric, scale, scale, scale * 0.1, residual, 0.0
    )
    return theta, found


@pytest.mark.parametrize("symmetric, resolution", [
    (True, 2.5), (False, 2.5),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in product((True, False), (5.0, 20.0))),
])  # fmt: skip
def test_bias_and_covariance_over_draws_of_noise(symmetric, resolution):
    rng = np.random.RandomState(1)
    errors, laws = [], []
    for _ in range(400):
        theta, equations = _equations(resolution, symmetric, rng)
        inverse = np.linalg.inv(equations.design)
        solution, sampling, privacy = coefficients._expansion(equations, inverse)
        errors.append(solution - theta)
        laws.append(np.diagonal(sampling + privacy))
    errors, laws = np.array(errors), np.array(laws)
    covered = np.mean(np.abs(errors) <= 1.96 * np.sqrt(laws))
    assert covered == pytest.approx(0.95, abs=0.02)
    standard = errors.std(axis=0)
    assert (np.abs(np.median(errors, axis=0)) < 0.2 * standard).all()  # the bias is taken off
    assert np.sqrt(np.median(laws, axis=0)) == pytest.approx(standard, rel=0.35 / resolution + 0.06)


@pytest.mark.parametrize("symmetric", [True, False])
def test_what_is_not_resolved_is_not_answered(symmetric):
    _, equations = _equations(coefficients.MIN_RESOLUTION_FOR_COEFFICIENTS * 1.01, symmetric)
    assert equations_law(equations, SCALING.units).resolved.all()
    _, equations = _equations(coefficients.MIN_RESOLUTION_FOR_COEFFICIENTS * 0.99, symmetric)
    law = equations_law(equations, SCALING.units)
    assert not law.resolved.any() and "more rows" in str(law.reasons)
    assert np.isnan(law.estimate).all()


def test_the_sandwich_is_exact_without_noise_and_homoscedastic_in_it():
    rng = np.random.RandomState(0)
    gram, residual = (e.T @ e for e in (scale * rng.normal(size=(50, P)) for scale in (1.0, 0.3)))
    W = rng.normal(size=(P, P))
    assert sandwich(W, gram, residual, 0.0, 1.0) == pytest.approx(W @ residual @ W.T)
    equal, one = W @ gram @ W.T, np.eye(2)
    assert sandwich(W, gram, residual, 1e9, 2.0) == pytest.approx(2.0 * equal, rel=1e-6)
    assert sandwich(W, gram, None, 0.0, 2.0) == pytest.approx(2.0 * equal)
    assert sandwich(one, one, 0.5 * one, 1.0, 1.0) == pytest.approx(0.75 * one)
    between = sandwich(W, gram, residual, 5.0, 0.1)
    assert np.linalg.eigvalsh(between)[0] > -1e-9


def test_mapping_twice_is_mapping_by_the_product():
    """What is estimable is a property of the sum that is asked: here x1 + x2, not x1 or x2."""
    rng = np.random.RandomState(0)
    rows = rng.normal(size=(40, 3))
    rows[:, 2] = rows[:, 1]
    sums = {"design": rows.T @ rows, "target": rows.T @ rng.normal(size=40), "gram": rows.T @ rows}
    exact = dict.fromkeys(("design_scale", "target_scale", "gram_scale"), 0.0)
    equations = NormalEquations(**sums, **exact, square=40.0, n=40, symmetric=True)
    law = equations_law(equations, (np.eye(3), np.zeros(3)))
    assert law.resolved.tolist() == [True, False, False] and "exactly" in str(law.reasons)
    first, second = rng.normal(size=(3, 3)), np.array([[0.5, 0.0, 2.0], [1.0, 1.0, 1.0]])
    turn = np.linalg.solve(first.T, np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]]).T).T
    for other in (second, turn):
        twice, once = law.mapped(first, 1.0).mapped(other, 2.0), law.mapped(other @ first)
        assert twice.resolved.tolist() == once.resolved.tolist()
        assert twice.estimate == pytest.approx(once.estimate + other.sum(axis=1) + 2.0, nan_ok=True)
        assert twice.sampling == pytest.approx(once.sampling, nan_ok=True)
    assert once.resolved.tolist() == [True, False]
    told = law.estimable([1, 2]).matrix
    assert told == pytest.approx(np.abs(told).max() * np.sign(told[0, 1]) * np.array([[0, 1, 1]]))
    assert len(law.estimable([0, 1, 2]).estimate) == 2


@pytest.mark.parametrize("symmetric", [True, False])
def test_errors_meet_the_noise_of_the_design_once_more(symmetric):
    """Privacy is W (N_b - N theta) and W N (the error so far), against draws of the noise alone."""
    rng, draws = np.random.RandomState(0), 20_000
    theta, found = _equations(1.0, symmetric)
    unit = np.sqrt(2.0 * P) if symmetric else 2.0 * np.sqrt(P)
    eigenvalue = (
        coefficients.MIN_RESOLUTION_FOR_COEFFICIENTS * found.design_scale * unit
    )  # all directions are as weak
    equations = replace(found, design=eigenvalue * np.eye(P), target=eigenvalue * theta)
    W, scale = np.linalg.inv(equations.design), equations.design_scale
    _, sampling, privacy = coefficients._expansion(equations, W)
    noises = scale * (goe(rng, P, draws) if symmetric else rng.normal(size=(draws, P, P)))
    met = equations.target_scale * rng.normal(size=(draws, P)) - noises @ theta
    first = W @ (met.T @ met / draws) @ W.T
    once_more = np.mean(noises @ (sampling + first) @ noises.transpose(0, 2, 1), axis=0)
    expected = first + W @ once_more @ W.T
    assert np.diagonal(privacy) == pytest.approx(np.diagonal(expected), rel=0.03)
    more = np.diagonal(expected) / np.diagonal(first)
    assert more.min() > 1.05  # which the test above would see
