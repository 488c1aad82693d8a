"""Curves of an additive fit with bands, and monotone ones, from its released equations."""

from typing import NamedTuple

import numpy as np
from scipy import optimize, stats

from ..._estimation._intervals import two_sided_quantile
from ._map import ROUGH, second_difference
from ._terms import hats

BIAS = 0.125  # of a second difference: the largest error of a line between two knots


class Curve(NamedTuple):
    """The effect of one feature, with bands, in the units of y.

    Attributes
    ----------
    grid : ndarray of shape (n_points,) or (n_points, n_features)
        Values of the feature, or of each of several.
    effect : ndarray of shape (n_points,)
        What the feature adds to the prediction, zero on average over the released distribution of
        the feature.
    low, high : ndarray of shape (n_points,)
        Interval at each point.
    band_low, band_high : ndarray of shape (n_points,)
        Simultaneous band: it covers the whole curve at the level.
    knots : ndarray
        Public knots; empty for several features.
    name : str
        Name of the feature.
    """

    grid: np.ndarray
    effect: np.ndarray
    low: np.ndarray
    high: np.ndarray
    band_low: np.ndarray
    band_high: np.ndarray
    knots: np.ndarray
    name: str


def average_hats(fit, rows):
    """Released averages of the hats, nonnegative and adding up to one in each term.

    The constant v of the whitened rows has e'v = w, so that the released mean of ee' times v is the
    mean of w e, that is the mean row where weights are one.
    """
    mean = np.full(len(rows.basis), np.nan)
    if fit.equations:
        constant = np.linalg.solve(fit.W.T, rows.constant)
        mean = rows.heights(np.linalg.solve(fit.W, fit.gram @ constant)) * len(rows.terms)
    for block in rows.blocks:
        part = np.maximum(np.nan_to_num(mean[block]), 0.0)
        if not part.sum() > 0.0:
            part = np.ones(len(part))
        mean[block] = part / part.sum()
    return mean


def effect_values(feature, grid, rows, average):
    """Values of the hats at points of a feature, less their average, shape (n_points, n_hats).

    In a product the other feature is averaged over.
    """
    found = np.zeros((len(grid), len(rows.basis)))
    for term, block in zip(rows.terms, rows.blocks, strict=True):
        if feature not in term.features:
            continue
        axis = term.features.index(feature)
        values = hats(grid, term.knots[axis])
        if len(term.features) == 1:
            found[:, block] = values - average[block]
            continue
        table = average[block].reshape([len(knots) for knots in term.knots])
        own, other = table.sum(axis=1 - axis), table.sum(axis=axis)
        values = (values - own)[:, :, None] * other
        if axis == 1:
            values = values.swapaxes(1, 2)
        found[:, block] = values.reshape(len(grid), -1)
    return found


def knot_bias(knots, heights, grid):
    """Largest error of lines between knots for a curve that bends as the fit does, at points.

    A line between knots that are h apart misses a curve f by at most h^2 |f''| / 8, and a second
    difference of heights is h^2 f''. The larger of those at both ends of a cell counts.
    """
    if len(knots) < 3:
        return np.zeros(len(grid))
    bend = np.abs(second_difference(knots) @ heights)
    at_knots = np.concatenate([bend[:1], bend, bend[-1:]])
    cell = np.clip(np.searchsorted(knots, grid, side="right") - 1, 0, len(knots) - 2)
    return BIAS * np.maximum(at_knots[cell], at_knots[cell + 1])


def centring_variance(fit, rows, block, average, heights):
    """Variance of the average of a curve, by the noise of the released averages and by sampling.

    The averages are of ee'v for the constant v: with GOE noise of scale s an error u'Nv has
    variance s^2 (|u|^2 |v|^2 + (u'v)^2) / 2.
    """
    lift = rows.basis[block].T @ heights[block] * np.sqrt(len(rows.terms))
    u, v = np.linalg.solve(fit.W.T, lift), np.linalg.solve(fit.W.T, rows.constant)
    noise = fit.last.slope_scale**2 * (u @ u * (v @ v) + (u @ v) ** 2) / 2.0
    return noise + float(average[block] @ heights[block] ** 2) / fit.last.n


def simultaneous_factor(covariance, confidence_level):
    """Quantile of the largest absolute value of normal variables over their deviations.

    By quasi-random normal vectors, which are the same at every call; never above what a chi-square
    gives for any number of points.

    Parameters
    ----------
    covariance : ndarray of shape (n_points, n_points)
    confidence_level : float in (0, 1)
    """
    deviation = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    kept = deviation > 1e-9 * max(float(deviation.max(initial=0.0)), 1e-300)
    if not kept.any():
        return 0.0
    correlation = covariance[np.ix_(kept, kept)] / np.outer(deviation[kept], deviation[kept])
    values, vectors = np.linalg.eigh(correlation)
    large = values > 1e-9 * values[-1]
    root = vectors[:, large] * np.sqrt(values[large])
    points = stats.qmc.Sobol(int(large.sum()), scramble=False, bits=30)
    points.fast_forward(1)  # the first is the origin
    # 2^12 quasi-random normal vectors
    normal = stats.norm.ppf(points.random(2**12 - 1))
    largest = np.abs(normal @ root.T).max(axis=1)
    limit = np.sqrt(stats.chi2.ppf(confidence_level, int(large.sum())))
    return float(min(np.quantile(largest, confidence_level), limit))


def bands(fit, rows, target, columns, grid, average, heights, confidence_level):
    """Half widths and centres at points: (centre, pointwise, simultaneous), in the units of y.

    Infinite where the fit does not tell the point from noise, or so few knots the shape. Of one
    feature the band is for all of its range, of several for the points.

    Parameters
    ----------
    columns : list of int
        Features whose effects are added up.
    grid : ndarray of shape (n_points, n_columns)
    """
    found = dict(zip((term.features for term in rows.terms), range(len(rows.terms)), strict=True))
    places = [found[(column,)] for column in columns]
    if not fit.equations or any(rows.terms[place].blind for place in places):
        whole = np.full(len(grid), np.inf)
        return np.zeros(len(grid)), whole, whole
    points = grid
    if len(columns) == 1:
        knots = rows.terms[places[0]].knots[0]
        # Four points in each cell make a band simultaneous
        cells = [np.linspace(a, b, 5) for a, b in zip(knots[:-1], knots[1:], strict=True)]
        points = np.concatenate([grid, np.unique(np.concatenate(cells))[:, None]])
    values = sum(
        effect_values(column, points[:, axis], rows, average) for axis, column in enumerate(columns)
    )
    estimate = fit.estimate(fit.points(rows.coordinates(values)))
    covariance, bias = sum(estimate.covariances()), np.zeros(len(grid))
    for axis, place in enumerate(places):
        knots, block = rows.terms[place].knots[0], rows.blocks[place]
        covariance = covariance + centring_variance(fit, rows, block, average, heights)
        inside = np.clip(grid[:, axis], knots[0], knots[-1])
        bias += knot_bias(knots, target.radius * heights[block], inside)
    resolved, n = estimate.resolved, len(grid)
    factor = simultaneous_factor(covariance[np.ix_(resolved, resolved)], confidence_level)
    deviation = np.sqrt(np.maximum(np.diagonal(covariance)[:n], 0.0))
    halves = [
        np.where(resolved[:n], scale * target.radius * deviation + bias, np.inf)
        for scale in (two_sided_quantile(confidence_level), factor)
    ]
    return target.radius * estimate.value[:n], *halves


def monotone_heights(heights, metric, terms, blocks, directions):
    """Nearest heights of the hats whose curves rise (1) or fall (-1) where they have to.

    The distance is that of the released mean square of the function. Heights of a curve are a first
    height and the steps from knot to knot, whose signs are bounds of a least-squares problem. A
    product of two features has to rise along the feature at every knot of the other.

    Parameters
    ----------
    heights : ndarray of shape (n_hats,)
    metric : ndarray of shape (n_hats, n_hats)
        Positive semi-definite.
    terms : tuple of Term
    blocks : list of slice
    directions : dict of int to {-1, 1}
        Directions by column.

    Returns
    -------
    ndarray of shape (n_hats,)
    """
    n_hats = len(heights)
    back, low, high = np.eye(n_hats), np.full(n_hats, -np.inf), np.full(n_hats, np.inf)
    for term, block in zip(terms, blocks, strict=True):
        signs = [directions.get(feature, 0) for feature in term.features]
        sizes = [len(knots) for knots in term.knots]
        if not any(signs):
            continue
        summed = [
            np.tril(np.ones((size, size))) if sign else np.eye(size)
            for size, sign in zip(sizes, signs, strict=True)
        ]
        if all(signs) and len(signs) == 2:  # both: steps along one of them cannot be separated
            raise ValueError("A pair may have one monotone feature, not two.")
        back[block, block] = summed[0] if len(sizes) == 1 else np.kron(*summed)
        place = np.indices(sizes).reshape(len(sizes), -1)
        for axis, sign in enumerate(signs):
            if sign:
                steps = np.flatnonzero(place[axis] > 0) + block.start
                (low if sign > 0 else high)[steps] = 0.0
    values, vectors = np.linalg.eigh(metric)
    values = np.maximum(values, ROUGH * max(float(values[-1]), 1e-300))
    root = np.sqrt(values)[:, None] * vectors.T
    found = optimize.lsq_linear(root @ back, root @ heights, bounds=(low, high), method="bvls")
    return back @ np.clip(found.x, low, high)
