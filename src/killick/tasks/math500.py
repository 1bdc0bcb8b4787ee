"""MATH-500: 500 problems of the MATH test set, with subject, level and reference solution."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from killick.tasks.dataset import DataSetTask, Source
from killick.tasks.reading import HubSource, Place


@dataclass(frozen=True)
class MATH500(DataSetTask):
    """MATH-500, competition mathematics with reference solutions."""

    sources = {
        "test": Source(
            "math500", HubSource("HuggingFaceH4/MATH-500", "6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be", "test")
        )
    }
    columns = {"id": "unique_id", "problem": "problem", "answer": "answer", "solution": "solution"}
    extras = ("subject", "level")

    def from_hub(self, record: Mapping[str, Any], place: Place) -> dict[str, Any] | None:
        """The hub's ids lack the first folder of MATH's own file names."""
        local = super().from_hub(record, place)
        return local and {**local, "id": f"math/{local['id']}"}
