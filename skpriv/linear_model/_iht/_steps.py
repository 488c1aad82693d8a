"""The private steps of iterative hard thresholding: choose features, then fit coefficients."""

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any

import numpy as np

from ..._estimation._normal_equations import NormalEquations, ridge_prior
from ..._estimation._public_maps import Scaling
from ..._linalg import psd_part
from ...privacy import SIDE_SHARE
from ._queries import (
    MeanTargetQuery,
    ResidualSizeQuery,
    ScoresQuery,
    SupportGradientQuery,
    SupportMomentsQuery,
    SupportResidual,
    ValuesQuery,
)

# Of the budget, for each size of residuals and for the mean target; at most, and for all of them.
SIZE_SHARE, SIZES_SHARE = 0.02, 0.2
# The first selection starts from zero, where only the order of the scores counts: narrow clips, of
# entries in units of data_max and of residuals in units of their size, make it robust and precise.
SCREENING_LIMIT = 0.5
# Of what selections leave, for values between them (if there are any), and of the refit's budget,
# for moments; gradient steps share the rest.
FIRST_PART, REFIT_STEPS = 0.4, 2
# Wider clips than asked for cost nothing while the privacy noise stays below this part of the
# sampling noise, so that the clips disappear as n grows.
NOISE_TO_SAMPLING = 0.5


def residual_size(session, model, share):
    """Released mean of |residual|, at least what its noise can resolve."""
    answer = session.sum(ResidualSizeQuery(model), share)
    return float(max(answer.value[0], 2.0 * answer.noise.scale) / answer.n)


@dataclass(frozen=True)
class StepsPlan:
    """Public parameters of a fit, and the parts of the budget that its steps get.

    Parameters
    ----------
    model : IHTRegressor
        Its parameters are public.
    n_nonzero, n_features : int
        Numbers of features in the support, those of the start included; and of all.
    """

    model: Any
    n_nonzero: int
    n_features: int

    @property
    def selects(self):
        """Whether there is anything to select."""
        return self.n_nonzero < self.n_features

    @property
    def n_values(self):
        """How many selections are followed by values; the refit serves the last one."""
        return self.model.max_iter - self.model.refit if self.selects or not self.model.refit else 0

    @property
    def size_share(self):
        """Share of each size of residuals, and of the mean target."""
        sizes = self.model.max_iter + self.model.fit_intercept
        return (1.0 - self.model.certificate_share) * min(SIZE_SHARE, SIZES_SHARE / sizes)

    @property
    def shares(self):
        """(each selection, each values, refit); what sizes and the certificate need comes first."""
        left = 1.0 - self.model.certificate_share
        if not self.selects and self.model.refit:
            return 0.0, 0.0, left
        left -= (self.model.max_iter + self.model.fit_intercept) * self.size_share
        chosen = left * self.model.selection_share * self.selects
        valued = (left - chosen) * (
            (FIRST_PART if self.n_values else 0.0) if self.model.refit else 1.0
        )
        return (
            chosen / self.model.max_iter,
            valued / max(1, self.n_values),
            left - chosen - valued,
        )


def choose(session, scaling, plan, start):
    """Iterations of selection and values.

    Parameters
    ----------
    session : Session
    scaling : Scaling
        Scaling of single entries: its bound is data_max.
    plan : StepsPlan
    start : Iterate
        Public: its features stay in the support.

    Returns
    -------
    (Iterate, ndarray of shape (s,))
        The last iterate, and the last support chosen.
    """
    exact, public = session.trust.exact, plan.model
    share, value_share, _ = plan.shares
    support, model, known = np.arange(plan.n_features), start, start.support
    if not plan.selects and public.refit:
        return model, support
    if public.fit_intercept:
        level = session.sum(MeanTargetQuery(scaling), plan.size_share).value[0] / session.n
        model = replace(model, level=float(level))
    for iteration in range(public.max_iter):
        size = inf if exact else residual_size(session, model, plan.size_share)
        clip = inf if exact else _limit(public.residual_clip, size)
        if plan.selects:
            screening = iteration == 0 and public.refit and not exact
            if screening:  # not where noise is so small that clips would be all that matters
                one = ValuesQuery(model, support[:1], False, 1.0)
                screening = _wide(session, one, size, share / plan.n_nonzero) < 2.0
            limits = (
                (SCREENING_LIMIT, min(1.0, SCREENING_LIMIT * size)) if screening else (1.0, clip)
            )
            query = ScoresQuery(model, plan.n_features, public.step_size, *limits, known)
            # sorted: the order in which the features were named carries nothing
            support = np.union1d(known, session.top(query, plan.n_nonzero - len(known), share))
        if iteration < plan.n_values:
            values = ValuesQuery(model, support, public.fit_intercept, clip)
            if not exact:
                width = _wide(session, replace(values, residual_limit=1.0), size, value_share)
                values = replace(values, residual_limit=min(2.0, max(clip, width)))
            step = public.step_size * session.sum(values, value_share).value / session.n
            model = replace(
                model,
                support=support,
                weights=model.dense(plan.n_features)[support] + step[: len(support)],
                level=model.level + (float(step[-1]) if public.fit_intercept else 0.0),
            )
    return model, support


@dataclass(frozen=True, eq=False)
class SupportFit:
    """What the refit released: theta, and the equations of the last correction to it.

    Attributes
    ----------
    scaling : Scaling
        Scaling of rows on the support.
    theta : ndarray of shape (p,)
        The estimate, in the units of phi.
    origin : ndarray of shape (p,)
        The estimate before the last step.
    equations : NormalEquations
        design' (theta* - origin) = target, up to noise.
    """

    scaling: Scaling
    theta: np.ndarray
    origin: np.ndarray
    equations: NormalEquations


def refit(session, rows, residual_clip, share, known=None):
    """Moments on the support, then Newton steps on clipped residuals.

    A gradient of residuals that are clipped to R has sensitivity 2 R: as the fit improves, the
    residuals and the noise shrink together, and what the noise of the Gram matrix costs is
    proportional to the error that is left. Where coefficients are known, the steps start there.
    """
    exact = session.trust.exact
    scaling = rows.scaling
    moments = SupportMomentsQuery(rows)
    answer = session.sum(moments, share * FIRST_PART)
    raw = moments.equations(answer)
    if exact:
        theta = raw.solve_ridge(np.zeros(scaling.size))
    else:
        equations = floored(shrunk(raw, scaling.fit_intercept), raw.design_scale)
        prior = [ridge_prior(scaling.size, scaling.fit_intercept)]
        if known is None:
            theta = equations.solve_shrunk(prior)
        else:
            coef = known[rows.support] * scaling.radius / rows.data_max
            theta = scaling.scaled(coef, scaling.centre)
    step = share * (1.0 - FIRST_PART) / REFIT_STEPS
    for _ in range(1 if exact else REFIT_STEPS):
        model, origin = SupportResidual(rows, theta), theta
        size = inf if exact else residual_size(session, model, step * SIDE_SHARE)
        query = _gradient(session, model, size, residual_clip, step)
        answer = session.sum(query, step * (1.0 - SIDE_SHARE))
        square = query.square(answer)
        released = {"target": answer.value[:-1], "target_scale": answer.noise.scale}
        if not exact:
            correction = replace(equations, **released, square=square)
            theta = origin + correction.solve_shrunk(prior)
    spread = {"residual_gram": psd_part(raw.gram) * (square / answer.n), "square": square}
    return SupportFit(scaling, theta, origin, replace(raw, **released, **spread))


def _gradient(session, model, size, residual_clip, share):
    """Query of a gradient step, with its clip."""
    if not np.isfinite(size):  # no privacy: beyond every residual
        return SupportGradientQuery(model, 2.0 + float(np.abs(model.theta).sum()))
    query = SupportGradientQuery(model, 1.0)
    wide = _wide(session, query, size, share)
    return replace(query, residual_limit=min(2.0, max(_limit(residual_clip, size), wide)))


def _wide(session, query, size, share):
    """Widest clip whose noise is small beside sampling, from the query with a clip of 1."""
    # privacy noise of the sum for R = 1, and sampling noise for residuals of this size
    noise = session.noise(query, share).scale
    sampling = size * sqrt(session.n / max(1, query.shape[0]))
    return NOISE_TO_SAMPLING * sampling / noise


def _limit(clip, size):
    """R = clip standard deviations of normal residuals with this mean absolute value."""
    return 2.0 if clip is None else min(2.0, clip * 1.25 * size)


def shrunk(equations, has_intercept):
    """Equations with a Gram matrix whose noise is shrunk, off the diagonal and along it.

    The features' entries are estimated by Stein's rule from their known noise: correlations towards
    0 and squares towards their mean, as far as they do not stand out of the noise.
    """
    size = len(equations.target) - has_intercept
    if size < 3:
        return equations
    variance = equations.design_scale**2
    block = equations.design[:size, :size]
    mean = float(np.diagonal(block).mean())
    spread = float(np.diagonal(block).var(ddof=1))
    above = block[np.triu_indices(size, 1)]
    keep = 1.0 - min(1.0, variance / 2.0 / float(np.mean(above**2)))
    along = 1.0 - min(1.0, variance / spread)
    design = equations.design.copy()
    design[:size, :size] = keep * block
    design[np.arange(size), np.arange(size)] = mean + along * (np.diagonal(block) - mean)
    scale = equations.design_scale * sqrt(keep)
    return replace(equations, design=design, gram=design, design_scale=scale, gram_scale=scale)


def floored(equations, noise):
    """Equations whose Gram matrix has no direction below its noise: a ridge where it counts.

    The noise of k coefficients, of deviation s on the diagonal and s / sqrt(2) off it, has
    eigenvalues of root mean square s sqrt((k + 1) / 2). A smaller eigenvalue says nothing, and a
    step along it would be the noise of the target divided by it, of any length: with all features
    of few records fits exploded. Raised to that size, the step is short, and the next equation, of
    smaller residuals, goes on from there. What is above the noise stays, and as n grows all is.

    Parameters
    ----------
    equations : NormalEquations
    noise : float
        Deviation of the noise of the Gram matrix as it was released, before it was shrunk.
    """
    values, vectors = np.linalg.eigh(equations.design)
    floor = noise * sqrt((len(values) + 1) / 2.0)
    design = (vectors * np.maximum(values, floor)) @ vectors.T
    return replace(equations, design=design)
