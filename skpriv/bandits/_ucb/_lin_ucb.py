"""LinUCB in every trust model."""

from dataclasses import replace
from math import inf
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from ..._choices import PrivacyModel
from ..._compat import Interval, StrOptions
from ..._equations._scaling import Scaling
from ...privacy import Budget, Cost, PrivacyReport, charge
from .._draws import HALF_NORMAL, flat, largest, optimistic, uniform
from .._state import Raw
from ._devices import ServesDevices
from ._region import Region, RidgeState, asymptotic, certified, without_blanks
from ._running import RunningSumsPolicy

# code -> paper (Shariff and Sheffet 2018): equations.design, .target -> V~, u~;  region -> C_t


class LinUCB(ServesDevices, RunningSumsPolicy):
    """Linear contextual bandit that takes the arm of the largest upper confidence bound.

    Under five kinds of trust: exact; sums by a trusted curator, who adds correlated noise at every
    update (joint differential privacy); sums of batches to which all users add the noise together;
    or one noisy report a user, shuffled or not. The confidence region uses the exact distribution
    of the noise, not worst-case constants.

    Parameters
    ----------
    epsilon : float in (0, inf], default=1.0
        Privacy parameter; ``inf`` is the same as ``privacy="none"``.
    delta : float in [0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of users.
    privacy : {"central", "aggregate", "local", "shuffle", "none"}, default="central"
        Who adds the noise: a trusted curator, all users of a batch together by secure aggregation,
        every user (in the shuffle model, batches of users are mixed by a shuffler), or nobody.
    horizon : int, default=10_000
        Public: expected number of rounds, for the noise of the central model; used only if
        ``update_every`` is a number. A longer run goes on in phases of twice the length, at no
        cost in privacy.
    data_norm : float, default=1.0
        Public: features of the chosen arms are clipped to this l2 norm.
    bounds_y : (float, float), default=(-1, 1)
        Public range (low, high) to which rewards are clipped.
    reward_offset : float, default=0.0
        Public expected reward of a zero feature, subtracted from all rewards. With a constant
        among the features, the middle of ``bounds_y`` is best: less is left to be hidden.
    coef_norm : float, default=1.0
        Assumed bound on the l2 norm of the weights, with features scaled into the unit ball and
        rewards, the offset subtracted, into [-1, 1]. With asymptotic width nothing is assumed:
        it is the least spread of the prior, which grows if the released sums say so.
    shared : bool, default=True
        False if contexts are features of the round alone, with weights for each action.
    n_actions : int, default=None
        Number of actions; needed with ``shared=False``.
    alpha : float, default=1.0
        Ridge penalty, features in the unit ball.
    width : {"asymptotic", "certified"}, default="asymptotic"
        Width of the confidence bounds. "asymptotic" is one posterior standard deviation, with the
        exact distribution of the privacy noise. "certified" is proved to contain the mean rewards
        of all arms and rounds (without privacy, the textbook's ellipsoid), and has several times
        the regret.
    confidence_level : float in (0, 1), default=0.95
        Confidence level of the certified region, over all rounds together.
    bonus_scale : float or "auto", default="auto"
        Public factor of the width; 0 is greedy, and above 1 explores more. "auto" draws the
        absolute value of a normal variable of standard deviation 0.75 in each round, for private
        sums of asymptotic width. Else it is 1. Between two reads nothing changes, so that a fixed
        factor would play one arm all the time. It might not come back to an arm whose estimate is
        too low.
    update_every : int or "auto", default="auto"
        Public number of rounds between updates. "auto" is 1 without privacy, else the updates come
        after 20, 40, 60, ... rounds, and from 400 on after 1.05 times as many each; in the shuffle
        and aggregate models, after batches of 200 users, and from 670 on after 1.3 times as many
        each.
    mechanism : {"auto", "factor", "tree", "amplified", "shared-sum"}, default="auto"
        How the sums are made. In the central model it is the square-root factorisation ("auto"), or
        binary tree (less memory, more noise). The other models have one mechanism each.
    channel : {"auto", "gaussian", "codebook"}, default="auto"
        What users send in the local model: moments with Gaussian noise, or an index of a public
        codebook, which is pure (``delta=0``). "auto" takes the one of less noise.
    max_visits : int or None, default=None
        Public: the guarantee is that of a person, who is learned from in at most so many rounds and
        at most once between two changes of the policy; `update` needs ``users``. None protects
        single rounds: whoever comes twice is two users.
    window : {"auto", None}, default="auto"
        "auto" learns from the newest rounds that agree with each other, so that the policy follows
        a world that changes. It compares sums that are released in any case and costs no privacy.
        None learns from all rounds, as do exact sums and a certified width.
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Attributes
    ----------
    n_rounds_ : int
        Rounds that `update` has taken in.
    n_actions_ : int
    n_features_in_ : int
    propensities_ : ndarray of shape (n_rounds,)
        Probability of each action of the last `act`, given its context: of the random bonus, and
        before the first read of the sums, when all actions are equally likely.
    changes_ : list of int
        Numbers of rounds at which the released sums said that the world had changed.
    privacy_report_ : PrivacyReport
        Streams that were opened, one a phase, and their price.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy when one user's features and reward
    are replaced, by Gaussian DP. In the central model it is joint: it protects a user from all the
    others, their actions included, not from whoever sees the own action. Released: noisy running
    sums of (r phi, phi phi') at public times, which no user enters twice. In the local and shuffle
    models the user picks the action on the own device, and sends no more than one noisy report:
    with the codebook channel one index, whose price rests on one exact integer draw (delta = 0).
    Public: the times of the reads, the number of rounds and all parameters.

    References
    ----------
    Y. Abbasi-Yadkori, D. Pal and C. Szepesvari (2011). Improved algorithms for linear stochastic
    bandits. NeurIPS.
    S. Vaswani, A. Mehrabian, A. Durand and B. Kveton (2020). Old dog learns new tricks: randomized
    UCB for bandit problems. AISTATS.
    A. Bifet and R. Gavalda (2007). Learning from time-changing data with adaptive windowing. SDM.
    R. Shariff and O. Sheffet (2018). Differentially private contextual linear bandits. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.bandits import LinUCB
    >>> rng = np.random.RandomState(0)
    >>> contexts = rng.normal(size=(5_000, 4, 3)) / 3.0
    >>> means = contexts @ [0.5, -0.5, 0.0]
    >>> policy = LinUCB(epsilon=1.0, delta=1e-6, random_state=0)
    >>> for start in range(0, 5_000, 20):
    ...     rounds = slice(start, start + 20)
    ...     actions = policy.act(contexts[rounds])
    ...     rewards = means[rounds][np.arange(20), actions] + rng.uniform(-0.5, 0.5, size=20)
    ...     _ = policy.update(contexts[rounds], actions, rewards)
    >>> bool((policy.act(contexts) == means.argmax(axis=1)).mean() > 0.7)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **RunningSumsPolicy._parameter_constraints,
        "channel": [StrOptions({"auto", "gaussian", "codebook"})],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "width": [StrOptions({"certified", "asymptotic"})],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "bonus_scale": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        privacy: PrivacyModel = "central",
        horizon: int = 10_000,
        data_norm: float | str = 1.0,
        bounds_y: Any = (-1.0, 1.0),
        reward_offset: float = 0.0,
        coef_norm: float = 1.0,
        shared: bool = True,
        n_actions: int | None = None,
        alpha: Any = 1.0,
        width: str = "asymptotic",
        confidence_level: float = 0.95,
        bonus_scale: float | str = "auto",
        update_every: int | str = "auto",
        mechanism: str | None = "auto",
        channel: str = "auto",
        max_visits: int | None = None,
        window: str | None = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.privacy = privacy
        self.horizon = horizon
        self.data_norm = data_norm
        self.bounds_y = bounds_y
        self.reward_offset = reward_offset
        self.coef_norm = coef_norm
        self.shared = shared
        self.n_actions = n_actions
        self.alpha = alpha
        self.width = width
        self.confidence_level = confidence_level
        self.bonus_scale = bonus_scale
        self.update_every = update_every
        self.mechanism = mechanism
        self.channel = channel
        self.max_visits = max_visits
        self.window = window
        self.random_state = random_state

    @property
    def rounds_until_update_(self) -> int:
        """Public number of further rounds in which the policy will not change."""
        if self._uses_sums:
            return super().rounds_until_update_
        return self._period - getattr(self, "n_rounds_", 0) % self._period

    @property
    def _uses_sums(self):
        return not self._trust.exact

    @property
    def _can_be_late(self):
        # A certified region is proved for rounds that are chosen before their rewards are known.
        return super()._can_be_late and self.width == "asymptotic"

    @property
    def _period(self):
        """Of the exact sums."""
        return 1 if self.update_every == "auto" else int(self.update_every)

    def _start(self, n_phi):
        self._reads = 0
        self._region: Region | None = None
        if self._uses_sums:
            super()._start(n_phi)
            return
        bounds = tuple(float(bound) - self.reward_offset for bound in self.bounds_y)
        self._scaling = Scaling(float(self.data_norm), bounds, False, n_phi)
        with self._accounting():
            charge(Cost(gaussian=inf), type(self).__name__)
        self._state, self._waiting = RidgeState(self._scaling.size, self.alpha), Raw()
        self._radius = self._exact_radius()
        self._report = PrivacyReport(type(self).__name__, "none", Budget(inf), True)

    @property
    def privacy_report_(self) -> Any:
        """Streams that were opened, one a phase, and their price: `PrivacyReport`."""
        return self._report if hasattr(self, "_report") else super().privacy_report_

    def _act(self, contexts, available, rng):
        n, n_actions = contexts.shape[:2]
        if self._uses_sums and self._region is None:
            return uniform(n, n_actions, available, rng)
        rows, shape = flat(contexts)
        phi = self._scaling.features(rows)
        if self._region is None:
            index = self._state.upper(phi, self._bonuses[0] * self._radius)
            return largest(index.reshape(shape), available, n), np.ones(n)
        means, widths = (part.reshape(shape) for part in self._region.bounds(phi))
        return optimistic(means, widths, self._bonuses, available, n, rng)

    def _acting(self):
        if self._region is None:
            return None
        return {
            "centre": self._region.centre.tolist(),
            "form": self._region.form.tolist(),
            "bonuses": [float(bonus) for bonus in self._bonuses],
        }

    @property
    def _bonuses(self):
        """Equally likely factors of the width."""
        if self.bonus_scale != "auto":
            return (self.bonus_scale,)
        return HALF_NORMAL if self._uses_sums and self.width == "asymptotic" else (1.0,)

    def _pay(self, n_rounds):
        if self._uses_sums:
            super()._pay(n_rounds)
        self._check_whole()

    def _update(self, rows, rewards):
        if self._uses_sums:
            super()._update(rows, rewards)
            return
        # Rewards have been clipped: only the division is left of Scaling.target.
        with self._whole():
            rewards = (rewards - self.reward_offset) / self._scaling.radius
            self._add(self._scaling.rows(rows), rewards)
            self.n_rounds_ += len(rows)

    def _widen(self, extra):
        if self._uses_sums:
            super()._widen(extra)
            return
        self._check_whole()
        with self._whole():
            self._scaling = replace(self._scaling, n_features=self._scaling.n_features + extra)
            self._waiting = Raw((np.pad(phi, ((0, 0), (0, extra))), r) for phi, r in self._waiting)
            self._state.widen(extra)

    def _read(self, equations):
        self._reads += 1

    def _learn(self, equations):
        self._region = self._make_region(equations)

    def _open_windows(self):
        if self.width == "asymptotic":  # a certified region is proved for all rounds together
            super()._open_windows()

    def _make_region(self, equations):
        if self.width == "asymptotic":
            least = self.coef_norm**2 / self._scaling.size
            equations = equations if self._max_visits is None else without_blanks(equations)
            return asymptotic(equations, least, self._gram_blocks)
        return certified(equations, self.alpha, self.coef_norm, self._failure)

    @property
    def _failure(self):
        """Of the present read: the sum of 6 / (pi k)^2 over all reads k is 1."""
        return 6.0 * (1.0 - self.confidence_level) / (np.pi * self._reads) ** 2

    def _add(self, phi, r):
        """Add rounds to the exact sums, at multiples of the period only."""
        period = self._period
        if period > 1:
            self._waiting.append((phi, r))
            done = self.n_rounds_ % period + len(phi)
            if done < period:
                return
            phi, r = (np.concatenate(part) for part in zip(*self._waiting))
            stop = len(phi) - done % period
            self._waiting = Raw([(phi[stop:], r[stop:])])
            phi, r = phi[:stop], r[:stop]
        self._state.add(phi, r)
        self._radius = self._exact_radius()

    def _exact_radius(self):
        if self.width == "asymptotic":
            return 1.0
        return self._state.radius(self.coef_norm, 1.0 - self.confidence_level)
