"""Scores of a nano base: pass@k, plans written, and what a given plan is worth."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from killick.evaluate.estimators import pass_at_k
from killick.evaluate.sample import sample
from killick.evaluate.settings import SamplingSettings
from killick.tasks.countdown import Countdown, guided_messages, plan_messages
from killick.tasks.types import Row

# The longest solution of the world is 31 tokens with <eos>; a longer text cannot be right.
MAX_COMPLETION_TOKENS = 40
KS = (1, 16, 64, 256)


@dataclass(frozen=True)
class Scores:
    """What the model card reports; all shares in [0, 1].

    Attributes:
        pass_at: split -> k -> pass@k, mean over its problems.
        num_problems: split -> problems scored.
        num_samples: samples a problem for pass@k.
        plan_right_frac: greedy plans that equal the plan of the reference shown, on `mixed`.
        guided_frac: right answers when the plan of the reference is given, on `mixed`.
        unguided_frac: right answers to the same problems without it.
        num_guided_samples: samples a problem behind `guided_frac`.
    """

    pass_at: dict[str, dict[int, float]]
    num_problems: dict[str, int]
    num_samples: int
    plan_right_frac: float
    guided_frac: float
    unguided_frac: float
    num_guided_samples: int

    def as_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)


def score_base(
    model: Any,
    tokenizer: Any,
    *,
    seed: int = 0,
    num_samples: int = 256,
    limit: int | None = None,
    splits: tuple[str, ...] = ("mixed", "hard"),
) -> Scores:
    """Sample and judge; deterministic given the seed.

    Args:
        model: a causal language model in evaluation mode.
        tokenizer: with the nano chat template.
        seed: of the samples.
        num_samples: completions a problem; pass@k is reported for k up to it.
        limit: problems of each split, None for all.
        splits: `mixed` must be among them, it also carries the plan scores.
    """
    task = Countdown()
    rows = {split: task.rows(split, limit) for split in splits}
    right = {split: _num_right(model, tokenizer, rows[split], num_samples, seed) for split in splits}
    mixed = rows["mixed"]
    num_guided = min(32, num_samples)
    guided = [replace(row, prompt=guided_messages(row.prompt[0]["content"], row.meta["plan"])) for row in mixed]
    return Scores(
        pass_at={split: _curve(counts, num_samples) for split, counts in right.items()},
        num_problems={split: len(rows[split]) for split in splits},
        num_samples=num_samples,
        plan_right_frac=_plans_right(model, tokenizer, mixed),
        guided_frac=float(_num_right(model, tokenizer, guided, num_guided, seed).mean() / num_guided),
        unguided_frac=float(right["mixed"].mean() / num_samples),
        num_guided_samples=num_guided,
    )


def _num_right(model: Any, tokenizer: Any, rows: list[Row], num_samples: int, seed: int) -> np.ndarray:
    """Right samples of each row, int64, [Q]."""
    verifier = Countdown().verifier
    index = {row.uid: i for i, row in enumerate(rows)}
    counts = np.zeros(len(rows), dtype=np.int64)
    settings = SamplingSettings(num_samples=num_samples, max_tokens=MAX_COMPLETION_TOKENS, seed=seed)
    for batch in sample(model, tokenizer, rows, settings, batch_size=512):
        for completion in batch:
            at = index[completion.uid]
            counts[at] += verifier(completion.text, rows[at].answer).correct
    return counts


def _curve(num_right_Q: np.ndarray, num_samples: int) -> dict[int, float]:
    return {k: float(pass_at_k(num_right_Q, num_samples, k).mean()) for k in KS if k <= num_samples}


def _plans_right(model: Any, tokenizer: Any, rows: list[Row]) -> float:
    """Share of rows whose greedy plan, from problem and reference, is the true one."""
    plans = {row.uid: row.meta["plan"] for row in rows}
    asked = [replace(row, prompt=plan_messages(row.prompt[0]["content"], row.solution or "")) for row in rows]
    settings = SamplingSettings(num_samples=1, max_tokens=MAX_COMPLETION_TOKENS, seed=0, temperature=0.0)
    batches = sample(model, tokenizer, asked, settings, batch_size=512)
    return float(np.mean([completion.text == plans[completion.uid] for batch in batches for completion in batch]))
