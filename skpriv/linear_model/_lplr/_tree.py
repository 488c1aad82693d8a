"""The partition tree of layered regression: bins of records of like norm, level by level.

A level asks for the moments of all of its bins at once; by one codebook a user reports them on a
random row of a Hadamard matrix. A bin releases noisy sums of z z' (d, d), and of z times further
columns. Two quantiles serve the intervals: of the largest |eigenvalue| of the noise N of z z', and
of ||N v|| for a fixed unit v. The noise of z times a column, given N, has a known standard
deviation. If noise has no exact law (reports), a bound on a norm takes the place of both.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, log, sqrt
from typing import Any, TYPE_CHECKING

import numpy as np

from ..._estimation._intervals import norm_quantile, operator_quantile
from ..._linalg import SQRT2, lengths_of, quadratic_forms, unvech, vech, vech_size
from ..._stored import frozen, frozen_object, stored
from ...privacy import ROUNDING, CodebookBlocksNoise, Query, hadamard_entries

if TYPE_CHECKING:
    from ...privacy import Answer, Budget, NoiseSource
    from ..._estimation._public_maps import RecordMap


@stored
@frozen
class GaussianLaw:
    """GOE(rms) noise on z z', and independent N(0, rms^2) on z times a column.

    Attributes
    ----------
    rms : float
        Standard deviation of an orthonormal coordinate.
    """

    rms: float

    def plus(self, other: "GaussianLaw") -> "GaussianLaw":
        """Law of the sum of two independent copies."""
        return GaussianLaw(sqrt(self.rms**2 + other.rms**2))

    def operator(self, d: int, failure: float) -> float:
        """Bound on -N in every direction at once, exceeded with at most this probability."""
        return operator_quantile(self.rms, d, failure)

    def vector(self, d: int, failure: float) -> float:
        """Bound on ||N v|| for a fixed unit v."""
        return self.rms * norm_quantile(1.0, 0.5, d, failure)


@stored
@frozen
class ReportLaw:
    """Sums of independent codebook reports: bounded terms, given the records.

    One term's error has second moment ``across`` in directions orthogonal to its vector, at most
    ``along`` in all, and norm at most ``bound``. For a linear map of norm 1 to vectors, whose
    squared entries add up to k, the expected norm of a sum over n users is at most
    sqrt(n (k across + (along - across)+)), and exceeds it as Klein and Rio (2005, Theorem 1.1)
    bound suprema of independent, not identically distributed terms. Levels of the tree depend on
    reports of earlier levels: the bounds of each level, given the earlier ones, are added.

    Parameters
    ----------
    parts : tuple of CodebookBlocksNoise
        The laws of the sums that have been added, each over users of its own.
    """

    parts: tuple[Any, ...]

    @property
    def rms(self) -> float:
        """Standard deviation of an orthonormal coordinate."""
        return sqrt(sum(part.scale**2 for part in self.parts))

    def plus(self, other: "ReportLaw") -> "ReportLaw":
        """Law of the sum of two independent copies."""
        return ReportLaw(self.parts + other.parts)

    def operator(self, d: int, failure: float) -> float:
        """Bound on -N in every direction at once: that on its Frobenius norm."""
        return self._total(failure, d * (d + 1.0) / 2.0, 1.0)

    def equation(self, d: int, factor: float, inner: float, outer: float, failure: float) -> float:
        """Bound on the norm of (target - cross P'theta) - gram Q'theta / factor, all noise alone.

        With ||Q'theta|| <= inner and ||P'theta|| <= outer. The three act on coordinates of their
        own; the squared norms add up, and the squared entries of gram's map are (d + 1) / 2.
        """
        top = 1.0 + outer**2 + (inner / factor) ** 2
        squares = d * (1.0 + outer**2) + (d + 1.0) / 2.0 * (inner / factor) ** 2
        return self._total(failure, squares, top)

    def _total(self, failure: float, squares: float, top: float) -> float:
        """Bound for a map whose squared entries add up to squares, its squared norm top."""
        tail = log(len(self.parts) / failure)
        total = 0.0
        for part in self.parts:
            excess = max(part.along - part.across, 0.0)
            mean = sqrt(part.reports * (squares * part.across + top * excess))
            weak = part.reports * top * max(part.along, part.across)
            bound = sqrt(top) * part.bound
            first = 3.0 * bound * tail
            total += mean + 0.5 * (
                first + sqrt(first**2 + 8.0 * tail * (weak + 2.0 * bound * mean))
            )
        return total


def law_of(noise: Any) -> Any:
    """Quantiles of an answer's noise."""
    if isinstance(noise, CodebookBlocksNoise):
        return ReportLaw((noise,))
    return GaussianLaw(noise.scale)


# Parts of a bin's failure probability: of two events about noise, ||N_gram v|| and the operator
# norm of N_gram. The deviation of the cross noise is known. The targets have most of the rest.
NOISE_WEIGHTS = (0.10, 0.04)
# Noise alone exceeds the size from which an eigenvalue is resolved with this probability.
ACTIVATION_FAILURE = 0.05


@stored
@dataclass(eq=False)
class Bin:
    """One bin: the records whose residual vector has norm in (gamma^-(k+1), gamma^-k].

    Attributes
    ----------
    path : tuple of int
        The exponents k_1, ..., k_h; the length is the level.
    parent : Bin or None
    basis : ndarray of shape (p, d)
        Orthonormal basis of what the ancestors have left, p features.
    resolved : ndarray of shape (p, p - d)
        Directions of the ancestors, the root's first.
    factor : float
        gamma^k, which brings the residual to the unit ball.
    gram, cross, target : ndarrays of shape (d, d), (d, p - d), (d,)
        Noisy sums of z z', z a' and r z, with z = factor * basis' phi and a = resolved' phi.
    law : GaussianLaw or ReportLaw
        Law of their noise; None before the bin is asked about.
    records : int
        Number of reports that were asked for (public).
    copies : int
        How often the same record may be among them.
    eigenvalues : ndarray of shape (d,)
        Eigenvalues of the gram at the level of the bin, largest first.
    directions : ndarray of shape (p, d)
        The matching eigenvectors.
    n_active : int
        How many leading directions are resolved in this bin; 0 for an inactive bin.
    half_widths : ndarray of shape (d,)
        Certified half-width of the coefficient along each direction, in the published variant.
    total : ndarray of shape (p,)
        Estimate along the path in the published variant: its prediction is phi'total.
    earlier : (Answer, float)
        Answer about the errors of earlier levels in that variant, and its number for the bin.
    """

    path: tuple[Any, ...]
    parent: "Bin | Any"
    basis: np.ndarray
    resolved: np.ndarray
    factor: float
    total: np.ndarray
    gram: np.ndarray = field(init=False)
    cross: np.ndarray = field(init=False)
    target: np.ndarray = field(init=False)
    law: Any = None
    records: int = 0
    copies: int = 1
    eigenvalues: np.ndarray = field(init=False)
    directions: np.ndarray = field(init=False)
    half_widths: np.ndarray = field(init=False)
    earlier: tuple[Any, ...] = field(init=False, default=())
    n_active: int = 0
    children: tuple[Any, ...] = ()

    @property
    def level(self) -> int:
        """Number of exponents."""
        return len(self.path)

    @property
    def size(self) -> Any:
        """Number d of directions left."""
        return self.basis.shape[1]

    @property
    def active(self) -> bool:
        """Whether the bin resolves a direction."""
        return self.n_active > 0

    @property
    def informative(self) -> bool:
        """Whether the gram stands out of its noise; read off grams only."""
        edge = self.law.operator(self.size, ACTIVATION_FAILURE)
        return bool(np.linalg.eigvalsh(self.gram)[-1] > edge)

    def receive(
        self,
        gram: np.ndarray,
        cross: np.ndarray,
        target: np.ndarray,
        law: GaussianLaw | ReportLaw,
        records: int,
        overlap: bool,
    ) -> None:
        """Add an answer about (more) records of the bin, or about the same ones if they overlap."""
        if self.law is None:
            self.gram = gram
            self.cross = cross
            self.target = target
            self.law = law
            self.records = records
        else:
            # No sum in place, which would change the arrays of an answer
            self.gram = self.gram + gram
            self.cross = self.cross + cross
            self.target = self.target + target
            self.law = self.law.plus(law)
            self.records += records
            self.copies += overlap

    def decompose(self) -> None:
        """Eigenvalues and directions of the gram, largest first, from y-free answers only."""
        values, vectors = np.linalg.eigh(self.gram)
        self.eigenvalues = values[::-1]
        self.directions = self.basis @ vectors[:, ::-1]
        self.half_widths = np.full(self.size, inf)

    def activate(self, n_active: int, gamma: float, n_scales: int) -> None:
        """Resolve the leading directions, and divide what is left into bins."""
        self.n_active = n_active
        if 0 < n_active < self.size and n_scales:
            basis = self.directions[:, n_active:]
            resolved = np.hstack([self.resolved, self.directions[:, :n_active]])
            self.children = tuple(
                Bin((*self.path, k), self, basis, resolved, float(gamma) ** k, self.total)
                for k in range(n_scales)
            )

    def chain(self) -> "Iterator[Bin]":
        """The bin and its ancestors, the bin first."""
        node: Bin | None = self
        while node is not None:
            yield node
            node = node.parent


@stored
class PartitionTree:
    """Bins of a layered regression, as released: a readable part of the fitted model.

    Bins below inactive bins are never made.

    Parameters
    ----------
    size : int
        Number p of features, the intercept's included.
    gamma : float
        Ratio of the norms of neighbouring bins.
    n_scales : int
        Number M of bins that a bin is divided into; records of norm below gamma^-M are in none.
    n_levels : int
        Largest depth.

    Attributes
    ----------
    bins : list of Bin
        Every bin that was asked about, level by level.
    """

    def __init__(self, size: int, gamma: float, n_scales: int, n_levels: int) -> None:
        self.gamma = gamma
        self.n_scales = n_scales
        self.n_levels = n_levels
        self.bins: list[Bin] = []
        self._basis = np.eye(size)
        self._roots = tuple(
            Bin((k,), None, self._basis, np.empty((size, 0)), float(gamma) ** k, np.zeros(size))
            for k in range(n_scales)
        )

    def frontier(self) -> list[Bin]:
        """Bins that the next level asks about: children of active bins."""
        if not self.bins:
            return list(self._roots)
        paths = {node.path for node in self.bins}
        return [child for b in self.bins for child in b.children if child.path not in paths]

    def locate(self, phi: np.ndarray) -> Iterator[Any]:
        """Last bin that was made on the path of each row.

        Parameters
        ----------
        phi : ndarray of shape (n_rows, p)

        Yields
        ------
        (Bin, rows) : the bin and the indices of its rows; rows in no bin are left out
        """
        yield from self._visit(phi, self._basis, self._roots, np.arange(len(phi)), None)

    def _visit(
        self,
        phi: np.ndarray,
        basis: np.ndarray,
        bins: tuple[Bin, ...],
        rows: np.ndarray,
        parent: Bin | None,
    ) -> Iterator[tuple[Bin, np.ndarray]]:
        norms = lengths_of(phi[rows] @ basis)
        # k = max{k <= M : norm <= gamma^-k}, by comparisons, so that factor * norm <= 1
        limits = float(self.gamma) ** -np.arange(self.n_scales, 0, -1)
        exponents = self.n_scales - np.searchsorted(limits, norms, side="left")
        for k, node in enumerate(bins):
            inside = rows[exponents == k]
            if len(inside) == 0:
                continue
            if node.children:
                yield from self._visit(phi, node.children[0].basis, node.children, inside, node)
            else:
                yield node, inside
        outside = rows[exponents >= self.n_scales]
        if parent is not None and len(outside):
            yield parent, outside


@frozen_object
class LevelQuery(Query):
    """Sum of u u' in the last bin of each record's path, u = (z, a / sqrt 2, r / sqrt 2).

    z = gamma^k basis'phi has norm at most 1 by the choice of the bin, a = resolved'phi and r too;
    bins are blocks of one vector, zero but for the record's own. All depends on released answers
    only.

    Gaussian noise: of u u' only z z', z a' and r z are asked, in vech coordinates, which weigh them
    by 1, 1, 1. Replacing a record within a bin has squared norm at most 2 W (1 + p) + 2 (1 - p^2),
    p = <z, z'>, with W = 2 (W = 1 where a is empty): largest at p = W / 2, where it is
    W^2 / 2 + 2 W + 2 = 8 (4.5). Moving it to another bin: 2 (W + 1) = 6 (4), less. Attained at
    <z, z'> = W / 2, r = -r', a = -a' of norm 1, which bins of large k approach.

    Parameters
    ----------
    maps : RecordMap
    tree : PartitionTree
        Made of released answers.
    bins : tuple of Bin
        Those that are asked about; noise is drawn for them only.
    crossed : bool
        Whether z a' is asked: whether any of the bins may have ancestors.
    level : int
    """

    maps: "RecordMap"
    tree: PartitionTree
    bins: tuple[Any, ...]
    crossed: bool
    level: int = 1
    name_prefix = ""

    @cached_property
    def slots(self) -> dict[tuple[int, ...], int]:
        """Number of each bin that is asked about, by its path."""
        return {node.path: slot for slot, node in enumerate(self.bins)}

    @property
    def name(self) -> str:
        """Its name in the privacy report."""
        return f"level {self.level}, {self.name_prefix}{len(self.bins)} bins"

    @property
    def joint_length(self) -> Any:
        """Length of u."""
        return self.maps.size + 1

    @property
    def shape(self) -> tuple[int, int]:
        """A row of vech coordinates for each bin."""
        return (len(self.bins), vech_size(self.joint_length))

    @property
    def sensitivity(self) -> float:
        """Sensitivity of the whole vector over all bins, see above."""
        extra = 2.0 if self.crossed else 1.0
        return sqrt(extra**2 / 2.0 + 2.0 * extra + 2.0) * ROUNDING

    def located(self, phi: np.ndarray) -> Iterator[tuple[int, Bin, np.ndarray]]:
        """Yield (slot, bin, indices of rows) of each bin that is asked about and has rows."""
        for node, rows in self.tree.locate(phi):
            if node.path in self.slots:
                yield self.slots[node.path], node, rows

    @cached_property
    def _columns(self) -> list[np.ndarray]:
        """Maps from phi to the part of u without r, one a bin."""
        weight = self.crossed / SQRT2
        return [np.hstack([b.factor * b.basis, weight * b.resolved]) for b in self.bins]

    def residual(self, node: Bin, phi: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The r of records of a bin, in [-1, 1]."""
        return target

    def sum(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Exact sum over a chunk of rows."""
        phi, target = self.maps.records(X, y)
        total = np.zeros(self.shape)
        for slot, node, rows in self.located(phi):
            r = self.residual(node, phi[rows], target[rows])
            u = np.column_stack([phi[rows] @ self._columns[slot], r / SQRT2])
            moments = u.T @ u
            moments[node.size :, node.size :] = 0.0
            total[slot] += vech(moments)
        return total

    def deliver(self, answer: "Answer", overlap: bool) -> None:
        """Hand the answer to the bins; overlap says if levels share their records."""
        law = law_of(answer.noise)
        for node, value in zip(self.bins, answer.value, strict=True):
            moments = unvech(value, self.joint_length)
            d = node.size
            beside = SQRT2 * moments[:d, d:]
            node.receive(moments[:d, :d], beside[:, :-1], beside[:, -1], law, answer.n, overlap)


@frozen_object
class CodebookLevelQuery(LevelQuery):
    """The moments z z', z a' and r z of :class:`LevelQuery`, as a unit vector for a codebook.

    In vech coordinates of u u' their squared norm is ||z||^4 + ||z||^2 (||a||^2 + r^2), at most 3
    (2 where a is empty): the vector is divided by the root of that. The coordinate of r r, which
    nobody needs, completes it to length 1, and is all that users outside of the bins report.
    """

    @property
    def radius(self) -> float:
        """Bound on the norm of a record's moments."""
        return float(np.sqrt(3.0 if self.crossed else 2.0))

    def local_noise(self, budget: "Budget") -> CodebookBlocksNoise:
        """Law of the sum of one report; only epsilon counts."""
        blocks = max(len(self.bins), 1)
        return CodebookBlocksNoise(budget.epsilon, self.shape[1], self.radius, blocks)

    def units(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slot of each row's bin, and its unit vector."""
        phi, target = self.maps.records(X, y)
        slots = np.zeros(len(phi), np.intp)
        vectors = np.zeros((len(phi), self.shape[1]))
        above = np.triu_indices(self.joint_length, 1)
        for slot, node, rows in self.located(phi):
            d = node.size
            u = np.column_stack([phi[rows] @ self._columns[slot], target[rows] / SQRT2])
            moments = np.hstack([u**2, SQRT2 * u[:, above[0]] * u[:, above[1]]])
            in_node = np.append(np.arange(self.joint_length) < d, above[0] < d)
            slots[rows] = slot
            vectors[rows] = moments * in_node
        vectors /= self.radius
        squares = quadratic_forms(vectors)
        vectors[:, self.joint_length - 1] = np.sqrt(np.maximum(1.0 - squares, 0.0))
        return slots, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def reports(
        self, X: np.ndarray, y: np.ndarray, noise: CodebookBlocksNoise, source: "NoiseSource"
    ) -> tuple[np.ndarray, np.ndarray]:
        """What each user sends: a public random row, and an index for the vector times its sign."""
        slots, vectors = self.units(X, y)
        rows = source.rows(len(X), noise.rows)
        signs = hadamard_entries(rows, slots)
        return rows, source.codebook_reports(signs[:, None] * vectors, noise.cap)

    def _report(
        self, X: np.ndarray, y: np.ndarray, noise: CodebookBlocksNoise, source: "NoiseSource"
    ) -> Any:
        """The public row and the direction that the user of one row sends."""
        rows, reports = self.reports(X, y, noise, source)
        return int(rows[0]), reports[0]
