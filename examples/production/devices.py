"""
A fit from 10,000 devices
=========================

Nobody but the devices sees a record. A server on this machine hands out the public task and takes
answers over HTTP; devices come in a random order, some never, some twice, and some send nonsense.
In the middle the server is stopped, and goes on from its file.

Run ``python examples/production/devices.py``; the number of devices is its first argument.
"""

# sphinx_gallery_thumbnail_path = '_static/thumbnails/devices.svg'

import sys
import tempfile
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

from skpriv.linear_model import SSPRegressor
from skpriv.protocol import Collector, report

COEF = np.array([0.6, -0.4, 0.2])


class Handler(BaseHTTPRequestHandler):
    """GET / is the task; POST /17 the answer of user 17, whom a real server would check."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 30.0  # seconds without a byte

    def do_GET(self):
        """Hand out the public task; empty after the last round."""
        self._reply(200, (self.server.collector.task or "").encode())

    def do_POST(self):
        """Take an answer, or say why it is refused."""
        length = self.headers.get("Content-Length", "")
        if not (length.isdecimal() and len(length) <= 3):
            self.close_connection = True  # unread
            return self._reply(413, b"an answer has less than 1 kB")
        try:
            answer = self.rfile.read(int(length))
            self.server.collector.add(int(self.path.strip("/")), answer)
        except ValueError as error:
            return self._reply(409, str(error).encode())
        return self._reply(200, b"")

    def _reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """Keep quiet."""


def serve(collector):
    """Server of a collector, in a thread, on a free port of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.collector = collector
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def stop(server):
    """End of a server; what its collector has acknowledged is on disk."""
    server.shutdown()
    server.server_close()
    server.collector.close()


class Crowd:
    """Devices, each with a record of its own."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.X = rng.uniform(-1.0, 1.0, size=(n, 3)) / np.sqrt(3.0)
        self.y = np.where(rng.uniform(size=n) < (1.0 + self.X @ COEF) / 2.0, 1.0, -1.0)
        self.gone = rng.uniform(size=n) < 0.1  # never answer
        self.order = rng.permutation(n)
        self.refusals = {}

    def answer(self, server, users):
        """Answer in turn; every 50th device sends its answer twice, every 70th one byte less."""
        wire = HTTPConnection(*server.server_address)
        wire.request("GET", "/")
        task = wire.getresponse().read().decode()
        for user in users:
            if self.gone[user]:
                continue
            sent = report(task, self.X[user], self.y[user], user=int(user), largest_epsilon=2.0)
            if sent is None:
                continue
            tries = [sent[:-1], sent] if user % 70 == 0 else [sent]
            for body in tries + tries[-1:] * int(user % 50 == 0):
                wire.request("POST", f"/{user}", body)
                response = wire.getresponse()
                reason = response.read().decode()
                if response.status != 200:
                    kind = "cut off" if "cut off" in reason else "again"
                    self.refusals[kind] = self.refusals.get(kind, 0) + 1
        wire.close()


def main(n_devices=10_000):
    """Collect, with a restart; return the fitted estimator and what was refused."""
    crowd = Crowd(n_devices, seed=0)
    model = SSPRegressor(
        data_norm=1.0,
        bounds_y=(-1, 1),
        epsilon=2.0,
        delta=0.0,
        privacy="local",
        channel="codebook",
        fit_intercept=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.db"
        server = serve(Collector(model, n_devices, seed=0, n_features=3, path=path))
        print(server.collector.task)
        crowd.answer(server, crowd.order[: n_devices // 2])
        stop(server)

        server = serve(Collector.load(path))
        print("after the restart:", server.collector.n_answers, "answers")
        crowd.answer(server, crowd.order[n_devices // 2 :])
        if server.collector.task is not None:
            server.collector.close_round()  # some never answer
        fitted = server.collector.result()
        stop(server)
    print(fitted.privacy_report_)
    print("refused:", crowd.refusals)
    print("coefficients:", fitted.coef_.round(3), "of", COEF)
    low, high = fitted.confidence_interval(np.eye(3) / np.sqrt(3.0), method="asymptotic")
    print("95% intervals at three points:", np.c_[low, high].round(2).tolist())
    return fitted, crowd


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
