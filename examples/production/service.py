"""
A private bandit behind HTTP
============================

``python service.py FILE [PORT]`` serves a policy that learns from rewards which come late, twice or
never. Events and the policy are kept in FILE: kill the process and start it again, and it goes on.

::

    POST /rank    {"event": "visit 17", "contexts": [[...], [...]], "available": [true, false]}
                  ->  {"action", "propensity"}; "available" may be left out, and with "k": 3 the
                  answer has the first three actions
    POST /withdraw  {"event": "visit 17"}  ->  {"status": "taken"}: its action was not shown
    POST /reward  {"event": "visit 17", "reward": 1}
                  ->  {"status": "taken", "clipped": false}; "clipped" if it is outside of (0, 1)
    GET /health   ->  {"events": 17, "learned": 16, ...}, as ``Loop.status`` has it
"""

# sphinx_gallery_thumbnail_path = '_static/thumbnails/service.svg'

# %%
# The standard library is enough; any web framework can call the same two methods.

import argparse
import json
import socket
import sys
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Timer

from skpriv.bandits import LinUCB, Loop
from skpriv.exceptions import InvalidValues


LARGEST_BODY = 1_000_000  # bytes of a request
SECONDS = 30.0  # after which no more of a request is read, and an idle connection is closed


class Handler(BaseHTTPRequestHandler):
    """Routes over one loop, which is safe for threads."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer is two small packets
    loop: Loop

    def handle_one_request(self):
        """Read no more of a request after a while, however slowly it comes."""
        late = Timer(SECONDS, self.stop_reading)
        late.daemon = True
        late.start()
        super().handle_one_request()
        late.cancel()

    def stop_reading(self):
        with suppress(OSError):  # the connection has ended
            self.connection.shutdown(socket.SHUT_RD)

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not (length.isdecimal() and len(length) < 9 and int(length) <= LARGEST_BODY):
            self.close_connection = True  # what follows is not read
            message = f"Content-Length must be a number up to {LARGEST_BODY}"
            return self.answer(413 if length.isdecimal() else 411, {"error": message})
        try:
            body = json.loads(self.rfile.read(int(length)))
            if not isinstance(body, dict):
                raise KeyError("event")
            if self.path == "/rank":
                action, propensity = self.loop.rank(
                    body["event"], body["contexts"], body.get("available"), k=body.get("k")
                )
                self.answer(200, {"action": action, "propensity": propensity})
            elif self.path == "/withdraw":
                self.answer(200, {"status": self.loop.withdraw(body["event"])})
            elif self.path == "/reward":
                status = self.loop.reward(body["event"], body["reward"])
                low, high = self.loop.policy.bounds_y
                clipped = not low <= float(body["reward"]) <= high  # told to its sender alone
                self.answer(200, {"status": status, "clipped": clipped})
            else:
                self.answer(404, {"error": "unknown path: post to /rank, /reward or /withdraw"})
        except KeyError as error:
            self.answer(400, {"error": f"the request must have {error}"})
        except json.JSONDecodeError:
            self.answer(400, {"error": "the body must be JSON, as the top of this file shows"})
        except InvalidValues:
            said = {
                "/rank": "contexts must be finite numbers",
                "/reward": "reward must be a number",
            }
            self.answer(400, {"error": said[self.path]})
        except (ArithmeticError, RecursionError, TypeError, ValueError) as error:
            self.answer(400, {"error": str(error)})
        return None

    def do_GET(self):
        if self.path == "/health":
            self.answer(200, self.loop.status())
        else:
            self.answer(404, {"error": "unknown path: get /health"})

    def answer(self, status, message):
        text = json.dumps(message).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        """Nothing about visits goes to a log."""


def serve(path, port=8000):
    """Make the server; its ``server_port`` is the one that was free for port 0."""
    policy = LinUCB(epsilon=1.0, delta=1e-6, privacy="central", bounds_y=(0, 1))
    loop = Loop(policy, path, cutoff=600.0, learn_every=20)
    handler = type("Handler", (Handler,), {"loop": loop})
    return ThreadingHTTPServer(("127.0.0.1", port), handler)


if __name__ == "__main__" and len(sys.argv) > 1:
    parser = argparse.ArgumentParser(description="Serve a private bandit over HTTP.")
    parser.add_argument("file", metavar="FILE", help="where events and the policy are kept")
    parser.add_argument("port", metavar="PORT", nargs="?", type=int, default=8000)
    options = parser.parse_args()
    server = serve(options.file, options.port)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
