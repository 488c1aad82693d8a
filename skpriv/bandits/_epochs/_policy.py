"""Policies that learn an oracle anew in each epoch, and which epochs still describe the world."""

import uuid
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import field
from functools import reduce
from math import inf
from numbers import Integral
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from sklearn.base import clone

from ..._compat import HasMethods
from ..._contracts import is_whole, passed_on
from ..._parameters import Count, attribute, parameters
from ..._stored import frozen, frozen_object, set_state, stored_in_policies
from ...exceptions import PrivacyError
from ...linear_model import IHTRegressor
from ...privacy import Guarantee, Raw, parallel_part
from .._policy._base import NO_LIMIT, BasePolicy
from .._policy._report import Epoch, EpochsReport
from .._policy._run import MAX_SEED
from .._policy._draws import HALF_NORMAL, optimistic, predicted, shares
from .._notes import moment_notes
from .._ucb._sums import Windows
from . import _oracles

if TYPE_CHECKING:
    from .._ucb._sums import Mark


@stored_in_policies
@frozen
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
        return round(min(self.first * self.ratio**epoch, NO_LIMIT))


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
            raise ValueError(f"schedule={schedule!r} must be one of {sorted(NAMED)}, or lengths.")
        schedule = NAMED[schedule]
    length = schedule
    if callable(schedule):
        length = schedule(epoch)
    elif isinstance(schedule, Sequence | np.ndarray):
        if not len(schedule):
            raise ValueError("schedule is an empty sequence: it must have at least one length.")
        length = schedule[min(epoch, len(schedule) - 1)]
    return _check_length(length)


def _check_length(length: Any) -> int:
    if not is_whole(length, 1, inf):
        raise ValueError(
            f"the length of an epoch is {length!r}, but must be an int of at least 1. A schedule "
            "is a name, an int, a sequence of ints, an EpochSchedule or another callable of the "
            "index of the epoch."
        )
    return int(length)


@stored_in_policies
@frozen_object
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
        """The stretch of the rounds of both."""
        return Stretch(newer.oracle.pooled(self.oracle), self.n + newer.n, newer.rounds)

    def noise_since(self, earlier: "Stretch") -> int:
        """Law of the noise since an earlier stretch: that of fits of epochs is always known."""
        return self.rounds


@stored_in_policies
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

    # A wrong window costs a whole epoch. In worlds that do not change, regret was up to 15% more
    # with 0.4. With 0.1 it was at most 4.4% more, on three environments with three policies.
    doubt = 0.1

    def __init__(self, persons: bool = False, exact: bool = False) -> None:
        super().__init__(None, persons, exact=exact)

    def take(self, oracle: Any, n: int, rounds: int) -> Any:
        """Note the fit of an epoch; return the stretch that is to be used."""
        self._marks.append(Stretch(oracle, n, rounds))  # all are needed: neighbours are joined
        self._join()
        chosen = self.choose()
        # Stretches before the last change are dropped, but for the one that ends at the change: the
        # windows that are chosen later begin at its end.
        self._marks = [mark for mark in self._marks if mark.rounds >= self._origin]
        return chosen

    def _join(self) -> None:
        """Join the older two of three neighbours that are of about one length."""
        first = place = sum(mark.rounds <= self._origin for mark in self._marks)
        while place + 2 < len(self._marks):
            older, newer, newest = self._marks[place : place + 3]
            if older.n.bit_length() == newer.n.bit_length() == newest.n.bit_length():
                self._marks[place : place + 2] = [older.joined(newer)]
                place = first
            else:
                place += 1

    def _slopes(self, window: Any) -> Any:
        """Equations of a stretch."""
        return window.oracle.normal_equations()

    def _since(self, start: Any, end: Any) -> Any:
        """Join the stretches between the ends of two stretches."""
        inside = (mark for mark in self._marks if start.rounds < mark.rounds <= end.rounds)
        return reduce(Stretch.joined, inside)

    def _correlation(self, start: "Mark", cut: "Stretch | Mark", now: "Stretch | Mark") -> float:
        """Correlation of the noise before and after a cut: epochs have noise of their own."""
        return 0.0


def comparable(oracle: Any) -> bool:
    """Whether the released sums of an oracle can be compared with those of others."""
    return _oracles.pools(oracle) and oracle.normal_equations() is not None


Schedule = Annotated[Any, str, Integral, "array-like", callable]


@parameters
class EpochPolicy(BasePolicy):
    """Base class of the policies that fit an oracle to each epoch; not for direct use.

    A subclass whose oracle is not the user's implements `_make_oracle`. It may implement `_choose`,
    which gives the probabilities of actions after the first epoch (by default the action of the
    largest prediction is played), and `_learn`, which is given the oracle fitted to an epoch.

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

    A value that is no finite number, or an unknown action, is reported when the epoch closes, after
    the charge, by one fixed sentence: the epoch's rounds are spent, and nothing is learned from
    them.

    `update` takes the rounds of whole epochs or none: if the fit of one fails, exactly the rounds
    before its present part are taken, the error says how many (``error.rounds_taken``), and the
    others can be given again. A fit that fails after something was charged, or whose answer cannot
    be made use of, closes its epoch all the same: it is not made again, with other noise, and
    nothing is learned from it. The first of several copies of a policy that closes an epoch gives
    its answer, and the others repeat it, so that no epoch has two answers.
    """

    schedule: Schedule = "doubling"
    shared: bool = True
    n_actions: Count | None = None

    window: Any = attribute()
    forget: Any = attribute(True)
    _frozen: Any = attribute()  # the oracle, as the guarantee was promised
    _epochs: Any = attribute(())  # those that have closed
    # The last oracle, pooled with those before it, and answers from which the next fit starts.
    _pooled_oracle: Any = attribute()
    _start_answers: Any = attribute()
    _windows: Any = attribute()  # of released sums that can be compared
    # Classes of the oracle, in their order, if it is a classifier.
    _classes: Any = attribute()

    # Posterior of the coefficients if the oracle tells it, and bonuses in its deviations
    _region: Any = attribute()
    _bonuses = HALF_NORMAL
    _played = staticmethod(shares)  # probabilities by an index of each action

    _n_pooled: int = attribute(0)
    # Whether the oracle's fits cannot be compared, though they should be
    _not_comparable: bool = attribute(False)
    _in_parts = True
    _forgets_rows = True  # whether an epoch's rows are dropped once they have been fitted

    @property
    def rounds_until_update_(self) -> int:
        """Public number of rounds until the present epoch closes."""
        if not self._has_begun:
            return epoch_length(self.schedule, 0)
        return self._length - self._filled

    @property
    def epoch_(self) -> int:
        """Index of the present epoch."""
        return len(self._epochs)

    _answer_number = passed_on("epoch_")

    @property
    def n_pooled_(self) -> int:
        """Rounds that the present oracle knows: those of one epoch, if oracles are not pooled."""
        return self._n_pooled

    @property
    def privacy_report_(self) -> Any:
        """The cost of the closed epochs: `EpochsReport`."""
        # Fits that share rounds do not compose in parallel: no guarantee is claimed for them.
        oracle = (self._frozen or self._split_oracle()) if self._forgets_rows else None
        # If persons may be in several fits, the currency of one tells more of what all cost.
        currency = None if self._max_visits is None else _oracles.paid_in(oracle)
        promise = _oracles.trust_of(oracle).guarantee("user", currency)
        name = type(self).__name__
        max_visits = self._max_visits or 1
        if max_visits > 1:
            name = f"{name}, with at most {max_visits} fits about each person, of which each has"
        return EpochsReport(name, promise, list(self._epochs))

    @property
    def notes_(self) -> list[str]:
        """The sentences that are described at the base class, by the fits of the oracle."""
        oracle = self._pooled_oracle
        if comparable(oracle):
            return moment_notes(oracle.normal_equations(), oracle._scaling, self._space.n_blocks)
        report = _oracles.report_of(oracle)
        return [report.note] if report is not None and report.note else []

    @property
    def guarantee(self) -> Guarantee:
        """The promise to a user, from what was charged: :class:`skpriv.privacy.Guarantee`."""
        return self._of_persons(self.privacy_report_.guarantee)

    @property
    def _has_learned(self) -> bool:
        return hasattr(self, "oracle_")

    def _choose(self, contexts: np.ndarray, available: np.ndarray | None) -> np.ndarray:
        """Probabilities of actions after the first epoch: the largest prediction is played.

        Or another rule is followed; and where the errors of predictions are known, with bonuses.
        """
        if self._region is None:
            return self._played(predicted(self.oracle_, contexts), available)
        return optimistic(self._region, contexts, available, self._bonuses, rule=self._played)

    def _make_oracle(self) -> Any:
        """The unfitted oracle, with the whole budget of a person."""
        return self.oracle

    def _make_schedule(self, n_phi: int) -> Any:
        """Public lengths of the epochs of a run."""
        return self.schedule

    def _split_oracle(self) -> Any:
        """Oracle with its part of the budget: the costs of all fits that a person is in add up."""
        return _oracles.split_oracle(self._make_oracle(), self._max_visits or 1)

    def _learn(self, oracle: Any, n_fitted: int) -> None:
        """Use an oracle, which knows ``n_fitted`` rounds: those of all epochs, if it is pooled."""
        self.oracle_ = oracle

    def _start(self, n_phi: int) -> None:
        oracle = self._make_oracle()
        _oracles.check_oracle(oracle, n_phi)
        self._epoch_lengths = self._make_schedule(n_phi)
        self._n_phi = n_phi
        self._length = epoch_length(self._epoch_lengths, 0)
        self._filled = 0
        self._batches = Raw()  # (rows, rewards) of the present epoch
        self._epochs = []
        if self.window is not None and not self.forget:
            exact = _oracles.trust_of(oracle).exact
            self._windows = EpochWindows(self._max_visits is not None, exact)
        # The costs of two runs add up. Each run has a partition of its own, in which epochs do not.
        self._partition = f"{type(self).__name__} {uuid.uuid4().hex}"
        self._entropy = int(self._rng.randint(MAX_SEED))
        # The promise of a run does not change: parameters that are set now count after a reset.
        self._frozen = clone(self._split_oracle())
        self._promises_privacy = self.guarantee.private
        classes = oracle.get_params(deep=False).get("classes")
        if classes is not None:
            self._classes = np.unique(np.asarray(classes, float))
            # A generator of its own leaves the one of the actions alone.
            self._rounding = np.random.RandomState([self._entropy, len(self._classes)])

    def _bounded(self, rewards: np.ndarray) -> Any:
        """Rewards; of a classifier they are classes, with the mean of what was given.

        A reward between two classes becomes one of them at random. One draw a round: each record is
        a function of its own reward and draw, so that the price of the fit is what it was.
        """
        if self._classes is None:
            return super()._bounded(rewards)
        draws = self._rounding.random_sample(len(rewards))
        valid = ~np.isnan(rewards)
        inside = np.where(valid, rewards, 0.0).clip(self._classes[0], self._classes[-1])
        upper = np.maximum(np.searchsorted(self._classes, inside), 1)
        low = self._classes[upper - 1]
        high = self._classes[upper]
        rounded = np.where(draws * (high - low) < inside - low, high, low)
        return np.where(valid, rounded, np.nan)

    def _update(self, rows: np.ndarray, rewards: np.ndarray) -> None:
        """Add rounds of the present epoch, and close it with the last one.

        All state that changes with a round changes at once: an update that is interrupted took it
        or did not.
        """
        n_before = len(self._batches)
        stop = self.n_rounds_ + len(rewards)
        failure = None
        try:
            # Copies: a slice would keep the whole batch alive, and with it what it came from.
            self._batches.append((rows.copy(), rewards.copy()))
            if self._filled + len(rewards) == self._length:
                failure = self._close(stop)
            else:
                set_state(self, _filled=self._filled + len(rewards), n_rounds_=stop)
        except BaseException:
            if self.n_rounds_ != stop:
                del self._batches[n_before:]
            raise
        if failure is not None:
            raise failure

    def _check_values(self, *arrays: np.ndarray) -> None:
        """Check values now if no privacy is promised; else the fit does so, once it has charged."""
        if not self._promises_privacy:
            super()._check_values(*arrays)

    def _close(self, stop: int) -> Any:
        """Fit an oracle to an epoch: once, whatever copies of the policy close it too.

        Once something was charged the epoch is over, whatever failed: a second answer about its
        rounds would have to be charged again. The failure is returned, and raised where nothing was
        charged, and nothing has changed.
        """
        epoch = len(self._epochs)
        n_fitted = self._length
        failure = None
        X, y = map(np.concatenate, zip(*self._batches))
        length = epoch_length(self._epoch_lengths, epoch + 1)  # may raise: nothing is charged yet
        oracle = self._fresh_oracle(epoch, len(X))
        part = parallel_part(epoch, partition=self._partition)

        def fitted(oracle: Any) -> Any:
            nonlocal failure
            failure = _oracles.failure_of_fit(oracle, X, y, self._max_visits or 1)
            return oracle if failure is None else None

        with self._accounting(), part if self._forgets_rows else nullcontext():
            if self._promises_privacy:  # the first copy fits, the others get its answer
                answer = self._numbering.settle_made(epoch, oracle, fitted)
            else:
                answer = fitted(oracle)
        if answer is not None:
            oracle = answer
        elif failure is None:  # another copy of the policy made the fit, which failed
            failure = PrivacyError("the fit of this epoch failed once it was charged.")
        report = _oracles.charged_report(oracle) if failure else _oracles.report_of(oracle)
        epochs = [*self._epochs, Epoch((stop - n_fitted, stop), report)]
        batches = Raw(() if self._forgets_rows else [(X, y)])
        set_state(self, _epochs=epochs, n_rounds_=stop, _length=length, _filled=0, _batches=batches)
        self._promises_privacy = self.guarantee.private
        if failure is None:
            self._start_answers = _oracles.as_start(oracle) or self._start_answers
            try:
                self._learn(self._with_past(oracle, n_fitted), self._n_pooled)
            except BaseException as error:
                failure = error
        return failure

    def _with_past(self, oracle: Any, n_fitted: int) -> Any:
        """Oracle pooled with those of epochs before, where their released sums can be added."""
        past = self._pooled_oracle
        rounds = n_fitted
        watches = self._windows is not None
        self._not_comparable |= watches and not comparable(oracle)
        try:
            if watches and not self._not_comparable:
                chosen = self._windows.take(oracle, n_fitted, self.n_rounds_)
                oracle = chosen.oracle
                rounds = chosen.n
            elif past is not None and not self.forget and _oracles.pools(oracle):
                oracle = oracle.pooled(past)
                rounds += self._n_pooled
        except ValueError:  # each epoch has bounds of its own, or no sums: the last one is used
            self._not_comparable = watches
        self._pooled_oracle = oracle
        self._n_pooled = rounds
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
        if self._not_comparable:  # hasattr says no then, and names are completed without it
            raise AttributeError(
                f"no change can be noticed: fits of this {type(self._frozen).__name__} have no "
                "sums with Gaussian noise, which alone are compared. Take SSPRegressor with given "
                "bounds and channel='gaussian', or pass window=None."
            )
        return [] if self._windows is None else list(self._windows.changes)

    def _fresh_oracle(self, epoch: int, n_rows: int) -> Any:
        """Unfitted clone, with secure noise if the oracle's random_state is None.

        Otherwise with a seed of its own: two epochs with the same noise would cancel it.
        """
        oracle = clone(self._frozen)
        if not self.forget:
            if isinstance(oracle, IHTRegressor):
                _oracles.go_on(oracle, self._pooled_oracle, self._n_phi)
            if self._start_answers is not None:
                oracle.set_params(start=self._start_answers)
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

    @property
    def _neutral_reward(self) -> float:
        return _oracles.neutral_reward(self.oracle)
