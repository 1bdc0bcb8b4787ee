"""A real HTTP server on loopback that answers as a test says, counting what it was asked."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from killick.evaluate.settings import SamplingSettings
from killick.tasks.types import Row


class ScriptedServer:
    """`script(number, body)` gives (status, headers, bytes), or writes to the handler itself and gives None."""

    def __init__(self, script):
        self.bodies, self.headers, self.lock, self.in_flight, self.most_in_flight = [], [], threading.Lock(), 0, 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer.lock:
                    number = len(outer.bodies)
                    outer.bodies.append(body)
                    outer.headers.append(dict(self.headers))
                    outer.in_flight += 1
                    outer.most_in_flight = max(outer.most_in_flight, outer.in_flight)
                try:
                    answer = script(number, body, self)
                    if answer is not None:
                        status, headers, data = answer
                        self.send_response(status)
                        for key, value in {"Content-Length": str(len(data)), **headers}.items():
                            self.send_header(key, value)
                        self.end_headers()
                        self.wfile.write(data)
                except OSError:
                    pass  # the client gave up, as some tests want
                finally:
                    with outer.lock:
                        outer.in_flight -= 1

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()


@pytest.fixture
def serve():
    servers = []

    def start(script):
        servers.append(ScriptedServer(script))
        return servers[-1]

    yield start
    for one in servers:
        one.server.shutdown()
        one.server.server_close()


def chat(text="hello", finish="stop", tokens=3, **message):
    """A well-formed chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    data = {"object": "chat.completion", "choices": [choice], "usage": {"completion_tokens": tokens}}
    return 200, {}, json.dumps(data).encode()


@pytest.fixture
def answer():
    return chat


@pytest.fixture
def rows():
    return [Row(uid=f"p{n}", prompt=[{"role": "user", "content": f"say {n}"}], answer="hello") for n in range(3)]


@pytest.fixture
def sampling():
    def make(**changes):
        return SamplingSettings(**{"num_samples": 4, "max_tokens": 8, "seed": 3, **changes})

    return make
