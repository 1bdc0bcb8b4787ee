"""Trainings that `test_processes.py` compares, run by one process or, under torchrun, by two. Not a test by itself."""

import os
import signal
import sys
from pathlib import Path

import torch
from engine_kit import SGD, displace, make_trainer, run, script_rollouts
from rich.console import Console
from torch.nn.parallel import DistributedDataParallel
from transformers import TrainerCallback

from killick import KillickConfig, KillickTrainer
from killick.engines.trl.callbacks import SaveOnInterrupt
from killick.tasks.countdown import CountdownWording

ROWS, GROUP, STEPS = 12, 4, 3  # three groups, so that with two processes the middle one is split between them
QUANTILE = {"kl_form": "k3_loss", "guide": "branch", "guide_settings": {"gamma": 1.0, "tau_quantile": 0.5}}
CASES = {
    "quantile": QUANTILE,
    "quantile_per_process": QUANTILE,  # what a threshold without gather would do: must differ
    "k2_accumulated": {"kl_form": "k2_loss", "loss_type": "dapo", "gradient_accumulation_steps": 2},
    "noise": {"kl_form": "k1_reward_to_go", "guide": "token", "loss_type": "grpo"},
    "forward_exact": {"kl_form": "forward_exact"},
}
REPAIR = {"kl_form": "k3_loss", "repair": "geometric"}
CASES |= {
    # one prompt a batch: the second process has none, and goes along with a row of weight 0
    "repair": {**REPAIR, "repair_settings": {"batch_size": 1, "max_plan_tokens": 12}},
    # three prompts: two here, one there and a stand-in
    "repair_checkpointing": {
        **REPAIR, "repair_settings": {"batch_size": 3, "max_plan_tokens": 12}, "gradient_checkpointing": True,
        "gradient_accumulation_steps": 2,
    },
    # more references than a slice has rows, here and there
    "repair_slices": {
        **REPAIR, "repair_settings": {"batch_size": 3, "max_plan_tokens": 12}, "gradient_accumulation_steps": 6,
    },
}  # fmt: skip
INTERRUPTED_AT = 3


def world():
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank():
    return int(os.environ.get("RANK", "0"))


def scripted_trainer(folder, **settings):
    accumulation = settings.get("gradient_accumulation_steps", 1)
    shared = {
        "beta": 1.0, "max_steps": STEPS, "max_completion_length": 32, "num_generations": GROUP,
        "correctness_reward": "correct", **SGD,
    }  # fmt: skip
    each = ROWS // world() // accumulation
    trainer = make_trainer(
        KillickTrainer,
        KillickConfig,
        folder,
        extra={"plan_wording": CountdownWording(), "journal": folder},
        **{**shared, "per_device_train_batch_size": each, **settings},
    )
    displace(trainer)
    script_rollouts(trainer)
    return trainer


def train_case(name, folder):
    """Parameters before and after, the log, and the noise of every row in the order of the rollouts."""
    trainer = scripted_trainer(folder, **CASES[name])
    if name == "quantile_per_process":
        trainer._killick_gather = lambda values: values
    start = {k: v.detach().clone() for k, v in trainer.model.named_parameters()}
    noise, generate = [], trainer._generate_and_score_completions

    def watched(inputs):
        out = generate(inputs)
        for key in ("killick_noise_normal", "killick_noise_uniform"):
            if key in out:
                noise.append([row[m.bool()] for row, m in zip(out[key], out["completion_mask"], strict=True)])
        return out

    trainer._generate_and_score_completions = watched
    outcome = run(trainer)
    assert trainer.accelerator.num_processes == world()
    assert isinstance(trainer.model_wrapped, DistributedDataParallel) == (world() == 2)
    return {"start": start, "parameters": outcome.parameters, "log": outcome.log, "noise": noise}


class Interrupt(TrainerCallback):
    """Sends Ctrl-C to the last process, in the middle of a step."""

    def on_step_begin(self, args, state, control, **_):
        if state.global_step == INTERRUPTED_AT - 1 and rank() == world() - 1:
            os.kill(os.getpid(), signal.SIGINT)


def train_interrupted(folder):
    """A whole run, one that a signal to one process ends, and its second half; rollouts are in use at the cut."""
    settings = {"kl_form": "k3_loss", "guide": "random", "num_iterations": 2, "max_steps": 5}
    whole = run(scripted_trainer(folder / "whole", **settings))
    cut = scripted_trainer(folder / "cut", **settings)
    guard = SaveOnInterrupt(Console(stderr=True))
    cut.add_callback(guard)
    cut.add_callback(Interrupt())
    with guard:
        cut.train()
    resumed = run(
        scripted_trainer(folder / "resumed", **settings), resume=str(folder / "cut" / f"checkpoint-{INTERRUPTED_AT}")
    )
    return {
        "step": cut.state.global_step,
        "interrupted": guard.interrupted,
        "whole": whole.parameters,
        "resumed": resumed.parameters,
    }


def usable_references(folder, crashes):
    """Which references a process keeps when its reward would say something else than the other's."""

    def correct(completions, **_):
        if crashes and rank() == 0:
            raise RuntimeError("asked outside a step")
        return [float(n % 3 != rank()) for n in range(len(completions))]

    settings = {"kl_form": "none", "beta": 0.0, "repair": "nll", "repair_settings": {"batch_size": 1}}
    trainer = make_trainer(KillickTrainer, KillickConfig, folder, extra={"reward_funcs": [correct]}, **settings)
    return [trainer._killick_repairer.references.get(uid) is not None for uid in trainer.train_dataset["uid"]]


def main(folder):
    assert world() == 2, "start with torchrun --nproc_per_node 2"
    results = {name: train_case(name, folder / name) for name in CASES}
    results["references"] = [usable_references(folder / f"references{crashes}", crashes) for crashes in (False, True)]
    results["interrupted"] = train_interrupted(folder)
    torch.save(results, folder / f"rank{rank()}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
