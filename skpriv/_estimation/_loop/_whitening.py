"""Whitening: features of about equal length in all directions, and how long rows are then."""

from math import sqrt

import numpy as np
from scipy import stats

from ..._linalg import row_norms
from ...privacy import TOLD_ABOVE
from ._pool import denoised_gram
from ._queries import LENGTHS, SQUARES, LengthsQuery, MarginsQuery, Whitened, WhiteningQuery

ROUNDS = 3  # for directions of little variance to rise above the noise
# A feature counts as having that part of the typical mass: with half of it, features that move
# together and are skewed stay hidden; with a tenth, rare categories are stretched without end.
LEAST_MASS = 0.25
# Rows are shortened in steps of 2^(1/4), by as much as 16.
SHORTER = 2.0 ** (-np.arange(17) / 4.0)
MOST_CUT_OFF = 0.1  # part of the squared lengths that weights may cut off


def whitening_parts(session, rules):
    """Secret random parts of the records, for each round.

    With few records the rows of the last round cannot be short, and a fourth round would sharpen
    noise; where steps do not ask their slopes, there is a look at the rows in its place. Where not
    all are needed each round asks twice as many as the one before: what it finds is whitened again.
    All parts are asked for at once, so that rows of files are read once for them.
    """
    rounds = ROUNDS + (_short(rules) < 1.0 or not rules.slopes) if rules.whitening else 0
    halves = range(rounds - 1, -1, -1) if rules.subset < 1.0 else [0] * rounds
    return [session.part(rules.subset * 0.5**half) for half in halves]


def _short(rules):
    """Part of their length that rows have in a fourth round, which sees far rows with weights of 1:
    else they hide what they add to the Gram matrix, and are further still once it is whitened.
    """
    return min(1.0, rules.shortest / rules.length)


def learn_whitening(session, rows, rules, start=None):
    """W such that W phi has about equal length in all directions that are above the noise.

    Under a curator the rounds ask secret random parts of the records, where these are enough. With
    a start its Gram matrix is the first round, and one more is asked.

    Returns
    -------
    (W, length, gram)
        The root mean square length of a row W phi, as far as weights leave it whole; the Gram
        matrix of the rows with the scale of its noise, or None where steps ask their slopes.
    """
    p = rows.size
    parts = whitening_parts(session, rules)
    first = None
    if start:
        W = _whiter(start.W, start.gram, start.scale, rules)
        parts = parts[-1:]
    elif rules.margins:
        W = first = scaled(session, rows, rules, parts[-1])
    else:
        W = np.eye(p)
    for number, subset in enumerate(parts):
        W = (_short(rules) if number == ROUNDS and rules.slopes else 1.0) * W
        look = number == ROUNDS and not rules.slopes
        asked = WhiteningQuery(Whitened(rows, W), kept=look)
        gram, scale = asked.gram(session.sum(asked, rules.whitening / len(parts), subset))
        if look:
            return W, rules.length, (gram, scale)
        if first is not None:
            gram = filled(gram, W @ np.linalg.inv(first))
        W = _whiter(W, gram, scale, rules)
    if not rules.lengths:
        return W, rules.length, None
    query = LengthsQuery(Whitened(rows, W))
    answer = session.sum(query, rules.lengths, session.part(rules.subset))
    shorter = shortening(answer.value / answer.n, answer.noise.scale / answer.n, rules, p)
    return _longest(shorter * W), shorter * rules.length, None


def _whiter(W, gram, scale, rules):
    """W after one more round, which found this Gram matrix with noise of this scale."""
    p = len(W)
    values, vectors, weight = denoised_gram(gram, scale)
    ridge = weight * scale * sqrt(0.5 * p)  # half of the operator norm that the noise would have
    values = np.maximum(values + ridge, max(weight * scale, 1e-14 * values.max()))
    W = (vectors * values**-0.5) @ vectors.T @ W
    # The sum is the number of directions that are above the noise.
    W *= rules.length / sqrt(max((np.maximum(values - ridge, 0.0) / values).sum(), 1.0))
    # Rotated: cheaper to apply, and otherwise the same
    return np.asarray(np.linalg.qr(_longest(W), mode="r"))


def scaled(session, rows, rules, part):
    """W of features with mean 0 and variance 1, as far as their released margins tell them.

    A matrix of p (p + 1) / 2 numbers has noise whose operator norm is sqrt(2 p) times that of one
    of them; that of a feature's mean and square is of its own, and each of them uses its whole
    range. Variances count as one deviation of their noise more than is released, so that a feature
    that is hardly seen, as a rare category is, is not stretched beyond that.
    """
    d, (long, short) = rows.n_features, rows.parts
    answer = session.sum(MarginsQuery(rows), rules.margins, part)
    mean, square = answer.value.reshape(2, d) / answer.n
    noise = answer.noise.scale / answer.n
    variance = np.maximum(square / SQUARES - mean**2 + noise**2, 0.0) + noise / SQUARES + noise**2
    # James and Stein's means of features, towards the middle of their ranges
    mean = mean * max(0.0, 1.0 - d * noise**2 / max(float(mean @ mean), 1e-300))
    W = np.eye(rows.size) / short
    W[:d, :d] *= short / long * sqrt(d)
    W[:d, d] = -np.clip(mean, -1.0, 1.0) / short
    W[:d] /= np.sqrt(np.clip(variance, 1e-14, 1.0))[:, None]
    return _longest(rules.length / sqrt(rows.size) * W)


def filled(gram, turn):
    """Gram matrix of turned rows, where no feature has less than LEAST_MASS of the typical mass.

    Before the turn features have about equal mean squares, so that a feature with less in the Gram
    matrix has it in rows that weights cut: those of a rare category. To stretch it would cut them
    further. What is missing is put back as if it moved with no other feature; so a direction is
    stretched where its features are seen and cancel, and not where rows are cut. The typical mass
    is the mean over mass, not over features: those that are cut may be the most. The last row is
    that of the constant, which is never cut.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
    turn : ndarray of shape (p, p)
        Matrix of the turn: its inverse leads back to features.
    """
    back = np.linalg.inv(turn)
    mass = np.einsum("ij,ij->i", back @ gram, back)
    seen = np.maximum(mass[:-1], 0.0)
    least = LEAST_MASS * float(seen @ seen) / max(float(seen.sum()), 1e-300)
    return gram + (turn * np.maximum(least - mass, 0.0)) @ turn.T


def shortening(parts, noise, rules, p):
    """Factor in (0, 1] on whitened rows, by what is released of their lengths.

    With rows of squared length A on average, of which weights leave T, predictions have privacy
    noise of A (2 k p / (N T))^2 over the share of the steps, as part of the residual variance.
    Where a few rows are far from the others, as those of a rare category are, A is much more than
    T: shorter rows have less noise, until T itself falls. They have less bias as well, since far
    rows whose weights are below 1 hardly count for the line that is to predict them, too. So the
    length is the one of least noise or, as long as weights cut off more than a tenth of A, shorter
    still.

    Parameters
    ----------
    parts : ndarray of shape (len(LENGTHS) + 1,)
        Noisy part of the rows in each class of lengths.
    noise : float
    rules : Rules
    p : int
    """
    parts = believed(parts, noise)
    if not parts.sum():
        return 1.0
    ends = np.array([0.5 * LENGTHS[0], *LENGTHS, 2.0 * LENGTHS[-1]])
    squares = ends[1:] * ends[:-1]  # the middle of a class
    factors = SHORTER[: max(1, np.count_nonzero(rules.length * SHORTER >= rules.shortest))]
    scaled = squares * factors[:, None] ** 2
    whole, left = (lengths @ parts / parts.sum() for lengths in (scaled, np.minimum(scaled, 1.0)))
    noises = 2.0 * rules.clip * p / (rules.effective_records * left)
    variance = whole * noises**2 / sum(rules.steps)
    chosen = int(np.argmin(variance))
    few = np.flatnonzero(left[chosen:] >= (1.0 - MOST_CUT_OFF) * whole[chosen:])
    return float(factors[chosen + few[0]] if len(few) else factors[-1])


def believed(parts, noise):
    """Noisy parts, and 0 for those that noise may explain.

    Noise passes for one of them as rarely as it does for one number at TOLD_ABOVE deviations.
    """
    least = stats.norm.isf(stats.norm.sf(TOLD_ABOVE) / len(parts))
    return np.where(parts > least * noise, parts, 0.0)


def _longest(W):
    """The same, longer where no row is as long as 1: that costs no weight."""
    if row_norms(W).max() >= 1.0:  # a bound that costs nothing
        return W
    return W / min(1.0, float(np.linalg.norm(W, 2)))
