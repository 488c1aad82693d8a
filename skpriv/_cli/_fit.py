"""`python -m skpriv fit`: a private model of a table, and its coefficients, for publication."""

from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
from sklearn.pipeline import make_pipeline

from .. import linear_model
from .._codec import save
from .._printing import first_names
from ..inspection import coefficient_table, model_card, picture
from ..preprocessing import FormulaEncoder, Schema, TableEncoder
from ..privacy import capabilities
from ..records import codes, present_names, same_names
from ._arguments import (
    PICTURES,
    PRIVATE,
    ROWS_OPTIONS,
    CommandError,
    add_options,
    at_least,
    check_files,
    explained,
    names_in,
    positive,
    probability,
    refuse,
    tell,
    write,
)
from ._budget import charged
from ._frames import LIBRARIES, chosen_columns, frame_library, opened, read_schema

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from sklearn.pipeline import Pipeline

MODELS = {
    "linear": "LinearRegression",
    "additive": "AdditiveRegressor",
    "logistic": "LogisticRegression",
    "poisson": "PoissonRegressor",
}
TEXTBOOK = {"least_squares": ("linear",), "likelihood": ("logistic", "poisson")}  # estimands
CARDS = (".md", ".html")
REHEARSED = (
    "This was a rehearsal with made-up rows in place of a table: nothing was charged, and nothing "
    "but public numbers was used."
)


# A row without a number as its target counts as this, by `missing` in the table of the target
WITHOUT_TARGET = {
    None: "A row without a target counts as the middle of its range. If there may be such rows, "
    'write missing = "indicator" in its table of the schema: then they count for nothing.',
    "indicator": "A row without a target counts for nothing.",
}


def _add_model(parser: "ArgumentParser", *names: str, **changed: dict[str, Any]) -> None:
    """Add what a fit and a plan have in common, and shared options with their changes."""
    add = parser.add_argument
    add("--target", metavar="NAME", help="column that is predicted; default: that of the schema")
    add("--formula", metavar="TEXT",
        help="terms of the model as in R, 'target ~ a + I(a**2) + C(b) + a:c'")  # fmt: skip
    add("--features", type=names_in, action="extend", metavar="NAMES",
        help="columns that are used, separated by commas; may be given more than once, and a name "
        "with a comma stands in quotation marks; default all of the schema but its "
        "outcomes")  # fmt: skip
    add("--privacy", choices=PRIVATE, default="central",
        help="who adds the noise; default central: whoever runs this. The others simulate a "
        "collection from devices, with its noise")  # fmt: skip
    add("--model", choices=list(MODELS), default="linear",
        help="linear (default), also of a yes or no, whose rate it fits; additive has curves; "
        "logistic is for a yes or no or a list, with odds ratios; poisson is for "
        "counts")  # fmt: skip
    add("--clip", choices=("auto", "wide"), default="auto",
        help="auto (default) has the least noise; wide clips residuals less")  # fmt: skip
    add("--estimand", choices=("fitted", *TEXTBOOK), default="fitted",
        help="what the table is of: fitted (default), least_squares of --model linear, or "
        "likelihood of --model logistic and poisson")  # fmt: skip
    add_options(
        parser, "--epsilon", "--delta", *names,
        epsilon={"required": True, "help": "epsilon of this fit"}, **changed,
    )  # fmt: skip


def add_fit(parser: "ArgumentParser") -> None:
    """Add the arguments of the command."""
    add_options(parser, *ROWS_OPTIONS)
    add = parser.add_argument
    add("--plan", action="store_true",
        help="print what `skpriv plan` prints, for as many rows as the table has; nothing is "
        "charged or written")  # fmt: skip
    add("--card", metavar="FILE", help="write a model card, too: .md or .html")
    _add_model(
        parser, "--ledger", "--out", "--plot", "--confidence-level", "--seed", "--force",
        out={"help": "JSON file of the model; needed unless --plan is given. See `report`"},
        plot={"help": "write a picture of the coefficients, too"},
    )  # fmt: skip


def add_plan(parser: "ArgumentParser") -> None:
    """Add the arguments of the command."""
    add = parser.add_argument
    add("--n", type=at_least(1), required=True, help="number of rows, or of persons")
    add("--effect", action="append", default=[], metavar="NAME=SIZE",
        help="print how many people are needed to find a coefficient of this size, such as "
        "age=0.5 or ward=icu=1; may be given more than once")  # fmt: skip
    add("--power", type=probability, default=0.8, metavar="P",
        help="with --effect: probability of finding it; default 0.8")  # fmt: skip
    add_options(
        parser, "--schema", "--max-rows",
        max_rows={"help": "most rows of one person that are used, where those are several"},
    )  # fmt: skip
    add("--smallest-level", type=probability, metavar="SHARE",
        help="the expected share of the smallest level of each list; by default all are "
        "alike")  # fmt: skip
    add("--target-mean", type=float, metavar="MEAN",
        help="the expected mean of the target, or the rate of its last class; by default that of "
        "its usual range in the schema")  # fmt: skip
    add("--target-deviation", type=positive, metavar="SD",
        help="how far targets are expected to be from their mean at each row")  # fmt: skip
    _add_model(parser, "--confidence-level")
    parser.set_defaults(table="the schema", seed=None)


def run_plan(args: "Namespace") -> int:
    """Print the standard errors that a fit will have, before anybody has seen a row.

    It needs a schema and a number of rows. Made-up rows stand for those of the table, so that
    nothing is charged. It takes some seconds, and each --effect some more.
    """
    _check_model(args)
    schema = read_schema(args)
    schema = chosen_schema(args, schema, list(schema))
    library = frame_library(LIBRARIES)
    texts = dict.fromkeys(schema, nw.String())  # every type reads them
    frame = nw.from_dict(dict.fromkeys(schema, []), texts, backend=library).to_native()
    written = schema.table_format
    args.group = args.max_rows or (written.limit or 1 if written.person else None)
    _check_persons(args)
    plan = _plan(
        args, schema, frame, args.n, args.group, smallest_level=args.smallest_level,
        target_mean=args.target_mean, target_deviation=args.target_deviation,
    )  # fmt: skip
    needed = [_people_needed(args, plan, effect) for effect in args.effect]
    print(plan, *needed, REHEARSED, sep="\n\n")
    return 0


def _people_needed(args: "Namespace", plan: Any, effect: str) -> str:
    """How many people find an effect, which is written NAME=SIZE, in a sentence."""
    name, _, size = effect.rpartition("=")
    # The name of a column does for its coefficient if that adds no more than the unit.
    found = [one for one in plan.names if one == name] or [
        one for one in plan.names if one.startswith(f"{name} per ")
    ]
    refuse(
        len(found) != 1,
        f"--effect {effect} must be NAME=SIZE, with one of these names: {', '.join(plan.names)}.",
    )
    with explained(f"--effect {effect} must have a SIZE:", ValueError):
        n = plan.people_needed(
            float(size), args.power, name=found[0], confidence_level=args.confidence_level
        )
    people = f"{n:,.0f}" if n < inf else f"more than {plan.largest_n:,}"
    return f"{found[0]} = {size}: {people} {plan.unit}s for a power of {args.power:g}."


def run_fit(args: "Namespace") -> int:
    """Fit a private model, print its coefficients, and write it to a file that holds released
    answers and public numbers only."""
    _check_files(args)
    frame, schema = opened(args)
    _check_persons(args)
    schema = chosen_schema(args, schema, nw.from_native(frame).columns)
    groups = schema.groups(frame)
    if args.plan:
        # The number of persons is public; how many rows each of them has is private.
        n = int(codes(groups["groups"]).max()) + 1 if groups else len(frame)
        print(
            _plan(args, schema, frame, n, groups.get("max_rows_per_group")), REHEARSED, sep="\n\n"
        )
        return 0
    with charged(args, f"fit of {args.target}") as ledger:
        encoder = _encoder(args, schema, frame)
        model = make_pipeline(encoder, _regressor(args, schema, encoder))
        read = schema.read_target
        if args.model == "logistic":
            read = schema.read_labels
        else:
            groups |= schema.weights(frame)
        last = model.steps[-1][0]
        options = {f"{last}__{name}": value for name, value in groups.items()}
        model.fit(frame, read(frame), **options)
    table = coefficient_table(model, confidence_level=args.confidence_level)
    try:
        with explained(f"--out {args.out} cannot be written, and the charge stays:", OSError):
            save(model, args.out, overwrite=True)
    finally:  # The answers are paid for, and shown in any case.
        tell(*left_out(args, schema, model[0]))
        print(_head(args, model), table, sep="\n\n", end="\n\n")
    print(*_foot(args, ledger, model), sep="\n")
    if args.card is not None:
        kind: Any = "html" if Path(args.card).suffix.lower() == ".html" else "markdown"
        card = model_card(model, format=kind, confidence_level=args.confidence_level)
        with explained(f"--card {args.card} cannot be written:", OSError):
            Path(args.card).write_text(card, encoding="utf-8")
        tell(f"Wrote {args.card}.")
    if args.plot is not None:
        shown: Any = picture(model, args.confidence_level)
        shown.figure_.suptitle(f"epsilon {args.epsilon:g}, delta {args.delta:g}")
        write(shown.figure_, args.plot)
    return 0


def left_out(
    args: "Namespace", schema: Schema, encoder: TableEncoder | FormulaEncoder
) -> Iterator[str]:
    """Yield which columns of the table are no features, and why."""
    names = list(encoder.feature_names_in_)
    used = same_names([*schema, *([] if args.group is None else [args.group])], names)
    if ignored := [name for name in names if name not in used]:
        yield f"Left out, as the schema or --features does not name them: {first_names(ignored)}."
    if outcomes := [name for name in schema.outcomes if name not in encoder.columns_]:
        yield f"Left out, as outcomes: {first_names(outcomes)}. --features can name them."


def _plan(
    args: "Namespace", schema: Schema, frame: Any, n: int, max_rows: int | None, **expected: Any
) -> Any:
    """The questions of the fit and its standard errors, by public numbers and the schema alone."""
    encoder = _encoder(args, schema, frame)
    model = _regressor(args, schema, encoder).set_params(max_rows_per_group=max_rows)
    with explained("There is no such plan:", ValueError):
        return model.plan(n, schema=encoder, **expected)


def _check_files(args: "Namespace") -> None:
    """Everything that can be found out before the rows are read and the budget is spent."""
    refuse(
        args.out is None and not args.plan,
        "--out is needed: name the JSON file of the model, or ask for --plan.",
    )
    _check_model(args)
    check_files(
        args, args.table, args.schema, out=(".json",), ledger=None, card=CARDS, plot=PICTURES
    )
    can = capabilities(args.privacy)
    refuse(
        args.ledger is not None and can.amplifies,
        f"--ledger cannot count --privacy {args.privacy}, of which only (epsilon, delta) is known: "
        "take another --privacy.",
    )


def _check_model(args: "Namespace") -> None:
    """Refuse an estimand that the model does not have."""
    models = TEXTBOOK.get(args.estimand, MODELS)
    refuse(
        args.model not in models,
        f"--estimand {args.estimand} is for --model {' or '.join(models)}: leave it out with "
        f"--model {args.model}.",
    )


def _check_persons(args: "Namespace") -> None:
    """Refuse persons where they cannot be protected."""
    able = [name for name in PRIVATE if capabilities(name).protects_groups]
    refuse(
        args.group is not None and args.privacy not in able,
        f"--group needs --privacy {' or '.join(able)}: with {args.privacy} each row is the one "
        "report of a user.",
    )


def _encoder(args: "Namespace", schema: Schema, frame: Any) -> TableEncoder | FormulaEncoder:
    """The encoder of the columns, or of a formula, fitted to the names alone."""
    if args.formula is None:
        return TableEncoder(schema).fit(frame)
    refuse(args.model == "additive", "--formula is for lines: leave it out with --model additive.")
    with explained("--formula:", ValueError):
        return FormulaEncoder(args.formula, schema).fit(frame)


def chosen_schema(args: "Namespace", schema: Schema, names: list[str]) -> Schema:
    """The schema of the columns that are used, with the target, which the formula may name."""
    left, tilde, _ = (args.formula or "").partition("~")
    alone = schema.outcomes[0] if len(schema.outcomes) == 1 else None
    target = left.strip().strip("`") if tilde else args.target or schema.target or alone
    refuse(
        not target or args.target not in (None, target),
        'Name one target: with --target, left of ~ in --formula, or by role = "target" in its '
        "table of --schema.",
    )
    present_names([target], names, "--target", args.table, CommandError)
    (own,) = same_names([target], schema)
    refuse(
        own is None,
        f"--schema {args.schema} has no table for the target {target!r}: add one with its public "
        "low and high.",
    )
    args.target = target = own
    schema = schema.with_target(target)
    if args.features is not None:
        schema = schema.select([*chosen_columns("--features", args.features, schema), target])
        schema = Schema(schema, target=target, **schema.table_format.given())  # no outcomes
    with explained(f"--schema {args.schema}:", ValueError):
        schema.check_filled()
        _range(args, schema)  # It raises if the target does not suit the model.
    return schema


def _range(args: "Namespace", schema: Schema) -> tuple[Any, ...]:
    """The possible kinds of the target: classes, which are 0 and 1 of a truth value, or a range."""
    column = schema[args.target]
    kind = f"--model {args.model}"
    if args.model != "logistic":
        refuse(
            column.kind in ("categorical", "ordinal"),
            f"{kind} needs a number, and the target {args.target!r} is one of a list: take --model "
            "logistic.",
        )
        return schema.bounds_y
    classes = schema.classes
    refuse(
        column.kind == "numeric" and classes[1] - classes[0] != 1,
        f"{kind} needs classes: make the target {args.target!r} categorical, ordinal or boolean in "
        "the schema, or give it a range of two consecutive numbers, such as 0 and 1. For counts "
        "take --model poisson, for other numbers --model linear.",
    )
    return classes


def _regressor(args: "Namespace", schema: Schema, encoder: TableEncoder | FormulaEncoder) -> Any:
    """The regressor for encoded rows; curves need the range of each column, lines the norm."""
    kind = getattr(linear_model, MODELS[args.model])
    options = {"data_norm": 1.0, "usual_X": encoder.usual_out_}
    if args.model == "additive":  # Numbers and dates have curves, other columns have lines.
        options = {"bounds_X": encoder.bounds_out_, "linear_features": encoder.linear_features_out_}
    options["classes" if args.model == "logistic" else "bounds_y"] = _range(args, schema)
    if args.model in ("linear", "additive"):
        options["clip"] = args.clip
    if args.estimand != "fitted":
        options["estimand"] = args.estimand
    return kind(
        epsilon=args.epsilon,
        delta=args.delta,
        privacy=args.privacy,
        random_state=args.seed,
        **options,
    )


def _head(args: "Namespace", model: "Pipeline") -> str:
    """The model, its target, and the number of people and columns."""
    report = model[-1].privacy_report_
    target_range = _range(args, model[0].schema)
    bounds = f"one of {', '.join(map(str, target_range))}"
    if args.model != "logistic":
        bounds = "clipped to [{:,.12g}, {:,.12g}]".format(*target_range)
    who = f"{type(model[-1]).__name__} of {args.target!r}, {bounds}: {report.size:,} {report.unit}s"
    return f"{who}, features: {first_names(model[0].columns_)}"


def _foot(args: "Namespace", ledger: list[str], model: "Pipeline") -> Iterator[str]:
    yield f"Wrote {args.out}: released answers and public numbers only."
    target = model[0].schema[args.target]
    if args.model == "linear" and target.kind == "boolean":
        yield (
            "The target is a yes or no, and the table is of a line for its rate, by default. "
            "--model logistic has odds ratios."
        )
    if args.model != "logistic":
        yield WITHOUT_TARGET.get(
            target.missing, "A row without a target counts as the schema says."
        )
    if args.group is not None:
        yield f"Rows without a cell in {args.group!r} count as the rows of one person together."
    yield from ledger
    secure = model[-1].privacy_report_.secure
    yield "The noise is cryptographic." if secure else "With --seed the noise is not for a release."
    if not capabilities(args.privacy).curator:
        yield (
            f"With --privacy {args.privacy} this is a rehearsal: the noise is that of a collection "
            "from devices, but whoever runs this has the rows."
        )
