"""Do training and evaluation share problems? Two tests, on the question alone.

- **text**: the two questions are equal once case, blanks, dollars and punctuation are gone. Signs of arithmetic and
  what separates numbers stay, so "x + 2" and "x − 2" differ, and "1, 2" and "12".
- **13-gram**: at least half (`min_share`) of the runs of 13 words of the evaluation question also stand in one training
  question. Words are runs of letters or of digits. Runs found in more than 1% (and more than ten) of the training
  questions are wording that a data set repeats, not a problem, and do not count.

A question of fewer than 13 words can only be found by the first test; a translated or reworded one by neither.
"""

import logging
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from killick.errors import ConfigError
from killick.tasks.types import Row, Task

_log = logging.getLogger(__name__)
NGRAM = 13
_COMMON_FRAC, _COMMON_NUM = 0.01, 10
_WORD = re.compile(r"[^\W\d_]+|\d+")
_COMMANDS = re.compile(r"\\(?:(?:left|right|quad|qquad|displaystyle|text|mathrm)(?![a-z])|[,;!: ])")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)\s*([\s.,:;])\s*(?=\d)")  # "1, 2" is not 12
_MARKS = re.compile(r"(?<!\d)[\s.,:;]|[\s.,:;](?!\d)|[$!?\"'“”‘’`{}~]")


@dataclass(frozen=True)
class Match:
    """An evaluation row and the training row that is most like it.

    Attributes:
        eval_uid: of the evaluation row.
        train_uid: of the training row.
        kind: "text" or "13-gram".
        share: of the evaluation question's 13-grams that stand in the training question; 1 for equal texts.
    """

    eval_uid: str
    train_uid: str
    kind: Literal["text", "13-gram"]
    share: float


@dataclass(frozen=True)
class Overlap:
    """The evaluation rows that training touches, in their order; equal texts are not counted as 13-grams again."""

    matches: tuple[Match, ...]
    num_train: int
    num_eval: int

    def count(self, kind: str) -> int:
        """Evaluation rows found by one test."""
        return sum(match.kind == kind for match in self.matches)

    def __str__(self) -> str:
        share = len(self.matches) / self.num_eval
        return (
            f"{len(self.matches)} of {self.num_eval} evaluation problems ({share:.1%}) are in training: "
            f"{self.count('text')} with the same text, {self.count('13-gram')} by shared 13-grams"
        )


def question(row: Row) -> str:
    """The question of a row: `Row.problem`, or the last user turn where a task does not set it."""
    return row.problem or next((turn["content"] for turn in reversed(row.prompt) if turn["role"] == "user"), "")


def overlap(train: Sequence[Row], evaluation: Sequence[Row], min_share: float = 0.5) -> Overlap:
    """Compare every evaluation question with every training question; linear in the length of both.

    Raises:
        ConfigError: no rows on one side, or `min_share` outside (0, 1].
    """
    if not train or not evaluation:
        raise ConfigError(f"There is nothing to compare: {len(train)} training and {len(evaluation)} evaluation rows.")
    if not 0.0 < min_share <= 1.0:
        raise ConfigError(f"min_share = {min_share}: allowed is above 0, at most 1.")
    texts = {_text(question(row)): row.uid for row in reversed(train)}
    index = _index([_grams(question(row)) for row in train])
    matches = []
    for row in evaluation:
        same = texts.get(_text(question(row)))
        if same is not None:
            matches.append(Match(row.uid, same, "text", 1.0))
            continue
        grams = _grams(question(row))
        hits = Counter(number for gram in grams for number in index.get(gram, ()))
        if hits:
            number, num = min(hits.items(), key=lambda item: (-item[1], item[0]))
            if num >= min_share * len(grams):
                matches.append(Match(row.uid, train[number].uid, "13-gram", num / len(grams)))
    return Overlap(tuple(matches), len(train), len(evaluation))


def warn_of_overlap(task: Task, train: Sequence[Row], splits: Sequence[str], limit: int | None = None) -> None:
    """Log a warning for every split to be evaluated that shares problems with the training rows.

    Raises:
        ConfigError, DataError: from the task, for a split that cannot be read.
    """
    for split in splits:
        found = overlap(train, task.rows(split, limit))
        if found.matches:
            named = ", ".join(f"{match.eval_uid} = {match.train_uid}" for match in found.matches[:3])
            _log.warning(
                "Split %r: %s (%s%s). Its results will flatter the model: leave those rows out of training, or "
                "evaluate on others. `killick tasks overlap` lists them.",
                split,
                found,
                named,
                ", …" if len(found.matches) > 3 else "",
            )


def _text(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("−", "-").replace("–", "-")
    return _MARKS.sub("", _BETWEEN_DIGITS.sub(r"\1", _COMMANDS.sub("", folded)))


def _grams(text: str) -> set[int]:
    """Hashes of all runs of 13 words; they stay in this process, where equal texts hash alike."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return {hash(" ".join(words[start : start + NGRAM])) for start in range(len(words) - NGRAM + 1)}


def _index(grams: Sequence[set[int]]) -> dict[int, list[int]]:
    """13-gram -> numbers of the training rows that hold it, without those that many rows hold."""
    index: dict[int, list[int]] = defaultdict(list)
    for number, row in enumerate(grams):
        for gram in row:
            index[gram].append(number)
    most = max(_COMMON_NUM, _COMMON_FRAC * len(grams))
    return {gram: numbers for gram, numbers in index.items() if len(numbers) <= most}
