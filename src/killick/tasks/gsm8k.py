"""GSM8K, grade-school word problems with integer answers (7,473 training, 1,319 test rows; MIT licence).

Read from a local folder with `gsm8k_train.jsonl` and `gsm8k_test.jsonl`, or from the hub at a pinned revision.
"""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from killick.errors import ConfigError, DataError
from killick.registry import nearest
from killick.tasks.jsonl import (
    Judge,
    as_path,
    ask,
    check_gold,
    check_limit,
    column,
    gold_of,
    make_judge,
    read_jsonl,
    text_of,
    uid_of,
)
from killick.tasks.types import Row
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
class GSM8K:
    """Grade-school mathematics.

    Attributes:
        path: folder with `gsm8k_train.jsonl` and `gsm8k_test.jsonl` (columns id, problem, answer, solution); None
            takes the data set `openai/gsm8k` from the hub, at a pinned revision.
        judge: "number" (exact, marker or last number) or "latex" (last box, else the same).
        instruction: follows the problem; None takes the wording that fits the judge.
        system: system message, or "" for none (a model's chat template may then add its own).
    """

    path: str | None = None
    judge: Judge = "number"
    instruction: str | None = None
    system: str = ""

    splits: ClassVar[tuple[str, ...]] = ("train", "test")

    def __post_init__(self) -> None:
        make_judge(self.judge)
        if self.path is not None:
            as_path(self.path)

    @property
    def verifier(self) -> Verifier:
        """The judge chosen by the setting of that name; answers are short, so a missing box is forgiven."""
        if self.judge == "latex":
            from killick.verifiers.latex import LatexVerifier

            return LatexVerifier(fallback=True)
        return make_judge(self.judge)

    def rows(self, split: str, limit: int | None = None) -> list[Row]:
        """Problems in the data set's order; the solution has its calculator annotations removed.

        Raises:
            ConfigError: unknown split, or a limit below 1.
            DataError: missing file or column, unreachable hub, a gold that is not a number.
        """
        check_limit(limit)
        if split not in self.splits:
            raise ConfigError(f"GSM8K has no split {split!r}. {nearest(split, self.splits)}")
        records, source = (self._local if self.path is not None else self._hub)(split)
        verifier = self.verifier
        rows = [
            self._row(record, f"{source}, record {number}") for number, record in enumerate(records[:limit], start=1)
        ]
        for row in rows:
            check_gold(verifier, row)
        return rows

    def _local(self, split: str) -> tuple[list[dict[str, Any]], str]:
        assert self.path is not None, "called with a path only"
        folder = as_path(self.path)
        if folder.is_file():
            raise DataError(
                f"GSM8K's path {self.path!r} is a file. Give the folder that holds gsm8k_train.jsonl and "
                'gsm8k_test.jsonl, or use the task "jsonl" for a single file.'
            )
        file = folder / f"gsm8k_{split}.jsonl"
        return read_jsonl(file), file.name

    def _hub(self, split: str) -> tuple[list[dict[str, Any]], str]:
        from datasets import load_dataset

        try:
            data = load_dataset(HUB_NAME, "main", split=split, revision=HUB_REVISION)
        except Exception as error:  # network, hub and cache failures come in many classes
            raise DataError(
                f"The data set {HUB_NAME} cannot be had from the hub ({type(error).__name__}: {error}). Offline, set "
                "the task's path to a folder with gsm8k_train.jsonl and gsm8k_test.jsonl."
            ) from error
        return [hub_record(row, split, index) for index, row in enumerate(data)], HUB_NAME

    def _row(self, record: dict[str, Any], where: str) -> Row:
        problem, answer = text_of(record, "problem", where), gold_of(record, "answer", where)
        solution = column(record, "solution", where)
        if solution is not None and not isinstance(solution, str):
            raise DataError(f'{where}: the solution is {solution!r}, not a text; null or "" if there is none.')
        instruction = _INSTRUCTIONS[self.judge] if self.instruction is None else self.instruction
        return Row(
            uid=uid_of(record, "id", where),
            prompt=ask(problem, instruction, self.system),
            answer=answer,
            solution=self._finish(_CALCULATOR.sub("", solution), answer) if solution else None,
            source=HUB_NAME,
        )

    def _finish(self, solution: str, answer: str) -> str:
        """The solution ends the way the judge's instruction asks for."""
        if self.judge == "number":
            return solution
        return _FINAL_LINE.sub("", solution) + f"\nThe final answer is \\boxed{{{answer}}}."

    def gold_completion(self, row: Row) -> str:
        """The reference solution; its final line carries the answer."""
        return row.solution or (f"#### {row.answer}" if self.judge == "number" else f"\\boxed{{{row.answer}}}")

    def mode(self, completion: str) -> str | None:
        """Unknown: word problems have no small set of solution modes."""
        return None


def hub_record(row: dict[str, Any], split: str, index: int) -> dict[str, Any]:
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
