"""GPQA-Diamond: 198 graduate questions in biology, chemistry and physics with four options.

The hub asks for acceptance of terms before it gives the data, and its authors ask that examples are not published, so
no copy comes with killick: log in to the hub, or keep a local `gpqa_diamond.jsonl` out of version control.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from killick.tasks.choices import ChoiceTask
from killick.tasks.dataset import Source
from killick.tasks.reading import HubSource, Place, column


@dataclass(frozen=True)
class GPQADiamond(ChoiceTask):
    """GPQA-Diamond, 198 science questions; options are shuffled, since the hub puts the right one first.

    Attributes:
        shuffle_seed: of the order of options.
    """

    shuffle_seed: int | None = 0

    sources = {
        "test": Source(
            "gpqa_diamond",
            HubSource("Idavidrein/gpqa", "633f5ee89ab8ad4522a9f850766b73f62147ffdd", "train", ("gpqa_diamond",)),
        )
    }

    def from_hub(self, record: Mapping[str, Any], place: Place) -> dict[str, Any]:
        """The right option comes first."""
        names = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")
        return {
            "id": f"gpqa-diamond-{column(record, 'Record ID', str(place))}",
            "problem": column(record, "Question", str(place)).strip(),
            "answer": "A",
            "choices": [column(record, name, str(place)).strip() for name in names],
            "meta": {"domain": record.get("High-level domain"), "subdomain": record.get("Subdomain")},
        }

    def _advice(self, split: str) -> str:
        return f"It is gated: accept its terms at the hub and log in. {super()._advice(split)}"
