"""GSM8K, grade-school word problems with integer answers (7,473 training, 1,319 test rows; MIT licence).

Read from a local folder with `gsm8k_train.jsonl` and `gsm8k_test.jsonl`, or from the hub at a pinned revision.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from killick.errors import ConfigError, DataError
from killick.registry import nearest
from killick.tasks.dataset import DataSetTask, Source
from killick.tasks.reading import HubSource, Place, gold_of, solution_of, text_of
from killick.tasks.types import Row
from killick.verifiers.number import NumberVerifier
from killick.verifiers.types import Verifier

HUB_NAME = "openai/gsm8k"
HUB_REVISION = "740312add88f781978c0658806c59bc2815b9866"
_CALCULATOR = re.compile(r"<<[^<>\n]*>>")  # "<<48/2=24>>" drove a calculator; no model is asked to write it
_FINAL_LINE = re.compile(r"\n?####[^\n]*\s*$")
_INSTRUCTIONS = {
    "number": 'Solve the problem step by step. End with "#### " followed by the answer as a number.',
    "latex": r"Solve the problem step by step and put the final answer within \boxed{}.",
}


@dataclass(frozen=True)
class GSM8K(DataSetTask):
    """Grade-school mathematics.

    Attributes:
        path: folder with `gsm8k_train.jsonl` and `gsm8k_test.jsonl` (columns id, problem, answer, solution); None
            takes the data set `openai/gsm8k` from the hub, at a pinned revision.
        instruction: follows the problem; None takes the wording that fits the judge.
        system: system message, or "" for none (a model's chat template may then add its own).
        judge: "number" (exact, marker or last number) or "latex" (last box, else the same).
    """

    judge: Literal["number", "latex"] = "number"

    sources = {
        split: Source(f"gsm8k_{split}", HubSource(HUB_NAME, HUB_REVISION, split, ("main",)))
        for split in ("train", "test")
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.judge not in _INSTRUCTIONS:
            raise ConfigError(f"Unknown judge {self.judge!r}. {nearest(self.judge, _INSTRUCTIONS)}")

    @property
    def verifier(self) -> Verifier:
        """The judge chosen by the setting of that name; answers are short, so a missing box is forgiven."""
        if self.judge == "latex":
            from killick.verifiers.latex import LatexVerifier

            return LatexVerifier(fallback=True)
        return NumberVerifier()

    @property
    def asked(self) -> str:
        """The wording that fits the judge."""
        return _INSTRUCTIONS[self.judge]

    def from_hub(self, record: Mapping[str, Any], place: Place) -> dict[str, Any]:
        """See `hub_record`."""
        return hub_record(record, place.source.split, place.index)

    def solution(self, record: Mapping[str, Any], where: str) -> str | None:
        """Without calculator annotations, ending the way the judge's instruction asks for."""
        text = solution_of(record, "solution", where)
        if text is None:
            return None
        text = _CALCULATOR.sub("", text)
        if self.judge == "number":
            return text
        return _FINAL_LINE.sub("", text) + f"\nThe final answer is \\boxed{{{gold_of(record, 'answer', where)}}}."

    def gold_completion(self, row: Row) -> str:
        """The reference solution; its final line carries the answer."""
        return row.solution or (f"#### {row.answer}" if self.judge == "number" else f"\\boxed{{{row.answer}}}")


def hub_record(row: Mapping[str, Any], split: str, index: int) -> dict[str, Any]:
    """A hub row (question, answer with reasoning and "#### 72") in the local schema, with the same ids.

    Raises:
        DataError: a column is missing, or the answer lacks its final line.
    """
    where = f"{HUB_NAME}, {split} row {index}"
    solution = text_of(row, "answer", where)
    _, marker, final = solution.rpartition("####")
    if not marker:
        raise DataError(f"{where}: the answer has no '####' line. Is the revision {HUB_REVISION} in use?")
    return {
        "id": f"gsm8k-{split}-{index}",
        "problem": text_of(row, "question", where),
        "answer": final.strip().replace(",", ""),
        "solution": solution,
    }
