"""Time and memory of fits to Parquet files, beside bare passes over them.

Run: OPENBLAS_NUM_THREADS=1 python benchmarks/large.py [--name "20 million rows"] [--files 20]
     [--rows 1000000] [--features 20] [--copies 1] [--tasks imports bare ...] [--folder DIR]

Each file has so many rows of float32 features and a target; with ``copies`` each stands in the
folder under as many names, so that a thousand million rows need no more room than 20 million. Each
task has a process of its own, whose seconds on the clock, processor time (of all threads, imports
aside) and largest resident set are printed. A bare pass reads batches by pyarrow and adds up X'X in
float64. The files are deleted afterwards.

A table of that name keeps its other tasks. That of a thousand million rows is
    python benchmarks/large.py --name "1e9 rows" --features 3 --copies 50
        --tasks bare SSPRegressor LinearRegression
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from _record import HERE, provenance, record

TASKS = ("imports", "bare", "SSPRegressor", "LinearRegression", "ReweightedRegressor")


def write(folder, names, options):
    """Write files of features in [-1, 1] and targets that are linear in them, or classes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    theta = np.linspace(-1.0, 1.0, len(names)) / len(names)
    for part in range(options.files):
        rng = np.random.default_rng(part)
        X = rng.uniform(-1.0, 1.0, (options.rows, len(names))).astype(np.float32)
        y = (X @ theta + rng.normal(0.0, 0.1, options.rows)).astype(np.float32)
        columns = {**dict(zip(names, X.T, strict=True)), "y": y, "positive": (y > 0).astype("f4")}
        path = folder / f"part{part:03}.parquet"
        layout = {"row_group_size": 2**17, "compression": None, "use_dictionary": False}
        pq.write_table(pa.table(columns), path, **layout)
        for copy in range(1, options.copies):
            os.link(path, folder / f"part{part:03}_{copy:03}.parquet")


def bare(folder, names):
    """One pass of pyarrow and X'X."""
    import pyarrow.parquet as pq

    total = np.zeros((len(names), len(names)))
    for path in sorted(folder.glob("*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(2**16, columns=names):
            columns = [batch.column(name).to_numpy() for name in names]
            X = np.column_stack(columns).astype(np.float64)
            total += X.T @ X
    return {"passes": 1}


def fit(task, folder, names):
    """Fit a regressor: how often it read the rows, of which there are how many, and what it is."""
    from skpriv import linear_model
    from skpriv.records import from_parquet

    name, _, calibrated = task.partition("+")
    target, options = "y", {"random_state": 0, "bounds_X": (-1, 1), "bounds_y": (-1, 1)}
    if name == "LogisticRegression":
        target, options = "positive", {"random_state": 0, "bounds_X": (-1, 1), "classes": (0, 1)}
    elif name != "LinearRegression":
        options = {"random_state": 0, "data_norm": len(names) ** 0.5, "bounds_y": (-1, 1)}
    if calibrated:
        options["calibration_size"] = 0.1
    rows = from_parquet(folder, target=target, features=names)
    model = getattr(linear_model, name)(**options).fit(rows)
    passes = model.privacy_report_.passes
    return {"passes": passes, "records": rows.n, "coef": np.ravel(model.coef_).tolist()}


def measure(task, folder, options):
    """What a task in this process found, its clock and processor time, and its peak memory."""
    import pyarrow.dataset  # noqa: F401

    import skpriv.linear_model  # noqa: F401

    names = [f"x{i:02}" for i in range(options.features)]
    start, clock, found = process_time(), perf_counter(), {"passes": 0}
    if task == "write":
        write(folder, names, options)
    elif task == "bare":
        found = bare(folder, names)
    elif task != "imports":
        found = fit(task, folder, names)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    elapsed, busy = perf_counter() - clock, process_time() - start
    return {**found, "elapsed": elapsed, "seconds": busy, "peak_mb": peak}


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", default="20 million rows", help="name of the table of results")
    for size, default in (("files", 20), ("rows", 1_000_000), ("features", 20), ("copies", 1)):
        parser.add_argument(f"--{size}", type=int, default=default)
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--task", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(measure(options.task, Path(options.folder), options)))
        return
    folder, found = Path(tempfile.mkdtemp(dir=options.folder)), {}
    sizes = {name: getattr(options, name) for name in ("files", "rows", "features", "copies")}
    try:
        given = [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
        for task in ("write", *options.tasks):  # each in a process that begins small
            command = [sys.executable, __file__, "--task", task, "--folder", str(folder), *given]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found[task] = json.loads(done.stdout)
            line = "{:22} {passes:3} passes {elapsed:7.1f} s {seconds:7.1f} CPU s {peak_mb:6.0f} MB"
            print(line.format(task, **found[task]), flush=True)
    finally:
        shutil.rmtree(folder)
    path = HERE / "results" / "large.json"
    tables = json.loads(path.read_text(encoding="utf-8"))["numbers"] if path.exists() else {}
    made = {key: provenance()[key] for key in ("commit", "date")}
    table = tables.setdefault(options.name, {**sizes, "tasks": {}})
    table["tasks"] |= {task: {**numbers, **made} for task, numbers in found.items()}
    record("large", tables)


if __name__ == "__main__":
    main()
