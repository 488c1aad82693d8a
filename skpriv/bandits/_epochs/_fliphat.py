"""Forgetful epochs of private iterative hard thresholding."""

from math import inf, log
from numbers import Real
from typing import Any, ClassVar

from ..._compat import Interval
from ...linear_model import IHTRegressor
from ...privacy import Budget
from ._epoch_greedy import EpochGreedy
from ._policy import EpochPolicy
from ._schedule import EpochSchedule

FIRST = 4.0  # rounds of the first epoch, for every non-zero coefficient and unit of log(n_features)
MU = 0.8  # Gaussian budget, with more of which the first epoch may be shorter


def first_epoch(budget, n_nonzero_coefs, n_features):
    """Public length of the first epoch, which is played at random.

    Selection takes some s log(d) records. With a large budget the noise is small beside the
    rewards' own, and fewer will do; with a small one, a longer epoch would cost more regret than
    it saves.
    """
    length = FIRST * n_nonzero_coefs * log(max(n_features, 3))
    mu = inf if budget.epsilon == inf else budget.mu
    return max(20, round(length * min(1.0, max(MU / max(mu, 1e-9), 1.0 / FIRST))))


class FLIPHAT(EpochGreedy):
    """Greedy sparse linear bandit under joint differential privacy, in high dimension.

    `EpochGreedy` with :class:`~skpriv.linear_model.IHTRegressor`: forgetful epochs of growing
    length, each fitted by private iterative hard thresholding, with a guarantee that holds.

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
        Public lengths of the epochs; see :class:`EpochSchedule`. "auto": each twice as long as the
        one before; the first, which is played at random, is the shorter the larger the budget, and
        as long as the number of features and ``n_nonzero_coefs`` ask for.
    shared : bool, default=True
        False if contexts are features of the round alone, with weights for each action.
    n_actions : int, default=None
        Number of actions; needed with ``shared=False``.
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Attributes
    ----------
    oracle_ : IHTRegressor
        Fitted to the last epoch that closed.
    n_rounds_ : int
        Rounds that `update` has taken in.
    epoch_ : int
        Index of the present epoch.
    rounds_until_update_ : int
        Rounds until it closes.
    propensities_ : ndarray of shape (n_rounds,)
        Of the last `act`: 1 after the first epoch, which is played at random.
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

    _parameter_constraints: ClassVar[dict] = {
        **{
            name: constraint
            for name, constraint in EpochPolicy._parameter_constraints.items()
            if name not in ("oracle", "forget")
        },
        **{
            name: IHTRegressor._parameter_constraints[name]
            for name in ("epsilon", "delta", "n_nonzero_coefs")
        },
        "data_max": [Interval(Real, 0, None, closed="neither")],  # "auto" needs an outer bound
    }

    exploration, forget = 0.0, True  # no posterior, and supports cannot be added

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        n_nonzero_coefs: int = 10,
        data_max: Any = 1.0,
        bounds_y: Any = (-1.0, 1.0),
        schedule: Any = "auto",
        shared: bool = True,
        n_actions: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_nonzero_coefs = n_nonzero_coefs
        self.data_max = data_max
        self.bounds_y = bounds_y
        self.schedule = schedule
        self.shared = shared
        self.n_actions = n_actions
        self.random_state = random_state

    @property
    def rounds_until_update_(self) -> int:
        """Public number of rounds until the present epoch closes; 1 before there is one."""
        return 1 if not hasattr(self, "n_rounds_") else super().rounds_until_update_

    def _make_schedule(self, n_phi):
        if not isinstance(self.schedule, str) or self.schedule != "auto":
            return self.schedule
        budget = Budget(float(self.epsilon), float(self.delta))
        return EpochSchedule(first=first_epoch(budget, self.n_nonzero_coefs, n_phi), ratio=2.0)

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
