"""What a fit will ask and what it will tell, before anybody has seen a row: a rehearsal.

A fit to made-up rows asks the same questions with the same noise, and its table has the standard
errors of a fit to real rows that are spread in the same way. A few made-up rows stand for all.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import ceil, inf, isfinite, nan, sqrt
from typing import TYPE_CHECKING, Any, Protocol
from warnings import catch_warnings

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc
from sklearn.base import BaseEstimator, clone

from .._estimation._levels import check_level, two_sided_quantile
from .._estimation._public_maps import column_bounds
from .._linalg import CompensatedSum, unwarned
from .._printing import Printed, Table, aligned, installed
from .._stored import frozen, frozen_object
from ..preprocessing import TableEncoder
from ..privacy import Cost, adds_up_gaussians, prepaid
from ..records import Rows, check_length, present_names
from ._opening import public_norm

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from ..preprocessing import PublicTransformer, Schema
    from ..privacy import Trust
    from .._contracts import Array

    class Planned(Protocol):
        """An estimator of which plans are made: what is asked of it here."""

        privacy: Any
        random_state: Any
        bounds_X: Any
        max_rows_per_group: Any
        estimand: Any
        privacy_report_: Any

        @property
        def law_estimands(self) -> tuple[str, ...]: ...
        @property
        def _trust(self) -> Trust: ...
        @property
        def _released(self) -> Any: ...
        def set_params(self, **params: Any) -> Any: ...
        def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Any: ...
        def with_cells(self, cells: Any) -> Any: ...
        def _accounting(self) -> AbstractContextManager[None]: ...
        def _for_rehearsal(self, estimand: str) -> Any: ...
        def _imagined_target(self, points: Any, mean: Any, deviation: Any) -> np.ndarray: ...
        def _planned_errors(self, matrix: Any) -> Any: ...
        def _planned_names(self, names: list[Any]) -> list[Any]: ...
        def _assumed_target(self, y: Any) -> str: ...


IMAGINED = 2**13  # made-up rows of a rehearsal: errors hardly depend on how many stand for all
# Correlation of columns of made-up rows, and of classes and counts with them: without an effect of
# columns the noise of curves is a quarter too small (docs/evidence/plans.md).
IN_COMMON = 0.25
LEFT_BY_LINE = 0.87  # of the deviation of a target: R2 is about .25
# Rehearsals, whose median is told: each draws noise of its own, by which the length of scores that
# is chosen jumps by sqrt(2). Medians of five rose by chance where records grew.
REHEARSALS = 9
# Most users whose reports are simulated: beyond, errors fall like 1 / sqrt(n). And most rows of
# persons.
SIMULATED = 100_000
MOST_SIMULATED = 2_000_000
MOST_RECORDS = 10**9
SAME_SIZE = 1.03  # ratio of two numbers of people that are the same


@frozen
class Rehearsal:
    """What a rehearsal of one estimand tells.

    Attributes
    ----------
    std_error : ndarray of shape (n_coefficients,)
        Without the intercept; NaN where it is not estimable.
    report : PrivacyReport
    """

    std_error: np.ndarray
    report: Any


@dataclass(frozen=True, repr=False)
class Plan(Printed):
    """What a fit will ask, and which standard errors its table will have.

    Attributes
    ----------
    n : int
        Number of records: of persons, where those are the records.
    n_features : int
        Number of columns of X, encoded ones with a schema.
    names : list of str
        Coefficients without the intercept. With a schema they are those of the table. For an
        additive model they are the features, and the errors those of effects at typical values.
    estimand : str
        The one that the estimator declares.
    std_error : ndarray of shape (n_coefficients,)
        Standard error of each coefficient of that estimand, by sampling and by privacy, in the
        units of the table; NaN where it is not estimable.
    sampling_error : ndarray of shape (n_coefficients,)
        Standard error of a fit to the same rows without privacy.
    std_errors : dict of str to ndarray
        Standard errors of each estimand, for a fit that declares it.
    questions : list of str
        What is asked, in this order.
    shares : ndarray of shape (n_questions,)
        Fraction of the budget for each question, or of the users; they add up to one.
    noise : ndarray of shape (n_questions,)
        Standard deviation of the noise of each answer, which is a sum over records. That of a
        step is up to 3% larger or smaller in a fit, by whether its limit clips any residual, and
        more of two classes, by what columns tell of them. Noise of the line differs by up to a
        fifth, by the counts of long scores.
    noise_of_mean : ndarray of shape (n_questions,)
        The same of a mean over records: a question's answers lie between -1 and 1.
    guarantee : str
        What the fit would promise.
    resolution : float
        Effective records N = n mu (the square root of n times mu where users answer for
        themselves) over p^1.5, with p columns, the constant included.
    level_records : float
        Number of rows that a rare level of a list needs to be estimable in nine of ten fits, as the
        table of a fit says it. Infinite where noise may hide common ones, too; NaN without lists,
        and where only a mean is asked.
    rehearse : callable
        ``rehearse(n, estimand)`` is the same rehearsal with another number of records.
    largest_n : int
        The largest number of records that can be rehearsed.
    assumed : str
        What made-up targets are like, in a sentence.
    unit : {"record", "person"}
    absent : tuple of str
        What made-up rows do not have, as coefficients begin with it: "other" and missing cells of
        columns of which no share is given.
    """

    n: int
    n_features: int
    names: list[Any]
    estimand: str
    std_error: np.ndarray
    sampling_error: np.ndarray
    std_errors: dict[str, Any]
    questions: list[Any]
    shares: np.ndarray
    noise: np.ndarray
    noise_of_mean: np.ndarray
    guarantee: str
    resolution: float
    level_records: float
    rehearse: Callable[..., Any]
    largest_n: int
    assumed: str
    unit: str
    absent: Any

    @property
    def estimable(self) -> "Array":
        """Whether each coefficient will be estimable, shape (n_coefficients,)."""
        return np.isfinite(self.std_error)

    @cached_property
    def records(self) -> float:
        """Smallest number of records from which all coefficients are estimable, up to 3%.

        It is found by rehearsals with more and fewer records; infinite if ``largest_n`` are not
        enough, as where no records of a level are expected.
        """
        return self._smallest(lambda errors: np.isfinite(errors).all(), self.estimand)

    def people_needed(
        self,
        effect: float,
        power: float = 0.8,
        *,
        name: str | None = None,
        estimand: str | None = None,
        confidence_level: float = 0.95,
    ) -> float:
        """Number of records with which a test finds an effect of this size.

        Parameters
        ----------
        effect : float
            The coefficient, in the units of the table.
        power : float in (0, 1), default=0.8
            Probability that the two-sided test finds it.
        name : str, default=None
            Name of the coefficient; None is all of them, each of this size.
        estimand : str, default=None
            The estimand that the fit declares; None is that of the plan.
        confidence_level : float in (0, 1), default=0.95
            One minus the level of the test.

        Returns
        -------
        float
            A whole number, up to 3%; infinite if ``largest_n`` are not enough.

        Examples
        --------
        >>> from skpriv.linear_model import LinearRegression
        >>> model = LinearRegression(epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1))
        >>> few = model.plan(10_000, 2).people_needed(0.1)
        >>> 500 < few < 5_000
        True
        """
        check_level(power)
        check_level(confidence_level)
        names = present_names(
            self.names if name is None else [name], self.names, "people_needed", "the plan"
        )
        estimand = self.estimand if estimand is None else estimand
        present_names([estimand], self.std_errors, "estimand", "what can be declared")
        if not 0.0 < abs(effect) < inf:
            raise ValueError(f"effect={effect!r} must be a finite number, and not 0.")
        largest = abs(effect) / (two_sided_quantile(confidence_level) + float(ndtri(power)))
        places = [self.names.index(one) for one in names]
        return self._smallest(lambda errors: (errors[places] <= largest).all(), estimand)

    def _smallest(self, suffices: Callable[..., Any], estimand: str) -> float:
        """Smallest number of records whose standard errors suffice, up to 3%; infinite if none."""
        low = 1
        high = self.n

        def enough(n: int) -> bool:
            return bool(suffices(self.rehearse(n, estimand).std_error))

        while not enough(high):
            if high == self.largest_n:
                return inf
            low = high
            high = min(2 * high, self.largest_n)
        while high > SAME_SIZE * low + 1:
            middle = ceil(sqrt(low * high))
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high

    def _parts(self) -> Iterator[Table | str]:
        yield f"{self.n:,} {self.unit}s, {self.n_features} features: {self.guarantee}"
        if self.names:
            errors = self.std_errors | {"sampling alone": self.sampling_error}
            columns = [aligned(one, one) for one in errors.values()]
            yield ""
            yield Table(
                ("std. error", *(one.replace("_", " ") for one in errors)),
                list(zip(self.names, *columns, strict=True)),
            )
        yield ""
        yield self.assumed
        if self.unit == "person":
            yield (
                "Assumed: each person has the largest number of rows that is used, and these do "
                "not resemble each other. Rows that do, and fewer, have larger errors."
            )
        hidden = np.array(self.names)[~self.estimable].tolist()
        absent = [name for name in hidden if name.startswith(self.absent)]
        if absent:
            yield f"Assumed absent (-), as shares names none of them: {', '.join(absent)}."
        if rest := [name for name in hidden if name not in absent]:
            yield f"Not estimable (-) with these records and this budget: {', '.join(rest)}."
        if isfinite(self.level_records):
            yield (
                "Assumed: levels of a list, and yes and no, are equally frequent where no share is "
                "given. Rare ones have larger errors. A level needs up to about "
                f"{self.level_records:,.0f} rows to be estimable in nine of ten fits. Rarer levels "
                "have a dash, and change no line that is shown."
            )
        elif self.level_records == inf:
            yield "Noise may hide any level of a list, also a common one."
        yield ""
        numbers = zip(self.questions, self.shares, self.noise, self.noise_of_mean, strict=True)
        rows = [(q, f"{s:.4f}", f"{x:.4g}", f"{m:.4g}") for q, s, x, m in numbers]
        counts = Counter(rows)  # equal ones are told once, where the first of them is asked
        questions = [(f"{q} ({k} times)" if k > 1 else q, *row) for (q, *row), k in counts.items()]
        yield Table(("question", "share", "noise", "of a mean"), questions)

    def to_frame(self) -> Any:
        """The standard errors as a pandas data frame, with the coefficients as its index.

        Returns
        -------
        pandas.DataFrame
        """
        errors = {f"std_error_{name}": found for name, found in self.std_errors.items()}
        return installed("pandas", "data").DataFrame(
            {**errors, "sampling_error": self.sampling_error}, index=self.names
        )


class MadeUpRows(Rows):
    """Made-up rows inside of public bounds: each of a few stands for many."""

    paid_for = True  # nothing of anybody is in them

    def __init__(self, n: int, X: np.ndarray, y: np.ndarray, names: list[str] | None) -> None:
        self.n = n
        self.n_features = X.shape[1]
        self.names = names
        self._X = X
        self._y = y

    def pieces(self, max_rows: Any, subset: Any = None, sparse: bool = True) -> Iterator[Any]:
        """The few rows, whatever was asked for."""
        yield lambda: (self._X, self._y)

    def total(self, query: Any, subset: Any = None) -> CompensatedSum:
        """Sum over as many rows as were asked for."""
        count = self.n if subset is None else len(subset)
        total = CompensatedSum(query.shape)
        with unwarned():
            total.add(query.sum(self._X, self._y) * (count / len(self._X)))
        return total


@frozen_object
class _Imagined:
    """How made-up rows are spread, and the way from their coefficients to those of the table.

    Parameters
    ----------
    model : estimator
        Unfitted.
    n_features : int
        Columns of X.
    encoder : TableEncoder, FormulaEncoder or None
    shares : dict
        Expected shares of levels by column.
    mean, deviation : float or None
        Moments of the target.
    """

    model: Any
    n_features: int
    encoder: Any
    shares: Mapping[str, Any]
    mean: Any
    deviation: Any

    @property
    def names(self) -> list[str] | None:
        """Names of the columns of X that the model needs, where its bounds have names."""
        bounds = self.model.bounds_X
        return list(bounds) if self.encoder is None and isinstance(bounds, Mapping) else None

    @cached_property
    def effects(self) -> tuple[list[str], np.ndarray | None, Any]:
        """Names of the coefficients, the map to them from those of X, and the cells of the table.

        Without an encoder the map is None, and no cells are known.
        """
        if self.encoder is None:
            return self.names or [f"x{i}" for i in range(self.n_features)], None, ()
        effects = self.encoder.coefficient_map()
        return list(effects.names), effects.matrix, effects.cells

    def rows(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Made-up rows X and targets y at points of the unit cube.

        The first coordinate of a point is what all columns have in common.
        """
        model = self.model
        common, *own = ndtri(points.T)
        part = np.append(np.full(len(own) - 1, IN_COMMON), model._in_common)[:, None]
        *columns, target = ndtr(np.sqrt(part) * common + np.sqrt(1.0 - part) * own)
        cube = np.transpose(columns)
        y = model._imagined_target(target, self.mean, self.deviation)
        if self.encoder is not None:
            return self.encoder.imagined(cube, self.shares), y
        if model.bounds_X is None:
            return (2.0 * cube - 1.0) * public_norm(model) / np.sqrt(self.n_features), y
        low, high = column_bounds(model.bounds_X, self.names or (), self.n_features, "bounds_X")
        return low + (high - low) * cube, y

    @cached_property
    def few_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Made-up rows and targets that stand for all."""
        return self.rows(self.points(IMAGINED))

    def points(self, count: int) -> "Array":
        """So many points of the cube: spread evenly, without chance, and without its corner."""
        columns = self.n_features if self.encoder is None else len(self.encoder.columns_)
        points = qmc.Sobol(2 + columns, scramble=False).fast_forward(1)
        return points.random(2 ** ceil(np.log2(count)))[:count]

    @property
    def each(self) -> bool:
        """Whether all rows are made up, and not a few that stand for all."""
        return self.model._trust.can.reports or self.model.max_rows_per_group is not None

    @property
    def largest_n(self) -> Any:
        """The largest number of records that can be rehearsed."""
        if self.model.max_rows_per_group is None:
            return MOST_RECORDS
        return MOST_SIMULATED // self.model.max_rows_per_group

    @lru_cache(maxsize=64)
    def rehearse(self, n: int, estimand: str) -> Rehearsal:
        """The `Rehearsal` with n records: the median of some fits, of which each draws noise."""
        if n > self.largest_n:
            raise ValueError(
                f"n={n} persons are too many for a plan: with max_rows_per_group="
                f"{self.model.max_rows_per_group!r} at most {self.largest_n:,} can be rehearsed."
            )
        seeds = range(1 if self.each or self.model._trust.exact else REHEARSALS)
        with catch_warnings(action="ignore"):  # of each fit, and of columns without a number
            found = [self._rehearsed(n, estimand, seed) for seed in seeds]
            errors = np.median([one for one, _ in found], axis=0)
        # How many questions a fit asks may depend on noise: the plan has those of most fits
        found.sort(key=lambda one: len(one[1].privacy_report_.rows))
        return Rehearsal(errors, found[len(found) // 2][1].privacy_report_)

    def level_rows(self, n: int) -> float:
        """Rows that a rare level needs in all but one of some fits."""
        if not len(self.effects[2]):
            return nan
        fits = [self._rehearsed(n, self.model.estimand, seed)[1] for seed in range(REHEARSALS)]
        return float(sorted(fit._released.rows_of_cells() for fit in fits)[-2])

    def _rehearsed(self, n: int, estimand: str, seed: int) -> "tuple[np.ndarray, Planned]":
        """Errors of one fit, and the fit."""
        model = self.model._for_rehearsal(estimand).set_params(random_state=seed)
        size = min(n, SIMULATED) if model._trust.can.reports else n
        if self.each:
            self._fit_each(model, size)
        else:
            X, y = self.few_rows
            model.fit(MadeUpRows(n, X, y, self.names))
        _, matrix, cells = self.effects
        model = model.with_cells(cells) if len(cells) else model
        return sqrt(size / n) * model._planned_errors(matrix), model

    def _fit_each(self, model: "Planned", n: int) -> None:
        """Fit one row of each user, or of each person as many as are used at most."""
        each = model.max_rows_per_group or 1
        points = self.points(n * each)
        places = np.arange(n * each).reshape(each, n).T.ravel()  # rows of a person are far apart
        groups = np.repeat(np.arange(n), each) if model.max_rows_per_group else None
        X, y = self.rows(points[places])
        if self.names is not None:
            import pandas as pd

            X = pd.DataFrame(X, columns=self.names)
        with self.model._accounting():  # what users send depends on it
            currency = "gdp" if adds_up_gaussians() else "pure"
        with prepaid(Cost.from_mu(inf), currency):  # made-up rows are free
            model.fit(X, y, groups=groups)


def plan_of(
    model: "Planned",
    n: float | np.ndarray | str,
    n_features: int | list[int] | None,
    schema: "PublicTransformer | Schema | dict[str, Any] | None",
    shares: dict[str, float | dict[str, float]] | None,
    smallest_level: float | None,
    mean: float | None,
    deviation: float | None,
) -> Plan:
    """The `Plan` of an estimator, see `FitsBySteps.plan`."""
    n = check_length(n)
    encoder = None
    levels = absent = {}
    trust = model._trust
    if trust.exact:
        raise ValueError(f"privacy={model.privacy!r} has no plan: no noise is added.")
    if (schema is None) == (n_features is None) or schema is None and (shares or smallest_level):
        raise ValueError(
            "plan takes n_features, or a schema, whose columns it counts. Only a schema has levels "
            "with shares."
        )
    if schema is not None:
        encoder = schema if isinstance(schema, BaseEstimator) else TableEncoder(schema)
        names = list(encoder.schema)  # which an encoder is fitted to alone
        nothing = MadeUpRows(1, np.zeros((1, len(names))), np.zeros(1), names)
        encoder = clone(encoder).fit(nothing)
        n_features = encoder._n_features_out
        levels = encoder.level_shares(shares, smallest_level)
        absent = encoder.level_shares(shares, 0.0)
        if usual := encoder.usual_target:
            mean = usual[0] if mean is None else mean
            deviation = LEFT_BY_LINE * usual[1] if deviation is None else deviation
    n_features = check_length(n_features, "n_features")
    imagined = _Imagined(model, n_features, encoder, levels, mean, deviation)
    found = {name: imagined.rehearse(n, name) for name in model.law_estimands}
    exact = replace(imagined, model=clone(model).set_params(privacy="none"))
    declared = found[model.estimand]
    rows = declared.report.rows
    noise = np.array([float(row.scale) for row in rows])
    return Plan(
        n=n,
        n_features=n_features,
        names=model._planned_names(imagined.effects[0]),
        estimand=model.estimand,
        std_error=declared.std_error,
        sampling_error=exact.rehearse(n, model.estimand).std_error,
        std_errors={name: one.std_error for name, one in found.items()},
        questions=[row.query for row in rows],
        shares=np.array([float(row.share) for row in rows]),
        noise=noise,
        noise_of_mean=noise / [float(row.records) for row in rows],
        guarantee=str(declared.report.guarantee),
        resolution=(n if trust.can.same_rows else sqrt(n))
        * trust.budget.mu
        / (n_features + 1) ** 1.5,
        level_records=replace(imagined, shares=absent).level_rows(n),
        rehearse=imagined.rehearse,
        largest_n=imagined.largest_n,
        assumed=model._assumed_target(imagined.few_rows[1]),
        unit=declared.report.unit,
        absent=tuple(
            model._planned_names(
                [
                    f"{name}={level}"
                    for name, given in levels.items()
                    for level in {"other", "missing"} - given.keys()
                ]
            )
        ),
    )
