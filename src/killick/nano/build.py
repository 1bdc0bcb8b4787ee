"""Pretraining of the nano base: a tiny Llama on generated text, a plain loop, minutes on a laptop CPU."""

import math
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from torch import Tensor
from torch.nn import functional

from killick.errors import ConfigError
from killick.nano.card import Recipe, card
from killick.nano.corpus import Corpus, build_corpus
from killick.nano.score import MAX_COMPLETION_TOKENS, Scores, score_base
from killick.nano.tokenizer import build_tokenizer

WARMUP_STEPS = 50
# Rows of one forward pass. Activations of 64 rows stay in the cache of a CPU core; 256 at once are 1.4 times slower.
MICRO_BATCH = 64


def new_model(seed: int) -> Any:
    """An untrained `LlamaForCausalLM` of the nano size; same seed, same weights. Global random state is kept."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = build_tokenizer()
    config = LlamaConfig(
        vocab_size=32,
        hidden_size=64,
        intermediate_size=192,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=128,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        attn_implementation="sdpa",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config)


def learning_rate_at(step: int, num_steps: int, peak: float) -> float:
    """Linear warm-up over `WARMUP_STEPS`, then a cosine to zero at the end of the run."""
    warm = min(WARMUP_STEPS, num_steps)
    if step < warm:
        return peak * (step + 1) / warm
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, num_steps - warm)))


def _batch(corpus: Corpus, start: int, stop: int) -> list[tuple[Tensor, Tensor]]:
    """(tokens, labels) micro-batches of one step, int64, cut to their longest row; -100 where no loss is taken.

    Rows are sorted by length inside the step: the gradient is that of the whole batch, with little padding.
    """
    rows = start + corpus.lengths[start:stop].argsort(kind="stable")
    parts = []
    for at in range(0, len(rows), MICRO_BATCH):
        chosen = rows[at : at + MICRO_BATCH]
        width = int(corpus.lengths[chosen].max())
        tokens = torch.from_numpy(corpus.tokens[chosen, :width].astype("int64"))
        position = torch.arange(width)
        scored = position >= torch.from_numpy(corpus.answer_start[chosen])[:, None]
        scored &= position < torch.from_numpy(corpus.lengths[chosen])[:, None]
        parts.append((tokens, tokens.masked_fill(~scored, -100)))
    return parts


def _gradient(model: Any, parts: list[tuple[Tensor, Tensor]]) -> float:
    """Accumulate the gradient of the mean loss over the answer tokens of one batch; returns that loss, nats."""
    divisor = sum(int((labels != -100).sum()) for _, labels in parts)
    total = 0.0
    for tokens, labels in parts:
        # Right padding under a causal mask is never attended to, so no attention mask: the fast sdpa kernel is used.
        logits = model(tokens, use_cache=False).logits[:, :-1]
        loss = functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), reduction="sum") / divisor
        loss.backward()
        total += loss.item()
    return total


def _bar(progress: bool) -> Progress:
    """Steps done, a free note, time used and time left."""
    return Progress(
        TextColumn("pretraining"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not progress,
    )


def pretrain(
    seed: int, steps: int, *, batch_size: int = 256, learning_rate: float = 2e-3, progress: bool = True
) -> tuple[Any, list[float]]:
    """Train a new model on fresh text; returns it in evaluation mode with the loss of every step.

    Deterministic for a given thread count. AdamW (weight decay 0.01, betas 0.9 and 0.95), gradient norm at most 1.

    Args:
        seed: of weights and text.
        steps: optimiser steps.
        batch_size: examples a step.
        learning_rate: peak.
        progress: show a bar with rate and time left.

    Raises:
        ConfigError: fewer than one step or example.
    """
    if steps < 1 or batch_size < 1:
        raise ConfigError(f"steps and batch_size must be at least 1, found {steps} and {batch_size}.")
    corpus = build_corpus(steps * batch_size, seed)
    model = new_model(seed).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95), weight_decay=0.01)
    losses: list[float] = []
    with _bar(progress) as bar:
        job = bar.add_task("pretraining", total=steps, note="")
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate_at(step, steps, learning_rate)
            losses.append(_gradient(model, _batch(corpus, step * batch_size, (step + 1) * batch_size)))
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            speed = bar.tasks[job].speed
            note = f"loss {losses[-1]:.3f}" + (f"  {speed:.2f} steps/s" if speed else "")
            bar.update(job, advance=1, note=note)
    return model.eval(), losses


def build_nano(
    out_dir: Path,
    *,
    seed: int = 0,
    steps: int = 2000,
    batch_size: int = 256,
    learning_rate: float = 2e-3,
    score: bool = True,
    num_score_samples: int = 256,
    progress: bool = True,
) -> Scores | None:
    """Pretrain a base, score it and write an ordinary Hugging Face folder with model card.

    Args:
        out_dir: new or empty folder.
        seed: of weights, text and the scoring samples.
        steps: optimiser steps: the knob for a weaker or stronger base.
        batch_size: examples a step.
        learning_rate: peak.
        score: measure pass@k and plans for the model card, a few minutes.
        num_score_samples: samples a problem for that.
        progress: show a bar.

    Raises:
        ConfigError: `out_dir` is not an empty folder, or a count is out of range.

    Returns:
        The scores, or None without scoring.
    """
    if out_dir.exists() and (not out_dir.is_dir() or any(out_dir.iterdir())):
        raise ConfigError(f"{out_dir} exists and is not an empty folder. Name a new folder for the nano base.")
    if num_score_samples < 1:
        raise ConfigError(f"num_score_samples must be at least 1, found {num_score_samples}. Use score=False for none.")
    import transformers

    model, losses = pretrain(seed, steps, batch_size=batch_size, learning_rate=learning_rate, progress=progress)
    tokenizer = build_tokenizer()
    scores = score_base(model, tokenizer, seed=seed, num_samples=num_score_samples) if score else None
    out_dir.mkdir(parents=True, exist_ok=True)
    # Neutral sampling: whoever samples from the base sees its own distribution.
    model.generation_config = transformers.GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        max_new_tokens=MAX_COMPLETION_TOKENS,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    model.save_pretrained(out_dir)
    # safetensors writes for the owner alone; a wheel would carry that mode to every user of a shared install.
    (out_dir / "model.safetensors").chmod(0o644)
    tokenizer.save_pretrained(out_dir)
    recipe = Recipe(
        seed=seed,
        steps=steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        num_params=model.num_parameters(),
        loss=sum(losses[-50:]) / len(losses[-50:]),
        torch=torch.__version__.split("+")[0],
        transformers=transformers.__version__,
    )
    (out_dir / "README.md").write_text(card(recipe, scores), encoding="utf-8")
    return scores
