"""References without privacy: greedy on all past rounds."""

from dataclasses import field
from math import log, sqrt
from numbers import Real
from typing import Annotated, Any

from sklearn.base import clone
from sklearn.linear_model import Lasso

from ..._compat import HasMethods, Interval
from ..._parameters import Positive, parameters
from .._draws import certain, greedy, uniform
from ._policy import EpochPolicy, Schedule
from ._schedule import REFITS


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

    _forgets = False

    def _make_oracle(self):
        return self.regressor

    def _chances(self, contexts, available):
        n, n_actions = contexts.shape[:2]
        everything = uniform(n, n_actions, available)
        if not hasattr(self, "oracle_"):
            return everything
        best = certain(greedy(self.oracle_, contexts, available), n_actions)
        return self.exploration * everything + (1.0 - self.exploration) * best


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

    _forgets = False

    def _make_oracle(self):
        return Lasso(fit_intercept=False, tol=1e-3)

    def _fresh_oracle(self, epoch, n_rows):
        d = max(self._n_phi, 2)
        penalty = 2.0 * self.alpha * sqrt((4.0 * log(n_rows) + 2.0 * log(d)) / n_rows)
        return clone(self._frozen).set_params(alpha=penalty)

    def _chances(self, contexts, available):
        n, n_actions = contexts.shape[:2]
        if not hasattr(self, "oracle_"):
            return uniform(n, n_actions, available)
        return certain(greedy(self.oracle_, contexts, available), n_actions)
