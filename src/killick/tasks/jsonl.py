"""Problems from one's own JSON-lines files, and the reading of such files that other tasks share."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from killick.errors import ConfigError, DataError
from killick.registry import nearest
from killick.tasks.types import Messages, Row
from killick.verifiers.types import Verifier

Judge = Literal["number", "latex"]


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """All records of a JSON-lines file; blank lines are skipped.

    Raises:
        DataError: missing, not UTF-8, empty, or a line that is not a JSON object or holds half a character (its number
            is named).
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError as error:
        raise DataError(f"There is no file {path} (looked for {path.absolute()}).") from error
    except (OSError, ValueError) as error:  # not UTF-8, or a zero byte in the path
        raise DataError(f"{path} cannot be read as UTF-8 text: {error}.") from error
    records = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if "\\u" in line:  # an escape can name half a character, which neither UTF-8 nor a tokenizer can hold
                json.dumps(record, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"{path}, line {number} holds a lone surrogate, {error.object[error.start]!r}, which is half a "
                "character. Write characters themselves, or both halves of the escape."
            ) from error
        except json.JSONDecodeError as error:
            raise DataError(f"{path}, line {number} is not JSON ({error}). Expected one object a line.") from error
        except (ValueError, RecursionError) as error:  # thousands of digits or of brackets
            raise DataError(
                f"{path}, line {number} cannot be read ({error}). Expected one plain object a line; write very long "
                "numbers as text."
            ) from error
        if not isinstance(record, dict):
            raise DataError(f"{path}, line {number} holds a {type(record).__name__}. Expected one object a line.")
        records.append(record)
    if not records:
        raise DataError(f"{path} is empty: it holds no problem.")
    return records


def column(record: dict[str, Any], name: str, where: str) -> Any:
    """One field of a record.

    Raises:
        DataError: the record has no such field; the available ones and the nearest are named.
    """
    if name not in record:
        raise DataError(f"{where} has no column {name!r}. {nearest(name, record)} Set the task's *_column settings.")
    return record[name]


def text_of(record: dict[str, Any], name: str, where: str) -> str:
    """A field that must hold some text.

    Raises:
        DataError: there is no such field, or it holds null, nothing or something else.
    """
    value = column(record, name, where)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{where}: column {name!r} holds {value!r}, not a text.")
    return value


def gold_of(record: dict[str, Any], name: str, where: str) -> str:
    """The field with the gold answer: a text, or a number as it is written.

    Raises:
        DataError: there is no such field, or it holds something else.
    """
    value = column(record, name, where)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DataError(f"{where}: the answer in column {name!r} is {value!r}, not a text or number.")
    return str(value)


def uid_of(record: dict[str, Any], name: str, where: str) -> str:
    """The field with the id: a text, or a whole number.

    Raises:
        DataError: there is no such field, or it holds something else.
    """
    value = column(record, name, where)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise DataError(f"{where}: the id in column {name!r} is {value!r}, not a text or whole number.")
    return str(value)


def as_path(text: str) -> Path:
    """A path from the settings, with `~` expanded.

    Raises:
        ConfigError: it cannot be a path (zero byte, too long, no such user).
    """
    try:
        path = Path(text).expanduser()
        path.resolve()
        path.exists()
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        shown = repr(text)
        raise ConfigError(
            f"The path {shown if len(shown) < 80 else shown[:80] + '…'} cannot be used: {error}. Correct the task's "
            "settings."
        ) from error
    return path


def make_judge(judge: Judge) -> Verifier:
    """The verifier of a task that leaves the choice to its settings.

    Raises:
        ConfigError: unknown name.
    """
    if judge == "number":
        from killick.verifiers.number import NumberVerifier

        return NumberVerifier()
    if judge == "latex":
        from killick.verifiers.latex import LatexVerifier

        return LatexVerifier()
    raise ConfigError(f"Unknown judge {judge!r}. {nearest(judge, ('number', 'latex'))}")


def ask(problem: str, instruction: str, system: str) -> Messages:
    """Chat messages: the instruction follows the problem in the user's turn; no system turn when `system` is empty."""
    head = [{"role": "system", "content": system}] if system else []
    return [*head, {"role": "user", "content": f"{problem}\n\n{instruction}" if instruction else problem}]


def check_limit(limit: int | None) -> None:
    """Refuse a limit that would give no row.

    Raises:
        ConfigError: it is below 1.
    """
    if limit is not None and limit < 1:
        raise ConfigError(f"The number of rows asked for is {limit}; it must be at least 1, or left out for all.")


@dataclass(frozen=True)
class JsonLines:
    r"""Own data: a file for training and, optionally, another for testing.

    Attributes:
        path: training problems, one JSON object a line.
        test_path: test problems in the same columns; without it there is no test split.
        problem_column: the question.
        answer_column: the gold answer; numbers are taken as they are written.
        solution_column: reference solution text, or "" when there is none.
        id_column: unique id of a row, or "" to derive one from the problem's text.
        judge: "latex" (mathematical equivalence of the last box) or "number" (exact value of the final number).
        instruction: what is added to the problem. It should ask for the form the judge reads.
        system: system message, or "" for none.
    """

    path: str
    test_path: str | None = None
    problem_column: str = "problem"
    answer_column: str = "answer"
    solution_column: str = ""
    id_column: str = ""
    judge: Judge = "latex"
    instruction: str = r"Reason step by step and put the final answer within \boxed{}."
    system: str = ""

    def __post_init__(self) -> None:
        make_judge(self.judge)
        train = as_path(self.path)
        if self.test_path is not None and as_path(self.test_path).resolve() == train.resolve():
            raise ConfigError(f"path and test_path are the same file, {self.path}: test on other problems.")

    @property
    def splits(self) -> tuple[str, ...]:
        """The training split, and a test split when there is a test file."""
        return ("train",) if self.test_path is None else ("train", "test")

    @property
    def verifier(self) -> Verifier:
        """The judge chosen by the setting of that name."""
        return make_judge(self.judge)

    def rows(self, split: str, limit: int | None = None) -> list[Row]:
        """Problems in the file's order.

        Raises:
            ConfigError: unknown split, or a limit below 1.
            DataError: missing or empty file, missing column, repeated id, unreadable gold.
        """
        check_limit(limit)
        if split not in self.splits:
            more = "" if self.test_path else " Set test_path to have a test split."
            raise ConfigError(f"The task jsonl has no split {split!r}. {nearest(split, self.splits)}{more}")
        path = as_path(self.path if split == "train" or self.test_path is None else self.test_path)
        verifier, rows, seen = self.verifier, [], set()
        for number, record in enumerate(read_jsonl(path)[:limit], start=1):
            row = self._row(record, f"{path}, record {number}")
            if row.uid in seen:
                raise DataError(
                    f"{path}, record {number}: the id {row.uid!r} occurs twice. Ids and problems are unique."
                )
            seen.add(row.uid)
            check_gold(verifier, row)
            rows.append(row)
        return rows

    def _row(self, record: dict[str, Any], where: str) -> Row:
        problem = text_of(record, self.problem_column, where)
        answer = gold_of(record, self.answer_column, where)
        solution = column(record, self.solution_column, where) if self.solution_column else None
        if solution is not None and not isinstance(solution, str):
            raise DataError(f"{where}: the solution in column {self.solution_column!r} is no text.")
        uid = (
            uid_of(record, self.id_column, where)
            if self.id_column
            else hashlib.sha256(problem.encode()).hexdigest()[:16]
        )
        return Row(
            uid=uid,
            prompt=ask(problem, self.instruction, self.system),
            answer=answer,
            solution=solution or None,
            source=Path(self.path).name,
        )

    def gold_completion(self, row: Row) -> str:
        """The bare gold in the form the judge reads."""
        return written(row.answer, self.judge)

    def mode(self, completion: str) -> str | None:
        """Unknown for arbitrary data."""
        return None


def written(answer: str, judge: Judge) -> str:
    """A gold as a model would write it for that judge."""
    bare = answer.strip().strip("$").strip()
    return f"The answer is \\boxed{{{bare}}}." if judge == "latex" else f"#### {bare}"


def check_gold(verifier: Verifier, row: Row) -> None:
    """Have the verifier look at a row's gold.

    Raises:
        DataError: it cannot read it; the row is named.
    """
    try:
        verifier.check_gold(row.answer)
    except DataError as error:
        raise DataError(f"Row {row.uid} of {row.source}: {error}") from error
