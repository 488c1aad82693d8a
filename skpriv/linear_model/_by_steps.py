"""Estimators that the loop fits by steps, from nothing or where a released fit ended."""

from dataclasses import replace
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from .._compat import names_in
from .._estimation._links import IDENTITY, StepLink
from .._estimation._loop._exact import fit_exactly
from .._estimation._loop._start import Start
from .._estimation._loop._steps import fit_rows, public_rules
from .._estimation._public_maps import PublicTargets, RecordMap
from .._estimation._released import NOTHING
from .._estimation._reports import ReportedFit, balanced
from .._parameters import attribute, of_numbers, parameters
from .._printing import short_number
from ..privacy import capabilities
from ..records import WeightedRows
from ._estimator import FitsPersons, PrivateEstimator, Spec
from ._opening import hold_out, open_fit, public_bounds, public_guess, weighted_rows
from ._plan import Plan, plan_of
from ._predictions import AsymptoticIntervals

if TYPE_CHECKING:
    from ..records import Rows
    from ..privacy import Groups, Session, SessionPart
    from .._estimation._released import Released
    from .._contracts import Array
    from .._estimation._loop._fit import LoopFit

# Least and largest deviation of the logarithm of errors of made-up targets: a skewness of .8, and
# bounds 1,400 deviations away. With normal errors a plan says .8 of the standard errors of a
# declared least-squares line (docs/evidence/plans.md).
SKEWED = 0.25, 3.0


@parameters
class FitsBySteps(FitsPersons, AsymptoticIntervals, PrivateEstimator):
    """Mixin of estimators that the loop fits, from nothing or from a release; not for direct use.

    A fit goes this way: `fit` calls `_fit` of the class, which makes the public maps and calls
    `_fit_steps`. It opens the session and keeps the public maps as ``_record_map``, and all that
    was released as ``_released``: coefficients (`_read`), intervals (`AsymptoticIntervals`) and
    laws are computed from these. Rows that are held out go to `_calibrated`, which is that of
    `PredictionIntervals` or of a classifier.

    Parameters
    ----------
    start : fitted estimator of the same class, its `as_start`, or None, default=None
        A fit that was released before, of other records or of the same ones, with the same columns
        and bounds: of last year, or of another region. Coefficients are shrunk towards its own or
        towards 0, by what the answers say for each: a start that fits badly is left aside. It costs
        nothing again. The report names it. A clone keeps it.
    """

    bounds_X: Any = None
    start: Any = None
    _released: Any = attribute(NOTHING)
    # Words of the releases at which the fit began, the newest first
    _begun_at: tuple[Any, ...] = attribute(())

    _in_common = 0.0  # part of made-up targets that is what all columns have in common
    _spec = Spec({"bounds_X": (-10.0, 10.0), "bounds_y": (-2.0, 2.0)})
    fit_currency = "gdp"

    def _fit_steps(
        self,
        records: "Rows",
        maps: RecordMap,
        groups: "Groups | None",
        weights: dict[str, Any],
        link: StepLink = IDENTITY,
        channel: str = "gaussian",
    ) -> None:
        """Fit records with public maps; the whole budget is charged before values are read.

        Parameters
        ----------
        records : Rows
        maps : RecordMap
            Its map of rows may be another once the session is open, see `_row_map_of`.
        groups : Groups or None
        weights : dict
            The weights as they were passed to ``fit``.
        link : StepLink
        channel : {"gaussian", "codebook"}
            What users send, by public numbers.
        """
        records = weighted_rows(self, records, weights, maps.target)
        weighted = isinstance(records, WeightedRows)
        plain = not weighted and self.effects is None
        start = None
        if self.start is not None and not self._trust.exact:
            start = self._start(records, maps, link, channel, plain)
        self._begun_at = start.chain if start else ()
        usual = public_guess(self, maps)
        session = open_fit(self, records, channel, groups=groups, parts=link.parts)
        del records  # only the session has the data now
        session, held_out = hold_out(self, session)
        maps = replace(maps, row_map=self._row_map_of(session, maps.row_map, channel))
        self._record_map = maps
        if weighted:  # the session hands out rows and targets that were scaled already
            maps = maps.weighted()
            if not link.linear:  # a target that is none of the labels stays NaN
                maps = replace(maps, target_map=ScaledAlready())
        self._released = self._release(session, maps, link, channel, start, usual)
        for note in self._released.notes(self._record_map.row_map, names_in(self)):
            session.report.add_note(note)
        self._read()
        self._calibration = None
        if self.calibration_size is not None:  # each class with this mixin has it
            self._calibration = self._calibrated(held_out, channel)

    @of_numbers
    def plan(
        self,
        n: int,
        n_features: int | None = None,
        *,
        schema: Any = None,
        shares: Any = None,
        smallest_level: float | None = None,
        target_mean: float | None = None,
        target_deviation: float | None = None,
    ) -> Plan:
        """Say what `fit` will ask and which standard errors its table will have, before any data.

        Nothing is charged and no data are needed: the plan is a rehearsal with made-up rows, which
        are asked the same questions with the same noise. Columns of made-up rows have a
        correlation of .25 with each other, and with the normal variable that classes and counts
        follow. They have no effect on a line's target, whose errors are skewed, the more so, the
        farther the upper bound is. Numbers are spread evenly over their range, or with nine tenths
        of them over the ``usual`` range of a schema. Where columns of the table depend on each
        other, or tell classes more strongly, all standard errors are larger, those without privacy
        too.

        Parameters
        ----------
        n : int
            Number of records: of persons, if ``max_rows_per_group`` is set, with so many rows each.
        n_features : int, default=None
            Number of columns of X. This or `schema` is required.
        schema : Schema, mapping, TableEncoder or FormulaEncoder, default=None
            The columns of the table, encoded as in a pipeline with this estimator. Coefficients are
            then those of the table.
        shares : mapping of str to (mapping of str to float, or float), default=None
            Expected shares of levels by column, such as ``{"region": {"north": 0.05}}``; a number
            is the share of true. Other levels have equal parts of the rest, and nothing is "other"
            or missing unless it is named.
        smallest_level : float in (0, 1), default=None
            Expected share of the smallest level of each list that `shares` does not name.
        target_mean : float, default=None
            Expected mean of the target, or rate of ``classes[1]``. None is the middle of the range,
            equal rates, or for counts an eighth of the largest.
        target_deviation : float, default=None
            Expected usual deviation of the target around its mean at each row: nine tenths of
            targets lie in a range of 3.3 deviations. Others come near the upper bound. None is a
            tenth of the range; for counts it is that of Poisson's law, and for classes it follows.

        Returns
        -------
        Plan
            It prints as a table. ``people_needed(effect)`` says how many records find an effect.

        Raises
        ------
        ValueError
            If a parameter is wrong, or no noise is added.

        Examples
        --------
        >>> from skpriv.linear_model import LinearRegression
        >>> from skpriv.preprocessing import Categorical, Numeric
        >>> schema = {"age": Numeric(18, 90), "site": Categorical(["A", "B", "C"], other=False)}
        >>> model = LinearRegression(epsilon=1.0, data_norm=1.0, bounds_y=(0, 10))
        >>> plan = model.plan(20_000, schema=schema, shares={"site": {"C": 0.1}})
        >>> plan.names
        ['age', 'site=B', 'site=C']
        >>> bool(plan.estimable.all()), bool((plan.std_error > plan.sampling_error).all())
        (True, True)
        """
        return plan_of(
            self, n, n_features, schema, shares, smallest_level, target_mean, target_deviation
        )

    def _for_rehearsal(self, estimand: str) -> Any:
        """An unfitted estimator like this one, whose targets `_imagined_target` makes up."""
        model = clone(self)
        return model.set_params(estimand=estimand) if len(self.law_estimands) > 1 else model

    def _imagined_target(
        self, quantiles: np.ndarray, mean: float | None, deviation: float | None
    ) -> "Array":
        """Made-up targets at quantiles in (0, 1), without any effect: lognormal errors.

        Nine tenths of them lie in a range of 3.29 deviations, as of normal ones. Some come near an
        upper bound that is far away: the logarithm of the largest of 2^13 is 3.67 of its deviations
        s above the middle, and that of their 95% quantile 1.645. So the largest is about
        3.29 exp(2.02 s) deviations away.
        """
        low, high = public_bounds(self)
        centre = (low + high) / 2.0 if mean is None else mean
        scale = (high - low) / 10.0 if deviation is None else deviation
        skew = np.log(max(high - centre, scale) / max(scale, 1e-300) / 3.29) / 2.02
        law = stats.lognorm(np.clip(skew, *SKEWED))
        usual = np.ptp(law.ppf([0.05, 0.95]))
        return centre + 3.29 * scale / usual * (law.ppf(quantiles) - law.mean())

    def _assumed_target(self, targets: np.ndarray) -> str:
        """What made-up targets are like, in a sentence."""
        return (
            f"Assumed: targets have the mean {short_number(np.mean(targets))} and deviate "
            f"from it by {short_number(np.std(targets), 3)} at each row. Errors grow with this "
            "deviation: a plan takes better guesses of both."
        )

    def _planned_names(self, names: list[str]) -> list[str]:
        """Names of what is planned, from those of the coefficients of one line."""
        return names

    def _planned_errors(self, matrix: np.ndarray | None) -> np.ndarray:
        """Standard errors of the declared coefficients.

        NaN stands for what is not estimable, and the intercepts are left out. A matrix leads from
        coefficients of X to those of a table.
        """
        law = self.coefficient_law(None)
        blocks = max(law.classes, 1)
        if matrix is not None:
            law = law.mapped(np.kron(np.eye(blocks), matrix))
        errors = np.sqrt(np.where(law.hidden, nan, np.diagonal(law.covariance)))
        return errors.reshape(blocks, -1)[:, :-1].ravel()

    def _release(
        self,
        session: "Session | SessionPart",
        maps: RecordMap,
        link: StepLink,
        channel: str,
        start: Start | None,
        usual: "tuple[Array, Array] | None",
    ) -> "Released":
        """All that is released of a session: a `LoopFit`, or a `ReportedFit`."""
        if session.trust.exact:
            return self._exact(session, maps, link)
        row_map = maps.row_map
        priors = row_map.priors()
        if channel == "codebook":
            norm = None if self.coef_norm is None else row_map.theta_bound(self.coef_norm)
            return ReportedFit.of(session, maps, row_map.constant is not None, priors, norm)
        ranged = self.bounds_X is not None
        textbook = self.estimand != "fitted"
        rules = public_rules(session, row_map, self.clip, ranged, link, textbook)
        return fit_rows(session, maps, rules, link, priors, start, usual)

    def _row_map_of(self, session: "Session | SessionPart", row_map: Any, channel: str) -> Any:
        """The public map of the rows of a session. If users send reports, features are shorter the
        less the reports can tell of slopes: see `balanced`.
        """
        return balanced(session, row_map) if channel == "codebook" else row_map

    def _exact(self, session: Any, maps: RecordMap, link: StepLink) -> "LoopFit":
        """The fit without privacy."""
        return fit_exactly(session, maps, maps.row_map.priors())

    def _read(self) -> None:
        """Coefficients and intercept, in the units of X and y, from what was released."""
        self.coef_, level = self._record_map.coefficients(self._released.theta)
        self.intercept_ = level + self._record_map.target_map.radius * self._released.location

    def as_start(self, *, public_rows: bool = False) -> Start:
        """The state that another fit needs to begin where this one ended: released answers alone.

        Parameters
        ----------
        public_rows : bool, default=False
            Whether all rows of this fit are public. A fit without privacy is told by its rows, so
            that a fit that begins there would tell them, too: it is a start only if they are.

        Returns
        -------
        Start
            Released answers, which a later fit takes as its ``start``.

        Raises
        ------
        ValueError
            If nothing but a mean was released, or the fit is exact and its rows are not public.
        """
        check_is_fitted(self)
        fit = self._released
        of_levels = fit.solved and self.effects is None
        if not of_levels or len(fit.b) != self._record_map.size:
            raise ValueError(
                f"this {type(self).__name__} is no start: it has no equations of one line, as "
                "steps with Gaussian noise have."
            )
        guarantee = str(self.privacy_report_.guarantee)
        # The report tells how it was fitted: parameters may have been set since.
        if capabilities(self.privacy_report_.privacy).exact:
            if not public_rows:
                raise ValueError(
                    "a fit without privacy tells of its rows, and so would a fit that begins there:"
                    " if all of them are public, pass start=fit.as_start(public_rows=True)."
                )
            guarantee = "without privacy, of rows that were said to be public"
        return Start.of(
            fit, self._record_map, f"{type(self).__name__}, {guarantee}", self._begun_at
        )

    def _next_start(self) -> Start | None:
        try:
            return replace(self.as_start(), alike=True)
        except ValueError:  # it released a mean alone, or is exact
            return None

    def __sklearn_clone__(self) -> Any:
        twin: Any = super().__sklearn_clone__()
        twin.start = self.start  # a released answer, which a clone does not forget
        return twin

    def _given_start(self) -> Any:
        """The `Start` of a fitted estimator, or what was passed in its place."""
        given = self.start.estimator if isinstance(self.start, FrozenEstimator) else self.start
        fitted = isinstance(given, FitsBySteps) and given._released is not NOTHING
        return given.as_start() if fitted else given

    def _start(
        self, records: "Rows", maps: RecordMap, link: StepLink, channel: str, plain: bool
    ) -> Start:
        """The `Start`; refused before anything is charged if it does not suit."""
        start = self._given_start()
        if not isinstance(start, Start):
            raise ValueError(
                f"start is a {type(start).__name__}, at which no fit can begin: pass a fitted "
                f"{type(self).__name__} (the last step of a Pipeline, also of one that "
                "skpriv.load reads), or in a search, which clones it, what its as_start returns."
            )
        if channel != "gaussian" or not plain:
            raise ValueError(
                "start is for steps with Gaussian noise on rows without weights and without "
                "effects: pass channel='gaussian', or start=None."
            )
        same = type(start.link) is type(link) and start.maps.same_as(maps)
        if not same or len(start.theta) != start.maps.size:
            raise ValueError(
                "start was fitted with other columns, bounds or classes: they must be the same, in "
                "the same order, as those of this fit."
            )
        return start


@parameters
class FitsLines(FitsBySteps):
    """Mixin of those whose linear part is one of the columns themselves; not for direct use.

    Parameters
    ----------
    usual_X : mapping, array-like of shape (n_features, 2) or (low, high), default=None
        Public guess of where most values of each feature lie, inside of its range and in the same
        units: ages from 0 to 120 may usually be from 20 to 60. Nine tenths of the values should lie
        there, and a guess that is wrong by a factor of four still helps. It says in which units
        noise is added where the records are too few for released means and spreads of the features
        (docs/linear_regression.md). It comes from what the features mean, costs nothing, and clips
        nothing. A feature that a mapping leaves out, or whose ends are NaN, has no guess.
    """

    usual_X: Any = None


class ScaledAlready(PublicTargets):
    """Targets that were scaled when the rows were handed out."""

    def scaled(self, y: np.ndarray) -> np.ndarray:
        """The target as it comes."""
        return y
