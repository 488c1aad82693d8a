"""Nearly greedy between epochs, with the user's oracle or with iterative hard thresholding."""

from math import asin, inf, log, pi, sqrt
from numbers import Real
from typing import Annotated, Any

import numpy as np

from ..._compat import Interval
from ..._parameters import ArrayLike, Count, Positive, parameters
from ...linear_model import IHTRegressor
from .._draws import HALF_NORMAL, certain, flat, greedy, optimistic, uniform
from .._report import trust_of
from ._policy import SELECTION_SHARE, EpochPolicy, OraclePolicy, Schedule, added, coef_posterior
from ._schedule import EpochSchedule

SAMPLING_PART = 0.4  # of the rounds that would tell a coefficient from d others without privacy
# of the form that forgets:
FORGETFUL_FIRST = (
    4.0  # rounds of the first epoch, for every non-zero coefficient and unit of log(n_features)
)
MU = 0.8  # Gaussian budget, with more of which the first epoch may be shorter


class PlaysGreedily:
    """Mixin of policies that play the largest prediction, with a bonus where there is a posterior.

    Attributes
    ----------
    exploration : float
        Standard deviations of the posterior that the bonus has.
    """

    exploration: float = 0.0
    _posterior: Any

    def _learn(self, oracle, n_fitted):
        self.oracle_, self._posterior = oracle, None
        if self.exploration and hasattr(oracle, "posterior"):
            self._posterior = coef_posterior(oracle)

    def _chances(self, contexts, available):
        n, n_actions = contexts.shape[:2]
        if not hasattr(self, "oracle_"):
            return uniform(n, n_actions, available)
        if self._posterior is None:
            return certain(greedy(self.oracle_, contexts, available), n_actions)
        rows, shape = flat(contexts)
        mean, covariance = self._posterior
        widths = np.sqrt(np.einsum("ij,ij->i", rows @ covariance, rows)).reshape(shape)
        means = (rows @ mean).reshape(shape)
        return optimistic(means, widths, self.exploration * HALF_NORMAL, available)


@parameters
class EpochGreedy(PlaysGreedily, OraclePolicy):
    """Play the action of the largest prediction, but for what the predictions cannot tell.

    The first epoch is played at random. After that predictions get a random bonus of about their
    error, if the oracle knows it. Without a bonus contexts that vary enough must explore (Bastani,
    Bayati and Khosravi 2021), and do so with dense random features; with fixed arms, a greedy
    policy may never find the best one.

    Parameters
    ----------
    exploration : float >= 0, default=1.0
        Standard deviations of the posterior of each prediction that its bonus has: times the
        absolute value of a normal variable of standard deviation 0.75, one a round. 0 is greedy;
        and oracles without a method ``posterior`` are played greedily.

    Attributes
    ----------
    oracle_ : regressor
        Fitted to the last epoch that closed, or pooled from all of them.
    n_rounds_ : int
        Rounds that `update` has taken in.
    epoch_ : int
        Index of the present epoch.
    rounds_until_update_ : int
        Rounds until it closes.
    propensities_ : ndarray of shape (n_rounds,)
        Probabilities of the last `act`.
    changes_ : list of int
        Numbers of rounds at which the released fits said that the world had changed.
    privacy_report_ : EpochsReport
        What the closed epochs cost.

    See Also
    --------
    FLIPHAT : With the sparse private regressor.

    Notes
    -----
    **Privacy guarantee**: that of one fit of the oracle, as joint differential privacy (local, if
    the oracle is local): every user's row enters exactly one fit, and the actions of other users
    are computed from the answers. The number of rounds and the schedule are public.

    References
    ----------
    S. Chakraborty, S. Roy and D. Basu (2024). FLIPHAT: joint differential privacy for high
    dimensional sparse linear bandits. Sections 5 and 6.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.bandits import EpochGreedy, LinearEnvironment, simulate
    >>> from skpriv.linear_model import SSPRegressor
    >>> oracle = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), epsilon=1.0, random_state=0)
    >>> env = LinearEnvironment(n_actions=4, n_features=3)
    >>> result = simulate([EpochGreedy(oracle=oracle)], env, horizon=4000, random_state=0)
    >>> result.privacy_reports[0][0].guarantee
    Guarantee(epsilon=1, delta=1e-06, model='central', unit='user')
    """

    exploration: Annotated[float, Interval(Real, 0, None, closed="left")] = 1.0


def first_epoch(budget, n_nonzero_coefs, n_features):
    """Public length of the first epoch, which is played at random.

    Scores are about products of signs. Of m equal coefficients one has a mean of
    c = (2 / pi) asin(1 / sqrt(m)) a round; m is half of those that are allowed. It stands out of
    the Gumbel noise of d scores after g log(d) / c rounds, g the scale of the noise, and of the
    sampling noise after some log(d) / c^2. A wrong choice is mended by later epochs, so that a part
    of the latter will do; the former cannot be had for less.
    """
    new, _ = added(n_nonzero_coefs, n_features)
    signal = 2.0 / pi * asin(sqrt(min(1.0, 2.0 / n_nonzero_coefs)))
    length = log(max(n_features, 3))
    rho = inf if budget.epsilon == inf else budget.rho
    scale = 2.0 * sqrt(new / (2.0 * SELECTION_SHARE * rho))
    return max(20, round(scale * length / signal + SAMPLING_PART * length / signal**2))


def forgetful_first_epoch(budget, n_nonzero_coefs, n_features):
    """The same where every epoch starts afresh.

    Selection takes some s log(d) records. With a large budget the noise is small beside the
    rewards' own, and fewer will do; with a small one, a longer epoch would cost more regret than
    it saves.
    """
    length = FORGETFUL_FIRST * n_nonzero_coefs * log(max(n_features, 3))
    mu = inf if budget.epsilon == inf else budget.mu
    return max(20, round(length * min(1.0, max(MU / max(mu, 1e-9), 1.0 / FORGETFUL_FIRST))))


@parameters
class FLIPHAT(PlaysGreedily, EpochPolicy):
    """FLIPHAT: greedy sparse linear bandit under joint differential privacy.

    `EpochGreedy` with :class:`~skpriv.linear_model.IHTRegressor`: epochs of growing length, each
    fitted by private iterative hard thresholding, with a guarantee that holds. An epoch goes on
    from the released coefficients of the last one: it keeps the largest, and selects some more by
    what they leave of the rewards, which are smaller, and so is the noise.

    Parameters
    ----------
    epsilon : float in (0, inf], default=1.0
        Privacy parameter; ``inf`` is the same as no privacy.
    delta : float in (0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of users.
    n_nonzero_coefs : int, default=10
        Number of features to select: at least as many as matter.
    data_max : float, default=1.0
        Public: every feature is clipped to [-data_max, data_max]. The noise is proportional to it,
        so that a bound well below the largest value costs little and gains much.
    bounds_y : (float, float), default=(-1, 1)
        Public range (low, high) to which rewards are clipped.
    schedule : {"auto", "doubling", "geometric", "fixed"}, int, sequence of int, or callable, \
            default="auto"
        Public lengths of the epochs; see :class:`EpochSchedule`. "auto": each 1.5 times as long as
        the one before; the first, which is played at random, is the shorter the larger the budget,
        and as long as the number of features and ``n_nonzero_coefs`` ask for. "doubling" is that
        of the paper.
    forget : bool, default=False
        Whether each epoch starts afresh, as in the paper. "auto" then doubles.
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Attributes
    ----------
    oracle_ : IHTRegressor
        Fitted to the last epoch that closed, from the one before on.
    n_rounds_ : int
        Rounds that `update` has taken in.
    epoch_ : int
        Index of the present epoch.
    rounds_until_update_ : int
        Rounds until it closes.
    propensities_ : ndarray of shape (n_rounds,)
        Probabilities of the last `act`: 1 after the first epoch, which is played at random.
    privacy_report_ : EpochsReport
        What the closed epochs cost.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-joint differential privacy. Every user's row enters
    exactly one fit, and the actions of other users are computed from the answers. The number of
    rounds, the schedule and all bounds are public. The guarantee of the published algorithm does
    not hold for unbounded features, and its noise lacks a factor of at least 2 data_max.

    References
    ----------
    S. Chakraborty, S. Roy and D. Basu (2024). FLIPHAT: joint differential privacy for high
    dimensional sparse linear bandits. Algorithm 2.

    Examples
    --------
    >>> from skpriv.bandits import FLIPHAT, SparseLinearEnvironment, simulate
    >>> env = SparseLinearEnvironment(n_features=100, n_informative=3)
    >>> policy = FLIPHAT(epsilon=2.0, delta=1e-3, data_max=1.5, bounds_y=(-2.5, 2.5))
    >>> result = simulate([policy], env, horizon=4000, random_state=0)
    >>> print(result.privacy_reports[0][0].guarantee)
    (epsilon=2, delta=0.001) joint differential privacy (trusted curator), replacing one user,
    who is in one round: context, action and reward; the numbers of rounds are public
    """

    epsilon: Annotated[float, Interval(Real, 0, None, closed="right")] = 1.0
    delta: Annotated[float, Interval(Real, 0, 1, closed="left")] = 1e-6
    n_nonzero_coefs: Count = 10
    data_max: Positive = 1.0
    bounds_y: ArrayLike = (-1.0, 1.0)
    schedule: Schedule = "auto"
    forget: bool = False
    max_visits: Count | None = None

    @property
    def rounds_until_update_(self) -> int:
        """Public number of rounds until the present epoch closes; 1 before there is one."""
        return 1 if not hasattr(self, "n_rounds_") else super().rounds_until_update_

    def _make_schedule(self, n_phi):
        if not isinstance(self.schedule, str) or self.schedule != "auto":
            return self.schedule
        budget = trust_of(self._split_oracle()).budget
        length, ratio = (forgetful_first_epoch, 2.0) if self.forget else (first_epoch, 1.5)
        return EpochSchedule(first=length(budget, self.n_nonzero_coefs, n_phi), ratio=ratio)

    def _make_oracle(self):
        return IHTRegressor(
            epsilon=self.epsilon,
            delta=self.delta,
            data_max=self.data_max,
            n_nonzero_coefs=self.n_nonzero_coefs,
            bounds_y=self.bounds_y,
            fit_intercept=False,
            certificate_share=0.0,
            # Not None only says that the noise is reproducible: each epoch has a seed of its own.
            random_state=None if self.random_state is None else 0,
        )
