"""AIME 2025, papers I and II: 30 problems with integer answers from 0 to 999."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from killick.tasks.dataset import DataSetTask, Source
from killick.tasks.reading import HubSource, Place, column
from killick.verifiers.integer import IntegerVerifier


@dataclass(frozen=True)
class AIME25(DataSetTask):
    """AIME 2025 (I and II), 30 problems, integer answers."""

    sources = {
        "test": Source("aime25", HubSource("math-ai/aime25", "563bb8404243c5f09de6ec262f2db674fe5bce9b", "test"))
    }

    @property
    def verifier(self) -> IntegerVerifier:
        """Integers from 0 to 999; leading zeros count for nothing."""
        return IntegerVerifier()

    def from_hub(self, record: Mapping[str, Any], place: Place) -> dict[str, Any]:
        """The hub's order is paper I, 1 to 15, then paper II."""
        paper, number = ("I", "II")[place.index // 15], place.index % 15 + 1
        return {
            "id": f"aime25-{paper}-{number}",
            "problem": column(record, "problem", str(place)),
            "answer": str(int(column(record, "answer", str(place)))),
            "meta": {"year": 2025, "paper": paper, "number": number},
        }
