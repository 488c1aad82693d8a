"""Logistic and Poisson regression on real tables: gain in log loss beside peers, and coverage.

Tables of several classes have one joint fit, and one beside it of each class against all others.

    python benchmarks/glm.py [--seeds 4] [--fits 30] [--epsilons 0.3 1 3] [--parts coverage]

Parts that are not asked keep what is recorded of them.
Tables of `_class_tables`, public bounds, four fifths of the rows to fit and the others to score.
A gain is the part of the gain in log loss over the base rate of the training rows that maximum
likelihood has on the same split. Coverage is of all coefficients at .95 over fits to rows that are
drawn with replacement from a table, whose maximum-likelihood curve is the truth, at epsilon 1; and
again with targets that are drawn from that curve. "declared" is the first of these where the
likelihood is declared, at each epsilon.
Errors in standard errors of maximum likelihood are of a design with six features and a known truth.
"""

import argparse
import json
import warnings
from dataclasses import replace

import numpy as np
from _class_tables import BINARY, COUNTS, SEVERAL
from _peers import NoisyDescentClassifier, ObjectivePerturbation, dp_ebm_classifier
from _record import HERE, record
from scipy.special import expit

import skpriv
from skpriv._estimation._loop._score import ScoreEquation, ScoreQuery
from skpriv._estimation._loop._rows import Whitened
from skpriv.inspection import inference
from skpriv.linear_model import LogisticRegression, PoissonRegressor
from skpriv.linear_model._generalized._labels import ClassTarget
from skpriv.linear_model._generalized._poisson import CountTarget
from skpriv.privacy import Answer, GaussianNoise

DELTA = 1e-6
PARTS = ("errors", "gains", "coverage", "declared")
NEWTON = 30  # steps at most to the solution of weighted scores
PEERS = ("noisy descent", "objective perturbation", "DP-EBM")


def model_of(table, **settings):
    """The model of a table, with its public bounds."""
    bounds = np.array([table.bounds[name] for name in table.data])
    count = int(table.target.max()) + 1
    if table.bounds_y == (0.0, 1.0):
        settings["classes"] = tuple(range(count))
    if table.bounds_y == (0.0, 1.0):
        return LogisticRegression(bounds_X=bounds, n_jobs=1, **settings)
    return PoissonRegressor(bounds_X=bounds, bounds_y=table.bounds_y, n_jobs=1, **settings)


def loss(model, X, y):
    """Mean log loss, up to a term in y alone."""
    if len(getattr(model, "classes_", ())) > 2:
        return -float(model.predict_log_proba(X)[np.arange(len(y)), y.astype(int)].mean())
    if hasattr(model, "decision_function"):
        eta = model.decision_function(X)
        return float((np.logaddexp(0.0, eta) - y * eta).mean())
    if hasattr(model, "predict_proba"):
        p = np.clip(model.predict_proba(X)[:, 1], 1e-9, 1.0 - 1e-9)
        return float(-(y * np.log(p) + (1.0 - y) * np.log1p(-p)).mean())
    mean = np.maximum(model.predict(X), 1e-9)
    return float((mean - y * np.log(mean)).mean())


class Rate:
    """The mean of the training targets for every row."""

    def __init__(self, y, binary):
        self._mean, self._binary = y.mean(), binary
        if binary:
            self.decision_function = lambda X: np.full(
                len(X), np.log(self._mean / (1 - self._mean))
            )

    def predict(self, X):
        return np.full(len(X), self._mean)


def peer(name, table, epsilon, seed):
    """An unfitted peer, and the map from rows to those that it takes."""
    bounds = np.array([table.bounds[column] for column in table.data])
    middle, half = bounds.mean(axis=1), np.diff(bounds, axis=1)[:, 0] / 2
    two = [c for c in table.data if table.data[c].nunique() == 2]  # what it means is public
    if name == "DP-EBM":
        return dp_ebm_classifier(table.bounds, epsilon, DELTA, seed, two), lambda X: X
    kind = {
        "noisy descent": NoisyDescentClassifier,
        "objective perturbation": ObjectivePerturbation,
    }
    made = kind[name](epsilon=epsilon, random_state=seed)
    return made, lambda X: (X - middle) / half / np.sqrt(X.shape[1])


def gains(table, epsilon, seeds, peers):
    """Gains of all methods, one for each split."""
    X, y, binary = table.data.to_numpy(), table.target, table.bounds_y == (0.0, 1.0)
    found = {name: [] for name in ("ours", *(peers if binary else ()))}
    for seed in range(seeds):
        order = np.random.RandomState(seed).permutation(len(y))
        train, test = np.split(order, [int(0.8 * len(y))])
        base = loss(Rate(y[train], binary), X[test], y[test])
        best = loss(model_of(table, privacy="none").fit(X[train], y[train]), X[test], y[test])
        for name in found:
            if name == "ours":
                model, rows = model_of(table, epsilon=epsilon, random_state=seed), X
            else:
                model, scale = peer(name, table, epsilon, seed)
                rows = scale(X)
            labels = y.astype(int) if name == "DP-EBM" else y
            model.fit(rows[train], labels[train])
            found[name].append((base - loss(model, rows[test], y[test])) / (base - best))
    return {name: [float(np.median(v)), float(min(v))] for name, v in found.items()}


class OneAgainstAll:
    """A fit of each class against all others, with an equal part of the budget for each."""

    def __init__(self, table, **settings):
        self.table, self.settings = table, settings

    def fit(self, X, y):
        self.classes_ = np.arange(int(self.table.target.max()) + 1)
        mu = skpriv.Budget(self.settings.pop("epsilon"), DELTA).mu / np.sqrt(len(self.classes_))
        self.settings["epsilon"] = skpriv.Budget.from_mu(mu, DELTA).epsilon
        bounds = np.array([self.table.bounds[name] for name in self.table.data])
        self.models = [
            LogisticRegression(classes=(0, 1), bounds_X=bounds, n_jobs=1, **self.settings).fit(
                X, y == k
            )
            for k in self.classes_
        ]
        return self

    def predict_log_proba(self, X):
        parts = np.column_stack([model.predict_proba(X)[:, 1] for model in self.models])
        return np.log(parts / parts.sum(axis=1, keepdims=True))


def joint_gains(table, epsilon, seeds):
    """Gains of the joint score of several classes, and of each class against all others."""
    X, y = table.data.to_numpy(), table.target.astype(int)
    found = {"ours": [], "one against all": []}
    for seed in range(seeds):
        order = np.random.RandomState(seed).permutation(len(y))
        train, test = np.split(order, [int(0.8 * len(y))])
        rates = np.bincount(y[train]) / len(train)
        base = -float(np.log(rates[y[test]]).mean())
        best = loss(model_of(table, privacy="none").fit(X[train], y[train]), X[test], y[test])
        settings = {"epsilon": epsilon, "random_state": seed}
        for name, made in (
            ("ours", model_of(table, **settings)),
            ("one against all", OneAgainstAll(table, **settings)),
        ):
            value = loss(made.fit(X[train], y[train]), X[test], y[test])
            found[name].append((base - value) / (base - best))
    return {name: [float(np.median(v)), float(min(v))] for name, v in found.items()}


def fitted_curve(model, X, y):
    """Solution of the weighted scores of these rows at the whitening and limit of a fit."""
    fit, b = model._released, model._released.b
    classes = hasattr(model, "classes_")
    link = replace(fit.link, limit=fit.last.limit) if classes else fit.link  # rows weigh by it
    target = ClassTarget(model._values) if classes else CountTarget(model.bounds_y)
    for _ in range(NEWTON):
        asked = (
            Whitened(model._record_map.row_map, fit.W),
            target,
            fit.location,
            b,
            fit.last.limit,
            link,
        )
        query = ScoreQuery(*asked)
        answer = Answer(query.sum(X, y), len(y), GaussianNoise(0.0))
        equation = ScoreEquation.of(query, answer)
        step = np.linalg.lstsq(equation.slope, equation.moment, rcond=1e-9)[0]
        b = b + step
        if np.linalg.norm(step) <= 1e-8 * np.linalg.norm(b):
            break
    found = fit.points(model._record_map.row_map.coefficient_map()) @ b
    found[-1] += fit.location
    return found


def coverage(table, fits, epsilon=1.0, drawn=False, **declared):
    """Coverage, part with an interval, and width over that without privacy.

    Of rows drawn with replacement, or of targets that are drawn from the curve itself: then the
    model is right, and the weights of far rows do not move it. "fitted" is of the curve of weighted
    scores, of one linear part.
    """
    X, y = table.data.to_numpy(), table.target
    model = model_of(table, privacy="none").fit(X, y)
    exact, binary = inference(model), table.bounds_y == (0.0, 1.0)
    several = binary and len(model.classes_) > 2
    mean = model.predict_proba(X) if binary else model.predict(X)
    mean = mean[:, 1] if binary and not several else mean
    truth, inside, told, width, own = exact.estimate, [], [], [], []
    for seed in range(fits):
        rng = np.random.RandomState(seed)
        rows = rng.randint(len(y), size=len(y))
        targets = y[rows]
        if drawn:
            if several:
                drawn_to = mean[rows].cumsum(axis=1)
                targets = (drawn_to < rng.uniform(size=len(y))[:, None]).sum(axis=1)
            else:
                targets = rng.binomial(1, mean[rows]) if binary else rng.poisson(mean[rows])
        private = model_of(table, epsilon=epsilon, random_state=seed, **declared)
        private.fit(X[rows], targets)
        found = inference(private)
        known = np.isfinite(found.std_error)
        inside += ((found.low < truth) & (truth < found.high))[known].tolist()
        if not (drawn or several or declared) and private._released.equations:
            curve = fitted_curve(private, X, y)
            own += ((found.low < curve) & (curve < found.high))[known].tolist()
        told.append(known.mean())
        width += (found.std_error / exact.std_error)[known].tolist()
    middle = float(np.median(width)) if width else np.nan
    return {"coverage": float(np.mean(inside)) if inside else np.nan,
            "told": float(np.mean(told)), "width": middle,
            **({"fitted": float(np.mean(own))} if own else {})}  # fmt: skip


def errors(n, epsilon, fits):
    """Root mean square error in standard errors of maximum likelihood, six features."""
    size = np.linspace(1.0, -0.6, 6)
    truth, found, inside = np.append(3.0 * size / np.linalg.norm(size), -0.5), [], []
    for seed in range(fits):
        rng = np.random.RandomState(seed)
        X = rng.uniform(-1.0, 1.0, size=(n, 6))
        A = np.column_stack([X, np.ones(n)])
        p = expit(A @ truth)
        y = (rng.uniform(size=n) < p).astype(int)
        unit = np.sqrt(np.diag(np.linalg.inv((A * (p * (1.0 - p))[:, None]).T @ A)))
        settings = {"classes": (0, 1), "bounds_X": (-1, 1), "random_state": seed, "n_jobs": 1}
        model = LogisticRegression(epsilon=epsilon, **settings)
        model.fit(X, y)
        found.append((np.append(model.coef_[0], model.intercept_) - truth) / unit)
        table = inference(model)
        inside.append((table.low < truth) & (truth < table.high))
    return {"error": float(np.sqrt(np.mean(np.square(found)))), "coverage": float(np.mean(inside))}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--fits", type=int, default=30)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--peers", nargs="*", default=list(PEERS))
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    numbers = json.loads((HERE / "results" / "glm.json").read_text(encoding="utf-8"))["numbers"]
    numbers.update({part: {} for part in args.parts})
    for n, epsilon in ((30_000, 1.0), (100_000, 1.0), (30_000, 3.0)):
        if "errors" not in args.parts:
            break
        found = numbers["errors"][f"{n}, {epsilon}"] = errors(n, epsilon, args.fits)
        print(n, epsilon, found, flush=True)
    for name, make in {**BINARY, **COUNTS, **SEVERAL}.items():
        table = make()
        for epsilon in args.epsilons if "gains" in args.parts else ():
            if name in SEVERAL:
                found = joint_gains(table, epsilon, args.seeds)
            else:
                found = gains(table, epsilon, args.seeds, args.peers)
            numbers["gains"][f"{name}, {epsilon}"] = found
            shown = {k: [round(x, 2) for x in v] for k, v in found.items()}
            print(name, table.data.shape, epsilon, shown, flush=True)
        for epsilon in args.epsilons if "declared" in args.parts and name not in SEVERAL else ():
            found = coverage(table, args.fits, epsilon, estimand="likelihood")
            numbers["declared"][f"{name}, {epsilon}"] = found
            print(name, "declared", epsilon, {k: round(v, 3) for k, v in found.items()}, flush=True)
        for drawn in (False, True) if "coverage" in args.parts else ():
            key = f"{name}, {'targets of the curve' if drawn else 'rows'}"
            found = numbers["coverage"][key] = coverage(table, args.fits, drawn=drawn)
            print(key, {k: round(v, 3) for k, v in found.items()}, flush=True)
    record("glm", numbers)


if __name__ == "__main__":
    main()
