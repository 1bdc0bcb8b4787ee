r"""Is the judge of a task right about the golds? Every gold, written as a model would, is right; a wrong gold is not.

The wrong gold is made by a rule, so that the check repeats and can fail:

- a verifier that knows its kind of answer makes it (`other`): the next letter, the next whole number of the range, the
  first person's role turned round;
- a plain number v becomes v + 1, or 2·v + 1 from a million on, where one more may be within a tolerance;
- any other answer in a box becomes twice itself plus one, or, for lists, sets, equations and texts, itself plus one;
- without a box, the gold of the next row that is written differently is taken.
"""

import dataclasses
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from killick.errors import DataError
from killick.tasks.types import Row, Task
from killick.verifiers.judge import judge
from killick.verifiers.number import exact

_LARGE = 1_000_000
_NO_TERM = re.compile(r"[=,<>]|\\(?:text|in\b|le|ge|cup|infty|pm|mp|begin|mathrm)|(?<![\\A-Za-z])[A-Za-z]{3}")


@dataclass
class Validation:
    """What the check of one split found.

    Attributes:
        split: its name.
        num: rows.
        rejected: (uid, reason) of rows whose gold is not judged right.
        num_wrong: rows for which a wrong gold could be made.
        accepted: (uid, wrong completion) of rows where it is judged right.
        no_gold: uids of rows for which the task knows no right answer (some reasoning-gym data sets).
    """

    split: str
    num: int = 0
    rejected: list[tuple[str, str]] = field(default_factory=list)
    num_wrong: int = 0
    accepted: list[tuple[str, str]] = field(default_factory=list)
    no_gold: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every verdict is as it must be."""
        return not self.rejected and not self.accepted


def validate(task: Task, split: str, rows: Sequence[Row], shown: Iterable[Row] | None = None) -> Validation:
    """Judge every gold, and a wrong one for every row.

    Args:
        task: whose verifier is checked.
        split: the name for the result.
        rows: of that split.
        shown: the same rows wrapped in a progress bar.
    """
    found, verifier = Validation(split), task.verifier
    for index, row in enumerate(rows if shown is None else shown):
        found.num += 1
        try:
            gold = task.gold_completion(row)
        except DataError:
            found.no_gold.append(row.uid)
            continue
        verdict = judge(verifier, gold, row.answer)
        if not verdict.correct:
            found.rejected.append((row.uid, verdict.reason))
        wrong = wrong_completion(task, rows, index, gold)
        if wrong is not None:
            found.num_wrong += 1
            if judge(verifier, wrong, row.answer).correct:
                found.accepted.append((row.uid, wrong))
    return found


def wrong_completion(task: Task, rows: Sequence[Row], index: int, gold: str) -> str | None:
    """A completion that must not be judged right for row `index`; None when no rule gives one."""
    row, other = rows[index], None
    if hasattr(task.verifier, "other"):
        other = task.verifier.other(row.answer)
    elif exact(row.answer.strip(" $")) is not None:
        other = _other_number(row.answer.strip(" $"))
    elif "\\boxed{" in gold:
        other = f"{row.answer}+1" if _NO_TERM.search(row.answer) else f"2\\left({row.answer}\\right)+1"
    if other is not None:
        return task.gold_completion(dataclasses.replace(row, answer=other, solution=None))
    for step in range(1, len(rows)):
        following = rows[(index + step) % len(rows)]
        if following.answer != row.answer and (text := task.gold_completion(following)) != gold:
            return text
    return None


def _other_number(answer: str) -> str:
    value = exact(answer)
    assert value is not None, "called for plain numbers only"
    value = 2 * value + 1 if abs(value) >= _LARGE else value + 1
    return str(value.numerator) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"
