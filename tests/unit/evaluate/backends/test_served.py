"""The OpenAI backend against a real server process: `transformers serve` with the nano base, which also dies."""

import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import pytest
import torch
from transformers import AutoModelForCausalLM

from killick.errors import ConfigError, DataError
from killick.evaluate.backends.openai import OpenAIBackend
from killick.evaluate.backends.types import stream_seed
from killick.evaluate.run import evaluate_with
from killick.evaluate.settings import SamplingSettings, describe
from killick.models import load_tokenizer
from killick.nano import base_path
from killick.prompts import render_prompts
from killick.tasks.countdown import Countdown

for _package in ("fastapi", "uvicorn", "openai"):
    pytest.importorskip(_package, reason="transformers serve needs it")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")]


class Served:
    """`transformers serve` of one model folder on a port of its own."""

    def __init__(self, model, log):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.model, self.log, self.url = str(model), log, f"http://127.0.0.1:{self.port}/v1"
        self.start()

    def start(self):
        code = "from transformers.cli.transformers import main; main()"
        argv = [sys.executable, "-c", code, "serve", self.model, "--host", "127.0.0.1", "--port", str(self.port)]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*argv, "--device", "cpu"], stdout=log, stderr=log, env=environment)

    def wait(self):
        deadline = time.monotonic() + 600  # a few seconds on an idle machine
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5).read()
                return
            except OSError:
                time.sleep(0.2)
        raise AssertionError(f"the server did not start: {self.log.read_text()[-2000:]}")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def backend(self, **changes):
        settings = {"dialect": "transformers", "timeout_s": 60.0, "patience_s": 600.0, "concurrency": 1, **changes}
        return OpenAIBackend(self.model, self.url, **settings)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The nano base with sampler settings of its own that would spoil everything if they were not pinned."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(base_path(), folder / "model")
    config = folder / "model" / "generation_config.json"
    spoilt = {"top_k": 1, "repetition_penalty": 1.5, "min_p": 0.9, "max_new_tokens": 3}
    config.write_text(json.dumps({**json.loads(config.read_text()), **spoilt}))
    server = Served(folder / "model", folder / "log")
    try:
        server.wait()
        yield server
    finally:
        server.kill()


@pytest.fixture
def task():
    return Countdown()


def spec_of(task, backend, num_problems, num_samples):
    sampling = SamplingSettings(num_samples=num_samples, max_tokens=40, seed=5)
    spec = describe("countdown", task, "mixed", num_problems, sampling, backend.identity())
    return dataclasses.replace(spec, backend=backend.defining())


def wait_for(records, num_lines):
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline and not (records.exists() and records.read_bytes().count(b"\n") >= num_lines):
        time.sleep(0.005)


def lines_of(folder):
    return sorted((folder / "records.jsonl").read_text().splitlines())


def test_a_server_that_dies_half_way_and_comes_back(served, task, tmp_path):
    """The records are those of an undisturbed run: nothing lost, nothing twice, and the same texts."""
    backend = served.backend()
    spec = spec_of(task, backend, 4, 8)
    records = tmp_path / "disturbed" / "records.jsonl"

    def disturb():
        wait_for(records, 6)
        served.kill()
        seen.append(records.read_bytes().count(b"\n"))
        time.sleep(1.0)
        served.start()

    seen = []
    trouble = threading.Thread(target=disturb)
    trouble.start()
    result = evaluate_with(backend, task, spec, tmp_path / "disturbed", progress=False)
    trouble.join()
    assert 6 <= seen[0] < 32, "the server died too late to matter"
    assert result.table.correct_QN.shape == (4, 8)
    assert len(lines_of(tmp_path / "disturbed")) == 32
    evaluate_with(backend, task, spec, tmp_path / "quiet", progress=False)
    assert lines_of(tmp_path / "disturbed") == lines_of(tmp_path / "quiet")


def test_an_evaluation_cut_off_by_a_dead_server_resumes(served, task, tmp_path):
    """Without patience the evaluation ends with an error; the same call goes on where it stopped."""
    spec = spec_of(task, served.backend(), 4, 8)
    records = tmp_path / "records.jsonl"

    def disturb():
        wait_for(records, 5)
        served.kill()

    trouble = threading.Thread(target=disturb)
    trouble.start()
    with pytest.raises(DataError, match="run the same command again"):
        evaluate_with(served.backend(patience_s=0.0, concurrency=3), task, spec, tmp_path, progress=False)
    trouble.join()
    before = records.read_text()
    assert 5 <= before.count("\n") < 32
    served.start()
    served.wait()
    evaluate_with(served.backend(concurrency=3), task, spec, tmp_path, progress=False)
    assert records.read_text().startswith(before)
    names = [(record["uid"], record["sample"]) for record in map(json.loads, lines_of(tmp_path))]
    assert len(names) == len(set(names)) == 32


def test_served_samples_are_plain_draws_from_the_model(served, task):
    """The texts `generate` gives here with the same seed and nothing but temperature, from the unspoilt model."""
    sampling = SamplingSettings(num_samples=4, max_tokens=40, seed=5, temperature=0.9)
    rows = task.rows("mixed", 2)
    made = {(c.uid, c.sample): c for batch in served.backend().sample(rows, sampling) for c in batch}
    model, tokenizer = AutoModelForCausalLM.from_pretrained(base_path()), load_tokenizer("nano")
    for row, prompt in zip(rows, render_prompts(tokenizer, rows), strict=True):
        for n in range(4):
            torch.manual_seed(stream_seed(5, row.uid, n))
            ids = torch.tensor([prompt])
            out = model.generate(
                ids, attention_mask=torch.ones_like(ids), do_sample=True, temperature=0.9, top_k=0, max_new_tokens=40
            )[0, len(prompt) :]
            assert made[row.uid, n].text == tokenizer.decode(out, skip_special_tokens=True)
            assert made[row.uid, n].tokens == len(out)
    assert len({one.text for one in made.values()}) > 4  # top_k = 1 would give two


def test_the_limit_truncates(served, task):
    sampling = SamplingSettings(num_samples=4, max_tokens=5, seed=0)
    batches = served.backend().sample(task.rows("mixed", 2), sampling)
    made = [completion for batch in batches for completion in batch]
    assert len(made) == 8
    assert all(one.truncated and one.tokens == 5 for one in made)  # an answer takes about twenty tokens


def test_a_wrong_model_name_is_refused(served, task):
    backend = dataclasses.replace(served.backend(), model="another")
    with pytest.raises(ConfigError, match=r"HTTP 400.*pinned"):
        list(backend.sample(task.rows("mixed", 1), SamplingSettings(num_samples=1, max_tokens=5, seed=0)))
