"""Reading rows of a data set: JSON-lines and Parquet files, the hub at a revision, and the checks that tasks share."""

import functools
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from killick.errors import ConfigError, DataError
from killick.registry import nearest
from killick.tasks.types import Messages, Row
from killick.verifiers.types import Verifier

_log = logging.getLogger(__name__)


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """All records of a JSON-lines file; blank lines are skipped.

    Raises:
        DataError: missing, not UTF-8, empty, or a line that is not a JSON object or holds half a character (its number
            is named).
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError as error:
        raise _missing(path) from error
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


def read_parquet(path: Path) -> list[dict[str, Any]]:
    """All records of a Parquet file.

    Raises:
        DataError: missing, not Parquet, or without a row.
    """
    from pyarrow import ArrowException, parquet

    try:
        records: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    except FileNotFoundError as error:
        raise _missing(path) from error
    except (ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}.") from error
    if not records:
        raise DataError(f"{path} is empty: it holds no problem.")
    return records


def _missing(path: Path) -> DataError:
    return DataError(f"There is no file {path}{'' if path.is_absolute() else f' (looked for {path.absolute()})'}.")


def read_file(path: Path) -> list[dict[str, Any]]:
    """All records of a file: Parquet if it is called `.parquet`, JSON lines otherwise.

    Raises:
        DataError: as the two readers say.
    """
    return read_parquet(path) if path.suffix == ".parquet" else read_jsonl(path)


@dataclass(frozen=True)
class HubSource:
    """One split of a data set on the Hugging Face hub.

    Attributes:
        name: owner/name.
        revision: commit; None takes the newest, which may change.
        split: as the hub calls it; "a+b" joins splits.
        configs: read one after the other; None is a data set without configurations.
    """

    name: str
    revision: str | None
    split: str
    configs: tuple[str | None, ...] = (None,)


@dataclass(frozen=True)
class Place:
    """Where a hub record stands: configuration and position in it."""

    source: HubSource
    config: str | None
    index: int

    def __str__(self) -> str:
        return f"{self.source.name}, {self.config + ', ' if self.config else ''}{self.source.split} row {self.index}"


def read_hub(source: HubSource, advice: str) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Records of a hub data set in its order, with their places.

    Args:
        source: what to read.
        advice: what to do offline, as the end of the error message.

    Raises:
        DataError: the hub cannot be reached, the data set is gated, or revision, configuration or split do not exist.
    """
    from datasets import load_dataset

    for config in source.configs:
        try:
            data = load_dataset(source.name, config, split=source.split, revision=source.revision)
        except Exception as error:  # network, hub, access and cache failures come in many classes
            lines = str(error).strip().splitlines()
            raise DataError(
                f"The data set {source.name} cannot be had from the hub ({type(error).__name__}: "
                f"{lines[0] if lines else ''}). {advice}"
            ) from error
        for index, record in enumerate(data):
            yield Place(source, config, index), record


def column(record: Mapping[str, Any], name: str, where: str) -> Any:
    """One field of a record; `a.b.0` is field b, element 0, of a nested field a.

    Raises:
        DataError: the record has no such field; the available ones and the nearest are named.
    """
    if name in record:
        return record[name]
    value: Any = record
    for part in name.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list | tuple) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise DataError(
                f"{where} has no column {name!r}. {nearest(name, record)} Set the task's columns or *_column."
            )
    return value


def text_of(record: Mapping[str, Any], name: str, where: str) -> str:
    """A field that must hold some text.

    Raises:
        DataError: there is no such field, or it holds null, nothing or something else.
    """
    value = column(record, name, where)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{where}: column {name!r} holds {value!r}, not a text.")
    return value


def gold_of(record: Mapping[str, Any], name: str, where: str) -> str:
    """The field with the gold answer: a text, or a number as it is written.

    Raises:
        DataError: there is no such field, or it holds something else.
    """
    value = column(record, name, where)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DataError(f"{where}: the answer in column {name!r} is {value!r}, not a text or number.")
    return str(value)


def uid_of(record: Mapping[str, Any], name: str, where: str) -> str:
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


def solution_of(record: Mapping[str, Any], name: str, where: str) -> str | None:
    """The field with a reference solution; null and "" mean there is none.

    Raises:
        DataError: there is no such field, or it holds something that is not a text.
    """
    value = column(record, name, where)
    if value is not None and not isinstance(value, str):
        raise DataError(f'{where}: the solution is {value!r}, not a text; null or "" if there is none.')
    return value or None


def check_gold(verifier: Verifier, row: Row) -> None:
    """Have the verifier look at a row's gold.

    Raises:
        DataError: it cannot read it; the row is named.
    """
    read: Callable[[Any, str], None] = _readable if _hashable(verifier) else _read
    try:
        read(verifier, row.answer)
    except DataError as error:
        raise DataError(f"Row {row.uid} of {row.source}: {error}") from error


def _read(verifier: Any, answer: str) -> None:
    verifier.check_gold(answer)


# A run asks for the same rows several times, and parsing LaTeX takes milliseconds.
_readable = functools.lru_cache(maxsize=1 << 16)(_read)


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:  # a setting that is a table or a list
        return False
    return True


def checked(rows: Iterable[Row], verifier: Verifier, limit: int | None, *, drop: bool = False) -> list[Row]:
    """The first `limit` rows, each with a gold the verifier can read and an id of its own.

    Args:
        rows: taken one by one, so that a limit saves work.
        verifier: the task's judge.
        limit: None takes all.
        drop: leave rows with an unreadable gold out, with a warning. For large training sets only: a benchmark with
            rows missing is another benchmark.

    Raises:
        DataError: an unreadable gold (unless dropped), a repeated id, or no row at all.
    """
    kept: list[Row] = []
    seen: set[str] = set()
    dropped: list[str] = []
    for row in rows:
        if row.uid in seen:
            raise DataError(f"{row.source}: the id {row.uid!r} occurs twice. Ids and problems are unique.")
        try:
            check_gold(verifier, row)
        except DataError as error:
            if not drop:
                raise
            dropped.append(str(error))
            continue
        seen.add(row.uid)
        kept.append(row)
        if len(kept) == limit:
            break
    if dropped:
        _log.warning("%d rows have a gold that cannot be read and are left out. First: %s", len(dropped), dropped[0])
    if not kept:
        raise DataError(f"No usable row{': ' + dropped[0] if dropped else ''}.")
    return kept
