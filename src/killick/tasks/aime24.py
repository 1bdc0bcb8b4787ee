"""AIME 2024, papers I and II: 30 problems with integer answers from 0 to 999."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from killick.tasks.dataset import DataSetTask, Source
from killick.tasks.reading import HubSource, Place, column
from killick.verifiers.integer import IntegerVerifier

_URL = re.compile(r"(20\d\d)_AIME_(I{1,2})_Problems/Problem_(\d+)")


@dataclass(frozen=True)
class AIME24(DataSetTask):
    """AIME 2024 (I and II), 30 problems, integer answers."""

    sources = {
        "test": Source(
            "aime24", HubSource("HuggingFaceH4/aime_2024", "2fe88a2f1091d5048c0f36abc874fb997b3dd99a", "train")
        )
    }

    @property
    def verifier(self) -> IntegerVerifier:
        """Integers from 0 to 999; leading zeros count for nothing."""
        return IntegerVerifier()

    def from_hub(self, record: Mapping[str, Any], place: Place) -> dict[str, Any]:
        """The paper and number are read from the page's address; solutions are signed by their writers, so left out."""
        local: dict[str, Any] = {
            "problem": column(record, "problem", str(place)),
            "answer": str(int(column(record, "answer", str(place)))),
        }
        match = _URL.search(str(record.get("url", "")))
        if match:
            local["id"] = f"aime24-{match[2]}-{match[3]}"
            local["meta"] = {"year": int(match[1]), "paper": match[2], "number": int(match[3])}
        return local
