"""What a repair costs: passes and tokens per repaired prompt, and the step time at several shares of failed groups.

The reward is scripted, so that exactly the asked share of groups fails, and all of them are repaired in the same step.
Steps with and without the repair slot alternate on the same rollouts. Called by bench.py.
"""

import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer

from killick import KillickConfig, KillickTrainer
from killick.nano import base_path
from killick.tasks.countdown import Countdown

PROMPTS, GROUP, SHARES = 16, 8, (0.1, 0.4, 0.8)


def scripted_reward(share: float) -> Callable[..., list[float]]:
    """Every row of a failing prompt is wrong; the others alternate. References count as right."""

    def correct(completions: list[Any], uid: list[str], **_: Any) -> list[float]:
        if len(set(uid)) == len(completions):  # references being checked: rollouts come in groups
            return [1.0] * len(completions)
        uids = list(dict.fromkeys(uid))
        failing = set(uids[: round(share * len(uids))])
        return [0.0 if u in failing else float(n % 2) for n, u in enumerate(uid)]

    return correct


def trainer_of(share: float, repair: bool, folder: Path) -> Any:
    """A nano trainer whose learning rate is 0."""
    rows = Countdown().rows("train", 64)
    columns = {key: [getattr(row, key) for row in rows] for key in ("prompt", "answer", "solution", "uid")}
    slot: dict[str, Any] = {}
    if repair:
        settings = {"batch_size": round(share * PROMPTS), "max_plan_tokens": 16}
        slot = {"repair": "geometric", "repair_settings": settings}
    args = KillickConfig(
        output_dir=str(folder), max_steps=1, per_device_train_batch_size=PROMPTS * GROUP, num_generations=GROUP,
        max_completion_length=40, learning_rate=0.0, bf16=False, gradient_checkpointing=False, report_to="none",
        save_strategy="no", disable_tqdm=True, beta=0.05, kl_form="k3_loss", use_cpu=True, seed=1,
        logging_strategy="no", **slot,
    )  # fmt: skip
    trainer = KillickTrainer(
        model=AutoModelForCausalLM.from_pretrained(base_path()),
        reward_funcs=scripted_reward(share),
        args=args,
        train_dataset=Dataset.from_dict(columns),
        processing_class=AutoTokenizer.from_pretrained(base_path()),
        plan_wording=Countdown.plan_wording,
    )
    trainer.train()
    return trainer


def count_passes(trainer: Any) -> Counter[str]:
    """Rows and tokens that go through generation and through forward passes of references, from now on."""
    seen: Counter[str] = Counter()
    generate, score = trainer._generate_single_turn, trainer._get_per_token_logps_and_entropies

    def generated(prompt_ids: list[list[int]], *rest: Any) -> Any:
        answers, logprobs = generate(prompt_ids, *rest)
        kind = "plan" if rest[2] == 1 else "rollout"  # rollouts come with the group size
        seen[f"{kind} generations"] += len(answers)
        seen[f"{kind} tokens"] += sum(map(len, answers))
        return answers, logprobs

    def scored(model: Any, ids: Any, mask: Any, *rest: Any, **more: Any) -> Any:
        out = score(model, ids, mask, *rest, **more)
        if not more.get("compute_entropy") and not trainer._killick_slice and ids.size(0) < PROMPTS * GROUP:
            kind = "training" if out[0].requires_grad else "no-gradient"
            seen[f"{kind} passes of references"] += ids.size(0)
            seen[f"{kind} tokens of references"] += int(mask.sum())
        return out

    trainer._generate_single_turn = generated
    trainer._get_per_token_logps_and_entropies = scored
    return seen


def step(trainer: Any, seed: int) -> float:
    """One whole optimiser step; seconds."""
    torch.manual_seed(seed)
    trainer._step, trainer._buffered_inputs = 0, None
    if trainer._killick_repairer is not None:
        trainer._killick_repairer._prepared_at = None  # the optimiser step does not advance here
    batch = next(iter(trainer.get_train_dataloader()))
    torch.manual_seed(seed)
    start = time.perf_counter()
    trainer.training_step(trainer.model_wrapped, batch, None)
    trainer.optimizer.step()
    trainer.optimizer.zero_grad()
    return time.perf_counter() - start


def bench_share(share: float, steps: int, folder: Path) -> dict[str, Any]:
    """One share of failed groups: paired step times, and passes per repaired prompt."""
    trainers = {name: trainer_of(share, name == "sort", folder / f"{name}{share}") for name in ("grpo", "sort")}
    times: dict[str, list[float]] = defaultdict(list)
    for seed in range(steps + 2):
        for name in list(trainers) if seed % 2 == 0 else list(reversed(trainers)):
            seconds = step(trainers[name], seed)
            if seed >= 2:
                times[name].append(seconds)
    repaired = trainers["sort"]._killick_repairer.num_repaired
    seen = count_passes(trainers["sort"])
    step(trainers["sort"], steps + 2)
    num = trainers["sort"]._killick_repairer.num_repaired - repaired
    extra = [1 - g / s for g, s in zip(times["grpo"], times["sort"], strict=True)]
    return {
        "failed_share": share,
        "repaired_per_step": num,
        "time_ratio": statistics.median(s / g for g, s in zip(times["grpo"], times["sort"], strict=True)),
        "share_of_step": statistics.median(extra),
        "per_repaired_prompt": {key: value / num for key, value in sorted(seen.items()) if "rollout" not in key},
        "tokens_per_rollout": seen["rollout tokens"] / seen["rollout generations"],
    }


def run(folder: Path, steps: int = 8) -> list[dict[str, Any]]:
    """All shares."""
    return [bench_share(share, steps, folder) for share in SHARES]
