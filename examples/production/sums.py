"""
Secure aggregation
==================

Two thousand devices keep their records. Each sends one share to each of two servers, which are
processes of their own: a share is a uniform number, and tells nothing. The analyst sees sums with
noise, and no share. Some devices never answer, some reach one server only, and one server is
stopped and started again in the middle of a round.

Run ``python examples/production/sums.py``; the number of devices is its first argument.
"""

# sphinx_gallery_thumbnail_path = '_static/thumbnails/sums.svg'

import multiprocessing
import sys
import tempfile
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np

from skpriv import BudgetAccountant
from skpriv.linear_model import SSPRegressor
from skpriv.protocol import Collector, DeviceLedger, ShareServer, report

COEF = np.array([0.6, -0.4, 0.2])


class Handler(BaseHTTPRequestHandler):
    """POST /open a task, POST /17 the share of user 17, GET / the users, POST /total for some."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 30.0  # seconds without a byte

    def do_GET(self):
        """Say who has reported, and nothing of what."""
        users = np.array(self.server.shares.users, dtype="<u4")
        self._reply(200, users.tobytes())

    def do_POST(self):
        """Take a task or a share, or give out the total."""
        length = self.headers.get("Content-Length", "")
        if not (length.isdecimal() and len(length) <= 7):
            self.close_connection = True  # unread
            return self._reply(413, b"a message has less than 10 MB")
        body, path = self.rfile.read(int(length)), self.path.strip("/")
        shares, answer = self.server.shares, b""
        try:
            if path == "open":
                shares.open(body.decode())
            elif path == "total":
                answer = shares.total(np.frombuffer(body, dtype="<u4").tolist())
            else:
                shares.add(int(path), body)
        except ValueError as error:
            return self._reply(409, str(error).encode())
        return self._reply(200, answer)

    def _reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """Keep quiet."""


def serve(which, path, pipe):
    """One server: a process that keeps its shares in a file of its own."""
    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.shares = ShareServer(which, path)
    pipe.send(server.server_address)
    server.serve_forever()


class Server:
    """A server process, and the wire to it."""

    def __init__(self, which, path):
        self.which, self.path = which, path
        self.start()

    def start(self):
        """Start the process; it goes on from its file."""
        mine, its = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=serve, args=(self.which, self.path, its), daemon=True)
        self.process.start()
        self.wire = HTTPConnection(*mine.recv())

    def stop(self):
        """End the process at once, whatever it does."""
        self.wire.close()
        self.process.kill()
        self.process.join()

    def ask(self, path="", body=None):
        """What the server answers; a refusal is an error."""
        self.wire.request("GET" if body is None else "POST", f"/{path}", body)
        response = self.wire.getresponse()
        answer = response.read()
        if response.status != 200:
            raise ValueError(answer.decode())
        return answer


def main(n_devices=2_000):
    """Collect; return the fitted estimator, the accountant and how many users were in each sum."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(n_devices, 3)) / np.sqrt(3.0)
    y = np.where(rng.uniform(size=n_devices) < (1.0 + X @ COEF) / 2.0, 1.0, -1.0)
    gone, half = rng.uniform(size=n_devices) < 0.03, rng.uniform(size=n_devices) < 0.02
    model = SSPRegressor(
        data_norm=1.0, bounds_y=(-1, 1), epsilon=1.0, privacy="aggregate", fit_intercept=False
    )
    counts = []
    with tempfile.TemporaryDirectory() as folder, BudgetAccountant(1.0, 1e-6) as accountant:
        collector = Collector(model, n_devices, n_features=3, n_min=int(0.9 * n_devices))
        servers = [Server(which, str(Path(folder) / f"{which}.db")) for which in (0, 1)]
        # The memory of one device; in truth each has one
        first = DeviceLedger(Path(folder) / "device.db", 1.0, 1e-6, n_min=n_devices // 2)
        while (task := collector.task) is not None:
            for server in servers:
                server.ask("open", task.encode())
            for user in range(n_devices):
                if user == n_devices // 2:  # whatever was acknowledged is in its file
                    servers[1].stop()
                    servers[1].start()
                if gone[user]:
                    continue
                ledger = first if user == 0 else None
                messages = report(task, X[user], y[user], user=user, ledger=ledger)
                for server, message in zip(servers, messages, strict=True):
                    if not (half[user] and server.which == user % 2):
                        server.ask(str(user), message)
            known = [np.frombuffer(server.ask(), dtype="<u4") for server in servers]
            both = np.intersect1d(*known).astype("<u4")
            counts.append(len(both))
            collector.close_round(*(server.ask("total", both.tobytes()) for server in servers))
        for server in servers:
            server.stop()
        print("what one device has given away:", first)
    fitted = collector.result()
    print(fitted.privacy_report_)
    print("users in the sums:", counts, "of", n_devices)
    print("charges:", len(accountant.charges))
    print("coefficients:", fitted.coef_.round(3), "of", COEF)
    return fitted, accountant, counts


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
