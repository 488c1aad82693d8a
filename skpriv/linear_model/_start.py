"""Fits by the steps of the loop, and those that begin where a released one ended."""

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._estimation._loop._fit import FITTED, LoopFit
from .._estimation._loop._queries import IDENTITY, Location, MeanLink
from .._estimation._loop._steps import bounds_words, fit_rows, public_rules
from .._estimation._public_maps import RecordMap
from .._estimation._reports import ReportedFit
from .._parameters import parameters
from ..records import WeightedRows
from ._base import AsymptoticIntervals, FitsPersons
from ._exact import fit_exactly
from ._opening import open_fit, weighted_rows
from ._prediction_intervals import calibration, hold_out


@dataclass(frozen=True, eq=False)
class Start:
    """A released fit as the begin of another one, of the same columns and bounds.

    All of it is public or a released answer, so that it costs nothing to begin there. It rates the
    records of its own fit, and those of the next one only as far as they are alike: whatever is
    wrong with it, the steps mend, and the posterior mean is shrunk towards it no further than
    towards 0.

    Attributes
    ----------
    maps : RecordMap
    link : MeanLink
    theta : ndarray of shape (p,)
    location, mean : float
        The location of the linear part, and the mean of the target there.
    deviation : float
        Deviation of the target.
    variance : float
        Residual variance.
    W, gram : ndarray of shape (p, p)
        The whitening, and the Gram matrix of whitened rows.
    scale : float
        Standard deviation of the noise of that.
    words : str
        The release and its guarantee.
    """

    maps: RecordMap
    link: MeanLink
    theta: np.ndarray
    location: float
    mean: float
    deviation: float
    variance: float
    W: np.ndarray
    gram: np.ndarray
    scale: float
    words: str

    @classmethod
    def of(cls, fit, maps, words):
        """The begin that a `LoopFit` with equations is."""
        link, (_, scale, _, _) = fit.link, fit.pooled(FITTED)
        mean = float(link.mean(fit.location))
        # Of a link that bends the slope is that of the mean, too
        unit = link.steepest / link.far * float(link.slope(fit.location, mean))
        deviation = sqrt(max(fit.variance + float(fit.b @ fit.gram @ fit.b), 0.0))
        return cls(
            maps, link, fit.theta, fit.location, mean, min(deviation, 1.0), fit.variance,
            fit.W, fit.gram / unit, scale / unit, words,
        )  # fmt: skip

    def suits(self, maps, link):
        """Whether a fit by these public maps can begin here."""
        return type(self.link) is type(link) and self.maps.same_as(maps)

    @property
    def known(self):
        """The mean of the target, which is not that of other records."""
        return Location(self.mean, inf, 1.0)


@parameters
class FitsBySteps(AsymptoticIntervals, FitsPersons):
    """Mixin of estimators that the loop fits, from nothing or from a release; not for direct use.

    Each keeps its public maps as ``_record_map``, and all that was released as ``_released``: its
    coefficients, intervals and laws are computed from these.

    Parameters
    ----------
    start : fitted estimator of the same class, its `as_start`, or None, default=None
        A fit that was released before, of other records or of the same ones, with the same columns
        and bounds: of last year, or of another region. Its whitening, its line and the spread of
        its residuals take the place of the questions that would find them, and what these would
        cost is spent on steps. It costs nothing again, and a start that fits badly loses little.
        The report names it. A clone keeps it.
    """

    start: Any = None

    # Limits on the deviation of residuals over the released one, for the grid of their quantiles
    _deviations: ClassVar[tuple] = (0.7, 1.4)

    def _fit_steps(self: Any, records, maps, groups, weights, link=IDENTITY):
        """Fit records with public maps; the whole budget is charged before values are read.

        Parameters
        ----------
        records : Rows
        maps : RecordMap
            Its map of rows is one, or what `_rows_of` makes one of.
        groups : Groups or None
        weights : dict
            The weights as they were passed to ``fit``.
        link : MeanLink
        """
        records = weighted_rows(self, records, weights, maps.target)
        weighted = isinstance(records, WeightedRows)
        channel = self._sent(records, maps)
        plain = not weighted and getattr(self, "effects", None) is None
        start = self._start(records, maps, link, channel, plain)
        session = open_fit(self, records, channel, groups=groups)
        del records  # only the session has the data now
        session, held_out = hold_out(self, session)
        maps = replace(maps, row_map=self._rows_of(session, maps.row_map, channel, start))
        self._record_map = asked = maps
        if weighted:  # what the session hands out is scaled
            asked = maps.weighted()
            asked = asked if link.linear else replace(asked, target_map=ScaledAlready())
        self._released = self._release(session, asked, link, channel, start)
        if isinstance(self._released, LoopFit):
            names = getattr(self, "feature_names_in_", None)
            session.report.add_note(bounds_words(self._released, maps.row_map, names))
        self._read()
        self._calibration = self._calibrated(held_out, channel)

    def _release(self: Any, session, maps, link, channel, start):
        """All that is released of a session: a `LoopFit`, or a `ReportedFit`."""
        if session.trust.exact:
            return self._exact(session, maps, link)
        rows = self._record_map.row_map
        curved = hasattr(rows, "priors")
        priors = rows.priors() if curved else ()
        if channel == "codebook":
            bounded = not curved and self.coef_norm is not None
            norm = rows.theta_bound(self.coef_norm) if bounded else None
            constant = rows.constant is not None
            return ReportedFit.of(session, maps, constant, priors, norm=norm, of_curves=curved)
        clip, ranged = getattr(self, "clip", "auto"), self.bounds_X is not None
        rules = public_rules(session, maps.row_map, clip, ranged, link)
        return fit_rows(session, maps.row_map, maps.target_map, rules, link, priors, start)

    def _sent(self, records, maps):
        """What users send: "gaussian" or "codebook", by public numbers."""
        return "gaussian"

    def _rows_of(self, session, rows, channel, start):
        """The public map of the rows of a session."""
        return rows

    def _exact(self: Any, session, maps, link):
        """The fit without privacy, of curves with next to no penalty on what is rough."""
        rough = getattr(self._record_map.row_map, "roughness", None)
        penalty = rough(session.n) if rough else None
        return fit_exactly(session, maps.row_map, maps.target_map, penalty)

    def _read(self: Any):
        """Coefficients and intercept, in the units of X and y, from what was released."""
        fit, maps = self._released, self._record_map
        self.coef_, level = maps.coefficients(fit.theta)
        self.intercept_ = level + maps.radius * fit.location

    def _calibrated(self, held_out, channel):
        """Release the quantiles of the scores of the calibration rows."""
        return calibration(self, held_out, self._deviation(), channel)

    def _deviation(self: Any):
        """Limits on the deviation of the residuals, in the units of y, from released answers."""
        variance = getattr(self._released, "variance", 0.0)  # reports have the signs of targets
        size = self._record_map.radius * sqrt(max(variance, 0.0))
        return tuple(factor * size for factor in self._deviations) if size else None

    def as_start(self: Any, *, public_rows: bool = False) -> Start:
        """What another fit needs to begin where this one ended: released answers alone.

        Parameters
        ----------
        public_rows : bool, default=False
            Whether all rows of this fit are public. A fit without privacy is told by its rows, so
            that a fit that begins there would tell them, too: it is a start only if they are.

        Returns
        -------
        Start

        Raises
        ------
        ValueError
            If nothing but a mean was released, or the fit is exact and its rows are not public.
        """
        check_is_fitted(self)
        fit = self._released
        known = isinstance(fit, LoopFit) and bool(fit.equations)
        if (
            not known
            or len(fit.b) != self._record_map.size
            or getattr(self, "effects", None) is not None
        ):
            raise ValueError(
                f"this {type(self).__name__} is no start: it has no equations of one line, as "
                "steps with Gaussian noise have."
            )
        guarantee = str(self.privacy_report_.guarantee)
        if self._trust.exact:
            if not public_rows:
                raise ValueError(
                    "a fit without privacy tells of its rows, and so would a fit that begins there:"
                    " if all of them are public, pass start=fit.as_start(public_rows=True)."
                )
            guarantee = "without privacy, of rows that were said to be public"
        words = f"{type(self).__name__}, {guarantee}"
        return Start.of(fit, self._record_map, words)

    def __sklearn_clone__(self: Any) -> Any:
        twin = super().__sklearn_clone__()  # type: ignore[misc]
        twin.start = self.start  # a released answer, which a clone does not forget
        return twin

    def _start(self: Any, records, maps, link, channel, plain):
        """The `Start`, or None; refused before anything is charged if it does not suit."""
        if self.start is None or self._trust.exact:
            return None
        given = getattr(self.start, "estimator", self.start)  # of a FrozenEstimator
        start = given.as_start() if hasattr(given, "as_start") else given
        if not isinstance(start, Start):
            raise ValueError(
                f"start={given!r} is not a fitted estimator that can be begun at: pass a "
                f"{type(self).__name__} that was fitted before, or what its as_start returns."
            )
        if channel != "gaussian" or not plain:
            raise ValueError(
                "start is for steps with Gaussian noise on rows without weights and without "
                "effects: pass channel='gaussian', or start=None."
            )
        if not start.suits(maps, link):
            raise ValueError(
                "start was fitted with other columns, bounds or classes: they must be the same, in "
                "the same order, as those of this fit."
            )
        return start


class ScaledAlready:
    """Targets that were scaled when the rows were handed out."""

    def scaled(self, y):
        """The target as it comes."""
        return y
