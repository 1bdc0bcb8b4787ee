"""Own data: JSON-lines or Parquet files, or a hub data set, with a mapping of its columns."""

import hashlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from killick.errors import ConfigError
from killick.registry import nearest
from killick.tasks.choices import ChoiceTask, pose_choices
from killick.tasks.dataset import BOXED, Posed, boxed
from killick.tasks.knights_and_knaves import KnightsAndKnaves
from killick.tasks.reading import (
    HubSource,
    as_path,
    ask,
    check_limit,
    checked,
    column,
    gold_of,
    read_file,
    read_hub,
    solution_of,
    text_of,
    uid_of,
)
from killick.tasks.types import Row
from killick.verifiers.choice import choice_gold
from killick.verifiers.types import Verifier

Judge = Literal["latex", "number", "exact", "choice", "knights", "python"]

_log = logging.getLogger(__name__)
_WORDING: Mapping[str, str] = {
    "exact": r"Reason step by step and put the final answer, and nothing else, within \boxed{}.",
    "choice": ChoiceTask.wording,
    "knights": KnightsAndKnaves.wording,
    "python": "",
}
_COLUMNS = ("problem", "answer", "solution", "id", "choices")


@dataclass(frozen=True)
class JsonLines:
    r"""Own data: files for training and, optionally, testing, or a hub data set; columns are mapped.

    Attributes:
        path: training problems: JSON lines, or Parquet if the name ends so. Either `path` or `hub`.
        test_path: test problems in the same columns; without it there is no test split.
        problem_column: the question. `a.b.0` reads field b, element 0, of a nested column a.
        answer_column: the gold answer; numbers are taken as they are written.
        solution_column: reference solution text, or "" when there is none.
        id_column: unique id of a row, or "" to derive one from the problem's text.
        judge: "latex" (mathematical equivalence of the last box), "number" (exact value of the final number), "exact"
            (same text), "choice" (letter or text of an option), "knights" (roles), "python" (your `function`).
        instruction: what is added to the problem; None takes the wording that fits the judge. It should ask for the
            form the judge reads.
        system: system message, or "" for none.
        columns: the mapping as one table, with keys problem, answer, solution, id and choices (list of texts, for
            "choice"); takes the place of the four settings above.
        meta_columns: columns kept in `Row.meta`.
        hub: name of a hub data set, owner/name.
        revision: commit of it; without one, a warning says that the data may change.
        config: configuration of it, if it has any.
        train_split: its split to train on.
        test_split: its split to test on, or "" for none.
        function: "package.module:function" for the judge "python"; called with completion and gold.
        key_function: the like for maj@k with that judge: what a completion answers, as a text.
    """

    path: str | None = None
    test_path: str | None = None
    problem_column: str = "problem"
    answer_column: str = "answer"
    solution_column: str = ""
    id_column: str = ""
    judge: Judge = "latex"
    instruction: str | None = None
    system: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    meta_columns: tuple[str, ...] = ()
    hub: str | None = None
    revision: str | None = None
    config: str | None = None
    train_split: str = "train"
    test_split: str = ""
    function: str = ""
    key_function: str = ""

    _defaults: ClassVar[Mapping[str, str]] = {"problem": "problem", "answer": "answer", "solution": "", "id": ""}

    def __post_init__(self) -> None:
        make_judge(self.judge, self.function, self.key_function)
        if (self.path is None) == (self.hub is None):
            raise ConfigError("The task jsonl needs its data: set either path (a file) or hub (owner/name).")
        self._check_columns()
        if self.path is None:
            return
        for name in ("revision", "config", "test_split"):
            if getattr(self, name):
                raise ConfigError(f"{name} belongs to a hub data set, but path is set. Remove one of them.")
        train = as_path(self.path)
        if self.test_path is not None and as_path(self.test_path).resolve() == train.resolve():
            raise ConfigError(f"path and test_path are the same file, {self.path}: test on other problems.")

    def _check_columns(self) -> None:
        for key, name in self.columns.items():
            if key not in _COLUMNS:
                raise ConfigError(f"columns has no key {key!r}. {nearest(key, _COLUMNS)}")
            if not isinstance(name, str) or not name:
                raise ConfigError(f"columns.{key} = {name!r}: give the name of a column.")
            if key in self._defaults and getattr(self, f"{key}_column") != self._defaults[key]:
                raise ConfigError(f"columns.{key} and {key}_column are both set. Keep columns.{key}.")
        if self.judge == "choice" and "choices" not in self.columns:
            raise ConfigError('The judge "choice" needs columns.choices, the column with the list of options.')

    def _column(self, key: str) -> str:
        return self.columns.get(key) or getattr(self, f"{key}_column")

    @property
    def splits(self) -> tuple[str, ...]:
        """The training split, and a test split when there is a test file or a hub split for it."""
        return ("train", "test") if self.test_path is not None or self.test_split else ("train",)

    @property
    def verifier(self) -> Verifier:
        """The judge chosen by the setting of that name."""
        return make_judge(self.judge, self.function, self.key_function)

    def rows(self, split: str, limit: int | None = None) -> list[Row]:
        """Problems in the data's order.

        Raises:
            ConfigError: unknown split, or a limit below 1.
            DataError: missing or empty file, unreachable hub, missing column, repeated id, unreadable gold.
        """
        check_limit(limit)
        if split not in self.splits:
            more = "" if len(self.splits) > 1 else " Set test_path (or test_split, for a hub data set) to have one."
            raise ConfigError(f"The task jsonl has no split {split!r}. {nearest(split, self.splits)}{more}")
        return checked((self._row(record, where) for record, where in self._records(split)), self.verifier, limit)

    def _records(self, split: str) -> Iterator[tuple[Mapping[str, Any], str]]:
        if self.hub is not None:
            if self.revision is None:
                _log.warning("%s is read without a revision: its rows may change. Set revision to a commit.", self.hub)
            source = HubSource(
                self.hub, self.revision, self.train_split if split == "train" else self.test_split, (self.config,)
            )
            for place, record in read_hub(source, "Offline, download its file and set path."):
                yield record, str(place)
            return
        chosen = self.path if split == "train" else self.test_path
        assert chosen is not None, "a path where there is no hub, a test_path where there is a test split"
        file = as_path(chosen)
        for number, record in enumerate(read_file(file), start=1):
            yield record, f"{file}, record {number}"

    def _row(self, record: Mapping[str, Any], where: str) -> Row:
        problem = text_of(record, self._column("problem"), where)
        solution, uid = self._column("solution"), self._column("id")
        posed = self._pose(record, problem, where)
        instruction = _WORDING.get(self.judge, BOXED) if self.instruction is None else self.instruction
        meta = {name: column(record, name, where) for name in self.meta_columns}
        return Row(
            uid=uid_of(record, uid, where) if uid else hashlib.sha256(problem.encode()).hexdigest()[:16],
            prompt=ask(posed.text, instruction, self.system),
            answer=posed.gold,
            solution=solution_of(record, solution, where) if solution else None,
            source=self.hub or Path(self.path or "").name,
            meta={**meta, **posed.extras},
            problem="\n".join([problem, *posed.extras.get("choices", ())]),
        )

    def _pose(self, record: Mapping[str, Any], problem: str, where: str) -> Posed:
        gold = gold_of(record, self._column("answer"), where)
        if self.judge != "choice":
            return Posed(problem, gold, {})
        return pose_choices(problem, column(record, self.columns["choices"], where), gold, where, None)

    def gold_completion(self, row: Row) -> str:
        """The bare gold in the form the judge reads."""
        if self.judge == "choice":
            return f"The answer is \\boxed{{{choice_gold(row.answer).letter}}}."
        return written(row.answer, self.judge)

    def mode(self, completion: str) -> str | None:
        """Unknown for arbitrary data."""
        return None


def questions(path: str, **columns: Any) -> list[Row]:
    """The problems of a file without answers, to compare them with others.

    Args:
        path: JSON lines or Parquet.
        **columns: `columns`, `problem_column`, `id_column`, as in `JsonLines`. Without an id, `id` is read where there
            is one, else the record's number names it.

    Raises:
        ConfigError: unknown columns.
        DataError: unreadable file, no such column.
    """
    task = JsonLines(path, **columns)
    rows = []
    for record, where in task._records("train"):
        uid = task._column("id")
        name = uid_of(record, uid, where) if uid else str(record.get("id", where))
        rows.append(Row(name, [], "", problem=text_of(record, task._column("problem"), where)))
    return rows


def make_judge(judge: str, function: str = "", key_function: str = "") -> Verifier:
    """The verifier of a task that leaves the choice to its settings.

    Raises:
        ConfigError: unknown name, or a function that is missing or not called for.
    """
    from killick.verifiers import VERIFIERS

    if judge not in get_args(Judge):
        raise ConfigError(f"Unknown judge {judge!r}. {nearest(judge, get_args(Judge))}")
    if (judge == "python") != bool(function):
        raise ConfigError('The judge "python" and the setting function ("package.module:function") go together.')
    if key_function and not function:
        raise ConfigError('The setting key_function belongs to the judge "python". Remove it.')
    settings = {"function": function, "key_function": key_function} if function else {}
    verifier: Verifier = VERIFIERS.build("python_function" if judge == "python" else judge, **settings)
    return verifier


def written(answer: str, judge: str) -> str:
    """A gold as a model would write it for that judge."""
    bare = answer.strip().strip("$").strip()
    if judge == "number":
        return f"#### {bare}"
    if judge == "knights":
        return f"Conclusion: {bare}"
    return bare if judge == "python" else boxed(answer)
