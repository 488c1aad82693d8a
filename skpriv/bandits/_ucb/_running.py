"""The common part of policies on running sums: trust, times of reads, and the sums themselves."""

import json
import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from ..._contracts import passed_on
from ..._estimation._reports import best_channel, moments_query, report_noises
from ..._estimation._public_maps import RecordMap
from ..._parameters import (
    ArrayLike, Count, Delta, Epsilon, Finite, Positive, attribute, of_numbers, parameters,
)  # fmt: skip
from ...exceptions import PrivacyError
from ...records import check_shape, floats
from ..._wire import WIRE_VERSION, is_known, read_report, reported_directions, task_hash
from ...privacy import Budget, Guarantee, LiftedReports, Trust, adds_up_gaussians, capabilities
from .._policy._base import NO_LIMIT, BasePolicy
from .._policy._draws import Region
from .._policy._report import divided_budget
from .._notes import moment_notes
from .._policy._visits import Visits
from ._sums import GrowingTimes, PhasedSums, Windows, about, asymptotic, ball

if TYPE_CHECKING:
    from ..._contracts import Array
    from ...privacy import Capabilities
    from ..._estimation._moments import NormalEquations

# Length of features over that of the constant. The intercept is the same for all actions, and need
# not be known as well as slopes: with equal lengths regret was 1.2 to 1.5 times as large where the
# mean reward of a zero feature is the middle of the range.
FEATURES_TO_CONSTANT = 2.3
UNSHUFFLED = "local"  # the model of reports that nobody shuffles


# The first shuffled batch has 200 users, and the next ones grow by 0.3 of the users so far.
BATCHES = GrowingTimes(every=200, growth=0.3, n_reads=1)


@parameters
class RunningSumsPolicy(BasePolicy):
    """Base class of the policies that read noisy running sums of moments; not for direct use.

    A subclass implements `_make_region`, which is given the equations of a read and returns an
    object with the weights as ``centre``, and `_choose`, which finds it as ``self._region``. The
    weights are those of ``self._features(rows)``. For devices it implements `_rule`.

    Parameters
    ----------
    epsilon : float in (0, inf], default=1.0
        Privacy parameter; ``inf`` is the same as ``privacy="none"``.
    delta : float in [0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of users.
    horizon : int, default=10_000
        Public: expected number of rounds, for the noise of the central model; used only if
        ``update_every`` is a number. A longer run goes on in phases of twice the length, at no
        cost in privacy.
    data_norm : float, default=1.0
        Public: features of the chosen arms are clipped to this l2 norm.
    bounds_y : (float, float), default=(-1, 1)
        Public range (low, high) to which rewards are clipped.
    reward_offset : float or None, default=None
        Public expected reward of a zero feature, subtracted from all rewards. A number makes an
        intercept superfluous, and none is fitted. None is the middle of ``bounds_y``, of which the
        least is left to be hidden.
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Other Parameters
    ----------------
    privacy : {"central", "aggregate", "local", "shuffle", "none"}, default="central"
        Who adds the noise: a trusted curator, all users of a batch together by secure aggregation,
        every user (in the shuffle model, batches of users are mixed by a shuffler), or nobody.
    """

    epsilon: Epsilon = 1.0
    delta: Delta = 1e-6
    horizon: Count = 10_000
    data_norm: Positive = 1.0
    bounds_y: ArrayLike = (-1.0, 1.0)
    reward_offset: Finite | None = None
    update_every: Count | Literal["auto"] = "auto"
    shared: bool = True
    n_actions: Count | None = None
    max_visits: Count | None = None

    # A curator's, unless a class has these as parameters
    privacy = "central"
    channel = "gaussian"
    fit_intercept = False
    start: Any = attribute()
    width = "asymptotic"
    window: Any = attribute()
    # From the first round on, when it is known whether a shuffler is of use
    _opened_model: Any = attribute()
    _opened_budget: Any = attribute()
    _sums: Any = attribute()
    _device_fields: Any = attribute()
    _region: Any = attribute()
    _windows: Any = attribute()  # of sums that are read
    _mean: Any = attribute(0.0)  # of the prior

    @property
    def rounds_until_update_(self) -> Any:
        """Public number of further rounds in which the policy will not change."""
        if not self._has_begun:  # whether a shuffler is of use is not known yet
            return (GrowingTimes() if self._parameters_can.amplifies else self._times).length(0)
        return self._sums.length - self._sums.pending

    @property
    def guarantee(self) -> Guarantee:
        """The promise to a user, from what was charged: :class:`skpriv.privacy.Guarantee`."""
        if self._sums is not None:
            of_charges: Guarantee = self.privacy_report_.guarantee
            return of_charges
        every = {"gaussian": ["gdp"], "codebook": ["pure"], "auto": ["gdp", "pure"]}
        trust = Trust.of(self.privacy, self._round_budget)
        promised = [trust.guarantee("user", currency) for currency in every[self._likely_channel]]
        return self._of_persons(Guarantee.weakest(promised))

    @property
    def _model(self) -> str:
        """Privacy model of the sums, which is that of the parameters until the first round."""
        return self._opened_model or self.privacy

    @property
    def _trust(self) -> Trust:
        """Who is trusted with what budget: by the parameters, until the first round."""
        return Trust.of(self._model, self._opened_budget or self._stated_budget)

    _one_mechanism = passed_on(
        "_trust.can.curator", "Whether a person's rounds are in one mechanism."
    )

    @property
    def _round_budget(self) -> Budget:
        """Budget of the streams: of a person where a curator has them, else of one round.

        Rounds that have a mechanism each add up: Gaussian noise by the squares of mu, pure reports
        by epsilon, and those that are shuffled by epsilon and delta.
        """
        budget = self._trust.budget
        max_visits = self._max_visits or 1
        if max_visits == 1 or self._one_mechanism:
            return budget
        gaussian = self._likely_channel == "gaussian" and not self._trust.can.amplifies
        return divided_budget(budget, max_visits, "gdp" if gaussian else None)

    @property
    def _times(self) -> GrowingTimes:
        """Public times at which the sums are read."""
        if self.update_every != "auto":
            return GrowingTimes.even(self.update_every, self.horizon)
        if self._trust.can.batches:
            return BATCHES
        # Between two reads a fixed width plays one arm, and exact sums are free.
        if self._trust.exact and self._certified:
            return GrowingTimes.even(1, self.horizon)
        return GrowingTimes(1 if self._trust.exact else 20)

    def _start(self, n_phi: int) -> None:
        self._reads = 0
        bounds: Any = tuple(float(bound) - self._offset for bound in self.bounds_y)
        # With weights for each action they have constants of their own. Blank rounds of people who
        # came too often would pull it to the middle. A named offset is the intercept.
        has_intercept = (
            self.fit_intercept
            and self.shared
            and self.reward_offset is None
            and self._max_visits is None
            and not self._certified
        )
        self._scaling = RecordMap.of_norm(
            float(self.data_norm), bounds, has_intercept, n_phi, FEATURES_TO_CONSTANT
        )
        if self.start is not None:
            if self._certified:
                raise ValueError("start is the mean of a prior: it needs width='asymptotic'.")
            if isinstance(self.start, BaseEstimator):
                raise TypeError(
                    f"start is a {type(self.start).__name__}: pass its weights and its intercept, "
                    "np.append(fit.coef_, fit.intercept_), of a fit to public rows."
                )
            names = "start, np.append(weights, intercept),"
            check_shape(self.start, names, (n_phi + 1,))
            start = floats(self.start)
            if np.isnan(start).any():
                raise ValueError(f"{names} must have finite numbers alone: replace the others.")
            self._mean = self._scaling.theta(start[:-1], start[-1] - self._offset)
            self._region = replace(ball(len(self._mean), 0.0), centre=self._mean)
        self._opened_model = UNSHUFFLED if self._gains_nothing else self.privacy
        self._opened_budget = self._stated_budget
        self._sums = self._open_sums()
        if self.window is not None and not self._certified:  # older and newer sums are compared
            persons = self._max_visits is not None
            self._windows = Windows(
                self._sums.query, persons, self._space.n_blocks, self._trust.exact
            )
            self._windows.intercept = 0.0 if has_intercept else None
        if self._out_of_order:
            self._events = Visits(1, self._numbering.part("events"))

    @property
    def _offset(self) -> float:
        """Public reward that is subtracted from all rewards."""
        if self.reward_offset is not None:
            return float(self.reward_offset)
        low, high = map(float, self.bounds_y)
        return low / 2.0 + high / 2.0

    @property
    def _neutral_reward(self) -> float:
        return self._offset

    @property
    def _certified(self) -> bool:
        """Whether regions are to be proved.

        The proof is for weights of a bounded norm without an intercept, for all rounds together,
        and for rounds that are chosen before their rewards are known.
        """
        return self.width == "certified"

    @property
    def privacy_report_(self) -> Any:
        """Streams that were opened, one a phase, and their price: `PrivacyReport`."""
        if self._sums is None:
            raise NotFittedError(f"{type(self).__name__} has released nothing: it has not acted.")
        report = self._sums.report
        promised = self._of_persons(report.guarantee.protecting("user"))
        note = " ".join(self.notes_) or None
        return replace(report, rows=self._sums.counted(), promised=promised, note=note)

    @property
    def notes_(self) -> list[str]:
        """The sentences that are described at the base class, by the last read of the sums."""
        mark = self._sums and self._sums.mark
        if mark is None:
            return []
        equations = self._sums.query.equations(mark.answer)
        return moment_notes(equations, self._scaling, self._space.n_blocks)

    _answer_number = passed_on("_sums.place")

    @property
    def _parameters_can(self) -> "Capabilities":
        """The abilities of the model of the parameters, which at epsilon=inf is not that of the
        run."""
        return capabilities(self._model)

    @property
    def _likely_channel(self) -> str:
        """The reports of users, as far as it is known without the number of features; or "auto"."""
        can = self._parameters_can
        if self.channel != "auto":
            return self.channel
        if not can.reports:
            return "gaussian"
        if not self._trust.budget.mu > 0.0:
            return "codebook"
        # Several Gaussian reports of a person add up by their squares, pure ones do not.
        return "auto" if can.amplifies or (self._max_visits or 1) == 1 else "gaussian"

    @property
    def _channel(self) -> str:
        """What users send: "gaussian" or "codebook", by public numbers."""
        can = self._parameters_can
        if self.channel == "codebook" and not can.reports:
            raise PrivacyError(
                "channel='codebook' is what users send who report themselves, and "
                f"privacy={self.privacy!r} has a curator or a hidden sum instead: pass "
                "privacy='local' or privacy='shuffle', or channel='auto'."
            )
        if self._likely_channel != "auto":
            return self._likely_channel
        with self._accounting():
            return best_channel(can, self._scaling.size, self._round_budget, self._usual_batch)

    @property
    def _usual_batch(self) -> int:
        """Users whose reports are shuffled together at the expected number of rounds."""
        return self._times.length(self.horizon)

    @property
    def _gains_nothing(self) -> bool:
        """Whether a shuffler helps less than it delays: single reports are then better.

        A record that waits for the end of a batch lags behind by half of the growth of batches, and
        errors fall as noise over rounds. A local guarantee holds for whatever is done with the
        reports, a shuffle included.
        """
        with self._accounting():  # one that adds up mu^2 has set aside what a shuffle costs
            several = (self._max_visits or 1) > 1
            if several or adds_up_gaussians() or not self._parameters_can.amplifies:
                return False
        size = self._scaling.size
        single, shuffled = (
            report_noises(capabilities(model), size, self._round_budget, self._usual_batch)
            for model in (UNSHUFFLED, self._model)
        )
        channels = list(single) if self.channel == "auto" else [self.channel]
        least, mixed = (min(noises[name] for name in channels) for noises in (single, shuffled))
        return least <= mixed * (1.0 + BATCHES.growth / 2.0)

    def _open_sums(self) -> PhasedSums:
        """Open the stream of the first phase: what one user may lose is charged here."""
        self._sent_channel = self._channel  # once: later accountants do not change it
        query = self._query(self._scaling)
        max_visits = self._max_visits or 1
        options = {
            "privacy": self._model,
            "budget": self._round_budget,
            "places": max_visits if self._one_mechanism else 1,
            "name": type(self).__name__,
        }
        releases = 1 if self._one_mechanism else max_visits
        numbering = self._numbering.part("sums")
        with self._accounting():
            return PhasedSums(query, self._times, options, releases, self._noise_state(), numbering)

    def _query(self, maps: RecordMap) -> Any:
        """Moments; a round that is learned from at another time moves two reads by no more."""
        query: Any = moments_query(maps, self._sent_channel)
        if self._sent_channel == "codebook":
            return query
        weight = 0.5 if self._out_of_order else query.square_weight
        return replace(query, square_weight=weight, blocks=self._space.n_blocks)

    @property
    def _can_be_late(self) -> bool:
        return self._one_mechanism and not self._trust.exact and not self._certified

    def _update_late(
        self,
        n_rounds: int,
        rewards: np.ndarray,
        rows: np.ndarray,
        actions: np.ndarray,
        who: tuple[str | None, ...],
    ) -> None:
        """Learn from rewards that came in so many rounds, whichever rounds they are of.

        The places of rounds are those at which they were acted on, and so is the number of rounds
        in a sum. The size of the rewards is private. See docs/mathematics/bandits.md.

        If persons are not counted, ``who`` are names of rounds: one that another copy of the policy
        has in another sum is blank.
        """
        until = self.rounds_until_update_
        assert n_rounds <= until
        with self._turn_lock:
            self._pay(n_rounds)
            rewards = self._bounded(rewards)
            self._check_values(rows, rewards)
            rows = self._space.chosen(rows, actions)
            visits = self._events if self._visits is None else self._visits
            # All of them are in one increment.
            with self._without_repeats(visits, rows, rewards, who, until) as (rows, rewards):
                # How many rows there are is private, and empty ones must not add even a reward.
                admitted = rows.any(axis=1)
                rows = rows[admitted]
                rewards = rewards[admitted] - self._offset
                self._add(self._sums.take_late(rows, rewards, n_rounds), n_rounds)

    def _pay(self, n_rounds: int) -> None:
        """Open the streams that the rounds need, or refuse them while nothing has changed."""
        self._check_sums(n_rounds)
        if not self._sums.covers(n_rounds + 1):
            with self._accounting():
                self._sums.reserve(n_rounds + 1)

    def _update(self, rows: np.ndarray, rewards: np.ndarray) -> None:
        """Push rounds to the stream; only its last public read decides what is played."""
        self._add(self._sums.take(rows, rewards - self._offset), len(rows))

    def _add(self, reads: Iterator[Any], n_rounds: int) -> None:
        """Add rounds to the sums, which yield what is read of them meanwhile."""
        equations = None
        with self._whole_update():
            for equations in reads:
                self._reads += 1
                self._read(equations)
                if self._windows is not None:
                    self._windows.add(self._sums.mark)
            if equations is not None:
                self._learn(equations if self._windows is None else self._windows.choose())
            self.n_rounds_ += n_rounds

    @property
    def changes_(self) -> list[int]:
        """Numbers of rounds at which the released sums said that the world had changed.

        In a world that does not change, a run of any length has one with a probability of at most
        5%. Empty with ``window=None``.
        """
        return [] if self._windows is None else list(self._windows.changes)

    def _read(self, equations: "NormalEquations") -> Any:
        """Note one of the reads that an update passes."""

    def _learn(self, equations: "NormalEquations") -> None:
        """Take over the last read of an update.

        A zero feature is expected to earn the middle of the range, or anything. A window that
        leaves older rounds out expects what it earned at the read before, or anything: weights that
        changed need not have changed it, and with it the level of rewards tells of the slopes.
        """
        windows = self._windows
        has_level = windows is not None and windows.intercept is not None
        if has_level and self.start is None:
            level = windows.intercept if equations.n < self._sums.rounds else 0.0
            self._mean = level * np.eye(self._scaling.size)[-1]
        self._region = self._make_region(equations)
        if has_level:
            windows.intercept = float(self._region.centre[-1])
        self.coef_, intercept = self._scaling.coefficients(self._region.centre)
        self.intercept_ = intercept + self._offset

    def _make_region(self, equations: "NormalEquations") -> Region:
        """Centre and widths of the weights, by the equations of a read."""
        raise NotImplementedError

    @property
    def _has_learned(self) -> bool:
        return self._region is not None

    def _features(self, rows: np.ndarray) -> "Array":
        return self._scaling.features(rows)

    def _posterior(self, equations: "NormalEquations", norm: float = 1.0) -> Region:
        """Posterior of the weights, without the error of what is common to all actions.

        The intercept is the same for all actions of a round: its error is no part of the width of
        one of them. Weights of this norm are never taken for unlikely: a prior that is as narrow as
        the evidence for it would play at random as long as noise hides all weights. About a start
        it plays that start, and may be as narrow as the evidence says. Nor is the error of slopes
        that goes with that of the intercept, as of the constants of actions: without noise it would
        hide how much less is known of an action that was hardly played. With noise there is little
        to hide, and regret was 2% more without it.
        """
        length, constant = self._scaling.row_map.parts
        least = (norm / length) ** 2 / self._scaling.n_features if self.start is None else 0.0
        equations = about(equations, self._mean)
        fit = asymptotic(equations, least, self._space.n_blocks, constant, self._mean)
        form = fit.form
        if constant:
            if self._trust.exact:
                form -= np.outer(form[-1], form[-1]) / form[-1, -1]
            form[-1] = form[:, -1] = 0.0
        return Region(fit.centre + self._mean, form)

    def _rule(self) -> dict[str, Any]:
        """Numbers of the rule by which an action is chosen."""
        raise NotImplementedError

    @of_numbers
    def public_state(self, *, n_actions: int | None = None, n_features: Any = None) -> str:
        """The state that a device needs to act and to report; nothing in it is more than was
        released.

        Parameters
        ----------
        n_actions, n_features : int, default=None
            Public shape of the contexts, needed before the first call of ``act``.

        Returns
        -------
        str
            JSON text for :func:`skpriv.protocol.act` and :func:`skpriv.protocol.report`. It
            changes with every update of the policy; the task in it does not, so that reports may
            come late.
        """
        if not self._has_begun:
            if n_features is None or (self.shared and n_actions is None):
                raise ValueError("before the first round n_actions and n_features must be given.")
            self._begin(n_actions if self.shared else self.n_actions, n_features)
        state = {"task": self._device_task(), "region": None, "n_rounds": int(self.n_rounds_)}
        if self._has_learned:
            state["region"] = {"centre": self._region.centre.tolist(), **self._rule()}
        return json.dumps(state, allow_nan=False)

    def update_from_reports(self, reports: Any) -> Self:
        """Learn from reports of devices; refuse all of them if one is not as it should be.

        Parameters
        ----------
        reports : iterable of (user, bytes)
            Every user has one round, hence one report; with ``max_visits`` as many reports, each
            of which has its part of the budget.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a user is unknown or has reported (``max_visits`` times), or if bytes are malformed,
            out of range or of another policy; nothing has changed then.
        """
        fields = self._device_task()
        answers = []
        seen: Counter[Any] = Counter()
        max_visits = self._max_visits or 1
        for user, answer in reports:
            is_known(fields["users"], user)
            seen[int(user)] += 1
            if self._reported[int(user)] + seen[int(user)] > max_visits:
                raise ValueError(
                    f"user {user} has reported, which may be done {max_visits} times: no more is "
                    "taken."
                )
            seed, _, index = read_report(fields, user, answer)
            answers.append((seed, index))
        if answers:
            directions = reported_directions(fields, self._sums.code.size, answers)
            self._pay(len(answers))
            self._reported += seen  # before their sums: nobody is counted twice if these fail
            taken = self._sums.take_reports(LiftedReports(directions, self._sums.code))
            self._add(taken, len(answers))
        return self

    def _device_task(self) -> Any:
        """Fields of the task of all rounds: the same for the policy's whole life."""
        if not self._has_begun:
            raise ValueError("devices have not been given a task: call public_state.")
        if not self._trust.can.alone or self._sent_channel != "codebook":
            raise PrivacyError(
                "devices send one index of a codebook each: pass privacy='local' and "
                "channel='codebook'."
            )
        if self._device_fields is None:
            code = self._sums.code
            fields = {
                "version": WIRE_VERSION,
                "policy": {
                    "class": type(self).__name__, "id": secrets.token_hex(16),
                    "shared": bool(self.shared), "n_actions": int(self.n_actions_),
                },
                "query": {**self._sums.query.wire(), "offset": self._offset},
                "channel": {
                    "name": "codebook", "epsilon": code.epsilon, "size": code.size,
                    "count": code.count, "nearest": code.nearest, "seed": "user",
                },
                "budget": {"epsilon": self._round_budget.epsilon, "delta": 0.0},
                "round": 1,
                "users": {"n": NO_LIMIT, "seed": 0, "start": 0, "stop": NO_LIMIT},
            }  # fmt: skip
            self._device_fields = {**fields, "hash": task_hash(fields)}
            self._reported: Counter[Any] = Counter()
        return self._device_fields
