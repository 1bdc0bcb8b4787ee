"""The vLLM backend on vLLM itself, where it is installed (a CPU build will do): its samples are those of transformers.

CONTRIBUTING.md says how to run this. Elsewhere `tests/unit/evaluate/backends/test_vllm.py` checks what is asked.
"""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from killick.evaluate.backends.transformers import TransformersBackend
from killick.evaluate.backends.types import Completion
from killick.evaluate.backends.vllm import VLLMBackend
from killick.evaluate.settings import SamplingSettings
from killick.models import load_model
from killick.tasks.countdown import Countdown

pytest.importorskip("vllm", reason="vLLM is not installed")

WIDE = 32  # vLLM's CPU kernels know heads of 32 dimensions and more; nano's have 16
N = 64
SETTINGS = SamplingSettings(num_samples=N, max_tokens=48, seed=5)
ROWS = Countdown().rows("mixed", 40)


def widened(folder: Path) -> Path:
    """The nano base with 32-dimensional heads, of which 16 are zero: the same function of its input.

    RoPE turns dimension i of a half by position · θ^(-2i/d): what was place j of 8 is place 2j of 16. Queries are
    multiplied by √2, since attention divides by √32 in place of √16.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    model, tokenizer = load_model("nano")
    config = model.config
    narrow, heads = config.head_dim, config.num_attention_heads
    half = torch.arange(narrow // 2) * (WIDE // narrow)
    places = torch.cat([half, half + WIDE // 2])
    state = dict(model.state_dict())
    for name, weight in model.state_dict().items():
        projection = name.split(".")[-2]
        if projection in ("q_proj", "k_proj", "v_proj"):
            wide = torch.zeros(heads, WIDE, weight.shape[1])
            wide[:, places] = weight.view(heads, narrow, -1) * (
                math.sqrt(WIDE / narrow) if projection == "q_proj" else 1
            )
            state[name] = wide.view(heads * WIDE, -1)
        elif projection == "o_proj":
            wide = torch.zeros(weight.shape[0], heads, WIDE)
            wide[:, :, places] = weight.view(-1, heads, narrow)
            state[name] = wide.view(weight.shape[0], -1)
    made = LlamaForCausalLM(LlamaConfig(**{**config.to_dict(), "head_dim": WIDE})).eval()
    made.load_state_dict(state)
    ids = torch.arange(3, 31)[None]
    with torch.no_grad():
        assert torch.allclose(made(ids).logits, model.eval()(ids).logits, atol=1e-4)
    made.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    return str(widened(tmp_path_factory.mktemp("wide")))


@pytest.fixture(scope="module")
def engine(model) -> VLLMBackend:
    return VLLMBackend(model, enforce_eager=True, batch_size=1024)


def draw(backend, settings=SETTINGS, rows=ROWS, done=frozenset()) -> dict[tuple[str, int], Completion]:
    drawn = [one for batch in backend.sample(rows, settings, done) for one in batch]
    made = {(one.uid, one.sample): one for one in drawn}
    assert len(made) == len(drawn)
    return made


def rates(drawn: dict[tuple[str, int], Completion], measure) -> list[float]:
    return [sum(measure(one, row) for (uid, _), one in drawn.items() if uid == row.uid) / N for row in ROWS]


def test_the_type_is_the_stored_one(engine):
    assert engine.dtype == "float32"
    draw(engine, replace(SETTINGS, num_samples=1), ROWS[:1])
    assert engine._engine.model_config.dtype == torch.float32


def test_without_a_temperature_the_texts_are_those_of_transformers(engine, model):
    greedy = replace(SETTINGS, num_samples=1, temperature=0.0)
    assert draw(engine, greedy) == draw(TransformersBackend(model), greedy)


@pytest.mark.parametrize("top_p", [1.0, 0.8])
def test_the_samples_are_of_the_same_distribution(engine, model, top_p):
    """Mean rates of two samplers, N draws a problem each, within 5 standard errors of each other."""
    settings = replace(SETTINGS, temperature=0.9, top_p=top_p)
    ours, theirs = draw(TransformersBackend(model), settings), draw(engine, settings)
    verifier = Countdown().verifier
    measures = {
        "right": lambda one, row: verifier(one.text, row.answer).correct,
        "truncated": lambda one, row: one.truncated,
        "starts with a digit 1 to 4": lambda one, row: one.text.lstrip("( ")[:1] in "1234",
        "more than 10 tokens": lambda one, row: one.tokens > 10,
    }
    for name, measure in measures.items():
        a, b = rates(ours, measure), rates(theirs, measure)
        pooled = [(p + q) / 2 for p, q in zip(a, b, strict=True)]
        error = math.sqrt(sum(2 * p * (1 - p) / N for p in pooled)) / len(ROWS)
        assert abs(sum(a) - sum(b)) / len(ROWS) <= 5 * error, name


def test_a_completion_is_the_same_in_other_company(engine):
    """Resuming draws what is missing, in other batches: all but a few texts (float rounding) are the same."""
    whole = draw(engine)
    done = {key for n, key in enumerate(whole) if n % 3}
    rest = draw(engine, done=done)
    assert set(rest) == set(whole) - done
    assert sum(one == whole[key] for key, one in rest.items()) >= 0.98 * len(rest)


def test_a_generator_that_is_dropped_frees_the_engine(engine, monkeypatch):
    monkeypatch.setattr("killick.evaluate.backends.vllm._RECORD_EVERY_S", 0.0)
    some = engine.sample(ROWS, SETTINGS)
    assert 0 < len(next(some)) < N * len(ROWS)  # the first that end, not all
    some.close()
    assert not engine._engine.has_unfinished_requests()
    assert len(draw(engine, replace(SETTINGS, num_samples=1))) == len(ROWS)


def test_stop_strings_and_the_limit(engine):
    stopped = draw(engine, replace(SETTINGS, num_samples=8, stop=(")",)))
    assert all(")" not in one.text for one in stopped.values())
    short = draw(engine, replace(SETTINGS, num_samples=8, max_tokens=3))
    assert {(one.tokens, one.truncated) for one in short.values()} == {(3, True)}
