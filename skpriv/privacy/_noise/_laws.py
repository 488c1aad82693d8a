"""Privacy noise: its laws, its price and its draws, in one file.

No other file of the library draws privacy noise. With ``random_state=None`` the draws are secure:
random bits of the operating system and exact sampling, safe against floating-point attacks
(Gaussian noise on a fine grid; selections are OpenDP's). With an int or a ``RandomState`` they are
NumPy's: the same law, fast and reproducible, for study.

An audit listens here: every draw and every answer of a session passes on its way out. Nothing is
kept and nothing changes unless one runs; without it a call costs one look at a context variable.
"""

import secrets
from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache, partial, wraps
from math import inf, sqrt
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from ..._stored import frozen, stored, stored_in_policies
from ..._wire import lifted
from ...exceptions import PrivacyError
from ...records import SEED_BYTES, SeededOrder
from .._accounting._cost import Cost
from .._ledger._context import during
from ._codebook_law import random_signs, reported_about
from ._lattice import gaussian_on_grid

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from ..._contracts import Array, F
    from ...records import Rows, Subset, Summed
    from ._codebook_law import Codebook


class Noise:
    """A law of privacy noise: it knows its price, and draws itself.

    Subclasses have a ``scale``, 0 where the answer is exact.
    """

    scale: float

    def cost(self, sensitivity: float) -> Cost:
        """Price of adding one draw to an answer of this sensitivity."""
        raise NotImplementedError

    def summed(self, reports: int) -> "Noise":
        """Law of the sum of this many independent copies."""
        raise NotImplementedError

    def plus(self, other: Any) -> "Noise":
        """Law of the sum of two independent draws, of this law and another one of its kind."""
        raise NotImplementedError

    def minus(self, earlier: Any) -> "Noise":
        """Law of the noise that was added since an earlier sum, which is part of this sum."""
        raise NotImplementedError

    def added(self, value: Any, rng: Any) -> Any:
        """Value plus one draw; ``rng`` None is secure."""
        raise NotImplementedError

    def collected(
        self, query: "Summed", rows: "Rows", users: "Subset", source: "NoiseSource"
    ) -> Any:
        """Sum of the noisy reports of these users, as a server would collect it.

        For additive noise one draw of the summed law stands for all users, exactly. A channel whose
        reports are not sums overrides it.

        Parameters
        ----------
        query : Summed
            The query that each user answers.
        rows : skpriv.records.Rows
            The rows of all users.
        users : skpriv.records.Subset
            The users who answer.
        source : NoiseSource
            Where the noise is drawn.

        Returns
        -------
        ndarray of shape ``query.shape``
            The noisy sum of the reports.
        """
        return source.add(rows.sum(query, users), self.summed(len(users)))


@stored
@frozen
class GaussianNoise(Noise):
    """Independent N(0, scale^2) noise on every coordinate of an answer.

    Parameters
    ----------
    scale : float
        Standard deviation of each coordinate; 0 means that the answer is exact.
    """

    scale: float

    @classmethod
    def calibrated(cls, sensitivity: float, mu: float) -> Self:
        """Noise that makes a release of this l2 sensitivity mu-Gaussian-DP: scale = D / mu.

        Parameters
        ----------
        sensitivity : float
            How far replacing a record moves the answer, in l2 norm.
        mu : float
            Parameter of Gaussian DP, above 0.

        Returns
        -------
        GaussianNoise
            The law with this guarantee.

        Raises
        ------
        PrivacyError
            If ``mu`` is not above 0.
        """
        if not mu > 0.0:
            raise PrivacyError(
                "Gaussian noise needs mu above 0: pass epsilon > 0 and delta in (0, 1), for "
                "example delta=1e-6."
            )
        return cls(float(sensitivity) / mu)

    def cost(self, sensitivity: float) -> Cost:
        """Price of one release with this l2 sensitivity: mu = D / scale, exactly.

        Parameters
        ----------
        sensitivity : float
            How far replacing a record moves the answer, in l2 norm.

        Returns
        -------
        Cost
            Infinite if the answer is exact.
        """
        return Cost.from_mu(sensitivity / self.scale if self.scale else inf)

    def summed(self, reports: int) -> "GaussianNoise":
        """Law of the sum of this many independent copies.

        Parameters
        ----------
        reports : int
            Number of copies, at least 0.

        Returns
        -------
        GaussianNoise
            The law, of the same kind.
        """
        return GaussianNoise(self.scale * sqrt(reports))

    def plus(self, other: "GaussianNoise") -> "GaussianNoise":
        """Law of the sum of two independent draws.

        Parameters
        ----------
        other : GaussianNoise
            Law of the other draw.

        Returns
        -------
        GaussianNoise
            The law, of the same kind.
        """
        return GaussianNoise(sqrt(self.scale**2 + other.scale**2))

    def minus(self, earlier: "GaussianNoise") -> "GaussianNoise":
        """Law of the noise that was added since an earlier sum, which is part of this sum.

        Parameters
        ----------
        earlier : GaussianNoise
            Law of the noise of the earlier sum.

        Returns
        -------
        GaussianNoise
            The law, of the same kind.
        """
        return GaussianNoise(sqrt(max(self.scale**2 - earlier.scale**2, 0.0)))

    def added(self, value: np.ndarray, rng: Any) -> "Array":
        """Add one draw to a value, coordinate by coordinate.

        Parameters
        ----------
        value : ndarray
            Exact answer.
        rng : None or numpy.random.RandomState
            None draws secure noise, on a grid; a generator draws reproducible noise.

        Returns
        -------
        ndarray
            The noisy answer, of the shape of ``value``.
        """
        if rng is None:
            return gaussian_on_grid(value, self.scale)
        return value + rng.normal(scale=self.scale, size=value.shape)

    def __str__(self) -> str:
        return "Gaussian" if self.scale else "none"


@frozen
class GumbelNoise:
    """Gumbel noise on scores, of which the k largest are named: k exponential mechanisms at once.

    Parameters
    ----------
    scale : float
        Scale of each Gumbel variable; 0 means that the selection is exact.
    """

    scale: float

    @classmethod
    def calibrated(cls, sensitivity: float, k: int, rho: float) -> Self:
        """Noise for which a top-k of scores of this l_inf sensitivity costs rho (zCDP).

        Each of the k draws is an exponential mechanism with e0 = 2 D / scale, which is e0-bounded
        range, hence e0^2 / 8-zCDP (Cesar and Rogers 2021); scale = D sqrt(k / (2 rho)).
        """
        if not rho > 0.0:
            raise PrivacyError("a selection is priced in rho: it needs currency='zcdp' and delta.")
        return cls(sensitivity * sqrt(k / (2.0 * rho)))

    def cost(self, sensitivity: float, k: int) -> Cost:
        """Price of naming the k largest: k selections of bounded range 2 D / scale."""
        return Cost.from_range(2.0 * sensitivity / self.scale if self.scale else inf, k)

    def top(self, scores: np.ndarray, k: int, rng: Any) -> "Array":
        """Indices of the k largest noisy scores, the largest first; ``rng`` None is secure."""
        if self.scale and rng is None:
            return np.array(opendp_top(self.scale, k)(scores.tolist()), np.intp)
        if self.scale:
            scores = scores + rng.gumbel(scale=self.scale, size=scores.shape)
        best = np.argpartition(-scores, k - 1)[:k]
        return best[np.argsort(-scores[best], kind="stable")]

    def __str__(self) -> str:
        return "Gumbel top-k" if self.scale else "none"


# Who listens to this thread, if an audit runs: see `listening`.
_LISTENER: ContextVar[Any] = ContextVar("listener", default=None)


def listening(listener: Any) -> "AbstractContextManager[None]":
    """Hand all draws and answers of this thread to a listener, while an audit runs.

    It has five methods: ``draw(name, exact, law, make)`` for a draw of noise around an exact value,
    ``choice(name, arguments, make)`` for a random choice, in which no secret has part,
    ``order(rows, make)`` for a random order of rows, ``charged(cost, name)`` for what is charged,
    and ``answer(door, owner, asked, arguments, pending, make)`` for what a session or a stream
    gives out. All but ``charged`` return what is released: ``make()``, or what was released in
    another run.
    """
    return during(_LISTENER, listener)


def tell_charge(cost: Cost, name: str) -> None:
    """Tell a charge, if somebody listens."""
    listener = _LISTENER.get()
    if listener is not None:
        listener.charged(cost, name)


def _heard(tell: Callable[..., Any]) -> Callable[["F"], "F"]:
    """Decorator of methods of which a listener, if there is one, is told before they are run."""

    def decorate(method: "F") -> "F":
        @wraps(method)
        def heard(self: Any, *arguments: Any, **named: Any) -> Any:
            listener = _LISTENER.get()
            if listener is None:
                return method(self, *arguments, **named)
            make = partial(method, self, *arguments, **named)
            return tell(listener, make, self, arguments, named)

        return cast("F", heard)

    return decorate


@_heard
def draws(listener: Any, make: Any, owner: Any, arguments: Any, named: Any) -> Any:
    """Decorate a method ``(self, exact, *law)`` that draws noise around an exact value."""
    return listener.draw(make.func.__name__, arguments[0], arguments[1:], make)


@_heard
def chooses(listener: Any, make: Any, owner: Any, arguments: Any, named: Any) -> Any:
    """Decorate a method ``(self, *arguments)`` that makes a public random choice."""
    return listener.choice(make.func.__name__, arguments, make)


@_heard
def deals(listener: Any, make: Any, owner: Any, arguments: Any, named: Any) -> Any:
    """Decorate a method ``(self, rows)`` that draws a random order of the rows."""
    return listener.order(arguments[0], make)


@_heard
def door(listener: Any, make: Any, owner: Any, arguments: Any, named: Any) -> Any:
    """Decorate a method of a session or stream that gives out an answer."""
    question, rest = (arguments[0], arguments[1:]) if arguments else (owner.query, ())
    return listener.answer(make.func.__name__, owner, question, (*rest, named), owner.pending, make)


@stored_in_policies
class NoiseSource:
    """Draws of privacy noise, secure or reproducible.

    Parameters
    ----------
    random_state : None, int or RandomState
        None for a real release, anything else for study and tests (NumPy).

    Attributes
    ----------
    rng : RandomState or None
        What laws draw from; None is the operating system.
    secure : bool
        Whether the draws are fit for a real release.
    """

    def __init__(self, random_state: Any = None) -> None:
        self.secure = random_state is None
        self.rng = None
        if not self.secure:  # whoever draws secure noise need not wait a second for scikit-learn
            from sklearn.utils import check_random_state

            self.rng = check_random_state(random_state)

    @draws
    def add(self, value: Any, noise: Noise) -> "Array":
        """Value plus a draw of the noise."""
        value = np.asarray(value, float)
        return noise.added(value, self.rng) if noise.scale else value

    @draws
    def top(self, scores: np.ndarray, k: int, noise: GumbelNoise) -> np.ndarray:
        """Indices of the k largest noisy scores, the largest first."""
        return noise.top(scores, k, self.rng)

    @draws
    def lifted_reports(self, records: np.ndarray, code: "Codebook") -> np.ndarray:
        """Directions that users report about records (phi, r), one a row, by a codebook."""
        signs = random_signs(records[:, -1], self.rng)
        return reported_about(lifted(records[:, :-1], signs), code, self.rng)

    @draws
    def codebook_reports(self, vectors: np.ndarray, code: "Codebook") -> np.ndarray:
        """Directions that users report about the rows, unit vectors, by a codebook."""
        return reported_about(vectors, code, self.rng)

    @draws
    def responses(self, signs: np.ndarray, law: Any) -> Any:
        """Signs that users report about signs, one a row, by randomised response."""
        return law.responses(signs, self.rng)

    @chooses
    def rows(self, n: int, size: int) -> "Array":
        """Public random rows of a matrix, one a user; nothing secret depends on them."""
        if self.rng is None:  # NumPy's global generator is not used, because anybody may seed it
            return np.random.default_rng().integers(size, size=n)
        return self.rng.randint(size, size=n)

    @chooses
    def permutation(self, n: int) -> "Array":
        """Random order of n users; it comes from the operating system unless there is a seed."""
        if self.rng is None:
            return SeededOrder(self._seed(), n).dealt(0, n)
        return self.rng.permutation(n)

    @deals
    def order(self, rows: "Rows") -> SeededOrder:
        """Random order of the records, of which those that a query is about are a piece.

        It is secret under a curator, and public where users answer for themselves.
        """
        return rows.order(self._seed())

    def _seed(self) -> bytes:
        """Seed of a cryptographic generator."""
        return secrets.token_bytes(SEED_BYTES) if self.rng is None else self.rng.bytes(SEED_BYTES)


@lru_cache(maxsize=64)
def opendp_top(scale: float, k: int) -> Any:
    """OpenDP's noisy top-k (one shot of Gumbel noise) under the l_inf distance."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_top_k
    from opendp.measures import zero_concentrated_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    scores = vector_domain(atom_domain(T=float, nan=False))
    distance = linf_distance(T=float)
    return make_noisy_top_k(scores, distance, zero_concentrated_divergence(), k=k, scale=scale)
