r"""What the tasks over published data sets share: a local file in one schema, or the hub at a pinned revision.

The schema of a local file `NAME.jsonl`, one object a line: `id`, `problem`, `answer` (for multiple choice the letter),
`solution` (text, or "" or null), and optionally `choices` (list of texts) and `meta` (object).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from killick.errors import ConfigError, DataError
from killick.registry import nearest
from killick.tasks.reading import (
    HubSource,
    Place,
    as_path,
    ask,
    check_limit,
    checked,
    column,
    gold_of,
    read_hub,
    read_jsonl,
    solution_of,
    text_of,
    uid_of,
)
from killick.tasks.types import Row
from killick.verifiers.types import Verifier

BOXED = r"Reason step by step and put the final answer within \boxed{}."
_DOLLAR = re.compile(r"(?<!\\)\$")
_PROSE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")  # words between formulas, not the name of a command


class Source(NamedTuple):
    """Where one split comes from: `FILE.jsonl` in the local folder, and the hub."""

    file: str
    hub: HubSource


class Posed(NamedTuple):
    """A record as it is asked: text shown to the model, gold as the verifier reads it, extras for `Row.meta`."""

    text: str
    gold: str
    extras: dict[str, Any]


@dataclass(frozen=True)
class DataSetTask:
    r"""Base of a task over a published data set; the verifier is `latex`, the answer goes in a `\boxed{}`.

    A task states facts: `sources` (split -> where it is), `columns` and `extras` (names at the hub), `wording`, and,
    where renaming columns is not enough, its own `from_hub`.

    Attributes:
        path: folder with the local files; None reads the hub, at the revision the task pins.
        instruction: follows the problem; None takes the task's own.
        system: system message, or "" for none (a model's chat template may then add its own).
    """

    path: str | None = None
    instruction: str | None = None
    system: str = ""

    sources: ClassVar[Mapping[str, Source]] = {}
    splits: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[Mapping[str, str]] = {"problem": "problem", "answer": "answer"}
    extras: ClassVar[tuple[str, ...]] = ()
    wording: ClassVar[str] = BOXED
    drop_unreadable: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """The splits are those that have a source."""
        cls.splits = tuple(cls.sources)

    def __post_init__(self) -> None:
        if self.path is not None:
            as_path(self.path)

    @property
    def verifier(self) -> Verifier:
        """Mathematical equivalence of the last box."""
        from killick.verifiers.latex import LatexVerifier

        return LatexVerifier()

    @property
    def asked(self) -> str:
        """The instruction where the settings give none."""
        return self.wording

    def rows(self, split: str, limit: int | None = None) -> list[Row]:
        """Problems in the data set's order.

        Raises:
            ConfigError: unknown split, or a limit below 1.
            DataError: missing file or column, unreachable hub, repeated id, a gold the verifier cannot read.
        """
        check_limit(limit)
        if split not in self.splits:
            raise ConfigError(f"{type(self).__name__} has no split {split!r}. {nearest(split, self.splits)}")
        rows = (self._row(record, where) for record, where in self._records(split))
        return checked(rows, self.verifier, limit, drop=self.drop_unreadable)

    def _records(self, split: str) -> Iterator[tuple[Mapping[str, Any], str]]:
        """Records in the local schema, each with the words that name it in a message."""
        source = self.sources[split]
        if self.path is None:
            for place, record in read_hub(source.hub, self._advice(split)):
                local = self.from_hub(record, place)
                if local is not None:
                    yield {"id": f"{source.file}-{place.index}", "solution": None, **local}, str(place)
            return
        folder = as_path(self.path)
        if folder.is_file():
            raise DataError(
                f"The path {self.path!r} is a file. Give the folder that holds {source.file}.jsonl, or use the task "
                '"jsonl" for a single file.'
            )
        file = folder / f"{source.file}.jsonl"
        for number, record in enumerate(read_jsonl(file), start=1):
            yield record, f"{file.name}, record {number}"

    def _advice(self, split: str) -> str:
        return f"Offline, set the task's path to a folder with {self.sources[split].file}.jsonl."

    def from_hub(self, record: Mapping[str, Any], place: Place) -> dict[str, Any] | None:
        """A hub record in the local schema; None leaves it out.

        Raises:
            DataError: a column is missing.
        """
        where = str(place)
        local = {ours: column(record, theirs, where) for ours, theirs in self.columns.items()}
        return {**local, "meta": {name: record[name] for name in self.extras if name in record}}

    def pose(self, record: Mapping[str, Any], where: str) -> Posed:
        """What is asked and what is right.

        Raises:
            DataError: a column is missing or holds something unusable.
        """
        return Posed(text_of(record, "problem", where), gold_of(record, "answer", where), {})

    def solution(self, record: Mapping[str, Any], where: str) -> str | None:
        """The reference solution as a model may learn it.

        Raises:
            DataError: the column is missing or holds something else than a text.
        """
        return solution_of(record, "solution", where)

    def _row(self, record: Mapping[str, Any], where: str) -> Row:
        posed = self.pose(record, where)
        return Row(
            uid=uid_of(record, "id", where),
            prompt=ask(posed.text, self.asked if self.instruction is None else self.instruction, self.system),
            answer=posed.gold,
            solution=self.solution(record, where),
            source=next(iter(self.sources.values())).hub.name,
            meta={**(record.get("meta") or {}), **posed.extras},
            problem="\n".join([text_of(record, "problem", where), *(record.get("choices") or [])]),
        )

    def gold_completion(self, row: Row) -> str:
        """The gold in a box, as the instruction asks for."""
        return boxed(row.answer)

    def mode(self, completion: str) -> str | None:
        """Unknown: these problems have no small set of solution modes."""
        return None


def boxed(answer: str) -> str:
    r"""A gold as a model would write it: `$x$ for odd $n$` -> `The final answer is \boxed{x\text{ for odd }n}.`"""
    parts = _DOLLAR.split(answer)
    outside = [f"\\text{{{part}}}" if _PROSE.search(part) else part for part in parts[::2]]
    if len(parts) > 1:
        parts[::2] = outside
    return f"The final answer is \\boxed{{{''.join(parts).strip()}}}."
