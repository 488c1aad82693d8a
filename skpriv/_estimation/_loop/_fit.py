"""The released result of a fit of the loop, its error, and its intervals.

The certified interval comes from the last Newton step, without an assumption on the coefficients
or the noise. It is derived in docs/mathematics/linear_regression.md, whose letters are used here.
"""

from dataclasses import replace
from math import hypot, inf, sqrt
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from ..._linalg import RELATIVE_ZERO, norm_of, psd_part, quadratic_forms, trace_of
from ..._stored import frozen_object, stored
from .._cells import MOSTLY, ROUNDED_SQUARE, Across, Cells, moved, noise_floor, split
from .._coefficients import NOISE, CoefficientLaw, LawSource, LinearSource, enough_rows, few_rows
from .._levels import USUAL_QUANTILE, two_sided_quantile
from .._links import IDENTITY
from .._persons import dependence
from .._released import Information, Released
from ._bounds_words import narrow_bounds, wide_bounds
from ._certified import certified_by_step
from ._law import (
    FITTED,
    FUNCTION,
    LEAST_ROBUST,
    LEAST_SQUARES,
    NO_LINE,
    TOO_FEW_RECORDS,
    LoopLaw,
    LoopSource,
    inversion_excess,
)
from ._rules import RESOLVED, WIDEST_CLIP

if TYPE_CHECKING:
    from ._evidence import KnownLength, KnownMean
    from ._line import Line
    from ..._contracts import Array, Scalar
    from .._public_maps import PublicRows, RecordMap, RowMap
    from ._score import ScoreEquation

# Deviations of its noise that the share which a level has of the mean of counts is above: noise
# moves its effect by less than 2 then. With 1 a level of 200 rows of 20,000 is told in .12 of the
# fits at epsilon 1 for .71, and covered no better (docs/evidence/glm.md).
LEAST_SHARE = 0.5


def mean_slope(equations: "list[ScoreEquation]") -> tuple[np.ndarray, float]:
    """Mean of the slopes of equations, weighted by their precision, and the scale of its noise.

    The slope of a step is the Gram matrix of the rows that its clip leaves uncut. It is multiplied
    by the part of the rows that is uncut in the last step over its own, if residuals are normal.

    Parameters
    ----------
    equations : sequence of ScoreEquation
        Each with a slope.

    Returns
    -------
    (ndarray of shape (p, p), float)
    """
    last = equations[-1]
    if not last.slope_scale:
        return last.slope, 0.0
    ratios = np.array([last.uncut / eq.uncut for eq in equations])
    precision = (ratios * [eq.slope_scale for eq in equations]) ** -2.0
    total = np.tensordot(precision * ratios, [eq.slope for eq in equations], 1)
    return total / precision.sum(), float(precision.sum() ** -0.5)


# Laws of the fits that are in use. They are made of released numbers, and belong to no pickle.
_LAWS: WeakKeyDictionary[Any, dict[tuple[str, float], LoopLaw]] = WeakKeyDictionary()


@stored
@frozen_object
class LoopFit(Released):
    """All that a fit has released: its linear part is m + x'b for whitened points x = W phi.

    Attributes
    ----------
    location : float
        m, in scaled units.
    W : ndarray of shape (p, p)
        The whitening.
    b : ndarray of shape (p,)
    variance : float
        Residual variance, in scaled units.
    gram : ndarray of shape (p, p)
        Slope of the scores, pooled over all releases; positive semi-definite.
    equations : tuple of ScoreEquation
        Empty where only the mean was released. The last one has a residual Gram.
    line : Line or None
        Equation of the same rows without weights or clips, asked at b: the least-squares line's.
    same_rows : bool
        Whether all equations are of the same records (else of disjoint ones).
    n : int
        Number of records of the fit.
    effective_records : float, default=inf
        Effective records N.
    mean : KnownMean, default=None
        What is known of the mean of the fit beside its steps.
    stretch : KnownLength, default=None
        What is known of the length of a line beside its steps.
    link : StepLink
    rows_per_record : int
        Rows that a record may have: more than one if it is a person.
    degrees : float or None
        Factor of the sampling covariance by degrees of freedom; None is n / (n - p).
    clipped : tuple or None
        Parts of the rows outside of all bounds, and of those of each feature, and the noise of the
        first; None if it was not asked.
    length : float, default=1
        Root mean square length of a whitened row.
    cells : Cells or None
        Public cells of the table, as directions of b: see :meth:`knowing`.
    part : float, default=1
        Part of the records that have a target, with noise.
    """

    location: float
    W: np.ndarray
    b: np.ndarray
    variance: float
    gram: np.ndarray
    equations: "tuple[ScoreEquation, ...]"
    line: "Line | None"
    same_rows: bool
    n: int
    effective_records: float = inf
    mean: "KnownMean | None" = None
    stretch: "KnownLength | None" = None
    link: Any = IDENTITY
    rows_per_record: int = 1
    degrees: float | None = None
    clipped: tuple[Any, ...] | None = None
    length: float = 1.0
    cells: Any = None
    part: float = 1.0

    poolable = True

    @property
    def solved(self) -> bool:
        """Whether more than a mean was released."""
        return bool(self.equations)

    @property
    def textbook(self) -> "LoopFit":
        """The fit in the coordinates of the likelihood's equation, where that has a slope.

        Steps tell a rare cell from none if the slope h along it is above its noise. For counts h is
        its share of the mean, and r z what its targets have more, for the moment z along it and the
        length r of its rows: the share is h + r z at the solution. Noise m of the moment moves an
        effect by r m over that share, and a step from a point that is too high by r m over h. If
        the smaller one is below LEAST_SHARE times r m, nothing is said of the effect.
        """
        line = self.line
        if not line or line.own is None:
            return self
        own = line.own
        public = self._known_cells
        rare = public.long > 1.0
        steps = self.pooled(FITTED)
        share = public.along(steps.slope) / public.long
        share += np.minimum(public.unit @ steps.moment, 0.0)
        hidden = (share <= LEAST_SHARE * steps.moment_scale) & (self.link.limit is None)
        hidden[self.law(FITTED).empty] = True
        empty = np.flatnonzero(rare & hidden)
        rare[empty] = False
        # Rows are longer along rare cells, until noise of the steps there is that of the equation
        equation = line.equation
        along, _ = split(np.linalg.solve(own, public.directions[rare].T).T, len(own))
        noise = steps.slope_scale * norm_of(along @ along.T @ own, 2) ** 2
        times = sqrt(max(equation.slope_scale / (noise or inf), 1.0))
        longer = np.eye(len(own)) + (times - 1.0) * along @ along.T
        own = longer @ own
        cells = public.turned(lambda rows: np.linalg.solve(own.T, rows.T).T)
        equation = replace(equation, point=np.linalg.solve(longer, equation.point))
        equation = self._of_steps(equation, cells.directions[rare], own)
        return replace(
            self, W=own @ self.W, b=equation.point, gram=psd_part(equation.slope),
            equations=(equation,), mean=None, cells=replace(cells, empty=empty),
        )  # fmt: skip

    @property
    def _shrinking(self) -> "Scalar":
        """By what strong effects are farther away than shrunk ones say."""
        return 1.0 + self.link.shrunk_by / self.effective_records

    @property
    def _known_cells(self) -> Cells:
        """The cells, of which there may be none."""
        return self.cells or Cells.none(len(self.b))

    def _of_steps(
        self, equation: "ScoreEquation", rare: np.ndarray, own: np.ndarray
    ) -> "ScoreEquation":
        """An equation in the coordinates ``own``, which is that of the steps along rare cells.

        All rows of such a cell are as long along its direction, and steps give all of them one
        weight. So both have the same equation along it, in which steps shorten nothing.

        Parameters
        ----------
        equation : ScoreEquation
        rare : ndarray of shape (n_cells, p)
            Directions of cells whose rows are longer than 1 along them.
        own : ndarray of shape (p, p)
        """
        steps = self.pooled(FITTED)
        _, vectors = split(rare, len(own))
        across = vectors @ vectors.T
        to_steps = own - across @ own
        moment = steps.moment - steps.slope @ (own.T @ equation.point - steps.point)
        slope = own @ steps.slope @ own.T
        # Noise of the steps beside that of the equation, which the law counts in all directions
        largest = norm_of(to_steps, 2) or 1.0
        more = sqrt(max((steps.moment_scale * largest) ** 2 - equation.moment_scale**2, 0.0))
        return replace(
            equation,
            slope=slope + across @ (equation.slope - slope) @ across,
            moment=across @ equation.moment + to_steps @ moment,
            residual_gram=across @ equation.residual_gram @ across
            + to_steps @ steps.residual_gram @ to_steps.T,
            errors=np.hstack(
                [
                    across @ self.line.errors,  # type: ignore[union-attr]
                    more / largest * to_steps,
                ]
            ),
        )

    def knowing(self, cells: Cells) -> "LoopFit":
        """The same fit where public cells of the table are known, as directions of theta."""
        return replace(
            self,
            cells=cells.turned(
                lambda rows: np.linalg.solve(self.W.T, self.link.repeated(rows).T).T
            ),
        )

    @property
    def theta(self) -> "Array":
        """W'b, shape (p,): the linear part is m + phi'theta."""
        return self.W.T @ self.b

    @property
    def last(self) -> "ScoreEquation":
        """The last equation: the one of the largest share."""
        return self.equations[-1]

    def points(self, phi: np.ndarray) -> "Array":
        """Whitened points of rows phi."""
        return phi @ self.W.T

    def leverage(self, row_map: "RowMap") -> "Scalar | None":
        """Part of the weight of all rows, in its direction, that one inside of its bounds can have.

        None where there is no least-squares line, or where all is exact.
        """
        longest = row_map.longest_row(self.W)
        if self.line is None or not longest or not self.last.slope_scale:
            return None
        return longest**2 / max(self.last.n * trace_of(self.gram) / len(self.b), 1e-300)

    def information(self, constant: np.ndarray) -> Information:
        """Likelihood of theta, in the directions in which its slope is above its noise.

        The errors are those of the moments, of the slopes at their distance from the solution, and
        of sampling, with the residual variance everywhere the same.

        Parameters
        ----------
        constant : ndarray of shape (p,) or None
            The vector c with phi'c = 1 for every row; None without an intercept.
        """
        p = len(self.W)
        n = self.n
        if not self.equations:  # the mean alone says nothing of a line
            return Information(np.zeros((p, p)), np.zeros(p), np.eye(p) * n / p, n)
        pooled = self.pooled(FITTED)
        slope = pooled.slope
        scale = pooled.slope_scale
        away = self.b - pooled.point
        # A symmetric matrix M of noise (GOE) with scale s adds M u to the moment at a distance u:
        # on average over coordinates its variance is s^2 |u|^2 (1 + 1/p) / 2.
        noise = pooled.moment_scale**2 + 0.5 * (1.0 + 1.0 / p) * scale**2 * float(away @ away)
        values, vectors = np.linalg.eigh(slope)
        seen = np.where(values > noise_floor(values, scale), values, 0.0)
        variance = max(self.last.square, 2.0 * self.last.square_scale) / self.last.n
        weights = seen / (noise + variance * np.maximum(values, 0.0))
        back = np.linalg.inv(self.W)
        to_b = vectors.T @ back.T  # b = W^-T theta in these directions
        moment = vectors.T @ (pooled.moment + slope @ pooled.point)
        if constant is not None:  # of phi'theta, in which the location is a part of the constant
            moment = moment + seen * (to_b @ constant) * self.location
        rows = back @ (psd_part(slope) + 2.0 * scale / sqrt(p) * np.eye(p))
        return Information(
            (to_b.T * (weights * seen)) @ to_b, to_b.T @ (weights * moment), n * rows @ back.T, n
        )

    def telling(self, law: LoopLaw) -> tuple[float, np.ndarray, int]:
        """What tells rare cells from empty ones: the arguments of `few_rows`.

        They are the cells which may be empty by a law of this fit, or else the rarest one. Nothing
        tells them where noise hides more than cells. If the link bends, a row has the slope h that
        an effect leaves of a usual one. Noise moves the linear part of a rare cell to where the
        slope is next to 0, and steps seldom return. Two rounds of whitening make k of n rows about
        n L^2 / (k p) long, for the usual length L. So noise s of the moment moves their linear part
        by M = n^2 L^2 s / (k^2 p h), and k = n sqrt(L^2 s / (p h M)) rows are moved by M. Of
        several linear parts each has p / parts coordinates, and the noise of all adds up.
        """
        pooled = self.pooled(FITTED)
        cells = law.empty or [int(np.argmin(self.cells.along(pooled.slope)))]
        scale = inf if law.hidden.size else pooled.slope_scale
        squares = self.cells.square_kept(self.length)[cells]
        if not self.link.linear:
            squares = squares * self.link.slope_left * min(trace_of(self.gram) / self.length**2, 1)
            moved = self.length**2 * pooled.moment_scale * squares.min()
            moved *= self.link.parts**1.5 / len(self.W)
            scale = max(scale, sqrt(self.link.run_off * moved))
        return scale, squares, self.n * self.rows_per_record

    def rows_of_cells(self) -> float:
        """Rows that rare cells need."""
        return enough_rows(*self.telling(self.law())) if self.equations else np.nan

    def notes(self, row_map: "PublicRows", names: list[str] | None) -> tuple[str, ...]:
        """What a report says of bounds that are too narrow or too wide."""
        return narrow_bounds(self.clipped, row_map, names), wide_bounds(self, row_map, names)

    def coefficient_law(
        self, maps: "RecordMap", fitted: bool = True, hiding: str = NOISE, **words: Any
    ) -> CoefficientLaw:
        """Law of the coefficients, with further fields.

        Parameters
        ----------
        maps : RecordMap
        fitted : bool, default=True
            Whether the estimate is that of the line that was fitted: the solution of the clipped
            scores of these rows. Else of the least-squares line, or the curve of maximum
            likelihood.
        hiding : str
            What is said of coefficients that answers do not tell.

        Returns
        -------
        CoefficientLaw
        """
        rows = maps.row_map
        base = self.link.each(rows.coefficient_map())
        origin = np.zeros(len(base))
        reason = ""
        factor: Any = None  # how many times as many records are needed
        if not self.equations:
            reason = TOO_FEW_RECORDS
            factor = self.link.least_told(len(self.b)) / self.effective_records
        elif self.line is None and not fitted:
            reason = NO_LINE
            factor = max(RESOLVED * len(self.b) ** 1.5 / self.effective_records, 1.0)
        source: LawSource = LinearSource(reason, base, origin, factor)
        if not reason:
            fit = self if fitted else self.textbook
            kind = FITTED if self.link.linear else FUNCTION
            law = fit.law(kind if fitted else LEAST_SQUARES)
            # The location is in the intercept of each linear part
            origin.reshape(np.size(self.location), -1)[:, -1] = (
                maps.centre + maps.radius * self.location
            )
            corners = None
            if rows.half_ranges is not None and self.link.linear and self.last.slope_scale:
                corners = rows.half_ranges, rows.constant
            source = LoopSource(
                law,
                fit.W,
                base,
                origin,
                maps.radius,
                corners,
                1.0 + abs(self.location),
                hiding,
                few_rows(*self.telling(law)) if law.held.size else "",
            )
        return CoefficientLaw.of(source, len(base), self.n, **words)

    def pooled(self, kind: str) -> "ScoreEquation":
        """The equation that intervals rest on: a moment, and the mean of all released slopes.

        For any slope D the recent equations, with weights a_k that add up to one, give sum a_k z_k
        = D (b - sum a_k b_k). For a line, D is the mean of the slopes of all steps, see
        `mean_slope`. If the link bends, slopes far away are others: D is that of the recent
        equations alone.

        Parameters
        ----------
        kind : {"function", "fitted", "least_squares"}

        Returns
        -------
        ScoreEquation
        """
        used, shares = self.recent_equations()
        released = self.equations if self.link.linear else used
        slope, scale = mean_slope([e for e in released if e.slope is not None and self._of_all(e)])
        line = self.line
        if kind == LEAST_SQUARES and line is not None and line.own is None:
            equation: ScoreEquation = replace(
                line.equation, slope=slope, slope_scale=scale, errors=line.errors
            )
            if line.far is None:
                return equation
            # The slope lacks a part of the rows that steps weigh down
            cells = self._known_cells
            # Steps cut the residuals of longer rows at more deviations
            least = max(1.0, WIDEST_CLIP * sqrt(self.variance) / self.last.limit)
            rare = cells.directions[cells.long > least]
            missing, directions = line.far.missing(slope, rare)
            equation = replace(
                equation,
                slope=slope + missing,
                far=(directions, line.far.scale, line.far.farther * missing),
            )
            return self._of_steps(equation, rare, np.eye(len(slope)))
        squared = [eq for eq in used if eq.residual_gram is not None] or [self.last]
        precision = np.array([(eq.residual_scale or 1.0) ** -2.0 for eq in squared])
        return replace(
            self.last,
            point=shares @ [eq.point for eq in used],
            moment=shares @ [eq.moment for eq in used],
            moment_scale=sqrt(shares**2 @ [eq.moment_scale**2 for eq in used]),
            slope=slope,
            slope_scale=scale,
            residual_gram=np.average([eq.residual_gram for eq in squared], 0, precision),
            residual_scale=float(precision.sum() ** -0.5) if self.last.residual_scale else 0.0,
            n=self.last.n if self.same_rows else 1.0 / (shares**2 @ [1.0 / eq.n for eq in used]),
        )

    def _of_all(self, equation: "ScoreEquation") -> bool:
        """Whether an equation is of all records, or each equation is of records of its own."""
        return not self.same_rows or equation.n == self.last.n

    def recent_equations(self) -> "tuple[list[ScoreEquation], np.ndarray]":
        """Equations that intervals rest on, with weights that add up to one.

        They are those with a slope that all records were asked near the end of the loop. A part of
        the records has another sampling error. At a point that is further away than its own noise
        the slope is another, where scores are clipped or a link bends. Their limits differ by no
        more than the factor 1.25 from the last one.
        """
        # Squared length of a solution of pure noise, over the variance of a coordinate of a moment
        noise_square = len(self.b) / max(trace_of(self.gram) / len(self.b), 1e-300)
        used = []
        for eq in filter(self._of_all, self.equations[:-1]):
            away = self.last.point - eq.point
            close = float(away @ self.gram @ away) <= eq.moment_scale**2 * noise_square
            limits = eq.cut_length, self.last.cut_length
            close &= max(limits) <= 1.25 * min(limits)
            if close and eq.slope is not None and bool(eq.fall) == bool(self.last.fall):
                used.append(eq)
        used.append(self.last)
        precision = np.array([(eq.moment_scale or 1.0) ** -2.0 for eq in used])
        return used, precision / precision.sum()

    def law(self, kind: str = FUNCTION, confidence_level: float = 0.95) -> LoopLaw:
        """Law of these estimates, see :meth:`_law`, which is computed once for blocks of points."""
        laws = _LAWS.setdefault(self, {})
        if (kind, confidence_level) not in laws:
            laws[kind, confidence_level] = self._law(kind, confidence_level)
        return laws[kind, confidence_level]

    def _law(self, kind: str, confidence_level: float) -> LoopLaw:
        """Law of estimates of x'b* without shrinkage, and what their errors are made of.

        With one slope D and one moment z at a point b, see :meth:`pooled`, and v = D^-1 x, the
        solution has the error

            v'(mean(e xi) + N + M (b - b*)),

        with xi the clipped noise of the target, and N and M the privacy noises of z and D. N is
        normal and independent of b and M. M depends on b by what earlier steps told of b alone,
        which adds what is of second order (docs/mathematics/linear_regression.md). In each
        direction u in which D is above its noise, the noise of the slope is inverted: see
        :func:`inversion_excess`. If D is below its noise, x'u u'(b* - b) is left over. Whitened
        coordinates are of one size, so that a hidden one is taken to be as large as all are in the
        mean, and no smaller than the largest estimate in a hidden direction: where a link bends, a
        strong effect hides itself. Inversion adds no more than the mean to others. A point that is
        mostly in such directions is not resolved, whatever their size is taken to be. Public
        directions of cells that may be empty are taken out before, and what their rows add to the
        moment counts as noise: see :class:`Across` and docs/mathematics/coefficients.md.

        More is known of the mean of all records: see :class:`KnownMean`. If the link bends, the
        mean of the residuals weighs rows by their means and not by H. An error in a rare direction
        would pass for one of the mean, so that there the mean only has the bound on what clips do
        to it.

        Parameters
        ----------
        kind : {"function", "fitted", "least_squares"}
            What b* is. "function" is the function whose mean is that of the target. "fitted" is the
            solution of the clipped scores of these very rows. "least_squares" is the least-squares
            line, by its own equation with the slope of the others. If the link bends, it is the
            curve of maximum likelihood, with the slope H of its scores. Weights make the slope D of
            the others smaller, so that the step x = H^-1 z has x'Dx <= x'z: it lies in the ball
            around D^-1 z / 2 of radius |D^-1 z| / 2 in the norm of D. This centre is the estimate.
            The direction of the rest is not known, so that each of p has an equal part of the
            radius. The part 1 - s of the step is taken, but no less than half, where H was asked
            and s is the part of its square that noise has. All of the rest is an error then.
        confidence_level : float in (0, 1), default=0.95
            Level of the intervals. The noise of the slopes is inverted at this level, or at .95
            if that is higher.

        Returns
        -------
        LoopLaw
        """
        pooled = self.pooled(kind)
        slope = pooled.slope
        scale = pooled.slope_scale
        quantile = two_sided_quantile(confidence_level)
        inverted = max(quantile, USUAL_QUANTILE)  # deviations of the noise of slopes
        # 1. The step from b, in the eigenvectors of the slope across cells that may be empty
        cells = self._known_cells
        across_cells = Across.of(slope, scale, cells, inverted)
        values = across_cells.values
        vectors = across_cells.vectors
        held = np.maximum(values, across_cells.floor)
        hidden = values <= across_cells.floor
        part = self._part_of_step(pooled, held, vectors)
        right = part * pooled.moment
        moments = vectors.T @ right
        solved = moments / held
        dual = vectors / held
        step = vectors @ solved
        solution = pooled.point + step
        # 2. Its errors by the noise of the moment, by that of the slope, and by sampling
        # (M u) has covariance s^2 (|u|^2 I + u u') / 2 for GOE noise M
        slope_noise = scale / sqrt(2.0) * step
        noise = (part * pooled.moment_scale) ** 2
        size = float(np.sqrt(np.mean(solution**2)))  # of a whitened coordinate
        largest = max(size, float(np.abs(solution @ vectors[:, hidden]).max(initial=0.0)))
        largest *= self._shrinking
        records = pooled.n
        typical, typical_gram = self._typical(pooled.residual_gram)
        across = 0.5 * scale**2 * (float(solved @ solved) + hidden.sum() * size**2)
        spread = noise + across + typical / records * values
        seen = ~hidden
        by_inversion = inversion_excess(values[seen], moments[seen], spread[seen], scale, inverted)
        by_inversion = vectors[:, seen] * np.minimum(by_inversion, size)
        noise += float(slope_noise @ slope_noise) + 0.5 * scale**2 * hidden.sum() * size**2
        if scale:
            rest = right - slope @ step
            noise += moved(cells, across_cells.empty, rest, noise, self.length) / len(values)
        # 3. Deviations of the moment that are not independent, and of the solution itself
        deviations = [slope_noise, *self._far_errors(pooled, step)]
        if not self.link.linear:
            deviations.append(self._bend(pooled, solution, values, vectors))
        shared = np.column_stack(deviations)
        others = []
        replies = dual
        shorter = np.eye(len(step))  # to coordinates in which the residual Gram has noise
        if self.line and pooled.errors is not None:
            shorter = np.dot(shorter, self.line.shorter)
            others.append(part * dual @ (vectors.T @ pooled.errors))
            if part < 1.0:  # what is left of the radius, beside its noise
                roots = np.sqrt(held)
                square = step @ slope @ step
                of_noise = noise * (roots**-2.0).sum()
                square = beside_noise(square, of_noise, len(values), bool(pooled.far))
                others.append((1.0 / part - 1.0) * sqrt(square / len(values)) * vectors / roots)
        # 4. The mean and the length that were asked move the solution, and its errors with it
        if self.mean is not None and kind == FUNCTION:
            constant = self.mean.constant  # of the mean of all records
            deviation = self.mean.skew
            if self.link.linear:
                excess, reply, deviation = self.mean.excess(solution, noise, shared)
                solution = solution - excess * constant
                replies = dual - np.outer(constant, reply @ vectors)
            others.append(deviation * constant)
        if self.stretch is not None and kind == FUNCTION:
            f = self.stretch.direction
            missing, deviation = self.stretch.of(solution)
            solution = solution + missing * f
            others.append(deviation * f)
        into = shorter @ vectors
        return LoopLaw(
            solution=solution,
            dual=dual @ (vectors.T @ np.linalg.solve(shorter, vectors)),
            residual_gram=into.T @ pooled.residual_gram @ into,
            residual_scale=pooled.residual_scale,
            typical_gram=into.T @ typical_gram @ into,
            records=records / self.degrees if self.degrees else max(records - len(values), 1.0),
            noise=noise,
            shared=np.column_stack([replies @ (vectors.T @ shared), *others]),
            inverted=by_inversion,
            hidden=vectors[:, hidden],
            size=largest,
            lost=MOSTLY if scale else ROUNDED_SQUARE,
            held=across_cells.held,
            empty=across_cells.empty,
            noise_dual=replies,
            least=LEAST_ROBUST / self.rows_per_record if self.last.moment_scale else RELATIVE_ZERO,
            quantile=quantile,
        )

    def _part_of_step(
        self, pooled: "ScoreEquation", held: np.ndarray, vectors: np.ndarray
    ) -> "Scalar":
        """The part of the step that is taken: less than 1 of a curve of maximum likelihood."""
        if pooled.errors is None or self.link.linear:
            return 1.0
        if not pooled.far:
            return 0.5
        errors = np.square(vectors.T @ pooled.errors).sum(axis=1) + pooled.moment_scale**2
        square = (vectors.T @ pooled.moment) ** 2 @ (1.0 / held)
        return max(0.5, 1.0 - errors @ (1.0 / held) / max(square, 1e-300))

    def _typical(self, residual_gram: np.ndarray) -> tuple[float, np.ndarray]:
        """Variance of a residual, and the residual Gram if it is the same everywhere."""
        typical = max(self.last.square, 2.0 * self.last.square_scale)
        if not self.link.linear:  # variance of the target over the slope of its mean
            typical = max(trace_of(residual_gram), 0.0) / (trace_of(self.gram) or 1.0)
        typical_gram = typical * self.gram
        if self.rows_per_record > 1:  # rows of a person that hardly depend on each other cancel out
            typical_gram *= dependence(residual_gram, typical_gram, self.rows_per_record)
        return typical, typical_gram

    def _far_errors(self, pooled: "ScoreEquation", step: np.ndarray) -> tuple[np.ndarray, ...]:
        """Deviations of the moment by the noise of the slope in far directions alone."""
        if not pooled.far:
            return ()
        far, deviation, error, *bend = pooled.far
        along = deviation / sqrt(2.0) * (far.T @ step)
        longer = error @ step
        # The link bends along the step, too, in rows that are far from all others. The trace of a
        # matrix of noise may be 0 or less: no linear part is larger than for rows along the step.
        away = sqrt(max(step @ longer, 0.0) / max(trace_of(error), 1e-300))
        longer *= hypot(1.0, sum(bend) * min(away, norm_of(step)))
        return far @ along, norm_of(along) * far, longer

    def _bend(
        self,
        pooled: "ScoreEquation",
        solution: np.ndarray,
        values: np.ndarray,
        vectors: np.ndarray,
    ) -> np.ndarray:
        """Deviations of a moment by the bend of a link, shape (p, p + 1), independent of others.

        At a distance d the moment is off by mean(e q) with |q| <= mu' (psi'd)^2 / 2. The length of
        that is at most B = d'Hd / 2 for the slope H. In orthonormal functions sqrt(mu') e'H^-1/2 of
        the rows its coordinates are those of q / sqrt(mu'). The mean square of this is
        3 B^2 / mean(mu') if psi'd is normal, and by Bessel it bounds the sum of squares of the
        coordinates. tr H is at most mean(mu'). The direction is not known, so that each of p has an
        equal part, and H^1/2 d has all of it once more: a strong effect flattens the curve along d,
        and the estimate is then too close by as much. So d is longer by one such deviation there.
        With few records it is longer, since noise shrinks a strong effect.
        """
        used, shares = self.recent_equations() if pooled.errors is None else ([pooled], np.ones(1))
        away = solution - np.array([eq.point for eq in used])
        squares = np.maximum(quadratic_forms(away, pooled.slope), 0.0)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        size = max(norm_of(root), 1e-150)
        bend = 0.5 * float(shares @ squares) / size
        normal_factor = sqrt(min(3.0, len(values)))
        farther = float(shares @ (np.sqrt(squares) + normal_factor * bend) ** 2) / size
        farther *= 0.5 * self._shrinking
        along = root.T @ (shares @ away)
        along *= normal_factor * farther / max(norm_of(along), 1e-150)
        return np.column_stack([normal_factor * bend / sqrt(len(values)) * root, root @ along])

    def interval(self, phi: np.ndarray, confidence_level: float, method: str) -> Any:
        """Centre and half-width at rows of features, in scaled units; infinite where not known.

        Parameters
        ----------
        phi : ndarray of shape (n_rows, p)
        confidence_level : float in (0, 1)
        method : {"asymptotic", "certified"}

        Returns
        -------
        (centre, half) : ndarrays of shape (n_rows,), or (n_rows, n_classes) of several classes

        Raises
        ------
        ValueError
            Of a certified interval where a person has several rows.
        """
        if method == "certified" and self.rows_per_record > 1:
            raise ValueError(
                "method='certified' needs the score of every row as it is, and those of a person "
                "with several rows are cut together at a released length: pass "
                "method='asymptotic', fit with max_rows_per_group=1, or use SSPRegressor, whose "
                "certified intervals hold for persons."
            )
        if not self.equations:
            nothing = np.zeros((len(phi), *np.shape(self.location)))
            return nothing, nothing + np.inf
        if self.link.parts > 1:
            return self.link.interval(self, phi, confidence_level)
        points = self.points(phi)
        if method == "certified":
            centre, half = certified_by_step(self.last, self.b, points, confidence_level)
        else:
            centre, half = self.law(confidence_level=confidence_level).interval(points)
        return self.location + centre, half


def beside_noise(square: float, of_noise: float, size: int, far: bool) -> float:
    """Squared length of a step less that of its noise, in so many directions of equal noise.

    It is one deviation of the noise's square larger if the slope of far rows was added: the mean of
    that square times sqrt(2 / size).
    """
    least = of_noise * sqrt(2.0 / size) if far else 0.0
    return max(square - of_noise, 0.0) + least
