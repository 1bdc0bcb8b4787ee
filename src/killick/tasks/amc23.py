"""AMC: 40 problems of the AMC 12 of 2023, and the 83 of 2022 and 2023; reworded upstream to have numeric answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from killick.tasks.dataset import DataSetTask, Source
from killick.tasks.reading import HubSource, Place, column


@dataclass(frozen=True)
class AMC23(DataSetTask):
    """AMC 12 of 2023, 40 problems with numeric answers."""

    sources = {"test": Source("amc23", HubSource("math-ai/amc23", "80815d37005feb82cd7f8fbc6901d5d3eff43057", "test"))}
    columns = {"problem": "question", "answer": "answer"}

    def from_hub(self, record: Mapping[str, Any], place: Place) -> dict[str, Any]:
        """The hub stores answers as floats: 27.0 is 27."""
        number = float(column(record, "answer", str(place)))
        return {
            "problem": column(record, self.columns["problem"], str(place)),
            "answer": str(int(number)) if number.is_integer() else str(number),
            "meta": {"url": record.get("url")},
        }


@dataclass(frozen=True)
class AMC83(AMC23):
    """AMC 12 of 2022 and 2023, 83 problems with numeric answers; holds all of amc23."""

    sources = {
        "test": Source(
            "amc83", HubSource("AI-MO/aimo-validation-amc", "69d78a4a2c840e82d69af6bc742bda09005f6316", "train")
        )
    }
    columns = {"problem": "problem", "answer": "answer"}
