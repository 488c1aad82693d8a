"""Compares the cells of all records with the last ones, so that nothing gets worse unseen.

Run: python benchmarks/_gate.py            prints the cells that became worse, and what is named
     python benchmarks/_gate.py --release  makes the cells of now the last ones

A cell is a measure of one method in one place: R2, coverage, coefficients found to be different
from zero, width, error, regret or cost. `CELLS` reads them from each record. The last cells are in
``last_cells.json``, with all of their runs, since a run is compared with the one of the same seed:
the error of a difference is three standard errors over the runs that both have, and the `slack` of
its measure at least, below which nobody would notice. `record` puts a cell there that is better
than the last one by more than its error; a cell that is worse stays, until a release.

A cell that is worse fails ``tests/test_gate.py`` until ``accepted.toml`` names it, by a pattern,
with a reason that stands in CHANGELOG.md in the same words. All cells of one method and measure are
compared together as well, as "all of ...": a small loss in each of them is then seen, too.
"""

import json
import sys
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
DEVIATIONS = 3.0  # of a difference: among 1,000 cells of new draws about one is worse by chance
TOGETHER = 5  # cells from which all of a method are compared


@dataclass(frozen=True)
class Measure:
    """What a number says.

    Parameters
    ----------
    better : {1, -1}
        Whether more is better.
    slack : float
        The least difference that counts: of the number, or a part of it where it is `relative`.
    relative : bool
    enough : float
        From where on more is no better, as of a coverage its level.
    worst : float
        From where on less is no worse, as of an R2 that a single wild fit may make -1e200.
    least : bool
        Whether the least of the runs is compared, as of times on a busy machine.
    """

    better: int
    slack: float
    relative: bool = False
    enough: float = np.inf
    worst: float = -np.inf
    least: bool = False


MEASURES = {
    "r2": Measure(1, 0.005, worst=-1.0),
    "covered at .9": Measure(1, 0.02, enough=0.9),
    "covered at .95": Measure(1, 0.02, enough=0.95),
    "told": Measure(1, 0.03, relative=True),
    "error": Measure(-1, 0.03, relative=True),
    "width": Measure(-1, 0.03, relative=True),
    "regret": Measure(-1, 0.03, relative=True),
    "cost": Measure(-1, 0.15, relative=True, least=True),
    # Of fits of milliseconds, in units of a product of .1 ms: neighbours in the caches of a busy
    # machine move these by a factor of 1.8
    "rough cost": Measure(-1, 1.0, relative=True, least=True),
    "speed": Measure(1, 0.3, relative=True),
}


@dataclass(frozen=True)
class Cell:
    """Runs of one measure: by key, or one number with its standard error.

    Parameters
    ----------
    kind : str
        Method and measure, which all of its cells are compared by together.
    measure : str
    runs : dict of str: float
        With one run, "" and nothing else, its standard error is `error`.
    error : float or None
        None if nobody recorded it: then twice the slack is allowed.
    """

    kind: str
    measure: str
    runs: dict
    error: float | None = None


def _cell(kind, measure, values, error=None):
    """A cell of a list, a dict or a number."""
    values = _named(values)
    runs = values if isinstance(values, dict) else {"": values}
    runs = {key: float(f"{value:.5g}") for key, value in runs.items() if np.isfinite(value)}
    return Cell(f"{kind}: {measure}", measure, runs, error) if runs else None


def _peers(numbers):
    for table, found in numbers.items():
        for method in ("LinearRegression", "SSP", "re-weighted", "additive"):
            for epsilon, runs in found["r2"].get(method, {}).items():
                yield f"{table}, {method}, {epsilon}", _cell(method, "r2", runs)


def _drawn(numbers):
    for key, found in numbers.items():
        for method in ("LinearRegression", "SSP"):
            yield f"{key}, {method}", _cell(method, "r2", found[method])


def _designs(numbers):
    for key, runs in numbers.items():
        for method in runs[0][0] if ", n=" in key else ():
            errors = {
                str(seed): run[0][method] for seed, run in enumerate(runs) if method in run[0]
            }
            yield f"{key}, {method}", _cell(method, "error", errors)


def _additive(numbers):
    for table, found in numbers.items():
        for key, runs in found["r2"].items():
            if key.startswith(("additive", "linear")):
                yield f"{table}, {key}", _cell(key.split()[0], "r2", runs)


def _recorded_adassp(numbers):
    for key, found in numbers.items():
        for method in ("LinearRegression", "with an intercept", "SSPRegressor"):
            yield f"{key}, {method}", _cell(method, "error", found[method])


def _usual(numbers):
    for key, tables in numbers["scores"].items():
        for guess in next(iter(tables.values())):
            scores = {name: found[guess] for name, found in tables.items()}
            yield f"{key}, {guess}", _cell(f"guess {guess}", "r2", scores)


def _glm(numbers):
    for key, found in numbers["gains"].items():
        yield f"{key}, gain", _cell("gain", "r2", found["ours"][0])
    for key, found in numbers["coverage"].items():
        yield f"{key}, covered", _cell("coverage", "covered at .95", found["coverage"])
        yield f"{key}, told", _cell("coverage", "told", found["told"])
        yield f"{key}, width", _cell("coverage", "width", found["width"])
    for key, found in numbers["errors"].items():
        yield f"{key}, error", _cell("errors", "error", found["error"])


def _inference(numbers):
    for key, found in numbers.items():
        method = key.split()[-2]
        runs = _of_fits(found, {"covered": 1, "width": 3, "error": 4, "told": 6})
        yield f"{key}, covered", _cell(method, "covered at .95", runs["covered"])
        for name in runs.keys() & {"width", "error", "told"}:
            yield f"{key}, {name}", _cell(method, name, runs[name])


def _line_intervals(numbers):
    for key, found in numbers.items():
        method = " ".join(key.split()[-2:])
        runs = _of_fits(found, {"covered": 0, "width": 2, "error": 4})
        yield f"{key}, covered", _cell(method, "covered at .95", runs["covered"])
        # In deviations of the noise: over the error it grows as predictions become better
        width = np.multiply(runs["width"], runs["error"]).tolist()
        yield f"{key}, width", _cell(method, "width", width)


def _significance(numbers):
    for key, found in numbers.items():
        epsilon = key.rpartition(" ")[2]
        yield f"{key}, told", _cell(epsilon, "told", found["told"])
        yield f"{key}, width", _cell(epsilon, "width", found["width"])


def _of_fits(found, places):
    """Runs of intervals; means where no run was recorded, as before 1 December."""
    if isinstance(found, list):
        found = {"means": found}
    means = dict(enumerate(found["means"]))  # of before 26 November: without what is told
    return {name: means[place] for name, place in places.items() if place in means} | found


def _estimable(numbers):
    for key, found in numbers.items():
        if key.startswith("after"):
            kind = key.split(", ")[0]
            yield f"{key}, told", _cell(kind, "told", found["estimable"])
            yield f"{key}, covered", _cell(kind, "covered at .95", found["coverage"])
            yield f"{key}, width", _cell(kind, "width", found["std_error"])


def _wage_equation(numbers):
    for key, (_, told, width, covered) in numbers.items():
        method = key.rsplit(" ", 1)[0]
        yield f"{key}, told", _cell(method, "told", told)
        if np.isfinite(width):
            yield f"{key}, width", _cell(method, "width", width)
            yield f"{key}, covered", _cell(method, "covered at .95", covered)


def _plans(numbers):
    for key, (ratio, *_) in numbers.items():
        yield f"{key}, error", _cell("plan", "error", max(ratio, 1.0 / ratio))


def _prediction(numbers):
    for key, found in numbers.items():
        method = key.split()[-2]
        yield f"{key}, covered", _cell(method, "covered at .9", found["coverage"])
        yield f"{key}, width", _cell(method, "width", found["width"])


def _panels(numbers):
    for found in numbers["cells"]:
        if "inference" in found:
            key = f"{found['what']}, {found['cell']}".translate(str.maketrans("", "", "[]'"))
            error = np.sqrt(found["inference"] * (1.0 - found["inference"]) / numbers["repeats"])
            yield key, _cell(found["what"], "covered at .95", found["inference"], error)


def _bands(numbers):
    for key, found in numbers.items():
        yield f"{key}, covered", _cell("bands", "covered at .95", found["band"])
        yield f"{key}, width", _cell("bands", "width", found["width"])


def _bandits(numbers):
    for world, groups in numbers.items():
        for group, policies in groups.items():
            for policy, found in policies.items():
                runs = found.get("runs", found["mean"])
                yield f"{world}, {group}, {policy}", _cell(policy, "regret", runs)


def _regrets(numbers):
    """Of records whose every key has a list of runs, or a dict of such lists."""
    for key, found in numbers.items():
        if isinstance(found, dict) and key != "curves":
            for name, runs in found.items():
                yield f"{key}, {name}", _cell(name, "regret", runs)
        elif isinstance(found, list) and "," in key and not isinstance(found[0], str):
            yield key, _cell(key.rpartition(", ")[0], "regret", found)


def _fliphat(numbers):
    found = numbers["rounds"]
    for epsilon, runs in zip(found["epsilons"], found["fractions"]):
        for place, rounds in enumerate(found["rounds"]):
            values = [run[place] for run in runs]
            yield f"epsilon {epsilon:g}, T={rounds}", _cell("FLIPHAT", "regret", values)


def _guesses(numbers):
    for epsilon, of_guesses in zip(numbers["epsilons"], numbers["fractions"]):
        for guess, runs in zip(numbers["guesses"], of_guesses):
            yield f"epsilon {epsilon:g}, {guess} kept", _cell("FLIPHAT", "regret", runs)


def _elimination(numbers):
    for privacy in numbers["privacy"]:
        found = numbers[privacy]
        for name, runs in zip(found["names"], found["regret"]):
            yield f"{privacy}, {name}", _cell(name, "regret", [run[-1] for run in runs])


def _square_cb(numbers):
    for d, found in zip(numbers["features"], numbers["mean and standard error"]):
        for name, (mean, error) in found.items():
            yield f"d={d}, {name}", _cell(name, "regret", mean, error)


def _rates(numbers):
    for panel in numbers["panels"]:
        for size, errors in zip(panel["sizes"], panel["errors"]):
            for place, method in enumerate(panel["methods"]):
                values = [run[place] for run in errors]
                key = f"{panel['title']}, {numbers['axis']}={size:g}, {method}"
                yield key, _cell(method, "error", values)


def _aggregate(numbers):
    for privacy, runs in numbers["r2"].items():
        yield f"{privacy}", _cell("r2", "r2", runs)


def _speed(numbers):
    unit = min(numbers["seconds"]["X'X"])
    for name, times in numbers["seconds"].items():
        yield name, _cell("fits", "cost", [time / unit for time in times])


def _speed_cells(numbers):
    for key, found in numbers.items():
        unit = min(found["product"])
        yield key, _cell("fits", "cost", [time / unit for time in found["fit"]])


def _speed_beside(numbers):
    for key, turns in numbers.items():
        unit = min(turn["product"] for turns in turns.values() for turn in turns)
        yield key, _cell("fits", "cost", [turn["fit"] / unit for turn in turns["after"]])


def _service(numbers):
    for policy, found in numbers["policies"].items():
        for name in ("events_a_second", "block_events_a_second"):
            yield f"{policy}, {name}", _cell(name, "speed", found[name])


def _file_sizes(numbers):
    for key, found in numbers.items():
        yield key, _cell("file of a service", "cost", found["file_mb"])


def _every_model(numbers):
    for key, found in numbers.items():
        level = "covered at .9" if key.startswith("prediction") else "covered at .95"
        for name, runs in found.items():
            measure = {"covered": level, "cost": "rough cost"}.get(name, name)
            yield f"{key}, {name}", _cell(key.split(",")[0], measure, runs)


CELLS = {
    "plans": _plans,
    "every_model": _every_model,
    "peers": _peers,
    "drawn_tables": _drawn,
    "peers_designs": _designs,
    "additive": _additive,
    "recorded_adassp": _recorded_adassp,
    "usual": _usual,
    "glm": _glm,
    "inference": _inference,
    "linear_intervals": _line_intervals,
    "significance": _significance,
    "estimable": _estimable,
    "wage_equation": _wage_equation,
    "prediction_intervals": _prediction,
    "prediction_intervals_local": _prediction,
    "panels": _panels,
    "additive_bands": _bands,
    "additive_bands_few": _bands,
    "bandits": _bandits,
    "bandit_drift": _regrets,
    "bandit_drift_epochs": _regrets,
    "bandit_drift_exact": _regrets,
    "bandit_intercept": _regrets,
    "bandit_oracles": _regrets,
    "linucb_comparison": _regrets,
    "linucb_comparison_part": _regrets,
    "bandit_fliphat": _fliphat,
    "bandit_fliphat_guess": _guesses,
    "bandit_fliphat_part": _fliphat,
    "bandit_fliphat_uniform": _fliphat,
    "bandit_elimination": _elimination,
    "bandit_square_cb": _square_cb,
    "bandit_cost": _file_sizes,
    "rate_iht": _rates,
    "rate_layered": _rates,
    "rate_reweighted": _rates,
    "rate_improper_sgd": _rates,
    "rate_improper_sgd_features": _rates,
    "aggregate": _aggregate,
    "speed": _speed,
    "speed_beside": _speed_beside,
    "speed_cells": _speed_cells,
    "service": _service,
}
NOT_COMPARED = {
    "ablation": "what parts of an estimator are worth, to choose them",
    "bandit_clicks": "beside other libraries, which have no last version here",
    "bandit_links": "one run, to see what a link and a combination do",
    "bandit_few_rounds": "over the best fixed action, which moves with the same noise",
    "bandit_weights": "what constants are worth, to choose them",
    "bandit_rounds": "rounds until a policy beats the best fixed action, which move with noise",
    "bandit_rounds_policies": "the same of other policies",
    "shuffle_points": "constants of a proof",
    "thinning": "what a rejected remedy was worth",
    "coverage": "intervals of designs, which every_model and inference have since",
    "speed_peers": "processor time beside other packages, which have no last version here",
    "speed_secure": "times with secure noise beside seeded ones, on one machine",
    "speed_two": "times by the clock of one job and of two, on one machine",
    "private_search": "scores that a search picked among candidates",
    "large": "seconds and memory of one pass through files, on one machine",
    "first_interval": "one fit, whose picture begins a page",
    "first_table": "the table of the landing page",
}


def cells(folder):
    """All cells of the records of a folder, by the name of the record and their own."""
    found = {}
    for name in CELLS:
        found |= cells_of(folder, name)
    return found


def cells_of(folder, name):
    """The cells of one record."""
    path = folder / "results" / f"{name}.json"
    if name not in CELLS or not path.exists():
        return {}
    numbers = json.loads(path.read_text(encoding="utf-8"))["numbers"]
    return {f"{name}: {key}": cell for key, cell in CELLS[name](numbers) if cell is not None}


def difference(last, new):
    """How much worse a cell is than the last one, and the error of that, in the same unit."""
    measure = MEASURES[last.measure]
    shared = sorted(last.runs.keys() & new.runs.keys())
    before, now = ([cell.runs[key] for key in shared or cell.runs] for cell in (last, new))
    if not shared:  # a mean is compared with a mean, and not with one of clipped runs
        before, now = [np.mean(before)], [np.mean(now)]
    before, now = (np.clip(runs, measure.worst, measure.enough) for runs in (before, now))
    if not measure.relative:
        scale = 1.0
    elif measure.least:
        scale = max(float(before.min()), 1e-300)
    else:
        scale = max(abs(float(before.mean())), 1e-300)
    if measure.least:  # by which factor, so that half counts as much as twice
        spread = np.log(max(np.median(before), scale) / scale)
        worse = -measure.better * np.log(max(float(now.min()), 1e-300) / scale)
        return float(worse), float(np.log1p(measure.slack) + spread)
    worse = measure.better * (before.mean() - now.mean()) / scale
    if len(shared) > 2:
        noise = (before - now).std(ddof=1) / np.sqrt(len(shared))
    elif last.error is not None and new.error is not None:
        noise = np.hypot(last.error, new.error)
    else:
        return worse, 2.0 * measure.slack
    return worse, max(measure.slack, DEVIATIONS * noise / scale)


def worse_cells(last, now):
    """Cells that are worse than the last ones by more than their error, or that are not there.

    Returns
    -------
    dict of str: str
        What happened, by the name of the cell, or by "all of" a kind of cells.
    """
    found, kinds = {}, defaultdict(list)
    for key, cell in last.items():
        if key not in now:
            found[key] = "is in no record any more"
            continue
        worse, error = difference(cell, now[key])
        if cell.runs != now[key].runs:
            kinds[key.partition(":")[0], cell.kind].append(float(np.clip(worse, -1.0, 1.0)))
        if worse > error:
            found[key] = f"is worse by {worse:.3g}, where {error:.3g} may be chance"
    for (record, kind), changes in kinds.items():
        slack = MEASURES[kind.rpartition(": ")[2]].slack / 2.0
        error = (
            max(slack, 2.0 * np.std(changes, ddof=1) / np.sqrt(len(changes)))
            if len(changes) >= TOGETHER
            else np.inf
        )
        if np.mean(changes) > error:
            words = f"are worse by {np.mean(changes):.3g} on average of {len(changes)} cells"
            found[f"{record}: all of {kind}"] = words
    return found


def unnamed(worse, accepted, changelog):
    """Worse cells that nobody named, and names without a cell or without words in the changelog.

    Parameters
    ----------
    worse : dict of str: str
    accepted : list of dict
        Each has ``cells``, a list of patterns, and a ``reason``.
    changelog : str
    """
    patterns = [pattern for one in accepted for pattern in one["cells"]]
    for key, words in worse.items():
        if not any(fnmatch(key, pattern) for pattern in patterns):
            yield f"{key} {words}"
    for pattern in patterns:
        if not any(fnmatch(key, pattern) for key in worse):
            yield f"{pattern} is accepted, and no cell of this name is worse"
    plain = " ".join(changelog.split())
    for one in accepted:
        if " ".join(one["reason"].split()) not in plain:
            yield f"the changelog does not say: {one['reason']}"


def read_last(folder):
    """The cells that records are compared with."""
    path = folder / "last_cells.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {key: Cell(kind, measure, _named(runs), *error)
            for key, (kind, measure, runs, *error) in kept.items()}  # fmt: skip


def write_last(folder, kept):
    """Write those cells, one a line."""
    lines = []
    for key, one in sorted(kept.items()):
        runs = list(one.runs.values()) if one.runs == _named(list(one.runs.values())) else one.runs
        found = [one.kind, one.measure, runs] + [one.error] * (one.error is not None)
        lines.append(f"{json.dumps(key)}:{json.dumps(found, separators=(',', ':'))}")
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (folder / "last_cells.json").write_text(text, encoding="utf-8")


def _named(runs):
    """Runs by key; in a list their keys are their places."""
    if isinstance(runs, list):
        return {str(place): value for place, value in enumerate(runs)}
    return runs


def keep_better(folder, name):
    """Put cells of a record that are new, or better by more than their error, among the last."""
    last, now = read_last(folder), cells_of(folder, name)
    for key, cell in now.items():
        if key in last:
            worse, error = difference(last[key], cell)
            more = last[key].runs.keys() < cell.runs.keys() and worse <= error
        if key not in last or more or worse < -error:
            last[key] = cell
    if now:
        write_last(folder, last)


def read_accepted(folder):
    """What is worse and known."""
    return tomllib.loads((folder / "accepted.toml").read_text(encoding="utf-8")).get("accepted", [])


def main():
    """Print what is worse, or begin anew."""
    now = cells(HERE)
    if "--release" in sys.argv:
        write_last(HERE, now)
        print(f"{len(now)} cells are what the next records are compared with; empty accepted.toml.")
        return
    changelog = (HERE.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    open_ones = list(unnamed(worse_cells(read_last(HERE), now), read_accepted(HERE), changelog))
    print("\n".join(open_ones) or f"None of {len(now)} cells is worse than the last one.")


if __name__ == "__main__":
    main()
