"""A tiny model that reads any text, a tiny GSM8K, and what shrinks a run to seconds."""

import json

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SHRUNK = {
    "trl.max_steps": 2, "trl.num_generations": 2, "trl.per_device_train_batch_size": 4, "trl.max_completion_length": 8,
    "trl.gradient_accumulation_steps": 1, "evaluate.num_problems": 2, "evaluate.num_samples": 2,
    "evaluate.max_tokens": 8,
}  # fmt: skip


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def shrunk():
    return dict(SHRUNK)


@pytest.fixture(scope="session")
def shrink_study(shrunk):
    """Turns a study file into one of two steps."""

    def make(source, target):
        lines = [line for line in source.read_text().splitlines() if not any(line.startswith(f'"{k}"') for k in shrunk)]
        table = "[set]\n" + "".join(f"{json.dumps(k)} = {json.dumps(v)}\n" for k, v in shrunk.items())
        text = "\n".join(lines) + "\n"
        if "[set]" in text:
            text = text.replace("[set]\n", table, 1)
        else:
            text = text.replace("[[arm]]", table + "\n[[arm]]", 1)
        target.write_text(text)
        return target

    return make
