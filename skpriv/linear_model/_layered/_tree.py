"""The partition tree of layered regression: bins of records of like norm, level by level."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._printing import Display

ACTIVATION_FAILURE = 0.05  # an eigenvalue counts when it exceeds this quantile of the noise


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
        Certified half-width of the coefficient along each direction, at level 0.95.
    """

    path: tuple
    parent: "Bin | None"
    basis: np.ndarray
    resolved: np.ndarray
    factor: float
    gram: np.ndarray = field(init=False)
    cross: np.ndarray = field(init=False)
    target: np.ndarray = field(init=False)
    law: Any = None
    records: int = 0
    copies: int = 1
    eigenvalues: np.ndarray = field(init=False)
    directions: np.ndarray = field(init=False)
    half_widths: np.ndarray = field(init=False)
    n_active: int = 0
    children: tuple = ()

    @property
    def level(self):
        """Number of exponents."""
        return len(self.path)

    @property
    def size(self):
        """Number d of directions left."""
        return self.basis.shape[1]

    @property
    def active(self):
        """Whether the bin resolves a direction."""
        return self.n_active > 0

    @property
    def informative(self):
        """Whether the gram stands out of its noise; read off grams only."""
        edge = self.law.operator(self.size, ACTIVATION_FAILURE)
        return bool(np.linalg.eigvalsh(self.gram)[-1] > edge)

    def receive(self, gram, cross, target, law, records, overlap=False):
        """Add an answer about (more) records of the bin, or about the same ones if they overlap."""
        if self.law is None:
            self.gram, self.cross, self.target = gram, cross, target
            self.law, self.records = law, records
        else:
            self.gram, self.cross = self.gram + gram, self.cross + cross
            self.target = self.target + target
            self.law, self.records = self.law.plus(law), self.records + records
            self.copies += overlap

    def decompose(self):
        """Eigenvalues and directions of the gram, largest first, from y-free answers only."""
        values, vectors = np.linalg.eigh(self.gram)
        self.eigenvalues = values[::-1]
        self.directions = self.basis @ vectors[:, ::-1]
        self.half_widths = np.full(self.size, np.inf)

    def activate(self, n_active, gamma, n_scales):
        """Resolve the leading directions, and divide what is left into bins."""
        self.n_active = n_active
        if 0 < n_active < self.size and n_scales:
            basis = self.directions[:, n_active:]
            resolved = np.hstack([self.resolved, self.directions[:, :n_active]])
            self.children = tuple(
                Bin((*self.path, k), self, basis, resolved, float(gamma) ** k)
                for k in range(n_scales)
            )

    def chain(self):
        """The bin and its ancestors, the bin first."""
        node: Bin | None = self
        while node is not None:
            yield node
            node = node.parent


class PartitionTree(Display):
    """Bins of a layered regression, as released: a readable part of the fitted model.

    ``print(tree)`` shows a line a bin, and ``tree.plot()`` draws it. Bins below inactive bins are
    never made.

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

    def __init__(self, size, gamma, n_scales, n_levels):
        self.gamma, self.n_scales, self.n_levels = gamma, n_scales, n_levels
        self.bins = []
        self._basis = np.eye(size)
        nothing = np.empty((size, 0))
        self._roots = tuple(
            Bin((k,), None, self._basis, nothing, float(gamma) ** k) for k in range(n_scales)
        )

    def frontier(self):
        """Bins that the next level asks about: children of active bins."""
        if not self.bins:
            return list(self._roots)
        known = set(map(id, self.bins))
        return [child for b in self.bins for child in b.children if id(child) not in known]

    def locate(self, phi):
        """Last bin that was made on the path of each row.

        Parameters
        ----------
        phi : ndarray of shape (n_rows, p)

        Yields
        ------
        (Bin, rows) : the bin and the indices of its rows; rows in no bin are left out
        """
        yield from self._visit(phi, self._basis, self._roots, np.arange(len(phi)), None)

    def _visit(self, phi, basis, bins, rows, parent):
        norms = np.linalg.norm(phi[rows] @ basis, axis=1)
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

    def __str__(self):
        head = f"PartitionTree: {len(self.bins)} bins, {sum(b.active for b in self.bins)} active"
        lines = [head]
        for node in sorted(self.bins, key=lambda b: b.path):
            indent = "  " * node.level
            name = ".".join(map(str, node.path))
            if not node.active:
                lines.append(f"{indent}{name}  inactive  s={node.eigenvalues[0]:.3g}")
                continue
            lines.append(f"{indent}{name}  active")
            for j in range(node.n_active):
                direction = np.array2string(node.directions[:, j], precision=3, threshold=6)
                lines.append(
                    f"{indent}    s={node.eigenvalues[j]:.3g}  "
                    f"half-width={node.half_widths[j]:.3g}  u={direction}"
                )
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, ax=None):
        """Draw the tree: active bins filled, with their number of directions.

        Parameters
        ----------
        ax : matplotlib Axes or None

        Returns
        -------
        self : PartitionTree
            Itself, with attributes ``ax_`` and ``figure_``.
        """
        ax = self._axes(ax)
        shown = sorted(self.bins, key=lambda b: b.path)
        places = {id(node): (row, -node.level) for row, node in enumerate(shown)}
        for node in shown:
            x, y = places[id(node)]
            if node.parent is not None:
                px, py = places[id(node.parent)]
                ax.plot([px, x], [py, y], color="0.7", linewidth=0.8, zorder=1)
            ax.scatter(x, y, s=90, zorder=2, edgecolors="C0", color="C0" if node.active else "w")
            label = f"{node.path[-1]}" + (f" ({node.n_active})" if node.active else "")
            ax.annotate(label, (x, y), xytext=(0, 8), textcoords="offset points", ha="center")
        ax.set_yticks(range(-max((b.level for b in shown), default=1), 0))
        ax.set_yticklabels([f"level {-y}" for y in map(int, ax.get_yticks())])
        ax.set_xticks([])
        ax.set_title("bins by exponent k; (directions resolved)")
        return self._drawn(ax)
