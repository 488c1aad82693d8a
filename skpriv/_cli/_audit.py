"""`python -m skpriv audit`: claim, replayed cost and lower bound of every estimator and policy."""

import sys

from .._progress import progress
from ..audit import lower_bound, replay
from ..privacy import Budget
from ._arguments import CommandError, add_options, at_least, check_plot, panels, write
from ._audit_settings import NEIGHBOURS, estimators, policies, records, rounds

HEADERS = ("", "model", "claim", "replayed", "lower bound", "if Gaussian", "differences")
WIDTHS = (22, 11, 8, 10, 13, 13, 11)


def add_audit(parser):
    """Add the arguments of the command."""
    parser.description = (
        "Attacks every estimator and policy under every privacy model. It replays fits to two "
        "neighbouring data sets with the same released answers, and looks for differences. It "
        "also tries to tell many fits to the two apart."
    )
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME",
        help="only estimators and policies whose name begins with this")  # fmt: skip
    add("--runs", type=at_least(0), default=1000,
        help="fits to each of two neighbours, for the lower bound; 0: replays only; default "
        "1000")  # fmt: skip
    add("--half-noise", action="store_true",
        help="audit copies with half of the noise against the same claim: they must be "
        "caught")  # fmt: skip
    few = "claimed delta; default 0.1, since a small one shows in rare events only"
    jobs = "fits at the same time; default -1: as many as processors, which take 10 minutes of "
    add_options(
        parser, "--epsilon", "--delta", "--confidence-level", "--jobs", "--plot",
        epsilon={"default": 1.0, "help": "claimed epsilon; default 1"},
        delta={"default": 0.1, "help": few},
        jobs={"default": -1, "help": jobs + "processor time"},
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(args):
    """Attack, print the table, draw the picture; return the exit code: 1 if a claim fails."""
    check_plot(args.plot)
    if 0 < args.runs < 8:
        raise CommandError(f"--runs {args.runs} must be 0, or at least 8.")
    chosen = [
        (*key, make, kind)
        for kind, table in (("records", estimators()), ("rounds", policies()))
        for key, make in table.items()
        if args.name is None or key[0].startswith(args.name)
    ]
    if not chosen:
        names = sorted({key[0] for table in (estimators(), policies()) for key in table})
        raise CommandError(f"{args.name!r} begins none of the names {', '.join(names)}.")
    claim, used = Budget(args.epsilon, args.delta), Budget(args.epsilon, args.delta)
    if args.half_noise:
        used = Budget.from_mu(2.0 * claim.mu, claim.delta)
    print(f"Claim: epsilon = {claim.epsilon:g} at delta = {claim.delta:g}", end="\n\n")
    print(_line(HEADERS), "-" * sum(WIDTHS), sep="\n", flush=True)
    attacks = (_attack(args, claim, used, *one) for one in chosen)
    rows = list(progress(attacks, len(chosen), "audit", unit="attacks"))
    failed = [row for row in rows if not row["holds"]]
    print("", _verdict(len(failed), len(rows)), sep="\n")
    if args.plot:
        _draw(args, rows)
    return 1 if failed else 0


def _attack(args, claim, used, name, model, make, kind):
    """One row of the table, printed as soon as it is known."""
    data = records(name, model) if kind == "records" else rounds()
    found = replay(lambda: make(used, 0), *data, claim=claim)
    bound = None
    if kind == "records" and args.runs:
        bound = lower_bound(
            lambda seed: make(used, seed), *data, n_runs=args.runs, delta=args.delta,
            confidence_level=args.confidence_level, n_jobs=args.jobs,
            verbose=sys.stderr.isatty(),
        )  # fmt: skip
    shown = [f"{b:.3f}" for b in (bound.epsilon, bound.gaussian_epsilon)] if bound else ["-", "-"]
    row = {
        "label": f"{name}, {model}",
        "replayed": found.epsilon,
        "bound": bound.epsilon if bound else None,
        "holds": found.holds and not (bound and bound.epsilon > claim.epsilon),
    }
    if sys.stderr.isatty():  # the line of progress makes room
        print(f"\r{'':<78}\r", end="", file=sys.stderr, flush=True)
    cells = (name, model, f"{claim.epsilon:g}", f"{found.epsilon:.3f}", *shown)
    print(_line((*cells, str(len(found.differences)))), flush=True)
    for text in found.differences:
        print(f"    {text}")
    return row


def _line(cells):
    return "".join(f"{cell:<{width}}" for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()


def _verdict(failed, total):
    if failed:
        return f"{failed} of {total} claims FAIL."
    return f"All {total} claims stand. {NEIGHBOURS}"


def _draw(args, rows):
    """A bar for each replayed cost, a mark for each lower bound, a line for the claim."""
    figure, (ax,) = panels(1)
    figure.set_size_inches(7, 1.5 + 0.25 * len(rows))
    places = range(len(rows))[::-1]
    ax.barh(places, [row["replayed"] for row in rows], color="0.8", label="replayed cost")
    known = [(row["bound"], y) for row, y in zip(rows, places, strict=True) if row["bound"]]
    if known:
        ax.plot(*zip(*known, strict=True), "k|", markersize=9, label="lower bound by attack")
    ax.axvline(args.epsilon, color="C3", label="claim")
    ax.set_yticks(list(places), [row["label"] for row in rows])
    ax.set_xlabel("epsilon")
    ax.legend(loc="best")
    write(figure, args.plot)
