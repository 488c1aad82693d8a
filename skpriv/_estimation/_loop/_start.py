"""A released fit as the begin of another one, and what of it no fit can begin with."""

from contextlib import suppress
from math import inf, sqrt
from typing import TYPE_CHECKING

import numpy as np

from ..._linalg import unwarned
from ..._stored import frozen_object, renamed, stored
from .._links import StepLink
from .._public_maps import RecordMap
from .._targets import Location
from ._law import FITTED

if TYPE_CHECKING:
    from ._fit import LoopFit

# Rows are at most 1 long in their units, so that products of rows with numbers up to this one,
# their squares and sums are finite: no record can turn a sum of all into NaN.
LARGEST_OF_START = 1e50
# Released deviations and scales of noise are above this one, whose inverse has a square.
LEAST_OF_START = 1e-30
# Ratio of the units of a whitening up to which the matrices that follow from it have inverses.
MOST_UNEVEN = 1e6


@stored
@frozen_object
class Start:
    """A released fit as the begin of another one, of the same columns and bounds.

    All of it is public or a released answer, so that it costs nothing. The posterior mean is shrunk
    towards it or towards 0, by the evidence for each: one that fits badly is left aside.

    Attributes
    ----------
    maps : RecordMap
    link : StepLink
    theta : ndarray of shape (p,)
        Its product with a row is the linear part, less the location.
    mean : Location
        The mean of the target, with infinite noise.
    deviation, variance : float
        Deviation of the target, and residual variance.
    whitening : tuple of (ndarray of shape (p, p), ndarray of shape (p, p), float)
        The whitening, the Gram matrix of whitened rows, and the standard deviation of its noise.
    words : str
        The release and its guarantee.
    alike : bool, default=False
        Whether its records are like those of the next fit, as those of a policy's short epochs are.
        The mean, deviations and whitening then stand for those of the next rows, and the posterior
        mean is shrunk towards theta alone.
    before : tuple of str, default=()
        Words of the releases at which it began itself, the newest first.

    Raises
    ------
    ValueError
        If a part is missing, not finite, of another size, or so large that products with rows would
        not be finite.
    """

    maps: RecordMap
    link: StepLink
    theta: np.ndarray
    mean: Location
    deviation: float
    variance: float
    whitening: tuple[np.ndarray, np.ndarray, float]
    words: str
    alike: bool = False
    before: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        with suppress(AttributeError, TypeError, ValueError), unwarned():
            if self._is_sound():
                return
        raise ValueError(
            "The start is damaged: a part of it is missing, not finite, beyond all rows, or has "
            "another size. Fit again, or pass start=None, which begins at no release."
        )

    def _is_sound(self) -> bool | str:
        """Whether nothing is missing, and fits that begin here stay finite, whatever the rows."""
        W, gram, scale = self.whitening
        mean = self.mean.mean
        single = scale, self.deviation, self.variance, mean
        parts = [np.asarray(part).astype(float, casting="safe") for part in (self.theta, W, gram)]
        numbers = np.concatenate([*map(np.ravel, parts), single])
        same_sizes = np.shape(W) == np.shape(gram) == 2 * (len(W),)
        sound = same_sizes and parts[0].ndim == 1 and np.abs(numbers).max() <= LARGEST_OF_START
        sound = sound and isinstance(self.maps, RecordMap) and "".join(self.chain)
        if not (sound and self.alike):
            return sound
        # The next fit of like records has its whitening, deviations and mean
        link = self.link
        even = len(W) == len(self.theta) and np.linalg.cond(W) <= MOST_UNEVEN
        inside = link.low + LEAST_OF_START <= mean <= link.high
        finite = inside and np.isfinite(link.linear_part(mean))
        return even and finite and min(single[:3]) >= LEAST_OF_START

    @property
    def chain(self) -> tuple[str, ...]:
        """Words of this release and of those at which it began, each once."""
        return tuple(dict.fromkeys((self.words, *self.before)))

    @classmethod
    def of(
        cls, fit: "LoopFit", maps: RecordMap, words: str, before: tuple[str, ...] = ()
    ) -> "Start":
        """The begin that a `LoopFit` with equations is."""
        link = fit.link
        scale = fit.pooled(FITTED).slope_scale
        mean = link.mean(fit.location)
        # The pooled slope of the scores is this factor times the Gram matrix of the rows. It is 1
        # for a line, and where the link bends it has the slope of the mean in it.
        unit = link.steepest / link.far_length * link.slope(fit.location, mean)
        deviation = min(sqrt(max(fit.variance + (fit.b @ fit.gram @ fit.b), 0.0)), 1.0)
        whitening = (fit.W, fit.gram / unit, scale / unit)
        location = Location(mean, inf, 1.0)
        return cls(
            maps,
            link,
            fit.theta,
            location,
            deviation,
            fit.variance,
            whitening,
            words,
            before=tuple(before),
        )


renamed(Start, "linear_model.Start")
