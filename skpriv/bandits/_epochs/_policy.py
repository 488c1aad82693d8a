"""Policies that learn an oracle anew in each epoch, and which epochs still describe the world."""

import uuid
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from math import inf, sqrt
from numbers import Integral
from typing import Annotated, Any, Literal

import numpy as np
from sklearn.base import clone

from ..._compat import HasMethods
from ..._parameters import Count, parameters
from ...exceptions import InvalidValues, PrivacyError
from ...linear_model import (
    AdditiveRegressor,
    IHTRegressor,
    ImproperSGDRegressor,
    LayeredRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    ReweightedRegressor,
    SSPRegressor,
)
from ...privacy import Budget, Guarantee, charge, noticed_charges, parallel_part
from ...records import INVALID_VALUES
from .._base import MAX_SEED, BasePolicy, Epoch, charged_report, report_of, trust_of
from .._state import Raw, tell_taken
from .._ucb._sums import (
    MIN_RESOLUTION_FOR_WINDOWS,
    Region,
    Windows,
    asymptotic,
    mean_rows,
    without_blanks,
)


@dataclass(frozen=True)
class EpochSchedule:
    """Epoch j = 0, 1, ... has about ``first * ratio**j`` rounds, whatever happens in them.

    Parameters
    ----------
    first : int, default=64
        Length of the first epoch, in which nothing is known yet. It must be long enough for the
        oracle, which may refuse to be fitted to very few records.
    ratio : float, default=2.0
        A number of at least 1; 1 gives epochs of equal length.

    Notes
    -----
    Wherever a policy has a parameter ``schedule``, there may be: ``"doubling"``
    (``EpochSchedule()``), ``"geometric"`` (``ratio=1.5``), ``"fixed"`` (``first=1000, ratio=1``),
    an EpochSchedule, an int (epochs of this length), a sequence of ints (the last is repeated) or
    a callable of j. Lengths are public, and must not be chosen by looking at the data: then the
    rounds of an epoch are a publicly indexed set of records, and epochs compose in parallel.

    Examples
    --------
    >>> from skpriv.bandits import EpochSchedule
    >>> schedule = EpochSchedule(first=100, ratio=1.5)
    >>> [schedule(j) for j in range(4)]
    [100, 150, 225, 338]
    """

    first: int = 64
    ratio: float = 2.0

    def __call__(self, epoch: int) -> int:
        """Return the number of rounds of an epoch."""
        _check_length(self.first)
        if not self.ratio >= 1.0:
            raise ValueError(f"ratio={self.ratio!r} must be at least 1.")
        return round(min(self.first * self.ratio**epoch, 2.0**62))


NAMED = {
    "doubling": EpochSchedule(),
    "geometric": EpochSchedule(ratio=1.5),
    "fixed": EpochSchedule(first=1000, ratio=1.0),
}

REFITS = EpochSchedule(first=50, ratio=1.25)  # of policies that fit all past rounds again


def epoch_length(schedule: Any, epoch: int) -> int:
    """Length of an epoch under anything that a parameter ``schedule`` may be."""
    if isinstance(schedule, str):
        if schedule not in NAMED:
            raise ValueError(f"schedule={schedule!r} must be one of {sorted(NAMED)}.")
        return NAMED[schedule](epoch)
    if isinstance(schedule, Integral):
        length: Any = schedule
    elif isinstance(schedule, Callable):  # type: ignore[arg-type]
        length = schedule(epoch)
    elif isinstance(schedule, Sequence) or hasattr(schedule, "__array__"):
        if not len(schedule):
            raise ValueError("schedule is an empty sequence: it must have at least one length.")
        length = schedule[min(epoch, len(schedule) - 1)]
    else:
        raise ValueError(
            f"schedule={schedule!r} must be a name, an int, a sequence of ints, an EpochSchedule "
            "or another callable of the index of the epoch."
        )
    return _check_length(length)


def _check_length(length: Any) -> int:
    if isinstance(length, bool) or not isinstance(length, Integral) or length < 1:
        raise ValueError(f"the length of an epoch is {length!r}, but must be an int of at least 1.")
    return int(length)


@dataclass(frozen=True)
class Stretch:
    """Rounds of one or several epochs, with an oracle of their pooled sums.

    Attributes
    ----------
    oracle : regressor
    n : int
        Number of rounds.
    rounds : int
        Number of rounds up to their end.
    """

    oracle: Any
    n: int
    rounds: int

    def joined(self, newer: "Stretch") -> "Stretch":
        """Both together."""
        return Stretch(newer.oracle.pooled(self.oracle), self.n + newer.n, newer.rounds)


class EpochWindows(Windows):
    """Chooses the oldest window of epochs that agree, and notes when the world has changed.

    Older epochs of about equal length are joined, so that their number grows with the logarithm of
    the rounds. The noises of different epochs are independent.

    Parameters
    ----------
    persons : bool, default=False
        Whether rounds may be blank, of people who came too often.
    exact : bool, default=False
        Whether the sums have no noise.
    """

    # A wrong window costs a whole epoch. With 0.4 regret was up to 15% more in stationary worlds,
    # and with this it was at most 4.4% more on three, with three policies.
    doubt = 0.1
    neighbours = 2  # of one length, before the older two of three are joined

    def __init__(self, persons: bool = False, exact: bool = False) -> None:
        super().__init__(None, partial(_likelihood, persons=persons), exact)

    def take(self, oracle: Any, n: int, rounds: int) -> Stretch:
        """Note the fit of an epoch; return the stretch that is to be used."""
        self.add(Stretch(oracle, n, rounds))
        self._join()
        chosen = self.choose()
        # The one that ends where the last change began has a place, though its rounds are left.
        self._marks = [mark for mark in self._marks if mark.rounds >= self._origin]
        return chosen

    def _join(self):
        """Join the older two of three neighbours that are of about one length."""
        first = place = sum(mark.rounds <= self._origin for mark in self._marks)
        while place + self.neighbours < len(self._marks):
            sizes = {
                mark.n.bit_length() for mark in self._marks[place : place + self.neighbours + 1]
            }
            if len(sizes) == 1:
                older, newer = self._marks[place : place + 2]
                self._marks[place : place + 2] = [older.joined(newer)]
                place = first
            else:
                place += 1

    def _known(self, mark, now):
        return True

    def _since(self, start, end):
        """The stretch between two ends of stretches."""
        parts = [mark for mark in self._marks if start.rounds < mark.rounds <= end.rounds]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.joined(part)
        return whole

    def _correlation(self, start, cut, now):
        return 0.0


def _likelihood(stretch, persons):
    """Centre and covariance of the weights; what noise hides is not known."""
    equations = stretch.oracle.normal_equations()
    equations = without_blanks(equations) if persons else equations
    least, resolved = 1.0 / len(equations.target), MIN_RESOLUTION_FOR_WINDOWS
    return asymptotic(equations, least, resolved=resolved), mean_rows(equations)


def comparable(oracle: Any) -> bool:
    """Whether the released sums of an oracle can be compared with those of others."""
    asked = getattr(oracle, "normal_equations", None)
    return hasattr(oracle, "pooled") and asked is not None and asked() is not None


SELECTION_SHARE = 0.55  # of a sparse oracle's budget: which features matter counts most at first
GAUSSIAN = (
    AdditiveRegressor, ImproperSGDRegressor, LayeredRegressor, LinearRegression,
    LogisticRegression, PoissonRegressor, ReweightedRegressor, SSPRegressor,
)  # fmt: skip
# Currency of all fits that are no codebook reports.
PAID_IN = {IHTRegressor: "zcdp", **dict.fromkeys(GAUSSIAN, "gdp")}
Schedule = Annotated[Any, str, Integral, "array-like", callable]


@parameters
class EpochPolicy(BasePolicy):
    """Base class of the policies that fit an oracle to each epoch; not for direct use.

    A subclass implements `_choose`, for rounds after the first epoch, and may implement `_learn`,
    which is given the oracle fitted to an epoch.

    Parameters
    ----------
    schedule : {"doubling", "geometric", "fixed"}, int, sequence of int, or callable, \
            default="doubling"
        Public lengths of the epochs; see :class:`EpochSchedule`.

    Notes
    -----
    **Privacy guarantee** (joint differential privacy, by the billboard argument; Hsu et al. 2014,
    Kearns et al. 2014). Epoch j publishes o_j, the fit to D_j, its rounds' (phi(x_t, a_t), r_t).
    The action of user t is pi(x_t; o_0, ..., o_{j-1}) with pi fixed before the epoch. Every user's
    row enters exactly one fit, so (o_0, o_1, ...) satisfies the guarantee of the most expensive
    fit: epochs are disjoint and publicly indexed, and parallel composition holds although later
    rows depend on earlier answers. The actions of all users but t depend on user t only through
    these answers. Public: the schedule, and with it the number of rounds of an epoch; an oracle
    that needs more records than the epoch has refuses before it reads them, by that number alone.
    The action of user t itself depends on x_t: it is not protected from whoever sees it.

    What is no finite number, or an unknown action, is told when the epoch closes, after the charge,
    by one fixed sentence: the epoch's rounds are spent, and nothing is learned from them.

    `update` takes the rounds of whole epochs or none: if the fit of one fails, exactly the rounds
    before its present part are taken, the error says how many (``error.rounds_taken``), and the
    others can be given again. A fit that fails after something was charged, or whose answer cannot
    be made use of, closes its epoch all the same: it is not made again, with other noise, and
    nothing is learned from it. Of several copies of a policy, the first that closes an epoch gives
    its answer, and the others repeat it, so that no epoch has two answers.
    """

    schedule: Schedule = "doubling"
    shared: bool = True
    n_actions: Count | None = None

    window: Any = field(init=False, default=None)
    _pool: Any = field(init=False)
    _n_pooled: int = field(init=False)
    _begun: Any = field(init=False)  # released answers with which the next fit begins
    _windows: Any = field(init=False, default=None)  # of released sums that can be compared
    _classes: Any = field(
        init=False, default=None
    )  # of the oracle, in order, if it is a classifier

    _blind = False  # whether they cannot
    _added = False  # whether the present oracle knows more than the last epoch
    _forgets = True  # whether an epoch's rows are dropped once they have been fitted

    @property
    def rounds_until_update_(self) -> int:
        """Public number of rounds until the present epoch closes."""
        if not hasattr(self, "n_rounds_"):
            return epoch_length(self.schedule, 0)
        return self._length - self._filled

    @property
    def epoch_(self) -> int:
        """Index of the present epoch."""
        return len(self._epochs)

    @property
    def _place(self):
        return self.epoch_

    @property
    def n_pooled_(self) -> int:
        """Rounds that the present oracle knows: those of one epoch, if oracles are not pooled."""
        return int(getattr(self, "_n_pooled", 0))

    @property
    def privacy_report_(self) -> Any:
        """What the closed epochs cost: `EpochsReport`."""
        # Fits that share rounds do not compose in parallel: no guarantee is claimed for them.
        frozen = getattr(self, "_frozen", None)
        oracle = (frozen or self._split_oracle()) if self._forgets else None
        currency = None if self._max_visits is None else paid_in(oracle)
        return report_of(type(self).__name__, oracle, getattr(self, "_epochs", []), currency)

    @property
    def guarantee(self) -> Guarantee:
        """What a user is promised, from what was charged: :class:`skpriv.privacy.Guarantee`."""
        return self._of_persons(self.privacy_report_.guarantee)

    @property
    def _knows(self):
        return hasattr(self, "oracle_")

    def _features(self, rows):
        """Rows in the coordinates of the oracle's weights."""
        return rows

    def _make_oracle(self):
        return self.oracle

    def _make_schedule(self, n_phi):
        """Public lengths of the epochs of a run."""
        return self.schedule

    def _split_oracle(self):
        """Oracle with the budget of one fit: a person is in so many, whose costs add up."""
        oracle, most = self._make_oracle(), self._max_visits or 1
        budget = fit_budget(oracle, most)
        if most == 1 or budget is None:
            return oracle
        return clone(oracle).set_params(epsilon=budget.epsilon, delta=budget.delta)

    def _learn(self, oracle, n_fitted):
        """Take over an oracle that knows ``n_fitted`` rows: of all epochs, if it is pooled."""
        self.oracle_ = oracle

    def _start(self, n_phi):
        classes = getattr(self._make_oracle(), "classes", None)
        _check_bounded(self._make_oracle())
        if classes is not None and any(isinstance(label, str) for label in classes):
            raise ValueError("the classes of an oracle are the possible rewards: pass numbers.")
        self._plan, self._n_phi = self._make_schedule(n_phi), n_phi
        self._length, self._filled = epoch_length(self._plan, 0), 0
        self._rows, self._rewards = Raw(), Raw()
        self._epochs = []
        self._pool, self._n_pooled, self._begun = None, 0, None
        compares = self.window is not None and not getattr(self, "forget", True)
        given = self._max_visits is not None, trust_of(self._make_oracle()).exact
        self._windows = EpochWindows(*given) if compares else None
        # Costs of different runs add up, so each run has a partition of its own.
        self._partition = f"{type(self).__name__} {uuid.uuid4().hex}"
        self._entropy = int(self._rng.randint(MAX_SEED))
        # What was promised stays: parameters that are set during a run count after a reset.
        self._frozen = clone(self._split_oracle())
        self._looks_first = not self.guarantee.private
        if classes is not None:  # the states of what is drawn for the actions stay as they are
            self._classes = np.unique(np.asarray(classes, dtype=float))
            self._rounding = np.random.RandomState([self._entropy, len(self._classes)])

    def _bounded(self, rewards):
        """Rewards; of a classifier they are classes, with the mean of what was given.

        A reward between two classes becomes one of them at random. One draw a round: each record is
        a function of its own reward and draw, so that the price of the fit is what it was.
        """
        if self._classes is None:
            return super()._bounded(rewards)
        draws, known = self._rounding.random_sample(len(rewards)), ~np.isnan(rewards)
        inside = np.clip(np.where(known, rewards, 0.0), self._classes[0], self._classes[-1])
        upper = np.maximum(np.searchsorted(self._classes, inside), 1)
        low, high = self._classes[upper - 1], self._classes[upper]
        rounded = np.where(draws * (high - low) < inside - low, high, low)
        return np.where(known, rounded, np.nan)

    def _update(self, rows, rewards):
        taken = 0
        while taken < len(rewards):
            stop = min(len(rewards), taken + self._length - self._filled)
            kept = len(self._rows)
            try:
                failure = self._take(rows[taken:stop], rewards[taken:stop])
            except BaseException as error:
                del self._rows[kept:], self._rewards[kept:]
                tell_taken(error, taken, len(rewards))
                raise
            taken = stop
            if failure is not None:
                tell_taken(failure, taken, len(rewards))
                raise failure

    def _check_values(self, *arrays):
        """At once, if nothing is promised; else the fit looks at values, once it has charged."""
        if self._looks_first:
            super()._check_values(*arrays)

    def _take(self, rows, rewards):
        """Add rounds of the present epoch, and close it with the last; return what failed then."""
        # Copies: a slice would keep the whole batch alive, and with it what it came from.
        self._rows.append(rows.copy())
        self._rewards.append(rewards.copy())
        if self._filled + len(rewards) == self._length:
            return self._close(self._rows, self._rewards, self.n_rounds_ + len(rewards))
        self._filled += len(rewards)
        self.n_rounds_ += len(rewards)
        return None

    def _close(self, rows, targets, stop):
        """Fit an oracle to an epoch: once, whatever copies of the policy close it too.

        Once something was charged the epoch is over, whatever failed: a second answer about its
        rounds would have to be charged again. What failed is returned, and raised where nothing
        was charged, and nothing has changed.
        """
        epoch, failures = len(self._epochs), []
        X, y = np.concatenate(rows), np.concatenate(targets)
        length = epoch_length(self._plan, epoch + 1)
        oracle = self._fresh_oracle(epoch, len(X))
        part = parallel_part(epoch, partition=self._partition) if self._forgets else nullcontext()

        def fitted():
            failures.append(_failure(oracle, X, y, self._max_visits or 1))
            return None if failures[0] else oracle

        with self._accounting(), part:
            private = self._forgets and self.guarantee.private
            answer = self._numbering.settle_made(epoch, fitted) if private else fitted()
        failure = failures[0] if failures else None
        if answer is None and failure is None:  # of another copy
            failure = PrivacyError("the fit of this epoch failed once it was charged.")
        oracle = oracle if answer is None else answer
        report = charged_report(oracle) if failure else getattr(oracle, "privacy_report_", None)
        self._epochs = [*self._epochs, Epoch((stop - self._length, stop), report)]
        n_fitted, self.n_rounds_ = self._length, stop
        kept = ((), ()) if self._forgets else ([X], [y])
        self._rows, self._rewards = map(Raw, kept)
        self._length, self._filled = length, 0
        self._looks_first = not self.guarantee.private
        if failure is None:
            self._begun = _as_start(oracle) or self._begun
            try:
                self._learn(self._with_past(oracle, n_fitted), self._n_pooled)
            except BaseException as error:
                failure = error
        return failure

    def _with_past(self, oracle, n_fitted):
        """Oracle pooled with those of epochs before, where their released sums can be added."""
        past, rounds = self._pool, n_fitted
        try:
            self._blind = self._windows is not None and not comparable(oracle)
            if self._windows is not None and not self._blind:
                chosen = self._windows.take(oracle, n_fitted, self.n_rounds_)
                oracle, rounds, self._added = chosen.oracle, chosen.n, True
            elif past is not None and not getattr(self, "forget", True):
                if hasattr(oracle, "pooled"):
                    oracle, rounds = oracle.pooled(past), rounds + self._n_pooled
                    self._added = True
        except ValueError:  # bounds of each epoch's own, or no sums: the last epoch counts
            self._blind = self._windows is not None
            self._windows, self._added = None, False
        self._pool, self._n_pooled = oracle, rounds
        return oracle

    @property
    def changes_(self) -> list[int]:
        """Numbers of rounds at which the released fits said that the world had changed.

        In a world that does not change, a run of any length has one with a probability of at most
        5%. Empty with ``window=None`` and ``forget=True``.

        Raises
        ------
        AttributeError
            If the oracle's fits cannot be compared, so that no change could be noticed.
        """
        windows = getattr(self, "_windows", None)
        if self._blind:  # an error that hasattr and dir, and so completion of names, take for "no"
            raise AttributeError(
                f"no change can be noticed: fits of this {type(self._frozen).__name__} have no "
                "sums with Gaussian noise, which alone are compared. Take SSPRegressor with given "
                "bounds and channel='gaussian', or pass window=None."
            )
        return [] if windows is None else list(windows.changes)

    def _fresh_oracle(self, epoch, n_rows):
        """Unfitted clone, with secure noise if the oracle's random_state is None.

        Otherwise with a seed of its own: two epochs with the same noise would cancel it.
        """
        oracle = clone(self._frozen)
        if not getattr(self, "forget", True):
            if hasattr(oracle, "coef_init"):
                _go_on(oracle, getattr(self._pool, "coef_", None), self._n_phi)
            if self._begun is not None:
                oracle.set_params(start=self._begun)
        for name, value in sorted(oracle.get_params(deep=True).items()):
            if name.split("__")[-1] == "random_state" and value is not None:
                given = value if isinstance(value, int | np.integer) else 0
                entropy = [self._entropy, abs(int(given)), epoch]
                seed = int(np.random.SeedSequence(entropy).generate_state(1)[0]) % MAX_SEED
                oracle.set_params(**{name: seed})
        return oracle


@parameters
class OraclePolicy(EpochPolicy):
    """Base class of the policies whose oracle is the user's; not for direct use.

    Parameters
    ----------
    oracle : regressor
        A clone of it is fitted to each epoch; private or not. Or a classifier with
        ``predict_proba``, such as `LogisticRegression`, whose classes are the possible rewards: it
        predicts their mean. A reward between two classes is given to it as one of them, drawn so
        that its mean stays, and one beyond them as the last.
    forget : bool, default=False
        Whether only the last epoch counts, as in the papers and for rewards that drift. Else the
        released sums of all epochs are pooled, which costs no privacy, if the oracle can do that:
        `LinearRegression`, `SSPRegressor` and `ReweightedRegressor` with given bounds.
    max_visits : int or None, default=None
        Public: the guarantee is that of a person, who is learned from in at most so many rounds and
        at most once between two changes of the policy; `update` needs ``users``. None protects
        single rounds: whoever comes twice is two users. The oracle's budget is that of the person:
        each fit has its part of it.
    random_state : None, int or RandomState, default=None
        Seed of the actions. Privacy noise is that of the oracle's own ``random_state``: secure if
        it is None, otherwise reproducible, with a new seed in every epoch.
    window : {"auto", None}, default="auto"
        "auto" pools the newest epochs that agree with each other, so that the policy follows a
        world that changes, if the released sums of the oracle can be compared: those of
        `SSPRegressor` with Gaussian noise. Others are not compared, and ``changes_`` raises: the
        line of `LinearRegression` clips residuals, and depends on what is played. It costs no
        privacy. An epoch is the least that can be left out, so that a change is noticed late where
        epochs double: one at round 10,000 at 16,320, and with ``schedule=1000`` at 11,000. None
        pools all epochs.
    """

    oracle: Annotated[Any, HasMethods(["fit", "predict"])] = field(kw_only=False)
    forget: bool = False
    window: Literal["auto"] | None = "auto"
    max_visits: Count | None = None


def paid_in(oracle):
    """Currency in which each fit of an oracle is paid for, None where it is not known before."""
    can = trust_of(oracle).can
    reports = can.alone or can.amplifies  # which may be indices of a codebook
    if reports and (can.amplifies or getattr(oracle, "channel", None) != "gaussian"):
        return None
    return PAID_IN.get(type(oracle))


def fit_budget(oracle, fits):
    """Budget of each of so many fits, which together cost what the oracle's parameters say.

    Squares of mu add up, and so does rho. Where the currency is not known, epsilon and delta do.
    """
    budget, currency = trust_of(oracle).budget, paid_in(oracle)
    if budget.epsilon == inf:
        return None
    if currency is None or not budget.mu > 0.0:
        return Budget(budget.epsilon / fits, budget.delta / fits)
    if currency == "zcdp":
        return Budget.from_rho(budget.rho / fits, budget.delta)
    return Budget.from_mu(budget.mu / sqrt(fits), budget.delta)


def _check_bounded(oracle):
    """Refuse an oracle without its public bounds at once, and not when the first epoch closes."""
    if (check := getattr(oracle, "_check_model", None)) is not None:
        check()
    for names in (("bounds_y",), ("bounds_X", "data_norm")):
        known = [name for name in names if hasattr(oracle, name)]
        if known and all(getattr(oracle, name) is None for name in known):
            raise ValueError(
                f"The oracle {type(oracle).__name__} needs {' or '.join(known)}, a public bound of "
                f"{'rewards' if 'bounds_y' in known else 'features'}: without it each fit fails."
            )


def added(n_nonzero, n_features):
    """Features that a sparse oracle selects in an epoch, and those that it keeps from the last.

    Noise grows with the square root of the number that are selected at once: a third of them is,
    and the others next time, by what is left of the rewards when the first ones are known.
    """
    n_nonzero = min(n_nonzero or max(1, min(n_features // 10, 10)), n_features)
    new = max(1, n_nonzero // 3)
    return new, n_nonzero - new


def _go_on(oracle, coef, n_features):
    """Let a sparse oracle select by the residuals of released coefficients, the largest of them."""
    new, kept = added(oracle.n_nonzero_coefs, n_features)
    if coef is not None:
        coef = coef.copy()
        coef[np.argsort(-np.abs(coef), kind="stable")[kept:]] = 0.0
    oracle.set_params(n_nonzero_coefs=new, selection_share=SELECTION_SHARE, coef_init=coef)


def _as_start(oracle):
    """Where the fit of the next epoch may begin, None if its users may report otherwise."""
    try:
        return None if trust_of(oracle).can.reports else oracle.as_start()
    except (AttributeError, ValueError):  # of another kind, or too few rounds for more than a mean
        return None


def _failure(oracle, X, y, releases):
    """Fit; return what failed once something was charged, such as rows that are no numbers.

    A person who may be in so many epochs pays for as many fits, of which this is one.
    """
    with noticed_charges() as charges:
        try:
            oracle.fit(X, y)
            for cost in charges * (releases - 1):
                charge(cost, type(oracle).__name__)
        except InvalidValues:
            return InvalidValues(INVALID_VALUES)
        except BaseException as error:
            if not charges:
                raise
            return error
    return None


def coef_posterior(oracle):
    """Posterior of an oracle's coefficients; an intercept is the same for all actions."""
    (mean, covariance), d = oracle.posterior(), len(oracle.coef_)
    return Region(mean[:d], covariance[:d, :d])
