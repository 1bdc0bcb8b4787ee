"""Every shipped recipe runs two steps and its evaluation, on a tiny model that reads any text; every study starts."""

import json

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from killick import study as studies
from killick.cli import run
from killick.config import load_recipe, shipped_recipes

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SHRUNK = {
    "trl.max_steps": 2, "trl.num_generations": 2, "trl.per_device_train_batch_size": 4, "trl.max_completion_length": 8,
    "trl.gradient_accumulation_steps": 1, "evaluate.num_problems": 2, "evaluate.num_samples": 2,
    "evaluate.max_tokens": 8,
}  # fmt: skip


@pytest.fixture(scope="module")
def byte_llama(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    special = ["<|pad|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]
    vocab = {token: i for i, token in enumerate(special + sorted(pre_tokenizers.ByteLevel.alphabet()))}
    raw = Tokenizer(models.BPE(vocab, []))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="<|pad|>", eos_token="<|end|>", additional_special_tokens=special[2:]
    )
    tokenizer.chat_template = TEMPLATE
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocab), hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=2048, pad_token_id=0, eos_token_id=1, bos_token_id=1,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def gsm8k(tmp_path):
    row = {"problem": "What is 1+{}?", "answer": "{}", "solution": "1+{} = {}\n#### {}"}
    for split in ("train", "test"):
        rows = []
        for i in range(4):
            rows.append({"id": f"{split}-{i}", **{k: v.replace("{}", str(i)) for k, v in row.items()}})
        (tmp_path / f"gsm8k_{split}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return tmp_path


@pytest.mark.parametrize("name", shipped_recipes())
def test_two_steps(name, byte_llama, gsm8k, tmp_path):
    recipe = load_recipe(name)
    sets = dict(SHRUNK)
    if recipe.model.name_or_path != "nano":
        sets["model.name_or_path"] = str(byte_llama)
    if recipe.task.name == "gsm8k":
        sets["task.path"] = str(gsm8k)
    if recipe.model.lora:
        sets["model.lora.target_modules"] = ["q_proj"]
    argv = ["train", name, "--run-dir", str(tmp_path / "run")]
    for key, value in sets.items():
        argv += ["--set", f"{key}={json.dumps(value)}"]
    assert run(argv) == 0
    assert len((tmp_path / "run" / "train_log.jsonl").read_text().splitlines()) == 2
    for split in recipe.evaluate.splits:
        assert len((tmp_path / "run" / "eval" / split / "records.jsonl").read_text().splitlines()) == 4


@pytest.mark.parametrize("name", studies.shipped_studies())
def test_study_runs_shrunk(name, tmp_path, capsys):
    """All arms of a study, two steps each, to the report; a second call finds nothing left to do."""
    text = studies.shipped_studies()[name].read_text()
    shrunk = "".join(f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in SHRUNK.items())
    lines = [line for line in text.splitlines() if not any(line.startswith(json.dumps(k)) for k in SHRUNK)]
    path = tmp_path / f"{name}.toml"
    path.write_text("\n".join(lines).replace("[set]", f"[set]\n{shrunk}", 1))
    study = studies.load_study(str(path))
    keep = study.arms if name == "quickstart" else study.arms[:2]
    small = studies.Study(**{**study.__dict__, "arms": keep, "seeds": study.seeds[:1]})
    out = tmp_path / "out"
    from killick.cli.console import err

    assert studies.run(small, out, err) == []
    studies.finish(small, out, err)
    summary = json.loads((out / "summary.json").read_text())
    assert len(summary["models"]) == len(keep) + 1
    page = (out / "report.html").read_text()
    assert all(arm.label in page for arm in keep)
    assert all(job.finished() for job in studies.plan(small, out))
