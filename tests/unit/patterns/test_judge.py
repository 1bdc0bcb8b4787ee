"""The judge against a real HTTP server on loopback that replies as told."""

import http.server
import json
import threading

import pytest

from killick.errors import ConfigError, DataError
from killick.patterns.judge import UNREADABLE, EndpointJudge
from killick.patterns.names import PATTERNS


@pytest.fixture
def server(monkeypatch):
    """Replies one after the other: (status, body); the last one again and again."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told.requests.append((self.path, self.headers.get("Authorization"), body))
            status, reply = told.replies.pop(0) if len(told.replies) > 1 else told.replies[0]
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"http://127.0.0.1:{told.server_port}/elsewhere")
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *args):
            pass

    told = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.requests, told.replies = [], []
    thread = threading.Thread(target=told.serve_forever)
    thread.start()
    yield told
    told.shutdown()
    thread.join()
    told.server_close()


def says(content):
    return 200, json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode()


def judge(server, **settings):
    return EndpointJudge(f"http://127.0.0.1:{server.server_port}/v1/", "m", **{"pause_s": 0.0, **settings})


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"patterns": ["induction", "contradiction"]}', {"induction", "contradiction"}),
        ('Sure:\n```json\n{"patterns": []}\n```', set()),
        ('{"patterns": ["induction", "telepathy", 7, ["x"]]}', {"induction"}),
        ("induction", {UNREADABLE}),
        ('{"patterns": "induction"}', {UNREADABLE}),
        ("[" * 100_000, {UNREADABLE}),
        ("{" * 100_000 + "}", {UNREADABLE}),
        (None, {UNREADABLE}),
    ],
)
def test_only_known_names_are_taken_from_a_reply(server, content, expected):
    server.replies.append(says(content))
    assert judge(server)("text") == expected


def test_the_request(server, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "secret")
    server.replies.append(says('{"patterns": []}'))
    judge(server, key_variable="JUDGE_KEY", max_chars=5)("12345678 \ud800")
    ((path, key, body),) = server.requests
    assert (path, key) == ("/v1/chat/completions", "Bearer secret")
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("m", 0, 256)
    assert body["messages"][1]["content"] == "<solution>\n12345\n</solution>"
    assert all(name in body["messages"][0]["content"] for name in PATTERNS)


def test_trouble_that_passes_is_waited_out(server):
    server.replies += [(503, b""), (429, b""), (200, b"not json"), says('{"patterns": ["induction"]}')]
    assert judge(server)("text") == {"induction"}
    assert len(server.requests) == 4


def test_trouble_that_stays_is_an_error(server):
    server.replies.append((500, b""))
    with pytest.raises(DataError, match="HTTP Error 500"):
        judge(server, num_tries=3)("text")
    assert len(server.requests) == 3
    server.replies[:] = [(404, b"")]
    with pytest.raises(DataError, match="404"):
        judge(server)("text")
    assert len(server.requests) == 4  # a refusal is not asked again


def test_the_key_follows_no_redirect(server, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "secret")
    server.replies.append((302, b""))
    with pytest.raises(DataError, match="302"):
        judge(server, key_variable="JUDGE_KEY")("text")
    assert [path for path, _, _ in server.requests] == ["/v1/chat/completions"]


def test_nobody_there():
    with pytest.raises(DataError, match=r"does not answer.*leave the judge out"):
        EndpointJudge("http://127.0.0.1:9/v1", "m", num_tries=2, pause_s=0.0)("text")


def test_settings_are_checked():
    for address in ("localhost:8000", "file:///etc/passwd", "http://"):
        with pytest.raises(ConfigError, match="base_url"):
            EndpointJudge(address, "m")
    with pytest.raises(ConfigError, match="NO_SUCH_KEY"):
        EndpointJudge("http://localhost/v1", "m", key_variable="NO_SUCH_KEY")
    with pytest.raises(ConfigError, match="above 0"):
        EndpointJudge("http://localhost/v1", "m", timeout_s=0)


def test_compare_by_a_judge(server, tmp_path):
    from typer.testing import CliRunner

    from killick.cli import app
    from killick.evaluate.folder import EvaluationFolder
    from killick.evaluate.records import Record
    from killick.evaluate.settings import EvaluationSpec, ModelIdentity, SamplingSettings
    from killick.evaluate.writer import RecordWriter

    server.replies.append(says('{"patterns": ["induction"]}'))
    for name in "ab":
        sampling = SamplingSettings(num_samples=3, max_tokens=8, seed=0)
        spec = EvaluationSpec("gsm8k", {}, "test", 1, "digest", sampling, ModelIdentity(name, name))
        EvaluationFolder(tmp_path / name).claim(spec, resume=True)
        with RecordWriter(tmp_path / name / "records.jsonl", spec.hash()) as writer:
            writer.append([Record(spec.hash(), "p", n, 0, "x", False, "no_answer", 1, False, None) for n in range(3)])
    address = f"http://127.0.0.1:{server.server_port}/v1"
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    arguments = ["compare", *folders, "--patterns", "--judge", address, "--judge-model", "m", "--pattern-samples", "2"]
    done = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    found = json.loads(done.stdout)
    assert len(server.requests) == 4  # two samples of one problem, two runs
    assert found["runs"][1]["patterns"]["values"][found["patterns"].index("induction")]["mean"] == 1.0
    assert found["pattern_source"] == "the model m, first 2 samples of a problem"
