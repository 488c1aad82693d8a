"""The examples: an HTTP service with late rewards and a kill in the middle, and logs of rounds."""

import http.client
import io
import json
import runpy
import signal
import subprocess
import sys
from contextlib import suppress
from http.server import ThreadingHTTPServer
from pathlib import Path
from socket import create_connection
from threading import Thread

import numpy as np
import pytest

from skpriv.bandits import LinUCB, Loop

SCRIPT = Path(__file__).parents[3] / "examples" / "production" / "service.py"


def start(path):
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(path), "0"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=SCRIPT.parents[2],
    )
    address = process.stdout.readline().strip()
    return process, int(address.rsplit(":", 1)[1])


def post(connection, path, body):
    connection.request("POST", path, json.dumps(body))
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


@pytest.mark.slow
def test_users_delays_and_a_restart(tmp_path):
    rng, path, users = np.random.default_rng(0), tmp_path / "service.sqlite", 2_000
    waiting, statuses = [], []
    process, port = start(path)
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for k in range(users):
            status, answer = post(
                connection, "/rank", {"event": f"user {k}", "contexts": np.eye(3).tolist()}
            )
            assert status == 200 and answer["propensity"] > 0
            waiting.append((k + rng.integers(1, 40), f"user {k}", float(answer["action"] == 1)))
            due = [item for item in waiting if item[0] <= k]
            waiting = [item for item in waiting if item[0] > k]
            for _, event, reward in due:
                statuses.append(post(connection, "/reward", {"event": event, "reward": reward})[1])
            if k == users // 2:
                connection.close()
                process.stdout.close()
                process.send_signal(signal.SIGKILL)
                process.wait()
                process, port = start(path)
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for _, event, reward in waiting:
            statuses.append(post(connection, "/reward", {"event": event, "reward": reward})[1])
        assert (
            post(connection, "/reward", {"event": "nobody", "reward": 1})[1]["status"] == "unknown"
        )
        status, answer = post(connection, "/rank", {"event": "x"})
        assert status == 400 and "contexts" in answer["error"]
        asked = {"event": "y", "contexts": np.eye(3).tolist()}
        assert post(connection, "/rank", asked)[0] == 200
        status, answer = post(connection, "/reward", {"event": "y", "reward": "much"})
        assert status == 400 and "reward" in answer["error"]
        for text in ("[" * 100_000, "1" + "0" * 5000):
            connection.request("POST", "/rank", text)
            answer = connection.getresponse()
            assert answer.status == 400 and "error" in json.loads(answer.read())
        status, answer = post(connection, "/reward", {"event": "y", "reward": 7})
        assert answer == {"status": "taken", "clipped": True}
        asked |= {"event": "z", "k": 2}
        status, answer = post(connection, "/rank", asked)
        assert status == 200 and len(set(answer["action"])) == len(answer["propensity"]) == 2
        assert post(connection, "/withdraw", {"event": "z"})[1] == {"status": "taken"}
        connection.request("GET", "/health")
        health = connection.getresponse()
        assert health.status == 200 and json.loads(health.read())["events"] == users + 2
        assert post(connection, "/else", {})[0] == 404
    finally:
        connection.close()
        process.kill()
        process.wait()
        process.stdout.close()
    assert [answer["status"] for answer in statuses] == ["taken"] * users
    loop = Loop(LinUCB(epsilon=1.0, delta=1e-6, privacy="central", bounds_y=(0, 1)), path)
    loop.learn(force=True)
    assert loop.policy.n_rounds_ == loop.n_learned == users + 2


# Every example that takes requests. None may wait for ever for one, nor read it without end.
SERVERS = [path for path in SCRIPT.parent.glob("*.py") if "do_POST" in path.read_text("utf-8")]
HOSTILE = [
    b"", b"P", b"POST /1 HTTP/1.1\r\nContent-Length: 9\r\n", b"\0\xff\n\n",
    b"GET /" + 70_000 * b"a" + b" HTTP/1.1\r\n\r\n",
    b"POST /1 HTTP/1.1\r\n" + 200 * b"X: a\r\n" + b"\r\n",
    *(
        b"POST /1 HTTP/1.1\r\n" + head + b"\r\n{}"
        for head in (
            b"", b"Content-Length: -1\r\n", b"Content-Length: 99999999999\r\n",
            b"Content-Length: 9\r\n", b"Content-Length: 1e1\r\n", b"Content-Length: " + 5000 * b"9",
            b"Transfer-Encoding: chunked\r\n",
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize("script", SERVERS, ids=lambda path: path.stem)
def test_no_request_is_waited_for_without_end(script, capsys):
    """A body of negative length was read until its sender went away."""
    names = runpy.run_path(str(script))
    handler = names["Handler"]
    handler.timeout = vars(handler).get("timeout") and 0.2
    handler.handle_one_request.__globals__["SECONDS"] = 0.2
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.shares = server.collector = None
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        for request in HOSTILE:
            with (
                create_connection(server.server_address, timeout=20.0) as connection,
                suppress(ConnectionError),  # closed before all was read
            ):
                connection.sendall(request)
                while connection.recv(1000):
                    pass
    finally:
        server.shutdown()
        server.server_close()
    assert len(SERVERS) >= 3 and "Traceback" not in capsys.readouterr().err


def test_help_is_no_name_of_a_file(tmp_path):
    command = [sys.executable, str(SCRIPT), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0 and "FILE" in done.stdout and not list(tmp_path.iterdir())


def test_the_page_names_the_numbers_of_the_service(tmp_path):
    page = (SCRIPT.parents[2] / "docs" / "deployment.md").read_text(encoding="utf-8")
    status = Loop(LinUCB(epsilon=1.0, bounds_y=(0, 1)), tmp_path / "file").status()
    missing = [name for name in status if f"`{name}`" not in page]
    assert not missing


def test_rounds_are_read_as_they_were_written():
    example = runpy.run_path(str(SCRIPT.with_name("dsjson.py")))
    rng, file = np.random.default_rng(0), io.StringIO()
    rounds = rng.normal(size=(7, 3, 2)), rng.integers(3, size=7), rng.uniform(size=7)
    example["write_dsjson"](file, *rounds, np.full(7, 0.4), range(7))
    read = example["read_dsjson"](file.getvalue().splitlines())
    for found, written in zip(read, (*rounds, np.full(7, 0.4), ["f.x0", "f.x1"]), strict=True):
        np.testing.assert_array_equal(found, written)
