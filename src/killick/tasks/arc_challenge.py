"""ARC-Challenge: 1,172 grade-school science questions, mostly with four options."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from killick.tasks.choices import ChoiceTask
from killick.tasks.dataset import Source
from killick.tasks.reading import HubSource, Place, column
from killick.verifiers.choice import LETTERS


@dataclass(frozen=True)
class ARCChallenge(ChoiceTask):
    """ARC-Challenge, grade-school science."""

    sources = {
        "test": Source(
            "arc_challenge",
            HubSource("allenai/ai2_arc", "210d026faf9955653af8916fad021475a3f00453", "test", ("ARC-Challenge",)),
        )
    }

    def from_hub(self, record: Mapping[str, Any], place: Place) -> dict[str, Any]:
        """Labels are letters or numbers; letters are given anew, in order."""
        where = str(place)
        labels, key = column(record, "choices.label", where), column(record, "answerKey", where)
        return {
            "id": f"arc-c-{column(record, 'id', where)}",
            "problem": column(record, "question", where),
            "answer": LETTERS[labels.index(key)],
            "choices": list(column(record, "choices.text", where)),
        }
