"""The vLLM backend against a stand-in that knows vLLM's documented names and records what it is asked.

The stand-in takes only the documented fields, so a misspelt one fails here; `tests/conformance/test_vllm_engine.py`
shows on vLLM itself that it does as it documents.
"""

import json
import sys
import types
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec

import pytest

from killick.errors import ConfigError, DataError
from killick.evaluate.backends.types import stream_seed
from killick.evaluate.backends.vllm import VLLMBackend
from killick.evaluate.settings import SamplingSettings
from killick.models import load_tokenizer
from killick.nano import base_path
from killick.tasks.countdown import Countdown


@dataclass
class SamplingParams:
    """Fields of vllm.SamplingParams, with its defaults."""

    n: int = 1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop: list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    max_tokens: int | None = 16
    min_tokens: int = 0
    detokenize: bool = True
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    include_stop_str_in_output: bool = False
    output_kind: str = "cumulative"


@dataclass
class Calls:
    engines: list = field(default_factory=list)
    asked: list = field(default_factory=list)
    most_in_flight: int = 0
    aborted: list = field(default_factory=list)
    finish: str = "stop"
    dies_after: int | None = None


@pytest.fixture
def vllm(monkeypatch):
    """Requests end last in, first out, one a step."""
    calls = Calls()

    class Engine:
        def __init__(self, max_model_len):
            self.model_config = types.SimpleNamespace(max_model_len=max_model_len)
            self.open = {}

        def add_request(self, request_id, prompt, params):
            assert isinstance(request_id, str)
            assert request_id not in self.open
            self.open[request_id] = params
            calls.asked.append((prompt, params))
            calls.most_in_flight = max(calls.most_in_flight, len(self.open))

        def step(self):
            if calls.dies_after is not None:
                calls.dies_after -= 1
                if calls.dies_after < 0:
                    raise RuntimeError("out of memory")
            name, params = self.open.popitem()
            drawn = types.SimpleNamespace(
                text=f"{params.seed}X tail", token_ids=[1] * params.max_tokens, finish_reason=calls.finish
            )
            return [
                *(types.SimpleNamespace(request_id=other, finished=False) for other in self.open),
                types.SimpleNamespace(request_id=name, finished=True, outputs=[drawn]),
            ]

        def abort_request(self, request_ids):
            if calls.dies_after is not None:
                raise RuntimeError("the engine is dead")
            calls.aborted.append(list(request_ids))
            for name in request_ids:
                self.open.pop(name, None)

    class LLM:
        def __init__(
            self, model, *, dtype="auto", seed=0, trust_remote_code=False, generation_config="auto",
            tensor_parallel_size=1, gpu_memory_utilization=0.9, max_model_len=None, enforce_eager=False,
        ):  # fmt: skip
            calls.engines.append(dict(locals()))
            self.llm_engine = Engine(max_model_len or 128)

    module, params = types.ModuleType("vllm"), types.ModuleType("vllm.sampling_params")
    module.LLM, module.SamplingParams, module.__spec__ = LLM, SamplingParams, ModuleSpec("vllm", None)
    params.RequestOutputKind = types.SimpleNamespace(FINAL_ONLY="final only")
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", params)
    return calls


def draw(backend, **changes):
    settings = SamplingSettings(**{"num_samples": 3, "max_tokens": 20, "seed": 7, **changes})
    rows = Countdown().rows("mixed", 4)
    return rows, [list(batch) for batch in backend.sample(rows, settings, {(rows[0].uid, 1)})]


def test_every_sample_is_asked_with_all_fields(vllm):
    backend = VLLMBackend("nano", batch_size=4, max_model_len=64)
    rows, batches = draw(backend, temperature=0.6, top_p=0.95, stop=("X",))
    made = {(one.uid, one.sample): one for batch in batches for one in batch}
    assert vllm.most_in_flight == 4
    assert set(made) == {(row.uid, n) for row in rows for n in range(3)} - {(rows[0].uid, 1)}
    for (uid, n), one in made.items():
        assert one.text == str(stream_seed(7, uid, n))  # each with its own seed, cut before the stop string
        assert (one.tokens, one.truncated) == (20, False)
    (engine,) = vllm.engines
    assert engine["model"] == str(base_path().resolve())
    assert (engine["generation_config"], engine["max_model_len"], engine["dtype"]) == ("vllm", 64, "float32")
    prompts, asked = zip(*vllm.asked, strict=True)
    end = load_tokenizer("nano").eos_token_id
    for params in asked:
        params.seed = None
        assert params == SamplingParams(
            temperature=0.6, top_p=0.95, max_tokens=20, top_k=-1, stop=["X"], stop_token_ids=[end],
            spaces_between_special_tokens=False, output_kind="final only",
        )  # fmt: skip
    from killick.prompts import render_prompts

    rendered = render_prompts(load_tokenizer("nano"), rows)
    assert all(list(prompt) == ["prompt_token_ids"] and prompt["prompt_token_ids"] in rendered for prompt in prompts)


def test_ends(vllm):
    vllm.finish = "length"
    assert all(one.truncated for batch in draw(VLLMBackend("nano"))[1] for one in batch)
    vllm.finish = "abort"
    with pytest.raises(DataError, match=r"gave up sample \d of problem"):
        draw(VLLMBackend("nano"))


def test_an_engine_that_dies_loses_what_was_in_flight_only(vllm, monkeypatch):
    monkeypatch.setattr("killick.evaluate.backends.vllm._RECORD_EVERY_S", -1.0)
    vllm.dies_after = 5
    rows, made = Countdown().rows("mixed", 11), []
    drawn = VLLMBackend("nano").sample(rows, SamplingSettings(num_samples=1, max_tokens=20, seed=7))
    with pytest.raises(DataError, match=r"6 completions in flight \(RuntimeError: out of memory\).*same command"):
        made.extend(drawn)
    assert len(made) == 5


def test_what_cannot_fit_is_refused_before_anything_is_generated(vllm):
    with pytest.raises(ConfigError, match="exceeds the 30 positions"):
        draw(VLLMBackend("nano", max_model_len=30))
    assert vllm.asked == []


def test_what_ends_is_handed_on_before_the_rest_has_ended(vllm, monkeypatch):
    monkeypatch.setattr("killick.evaluate.backends.vllm._RECORD_EVERY_S", -1.0)
    backend = VLLMBackend("nano", batch_size=5)
    assert [len(batch) for batch in draw(backend)[1]] == [1] * 11
    rows = Countdown().rows("mixed", 4)
    some = backend.sample(rows, SamplingSettings(num_samples=3, max_tokens=20, seed=7))
    next(some)
    some.close()  # as Ctrl-C does
    assert len(vllm.aborted[-1]) == 4  # five in flight, one ended
    assert len(draw(backend)[1]) == 11  # and the engine can be used again


def test_without_vllm_it_says_how_to_get_it():
    if "vllm" in sys.modules:
        pytest.skip("vLLM is installed")
    with pytest.raises(ConfigError, match=r"pip install 'killick\[vllm\]'"):
        VLLMBackend("nano")


def test_auto_is_the_stored_type_and_recorded(vllm, tmp_path):
    (tmp_path / "model.safetensors").touch()
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "dtype": "bfloat16"}))
    assert VLLMBackend(str(tmp_path)).dtype == "bfloat16"
    assert VLLMBackend(str(tmp_path), dtype="float16").dtype == "float16"


def test_an_adapter_is_refused(vllm, tmp_path):
    (tmp_path / "adapter_model.safetensors").touch()
    (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(base_path())}))
    with pytest.raises(ConfigError, match="Merge it"):
        VLLMBackend(str(tmp_path))


def test_identity_is_that_of_the_files(vllm):
    from killick.evaluate.identity import model_identity

    assert VLLMBackend("nano").identity().fingerprint == model_identity(str(base_path())).fingerprint
