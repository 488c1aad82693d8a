"""LinUCB in every trust model."""

from math import inf
from numbers import Integral, Real
from typing import ClassVar

import numpy as np

from ..._compat import Interval, StrOptions
from ..._equations._lifted import best_channel, moments_query
from ..._equations._scaling import Scaling
from ...privacy import Budget, Cost, PrivacyReport, Trust, charge
from .._base import MAX_SEED, BasePolicy
from ._devices import ServesDevices
from ._exact import RidgeState
from ._region import asymptotic, ball, certified
from ._sums import PhasedSums

# code -> paper (Shariff and Sheffet 2018): equations.design, .target -> V~, u~;  region -> C_t

READS = 200  # of the first phase, with update_every="auto"
MECHANISMS = ("factor", "tree", "amplified", "vector-sum")
BATCHES = 100  # instead, in the shuffle model: users must hide each other
FIRST_READS = 7  # at least, of a short first phase


class LinUCB(ServesDevices, BasePolicy):
    """Linear contextual bandit that takes the arm of the largest upper confidence bound.

    Under four kinds of trust: exact; sums by a trusted curator, who adds correlated noise at every
    update (joint differential privacy); or one noisy report a user, shuffled or not. The confidence
    region uses the exact law of the noise, not worst-case constants.

    Parameters
    ----------
    epsilon : float in (0, inf], default=1.0
        Privacy parameter; ``inf`` is the same as ``privacy="none"``.
    delta : float in [0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of users.
    privacy : {"none", "central", "local", "shuffle"}, default="none"
        Who adds the noise: nobody, a trusted curator, or every user, the reports of batches of
        users being mixed by a shuffler in the last case.
    horizon : int, default=10_000
        Public: expected number of rounds, for the noise of the central model. A longer run goes on
        in phases of twice the length, at no cost in privacy.
    data_norm : float, default=1.0
        Public: features of the chosen arms are clipped to this l2 norm.
    bounds_y : (float, float), default=(-1, 1)
        Public range (low, high) to which rewards are clipped.
    reward_offset : float, default=0.0
        Public expected reward of a zero feature, subtracted from all rewards. With a constant
        among the features, the middle of ``bounds_y`` is best: less is left to be hidden.
    coef_norm : float, default=1.0
        Assumed bound on the l2 norm of the weights, with features scaled into the unit ball and
        rewards, the offset subtracted, into [-1, 1].
    shared : bool, default=True
        Whether contexts hold the features of every arm; else weights are fitted for each arm.
    n_actions : int, default=None
        Needed with ``shared=False``.
    alpha : float, default=1.0
        Ridge penalty, features in the unit ball.
    width : {"certified", "asymptotic"}, default="certified"
        Of the confidence bounds. "certified" contains the mean rewards of all arms and rounds
        (without privacy, the textbook's ellipsoid); "asymptotic" is one posterior standard
        deviation, with the exact law of the privacy noise.
    confidence_level : float in (0, 1), default=0.95
        Of the certified region, over all rounds together.
    bonus_scale : float, default=1.0
        Public factor of the width; 0 is greedy, and above 1 explores more.
    update_every : int or "auto", default="auto"
        Public number of rounds between updates: 1 without privacy, a 100th of the horizon in the
        shuffle model, where they are a batch, else a 200th.
    mechanism : {"auto", "factor", "tree", "amplified", "vector-sum"}, default="auto"
        In the central model: square-root factorisation ("auto"), or binary tree (less memory, more
        noise). In the shuffle model: local noise amplified by shuffling ("auto"), or a sum of
        shares of which nothing but the noisy sum of a batch can be seen.
    channel : {"auto", "gaussian", "codebook"}, default="auto"
        What users send in the local model: moments with Gaussian noise, or an index of a public
        codebook, which is pure (``delta=0``). "auto" takes the one of less noise.
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Attributes
    ----------
    n_rounds_ : int
        Rounds that `update` has taken in.
    n_actions_ : int
    n_features_in_ : int
    propensities_ : ndarray of shape (n_rounds,)
        All ones: actions are no random choice.
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
    Public: the horizon, the number of rounds and all parameters.

    References
    ----------
    Y. Abbasi-Yadkori, D. Pal and C. Szepesvari (2011). Improved algorithms for linear stochastic
    bandits. NeurIPS.
    R. Shariff and O. Sheffet (2018). Differentially private contextual linear bandits. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.bandits import LinUCB
    >>> rng = np.random.RandomState(0)
    >>> contexts = rng.normal(size=(5_000, 4, 3)) / 3.0
    >>> means = contexts @ [0.5, -0.5, 0.0]
    >>> policy = LinUCB(privacy="central", horizon=5_000, width="asymptotic", random_state=0)
    >>> for start in range(0, 5_000, 25):
    ...     rounds = slice(start, start + 25)
    ...     actions = policy.act(contexts[rounds])
    ...     rewards = means[rounds][np.arange(25), actions] + rng.uniform(-0.5, 0.5, size=25)
    ...     _ = policy.update(contexts[rounds], actions, rewards)
    >>> bool((policy.act(contexts) == means.argmax(axis=1)).mean() > 0.8)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **BasePolicy._parameter_constraints,
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="left")],
        "privacy": [StrOptions({"none", "central", "local", "shuffle"})],
        "horizon": [Interval(Integral, 1, None, closed="left")],
        "data_norm": [Interval(Real, 0, None, closed="neither")],
        "coef_norm": [Interval(Real, 0, None, closed="neither")],
        "reward_offset": [Interval(Real, None, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "width": [StrOptions({"certified", "asymptotic"})],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "bonus_scale": [Interval(Real, 0, None, closed="left")],
        "update_every": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "mechanism": [StrOptions({"auto", *MECHANISMS})],
        "channel": [StrOptions({"auto", "gaussian", "codebook"})],
    }

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-6,
        privacy="none",
        horizon=10_000,
        data_norm=1.0,
        bounds_y=(-1.0, 1.0),
        reward_offset=0.0,
        coef_norm=1.0,
        shared=True,
        n_actions=None,
        alpha=1.0,
        width="certified",
        confidence_level=0.95,
        bonus_scale=1.0,
        update_every="auto",
        mechanism="auto",
        channel="auto",
        random_state=None,
    ):
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
        self.random_state = random_state

    @property
    def rounds_until_update_(self):
        """Public number of further rounds in which the policy will not change."""
        if not hasattr(self, "n_rounds_"):
            return self._period
        return self._period - self.n_rounds_ % self._period

    @property
    def guarantee(self):
        """What a user is promised, from what was charged: :class:`skpriv.privacy.Guarantee`."""
        if hasattr(self, "privacy_report_"):
            return self.privacy_report_.guarantee.protecting("user")
        trust = Trust.of(self.privacy, Budget(self.epsilon, self.delta))
        return trust.guarantee("user", currency="gdp")

    @property
    def _private(self):
        return self.privacy != "none" and self.epsilon != inf

    @property
    def _uses_sums(self):
        return self._private

    @property
    def _period(self):
        if self.update_every != "auto":
            return int(self.update_every)
        if not self._private:
            return 1
        return max(1, self.horizon // (BATCHES if self.privacy == "shuffle" else READS))

    def _start(self, n_phi):
        bounds = tuple(float(bound) - self.reward_offset for bound in self.bounds_y)
        self._scaling = Scaling(float(self.data_norm), bounds, False, n_phi)
        self._reads = 0
        if self._uses_sums:
            self._region = ball(self._scaling.size, self.coef_norm)
            self._sums = self._open_sums()
            self.privacy_report_ = self._sums.report
        else:
            with self._accounting():
                charge(Cost(gaussian=inf), type(self).__name__)
            self._state, self._waiting = RidgeState(self._scaling.size, self.alpha), []
            self._radius = self._exact_radius()
            self.privacy_report_ = PrivacyReport(type(self).__name__, "none", Budget(inf), True)

    @property
    def _channel(self):
        """What users send: "gaussian" or "codebook", by public numbers."""
        if self.privacy != "local" or self.channel != "auto":
            return "gaussian" if self.channel == "auto" else self.channel
        budget = Budget(self.epsilon, self.delta)
        with self._accounting():
            return best_channel("local", self._scaling, budget, self.horizon)

    def _noise_state(self):
        if self.random_state is None:
            return None
        return np.random.RandomState(self._rng.randint(MAX_SEED))

    def _open_sums(self):
        """Open the stream of the first phase: what one user may lose is charged here."""
        self._sent = self._channel  # once: later accountants do not change it
        query = moments_query(self._scaling, self._sent)
        options = {
            "privacy": self.privacy,
            "budget": Budget(self.epsilon, self.delta),
            "mechanism": None if self.mechanism == "auto" else self.mechanism,
            "name": type(self).__name__,
        }
        reads = max(FIRST_READS, -(-self.horizon // self._period))
        with self._accounting():
            return PhasedSums(query, self._period, reads, options, self._noise_state())

    def _act(self, contexts, rng):
        phi = self._scaling.features(contexts.reshape(-1, contexts.shape[-1]))
        if self._uses_sums:
            index = self._region.upper(phi, self.bonus_scale)
        else:
            index = self._state.upper(phi, self.bonus_scale * self._radius)
        actions = index.reshape(contexts.shape[:2]).argmax(axis=1)
        return actions, np.ones(len(actions))

    def _update(self, contexts, actions, rewards):
        rows, rewards = contexts[np.arange(len(actions)), actions], rewards - self.reward_offset
        if self._uses_sums:
            self._take(rows, rewards)
        else:
            # Rewards have been clipped: only the division is left of Scaling.target.
            self._add(self._scaling.rows(rows), rewards / self._scaling.radius)
        self.n_rounds_ += len(actions)

    def _take(self, rows, rewards):
        """Push rounds to the stream; only its last public read decides on the region."""
        with self._accounting():
            self._sums.reserve(len(rows) + 1)
        self._learn(self._sums.take(rows, rewards))

    def _take_reports(self, reports):
        """The same for rounds that devices have reported."""
        with self._accounting():
            self._sums.reserve(len(reports.directions) + 1)
        self._learn(self._sums.take_reports(reports))

    def _learn(self, reads):
        equations = None
        for equations in reads:
            self._reads += 1
        if equations is not None:
            self._region = self._make_region(equations)

    def _make_region(self, equations):
        if self.width == "asymptotic":
            return asymptotic(equations, self.coef_norm**2 / self._scaling.size)
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
            self._waiting = [(phi[stop:], r[stop:])]
            phi, r = phi[:stop], r[:stop]
        self._state.add(phi, r)
        self._radius = self._exact_radius()

    def _exact_radius(self):
        if self.width == "asymptotic":
            return 1.0
        return self._state.radius(self.coef_norm, 1.0 - self.confidence_level)
