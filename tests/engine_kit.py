"""What the engine tests share: a few steps of a real trainer on the nano base, and what came out of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer

from killick.engines.trl.reward import VerifierReward
from killick.nano import base_path
from killick.tasks.countdown import Countdown

NUM_ROWS = 24
SMALL: dict[str, Any] = {
    "max_steps": 20,
    "per_device_train_batch_size": 8,
    "num_generations": 4,
    "max_completion_length": 16,
    "learning_rate": 1e-3,
    "lr_scheduler_type": "constant",
    "bf16": False,
    "gradient_checkpointing": False,
    "report_to": "none",
    "logging_steps": 1,
    "save_strategy": "no",
    "disable_tqdm": True,
    "use_cpu": True,
    "seed": 7,
}

SGD: dict[str, Any] = {"optim": "sgd", "learning_rate": 3e-4, "max_grad_norm": 0.0}
"""Plain steps: AdamW divides the scale of the gradient out and blows rounding of near-zero gradients up."""


def digit_share(completions: list[Any], **_: Any) -> list[float]:
    """A reward with spread in every group, so that 20 steps move the parameters whatever the model can solve."""
    texts = [c if isinstance(c, str) else c[-1]["content"] for c in completions]
    return [sum(ch.isdigit() for ch in t) / max(len(t), 1) for t in texts]


@dataclass
class Outcome:
    """What a run left behind."""

    losses: list[float]
    log: list[dict[str, float]]
    parameters: dict[str, torch.Tensor]
    trainer: Any


def make_trainer(trainer_class: Any, config_class: Any, folder: Path, *, extra: Any = None, **settings: Any) -> Any:
    """A trainer on 24 countdown problems; equal settings give equal trainers."""
    torch.manual_seed(0)
    task = Countdown()
    rows = task.rows("train", NUM_ROWS)
    columns = {key: [getattr(row, key) for row in rows] for key in ("prompt", "answer", "solution", "uid")}
    data = Dataset.from_dict({**columns, "plan": [row.meta["plan"] for row in rows]})
    model = AutoModelForCausalLM.from_pretrained(base_path())
    tokenizer = AutoTokenizer.from_pretrained(base_path())
    args = config_class(output_dir=str(folder), **{**SMALL, **settings})
    parts = {
        "model": model, "reward_funcs": [digit_share, VerifierReward(task.verifier)], "train_dataset": data,
        "processing_class": tokenizer, **(extra or {}),
    }  # fmt: skip
    return trainer_class(args=args, **parts)


def displace(trainer: Any, scale: float = 0.008) -> None:
    """Move the policy away from its reference by seeded noise, so that no KL term is 0 at the first step."""
    generator = torch.Generator().manual_seed(1)
    for parameter in trainer.model.parameters():
        parameter.data += scale * torch.randn(parameter.shape, generator=generator)


def script_rollouts(trainer: Any) -> None:
    """Replace sampling by completions that depend on (prompt, place in its group) alone.

    Nothing can flip then: a run is a smooth function of its parameters and equal on every machine up to rounding, and
    two processes see the rows that one would. Every second problem has one right completion, the others have none.
    """
    tokenizer, group = trainer.processing_class, trainer.num_generations
    rows = Countdown().rows("train", NUM_ROWS)
    texts = [tokenizer.apply_chat_template(r.prompt, add_generation_prompt=True, tokenize=False) for r in rows]
    place = {text: index for index, text in enumerate(texts)}

    def completion(index: int, member: int) -> list[int]:
        """Beginnings of the solution: a text the model finds likely, since the ratios of KL terms explode elsewhere."""
        steps = rows[index].solution.split(";")
        whole = [*tokenizer(rows[index].solution, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        right = index % 2 == 0 and member % 4 == 0
        return whole if right else whole[: [-4, 4, len(steps[0]), 9][member % 4]]

    sampled = trainer._generate_single_turn

    def scripted(prompt_ids: list[list[int]], *rest: Any) -> Any:
        first = trainer.accelerator.process_index * len(prompt_ids)
        which = [place.get(tokenizer.decode(ids)) for ids in prompt_ids]
        if None in which:  # the turns that ask for a plan, which is greedy
            return sampled(prompt_ids, *rest)
        return [completion(index, (first + row) % group) for row, index in enumerate(which)], None

    trainer._generate_single_turn = scripted


def run(trainer: Any, resume: str | None = None) -> Outcome:
    """Train and collect."""
    trainer.train(resume_from_checkpoint=resume)
    log = [entry for entry in trainer.state.log_history if "loss" in entry]
    parameters = {k: v.detach().clone() for k, v in trainer.model.named_parameters()}
    return Outcome([entry["loss"] for entry in log], log, parameters, trainer)


def assert_same(a: Outcome, b: Outcome) -> None:
    """Loss series and every parameter equal to the bit."""
    assert a.losses == b.losses
    assert a.parameters.keys() == b.parameters.keys()
    for key in a.parameters:
        assert torch.equal(a.parameters[key], b.parameters[key]), key
