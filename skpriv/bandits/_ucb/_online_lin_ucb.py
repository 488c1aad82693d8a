"""LinUCB on an online learner of the weights, and Maler, one for losses of unknown curvature."""

from math import ceil, hypot, log, log2, sqrt
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import logsumexp

from ..._linalg import nearest_in_ball, psd_part, quadratic_forms
from ..._parameters import parameters
from ..._stored import stored_in_policies
from ...privacy import Answer
from ._lin_ucb import Factor, OptimisticPolicy
from .._policy._draws import Region
from ._sums import GrowingTimes, asymptotic, ball

if TYPE_CHECKING:
    from ..._contracts import Array
    from ..._estimation._moments import NormalEquations

# code -> paper (Wang, Lu and Zhang 2019, "Adaptivity and optimality"):
#   rates -> eta_i, convex_rate -> eta^c, diameter -> D, gradient_bound -> G


@stored_in_policies
class Maler:
    """Aggregate gradient-descent and Newton experts for many rates, by tilted weights.

    The regret is O(sqrt(T)) for convex losses, O(log T) for strongly convex and O(d log T) for
    exponentially concave ones, without knowing which they are. The domain is a centred ball.

    Parameters
    ----------
    size : int
        Dimension.
    radius : float
        Radius of the domain.
    gradient_bound : float
        Bound on the norm of the gradients; longer ones are clipped.
    horizon : int
        Number of steps for which the rates are set.

    Attributes
    ----------
    point : ndarray of shape (size,)
        What to play next.

    References
    ----------
    G. Wang, S. Lu and L. Zhang (2019). Adaptivity and optimality: a universal algorithm for online
    convex optimization. UAI.
    """

    def __init__(self, size: int, radius: float, gradient_bound: float, horizon: int) -> None:
        self.radius = radius
        self.bound = gradient_bound
        self.diameter = 2.0 * radius
        count = ceil(0.5 * log2(max(horizon, 2))) + 1
        index = np.arange(count)
        self.rates = 2.0**-index / (5.0 * self.diameter * gradient_bound)
        self.convex_rate = 1.0 / (2.0 * gradient_bound * self.diameter * sqrt(horizon))
        share = (1.0 + 1.0 / count) / (3.0 * (index + 1.0) * (index + 2.0))
        self._log_weights = np.log(np.concatenate([[1.0 / 3.0], share, share]))
        self._all_rates = np.concatenate([[self.convex_rate], self.rates, self.rates])
        self._experts = np.zeros((1 + 2 * count, size))
        # Newton experts: beta = min(1 / (4 G' D), 1) / 2 with G' = 7 / (25 D)  [Lemma 2]
        self._beta = 25.0 / 56.0
        start = np.eye(size) / (self._beta * self.diameter) ** 2
        self._metrics = np.repeat(start[None], count, axis=0)
        self._steps = 0
        self.point = np.zeros(size)

    def step(self, gradient: np.ndarray) -> "Maler":
        """Take in the gradient at ``point`` and move on.

        Parameters
        ----------
        gradient : ndarray of shape (size,)

        Returns
        -------
        self
        """
        self._steps += 1
        gradient = to_ball(gradient, self.bound)
        self._reweight(gradient)
        count = len(self.rates)
        convex, strong, newton = np.split(self._experts, [1, 1 + count])
        convex -= self.diameter / (self.bound * sqrt(self._steps)) * gradient
        scale = 2.0 * (self.rates * self.bound) ** 2
        pull = self.rates[:, None] * gradient + scale[:, None] * (strong - self.point)
        strong -= pull / (scale * self._steps)[:, None]
        self._newton_step(newton, gradient)
        self._experts[: 1 + count] = to_ball(self._experts[: 1 + count], self.radius)
        # Tilted average: experts weighted by weight times rate.
        tilted = np.exp(self._log_weights) * self._all_rates
        self.point = tilted @ self._experts / tilted.sum()
        return self

    def _reweight(self, gradient: np.ndarray) -> None:
        """Multiply every weight by exp(-surrogate loss) of its expert, and normalise."""
        away = self.point - self._experts
        linear = self._all_rates * (away @ gradient)
        squares = linear**2  # exponentially concave
        count = len(self.rates)
        squares[0] = (self.convex_rate * self.bound * self.diameter) ** 2
        distances = quadratic_forms(away[1 : 1 + count])
        squares[1 : 1 + count] = (self.rates * self.bound) ** 2 * distances
        self._log_weights += linear - squares
        self._log_weights -= logsumexp(self._log_weights)

    def _newton_step(self, newton: np.ndarray, gradient: np.ndarray) -> None:
        """Online Newton step of the exponentially concave surrogates, projected in its metric."""
        inner = (newton - self.point) @ gradient
        q = (self.rates + 2.0 * self.rates**2 * inner)[:, None] * gradient
        self._metrics += q[:, :, None] * q[:, None, :]
        newton -= np.linalg.solve(self._metrics, q[:, :, None])[:, :, 0] / self._beta
        for point, metric in zip(newton, self._metrics):
            point[:] = nearest_in_ball(point, metric, self.radius)


class GradientDescent:
    """Projected online gradient descent, of rate diameter / (gradient_bound sqrt(t)).

    Parameters are those of `Maler`; ``horizon`` is not needed.
    """

    def __init__(
        self, size: int, radius: float, gradient_bound: float, horizon: int | None
    ) -> None:
        self.radius = radius
        self.bound = gradient_bound
        self._steps = 0
        self.point = np.zeros(size)

    def step(self, gradient: np.ndarray) -> "GradientDescent":
        """Take in the gradient at ``point`` and move on."""
        self._steps += 1
        rate = 2.0 * self.radius / (self.bound * sqrt(self._steps))
        self.point = to_ball(self.point - rate * to_ball(gradient, self.bound), self.radius)
        return self


LEARNERS = {"maler": Maler, "ogd": GradientDescent}


def to_ball(points: np.ndarray, radius: float) -> "Array":
    """Points, the last axis of an array, projected onto the centred ball."""
    norms = np.sqrt(np.einsum("...j,...j->...", points, points))
    return points * (radius / np.maximum(norms, radius))[..., None]


# code -> paper ("Improved rate for locally differentially private linear bandits"):
#   learner.point -> theta_t,  _gram -> V~_t,  _predicted -> u~_t,  equations -> b, S

FIRST_PHASE = 8  # updates of the first phase of the anytime form


@stored_in_policies
@parameters
class OnlineLinUCB(OptimisticPolicy):
    """OnlineUCB: locally private linear bandit, by online-to-confidence-set conversion.

    An online learner predicts the weights from the noisy reports, and the bandit is optimistic
    around the weights that fit the learner's predictions best. A user sends (r phi, phi phi') with
    noise. As published it is (phi, r), whose products are far noisier.

    Parameters
    ----------
    epsilon : float in (0, inf], default=1.0
        Privacy parameter; ``inf`` is the same as no privacy.
    delta : float in (0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of users.
    learner : {"maler", "ogd"}, default="maler"
        Adapts to the curvature of the loss; or projected gradient descent, which is faster.
    anytime : bool, default=False
        Whether to start anew in phases of twice the length (Algorithm 7); the horizon is not used.
    horizon : int, default=10_000
        Public number of rounds for which the learner's rates are set.
    reward_offset : float or None, default=None
        Public expected reward of a zero feature; None is the middle of ``bounds_y``.
    coef_norm : float, default=1.0
        Assumed bound on the l2 norm of the scaled weights, and the radius of the learner's domain.
    alpha : float, default=1.0
        Ridge of the fit to the predictions. A larger one replaces the published perturbation of
        the features by further noise, which equals a ridge on average and adds variance.
    width : {"certified", "asymptotic"}, default="asymptotic"
        Width of the confidence bounds. The certified region is that of the sums: the conversion
        cannot shrink it, because the same noise is in both.
    bonus_scale : float, default=1.0
        Public factor of the width.
    update_every : int or "auto", default="auto"
        Public number of rounds between steps of the learner: "auto" is a 200th of the horizon.

    Attributes
    ----------
    coef_ : ndarray of shape (n_phi,)
        Weights of the features, in the units of the rewards, as of the last read.
    intercept_ : float
        Constant part of the mean reward, as of the last read.
    n_rounds_ : int
        Rounds that `update` has taken in.
    n_actions_ : int
    n_features_in_ : int
    propensities_ : ndarray of shape (n_rounds,)
        All ones: actions are no random choice.
    privacy_report_ : PrivacyReport
        What users sent, and at what price.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-local differential privacy when a user's features and
    reward are replaced: each sends one Gaussian report, and the rest is post-processing. The
    gradients are taken at the learner's public prediction. The optimistic weights depend on a
    user's contexts and never leave the device (sent in their place, as the published pseudo-code
    can be read, they would leak).

    References
    ----------
    Y. Abbasi-Yadkori, D. Pal and C. Szepesvari (2012). Online-to-confidence-set conversions and
    application to sparse stochastic bandits. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.bandits import OnlineLinUCB
    >>> policy = OnlineLinUCB(epsilon=4.0, horizon=1_000, random_state=0)
    >>> contexts = np.random.RandomState(0).normal(size=(10, 4, 3)) / 3.0
    >>> actions = policy.act(contexts)
    >>> policy.update(contexts, actions, np.zeros(10)).n_rounds_
    10
    >>> print(policy.guarantee)
    (epsilon=4, delta=1e-06) local differential privacy, replacing one user, who is in one round:
    context, action and reward; the numbers of rounds are public
    """

    learner: Literal["maler", "ogd"] = "maler"
    anytime: bool = False
    bonus_scale: Factor = 1.0

    privacy = "local"
    channel = "gaussian"

    def _start(self, n_phi: int) -> None:
        super()._start(n_phi)
        self._previous = None
        self._restart(FIRST_PHASE if self.anytime else -(-self.horizon // self._times.every))

    def _restart(self, steps: int) -> None:
        """Forget all but the past of the sums (Algorithm 7: a fresh Algorithm 1)."""
        p = self._scaling.size
        self._steps = self._left = steps
        self._learner: Any = None
        self._base = self._previous
        self._gram = np.zeros((p, p))
        self._predicted = np.zeros(p)
        self._region = ball(p, self.coef_norm)

    @property
    def _times(self) -> GrowingTimes:
        return GrowingTimes.even(self.update_every, self.horizon)

    def _read(self, equations: "NormalEquations") -> None:
        """One step of the learner, by the gradient of the mean of (<x, theta> - r)^2.

        The gradient is taken at the learner's prediction, which is public.
        """
        block = self._since(self._previous)
        self._previous = self._sums.mark.answer
        if self._learner is None:
            bound = self._gradient_bound(block)
            make = LEARNERS[self.learner]
            self._learner = make(self._scaling.size, self.coef_norm, bound, self._steps)
        point = self._learner.point
        self._gram += block.design
        predicted = block.design @ point
        self._predicted += predicted
        self._learner.step(2.0 * (predicted - block.target) / block.n)
        self._left = max(0, self._left - 1)
        if self._left == 0 and self.anytime:
            self._restart(2 * self._steps)

    def _learn(self, equations: "NormalEquations") -> None:
        if self._left < self._steps:
            super()._learn(self._since(self._base))

    def _since(self, before: Answer | None) -> Any:
        """Equations of the rounds after an earlier read: local noise has independent increments."""
        now = self._sums.mark.answer
        if before is not None:
            now = Answer(now.value - before.value, now.n - before.n, now.noise.minus(before.noise))
        return self._sums.query.equations(now)

    def _gradient_bound(self, block: "NormalEquations") -> float:
        """Bound on the gradients of all steps, with probability confidence_level."""
        level = log(2.0 * self._steps / (1.0 - self.confidence_level))
        chi = sqrt(self._scaling.size) + sqrt(2.0 * level)
        noise = hypot(block.target_scale, block.design_scale * self.coef_norm)
        return 2.0 * (1.0 + self.coef_norm + noise * chi / block.n)

    def _make_region(self, equations: "NormalEquations") -> Region:
        if self._certified:
            return super()._make_region(equations)
        spread = asymptotic(equations, self.coef_norm**2 / self._scaling.size).form
        # argmin of alpha ||theta||^2 + sum ||theta - theta_k||^2 in the norms of the sums: where
        # these are lost in the noise, that ridge is as large as the noise.
        ridge = (self.alpha + equations.design_scale) * np.eye(len(spread))
        return Region(np.linalg.solve(psd_part(self._gram) + ridge, self._predicted), spread)
