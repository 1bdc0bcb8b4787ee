"""MMLU-Pro: 12,032 questions in 14 subjects with up to ten options."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from killick.tasks.choices import ChoiceTask
from killick.tasks.dataset import Source
from killick.tasks.reading import HubSource, Place


@dataclass(frozen=True)
class MMLUPro(ChoiceTask):
    """MMLU-Pro, up to ten options."""

    sources = {
        "test": Source("mmlu_pro", HubSource("TIGER-Lab/MMLU-Pro", "b189ec765aa7ed75c8acfea42df31fdae71f97be", "test"))
    }
    columns = {"id": "question_id", "problem": "question", "answer": "answer", "choices": "options"}
    extras = ("category", "src")

    def from_hub(self, record: Mapping[str, Any], place: Place) -> dict[str, Any] | None:
        """Ids are the hub's question numbers."""
        local = super().from_hub(record, place)
        return local and {**local, "id": f"mmlu-pro-{local['id']}"}
