"""The shipped base: small, loadable, and as good as its card says."""

import re
import subprocess
import sys

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from killick.nano import base_path
from killick.nano.build import new_model
from killick.nano.score import score_base
from killick.nano.tokenizer import build_tokenizer


def test_small_and_safetensors_only() -> None:
    files = [path for path in base_path().rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 3 * 2**20
    assert {path.suffix for path in files} <= {".safetensors", ".json", ".jinja", ".md"}
    weights = load_file(base_path() / "model.safetensors")
    assert all(tensor.dtype == torch.float32 and torch.isfinite(tensor).all() for tensor in weights.values())


def test_loads_as_what_the_code_builds_today() -> None:
    model, tokenizer = AutoModelForCausalLM.from_pretrained(base_path()), AutoTokenizer.from_pretrained(base_path())
    fresh, built = new_model(0), build_tokenizer()
    assert {n: p.shape for n, p in model.named_parameters()} == {n: p.shape for n, p in fresh.named_parameters()}
    assert tokenizer.get_vocab() == built.get_vocab()
    assert tokenizer.chat_template == built.chat_template
    assert model.config.eos_token_id == tokenizer.eos_token_id


def test_scores_are_near_the_card() -> None:
    card = (base_path() / "README.md").read_text(encoding="utf-8")
    claimed = float(re.search(r"\| mixed \| \d+ \| ([\d.]+)", card)[1])
    model, tokenizer = AutoModelForCausalLM.from_pretrained(base_path()), AutoTokenizer.from_pretrained(base_path())
    found = score_base(model.eval(), tokenizer, num_samples=8, limit=40, splits=("mixed",))
    # Problems differ a lot: standard deviation of a problem's success about 0.2, so 0.03 over 40 problems.
    assert abs(found.unguided_frac - claimed) < 0.12
    assert found.plan_right_frac > 0.8
    assert found.guided_frac > found.unguided_frac + 0.05
    assert set(found.pass_at) == {"mixed"}
    assert found.pass_at["mixed"][1] == found.unguided_frac


def test_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys, killick.nano, killick.tasks.countdown, killick.verifiers.countdown\n"
        "sys.exit(sorted({'torch', 'transformers', 'tokenizers', 'numpy'} & set(sys.modules)).__len__())"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
