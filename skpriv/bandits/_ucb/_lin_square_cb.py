"""Inverse-gap weighting on running sums, in every trust model."""

from math import sqrt
from numbers import Real
from typing import Annotated, Literal

import numpy as np

from ..._choices import PrivacyModel
from ..._compat import Interval, StrOptions
from ..._parameters import Channel, parameters
from ...privacy import MODELS
from .._draws import flat, inverse_gap, uniform
from ._region import asymptotic
from ._running import MECHANISMS, RunningSumsPolicy

GAP_WEIGHT = 30.0


@parameters
class LinSquareCB(RunningSumsPolicy):
    """SquareCB on running sums: play an action the less often, the worse its predicted reward.

    All rounds are kept as noisy running sums, and weights are fitted to them with a shrinkage that
    is chosen from the released sums and the known law of their noise. Every action keeps a positive
    probability, which is known exactly: logs of this policy can be used to evaluate others.

    Parameters
    ----------
    delta : float in [0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of rounds.
    gap_weight : float, default=30.0
        An action that is expected to earn g less than the best one of K is played with probability
        1 / (K + gap_weight sqrt(K) g / s), s the root mean square error of the expectations.
    update_every : int or "auto", default="auto"
        Public number of rounds between updates. "auto": after 20, 40, 60, ... rounds, and from 400
        on after 1.05 times as many each; in the shuffle model, after growing batches, as `LinUCB`.
    channel : {"auto", "gaussian", "codebook"}, default="auto"
        What users send in the local and shuffle models: moments with Gaussian noise, or an index of
        a codebook, which is pure. "auto" takes the one of less noise. A report that is shuffled has
        never more noise than one that is not.
    window : {"auto", None}, default="auto"
        "auto" learns from the newest rounds that agree with each other, so that the policy follows
        a world that changes. It compares sums that are released in any case and costs no privacy.
        None learns from all rounds.
    fit_intercept : bool, default=True
        Whether to fit an intercept, the same for all actions, which need not be among the features.
        It is fitted with ``shared=True`` and without ``max_visits``.

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
    >>> result = simulate(policies, LinearEnvironment(), horizon=5_000, random_state=0)
    >>> bool(result.regret_[0, 0, -1] < 0.2 * result.regret_[1, 0, -1])
    True
    """

    privacy: Annotated[PrivacyModel, StrOptions(MODELS.keys())] = "central"
    mechanism: Annotated[str, StrOptions({"auto", *MECHANISMS})] = "auto"
    channel: Channel = "auto"
    window: Literal["auto"] | None = "auto"
    fit_intercept: bool = True
    gap_weight: Annotated[float, Interval(Real, 0, None, closed="left")] = GAP_WEIGHT

    def _learn(self, equations):
        """Fit to the last read; its error is that of the predictions for the rows that were played.

        All of that is released, or follows from what is: the mean square of phi'(centre - theta)
        over the rows is the trace of the posterior covariance times their noisy Gram matrix.
        """
        fit = asymptotic(equations, blocks=self._gram_blocks)
        self._theta = fit.centre
        square = max(0.0, float((equations.gram * fit.form).sum()) / equations.n)
        # Not below what rows of the mean length have in the best known direction.
        least = np.linalg.eigvalsh(fit.form)[0] * max(np.trace(equations.gram), 0.0) / equations.n
        self._error = sqrt(max(square, least, 1e-30))
        self._tell(self._theta)

    def _chances(self, contexts, available):
        n, n_actions = contexts.shape[:2]
        if not hasattr(self, "_theta"):
            return uniform(n, n_actions, available)
        rows, shape = flat(contexts)
        means = (self._scaling.features(rows) @ self._theta).reshape(shape)
        return inverse_gap(means, self._weight(n_actions), available)

    def _weight(self, n_actions):
        """What a gap weighs, by which an action looks worse than the best of so many."""
        return self.gap_weight * sqrt(n_actions) / self._error

    def _acting(self):
        if not hasattr(self, "_theta"):
            return None
        return {"centre": self._theta.tolist(), "weight": float(self._weight(self.n_actions_))}
