"""Speed and memory as ratios, measured in one process: SAGE and SORT against GRPO, our sampler against `generate`.

Both trainers see the same rollouts: the learning rate is 0 and each pair of steps starts from the same seed, so that a
ratio compares equal work. Steps alternate, so that a slow moment of the machine hits both.

    python tools/bench.py --out runs/bench.json [--steps 12] [--only nano]
"""

import argparse
import json
import statistics
import tempfile
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bench_records
import bench_repair
import bench_verify
import torch
from datasets import Dataset
from rich.console import Console
from rich.table import Table
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM
from trl import GRPOConfig, GRPOTrainer

from killick import KillickConfig, KillickTrainer, provenance
from killick.engines.trl.reward import VerifierReward
from killick.evaluate.sample import sample
from killick.evaluate.settings import SamplingSettings
from killick.nano import base_path
from killick.tasks.countdown import Countdown

console = Console(stderr=True)


def random_llama(folder: Path) -> Path:
    """About 30 M parameters with a 50k vocabulary; the nano tokenizer's ids lie inside it."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=50_000, hidden_size=384, intermediate_size=1024, num_hidden_layers=6, num_attention_heads=6,
        num_key_value_heads=6, max_position_embeddings=512, tie_word_embeddings=True, pad_token_id=0, bos_token_id=1,
        eos_token_id=2,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(base_path()).save_pretrained(folder)
    return folder


def trainer_of(arm: str, model_path: Path, rows: int, length: int, folder: Path) -> Any:
    """A trainer after one warm-up step, with learning rate 0."""
    task = Countdown()
    data = task.rows("train", 64)
    common: dict[str, Any] = {
        "output_dir": str(folder / arm), "max_steps": 1, "per_device_train_batch_size": rows, "num_generations": 8,
        "max_completion_length": length, "learning_rate": 0.0, "bf16": False, "gradient_checkpointing": False,
        "report_to": "none", "save_strategy": "no", "disable_tqdm": True, "beta": 0.05, "use_cpu": True, "seed": 1,
        "logging_strategy": "no",
    }  # fmt: skip
    model = AutoModelForCausalLM.from_pretrained(model_path)
    tokenizer = AutoTokenizer.from_pretrained(model_path)
    dataset = Dataset.from_dict({"prompt": [r.prompt for r in data], "answer": [r.answer for r in data]})
    if arm == "sage":
        args: Any = KillickConfig(
            kl_form="k3_loss", guide="branch", guide_settings={"gamma": 1.0, "tau_quantile": 0.8}, **common
        )
        cls: Any = KillickTrainer
    else:
        args, cls = GRPOConfig(use_bias_correction_kl=False, **common), GRPOTrainer
    trainer = cls(
        model=model, reward_funcs=VerifierReward(task.verifier), args=args, train_dataset=dataset,
        processing_class=tokenizer,
    )  # fmt: skip
    trainer.train()
    return trainer


def timed(trainer: Any, spent: dict[str, float]) -> None:
    """Wrap the parts of a step so that `spent` collects their seconds."""

    def wrap(name: str, label: Any) -> None:
        original = getattr(trainer, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            key = label() if callable(label) else label
            start = time.perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                if key:
                    spent[key] += time.perf_counter() - start

        setattr(trainer, name, watched)

    wrap("_generate", "generation")
    wrap("_calculate_rewards", "verification")
    inside = {"loss": False}
    original = trainer._compute_loss

    def loss(*args: Any, **kwargs: Any) -> Any:
        inside["loss"] = True
        try:
            return original(*args, **kwargs)
        finally:
            inside["loss"] = False

    trainer._compute_loss = loss
    wrap("_get_per_token_logps_and_entropies", lambda: None if inside["loss"] else "reference")


def step(trainer: Any, seed: int, spent: dict[str, float] | None = None) -> float:
    """One whole optimiser step on a fixed batch; seconds."""
    torch.manual_seed(seed)
    trainer._step, trainer._buffered_inputs = 0, None
    batch = next(iter(trainer.get_train_dataloader()))
    torch.manual_seed(seed)
    start = time.perf_counter()
    trainer.training_step(trainer.model_wrapped, batch, None)
    before = time.perf_counter()
    trainer.optimizer.step()
    trainer.optimizer.zero_grad()
    end = time.perf_counter()
    if spent is not None:
        spent["optimiser"] += end - before
        spent["total"] += end - start
    return end - start


@contextmanager
def peak_mb(into: dict[str, float | None], key: str) -> Any:
    """Highest resident memory inside the block, MB; None where the kernel does not let it be reset."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        known = True
    except OSError:
        known = False
    yield
    if not known:
        into[key] = None
        return
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM"))
    into[key] = max(into.get(key) or 0.0, int(line.split()[1]) / 1024)


def bench_step(name: str, path: Path, rows: int, length: int, steps: int, folder: Path) -> dict[str, Any]:
    """Interleaved steps of both trainers: the median of the paired ratios, and where the time of a SAGE step goes."""
    trainers = {arm: trainer_of(arm, path, rows, length, folder) for arm in ("grpo", "sage")}
    times: dict[str, list[float]] = {arm: [] for arm in trainers}
    memory: dict[str, float | None] = {}
    for seed in range(steps + 2):
        arms = list(trainers) if seed % 2 == 0 else list(reversed(trainers))
        for arm in arms:
            with peak_mb(memory, arm):
                seconds = step(trainers[arm], seed)
            if seed >= 2:
                times[arm].append(seconds)
    spent: dict[str, float] = defaultdict(float)
    timed(trainers["sage"], spent)
    for seed in range(3):
        step(trainers["sage"], seed, spent)
    total = spent.pop("total")
    spent["forward, backward and the rest"] = total - sum(spent.values())
    ratios = [s / g for s, g in zip(times["sage"], times["grpo"], strict=True)]
    peaks = [memory.get(arm) for arm in ("sage", "grpo")]
    return {
        "model": name,
        "rows": rows,
        "steps": steps,
        "grpo_step_s": statistics.median(times["grpo"]),
        "sage_step_s": statistics.median(times["sage"]),
        "time_ratio": statistics.median(ratios),
        "time_ratio_quartiles": statistics.quantiles(ratios, n=4),
        "peak_mb": memory,
        "memory_ratio": peaks[0] / peaks[1] if all(peaks) else None,
        "share_of_step": {key: value / total for key, value in sorted(spent.items())},
    }


def bench_sampling(path: Path, rows: int, length: int, repeats: int) -> dict[str, Any]:
    """Tokens a second of `killick evaluate`'s sampler against plain `generate(do_sample=True)` on equal prompts."""
    model = AutoModelForCausalLM.from_pretrained(path).eval()
    tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
    problems = Countdown().rows("validation", 16)
    settings = SamplingSettings(num_samples=rows // 16, max_tokens=length, seed=0)
    prompts = [r.prompt for r in problems for _ in range(rows // 16)]
    encoded = tokenizer.apply_chat_template(
        prompts, add_generation_prompt=True, return_dict=True, return_tensors="pt", padding=True
    )
    rates: dict[str, list[float]] = {"killick": [], "generate": []}
    for turn in range(repeats + 1):
        start = time.perf_counter()
        tokens = sum(c.tokens for batch in sample(model, tokenizer, problems, settings, batch_size=rows) for c in batch)
        ours = tokens / (time.perf_counter() - start)
        torch.manual_seed(turn)
        start = time.perf_counter()
        with torch.no_grad():
            out = model.generate(**encoded, max_new_tokens=length, do_sample=True, top_k=0, temperature=1.0)
        new = out[:, encoded["input_ids"].shape[1] :]
        texts = tokenizer.batch_decode(new, skip_special_tokens=True)  # part of the same job
        assert len(texts) == len(prompts), "every prompt has a completion"
        plain = int((new != tokenizer.pad_token_id).sum()) / (time.perf_counter() - start)
        if turn:
            rates["killick"].append(ours)
            rates["generate"].append(plain)
    ratios = [a / b for a, b in zip(rates["killick"], rates["generate"], strict=True)]
    return {
        "rows": rows,
        "killick_tokens_per_s": statistics.median(rates["killick"]),
        "generate_tokens_per_s": statistics.median(rates["generate"]),
        "rate_ratio": statistics.median(ratios),
    }


def show(result: dict[str, Any]) -> None:
    """The table people read."""
    table = Table("what", "model", "value")
    for entry in result.get("step", {}).values():
        table.add_row("step time, SAGE / GRPO", entry["model"], f"{entry['time_ratio']:.3f}")
        memory = entry["memory_ratio"]
        table.add_row("peak memory, SAGE / GRPO", entry["model"], "unknown" if memory is None else f"{memory:.3f}")
        for part, share in entry["share_of_step"].items():
            table.add_row(f"  {part}", entry["model"], f"{share:.1%}")
    for name, entry in result.get("sampling", {}).items():
        table.add_row("sampling rate, killick / generate", name, f"{entry['rate_ratio']:.2f}")
    if "verify" in result:
        table.add_row("verification rate, service / math-verify", "–", f"{result['verify']['ratio']:.1f}")
    for step, entry in result.get("records", {}).get("steps", {}).items():
        table.add_row(f"100,000 records, {step}", "–", f"{entry['own_s']:.1f} s, {entry['peak_mib']} MiB")
    for entry in result.get("repair", []):
        what = f"step time, SORT / GRPO, {entry['failed_share']:.0%} of groups failed"
        table.add_row(what, "nano", f"{entry['time_ratio']:.3f}")
        for part, number in entry["per_repaired_prompt"].items():
            table.add_row(f"  {part} per repaired prompt", "nano", f"{number:.1f}")
    console.print(table)


def bench_steps(name: str, steps: int, folder: Path) -> dict[str, Any]:
    """Step and sampling of one model, ready to be merged into the result."""
    path, rows, length = {"nano": (base_path(), 128, 40), "llama30m": (folder / "llama", 16, 24)}[name]
    if name == "llama30m":
        random_llama(path)
    console.print(f"{name}: {steps} pairs of steps of {rows} rollouts …")
    return {
        "step": {name: bench_step(name, path, rows, length, steps, folder)},
        "sampling": {name: bench_sampling(path, rows, length, 3)},
    }


PARTS = {
    "nano": lambda steps, folder: bench_steps("nano", steps, folder),
    "llama30m": lambda steps, folder: bench_steps("llama30m", steps, folder),
    "repair": lambda steps, folder: {"repair": bench_repair.run(folder, steps)},
    "verify": lambda steps, folder: {"verify": bench_verify.run()},
    "records": lambda steps, folder: {"records": bench_records.run()},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/bench.json"))
    parser.add_argument("--steps", type=int, default=12, help="pairs of steps that count")
    parser.add_argument("--only", choices=PARTS, help="this part; the others of an existing file are kept")
    args = parser.parse_args()
    result: dict[str, Any] = provenance.read_json(args.out) if args.only and args.out.exists() else {}
    result |= {"versions": provenance.versions(), "threads": torch.get_num_threads()}
    with tempfile.TemporaryDirectory() as temporary:
        for name, part in PARTS.items():
            if args.only in (None, name):
                console.print(f"{name} …")
                for key, value in part(args.steps, Path(temporary)).items():
                    result[key] = {**result.get(key, {}), **value} if isinstance(value, dict) else value
    provenance.write_json(args.out, result)
    show(result)
    console.print(f"Written: {args.out}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
