"""Linear regression with instruments: two-stage least squares of released answers.

The answers are the moments, one step, and the first stage; each joint release states its
sensitivity. Rows phi have |phi| <= 1 and targets r lie in [-1, 1]. z are the coordinates of phi
that are instruments or exogenous, x those of the structural equation. All sums of a person are over
the m places, each of which has a row or is empty.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, nan, sqrt
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from .._compat import fit_context, names_in
from .._estimation._cells import Cells, across_all, moved, split
from .._estimation._coefficients import (
    COLLINEAR,
    CoefficientLaw,
    LinearSource,
    Solved,
    equations_law,
    few_rows,
)  # fmt: skip
from .._estimation._fit_statistics import moment_statistics
from .._estimation._levels import USUAL_QUANTILE, two_sided_quantile
from .._estimation._links import IDENTITY
from .._estimation._loop._law import inversion_excess
from .._estimation._loop._score import SIDE_WEIGHT, SLOPE_WEIGHTS
from .._estimation._moments import RESIDUAL_CLIP, MomentsQuery, cluster_degrees
from .._estimation._persons import PersonScores, ScoreLengthsQuery, seldom_cut
from .._estimation._released import Released
from .._linalg import ROUNDED, SQRT2, norm_of, psd_part, row_norms, unvech, vech_size
from .._parameters import Estimand, RowsOfPerson, parameters
from .._printing import Printed, Table, aligned, installed, short_number
from .._stored import frozen_object, stored
from ..exceptions import PrivacyError
from ..privacy import ROUNDING, SIDE_SHARE, Query, models_that
from ._estimator import PrivateRegressor, Spec, persons_of
from ._opening import column_of, open_fit, public_maps, public_rows, within_maps
from ._predictions import AsymptoticIntervals

if TYPE_CHECKING:
    from ..privacy import Answer, Session
    from .._estimation._public_maps import RecordMap, RowMap
    from .._estimation._moments import NormalEquations
    from .._contracts import Array


@frozen_object
class InstrumentScoreQuery(PersonScores, Query):
    """Joint sum of (u, vech uu' / sqrt(2), c e x'), with c = sqrt(1/8) where a row is a record.

    Scores of rows are e s: e = w V z with w = min(1, 1 / |V z|), s = clip(r - x'theta, -R, R) / R.
    Weights depend on instruments and exogenous features alone, so that e stays an instrument.
    u is the sum of the scores of a person over m L, shortened to norm 1, and e x' is averaged over
    the places of the person: |u| <= 1 and |mean e x'| <= 1. Sensitivity sqrt(4 + 4 c^2): the first
    two move by at most 4 squared, see `PersonScores`, and the third by at most (2 c)^2. Attained at
    e' = -e, s = s', x = x', all of norm 1. Scores of persons are short by L: c is sqrt(1/2) there.

    Parameters
    ----------
    maps : RecordMap
    exogenous, structural : ndarray of int
        Coordinates of phi that are z and x.
    V : ndarray of shape (q, q)
    theta : ndarray of shape (k,)
    limit : float
        R.
    length : float
        Part of m at which the sum of the scores of a person is cut; 1 cuts nothing.
    slope_weight : float
        c.
    """

    maps: "RecordMap"
    exogenous: np.ndarray
    structural: np.ndarray
    V: np.ndarray
    theta: np.ndarray
    limit: float
    length: float = 1.0
    slope_weight: float = SIDE_WEIGHT
    name = "scores of instruments"
    link = IDENTITY

    @property
    def sensitivity(self) -> float:
        """Declared sensitivity."""
        return 2.0 * sqrt(1.0 + self.slope_weight**2) * ROUNDING

    @property
    def weights(self) -> dict[str, float]:
        """Weights of what is asked, in the order of the answer."""
        return {"moment": 1.0, "residual": 1.0 / SQRT2, "slope": self.slope_weight}

    @property
    def parts(self) -> dict[str, int]:
        """Sizes of what is asked, in the order of the answer."""
        q = len(self.V)
        return {"moment": q, "residual": vech_size(q), "slope": q * len(self.theta)}

    def scored(
        self, X: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Rows e and s of a chunk, and the slope of the sum of their products."""
        phi = self.maps.rows(X)
        e = phi[:, self.exogenous] @ self.V.T
        x = phi[:, self.structural]
        e /= np.maximum(row_norms(e), 1.0)[:, None]
        residual = self.maps.target(y) - x @ self.theta
        s = np.nan_to_num(residual / self.limit, nan=0.0).clip(-1.0, 1.0)
        return e, s, {"slope": e.T @ x}

    def read(self, answer: "Answer") -> "InstrumentSums":
        """The noisy moment, its covariance and the slope as sums over rows, each with its noise."""
        found, scales = self.named(answer.value, answer.noise.scale)
        return InstrumentSums(
            moment=found["moment"],
            moment_scale=scales["moment"],
            meat=unvech(found["residual"], len(self.V)),
            slope=found["slope"].reshape(len(self.V), -1),
            slope_scale=scales["slope"],
        )


@stored
@frozen_object
class InstrumentSums:
    """The parts of the answer to an `InstrumentScoreQuery`, as sums over rows.

    Attributes
    ----------
    moment : ndarray of shape (q,)
    moment_scale : float
        Deviation of its noise.
    meat : ndarray of shape (q, q)
        Covariance of the moment by sampling.
    slope : ndarray of shape (q, k)
    slope_scale : float
    """

    moment: np.ndarray
    moment_scale: float
    meat: np.ndarray
    slope: np.ndarray
    slope_scale: float

    def across(self, left: np.ndarray, right: np.ndarray, square: float = 0.0) -> "InstrumentSums":
        """The same in other coordinates, with a deviation more in the moment as a whole."""
        return InstrumentSums(
            moment=left.T @ self.moment,
            moment_scale=sqrt(self.moment_scale**2 + square / left.shape[1]),
            meat=left.T @ self.meat @ left,
            slope=left.T @ self.slope @ right,
            slope_scale=self.slope_scale,
        )


# Fraction of the budget for the moments; the rest is for the scores. With a third question errors
# were 10% larger at n = 2e5, epsilon 1, and 13% at 3e4.
MOMENTS = 0.35
# Root mean square length of V z: that of a number that is uniform in [-1, 1]
INSTRUMENT_LENGTH = sqrt(1.0 / 3.0)
# N / sqrt(n p) from which privacy noise is small beside sampling. Beyond it rows are made shorter
# with its square root and clips of residuals wider with its fourth root, so that both fade.
CLEAR_PRECISION = 50.0
WEAK = 10.0  # F of the first stage below which normal intervals do not hold (Staiger, Stock 1997)


@stored
@frozen_object
class TwoStages(Released):
    """The structural equation x'theta of scaled rows, solved by instruments.

    Attributes
    ----------
    exogenous, structural : ndarray of int
        Coordinates of phi that are instruments z, and those of the equation.
    start : ndarray of shape (k,)
        Where the scores were asked.
    V : ndarray of shape (q, q)
        The scores are those of V z, shortened to 1.
    sums : InstrumentSums
    moments : NormalEquations
        Sums of all phi phi' and r phi, of which the first stage is read.
    cells : Cells or None
        Public cells of the table, as directions of the parameter of phi.
    weak : bool
        Whether the first stage says that no normal interval holds.
    """

    exogenous: np.ndarray
    structural: np.ndarray
    start: np.ndarray
    V: np.ndarray
    sums: InstrumentSums
    moments: "NormalEquations"
    cells: Cells | None = None
    weak: bool = False

    def knowing(self, cells: Cells) -> Released:
        """The same where public cells of the table are known, as directions of the parameter."""
        return replace(self, cells=cells)

    @property
    def theta(self) -> "Array":
        """Solution of shape (k,)."""
        solved = self._solution[0]
        return self.start + solved.vectors @ (solved.theta - solved.vectors.T @ self.start)

    @property
    def solved(self) -> Solved:
        """The law of theta, a `Solved`."""
        return self._solution[0]

    @property
    def strength(self) -> float:
        """Smallest singular value of the released whitened slope, over the largest that is seen in
        5% of fits where noise is all there is in its direction; above 1 the slope is told from it.
        """
        return self._solution[1]

    @cached_property
    def _solution(self) -> tuple[Solved, float]:
        """The law of theta, across the cells that may be empty, and the strength."""
        sums = self.sums
        scale = sums.slope_scale
        both = np.intersect1d(self.exogenous, self.structural)
        cells = (self.cells or Cells.none(len(self.moments.target))).within(both)
        lines = cells.at(self.structural)
        weights = cells.at(self.exogenous).turned(lambda rows: np.linalg.solve(self.V.T, rows.T).T)
        along = np.einsum("ij,jk,ik->i", weights.unit, sums.slope, lines.unit)
        empty = lines.holdable(
            np.argsort(along)[: (along <= USUAL_QUANTILE * scale).sum()].tolist()
        )
        held, right = split(lines.unit[empty], len(self.start))
        _, left = split(weights.unit[empty], len(self.V))
        square = 0.0
        missing = ""
        if not scale:  # what columns that determine each other exactly leave open
            _, values, turns = np.linalg.svd(left.T @ sums.slope @ right)
            seen = values > ROUNDED * values[0]
            held = np.column_stack([held, right @ turns[~seen].T])
            right = right @ turns[seen].T
            missing = COLLINEAR
        if empty and scale:
            step = right @ _inverted(sums.across(left, right))[0]
            noise = sums.moment_scale**2 + scale**2 * (step @ step)
            left_over = sums.moment - sums.slope @ step
            n = self.moments.n
            square = moved(weights, empty, left_over, noise, INSTRUMENT_LENGTH)
            square_kept = (np.sqrt(weights.square_kept(INSTRUMENT_LENGTH)) * lines.long)[empty]
            missing = few_rows(scale / n, square_kept, n)
        step, sampling, privacy, strength = _inverted(sums.across(left, right, square))
        solution = right.T @ self.start + step
        return Solved(solution, sampling, privacy, right, held, missing), strength

    def interval(
        self, phi: np.ndarray, confidence_level: float, method: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Centre and half-width at rows of features; infinite where instruments are weak."""
        solved = self.solved
        points = phi[:, self.structural]
        across = points @ solved.vectors
        covariance = solved.sampling + solved.privacy
        deviation = np.sqrt(np.einsum("ij,jk,ik->i", across, covariance, across))
        in_reach = across_all(points, solved.held) & (not self.weak)
        half = two_sided_quantile(confidence_level) * deviation
        return np.where(in_reach, across @ solved.theta, 0.0), np.where(in_reach, half, inf)


def solve_two_stages(
    session: "Session", maps: "RecordMap", exogenous: np.ndarray, structural: np.ndarray
) -> TwoStages:
    """Ask for all moments and then for the scores at their solution, and solve.

    Returns
    -------
    TwoStages
    """
    lengths = SIDE_SHARE if session.persons is not None else 0.0
    query = MomentsQuery(maps)
    moments = query.equations(session.sum(query, MOMENTS))
    theta, white = _first_solution(moments, exogenous, structural)
    if session.trust.can.exact:
        V = white / max(norm_of(white, 2), 1e-300)  # no row is shortened, none is cut
        limit = 2.0 + np.abs(theta).sum()
    else:
        N = session.records(1.0) * query.sensitivity / session.noise(query, 1.0).scale
        free = max(1.0, N / sqrt(session.n * len(white)) / CLEAR_PRECISION)
        length = INSTRUMENT_LENGTH / sqrt(free * len(white))
        V = max(length, 1.0 / norm_of(white, 2)) * white
        limit = _limit(moments, theta, structural, RESIDUAL_CLIP * free**0.25)
    scores = InstrumentScoreQuery(maps, exogenous, structural, V, theta, limit)
    if lengths:
        length = seldom_cut(session, ScoreLengthsQuery(scores), lengths)
        scores = replace(scores, length=length, slope_weight=SLOPE_WEIGHTS[0])
    answer = session.sum(scores, 1.0 - MOMENTS - lengths)
    sums = scores.read(answer)
    meat = psd_part(sums.meat)
    n = answer.n
    p = len(theta)  # n - p are the degrees of freedom
    if session.persons is not None and session.trust.can.exact:
        meat *= cluster_degrees(session.n, round(n * session.persons), p)
    elif n > p:
        meat *= n / (n - p)
    return TwoStages(exogenous, structural, theta, V, replace(sums, meat=meat), moments)


def _inverted(sums: InstrumentSums) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """The step, the covariances of its noises by sampling and by privacy, and the strength.

    In the singular directions of the slope the answers are those of `inversion_excess`, with the
    noise that the slope has at the part of the step in other directions in the variance. If the
    weakest direction is empty, its singular value is the length of l - k + 1 normal variables.
    """
    left, values, right = np.linalg.svd(sums.slope, full_matrices=False)
    n_instruments, size = sums.slope.shape
    inverse = np.linalg.pinv(sums.slope)
    scale = sums.slope_scale
    step = inverse @ sums.moment
    spread = scale**2 * (step @ step)
    noise = (sums.moment_scale**2 + spread) * inverse @ inverse.T
    floor = scale * stats.chi.isf(0.05, n_instruments - size + 1)
    strength = values[-1] / floor if floor else inf
    if scale and strength > 1.0:
        variances = np.einsum("ij,ik,kj->j", left, sums.meat, left) + sums.moment_scale**2 + spread
        excess = inversion_excess(values, left.T @ sums.moment, variances, scale, USUAL_QUANTILE)
        noise += (right.T * excess**2) @ right
    return step, inverse @ sums.meat @ inverse.T, noise, strength


def _first_solution(
    moments: "NormalEquations", exogenous: np.ndarray, structural: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Two-stage least squares of noisy moments, and the square root of the inverse of mean zz'."""
    n = moments.n
    noise = moments.design_scale / n
    values, vectors = np.linalg.eigh(moments.design[np.ix_(exogenous, exogenous)] / n)
    values = np.maximum(values, max(USUAL_QUANTILE * noise, 1e-14 * values[-1], 1e-300))
    white = (vectors * values**-0.5).T
    slope = white @ moments.design[np.ix_(exogenous, structural)] / n
    ridge = len(white) * noise**2 / values[0]
    normal = slope.T @ slope + ridge * np.eye(len(structural))
    moment = white @ moments.target[exogenous] / n
    if not ridge:
        return np.linalg.lstsq(slope, moment, rcond=None)[0], white
    return np.linalg.solve(normal, slope.T @ moment), white


def _limit(
    moments: "NormalEquations", theta: np.ndarray, structural: np.ndarray, clip: float
) -> float:
    """Where residuals are clipped: released deviations, and nowhere beyond their range."""
    size = float(theta @ theta)
    square = moments.square - 2.0 * theta @ moments.target[structural]
    square += theta @ moments.design[np.ix_(structural, structural)] @ theta
    noise = moments.design_scale * sqrt(1.0 + 4.0 * size + size**2)
    deviation = sqrt((max(float(square), 0.0) + 2.0 * noise) / moments.n)
    return min(clip * deviation, 1.0 + sqrt(size))


@stored
@dataclass(frozen=True, eq=False, repr=False)
class FirstStage(Printed):
    """How the endogenous features hang on the instruments; prints as a table.

    Attributes
    ----------
    names : list of str
        Names of the instruments, the exogenous features and the intercept.
    endogenous : list of str
    laws : list of CoefficientLaw
        Laws of each endogenous feature: coefficients and their covariances, privacy included.
    n_instruments : int
        How many of the names are instruments; they come first.
    unit : str
        What a record is: "record" or "person".
    strength : float
        Smallest singular value of the whitened slope of the equation on the instruments, over what
        its noise alone may reach; where it is at most 1 nothing is known.
    """

    names: list[Any]
    endogenous: list[Any]
    laws: list[Any]
    n_instruments: int
    unit: str = "record"
    strength: float = inf

    @property
    def f_statistics(self) -> np.ndarray:
        """F of the instruments without privacy, estimated, one for each endogenous feature.

        It is about sampling: privacy noise, of which `strength` tells, is taken off its square. NaN
        is not known: noise hides coefficients of the first stage, as of collinear instruments.
        """
        found = []
        for law in self.laws:
            sums = law.estimable(range(self.n_instruments))
            squares = np.outer(sums.estimate, sums.estimate) - sums.privacy
            explained = max(np.sum(np.linalg.pinv(sums.sampling) * squares), 0.0)
            found.append(explained / len(squares) if len(squares) else nan)
        return np.array(found)

    @property
    def weak(self) -> bool:
        """Whether the slope is not told from noise, or an F is below 10: no interval holds then."""
        return self.strength <= 1.0 or bool((self.f_statistics < WEAK).any())

    def to_frame(self) -> Any:
        """Estimates, standard errors and the part of their variance that privacy added.

        Returns
        -------
        pandas.DataFrame
            A data frame with a row for each pair of an endogenous feature and an instrument.
        """
        pd = installed("pandas", "data")
        index = pd.MultiIndex.from_product([self.endogenous, self.names])
        columns = ("estimate", "std_error", "p_value", "privacy_share")
        rows = [
            row
            for law in self.laws
            for row in zip(law.estimate, law.std_error, law.p_value, law.privacy_share, strict=True)
        ]
        return pd.DataFrame(rows, index, columns)

    def _parts(self) -> Iterator[Table | str]:
        for name, law, f in zip(self.endogenous, self.laws, self.f_statistics, strict=True):
            found = f"F = {short_number(f)}" if f == f else "noise hides F: see strength"
            yield f"first stage of {name}, number of instruments {self.n_instruments}: {found}"
            error = law.std_error
            noise = [f"{share:.0%}".replace("nan%", "-") for share in law.privacy_share]
            texts = aligned(law.estimate, error)
            rows = zip(self.names, texts, aligned(error, error), noise, strict=True)
            yield Table(("", "estimate", "std. error", "noise"), list(rows))
        if self.weak:
            yield self.warning

    @property
    def warning(self) -> str:
        """The meaning of a weak instrument; empty if there is none."""
        if not self.weak:
            return ""
        low = self.f_statistics[self.f_statistics < WEAK]
        found = (
            f"F = {low.min():.3g} of the first stage is below {WEAK:g}"
            if len(low)
            else "the smallest singular value of their slope is "
            f"{self.strength:.2g} times what noise alone may reach"
        )
        return (
            f"the instruments are weak: {found}, so that normal intervals would not hold: other "
            "instruments, more records or a larger epsilon would help"
        )


def first_stage(
    fit: TwoStages,
    rows: "RowMap",
    names: list[str],
    endogenous: list[int],
    instruments: list[int],
    unit: str,
) -> FirstStage:
    """Regressions of each endogenous feature on the instruments, in the units of the features."""
    exogenous = fit.exogenous
    moments = fit.moments
    columns = [i for i in exogenous if i < rows.n_features]
    others = [i for i in columns if i not in instruments]
    shown = [*instruments, *others, *([rows.n_features] if rows.fit_intercept else [])]
    units = rows.coefficient_map()[np.ix_(shown, exogenous)]
    design = moments.design[np.ix_(exogenous, exogenous)]
    cells = fit.cells and fit.cells.within(exogenous).at(exogenous)
    scale = moments.design_scale
    laws = []
    for j in endogenous:
        target = moments.design[exogenous, j]
        solved = np.linalg.lstsq(design, target, rcond=None)[0]
        square = moments.design[j, j] - 2.0 * solved @ target + solved @ design @ solved
        equations = replace(
            moments,
            design=design,
            gram=design,
            target=target,
            cells=cells,
            square=max(float(square), scale),
            target_scale=scale / sqrt(2.0),  # Entries off the diagonal have less noise
        )
        unit_j = rows.divisor[j] / rows.parts[0]
        shift = np.zeros(len(shown))
        shift[-1] = rows.offset[j] if rows.fit_intercept else 0.0
        estimand = "least-squares line of an endogenous feature"
        laws.append(equations_law(equations, (unit_j * units, shift), estimand))
    labels = [names[i] if i < rows.n_features else "intercept" for i in shown]
    names = [names[j] for j in endogenous]
    return FirstStage(labels, names, laws, len(instruments), unit, fit.strength)


# code -> textbook (Wooldridge 2010, chapter 5): z instruments and exogenous features, x those of
# the structural equation y = x'beta + u with E[z u] = 0


@stored
@parameters
class IVRegressor(AsymptoticIntervals, PrivateRegressor):
    """Two-stage least squares: a linear equation with instruments, from noisy answers.

    Some features go along with what else moves the target, so that least squares is biased.
    Instruments move these *endogenous* features and nothing else about the target. The slopes
    solve E[z (y - x'beta)] = 0 for the instruments and the other features z. A prediction is what
    the target would be on average if the features were *set* to these values, and not the best
    guess of a target that goes along with them.

    Parameters
    ----------
    instruments : list of str or int
        Columns of X that are instruments: they are not in the equation themselves.
    endogenous : list of str or int
        Columns of X that the instruments stand for. All other columns are exogenous features, which
        are in the equation and are their own instruments.
    privacy : {"central", "aggregate", "none"}, default="central"
        Who adds the noise: a trusted curator, every user a part that only the sum hides all of, or
        nobody.
    bounds_X : mapping, array-like of shape (n_features, 2) or (low, high)
        Public range of every feature, in its own units; instruments are features, too. Required.
    bounds_y : (float, float)
        Public range (low, high) to which y and predictions are clipped. Required.
    effects : {"person"} or None, default=None
        "person" fits differences from the means of each person, which `fit` needs ``groups`` for.
        There is no intercept then, and no interval for a level.
    n_jobs : int or None, default=-1
        Threads that read, scale and add up rows; -1 is one for each core.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the structural equation; 0 for instruments.
    intercept_ : float
    first_stage_ : FirstStage
        Regressions of the endogenous features on the instruments, with F statistics; prints as a
        table, and ``to_frame()``.
    privacy_report_ : PrivacyReport
        What was asked of the records, and at what price.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only when X has feature names that are all strings.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record, or
    with ``groups`` of one person. Released: one joint Gaussian answer for all second moments, one
    for the scores at their solution, and with ``groups`` counts of the lengths of persons' scores;
    their costs compose exactly as Gaussian DP (Dong, Roth and Su 2022). Public: the number of
    records and all parameters.

    Residuals are clipped at five released deviations. Intervals invert the noise of the slope of
    the equation on the instruments. If its smallest singular value is not told from noise, or an F
    statistic of a first stage, noise taken off, is below 10, the instruments are weak:
    `skpriv.inspection.inference` says so and gives no interval. The F of collinear instruments may
    not be known while their fit is. If instruments are weak, a solution has no mean square error,
    which therefore need not fall with more records or a larger epsilon. The steps and their cost
    are in ``docs/mathematics/persons.md``.

    References
    ----------
    J. M. Wooldridge (2010). Econometric analysis of cross section and panel data. MIT Press.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import IVRegressor
    >>> rng = np.random.RandomState(0)
    >>> z, hidden = rng.uniform(-1, 1, (2, 50_000))
    >>> x = 0.5 * z + 0.4 * hidden
    >>> y = 0.4 * x + 0.5 * hidden + rng.uniform(-0.1, 0.1, 50_000)
    >>> est = IVRegressor(
    ...     instruments=[0], endogenous=[1], bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=0
    ... ).fit(np.column_stack([z, x]), y)
    >>> est.coef_.round(1)  # least squares has 1.0
    array([0. , 0.4])
    >>> est.first_stage_.weak
    False
    """

    instruments: Any = None
    endogenous: Any = None
    bounds_X: Any = None
    fit_intercept: bool = True
    max_rows_per_group: RowsOfPerson = None
    effects: Literal["person"] | None = None
    n_jobs: int | None = -1

    _spec = Spec(
        {
            "bounds_X": (-10.0, 10.0),
            "bounds_y": (-2.0, 2.0),
            "instruments": [0],
            "endogenous": [1],
        },
        ("central", "aggregate", "none"),
    )
    fit_currency = "gdp"
    interval_estimand = "structural equation that instruments identify"
    interval_claims = ("asymptotic",)

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, *, groups: Any = None, max_rows_per_group: int | None = None
    ) -> Self:
        """Fit the model; the whole budget is charged before the rows are used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Instruments, endogenous and exogenous features.
        y : array-like of shape (n_samples,), default=None
            None if X is rows that have their targets in them: see `skpriv.records.from_table`.
        groups : array-like of shape (n_samples,), default=None
            The person of each row. Then a record is a person: the guarantee is for replacing one
            person with all rows, and the number of persons is public. Intervals hold whatever the
            dependence of a person's rows is.
        max_rows_per_group : int, default=None
            The most rows of a person that are used, with `groups`; they are chosen at random. None
            takes that of the constructor.

        Returns
        -------
        self

        Raises
        ------
        BudgetExceeded
            If an active :class:`skpriv.BudgetAccountant` cannot pay.
        """
        if not self._trust.can.same_rows:
            raise PrivacyError(
                f"privacy={self.privacy!r}: scores are asked at a first solution, for which users "
                "would have answered already, and their noise leaves no first stage: use "
                f"{models_that('same_rows')}."
            )
        groups = persons_of(self, groups, max_rows_per_group)
        records = public_rows(self, X, y)
        maps = public_maps(self, records.n_features)
        if self.effects is not None:
            maps = within_maps(self, groups, maps)
        instruments, endogenous = self._places()
        session = open_fit(self, records, groups=groups)
        del X, y, records  # only the session has the data now
        exogenous = np.setdiff1d(np.arange(maps.size), endogenous)
        structural = np.setdiff1d(np.arange(maps.size), instruments)
        self._record_map = maps
        self.bounds_y_ = maps.bounds_y
        self._released = solve_two_stages(session, maps, exogenous, structural)
        self._read(session.report.unit)
        session.report.note = self.first_stage_.warning or None
        return self

    def _read(self, unit: str) -> None:
        """Coefficients and the first stage, from what was released."""
        fit = self._released
        instruments, endogenous = self._places()
        weights = self._units @ fit.theta
        self.coef_ = weights[:-1]
        self.intercept_ = self._record_map.centre + float(weights[-1])
        names = names_in(self) or [f"x{i}" for i in range(self.n_features_in_)]
        self.first_stage_ = first_stage(
            fit, self._record_map.row_map, names, endogenous, instruments, unit
        )
        self._released = replace(fit, weak=self.first_stage_.weak)

    def _with_cells(self, cells: np.ndarray) -> Self:
        twin = super()._with_cells(cells)
        twin._read(self.first_stage_.unit)
        return twin

    def _places(self) -> tuple[list[int], list[int]]:
        """Columns of the instruments and of the endogenous features."""
        instruments = self._columns("instruments")
        endogenous = self._columns("endogenous")
        both = set(instruments) & set(endogenous)
        if both:
            raise ValueError(
                f"instruments and endogenous both have column {min(both)}: an instrument is not in "
                "the equation, and an endogenous feature is."
            )
        if len(instruments) < len(endogenous):
            raise ValueError(
                f"{len(endogenous)} endogenous features need as many instruments or more, and "
                f"there are {len(instruments)}."
            )
        return instruments, endogenous

    def _columns(self, parameter: str) -> list[int]:
        given = getattr(self, parameter)
        if given is None or isinstance(given, str | Integral) or not len(given):
            raise ValueError(f"{parameter}={given!r} must be a list of columns of X, at least one.")
        found = {column_of(self, column) for column in given}
        if len(found) < len(given):
            raise ValueError(f"{parameter}={given!r} has a column twice.")
        return sorted(found)

    @property
    def _units(self) -> "Array":
        """Map from theta to coefficients and intercept less the centre, in the units of X and y."""
        return self._record_map.units[0][:, self._released.structural]

    @property
    def outside_columns(self) -> list[Any]:
        """Columns that are not in the equation: the instruments."""
        check_is_fitted(self)
        return self._columns("instruments")

    def coefficient_law(self, estimand: Estimand = "fitted") -> CoefficientLaw:
        """Distribution of the coefficients, for :func:`skpriv.inspection.inference`.

        Parameters
        ----------
        estimand : {"fitted"}, default="fitted"

        Returns
        -------
        CoefficientLaw
            Nothing is estimable where instruments are weak.
        """
        self._check_claim("asymptotic")
        units = self._units
        origin = np.append(np.zeros(len(units) - 1), self._record_map.centre)
        source = LinearSource(self.first_stage_.warning or self._released.solved, units, origin)
        return CoefficientLaw.of(
            source, len(units), self._released.moments.n, estimand=self.interval_estimand
        )

    def fit_statistics(self) -> tuple[Any, ...]:
        """The residual deviation of the structural equation, by what was released.

        R-squared has no meaning there: the equation does not predict the target best.

        Returns
        -------
        tuple of Statistic
            Each has a ``name``, a ``value`` and a ``std_error``. It is empty without an intercept,
            of persons with several rows, and where instruments are weak.
        """
        fit = self._released
        maps = self._record_map
        if fit.weak or self.privacy_report_.unit == "person" or not maps.fit_intercept:
            return ()
        return moment_statistics(fit.moments, fit.solved, maps, fit.structural, own=-1.0)[1:]
