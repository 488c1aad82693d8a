"""How much more likely the recorded answers of a run are under one of two neighbours."""

import numpy as np
from scipy import special

from ..privacy import GaussianNoise, GumbelNoise, lifted, listening
from ._tape import REPORTS, Player, Recorder


def released_ratio(make, run, given, other):
    """Log likelihood ratio of what a run on ``given`` released: of ``other`` over ``given``.

    The answers of a run are forced onto a second one, on the other data: what each answer was exact
    about is then known for both, however much a question depends on the answers before it. Whoever
    knows the two neighbours can compute it from the answers, so that any test of it is a fair
    attack; where every law is known, it is the best one (Neyman and Pearson).

    Parameters
    ----------
    make : callable
        ``make()`` returns the model, twice the same.
    run : callable ``run(model, data)``
    given, other : tuple of arrays

    Returns
    -------
    model : object
        The model as it was fitted to ``given``.
    transcript : object
        What ``run`` returned.
    ratio : float or None
        None where no answer was heard.
    """
    recorder, model = Recorder(), make()
    with listening(recorder):
        transcript = run(model, given)
    if not any(event.draws for event in recorder.events):
        return model, transcript, None
    player = Player(recorder)
    with listening(player):
        run(make(), other)
    total = 0.0
    for first, second in zip(recorder.events, player.events, strict=False):
        for before, now in zip(first.draws, second.draws, strict=False):
            if before.facts == now.facts:
                total += float(_log_ratio(before, now.exact))
    return model, transcript, total


def _log_ratio(draw, other):
    """Of one draw of noise: of the value under the other exact answer, over that of its own."""
    if draw.method in REPORTS:
        ask = _lifted_logs if draw.method == "lifted_reports" else _report_logs
        changed = (draw.exact != other).any(axis=1)
        values, law = draw.value[changed], draw.law[0]
        return np.sum(ask(values, other[changed], law) - ask(values, draw.exact[changed], law))
    noise = draw.law[-1]
    if isinstance(noise, GumbelNoise):
        if not noise.scale:
            return 0.0
        return _order_log(draw.value, other / noise.scale) - _order_log(
            draw.value, draw.exact / noise.scale
        )
    if not noise.scale:
        return 0.0
    # exact for Gaussian noise; for others the same direction, in which they are told apart too
    spread = noise.scale**2 if isinstance(noise, GaussianNoise) else 1.0
    return np.vdot(draw.value - (draw.exact + other) / 2.0, other - draw.exact) / spread


def _order_log(chosen, scores):
    """Log probability of naming these, one after the other, with Gumbel noise of scale 1."""
    scores, total = np.array(scores, dtype=float), 0.0
    for index in chosen:
        total += scores[index] - special.logsumexp(scores)
        scores[index] = -np.inf
    return total


def _report_logs(values, vectors, law):
    """Log density of reported directions about unit vectors, one a row."""
    heights = np.einsum("ij,ij->i", values, vectors)
    return np.log(np.maximum(law.density(heights), np.finfo(float).tiny))


def _lifted_logs(values, records, code):
    """The same about records (phi, r), whose sign is drawn with mean r."""
    phi, r = records[:, :-1], records[:, -1]
    ups = np.einsum("ij,ij->i", values, lifted(phi, np.ones(len(phi))))
    mixed = (1.0 + r) / 2.0 * code.density(ups) + (1.0 - r) / 2.0 * code.density(-ups)
    return np.log(np.maximum(mixed, np.finfo(float).tiny))
