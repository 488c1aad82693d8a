"""Noise of the codebook channel on sums, plain or on Hadamard rows, and of randomised response.

Hadamard rows spread the blocks of a sum over the users. Randomised response is one bit of each
user, which is true with the larger of two integer weights.
"""

from dataclasses import replace
from functools import lru_cache
from math import inf, log, sqrt
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..._stored import frozen, stored
from ..._wire import draw_ranks
from .._accounting._cost import Cost
from ._codebook_law import Codebook, LiftedReports, best_codebook
from ._laws import Noise

if TYPE_CHECKING:
    from ..._contracts import Array, Scalar
    from ._laws import NoiseSource


class ReportNoise(Noise):
    """Law of the noise of sums over users who each send one pure report; a base class."""

    epsilon: Any
    reports: int

    def cost(self, sensitivity: float) -> Cost:
        """Price of one report: epsilon, whatever its content is."""
        return Cost.from_epsilon(self.epsilon)

    def summed(self, reports: int) -> Self:
        """Law of the sum over this many times the users."""
        return replace(self, reports=self.reports * reports)  # type: ignore[type-var]

    def plus(self, other: Any) -> Self:
        """Law of the sum of independent sums over other users, at the same price."""
        return replace(self, reports=self.reports + other.reports)  # type: ignore[type-var]


@stored
@frozen
class CodebookNoise(ReportNoise):
    """Noise of the codebook channel on a sum of lifted moments, (sum r phi, sum phi phi').

    Each user sends one index about u = s (phi, sqrt(1 - phi'phi)), s = 1 or -1 with mean r. With f
    the direction of the index, f / c1 is unbiased for r phi and (f f' - I / D) / c2 + I / D for
    phi phi'. The two errors are dependent, and their sums have no closed law: bounds are for sums
    of independent bounded terms, and :meth:`variance` has the exact second moments.

    Parameters
    ----------
    code : Codebook
    reports : int, default=1
        Number of users in the sum.
    others : tuple of (Codebook, int), default=()
        Further users with other codes, such as those of other batches of a shuffler.
    """

    code: Codebook
    reports: int = 1
    others: tuple[tuple[Codebook, int], ...] = ()

    @property
    def parts(self) -> tuple[tuple[Codebook, int], ...]:
        """Codes, and how many users have each of them."""
        return ((self.code, self.reports), *self.others)

    @property
    def epsilon(self) -> float:
        """Epsilon of one report."""
        return max(code.epsilon for code, _ in self.parts)

    def plus(self, other: "CodebookNoise") -> "CodebookNoise":
        """Law of the sum of independent sums over other users, whatever their codes are."""
        return self._changed(other, 1)

    def minus(self, earlier: "CodebookNoise") -> "CodebookNoise":
        """Law of this sum without the users of an earlier one, who are in it."""
        return self._changed(earlier, -1)

    def _changed(self, other: "CodebookNoise", sign: int) -> "CodebookNoise":
        counts = dict(self.parts)
        for code, reports in other.parts:
            counts[code] = counts.get(code, 0) + sign * reports
        some = {code: reports for code, reports in counts.items() if reports}
        (code, reports), *others = some.items() or [(self.code, 0)]
        return CodebookNoise(code, reports, tuple(others))

    def _total(self, use: str) -> float:
        return sum(reports * code.noise(use) for code, reports in self.parts)

    def collected(self, query: Any, rows: Any, users: Any, source: Any) -> Any:
        """Reports of these users, one index a user: no single draw can replace them.

        Parameters
        ----------
        query : Query
            A query with ``records(X, y)``: the rows phi and targets r of a chunk.
        rows : skpriv.records.Rows
            Rows that are on devices bring the reports that were collected.
        users : skpriv.records.Subset
        source : NoiseSource

        Returns
        -------
        LiftedReports
        """
        if rows.on_devices:
            return rows.collect(query, self, users)

        def report(X: np.ndarray, y: np.ndarray) -> np.ndarray:
            phi, r = query.records(X, y)
            return self.reported(phi, r, source).directions

        directions = np.empty((len(users), self.code.size))
        start = 0
        for part in rows.each(report, users, self.code.size):
            directions[start : start + len(part)] = part
            start += len(part)
        return LiftedReports(directions, self.code)

    def reported(self, phi: np.ndarray, r: np.ndarray, source: "NoiseSource") -> LiftedReports:
        """Reports of users with these rows and targets, one index each.

        Parameters
        ----------
        phi : ndarray of shape (n, size - 1)
        r : ndarray of shape (n,)
        source : NoiseSource

        Returns
        -------
        LiftedReports
        """
        return LiftedReports(source.lifted_reports(np.column_stack([phi, r]), self.code), self.code)

    @property
    def scale(self) -> float:  # type: ignore[override]
        """Root mean square of an orthonormal coordinate of the noise of sum r phi."""
        return sqrt(self._total("vector"))

    @property
    def square_scale(self) -> float:
        """Root mean square of an orthonormal coordinate of the noise of sum phi phi'."""
        return sqrt(self._total("square"))

    def norm_bound(self, theta_norm: float, failure: float) -> float:
        """Bound on the norm of sum of b_i - A_i theta*, targets' noise included, up to this norm.

        b_i and A_i are a report's estimates of r phi and phi phi', and r has mean phi'theta*: the
        terms are independent, have mean zero given the rows, and bounded norm. Cauchy and Schwarz
        bound the mean of the norm of their sum, Klein and Rio (2005, Theorem 1.1) what exceeds it.
        """
        total, weak, bound = self._bounds(theta_norm)
        tail = log(1.0 / failure)
        mean = sqrt(total)
        variance = weak + 2.0 * bound * mean
        first = 3.0 * bound * tail
        return mean + 0.5 * (first + sqrt(first**2 + 8.0 * tail * variance))

    def martingale_bound(self, theta_norm: float, failure: float) -> float:
        """`norm_bound` where rows are chosen by the reports of earlier users, as in a bandit.

        The terms are then martingale differences. Pinelis (1994, Theorem 3.3): with the sum of
        conditional mean squares at most B^2 and norms at most b, the norm of their sum reaches r
        with probability at most 2 exp(-r^2 / (2 (B^2 + b r / 3))).
        """
        total, _, bound = self._bounds(theta_norm)
        first = log(2.0 / failure) * bound / 3.0
        return first + sqrt(first**2 + 2.0 * log(2.0 / failure) * total)

    def _bounds(self, theta_norm: float) -> tuple[float, float, float]:
        """Sums over all users of the mean squares of `_term_bounds`, and the largest norm."""
        each = [(n, _term_bounds(code, float(theta_norm))) for code, n in self.parts]
        total = sum(n * bounds[0] for n, bounds in each)
        return total, sum(n * bounds[1] for n, bounds in each), max(b[2] for _, b in each)

    def __str__(self) -> str:
        return "codebook"


@lru_cache(maxsize=256)
def _term_bounds(code: Codebook, theta_norm: float) -> tuple[float, float, float]:
    """Largest mean square of |G| and of <x, G> for unit x, and |G|, of a term G = b - A theta.

    G = f / c1 - f z / c2 + k theta with z = f'theta and k = (1 / c2 - 1) / D. The largest over a
    grid of |theta| and of phi'theta, with a margin for the grid (polynomials of degree 4).
    """
    parts = np.linspace(0.0, 1.0, 21)
    norms = theta_norm * parts[:, None]
    cosines = np.minimum(norms, 1.0) * parts / np.maximum(norms, 1e-300)
    total, weak = (float(values.max()) for values in _term_moments(code, norms, cosines))
    k = (1.0 / code.contrast - 1.0) / code.size
    bound = 1.0 / code.mean + theta_norm / code.contrast + k * theta_norm  # |z| <= |theta|
    return 1.01 * total, 1.01 * weak, bound


def _term_moments(
    code: Codebook, norm: np.ndarray, cosine: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sum of all but the least of the eigenvalues of E G G', and the largest, given the row.

    The coordinate of G that lifted the row is not used: its variance is at least the least
    eigenvalue. E G = 0 gives E G G' = E f f' (1 / c1 - z / c2)^2 - k^2 theta theta'. In coordinates
    along the lifted row, along the rest of theta, and beyond, f = (s t, sqrt(1 - t^2) w), s of mean
    phi'theta = norm cosine, and w has the moments of a uniform unit vector of D - 1 coordinates.
    """
    D = code.size
    c1 = code.mean
    c2 = code.contrast
    t1, t2, t3, t4 = map(code.moment, (1, 2, 3, 4))
    mean = norm * cosine
    sine = np.sqrt(np.maximum(1.0 - cosine**2, 0.0))
    two = 1.0 / (D - 1.0)
    four = 1.0 / ((D - 1.0) * (D + 1.0))
    y2 = (1.0 - t2) * two
    y4 = (1.0 - 2.0 * t2 + t4) * four
    xy2 = mean * (t1 - t3) * two
    x2y2 = (t2 - t4) * two
    cross = 2.0 * norm / (c1 * c2)
    square = (norm / c2) ** 2
    xx = t2 / c1**2 - cross * cosine * mean * t3 + square * (cosine**2 * t4 + sine**2 * x2y2)
    beyond = y2 / c1**2 - cross * cosine * xy2
    yy = beyond + square * (cosine**2 * x2y2 + 3.0 * sine**2 * y4)
    xy = -cross * sine * xy2 + square * 2.0 * cosine * sine * x2y2
    rest = beyond + square * (cosine**2 * x2y2 + sine**2 * y4)
    k2 = ((1.0 / c2 - 1.0) / D * norm) ** 2
    xx -= k2 * cosine**2
    xy -= k2 * cosine * sine
    yy -= k2 * sine**2
    half = 0.5 * (xx + yy)
    root = np.hypot(0.5 * (xx - yy), xy)
    values = np.stack([half - root, half + root, *[rest] * (D - 2)])
    return values.sum(axis=0) - values.min(axis=0), values.max(axis=0)


@stored
@frozen
class CodebookBlocksNoise(ReportNoise):
    """Noise of codebook reports, spread over rows of a Hadamard matrix, on the sums of blocks.

    A user has a vector of norm at most radius in one of several blocks, completed to length radius
    by its last coordinate, which is not for use. The user draws a public random row j, and sends a
    codebook report of the unit vector times the entry of the matrix at j and the block. The sum
    over users of a block's entries times reports is unbiased for the block's sum: other blocks meet
    a sign that is 1 or -1 with even odds. There is no exact law of a sum, but independent bounded
    terms. The price rests on one exact integer draw, of the index; the row of the matrix is drawn
    without a look at the record, and the sign that it gives the vector is part of the secret.

    Parameters
    ----------
    epsilon : float
    size : int
        Length of the vectors, the last coordinate included.
    radius : float
    blocks : int
        Number of blocks.
    reports : int, default=1
        Number of users in the sum.
    """

    epsilon: float
    size: int
    radius: float
    blocks: int
    reports: int = 1

    @property
    def cap(self) -> Codebook:
        """Law of one report."""
        return best_codebook(self.size, self.epsilon, "vector")

    @property
    def rows(self) -> int:
        """Rows of the Hadamard matrix: a power of 2, at least the number of blocks."""
        return 1 << max(self.blocks - 1, 0).bit_length()

    @property
    def scale(self) -> float:  # type: ignore[override]
        """Standard deviation of a coordinate of the sum, on average over coordinates."""
        return self.radius / self.cap.mean * sqrt(self.reports / self.size)

    @property
    def bound(self) -> float:
        """Bound on the norm of one report's error in a block."""
        return self.radius * (1.0 / self.cap.mean + 1.0)

    @property
    def across(self) -> float:
        """Variance of one report's error in directions orthogonal to its vector."""
        return (self.radius / self.cap.mean) ** 2 * self.cap.across

    @property
    def along(self) -> float:
        """Second moment of one report's error along its vector, in any block.

        In blocks of others the report has its whole second moment there, in its own the variance.
        """
        own = self.cap.along / self.cap.mean**2 - 1.0
        return self.radius**2 * (own + (self.blocks > 1))

    def collected(self, query: Any, rows: Any, users: Any, source: Any) -> Any:
        """Sums of blocks from one report a user, which no single draw can replace."""
        buckets = np.zeros((self.rows, self.size))

        def report(X: np.ndarray, y: np.ndarray) -> Any:
            return query.reports(X, y, self, source)

        for sent, reports in rows.each(report, users, self.size):
            for column, values in zip(buckets.T, reports.T, strict=True):
                column += np.bincount(sent, values, minlength=self.rows)
        return self.estimate(buckets)

    def estimate(self, buckets: np.ndarray) -> np.ndarray:
        """Unbiased sums of the blocks, from the sums of the reports that drew each row."""
        return self.radius / self.cap.mean * walsh_hadamard(buckets)[: self.blocks]

    def __str__(self) -> str:
        return "codebook"


def hadamard_entries(rows: Any, columns: Any) -> "Array":
    """Entries 1 or -1 of Sylvester's matrix: the parity of the bits that both indices share."""
    bits = np.bitwise_and(rows, columns)
    for shift in (32, 16, 8, 4, 2, 1):
        bits = bits ^ (bits >> shift)
    return 1.0 - 2.0 * (bits & 1)


def walsh_hadamard(values: np.ndarray) -> np.ndarray:
    """Product of Sylvester's matrix with an array of 2^k rows, in k steps."""
    result = np.array(values, float)
    step = 1
    while step < len(result):
        pairs = result.reshape(-1, 2, step, *result.shape[1:])
        pairs[:, 0], pairs[:, 1] = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
        step *= 2
    return result


@frozen
class ResponseNoise(ReportNoise):
    """Noise of randomised response on a count of users (Warner 1965).

    A user's bit is sent as it is with weight a, and turned with weight b: a codebook of two
    directions, of which one is near. Both weights are integers with a / b <= e^epsilon, and one
    integer below a + b decides (:func:`skpriv.privacy.draw_ranks`). So no two records give a report
    probabilities of a larger ratio, exactly, and delta is 0.

    With P = a / (a + b) the number of ones is a sum of independent bits. If a part x of a
    population says one, each has the mean 1 - P + (2 P - 1) x: for users drawn from it the number
    is binomial, with no approximation.

    Parameters
    ----------
    epsilon : float
    reports : int, default=1
        Number of users in the count.
    """

    epsilon: float
    reports: int = 1

    @property
    def _code(self) -> Codebook:
        """The codebook of two directions; the probabilities of its indices depend on no length."""
        return Codebook(2, self.epsilon, 2, 1)

    @property
    def truth(self) -> float:
        """P, the probability of a true report: a / (a + b)."""
        return self._code.probability

    @property
    def gain(self) -> float:
        """2 P - 1 = (a - b) / (a + b); 0 where the weights are equal."""
        return self._code.gain

    @property
    def log_ratio(self) -> float:
        """Largest log ratio of the probabilities of one report: of the weights, or of P."""
        return max(self._code.log_ratio, log(self.truth / (1.0 - self.truth)))

    @property
    def scale(self) -> float:  # type: ignore[override]
        """Standard deviation of the estimated count, given the users: the same for all bits."""
        if not self.gain:
            return inf
        return sqrt(self.reports * self.truth * (1.0 - self.truth)) / self.gain

    def estimate(self, ones: Any) -> Any:
        """Unbiased count from the number of users who sent a one; it increases with it."""
        return (ones - self.reports * (1.0 - self.truth)) / self.gain

    def share(self, part: float) -> float:
        """Probability of a one from a random user of a population of which this part has one."""
        return 1.0 - self.truth + self.gain * part

    def collected(self, query: Any, rows: Any, users: Any, source: Any) -> Any:
        """Estimated count from one bit of each of these users.

        Parameters
        ----------
        query : Query
            A query with ``bits(X, y)``: whether each row of a chunk is to be counted.
        rows : skpriv.records.Rows
        users : skpriv.records.Subset
        source : NoiseSource
        """

        def sent(X: np.ndarray, y: np.ndarray) -> "Scalar":
            return self.sent(query.bits(X, y), source).sum()

        ones = sum(rows.each(sent, users))
        return np.array([self.summed(len(users)).estimate(float(ones))])

    def sent(self, bits: np.ndarray, source: "NoiseSource") -> "Array":
        """The reports of users with these bits: bits, one a user."""
        return source.responses(np.where(bits, 1.0, -1.0)[:, None], self)[:, 0] > 0.0

    def density(self, t: Any) -> np.ndarray:
        """Probability of a report times 2, by its product with the true sign."""
        return np.where(np.asarray(t) > 0.0, 2.0 * self.truth, 2.0 * (1.0 - self.truth))

    def responses(self, signs: np.ndarray, rng: Any) -> np.ndarray:
        """Signs of reports about signs, one a row; ``rng`` None draws exactly, as devices do."""
        if rng is None:
            turned = draw_ranks(len(signs), 2, 1, self.epsilon) == 1
        else:
            turned = rng.uniform(size=len(signs)) >= self.truth
        return np.where(turned[:, None], -signs, signs)

    def __str__(self) -> str:
        return "randomised response"
