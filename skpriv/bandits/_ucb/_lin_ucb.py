"""LinUCB and LinSquareCB, in every trust model."""

from math import sqrt
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from scipy.linalg import block_diag

from ..._compat import StrOptions
from ..._parameters import (
    Channel, Level, NotNegative, Positive, PrivacyModel, attribute, parameters,
)  # fmt: skip
from ..._stored import stored_in_policies
from ...privacy import MODELS
from .._policy._draws import HALF_NORMAL, Region, flat, inverse_gap, optimistic
from ._running import RunningSumsPolicy
from ._sums import ball, certified, diagonal_blocks, self_normalized, steadied, without_blanks

if TYPE_CHECKING:
    from ..._estimation._moments import NormalEquations

Factor = NotNegative | Literal["auto"]

# code -> paper (Shariff and Sheffet 2018): equations.design, .target -> V~, u~;  region -> C_t


@parameters
class UnderAnyTrust(RunningSumsPolicy):
    """Base class of the policies whose sums anybody may make; not for direct use.

    Parameters
    ----------
    update_every : int or "auto", default="auto"
        Public number of rounds between updates. "auto": after 20, 40, 60, ... rounds, and from 400
        on after 1.05 times as many each; without privacy also after each of the first 40, and
        with a certified width after every round; in the shuffle and aggregate models, after batches
        of 200 users, and from 670 on after 1.3 times as many each.
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
        It is fitted with ``shared=True``, an asymptotic width, and without ``max_visits`` and
        ``reward_offset``.
    start : array-like of shape (n_phi + 1,) or None, default=None
        Public weights, and the intercept after them, in the units of the rewards: after public logs
        a policy with ``privacy="none"`` has ``np.append(policy.coef_, policy.intercept_)``, and so
        has a regressor that was fitted to the features of the actions that were played. They
        are played from the first round on, and the prior has them as its mean and as much spread as
        the released sums ask for, at no cost in privacy. It needs an asymptotic width.
    """

    privacy: Annotated[PrivacyModel, StrOptions(MODELS.keys())] = "central"
    channel: Channel = "auto"
    window: Literal["auto"] | None = "auto"
    fit_intercept: bool = True
    start: Any = None


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
    bonus_scale: Factor = "auto"

    def _start(self, n_phi: int) -> None:
        super()._start(n_phi)
        if self._trust.exact and self._certified:  # the textbook's region begins there
            self._region = ball(self._scaling.size, self.coef_norm)

    def _choose(self, contexts: np.ndarray, available: np.ndarray | None) -> np.ndarray:
        return optimistic(self._region, contexts, available, self._bonuses, self._features)

    def _rule(self) -> dict[str, Any]:
        form = block_diag(*self._region.blocks).tolist()
        return {"form": form, "bonuses": [float(bonus) for bonus in self._bonuses]}

    @property
    def _bonuses(self) -> Any:
        """Equally likely factors of the width."""
        if self.bonus_scale != "auto":
            return (self.bonus_scale,)
        return (1.0,) if self._certified else HALF_NORMAL

    def _make_region(self, equations: "NormalEquations") -> Region:
        if not self._certified:
            if self._max_visits is not None:
                equations = without_blanks(equations)
            if self.shared:
                equations = steadied(equations, self._scaling.n_features)
            return self._posterior(equations, self.coef_norm)
        failure = 1.0 - self.confidence_level
        if self._trust.exact:
            return self_normalized(equations, self.alpha, self.coef_norm, failure)
        failure = 6.0 * failure / (np.pi * self._reads) ** 2  # adds up to that over all reads
        return certified(equations, self.alpha, self.coef_norm, failure)


@stored_in_policies
@parameters
class LinUCB(UnderAnyTrust, OptimisticPolicy):
    """Linear contextual bandit that takes the arm of the largest upper confidence bound.

    Under five kinds of trust: exact; sums by a trusted curator, who adds correlated noise at every
    update (joint differential privacy); sums of batches to which all users add the noise together;
    or one noisy report a user, shuffled or not. The confidence region uses the exact distribution
    of the noise, not worst-case constants.

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
    >>> for start in range(0, 5_000, 250):
    ...     rounds = slice(start, start + 250)
    ...     actions = policy.act(contexts[rounds])
    ...     rewards = means[rounds][np.arange(250), actions] + rng.uniform(-0.5, 0.5, size=250)
    ...     _ = policy.update(contexts[rounds], actions, rewards)
    >>> bool((policy.act(contexts) == means.argmax(axis=1)).mean() > 0.7)
    True
    """


@stored_in_policies
@parameters
class LinSquareCB(UnderAnyTrust):
    """SquareCB on running sums: play an action the less often, the worse its predicted reward.

    All rounds are kept as noisy running sums, and weights are fitted to them with a shrinkage that
    is chosen from the released sums and the known law of their noise. Every action keeps a positive
    probability, which is known exactly: logs of this policy can be used to evaluate others.

    Parameters
    ----------
    delta : float in [0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of rounds.
    gap_weight : float or "auto", default="auto"
        An action that is expected to earn g less than the best one of K is played with probability
        1 / (K + gap_weight sqrt(K) g / s), s the root mean square error of the expectations. "auto"
        is 45, and 30 without privacy, where s does not count the error of the intercept.

    Attributes
    ----------
    coef_ : ndarray of shape (n_phi,)
        Weights of the features, in the units of the rewards, as of the last read.
    intercept_ : float
        Constant part of the mean reward.
    n_rounds_ : int
        Rounds that `update` has taken in.
    n_actions_ : int
    n_features_in_ : int
    propensities_ : ndarray of shape (n_rounds,)
        Probability, given its context, of each action of the last `act`.
    changes_ : list of int
        Numbers of rounds at which the released sums said that the world had changed.
    privacy_report_ : PrivacyReport
        Streams that were opened, one a phase, and their price.

    See Also
    --------
    LinUCB : On the same sums; often less regret with few arms, and no exploration of all arms.
    SquareCB : With any private regressor, fitted to epochs.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy when one user's features and reward
    are replaced, by Gaussian DP. In the central model it is joint: it protects a user from all the
    others, their actions included, not from whoever sees the own action. Released: noisy running
    sums of (r phi, phi phi', r^2) at public times, which no user enters twice. In the local and
    shuffle models the user draws the action on the own device, and sends no more than one noisy
    report: with the codebook channel one index, whose price rests on one exact integer draw (delta
    = 0). Public: the times of the reads, the number of rounds and all parameters.

    The weight follows Foster and Rakhlin (2020), who take the square root of K over the squared
    error of the oracle; their constant is about 1, and was worse in all settings that were tried.

    References
    ----------
    D. Foster and A. Rakhlin (2020). Beyond UCB: optimal and efficient contextual bandits with
    regression oracles. ICML.

    Examples
    --------
    >>> from skpriv.bandits import LinearEnvironment, LinSquareCB, RandomPolicy, simulate
    >>> policies = [LinSquareCB(epsilon=2.0, random_state=0), RandomPolicy()]
    >>> result = simulate(policies, LinearEnvironment(), horizon=1_000, random_state=0)
    >>> bool(result.regret_[0, 0, -1] < 0.4 * result.regret_[1, 0, -1])
    True
    """

    gap_weight: Factor = "auto"

    # Of the expectations, for rewards in [-1, 1]; of a start it is not known.
    _error: float = attribute(1.0)

    def _make_region(self, equations: "NormalEquations") -> Region:
        """Fit to the last read; its error is that of the predictions for the rows that were played.

        All of that is released, or follows from what is: the mean square of phi'(centre - theta)
        over the rows is the trace of the posterior covariance times their noisy Gram matrix.
        """
        fit = self._posterior(equations)
        d = self._scaling.n_features
        gram = equations.gram[:d, :d]
        forms = fit.blocks[:, :d, :d]
        seen = (diagonal_blocks(gram, len(forms)) * forms).sum()
        # At least the error of rows of the mean length in the direction that is known best.
        least = np.linalg.eigvalsh(forms).min() * np.trace(gram)
        self._error = sqrt(max(seen, least, 1e-30) / equations.n)
        return fit

    def _choose(self, contexts: np.ndarray, available: np.ndarray | None) -> np.ndarray:
        rows, shape = flat(contexts)
        means = (self._features(rows) @ self._region.centre).reshape(shape)
        return inverse_gap(means, self._weight(shape[1]), available)

    def _weight(self, n_actions: int) -> float:
        """Factor of the gap between an action and the best one of so many."""
        weight = self.gap_weight
        if weight == "auto":
            weight = 30.0 if self._trust.exact else 45.0
        return weight * sqrt(n_actions) / self._error

    def _rule(self) -> dict[str, Any]:
        return {"weight": self._weight(self.n_actions_)}
