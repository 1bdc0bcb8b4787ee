r"""MATH: the 7,500 training problems, and the 4,500 test problems that are not in MATH-500.

The answer is the content of the last box of the reference solution; a solution without a box is left out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from killick.tasks.dataset import DataSetTask, Source
from killick.tasks.math500 import MATH500
from killick.tasks.reading import HubSource, Place, column, read_hub
from killick.verifiers.boxed import last_box

_REVISION = "21a5633873b6a120296cce3e2df9d5550074f4a3"
_SUBJECTS = (
    "algebra",
    "counting_and_probability",
    "geometry",
    "intermediate_algebra",
    "number_theory",
    "prealgebra",
    "precalculus",
)


@dataclass(frozen=True)
class MATHTrain(DataSetTask):
    """MATH training problems with reference solutions; `test_rest` is MATH's test set without MATH-500."""

    sources = {
        "train": Source("math_train", HubSource("EleutherAI/hendrycks_math", _REVISION, "train", _SUBJECTS)),
        "test_rest": Source("math_test_rest", HubSource("EleutherAI/hendrycks_math", _REVISION, "test", _SUBJECTS)),
    }

    def _records(self, split: str) -> Iterator[tuple[Mapping[str, Any], str]]:
        taken = set()
        if split == "test_rest" and self.path is None:
            taken = {record["problem"] for _, record in read_hub(MATH500.sources["test"].hub, self._advice(split))}
        return (pair for pair in super()._records(split) if pair[0].get("problem") not in taken)

    def from_hub(self, record: Mapping[str, Any], place: Place) -> dict[str, Any] | None:
        """Levels come as "Level 3"; the answer is in the solution's last box."""
        solution = column(record, "solution", str(place))
        answer = last_box(solution)
        if not answer:
            return None
        level = str(record.get("level", "")).removeprefix("Level ")
        return {
            "id": f"hendrycks_math/{place.source.split}/{place.config}/{place.index}",
            "problem": column(record, "problem", str(place)),
            "answer": answer,
            "solution": solution,
            "meta": {"subject": record.get("type"), "level": int(level) if level.isdecimal() else None},
        }
