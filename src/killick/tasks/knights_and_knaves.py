"""Knights and Knaves: who tells the truth? 100 test puzzles each for 2 to 8 people, every one with one solution."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from killick.tasks.dataset import DataSetTask, Source
from killick.tasks.reading import HubSource, Place, column
from killick.tasks.types import Row
from killick.verifiers.knights import KnightsVerifier

_HUB, _REVISION = "K-and-K/knights-and-knaves", "2f68547989981b1af37cb3dde5fdefa847aa8619"


def _hub(config: str) -> HubSource:
    return HubSource(_HUB, _REVISION, "+".join(f"{people}ppl" for people in range(2, 9)), (config,))


@dataclass(frozen=True)
class KnightsAndKnaves(DataSetTask):
    """Knights-and-knaves puzzles with 2 to 8 people."""

    sources = {
        "train": Source("knights_and_knaves_train", _hub("train")),
        "test": Source("knights_and_knaves", _hub("test")),
    }
    wording: ClassVar[str] = (
        'Reason step by step. End with the line "Conclusion:" and then, one person a line, whether that person is a '
        "knight or a knave."
    )

    @property
    def verifier(self) -> KnightsVerifier:
        """The role of every person, in any order and wording."""
        return KnightsVerifier()

    def from_hub(self, record: Mapping[str, Any], place: Place) -> dict[str, Any]:
        """Roles come as truth values in the order of the names."""
        where = str(place)
        names, truthful = column(record, "names", where), column(record, "solution", where)
        roles = ["knight" if value else "knave" for value in truthful]
        return {
            "id": f"kk-{place.config}-{len(names)}ppl-{column(record, 'index', where)}",
            "problem": column(record, "quiz", where),
            "answer": ", ".join(f"{name} is a {role}" for name, role in zip(names, roles, strict=True)),
            "solution": _solution(record, where),
            "meta": {"people": len(names), "names": list(names), "roles": roles},
        }

    def gold_completion(self, row: Row) -> str:
        """One line a person under the heading."""
        return "\n".join(["Conclusion:", *(part.strip() for part in row.answer.split(","))])


def _solution(record: Mapping[str, Any], where: str) -> str:
    steps = " ".join(column(record, "cot_repeat_steps", where))
    return f"{column(record, 'cot_head', where)} {steps} {column(record, 'cot_foot', where)}\n" + column(
        record, "solution_text_format", where
    )
