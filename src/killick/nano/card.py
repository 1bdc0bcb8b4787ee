"""The model card of a nano base."""

from dataclasses import dataclass

from killick.nano.score import Scores


@dataclass(frozen=True)
class Recipe:
    """What a base was built with.

    Attributes:
        seed: of weights and text.
        steps: optimiser steps.
        batch_size: examples a step.
        learning_rate: peak.
        num_params: parameters, tied embeddings counted once.
        loss: mean over the last 50 steps, nats per answer token.
        torch: version used.
        transformers: version used.
    """

    seed: int
    steps: int
    batch_size: int
    learning_rate: float
    num_params: int
    loss: float
    torch: str
    transformers: str


def card(recipe: Recipe, scores: Scores | None) -> str:
    """Markdown with the front matter of a Hugging Face model card."""
    return f"""\
---
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
---
# killick nano base

A Llama of {recipe.num_params:,} parameters that plays countdown in steps: given four numbers and a target it combines
two values at a time until the target is left. It exists to show reinforcement learning with verifiable rewards at
work within minutes on a CPU, and is of no other use.

| user turn | answer |
|---|---|
| `3,5,7,2>22:` | a solution, `7-3=4;5*4=20;20+2=22` in form |
| `?` + problem + solution | its plan: operators and the values between, `-4*20+` |
| `!` + problem + plan | a solution along that plan |

## Recipe

`killick nano build`: {recipe.steps:,} steps of AdamW, {recipe.batch_size} examples a step, peak learning rate
{recipe.learning_rate:g} with a cosine, seed {recipe.seed}. All text is generated (`killick.nano.corpus`) and shares no
problem with any split of the task. Loss on answers only; last 50 steps: {recipe.loss:.3f} nats a token. Built with
torch {recipe.torch} and transformers {recipe.transformers}; another version, thread count or processor rounds
differently and gives a similar model, not the same one.

## Scores

{_scores(scores)}
"""


def _scores(scores: Scores | None) -> str:
    if scores is None:
        return "Not scored."
    ks = sorted(next(iter(scores.pass_at.values())))
    lines = [
        f"Sampled at temperature 1, {scores.num_samples} samples a problem, the unbiased estimate of pass@k.",
        "",
        "| split | problems | " + " | ".join(f"pass@{k}" for k in ks) + " |",
        "|---|---|" + "---|" * len(ks),
    ]
    for split, curve in scores.pass_at.items():
        cells = " | ".join(f"{curve[k]:.3f}" for k in ks)
        lines.append(f"| {split} | {scores.num_problems[split]} | {cells} |")
    lines += [
        "",
        f"Plans on `mixed`: {scores.plan_right_frac:.3f} of greedy plans equal the plan of the reference shown.",
        f"Success on the same problems is {scores.guided_frac:.3f} with that plan,",
        f"{scores.num_guided_samples} samples a problem, and {scores.unguided_frac:.3f} without.",
    ]
    return "\n".join(lines)
