"""FLIPHAT, and the references without privacy that it is compared with."""

from dataclasses import field
from math import asin, inf, log, pi, sqrt
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any

from sklearn.base import clone
from sklearn.linear_model import Lasso, LinearRegression, Ridge

import numpy as np

from ..._compat import HasMethods, Interval
from ..._parameters import ArrayLike, Count, Delta, Epsilon, Positive, parameters
from ..._stored import stored_in_policies
from ...linear_model import IHTRegressor
from .._policy._draws import uniform
from ._oracles import SELECTION_SHARE, added, trust_of
from ._policy import REFITS, EpochPolicy, EpochSchedule, Schedule

if TYPE_CHECKING:
    from ...privacy import Budget

# Regressors of the references without privacy; any other one must be registered to be saved.
for _regressor in (Lasso, LinearRegression, Ridge):
    stored_in_policies(_regressor)

# Part of the rounds by which, without privacy, a coefficient would stand out among d others.
SAMPLING_PART = 0.4


def first_epoch(budget: "Budget", n_nonzero_coefs: int, n_features: int) -> int:
    """Public length of the first epoch, which is played at random.

    Scores are about products of signs. One of m equal coefficients has a mean of c = (2 / pi)
    asin(1 / sqrt(m)) a round; m is half of those that are allowed. It stands out of the Gumbel
    noise of d scores after g log(d) / c rounds, g the scale of the noise, and of the sampling noise
    after some log(d) / c^2. A wrong choice is mended by later epochs, so that a part of the latter
    will do; the former cannot be had for less.
    """
    new, _ = added(n_nonzero_coefs, n_features)
    signal = 2.0 / pi * asin(sqrt(min(1.0, 2.0 / n_nonzero_coefs)))
    length = log(max(n_features, 3))
    rho = inf if budget.epsilon == inf else budget.rho
    scale = 2.0 * sqrt(new / (2.0 * SELECTION_SHARE * rho))
    return max(20, round(scale * length / signal + SAMPLING_PART * length / signal**2))


@stored_in_policies
@parameters
class FLIPHAT(EpochPolicy):
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

    epsilon: Epsilon = 1.0
    delta: Delta = 1e-6
    n_nonzero_coefs: Count = 10
    data_max: Positive = 1.0
    bounds_y: ArrayLike = (-1.0, 1.0)
    schedule: Schedule = "auto"
    forget: bool = False
    max_visits: Count | None = None

    @property
    def rounds_until_update_(self) -> int:
        """Public number of rounds until the present epoch closes; 1 before there is one."""
        return super().rounds_until_update_ if self._has_begun else 1

    def _make_schedule(self, n_phi: int) -> Any:
        if not isinstance(self.schedule, str) or self.schedule != "auto":
            return self.schedule
        budget = trust_of(self._split_oracle()).budget
        first = first_epoch(budget, self.n_nonzero_coefs, n_phi)
        return EpochSchedule(first=first, ratio=2.0 if self.forget else 1.5)

    def _make_oracle(self) -> Any:
        names = ("epsilon", "delta", "data_max", "n_nonzero_coefs", "bounds_y")
        given = {name: getattr(self, name) for name in names}
        # 0 says that the noise is to be reproducible; each epoch then gets a seed of its own.
        seed = None if self.random_state is None else 0
        return IHTRegressor(**given, fit_intercept=False, certificate_share=0.0, random_state=seed)


@stored_in_policies
@parameters
class EpsilonGreedy(EpochPolicy):
    """Play the best prediction of a regressor, and with some probability any action.

    Not private: the regressor is fitted again and again, at public times, to all past rounds.

    Parameters
    ----------
    regressor : regressor
        Any scikit-learn regressor, pipelines included.
    exploration : float in [0, 1], default=0.05
        Probability with which the action is drawn from all.
    schedule : str, int, sequence of int, or callable, \
            default=EpochSchedule(first=50, ratio=1.25)
        Numbers of rounds between fits; see :class:`EpochSchedule`.

    Attributes
    ----------
    oracle_ : regressor
        Fitted to all rounds up to the last epoch that closed.
    n_rounds_ : int
        Rounds that `update` has taken in.
    epoch_ : int
        Index of the present epoch.
    rounds_until_update_ : int
        Rounds until the next fit.
    propensities_ : ndarray of shape (n_rounds,)
        Probabilities of the last `act`.

    Notes
    -----
    **Privacy guarantee**: none. A regressor that is private by itself is charged in full for every
    fit, because the fits share records: use `EpochGreedy` or `SquareCB` with such a one.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from skpriv.bandits import EpsilonGreedy, LinearEnvironment, simulate
    >>> env = LinearEnvironment(n_actions=4, n_features=3)
    >>> result = simulate([EpsilonGreedy(regressor=Ridge())], env, horizon=1000, random_state=0)
    >>> result.names
    ['EpsilonGreedy']
    """

    regressor: Annotated[Any, HasMethods(["fit", "predict"])] = field(kw_only=False)
    exploration: Annotated[float, Interval(Real, 0, 1, closed="both")] = 0.05
    schedule: Schedule = REFITS

    _forgets_rows = False

    def _make_oracle(self) -> Any:
        return self.regressor

    def _choose(self, contexts: np.ndarray, available: np.ndarray | None) -> np.ndarray:
        everything = uniform(contexts, available)
        best = super()._choose(contexts, available)
        return self.exploration * everything + (1.0 - self.exploration) * best


@stored_in_policies
@parameters
class LassoBandit(EpochPolicy):
    """Greedy on a Lasso of all past rounds: the sparsity-agnostic Lasso bandit.

    Not private: it is what `FLIPHAT` is compared with. The penalty falls as
    ``2 * alpha * sqrt((4 log t + 2 log n_features) / t)``, and does not know the sparsity.

    Parameters
    ----------
    alpha : float, default=1.0
        The factor of the penalty: on the scale of the noise.
    schedule : {"doubling", "geometric", "fixed"}, int, sequence of int, or callable, \
            default=EpochSchedule(first=50, ratio=1.25)
        Numbers of rounds between fits; see :class:`EpochSchedule`.
    random_state : None, int or RandomState, default=None
        Seed of the actions of the first epoch.

    Attributes
    ----------
    oracle_ : Lasso
        Fitted to all rounds up to the last epoch that closed.
    n_rounds_ : int
        Rounds that `update` has taken in.
    epoch_ : int
        Index of the present epoch.
    rounds_until_update_ : int
        Rounds until the next fit.
    propensities_ : ndarray of shape (n_rounds,)
        Probabilities of the last `act`.

    Notes
    -----
    **Privacy guarantee**: none.

    References
    ----------
    M. Oh, G. Iyengar and A. Zeevi (2021). Sparsity-agnostic Lasso bandit. ICML.

    Examples
    --------
    >>> from skpriv.bandits import LassoBandit, SparseLinearEnvironment, simulate
    >>> env = SparseLinearEnvironment(n_features=50, n_informative=3)
    >>> result = simulate([LassoBandit(alpha=0.1)], env, horizon=2000, random_state=0)
    >>> bool(result.regret_[0, 0, -1] < 500)
    True
    """

    alpha: Positive = 1.0
    schedule: Schedule = REFITS

    _forgets_rows = False

    def _make_oracle(self) -> Any:
        return Lasso(fit_intercept=False, tol=1e-3)

    def _fresh_oracle(self, epoch: int, n_rows: int) -> Any:
        d = max(self._n_phi, 2)
        penalty = 2.0 * self.alpha * sqrt((4.0 * log(n_rows) + 2.0 * log(d)) / n_rows)
        return clone(self._frozen).set_params(alpha=penalty)
