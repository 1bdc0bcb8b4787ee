"""Pretraining is deterministic, takes its loss on answers only, and writes an ordinary checkpoint."""

import math
from pathlib import Path

import pytest
import torch
from torch.nn import functional
from transformers import AutoModelForCausalLM, AutoTokenizer

from killick.errors import ConfigError
from killick.nano.build import _batch, _gradient, build_nano, learning_rate_at, new_model, pretrain
from killick.nano.corpus import build_corpus


def test_five_steps_twice_give_identical_weights() -> None:
    torch.manual_seed(1)
    first, losses = pretrain(0, 5, batch_size=70, progress=False)
    torch.manual_seed(2)  # global random state must not matter
    second, again = pretrain(0, 5, batch_size=70, progress=False)
    other, _ = pretrain(1, 5, batch_size=70, progress=False)
    assert losses == again
    assert losses[-1] < losses[0]
    pairs = zip(first.state_dict().items(), second.state_dict().values(), other.state_dict().values(), strict=True)
    for (name, a), b, c in pairs:
        assert torch.equal(a, b), name
        assert "norm" in name or not torch.equal(a, c), name


def test_micro_batches_give_the_gradient_of_the_whole_padded_batch() -> None:
    corpus, model = build_corpus(150, 0), new_model(0)
    loss = _gradient(model, _batch(corpus, 10, 150))
    got = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    tokens = torch.from_numpy(corpus.tokens[10:150].astype("int64"))
    labels = tokens.clone()
    for row, (start, length) in enumerate(zip(corpus.answer_start[10:], corpus.lengths[10:], strict=True)):
        labels[row, :start] = -100  # the user turn and <answer> are given
        labels[row, length:] = -100  # padding; <eos> at length - 1 counts
    expected = functional.cross_entropy(model(tokens).logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    for mine, parameter in zip(got, model.parameters(), strict=True):
        torch.testing.assert_close(mine, parameter.grad, rtol=1e-3, atol=1e-6)


def test_learning_rate_warms_up_and_falls_to_zero() -> None:
    rates = [learning_rate_at(step, 1000, 2e-3) for step in range(1001)]
    assert rates[0] == pytest.approx(2e-3 / 50)
    assert max(rates) == rates[50] == pytest.approx(2e-3)
    # Half way between the end of warm-up (50) and the end (1000), cos = 0.
    assert rates[525] == pytest.approx(1e-3)
    assert rates[1000] == pytest.approx(0.0, abs=1e-12)
    assert all(math.isfinite(learning_rate_at(step, 3, 1.0)) for step in range(3))


def test_build_writes_an_ordinary_folder(tmp_path: Path) -> None:
    out = tmp_path / "base"
    assert build_nano(out, steps=1, batch_size=8, score=False, progress=False) is None
    assert {path.name for path in out.iterdir()} == {
        "README.md", "chat_template.jinja", "config.json", "generation_config.json", "model.safetensors",
        "tokenizer.json", "tokenizer_config.json",
    }  # fmt: skip
    assert "Not scored." in (out / "README.md").read_text(encoding="utf-8")
    model, tokenizer = AutoModelForCausalLM.from_pretrained(out), AutoTokenizer.from_pretrained(out)
    assert type(model).__name__ == "LlamaForCausalLM"
    assert len(tokenizer) <= model.config.vocab_size
    settings = model.generation_config
    assert (settings.do_sample, settings.temperature, settings.top_k, settings.top_p) == (True, 1.0, 0, 1.0)
    with pytest.raises(ConfigError, match="not an empty folder"):
        build_nano(out, steps=1, score=False, progress=False)


@pytest.mark.parametrize("setting", [{"steps": 0}, {"batch_size": 0}, {"num_score_samples": 0}])
def test_counts_out_of_range_are_refused(tmp_path: Path, setting: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(setting))):
        build_nano(tmp_path / "base", **{"steps": 1, "score": False, "progress": False, **setting})
