"""A lower bound on epsilon by attack: many fits on two neighbours, and a test that tells them.

The test asks how much more likely the recorded answers of a run are under one neighbour.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from math import inf
from numbers import Integral
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from joblib import Parallel, delayed
from scipy import ndimage, special, stats
from sklearn.preprocessing import RobustScaler

from .._compat import Interval, safe_indexing
from .._parameters import Delta, Level, validated
from .._progress import progress
from .._stored import frozen
from ..privacy import Budget, GaussianNoise, GumbelNoise, lifted, listening
from ._runs import (
    Play, check_maker, fit, is_policy, one_replaced, parameters_of, replaced_rows, unfitted,
)  # fmt: skip
from ._tape import REPORTS, Player, Recorder, snapshot

if TYPE_CHECKING:
    from .._contracts import Array, Scalar
    from ._tape import Draw


def released_ratio(
    make: Callable[..., Any], run: Callable[..., Any], given: Any, other: Any
) -> tuple[Any, Any, float | None]:
    """Log likelihood ratio of what a run on ``given`` released: of ``other`` over ``given``.

    The answers of a run are forced onto a second one, on the other data: what each answer was exact
    about is then known for both, however much a question depends on the answers before it. An
    attacker who knows the two neighbours can compute it from the answers, so that any test of it is
    a fair attack; where every law is known, it is the best one (Neyman and Pearson).

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
    recorder = Recorder()
    model = make()
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


def _log_ratio(draw: "Draw", other: np.ndarray) -> "Scalar":
    """For one draw of noise: of the value under the other exact answer, over that of its own."""
    if draw.method in REPORTS:
        ask = _lifted_logs if draw.method == "lifted_reports" else _report_logs
        changed = (draw.exact != other).any(axis=1)
        values = draw.value[changed]
        law = draw.law[0]
        return np.sum(ask(values, other[changed], law) - ask(values, draw.exact[changed], law))
    noise = draw.law[-1]
    if not noise.scale:
        return 0.0
    if isinstance(noise, GumbelNoise):
        after, before = (_order_log(draw.value, x / noise.scale) for x in (other, draw.exact))
        return after - before
    # This is exact for Gaussian noise. Other noise is told apart in the same direction.
    spread = noise.scale**2 if isinstance(noise, GaussianNoise) else 1.0
    return np.vdot(draw.value - (draw.exact + other) / 2.0, other - draw.exact) / spread


def _order_log(chosen: Iterable[int], scores: np.ndarray) -> float:
    """Log probability of naming these, one after the other, with Gumbel noise of scale 1."""
    scores = np.array(scores, float)
    total = 0.0
    for index in chosen:
        total += scores[index] - special.logsumexp(scores)
        scores[index] = -inf
    return total


def _report_logs(values: np.ndarray, vectors: np.ndarray, law: Any) -> "Array":
    """Log density of reported directions about unit vectors, one a row."""
    heights = np.einsum("ij,ij->i", values, vectors)
    return np.log(np.maximum(law.density(heights), np.finfo(float).tiny))


def _lifted_logs(values: np.ndarray, records: np.ndarray, code: Any) -> "Array":
    """The same about records (phi, r), whose sign is drawn with mean r."""
    phi = records[:, :-1]
    r = records[:, -1]
    ups = np.einsum("ij,ij->i", values, lifted(phi, np.ones(len(phi))))
    mixed = (1.0 + r) / 2.0 * code.density(ups) + (1.0 - r) / 2.0 * code.density(-ups)
    return np.log(np.maximum(mixed, np.finfo(float).tiny))


# Neighbouring thresholds whose values are averaged before one is chosen, and samples that each
# number of a direction needs if it is to be tried on the samples that found it.
SAMPLES_TOGETHER = 25
HUGE = np.cbrt(np.finfo(float).max)  # It stands for NaN and infinity, and can be squared.
DIRECTIONS = 30  # The best combination is one of so many numbers, those that differ most.


@frozen
class EpsilonBound:
    """Lower bound on epsilon, from samples.

    Parameters
    ----------
    epsilon : float
        No mechanism with a smaller epsilon at this delta would do as the samples do, but with
        probability 1 - confidence_level. It assumes nothing about the estimator.
    delta : float
        The delta at which epsilon is bounded, in [0, 1).
    confidence_level : float
        Probability, in (0, 1), with which the bound holds.
    n_runs : int
        Fits on each of the two data sets; half of them chose the test, the others were counted. If
        the laws of answers are known, a quarter chose it.
    true_positives, false_positives : int
        Numbers of the chosen test, among those fits on each that were counted.
    mu : float
        Lower bound on mu if the mechanism is Gaussian (mu-GDP): the same counts say more then.
    """

    epsilon: float
    delta: float
    confidence_level: float
    n_runs: int
    true_positives: int
    false_positives: int
    mu: float

    @property
    def gaussian_epsilon(self) -> float:
        """Lower bound on epsilon if the mechanism is Gaussian."""
        return Budget.from_mu(self.mu, self.delta).epsilon if self.mu else 0.0

    def __str__(self) -> str:
        return (
            f"epsilon >= {self.epsilon:.3g} at delta = {self.delta:g}, with confidence "
            f"{self.confidence_level:g} ({self.n_runs} fits on each of two neighbours); "
            f"if the mechanism is Gaussian, epsilon >= {self.gaussian_epsilon:.3g}"
        )


@validated
def lower_bound(
    make: Any,
    D: Any,
    D_prime: Any,
    *,
    n_runs: Annotated[int, Interval(Integral, 8, None, closed="left")],
    delta: Delta,
    confidence_level: Level = 0.95,
    statistic: Any = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    verbose: int = 0,
) -> "EpsilonBound":
    """Bound epsilon from below: fit many times on two neighbours, and tell the fits apart.

    Works with any scikit-learn-like estimator, whoever wrote it. One half of the fits choose a
    direction, a threshold and which of the two errors to count; the others are counted. The bounds
    on the two error rates are those of Clopper and Pearson (1934), and
    epsilon >= log((P(right) - delta) / P(wrong)).

    Parameters
    ----------
    make : callable
        ``make(seed)`` returns an unfitted estimator, or a policy, whose noise is drawn by the seed.
    D, D_prime : tuple of arrays
        (X, y), or rounds of a policy as for :func:`replay`, that differ in one record. Far apart
        is better: see :func:`worst_pairs`.
    n_runs : int
        Fits on each of the two; at least 8.
    delta : float in [0, 1)
        The claimed delta. With a small delta and few runs little can be shown: rare events are not
        seen. With delta = .1 and 5,000 runs an exact (1, delta) Gaussian mechanism gives about .76.
    confidence_level : float in (0, 1), default=0.95
        Probability with which the bound holds, over the noise of the fits.
    statistic : callable, default=None
        ``statistic(model)`` returns numbers, always as many. None takes all numbers that a fitted
        model holds, private ones included, and what it predicts at the rows that differ. For
        estimators of this package it also takes the likelihood ratio of the released answers, whose
        distributions are known. For that each fit is made twice.
    n_jobs : int, default=None
        Number of processes that fit at once: None is 1, -1 all processors.
    random_state : int, default=0
        Seed of the fits and of the order of the two data sets.
    verbose : int, default=0
        Above 0: a line about progress on stderr.

    Returns
    -------
    EpsilonBound
        The largest epsilon that the fits refute, and the counts behind it.

    Raises
    ------
    ValueError
        If D and D_prime differ in none or in several records, or in their shapes.

    References
    ----------
    M. Jagielski, J. Ullman and A. Oprea (2020). Auditing differentially private machine learning:
    how private is private SGD? NeurIPS.
    M. Nasr, J. Hayes, T. Steinke, B. Balle, F. Tramer, M. Jagielski, N. Carlini and A. Terzis
    (2023). Tight auditing of differentially private machine learning. USENIX Security.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.audit import lower_bound
    >>> from skpriv.linear_model import SSPRegressor
    >>> make = lambda seed: SSPRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1), epsilon=20.0, random_state=seed
    ... )
    >>> X, y = np.ones((20, 1)), np.ones(20)
    >>> other = -y[:1], *y[1:]
    >>> bound = lower_bound(make, (X, y), (X, np.hstack(other)), n_runs=20, delta=1e-6)
    >>> bool(0.5 < bound.epsilon < 20.0)
    True
    """
    check_maker(make, "seed")
    data = (tuple(D), tuple(D_prime))
    one_replaced(*data, len(data[0]) == 3 and not is_policy(unfitted(make(0))))
    replaced = replaced_rows(*data)
    labels = np.random.RandomState(random_state).permutation(2 * n_runs) % 2  # in random order
    seeds = np.random.SeedSequence(random_state).generate_state(2 * n_runs) % 2**31
    tasks = (
        delayed(_sample)(partial(make, int(seed)), int(label), data, replaced, statistic)
        for label, seed in zip(labels, seeds, strict=True)
    )
    results = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
    samples = list(progress(results, 2 * n_runs, "audit", enabled=verbose > 0))
    values = _aligned(samples)
    laws_known = all("released" in sample for sample in samples)

    # If laws are known, no direction must be found, and a quarter of the fits choose the test.
    choosing = n_runs // (4 if laws_known else 2)
    first = [values[labels == label][:choosing] for label in (0, 1)]
    second = [values[labels == label][choosing:] for label in (0, 1)]
    failure = (1.0 - confidence_level) / 2.0
    test = _choose(first, delta, failure, len(second[0]), SAMPLES_TOGETHER if laws_known else 1)
    wrong, right = (int(test(sample).sum()) for sample in second)
    n = len(second[0])
    return EpsilonBound(
        epsilon=float(_epsilon(right, wrong, n, delta, failure)),
        delta=float(delta),
        confidence_level=float(confidence_level),
        n_runs=int(n_runs),
        true_positives=right,
        false_positives=wrong,
        mu=_mu(right, wrong, n, failure),
    )


def _sample(
    make: Callable[..., Any],
    label: int,
    data: tuple[tuple[Any, ...], tuple[Any, ...]],
    replaced: np.ndarray,
    statistic: Callable[..., Any] | None,
) -> dict[str, np.ndarray]:
    """Numbers of one fit, by name."""
    model = unfitted(make())
    policy = is_policy(model)
    ratio = None
    if policy:
        seen = Play(replaced)(model, data[label])
    elif statistic is not None:
        fit(model, data[label])
    else:
        model, seen, ratio = released_ratio(make, fit, data[label], data[1 - label])
    if statistic is not None:
        return {"": np.ravel(np.asarray(statistic(model), float))}
    leaves = snapshot(model) | (snapshot(seen) if policy else {})
    if not policy:
        rows = (safe_indexing(X, replaced) for X, *_ in data)
        with suppress(AttributeError):  # of a transformer, which does not predict
            leaves["predicted"] = np.concatenate(list(map(model.predict, rows)))
    given_names = parameters_of(model)
    numbers = {} if ratio is None else {"released": np.array([(1 - 2 * label) * ratio])}
    for path, value in leaves.items():
        if path.split(".")[1:2] and path.split(".")[1].split("[")[0] in given_names:
            continue  # Parameters are public.
        if isinstance(value, np.ndarray | bool | int | float | np.generic):
            with suppress(TypeError, ValueError):
                numbers[path] = np.ravel(np.asarray(value, float))
    return numbers


def _aligned(samples: list[dict[str, np.ndarray]]) -> "Array":
    """One row a fit, of the numbers that every fit has; NaN and infinity become large."""
    sizes = [{path: len(numbers) for path, numbers in sample.items()} for sample in samples]
    common = [path for path, n in sizes[0].items() if all(s.get(path) == n for s in sizes)]
    # A mark says which fits have a number that others lack, of at most 50 such numbers.
    others = sorted({path for size in sizes for path in size} - set(common))[:50]
    rows = [
        np.concatenate(
            [*(sample[path] for path in common), [float(path in sample) for path in others]]
        )
        for sample in samples
    ]
    return np.nan_to_num(np.clip(rows, -HUGE, HUGE), nan=HUGE)


def _choose(
    first: list[np.ndarray], delta: float, failure: float, n: int, smooth: int
) -> Callable[[np.ndarray], np.ndarray]:
    """The test that does best on the first half; a function from samples to decisions."""
    before, after = first
    both = np.concatenate(first)
    varying = np.ptp(both, axis=0) > 0.0
    width = int(varying.sum())
    if not width:
        return lambda sample: np.zeros(len(sample), bool)
    by_quantiles = RobustScaler(quantile_range=(16.0, 84.0)).fit(both[:, varying])

    def scale(sample: np.ndarray) -> "Array":
        # Beyond 1e3 a number tells no more.
        return by_quantiles.transform(sample[:, varying]).clip(-1e3, 1e3)

    # One half of these fits finds directions, the other thresholds; a direction of few numbers can
    # do both with all of them, since it cannot fit the single samples.
    reused = min(width, DIRECTIONS) * SAMPLES_TOGETHER <= len(before)
    cut = max(1, len(before) // 2)
    train = [scale(sample if reused else sample[:cut]) for sample in (before, after)]
    held = [scale(sample if reused else sample[cut:]) for sample in (before, after)]
    best: float = -inf
    chosen: Any = None
    for score in _scores(*train):
        low = score(held[0])
        high = score(held[1])
        # The thresholds that are tried are 200 quantiles of the scores.
        levels = np.quantile(np.concatenate([low, high]), np.linspace(0, 1, 200))
        for sign in (1.0, -1.0):
            wrong, right = (np.mean(sign * s[:, None] > sign * levels, axis=0) for s in (low, high))
            values = _epsilon(right * n, wrong * n, n, delta, failure)
            values += 1e-3 * (right - wrong)  # It decides where no bound is above 0.
            values = ndimage.uniform_filter1d(values, smooth, mode="nearest")
            if values.max() > best:
                best = values.max()
                chosen = (score, levels[values.argmax()], sign)
    score, threshold, sign = chosen
    return lambda sample: sign * score(scale(sample)) > sign * threshold


def _scores(before: np.ndarray, after: np.ndarray) -> Iterator[Callable[[np.ndarray], np.ndarray]]:
    """Linear discriminant, single numbers, and the squares of those, best first."""
    difference = after.mean(axis=0) - before.mean(axis=0)
    within = np.concatenate([before - before.mean(axis=0), after - after.mean(axis=0)])
    covariance = within.T @ within / len(within)
    ridge = 1e-6 + min(len(difference), DIRECTIONS) / len(within)
    diagonal = np.maximum(np.diagonal(covariance), 1e-12)
    shift = np.abs(difference) / np.sqrt(diagonal)
    largest = np.argsort(-shift, kind="stable")[:DIRECTIONS]
    inside = covariance[np.ix_(largest, largest)]
    for amount in (1e-6, 0.1 * ridge, ridge):
        direction = np.zeros(len(difference))
        damped = inside + amount * np.diag(diagonal[largest])
        direction[largest] = np.linalg.solve(damped, difference[largest])
        yield partial(_linear, direction)
    spread = np.abs(after).mean(axis=0) - np.abs(before).mean(axis=0)
    for signal, score in ((shift, _linear), (np.abs(spread), _size)):
        # The eight numbers that differ most are tried alone, too.
        for place in np.argsort(-signal, kind="stable")[:8]:
            yield partial(score, np.eye(len(signal))[place])


def _linear(direction: np.ndarray, values: np.ndarray) -> "Array":
    return values @ direction


def _size(direction: np.ndarray, values: np.ndarray) -> "Array":
    return np.abs(values @ direction)


def _rates(right: Any, wrong: Any, n: int, failure: float) -> "tuple[Array, Array]":
    """One-sided limits of Clopper and Pearson: below the rate of one count, above the other's."""
    low = stats.beta.ppf(failure, np.maximum(right, 1e-9), n - right + 1.0)
    high = stats.beta.isf(failure, wrong + 1.0, np.maximum(n - wrong, 1e-9))
    return np.where(right > 0.0, low, 0.0), np.where(wrong < n, high, 1.0)


def _epsilon(right: Any, wrong: Any, n: int, delta: float, failure: float) -> "Array":
    """From the counts of a test, or of its complement where that shows more.

    Two limits are used, each of which fails with probability ``failure``: those of the complement
    are the same two.
    """
    right_low, wrong_high = _rates(right, wrong, n, failure)
    pairs = ((right_low, wrong_high), (1.0 - wrong_high, 1.0 - right_low))
    logs = [np.log(np.maximum((low - delta) / high, 1e-300)) for low, high in pairs]
    return np.maximum(0.0, np.maximum(*logs))


def _mu(right: int, wrong: int, n: int, failure: float) -> float:
    low, high = _rates(right, wrong, n, failure)
    if low <= 0.0 or high >= 1.0:
        return 0.0
    return max(0.0, float(stats.norm.ppf(low) - stats.norm.ppf(high)))
