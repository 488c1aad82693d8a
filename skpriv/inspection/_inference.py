"""Coefficients that can be published: estimates with intervals, in the units of the table."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy import stats

from .._compat import StrOptions
from .._contracts import passed_on
from .._estimation._coefficients import CoefficientLaw
from .._estimation._levels import two_sided_quantile
from .._linalg import ROUNDED, unwarned
from .._parameters import Estimand, IntervalMethod, Level, validated
from .._printing import Exported, Table, aligned, installed, sentence
from ..records import present_names
from ._units import INTERCEPT, last_step, law_in_units, named_note

if TYPE_CHECKING:
    from .._contracts import Array
    from .._estimation._fit_statistics import Statistic

COLUMNS = ("estimate", "std_error", "low", "high", "statistic", "p_value", "privacy_share")
RATIOS = ("ratio", "ratio_low", "ratio_high")
LINE_NOTE = (
    "The numbers of the fit follow from released answers. Their intervals allow for a tail of "
    "clipped residuals that falls like the inverse cube, or faster."
)
CLASS_NOTE = (
    "The numbers of the fit follow from released answers. An explained deviance is computed as if "
    "log-odds were normal."
)
NO_FIT_NOTE = (
    "No R-squared or explained deviance is given. They need coefficients that are estimable, an "
    "intercept, independent rows, at most two classes, and a trusted curator or a secure sum."
)
BETWEEN = "log-odds of classes against each other"
BETWEEN_RATIO = "the factor of the odds between these classes for one unit"


class _WaldNumbers(NamedTuple):
    """The three numbers of a test."""

    statistic: float
    degrees_of_freedom: int
    p_value: float


class WaldTest(_WaldNumbers):
    """Wald test that several coefficients are all zero; it prints as a sentence.

    Its numbers are NaN if no weighted sum of the coefficients is estimable.

    Parameters
    ----------
    statistic : float
        Chi-squared under the hypothesis.
    degrees_of_freedom : int
        Number of estimable sums that are tested.
    p_value : float
        Probability, in [0, 1], of a statistic at least as large under the hypothesis.

    Examples
    --------
    >>> from skpriv.inspection import WaldTest
    >>> test = WaldTest(statistic=9.2, degrees_of_freedom=2, p_value=0.01)
    >>> test.p_value < 0.05
    True
    """

    # Names of those that are not estimable by themselves
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.degrees_of_freedom:
            return "Wald test that all of these are 0: none of them is estimable."
        words = "is rejected" if self.p_value < 0.05 else "is not rejected"
        apart = f", but for {', '.join(self.left_out)} (not estimable)" if self.left_out else ""
        return (
            f"Wald test that all of these are 0{apart}: chi-squared({self.degrees_of_freedom}) = "
            f"{self.statistic:.2f}, p {_p_text(self.p_value, '= ')}; it {words} at the 5% level."
        )

    __repr__ = __str__


@dataclass(frozen=True, eq=False, repr=False)
class Inference(Exported):
    """Coefficients of a private fit with standard errors, intervals and tests.

    Made by :func:`inference`; prints as a table, in HTML too. A coefficient that is not estimable
    is NaN, and ``reason`` says why.

    Parameters
    ----------
    names : list of str
        Names of the coefficients, in the units of the table; the intercept is last.
    law : CoefficientLaw
        Estimates and covariances.
    confidence_level : float
        Confidence level of each interval, in (0, 1).
    guarantee : str
        The privacy guarantee of the fit. All that stands here follows from what it released.
    unit : {"record", "person"}, default="record"
        What is taken to be independent of others: a row, or a person with all rows.
    not_covered : tuple of str, default=()
        What the report of the fit says of bounds that do not suit, and of what was read or repeated
        outside of the fit, in sentences.
    lists : dict of str to (str, list of str), default={}
        The reference level of each column with a list, and the names of the other levels.
    statistics : tuple of Statistic or None, default=None
        How well the fit describes the records: R-squared, shares of classes. It is
        empty where the answers tell none, and None where the table is not about a fit.
    budget : Guarantee or None, default=None
        The guarantee as a value.
    """

    names: list[Any]
    law: CoefficientLaw
    confidence_level: float
    guarantee: str
    unit: str = "record"
    not_covered: tuple[Any, ...] = ()
    lists: Mapping[str, Any] = field(default_factory=dict)
    statistics: tuple[Any, ...] | None = None
    budget: Any = None

    estimate: ClassVar[np.ndarray] = passed_on(
        "law.estimate", "Estimates, shape (n_coefficients,)."
    )
    covariance: ClassVar[np.ndarray] = passed_on("law.covariance", "Covariance of the estimates.")
    std_error: ClassVar[np.ndarray] = passed_on(
        "law.std_error", "Standard errors, of sampling and privacy together."
    )
    statistic: ClassVar[np.ndarray] = passed_on(
        "law.statistic", "Estimates over their standard errors."
    )
    p_value: ClassVar[np.ndarray] = passed_on(
        "law.p_value", "Two-sided normal p-values that a coefficient is 0."
    )
    privacy_share: ClassVar[np.ndarray] = passed_on(
        "law.privacy_share", "Part of the variance that privacy added."
    )
    ratio_name: ClassVar[str] = passed_on(
        "law.ratio_name", "Two words for the exponential of an estimate."
    )

    @property
    def low(self) -> "Array":
        """Lower ends of the intervals."""
        return self.estimate - self._quantile * self.std_error

    @property
    def high(self) -> "Array":
        """Upper ends of the intervals."""
        return self.estimate + self._quantile * self.std_error

    @property
    def estimand(self) -> str:
        """What is estimated: begins with the ``estimand`` where several can be asked."""
        return ", ".join(filter(None, (self.law.estimand, self.law.detail)))

    @property
    def ratio(self) -> np.ndarray:
        """Exponentials of the estimates: odds ratios of a logistic fit, rate ratios of counts."""
        return self._exponential(self.estimate)

    @property
    def ratio_low(self) -> np.ndarray:
        """Lower ends of the intervals of the ratios."""
        return self._exponential(self.low)

    @property
    def ratio_high(self) -> np.ndarray:
        """Upper ends of the intervals of the ratios."""
        return self._exponential(self.high)

    @property
    def reason(self) -> str:
        """Why released answers do not tell some coefficients; empty if they tell all."""
        return "; ".join(words for words, _ in self._reasons())

    def _reasons(self) -> Iterator[tuple[str, bool]]:
        """Yield a note for each reason, and whether all that it hides has an interval."""
        for words, places in self.law.why(self.unit):
            named = ", ".join(np.array(self.names)[places]) + ": "
            yield named * (not places.all()) + words, bool(self.law.resolved[places].all())

    @property
    def hidden(self) -> tuple[Any, ...]:
        """Names of what no released answer tells from noise."""
        return tuple(np.array(self.names)[self.law.hidden].tolist())

    def _exponential(self, values: np.ndarray) -> "Array":
        if not self.law.ratio:
            raise AttributeError(
                "ratios, also of scale='odds', are those of a logarithmic scale: of "
                "LogisticRegression, whose coefficients are log-odds, and of PoissonRegressor."
            )
        with unwarned():
            return np.exp(values)

    @property
    def _quantile(self) -> float:
        return two_sided_quantile(self.confidence_level)

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame, with the names as its index.

        Returns
        -------
        pandas.DataFrame of shape (n_coefficients, 7)
            The data frame has three columns more where there are ratios.
        """
        columns = COLUMNS + (RATIOS if self.law.ratio else ())
        return installed("pandas", "data").DataFrame(
            {name: getattr(self, name) for name in columns}, index=self.names
        )

    def contrast(self, weights: Any) -> "Inference":
        """Estimate and interval of weighted sums of coefficients.

        Parameters
        ----------
        weights : mapping of name to float, or array-like of shape (n_coefficients,) or \
                (n_contrasts, n_coefficients)
            A mapping need not name coefficients of weight 0.

        Returns
        -------
        Inference
            A table with one row for each contrast. For more than two classes its ``estimand`` says
            whether all weigh classes against each other: then the geometric mean drops out.
        """
        matrix = self._weights(weights)
        names = [
            " ".join(f"{w:+g}*{name}" for w, name in zip(row, self.names, strict=True) if w)
            for row in matrix
        ]
        law = self.law.mapped(matrix)
        if law.classes:
            sums = matrix.reshape(len(matrix), law.classes, -1).sum(axis=1)
            estimand = f"weighted sums of {law.estimand}"
            ratio = "a product of powers of these odds"
            if np.allclose(sums, 0.0, atol=ROUNDED * abs(matrix).max()):
                estimand = BETWEEN
                ratio = BETWEEN_RATIO
            law = replace(law, estimand=estimand, ratio=ratio, classes=0)
        return replace(self, names=names, law=law, lists={}, statistics=None)

    def wald_test(self, names: Any = None) -> "WaldTest":
        """Test that several coefficients are all zero.

        If some of them are not estimable, the test is that all weighted sums of them which are
        estimable are zero. Their number is the number of degrees of freedom.

        Parameters
        ----------
        names : str or list of str, default=None
            Coefficients, and names of lists of levels, for all of their levels. None is all but
            the intercept.

        Returns
        -------
        WaldTest
            Statistic, degrees of freedom and p-value.
        """
        if names is None:
            names = [name for name in self.names if name != INTERCEPT]
        names = [names] if isinstance(names, str) else names
        names = [level for name in names for level in self.lists.get(str(name), ("", [name]))[1]]
        places = self._places(names)
        if not places or len(set(places)) < len(places):
            raise ValueError(f"names={names!r} must be at least one name, and each once.")
        sums = self.law.estimable(places)
        if not len(sums.estimate):
            return WaldTest(np.nan, 0, np.nan)
        unit = np.sqrt(np.diagonal(sums.covariance))
        correlation = sums.covariance / np.outer(unit, unit)
        scaled = sums.estimate / unit
        statistic = float(scaled @ np.linalg.pinv(correlation, hermitian=True) @ scaled)
        rank = int(np.linalg.matrix_rank(correlation, hermitian=True))
        test = WaldTest(statistic, rank, float(stats.chi2.sf(statistic, rank)))
        test.left_out = tuple(self.names[place] for place in places if not self.law.resolved[place])
        return test

    def _places(self, names: Iterable[Any]) -> list[int]:
        texts = [name if isinstance(name, str) else None for name in names]
        found = present_names(
            texts, self.names, "the test or contrast", "the table", what="coefficients"
        )
        return [self.names.index(one) for one in found]

    def _weights(self, weights: Any) -> np.ndarray:
        if isinstance(weights, Mapping):
            row = np.zeros(len(self.names))
            row[self._places(weights)] = list(weights.values())
            weights = row
        try:
            matrix = np.atleast_2d(np.asarray(weights, float))
        except (TypeError, ValueError):  # words, or lists of several lengths
            matrix = np.zeros((1, 0))
        sized = matrix.shape[1:] == (len(self.names),)
        if not (sized and np.isfinite(matrix).all() and matrix.any(axis=1).all()):
            raise ValueError(
                "weights must be finite and not all of them 0, one for each of "
                f"{len(self.names)} coefficients ({', '.join(self.names)}), or a mapping from the "
                "names of some, such as {name: 1.0, other_name: -1.0}."
            )
        return matrix

    def _head(self) -> Iterator[tuple[str, str]]:
        """The estimand, the number of records and the price: labels and texts."""
        unit = "Persons" if self.unit == "person" else "Records"
        yield "Estimand", self.law.estimand
        yield unit, f"{self.law.n:,}"
        yield "Privacy", self.guarantee
        by = f"robust (sandwich), of independent {self.unit}s"
        yield (
            "Covariance",
            by + (", with privacy noise" if (self.privacy_share > ROUNDED).any() else ""),
        )
        of = f", of the {self.ratio_name}" if self.law.ratio else ""
        yield "Intervals", f"{self.level_text}, normal{of}"
        for i, statistic in enumerate(self.statistics or ()):
            yield "" if i else "Fit", self._in_words(statistic)

    @property
    def budget_text(self) -> str:
        """Epsilon and delta of the guarantee, in few characters."""
        if self.budget is None or not self.budget.private:
            return "none"
        return f"({self.budget.epsilon:.3g}, {self.budget.delta:.0e})"

    @property
    def level_text(self) -> str:
        """The confidence level in percent."""
        return f"{100.0 * self.confidence_level:g}%"

    def _in_words(self, statistic: "Statistic") -> str:
        """A statistic with its interval, in words."""
        if not statistic.is_resolved:
            return f"{statistic.name}: noise hides it"
        values = [statistic.value, *statistic.ends(self._quantile)]
        value, low, high = map(str.strip, aligned(values, 3 * [10.0 * statistic.std_error]))
        interval = f" ({self.level_text} interval {low} to {high})"
        return f"{statistic.name}: {value}{interval if statistic.std_error else ''}"

    def _notes(self) -> Iterator[str]:
        law = self.law
        yield from map(sentence, self.not_covered)
        if law.detail:
            yield f"Estimand: {self.estimand}."
        if law.ratio:
            yield f"The {self.ratio_name} is the exponential of the estimate: {law.ratio}."
        for words, has_law in self._reasons():
            yield f"{'Wide by public bounds' if has_law else 'Not estimable (-)'}: {words}."
        if law.compared and law.resolved.any():
            yield f"{law.compared}."
        if law.leverage is not None:
            yield (
                "A few rows far from all others, which no private count can find, may move the "
                "least-squares line further: one row inside of the ranges can have up to "
                f"{100.0 * min(law.leverage, 1.0):.3g}% of the weight of all rows in its direction."
            )
        if (self.privacy_share > ROUNDED).any():
            yield (
                "The standard error counts sampling and privacy noise. The last column is the part "
                "of its square that is noise."
            )
        if self.statistics is not None:
            note = CLASS_NOTE if self.ratio_name == "odds ratio" else LINE_NOTE
            yield note if self.statistics else NO_FIT_NOTE

    def joint_tests(self) -> dict[str, WaldTest]:
        """Test of each list: that all of its levels are like the reference level.

        Returns
        -------
        dict of str to WaldTest
            Tests by the name of their column.
        """
        return {name: self.wald_test(name) for name in self.lists}

    def _lists(self) -> Table:
        """The table of lists, below that of coefficients."""
        rows = []
        for name, test in self.joint_tests().items():
            p = _p_text(test.p_value)
            df = str(test.degrees_of_freedom)
            shown = (f"{test.statistic:.2f}", df, p) if test.degrees_of_freedom else ("-",) * 3
            rows.append((name, self.lists[name][0], *shown))
        return Table(("list", "reference level", "chi-squared", "df", "p-value"), rows, left=2)

    def _table(self) -> Table:
        """The table that is printed: intervals are those of ratios, where there are any."""
        error = self.std_error
        shown = self.estimate
        columns = {
            "estimate": aligned(shown, error),
            "std. error": aligned(error, error),
            "z": [f"{value:.2f}" for value in self.statistic],
            "p-value": list(map(_p_text, self.p_value)),
        }
        ends = self.low, self.high
        if self.law.ratio:
            ends = (self.ratio_low, self.ratio_high)
            shown = self.ratio
            error = (ends[1] - ends[0]) / 2.0
            columns[self.ratio_name] = aligned(shown, np.minimum(error, shown))  # it is never 0
        names = f"{self.level_text} low", f"{self.level_text} high"
        for name, end in zip(names, ends, strict=True):
            columns[name] = aligned(end, np.minimum(error, end) if self.law.ratio else error)
        columns["noise"] = [f"{share:.0%}" for share in self.privacy_share]
        rows = zip(self.names, *columns.values(), strict=True)
        return Table(
            ("", *columns),
            [[name, *("-" if "nan" in cell else cell for cell in cells)] for name, *cells in rows],
        )

    def _tables(self) -> list[Table]:
        return [self._table(), *([self._lists()] if self.lists else [])]


@validated
def inference(
    model: Any,
    *,
    confidence_level: Level = 0.95,
    method: Annotated[IntervalMethod, StrOptions({"asymptotic"})] = "asymptotic",
    estimand: Estimand | None = None,
) -> "Inference":
    """Coefficients of a fitted private regressor with intervals and tests, in original units.

    Parameters
    ----------
    model : estimator
        A fitted model with released equations (``LinearRegression``, ``SSPRegressor``,
        ``ReweightedRegressor``, ``LogisticRegression``, ``PoissonRegressor``, ``IVRegressor``), or
        a Pipeline that ends with one, after ``BoundsScaler``, ``TableEncoder`` or a selection of
        columns.
    confidence_level : float in (0, 1), default=0.95
        Confidence level of each interval.
    method : {"asymptotic"}, default="asymptotic"
        Normal intervals, exact as n grows.
    estimand : {"fitted", "least_squares", "likelihood"}, default=None
        What the coefficients are of. None is the ``estimand`` of the model, which was declared
        before the fit; others have wider intervals. For ``LinearRegression`` "fitted" is the line
        of the steps, in which residuals beyond a few of their deviations and rows far from the
        others count for less, and "least_squares" is the least-squares line.
        ``SSPRegressor`` fits the least-squares line, so that both are the same.
        ``LogisticRegression`` of two classes and ``PoissonRegressor`` have "fitted", the log-odds
        or the logarithm of the mean by weighted scores, and "likelihood", those of maximum
        likelihood. Other models have "fitted" alone: ``IVRegressor`` a structural equation,
        ``ReweightedRegressor`` a weighted line.

    Returns
    -------
    Inference
        A table of estimates, standard errors, intervals and tests.

    Raises
    ------
    TypeError
        If the model has no law of coefficients, or a step before it no known units.
    ValueError
        If the model has no line or curve of the ``estimand`` that is asked for.

    Notes
    -----
    **Privacy guarantee**: that of the fit. All of it is computed from released answers and public
    numbers, and costs nothing.

    The ``estimand`` of the answer says what is estimated: the line of this very fit, with its clips
    and weights, or the least-squares line of the population, rows and targets clipped to their
    public bounds. Neither needs a linear mean or a constant variance (the covariance is a
    sandwich). With symmetric noise and a linear mean both are the same. Two fits have two limits,
    and so two fitted lines: compare the least-squares ones. The standard error
    counts the noise of privacy, with its second order, beside that of sampling. Estimates are not
    shrunk, and so differ from ``coef_`` where that is. If the released design does not stand out of
    its noise, normal intervals would not hold: the answer is NaN and a reason. For a
    ``LinearRegression`` with ``bounds_X`` it is a wide interval and a reason: that of lines which
    stay inside of ``bounds_y`` is added to it.

    Log-odds, logarithms of means and structural equations are those of the fitted model, whose
    class states what is estimated.

    In a fit with ``groups`` persons are independent of each other, and the rows of one person are
    not: the covariance holds whatever their dependence is.

    Bounds that clip many rows or targets change the line itself, which no interval can tell
    (docs/bounds.md).

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.inspection import inference
    >>> from skpriv.linear_model import SSPRegressor
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(50_000, 2))
    >>> y = X @ [1.0, -0.5] + rng.uniform(-0.2, 0.2, size=50_000)
    >>> result = inference(SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), random_state=0).fit(X, y))
    >>> result.names
    ['x0', 'x1', 'intercept']
    >>> bool(((result.low < [1.0, -0.5, 0.0]) & ([1.0, -0.5, 0.0] < result.high)).all())
    True
    >>> bool(result.wald_test(["x0", "x1"]).p_value < 0.01)
    True
    """
    names, law, lists = law_in_units(model, estimand)
    last = last_step(model)
    report = last.privacy_report_
    if report is None:
        return Inference(names, law, float(confidence_level), "")
    if report.unit == "person":
        law = replace(law, n=report.size)
    said = *filter(None, [named_note(model)]), *report.not_covered
    return Inference(
        names,
        law,
        float(confidence_level),
        str(report.guarantee),
        report.unit,
        said,
        lists,
        last.fit_statistics(),
        report.guarantee,
    )


def _p_text(p: float, equals: str = "") -> str:
    """A p-value as text, after "p"; an equality sign stands before one that is shown."""
    return "<.0001" if p < 1e-4 else f"{equals}{p:.4f}"
