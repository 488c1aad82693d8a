"""LinUCB in every trust model."""

from numbers import Real
from typing import Annotated, Literal

import numpy as np

from ..._choices import PrivacyModel
from ..._compat import Interval, StrOptions
from ..._parameters import Channel, Level, Positive, parameters
from ...privacy import MODELS
from .._draws import HALF_NORMAL, flat, optimistic, uniform
from ._region import Region, asymptotic, ball, certified, self_normalized, without_blanks
from ._running import MECHANISMS, RunningSumsPolicy

Bonus = Annotated[float | str, Interval(Real, 0, None, closed="left"), StrOptions({"auto"})]

# code -> paper (Shariff and Sheffet 2018): equations.design, .target -> V~, u~;  region -> C_t


@parameters
class OptimisticPolicy(RunningSumsPolicy):
    """Base class of the policies with upper confidence bounds on sums; not for direct use.

    Parameters
    ----------
    coef_norm : float, default=1.0
        Assumed bound on the l2 norm of the weights, with features scaled into the unit ball and
        rewards, the offset subtracted, into [-1, 1]. With asymptotic width nothing is assumed:
        it is the least spread of the prior, which grows if the released sums say so.
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
        absolute value of a normal variable of standard deviation 0.75 in each round, with an
        asymptotic width. Else it is 1. Between two reads nothing changes, so that a fixed
        factor would play one arm all the time. It might not come back to an arm whose estimate is
        too low.
    """

    coef_norm: Positive = 1.0
    alpha: Positive = 1.0
    width: Literal["asymptotic", "certified"] = "asymptotic"
    confidence_level: Level = 0.95
    bonus_scale: Bonus = "auto"

    @property
    def _has_intercept(self):
        # A certified region is proved for weights of a bounded norm, without an intercept.
        return super()._has_intercept and self.width == "asymptotic"

    @property
    def _can_be_late(self):
        # A certified region is proved for rounds that are chosen before their rewards are known.
        return super()._can_be_late and self.width == "asymptotic"

    def _start(self, n_phi):
        self._reads = 0
        self._region: Region | None = None
        super()._start(n_phi)
        if self._trust.exact and self.width == "certified":  # the textbook's, which begins there
            self._region = ball(self._scaling.size, self.coef_norm)

    def _chances(self, contexts, available):
        n, n_actions = contexts.shape[:2]
        if self._region is None:
            return uniform(n, n_actions, available)
        rows, shape = flat(contexts)
        phi = self._scaling.features(rows)
        means, widths = (part.reshape(shape) for part in self._region.bounds(phi))
        return optimistic(means, widths, self._bonuses, available)

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
        return HALF_NORMAL if self.width == "asymptotic" else (1.0,)

    def _read(self, equations):
        self._reads += 1

    def _learn(self, equations):
        self._region = self._make_region(equations)
        self._tell(self._region.centre)

    def _open_windows(self):
        if self.width == "asymptotic":  # a certified region is proved for all rounds together
            super()._open_windows()

    def _make_region(self, equations):
        if self.width == "asymptotic":
            least = self.coef_norm**2 / self._scaling.size
            equations = equations if self._max_visits is None else without_blanks(equations)
            return asymptotic(equations, least, self._gram_blocks)
        if self._trust.exact:
            failure = 1.0 - self.confidence_level
            return self_normalized(equations, self.alpha, self.coef_norm, failure)
        return certified(equations, self.alpha, self.coef_norm, self._failure)

    @property
    def _failure(self):
        """Of the present read: the sum of 6 / (pi k)^2 over all reads k is 1."""
        return 6.0 * (1.0 - self.confidence_level) / (np.pi * self._reads) ** 2


@parameters
class LinUCB(OptimisticPolicy):
    """Linear contextual bandit that takes the arm of the largest upper confidence bound.

    Under five kinds of trust: exact; sums by a trusted curator, who adds correlated noise at every
    update (joint differential privacy); sums of batches to which all users add the noise together;
    or one noisy report a user, shuffled or not. The confidence region uses the exact distribution
    of the noise, not worst-case constants.

    Parameters
    ----------
    update_every : int or "auto", default="auto"
        Public number of rounds between updates. "auto": after 20, 40, 60, ... rounds, and from 400
        on after 1.05 times as many each; in the shuffle and aggregate models, after batches of 200
        users, and from 670 on after 1.3 times as many each.
    channel : {"auto", "gaussian", "codebook"}, default="auto"
        What users send in the local and shuffle models: moments with Gaussian noise, or an index of
        a codebook, which is pure. "auto" takes the one of less noise. A report that is shuffled has
        never more noise than one that is not.
    window : {"auto", None}, default="auto"
        "auto" learns from the newest rounds that agree with each other, so that the policy follows
        a world that changes. It compares sums that are released in any case and costs no privacy.
        None learns from all rounds, as does a certified width.
    fit_intercept : bool, default=True
        Whether to fit an intercept, the same for all actions, which need not be among the features.
        It is fitted with ``shared=True``, an asymptotic width and without ``max_visits``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_phi,)
        Weights of the features, in the units of the rewards, as of the last read.
    intercept_ : float
        Constant part of the mean reward. Both are there after a read of the sums.
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

    privacy: Annotated[PrivacyModel, StrOptions(MODELS.keys())] = "central"
    mechanism: Annotated[str, StrOptions({"auto", *MECHANISMS})] = "auto"
    channel: Channel = "auto"
    window: Literal["auto"] | None = "auto"
    fit_intercept: bool = True
