"""OlympiadBench: open-ended, text-only, English competition mathematics with a final answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from killick.tasks.dataset import DataSetTask, Source
from killick.tasks.reading import HubSource, Place, column


@dataclass(frozen=True)
class OlympiadBench(DataSetTask):
    """OlympiadBench, olympiad mathematics (675 problems locally, 674 at the hub)."""

    sources = {
        "test": Source(
            "olympiadbench",
            HubSource(
                "Hothan/OlympiadBench", "91184b52131e7fc9455fef848035173aea8cc01a", "train", ("OE_TO_maths_en_COMP",)
            ),
        )
    }
    columns = {"problem": "question", "answer": "final_answer", "solution": "solution"}

    def from_hub(self, record: Mapping[str, Any], place: Place) -> dict[str, Any]:
        """Answers and solutions come as lists; the first is taken, as the usual harness does."""
        answer, solution = (column(record, self.columns[name], str(place)) for name in ("answer", "solution"))
        names = {"subfield": "subfield", "answer_type": "answer_type", "multiple": "is_multiple_answer", "unit": "unit"}
        return {
            "id": f"olympiadbench-{column(record, 'id', str(place))}",
            "problem": column(record, self.columns["problem"], str(place)),
            "answer": _first(answer),
            "solution": _first(solution),
            "meta": {ours: record.get(theirs) for ours, theirs in names.items()},
        }


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list | tuple) and value else value
