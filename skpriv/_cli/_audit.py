"""`python -m skpriv audit`: what it attacks, with which neighbours, and the attack."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import bandits, linear_model
from .._progress import progress
from ..audit import lower_bound, replay
from ..privacy import Budget, capabilities
from ._arguments import (
    PICTURES,
    PRIVATE,
    add_options,
    at_least,
    check_files,
    panels,
    refuse,
    with_settings,
    write,
)

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


SCHEDULE = (50, 70)  # lengths of the epochs of a policy
# Users of an estimator of reports: as few as it can do with, since the noise of others hides one.
N_USERS = {"ssp": 1, "layered": 1, "re-weighted": 10, "descent": 10, "improper": 10, "linear": 20}
# Records that are not zeros, where few zeros would be asked little: LinearRegression asks for no
# slope below 100 effective records. At (1, .1) mu is .92, so that 200 are nearly twice enough.
MORE_RECORDS = {"iht": 100, "linear": 200}
NEIGHBOURS = "A replay is about one pair of neighbours: see docs/audit.md for what it cannot show."


# Two rows of the unit ball and their targets: the neighbours differ in the first record.
FAR = (([1.0, 0.0], -1.0), ([0.5, np.sqrt(0.75)], 1.0))
PAIRS = {
    "re-weighted": (([1.0, 0.0], 1.0), ([0.0, 1.0], 1.0)),
    "descent": (([1.0, 0.0], 1.0), ([0.5, np.sqrt(0.75)], -1.0)),
    "improper": (([0.5, np.sqrt(0.75)], 1.0), ([0.0, 1.0], -1.0)),
    "iht": (([1.0, -1.0], 1.0), ([1.0, -1.0], -1.0)),
}
# The pair of users who send reports: a row of no length has the same instrument as any other.
REPORTED = {"descent": (([-1.0, 0.0], 1.0), ([-1e-9, 0.0], -1.0))}


def records(name: str, privacy: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Two tables, of zeros mostly, that differ in the first record.

    The pairs are those that :func:`skpriv.audit.worst_pairs` ranks first, or near it, under all
    models.
    """
    same_rows = capabilities(privacy).same_rows
    pair = (PAIRS if same_rows else PAIRS | REPORTED).get(name, FAR)
    X = np.zeros((30 if same_rows else N_USERS[name], 2))
    if name in MORE_RECORDS and same_rows:
        X = np.random.RandomState(0).uniform(-0.7, 0.7, size=(MORE_RECORDS[name], 2))
    return _neighbours(X, pair)


def rounds() -> list[tuple[np.ndarray, np.ndarray]]:
    """Contexts and rewards of two sets of users, one of whom differs."""
    return _neighbours(np.random.RandomState(0).uniform(-0.5, 0.5, size=(sum(SCHEDULE), 3, 2)), FAR)


def _neighbours(
    X: np.ndarray, pair: tuple[tuple[list[float], float], ...]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The same rows and linear targets with either of two first records."""
    y = np.clip(X @ [1.0, -0.5], -1.0, 1.0)
    found = [(X.copy(), y.copy()) for _ in pair]
    for (rows, targets), record in zip(found, pair, strict=True):
        rows[0], targets[0] = record
    return found


BOUNDS: dict[str, Any] = {"data_norm": 1.0, "bounds_y": (-1.0, 1.0)}
THROUGH_ZERO: dict[str, Any] = {**BOUNDS, "fit_intercept": False}
ESTIMATORS = {
    "linear": linear_model.LinearRegression(**THROUGH_ZERO),
    "ssp": linear_model.SSPRegressor(**THROUGH_ZERO),
    "re-weighted": linear_model.ReweightedRegressor(**THROUGH_ZERO),
    "descent": linear_model.ReweightedRegressor(solver="sgd", link="logit", **THROUGH_ZERO),
    "layered": linear_model.LayeredRegressor(**THROUGH_ZERO),
    "improper": linear_model.ImproperSGDRegressor(**THROUGH_ZERO),
    "iht": linear_model.IHTRegressor(
        data_max=1.0, bounds_y=(-1.0, 1.0), n_nonzero_coefs=1, fit_intercept=False
    ),
}
EPOCHS: dict[str, Any] = {"oracle": linear_model.SSPRegressor(**BOUNDS), "schedule": SCHEDULE}
POLICIES = {
    "elimination": bandits.ActionElimination(**EPOCHS),
    "spanner": bandits.ActionElimination(**EPOCHS, exploration="spanner"),
    "square_cb": bandits.SquareCB(**EPOCHS),
    "greedy": bandits.EpochGreedy(**EPOCHS),
    "lin_ucb": bandits.LinUCB(horizon=sum(SCHEDULE), update_every=10),
    "online_lin_ucb": bandits.OnlineLinUCB(),
    "fliphat": bandits.FLIPHAT(n_nonzero_coefs=1, schedule=SCHEDULE),
}
ONLY = {"iht": "central", "fliphat": "central", "online_lin_ucb": "local"}


def claims() -> Iterator[tuple[str, str, Any, bool]]:
    """Name, privacy model, estimator or policy, and whether it is fitted, of all that claim it."""
    for name, template in (ESTIMATORS | POLICIES).items():
        for privacy in [ONLY[name]] if name in ONLY else PRIVATE:
            yield name, privacy, with_settings(template, privacy=privacy), name in ESTIMATORS


ROW_FORMAT = "{:<22}{:<11}{:<8}{:<10}{:<13}{:<13}{:<11}"
HEADERS = ("", "model", "claim", "replayed", "lower bound", "if Gaussian", "differences")


def add_audit(parser: "ArgumentParser") -> None:
    """Add the arguments of the command."""
    add = parser.add_argument
    add("name", nargs="?", default="", metavar="NAME",
        help="only estimators and policies whose name begins with this")  # fmt: skip
    add("--runs", type=at_least(0), default=1000,
        help="fits to each of two neighbours, for the lower bound; 0: replays only; default "
        "1000")  # fmt: skip
    add("--half-noise", action="store_true",
        help="audit copies with half of the noise against the same claim: they must be "
        "caught")  # fmt: skip
    claimed = "claimed delta; default 0.1, since a small one shows in rare events only"
    jobs = "fits at the same time; default -1: as many as processors, which take 10 minutes of "
    add_options(
        parser, "--epsilon", "--delta", "--confidence-level", "--jobs", "--plot",
        epsilon={"default": 1.0, "help": "claimed epsilon; default 1"},
        delta={"default": 0.1, "help": claimed},
        jobs={"default": -1, "help": jobs + "processor time"},
    )  # fmt: skip


def run_audit(args: "Namespace") -> int:
    """Attack every estimator and policy under every privacy model.

    It replays fits to two neighbouring data sets with the same released answers, and looks for
    differences. It also tries to tell many fits to the two apart. The exit code is 1 if a claim
    fails.
    """
    check_files(args, plot=PICTURES)
    refuse(0 < args.runs < 8, f"--runs {args.runs} must be 0, or at least 8.")
    chosen = [one for one in claims() if one[0].startswith(args.name)]
    names = ", ".join(sorted(ESTIMATORS | POLICIES))
    refuse(not chosen, f"NAME {args.name!r} must be one of {names}, or how one begins.")
    claim = Budget(args.epsilon, args.delta)
    used = Budget.from_mu(2.0 * claim.mu, claim.delta) if args.half_noise else claim
    print(f"Claim: epsilon = {claim.epsilon:g} at delta = {claim.delta:g}", end="\n\n")
    print(ROW_FORMAT.format(*HEADERS), flush=True)
    attacks = (_attack(args, claim, used, *one) for one in chosen)
    rows = list(progress(attacks, len(chosen), "audit", unit="attacks"))
    failed = [row for row in rows if not row["holds"]]
    stand = f"All {len(rows)} claims stand. {NEIGHBOURS}"
    print("", f"{len(failed)} of {len(rows)} claims FAIL." if failed else stand, sep="\n")
    if args.plot:
        _draw(args, rows)
    return 1 if failed else 0


def _attack(
    args: "Namespace", claim: Budget, used: Budget, name: str, privacy: str, model: Any, fits: bool
) -> dict[str, Any]:
    """One row of the table, printed as soon as it is known."""
    data = records(name, privacy) if fits else rounds()

    def make(seed: int = 0) -> Any:
        return with_settings(model, random_state=seed, epsilon=used.epsilon, delta=used.delta)

    found = replay(make, *data, claim=claim)
    bound = None
    if fits and args.runs:
        bound = lower_bound(
            make, *data, n_runs=args.runs, delta=args.delta,
            confidence_level=args.confidence_level, n_jobs=args.jobs,
            verbose=sys.stderr.isatty(),
        )  # fmt: skip
    shown = [f"{b:.3f}" for b in (bound.epsilon, bound.gaussian_epsilon)] if bound else ["-", "-"]
    row = {
        "label": f"{name}, {privacy}",
        "replayed": found.epsilon,
        "bound": bound.epsilon if bound else None,
        "holds": found.holds and not (bound and bound.epsilon > claim.epsilon),
    }
    if sys.stderr.isatty():  # The line of progress is cleared first.
        print(f"\r{'':<78}\r", end="", file=sys.stderr, flush=True)
    replayed = f"{found.epsilon:.3f}"
    line = ROW_FORMAT.format(
        name, privacy, f"{claim.epsilon:g}", replayed, *shown, len(found.differences)
    )
    print(line, flush=True)
    for text in found.differences:
        print(f"    {text}")
    return row


def _draw(args: "Namespace", rows: list[dict[str, Any]]) -> None:
    """A bar for each replayed cost, a mark for each lower bound, a line for the claim."""
    figure, (ax,) = panels(1)
    figure.set_size_inches(7, 1.5 + 0.25 * len(rows))
    labels = [row["label"] for row in rows]
    ax.barh(labels, [row["replayed"] for row in rows], color="0.8", label="replayed cost")
    bounds = np.array([row["bound"] for row in rows], float)  # NaN where there is none
    ax.plot(bounds, labels, "k|", markersize=9, label="lower bound by attack")
    ax.axvline(args.epsilon, color="C3", label="claim")
    ax.invert_yaxis()
    ax.set_xlabel("epsilon")
    ax.legend(loc="best")
    write(figure, args.plot)
