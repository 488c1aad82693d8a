"""What an event costs a service, in processor time, after many rounds; and what its file holds.

Run: OPENBLAS_NUM_THREADS=1 python benchmarks/service.py [--rounds 1000000]
     [--events 5000] [--kills 50]

The rounds before come in blocks (`rank_many`, `reward_many`); then events come one at a time,
each with a `rank` and the reward of the event 50 before it. 5 actions, 10 features.

Then one worker, and two that share a file, are killed at random instants, as often as --kills says.
The file goes on, and every acknowledged event must be in it, and be learned once. Ten
services are restored from one backup, go on with other events each, and must give one answer.
"""

import argparse
import multiprocessing
import os
import signal
import sqlite3
import tempfile
import time
from pathlib import Path
from time import process_time

import numpy as np
from _record import record

from skpriv.bandits import LinSquareCB, LinUCB, Loop, SquareCB
from skpriv.linear_model import SSPRegressor

BOUNDS = {"data_norm": 1.0, "bounds_y": (0, 1)}
POLICIES = {
    "LinUCB": lambda: LinUCB(epsilon=1.0, **BOUNDS),
    "LinUCB, in_order=False": lambda: LinUCB(epsilon=1.0, **BOUNDS),
    "SquareCB(SSPRegressor)": lambda: SquareCB(SSPRegressor(epsilon=1.0, delta=1e-6, **BOUNDS)),
    "LinSquareCB": lambda: LinSquareCB(epsilon=1.0, **BOUNDS),
}
BLOCK, LATE = 10_000, 50  # events in a call, and events until a reward comes


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=5_000)
    parser.add_argument("--kills", type=int, default=50)
    arguments = parser.parse_args()
    stall = inside(longest_stall, lin_ucb, arguments.rounds)
    print(f"while another process learns, after {arguments.rounds:,} rounds: {stall}", flush=True)
    print("policy                  events a CPU second   rank p50, p99, most (ms)   state, file")
    found, safety = {}, {}
    for name, make in POLICIES.items():
        in_order = "in_order=False" not in name
        row = found[name] = inside(measured, make(), arguments, in_order)
        ranks = ", ".join(f"{value:.2f}" for value in row["rank_ms"])
        print(f"{name:24} {row['events_a_second']:15,.0f}   {ranks:>25}   "
              f"{row['state_kb']:.0f} kB, {row['file_mb']:.0f} MB (blocks: "
              f"{row['block_events_a_second']:,.0f})", flush=True)  # fmt: skip
        told = safety[name] = {
            f"workers {workers}": inside(killed, make, workers, arguments.kills, in_order)
            for workers in (1, 2)
        }
        told["answers of ten restored services"] = inside(restored, make, in_order)
        print(f"{'':24} {told}", flush=True)
        record("service", {**vars(arguments), "stall": stall, "policies": found, "safety": safety})


def inside(function, *given):
    """Result of a function that has a folder for itself."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SKPRIV_STATE"] = folder
        return function(Path(folder), *given)


def serve(make, path, name, in_order, acknowledged):
    """Play until somebody kills this process."""
    loop, rng = Loop(make(), path, in_order=in_order), np.random.default_rng()
    for k in range(1_000_000):
        loop.rank(f"{name} {k}", rng.uniform(-0.3, 0.3, (5, 10)))
        if k >= LATE:
            loop.reward(f"{name} {k - LATE}", 0.5)
        acknowledged.value = k + 1


def killed(folder, make, workers, kills, in_order):
    """Numbers of acknowledged events, of events in the file, and of those learned, after all."""
    rng, context = np.random.default_rng(0), multiprocessing.get_context("fork")
    acknowledged = 0
    for kill in range(kills):
        counts = [context.Value("q", 0, lock=False) for _ in range(workers)]
        started = [
            context.Process(
                target=serve, args=(make, folder / "service", f"{kill} {at}", in_order, count)
            )
            for at, count in enumerate(counts)
        ]
        for process in started:
            process.start()
        while min(count.value for count in counts) < 5:
            time.sleep(0.01)
        for process in started:
            time.sleep(rng.uniform(0.0, 0.5))
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        acknowledged += sum(count.value for count in counts)
    loop = Loop(make(), folder / "service", in_order=in_order, cutoff=1e-9)
    loop.learn(force=True)
    assert loop.policy.n_rounds_ == loop.n_events >= acknowledged and not loop.troubles
    return {"acknowledged": acknowledged, "events": loop.n_events, "learned": loop.n_learned}


def restored(folder, make, in_order):
    """Number of different answers of ten services that go on from one backup; it should be 1."""
    rng, answers = np.random.default_rng(0), set()
    loop = Loop(make(), folder / "service", in_order=in_order)
    for k in range(30):
        loop.rank(f"visit {k}", rng.uniform(-0.3, 0.3, (5, 10)))
        loop.reward(f"visit {k}", 0.5)
    loop.backup(folder / "backup")
    for copy in range(10):
        loop.backup(folder / f"copy {copy}")
        again = Loop(make(), folder / f"copy {copy}", in_order=in_order)
        for k in range(30, 230):
            again.rank(f"visit {k} of {copy}", rng.uniform(-0.3, 0.3, (5, 10)))
            again.reward(f"visit {k} of {copy}", float(rng.random()))
        assert not again.troubles
        told = (
            again.policy.oracle_.coef_
            if hasattr(again.policy, "oracle_")
            else (again.policy._sums.mark.answer.value)
        )
        answers.add(told.tobytes())
    return len(answers)


def learn_all(make, path):
    """What learns for the other workers, until somebody kills this process."""
    loop = Loop(make(), path, learn="elsewhere")
    while True:
        loop.learn()
        time.sleep(0.01)


def longest_stall(folder, make, rounds):
    """Times of calls in ms while another process learns, and how often it has learned.

    Those of the clock have the waits for the disk and for other programs in them, and those of the
    processor what this process itself does in a call.
    """
    path, rng = folder / "service", np.random.default_rng(0)
    loop = Loop(make(), path, learn="elsewhere")
    for block in range(rounds // BLOCK):
        names = [f"{block} {k}" for k in range(BLOCK)]
        loop.rank_many(names, rng.uniform(-0.3, 0.3, (BLOCK, 5, 10)))
        loop.reward_many(names, rng.random(BLOCK))
        loop.learn()
    status = loop.status()
    missing = max(0, status["rounds_until_update"] - status["waiting"] - 500)
    names = [f"last {k}" for k in range(missing)]
    if names:
        loop.rank_many(names, rng.uniform(-0.3, 0.3, (missing, 5, 10)))
        loop.reward_many(names, rng.random(missing))
    worker = multiprocessing.get_context("spawn").Process(target=learn_all, args=(make, path))
    worker.start()
    time.sleep(3.0)
    calls, own, version = [], [], loop.status()["version"]
    for k in range(3_000):
        for call, given in (
            (loop.rank, rng.uniform(-0.3, 0.3, (5, 10))),
            (loop.reward, float(rng.random())),
        ):
            start, begun = time.perf_counter(), process_time()
            call(f"visit {k}", given)
            own.append(1e3 * (process_time() - begun))
            calls.append(1e3 * (time.perf_counter() - start))
    learned = loop.status()["version"] - version
    worker.kill()
    worker.join()
    found = {"reads": learned}
    for name, times in {"ms": calls, "processor_ms": own}.items():
        found |= {f"longest_{name}": max(times), f"p99.9_{name}": np.percentile(times, 99.9)}
        found |= {f"p99_{name}": np.percentile(times, 99), f"p50_{name}": np.median(times)}
    return found


def lin_ucb():
    """The policy of which the longest stall is measured; workers make it by its name."""
    return POLICIES["LinUCB"]()


def measured(folder, policy, arguments, in_order):
    """One row of the table."""
    path, rng = folder / "service", np.random.default_rng(0)
    loop = Loop(policy, path, in_order=in_order)
    start = process_time()
    for block in range(arguments.rounds // BLOCK):
        names = [f"{block} {k}" for k in range(BLOCK)]
        loop.rank_many(names, rng.uniform(-0.3, 0.3, (BLOCK, 5, 10)))
        loop.reward_many(names, rng.random(BLOCK))
    blocks, ranks, rewards = process_time() - start, [], 0.0
    contexts = rng.uniform(-0.3, 0.3, (arguments.events, 5, 10))
    for k in range(arguments.events):
        start = process_time()
        loop.rank(f"visit {k}", contexts[k])
        ranks.append(process_time() - start)
        if k >= LATE:
            start = process_time()
            loop.reward(f"visit {k - LATE}", 0.5)
            rewards += process_time() - start
    assert not loop.troubles
    connection = sqlite3.connect(path)
    state = connection.execute("SELECT length(state) FROM policy").fetchone()[0]
    connection.close()
    return {
        "events_a_second": arguments.events / (sum(ranks) + rewards),
        "block_events_a_second": arguments.rounds / max(blocks, 1e-9),
        "rank_ms": (1e3 * np.percentile(ranks, [50, 99, 100])).tolist(),
        "state_kb": state / 1e3,
        "file_mb": path.stat().st_size / 1e6,
        "learned": loop.n_learned,
    }


if __name__ == "__main__":
    main()
