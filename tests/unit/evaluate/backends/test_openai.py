"""The OpenAI backend against servers that behave, misbehave, and come back."""

import email.utils
import json
import logging
import ssl
import threading
import time

import pytest

from killick.errors import ConfigError, DataError
from killick.evaluate.backends import BACKENDS
from killick.evaluate.backends.openai import OpenAIBackend
from killick.evaluate.backends.types import cut_at_stop, stream_seed

QUICK = {"timeout_s": 5.0, "patience_s": 20.0, "concurrency": 4}


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr("killick.evaluate.backends.client._FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr("killick.evaluate.backends.client._LONGEST_PAUSE_S", 0.1)


def draw(server, rows, settings, done=frozenset(), **changes):
    backend = OpenAIBackend("m", server.url, **{**QUICK, **changes})
    made = [completion for batch in backend.sample(rows, settings, done) for completion in batch]
    names = [(one.uid, one.sample) for one in made]
    assert len(set(names)) == len(names), "drawn twice"
    return dict(zip(names, made, strict=True))


def test_every_sample_is_asked_once_with_all_settings(serve, answer, rows, sampling):
    server = serve(lambda number, body, handler: answer(f"{body['messages'][0]['content']}END tail", tokens=5))
    made = draw(server, rows, sampling(temperature=0.6, top_p=0.95, stop=("END",)), done={("p1", 2)})
    assert set(made) == {(f"p{q}", n) for q in range(3) for n in range(4)} - {("p1", 2)}
    assert made["p2", 3].text == "say 2"
    assert (made["p2", 3].tokens, made["p2", 3].truncated) == (5, False)
    assert len(server.bodies) == 11
    assert len({body.pop("seed") for body in server.bodies}) == 11
    expected = {
        "model": "m", "max_tokens": 8, "temperature": 0.6, "top_p": 0.95, "stop": ["END"], "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }  # fmt: skip
    for body in server.bodies:
        assert body.pop("messages")[0]["role"] == "user"
        assert body == expected
    assert all("Authorization" not in headers for headers in server.headers)


def test_dialects_pin_the_sampler(serve, answer, rows, sampling):
    server = serve(lambda number, body, handler: answer())
    bodies = {}
    for dialect in ("plain", "openai", "vllm", "transformers"):
        draw(server, rows[:1], sampling(num_samples=1), dialect=dialect)
        bodies[dialect] = server.bodies[-1]
    assert bodies["openai"]["max_completion_tokens"] == 8
    assert "max_tokens" not in bodies["openai"]
    assert {key: bodies["vllm"][key] for key in ("top_k", "min_p", "repetition_penalty")} == {
        "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0,
    }  # fmt: skip
    assert json.loads(bodies["transformers"]["generation_config"])["top_k"] == 0
    assert "top_k" not in bodies["plain"]


def test_seeds_name_problem_and_sample():
    seeds = [stream_seed(s, uid, n) for s in (0, 1) for uid in ("a", "b", '["') for n in range(100)]
    assert len(set(seeds)) == 600
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert stream_seed(0, "a", 0) == seeds[0]


def test_concurrency_is_kept(serve, answer, rows, sampling):
    def slow(number, body, handler):
        time.sleep(0.03)
        return answer()

    server = serve(slow)
    draw(server, rows, sampling(), concurrency=3)
    assert 2 <= server.most_in_flight <= 3


def test_the_rate_is_kept(serve, answer, rows, sampling):
    server = serve(lambda number, body, handler: answer())
    began = time.monotonic()
    draw(server, rows, sampling(), requests_per_s=40.0)
    assert time.monotonic() - began >= 11 / 40  # twelve requests have eleven gaps of 1/40 s


def unwell(kind, answer):
    """Every third request goes well; the others go wrong as `kind` says."""

    def script(number, body, handler):
        if number % 3 == 2:
            return answer()
        if kind == "garbage":
            return 200, {}, b"<html>\xff\x1b[31mbad gateway"
        if kind == "no choices":
            return 200, {}, b'{"choices": []}'
        if kind == "deep":
            return 200, {}, b"[" * 200_000
        if kind == "cut off":
            status, _, data = answer()
            return status, {"Content-Length": str(len(data) + 9)}, data
        if kind == "cut chunk":
            handler.wfile.write(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"cho')
        elif kind == "silent":
            time.sleep(1.2)
        elif kind == "drips":
            for _ in range(30):
                handler.wfile.write(b"H")
                handler.wfile.flush()
                time.sleep(0.05)
        elif kind == "abort":
            return answer(finish="abort")
        elif kind == "hangs up":
            handler.close_connection = True
        else:
            return int(kind), {}, b'{"error": "later"}'
        handler.connection.close()
        return None

    return script


@pytest.mark.parametrize(
    "kind",
    ["429", "500", "503", "408", "garbage", "no choices", "deep", "cut off", "cut chunk", "silent", "drips", "abort",
     "hangs up"],
)  # fmt: skip
def test_what_may_pass_is_asked_again(serve, answer, rows, sampling, kind):
    server = serve(unwell(kind, answer))
    made = draw(server, rows, sampling(num_samples=1), timeout_s=0.5 if kind in ("silent", "drips") else 5.0)
    assert len(made) == 3
    assert all(one.text == "hello" for one in made.values())
    assert len(server.bodies) >= 9  # every third one is right, and three are needed


@pytest.mark.parametrize("status", [400, 401, 404, 422, 301])
def test_refusals_are_errors_at_once(serve, rows, sampling, status):
    server = serve(lambda number, body, handler: (status, {"Location": "http://127.0.0.1:9/"}, b"no such thing"))
    said = rf"refused sample \d of problem 'p\d' with HTTP {status}.*no such thing"
    with pytest.raises(ConfigError, match=said) as caught:
        draw(server, rows, sampling())
    assert ("base_url end with the version" in str(caught.value)) == (status == 404)
    assert len(server.bodies) <= 4  # one a thread, none again


def test_patience_ends(serve, rows, sampling):
    server = serve(lambda number, body, handler: (500, {}, b"broken"))
    with pytest.raises(DataError, match=r"gave no usable answer to sample \d .* HTTP 500: 'broken'.*run the same comm"):
        draw(server, rows, sampling(), patience_s=0.3)


def test_a_server_that_is_not_there(rows, sampling, serve, answer):
    server = serve(lambda number, body, handler: answer())
    server.server.shutdown()
    server.server.server_close()
    with pytest.raises(DataError, match="ConnectionRefusedError"):
        draw(server, rows, sampling(), patience_s=0.1)


def test_a_server_that_is_down_is_told_in_one_line_a_while(serve, answer, rows, sampling, caplog, monkeypatch):
    server = serve(lambda number, body, handler: (500, {}, b"down") if number < 6 else answer())
    draw(server, rows, sampling())
    assert sum("HTTP 500" in line for line in caplog.messages) == 1

    monkeypatch.setattr("killick.evaluate.backends.client._WARN_EVERY_S", 0.0)
    caplog.clear()
    server = serve(lambda number, body, handler: (500, {}, b"down") if number < 6 else answer())
    draw(server, rows, sampling())
    assert sum("HTTP 500" in line for line in caplog.messages) == 6


def test_retry_after_holds_all_requests(serve, answer, rows, sampling):
    times = []

    def script(number, body, handler):
        times.append(time.monotonic())
        return (429, {"Retry-After": "1"}, b"") if number == 0 else answer()

    server = serve(script)
    draw(server, rows, sampling(num_samples=2), concurrency=1)
    assert times[1] - times[0] >= 1.0
    assert len(times) == 7


def test_a_retry_after_beyond_patience_ends_it(serve, rows, sampling):
    server = serve(lambda number, body, handler: (503, {"Retry-After": "86400"}, b"tomorrow"))
    began = time.monotonic()
    with pytest.raises(DataError, match="tomorrow"):
        draw(server, rows, sampling())
    assert time.monotonic() - began < 5


def test_length_is_truncated_and_other_ends_are_logged(serve, answer, rows, sampling, caplog):
    ends = {"p0": "length", "p1": "stop", "p2": "content_filter"}

    def script(number, body, handler):
        return answer(finish=ends[f"p{body['messages'][0]['content'][-1]}"], tokens=8)

    made = draw(serve(script), rows, sampling(num_samples=1))
    assert {uid: one.truncated for (uid, _), one in made.items()} == {"p0": True, "p1": False, "p2": True}
    assert "ended by 'content_filter'" in caplog.text


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"text": "so 7", "reasoning_content": "hm"}, "<think>\nhm\n</think>\n\nso 7"),
        ({"text": None, "reasoning": "hm"}, "<think>\nhm"),
        ({"text": None}, ""),
        ({"text": "a\ud800b"}, "a\ud800b"),
    ],
)
def test_reasoning_is_put_back(serve, answer, rows, sampling, message, text):
    made = draw(serve(lambda number, body, handler: answer(**message)), rows[:1], sampling(num_samples=1))
    assert made["p0", 0].text == text


@pytest.mark.parametrize(
    ("tokens", "message"), [(None, "does not say how many tokens"), (9, "Choose another dialect"), (True, "how many")]
)
def test_token_counts_are_needed_and_must_keep_the_limit(serve, answer, rows, sampling, tokens, message):
    server = serve(lambda number, body, handler: answer(tokens=tokens))
    with pytest.raises(DataError, match=message):
        draw(server, rows, sampling())


def test_what_came_before_an_error_is_given_out(serve, answer, rows, sampling):
    server = serve(lambda number, body, handler: answer() if number < 5 else (400, {}, b"no"))
    made, batches = [], OpenAIBackend("m", server.url, **{**QUICK, "concurrency": 1}).sample(rows, sampling())
    with pytest.raises(ConfigError):
        made.extend(completion for batch in batches for completion in batch)
    assert len(made) == 5


def test_closing_stops_the_threads(serve, answer, rows, sampling):
    def slow(number, body, handler):
        time.sleep(0.05)
        return answer()

    server = serve(slow)
    batches = OpenAIBackend("m", server.url, **QUICK).sample(rows, sampling(num_samples=50))
    next(batches)
    batches.close()
    time.sleep(0.3)
    asked = len(server.bodies)
    time.sleep(0.3)
    assert len(server.bodies) == asked < 30


def test_the_key_is_sent_and_never_shown(serve, rows, sampling, monkeypatch, caplog):
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    caplog.set_level(logging.DEBUG)

    def script(number, body, handler):
        status = 500 if number < 4 else 401
        return status, {}, f"bad key {handler.headers['Authorization']}".encode()

    server = serve(script)
    with pytest.raises(ConfigError, match=r"401.*bad key Bearer \*\*\*.*api_key_env") as caught:
        draw(server, rows, sampling(), api_key_env="MY_KEY")
    assert server.headers[0]["Authorization"] == "Bearer sk-very-secret"
    backend = OpenAIBackend("m", server.url, api_key_env="MY_KEY")
    shown = [str(caught.value), caplog.text, repr(backend), json.dumps(backend.defining()), str(backend.identity())]
    assert not any("very-secret" in text for text in shown)
    assert "HTTP 500" in caplog.text


@pytest.mark.parametrize("value", ["", "two\nlines", "schlüssel"])
def test_a_key_that_is_none_is_refused_without_showing_it(monkeypatch, value):
    monkeypatch.setenv("MY_KEY", value)
    with pytest.raises(ConfigError, match="MY_KEY") as caught:
        OpenAIBackend("m", "http://127.0.0.1:1/v1", api_key_env="MY_KEY")
    assert not value or value not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base_url": "127.0.0.1:8000/v1"}, "http"),
        ({"base_url": "http://user:pw@host/v1"}, "without user, password"),
        ({"base_url": "http://host/v1?key=x"}, "query"),
        ({"base_url": "http://host:port/v1"}, "HOST"),
        ({"base_url": "http://ho st/v1"}, "HOST"),
        ({"base_url": "http://a..b/v1"}, "HOST"),
        ({"base_url": "http:///v1"}, "HOST"),
        ({"concurrency": 0}, "concurrency"),
        ({"dialect": "klingon"}, "dialect"),
        ({"timeout_s": 0.0}, "timeout_s"),
        ({"patience_s": float("nan")}, "patience_s"),
        ({"requests_per_s": -1.0}, "requests_per_s"),
        ({"timeout": 3}, "no setting 'timeout'"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message) as caught:
        BACKENDS.build("openai", **{"model": "m", "base_url": "http://127.0.0.1:1/v1", **settings})
    assert "pw" not in str(caught.value)


def test_many_answers_at_once_are_one_batch(serve, answer, rows, sampling):
    """Each batch costs a sync to disk, so what waits must be taken together."""
    gate = threading.Barrier(4)

    def script(number, body, handler):
        gate.wait(5)
        return answer()

    batches = []
    for batch in OpenAIBackend("m", serve(script).url, **QUICK).sample(rows, sampling()):
        batches.append(len(batch))
        time.sleep(0.2)  # judging
    assert sum(batches) == 12
    assert len(batches) < 12


def test_identity_says_that_the_weights_are_unknown():
    backend = OpenAIBackend("org/m", "http://127.0.0.1:1/v1")
    assert backend.identity().name == "org/m at http://127.0.0.1:1/v1"
    assert backend.identity().fingerprint == "not known, served as org/m"
    moved = OpenAIBackend("org/m", "http://127.0.0.1:2/v1", concurrency=1)
    assert moved.identity().fingerprint == backend.identity().fingerprint
    assert moved.defining() == backend.defining() == {"name": "openai", "dialect": "plain"}


def test_cut_at_stop_takes_the_first_of_all():
    assert cut_at_stop("abcd", ["d", "b"]) == "a"
    assert cut_at_stop("abcd", ["x"]) == "abcd"


def test_the_command_evaluates_a_server_and_says_what_it_does_not_know(serve, answer, tmp_path, monkeypatch):
    from killick.cli import run

    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    server = serve(lambda number, body, handler: answer("1+1=2", tokens=9))
    out = tmp_path / "out"
    argv = [
        "evaluate",
        "org/m",
        "--backend",
        "openai",
        "--base-url",
        server.url,
        "--task",
        "countdown",
        "--out",
        str(out),
    ]
    argv += ["--split", "mixed", "--samples", "3", "--limit", "2", "--backend-set", "api_key_env=MY_KEY"]
    assert run(argv) == 0
    spec = json.loads((out / "mixed" / "spec.json").read_text())
    assert spec["backend"] == {"name": "openai", "dialect": "plain"}
    assert spec["model"] == {"name": f"org/m at {server.url}", "fingerprint": "not known, served as org/m"}
    assert spec["performance"]["dtype"] == "auto"
    assert len((out / "mixed" / "records.jsonl").read_text().splitlines()) == len(server.bodies) == 6
    assert run(argv) == 0
    assert len(server.bodies) == 6  # finished: nothing is asked again
    assert not any(b"very-secret" in path.read_bytes() for path in out.rglob("*") if path.is_file())


def test_retry_after_is_seconds_or_a_date():
    from killick.evaluate.backends.client import _seconds

    soon = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert 97 < _seconds(soon) <= 100
    assert [_seconds(text) for text in ("7", "1.5", "-3", None, "nan", "inf", "later")] == [7, 1.5, 0, 0, 0, 0, 0]


def test_a_certificate_nobody_vouches_for_is_an_error_at_once(monkeypatch, rows, sampling):
    def refuse(*args):
        raise ssl.SSLCertVerificationError("self-signed")

    monkeypatch.setattr("killick.evaluate.backends.client.post_json", refuse)
    with pytest.raises(ConfigError, match=r"certificate that does not hold.*self-signed"):
        list(OpenAIBackend("m", "https://127.0.0.1:1/v1", **QUICK).sample(rows, sampling()))
