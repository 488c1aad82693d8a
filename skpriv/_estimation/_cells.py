"""Cells of a table that may be empty, and the equations across their directions.

A *cell* is a public condition on rows: a level of a list, a missing value, or a combination of
these. Its direction n of the parameters has psi'n = 1 for its rows and 0 for all others, whatever
the rows are. If the noise hides whether there are such rows, the equations across n hold without
it: see docs/mathematics/coefficients.md.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._linalg import lengths_of, quadratic_forms, trace_of
from .._stored import frozen_object, stored
from ._levels import USUAL_QUANTILE

if TYPE_CHECKING:
    from .._contracts import Array
    from ._public_maps import RowMap

# Part of a length, and of its square, that is rounding.
ROUNDED_LENGTH = 1e-5
ROUNDED_SQUARE = ROUNDED_LENGTH**2
MOSTLY = 0.5  # a point is hidden with a larger part of its squared length in hidden directions
WEAK_CELL = 2.0  # floors of the noise up to which a cell may be what hides a direction


def noise_floor(values: np.ndarray, scale: float, quantile: float = USUAL_QUANTILE) -> float:
    """Largest eigenvalue that noise alone may explain.

    If nothing is in the k smallest directions, their block of the matrix is GOE noise of size k.
    Its largest eigenvalue is about scale sqrt(2 k), and for k = 1 it is a normal variable. The
    floor is that of the largest k whose k-th eigenvalue does not exceed it.

    Parameters
    ----------
    values : ndarray of shape (p,)
        Eigenvalues of a matrix plus GOE(scale), increasing.
    scale : float
    quantile : float, default=that of intervals at .95
        That of a normal variable, for k = 1.
    """
    floors = scale * (np.sqrt(2.0 * np.arange(1, len(values) + 1)) - np.sqrt(2.0) + quantile)
    return float(floors[max(np.flatnonzero(values <= floors), default=0)])


class KnowsCells:
    """Mixin of fitted models, whose laws and intervals may know public cells of the table.

    Attributes
    ----------
    coefficient_law : callable or None
        ``coefficient_law(estimand)``, the law of the coefficients; None of models without one.
    curve : callable or None
        ``curve(feature, grid)`` of models that are sums of curves; None of others.
    coefficient_blocks : list
        Names of the linear parts of a model that has several, such as those of classes.
    outside_columns : list of int
        Columns that have no coefficient, such as instruments.
    """

    coefficient_law: Any = None
    curve: Any = None
    coefficient_blocks: Any = ()
    outside_columns: Any = ()

    def with_cells(self, cells: Any) -> Self:
        """The fitted model where public cells of its rows are known: levels, missing values.

        Noise hides a level that hardly any row has. If the model knows which direction of its
        coefficients that is, standard errors and intervals of everything else do not depend on it.
        :func:`skpriv.inspection.inference` and :func:`skpriv.inspection.confidence_interval` pass
        on the cells of the steps of a pipeline.

        Parameters
        ----------
        cells : array-like of shape (n_cells, n_features + 1)
            Functions of rows, coefficients and then an intercept, that are 1 in a cell and 0
            elsewhere, such as ``cells`` of the ``coefficient_map()`` of an encoder. They are
            public, and no row decides them.

        Returns
        -------
        model
            A copy; models whose answers do not depend on cells return themselves.
        """
        return self._with_cells(cells)

    def _with_cells(self, cells: np.ndarray) -> Self:
        """What a subclass does with the cells, of which nothing depends here."""
        return self


def placed(
    functions: np.ndarray, columns: np.ndarray | list[int] | slice, n_features: int
) -> np.ndarray:
    """Functions of rows with more features, of which those of the given ones are columns.

    A function is a row of coefficients, with an intercept that is last.
    """
    found = np.zeros((len(functions), n_features + 1))
    found[:, columns] = functions[:, :-1]
    found[:, -1] = functions[:, -1]
    return found


def behind(functions: np.ndarray, matrix: np.ndarray) -> "Array":
    """Functions of the rows behind a step that are these of the rows in front of it, if there are.

    Parameters
    ----------
    functions : ndarray of shape (n_functions, n_features + 1)
    matrix : ndarray of shape (n_features + 1, n_behind + 1)
        Takes coefficients and an intercept behind the step to those in front of it.
    """
    found = np.linalg.lstsq(matrix, functions.T, rcond=None)[0]
    missed = lengths_of((matrix @ found - functions.T).T)
    return found.T[missed <= ROUNDED_LENGTH * lengths_of(functions)]


@stored
@frozen_object
class Cells:
    """Public directions of the cells of a table, in the coordinates of some equations.

    Attributes
    ----------
    directions : ndarray of shape (n_cells, p)
        n, one a row.
    constants : ndarray of shape (n_constants, p)
        Directions in which all rows change by 1: there may be one, none, or one for each class.
    empty : sequence of int
        Cells that may be empty as other equations say.
    """

    directions: np.ndarray
    constants: np.ndarray
    empty: Any = ()

    @classmethod
    def none(cls, size: int) -> "Cells":
        """No cells."""
        nothing = np.empty((0, size))
        return cls(nothing, nothing)

    @classmethod
    def of_rows(cls, rows: "RowMap", cells: np.ndarray, within: bool = False) -> "Cells":
        """Cells as directions of the parameter of a map of rows.

        Parameters
        ----------
        rows : RowMap, or what stands in its place
        cells : array-like of shape (n_cells, n_features + 1)
            Functions of the features: coefficients, then an intercept.
        within : bool, default=False
            Whether constants drop out, as of differences within persons.
        """
        cells = np.asarray(cells, float)
        if rows.constant is None and not within:  # a constant is no combination of the columns
            cells = cells[np.abs(cells[:, -1]) <= ROUNDED_LENGTH]
        lines = [rows.line(cell[:-1], cell[-1]) for cell in cells]
        constants = [] if rows.constant is None else [rows.constant]
        return cls(*(np.reshape(part, (-1, rows.size)) for part in (lines, constants)))

    def within(self, columns: np.ndarray) -> "Cells":
        """Those whose directions have no part outside of these coordinates."""
        outside = np.delete(self.directions, columns, axis=1)
        return replace(self, directions=self.directions[~outside.any(axis=1)])

    def at(self, columns: np.ndarray) -> "Cells":
        """The same in these coordinates alone."""
        return self.turned(lambda rows: rows[:, columns])

    def turned(self, turn: Callable[..., Any]) -> "Cells":
        """The same after a linear map of parameters, which acts on rows of parameters."""
        return replace(self, directions=turn(self.directions), constants=turn(self.constants))

    @cached_property
    def long(self) -> "Array":
        """Length of the part of psi along each direction, in the rows of its cell."""
        return 1.0 / lengths_of(self.directions)

    @cached_property
    def unit(self) -> "Array":
        """Directions of length 1."""
        return self.directions * self.long[:, None]

    def along(self, slope: np.ndarray) -> np.ndarray:
        """The values of a noisy slope along each direction."""
        return quadratic_forms(self.unit, slope)

    def square_kept(self, length: float) -> np.ndarray:
        """Square of that part, in rows that are shortened to 1 and are so long across it."""
        square = self.long**2
        return square / np.maximum(1.0, square + length**2)

    def holdable(self, empty: list[int]) -> list[int]:
        """The same choice of cells, less so many of the last that no constant is in their span.

        Parameters
        ----------
        empty : list of int
            Cells, the surest first.
        """
        empty = list(empty)
        while empty and self._has_constant(empty):
            empty.pop()
        return empty

    def _has_constant(self, empty: list[int]) -> bool:
        _, across = split(self.unit[empty], self.directions.shape[1])
        lengths = lengths_of(self.constants)
        rest = lengths_of(self.constants @ across)
        return bool((rest <= ROUNDED_LENGTH * lengths).any())


def across_all(points: np.ndarray, directions: np.ndarray, part: float = ROUNDED_SQUARE) -> "Array":
    """Whether each point has no more than this part of its squared length in the directions.

    Parameters
    ----------
    points : ndarray of shape (n_points, p)
    directions : ndarray of shape (p, n_directions)
        Orthonormal columns.
    part : float, default=that of rounding
    """
    return quadratic_forms(points @ directions) <= part * quadratic_forms(points)


def estimable_weights(
    points: np.ndarray, held: np.ndarray, hidden: np.ndarray, part: float
) -> "Array":
    """Weights of independent sums of points that are estimable, with all of their sums.

    Parameters
    ----------
    points : ndarray of shape (n_points, p)
    held : ndarray of shape (p, n_held)
        Directions in which an estimable sum has no part.
    hidden : ndarray of shape (p, n_hidden)
        Directions in which it has at most this part of its squared length.
    part : float

    Returns
    -------
    ndarray of shape (n_sums, n_points)
    """
    lengths = np.maximum(lengths_of(points), 1e-300)
    unit = points / lengths[:, None]
    left, values, _ = np.linalg.svd(unit @ held, full_matrices=True)
    across = left[:, int((values > ROUNDED_LENGTH).sum()) :].T
    left, values, right = np.linalg.svd(across @ unit, full_matrices=False)
    independent = values > ROUNDED_LENGTH
    weights = (left[:, independent] / values[independent]).T @ across
    lost = right[independent] @ hidden
    parts, turns = np.linalg.eigh(lost @ lost.T)
    return turns[:, parts <= part].T @ weights / lengths


def split(rows: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal columns of the span of rows, and of its complement."""
    if not len(rows):
        return np.empty((size, 0)), np.eye(size)
    _, values, right = np.linalg.svd(rows, full_matrices=True)
    rank = int((values > ROUNDED_LENGTH * values[0]).sum())
    return right[:rank].T, right[rank:].T


@frozen_object
class Across:
    """Eigenvectors of a noisy slope across the directions of cells that may be empty.

    Attributes
    ----------
    values : ndarray of shape (m,)
        Eigenvalues of the slope across these directions, increasing.
    vectors : ndarray of shape (p, m)
    floor : float
        Largest eigenvalue that noise alone may explain.
    held : ndarray of shape (p, p - m)
        The directions, as orthonormal columns.
    empty : list of int
        The cells that may be empty.
    """

    values: np.ndarray
    vectors: np.ndarray
    floor: float
    held: np.ndarray
    empty: list[int]

    @classmethod
    def of(cls, slope: np.ndarray, scale: float, cells: Cells, quantile: float) -> "Across":
        """Take directions of cells that may be empty out of a noisy slope.

        A cell may be empty if the slope along its direction is not above the noise. If noise hides
        a direction across these cells that lies mostly along one more weak cell, that one is taken
        out, too.

        Parameters
        ----------
        slope : ndarray of shape (p, p)
            A matrix plus GOE(scale).
        scale : float
        cells : Cells
        quantile : float
        """
        rounded = 1e-14 * max(trace_of(slope), 0.0)
        unit = cells.unit
        along = cells.along(slope)
        along[[*cells.empty]] = -np.inf
        order = np.argsort(along)
        empty = cells.holdable(order[along[order] <= max(quantile * scale, rounded)].tolist())
        while True:
            held, across = split(unit[empty], len(slope))
            values, turned = np.linalg.eigh(across.T @ slope @ across)
            vectors = across @ turned
            # Its inverse has a square
            floor = max(noise_floor(values, scale, quantile), 1e-14 * values[-1], 1e-150)
            lengths = quadratic_forms(unit @ across)
            part = quadratic_forms(unit @ vectors[:, values <= floor])
            weak = (part > MOSTLY * lengths) & (lengths > ROUNDED_SQUARE)
            weak &= along <= WEAK_CELL * floor
            more = [
                i
                for i in np.flatnonzero(weak).tolist()
                if len(cells.holdable([*empty, i])) > len(empty)
            ]
            if not more:
                return cls(values, vectors, floor, held, empty)
            empty.append(min(more, key=lambda i: -part[i] / lengths[i]))


def moved(cells: Cells, empty: list[int], moment: np.ndarray, noise: float, length: float) -> float:
    """Square of how far the rows of cells may move the moments across them, as a deviation.

    The effect of a cell moves the scores of its rows in one direction. So it moves the moments
    across by at most the ratio of the length of a row across to that along the direction, times
    the moment along it, which was released.

    Parameters
    ----------
    cells : Cells
    empty : list of int
        The cells that were held.
    moment : ndarray of shape (p,)
        What is left of the moment at the solution across the cells.
    noise : float
        Variance of the noise of each of its coordinates.
    length : float
        Length of a row across the cells.
    """
    own = np.square(cells.unit[empty] @ moment)
    ratios = length / cells.long[empty]
    return float((ratios**2 * np.maximum(own, noise)).sum())
