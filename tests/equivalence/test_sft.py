"""The `nll` and `dft` rules give the loss and gradient of TRL's SFT losses of the same names, on one batch."""

import pytest
import torch
from datasets import Dataset
from engine_kit import SMALL
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

from killick.maths import token_count, weighted_nll
from killick.methods.repairs import REPAIRS
from killick.nano import base_path
from killick.tasks.countdown import Countdown


def gradients(model, loss):
    return dict(
        zip(
            (name for name, _ in model.named_parameters()),
            torch.autograd.grad(loss, list(model.parameters())),
            strict=True,
        )
    )


@pytest.mark.parametrize("name", ["nll", "dft"])
def test_loss_and_gradient_of_one_batch(tmp_path, name):
    rows = Countdown().rows("train", 6)
    data = Dataset.from_dict(
        {
            "prompt": [row.prompt for row in rows],
            "completion": [[{"role": "assistant", "content": row.solution}] for row in rows],
        }
    )
    settings = {k: v for k, v in SMALL.items() if k not in ("num_generations", "max_completion_length")}
    trainer = SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(base_path()),
        args=SFTConfig(output_dir=str(tmp_path), loss_type=name, **settings),
        train_dataset=data,
        processing_class=AutoTokenizer.from_pretrained(base_path()),
    )
    batch = next(iter(trainer.get_train_dataloader()))
    model = trainer.model.eval()
    theirs = trainer.compute_loss(model, dict(batch))
    expected = gradients(model, theirs)

    logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, :-1]
    labels = batch["labels"][:, 1:]
    mask = labels != -100
    assert mask.sum() not in (0, mask.numel())
    logp = logits.log_softmax(-1).gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    ours = weighted_nll(logp, REPAIRS.build(name)(logp, logp, mask), mask, token_count(mask))
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)
    for key, gradient in gradients(model, ours).items():
        torch.testing.assert_close(
            gradient, expected[key], rtol=1e-4, atol=1e-6, msg=lambda text, key=key: f"{key}: {text}"
        )
    largest = max(gradient.abs().max() for gradient in expected.values())
    assert largest > 1e-3, "gradients that could be compared"
