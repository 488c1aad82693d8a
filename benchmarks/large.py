"""Time and memory of fits to Parquet files, beside bare passes over them.

Run: OPENBLAS_NUM_THREADS=1 python benchmarks/large.py [--files 20] [--rows 1000000] [--folder DIR]

Each file has so many rows of 20 float32 features and a target. Each task has a process of its own,
whose processor time (of all threads, imports aside) and largest resident set are printed. A bare
pass reads batches by pyarrow and adds up X'X in float64. The files are deleted afterwards.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
from _record import record

NAMES = [f"x{i:02}" for i in range(20)]
TASKS = ("imports", "bare", "SSPRegressor", "LinearRegression", "ReweightedRegressor")


def write(folder, files, rows):
    """Write files of features in [-1, 1] and targets that are linear in them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    theta = np.linspace(-1.0, 1.0, len(NAMES)) / len(NAMES)
    for part in range(files):
        rng = np.random.default_rng(part)
        X = rng.uniform(-1.0, 1.0, (rows, len(NAMES))).astype(np.float32)
        y = (X @ theta + rng.normal(0.0, 0.1, rows)).astype(np.float32)
        table = pa.table({**dict(zip(NAMES, X.T, strict=True)), "y": y})
        options = {"row_group_size": 2**17, "compression": None, "use_dictionary": False}
        pq.write_table(table, folder / f"part{part:03}.parquet", **options)


def bare(folder):
    """One pass of pyarrow and X'X."""
    import pyarrow.parquet as pq

    total = np.zeros((len(NAMES), len(NAMES)))
    for path in sorted(folder.glob("*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(2**16, columns=NAMES):
            columns = [batch.column(name).to_numpy() for name in NAMES]
            X = np.column_stack(columns).astype(np.float64)
            total += X.T @ X
    return 1


def fit(name, folder):
    """Fit a regressor, and return how often it read the rows."""
    from skpriv import linear_model
    from skpriv.records import from_parquet

    options = {"random_state": 0, "data_norm": len(NAMES) ** 0.5, "bounds_y": (-1, 1)}
    if name == "LinearRegression":
        options = {"random_state": 0, "bounds_X": (-1, 1), "bounds_y": (-1, 1)}
    model = getattr(linear_model, name)(**options)
    return model.fit(from_parquet(folder, target="y", features=NAMES)).privacy_report_.passes


def measure(task, folder, files, rows):
    """Passes, processor time and peak memory of a task in this process."""
    import pyarrow.dataset  # noqa: F401

    import skpriv.linear_model  # noqa: F401

    start, passes = process_time(), 0
    if task == "write":
        write(folder, files, rows)
    elif task == "bare":
        passes = bare(folder)
    elif task in TASKS[2:]:
        passes = fit(task, folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"passes": passes, "seconds": process_time() - start, "peak_mb": peak}


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--task", default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        print(
            json.dumps(
                measure(arguments.task, Path(arguments.folder), arguments.files, arguments.rows)
            )
        )
        return
    folder, found = Path(tempfile.mkdtemp(dir=arguments.folder)), {}
    try:
        sizes = ["--files", str(arguments.files), "--rows", str(arguments.rows)]
        for task in ("write", *TASKS):  # each in a process that begins small
            command = [sys.executable, __file__, "--task", task, "--folder", str(folder), *sizes]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[task] = json.loads(done.stdout)
            print(
                "{:20} {passes:3} passes {seconds:7.1f} s {peak_mb:6.0f} MB".format(
                    task, **found[task]
                ),
                flush=True,
            )
    finally:
        shutil.rmtree(folder)
    record("large", {"files": arguments.files, "rows": arguments.rows, "tasks": found})


if __name__ == "__main__":
    main()
