"""Nearly greedy between epochs."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np

from ..._compat import Interval
from .._draws import HALF_NORMAL, flat, greedy, optimistic, uniform
from ._policy import EpochPolicy, coef_posterior


class EpochGreedy(EpochPolicy):
    """Play the action of the largest prediction, but for what the predictions cannot tell.

    The first epoch is played at random. After that predictions get a random bonus of about their
    error, if the oracle knows it. Without a bonus contexts that vary enough must explore (Bastani,
    Bayati and Khosravi 2021), and do so with dense random features; with fixed arms, a greedy
    policy may never find the best one.

    Parameters
    ----------
    oracle : regressor
        A clone of it is fitted to each epoch; private or not. Or a classifier with
        ``predict_proba``, such as `LogisticRegression`, whose classes are the possible rewards: it
        predicts their mean. A reward between two classes is given to it as one of them, drawn so
        that its mean stays, and one beyond them as the last.
    schedule : {"doubling", "geometric", "fixed"}, int, sequence of int, or callable, \
            default="doubling"
        Public lengths of the epochs; see :class:`EpochSchedule`.
    exploration : float >= 0, default=1.0
        Standard deviations of the posterior of each prediction that its bonus has: times the
        absolute value of a normal variable of standard deviation 0.75, one a round. 0 is greedy;
        and oracles without a method ``posterior`` are played greedily.
    forget : bool, default=False
        Whether only the last epoch counts, as in the papers and for rewards that drift. Else the
        released sums of all epochs are pooled, which costs no privacy, if the oracle can do that:
        `LinearRegression`, `SSPRegressor` and `ReweightedRegressor` with given bounds.
    window : {"auto", None}, default="auto"
        "auto" pools the newest epochs that agree with each other, so that the policy follows a
        world that changes, if the released sums of the oracle can be compared: those of
        `SSPRegressor` with Gaussian noise. Others are not compared, and ``changes_`` raises: the
        line of `LinearRegression` clips residuals, and depends on what is played. It costs no
        privacy. An epoch is the least that can be left out, so that a change is noticed late where
        epochs double: one at round 10,000 at 16,320, and with ``schedule=1000`` at 11,000. None
        pools all epochs.
    shared : bool, default=True
        False if contexts are features of the round alone, with weights for each action.
    n_actions : int, default=None
        Number of actions; needed with ``shared=False``.
    max_visits : int or None, default=None
        Public: the guarantee is that of a person, who is learned from in at most so many rounds and
        at most once between two changes of the policy; `update` needs ``users``. None protects
        single rounds: whoever comes twice is two users. The oracle's budget is that of one fit, and
        a person pays for as many.
    random_state : None, int or RandomState, default=None
        Seed of the actions. Privacy noise is that of the oracle's own ``random_state``: secure if
        it is None, otherwise reproducible, with a new seed in every epoch.

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

    def __init__(
        self,
        oracle: Any,
        *,
        schedule: str = "doubling",
        exploration: float = 1.0,
        forget: bool = False,
        window: str | None = "auto",
        shared: bool = True,
        n_actions: int | None = None,
        max_visits: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.oracle = oracle
        self.schedule = schedule
        self.exploration = exploration
        self.forget = forget
        self.window = window
        self.shared = shared
        self.n_actions = n_actions
        self.max_visits = max_visits
        self.random_state = random_state

    _parameter_constraints: ClassVar[dict] = {
        **EpochPolicy._parameter_constraints,
        "exploration": [Interval(Real, 0, None, closed="left")],
    }

    def _learn(self, oracle, n_fitted):
        self.oracle_, self._posterior = oracle, None
        if self.exploration and hasattr(oracle, "posterior"):
            self._posterior = coef_posterior(oracle)

    def _act(self, contexts, available, rng):
        n, n_actions = contexts.shape[:2]
        if not hasattr(self, "oracle_"):
            return uniform(n, n_actions, available, rng)
        if self._posterior is None:
            return greedy(self.oracle_, contexts, available), np.ones(n)
        rows, shape = flat(contexts)
        mean, covariance = self._posterior
        widths = np.sqrt(np.einsum("ij,ij->i", rows @ covariance, rows)).reshape(shape)
        means = (rows @ mean).reshape(shape)
        return optimistic(means, widths, self.exploration * HALF_NORMAL, available, n, rng)
